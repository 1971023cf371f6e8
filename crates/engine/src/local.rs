//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Names we know by ourselves: the hosts file, local names, special-use names.
//!
//! Answers are compiled: the octets after the question are ready to copy.

use std::net::IpAddr;

use wire::{Class, HashKey, Name, NameBuf, Rcode, Rtype, Ttl};

use crate::names::{NameTable, Sought};
use crate::records::shorten;

/// Collects local names; [`LocalBuilder::compile`] makes them ready to answer.
#[derive(Default)]
pub struct LocalBuilder {
    nodes: std::collections::BTreeMap<Vec<u8>, Node>,
}

#[derive(Default)]
struct Node {
    name: Option<NameBuf>,
    /// What the name itself has; answered for names below it too, if `below` says so.
    records: Vec<(Rtype, Ttl, Vec<u8>)>,
    below: Below,
    negative_ttl: Option<Ttl>,
}

/// What names below one that we know get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Below {
    /// Nothing: they are not ours.
    #[default]
    Unknown,
    /// NXDOMAIN: we hold everything there is.
    Nothing,
    /// The records of this name, under their own name.
    Same,
}

// Once per configuration.
impl LocalBuilder {
    /// Returns a builder without names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says that `name` has `address`.
    pub fn address(&mut self, name: Name<'_>, address: IpAddr, ttl: Ttl) {
        match address {
            IpAddr::V4(v4) => self.record(name, Rtype::A, ttl, &v4.octets()),
            IpAddr::V6(v6) => self.record(name, Rtype::AAAA, ttl, &v6.octets()),
        }
    }

    /// Says that the reverse name of `address` points to `name`; the first name wins, as in a hosts file.
    pub fn pointer(&mut self, address: IpAddr, name: Name<'_>, ttl: Ttl) {
        let reverse = reverse_name(address);
        let has_one = self
            .nodes
            .get(reverse.as_name().to_folded().as_bytes())
            .is_some_and(|node| node.records.iter().any(|(rtype, _, _)| *rtype == Rtype::PTR));
        if !has_one {
            self.record(reverse.as_name(), Rtype::PTR, ttl, name.as_bytes());
        }
    }

    /// Adds a record; names in `rdata` are not compressed. A record that is there already is not added again.
    pub fn record(&mut self, name: Name<'_>, rtype: Rtype, ttl: Ttl, rdata: &[u8]) {
        let node = self.node(name);
        if !node.records.iter().any(|(t, _, data)| *t == rtype && data == rdata) {
            node.records.push((rtype, ttl, rdata.into()));
        }
    }

    /// Says what names below `name` get, and how long negative answers there may be kept.
    pub fn below(&mut self, name: Name<'_>, below: Below, negative_ttl: Ttl) {
        let node = self.node(name);
        node.below = below;
        node.negative_ttl = Some(negative_ttl);
    }

    /// Says that `name` exists, whether or not it has records.
    pub fn exists(&mut self, name: Name<'_>) {
        self.node(name);
    }

    /// Returns whether `name` has records or a zone here.
    pub fn knows(&self, name: Name<'_>) -> bool {
        self.nodes.contains_key(name.to_folded().as_bytes())
    }

