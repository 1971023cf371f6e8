//! A zone on its way to another server, message by message (RFC 5936, RFC 1995).

use std::sync::Arc;

use wire::{Class, Full, Name, Rtype, Section, Ttl, Writer};

use crate::block::{Block, Layout, Ready, Records};
use crate::compile::layout;
use crate::difference::Difference;
use crate::rows::Rows;
use crate::zone::Zone;

/// What is sent. It keeps the version that it began with, whatever becomes of the zone meanwhile.
pub struct Outgoing {
    zone: Arc<Zone>,
    kind: Kind,
    stage: Stage,
    differences: Vec<Arc<Difference>>,
    messages: u64,
    records: u64,
}

/// What comes next.
#[derive(Clone, Copy)]
enum Stage {
    /// The SOA of the version that is sent.
    FirstSoa,
    /// Everything but the SOA: the block, and the number of the record in it.
    Whole { proofs: bool, block: u32, record: usize },
    /// A step of the history: its number, which part, and where in that.
    Step { number: usize, part: Part, at: usize },
    /// The SOA once more.
    LastSoa,
    /// Nothing.
    Done,
}

#[derive(Clone, Copy)]
enum Part {
    OldSoa,
    Removed,
    NewSoa,
    Added,
}

/// What a transfer consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All of a zone.
    Whole,
    /// Differences between versions.
    Steps,
    /// The SOA: there is nothing newer.
    SoaAlone,
}

impl Outgoing {
    /// Sends the whole zone.
    pub fn whole(zone: Arc<Zone>) -> Self {
        let stage = Stage::FirstSoa;
        Self { zone, kind: Kind::Whole, stage, differences: Vec::new(), messages: 0, records: 0 }
    }

    /// Sends the steps that lead to `zone`, or its SOA alone if there are none.
    pub fn steps(zone: Arc<Zone>, differences: Vec<Arc<Difference>>) -> Self {
        if differences.is_empty() {
            return Self { kind: Kind::SoaAlone, stage: Stage::LastSoa, ..Self::whole(zone) };
        }
        Self { kind: Kind::Steps, differences, ..Self::whole(zone) }
    }

    /// Returns the zone that is sent.
    pub const fn zone(&self) -> &Arc<Zone> {
        &self.zone
    }

    /// Returns whether everything was written.
    pub const fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    /// Returns how many messages and records were written.
    pub const fn written(&self) -> (u64, u64) {
        (self.messages, self.records)
    }

    /// Returns roughly how many octets there are to send; for a decision about datagrams.
    pub fn octets(&self) -> usize {
        match self.kind {
            Kind::Whole => self.zone.octets(),
            Kind::Steps => self.differences.iter().map(|difference| difference.octets()).sum(),
            Kind::SoaAlone => 0,
        }
    }

    /// Returns what it consists of.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Writes as many records as fit into the answer section of one message. An error means that
    /// not even one did.
    pub fn fill(&mut self, writer: &mut Writer<'_>) -> Result<(), Full> {
        let [before, ..] = writer.counts();
        // Ends: each turn writes at least one record or goes to a later stage.
        while !self.is_done() {
            if self.advance(writer).is_err() {
                break;
            }
        }
        let [after, ..] = writer.counts();
        if after == before && !self.is_done() {
            return Err(Full);
        }
        self.messages += 1;
        self.records += u64::from(after - before);
        Ok(())
    }

    fn soa(&self, writer: &mut Writer<'_>, ttl: Ttl, soa: &[u8]) -> Result<(), Full> {
        record(writer, self.zone.apex(), Rtype::SOA, ttl, layout(Rtype::SOA), soa)
    }

