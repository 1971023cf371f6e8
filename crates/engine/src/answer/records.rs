//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Records written in the configuration, of any type: wildcards (RFC 4592), aliases followed within
//! the set, and negative answers with the SOA of the set if it has one.
//!
//! Compiled: each RRset stands ready to copy, and where an alias leads is known.

mod build;

use wire::{Header, NameBuf, Pointer, Rcode, Rtype, Ttl};

use super::Answer;
use super::put::{local_soa, put_record};
use crate::query::names::{NameTable, Sought};
pub use build::RecordsBuilder;
use build::SHORTENED_OCTETS_MAX;
pub(crate) use build::shorten;

/// Aliases followed for one question, so that a circle of them ends.
const ALIASES_MAX: usize = 16;
/// Where records of a chain of aliases begin at most, so that pointers into and behind them fit (14
/// bits).
const CHAIN_AT_MAX: usize = 0x4000 - SHORTENED_OCTETS_MAX;
/// How long clients may believe that a name has no record of some type, where no SOA says it.
const NEGATIVE_TTL: Ttl = Ttl::new(60);
/// Octets of a record before its data, its owner being a pointer.
const HEAD_OCTETS: usize = 12;

/// The first name in the data of an RRset: its octets, those that are there in front of a pointer,
/// and where that leads to.
#[derive(Clone, Copy, Default)]
struct Target {
    octets: u8,
    own: u8,
    /// Octets of the owner's end that the name has in common; zero if the pointer leads elsewhere
    /// or is none.
    common: u8,
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
    /// Octets of its name; of a wildcard, of the name above it.
    octets: u8,
}

/// The records of one type at one name, ready to copy.
struct Set {
    rtype: Rtype,
    count: u16,
    body: Body,
    /// Where an alias leads.
    next: Next,
    /// The first name in its data.
    target: Target,
}

/// A zone's SOA, with the TTL of negative answers.
struct Soa {
    apex: NameBuf,
    apex_octets: u8,
    body: Body,
}

/// Where the octets of an RRset are, and the pointers in them that depend on where it is put.
#[derive(Clone, Copy)]
struct Body {
    at: u32,
    len: u32,
    first_pointer: u32,
    pointer_count: u32,
}

/// Compiled records.
pub struct Records {
    names: NameTable,
    nodes: Box<[Node]>,
    sets: Box<[Set]>,
    soas: Box<[Soa]>,
    bodies: Box<[u8]>,
    /// Where pointers are in them that depend on where they are put.
    pointers: Box<[Pointer]>,
    /// Whether names outside its zones get no SOA with answers without data.
    without_soa: bool,
}

/// Where a name stands in a message: its begin, and elsewhere its end.
#[derive(Clone, Copy)]
struct Standing {
    at: usize,
    octets: usize,
    /// Octets of the end, and where that is.
    end_octets: usize,
    end_at: usize,
}

impl Standing {
    /// Returns where the last `octets` of the name stand.
    const fn end(&self, octets: usize) -> Option<usize> {
        match (self.end_octets.checked_sub(octets), self.octets.checked_sub(octets)) {
            (Some(skipped), _) => Some(self.end_at + skipped),
            (None, Some(skipped)) => Some(self.at + skipped),
            (None, None) => None,
        }
    }
}

/// An answer that is being written.
struct Pen<'m> {
    message: &'m mut [u8],
    body_at: usize,
    answer: Answer,
    /// The name that the next records belong to.
    owner: Standing,
}

impl Pen<'_> {
    /// Copies records whose owner, `owner_octets` long when they were compiled, ends as the current
    /// name does and is as long as its last `octets`.
    fn copy(&mut self, records: &Records, body: &Body, octets: usize, owner_octets: usize) -> Option<()> {
        let at = self.body_at + self.answer.octets;
        let owner_at = self.owner.end(octets)?;
        let body_octets = records.bodies.get(body.at as usize..)?.get(..body.len as usize)?;
        let room = self.message.get_mut(at..at + body_octets.len())?;
        room.copy_from_slice(body_octets);
        if self.answer.octets == 0 && octets == owner_octets && octets == self.owner.octets {
            // Where it was compiled for.
            self.answer.octets = body_octets.len();
            return Some(());
        }
        let pointers = records.pointers.get(body.first_pointer as usize..)?;
        for pointer in pointers.get(..body.pointer_count as usize)? {
            let to = match pointer.is_own {
                true => at + usize::from(pointer.to),
                false => self.owner.end(owner_octets.checked_sub(usize::from(pointer.to))?)?,
            };
            let place = room.get_mut(usize::from(pointer.at)..)?.first_chunk_mut()?;
            *place = (0xc000 | to as u16).to_be_bytes();
        }
        let pointer = (0xc000 | owner_at as u16).to_be_bytes();
        let mut rest = room;
        while let Some((owner, tail)) = rest.split_first_chunk_mut::<2>() {
            *owner = pointer;
            let &[_, _, _, _, _, _, _, _, l0, l1] = tail.first_chunk::<{ HEAD_OCTETS - 2 }>()?;
            let octets = HEAD_OCTETS - 2 + usize::from(u16::from_be_bytes([l0, l1]));
            rest = tail.get_mut(octets..)?;
        }
        self.answer.octets += body_octets.len();
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
            owner: Standing { at: Header::LEN, octets: sought.name().len(), end_octets: 0, end_at: 0 },
        };
        let mut next = self.locate(sought);
        if let Next::Outside = next {
            return None;
        }
        for _ in 0..ALIASES_MAX {
            let written = match next {
                // An alias that leads out of the set: the client asks for its target if it wants
                // to.
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
        if at > CHAIN_AT_MAX {
            // The client asks for the rest of a long chain if it wants to.
            return Some(());
        }
        pen.copy(self, &set.body, pen.owner.octets, node.octets.into())?;
        pen.count(0, set.count);
        if set.rtype == Rtype::CNAME && qtype != Rtype::CNAME {
            let Target { octets, own, common } = set.target;
            let name_at = at + HEAD_OCTETS;
            // A name that is a pointer and nothing else stands where that leads to.
            pen.owner = match (own, common) {
                (_, 0) => Standing { at: name_at, octets: octets.into(), end_octets: 0, end_at: 0 },
                (_, common) => {
                    let end_at = pen.owner.end(common.into())?;
                    Standing { at: name_at, octets: octets.into(), end_octets: common.into(), end_at }
                }
            };
            // A pointer holds 14 bits.
            if name_at < 0x4000 {
                *next = set.next;
            }
        }
        Some(())
    }

    /// Writes an SOA: the zone's, or one of our own at the name itself.
    fn negative(&self, pen: &mut Pen<'_>, soa: Option<u32>) -> Option<()> {
        if pen.body_at + pen.answer.octets > CHAIN_AT_MAX {
            return Some(());
        }
        let soa = soa.and_then(|index| self.soas.get(index as usize));
        if self.without_soa && soa.is_none() {
            return Some(());
        }
        pen.count(1, 1);
        if let Some(soa) = soa {
            let octets = usize::from(soa.apex_octets);
            return pen.copy(self, &soa.body, octets, octets);
        }
        let at = pen.body_at + pen.answer.octets;
        let owner_at = pen.owner.end(pen.owner.octets)?;
        let data = local_soa(owner_at, NEGATIVE_TTL);
        let octets = put_record(pen.message, at, owner_at, Rtype::SOA, NEGATIVE_TTL, &data)?;
        pen.answer.octets += octets;
        Some(())
    }
}
