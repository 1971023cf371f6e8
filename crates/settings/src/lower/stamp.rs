//! DNS stamps (`sdns://…`): a server, where it is and what it must prove, in one word
//! (dnscrypt.info/stamps-specifications).

use std::net::{IpAddr, SocketAddr};

use wire::text::read_base64url;

use crate::groups::Stamp;

/// What a stamp says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parsed {
    /// The server as it would be written without a stamp.
    pub(super) text: String,
    /// What cannot be said so.
    pub(super) stamp: Stamp,
}

/// Reads the part of a stamp after `sdns://`; an error says what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Parsed, String> {
    let bytes = decode(text).ok_or("it is not Base64 (RFC 4648 §5)")?;
    let mut reader = Reader(&bytes);
    let [protocol] = reader.take().ok_or(SHORT)?;
    match protocol {
        0x00 => {
            let _properties: [u8; 8] = reader.take().ok_or(SHORT)?;
            let address = reader.text().ok_or(SHORT)?;
            Ok(Parsed { text: address.to_owned(), stamp: Stamp::default() })
        }
        0x02 => secured(reader, "https://", 443),
        0x03 => secured(reader, "tls://", 853),
        0x04 => secured(reader, "quic://", 853),
        0x01 => dnscrypt(reader),
        0x05 => oblivious(reader),
        0x81 => Err("it is for a relay of DNSCrypt, which is not supported by this version".to_owned()),
        0x85 => Err("it is for a relay of oblivious DoH, not for a server: set \"relay\" to it".to_owned()),
        other => Err(format!("its protocol, {other:#04x}, is unknown")),
    }
}

const SHORT: &str = "it ends too early";

/// Reads the part of a stamp of a relay of oblivious DoH after `sdns://`.
pub(super) fn parse_relay(text: &str) -> Result<Parsed, String> {
    let bytes = decode(text).ok_or("it is not Base64 (RFC 4648 §5)")?;
    let mut reader = Reader(&bytes);
    match reader.take().ok_or(SHORT)? {
        [0x85] => secured(reader, "https://", 443),
        [other] => Err(format!("its protocol, {other:#04x}, is not that of a relay of oblivious DoH")),
    }
}

/// Reads a stamp of a DNSCrypt resolver.
fn dnscrypt(mut reader: Reader<'_>) -> Result<Parsed, String> {
    let _properties: [u8; 8] = reader.take().ok_or(SHORT)?;
    let address = reader.text().ok_or(SHORT)?;
    let [length] = reader.take().ok_or(SHORT)?;
    let key = reader.octets(usize::from(length)).ok_or(SHORT)?;
    let key = <[u8; 32]>::try_from(key).map_err(|_| "the provider's key has not 32 octets")?;
    let name = reader.text().ok_or(SHORT)?;
    let name = values::name(name).map_err(|_| format!("the provider's name, \"{name}\", is not a name"))?;
    let address = values::socket_address(address, DNSCRYPT_PORT)
        .map_err(|_| format!("\"{address}\" is not an address"))?;
    let stamp = Stamp { provider: Some((name, key)), ..Stamp::default() };
    Ok(Parsed { text: address.to_string(), stamp })
}

/// The port of DNSCrypt if a stamp has none.
const DNSCRYPT_PORT: u16 = 443;

/// Reads a stamp of a target of oblivious DoH.
fn oblivious(mut reader: Reader<'_>) -> Result<Parsed, String> {
    let _properties: [u8; 8] = reader.take().ok_or(SHORT)?;
    let host = reader.text().ok_or(SHORT)?;
    let path = reader.text().ok_or(SHORT)?;
    if host.is_empty() {
        return Err("it has no host name".to_owned());
    }
    Ok(Parsed { text: format!("odoh://{host}{path}"), stamp: Stamp::default() })
}

