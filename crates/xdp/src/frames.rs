//! Frames made by hand, for tests: right ones, and wrong in every way that matters.

use std::net::SocketAddr;

use crate::headers::Mac;

/// What a frame is made of. Nothing is checked; lengths and checksums are right unless told
/// otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    pub(crate) source_mac: Mac,
    pub(crate) destination_mac: Mac,
    pub(crate) tags: Vec<u16>,
    pub(crate) ihl: u8,
    pub(crate) fragment: u16,
    pub(crate) traffic_class: u8,
    pub(crate) hops: u8,
    pub(crate) protocol: u8,
    pub(crate) udp_octets: Option<u16>,
    pub(crate) udp_checksum: Option<u16>,
    pub(crate) spoilt_ip_checksum: bool,
    pub(crate) payload: Vec<u8>,
    /// Octets behind the packet.
    pub(crate) padding: usize,
    /// Octets missing at the end.
    pub(crate) cut: usize,
}

/// A query for `example.org`, type A.
pub(crate) const QUERY: &[u8] =
    b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03org\x00\x00\x01\x00\x01";

/// A plain query over IPv4.
pub(crate) fn query_v4() -> Frame {
    Frame {
        source: "192.0.2.1:5000".parse().expect("an address"),
        destination: "192.0.2.53:53".parse().expect("an address"),
        source_mac: Mac([2, 0, 0, 0, 0, 1]),
        destination_mac: Mac([2, 0, 0, 0, 0, 2]),
        tags: Vec::new(),
        ihl: 5,
        fragment: 0,
        traffic_class: 0,
        hops: 64,
        protocol: 17,
        udp_octets: None,
        udp_checksum: None,
        spoilt_ip_checksum: false,
        payload: QUERY.to_vec(),
        padding: 0,
        cut: 0,
    }
}

/// A plain query over IPv6.
pub(crate) fn query_v6() -> Frame {
    Frame {
        source: "[2001:db8::1]:5000".parse().expect("an address"),
        destination: "[2001:db8::53]:53".parse().expect("an address"),
        ..query_v4()
    }
}

/// The checksum of RFC 1071 as it is written there, octet pair by octet pair.
pub(crate) fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u32;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

impl Frame {
    /// Returns the octets.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut frame = [self.destination_mac.0, self.source_mac.0].concat();
        for tag in &self.tags {
            frame.extend([0x81, 0x00]);
            frame.extend(tag.to_be_bytes());
        }
        let udp = self.udp();
        match (self.source, self.destination) {
            (SocketAddr::V4(source), SocketAddr::V4(destination)) => {
                frame.extend([0x08, 0x00]);
                let options = usize::from(self.ihl).saturating_sub(5) * 4;
                let mut ip = vec![0x40 | self.ihl, self.traffic_class];
                ip.extend(((20 + options + udp.len()) as u16).to_be_bytes());
                ip.extend([0x56, 0x78]);
                ip.extend(self.fragment.to_be_bytes());
                ip.extend([self.hops, self.protocol, 0, 0]);
                ip.extend(source.ip().octets());
                ip.extend(destination.ip().octets());
                ip.extend(vec![1; options]);
                let sum = checksum(&[&ip]) ^ u16::from(self.spoilt_ip_checksum);
                ip[10..12].copy_from_slice(&sum.to_be_bytes());
                frame.extend(ip);
            }
            (SocketAddr::V6(source), SocketAddr::V6(destination)) => {
                frame.extend([0x86, 0xdd]);
                frame.extend([0x60 | self.traffic_class >> 4, self.traffic_class << 4, 0x12, 0x34]);
                frame.extend((udp.len() as u16).to_be_bytes());
                frame.extend([self.protocol, self.hops]);
                frame.extend(source.ip().octets());
                frame.extend(destination.ip().octets());
            }
            _ => panic!("both ends are of one family"),
        }
        frame.extend(udp);
        frame.extend(vec![0; self.padding]);
        frame.truncate(frame.len() - self.cut);
        frame
    }

    fn udp(&self) -> Vec<u8> {
        let len = 8 + self.payload.len() as u16;
        let mut udp = Vec::new();
        udp.extend(self.source.port().to_be_bytes());
        udp.extend(self.destination.port().to_be_bytes());
        udp.extend(self.udp_octets.unwrap_or(len).to_be_bytes());
        udp.extend([0, 0]);
        udp.extend(&self.payload);
        let octets = |address: SocketAddr| match address {
            SocketAddr::V4(address) => address.ip().octets().to_vec(),
            SocketAddr::V6(address) => address.ip().octets().to_vec(),
        };
        let sum =
            checksum(&[&octets(self.source), &octets(self.destination), &len.to_be_bytes(), &[0, 17], &udp]);
        let sum = self.udp_checksum.unwrap_or(if sum == 0 { 0xffff } else { sum });
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
        udp
    }
}
