//! `unbound-anchor`: sees to it that there is a trust anchor of the root, and that it works.
//!
//! # Limitations
//!
//! The anchors that are published over HTTPS (RFC 7958) are not fetched: their signature is one of
//! PKCS #7, which nothing here can check. An anchor that no longer works stays as it is.

use std::path::Path;
use std::process::ExitCode;

use control::api::Explain;

use super::arguments::Arguments;
use super::host::{Scratch, started};
use super::{Start, log, say};

const NAME: &str = "unbound-anchor";
/// The usual file.
const FILE: &str = "/usr/share/dns/root.key";

pub(super) fn run(arguments: Vec<String>, start: Start) -> ExitCode {
    let arguments = match Arguments::read(arguments, "acuxsnbfrCP", "lSRvFh46") {
        Ok(arguments) if !arguments.has('h') && arguments.rest.is_empty() => arguments,
        _ => return usage(),
    };
    if arguments.has('l') {
        say("; The builtin root DS records.");
        root_ds().iter().for_each(say);
        say("; There is no builtin certificate: anchors are not fetched over HTTPS.");
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
    match probe(&arguments, path, start) {
        Ok(true) => tell(format_args!("success: the anchor is ok")),
        Ok(false) => tell(format_args!("fail: the anchor is NOT ok and could not be fixed")),
        Err(why) => tell(format_args!("fail: {why}")),
    }
    if arguments.has('F') {
        tell(format_args!("anchors are not fetched over HTTPS: their signature cannot be checked here"));
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    say("Usage:\tunbound-anchor [opts]");
    say("Sees to it that there is a trust anchor of the root, and says whether it works.");
    say("  -a FILE\tthe anchor (default /usr/share/dns/root.key); one that is missing is written");
    say("  -l\t\tprint the anchor that is built in");
    say("  -r FILE\tbegin with these servers of the root");
    say("  -C FILE\tread this unbound.conf");
    say("  -4, -6\tuse IPv4 or IPv6 alone");
    say("  -v\t\tsay what happens");
    say("  -h\t\tprint this");
    say(
        "  -c, -u, -S, -x, -s, -n, -b, -P, -f, -R, -F\tare taken and do nothing: nothing is fetched over HTTPS",
    );
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
    let absolute =
        |path: &str| std::path::absolute(path).unwrap_or_else(|_| path.into()).display().to_string();
    let mut text = String::new();
    if let Some(file) = arguments.value('C') {
        text.push_str(&format!("include: \"{}\"\n", absolute(file)));
    }
    text.push_str("server:\nusername: \"\"\nverbosity: 0\nuse-syslog: no\nlogfile: \"\"\nnum-threads: 1\n");
    text.push_str(&format!("trust-anchor-file: \"{}\"\n", absolute(&path.to_string_lossy())));
    if let Some(file) = arguments.value('r') {
        text.push_str(&format!("root-hints: \"{}\"\n", absolute(file)));
    }
    for (letter, line) in [('4', "do-ip6: no\n"), ('6', "do-ip4: no\n")] {
        if arguments.has(letter) {
            text.push_str(line);
        }
    }
    let operator = started(&text, &scratch, start)?;
    let asked = Explain {
        name: ".".to_owned(),
        rtype: "DNSKEY".to_owned(),
        wants_dnssec: true,
        is_tcp: true,
        ..Explain::default()
    };
    let explained = operator.explain(&asked).map_err(|error| error.to_string())?;
    Ok(explained.reply.is_some_and(|reply| reply.flags.iter().any(|flag| flag == "ad")))
}
