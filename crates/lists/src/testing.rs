//! Lists that are read in tests.

use std::collections::HashSet;
use std::net::IpAddr;
use std::str::FromStr as _;
use std::sync::Arc;

use sets::{Asking, KnownServers, NameServer, NameServers, Ruling, Sought, Treatment};
use wire::{Folded, HashKey, Name, NameBuf, Rcode, Rtype};

use crate::{List, ListFormat, Progress, SetBuilder};

const KEY: HashKey = HashKey::new([1, 2]);

fn list<'a>(format: ListFormat, select: &[&'a str]) -> List<'a> {
    let is_own = matches!(format, ListFormat::Names | ListFormat::Addresses);
    List { format, select: select.to_vec(), is_own }
}

fn sought<T>(text: &str, f: impl FnOnce(&Sought<'_>) -> T) -> T {
    let name = values::name(text).expect("a name");
    let mut folded = Folded::root();
    let hash = KEY.fold(name.as_name(), &mut folded);
    f(&Sought::new(&folded, hash))
}

fn told(mistakes: &crate::Mistakes) -> Vec<String> {
    let line = |line: u32| if line == 0 { String::new() } else { format!("line {line}: ") };
    mistakes.told.iter().map(|(number, what)| format!("{}{what}", line(*number))).collect()
}

/// Reads a list of names.
pub(crate) fn check_selected(
    format: ListFormat,
    octets: &[u8],
    select: &[&str],
    inside: &[&str],
    outside: &[&str],
    mistakes: &[&str],
) {
    let mut builder = SetBuilder::new(KEY);
    let found = builder.read(&list(format, select), "x", octets.into(), &HashSet::new(), Progress::default());
    assert_eq!(told(&found), mistakes);
    let names = builder.names.compile();
    for text in inside {
        assert!(sought(text, |sought| names.contains(sought)), "{text}");
    }
    for text in outside {
        assert!(!sought(text, |sought| names.contains(sought)), "{text}");
    }
}

pub(crate) fn check(format: ListFormat, octets: &[u8], inside: &[&str], outside: &[&str], mistakes: &[&str]) {
    check_selected(format, octets, &[], inside, outside, mistakes);
}

/// Reads a list of addresses.
pub(crate) fn check_addresses(
    format: ListFormat,
    octets: &[u8],
    select: &[&str],
    inside: &[&str],
    outside: &[&str],
    mistakes: usize,
) {
    let mut builder = SetBuilder::new(KEY);
    let found = builder.read(&list(format, select), "x", octets.into(), &HashSet::new(), Progress::default());
    assert_eq!(found.count, mistakes, "{:?}", found.told);
    builder.addresses.except(&builder.without.compile());
    let addresses = builder.addresses.compile();
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    for text in inside {
        assert!(addresses.contains(address(text)), "{text}");
    }
    for text in outside {
        assert!(!addresses.contains(address(text)), "{text}");
    }
}

pub(crate) fn count_mistakes(format: ListFormat, octets: &[u8]) -> usize {
    let mut builder = SetBuilder::new(KEY);
    builder.read(&list(format, &["none"]), "x", octets.into(), &HashSet::new(), Progress::default()).count
}

/// A query.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) name: &'a str,
    pub(crate) qtype: &'a str,
    pub(crate) client: &'a str,
}

fn treatment_text(treatment: &Treatment) -> String {
    match treatment {
        Treatment::Block => "block".to_owned(),
        Treatment::Rcode(Rcode::NOERROR) => "NOERROR".to_owned(),
        Treatment::Rcode(rcode) => rcode.to_string(),
        Treatment::Drop => "drop".to_owned(),
        Treatment::Truncate => "truncate".to_owned(),
        Treatment::Records(records) => {
            let types: Vec<String> = records.iter().map(|record| record.rtype.to_string()).collect();
            format!("records {}", types.join(" "))
        }
        Treatment::Alias(name) | Treatment::AliasBelow(name) => {
            let (name, _) = Name::parse(name.as_bytes()).expect("a name");
            let front = if matches!(treatment, Treatment::Alias(_)) { "" } else { "*." };
            format!("alias {front}{}", name.to_buf())
        }
    }
}

/// The one name server of all names.
struct OneServer(NameBuf, IpAddr);

impl NameServers for OneServer {
    fn each(&self, _: Name<'_>, _: u32, f: &mut dyn FnMut(NameServer<'_>) -> bool) {
        let _ = f(NameServer::Name(self.0.as_name())) || f(NameServer::Address(self.1));
    }
}

/// Reads a response policy zone, and asks it about name servers by a name and an address.
pub(crate) fn check_servers(octets: &[u8], asked: &[(&str, &str, &str)], mistakes: &[&str]) {
    let mut builder = SetBuilder::new(KEY);
    let rpz = list(ListFormat::Rpz, &[]);
    let found = builder.read(&rpz, "x", octets.into(), &HashSet::new(), Progress::default());
    assert_eq!(told(&found), mistakes);
    let list = builder.list.compile(Arc::new(builder.names.compile()), Vec::new(), Vec::new());
    for (server, address, expected) in asked {
        let name = NameBuf::from_text(server).expect("a name");
        let servers = OneServer(name, address.parse().expect("an address"));
        let found = sought("www.example", |sought| {
            let asking = Asking {
                sought,
                qtype: Rtype::A,
                client: [198, 51, 100, 9].into(),
                by_client: true,
                addresses: &[],
                servers: Some(KnownServers { source: &servers, key: &KEY, now: 0 }),
            };
            list.rule(&asking).map(ruling_text)
        });
        assert_eq!(found.as_deref().unwrap_or("-"), *expected, "{server} {address}");
    }
}

fn ruling_text(ruling: Ruling<'_>) -> String {
    let what = if ruling.is_allowed { "allow".to_owned() } else { treatment_text(ruling.treatment) };
    format!("{what} {}", ruling.line)
}

/// Reads a list with exceptions, and asks it.
pub(crate) fn check_list(format: ListFormat, octets: &[u8], asked: &[(Asked<'_>, &str)], mistakes: &[&str]) {
    let prefix = |text: &str| [values::prefix(text).expect("a prefix")];
    let (tv, franks) = (prefix("192.0.2.77/32"), prefix("192.0.2.78/32"));
    let mut revoked = HashSet::new();
    if format == ListFormat::Adguard {
        crate::adguard::revoked(octets, &mut revoked);
    }
    let mut builder = SetBuilder::new(KEY);
    builder.tags([("device_tv", tv.as_slice()), ("Frank's tv", franks.as_slice())]);
    let found = builder.read(&list(format, &[]), "x", octets.into(), &revoked, Progress::default());
    assert_eq!(told(&found), mistakes);
    let list = builder.list.compile(Arc::new(builder.names.compile()), Vec::new(), Vec::new());
    for (asked, expected) in asked {
        let found = sought(asked.name, |sought| {
            let asking = Asking {
                sought,
                qtype: Rtype::from_str(asked.qtype).expect("a type"),
                client: asked.client.parse().expect("an address"),
                by_client: true,
                addresses: &[],
                servers: None,
            };
            list.rule(&asking).map(ruling_text)
        });
        assert_eq!(found.as_deref().unwrap_or("-"), *expected, "{}", asked.name);
    }
}
