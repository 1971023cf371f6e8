//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Writes messages into a caller's buffer, with name compression (RFC 1035 §4.1.4).

use crate::hash::eq_ignore_case;
use crate::header::{Flags, Header};
use crate::message::Section;
use crate::name::{NAME_OCTETS_MAX, Name};
use crate::numbers::{Class, OptionCode, Rcode, Rtype, Ttl};
use crate::query::{Query, Question};

/// The record or option did not fit; nothing of it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Labels remembered as targets of compression; later ones are written out and found no more.
const TARGETS_MAX: usize = 64;
/// Labels looked up among the targets for one message, so that a reply full of names made for it
/// cannot hold a worker (CVE-2024-8508); names after that are written in full.
const SEARCHES_MAX: u16 = 8192;
/// Labels a name may have, root label excluded.
const LABELS_MAX: usize = NAME_OCTETS_MAX / 2;
/// The target that stands for the root: everything written is below it.
const ROOT: u8 = u8::MAX;

/// A label already written, known by its place and by the label above it.
///
/// Four octets, so that all targets take four cache lines and a search reads them in a row.
#[derive(Clone, Copy)]
struct Target {
    at: u16,
    parent: u8,
    tag: u8,
}

const _: () = assert!(size_of::<Target>() == 4 && TARGETS_MAX < ROOT as usize);

/// A point in the writing of a message that can be gone back to.
#[derive(Clone, Copy)]
pub struct Mark {
    len: usize,
    target_count: u8,
    unknown: Unknown,
    counts: [u16; 3],
}

/// Names that are written but no targets yet: most messages end before another name could point to
/// them.
#[derive(Clone, Copy)]
struct Unknown {
    /// Those of the question.
    is_question: bool,
    /// Where the records of [`Writer::shortened`] end; zero if there are none.
    records_end: u16,
    /// Octets before the names in their data, and how many names there are.
    skipped: u8,
    names: u8,
    /// Where the first owner of [`Writer::ready_below`] is; zero if there is none.
    below_at: u16,
}

impl Unknown {
    const NONE: Self = Self { is_question: false, records_end: 0, skipped: 0, names: 0, below_at: 0 };
    const QUESTION: Self = Self { is_question: true, ..Self::NONE };

    const fn is_any(self) -> bool {
        self.is_question | (self.records_end | self.below_at != 0)
    }
}

/// Where the names in the data of an RRset are cut, worked out when it was compiled.
#[derive(Clone, Copy, Debug)]
pub struct Cuts<'c> {
    /// Octets before the names of each record.
    pub skipped: u8,
    /// Names of each record, in a row.
    pub names: u8,
    /// For each name of each record [`CUT_OCTETS`]: the octets to write, the octets of the whole
    /// name, and the pointer that follows them where the records stand directly behind a question
    /// for their owner; zero for none.
    pub cuts: &'c [u8],
}

/// Octets that say where one name is cut.
pub const CUT_OCTETS: usize = 4;

/// Octets of a record before its data, its owner being a pointer.
pub(crate) const RECORD_HEAD: usize = 12;

/// A pointer in a record that stands ready but for its pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Where it is in the record.
    pub at: u16,
    /// Where it leads to: so many octets behind the target, or behind the begin of the record
    /// itself.
    pub to: u16,
    /// Whether it leads into the record itself.
    pub is_own: bool,
}

/// The highest place that a pointer can lead to, plus one.
const POINTED_MAX: usize = 0x4000;

/// Writes one message front to back: question, then sections in order, then OPT.
///
/// What does not fit within the limit is not written at all; the caller decides about TC.
pub struct Writer<'b> {
    buf: &'b mut [u8],
    len: usize,
    limit: usize,
    header: Header,
    /// Made for the first of them: most messages have none.
    targets: Option<[Target; TARGETS_MAX]>,
    target_count: u8,
    searches_left: u16,
    question_len: u8,
    unknown: Unknown,
}

