//! Lists that are read in tests.

use std::collections::HashSet;
use std::net::IpAddr;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use diagnostic::{At, Span};
use sets::{Asking, Sought, Treatment};
use wire::{Folded, HashKey, Name, Rcode, Rtype};

use super::Compiler;
use crate::settings::{ListFormat, ListPlace, Set, SetList};

const KEY: HashKey = HashKey::new([1, 2]);

fn list(format: ListFormat, select: &[&str]) -> SetList {
    let select = select.iter().map(|&text| At { value: text.to_owned(), span: Span::BUILT_IN });
    SetList {
        span: Span::BUILT_IN,
        format,
        place: ListPlace::File("x".into()),
        select: select.collect(),
        refresh: None,
        timeout: Duration::from_secs(1),
        octets_max: 1 << 20,
        is_strict: true,
    }
}

fn set() -> Set {
    let tag = |name: &str, prefix: &str| {
        let name = At { value: name.to_owned(), span: Span::BUILT_IN };
        (name, vec![values::prefix(prefix).expect("a prefix")])
    };
    Set {
        name: At { value: "test".to_owned(), span: Span::BUILT_IN },
        names: Vec::new(),
        addresses: Vec::new(),
        lists: Vec::new(),
        include: Vec::new(),
        except: Vec::new(),
        tags: vec![tag("device_tv", "192.0.2.77/32"), tag("Frank's tv", "192.0.2.78/32")],
        dynamic: None,
    }
}

fn sought<T>(text: &str, f: impl FnOnce(&Sought<'_>) -> T) -> T {
    let name = values::name(text).expect("a name");
    let mut folded = Folded::root();
    let hash = KEY.fold(name.as_name(), &mut folded);
    f(&Sought::new(&folded, hash))
}

fn told(mistakes: &super::Mistakes) -> Vec<String> {
    let line = |line: u32| if line == 0 { String::new() } else { format!("line {line}: ") };
    mistakes.told.iter().map(|(number, what)| format!("{}{what}", line(*number))).collect()
}

/// Reads a list of names.
pub(super) fn check_selected(
    format: ListFormat,
    octets: &[u8],
    select: &[&str],
    inside: &[&str],
    outside: &[&str],
    mistakes: &[&str],
) {
    let mut compiler = Compiler::new(KEY, None);
    let found = compiler.read(&list(format, select), "x", octets.to_vec(), &HashSet::new());
    assert_eq!(told(&found), mistakes);
    let names = compiler.names.compile();
    for text in inside {
        assert!(sought(text, |sought| names.contains(sought)), "{text}");
    }
    for text in outside {
        assert!(!sought(text, |sought| names.contains(sought)), "{text}");
    }
}

pub(super) fn check(format: ListFormat, octets: &[u8], inside: &[&str], outside: &[&str], mistakes: &[&str]) {
    check_selected(format, octets, &[], inside, outside, mistakes);
}

/// Reads a list of addresses.
pub(super) fn check_addresses(
    format: ListFormat,
    octets: &[u8],
    select: &[&str],
    inside: &[&str],
    outside: &[&str],
    mistakes: usize,
) {
    let mut compiler = Compiler::new(KEY, None);
    let found = compiler.read(&list(format, select), "x", octets.to_vec(), &HashSet::new());
    assert_eq!(found.count, mistakes, "{:?}", found.told);
    compiler.addresses.except(&compiler.without.compile());
    let addresses = compiler.addresses.compile();
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    for text in inside {
        assert!(addresses.contains(address(text)), "{text}");
    }
    for text in outside {
        assert!(!addresses.contains(address(text)), "{text}");
    }
}

pub(super) fn count_mistakes(format: ListFormat, octets: &[u8]) -> usize {
    let mut compiler = Compiler::new(KEY, None);
    compiler.read(&list(format, &["none"]), "x", octets.to_vec(), &HashSet::new()).count
}

/// A query.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) name: &'a str,
    pub(super) qtype: &'a str,
    pub(super) client: &'a str,
}

fn treatment_text(treatment: &Treatment) -> String {
    match treatment {
        Treatment::Block => "block".to_owned(),
        Treatment::Rcode(Rcode::NOERROR) => "NOERROR".to_owned(),
        Treatment::Rcode(rcode) => rcode.to_string(),
        Treatment::Drop => "drop".to_owned(),
        Treatment::Truncate => "truncate".to_owned(),
        Treatment::Records(records) => {
            let types: Vec<String> = records.iter().map(|(rtype, _)| rtype.to_string()).collect();
            format!("records {}", types.join(" "))
        }
        Treatment::Alias(name) | Treatment::AliasBelow(name) => {
            let (name, _) = Name::parse(name.as_bytes()).expect("a name");
            let front = if matches!(treatment, Treatment::Alias(_)) { "" } else { "*." };
            format!("alias {front}{}", name.to_buf())
        }
    }
}

/// Reads a list with exceptions, and asks it.
pub(super) fn check_list(format: ListFormat, octets: &[u8], asked: &[(Asked<'_>, &str)], mistakes: &[&str]) {
    let set = set();
    let mut revoked = HashSet::new();
    if format == ListFormat::Adguard {
        super::adguard::revoked(octets, &mut revoked);
    }
    let mut compiler = Compiler::new(KEY, Some(&set));
    let found = compiler.read(&list(format, &[]), "x", octets.to_vec(), &revoked);
    assert_eq!(told(&found), mistakes);
    let list = compiler.list.compile(Arc::new(compiler.names.compile()), Vec::new(), Vec::new());
    for (asked, expected) in asked {
        let found = sought(asked.name, |sought| {
            let asking = Asking {
                sought,
                qtype: Rtype::from_str(asked.qtype).expect("a type"),
                client: asked.client.parse().expect("an address"),
                addresses: &[],
            };
            list.rule(&asking).map(|ruling| {
                let what =
                    if ruling.is_allowed { "allow".to_owned() } else { treatment_text(ruling.treatment) };
                format!("{what} {}", ruling.line)
            })
        });
        assert_eq!(found.as_deref().unwrap_or("-"), *expected, "{}", asked.name);
    }
}
