//! Hosts files and names of our own.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use diagnostic::{Problem, Span, io_text};
use engine::local::{LocalBuilder, LocalData};
use engine::special;
use wire::{HashKey, NameBuf};

use super::{designated, ttl};
use environment::Environment;
use settings::Settings;

/// Names that need nobody else.
pub(super) struct Names {
    /// What hosts files say; `None` if there are none.
    pub(super) hosts: Option<Arc<LocalData>>,
    /// What `local` says, and the special-use names.
    pub(super) local: Arc<LocalData>,
}

pub(super) fn compile(
    settings: &Settings,
    key: HashKey,
    (server_name, started): (Option<&NameBuf>, designated::Started<'_>),
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> Names {
    let time = ttl(settings.hosts.ttl);
    let mut hosts = LocalBuilder::new();
    if settings.hosts.system {
        read_hosts(&mut hosts, settings, &environment.hosts_file(), Span::BUILT_IN, environment, problems);
    }
    for file in &settings.hosts.files {
        read_hosts(&mut hosts, settings, &file.value, file.span, environment, problems);
    }
    let mut local = LocalBuilder::new();
    for entry in settings.local.iter() {
        for &address in &entry.addresses {
            local.address(entry.name.value.as_name(), address, time);
            local.pointer(address, entry.name.value.as_name(), time);
        }
    }
    if let (Some(name), Some(listeners), true) =
        (server_name, &settings.startup.listen, settings.tls.discovery)
    {
        designated::add(&mut local, listeners, started, name);
    }
    special::add(&mut local);
    Names {
        hosts: (!hosts.is_empty()).then(|| Arc::new(hosts.compile(key, time))),
        local: Arc::new(local.compile(key, time)),
    }
}

/// Adds what a hosts file says (hosts(5)): an address and its names on each line.
fn read_hosts(
    hosts: &mut LocalBuilder,
    settings: &Settings,
    path: &Path,
    span: Span,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) {
    let shown = path.display();
    let octets = match environment.read(path) {
        Ok(octets) => octets,
        Err(error) => {
            problems.push(Problem::error(span, format!("cannot read \"{shown}\": {}", io_text(&error))));
            return;
        }
    };
    let time = ttl(settings.hosts.ttl);
    let text = String::from_utf8_lossy(&octets);
    let mut wrong = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("");
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        // An address with a scope means something on this machine only.
        if first.contains('%') {
            continue;
        }
        let Ok(address) = first.parse::<IpAddr>() else {
            wrong.push(number + 1);
            continue;
        };
        for (place, word) in words.enumerate() {
            let Ok(name) = values::name(word) else {
                wrong.push(number + 1);
                continue;
            };
            hosts.address(name.as_name(), address, time);
            // hosts(5): the first name is the canonical one.
            if place == 0 && !address.is_unspecified() {
                hosts.pointer(address, name.as_name(), time);
            }
        }
    }
    if let Some(first) = wrong.first() {
        let rest = if wrong.len() > 1 { format!(" and {} more", wrong.len() - 1) } else { String::new() };
        problems.push(Problem::warning(
            span,
            format!("\"{shown}\" has lines that are not an address and names: line {first}{rest}"),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::local::LocalAnswer;
    use environment::Memory;
    use settings::load::load_text;
    use wire::{HashKey, Rtype};

    const KEY: HashKey = HashKey::new([1, 2]);

    /// Returns how many records each of the two sources has.
    fn check(name: &str, qtype: Rtype, hosts: Option<u16>, local: Option<u16>) {
        let memory = Memory::new(&[(
            "/etc/hosts",
            "127.0.0.1 localhost\n192.0.2.7 printer.example printer # here\n192.0.2.8 printer.example\nfe80::1%1 x\nbad line\n",
        )]);
        let text = "hosts: {files: /etc/hosts}\nlocal: {nas.home.arpa: [192.0.2.9, \"2001:db8::9\"]}\n";
        let loaded = load_text(Path::new("x"), text, &memory).expect("no mistakes");
        let mut problems = Vec::new();
        let started = designated::Started { written: &[], open: &[] };
        let names = compile(&loaded.settings, KEY, (None, started), &memory, &mut problems);
        assert_eq!(problems.len(), 1, "the line that is none is reported");
        let qname = values::name(name).expect("a name");
        let count = |data: &LocalData| {
            let mut folded = wire::Folded::root();
            let hash = KEY.fold(qname.as_name(), &mut folded);
            let answer = data.answer(&engine::names::Sought::new(&folded, hash), qtype)?;
            Some(match answer {
                LocalAnswer::Records { count, .. } => count,
                LocalAnswer::Negative { .. } => 0,
            })
        };
        assert_eq!(names.hosts.as_deref().and_then(count), hosts, "{name}");
        assert_eq!(count(&names.local), local, "{name}");
    }

    #[test]
    fn names_come_from_hosts_files_and_from_the_configuration() {
        check("printer.example", Rtype::A, Some(2), None);
        check("printer", Rtype::A, Some(1), None);
        check("7.2.0.192.in-addr.arpa", Rtype::PTR, Some(1), Some(0));
        check("nas.home.arpa", Rtype::A, None, Some(1));
        check("nas.home.arpa", Rtype::AAAA, None, Some(1));
        check("9.2.0.192.in-addr.arpa", Rtype::PTR, None, Some(1));
        check("localhost", Rtype::A, Some(1), Some(1));
        check("example.org", Rtype::A, None, None);
    }
}