    /// Returns whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn node(&mut self, name: Name<'_>) -> &mut Node {
        let node = self.nodes.entry(name.to_folded().as_bytes().to_vec()).or_default();
        node.name.get_or_insert_with(|| name.to_buf());
        node
    }

    /// Compiles the names. Names between a zone and a name below it exist too (RFC 8020): they get NODATA.
    pub fn compile(mut self, key: HashKey, default_negative_ttl: Ttl) -> LocalData {
        self.add_empty_non_terminals();
        let (mut names, mut answers, mut sets, mut bodies) =
            (std::vec![], std::vec![], std::vec![], std::vec![]);
        for node in self.nodes.into_values() {
            let Some(name) = node.name else { continue };
            let first_set = sets.len() as u32;
            let mut types: Vec<Rtype> = std::vec![];
            for (rtype, _, _) in &node.records {
                if !types.contains(rtype) {
                    types.push(*rtype);
                }
            }
            for rtype in types {
                let at = bodies.len() as u32;
                let mut count = 0;
                for (_, ttl, rdata) in node.records.iter().filter(|(t, _, _)| *t == rtype) {
                    count += 1;
                    // The owner is always the name asked for, which stands right after the header.
                    bodies.extend_from_slice(&[0xc0, 12]);
                    bodies.extend_from_slice(&rtype.0.to_be_bytes());
                    bodies.extend_from_slice(&Class::IN.0.to_be_bytes());
                    bodies.extend_from_slice(&ttl.seconds().to_be_bytes());
                    bodies.extend_from_slice(&(rdata.len() as u16).to_be_bytes());
                    bodies.extend_from_slice(rdata);
                }
                // Names below this one make longer questions: there, pointers would lead elsewhere.
                if node.below != Below::Same {
                    shorten(&mut bodies, at as usize, name.as_name(), rtype);
                }
                sets.push(Set { rtype, count, at, len: bodies.len() as u32 - at });
            }
            answers.push(Answers {
                first_set,
                set_count: sets.len() as u32 - first_set,
                below: node.below,
                negative_ttl: node.negative_ttl.unwrap_or(default_negative_ttl),
            });
            names.push((name, node.below != Below::Unknown));
        }
        LocalData {
            names: NameTable::compile(key, &names),
            answers: answers.into_boxed_slice(),
            sets: sets.into_boxed_slice(),
            bodies: bodies.into_boxed_slice(),
        }
    }

    fn add_empty_non_terminals(&mut self) {
        let holders: std::collections::HashSet<Vec<u8>> = self
            .nodes
            .iter()
            .filter(|(_, node)| node.below == Below::Nothing)
            .map(|(name, _)| name.clone())
            .collect();
        let names: Vec<NameBuf> = self.nodes.values().filter_map(|node| node.name).collect();
        for name in names {
            let is_held = |candidate: Name<'_>| {
                let mut up = candidate.parent();
                while let Some(above) = up {
                    if holders.contains(above.to_folded().as_bytes()) {
                        return true;
                    }
                    up = above.parent();
                }
                false
            };
            let mut between = name.as_name().parent();
            while let Some(above) = between {
                if !is_held(above) {
                    break;
                }
                self.node(above);
                between = above.parent();
            }
        }
    }
}

/// Returns the name under in-addr.arpa or ip6.arpa (RFC 1035 §3.5, RFC 3596 §2.5).
// Once per configuration.
pub fn reverse_name(address: IpAddr) -> NameBuf {
    let mut name = NameBuf::root();
    let mut push = |label: &[u8]| {
        // At most 34 labels of at most three octets: it always fits.
        let _ = name.push_label(label);
    };
    match address {
        IpAddr::V4(v4) => {
            for octet in v4.octets().iter().rev() {
                push(octet.to_string().as_bytes());
            }
            push(b"in-addr");
        }
        IpAddr::V6(v6) => {
            const DIGITS: [u8; 16] = *b"0123456789abcdef";
            for octet in v6.octets().iter().rev() {
                for nibble in [octet & 15, octet >> 4] {
                    push(DIGITS.get(usize::from(nibble)..=usize::from(nibble)).unwrap_or(b"0"));
                }
            }
            push(b"ip6");
        }
    }
    push(b"arpa");
    name
}

/// The records of one type at one name, ready to copy.
struct Set {
    rtype: Rtype,
    count: u16,
    at: u32,
    len: u32,
}

/// What one name gets.
struct Answers {
    first_set: u32,
    set_count: u32,
    below: Below,
    negative_ttl: Ttl,
}

/// Compiled local names.
pub struct LocalData {
    names: NameTable,
    answers: Box<[Answers]>,
    sets: Box<[Set]>,
    bodies: Box<[u8]>,
}

/// An answer from local names.
#[derive(Clone, Copy)]
pub enum LocalAnswer<'a> {
    /// Records to copy after the question.
    Records {
        /// How many.
        count: u16,
        /// Their octets.
        body: &'a [u8],
    },
    /// No records: the name exists (NOERROR) or not (NXDOMAIN).
    Negative {
        /// NOERROR or NXDOMAIN.
        rcode: Rcode,
        /// Octets of the name that the SOA belongs to, a suffix of the name asked for.
        apex_octets: usize,
        /// How long the answer may be kept.
        ttl: Ttl,
    },
}

impl LocalData {
    /// Answers a question of class IN; `None` when the name is not ours.
    #[inline(always)]
    pub fn answer(&self, sought: &Sought<'_>, qtype: Rtype) -> Option<LocalAnswer<'_>> {
        if let Some(index) = self.names.exact(sought) {
            let answers = self.answers.get(index)?;
            if let Some(records) = self.records(answers, qtype) {
                return Some(records);
            }
            return Some(self.negative(sought, answers, Rcode::NOERROR));
        }
        self.names.covering(sought, |found| {
            let answers = self.answers.get(found.index)?;
            match answers.below {
                Below::Unknown => None,
                Below::Same => {
                    self.records(answers, qtype).or(Some(negative(found.octets, answers, Rcode::NOERROR)))
                }
                Below::Nothing => Some(negative(found.octets, answers, Rcode::NXDOMAIN)),
            }
        })
    }

    /// Returns how many names there are.
    pub const fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns whether there are no names.
    pub const fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    fn records(&self, answers: &Answers, qtype: Rtype) -> Option<LocalAnswer<'_>> {
        let first = answers.first_set as usize;
        let sets = self.sets.get(first..first + answers.set_count as usize)?;
        let set = sets.iter().find(|set| set.rtype == qtype)?;
        let body = self.bodies.get(set.at as usize..)?.get(..set.len as usize)?;
        Some(LocalAnswer::Records { count: set.count, body })
    }

