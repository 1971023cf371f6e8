//! `unbound-host`: looks names up, and says whether answers are secure.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use control::api::{Explain, ExplainedReply, Record};
use server::Operator;
use wire::Rtype;

use super::arguments::Arguments;
use super::{Start, complain, log, say};

const NAME: &str = "unbound-host";
/// The root's keys, where packages have them.
const ROOT_KEY: &str = "/usr/share/dns/root.key";
/// Extended errors that say that an answer is bogus (RFC 8914).
const BOGUS: [u16; 7] = [6, 7, 8, 9, 10, 11, 12];

/// Whether an answer is genuine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Security {
    Secure,
    Insecure,
    Bogus,
}

pub(super) fn run(arguments: Vec<String>, start: Start) -> ExitCode {
    let arguments = match Arguments::read(arguments, "CctyfF", "vdhr46D") {
        Ok(arguments) if !arguments.has('h') && arguments.rest.len() == 1 => arguments,
        _ => return usage(),
    };
    let Some(host) = arguments.rest.first() else { return usage() };
    if let Some(class) = arguments.value('c').filter(|class| !class.eq_ignore_ascii_case("IN")) {
        complain(format_args!("error unknown class {class}"));
        return ExitCode::FAILURE;
    }
    let (name, types) = match questions(host, arguments.value('t')) {
        Ok(questions) => questions,
        Err(why) => {
            complain(why);
            return ExitCode::FAILURE;
        }
    };
    match look_up(&arguments, &name, &types, start) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            log(NAME, "error", why);
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    say("Usage:\tunbound-host [options] hostname");
    say("Looks up addresses and mail servers of a name, or the name of an address.");
    say("  -t TYPE\tlook up this type");
    say("  -c CLASS\tthe class; IN is the only one");
    say("  -C FILE\tread this unbound.conf");
    say("  -y TEXT\ttrust this DS or DNSKEY record");
    say("  -f FILE\ttrust the records of this file");
    say("  -D\t\ttrust the root's keys, of /usr/share/dns/root.key");
    say("  -r\t\task the servers of /etc/resolv.conf");
    say("  -v\t\tsay what there is not, and whether answers are secure");
    say("  -d\t\tsay what happens");
    say("  -4, -6\tuse IPv4 or IPv6 alone");
    say("  -h\t\tprint this");
    say(super::version());
    ExitCode::FAILURE
}

/// Returns what is asked.
fn questions(host: &str, wanted: Option<&str>) -> Result<(String, Vec<Rtype>), String> {
    let types = match wanted {
        Some(text) => {
            vec![text.to_ascii_uppercase().parse().map_err(|_| format!("error unknown type {text}"))?]
        }
        None => Vec::new(),
    };
    if let (Ok(_), true) = (host.parse::<IpAddr>(), types.is_empty()) {
        let name = unbound::reverse_owner(host).unwrap_or_default();
        return Ok((name, vec![Rtype::PTR]));
    }
    if host.parse::<wire::NameBuf>().is_err() {
        return Err("resolve error: syntax error".to_owned());
    }
    let types = if types.is_empty() { vec![Rtype::A, Rtype::AAAA, Rtype::MX] } else { types };
    Ok((host.to_owned(), types))
}

/// A directory for the time of a look-up.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("unbound-host.{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns a configuration for what the arguments say.
fn configuration(arguments: &Arguments) -> Result<String, String> {
    let mut text = String::new();
    if let Some(file) = arguments.value('C') {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.into());
        let _ = writeln!(text, "include: \"{}\"", file.display());
    }
    text.push_str("server:\nusername: \"\"\nverbosity: 0\nuse-syslog: no\nlogfile: \"\"\nnum-threads: 1\n");
    let mut trusts = false;
    for (letter, value) in &arguments.options {
        match letter {
            'y' => {
                trusts = true;
                let _ = writeln!(text, "trust-anchor: \"{}\"", value.replace('"', ""));
            }
            'f' => {
                trusts = true;
                let file = std::path::absolute(value).unwrap_or_else(|_| value.into());
                let _ = writeln!(text, "trust-anchor-file: \"{}\"", file.display());
            }
            'D' => {
                trusts = true;
                let _ = writeln!(text, "trust-anchor-file: \"{ROOT_KEY}\"");
            }
            'F' => {
                return Err(
                    "files in the form of named.conf are not supported: write keys with -y".to_owned()
                );
            }
            '4' => text.push_str("do-ip6: no\n"),
            '6' => text.push_str("do-ip4: no\n"),
            _ => {}
        }
    }
    if arguments.value('C').is_none() {
        text.push_str(if trusts {
            "module-config: \"validator iterator\"\n"
        } else {
            "module-config: \"iterator\"\n"
        });
    }
    if arguments.has('r') {
        let resolv = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        text.push_str("forward-zone:\nname: \".\"\n");
        for line in resolv.lines() {
            let mut words = line.split_whitespace();
            if let (Some("nameserver"), Some(address)) = (words.next(), words.next()) {
                let _ = writeln!(text, "forward-addr: {address}");
            }
        }
    }
    Ok(text)
}

fn look_up(arguments: &Arguments, name: &str, types: &[Rtype], start: Start) -> Result<(), String> {
    let scratch = Scratch::new()?;
    let operator = started(&configuration(arguments)?, &scratch, start)?;
    let (is_verbose, shows_steps) = (arguments.has('v'), arguments.has('d'));
    let mut told = Told::default();
    for rtype in types {
        let asked = Explain {
            name: name.to_owned(),
            rtype: rtype.to_string(),
            wants_dnssec: true,
            is_tcp: true,
            ..Explain::default()
        };
        let explained = operator.explain(&asked).map_err(|error| error.to_string())?;
        if shows_steps {
            for step in &explained.steps {
                log(NAME, "debug", format_args!("{} {}", step.text, step.outcome));
            }
        }
        let Some(reply) = explained.reply else { return Err("no reply".to_owned()) };
        let is_end = tell((name, *rtype), &reply, (is_verbose, types.len() > 1), &mut told);
        if is_end {
            break;
        }
    }
    Ok(())
}

