//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! DNS cookies (RFC 7873) in the interoperable form of RFC 9018, so that servers behind one
//! address can share a secret.

use std::hash::Hasher;
use std::net::IpAddr;

use siphasher::sip::SipHasher24;

/// Octets of a client cookie.
pub const CLIENT_OCTETS: usize = 8;
/// Octets of a client cookie and the server cookie after it.
pub const FULL_OCTETS: usize = 24;
/// How old a server cookie may be, in seconds (RFC 9018 §4.3).
const AGE_SECONDS_MAX: i32 = 3600;
/// How far in the future one may be: the clocks of an anycast set differ (RFC 9018 §4.3).
const AHEAD_SECONDS_MAX: i32 = 300;

/// What the COOKIE option of a query proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// There was no cookie.
    None,
    /// A client cookie alone, or with a server cookie of a form that is not ours.
    Unproven([u8; CLIENT_OCTETS]),
    /// A client cookie with a server cookie that is not ours, too old, or for another address.
    Invalid([u8; CLIENT_OCTETS]),
    /// A server cookie of ours: the source address is not forged.
    Proven([u8; CLIENT_OCTETS]),
    /// The option has a length that RFC 7873 §5.2.2 answers with FORMERR.
    Malformed,
}

impl Proof {
    /// Returns the client cookie, if there was a usable one.
    pub const fn client_cookie(self) -> Option<[u8; CLIENT_OCTETS]> {
        match self {
            Self::Unproven(cookie) | Self::Invalid(cookie) | Self::Proven(cookie) => Some(cookie),
            Self::None | Self::Malformed => None,
        }
    }
}

/// Secrets that server cookies are made with.
#[derive(Clone)]
pub struct Secrets {
    /// Makes new cookies.
    pub active: [u8; 16],
    /// Still or already accepted, while a set of servers changes its secret (RFC 9018 §5).
    pub staging: Option<[u8; 16]>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets(hidden)")
    }
}

impl Secrets {
    /// Judges a COOKIE option's data.
    pub fn check(&self, data: Option<&[u8]>, address: IpAddr, now_seconds: u32) -> Proof {
        let Some(data) = data else { return Proof::None };
        let Some((client, server)) = data.split_first_chunk::<CLIENT_OCTETS>() else {
            return Proof::Malformed;
        };
        if server.is_empty() {
            return Proof::Unproven(*client);
        }
        // RFC 7873 §4: a server cookie has 8 to 32 octets.
        if !(8..=32).contains(&server.len()) {
            return Proof::Malformed;
        }
        // RFC 9018 §4: ours have 16. Another length says that another server has made it, and no
        // more than a client cookie alone.
        let Ok(server) = <[u8; 16]>::try_from(server) else { return Proof::Unproven(*client) };
        let [1, 0, 0, 0, t0, t1, t2, t3, ..] = server else { return Proof::Invalid(*client) };
        let made = u32::from_be_bytes([t0, t1, t2, t3]);
        // RFC 9018 §4.3: serial number arithmetic (RFC 1982), so that 2106 is no special year.
        let age = now_seconds.wrapping_sub(made).cast_signed();
        if !(-AHEAD_SECONDS_MAX..=AGE_SECONDS_MAX).contains(&age) {
            return Proof::Invalid(*client);
        }
        let is_ours = |secret: &[u8; 16]| is_equal(&server_cookie(secret, client, made, address), &server);
        if is_ours(&self.active) || self.staging.as_ref().is_some_and(is_ours) {
            Proof::Proven(*client)
        } else {
            Proof::Invalid(*client)
        }
    }

    /// Returns the data of the COOKIE option for a reply: the client's cookie and a fresh one of
    /// ours.
    pub fn make(&self, client: [u8; CLIENT_OCTETS], address: IpAddr, now_seconds: u32) -> [u8; FULL_OCTETS] {
        let mut full = [0; FULL_OCTETS];
        let (first, rest) = full.split_at_mut(CLIENT_OCTETS);
        first.copy_from_slice(&client);
        rest.copy_from_slice(&server_cookie(&self.active, &client, now_seconds, address));
        full
    }
}

