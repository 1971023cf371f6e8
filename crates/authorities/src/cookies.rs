//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Our side of DNS cookies (RFC 7873): a client cookie for each server, and the server's part that
//! came with it.

use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};

use cache::servers::ServerCookie;
use rand::CryptoRng;
use siphasher::sip::SipHasher24;
use wire::{Message, OptionCode};

/// Octets of a client cookie.
const CLIENT_OCTETS: usize = 8;
/// Octets of the longest option with both parts (RFC 7873 §4), and of its head.
const OPTION_OCTETS_MAX: usize = 4 + 40;

/// The secret that client cookies are made with.
///
/// All workers that share a table of servers have the same one: a server's part is bound to the
/// client cookie it came with. It lasts as long as the process.
#[derive(Clone, Copy)]
pub struct CookieSecret([u8; 16]);

impl std::fmt::Debug for CookieSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CookieSecret(hidden)")
    }
}

impl CookieSecret {
    /// Draws a secret.
    pub fn draw(rng: &mut impl CryptoRng) -> Self {
        let mut octets = [0; 16];
        rng.fill_bytes(&mut octets);
        Self(octets)
    }

    /// Returns the cookie for one server, that no other can relate to its own (RFC 7873 §4.1).
    pub(super) fn client(&self, server: SocketAddr) -> [u8; CLIENT_OCTETS] {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        match server.ip() {
            IpAddr::V4(address) => hasher.write(&address.octets()),
            IpAddr::V6(address) => hasher.write(&address.octets()),
        }
        hasher.write_u16(server.port());
        hasher.finish().to_le_bytes()
    }
}

/// A COOKIE option in wire form.
pub(super) struct CookieOption {
    octets: [u8; OPTION_OCTETS_MAX],
    len: u8,
}

impl CookieOption {
    /// Makes the option for a query.
    pub(super) fn new(client: [u8; CLIENT_OCTETS], server: Option<&ServerCookie>) -> Self {
        let server = server.map_or(&[][..], ServerCookie::as_bytes);
        let [c0, c1] = OptionCode::COOKIE.0.to_be_bytes();
        let data = (CLIENT_OCTETS + server.len()) as u8;
        let mut octets = [0; OPTION_OCTETS_MAX];
        let all = [c0, c1, 0, data].into_iter().chain(client).chain(server.iter().copied());
        for (room, octet) in octets.iter_mut().zip(all) {
            *room = octet;
        }
        Self { octets, len: 4 + data }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.octets.get(..usize::from(self.len)).unwrap_or(&[])
    }
}

/// What the cookie of a reply says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Echoed<'m> {
    /// There is none.
    Absent,
    /// Our part as we sent it, and the server's part, if there is one: whoever sent this has seen
    /// the query.
    Ours(Option<&'m [u8]>),
    /// Another one, or no cookie at all: RFC 7873 §5.3 has us drop the reply.
    Wrong,
}

/// Reads the cookie of a reply to a query that had this client cookie.
pub(super) fn echoed<'m>(message: &Message<'m>, client: [u8; CLIENT_OCTETS]) -> Echoed<'m> {
    let Some(data) = message.edns.and_then(|edns| edns.option(OptionCode::COOKIE)) else {
        return Echoed::Absent;
    };
    match data.split_first_chunk::<CLIENT_OCTETS>() {
        Some((ours, [])) if *ours == client => Echoed::Ours(None),
        Some((ours, server)) if *ours == client && (8..=32).contains(&server.len()) => {
            Echoed::Ours(Some(server))
        }
        _ => Echoed::Wrong,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use wire::{Flags, Rcode, Writer};

    fn check(data: Option<&[u8]>, expect: &Echoed<'_>) {
        let mut out = [0; 512];
        let mut writer = Writer::new(&mut out, 512, 1, Flags::QR);
        writer
            .opt(1232, Rcode::NOERROR, false, |writer| match data {
                Some(data) => writer.option(OptionCode::COOKIE, data),
                None => Ok(()),
            })
            .expect("it fits");
        let len = writer.finish();
        let message = Message::parse(&out[..len]).expect("a message");
        assert_eq!(echoed(&message, [7; 8]), *expect, "{data:?}");
    }

    #[test]
    fn only_our_cookie_in_a_legal_length_is_ours() {
        check(None, &Echoed::Absent);
        check(Some(&[]), &Echoed::Wrong);
        check(Some(&[7; 7]), &Echoed::Wrong);
        check(Some(&[7; 8]), &Echoed::Ours(None));
        check(Some(&[8; 8]), &Echoed::Wrong);
        check(Some(&[7; 15]), &Echoed::Wrong);
        check(Some(&[7; 16]), &Echoed::Ours(Some(&[7; 8])));
        check(Some(&[7; 40]), &Echoed::Ours(Some(&[7; 32])));
        check(Some(&[7; 41]), &Echoed::Wrong);
    }

    #[test]
    fn each_server_gets_a_cookie_of_its_own() {
        let secret = CookieSecret::draw(&mut StdRng::seed_from_u64(1));
        let cookie = |address: &str| secret.client(address.parse().expect("an address"));
        assert_eq!(cookie("192.0.2.1:53"), cookie("192.0.2.1:53"));
        assert_ne!(cookie("192.0.2.1:53"), cookie("192.0.2.2:53"));
        assert_ne!(cookie("192.0.2.1:53"), cookie("192.0.2.1:54"));
        assert_ne!(cookie("192.0.2.1:53"), cookie("[2001:db8::1]:53"));
        let other = CookieSecret::draw(&mut StdRng::seed_from_u64(2));
        assert_ne!(cookie("192.0.2.1:53"), other.client("192.0.2.1:53".parse().expect("an address")));
    }
}
