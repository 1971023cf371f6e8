//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The headers around a datagram: Ethernet, at most one VLAN tag, IPv4 or IPv6, UDP.
//!
//! [`Datagram::parse`] takes what a plain UDP query can look like and nothing else; whatever it
//! refuses, the kernel's own stack would have to judge. [`Flow::write`] puts fresh headers before a
//! payload: nothing of a received header but addresses, ports and the VLAN is repeated, so a reply
//! says nothing about congestion (ECN), carries no marks (DSCP), no flow label and no padding.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::ops::Range;

/// Octets of an Ethernet header without a tag.
pub const ETHERNET_OCTETS: usize = 14;
/// Octets that a VLAN tag adds.
pub const TAG_OCTETS: usize = 4;
/// Octets of an IPv4 header without options.
pub const IPV4_OCTETS: usize = 20;
/// Octets of an IPv6 header.
pub const IPV6_OCTETS: usize = 40;
/// Octets of a UDP header.
pub const UDP_OCTETS: usize = 8;
/// The most octets of all headers together.
pub const HEADERS_OCTETS_MAX: usize = ETHERNET_OCTETS + TAG_OCTETS + IPV6_OCTETS + UDP_OCTETS;

const TYPE_IPV4: [u8; 2] = [0x08, 0x00];
const TYPE_IPV6: [u8; 2] = [0x86, 0xdd];
/// IEEE 802.1Q. Service tags (802.1ad) are for providers' switches; hosts leave them to the kernel.
const TYPE_VLAN: [u8; 2] = [0x81, 0x00];
const PROTOCOL_UDP: u8 = 17;

/// Hops of what we send, as of Linux' own sockets.
const HOPS: u8 = 64;
/// "More fragments" and the fragment's offset.
const FRAGMENT_BITS: u16 = 0x3fff;
/// "Don't fragment".
const DONT_FRAGMENT: [u8; 2] = [0x40, 0x00];

/// An Ethernet address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Returns whether it means a group of stations or all of them, which is never one to answer
    /// from or to.
    pub const fn is_group(self) -> bool {
        let [first, ..] = self.0;
        first & 1 != 0
    }
}

impl std::fmt::Display for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// The tag of a virtual LAN: its number and a priority (IEEE 802.1Q).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vlan(u16);

impl Vlan {
    /// The frame may be dropped first. A remark of a switch on its way, which a reply does not
    /// repeat.
    const DROP_ELIGIBLE: u16 = 0x1000;

    /// Makes a tag of its 16 bits (TCI).
    pub const fn new(bits: u16) -> Self {
        Self(bits & !Self::DROP_ELIGIBLE)
    }

    /// Returns the 16 bits.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Returns the number of the LAN; 0 stands for "priority only".
    pub const fn id(self) -> u16 {
        self.0 & 0x0fff
    }
}

/// How a reply finds its way back over Ethernet: the neighbour that handed us the query, and the
/// LAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Neighbour {
    /// The station.
    pub mac: Mac,
    /// The tag, if there was one.
    pub vlan: Option<Vlan>,
}

impl Neighbour {
    /// Packs it into one number, for whoever keeps it while a query waits.
    pub const fn to_bits(self) -> u64 {
        let [a, b, c, d, e, f] = self.mac.0;
        let tag = match self.vlan {
            // A tag never has this bit itself, so it says here that there is a tag.
            Some(vlan) => vlan.0 | Vlan::DROP_ELIGIBLE,
            None => 0,
        };
        let [g, h] = tag.to_be_bytes();
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    /// Unpacks what [`to_bits`](Self::to_bits) packed.
    pub const fn from_bits(bits: u64) -> Self {
        let [a, b, c, d, e, f, g, h] = bits.to_be_bytes();
        let tag = u16::from_be_bytes([g, h]);
        let vlan = if tag & Vlan::DROP_ELIGIBLE != 0 { Some(Vlan::new(tag)) } else { None };
        Self { mac: Mac([a, b, c, d, e, f]), vlan }
    }
}

/// Why a frame holds no datagram for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unfit {
    /// It ends before its headers do, or before a length in them says.
    Truncated,
    /// It holds neither IPv4 nor IPv6, or is tagged more than once.
    NotIp,
    /// The IP header is of another version than announced, or has options or extension headers.
    Options,
    /// It is a part of a packet.
    Fragment,
    /// It is not UDP.
    NotUdp,
    /// A length is less than the header it counts.
    Length,
    /// The checksum of the IPv4 header is wrong.
    Checksum,
    /// Nobody could answer there: a group or broadcast address on either end, port 0, or the sender
    /// claims to be us.
    Address,
}