/// RFC 9018 §4.4: SipHash-2-4 over client cookie, version, reserved, time stamp and client address.
fn server_cookie(secret: &[u8; 16], client: &[u8; 8], made: u32, address: IpAddr) -> [u8; 16] {
    let mut cookie = [0; 16];
    let (head, tail) = cookie.split_at_mut(8);
    let [t0, t1, t2, t3] = made.to_be_bytes();
    let head_octets = [1, 0, 0, 0, t0, t1, t2, t3];
    head.copy_from_slice(&head_octets);
    let mut hasher = SipHasher24::new_with_key(secret);
    hasher.write(client);
    hasher.write(&head_octets);
    match address {
        IpAddr::V4(v4) => hasher.write(&v4.octets()),
        IpAddr::V6(v6) => hasher.write(&v6.octets()),
    }
    tail.copy_from_slice(&hasher.finish().to_le_bytes());
    cookie
}

/// Compares without telling by its duration where the difference is.
fn is_equal(a: &[u8; 16], b: &[u8; 16]) -> bool {
    (u128::from_ne_bytes(*a) ^ u128::from_ne_bytes(*b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: [u8; 16] = 0xe5e9_73e5_a6b2_a43f_48e7_dc84_9e37_bfcf_u128.to_be_bytes();
    const CLIENT: [u8; 8] = 0x2464_c4ab_cf10_c957_u64.to_be_bytes();
    const CLIENT_ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 100));

    fn secrets() -> Secrets {
        Secrets { active: SECRET, staging: None }
    }

    #[test]
    fn a_new_cookie_is_that_of_rfc_9018_a1() {
        let made = secrets().make(CLIENT, CLIENT_ADDRESS, 1_559_731_985);
        let expected = [
            0x24, 0x64, 0xc4, 0xab, 0xcf, 0x10, 0xc9, 0x57, 0x01, 0, 0, 0, 0x5c, 0xf7, 0x9f, 0x11, 0x1f,
            0x81, 0x30, 0xc3, 0xee, 0xe2, 0x94, 0x80,
        ];
        assert_eq!(made, expected);
        assert_eq!(secrets().check(Some(&made), CLIENT_ADDRESS, 1_559_731_985), Proof::Proven(CLIENT));
    }

    #[test]
    fn a_cookie_proves_only_its_address_secret_and_time() {
        let now = 1_700_000_000;
        let made = secrets().make(CLIENT, CLIENT_ADDRESS, now);
        let other_address = IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 101));
        let other_secret = Secrets { active: [7; 16], staging: None };
        let rolling = Secrets { active: [7; 16], staging: Some(SECRET) };
        let invalid = Proof::Invalid(CLIENT);
        for (secrets, address, at, expected) in [
            (&secrets(), CLIENT_ADDRESS, now + 3600, Proof::Proven(CLIENT)),
            (&secrets(), CLIENT_ADDRESS, now + 3601, invalid),
            (&secrets(), CLIENT_ADDRESS, now - 300, Proof::Proven(CLIENT)),
            (&secrets(), CLIENT_ADDRESS, now - 301, invalid),
            (&secrets(), other_address, now, invalid),
            (&other_secret, CLIENT_ADDRESS, now, invalid),
            (&rolling, CLIENT_ADDRESS, now, Proof::Proven(CLIENT)),
        ] {
            assert_eq!(secrets.check(Some(&made), address, at), expected);
        }
    }

    #[test]
    fn lengths_are_those_of_rfc_7873() {
        let check = |data: &[u8]| secrets().check(Some(data), CLIENT_ADDRESS, 0);
        assert_eq!(check(&[0; 7]), Proof::Malformed);
        assert_eq!(check(&[0; 8]), Proof::Unproven([0; 8]));
        assert_eq!(check(&[0; 15]), Proof::Malformed);
        // Ours have 24 octets (RFC 9018 §4).
        assert_eq!(check(&[0; 16]), Proof::Unproven([0; 8]));
        assert_eq!(check(&[0; 24]), Proof::Invalid([0; 8]));
        assert_eq!(check(&[0; 40]), Proof::Unproven([0; 8]));
        assert_eq!(check(&[0; 41]), Proof::Malformed);
    }
}
