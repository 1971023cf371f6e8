//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Records written in the configuration, of any type: wildcards (RFC 4592), aliases followed within the set, and
//! negative answers with the SOA of the set if it has one.
//!
//! Compiled: each RRset stands ready to copy, and where an alias leads is known.

use wire::{Class, Folded, HashKey, Header, Name, NameBuf, Rcode, Rtype, Ttl};

use crate::finish::{Answer, put_record};
use crate::names::{NameTable, Sought};
use crate::ops::answer::local_soa;

/// Aliases followed for one question, so that a circle of them ends.
const ALIASES_MAX: usize = 16;
/// How long clients may believe that a name has no record of some type, where no SOA says it.
const NEGATIVE_TTL: Ttl = Ttl::new(60);
/// Octets of a record before its data, its owner being a pointer.
const HEAD_OCTETS: usize = 12;

/// Collects records; [`RecordsBuilder::compile`] makes them ready to answer.
#[derive(Default)]
pub struct RecordsBuilder {
    nodes: std::collections::BTreeMap<Vec<u8>, Written>,
}

struct Written {
    name: NameBuf,
    records: Vec<(Rtype, Ttl, Vec<u8>)>,
}

// Once per configuration.
impl RecordsBuilder {
    /// Returns a builder without records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a record of class IN; names in `rdata` are not compressed. One that is there already is not added again.
    pub fn add(&mut self, owner: Name<'_>, rtype: Rtype, ttl: Ttl, rdata: &[u8]) {
        let node = self.node(owner);
        if !node.records.iter().any(|(t, _, data)| *t == rtype && data == rdata) {
            node.records.push((rtype, ttl, rdata.into()));
        }
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn node(&mut self, owner: Name<'_>) -> &mut Written {
        let folded = owner.to_folded();
        self.nodes
            .entry(folded.as_bytes().into())
            .or_insert_with(|| Written { name: owner.to_buf(), records: std::vec![] })
    }

    /// Compiles the records. Names between the root and an owner exist too (RFC 4592 §2.2.2): they end wildcards.
    pub fn compile(mut self, key: HashKey) -> Records {
        let owners: Vec<NameBuf> = self.nodes.values().map(|node| node.name).collect();
        for owner in &owners {
            let mut above = owner.as_name().parent();
            while let Some(name) = above {
                self.node(name);
                above = name.parent();
            }
        }
        let written: Vec<Written> = self.nodes.into_values().collect();
        let list: Vec<(NameBuf, bool)> = written.iter().map(|node| (node.name, true)).collect();
        let names = NameTable::compile(key, &list);
        let exact = |name: Name<'_>| {
            let mut folded = Folded::root();
            let hash = key.fold(name, &mut folded);
            names.exact(&Sought::new(&folded, hash))
        };
        let (mut nodes, mut sets, mut bodies, mut soas) =
            (std::vec![], std::vec![], std::vec![], std::vec![]);
        for node in &written {
            let first_set = sets.len() as u32;
            let mut types: Vec<Rtype> = node.records.iter().map(|(rtype, _, _)| *rtype).collect();
            types.sort_unstable();
            types.dedup();
            for rtype in types {
                let at = bodies.len() as u32;
                let records = node.records.iter().filter(|(t, _, _)| *t == rtype);
                // RFC 2181 §5.2: one TTL for the whole RRset.
                let ttl = records.clone().map(|(_, ttl, _)| *ttl).min().unwrap_or(Ttl::ZERO);
                let count = records.clone().count() as u16;
                for (_, _, rdata) in records {
                    put_body(&mut bodies, rtype, ttl, rdata);
                }
                sets.push(Set { rtype, count, at, len: bodies.len() as u32 - at, next: Next::Outside });
                if rtype == Rtype::SOA
                    && let Some((_, _, rdata)) = node.records.iter().find(|(t, _, _)| *t == Rtype::SOA)
                {
                    let minimum = rdata.last_chunk::<4>().map_or(0, |field| u32::from_be_bytes(*field));
                    let at = bodies.len() as u32;
                    // RFC 2308 §5.
                    put_body(&mut bodies, Rtype::SOA, ttl.min(Ttl::new(minimum)), rdata);
                    let apex_octets = node.name.as_name().len() as u8;
                    soas.push(Soa { apex: node.name, apex_octets, at, len: bodies.len() as u32 - at });
                }
            }
            nodes.push(Node {
                first_set,
                set_count: sets.len() as u32 - first_set,
                wildcard: None,
                soa: None,
            });
        }
        for (node, written) in nodes.iter_mut().zip(&written) {
            let mut wildcard = NameBuf::root();
            // A name that leaves no room for a label has none below it.
            let fits = std::iter::once(&b"*"[..])
                .chain(written.name.as_name().labels())
                .all(|label| wildcard.push_label(label).is_ok());
            node.wildcard = if fits { exact(wildcard.as_name()).map(|index| index as u32) } else { None };
            let closest = soas
                .iter()
                .enumerate()
                .filter(|(_, soa)| written.name.as_name().is_at_or_below(soa.apex.as_name()));
            node.soa = closest.max_by_key(|(_, soa)| soa.apex_octets).map(|(index, _)| index as u32);
        }
        let mut compiled = Records {
            names,
            nodes: nodes.into_boxed_slice(),
            sets: sets.into_boxed_slice(),
            soas: soas.into_boxed_slice(),
            bodies: bodies.into_boxed_slice(),
        };
        let aliases: Vec<(usize, Next)> = (0..compiled.sets.len())
            .filter_map(|index| {
                let set = compiled.sets.get(index).filter(|set| set.rtype == Rtype::CNAME)?;
                let body = compiled.body(set.at, set.len)?;
                let (target, _) = Name::parse(body.get(HEAD_OCTETS..)?).ok()?;
                let mut folded = Folded::root();
                let hash = key.fold(target, &mut folded);
                Some((index, compiled.locate(&Sought::new(&folded, hash))))
            })
            .collect();
        for (index, next) in aliases {
            if let Some(set) = compiled.sets.get_mut(index) {
                set.next = next;
            }
        }
        compiled
    }
}

