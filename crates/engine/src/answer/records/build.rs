//! Makes records of the configuration ready to answer, once per configuration.

use std::collections::BTreeMap;

use wire::{Class, Cut, Folded, HashKey, Header, Name, NameBuf, Pointer, Rtype, Ttl};

use super::{Body, HEAD_OCTETS, Next, Node, Records, Set, Soa, Target};
use crate::query::names::{NameTable, Sought};

/// Octets of an RRset up to which names in its data are compressed: pointers reach so far behind
/// any question.
pub(super) const SHORTENED_OCTETS_MAX: usize = 8192;

/// Collects records; [`RecordsBuilder::compile`] makes them ready to answer.
#[derive(Default)]
pub struct RecordsBuilder {
    nodes: BTreeMap<Vec<u8>, Written>,
    without_soa: bool,
}

struct Written {
    name: NameBuf,
    records: Vec<(Rtype, Ttl, Vec<u8>)>,
}

impl RecordsBuilder {
    /// Returns a builder without records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a record of class IN; names in `rdata` are not compressed. One that is there already is
    /// not added again.
    pub fn add(&mut self, owner: Name<'_>, rtype: Rtype, ttl: Ttl, rdata: &[u8]) {
        let node = self.node(owner);
        if !node.records.iter().any(|(t, _, data)| *t == rtype && data == rdata) {
            node.records.push((rtype, ttl, rdata.into()));
        }
    }

    /// Leaves the SOA out of answers without data for names that lie in no zone of the set.
    pub fn leave_out_soa(&mut self) {
        self.without_soa = true;
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn node(&mut self, owner: Name<'_>) -> &mut Written {
        let folded = owner.to_folded();
        self.nodes
            .entry(folded.as_bytes().into())
            .or_insert_with(|| Written { name: owner.to_buf(), records: Vec::new() })
    }

    /// Compiles the records. Names between the root and an owner exist too (RFC 4592 §2.2.2): they
    /// end wildcards.
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
        let mut compiler = Compiler { without_soa: self.without_soa, ..Compiler::default() };
        for node in &written {
            let wildcard = wildcard_below(node.name.as_name());
            let wildcard =
                wildcard.and_then(|name| sought(key, name.as_name(), |sought| names.exact(sought)));
            compiler.node(node, wildcard.map(|index| index as u32));
        }
        compiler.find_zones(&written);
        compiler.finish(names, key)
    }
}

/// What the names so far were compiled to.
#[derive(Default)]
struct Compiler {
    without_soa: bool,
    nodes: Vec<Node>,
    sets: Vec<Set>,
    soas: Vec<Soa>,
    bodies: Vec<u8>,
    pointers: Vec<Pointer>,
    /// The sets that are aliases, and what they lead to.
    aliases: Vec<(usize, NameBuf)>,
}

impl Compiler {
    /// Compiles the records of one name.
    fn node(&mut self, written: &Written, wildcard: Option<u32>) {
        let first_set = self.sets.len() as u32;
        let mut types: Vec<Rtype> = written.records.iter().map(|(rtype, _, _)| *rtype).collect();
        types.sort_unstable();
        types.dedup();
        for rtype in types {
            self.set(written, rtype);
        }
        self.nodes.push(Node {
            first_set,
            set_count: self.sets.len() as u32 - first_set,
            wildcard,
            soa: None,
            octets: in_question(written.name.as_name()).len() as u8,
        });
    }

    /// Compiles the records of one type at one name.
    fn set(&mut self, written: &Written, rtype: Rtype) {
        let records: Vec<&(Rtype, Ttl, Vec<u8>)> =
            written.records.iter().filter(|(t, _, _)| *t == rtype).collect();
        let [(_, _, first), ..] = records[..] else { return };
        // RFC 2181 §5.2: one TTL for the whole RRset.
        let ttl = records.iter().map(|(_, ttl, _)| *ttl).min().unwrap_or(Ttl::ZERO);
        let owner = written.name.as_name();
        let data = records.iter().map(|(_, _, data)| data.as_slice());
        let (body, target) = self.body(in_question(owner), rtype, ttl, data);
        if rtype == Rtype::CNAME
            && let Ok((target, _)) = Name::parse(first)
        {
            self.aliases.push((self.sets.len(), target.to_buf()));
        }
        self.sets.push(Set { rtype, count: records.len() as u16, body, next: Next::Outside, target });
        // What stands for names that are not there is no zone.
        if rtype == Rtype::SOA && in_question(owner).len() == owner.len() {
            let minimum = first.last_chunk::<4>().map_or(0, |field| u32::from_be_bytes(*field));
            // RFC 2308 §5.
            let ttl = ttl.min(Ttl::new(minimum));
            let (body, _) = self.body(owner, rtype, ttl, std::iter::once(first.as_slice()));
            self.soas.push(Soa { apex: written.name, apex_octets: owner.len() as u8, body });
        }
    }

