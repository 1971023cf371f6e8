//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Records written in the configuration, of any type: wildcards (RFC 4592), aliases followed within the set, and
//! negative answers with the SOA of the set if it has one.
//!
//! Compiled: each RRset stands ready to copy, and where an alias leads is known.

use wire::{Class, Cut, Folded, HashKey, Header, Name, NameBuf, Pointer, Rcode, Rtype, Ttl};

use crate::finish::{Answer, put_record};
use crate::names::{NameTable, Sought};
use crate::ops::answer::local_soa;

/// Aliases followed for one question, so that a circle of them ends.
const ALIASES_MAX: usize = 16;
/// Where records of a chain of aliases begin at most, so that pointers into and behind them fit (14 bits).
const CHAIN_AT_MAX: usize = 0x4000 - SHORTENED_OCTETS_MAX;
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
        let (mut nodes, mut sets, mut bodies, mut soas, mut pointers) =
            (std::vec![], std::vec![], std::vec![], std::vec![], std::vec![]);
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
                let cut = shorten(&mut bodies, at as usize, in_question(node.name.as_name()), rtype);
                let first_pointer = pointers.len() as u32;
                pointers.extend(cut.pointers);
                sets.push(Set {
                    rtype,
                    count,
                    at,
                    len: bodies.len() as u32 - at,
                    next: Next::Outside,
                    first_pointer,
                    pointer_count: pointers.len() as u32 - first_pointer,
                    target: cut.target,
                });
                if rtype == Rtype::SOA
                    && let Some((_, _, rdata)) = node.records.iter().find(|(t, _, _)| *t == Rtype::SOA)
                {
                    let minimum = rdata.last_chunk::<4>().map_or(0, |field| u32::from_be_bytes(*field));
                    let at = bodies.len() as u32;
                    // RFC 2308 §5.
                    put_body(&mut bodies, Rtype::SOA, ttl.min(Ttl::new(minimum)), rdata);
                    let apex = node.name.as_name();
                    let cut = shorten(&mut bodies, at as usize, apex, Rtype::SOA);
                    let first_pointer = pointers.len() as u32;
                    pointers.extend(cut.pointers);
                    soas.push(Soa {
                        apex: node.name,
                        apex_octets: apex.len() as u8,
                        at,
                        len: bodies.len() as u32 - at,
                        first_pointer,
                        pointer_count: pointers.len() as u32 - first_pointer,
                    });
                }
            }
            nodes.push(Node {
                first_set,
                set_count: sets.len() as u32 - first_set,
                wildcard: None,
                soa: None,
                octets: in_question(node.name.as_name()).len() as u8,
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
            pointers: pointers.into_boxed_slice(),
        };
        let mut aliases: Vec<(usize, Next)> = std::vec![];
        for (node, written) in compiled.nodes.iter().zip(&written) {
            let first = node.first_set as usize;
            let sets =
                (first..).zip(compiled.sets.get(first..first + node.set_count as usize).unwrap_or(&[]));
            let alias = sets.into_iter().find(|(_, set)| set.rtype == Rtype::CNAME);
            let data = written.records.iter().find(|(rtype, _, _)| *rtype == Rtype::CNAME);
            let target = data.and_then(|(_, _, rdata)| Name::parse(rdata).ok());
            if let (Some((index, _)), Some((target, _))) = (alias, target) {
                let mut folded = Folded::root();
                let hash = key.fold(target, &mut folded);
                aliases.push((index, compiled.locate(&Sought::new(&folded, hash))));
            }
        }
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

/// Octets of an RRset up to which names in its data are compressed: pointers reach so far behind any question.
const SHORTENED_OCTETS_MAX: usize = 8192;

/// The first name in the data of an RRset: its octets, those that are there in front of a pointer, and where that leads to.
#[derive(Clone, Copy, Default)]
struct Target {
    octets: u8,
    own: u8,
    /// Octets of the owner's end that the name has in common; zero if the pointer leads elsewhere or is none.
    common: u8,
}

/// What became of an RRset whose names were compressed.
#[derive(Default)]
pub(crate) struct Shortened {
    /// Where pointers are that depend on where it is put; those that do not lead into it lead to its owner and behind.
    pointers: Vec<Pointer>,
    target: Target,
}

/// Returns what of an owner stands in a question that it answers: a wildcard does not, the name above it does.
fn in_question(owner: Name<'_>) -> Name<'_> {
    let above = owner.parent().filter(|_| owner.as_bytes().starts_with(b"\x01*"));
    above.unwrap_or(owner)
}

/// Compresses the names in the data of an RRset, the last of `bodies` from `at` on, as far as RFC 3597 §4 allows. Its pointers
/// are right where it stands directly behind a question for `owner`.
// Once per configuration.
pub(crate) fn shorten(bodies: &mut Vec<u8>, at: usize, owner: Name<'_>, rtype: Rtype) -> Shortened {
    let records = bodies.get(at..).unwrap_or(&[]).to_vec();
    let found = wire::rtypes::compressed(rtype).filter(|_| records.len() <= SHORTENED_OCTETS_MAX);
    let cuts = found.and_then(|(skipped, names)| {
        Some((usize::from(skipped), usize::from(names), Cut::all(owner, &records, skipped, names)?))
    });
    let Some((skipped, names, cuts)) = cuts else {
        let octets = Name::parse(records.get(HEAD_OCTETS..).unwrap_or(&[])).map_or(0, |(name, _)| name.len());
        let target = Target { octets: octets as u8, own: octets as u8, common: 0 };
        return Shortened { target, ..Shortened::default() };
    };
    // Where the first record would begin directly behind a question for the owner.
    let body_at = (Header::LEN + owner.len() + 4) as u16;
    let mut done = Shortened::default();
    let (mut short, mut cuts, mut rest) = (std::vec![], cuts.into_iter(), records.as_slice());
    while let Some((head, tail)) = rest.split_at_checked(HEAD_OCTETS) {
        let length = head.last_chunk().map_or(0, |length| usize::from(u16::from_be_bytes(*length)));
        let Some((mut data, after)) = tail.split_at_checked(length) else { break };
        rest = after;
        let record_at = short.len();
        short.extend_from_slice(head);
        short.extend_from_slice(data.get(..skipped).unwrap_or(&[]));
        data = data.get(skipped..).unwrap_or(&[]);
        for Cut { octets, len, pointer } in cuts.by_ref().take(names) {
            let (name, behind) = data.split_at_checked(usize::from(len)).unwrap_or((data, &[]));
            data = behind;
            short.extend_from_slice(name.get(..usize::from(octets)).unwrap_or(name));
            let mut common = 0;
            if let Some(place) = pointer {
                let is_own = place >= body_at;
                let to = if is_own { place - body_at } else { place - Header::LEN as u16 };
                common = if is_own { 0 } else { owner.len() as u8 - to as u8 };
                done.pointers.push(Pointer { at: short.len() as u16, to, is_own });
                short.extend_from_slice(&(0xc000 | place).to_be_bytes());
            }
            if record_at == 0 && done.target.octets == 0 {
                done.target = Target { octets: len, own: octets, common };
            }
        }
        short.extend_from_slice(data);
        let length = (short.len() - record_at - HEAD_OCTETS) as u16;
        if let Some(field) = short.get_mut(record_at + HEAD_OCTETS - 2..record_at + HEAD_OCTETS) {
            field.copy_from_slice(&length.to_be_bytes());
        }
    }
    bodies.truncate(at);
    bodies.extend_from_slice(&short);
    done
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
    at: u32,
    len: u32,
    /// Where an alias leads.
    next: Next,
    first_pointer: u32,
    pointer_count: u32,
    /// The first name in its data.
    target: Target,
}

/// A zone's SOA, with the TTL of negative answers.
struct Soa {
    apex: NameBuf,
    apex_octets: u8,
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
    /// Copies records whose owner, `owner_octets` long when they were compiled, ends as the current name does and is as long as
    /// its last `octets`.
    fn copy(&mut self, body: &[u8], pointers: &[Pointer], octets: usize, owner_octets: usize) -> Option<()> {
        let at = self.body_at + self.answer.octets;
        let owner_at = self.owner.end(octets)?;
        let room = self.message.get_mut(at..at + body.len())?;
        room.copy_from_slice(body);
        if self.answer.octets == 0 && octets == owner_octets && octets == self.owner.octets {
            // Where it was compiled for.
            self.answer.octets = body.len();
            return Some(());
        }
        for pointer in pointers {
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
            owner: Standing { at: Header::LEN, octets: sought.name().len(), end_octets: 0, end_at: 0 },
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
        if at > CHAIN_AT_MAX {
            // The client asks for the rest of a long chain if it wants to.
            return Some(());
        }
        let body = self.body(set.at, set.len)?;
        let owner_octets = pen.owner.octets;
        pen.copy(
            body,
            self.pointers(set.first_pointer, set.pointer_count),
            owner_octets,
            node.octets.into(),
        )?;
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
        pen.count(1, 1);
        if let Some(soa) = soa.and_then(|index| self.soas.get(index as usize)) {
            let octets = usize::from(soa.apex_octets);
            let pointers = self.pointers(soa.first_pointer, soa.pointer_count);
            return pen.copy(self.body(soa.at, soa.len)?, pointers, octets, octets);
        }
        let at = pen.body_at + pen.answer.octets;
        let owner_at = pen.owner.end(pen.owner.octets)?;
        let data = local_soa(owner_at, NEGATIVE_TTL);
        let octets = put_record(pen.message, at, owner_at, Rtype::SOA, NEGATIVE_TTL, &data)?;
        pen.answer.octets += octets;
        Some(())
    }

    fn pointers(&self, first: u32, count: u32) -> &[Pointer] {
        let first = first as usize;
        self.pointers.get(first..first + count as usize).unwrap_or(&[])
    }

    fn body(&self, at: u32, len: u32) -> Option<&[u8]> {
        self.bodies.get(at as usize..)?.get(..len as usize)
    }
}