// Once per configuration.
fn put_body(bodies: &mut Vec<u8>, rtype: Rtype, ttl: Ttl, rdata: &[u8]) {
    bodies.extend_from_slice(&[0xc0, Header::LEN as u8]);
    bodies.extend_from_slice(&rtype.0.to_be_bytes());
    bodies.extend_from_slice(&Class::IN.0.to_be_bytes());
    bodies.extend_from_slice(&ttl.seconds().to_be_bytes());
    bodies.extend_from_slice(&(rdata.len() as u16).to_be_bytes());
    bodies.extend_from_slice(rdata);
}

/// What a name leads to.
#[derive(Clone, Copy)]
enum Next {
    /// The set has nothing to say about it.
    Outside,
    /// It is this node, or one that a wildcard stands for.
    Node(u32),
    /// It does not exist: the number of the SOA that says so.
    Nothing(u32),
}

/// What one name has.
struct Node {
    first_set: u32,
    set_count: u32,
    /// The node of the wildcard below it.
    wildcard: Option<u32>,
    /// The SOA of the zone that it lies in.
    soa: Option<u32>,
}

/// The records of one type at one name, ready to copy.
struct Set {
    rtype: Rtype,
    count: u16,
    at: u32,
    len: u32,
    /// Where an alias leads.
    next: Next,
}

/// A zone's SOA, with the TTL of negative answers.
struct Soa {
    apex: NameBuf,
    apex_octets: u8,
    at: u32,
    len: u32,
}

/// Compiled records.
pub struct Records {
    names: NameTable,
    nodes: Box<[Node]>,
    sets: Box<[Set]>,
    soas: Box<[Soa]>,
    bodies: Box<[u8]>,
}

/// An answer that is being written.
struct Pen<'m> {
    message: &'m mut [u8],
    body_at: usize,
    answer: Answer,
    /// The name that the next records belong to: where it stands in full, and its octets.
    owner_at: usize,
    owner_octets: usize,
}

impl Pen<'_> {
    /// Copies records whose owner is the last label-for-label octets of the current name.
    fn copy(&mut self, body: &[u8], owner_at: usize) -> Option<()> {
        let at = self.body_at + self.answer.octets;
        let room = self.message.get_mut(at..at + body.len())?;
        room.copy_from_slice(body);
        let pointer = (0xc000 | owner_at as u16).to_be_bytes();
        let mut rest = room;
        while let Some((owner, tail)) = rest.split_first_chunk_mut::<2>() {
            *owner = pointer;
            let &[_, _, _, _, _, _, _, _, l0, l1] = tail.first_chunk::<{ HEAD_OCTETS - 2 }>()?;
            let octets = HEAD_OCTETS - 2 + usize::from(u16::from_be_bytes([l0, l1]));
            rest = tail.get_mut(octets..)?;
        }
        self.answer.octets += body.len();
        Some(())
    }

    fn count(&mut self, section: usize, count: u16) {
        if let Some(slot) = self.answer.counts.get_mut(section) {
            *slot += count;
        }
    }
}