    /// Writes an RRset that stands behind a question for `owner`. Returns where it is, and the
    /// first name in its data.
    fn body<'d>(
        &mut self,
        owner: Name<'_>,
        rtype: Rtype,
        ttl: Ttl,
        data: impl Iterator<Item = &'d [u8]>,
    ) -> (Body, Target) {
        let (at, first_pointer) = (self.bodies.len() as u32, self.pointers.len() as u32);
        for rdata in data {
            put_body(&mut self.bodies, rtype, ttl, rdata);
        }
        let Shortened { pointers, target } = shorten(&mut self.bodies, at as usize, owner, rtype);
        self.pointers.extend(pointers);
        let len = self.bodies.len() as u32 - at;
        let pointer_count = self.pointers.len() as u32 - first_pointer;
        (Body { at, len, first_pointer, pointer_count }, target)
    }

    /// Finds the SOA of the zone that each name lies in.
    fn find_zones(&mut self, written: &[Written]) {
        for (node, written) in self.nodes.iter_mut().zip(written) {
            let name = written.name.as_name();
            let above = (0..).zip(&self.soas).filter(|(_, soa)| name.is_at_or_below(soa.apex.as_name()));
            node.soa = above.max_by_key(|(_, soa)| soa.apex_octets).map(|(index, _)| index);
        }
    }

    /// Finds where aliases lead.
    fn finish(self, names: NameTable, key: HashKey) -> Records {
        let mut compiled = Records {
            names,
            nodes: self.nodes.into_boxed_slice(),
            sets: self.sets.into_boxed_slice(),
            soas: self.soas.into_boxed_slice(),
            bodies: self.bodies.into_boxed_slice(),
            pointers: self.pointers.into_boxed_slice(),
            without_soa: self.without_soa,
        };
        for (index, target) in self.aliases {
            let next = sought(key, target.as_name(), |sought| compiled.locate(sought));
            if let Some(set) = compiled.sets.get_mut(index) {
                set.next = next;
            }
        }
        compiled
    }
}

/// Looks for a name as queries do.
fn sought<T>(key: HashKey, name: Name<'_>, find: impl FnOnce(&Sought<'_>) -> T) -> T {
    let mut folded = Folded::root();
    let hash = key.fold(name, &mut folded);
    find(&Sought::new(&folded, hash))
}

/// Returns the wildcard below a name; a name that leaves no room for a label has none.
fn wildcard_below(name: Name<'_>) -> Option<NameBuf> {
    let mut wildcard = NameBuf::root();
    std::iter::once(&b"*"[..])
        .chain(name.labels())
        .all(|label| wildcard.push_label(label).is_ok())
        .then_some(wildcard)
}

fn put_body(bodies: &mut Vec<u8>, rtype: Rtype, ttl: Ttl, rdata: &[u8]) {
    bodies.extend_from_slice(&[0xc0, Header::LEN as u8]);
    bodies.extend_from_slice(&rtype.0.to_be_bytes());
    bodies.extend_from_slice(&Class::IN.0.to_be_bytes());
    bodies.extend_from_slice(&ttl.seconds().to_be_bytes());
    bodies.extend_from_slice(&(rdata.len() as u16).to_be_bytes());
    bodies.extend_from_slice(rdata);
}

/// What became of an RRset whose names were compressed.
#[derive(Default)]
pub(crate) struct Shortened {
    /// Where pointers are that depend on where it is put; those that do not lead into it lead to
    /// its owner and behind.
    pointers: Vec<Pointer>,
    target: Target,
}

/// Returns what of an owner stands in a question that it answers: a wildcard does not, the name
/// above it does.
fn in_question(owner: Name<'_>) -> Name<'_> {
    let above = owner.parent().filter(|_| owner.as_bytes().starts_with(b"\x01*"));
    above.unwrap_or(owner)
}

/// Compresses the names in the data of an RRset, the last of `bodies` from `at` on, as far as RFC
/// 3597 §4 allows. Its pointers are right where it stands directly behind a question for `owner`.
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
    let (mut short, mut cuts, mut rest) = (Vec::new(), cuts.into_iter(), records.as_slice());
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
