//! A stranger's frame is refused or read within its bounds, and the headers of its reply read back.

use xdp::headers::{Datagram, Neighbour};

/// An Ethernet frame.
pub fn frames(frame: &[u8]) {
    let Ok(datagram) = Datagram::parse(frame) else { return };
    let payload = &frame[datagram.payload.clone()];
    let _ = datagram.udp_checksum_holds(frame);
    let flow = datagram.flow.reversed();
    assert_eq!(Neighbour::from_bits(flow.neighbour().to_bits()), flow.neighbour());
    let mut reply = vec![0; flow.headers_octets() + payload.len()];
    reply[flow.headers_octets()..].copy_from_slice(payload);
    assert_eq!(flow.write(&mut reply, payload.len()), Some(reply.len()));
    let again = Datagram::parse(&reply).expect("what is written can be read");
    assert_eq!(again.flow, flow);
    assert!(again.udp_checksum_holds(&reply));
}
