//! `unbound-anchor`: sees to it that there is a trust anchor of the root, and that it works.
//!
//! # Limitations
//!
//! Anchors are fetched from whatever address of this machine the system chooses (`-b`), names of
//! web servers are always told to them (`-S`), and no other resolver is asked (`-f`, `-R`).

mod published;
mod signed;

use std::net::IpAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use control::api::Explain;
use jobs::web::{Hosts, WebFile, WebReply};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};

use super::arguments::Arguments;
use super::host::{Scratch, started};
use super::{Start, log, say};

const NAME: &str = "unbound-anchor";
/// The usual file.
const FILE: &str = "/usr/share/dns/root.key";
/// The certificates of those who publish the root's anchors.
const ICANN: &str = include_str!("anchor/icann.pem");
/// Where the anchors are: the server, the file, and its signature.
const PUBLISHED: [&str; 3] =
    ["data.iana.org", "root-anchors/root-anchors.xml", "root-anchors/root-anchors.p7s"];
/// Who signs them.
const SIGNER: &str = "dnssec@iana.org";
/// How long fetching a file may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Octets that such a file may have.
const OCTETS_MAX: u64 = 1 << 20;
/// Seconds after which new keys of the root may have been missed (RFC 5011 §2.4.1).
const MISSED_SECS: u64 = 30 * 86_400;

pub(super) fn run(arguments: Vec<String>, start: Start) -> ExitCode {
    let arguments = match Arguments::read(arguments, "acuxsnbfrCP", "lSRvFh46") {
        Ok(arguments) if !arguments.has('h') && arguments.rest.is_empty() => arguments,
        _ => return usage(),
    };
    if arguments.has('l') {
        root_ds().iter().for_each(say);
        say("");
        say(ICANN.trim_end());
        return ExitCode::SUCCESS;
    }
    let is_verbose = arguments.has('v');
    let tell = |text: std::fmt::Arguments<'_>| {
        if is_verbose {
            log(NAME, "info", text);
        }
    };
    let path = Path::new(arguments.value('a').unwrap_or(FILE));
    let is_missing = std::fs::metadata(path).map_or(true, |found| found.len() == 0);
    if is_missing {
        let text: String = root_ds().iter().map(|record| format!("{record}\n")).collect();
        return match std::fs::write(path, text) {
            Ok(()) => {
                tell(format_args!("{} has content", path.display()));
                // Whoever runs it is to look: what is built in is as old as the program.
                ExitCode::FAILURE
            }
            Err(error) => {
                tell(format_args!("{}: {error}", path.display()));
                ExitCode::SUCCESS
            }
        };
    }
    tell(format_args!("{} has content", path.display()));
    let is_forced = arguments.has('F');
    match probe(&arguments, path, start) {
        Ok(true) if !is_forced => {
            tell(format_args!("success: the anchor is ok"));
            return ExitCode::SUCCESS;
        }
        Err(why) if !is_forced => {
            tell(format_args!("fail: {why}"));
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    if !is_forced && !has_missed_keys(path) {
        tell(format_args!("fail: the anchor is NOT ok and could not be fixed"));
        return ExitCode::SUCCESS;
    }
    match published_anchors(&arguments, start)
        .and_then(|text| std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display())))
    {
        Ok(()) => {
            tell(format_args!("success: the anchor has been updated using the cert"));
            ExitCode::FAILURE
        }
        Err(why) => {
            tell(format_args!("fail: the anchor is NOT ok and could not be fixed: {why}"));
            ExitCode::SUCCESS
        }
    }
}

