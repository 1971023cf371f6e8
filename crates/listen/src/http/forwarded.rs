//! For whom a proxy asks: `X-Forwarded-For`, or `Forwarded` (RFC 7239).

use std::net::{IpAddr, SocketAddr};

use super::request::Head;
use crate::udp::is_proxy;
use plan::listeners::Prefix;

/// Addresses of a header that are looked at.
const HOPS_MAX: usize = 32;

/// Returns the client's address: the last one in the header that is no trusted proxy itself.
/// Whoever stands before it could have written anything.
pub(super) fn client(head: &impl Head, trusted: &[Prefix]) -> Option<IpAddr> {
    let mut hops: Vec<Option<IpAddr>> = Vec::new();
    let mut is_forwarded = false;
    let mut take = |value: &[u8]| -> Option<()> {
        is_forwarded = true;
        let elements = str::from_utf8(value).unwrap_or("").split(',');
        hops.extend(elements.map(|element| element.split(';').find_map(for_of).and_then(address)));
        None
    };
    head.find("forwarded", &mut take);
    if !is_forwarded {
        let is_garbled = head.find("x-forwarded-for", |value| match str::from_utf8(value) {
            Ok(text) => {
                hops.extend(text.split(',').map(|part| address(part.trim())));
                None
            }
            Err(_) => Some(()),
        });
        if is_garbled.is_some() {
            return None;
        }
    }
    let mut found = None;
    for hop in hops.into_iter().rev().take(HOPS_MAX) {
        let Some(hop) = hop else { break };
        found = Some(hop);
        if !is_proxy(trusted, hop) {
            break;
        }
    }
    found
}

/// Returns the value of a pair whose name is `for`.
fn for_of(pair: &str) -> Option<&str> {
    let (name, value) = pair.split_once('=')?;
    name.trim().eq_ignore_ascii_case("for").then(|| value.trim().trim_matches('"'))
}

/// Reads an address that may have a port.
fn address(text: &str) -> Option<IpAddr> {
    let plain = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = plain.parse::<IpAddr>().or_else(|_| text.parse::<SocketAddr>().map(|at| at.ip()));
    address.ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &'static str, value: &str, expect: Option<&str>) {
        let request = hyper::Request::builder().header(name, value).body(()).expect("a request");
        let trusted = [Prefix::new([10, 0, 0, 0].into(), 8)];
        let found = client(&request.into_parts().0, &trusted).map(|address| address.to_string());
        assert_eq!(found.as_deref(), expect, "{name}: {value}");
    }

    #[test]
    fn the_last_address_that_is_no_proxy_is_the_client() {
        check("x-forwarded-for", "192.0.2.1", Some("192.0.2.1"));
        check("x-forwarded-for", "198.51.100.9, 192.0.2.1, 10.0.0.1", Some("192.0.2.1"));
        check("x-forwarded-for", "10.0.0.2, 10.0.0.1", Some("10.0.0.2"));
        check("x-forwarded-for", "::ffff:192.0.2.1", Some("192.0.2.1"));
        check("x-forwarded-for", "192.0.2.1:4711", Some("192.0.2.1"));
        check("x-forwarded-for", "192.0.2.1, nonsense", None);
        check("forwarded", "for=192.0.2.1;proto=https", Some("192.0.2.1"));
        check("forwarded", "for=192.0.2.9, FOR=\"[2001:db8::7]:4711\";by=10.0.0.1", Some("2001:db8::7"));
        check("forwarded", "for=\"_hidden\"", None);
        check("forwarded", "by=10.0.0.1", None);
    }
}
