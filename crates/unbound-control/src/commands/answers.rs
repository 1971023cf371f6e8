//! The cache as text: written, read, looked at.
//!
//! ```text
//! START_RRSET_CACHE
//! ;rrset TTL RECORDS SIGNATURES TRUST SECURITY
//! RECORD…
//! END_RRSET_CACHE
//! START_MSG_CACHE
//! msg NAME CLASS TYPE FLAGS QUESTIONS TTL SECURITY ANSWERS AUTHORITIES ADDITIONALS EDE
//! NAME CLASS TYPE FLAGS, one line for each set of records
//! END_MSG_CACHE
//! EOF
//! ```

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher as _};

use cache::{KeyBits, Security};
use control::api::Record;
use server::CachedAnswer;
use wire::{Class, Flags, Message, NameBuf, Rtype, Section, Ttl, Writer};

use super::{Call, Failure, Outcome, name};
use crate::lines::{Gone, Output};
use crate::texts::{At, Texts};

/// How much records of an answer are trusted, in the other program's numbers: those of an answer
/// that has no authority.
const TRUST: u32 = 8;
/// What is known of the signatures of records: nothing. Who loads an answer validates it before it
/// gets AD.
const SECURITY: u32 = 0;
/// The other program's numbers of what is known of an answer; 2 and more but this last one are
/// outcomes of validation that clients may see.
const UNCHECKED: u8 = 0;
const BOGUS: u8 = 1;
const INDETERMINATE: u8 = 2;
const INSECURE: u8 = 3;
const SENTINEL_FAILED: u8 = 4;
const SECURE: u8 = 5;
/// What stands for no extended error.
const NO_ERROR: &str = "-1";
/// Labels of a name that is looked for without being asked twice.
const LABELS_MIN: usize = 2;
/// Sets of records that an answer can have: the shortest record takes 11 octets.
const SETS_MAX: usize = wire::MESSAGE_OCTETS_MAX / 11;

/// A set of records in an answer.
struct RecordSet {
    owner: String,
    rtype: String,
    ttl: u32,
    records: Vec<Record>,
    signatures: Vec<Record>,
}

impl RecordSet {
    /// Writes its records, then its signatures, one a line.
    fn write(&self, output: &mut Output) -> Result<(), Gone> {
        self.records.iter().chain(&self.signatures).try_for_each(|record| {
            let Record { name, ttl, class, rtype, data } = record;
            output.line(format_args!("{name}\t{ttl}\t{class}\t{rtype}\t{data}"))
        })
    }
}

/// Returns the sets of records in a section.
fn sets(message: &Message<'_>, section: Section) -> Vec<RecordSet> {
    let mut sets: Vec<RecordSet> = Vec::new();
    for record in Record::section(message, section) {
        let covered = (record.rtype == "RRSIG").then(|| record.data.split_whitespace().next().unwrap_or(""));
        let rtype = covered.unwrap_or(&record.rtype).to_owned();
        let owner = record.name.to_ascii_lowercase();
        let at = sets.iter().position(|set| set.owner == owner && set.rtype == rtype).unwrap_or_else(|| {
            sets.push(RecordSet {
                owner,
                rtype,
                ttl: record.ttl,
                records: Vec::new(),
                signatures: Vec::new(),
            });
            sets.len() - 1
        });
        let set = &mut sets[at];
        set.ttl = set.ttl.min(record.ttl);
        if covered.is_some() { set.signatures.push(record) } else { set.records.push(record) }
    }
    // Signatures of what is not there say nothing.
    sets.retain(|set| !set.records.is_empty());
    sets
}