    /// A negative answer for a name that exists: its SOA is that of the zone it lies in, or its own.
    fn negative(&self, sought: &Sought<'_>, answers: &Answers, rcode: Rcode) -> LocalAnswer<'_> {
        let apex_octets = self
            .names
            .covering(sought, |found| {
                let holds = self.answers.get(found.index)?.below == Below::Nothing;
                holds.then_some(found.octets)
            })
            .unwrap_or(sought.name().len());
        negative(apex_octets, answers, rcode)
    }
}

const fn negative<'a>(apex_octets: usize, answers: &Answers, rcode: Rcode) -> LocalAnswer<'a> {
    LocalAnswer::Negative { rcode, apex_octets, ttl: answers.negative_ttl }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::name;

    const KEY: HashKey = HashKey::new([3, 4]);
    const TTL: Ttl = Ttl::new(60);

    fn sample() -> LocalData {
        let mut local = LocalBuilder::new();
        let address = "192.0.2.1".parse().expect("an address");
        local.address(name("Nas.home.arpa").as_name(), address, TTL);
        local.address(name("a.b.home.arpa").as_name(), address, TTL);
        local.pointer(address, name("nas.home.arpa").as_name(), TTL);
        local.below(name("home.arpa").as_name(), Below::Nothing, TTL);
        local.address(name("localhost").as_name(), "127.0.0.1".parse().expect("an address"), TTL);
        local.below(name("localhost").as_name(), Below::Same, TTL);
        local.address(name("printer.example.org").as_name(), address, TTL);
        local.compile(KEY, TTL)
    }

    fn check(text: &str, qtype: Rtype, expected: Option<(Rcode, u16, usize)>) {
        let local = sample();
        let qname = name(text);
        let mut folded = wire::Folded::root();
        let hash = KEY.fold(qname.as_name(), &mut folded);
        let got = local.answer(&Sought::new(&folded, hash), qtype).map(|answer| match answer {
            LocalAnswer::Records { count, body } => (Rcode::NOERROR, count, body.len()),
            LocalAnswer::Negative { rcode, apex_octets, .. } => (rcode, 0, apex_octets),
        });
        assert_eq!(got, expected, "{text} {qtype:?}");
    }

    #[test]
    fn names_answer_and_their_surroundings_do_not_leak() {
        check("nas.HOME.arpa", Rtype::A, Some((Rcode::NOERROR, 1, 16)));
        check("nas.home.arpa", Rtype::AAAA, Some((Rcode::NOERROR, 0, 11)));
        check("b.home.arpa", Rtype::A, Some((Rcode::NOERROR, 0, 11))); // An empty non-terminal.
        check("c.home.arpa", Rtype::A, Some((Rcode::NXDOMAIN, 0, 11)));
        check("x.nas.home.arpa", Rtype::A, Some((Rcode::NXDOMAIN, 0, 11)));
        check("home.arpa", Rtype::A, Some((Rcode::NOERROR, 0, 11)));
        check("arpa", Rtype::A, None);
        check("localhost", Rtype::A, Some((Rcode::NOERROR, 1, 16)));
        check("x.y.localhost", Rtype::A, Some((Rcode::NOERROR, 1, 16)));
        check("localhost", Rtype::MX, Some((Rcode::NOERROR, 0, 11)));
        check("printer.example.org", Rtype::A, Some((Rcode::NOERROR, 1, 16)));
        check("printer.example.org", Rtype::HTTPS, Some((Rcode::NOERROR, 0, 21)));
        check("www.printer.example.org", Rtype::A, None);
        check("example.org", Rtype::A, None);
        // The name ends as the question does.
        check("1.2.0.192.in-addr.arpa", Rtype::PTR, Some((Rcode::NOERROR, 1, 23)));
    }

    #[test]
    fn reverse_names_are_those_of_the_rfcs() {
        assert!(reverse_name("192.0.2.1".parse().expect("an address")) == name("1.2.0.192.in-addr.arpa"));
        let v6 = reverse_name("2001:db8::567:89ab".parse().expect("an address"));
        assert!(
            v6 == name("b.a.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"),
            "RFC 3596 §2.5 in our address"
        );
    }
}
