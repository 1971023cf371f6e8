//! What became of a question, and the message that says so.

use cache::Security;
use wire::message::{Record, records};
use wire::{
    Class, EdeCode, Flags, Full, Header, Question, Rcode, Rtype, Section, Ttl, Unfit, Writer, write_data,
};

use crate::failure::{Failure, Reason};
use crate::heap_name::HeapName;
use crate::prove::Below;
use crate::scrub::{Beside, Set};
use crate::trace::TraceLine;

/// What became of a question.
#[derive(Clone, Debug)]
pub struct Resolution {
    /// The response code for the client.
    pub rcode: Rcode,
    /// What is known of the signatures: of all that is in the answer, the worst.
    pub security: Security,
    /// Why the answer is not secure although it is signed, where there is a code for that (RFC 8914
    /// §4).
    pub insecure_because: Option<EdeCode>,
    /// For how many bits of the client's subnet it is (RFC 7871); `None` or zero: for everybody.
    pub scope: Option<u8>,
    /// Why there is no answer; [`Resolution::rcode`] is SERVFAIL or NOTIMP then.
    pub failure: Option<Failure>,
    /// Whether it is what was known before servers were asked: policies may have a rule (see
    /// [`Watch`](crate::Watch)).
    pub is_interim: bool,
    /// What was asked, and what came; empty unless it was wanted.
    pub trace: Vec<TraceLine>,
    /// Aliases that the answer section begins with.
    pub(crate) aliases: u8,
    /// For a question of type DS: what the answer says of the zone of this name.
    pub(crate) below: Option<Below>,
    rows: Rows,
}

impl Resolution {
    pub(crate) const fn new(rcode: Rcode, rows: Rows, security: Security) -> Self {
        Self {
            rcode,
            security,
            insecure_because: None,
            scope: None,
            failure: None,
            is_interim: false,
            trace: Vec::new(),
            aliases: 0,
            below: None,
            rows,
        }
    }

    /// Returns what an alias comes to: its own records, then those of its target, and then what
    /// stands beside the alias.
    pub(crate) fn of_alias(
        mut rows: Rows,
        security: Security,
        target: &Self,
        beside: Option<&Beside>,
    ) -> Self {
        rows.append(&target.rows);
        if let Some(beside) = beside {
            let mut more = Rows::default();
            more.beside(beside);
            rows.append(&more);
        }
        Self {
            aliases: target.aliases.saturating_add(1),
            insecure_because: target.insecure_because,
            scope: target.scope,
            is_interim: target.is_interim,
            ..Self::new(target.rcode, rows, lower(security, target.security))
        }
    }

    /// Returns what is known before servers are asked for the rest.
    pub(crate) fn interim(rows: Rows, security: Security) -> Self {
        Self { is_interim: true, ..Self::new(Rcode::NOERROR, rows, security) }
    }

    pub(crate) fn failed(failure: Failure) -> Self {
        let rcode = match failure.reason {
            Reason::Unsupported => Rcode::NOTIMP,
            _ => Rcode::SERVFAIL,
        };
        let security = match failure.reason {
            Reason::Bogus(_) => Security::Bogus,
            _ => Security::Unchecked,
        };
        Self { failure: Some(failure), ..Self::new(rcode, Rows::default(), security) }
    }

    /// Walks the records: first those of the answer section, aliases in their order, then those of
    /// the authority section, those of the additional one; signatures behind what they cover. Names
    /// are in full.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.rows.records()
    }

    /// Writes the reply to a question, with a header whose ID is zero and without OPT; returns its
    /// octets. Signatures and proofs are for who set DO (`wants_dnssec`), or asked for that type.
    ///
    /// Nothing is cut: `Full` if it takes more than `out` has.
    pub fn write(&self, question: &Question<'_>, wants_dnssec: bool, out: &mut [u8]) -> Result<usize, Full> {
        let limit = out.len();
        let flags = Flags::QR.with(Flags::RA).with_rcode(self.rcode);
        let mut writer = Writer::new(out, limit, 0, flags);
        writer.question(question)?;
        for record in self.records() {
            if !wants_dnssec && is_for_dnssec(&record, question.qtype) {
                continue;
            }
            // What is in the rows was read and written here: it has the form of its type.
            let owner = record.owner.expand().map_err(|_| Full)?;
            writer.record(
                record.section,
                owner.as_name(),
                record.rtype,
                record.class,
                record.ttl(),
                |writer| write_data(&record, writer).map_err(|_: Unfit| Full),
            )?;
        }
        Ok(writer.finish())
    }

    /// Returns whether there are neither signatures nor proofs in it, so that who sets DO gets the
    /// same as who does not.
    pub fn is_unsigned(&self) -> bool {
        !self.records().any(|record| matches!(record.rtype, Rtype::RRSIG | Rtype::NSEC | Rtype::NSEC3))
    }

    /// Has nothing in it kept for longer than so many seconds.
    pub(crate) fn keep_for(&mut self, seconds: u32) {
        let Rows { answer, authority, additional } = &mut self.rows;
        [answer, authority, additional].into_iter().for_each(|part| part.keep_for(seconds));
    }

    pub(crate) const fn rows(&self) -> &Rows {
        &self.rows
    }
}

/// Records in wire form, names in full; signatures stand behind what they cover.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    answer: Part,
    authority: Part,
    additional: Part,
}

/// Those of one section.
#[derive(Clone, Debug, Default)]
struct Part {
    octets: Vec<u8>,
    records: u16,
}