/// Both ends of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Who sent it.
    pub source: SocketAddr,
    /// Whom it was sent to. Of the same address family.
    pub destination: SocketAddr,
    /// The station that put it on the wire.
    pub source_mac: Mac,
    /// The station it was for.
    pub destination_mac: Mac,
    /// The tag, if there was one.
    pub vlan: Option<Vlan>,
}

/// A datagram in a frame: both ends, and where the payload is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Both ends.
    pub flow: Flow,
    /// Where in the frame the payload is. Padding is behind it.
    pub payload: Range<usize>,
}

impl Datagram {
    /// Reads the headers of a frame. The UDP checksum is another matter: see
    /// [`udp_checksum_holds`](Self::udp_checksum_holds).
    pub fn parse(frame: &[u8]) -> Result<Self, Unfit> {
        let (destination_mac, rest) = frame.split_first_chunk::<6>().ok_or(Unfit::Truncated)?;
        let (source_mac, rest) = rest.split_first_chunk::<6>().ok_or(Unfit::Truncated)?;
        let (kind, rest) = rest.split_first_chunk::<2>().ok_or(Unfit::Truncated)?;
        let (destination_mac, source_mac) = (Mac(*destination_mac), Mac(*source_mac));
        if destination_mac.is_group() || source_mac.is_group() {
            return Err(Unfit::Address);
        }
        let (kind, vlan, rest) = if *kind == TYPE_VLAN {
            let (tag, rest) = rest.split_first_chunk::<2>().ok_or(Unfit::Truncated)?;
            let (kind, rest) = rest.split_first_chunk::<2>().ok_or(Unfit::Truncated)?;
            (kind, Some(Vlan::new(u16::from_be_bytes(*tag))), rest)
        } else {
            (kind, None, rest)
        };
        let (source, destination, packet) = match *kind {
            TYPE_IPV4 => parse_ipv4(rest)?,
            TYPE_IPV6 => parse_ipv6(rest)?,
            _ => return Err(Unfit::NotIp),
        };
        let (udp, body) = packet.split_first_chunk::<UDP_OCTETS>().ok_or(Unfit::Length)?;
        let [s0, s1, d0, d1, l0, l1, _, _] = *udp;
        let len = usize::from(u16::from_be_bytes([l0, l1]));
        let payload_octets = len.checked_sub(UDP_OCTETS).ok_or(Unfit::Length)?;
        if payload_octets > body.len() {
            return Err(Unfit::Truncated);
        }
        let (source_port, destination_port) = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
        if source_port == 0 || destination_port == 0 {
            return Err(Unfit::Address);
        }
        // `packet` may end before the frame does (padding), so the place is counted from the front.
        let tag_octets = if vlan.is_some() { TAG_OCTETS } else { 0 };
        let ip_octets = if source.is_ipv4() { IPV4_OCTETS } else { IPV6_OCTETS };
        let start = ETHERNET_OCTETS + tag_octets + ip_octets + UDP_OCTETS;
        Ok(Self {
            flow: Flow {
                source: SocketAddr::new(source, source_port),
                destination: SocketAddr::new(destination, destination_port),
                source_mac,
                destination_mac,
                vlan,
            },
            payload: start..start + payload_octets,
        })
    }

    /// Returns the payload. `frame` is the one that was parsed.
    pub fn payload_in<'a>(&self, frame: &'a [u8]) -> Option<&'a [u8]> {
        frame.get(self.payload.start..self.payload.end)
    }

    /// Returns whether the UDP checksum is right. `frame` is the one that was parsed.
    ///
    /// A card or the sender's kernel usually knows already. On virtual interfaces what a local
    /// program sends has no checksum yet and would be refused, so this is for those who ask for it.
    pub fn udp_checksum_holds(&self, frame: &[u8]) -> bool {
        let Some(start) = self.payload.start.checked_sub(UDP_OCTETS) else { return false };
        let Some(udp) = frame.get(start..self.payload.end) else { return false };
        let [_, _, _, _, _, _, c0, c1] = *udp.first_chunk::<UDP_OCTETS>().unwrap_or(&[0; UDP_OCTETS]);
        if [c0, c1] == [0, 0] {
            // "None was made": allowed over IPv4, not over IPv6 (RFC 768, RFC 8200 §8.1).
            return self.flow.source.is_ipv4();
        }
        let sum = Sum::of_pseudo_header(self.flow.source.ip(), self.flow.destination.ip(), udp.len());
        sum.add(udp).fold() == 0xffff
    }
}