    fn advance(&mut self, writer: &mut Writer<'_>) -> Result<(), Full> {
        self.stage = match self.stage {
            Stage::FirstSoa => {
                let (ttl, soa) = self.zone.soa();
                self.soa(writer, ttl, soa)?;
                match self.kind {
                    Kind::Steps => Stage::Step { number: 0, part: Part::OldSoa, at: 0 },
                    Kind::Whole | Kind::SoaAlone => Stage::Whole { proofs: false, block: 0, record: 0 },
                }
            }
            Stage::LastSoa => {
                let (ttl, soa) = self.zone.soa();
                self.soa(writer, ttl, soa)?;
                Stage::Done
            }
            Stage::Whole { proofs, block, record } => self.whole_from(writer, proofs, block, record)?,
            Stage::Step { number, part, at } => self.step(writer, number, part, at)?,
            Stage::Done => Stage::Done,
        };
        Ok(())
    }

    /// Writes the records of one block; what does not fit begins the next message.
    fn whole_from(
        &mut self,
        writer: &mut Writer<'_>,
        proofs: bool,
        at: u32,
        skipped: usize,
    ) -> Result<Stage, Full> {
        let found = match proofs {
            true => Block::read(&self.zone.hashed, at).map(|block| (block, at, block.next())),
            false => self.zone.name_from(at),
        };
        let Some((block, at, next)) = found else {
            return Ok(if proofs {
                Stage::LastSoa
            } else {
                Stage::Whole { proofs: true, block: 0, record: 0 }
            });
        };
        let owner = self.zone.owner(block);
        let mut number = 0;
        for rrset in block.rrsets().filter(|rrset| rrset.rtype != Rtype::SOA || rrset.signature_count > 0) {
            let data = if rrset.rtype == Rtype::SOA { &[][..] } else { rrset.records };
            let plain = Records(rrset.signatures).map(|ready| (Layout::Plain, ready));
            for (layout, ready) in Records(data).map(|ready| (rrset.layout, ready)).chain(plain) {
                number += 1;
                if number <= skipped {
                    continue;
                }
                let Ready { rtype, ttl, rdata } = ready;
                if let Err(full) = record(writer, owner.as_name(), rtype, Ttl::new(ttl), layout, rdata) {
                    let stage = Stage::Whole { proofs, block: at, record: number - 1 };
                    self.stage = stage;
                    return Err(full);
                }
            }
        }
        Ok(Stage::Whole { proofs, block: next, record: 0 })
    }

    fn step(&mut self, writer: &mut Writer<'_>, number: usize, part: Part, at: usize) -> Result<Stage, Full> {
        let Some(difference) = self.differences.get(number).map(Arc::clone) else {
            return Ok(Stage::LastSoa);
        };
        let next = |part| Stage::Step { number, part, at: 0 };
        Ok(match part {
            Part::OldSoa => {
                self.soa(writer, difference.old_soa.0, &difference.old_soa.1)?;
                next(Part::Removed)
            }
            Part::NewSoa => {
                self.soa(writer, difference.new_soa.0, &difference.new_soa.1)?;
                next(Part::Added)
            }
            Part::Removed => match one_of(writer, &difference.removed, at)? {
                Some(at) => Stage::Step { number, part, at },
                None => next(Part::NewSoa),
            },
            Part::Added => match one_of(writer, &difference.added, at)? {
                Some(at) => Stage::Step { number, part, at },
                None => Stage::Step { number: number + 1, part: Part::OldSoa, at: 0 },
            },
        })
    }
}

/// Writes the record at `at`, if there is one, and returns where the next is.
fn one_of(writer: &mut Writer<'_>, rows: &Rows, at: usize) -> Result<Option<usize>, Full> {
    let Some((row, after)) = rows.at(at) else { return Ok(None) };
    record(writer, row.owner, row.rtype, row.ttl, layout(row.rtype), row.rdata)?;
    Ok(Some(after))
}

fn record(
    writer: &mut Writer<'_>,
    owner: Name<'_>,
    rtype: Rtype,
    ttl: Ttl,
    layout: Layout,
    rdata: &[u8],
) -> Result<(), Full> {
    writer.record(Section::Answer, owner, rtype, Class::IN, ttl, |writer| layout.write(writer, rdata))
}
