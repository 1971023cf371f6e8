//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Names we know by ourselves: the hosts file, local names, special-use names.
//!
//! Answers are compiled: the octets after the question are ready to copy.

mod build;

use wire::{Rcode, Rtype, Ttl};

use crate::query::names::{NameTable, Sought};
pub use build::{LocalBuilder, reverse_name};

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

    /// A negative answer for a name that exists: its SOA is that of the zone it lies in, or its
    /// own.
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
    use wire::HashKey;

    use super::*;
    use crate::query::testing::name;

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