impl Records {
    /// Answers a question of class IN; `None` when the set has nothing to say about the name.
    pub(crate) fn answer(
        &self,
        sought: &Sought<'_>,
        qtype: Rtype,
        message: &mut [u8],
        body_at: usize,
    ) -> Option<Answer> {
        let mut pen = Pen {
            message,
            body_at,
            answer: Answer { authoritative: true, ..Answer::empty(Rcode::NOERROR, None) },
            owner_at: Header::LEN,
            owner_octets: sought.name().len(),
        };
        let mut next = self.locate(sought);
        if let Next::Outside = next {
            return None;
        }
        for _ in 0..ALIASES_MAX {
            let written = match next {
                // An alias that leads out of the set: the client asks for its target if it wants to.
                Next::Outside => break,
                Next::Nothing(soa) => {
                    pen.answer.rcode = Rcode::NXDOMAIN;
                    next = Next::Outside;
                    self.negative(&mut pen, Some(soa))
                }
                Next::Node(index) => self.take(&mut pen, index, qtype, &mut next),
            };
            if written.is_none() {
                pen.answer.is_too_large = true;
                break;
            }
        }
        Some(pen.answer)
    }

    /// Returns how many names have records.
    pub fn len(&self) -> usize {
        self.nodes.iter().filter(|node| node.set_count > 0).count()
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Finds what a name leads to.
    fn locate(&self, sought: &Sought<'_>) -> Next {
        let Some(found) = self.names.covering(sought, Some) else { return Next::Outside };
        let Some(node) = self.nodes.get(found.index) else { return Next::Outside };
        let is_itself = found.octets == sought.name().len();
        let there = if is_itself { Some(found.index as u32) } else { node.wildcard };
        let has_records = |index: u32| self.nodes.get(index as usize).is_some_and(|node| node.set_count > 0);
        match (there, node.soa) {
            (Some(index), _) if has_records(index) => Next::Node(index),
            // An empty non-terminal of a zone exists.
            (Some(index), Some(_)) => Next::Node(index),
            (None, Some(soa)) => Next::Nothing(soa),
            (_, None) => Next::Outside,
        }
    }

    /// Writes what a node has for the type; `next` becomes where an alias leads.
    fn take(&self, pen: &mut Pen<'_>, index: u32, qtype: Rtype, next: &mut Next) -> Option<()> {
        let node = self.nodes.get(index as usize)?;
        let first = node.first_set as usize;
        let sets = self.sets.get(first..first + node.set_count as usize)?;
        *next = Next::Outside;
        let wanted = sets.iter().find(|set| set.rtype == qtype);
        let Some(set) = wanted.or_else(|| sets.iter().find(|set| set.rtype == Rtype::CNAME)) else {
            return self.negative(pen, node.soa);
        };
        let at = pen.body_at + pen.answer.octets;
        pen.copy(self.body(set.at, set.len)?, pen.owner_at)?;
        pen.count(0, set.count);
        if set.rtype == Rtype::CNAME && qtype != Rtype::CNAME {
            (pen.owner_at, pen.owner_octets) = (at + HEAD_OCTETS, set.len as usize - HEAD_OCTETS);
            // A pointer holds 14 bits.
            if pen.owner_at < 0x4000 {
                *next = set.next;
            }
        }
        Some(())
    }

    /// Writes an SOA: the zone's, or one of our own at the name itself.
    fn negative(&self, pen: &mut Pen<'_>, soa: Option<u32>) -> Option<()> {
        pen.count(1, 1);
        if let Some(soa) = soa.and_then(|index| self.soas.get(index as usize)) {
            let apex_at = pen.owner_at + pen.owner_octets.checked_sub(usize::from(soa.apex_octets))?;
            return pen.copy(self.body(soa.at, soa.len)?, apex_at);
        }
        let at = pen.body_at + pen.answer.octets;
        let data = local_soa(pen.owner_at, NEGATIVE_TTL);
        let octets = put_record(pen.message, at, pen.owner_at, Rtype::SOA, NEGATIVE_TTL, &data)?;
        pen.answer.octets += octets;
        Some(())
    }

    fn body(&self, at: u32, len: u32) -> Option<&[u8]> {
        self.bodies.get(at as usize..)?.get(..len as usize)
    }
}
