//! Zones and records from text, for the tests of this crate.

#![allow(dead_code, reason = "not every test program uses all of it")]

use dnssec::tree::Tree;
use wire::{NameBuf, Rtype};
use zone::master;

/// Returns a name.
pub(crate) fn name(text: &str) -> NameBuf {
    NameBuf::from_text(text).expect("a name")
}

/// Returns the data of a record.
pub(crate) fn rdata(rtype: Rtype, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    wire::rdata::parse_text(rtype, text, None, &mut out).expect("data");
    out
}

/// Reads a zone.
pub(crate) fn tree(apex: &str, text: &str) -> Tree {
    let apex = name(apex);
    let mut tree = Tree::new(apex.as_name());
    let options = master::Options::of_zone(apex.as_name());
    let outcome = master::read("zone", text.as_bytes(), &options, &mut master::NoIncludes, |entry| {
        tree.push(entry.owner, entry.rtype, entry.ttl.seconds(), entry.rdata);
    });
    assert!(outcome.mistakes.is_empty(), "{:?}", outcome.mistakes);
    tree
}

/// Returns all records as text, one on a line.
pub(crate) fn text_of(tree: &Tree) -> String {
    let mut text = String::new();
    tree.for_each_record(|(owner, rtype, ttl, rdata)| {
        let data = wire::rdata::display(rtype, rdata, 0..rdata.len());
        text += &format!("{owner} {ttl} IN {rtype} {data}\n");
    });
    text
}