impl Rows {
    /// Adds an RRset to the answer section.
    pub(crate) fn answer(&mut self, set: &Set) {
        self.answer.push(set);
    }

    /// Adds an RRset to the authority section.
    pub(crate) fn authority(&mut self, set: &Set) {
        self.authority.push(set);
    }

    /// Adds an RRset to the additional section.
    pub(crate) fn additional(&mut self, set: &Set) {
        self.additional.push(set);
    }

    /// Adds what stands beside an answer.
    pub(crate) fn beside(&mut self, beside: &Beside) {
        beside.servers.iter().for_each(|set| self.authority.push(set));
        beside.addresses.iter().for_each(|set| self.additional.push(set));
    }

    /// Adds what another question brought.
    pub(crate) fn append(&mut self, other: &Self) {
        self.answer.append(&other.answer);
        self.authority.append(&other.authority);
        self.additional.append(&other.additional);
    }

    /// Returns the same with what would be an answer as what a referral has.
    pub(crate) fn into_referral(self) -> Self {
        Self { answer: Part::default(), authority: self.answer, additional: self.additional }
    }

    fn records(&self) -> impl Iterator<Item = Record<'_>> {
        let answer = Header { answers: self.answer.records, ..Header::default() };
        let authority = Header { authorities: self.authority.records, ..Header::default() };
        let additional = Header { additionals: self.additional.records, ..Header::default() };
        let parts = [(&self.answer, answer), (&self.authority, authority), (&self.additional, additional)];
        parts.into_iter().flat_map(|(part, header)| records(&part.octets, 0, &header).map_while(Result::ok))
    }

    /// Returns the data of the records of this owner and type in the answer section.
    pub(crate) fn data(&self, owner: &HeapName, rtype: Rtype) -> impl Iterator<Item = &[u8]> {
        self.records()
            .filter(move |record| {
                record.section == Section::Answer
                    && record.rtype == rtype
                    && record.owner.expand().is_ok_and(|name| name.as_name() == owner.as_name())
            })
            .map(|record| record.rdata)
    }
}

/// Octets of a record between its owner and its data.
const FIXED_OCTETS: usize = 10;

impl Part {
    fn push(&mut self, set: &Set) {
        for data in &set.records {
            self.record(set, set.rtype, data);
        }
        for data in &set.signatures {
            self.record(set, Rtype::RRSIG, data);
        }
    }

    fn record(&mut self, set: &Set, rtype: Rtype, data: &[u8]) {
        let owner = set.owner.as_name().as_bytes();
        self.octets.reserve(owner.len() + FIXED_OCTETS + data.len());
        self.octets.extend_from_slice(owner);
        self.octets.extend_from_slice(&rtype.0.to_be_bytes());
        self.octets.extend_from_slice(&Class::IN.0.to_be_bytes());
        self.octets.extend_from_slice(&Ttl::new(set.ttl).seconds().to_be_bytes());
        self.octets.extend_from_slice(&(data.len() as u16).to_be_bytes());
        self.octets.extend_from_slice(data);
        self.records += 1;
    }

    /// Adds the RRsets that are not there yet: two names of a chain may come from one DNAME, and
    /// from one zone (RFC 2181 §5).
    fn append(&mut self, other: &Self) {
        let count = self.records;
        for record in other.each(other.records) {
            let is_it = |known: Record<'_>| is_of_same_set(&known, &record);
            if !self.each(count).any(is_it)
                && let Some(octets) = other.octets.get(record.at..record.end())
            {
                self.octets.extend_from_slice(octets);
                self.records += 1;
            }
        }
    }

    fn keep_for(&mut self, seconds: u32) {
        // A TTL stands before the length of the data.
        let ttls: Vec<usize> = self.each(self.records).map(|record| record.rdata_at - 6).collect();
        for at in ttls {
            if let Some(ttl) = self.octets.get_mut(at..).and_then(|octets| octets.first_chunk_mut::<4>()) {
                *ttl = u32::from_be_bytes(*ttl).min(seconds).to_be_bytes();
            }
        }
    }

    /// Walks the first `count` records.
    fn each(&self, count: u16) -> impl Iterator<Item = Record<'_>> {
        let header = Header { answers: count, ..Header::default() };
        records(&self.octets, 0, &header).map_while(Result::ok)
    }
}

/// Returns whether two records are of one RRset, or signatures of one.
fn is_of_same_set(one: &Record<'_>, other: &Record<'_>) -> bool {
    let owner = |record: &Record<'_>| record.owner.expand().ok();
    let covered = |record: &Record<'_>| match record.rtype {
        Rtype::RRSIG => record.rdata.first_chunk::<2>().copied(),
        _ => None,
    };
    one.rtype == other.rtype
        && covered(one) == covered(other)
        && owner(one).zip(owner(other)).is_some_and(|(one, other)| one.as_name() == other.as_name())
}

/// Returns whether a record is only for who asks for signatures and proofs (RFC 4035 §3.1).
fn is_for_dnssec(record: &Record<'_>, qtype: Rtype) -> bool {
    let is_proof = matches!(record.rtype, Rtype::RRSIG | Rtype::NSEC | Rtype::NSEC3);
    is_proof && (record.section != Section::Answer || record.rtype != qtype)
}

/// Returns the lower of two security states.
pub(crate) const fn lower(a: Security, b: Security) -> Security {
    if height(a) < height(b) { a } else { b }
}

const fn height(security: Security) -> u8 {
    match security {
        Security::Bogus => 0,
        Security::Unchecked => 1,
        Security::Indeterminate => 2,
        Security::Insecure => 3,
        Security::Secure => 4,
    }
}