/// Reads what is the same in stamps of TLS, HTTPS and QUIC.
fn secured(mut reader: Reader<'_>, scheme: &str, port: u16) -> Result<Parsed, String> {
    let _properties: [u8; 8] = reader.take().ok_or(SHORT)?;
    let address = reader.text().ok_or(SHORT)?;
    let mut certificates = Vec::new();
    for hash in reader.list().ok_or(SHORT)? {
        match hash.len() {
            0 => (),
            _ => certificates.push(<[u8; 32]>::try_from(hash).map_err(|_| "a hash has not 32 octets")?),
        }
    }
    let host = reader.text().ok_or(SHORT)?;
    // A DoH stamp has its path here; resolvers for the host name may follow, and ours are asked
    // instead.
    let path = if scheme == "https://" { reader.text().ok_or(SHORT)? } else { "" };
    let (dial, dial_port) = if address.is_empty() {
        (None, None)
    } else if let Ok(address) = address.parse::<SocketAddr>() {
        (Some(address.ip()), Some(address.port()))
    } else {
        let bare = address.trim_start_matches('[').trim_end_matches(']');
        let address = bare.parse::<IpAddr>().map_err(|_| format!("\"{address}\" is not an address"))?;
        (Some(address), None)
    };
    let (name, name_port) = match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => {
            (name, Some(port.parse::<u16>().map_err(|_| format!("\"{port}\" is not a port"))?))
        }
        _ => (host, None),
    };
    if name.is_empty() {
        return Err("it has no host name".to_owned());
    }
    let port = dial_port.or(name_port).unwrap_or(port);
    Ok(Parsed {
        text: format!("{scheme}{name}:{port}{path}"),
        stamp: Stamp { dial, certificates, provider: None },
    })
}

/// Octets of a stamp.
struct Reader<'s>(&'s [u8]);

impl<'s> Reader<'s> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (&taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(taken)
    }

    fn octets(&mut self, length: usize) -> Option<&'s [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads a text after its length.
    fn text(&mut self) -> Option<&'s str> {
        let [length] = self.take()?;
        std::str::from_utf8(self.octets(usize::from(length))?).ok()
    }

    /// Reads a list; the top bit of a length says that another item follows.
    fn list(&mut self) -> Option<Vec<&'s [u8]>> {
        let mut items = Vec::new();
        loop {
            let [length] = self.take()?;
            items.push(self.octets(usize::from(length & 0x7f))?);
            if length & 0x80 == 0 {
                return Some(items);
            }
        }
    }
}

