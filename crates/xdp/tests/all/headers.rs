//! Another library reads what we write, and writes what we read.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice, VlanSlice};
use proptest::prelude::*;
use xdp::headers::{Datagram, Flow, Mac, Unfit, Vlan};

fn mac() -> impl Strategy<Value = Mac> {
    any::<[u8; 6]>().prop_map(|[first, a, b, c, d, e]| Mac([first & !1, a, b, c, d, e]))
}

fn ends() -> impl Strategy<Value = (SocketAddr, SocketAddr)> {
    let v4 = || (1u8..=126, any::<[u8; 3]>(), 1u16..);
    let v6 = || (0x2000u16..0x4000, any::<[u16; 7]>(), 1u16..);
    let to_v4 =
        |(a, [b, c, d], port): (u8, [u8; 3], u16)| SocketAddr::from((Ipv4Addr::new(a, b, c, d), port));
    let to_v6 = |(first, [b, c, d, e, f, g, h], port): (u16, [u16; 7], u16)| {
        SocketAddr::from((Ipv6Addr::new(first, b, c, d, e, f, g, h), port))
    };
    prop_oneof![
        (v4(), v4()).prop_map(move |(a, b)| (to_v4(a), to_v4(b))),
        (v6(), v6()).prop_map(move |(a, b)| (to_v6(a), to_v6(b))),
    ]
    .prop_filter("nobody writes to himself", |(a, b)| a.ip() != b.ip())
}

prop_compose! {
    fn flow()((source, destination) in ends(), source_mac in mac(), destination_mac in mac(), tag in any::<Option<u16>>()) -> Flow {
        Flow { source, destination, source_mac, destination_mac, vlan: tag.map(Vlan::new) }
    }
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..600)
}

fn write(flow: &Flow, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xaa; flow.headers_octets() + payload.len()];
    frame[flow.headers_octets()..].copy_from_slice(payload);
    assert_eq!(flow.write(&mut frame, payload.len()), Some(frame.len()));
    frame
}

proptest! {
    #[test]
    fn what_is_written_reads_back(flow in flow(), payload in payload(), padding in 0usize..50) {
        let mut frame = write(&flow, &payload);
        frame.extend(vec![0; padding]);
        let datagram = Datagram::parse(&frame).expect("a datagram");
        prop_assert_eq!(datagram.flow, flow);
        prop_assert_eq!(&frame[datagram.payload.clone()], &payload[..]);
        prop_assert!(datagram.udp_checksum_holds(&frame));
    }

    #[test]
    fn another_library_reads_what_we_write(flow in flow(), payload in payload()) {
        let frame = write(&flow, &payload);
        let packet = SlicedPacket::from_ethernet(&frame).expect("a packet");
        let tag = packet.vlan().map(|vlan| match vlan {
            VlanSlice::SingleVlan(single) => single.vlan_identifier().value(),
            VlanSlice::DoubleVlan(_) => panic!("one tag"),
        });
        prop_assert_eq!(tag, flow.vlan.map(Vlan::id));
        let Some(TransportSlice::Udp(udp)) = &packet.transport else { panic!("UDP") };
        prop_assert_eq!((udp.source_port(), udp.destination_port()), (flow.source.port(), flow.destination.port()));
        prop_assert_eq!(udp.payload(), &payload[..]);
        let header = udp.to_header();
        let expected = match packet.net.as_ref().expect("a network layer") {
            NetSlice::Ipv4(ip) => {
                let ip = ip.header().to_header();
                prop_assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                prop_assert!(ip.dont_fragment);
                prop_assert_eq!((SocketAddr::from((ip.source, 1)).ip(), ip.time_to_live), (flow.source.ip(), 64));
                header.calc_checksum_ipv4(&ip, &payload)
            }
            NetSlice::Ipv6(ip) => {
                let ip = ip.header().to_header();
                prop_assert_eq!((SocketAddr::from((ip.destination, 1)).ip(), ip.hop_limit), (flow.destination.ip(), 64));
                header.calc_checksum_ipv6(&ip, &payload)
            }
            NetSlice::Arp(_) => panic!("an IP packet"),
        };
        prop_assert_eq!(Ok(header.checksum), expected);
    }

    #[test]
    fn we_read_what_another_library_writes(flow in flow(), payload in payload(), hops in 1u8..) {
        let ethernet = PacketBuilder::ethernet2(flow.source_mac.0, flow.destination_mac.0);
        let mut frame = Vec::new();
        match (flow.source, flow.destination) {
            (SocketAddr::V4(source), SocketAddr::V4(destination)) => ethernet
                .ipv4(source.ip().octets(), destination.ip().octets(), hops)
                .udp(source.port(), destination.port())
                .write(&mut frame, &payload),
            (SocketAddr::V6(source), SocketAddr::V6(destination)) => ethernet
                .ipv6(source.ip().octets(), destination.ip().octets(), hops)
                .udp(source.port(), destination.port())
                .write(&mut frame, &payload),
            _ => unreachable!("both ends are of one family"),
        }
        .expect("a vector takes all");
        let datagram = Datagram::parse(&frame).expect("a datagram");
        prop_assert_eq!(datagram.flow, Flow { vlan: None, ..flow });
        prop_assert_eq!(&frame[datagram.payload.clone()], &payload[..]);
        prop_assert!(datagram.udp_checksum_holds(&frame));
    }

    #[test]
    fn no_frame_panics_and_none_reaches_beyond_its_end(frame in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(datagram) = Datagram::parse(&frame) {
            prop_assert!(datagram.payload.end <= frame.len());
            let _ = datagram.udp_checksum_holds(&frame);
        }
    }

    #[test]
    fn a_flipped_bit_is_noticed_or_harmless(flow in flow(), payload in payload(), bit in 0usize..800) {
        let mut frame = write(&flow, &payload);
        let at = bit % (8 * frame.len());
        frame[at / 8] ^= 1 << (at % 8);
        let tag = if flow.vlan.is_some() { 4 } else { 0 };
        match Datagram::parse(&frame) {
            Err(_) => {}
            // Neither stations nor LAN are part of any checksum, and of IPv6 neither are class,
            // label and hops; a UDP checksum of zero says that there is none.
            Ok(datagram) if datagram.udp_checksum_holds(&frame) => {
                let ip = 14 + tag;
                let outside = at / 8 < ip || (flow.source.is_ipv6() && (at / 8 < ip + 4 || at / 8 == ip + 7));
                prop_assert!(outside, "bit {} of octet {}", at % 8, at / 8);
            }
            Ok(_) => {}
        }
    }
}

#[test]
fn every_cut_of_a_frame_is_refused() {
    let flow = Flow {
        source: "192.0.2.1:5000".parse().unwrap(),
        destination: "192.0.2.53:53".parse().unwrap(),
        source_mac: Mac([2, 0, 0, 0, 0, 1]),
        destination_mac: Mac([2, 0, 0, 0, 0, 2]),
        vlan: Some(Vlan::new(7)),
    };
    let frame = write(&flow, b"twelve octets");
    for len in 0..frame.len() {
        assert_eq!(Datagram::parse(&frame[..len]), Err(Unfit::Truncated), "{len}");
    }
}
