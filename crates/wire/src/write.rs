//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Writes messages into a caller's buffer, with name compression (RFC 1035 §4.1.4).

use crate::header::{Flags, Header};
use crate::message::Section;
use crate::name::Name;
use crate::numbers::{Class, OptionCode, Rcode, Rtype, Ttl};
use crate::query::Question;

/// The record or option did not fit; nothing of it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Names remembered as targets of compression; later ones are written out in full.
const TARGETS_MAX: usize = 32;

/// Writes one message front to back: question, then sections in order, then OPT.
///
/// What does not fit within the limit is not written at all; the caller decides about TC.
pub struct Writer<'b> {
    buf: &'b mut [u8],
    len: usize,
    limit: usize,
    header: Header,
    targets: [u16; TARGETS_MAX],
    target_count: usize,
}

impl<'b> Writer<'b> {
    /// Begins a message of at most `limit` octets (and never more than `buf` holds).
    pub fn new(buf: &'b mut [u8], limit: usize, id: u16, flags: Flags) -> Self {
        let limit = limit.min(buf.len()).min(usize::from(u16::MAX));
        let header = Header { id, flags, ..Header::default() };
        Self { buf, len: Header::LEN, limit, header, targets: [0; TARGETS_MAX], target_count: 0 }
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
        self.atomically(|w| {
            w.name(question.qname)?;
            w.bytes(&question.qtype.0.to_be_bytes())?;
            w.bytes(&question.qclass.0.to_be_bytes())
        })?;
        self.header.questions += 1;
        Ok(())
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
            w.bytes(&rtype.0.to_be_bytes())?;
            w.bytes(&class.0.to_be_bytes())?;
            w.bytes(&ttl.seconds().to_be_bytes())?;
            let length_at = w.len;
            w.bytes(&[0, 0])?;
            rdata(w)?;
            let length = u16::try_from(w.len - length_at - 2).map_err(|_| Full)?;
            w.patch(length_at, &length.to_be_bytes());
            Ok(())
        })?;
        match section {
            Section::Answer => self.header.answers += 1,
            Section::Authority => self.header.authorities += 1,
            Section::Additional => self.header.additionals += 1,
        }
        Ok(())
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
        let mut rest = name;
        while !rest.is_root() {
            if let Some(target) = self.find(rest) {
                return self.bytes(&(0xc000 | target).to_be_bytes());
            }
            self.remember();
            let Some(parent) = rest.parent() else { break };
            let label = rest.as_bytes().get(..rest.len() - parent.len()).unwrap_or(&[]);
            self.bytes(label)?;
            rest = parent;
        }
        self.bytes(&[0])
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
        let (len, targets) = (self.len, self.target_count);
        f(self).inspect_err(|_| {
            self.len = len;
            self.target_count = targets;
        })
    }

    fn remember(&mut self) {
        // A pointer holds 14 bits.
        if self.len < 0x4000
            && let Some(slot) = self.targets.get_mut(self.target_count)
        {
            *slot = self.len as u16;
            self.target_count += 1;
        }
    }

    fn find(&self, name: Name<'_>) -> Option<u16> {
        let written = self.buf.get(..self.len)?;
        let targets = self.targets.get(..self.target_count)?;
        targets.iter().copied().find(|&at| is_same(written, usize::from(at), name))
    }
}

/// Returns whether the name written at `at` equals `name`, letter case ignored.
fn is_same(written: &[u8], mut at: usize, name: Name<'_>) -> bool {
    let mut rest = name.as_bytes();
    // Ends: every step either follows a pointer backwards or shortens `rest`.
    loop {
        let Some(&len) = written.get(at) else { return false };
        if len >= 0xc0 {
            let Some(&low) = written.get(at + 1) else { return false };
            let target = (usize::from(len & 0x3f) << 8) | usize::from(low);
            if target >= at {
                return false;
            }
            at = target;
            continue;
        }
        let size = 1 + usize::from(len);
        let (Some(there), Some(here)) = (written.get(at..at + size), rest.get(..size)) else { return false };
        if !there.eq_ignore_ascii_case(here) {
            return false;
        }
        if len == 0 {
            return true;
        }
        at += size;
        rest = rest.get(size..).unwrap_or(&[]);
    }
}
