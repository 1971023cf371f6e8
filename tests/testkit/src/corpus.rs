//! Messages of every kind that a server may meet, for tests that send all of them through
//! something.

use crate::Ask;
use wire::{Class, Flags, Opcode, OptionCode, Rtype};

/// One message and what is special about it.
pub struct Case {
    /// What is special about it.
    pub what: &'static str,
    /// The message.
    pub bytes: Vec<u8>,
}

/// A name that tests make the server know from its cache: `A`, `AAAA` and a long `TXT`.
pub const CACHED: &str = "cached.example.org";

/// A name that tests make the server know from its configuration: `A` only.
pub const LOCAL: &str = "nas.home.arpa";

/// Returns the corpus: everything here is answered from memory, or not at all.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |what, bytes| cases.push(Case { what, bytes });
    let cached = |qtype| Ask::new(CACHED, qtype);

    add("cached address", cached(Rtype::A).bytes());
    add("cached address, other case", Ask::new("CacHED.exAMPLE.org", Rtype::A).id(1).bytes());
    add("cached IPv6 address", cached(Rtype::AAAA).bytes());
    add("cached long text", cached(Rtype::TXT).bytes());
    add("cached long text, EDNS", cached(Rtype::TXT).edns(1232).bytes());
    add("cached long text, large EDNS", cached(Rtype::TXT).edns(65535).bytes());
    add("cached, EDNS", cached(Rtype::A).edns(1232).bytes());
    add("cached, tiny EDNS", cached(Rtype::A).edns(0).bytes());
    add("cached, unknown option", cached(Rtype::A).option(OptionCode(65001), b"hello").bytes());
    add("cached, padding", cached(Rtype::A).option(OptionCode::PADDING, &[0; 64]).bytes());
    add("cached, no recursion desired", cached(Rtype::A).flags(Flags(0)).bytes());
    add("cached, AD set", cached(Rtype::A).flags(Flags::RD.with(Flags::AD)).bytes());
    add("cached, reserved bit", cached(Rtype::A).flags(Flags(0x0140)).bytes());
    add("client cookie", cached(Rtype::A).option(OptionCode::COOKIE, &[7; 8]).bytes());
    add("wrong server cookie", cached(Rtype::A).option(OptionCode::COOKIE, &[7; 24]).bytes());
    add("cookie of no legal length", cached(Rtype::A).option(OptionCode::COOKIE, &[7; 5]).bytes());

    add("local name", Ask::new(LOCAL, Rtype::A).bytes());
    add("local name, EDNS", Ask::new(LOCAL, Rtype::A).edns(1232).dnssec().bytes());
    add("local name, other type", Ask::new(LOCAL, Rtype::MX).bytes());
    add("localhost", Ask::new("localhost", Rtype::A).bytes());
    add("localhost, IPv6", Ask::new("localhost", Rtype::AAAA).bytes());
    add("below localhost", Ask::new("www.localhost", Rtype::A).bytes());
    add("invalid", Ask::new("nothing.invalid", Rtype::A).bytes());
    add("onion", Ask::new("example.onion", Rtype::A).bytes());
    add("test", Ask::new("example.test", Rtype::AAAA).bytes());
    add("private reverse zone", Ask::new("1.0.0.127.in-addr.arpa", Rtype::PTR).bytes());
    add("empty reverse zone", Ask::new("5.2.0.192.in-addr.arpa", Rtype::PTR).bytes());
    add("ipv4only", Ask::new("ipv4only.arpa", Rtype::A).bytes());
    add("resolver.arpa", Ask::new("_dns.resolver.arpa", Rtype(64)).bytes());

    add("ANY", cached(Rtype::ANY).bytes());
    add("zone transfer", Ask::new("example.org", Rtype::AXFR).bytes());
    add("incremental zone transfer", Ask::new("example.org", Rtype::IXFR).bytes());
    add("OPT as a type", cached(Rtype::OPT).bytes());
    add("class ANY", cached(Rtype::A).class(Class::ANY).bytes());
    add("unknown class", cached(Rtype::A).class(Class(250)).bytes());
    for name in ["version.bind", "hostname.bind", "id.server", "version.server", "other.bind"] {
        add("CHAOS", Ask::new(name, Rtype::TXT).class(Class::CH).bytes());
    }
    add("EDNS version 1", cached(Rtype::A).edns_version(1).bytes());
    for opcode in [Opcode::IQUERY, Opcode::STATUS, Opcode::NOTIFY, Opcode::UPDATE, Opcode::DSO, Opcode(15)] {
        add("another operation", cached(Rtype::A).opcode(opcode).bytes());
    }
    malformed(&mut add);
    cases
}

fn malformed(add: &mut impl FnMut(&'static str, Vec<u8>)) {
    let good = Ask::new(CACHED, Rtype::A).bytes();
    let with_edns = Ask::new(CACHED, Rtype::A).edns(1232).bytes();
    let changed = |at: usize, to: u8| {
        let mut bytes = good.clone();
        bytes[at] = to;
        bytes
    };
    add("a reply", changed(2, 0x81));
    add("no question", changed(5, 0));
    add("two questions", changed(5, 2));
    add("an answer that is not there", changed(7, 1));
    add("label of 64 octets", changed(12, 64));
    add("pointer in the question to itself", [&good[..12], &[0xc0, 12, 0, 1, 0, 1]].concat());
    add("pointer past the end", [&good[..12], &[0xff, 0xff, 0, 1, 0, 1]].concat());
    add("name that overruns", good[..good.len() - 8].to_vec());
    add("question cut short", good[..good.len() - 1].to_vec());
    add("header only", good[..12].to_vec());
    add("less than a header", good[..11].to_vec());
    add("trailing octet", [&good[..], &[0]].concat());
    add("long name", {
        let mut bytes = good[..12].to_vec();
        for _ in 0..5 {
            bytes.push(60);
            bytes.extend([b'a'; 60]);
        }
        bytes.extend([0, 0, 1, 0, 1]);
        bytes
    });
    let opt = &with_edns[good.len()..];
    let mut two = [&with_edns[..], opt].concat();
    two[11] = 2;
    add("two OPT records", two);
    let mut overrun = with_edns.clone();
    let last = overrun.len() - 1;
    overrun[last] = 9;
    add("OPT that overruns", overrun);
    let mut option = Ask::new(CACHED, Rtype::A).option(OptionCode(65001), b"hello").bytes();
    let length_at = option.len() - 6;
    option[length_at] = 200;
    add("option that overruns", option);
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Malformed, Query};

    #[test]
    fn the_corpus_has_what_it_says() {
        let outcome = |what: &str| {
            let cases = cases();
            let case = cases.iter().find(|case| case.what == what);
            Query::parse(&case.unwrap_or_else(|| panic!("no case {what:?}")).bytes).err()
        };
        assert_eq!(outcome("cached address"), None);
        assert_eq!(outcome("client cookie"), None);
        assert_eq!(outcome("a reply"), Some(Malformed::Response));
        assert_eq!(outcome("two questions"), Some(Malformed::Question));
        assert_eq!(outcome("two OPT records"), Some(Malformed::Edns));
        assert_eq!(outcome("option that overruns"), Some(Malformed::Edns));
        assert_eq!(outcome("OPT that overruns"), Some(Malformed::Record));
        assert_eq!(outcome("trailing octet"), Some(Malformed::Trailing));
        assert_eq!(outcome("long name"), Some(Malformed::Name));
        assert_eq!(outcome("less than a header"), Some(Malformed::Header));
    }
}
