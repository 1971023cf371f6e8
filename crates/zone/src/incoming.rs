//! A zone on its way from another server: what the messages of a transfer come to (RFC 5936, RFC
//! 1995).

use std::fmt;

use wire::{Class, HashKey, Message, Name, NameBuf, Rcode, Record, Rtype, Section, Ttl};

use crate::build::Builder;
use crate::check::Origin;
use crate::difference::{Difference, Misfit, judged, push, serial_of};
use crate::rows::{Row, Rows};
use crate::zone::Zone;
use wire::query::Malformed;
use wire::serial::is_newer;

/// What a transfer came to.
pub enum Received {
    /// The primary has nothing newer.
    UpToDate,
    /// A whole zone.
    Whole(Box<Zone>),
    /// What changed, step by step.
    Steps(Vec<Difference>),
}

/// Why a transfer failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A message cannot be read, or is no reply to what was asked.
    Malformed,
    /// A record whose data does not have the form of its type.
    Record(Box<NameBuf>, Rtype),
    /// The primary said so.
    Rcode(Rcode),
    /// What comes first is not the SOA of the zone.
    NoSoa,
    /// The steps do not follow one another.
    Disordered,
    /// More octets than may come.
    TooLarge,
    /// The version that came is not one that can be served.
    Unfit(Misfit),
    /// The primary's version is older than ours.
    Older(u32),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("a message that cannot be used"),
            Self::Record(owner, rtype) => {
                write!(
                    f,
                    "a message that cannot be used: the data of {owner} {rtype} does not have the form of that type"
                )
            }
            Self::Rcode(rcode) => write!(f, "the primary answers {rcode}"),
            Self::NoSoa => f.write_str("the transfer does not begin with the zone's SOA"),
            Self::Disordered => f.write_str("steps that do not follow one another"),
            Self::TooLarge => f.write_str("the zone is larger than allowed"),
            Self::Unfit(misfit) => write!(f, "what came cannot be served: {misfit}"),
            Self::Older(serial) => write!(f, "the primary's serial {serial} is older than ours"),
        }
    }
}

/// A transfer under way.
pub struct Incoming {
    apex: NameBuf,
    key: HashKey,
    /// The serial we have; none: the whole zone was asked for.
    have: Option<u32>,
    octets_left: u64,
    stage: Stage,
}

/// Where a transfer is.
enum Stage {
    /// Nothing has come.
    Begin,
    /// The first SOA has come: what follows decides what kind of transfer this is.
    First { soa: (Ttl, Box<[u8]>) },
    /// Records of a whole zone.
    Whole { builder: Box<Builder>, soa: Box<[u8]> },
    /// Records that go.
    Removing { last: u32, steps: Vec<Difference>, step: Box<Difference> },
    /// Records that come.
    Adding { last: u32, steps: Vec<Difference>, step: Box<Difference> },
    /// It is over.
    Over(Option<Received>),
}

impl Incoming {
    /// Begins to receive a zone of which we have the version `have`, if any. The names of the zone
    /// will be hashed with `key`.
    pub fn new(apex: Name<'_>, key: HashKey, have: Option<u32>, octets_max: u64) -> Self {
        Self { apex: apex.to_buf(), key, have, octets_left: octets_max, stage: Stage::Begin }
    }

    /// Takes the next message, which is the reply to what was asked (ID and signature were
    /// checked). Returns what the transfer came to when it is over.
    pub fn take(&mut self, message: &[u8]) -> Result<Option<Received>, Fault> {
        self.octets_left = self.octets_left.checked_sub(message.len() as u64).ok_or(Fault::TooLarge)?;
        let parsed = Message::parse(message).map_err(|_| Fault::Malformed)?;
        if parsed.rcode() != Rcode::NOERROR {
            return Err(Fault::Rcode(parsed.rcode()));
        }
        let mut data = Vec::new();
        let mut last_owner: Option<NameBuf> = None;
        let mut count = 0;
        for record in parsed.records().filter(|record| record.section == Section::Answer) {
            count += 1;
            if record.class != Class::IN {
                return Err(Fault::Malformed);
            }
            let owner = record.owner.expand().map_err(|_| Fault::Malformed)?;
            // Letter case is data, too.
            let is_same =
                last_owner.is_some_and(|last| last.as_name().as_bytes() == owner.as_name().as_bytes());
            last_owner = Some(owner);
            data.clear();
            plain(&record, message, &mut data).map_err(|_| Fault::Record(Box::new(owner), record.rtype))?;
            let row = Row { owner: owner.as_name(), rtype: record.rtype, ttl: record.ttl(), rdata: &data };
            self.row(&row, is_same && count > 1)?;
        }
        if count == 0 {
            return Err(Fault::NoSoa);
        }
        // RFC 1995 §2: the SOA alone means that there is nothing newer.
        if let (Stage::First { soa }, Some(have)) = (&self.stage, self.have) {
            let serial = serial_of(&soa.1).ok_or(Fault::Malformed)?;
            if serial == have {
                return Ok(Some(Received::UpToDate));
            }
            if !is_newer(serial, have) {
                return Err(Fault::Older(serial));
            }
        }
        match &mut self.stage {
            Stage::Over(received) => Ok(received.take()),
            Stage::Begin
            | Stage::First { .. }
            | Stage::Whole { .. }
            | Stage::Removing { .. }
            | Stage::Adding { .. } => Ok(None),
        }
    }

