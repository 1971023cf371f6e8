//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Makes what another server said fit to be kept and passed on, and cuts finished replies.

use crate::header::{Flags, Header};
use crate::message::{Message, NameRef, Record, Section};
use crate::name::Name;
use crate::numbers::{Rtype, Ttl};
use crate::rdata::extent;
use crate::rtypes::{self, Field, NameRule};
use crate::scrub;
use crate::write::{Full, Writer};

/// Why a message cannot be normalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The message does not fit into the buffer, or has more records than there is room for TTL
    /// offsets.
    Full,
    /// A record's data does not have the form of its type.
    Rdata,
}

impl From<Full> for Unfit {
    fn from(Full: Full) -> Self {
        Self::Full
    }
}

/// What [`normalise`] wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Normalised {
    /// Octets written, header and question included.
    pub len: usize,
    /// Where the first record starts: what follows the question.
    pub body_at: usize,
    /// Records in the answer section.
    pub answers: u16,
    /// Records in the authority section.
    pub authorities: u16,
    /// Records in the additional section, OPT and TSIG not counted.
    pub additionals: u16,
    /// TTL offsets reported.
    pub ttl_count: usize,
}

/// Copies `message` into `out` without what concerns one hop only (OPT, TSIG).
///
/// `ttl_offsets` gets the place of every TTL field, counted from [`Normalised::body_at`]; a TTL
/// with the top bit set is written as zero (RFC 2181 §8). Names that may come compressed point to
/// places in `out`. When dropping the records takes nothing from the middle, the octets are copied
/// as they are; otherwise names are written anew.
pub fn normalise(
    message: &Message<'_>,
    out: &mut [u8],
    ttl_offsets: &mut [u16],
) -> Result<Normalised, Unfit> {
    match survey(message, ttl_offsets)? {
        Some(survey) => copy(message, &survey, out, ttl_offsets),
        None => rewrite(message, out, ttl_offsets, |_| true),
    }
}

/// The same without records that do not concern the question: of names that it does not lead to by
/// CNAME and DNAME, of zones that hold none of these, addresses of hosts that nothing names.
pub fn normalise_relevant(
    message: &Message<'_>,
    out: &mut [u8],
    ttl_offsets: &mut [u16],
) -> Result<Normalised, Unfit> {
    if scrub::is_plainly_relevant(message) {
        return normalise(message, out, ttl_offsets);
    }
    normalise_scrubbed(message, out, ttl_offsets)
}

#[cold]
fn normalise_scrubbed(
    message: &Message<'_>,
    out: &mut [u8],
    ttl_offsets: &mut [u16],
) -> Result<Normalised, Unfit> {
    let Some(relevance) = scrub::Relevance::of(message) else { return normalise(message, out, ttl_offsets) };
    if message.records().all(|record| is_per_hop(&record) || relevance.keeps(&record)) {
        return normalise(message, out, ttl_offsets);
    }
    rewrite(message, out, ttl_offsets, |record| relevance.keeps(record))
}

/// What the first walk found in a message that can be copied.
struct Survey {
    end: usize,
    dropped: u16,
    ttl_count: usize,
}

/// Returns whether a record says something about this hop only.
pub(crate) fn is_per_hop(record: &Record<'_>) -> bool {
    matches!(record.rtype, Rtype::OPT | Rtype::TSIG)
}

/// Walks the message; `None` when it must be written anew.
fn survey(message: &Message<'_>, ttl_offsets: &mut [u16]) -> Result<Option<Survey>, Unfit> {
    let body_at = message.records_at();
    let mut survey = Survey { end: body_at, dropped: 0, ttl_count: 0 };
    let mut is_copyable = true;
    for record in message.records() {
        if is_per_hop(&record) {
            if record.section != Section::Additional {
                return Ok(None);
            }
            survey.dropped += 1;
            continue;
        }
        *ttl_offsets.get_mut(survey.ttl_count).ok_or(Unfit::Full)? = (record.ttl_at - body_at) as u16;
        survey.ttl_count += 1;
        let ttls = ttl_offsets.get(..survey.ttl_count).unwrap_or(&[]);
        is_copyable &= survey.dropped == 0
            && is_apart(message, record.at, ttls)
            && has_plain_names(message, &record, ttls)?;
        survey.end = record.end();
    }
    Ok(is_copyable.then_some(survey))
}

