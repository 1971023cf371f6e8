//! The twelve octets every message begins with (RFC 1035 §4.1.1).

use crate::numbers::{Opcode, Rcode};

/// The second 16-bit word of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u16);

impl Flags {
    /// Response.
    pub const QR: Self = Self(0x8000);
    /// Authoritative answer.
    pub const AA: Self = Self(0x0400);
    /// Truncated.
    pub const TC: Self = Self(0x0200);
    /// Recursion desired.
    pub const RD: Self = Self(0x0100);
    /// Recursion available.
    pub const RA: Self = Self(0x0080);
    /// Authentic data (RFC 4035 §3.2.3).
    pub const AD: Self = Self(0x0020);
    /// Checking disabled (RFC 4035 §3.2.2).
    pub const CD: Self = Self(0x0010);

    /// Returns whether every bit of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns these flags with the bits of `other` set.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns these flags with the bits of `other` clear.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns only the bits that are also in `mask`.
    #[must_use]
    pub const fn only(self, mask: Self) -> Self {
        Self(self.0 & mask.0)
    }

    /// Returns the operation code.
    pub const fn opcode(self) -> Opcode {
        Opcode(((self.0 >> 11) & 0xf) as u8)
    }

    /// Returns these flags with the operation code replaced.
    #[must_use]
    pub const fn with_opcode(self, opcode: Opcode) -> Self {
        Self((self.0 & !0x7800) | ((opcode.0 as u16 & 0xf) << 11))
    }

    /// Returns the low four bits of the response code; EDNS holds the rest.
    pub const fn rcode(self) -> Rcode {
        Rcode(self.0 & 0xf)
    }

    /// Returns these flags with the low four bits of `rcode`.
    #[must_use]
    pub const fn with_rcode(self, rcode: Rcode) -> Self {
        Self((self.0 & !0xf) | (rcode.0 & 0xf))
    }
}

/// A message header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Identifier, chosen by the client.
    pub id: u16,
    /// Flags, operation code, response code.
    pub flags: Flags,
    /// Entries in the question section.
    pub questions: u16,
    /// Records in the answer section.
    pub answers: u16,
    /// Records in the authority section.
    pub authorities: u16,
    /// Records in the additional section.
    pub additionals: u16,
}

impl Header {
    /// Octets of a header.
    pub const LEN: usize = 12;

    /// Reads a header; `None` if there are fewer than twelve octets.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (head, _) = bytes.split_first_chunk::<12>()?;
        let [i0, i1, f0, f1, q0, q1, a0, a1, n0, n1, r0, r1] = *head;
        Some(Self {
            id: u16::from_be_bytes([i0, i1]),
            flags: Flags(u16::from_be_bytes([f0, f1])),
            questions: u16::from_be_bytes([q0, q1]),
            answers: u16::from_be_bytes([a0, a1]),
            authorities: u16::from_be_bytes([n0, n1]),
            additionals: u16::from_be_bytes([r0, r1]),
        })
    }

    /// Returns the header in wire form.
    pub fn to_bytes(self) -> [u8; 12] {
        let mut out = [0; 12];
        let words = [self.id, self.flags.0, self.questions, self.answers, self.authorities, self.additionals];
        for (chunk, word) in out.chunks_exact_mut(2).zip(words) {
            chunk.copy_from_slice(&word.to_be_bytes());
        }
        out
    }
}