impl<'b> Writer<'b> {
    /// Begins a message of at most `limit` octets (and never more than `buf` holds).
    pub fn new(buf: &'b mut [u8], limit: usize, id: u16, flags: Flags) -> Self {
        let limit = limit.min(buf.len()).min(usize::from(u16::MAX));
        let header = Header { id, flags, ..Header::default() };
        Self {
            buf,
            len: Header::LEN,
            limit,
            header,
            targets: None,
            target_count: 0,
            searches_left: SEARCHES_MAX,
            question_len: 0,
            unknown: Unknown::NONE,
        }
    }

    /// Returns the octets written so far.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether nothing follows the header yet.
    pub const fn is_empty(&self) -> bool {
        self.len == Header::LEN
    }

    /// Lowers or raises the limit, for example to keep room for an OPT.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit.min(self.buf.len()).min(usize::from(u16::MAX));
    }

    /// Changes the flags.
    pub fn set_flags(&mut self, flags: Flags) {
        self.header.flags = flags;
    }

    /// Returns the flags.
    pub const fn flags(&self) -> Flags {
        self.header.flags
    }

    /// Writes the question, letter case kept.
    pub fn question(&mut self, question: &Question<'_>) -> Result<(), Full> {
        if self.len == Header::LEN {
            // A name in full: nothing before it could be pointed at. Its labels become targets when
            // another name comes.
            self.atomically(|w| {
                w.bytes(question.qname.as_bytes())?;
                w.kind_of(question)
            })?;
            self.question_len = question.qname.len() as u8;
            self.unknown = Unknown::QUESTION;
        } else {
            self.atomically(|w| {
                w.name(question.qname)?;
                w.kind_of(question)
            })?;
        }
        self.header.questions += 1;
        Ok(())
    }

    /// Writes the question of a query as it came.
    #[inline]
    pub fn question_of(&mut self, query: &Query<'_>) -> Result<(), Full> {
        if self.len != Header::LEN {
            return self.question(&query.question);
        }
        self.bytes(query.question_bytes())?;
        self.question_len = query.question.qname.len() as u8;
        self.unknown = Unknown::QUESTION;
        self.header.questions += 1;
        Ok(())
    }

    fn kind_of(&mut self, question: &Question<'_>) -> Result<(), Full> {
        let [t0, t1] = question.qtype.0.to_be_bytes();
        let [c0, c1] = question.qclass.0.to_be_bytes();
        self.bytes(&[t0, t1, c0, c1])
    }

    /// Makes targets of the labels of the question, so that other names can point to them.
    fn remember_question(&mut self) {
        let mut starts = [0_u8; LABELS_MAX];
        let mut count = 0;
        let mut at = 0_u8;
        // Ends: a name has at most `LABELS_MAX` labels.
        for start in &mut starts {
            match self.buf.get(Header::LEN + usize::from(at)) {
                Some(&len @ 1..) if usize::from(at) < usize::from(self.question_len) => {
                    *start = at;
                    at = at.wrapping_add(1 + len);
                    count += 1;
                }
                _ => break,
            }
        }
        let mut parent = ROOT;
        for &start in starts.get(..count).unwrap_or(&[]).iter().rev() {
            let at = Header::LEN + usize::from(start);
            let tag = self.buf.get(Header::LEN..).map_or(0, |name| tag(name, start));
            match self.remember(at, parent, tag) {
                Some(target) => parent = target,
                None => break,
            }
        }
    }

    /// Makes targets of all names that are none yet.
    #[cold]
    fn remember_unknown(&mut self) {
        let unknown = std::mem::replace(&mut self.unknown, Unknown::NONE);
        if unknown.is_question {
            self.remember_question();
        }
        let mut at = self.body_at();
        // Ends: each turn goes over a record.
        while at < usize::from(unknown.records_end) {
            let mut name_at = at + RECORD_HEAD + usize::from(unknown.skipped);
            for _ in 0..unknown.names {
                name_at = self.remember_name(name_at);
            }
            let length = self.buf.get(at + RECORD_HEAD - 2..).and_then(<[u8]>::first_chunk);
            at += RECORD_HEAD + length.map_or(0, |length| usize::from(u16::from_be_bytes(*length)));
        }
        if unknown.below_at != 0 {
            self.remember_name(usize::from(unknown.below_at));
        }
    }

    /// Makes targets of the labels of the name at `at`; returns where it ends.
    fn remember_name(&mut self, at: usize) -> usize {
        let mut starts = [0_u16; LABELS_MAX];
        let mut count = 0;
        let mut end = at;
        let mut parent = Some(ROOT);
        // Ends: a name has at most `LABELS_MAX` labels.
        for start in &mut starts {
            match self.buf.get(end..).and_then(<[u8]>::first_chunk) {
                Some(&[high @ 0xc0..=0xff, low]) => {
                    let to = u16::from_be_bytes([high & 0x3f, low]);
                    let known = self.targets.iter().flatten().take(usize::from(self.target_count));
                    parent = known.zip(0..).find(|(target, _)| target.at == to).map(|(_, index)| index);
                    end += 2;
                    break;
                }
                Some(&[len @ 1..=0xbf, _]) => {
                    *start = end as u16;
                    count += 1;
                    end += 1 + usize::from(len);
                }
                _ => {
                    end += 1;
                    break;
                }
            }
        }
        for &start in starts.get(..count).unwrap_or(&[]).iter().rev() {
            let Some(above) = parent else { break };
            let start = usize::from(start);
            let tag = self.buf.get(start..).map_or(0, |name| tag(name, 0));
            parent = self.remember(start, above, tag);
        }
        end
    }

    /// Returns where the first record begins.
    const fn body_at(&self) -> usize {
        match self.question_len {
            0 => Header::LEN,
            octets => Header::LEN + octets as usize + 4,
        }
    }

    /// Returns whether names other than the question's are or may become targets.
    pub const fn has_names(&self) -> bool {
        self.target_count > 0 || self.unknown.records_end != 0
    }

    /// Returns whether the only question is all that is written.
    pub const fn is_at_body(&self) -> bool {
        self.question_len > 0 && self.len == self.body_at()
    }

    /// Writes one record, its data by `rdata`. Sections must come in order.
    pub fn record(
        &mut self,
        section: Section,
        owner: Name<'_>,
        rtype: Rtype,
        class: Class,
        ttl: Ttl,
        rdata: impl FnOnce(&mut Self) -> Result<(), Full>,
    ) -> Result<(), Full> {
        self.atomically(|w| {
            w.name(owner)?;
            let [t0, t1] = rtype.0.to_be_bytes();
            let [c0, c1] = class.0.to_be_bytes();
            let [s0, s1, s2, s3] = ttl.seconds().to_be_bytes();
            w.bytes(&[t0, t1, c0, c1, s0, s1, s2, s3, 0, 0])?;
            let length_at = w.len - 2;
            rdata(w)?;
            let length = u16::try_from(w.len - length_at - 2).map_err(|_| Full)?;
            w.patch(length_at, &length.to_be_bytes());
            Ok(())
        })?;
        self.count(section, 1);
        Ok(())
    }

    const fn count(&mut self, section: Section, records: u16) {
        match section {
            Section::Answer => self.header.answers += records,
            Section::Authority => self.header.authorities += records,
            Section::Additional => self.header.additionals += records,
        }
    }

    /// Writes records that stand ready: owners are pointers to the question's name, names in the
    /// data are in full.
    pub fn ready(&mut self, section: Section, count: u16, records: &[u8]) -> Result<(), Full> {
        self.bytes(records)?;
        self.count(section, count);
        Ok(())
    }

    /// Writes records that stand ready but for their owner, which stands at `owner` in the message.
    pub fn ready_under(
        &mut self,
        section: Section,
        count: u16,
        records: &[u8],
        owner: u16,
    ) -> Result<(), Full> {
        let start = self.len;
        self.bytes(records)?;
        let pointer = (0xc000 | owner).to_be_bytes();
        let mut rest = self.buf.get_mut(start..self.len).unwrap_or(&mut []);
        while let Some((head, data)) = rest.split_first_chunk_mut::<RECORD_HEAD>() {
            let [o0, o1, .., l0, l1] = head;
            [*o0, *o1] = pointer;
            let len = u16::from_be_bytes([*l0, *l1]);
            rest = data.get_mut(usize::from(len)..).unwrap_or(&mut []);
        }
        self.count(section, count);
        Ok(())
    }

    /// Writes one record that stands ready but for its owner: these labels and a pointer to
    /// `above`.
    pub fn ready_below(
        &mut self,
        section: Section,
        record: &[u8],
        labels: &[u8],
        above: u16,
    ) -> Result<(), Full> {
        let data = record.get(2..).unwrap_or(&[]);
        if self.len + labels.len() + record.len() > self.limit {
            return Err(Full);
        }
        if self.unknown.below_at == 0 && self.len < POINTED_MAX {
            self.unknown.below_at = self.len as u16;
        }
        self.bytes(labels)?;
        self.bytes(&(0xc000 | above).to_be_bytes())?;
        self.bytes(data)?;
        self.count(section, 1);
        Ok(())
    }

    /// Returns what a pointer to the name at `at` should lead to, if one can.
    pub fn place_of(&self, at: usize) -> Option<u16> {
        match self.buf.get(at..).and_then(<[u8]>::first_chunk) {
            Some(&[high @ 0xc0..=0xff, low]) => Some(u16::from_be_bytes([high & 0x3f, low])),
            _ if at < POINTED_MAX => Some(at as u16),
            _ => None,
        }
    }

    /// Writes records directly behind the question, the names in their data cut where that was
    /// worked out beforehand. Their owner is the name of the question without its first `above`
    /// octets.
    pub fn shortened(
        &mut self,
        section: Section,
        count: u16,
        records: &[u8],
        cuts: &Cuts<'_>,
        above: u8,
    ) -> Result<(), Full> {
        let above = u16::from(above);
        let [o0, o1] = (0xc000 | (Header::LEN as u16 + above)).to_be_bytes();
        let mut rows = cuts.cuts.as_chunks::<CUT_OCTETS>().0.iter();
        let mut room = self.buf.get_mut(self.len..self.limit).ok_or(Full)?;
        let room_octets = room.len();
        let mut rest = records;
        while let Some((&[_, _, t0, t1, c0, c1, s0, s1, s2, s3, l0, l1], tail)) = rest.split_first_chunk() {
            let (data, after) =
                tail.split_at_checked(usize::from(u16::from_be_bytes([l0, l1]))).ok_or(Full)?;
            let (skipped, mut data) = data.split_at_checked(usize::from(cuts.skipped)).ok_or(Full)?;
            let (head, behind) = room.split_first_chunk_mut::<RECORD_HEAD>().ok_or(Full)?;
            let behind_octets = behind.len();
            let mut place = put(behind, skipped)?;
            for &[cut, len, p0, p1] in rows.by_ref().take(usize::from(cuts.names)) {
                let Some((name, next)) = data.split_at_checked(usize::from(len)) else { break };
                data = next;
                place = put(place, name.get(..usize::from(cut)).unwrap_or(name))?;
                if [p0, p1] != [0, 0] {
                    let (pointer, behind) = place.split_first_chunk_mut().ok_or(Full)?;
                    *pointer = (u16::from_be_bytes([p0, p1]) + above).to_be_bytes();
                    place = behind;
                }
            }
            place = put(place, data)?;
            let [l0, l1] = ((behind_octets - place.len()) as u16).to_be_bytes();
            *head = [o0, o1, t0, t1, c0, c1, s0, s1, s2, s3, l0, l1];
            (room, rest) = (place, after);
        }
        self.len += room_octets - room.len();
        self.unknown.records_end = self.len as u16;
        (self.unknown.skipped, self.unknown.names) = (cuts.skipped, cuts.names);
        self.count(section, count);
        Ok(())
    }

    /// Writes one record that stands ready but for `pointers`.
    pub fn ready_but_for(
        &mut self,
        section: Section,
        record: &[u8],
        pointers: &[Pointer],
        target: usize,
    ) -> Result<(), Full> {
        let start = self.len;
        if start + record.len() > POINTED_MAX {
            return Err(Full);
        }
        self.bytes(record)?;
        for pointer in pointers {
            let base = if pointer.is_own { start } else { target };
            let to = 0xc000 | (base as u16 + pointer.to);
            self.patch(start + usize::from(pointer.at), &to.to_be_bytes());
        }
        self.count(section, 1);
        Ok(())
    }

    /// Returns whether [`Writer::ready_but_for`] can write pointers into a record of so many octets
    /// here.
    pub const fn can_point(&self, record_octets: usize) -> bool {
        self.len + record_octets <= POINTED_MAX
    }

    /// Returns whether a pointer to the question stands for this name, letter case aside.
    #[inline]
    pub fn is_asked_for(&self, name: Name<'_>) -> bool {
        let len = usize::from(self.question_len);
        len == name.len()
            && self
                .buf
                .get(Header::LEN..Header::LEN + len)
                .is_some_and(|it| eq_ignore_case(it, name.as_bytes()))
    }

    /// Returns what [`Writer::take_back`] goes back to.
    pub const fn mark(&self) -> Mark {
        Mark { len: self.len, target_count: self.target_count, unknown: self.unknown, counts: self.counts() }
    }

    /// Takes back what was written since the mark.
    pub const fn take_back(&mut self, mark: Mark) {
        self.len = mark.len;
        self.target_count = mark.target_count;
        self.unknown = mark.unknown;
        [self.header.answers, self.header.authorities, self.header.additionals] = mark.counts;
    }

    /// Takes back all that was written after the question.
    pub const fn take_back_all(&mut self) {
        let unknown = if self.question_len > 0 { Unknown::QUESTION } else { Unknown::NONE };
        self.take_back(Mark { len: self.body_at(), target_count: 0, unknown, counts: [0; 3] });
    }

    /// Returns how many records the answer, authority and additional sections have.
    pub const fn counts(&self) -> [u16; 3] {
        [self.header.answers, self.header.authorities, self.header.additionals]
    }

    /// Writes the OPT record; `rcode` gives its upper bits, `options` writes the options.
    pub fn opt(
        &mut self,
        udp_size: u16,
        rcode: Rcode,
        wants_dnssec: bool,
        options: impl FnOnce(&mut Self) -> Result<(), Full>,
    ) -> Result<(), Full> {
        self.atomically(|w| {
            let [s0, s1] = udp_size.to_be_bytes();
            let flags = if wants_dnssec { 0x80 } else { 0 };
            w.bytes(&[0, 0, 41, s0, s1, (rcode.0 >> 4) as u8, 0, flags, 0])?;
            let length_at = w.len;
            w.bytes(&[0, 0])?;
            options(w)?;
            let length = u16::try_from(w.len - length_at - 2).map_err(|_| Full)?;
            w.patch(length_at, &length.to_be_bytes());
            Ok(())
        })?;
        self.header.additionals += 1;
        Ok(())
    }

    /// Writes one EDNS option (inside [`Writer::opt`]).
    pub fn option(&mut self, code: OptionCode, data: &[u8]) -> Result<(), Full> {
        self.bytes(&code.0.to_be_bytes())?;
        self.bytes(&u16::try_from(data.len()).map_err(|_| Full)?.to_be_bytes())?;
        self.bytes(data)
    }

    /// Writes octets as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let end = self.len + bytes.len();
        if end > self.limit {
            return Err(Full);
        }
        self.buf.get_mut(self.len..end).ok_or(Full)?.copy_from_slice(bytes);
        self.len = end;
        Ok(())
    }

    /// Writes a name, its known suffix as a pointer.
    pub fn name(&mut self, name: Name<'_>) -> Result<(), Full> {
        let bytes = name.as_bytes();
        // Most owners are the question's name.
        if bytes.len() > 1 && self.is_asked_for(name) {
            return self.bytes(&[0xc0, Header::LEN as u8]);
        }
        if self.unknown.is_any() {
            self.remember_unknown();
        }
        let mut starts = [0_u8; LABELS_MAX];
        let mut count = 0;
        let mut at = 0;
        // Ends: a name is at most 255 octets and has at most `LABELS_MAX` labels.
        for (start, label) in starts.iter_mut().zip(name.labels()) {
            *start = at;
            at = at.wrapping_add(1 + label.len() as u8);
            count += 1;
        }
        // From the right, as long as the labels are known.
        let starts = starts.get(..count).unwrap_or(&[]);
        let mut known = ROOT;
        let mut new = starts;
        while let Some((&start, before)) = new.split_last() {
            let Some(child) = self.find(known, bytes, start) else { break };
            (known, new) = (child, before);
        }
        let head_len = starts.get(new.len()).map_or(bytes.len() - 1, |&start| usize::from(start));
        let head = bytes.get(..head_len).unwrap_or(&[]);
        let base = self.len;
        match self.targets.as_ref().and_then(|targets| targets.get(usize::from(known))) {
            Some(target) => {
                let pointer = (0xc000 | target.at).to_be_bytes();
                self.pair(head, &pointer)?;
            }
            None => self.pair(head, &[0])?,
        }
        let mut parent = known;
        for &start in new.iter().rev() {
            match self.remember(base + usize::from(start), parent, tag(bytes, start)) {
                Some(target) => parent = target,
                None => break,
            }
        }
        Ok(())
    }

    /// Writes a name in full (data of types that RFC 3597 §4 forbids to compress).
    pub fn name_uncompressed(&mut self, name: Name<'_>) -> Result<(), Full> {
        self.bytes(name.as_bytes())
    }

    /// Ends the message and returns its octets.
    pub fn finish(mut self) -> usize {
        let header = self.header.to_bytes();
        self.patch(0, &header);
        self.len
    }

    fn patch(&mut self, at: usize, bytes: &[u8]) {
        if let Some(room) = self.buf.get_mut(at..at + bytes.len()) {
            room.copy_from_slice(bytes);
        }
    }

    /// Runs `f`; takes back what it wrote if it fails.
    fn atomically(&mut self, f: impl FnOnce(&mut Self) -> Result<(), Full>) -> Result<(), Full> {
        let (len, targets, unknown) = (self.len, self.target_count, self.unknown);
        f(self).inspect_err(|_| {
            self.len = len;
            self.target_count = targets;
            self.unknown = unknown;
        })
    }

    /// Writes both or neither.
    fn pair(&mut self, first: &[u8], second: &[u8]) -> Result<(), Full> {
        if self.len + first.len() + second.len() > self.limit {
            return Err(Full);
        }
        self.bytes(first)?;
        self.bytes(second)
    }

    fn remember(&mut self, at: usize, parent: u8, tag: u8) -> Option<u8> {
        // A pointer holds 14 bits.
        if at >= POINTED_MAX {
            return None;
        }
        let index = self.target_count;
        let targets = self.targets.get_or_insert([Target { at: 0, parent: 0, tag: 0 }; TARGETS_MAX]);
        *targets.get_mut(usize::from(index))? = Target { at: at as u16, parent, tag };
        self.target_count += 1;
        Some(index)
    }

    /// Finds the label at `start` of `name` among those written directly below `parent`.
    fn find(&mut self, parent: u8, name: &[u8], start: u8) -> Option<u8> {
        self.searches_left = self.searches_left.checked_sub(1)?;
        let tag = tag(name, start);
        let targets = self.targets.as_ref()?.get(..usize::from(self.target_count))?;
        let rest = name.get(usize::from(start)..)?;
        let label = rest.get(..1 + usize::from(*rest.first()?))?;
        let index = targets.iter().position(|target| {
            let at = usize::from(target.at);
            target.parent == parent
                && target.tag == tag
                && self.buf.get(at..at + label.len()).is_some_and(|there| eq_ignore_case(there, label))
        })?;
        Some(index as u8)
    }
}

/// Writes octets to the begin of `room`; returns what is left of it.
#[inline]
fn put<'r>(room: &'r mut [u8], octets: &[u8]) -> Result<&'r mut [u8], Full> {
    if octets.is_empty() {
        return Ok(room);
    }
    let (place, rest) = room.split_at_mut_checked(octets.len()).ok_or(Full)?;
    place.copy_from_slice(octets);
    Ok(rest)
}

/// Sums up a label's length and ends without regard to case, so that most labels need no
/// comparison.
fn tag(name: &[u8], start: u8) -> u8 {
    let at = usize::from(start);
    let len = name.get(at).copied().unwrap_or(0);
    let first = name.get(at + 1).copied().unwrap_or(0) & 0x1f;
    let last = name.get(at + usize::from(len)).copied().unwrap_or(0) & 0x1f;
    len.wrapping_mul(5) ^ first ^ (last << 3)
}