    fn row(&mut self, row: &Row<'_>, has_same_owner: bool) -> Result<(), Fault> {
        let is_soa = row.rtype == Rtype::SOA && row.owner == self.apex.as_name();
        let serial = if is_soa { Some(serial_of(row.rdata).ok_or(Fault::Malformed)?) } else { None };
        self.stage = match std::mem::replace(&mut self.stage, Stage::Over(None)) {
            Stage::Begin if is_soa => Stage::First { soa: (row.ttl, row.rdata.into()) },
            Stage::Begin => return Err(Fault::NoSoa),
            Stage::First { soa } => self.second(&soa, row, serial)?,
            Stage::Whole { builder, soa } if is_soa => {
                if *soa != *row.rdata {
                    return Err(Fault::Disordered);
                }
                {
                    let zone = judged(builder.compile(), Origin::Received).map_err(Fault::Unfit)?;
                    Stage::Over(Some(Received::Whole(Box::new(zone))))
                }
            }
            Stage::Whole { mut builder, soa } => {
                push(&mut builder, row, has_same_owner);
                Stage::Whole { builder, soa }
            }
            Stage::Removing { last, steps, mut step } => match serial {
                Some(serial) => {
                    if !is_newer(serial, step.old_serial()) {
                        return Err(Fault::Disordered);
                    }
                    step.new_soa = (row.ttl, row.rdata.into());
                    Stage::Adding { last, steps, step }
                }
                None => {
                    step.removed.push(row);
                    Stage::Removing { last, steps, step }
                }
            },
            Stage::Adding { last, mut steps, mut step } => match serial {
                Some(serial) if serial == step.new_serial() => {
                    let is_over = serial == last;
                    steps.push(*step);
                    if is_over {
                        Stage::Over(Some(Received::Steps(steps)))
                    } else {
                        let step = Box::new(self.step(row));
                        Stage::Removing { last, steps, step }
                    }
                }
                Some(_) => return Err(Fault::Disordered),
                None => {
                    step.added.push(row);
                    Stage::Adding { last, steps, step }
                }
            },
            // Nothing follows the last SOA.
            Stage::Over(_) => return Err(Fault::Disordered),
        };
        Ok(())
    }

    /// The second record says what this is: another SOA, with the serial that we have, begins a
    /// step.
    fn second(&self, soa: &(Ttl, Box<[u8]>), row: &Row<'_>, serial: Option<u32>) -> Result<Stage, Fault> {
        let last = serial_of(&soa.1).ok_or(Fault::Malformed)?;
        if let (Some(serial), Some(have)) = (serial, self.have)
            && serial == have
            && last != have
        {
            if !is_newer(last, have) {
                return Err(Fault::Older(last));
            }
            return Ok(Stage::Removing { last, steps: Vec::new(), step: Box::new(self.step(row)) });
        }
        let mut builder = Box::new(Builder::new(self.apex.as_name(), self.key).from(Origin::Received));
        let first = Row { owner: self.apex.as_name(), rtype: Rtype::SOA, ttl: soa.0, rdata: &soa.1 };
        push(&mut builder, &first, false);
        if serial.is_some() {
            // A zone of a SOA and nothing else.
            if *soa.1 != *row.rdata {
                return Err(Fault::Disordered);
            }
            let zone = judged(builder.compile(), Origin::Received).map_err(Fault::Unfit)?;
            return Ok(Stage::Over(Some(Received::Whole(Box::new(zone)))));
        }
        push(&mut builder, row, false);
        Ok(Stage::Whole { builder, soa: soa.1.clone() })
    }

    fn step(&self, old_soa: &Row<'_>) -> Difference {
        let old_soa = (old_soa.ttl, old_soa.rdata.into());
        Difference {
            apex: self.apex,
            new_soa: Clone::clone(&old_soa),
            old_soa,
            removed: Rows::default(),
            added: Rows::default(),
        }
    }
}

/// Writes the data of a record with its names in full.
fn plain(record: &Record<'_>, message: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let at = record.rdata_at..record.end();
    wire::rdata::check(record.rtype, message, at.clone())?;
    wire::rdata::write_plain(record.rtype, message, at, out)
}
