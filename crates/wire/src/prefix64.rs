//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! IPv6 prefixes behind which IPv4 addresses stand.

use std::net::IpAddr;

use crate::prefix::Prefix;

/// A prefix that IPv4 addresses are embedded in (RFC 6052 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix64 {
    bits: u128,
    length: u8,
}

impl Prefix64 {
    /// `64:ff9b::/96`.
    pub const WELL_KNOWN: Self = Self { bits: 0x0064_ff9b << 96, length: 96 };

    /// Returns the prefix; `None` unless its length is 32, 40, 48, 56, 64 or 96 and everything
    /// after it zero.
    pub const fn new(bits: u128, length: u8) -> Option<Self> {
        if matches!(length, 32 | 40 | 48 | 56 | 64 | 96)
            && bits & (u128::MAX >> length) == 0
            && bits >> 56 & 0xff == 0
        {
            Some(Self { bits, length })
        } else {
            None
        }
    }

    /// Returns the prefix that `prefix` is; `None` if it cannot hold IPv4 addresses.
    pub const fn of(prefix: Prefix) -> Option<Self> {
        match prefix.address() {
            IpAddr::V6(address) => Self::new(address.to_bits(), prefix.bits()),
            IpAddr::V4(_) => None,
        }
    }

    /// Returns `address` behind the prefix. Bits 64 to 71 stay zero: the address goes around them.
    pub const fn embed(self, address: u32) -> u128 {
        let before = if self.length >= 64 { 0 } else { 64 - self.length as u32 };
        let address = address as u128;
        if self.length == 96 {
            return self.bits | address;
        }
        // The upper bits fill what is left of the first half, the rest starts after the zero octet.
        let high = if before == 0 {
            0
        } else if before >= 32 {
            address << (before - 32)
        } else {
            address >> (32 - before)
        };
        let low_bits = 32_u32.saturating_sub(before);
        let low =
            if low_bits == 0 { 0 } else { (address & (u128::MAX >> (128 - low_bits))) << (56 - low_bits) };
        self.bits | high << 64 | low
    }

    /// Returns the address that is embedded in `address`.
    pub const fn extract(self, address: u128) -> Option<u32> {
        if address & !(u128::MAX >> self.length) != self.bits {
            return None;
        }
        if self.length == 96 {
            return Some(address as u32);
        }
        // Take the zero octet out; then the address stands right after the prefix.
        let first = address >> 64;
        let second = address << 72 >> 72;
        if address >> 56 & 0xff != 0 {
            return None;
        }
        let joined = first << 56 | second;
        Some((joined >> (120 - self.length as u32 - 32)) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    fn prefix(text: &str, length: u8) -> Prefix64 {
        let address: Ipv6Addr = text.parse().expect("an address");
        Prefix64::new(address.to_bits(), length).expect("a prefix for addresses")
    }

    #[test]
    fn addresses_are_embedded_as_rfc_6052_shows() {
        // RFC 6052 §2.4, table 1; the last is the well-known prefix.
        for (text, length, expected) in [
            ("2001:db8::", 32, "2001:db8:c000:221::"),
            ("2001:db8:100::", 40, "2001:db8:1c0:2:21::"),
            ("2001:db8:122::", 48, "2001:db8:122:c000:2:2100::"),
            ("2001:db8:122:300::", 56, "2001:db8:122:3c0:0:221::"),
            ("2001:db8:122:344::", 64, "2001:db8:122:344:c0:2:2100::"),
            ("2001:db8:122:344::", 96, "2001:db8:122:344::c000:221"),
            ("64:ff9b::", 96, "64:ff9b::c000:221"),
        ] {
            let prefix = prefix(text, length);
            let embedded = Ipv6Addr::from_bits(prefix.embed(0xc000_0221));
            assert_eq!(Ok(embedded), expected.parse(), "{text}/{length}");
            assert_eq!(prefix.extract(embedded.to_bits()), Some(0xc000_0221), "{text}/{length}");
            assert_eq!(prefix.extract(0x2001 << 112), None);
        }
        assert_eq!(prefix("64:ff9b::", 96), Prefix64::WELL_KNOWN);
        assert_eq!(Prefix64::new(0x0064_ff9b << 96, 95), None);
        assert_eq!(Prefix64::new(1, 96), None, "bits after the prefix");
        assert_eq!(Prefix64::new(0xff << 56, 96), None, "the octet that must be zero");
    }
}
