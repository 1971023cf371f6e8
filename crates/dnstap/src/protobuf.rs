//! Messages as protobuf: `dnstap.proto`, the message `Dnstap`.

use std::net::{IpAddr, SocketAddr};

use crate::reader::Message;

/// What is the same in all messages of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// Who we are; empty: nothing is said.
    pub identity: Vec<u8>,
    /// Which program and version we are; empty: nothing is said.
    pub version: Vec<u8>,
}

/// When a message and the query it answers were read or written, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The message.
    pub at_us: u64,
    /// The query, if this is a reply and that is known.
    pub query_at_us: Option<u64>,
}

/// How a field is written.
mod wire_type {
    pub(super) const VARINT: u8 = 0;
    pub(super) const OCTETS: u8 = 2;
    pub(super) const FIXED_32: u8 = 5;
}

/// Fields of `Dnstap`.
mod dnstap {
    pub(super) const IDENTITY: u8 = 1;
    pub(super) const VERSION: u8 = 2;
    pub(super) const MESSAGE: u8 = 14;
    pub(super) const TYPE: u8 = 15;
    /// The only type there is.
    pub(super) const TYPE_MESSAGE: u64 = 1;
}

/// Fields of `Message`.
mod message {
    pub(super) const TYPE: u8 = 1;
    pub(super) const SOCKET_FAMILY: u8 = 2;
    pub(super) const SOCKET_PROTOCOL: u8 = 3;
    pub(super) const QUERY_ADDRESS: u8 = 4;
    pub(super) const RESPONSE_ADDRESS: u8 = 5;
    pub(super) const QUERY_PORT: u8 = 6;
    pub(super) const RESPONSE_PORT: u8 = 7;
    pub(super) const QUERY_TIME_S: u8 = 8;
    pub(super) const QUERY_TIME_NS: u8 = 9;
    pub(super) const QUERY_MESSAGE: u8 = 10;
    pub(super) const RESPONSE_TIME_S: u8 = 12;
    pub(super) const RESPONSE_TIME_NS: u8 = 13;
    pub(super) const RESPONSE_MESSAGE: u8 = 14;
}

/// Writes messages.
#[derive(Default)]
pub struct Encoder {
    /// The inner message, whose length stands before it.
    inner: Vec<u8>,
}

impl Encoder {
    /// Appends a message to `out`. `local` is our end, as far as it is known: its port may be known
    /// although its address is not.
    pub fn write(
        &mut self,
        envelope: &Envelope,
        read: &Message,
        times: Times,
        local: (Option<IpAddr>, Option<u16>),
        out: &mut Vec<u8>,
    ) {
        self.inner.clear();
        let inner = &mut self.inner;
        number(inner, message::TYPE, read.kind.number().into());
        let peer = read.peer.address;
        if let Some(address) = peer {
            number(inner, message::SOCKET_FAMILY, if address.is_ipv4() { 1 } else { 2 });
        }
        number(inner, message::SOCKET_PROTOCOL, read.peer.protocol as u64);
        let peer = (peer.map(|address| address.ip()), peer.as_ref().map(SocketAddr::port));
        // The end that asks is the client, or we.
        let (asks, answers) = if read.kind.is_of_client() { (peer, local) } else { (local, peer) };
        ends(inner, (message::QUERY_ADDRESS, message::QUERY_PORT), asks);
        ends(inner, (message::RESPONSE_ADDRESS, message::RESPONSE_PORT), answers);
        let query_at = if read.kind.is_response() { times.query_at_us } else { Some(times.at_us) };
        if let Some(at_us) = query_at {
            time(inner, (message::QUERY_TIME_S, message::QUERY_TIME_NS), at_us);
        }
        if read.kind.is_response() {
            time(inner, (message::RESPONSE_TIME_S, message::RESPONSE_TIME_NS), times.at_us);
            octets(inner, message::RESPONSE_MESSAGE, &read.octets);
        } else {
            octets(inner, message::QUERY_MESSAGE, &read.octets);
        }
        for (field, text) in [(dnstap::IDENTITY, &envelope.identity), (dnstap::VERSION, &envelope.version)] {
            if !text.is_empty() {
                octets(out, field, text);
            }
        }
        octets(out, dnstap::MESSAGE, inner);
        number(out, dnstap::TYPE, dnstap::TYPE_MESSAGE);
    }
}