/// Reads an IPv4 header; returns both addresses and the packet's content without padding.
fn parse_ipv4(bytes: &[u8]) -> Result<(IpAddr, IpAddr, &[u8]), Unfit> {
    let (header, _) = bytes.split_first_chunk::<IPV4_OCTETS>().ok_or(Unfit::Truncated)?;
    let [version, _, l0, l1, _, _, f0, f1, _, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] = *header;
    if version != 0x45 {
        return Err(Unfit::Options);
    }
    if u16::from_be_bytes([f0, f1]) & FRAGMENT_BITS != 0 {
        return Err(Unfit::Fragment);
    }
    if protocol != PROTOCOL_UDP {
        return Err(Unfit::NotUdp);
    }
    let total = usize::from(u16::from_be_bytes([l0, l1]));
    if total < IPV4_OCTETS {
        return Err(Unfit::Length);
    }
    let packet = bytes.get(IPV4_OCTETS..total).ok_or(Unfit::Truncated)?;
    if Sum::default().add(header).fold() != 0xffff {
        return Err(Unfit::Checksum);
    }
    let (source, destination) = (Ipv4Addr::new(s0, s1, s2, s3), Ipv4Addr::new(d0, d1, d2, d3));
    let is_of_one = |address: Ipv4Addr| {
        // 0.0.0.0/8 is "this network", 240.0.0.0/4 and above includes the broadcast (RFC 1122
        // §3.2.1.3).
        let [first, ..] = address.octets();
        first != 0 && first < 224
    };
    if !is_of_one(source) || !is_of_one(destination) || source == destination {
        return Err(Unfit::Address);
    }
    // Loopback addresses do not come in from a wire.
    if source.is_loopback() != destination.is_loopback() {
        return Err(Unfit::Address);
    }
    Ok((source.into(), destination.into(), packet))
}

/// Reads an IPv6 header; returns both addresses and the packet's content without padding.
fn parse_ipv6(bytes: &[u8]) -> Result<(IpAddr, IpAddr, &[u8]), Unfit> {
    let (header, rest) = bytes.split_first_chunk::<8>().ok_or(Unfit::Truncated)?;
    let (source, rest) = rest.split_first_chunk::<16>().ok_or(Unfit::Truncated)?;
    let (destination, rest) = rest.split_first_chunk::<16>().ok_or(Unfit::Truncated)?;
    let [version, _, _, _, l0, l1, next, _] = *header;
    if version >> 4 != 6 {
        return Err(Unfit::Options);
    }
    match next {
        PROTOCOL_UDP => {}
        // Fragment header; hop-by-hop, routing, destination options, authentication, mobility, HIP,
        // shim6.
        44 => return Err(Unfit::Fragment),
        0 | 43 | 51 | 60 | 135 | 139 | 140 => return Err(Unfit::Options),
        _ => return Err(Unfit::NotUdp),
    }
    let packet = rest.get(..usize::from(u16::from_be_bytes([l0, l1]))).ok_or(Unfit::Truncated)?;
    let (source, destination) = (Ipv6Addr::from(*source), Ipv6Addr::from(*destination));
    let is_of_one = |address: Ipv6Addr| !address.is_unspecified() && !address.is_multicast();
    if !is_of_one(source) || !is_of_one(destination) || source == destination {
        return Err(Unfit::Address);
    }
    if source.is_loopback() || destination.is_loopback() {
        return Err(Unfit::Address);
    }
    Ok((source.into(), destination.into(), packet))
}

