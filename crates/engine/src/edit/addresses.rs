//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Addresses in an answer: looking at them, and making IPv6 addresses of IPv4 ones (DNS64, RFC 6147).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::{Full, Rtype, Section, Ttl};

use super::{Draft, Place, params, put_record};

/// Returns the address that an A or AAAA record holds.
pub fn is_address(message: &[u8], place: &Place) -> Option<IpAddr> {
    address(place.rtype, place.rdata(message))
}

/// Returns the address in the data of an A or AAAA record.
pub(super) fn address(rtype: Rtype, rdata: &[u8]) -> Option<IpAddr> {
    match rtype {
        Rtype::A => <[u8; 4]>::try_from(rdata).ok().map(IpAddr::from),
        Rtype::AAAA => <[u8; 16]>::try_from(rdata).ok().map(IpAddr::from),
        _ => None,
    }
}

/// Returns the IPv4 address that an IPv6 address stands for: IPv4-mapped (RFC 4291 §2.5.5.2), the well-known NAT64
/// prefix (RFC 6052 §2.1) or 6to4 (RFC 3056 §2).
pub fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = address.to_bits();
    const MAPPED: u128 = 0xffff;
    const NAT64: u128 = 0x0064_ff9b_0000_0000_0000_0000;
    match bits >> 32 {
        MAPPED | NAT64 => Some(Ipv4Addr::from_bits(bits as u32)),
        _ if bits >> 112 == 0x2002 => Some(Ipv4Addr::from_bits((bits >> 80) as u32)),
        _ => None,
    }
}

impl Draft<'_> {
    /// Returns whether `f` holds for an address of the answer: in A, AAAA and the hints of SVCB and HTTPS, in any section.
    pub fn has_address(&self, f: impl Fn(IpAddr) -> bool) -> bool {
        self.any(|message, place| match place.rtype {
            Rtype::A | Rtype::AAAA => is_address(message, place).is_some_and(&f),
            Rtype::SVCB | Rtype::HTTPS => params::hints(place.rdata(message), &f),
            _ => false,
        })
    }

    /// Turns the answer to a question for A into one for AAAA: each IPv4 address becomes the IPv6 address behind
    /// `prefix`, with a TTL of at most `ttl_max`. Signatures go, because they are for other data (RFC 6147 §5.5).
    pub fn synthesise(&mut self, prefix: &Prefix64, ttl_max: Ttl) -> Result<(), Full> {
        self.rebuild(|_, record, writer| {
            if record.rtype == Rtype::RRSIG && record.section == Section::Answer {
                return Ok(());
            }
            let v4 = match record.section {
                Section::Answer => address(record.rtype, record.rdata),
                Section::Authority | Section::Additional => None,
            };
            let Some(IpAddr::V4(v4)) = v4 else { return put_record(writer, record, None) };
            let owner = record.owner.expand().map_err(|_| Full)?;
            let ttl = record.ttl().min(ttl_max);
            writer.record(record.section, owner.as_name(), Rtype::AAAA, record.class, ttl, |writer| {
                writer.bytes(&prefix.embed(v4).octets())
            })
        })
    }
}

/// A prefix behind which IPv4 addresses are reached from IPv6 (RFC 6052 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix64 {
    bits: u128,
    length: u8,
}

impl Prefix64 {
    /// The well-known prefix, `64:ff9b::/96`.
    pub const WELL_KNOWN: Self = Self { bits: 0x0064_ff9b << 96, length: 96 };

    /// Returns the prefix; `None` unless its length is 32, 40, 48, 56, 64 or 96, all later bits are zero, and so are
    /// bits 64 to 71.
    pub fn new(address: Ipv6Addr, length: u8) -> Option<Self> {
        let bits = address.to_bits();
        let is_sound = matches!(length, 32 | 40 | 48 | 56 | 64 | 96)
            && bits.checked_shl(u32::from(length)).unwrap_or(0) == 0
            && bits >> 56 & 0xff == 0;
        is_sound.then_some(Self { bits, length })
    }

    /// Returns the IPv6 address for an IPv4 address.
    pub fn embed(&self, address: Ipv4Addr) -> Ipv6Addr {
        let v4 = u128::from(address.to_bits());
        let bits = match self.length {
            96 => v4,
            // The address is split around bits 64 to 71, which stay zero.
            length @ 40..=63 => {
                let before = u32::from(64 - length);
                let high = v4 >> (32 - before);
                let low = v4 & ((1 << (32 - before)) - 1);
                high << 64 | low << (56 - (32 - before))
            }
            64 => v4 << 24,
            _ => v4 << 64,
        };
        Ipv6Addr::from_bits(self.bits | bits)
    }

    /// Returns the IPv4 address in an IPv6 address behind this prefix.
    pub fn extract(&self, address: Ipv6Addr) -> Option<Ipv4Addr> {
        let bits = address.to_bits();
        if (bits ^ self.bits) >> (128 - u32::from(self.length)) != 0 {
            return None;
        }
        let v4 = match self.length {
            96 => bits,
            length @ 40..=63 => {
                let before = u32::from(64 - length);
                let high = bits >> 64 & ((1 << before) - 1);
                let low = bits >> (56 - (32 - before)) & ((1 << (32 - before)) - 1);
                high << (32 - before) | low
            }
            64 => bits >> 24,
            _ => bits >> 64,
        };
        Some(Ipv4Addr::from_bits(v4 as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_embedded_as_in_rfc_6052() {
        // RFC 6052 §2.4, with a documentation prefix as there.
        for (prefix, length, expected) in [
            ("2001:db8::", 32, "2001:db8:c000:221::"),
            ("2001:db8:100::", 40, "2001:db8:1c0:2:21::"),
            ("2001:db8:122::", 48, "2001:db8:122:c000:2:2100::"),
            ("2001:db8:122:300::", 56, "2001:db8:122:3c0:0:221::"),
            ("2001:db8:122:344::", 64, "2001:db8:122:344:c0:2:2100::"),
            ("2001:db8:122:344::", 96, "2001:db8:122:344::192.0.2.33"),
            ("64:ff9b::", 96, "64:ff9b::192.0.2.33"),
        ] {
            let prefix = Prefix64::new(prefix.parse().expect("an address"), length).expect("a prefix");
            let v4 = Ipv4Addr::new(192, 0, 2, 33);
            let v6: Ipv6Addr = expected.parse().expect("an address");
            assert_eq!((prefix.embed(v4), prefix.extract(v6)), (v6, Some(v4)), "{expected}");
        }
        assert_eq!(Prefix64::new("64:ff9b::".parse().expect("an address"), 96), Some(Prefix64::WELL_KNOWN));
        assert_eq!(Prefix64::WELL_KNOWN.extract("2001:db8::1".parse().expect("an address")), None);
        for (prefix, length) in [("2001:db8::", 33), ("2001:db8::1", 64), ("2001:db8:0:0:100::", 96)] {
            assert_eq!(Prefix64::new(prefix.parse().expect("an address"), length), None, "{prefix}/{length}");
        }
    }

    #[test]
    fn ipv4_addresses_hide_in_ipv6_ones() {
        for (text, expected) in [
            ("::ffff:10.0.0.1", Some([10, 0, 0, 1])),
            ("64:ff9b::10.0.0.1", Some([10, 0, 0, 1])),
            ("2002:a00:1::5", Some([10, 0, 0, 1])),
            ("2001:db8::1", None),
            ("::1", None),
        ] {
            let found = embedded(text.parse().expect("an address"));
            assert_eq!(found, expected.map(Ipv4Addr::from), "{text}");
        }
    }
}