fn ends(out: &mut Vec<u8>, fields: (u8, u8), (address, port): (Option<IpAddr>, Option<u16>)) {
    match address {
        Some(IpAddr::V4(address)) => octets(out, fields.0, &address.octets()),
        Some(IpAddr::V6(address)) => octets(out, fields.0, &address.octets()),
        None => {}
    }
    if let Some(port) = port {
        number(out, fields.1, port.into());
    }
}

fn time(out: &mut Vec<u8>, fields: (u8, u8), us: u64) {
    number(out, fields.0, us / 1_000_000);
    let nanoseconds = (us % 1_000_000) as u32 * 1000;
    out.push(fields.1 << 3 | wire_type::FIXED_32);
    out.extend(nanoseconds.to_le_bytes());
}

fn number(out: &mut Vec<u8>, field: u8, value: u64) {
    out.push(field << 3 | wire_type::VARINT);
    varint(out, value);
}

fn octets(out: &mut Vec<u8>, field: u8, value: &[u8]) {
    out.push(field << 3 | wire_type::OCTETS);
    varint(out, value.len() as u64);
    out.extend(value);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    // Ends: seven bits leave each time.
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Kind, Peer, Protocol};

    #[test]
    fn numbers_have_seven_bits_an_octet() {
        for (value, expect) in
            [(0, &[0][..]), (127, &[127]), (128, &[0x80, 1]), (300, &[0xac, 2]), (u64::MAX, &[0xff; 9])]
        {
            let mut out = Vec::new();
            varint(&mut out, value);
            assert!(out.starts_with(expect), "{value}");
        }
    }

    #[test]
    fn a_query_of_a_client_is_written_as_dnstap_has_it() {
        let read = Message {
            kind: Kind::ClientQuery,
            peer: Peer {
                address: Some("192.0.2.1:4096".parse().expect("an address")),
                protocol: Protocol::Udp,
            },
            octets: b"abc".to_vec(),
            ..Message::default()
        };
        let envelope = Envelope { identity: b"me".to_vec(), version: Vec::new() };
        let times = Times { at_us: 1_000_002, query_at_us: None };
        let mut out = Vec::new();
        Encoder::default().write(&envelope, &read, times, (None, Some(53)), &mut out);
        let inner = b"\x08\x05\x10\x01\x18\x01\x22\x04\xc0\0\x02\x01\x30\x80\x20\x38\x35\
                      \x40\x01\x4d\xd0\x07\0\0\x52\x03abc";
        let expect = [b"\x0a\x02me\x72", &[inner.len() as u8][..], inner, b"\x78\x01"].concat();
        assert_eq!(out, expect);
    }

    #[test]
    fn of_a_server_that_is_asked_we_are_the_end_that_asks() {
        let read = Message {
            kind: Kind::ResolverResponse,
            peer: Peer {
                address: Some("[2001:db8::1]:53".parse().expect("an address")),
                protocol: Protocol::Tcp,
            },
            ..Message::default()
        };
        let times = Times { at_us: 3_000_000, query_at_us: Some(2_000_000) };
        let mut out = Vec::new();
        Encoder::default().write(&Envelope::default(), &read, times, (None, None), &mut out);
        let server = [&b"\x2a\x10\x20\x01\x0d\xb8"[..], &[0; 11], b"\x01\x38\x35"].concat();
        let expect =
            [&b"\x08\x04\x10\x02\x18\x02"[..], &server, b"\x40\x02\x4d\0\0\0\0\x60\x03\x6d\0\0\0\0\x72\0"]
                .concat();
        assert_eq!(out, [b"\x72", &[expect.len() as u8][..], &expect, b"\x78\x01"].concat());
    }
}