impl Flow {
    /// Returns the flow of a reply.
    #[must_use]
    pub const fn reversed(&self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            source_mac: self.destination_mac,
            destination_mac: self.source_mac,
            vlan: self.vlan,
        }
    }

    /// Returns who handed us this datagram.
    pub const fn neighbour(&self) -> Neighbour {
        Neighbour { mac: self.source_mac, vlan: self.vlan }
    }

    /// Returns how many octets all headers take; the payload begins there.
    pub const fn headers_octets(&self) -> usize {
        let tag = if self.vlan.is_some() { TAG_OCTETS } else { 0 };
        let ip = if self.destination.is_ipv4() { IPV4_OCTETS } else { IPV6_OCTETS };
        ETHERNET_OCTETS + tag + ip + UDP_OCTETS
    }

    /// Writes the headers for a payload of so many octets that stands in `frame` behind them, with
    /// all checksums.
    ///
    /// Returns the length of the whole frame; `None` if it has no room, or the ends are not of one
    /// family.
    pub fn write(&self, frame: &mut [u8], payload_octets: usize) -> Option<usize> {
        let total = self.headers_octets() + payload_octets;
        let frame = frame.get_mut(..total)?;
        let udp_octets = u16::try_from(UDP_OCTETS + payload_octets).ok()?;
        let (macs, rest) = frame.split_first_chunk_mut::<12>()?;
        let [a, b, c, d, e, f] = self.destination_mac.0;
        let [g, h, i, j, k, l] = self.source_mac.0;
        *macs = [a, b, c, d, e, f, g, h, i, j, k, l];
        let rest = match self.vlan {
            Some(vlan) => {
                let (tag, rest) = rest.split_first_chunk_mut::<4>()?;
                let ([a, b], [c, d]) = (TYPE_VLAN, vlan.bits().to_be_bytes());
                *tag = [a, b, c, d];
                rest
            }
            None => rest,
        };
        let (kind, rest) = rest.split_first_chunk_mut::<2>()?;
        let udp = match (self.source, self.destination) {
            (SocketAddr::V4(source), SocketAddr::V4(destination)) => {
                *kind = TYPE_IPV4;
                let (header, udp) = rest.split_first_chunk_mut::<IPV4_OCTETS>()?;
                write_ipv4(header, source, destination, udp_octets)?;
                udp
            }
            (SocketAddr::V6(source), SocketAddr::V6(destination)) => {
                *kind = TYPE_IPV6;
                let (header, udp) = rest.split_first_chunk_mut::<IPV6_OCTETS>()?;
                write_ipv6(header, source, destination, udp_octets)?;
                udp
            }
            _ => return None,
        };
        let ([s0, s1], [d0, d1]) = (self.source.port().to_be_bytes(), self.destination.port().to_be_bytes());
        let [l0, l1] = udp_octets.to_be_bytes();
        *udp.first_chunk_mut::<UDP_OCTETS>()? = [s0, s1, d0, d1, l0, l1, 0, 0];
        let sum = Sum::of_pseudo_header(self.source.ip(), self.destination.ip(), udp.len());
        // RFC 768: a sum of zero is sent as its other form, because zero says that there is none.
        let checksum = match !sum.add(udp).fold() {
            0 => 0xffff,
            checksum => checksum,
        };
        *udp.get_mut(6..)?.first_chunk_mut::<2>()? = checksum.to_be_bytes();
        Some(total)
    }
}

fn write_ipv4(
    header: &mut [u8; IPV4_OCTETS],
    source: SocketAddrV4,
    destination: SocketAddrV4,
    udp_octets: u16,
) -> Option<()> {
    let total = udp_octets.checked_add(IPV4_OCTETS as u16)?;
    let ([l0, l1], [f0, f1]) = (total.to_be_bytes(), DONT_FRAGMENT);
    let ([s0, s1, s2, s3], [d0, d1, d2, d3]) = (source.ip().octets(), destination.ip().octets());
    // With "don't fragment" the identification means nothing (RFC 6864 §4.1).
    *header = [0x45, 0, l0, l1, 0, 0, f0, f1, HOPS, PROTOCOL_UDP, 0, 0, s0, s1, s2, s3, d0, d1, d2, d3];
    let checksum = !Sum::default().add(header).fold();
    *header.get_mut(10..)?.first_chunk_mut::<2>()? = checksum.to_be_bytes();
    Some(())
}

fn write_ipv6(
    header: &mut [u8; IPV6_OCTETS],
    source: SocketAddrV6,
    destination: SocketAddrV6,
    udp_octets: u16,
) -> Option<()> {
    let (head, rest) = header.split_first_chunk_mut::<8>()?;
    let (from, to) = rest.split_first_chunk_mut::<16>()?;
    let [l0, l1] = udp_octets.to_be_bytes();
    *head = [0x60, 0, 0, 0, l0, l1, PROTOCOL_UDP, HOPS];
    *from = source.ip().octets();
    *to.first_chunk_mut::<16>()? = destination.ip().octets();
    Some(())
}

