//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! EDNS(0): the OPT record and its options (RFC 6891).

use crate::numbers::OptionCode;

/// What an OPT record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edns<'a> {
    /// The largest UDP payload the sender takes, as sent (values below 512 mean 512).
    pub udp_size: u16,
    /// The upper eight bits of the response code.
    pub extended_rcode: u8,
    /// The version; only 0 is defined.
    pub version: u8,
    /// The flags word; DO is the top bit.
    pub flags: u16,
    options: &'a [u8],
}

impl<'a> Edns<'a> {
    /// Reads an OPT record's class, TTL and RDATA; `None` when an option overruns.
    pub fn parse(class: u16, ttl: u32, rdata: &'a [u8]) -> Option<Self> {
        let mut rest = rdata;
        while !rest.is_empty() {
            rest = split_option(rest)?.1;
        }
        let [extended_rcode, version, f0, f1] = ttl.to_be_bytes();
        Some(Self {
            udp_size: class,
            extended_rcode,
            version,
            flags: u16::from_be_bytes([f0, f1]),
            options: rdata,
        })
    }

    /// Returns whether the sender wants DNSSEC records (DO, RFC 3225).
    pub const fn wants_dnssec(&self) -> bool {
        self.flags & 0x8000 != 0
    }

    /// Returns whether the sender takes NXDOMAIN with a proof that a name has nothing (CO, RFC 9824
    /// §5.1).
    pub const fn takes_compact(&self) -> bool {
        self.flags & 0x4000 != 0
    }

    /// Returns the options as they came, in a row.
    pub const fn options_bytes(&self) -> &'a [u8] {
        self.options
    }

    /// Walks the options in the order they came.
    pub fn options(&self) -> impl Iterator<Item = EdnsOption<'a>> + use<'a> {
        let mut rest = self.options;
        std::iter::from_fn(move || {
            let (option, after) = split_option(rest)?;
            rest = after;
            Some(option)
        })
    }

    /// Returns the data of the first option with this code.
    pub fn option(&self, code: OptionCode) -> Option<&'a [u8]> {
        self.options().find(|option| option.code == code).map(|option| option.data)
    }
}

/// One EDNS option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdnsOption<'a> {
    /// What it is.
    pub code: OptionCode,
    /// Its data.
    pub data: &'a [u8],
}

fn split_option(bytes: &[u8]) -> Option<(EdnsOption<'_>, &[u8])> {
    let (&[c0, c1, l0, l1], rest) = bytes.split_first_chunk::<4>()?;
    let (data, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([l0, l1])))?;
    Some((EdnsOption { code: OptionCode(u16::from_be_bytes([c0, c1])), data }, rest))
}
