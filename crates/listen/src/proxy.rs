//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The PROXY protocol, version 2: how a load balancer says whom it speaks for.
//! (<https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt>, section 2.2)

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What every header begins with.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// Octets before the addresses.
const FIXED_OCTETS: usize = 16;

/// The most octets of a header that are accepted, so that a peer cannot make us hold much:
/// addresses take 36, the rest are extensions.
pub const HEADER_OCTETS_MAX: usize = 1024;

/// Whom a header speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The peer itself: a health check (LOCAL), or a client without an IP address.
    Peer,
    /// A client behind the peer.
    Client {
        /// Its address; IPv4-mapped ones are given as IPv4.
        address: IpAddr,
        /// Its port.
        port: u16,
        /// Whether it came over a connection: then the address is not forged, as far as the peer
        /// can be trusted.
        stream: bool,
    },
}

/// Why bytes do not begin with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// They may, when more have come.
    Incomplete,
    /// They never will.
    Malformed,
}

/// Reads a header; returns whom it speaks for and what follows it.
///
/// Extensions (TLVs) are skipped. The transport in the header is the one between client and proxy:
/// dnsdist asks over UDP for clients that came over TCP or HTTPS, so it need not be ours.
pub fn parse(bytes: &[u8]) -> Result<(Source, &[u8]), Unread> {
    let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED_OCTETS>() else {
        let common = bytes.len().min(SIGNATURE.len());
        let begins = bytes.get(..common) == SIGNATURE.get(..common);
        return Err(if begins { Unread::Incomplete } else { Unread::Malformed });
    };
    let (signature, &[version_command, family, l0, l1]) = fixed.split_at(SIGNATURE.len()) else {
        return Err(Unread::Malformed);
    };
    let len = usize::from(u16::from_be_bytes([l0, l1]));
    if signature != SIGNATURE || version_command >> 4 != 2 || FIXED_OCTETS + len > HEADER_OCTETS_MAX {
        return Err(Unread::Malformed);
    }
    let (body, after) = rest.split_at_checked(len).ok_or(Unread::Incomplete)?;
    let source = match version_command & 0xf {
        0 => Source::Peer,
        1 => client(family, body).ok_or(Unread::Malformed)?,
        _ => return Err(Unread::Malformed),
    };
    Ok((source, after))
}

/// Reads the address block: source, destination, source port, destination port.
fn client(family: u8, body: &[u8]) -> Option<Source> {
    let stream = match family & 0xf {
        0 | 2 => false,
        1 => true,
        _ => return None,
    };
    let (address, port) = match family >> 4 {
        // Unspecified, and Unix sockets: no address that policy could use.
        0 | 3 => return Some(Source::Peer),
        1 => {
            let (&[a, b, c, d], rest) = body.split_first_chunk::<4>()?;
            let (_destination, rest) = rest.split_first_chunk::<4>()?;
            (IpAddr::V4(Ipv4Addr::new(a, b, c, d)), rest.first_chunk::<4>()?)
        }
        2 => {
            let (address, rest) = body.split_first_chunk::<16>()?;
            let (_destination, rest) = rest.split_first_chunk::<16>()?;
            (IpAddr::V6(Ipv6Addr::from(*address)), rest.first_chunk::<4>()?)
        }
        _ => return None,
    };
    let &[p0, p1, _, _] = port;
    Some(Source::Client { address: address.to_canonical(), port: u16::from_be_bytes([p0, p1]), stream })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([0x20 | command, family]);
        bytes.extend(u16::try_from(body.len()).expect("a short body").to_be_bytes());
        bytes.extend(body);
        bytes
    }

    fn v4_body() -> Vec<u8> {
        [&[192, 0, 2, 1][..], &[198, 51, 100, 1], &[0x12, 0x34], &[0, 53]].concat()
    }

    fn client(address: &str, port: u16, stream: bool) -> Source {
        Source::Client { address: address.parse().expect("an address"), port, stream }
    }

    fn check(bytes: &[u8], expect: Result<(Source, &[u8]), Unread>) {
        assert_eq!(parse(bytes), expect, "{bytes:02x?}");
    }

    #[test]
    fn clients_are_read_and_extensions_skipped() {
        let v4 = [&v4_body()[..], &[0x04, 0, 1, 0]].concat();
        let bytes = [&header(1, 0x12, &v4)[..], b"query"].concat();
        check(&bytes, Ok((client("192.0.2.1", 0x1234, false), b"query")));
        check(&header(1, 0x11, &v4_body()), Ok((client("192.0.2.1", 0x1234, true), b"")));

        let mut v6 = [0u8; 36];
        v6[..16].copy_from_slice(&"2001:db8::7".parse::<Ipv6Addr>().expect("an address").octets());
        v6[32..34].copy_from_slice(&853u16.to_be_bytes());
        check(&header(1, 0x21, &v6), Ok((client("2001:db8::7", 853, true), b"")));
        v6[..16].copy_from_slice(&"::ffff:192.0.2.7".parse::<Ipv6Addr>().expect("an address").octets());
        check(&header(1, 0x22, &v6), Ok((client("192.0.2.7", 853, false), b"")));
    }

    #[test]
    fn local_unspecified_and_unix_mean_the_peer_itself() {
        check(&header(0, 0x00, b""), Ok((Source::Peer, b"")));
        check(&header(0, 0x11, &v4_body()), Ok((Source::Peer, b"")));
        check(&header(0, 0xff, b"anything"), Ok((Source::Peer, b"")));
        check(&header(1, 0x00, b""), Ok((Source::Peer, b"")));
        check(&header(1, 0x31, &[0; 216]), Ok((Source::Peer, b"")));
    }

    #[test]
    fn what_is_no_header_is_refused_as_early_as_possible() {
        check(b"", Err(Unread::Incomplete));
        check(b"\r\n\r\n", Err(Unread::Incomplete));
        check(b"\r\nX", Err(Unread::Malformed));
        check(b"PROXY TCP4 192.0.2.1", Err(Unread::Malformed));
        let whole = header(1, 0x11, &v4_body());
        for cut in 0..whole.len() {
            check(&whole[..cut], Err(Unread::Incomplete));
        }
        check(&header(2, 0x11, &v4_body()), Err(Unread::Malformed));
        check(&header(1, 0x41, &v4_body()), Err(Unread::Malformed));
        check(&header(1, 0x13, &v4_body()), Err(Unread::Malformed));
        check(&header(1, 0x11, &v4_body()[..11]), Err(Unread::Malformed));
        check(&header(1, 0x21, &[0; 35]), Err(Unread::Malformed));
        let mut version_1 = whole;
        version_1[12] = 0x11;
        check(&version_1, Err(Unread::Malformed));
        check(&header(0, 0, &[0; HEADER_OCTETS_MAX])[..FIXED_OCTETS], Err(Unread::Malformed));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), command: u8, family: u8) {
            let _ = parse(&bytes);
            let _ = parse(&header(command & 0xf, family, &bytes));
        }
    }
}