/// A ones' complement sum in the making (RFC 1071), kept wide so that carries are folded once.
#[derive(Clone, Copy, Default)]
struct Sum(u64);

impl Sum {
    /// Begins with what UDP's checksum covers of the IP header.
    fn of_pseudo_header(source: IpAddr, destination: IpAddr, udp_octets: usize) -> Self {
        let sum = match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                Self(u64::from(source.to_bits()) + u64::from(destination.to_bits()))
            }
            _ => Self::default().add(&octets_of(source)).add(&octets_of(destination)),
        };
        // Lengths are at most 65,535 here, so that this cannot overflow.
        Self(sum.0 + udp_octets as u64 + u64::from(PROTOCOL_UDP))
    }

    /// Adds octets, as if a zero followed an odd number of them.
    ///
    /// Four octets at a time: 65,535 octets make at most 2^14 sums of 32 bits, far from the end
    /// of 64.
    fn add(self, bytes: &[u8]) -> Self {
        let mut sum = self.0;
        let (words, rest) = bytes.as_chunks::<4>();
        for word in words {
            sum += u64::from(u32::from_be_bytes(*word));
        }
        let mut last = [0; 4];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        Self(sum + u64::from(u32::from_be_bytes(last)))
    }

    /// Returns the sum in 16 bits.
    fn fold(self) -> u16 {
        let mut sum = self.0;
        // 64 bits are folded to 16 in at most four steps.
        for _ in 0..4 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }
}