fn number(parts: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

/// Returns whether another server could use an answer.
fn is_for_all(answer: &CachedAnswer<'_>) -> bool {
    answer.ttl > 0 && !answer.entry.bits.has(KeyBits::CD) && !answer.entry.bits.has(KeyBits::FAILURE)
}

pub(super) fn dump_cache(call: &mut Call<'_>) -> Outcome {
    call.line("START_RRSET_CACHE")?;
    let operator = &call.context.operator;
    // Answers with signatures first: the others have the same records without.
    for is_signed in [true, false] {
        let mut seen = HashSet::new();
        let output = &mut *call.output;
        let mut told = Ok(());
        operator.each_answer(|answer| {
            if told.is_ok() && is_for_all(answer) {
                told = write_sets(answer, is_signed, &mut seen, output);
            }
        });
        told?;
    }
    call.line("END_RRSET_CACHE\nSTART_MSG_CACHE")?;
    let mut seen = HashSet::new();
    let output = &mut *call.output;
    let mut told = Ok(());
    operator.each_answer(|answer| {
        let entry = answer.entry;
        let question = number(&(entry.name.as_bytes(), entry.qtype.0, entry.qclass.0));
        if told.is_ok() && is_for_all(answer) && seen.insert(question) {
            told = write_message(answer, output);
        }
    });
    told?;
    call.line("END_MSG_CACHE\nEOF")
}

fn write_sets(
    answer: &CachedAnswer<'_>,
    is_signed: bool,
    seen: &mut HashSet<u64>,
    output: &mut Output,
) -> Result<(), Gone> {
    let Ok(message) = Message::parse(&answer.message) else { return Ok(()) };
    for section in [Section::Answer, Section::Authority, Section::Additional] {
        for set in sets(&message, section) {
            let is_new =
                set.signatures.is_empty() != is_signed && seen.insert(number(&(&set.owner, &set.rtype)));
            if !is_new {
                continue;
            }
            output.line(format_args!(
                ";rrset {} {} {} {TRUST} {SECURITY}",
                set.ttl,
                set.records.len(),
                set.signatures.len()
            ))?;
            set.write(output)?;
        }
    }
    Ok(())
}

fn write_message(answer: &CachedAnswer<'_>, output: &mut Output) -> Result<(), Gone> {
    let Ok(message) = Message::parse(&answer.message) else { return Ok(()) };
    let sections = [Section::Answer, Section::Authority, Section::Additional].map(|it| sets(&message, it));
    let [answers, authorities, additionals] = sections.each_ref().map(Vec::len);
    let entry = answer.entry;
    let flags = Flags::QR.0 | Flags::RA.0 | entry.rcode.0 & 0xf;
    let error = entry.ede.map_or_else(|| NO_ERROR.to_owned(), |code| code.0.to_string());
    output.line(format_args!(
        "msg {} {} {} {flags} 1 {} {} {answers} {authorities} {additionals} {error}",
        super::dotted(&entry.name.to_string()),
        entry.qclass,
        entry.qtype,
        answer.ttl,
        number_of(entry.security),
    ))?;
    for set in sections.iter().flatten() {
        output.line(format_args!("{} IN {} 0", set.owner, set.rtype))?;
    }
    Ok(())
}

const fn number_of(security: Security) -> u8 {
    match security {
        Security::Unchecked => UNCHECKED,
        Security::Bogus => BOGUS,
        Security::Indeterminate => INDETERMINATE,
        Security::Insecure => INSECURE,
        Security::Secure => SECURE,
    }
}

/// The owner and the type of a set of records, as text; signatures belong to what they cover.
type SetName = (String, String);

/// Returns the set that a record belongs to.
fn set_of(record: &policy::records::Record) -> SetName {
    let covered = match record.rtype {
        Rtype::RRSIG => record.rdata.first_chunk::<2>().map(|octets| Rtype(u16::from_be_bytes(*octets))),
        _ => None,
    };
    (record.owner.to_string().to_ascii_lowercase(), covered.unwrap_or(record.rtype).to_string())
}

/// Records of a file, kept as text and read again by whoever wants them: as values each would take
/// some ten times as much.
#[derive(Default)]
struct Known {
    texts: Texts,
    /// Where the records of a set are, by the number of its name.
    places: Vec<(u64, At)>,
}

impl Known {
    /// Adds a record; one that nobody can read here takes nothing but itself away.
    fn add(&mut self, line: &str) {
        if let Some(record) = only_record(line) {
            self.places.push((number(&set_of(&record)), self.texts.push(line)));
        }
    }

    /// Ends the adding: only then records are found.
    fn sort(&mut self) {
        self.places.sort_unstable();
    }

    /// Returns the records of a set as they came.
    fn set<'a>(&'a self, name: &'a SetName) -> impl Iterator<Item = policy::records::Record> + 'a {
        let wanted = number(name);
        let first = self.places.partition_point(|(number, _)| *number < wanted);
        let of_set = self.places.iter().skip(first).take_while(move |(number, _)| *number == wanted);
        let records = of_set.filter_map(|(_, at)| only_record(self.texts.line(*at)));
        // Another set may have the same number.
        records.filter(move |record| set_of(record) == *name)
    }
}

/// Reads a line that is one record.
fn only_record(line: &str) -> Option<policy::records::Record> {
    let mut records = policy::records::parse(line, wire::Name::ROOT).ok()?;
    if records.len() == 1 { records.pop() } else { None }
}

pub(super) fn load_cache(call: &mut Call<'_>) -> Outcome {
    let validates = call.context.operator.resolver_anchors(None).is_ok();
    let mut known = Known::default();
    expect(call, "START_RRSET_CACHE")?;
    loop {
        let line = next(call)?;
        if line == "END_RRSET_CACHE" {
            break;
        }
        if line.starts_with(';') || line.trim().is_empty() {
            continue;
        }
        known.add(&line);
    }
    known.sort();
    expect(call, "START_MSG_CACHE")?;
    let mut line = next(call)?;
    while line != "END_MSG_CACHE" {
        let head =
            Head::read(&line).ok_or_else(|| Failure::Error(format!("cannot read the message '{line}'")))?;
        let (mut sets, mut is_too_long) = (Vec::new(), false);
        loop {
            line = next(call)?;
            if line == "END_MSG_CACHE" || line.starts_with("msg ") {
                break;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let &[owner, _, rtype, ..] = words.as_slice() else {
                return Err(Failure::Error(format!("cannot read the set of records '{line}'")));
            };
            is_too_long |= sets.len() == SETS_MAX;
            if !is_too_long {
                sets.push((super::dotted(&owner.to_ascii_lowercase()), rtype.to_owned()));
            }
        }
        if !is_too_long && head.is_for_clients(validates) {
            keep(call, &head, &sets, &known);
        }
    }
    // The word that ends the file was the end of the input, too.
    let _ = next(call)?;
    call.ok()
}

fn next(call: &mut Call<'_>) -> Result<String, Failure> {
    Ok(call.input.next()?)
}

fn expect(call: &mut Call<'_>, word: &str) -> Outcome {
    let line = next(call)?;
    if line == word { Ok(()) } else { Err(Failure::Error(format!("expected {word}, found '{line}'"))) }
}

/// What the line of a message says.
struct Head {
    qname: NameBuf,
    qtype: Rtype,
    flags: u16,
    ttl: u32,
    security: u8,
    counts: [usize; 3],
}

impl Head {
    /// Returns whether clients may get the answer from a server that validates, or one that does
    /// not: who asked for one with CD got it unchecked, and bogus, too.
    const fn is_for_clients(&self, validates: bool) -> bool {
        match self.security {
            BOGUS | SENTINEL_FAILED => false,
            UNCHECKED => !validates,
            _ => true,
        }
    }

    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &["msg", qname, "IN", qtype, flags, "1", ttl, security, answers, authorities, additionals, ..] =
            words.as_slice()
        else {
            return None;
        };
        Some(Self {
            qname: qname.parse().ok()?,
            qtype: qtype.parse().ok()?,
            flags: flags.parse().ok()?,
            ttl: ttl.parse().ok()?,
            security: security.parse().ok()?,
            counts: [answers.parse().ok()?, authorities.parse().ok()?, additionals.parse().ok()?],
        })
    }
}

/// Keeps an answer if everything that it is made of is there.
fn keep(call: &Call<'_>, head: &Head, sets: &[SetName], known: &Known) {
    let mut buffer = vec![0; wire::MESSAGE_OCTETS_MAX];
    let len = buffer.len();
    let flags = Flags(Flags::QR.0 | Flags::RA.0 | head.flags & 0xf);
    let mut writer = Writer::new(&mut buffer, len, 0, flags);
    let question = wire::Question { qname: head.qname.as_name(), qtype: head.qtype, qclass: Class::IN };
    if writer.question(&question).is_err() {
        return;
    }
    let [answers, authorities, _] = head.counts;
    for (index, set) in sets.iter().enumerate() {
        let section = match index {
            _ if index < answers => Section::Answer,
            _ if index < answers + authorities => Section::Authority,
            _ => Section::Additional,
        };
        let mut is_known = false;
        for record in known.set(set) {
            is_known = true;
            let ttl = Ttl::new(record.ttl.seconds());
            let written =
                writer.record(section, record.owner.as_name(), record.rtype, Class::IN, ttl, |writer| {
                    writer.bytes(&record.rdata)
                });
            if written.is_err() {
                return;
            }
        }
        if !is_known {
            return;
        }
    }
    let len = writer.finish();
    if let Some(message) = buffer.get(..len).and_then(|octets| Message::parse(octets).ok()) {
        call.context.operator.keep_answer(&message, head.ttl);
    }
}

/// Shows answers that are kept for names, and below them: first the sets of records, then the
/// answers, each with the lines of its records and an empty one behind it.
pub(super) fn cache_lookup(call: &mut Call<'_>) -> Outcome {
    let takes_short = call.letters("t")?.contains('t');
    let argument = call.argument;
    for text in argument.split_whitespace() {
        let wanted = name(text)?;
        // That many names are below it that a look takes long.
        if wanted.as_name().label_count() < LABELS_MIN && !takes_short {
            return Err(Failure::Error(format!(
                "name too short: '{text}'. Need example.com. or longer, short names take very long, use +t to \
                 allow them."
            )));
        }
        each_at_or_below(call, &wanted, &mut HashSet::new(), show_sets)?;
        each_at_or_below(call, &wanted, &mut HashSet::new(), show_message)?;
    }
    Ok(())
}

/// Has an answer shown, with the numbers of what was shown before it.
type Show = fn(&CachedAnswer<'_>, &mut HashSet<u64>, &mut Output) -> Result<(), Gone>;

fn each_at_or_below(
    call: &mut Call<'_>,
    wanted: &NameBuf,
    seen: &mut HashSet<u64>,
    show: Show,
) -> Result<(), Gone> {
    let output = &mut *call.output;
    let mut told = Ok(());
    call.context.operator.each_answer(|answer| {
        let is_wanted = answer.entry.name.is_at_or_below(wanted.as_name());
        if told.is_ok() && is_wanted && is_for_all(answer) {
            told = show(answer, seen, output);
        }
    });
    told
}

fn show_sets(answer: &CachedAnswer<'_>, seen: &mut HashSet<u64>, output: &mut Output) -> Result<(), Gone> {
    let Ok(message) = Message::parse(&answer.message) else { return Ok(()) };
    let sections = [Section::Answer, Section::Authority, Section::Additional];
    for set in sections.into_iter().flat_map(|section| sets(&message, section)) {
        if seen.insert(number(&(&set.owner, &set.rtype))) {
            set.write(output)?;
            output.line("")?;
        }
    }
    Ok(())
}

fn show_message(answer: &CachedAnswer<'_>, seen: &mut HashSet<u64>, output: &mut Output) -> Result<(), Gone> {
    let entry = answer.entry;
    let Ok(message) = Message::parse(&answer.message) else { return Ok(()) };
    if !seen.insert(number(&(entry.name.as_bytes(), entry.qtype.0, entry.qclass.0))) {
        return Ok(());
    }
    let sections = [Section::Answer, Section::Authority, Section::Additional].map(|it| sets(&message, it));
    let [answers, authorities, additionals] = sections.each_ref().map(Vec::len);
    let flags = Flags::QR.0 | Flags::RD.0 | Flags::RA.0 | entry.rcode.0 & 0xf;
    let error = entry.ede.map_or_else(|| NO_ERROR.to_owned(), |code| code.0.to_string());
    output.line(format_args!(
        "msg {} {} {} QR RD RA {} {flags} 1 {} {SECURITY} {answers} {authorities} {additionals} {error}",
        super::dotted(&entry.name.to_string()),
        entry.qclass,
        entry.qtype,
        entry.rcode,
        answer.ttl,
    ))?;
    sections.iter().flatten().try_for_each(|set| set.write(output))?;
    output.line("")
}