fn usage() -> ExitCode {
    say("Usage:\tunbound-anchor [opts]");
    say("Sees to it that there is a trust anchor of the root, and says whether it works.");
    say("  -a FILE\tthe anchor (default /usr/share/dns/root.key); one that is missing is written");
    say("  -l\t\tprint the anchor that is built in");
    say("  -c FILE\tbelieve these certificates, not ICANN's, about new anchors");
    say("  -n MAIL\tthe signer of new anchors (default dnssec@iana.org)");
    say("  -u HOST\tthe web server that has them (default data.iana.org), with -P PORT");
    say("  -x, -s PATH\ttheir file, and its signature, there");
    say("  -F\t\tfetch new anchors even if the ones here work");
    say("  -r FILE\tbegin with these servers of the root");
    say("  -C FILE\tread this unbound.conf");
    say("  -4, -6\tuse IPv4 or IPv6 alone");
    say("  -v\t\tsay what happens");
    say("  -h\t\tprint this");
    say("  -S, -b, -f, -R\tare taken and do nothing");
    say(super::version());
    ExitCode::FAILURE
}

/// Returns the DS records of the root that are built in.
fn root_ds() -> Vec<String> {
    let text = |rdata: &&[u8]| {
        let (&[t0, t1, algorithm, digest], rest) = rdata.split_first_chunk::<4>()?;
        let hex: String = rest.iter().map(|octet| format!("{octet:02X}")).collect();
        Some(format!(". IN DS {} {algorithm} {digest} {hex}", u16::from_be_bytes([t0, t1])))
    };
    dnssec::anchors::ROOT_DS.iter().filter_map(text).collect()
}

/// Returns whether the keys of the root are proved by the anchor in a file.
fn probe(arguments: &Arguments, path: &Path, start: Start) -> Result<bool, String> {
    let scratch = Scratch::new()?;
    let mut text = configuration(arguments);
    text.push_str(&format!("server:\ntrust-anchor-file: \"{}\"\n", absolute(&path.to_string_lossy())));
    let operator = started(&text, &scratch, start)?;
    let asked = asked(".", "DNSKEY");
    let explained = operator.explain(&asked).map_err(|error| error.to_string())?;
    Ok(explained.reply.is_some_and(|reply| reply.flags.iter().any(|flag| flag == "ad")))
}

/// Returns what is read of every file that is asked for.
fn configuration(arguments: &Arguments) -> String {
    let mut text = String::new();
    if let Some(file) = arguments.value('C') {
        text.push_str(&format!("include: \"{}\"\n", absolute(file)));
    }
    text.push_str("server:\nusername: \"\"\nverbosity: 0\nuse-syslog: no\nlogfile: \"\"\nnum-threads: 1\n");
    if let Some(file) = arguments.value('r') {
        text.push_str(&format!("root-hints: \"{}\"\n", absolute(file)));
    }
    for (letter, line) in [('4', "do-ip6: no\n"), ('6', "do-ip4: no\n")] {
        if arguments.has(letter) {
            text.push_str(line);
        }
    }
    text
}

fn absolute(path: &str) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.into()).display().to_string()
}

fn asked(name: &str, rtype: &str) -> Explain {
    Explain {
        name: name.to_owned(),
        rtype: rtype.to_owned(),
        wants_dnssec: true,
        is_tcp: true,
        ..Explain::default()
    }
}