fn octets_of(address: IpAddr) -> [u8; 16] {
    match address {
        // Never asked for: both families in one flow are refused before.
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::{self, Frame};

    fn check(frame: &Frame, expect: Result<(), Unfit>) {
        let bytes = frame.bytes();
        assert_eq!(Datagram::parse(&bytes).map(|_| ()), expect, "{frame:?}");
    }

    #[test]
    fn plain_datagrams_are_read() {
        for frame in [frames::query_v4(), frames::query_v6()] {
            let bytes = frame.bytes();
            let datagram = Datagram::parse(&bytes).expect("a plain datagram");
            assert_eq!(datagram.flow.source, frame.source);
            assert_eq!(datagram.flow.destination, frame.destination);
            assert_eq!(datagram.flow.vlan, None);
            assert_eq!(datagram.payload_in(&bytes), Some(&frame.payload[..]));
            assert!(datagram.udp_checksum_holds(&bytes));
        }
    }

    #[test]
    fn padding_is_not_payload() {
        let frame = Frame { padding: 9, ..frames::query_v4() };
        let bytes = frame.bytes();
        let datagram = Datagram::parse(&bytes).expect("a plain datagram");
        assert_eq!(&bytes[datagram.payload], frame.payload);
    }

    #[test]
    fn one_tag_is_understood_and_two_are_not() {
        let frame = Frame { tags: vec![0xb064], ..frames::query_v4() };
        let datagram = Datagram::parse(&frame.bytes()).expect("one tag");
        let vlan = datagram.flow.vlan.expect("a tag");
        // The priority stays, the remark that it may be dropped does not.
        assert_eq!((vlan.id(), vlan.bits()), (0x064, 0xa064));
        check(&Frame { tags: vec![1, 2], ..frames::query_v4() }, Err(Unfit::NotIp));
    }

    #[test]
    fn what_the_kernel_should_judge_is_refused() {
        let v4 = frames::query_v4;
        check(&Frame { ihl: 6, ..v4() }, Err(Unfit::Options));
        check(&Frame { fragment: 0x2000, ..v4() }, Err(Unfit::Fragment));
        check(&Frame { fragment: 0x0001, ..v4() }, Err(Unfit::Fragment));
        check(&Frame { fragment: 0x4000, ..v4() }, Ok(()));
        check(&Frame { protocol: 6, ..v4() }, Err(Unfit::NotUdp));
        check(&Frame { protocol: 0, ..frames::query_v6() }, Err(Unfit::Options));
        check(&Frame { protocol: 44, ..frames::query_v6() }, Err(Unfit::Fragment));
        check(&Frame { protocol: 58, ..frames::query_v6() }, Err(Unfit::NotUdp));
        check(&Frame { cut: 1, ..v4() }, Err(Unfit::Truncated));
        check(&Frame { cut: 1, ..frames::query_v6() }, Err(Unfit::Truncated));
        check(&Frame { udp_octets: Some(7), ..v4() }, Err(Unfit::Length));
        check(&Frame { udp_octets: Some(1000), ..v4() }, Err(Unfit::Truncated));
        check(&Frame { spoilt_ip_checksum: true, ..v4() }, Err(Unfit::Checksum));
    }

    #[test]
    fn nobody_is_answered_who_cannot_be() {
        let from = |source: &str| Frame { source: source.parse().unwrap(), ..frames::query_v4() };
        for source in [
            "192.0.2.1:0",
            "0.0.0.0:5000",
            "255.255.255.255:5000",
            "224.0.0.1:5000",
            "127.0.0.1:5000",
            "192.0.2.53:5000",
        ] {
            check(&from(source), Err(Unfit::Address));
        }
        let from = |source: &str| Frame { source: source.parse().unwrap(), ..frames::query_v6() };
        for source in ["[::]:5000", "[::1]:5000", "[ff02::1]:5000", "[2001:db8::53]:5000"] {
            check(&from(source), Err(Unfit::Address));
        }
        let group = Mac([1, 0, 0x5e, 0, 0, 1]);
        check(&Frame { source_mac: group, ..frames::query_v4() }, Err(Unfit::Address));
        check(&Frame { destination_mac: group, ..frames::query_v4() }, Err(Unfit::Address));
    }

    #[test]
    fn checksums_are_judged_when_asked() {
        let zero = Frame { udp_checksum: Some(0), ..frames::query_v4() };
        assert!(Datagram::parse(&zero.bytes()).unwrap().udp_checksum_holds(&zero.bytes()));
        let zero = Frame { udp_checksum: Some(0), ..frames::query_v6() };
        assert!(!Datagram::parse(&zero.bytes()).unwrap().udp_checksum_holds(&zero.bytes()));
        let wrong = Frame { udp_checksum: Some(0x1234), ..frames::query_v4() };
        assert!(!Datagram::parse(&wrong.bytes()).unwrap().udp_checksum_holds(&wrong.bytes()));
    }

    #[test]
    fn a_checksum_of_zero_is_sent_as_all_ones() {
        // With these two octets the sum over pseudo header, header and payload comes to 0xffff.
        let flow = Datagram::parse(&frames::query_v4().bytes()).unwrap().flow.reversed();
        let mut frame = [0; 64];
        let total = flow.write(&mut frame, 2).unwrap();
        let first = u16::from_be_bytes([frame[40], frame[41]]);
        frame[42..44].copy_from_slice(&first.to_be_bytes());
        assert_eq!(flow.write(&mut frame, 2), Some(total));
        assert_eq!(frame[40..42], [0xff, 0xff]);
    }

    #[test]
    fn replies_repeat_nothing_of_the_header() {
        let frame = Frame { traffic_class: 0xff, hops: 1, padding: 10, ..frames::query_v4() };
        let mut bytes = frame.bytes();
        let datagram = Datagram::parse(&bytes).unwrap();
        let len = datagram.flow.reversed().write(&mut bytes, 12).unwrap();
        assert_eq!(len, 14 + 20 + 8 + 12);
        assert_eq!((bytes[15], bytes[22]), (0, 64));
    }

    #[test]
    fn what_does_not_fit_is_not_written() {
        let flow = Datagram::parse(&frames::query_v4().bytes()).unwrap().flow;
        assert_eq!(flow.write(&mut [0; 41], 0), None);
        assert_eq!(flow.write(&mut [0; 42], 0), Some(42));
        assert_eq!(flow.write(&mut [0; 70_000], 65_535 - 27), None);
        assert_eq!(flow.write(&mut [0; 70_000], 65_535 - 28), Some(65_535 + 14));
    }

    #[test]
    fn neighbours_pack_and_unpack() {
        for vlan in [None, Some(Vlan::new(0)), Some(Vlan::new(0xefff))] {
            let neighbour = Neighbour { mac: Mac([2, 3, 4, 5, 6, 7]), vlan };
            assert_eq!(Neighbour::from_bits(neighbour.to_bits()), neighbour);
        }
    }
}