/// Checks the names in a record's data; false when one cannot stay as it is.
fn has_plain_names(message: &Message<'_>, record: &Record<'_>, ttls: &[u16]) -> Result<bool, Unfit> {
    let mut is_plain = true;
    pieces(record, |piece| {
        if let Piece::Name { at, end, rule } = piece {
            is_plain &= match rule {
                NameRule::Compressed => is_apart(message, at, ttls),
                // A name in full ends in the root label; one that ends in a pointer overruns its
                // place.
                _ => Name::parse(message.as_bytes().get(at..end).unwrap_or(&[])).is_ok(),
            };
        }
        Ok(())
    })?;
    Ok(is_plain)
}

/// Returns whether the name at `at` points only to labels that end before it and share no octet
/// with a TTL: a name that does would change as the record ages.
fn is_apart(message: &Message<'_>, at: usize, ttls: &[u16]) -> bool {
    // The question's name stands before all records; most names point there.
    if let Some([0xc0, 12, ..]) = message.as_bytes().get(at..) {
        return true;
    }
    let body_at = message.records_at();
    let mut is_apart = true;
    let walked = message.name_at(at).walk(|row| {
        if row.start == at {
            return Ok(());
        }
        is_apart &= row.end < at;
        // What ends the row is a pointer of two octets or the root label.
        if let Some(end) = (row.end + 2).checked_sub(body_at) {
            let start = row.start.saturating_sub(body_at);
            let next = ttls.partition_point(|&ttl_at| usize::from(ttl_at) + 4 <= start);
            is_apart &= ttls.get(next).is_none_or(|&ttl_at| usize::from(ttl_at) >= end);
        }
        Ok(())
    });
    is_apart && walked.is_ok()
}

fn copy(
    message: &Message<'_>,
    survey: &Survey,
    out: &mut [u8],
    ttl_offsets: &[u16],
) -> Result<Normalised, Unfit> {
    let kept = message.as_bytes().get(..survey.end).ok_or(Unfit::Full)?;
    let room = out.get_mut(..survey.end).ok_or(Unfit::Full)?;
    room.copy_from_slice(kept);
    let header = Header { additionals: message.header.additionals - survey.dropped, ..message.header };
    if let Some(head) = room.first_chunk_mut() {
        *head = header.to_bytes();
    }
    let body_at = message.records_at();
    for &offset in ttl_offsets.iter().take(survey.ttl_count) {
        zero_if_negative(room, body_at + usize::from(offset));
    }
    Ok(Normalised {
        len: survey.end,
        body_at,
        answers: header.answers,
        authorities: header.authorities,
        additionals: header.additionals,
        ttl_count: survey.ttl_count,
    })
}

/// RFC 2181 §8: a TTL with the top bit set is zero.
fn zero_if_negative(bytes: &mut [u8], ttl_at: usize) {
    if let Some(ttl) = bytes.get_mut(ttl_at..).and_then(|tail| tail.first_chunk_mut::<4>())
        && ttl.first().is_some_and(|&first| first >= 0x80)
    {
        *ttl = [0; 4];
    }
}