/// Returns whether keys of the root may have come and gone unseen, by what a server that follows
/// them noted in the file.
fn has_missed_keys(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let seen = text.lines().find_map(|line| line.strip_prefix(";;last_success: "));
    let seen = seen.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    let is_pending = text.lines().any(|line| !line.starts_with(';') && line.contains("[ ADDPEND ]"));
    let Some(seen) = seen.filter(|seen| *seen != 0 && !is_pending) else { return true };
    now().as_secs().checked_sub(seen).is_some_and(|since| since >= MISSED_SECS)
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Fetches the anchors that are published, and returns them as records, once it is proved who
/// signed them. Nobody has to prove to be the web server.
fn published_anchors(arguments: &Arguments, start: Start) -> Result<String, String> {
    let pem = match arguments.value('c').map(std::fs::read_to_string) {
        Some(Ok(text)) => text,
        // As there: a file that is missing is the one that is built in.
        _ => ICANN.to_owned(),
    };
    let authorities: Result<Vec<CertificateDer<'_>>, _> =
        CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let authorities = authorities.map_err(|error| format!("the certificates: {error}"))?;
    let [host, file, signature] = PUBLISHED;
    let host = arguments.value('u').unwrap_or(host);
    let hosts: Arc<dyn Hosts> = Arc::new(Addresses(addresses(arguments, host, start)?));
    let authority = match host.parse() {
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        _ => host.to_owned(),
    };
    let port = arguments.value('P').unwrap_or("443");
    let fetch = |path: &str| {
        let url = format!("https://{authority}:{port}/{}", path.trim_start_matches('/'));
        let file = WebFile {
            url: &url,
            known: None,
            timeout: PATIENCE,
            octets_max: OCTETS_MAX,
            proves_itself: true,
        };
        match jobs::web::fetch(&file, &hosts) {
            Ok(WebReply::Whole(octets, _)) => Ok(octets),
            Ok(WebReply::Unchanged) => Err(format!("{url}: nothing came")),
            Err(why) => Err(format!("{url}: {why}")),
        }
    };
    let text = fetch(arguments.value('x').unwrap_or(file))?;
    let signature = fetch(arguments.value('s').unwrap_or(signature))?;
    let signer = arguments.value('n').unwrap_or(SIGNER);
    let now = now();
    signed::Believed { authorities: &authorities, signer, now: UnixTime::since_unix_epoch(now) }
        .check(&text, &signature)?;
    let text = String::from_utf8(text).map_err(|_| "the anchors are not text".to_owned())?;
    let found = published::anchors(&text, i64::try_from(now.as_secs()).unwrap_or(i64::MAX))
        .map_err(|why| format!("the anchors: {why}"))?;
    Ok(found.iter().map(|record| format!("{record}\n")).collect())
}

/// The addresses of the one host that is asked.
#[derive(Debug)]
struct Addresses(Vec<IpAddr>);

impl Hosts for Addresses {
    fn addresses(&self, _: &str) -> Result<Vec<IpAddr>, String> {
        Ok(self.0.clone())
    }
}

/// Looks up the addresses of a host, which nothing proves: the anchors do not work.
fn addresses(arguments: &Arguments, host: &str, start: Start) -> Result<Vec<IpAddr>, String> {
    if let Ok(address) = host.parse() {
        return Ok(vec![address]);
    }
    let scratch = Scratch::new()?;
    let mut text = configuration(arguments);
    text.push_str("server:\nmodule-config: \"iterator\"\n");
    let operator = started(&text, &scratch, start)?;
    let mut found = Vec::new();
    for (rtype, letter) in [("AAAA", '4'), ("A", '6')] {
        if arguments.has(letter) {
            continue;
        }
        let explained = operator.explain(&asked(host, rtype)).map_err(|error| error.to_string())?;
        let answer = explained.reply.map(|reply| reply.answer).unwrap_or_default();
        let records = answer.iter().filter(|record| record.rtype == rtype);
        found.extend(records.filter_map(|record| record.data.parse::<IpAddr>().ok()));
    }
    if found.is_empty() {
        return Err(format!("{host} has no address"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_missed_by_who_has_not_looked_for_a_month() {
        let missed = |text: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            has_missed_keys(file.path())
        };
        let at = |secs: u64| format!(";;last_success: {secs} ;;Thu\n. 3600 IN DNSKEY 257 3 8 AA ;;state=2");
        let now = now().as_secs();
        assert!(missed(". IN DS 1 8 2 AA\n") && missed(&at(0)));
        assert!(missed(&at(now - MISSED_SECS - 1)) && !missed(&at(now - 60)) && !missed(&at(now + 600)));
        assert!(missed(&format!("{} [ ADDPEND ]", at(now - 60))));
    }

    #[test]
    fn certificates_that_are_built_in_can_be_read() {
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(ICANN.as_bytes()).collect();
        assert_eq!(all.map(|all| all.len()).ok(), Some(2));
    }
}