/// Reads Base64 for URLs, without padding.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut octets = Vec::new();
    read_base64url(text.trim_end_matches('=').as_bytes(), &mut octets)?;
    Some(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes Base64 for URLs.
    fn encode(bytes: &[u8]) -> String {
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut text = String::new();
        for chunk in bytes.chunks(3) {
            let group = (0..3).fold(0, |group, i| group << 8 | u32::from(chunk.get(i).copied().unwrap_or(0)));
            for place in 0..=chunk.len() {
                text.push(char::from(ALPHABET[(group >> (18 - 6 * place) & 63) as usize]));
            }
        }
        text
    }

    fn with_length(text: &str) -> Vec<u8> {
        [&[text.len() as u8][..], text.as_bytes()].concat()
    }

    fn stamp(protocol: u8, address: &str, hashes: &[&[u8]], rest: &[&str]) -> String {
        let mut bytes = vec![protocol, 7, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend(with_length(address));
        for (i, hash) in hashes.iter().enumerate() {
            bytes.push(hash.len() as u8 | if i + 1 < hashes.len() { 0x80 } else { 0 });
            bytes.extend(*hash);
        }
        rest.iter().for_each(|text| bytes.extend(with_length(text)));
        encode(&bytes)
    }

    fn check(text: &str, expect: Result<(&str, Option<&str>, usize), &str>) {
        match (parse(text), expect) {
            (Ok(found), Ok((text, dial, hashes))) => {
                let dial = dial.map(|dial| dial.parse().expect("an address"));
                assert_eq!((found.text.as_str(), found.stamp.dial), (text, dial));
                assert_eq!(found.stamp.certificates.len(), hashes);
            }
            (Err(found), Err(expect)) => assert!(found.contains(expect), "{found}"),
            (found, expect) => panic!("{found:?}, not {expect:?}"),
        }
    }

    #[test]
    fn stamps_of_each_kind_are_read() {
        check(&stamp(0, "9.9.9.9:5353", &[], &[]), Ok(("9.9.9.9:5353", None, 0)));
        let doh = stamp(2, "9.9.9.9", &[&[1; 32], &[2; 32]], &["dns.quad9.net", "/dns-query"]);
        check(&doh, Ok(("https://dns.quad9.net:443/dns-query", Some("9.9.9.9"), 2)));
        let doh = stamp(2, "[2620:fe::fe]:8443", &[&[]], &["dns.quad9.net", "/a"]);
        check(&doh, Ok(("https://dns.quad9.net:8443/a", Some("2620:fe::fe"), 0)));
        let dot = stamp(3, "", &[&[]], &["dns.quad9.net:8853"]);
        check(&dot, Ok(("tls://dns.quad9.net:8853", None, 0)));
        check(
            &stamp(4, "192.0.2.1", &[&[]], &["d.example"]),
            Ok(("quic://d.example:853", Some("192.0.2.1"), 0)),
        );
    }

    #[test]
    fn a_stamp_of_dnscrypt_names_the_provider_and_its_key() {
        let check = |address, expect: &str| {
            let found =
                parse(&stamp(1, address, &[&[7; 32]], &["2.dnscrypt-cert.example.org"])).expect("good");
            let (name, key) = found.stamp.provider.expect("a provider");
            assert_eq!((found.text.as_str(), key), (expect, [7; 32]));
            assert_eq!(name.to_string(), "2.dnscrypt-cert.example.org.");
        };
        check("192.0.2.1", "192.0.2.1:443");
        check("192.0.2.1:8443", "192.0.2.1:8443");
        check("[2001:db8::1]", "[2001:db8::1]:443");
    }

    #[test]
    fn stamps_of_oblivious_doh_are_read() {
        check(&stamp(5, "t.example", &[], &["/dns-query"]), Ok(("odoh://t.example/dns-query", None, 0)));
        let relay = stamp(0x85, "192.0.2.1", &[&[]], &["r.example", "/proxy"]);
        let found = parse_relay(&relay).expect("good");
        assert_eq!(found.text, "https://r.example:443/proxy");
        assert_eq!(found.stamp.dial.map(|dial| dial.to_string()).as_deref(), Some("192.0.2.1"));
        assert!(parse_relay(&stamp(2, "", &[&[]], &["r.example", "/p"])).is_err());
    }

    #[test]
    fn what_is_published_is_read() {
        // The plain stamp of 8.8.8.8 that the specification's calculator gives.
        check("AAcAAAAAAAAABzguOC44Ljg", Ok(("8.8.8.8", None, 0)));
    }

    #[test]
    fn bad_stamps_are_refused_with_the_reason() {
        check("!", Err("is not Base64"));
        check("", Err("ends too early"));
        check(&encode(&[3, 0, 0]), Err("ends too early"));
        check(&stamp(0x81, "9.9.9.9", &[], &[]), Err("relay of DNSCrypt"));
        check(&stamp(0x85, "9.9.9.9", &[&[]], &["r.example", "/p"]), Err("set \"relay\" to it"));
        check(&stamp(1, "9.9.9.9", &[&[1; 31]], &["2.dnscrypt-cert.example"]), Err("32 octets"));
        check(&stamp(1, "x", &[&[1; 32]], &["2.dnscrypt-cert.example"]), Err("is not an address"));
        check(&stamp(1, "9.9.9.9", &[&[1; 32]], &["a..b"]), Err("is not a name"));
        check(&stamp(5, "", &[], &["/p"]), Err("no host name"));
        check(&stamp(9, "", &[], &[]), Err("unknown"));
        check(&stamp(3, "x", &[&[]], &["d.example"]), Err("is not an address"));
        check(&stamp(3, "", &[&[1; 31]], &["d.example"]), Err("32 octets"));
        check(&stamp(3, "", &[&[]], &[""]), Err("no host name"));
    }
}