#[cold]
fn rewrite(
    message: &Message<'_>,
    out: &mut [u8],
    ttl_offsets: &mut [u16],
    keeps: impl Fn(&Record<'_>) -> bool,
) -> Result<Normalised, Unfit> {
    let limit = out.len();
    let mut writer = Writer::new(out, limit, message.header.id, message.header.flags);
    if let Some(question) = &message.question {
        writer.question(question)?;
    }
    let body_at = writer.len();
    let mut slots = ttl_offsets.iter_mut();
    let mut ttl_count = 0;
    let mut counts = [0_u16; 3];
    for record in message.records() {
        if is_per_hop(&record) || !keeps(&record) {
            continue;
        }
        let owner = record.owner.expand().map_err(|_| Unfit::Rdata)?;
        let ttl_at = write_record(&record, owner.as_name(), record.ttl(), &mut writer)?;
        *slots.next().ok_or(Unfit::Full)? = u16::try_from(ttl_at - body_at).map_err(|_| Unfit::Full)?;
        ttl_count += 1;
        let [answers, authorities, additionals] = &mut counts;
        match record.section {
            Section::Answer => *answers += 1,
            Section::Authority => *authorities += 1,
            Section::Additional => *additionals += 1,
        }
    }
    let [answers, authorities, additionals] = counts;
    Ok(Normalised { len: writer.finish(), body_at, answers, authorities, additionals, ttl_count })
}

/// Writes a record of another message under `owner` and with this TTL, names in it anew. Returns
/// where the TTL field is.
pub fn write_record(
    record: &Record<'_>,
    owner: Name<'_>,
    ttl: Ttl,
    writer: &mut Writer<'_>,
) -> Result<usize, Unfit> {
    let mut outcome = Ok(());
    let mut ttl_at = 0;
    writer
        .record(record.section, owner, record.rtype, record.class, ttl, |writer| {
            // The TTL and the length stand before the data.
            ttl_at = writer.len() - 6;
            outcome = write_data(record, writer);
            outcome.map_err(|_| Full)
        })
        .map_err(|Full| outcome.err().unwrap_or(Unfit::Full))?;
    Ok(ttl_at)
}

/// Writes the data of a record of another message, its names anew (inside [`Writer::record`]).
pub fn write_data(record: &Record<'_>, writer: &mut Writer<'_>) -> Result<(), Unfit> {
    pieces(record, |piece| {
        match piece {
            Piece::Octets(octets) => writer.bytes(octets)?,
            Piece::Name { at, rule, .. } => {
                let name = NameRef::new(record.owner.message(), at).expand().map_err(|_| Unfit::Rdata)?;
                match rule {
                    NameRule::Compressed => writer.name(name.as_name())?,
                    NameRule::Folded | NameRule::Plain => writer.name_uncompressed(name.as_name())?,
                }
            }
        }
        Ok(())
    })
}

/// A stretch of a record's data: octets that mean the same anywhere, or a name that may be
/// compressed.
#[derive(Clone, Copy)]
enum Piece<'a> {
    Octets(&'a [u8]),
    Name { at: usize, end: usize, rule: NameRule },
}

/// Cuts a record's data at its names, as far as names may be compressed; what follows the last one
/// is not looked at.
fn pieces<'a>(
    record: &Record<'a>,
    mut visit: impl FnMut(Piece<'a>) -> Result<(), Unfit>,
) -> Result<(), Unfit> {
    let mut rest = record.rdata;
    let descriptor = rtypes::describe(record.rtype);
    // RFC 2136 §2.4: data is absent where an update deletes or asks whether something exists.
    if let Some(descriptor) = descriptor
        && descriptor.rewrite_fields > 0
        && !rest.is_empty()
    {
        let fields = descriptor.fields.unwrap_or(&[]);
        for &field in fields.iter().take(usize::from(descriptor.rewrite_fields)) {
            let at = record.end() - rest.len();
            let (len, rule) = match field {
                Field::Name(rule) => (None, rule),
                // The prefix length says how many octets of the suffix follow, and whether there is
                // a name.
                Field::A6 => {
                    let prefix = *rest.first().filter(|&&prefix| prefix <= 128).ok_or(Unfit::Rdata)?;
                    (Some((17 - usize::from(prefix) / 8, prefix > 0)), NameRule::Folded)
                }
                field => (Some((extent(field, rest).ok_or(Unfit::Rdata)?, false)), NameRule::Plain),
            };
            let mut name_at = at;
            let mut is_name = true;
            if let Some((len, then_name)) = len {
                let (octets, after) = rest.split_at_checked(len).ok_or(Unfit::Rdata)?;
                visit(Piece::Octets(octets))?;
                rest = after;
                name_at += len;
                is_name = then_name;
            }
            if is_name {
                let end = NameRef::new(record.owner.message(), name_at).skip().map_err(|_| Unfit::Rdata)?;
                let len = end - name_at;
                visit(Piece::Name { at: name_at, end, rule })?;
                rest = rest.get(len..).ok_or(Unfit::Rdata)?;
            }
        }
        if fields.len() == usize::from(descriptor.rewrite_fields) && !rest.is_empty() {
            return Err(Unfit::Rdata);
        }
    }
    visit(Piece::Octets(rest))
}

/// Cuts a finished reply to header, question and OPT, sets TC, and returns how long it is then.
///
/// `reply` must be a message we wrote: one question in full at most, and an OPT if any in the
/// additional section.
pub fn truncate(reply: &mut [u8]) -> usize {
    let Ok(message) = Message::parse(reply) else { return 0 };
    let opt = message.records().find(|record| record.rtype == Rtype::OPT).map(|opt| opt.at..opt.end());
    let body_at = message.records_at();
    let header = Header {
        flags: message.header.flags.with(Flags::TC),
        answers: 0,
        authorities: 0,
        additionals: u16::from(opt.is_some()),
        ..message.header
    };
    if let Some(head) = reply.first_chunk_mut() {
        *head = header.to_bytes();
    }
    let opt = opt.unwrap_or(body_at..body_at);
    let len = body_at + opt.len();
    reply.copy_within(opt, body_at);
    len
}
