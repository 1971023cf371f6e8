//! What became of a question, and the message that says so.

use cache::Security;
use wire::message::{Record, records};
use wire::{Class, Flags, Full, Header, Question, Rcode, Rtype, Section, Ttl, Unfit, Writer, write_data};

use crate::failure::{Failure, Reason};
use crate::heap_name::HeapName;
use crate::scrub::Set;
use crate::trace::TraceLine;

/// What became of a question.
#[derive(Clone, Debug)]
pub struct Resolution {
    /// The response code for the client.
    pub rcode: Rcode,
    /// What is known of the signatures. Nobody checks any yet.
    pub security: Security,
    /// Why there is no answer; [`Resolution::rcode`] is SERVFAIL or NOTIMP then.
    pub failure: Option<Failure>,
    /// What was asked, and what came; empty unless it was wanted.
    pub trace: Vec<TraceLine>,
    /// Aliases that the answer section begins with.
    pub(crate) aliases: u8,
    rows: Rows,
}

impl Resolution {
    pub(crate) fn new(rcode: Rcode, rows: Rows) -> Self {
        Self { rcode, security: Security::Unchecked, failure: None, trace: Vec::new(), aliases: 0, rows }
    }

    /// Returns what an alias comes to: its own records, and then those of its target.
    pub(crate) fn of_alias(mut rows: Rows, target: &Self) -> Self {
        rows.append(&target.rows);
        Self { aliases: target.aliases.saturating_add(1), ..Self::new(target.rcode, rows) }
    }

    pub(crate) fn failed(failure: Failure) -> Self {
        let rcode = match failure.reason {
            Reason::Unsupported => Rcode::NOTIMP,
            _ => Rcode::SERVFAIL,
        };
        Self { failure: Some(failure), ..Self::new(rcode, Rows::default()) }
    }

    /// Walks the records: first those of the answer section, aliases in their order, then those of
    /// the authority section. Names are in full.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.rows.records()
    }

    /// Writes the reply to a question, with a header whose ID is zero and without OPT; returns its
    /// octets.
    ///
    /// Nothing is cut: `Full` if it takes more than `out` has.
    pub fn write(&self, question: &Question<'_>, out: &mut [u8]) -> Result<usize, Full> {
        let limit = out.len();
        let flags = Flags::QR.with(Flags::RA).with_rcode(self.rcode);
        let mut writer = Writer::new(out, limit, 0, flags);
        writer.question(question)?;
        for record in self.records() {
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

    pub(crate) const fn rows(&self) -> &Rows {
        &self.rows
    }
}

/// Records in wire form, names in full: first those of the answer section.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    octets: Vec<u8>,
    answers: u16,
    authorities: u16,
}

impl Rows {
    /// Adds an RRset to the answer section. Nothing may be in the authority section yet.
    pub(crate) fn answer(&mut self, set: &Set) {
        self.push(set);
        self.answers += set.records.len() as u16;
    }

    /// Adds an RRset to the authority section.
    pub(crate) fn authority(&mut self, set: &Set) {
        self.push(set);
        self.authorities += set.records.len() as u16;
    }

    /// Adds what another question brought.
    pub(crate) fn append(&mut self, other: &Self) {
        self.octets.extend_from_slice(&other.octets);
        self.answers += other.answers;
        self.authorities += other.authorities;
    }

    fn push(&mut self, set: &Set) {
        let ttl = Ttl::new(set.ttl).seconds();
        for data in &set.records {
            self.octets.extend_from_slice(set.owner.as_name().as_bytes());
            self.octets.extend(set.rtype.0.to_be_bytes());
            self.octets.extend(Class::IN.0.to_be_bytes());
            self.octets.extend(ttl.to_be_bytes());
            self.octets.extend((data.len() as u16).to_be_bytes());
            self.octets.extend_from_slice(data);
        }
    }

    fn records(&self) -> impl Iterator<Item = Record<'_>> {
        let header = Header { answers: self.answers, authorities: self.authorities, ..Header::default() };
        records(&self.octets, 0, &header).map_while(Result::ok)
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
