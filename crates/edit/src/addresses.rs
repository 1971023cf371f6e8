//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Addresses in an answer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::Rtype;

use super::{Draft, Place, params};

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

/// Returns the IPv4 address that an IPv6 address stands for: IPv4-mapped (RFC 4291 §2.5.5.2), the
/// well-known NAT64 prefix (RFC 6052 §2.1) or 6to4 (RFC 3056 §2).
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
    /// Returns whether `f` holds for an address of the answer: in A, AAAA and the hints of SVCB and
    /// HTTPS, in any section; of the records that `counts`.
    pub fn has_address(&self, counts: impl Fn(&[u8], &Place) -> bool, f: impl Fn(IpAddr) -> bool) -> bool {
        self.any(|message, place| {
            let has = match place.rtype {
                Rtype::A | Rtype::AAAA => is_address(message, place).is_some_and(&f),
                Rtype::SVCB | Rtype::HTTPS => params::hints(place.rdata(message), &f),
                _ => false,
            };
            has && counts(message, place)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