/// Starts a resolver in this process.
pub(super) fn started(
    text: &str,
    scratch: &Scratch,
    start: Start,
) -> Result<std::sync::Arc<Operator>, String> {
    let file = scratch.path().join("unbound.conf");
    std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut loaded = settings::load_unbound(&file).map_err(|found| {
        let lines: Vec<String> = found.iter().map(diagnostic::Diagnostic::line).collect();
        lines.join("\n")
    })?;
    loaded.settings.startup.state_directory = scratch.path().to_owned();
    start(loaded)
}

/// What was said of a name.
#[derive(Default)]
struct Told {
    /// That it is an alias: this holds for all types.
    alias: bool,
}

/// Returns the name that an answer's aliases lead to, as it is written; `None` without aliases.
fn alias_of(name: &str, reply: &ExplainedReply) -> Option<String> {
    let mut reached = format!("{name}.");
    for record in reply.answer.iter().filter(|record| record.rtype == "CNAME") {
        if record.name.eq_ignore_ascii_case(&reached) {
            reached.clone_from(&record.data);
        }
    }
    (!reached.eq_ignore_ascii_case(&format!("{name}."))).then_some(reached)
}

/// Says what a reply says; returns whether nothing more is to be asked.
fn tell(
    (name, rtype): (&str, Rtype),
    reply: &ExplainedReply,
    (is_verbose, is_one_of_many): (bool, bool),
    told: &mut Told,
) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let security = security(reply);
    let suffix = match (is_verbose, security) {
        (false, _) => "",
        (true, Security::Secure) => " (secure)",
        (true, Security::Insecure) => " (insecure)",
        (true, Security::Bogus) => " (BOGUS (security failure))",
    };
    if reply.status == "NXDOMAIN" {
        say(format_args!("Host {name} not found: 3(NXDOMAIN).{suffix}"));
        return true;
    }
    if reply.status != "NOERROR" {
        let code: u16 = reply.status.parse::<wire::Rcode>().map_or(2, |rcode| rcode.0);
        say(format_args!("Host {name} not found: {code}({}).{suffix}", reply.status));
        if is_verbose && let Some(error) = reply.extended_errors.first() {
            say(format_args!("{} {}", error.name, error.text));
        }
        return true;
    }
    let wanted = rtype.to_string();
    let mut is_found = false;
    let alias = if wanted == "CNAME" { None } else { alias_of(name, reply) };
    if let Some(alias) = alias.as_ref().filter(|_| !std::mem::replace(&mut told.alias, true)) {
        say(format_args!("{name} is an alias for {alias}{suffix}"));
    }
    let name = alias.as_deref().map_or(name, |alias| alias.strip_suffix('.').unwrap_or(alias));
    for record in reply.answer.iter().filter(|record| record.rtype == wanted) {
        let owner = record.name.strip_suffix('.').unwrap_or(&record.name);
        is_found = true;
        say(format_args!("{}{suffix}", line(owner, record)));
    }
    if !is_found && (is_verbose || !is_one_of_many) {
        let what = match wanted.as_str() {
            "A" => "address".to_owned(),
            "AAAA" => "IPv6 address".to_owned(),
            "PTR" => "domain name ptr".to_owned(),
            "MX" => "mail handler record".to_owned(),
            other => format!("{other} record"),
        };
        say(format_args!("{name} has no {what}{suffix}"));
    }
    false
}

fn line(owner: &str, record: &Record) -> String {
    let data = &record.data;
    match record.rtype.as_str() {
        "A" => format!("{owner} has address {data}"),
        "AAAA" => format!("{owner} has IPv6 address {data}"),
        "MX" => format!("{owner} mail is handled by {data}"),
        "PTR" => {
            format!("{owner} domain name pointer {}", data.strip_suffix('.').map_or(data.as_str(), |_| data))
        }
        other => format!("{owner} has {other} record {data}"),
    }
}

fn security(reply: &ExplainedReply) -> Security {
    if reply.flags.iter().any(|flag| flag == "ad") {
        Security::Secure
    } else if reply.extended_errors.iter().any(|error| BOGUS.contains(&error.code)) {
        Security::Bogus
    } else {
        Security::Insecure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_looked_up_in_reverse() {
        let of = |host: &str, rtype: Option<&str>| questions(host, rtype);
        assert_eq!(of("192.0.2.1", None), Ok(("1.2.0.192.in-addr.arpa".to_owned(), vec![Rtype::PTR])));
        assert_eq!(of("a.example", Some("txt")), Ok(("a.example".to_owned(), vec![Rtype::TXT])));
        assert_eq!(of("a.example", Some("bogus")), Err("error unknown type bogus".to_owned()));
        assert_eq!(of("a..b", None), Err("resolve error: syntax error".to_owned()));
    }

    #[test]
    fn an_answer_with_an_error_of_validation_is_bogus() {
        let mut reply = ExplainedReply { status: "SERVFAIL".to_owned(), ..ExplainedReply::default() };
        assert_eq!(security(&reply), Security::Insecure);
        reply.extended_errors.push(control::api::ExtendedError { code: 9, ..Default::default() });
        assert_eq!(security(&reply), Security::Bogus);
        reply.flags.push("ad".to_owned());
        assert_eq!(security(&reply), Security::Secure);
    }
}
