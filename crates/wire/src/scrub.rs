//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Which records of a reply concern its question. What else a server adds is not its business: it
//! may be somebody's attempt to have it believed.

use crate::header::Header;
use crate::message::{Message, NameRef, Record, Section};
use crate::name::{Name, NameBuf};
use crate::numbers::Rtype;
use crate::reply::is_per_hop;

/// Names that one question may lead to by CNAME and DNAME; no resolver follows more.
const CHAIN_MAX: usize = 32;
/// Labels of the longest name.
const LABELS_MAX: usize = 128;
/// Zones and servers that one reply may name.
const NAMED_MAX: usize = 64;

const DS: Rtype = Rtype(43);
const RRSIG: Rtype = Rtype(46);
const NSEC: Rtype = Rtype(47);
const NSEC3: Rtype = Rtype(50);
const SVCB: Rtype = Rtype(64);
const HTTPS: Rtype = Rtype(65);
const DNAME: Rtype = Rtype(39);
const NS: Rtype = Rtype(2);
const CNAME: Rtype = Rtype(5);
const SOA: Rtype = Rtype(6);
const A: Rtype = Rtype(1);
const AAAA: Rtype = Rtype(28);

/// Returns whether a look at each record shows that all concern the question; `false` when it takes
/// a closer look.
///
/// Names are compared by their place, as compression makes them equal; a chain of CNAMEs stands in
/// order.
pub(crate) fn is_plainly_relevant(message: &Message<'_>) -> bool {
    let Some(question) = &message.question else { return true };
    let bytes = message.as_bytes();
    let mut last = Header::LEN;
    for record in message.records() {
        let is_relevant = match record.section {
            Section::Answer => {
                let is_on_chain = match bytes.get(record.at..) {
                    Some([0xc0, 12, ..]) => last == Header::LEN,
                    _ => place(bytes, record.at) == last,
                };
                if record.rtype == CNAME && question.qtype != CNAME {
                    last = place(bytes, record.rdata_at);
                }
                is_on_chain && record.class == question.qclass
            }
            Section::Authority => {
                matches!(record.rtype, SOA | NS)
                    && (record.owner.is_root() || is_suffix(bytes, last, place(bytes, record.at)))
            }
            Section::Additional => is_per_hop(&record),
        };
        if !is_relevant {
            return false;
        }
    }
    true
}

/// Follows the pointers that a name begins with.
fn place(bytes: &[u8], mut at: usize) -> usize {
    // Ends: a pointer that does not lead back is not followed.
    while let Some(&[high @ 0xc0..=0xff, low]) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let target = usize::from(high & 0x3f) << 8 | usize::from(low);
        if target >= at {
            break;
        }
        at = target;
    }
    at
}

/// Returns whether one of the labels of the name at `at` begins at `place`.
fn is_suffix(bytes: &[u8], mut at: usize, place: usize) -> bool {
    for _ in 0..LABELS_MAX {
        at = self::place(bytes, at);
        match bytes.get(at) {
            Some(&length @ 1..=63) if at != place => at += 1 + usize::from(length),
            _ => break,
        }
    }
    at == place
}

/// What a question leads to.
pub(crate) struct Relevance {
    /// The question's name and what CNAMEs and DNAMEs make of it.
    chain: [NameBuf; CHAIN_MAX],
    chain_len: usize,
    /// Zones that hold names of the chain, as far as the reply names them.
    zones: [NameBuf; NAMED_MAX],
    zones_len: usize,
    /// Names in the data of records that concern the question.
    named: [NameBuf; NAMED_MAX],
    named_len: usize,
}

/// Adds a name to a list, if there is room for it and it is not there yet.
fn add(list: &mut [NameBuf], len: &mut usize, name: NameBuf) {
    if !list.iter().take(*len).any(|known| known.as_name() == name.as_name())
        && let Some(room) = list.get_mut(*len)
    {
        *room = name;
        *len += 1;
    }
}

impl Relevance {
    /// Looks closely at what a reply says; `None` if it has no question.
    #[cold]
    pub(crate) fn of(message: &Message<'_>) -> Option<Self> {
        let question = message.question.as_ref()?;
        let mut relevance = Self {
            chain: [NameBuf::root(); CHAIN_MAX],
            chain_len: 0,
            zones: [NameBuf::root(); NAMED_MAX],
            zones_len: 0,
            named: [NameBuf::root(); NAMED_MAX],
            named_len: 0,
        };
        add(&mut relevance.chain, &mut relevance.chain_len, question.qname.to_buf());
        // Ends: each round but the last makes the chain longer.
        loop {
            let before = relevance.chain_len;
            for record in message.records().take_while(|record| record.section == Section::Answer) {
                relevance.follow(&record);
            }
            if relevance.chain_len == before {
                break;
            }
        }
        for record in message.records() {
            relevance.note_zone(&record);
        }
        for record in message.records().filter(|record| record.section != Section::Additional) {
            let at = match record.rtype {
                // NS, MD, MF, MB.
                NS | Rtype(3 | 4 | 7) => 0,
                // MX, AFSDB, RT, KX, LP, SVCB, HTTPS.
                Rtype(15 | 18 | 21 | 36 | 107) | SVCB | HTTPS => 2,
                // SRV.
                Rtype(33) => 6,
                _ => continue,
            };
            if record.rdata.len() > at
                && relevance.keeps(&record)
                && let Ok(name) = record.name_in_rdata(at).expand()
            {
                add(&mut relevance.named, &mut relevance.named_len, name);
            }
        }
        Some(relevance)
    }

    /// Takes a CNAME's or DNAME's target into the chain.
    fn follow(&mut self, record: &Record<'_>) {
        if !matches!(record.rtype, CNAME | DNAME) {
            return;
        }
        let (Ok(owner), Ok(target)) = (record.owner.expand(), record.name_in_rdata(0).expand()) else {
            return;
        };
        if record.rtype == CNAME {
            if self.has(owner.as_name()) {
                add(&mut self.chain, &mut self.chain_len, target);
            }
            return;
        }
        let owner = owner.as_name();
        for index in 0..self.chain_len {
            let Some(name) = self.chain.get(index).copied() else { return };
            let name = name.as_name();
            if name.len() > owner.len() && name.is_at_or_below(owner) {
                let labels = name.as_bytes().get(..name.len() - owner.len()).unwrap_or(&[]);
                // RFC 6672 §2.2: a name that would be too long ends the chain.
                if let Ok(made) = NameBuf::below(labels, target.as_name()) {
                    add(&mut self.chain, &mut self.chain_len, made);
                }
            }
        }
    }

    /// Notes the zone that a record of the authority section, or the signer of a signature, names.
    fn note_zone(&mut self, record: &Record<'_>) {
        let zone = match (record.section, record.rtype) {
            (Section::Authority, SOA | NS) => record.owner.expand(),
            // The signer's name stands after 18 octets (RFC 4034 §3.1).
            (Section::Answer | Section::Authority, RRSIG) if record.rdata.len() > 18 => {
                NameRef::new(record.owner.message(), record.rdata_at + 18).expand()
            }
            _ => return,
        };
        if let Ok(zone) = zone
            && self.is_above(zone.as_name())
        {
            add(&mut self.zones, &mut self.zones_len, zone);
        }
    }

    fn chain(&self) -> impl Iterator<Item = Name<'_>> {
        self.chain.iter().take(self.chain_len).map(NameBuf::as_name)
    }

    fn has(&self, name: Name<'_>) -> bool {
        self.chain().any(|link| link == name)
    }

    /// Returns whether a name is one of the chain or above one.
    fn is_above(&self, name: Name<'_>) -> bool {
        self.chain().any(|link| link.is_at_or_below(name))
    }

    /// Returns whether a record concerns the question.
    pub(crate) fn keeps(&self, record: &Record<'_>) -> bool {
        let Ok(owner) = record.owner.expand() else { return false };
        let owner = owner.as_name();
        let covered = match record.rdata.first_chunk() {
            Some(&covered) if record.rtype == RRSIG => Rtype(u16::from_be_bytes(covered)),
            _ => record.rtype,
        };
        match (record.section, covered) {
            (Section::Answer, DNAME) => self.is_above(owner),
            (Section::Answer, _) => self.has(owner),
            (Section::Authority, SOA | NS | DS) => self.is_above(owner),
            // Those that prove an absence stand beside the name; they are of a zone that holds it.
            (Section::Authority, NSEC | NSEC3) => {
                self.zones.iter().take(self.zones_len).any(|zone| owner.is_at_or_below(zone.as_name()))
            }
            (Section::Additional, A | AAAA | SVCB | HTTPS) => {
                self.has(owner)
                    || self.named.iter().take(self.named_len).any(|named| named.as_name() == owner)
            }
            (Section::Authority | Section::Additional, _) => false,
        }
    }
}
