//! IP addresses, socket addresses, prefixes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use wire::Prefix;

use crate::{Misread, Read};

/// Reads an address without a port.
pub fn address(text: &str) -> Read<IpAddr> {
    text.parse().map_err(|_| {
        let misread = Misread::whole(text, format!("\"{text}\" is not an IP address"))
            .expected("an address such as 192.0.2.1 or 2001:db8::1");
        if text.contains('/') {
            misread.hint("a single address is wanted here, not a prefix")
        } else {
            misread
        }
    })
}

/// Reads an address with or without a port: `9.9.9.9`, `9.9.9.9:53`, `::1`, `[::1]:53`,
/// `9.9.9.9@53`, `fe80::1%2`.
pub fn socket_address(text: &str, port: u16) -> Read<SocketAddr> {
    const EXPECTED: &str = "an address and port such as 192.0.2.1:53, 192.0.2.1 or [2001:db8::1]:53";
    let not_one = || Misread::whole(text, format!("\"{text}\" is not an address")).expected(EXPECTED);
    let bad_port = |part: &str, at: usize| {
        Misread::part(at..at + part.len(), format!("\"{part}\" is not a port")).expected("1 to 65535")
    };
    let read_port = |part: &str, at: usize| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u16>().ok().filter(|_| digits).ok_or_else(|| bad_port(part, at))
    };
    // Unbound's notation.
    if let Some((host, part)) = text.rsplit_once('@') {
        let address = scoped(host.trim_start_matches('[').trim_end_matches(']')).ok_or_else(not_one)?;
        return Ok(with_port(address, read_port(part, host.len() + 1)?));
    }
    if let Some(inside) = text.strip_prefix('[') {
        let Some((host, after)) = inside.split_once(']') else {
            return Err(not_one().hint("the \"[\" is not closed"));
        };
        let address = scoped(host).filter(SocketAddr::is_ipv6).ok_or_else(not_one)?;
        return match after.strip_prefix(':') {
            Some(part) => Ok(with_port(address, read_port(part, text.len() - part.len())?)),
            None if after.is_empty() => Ok(with_port(address, port)),
            None => Err(not_one()),
        };
    }
    if let Some(address) = scoped(text) {
        return Ok(with_port(address, port));
    }
    match text.rsplit_once(':') {
        Some((host, part)) => match host.parse::<Ipv4Addr>() {
            Ok(address) => Ok(SocketAddr::new(IpAddr::V4(address), read_port(part, host.len() + 1)?)),
            Err(_) if host == "*" || host.is_empty() => Err(not_one().hint(format!(
                "every IPv4 address is \"0.0.0.0:{part}\", every IPv6 address \"[::]:{part}\""
            ))),
            Err(_) => Err(not_one()),
        },
        None => Err(if text == "*" {
            not_one().hint("every IPv4 address is \"0.0.0.0\", every IPv6 address \"::\"")
        } else {
            not_one()
        }),
    }
}

/// Reads the name of a network device with or without a port: `eth0`, `eth0@853`. `None` if it
/// cannot be one.
///
/// Whoever reads addresses tries those first: names of devices begin with a letter here.
pub fn device(text: &str, port: u16) -> Option<(&str, u16)> {
    /// Octets of a name (`IFNAMSIZ`, without the NUL at its end).
    const OCTETS_MAX: usize = 15;
    let (name, port) = match text.rsplit_once('@') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (name, port.parse().ok()?),
        Some(_) => return None,
        None => (text, port),
    };
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = name.len() <= OCTETS_MAX && name.starts_with(|c: char| c.is_ascii_alphabetic());
    (is_name && name.chars().all(is_legal)).then_some((name, port))
}

/// Reads an address that may have a scope after `%`; the port is zero.
///
/// A scope must be the number of the interface: looking up its name takes the system, which this
/// crate does not ask.
pub fn scoped(text: &str) -> Option<SocketAddr> {
    match text.split_once('%') {
        Some((host, scope)) => {
            let address: Ipv6Addr = host.parse().ok()?;
            Some(SocketAddr::V6(SocketAddrV6::new(address, 0, 0, scope.parse().ok()?)))
        }
        None => Some(SocketAddr::new(text.parse().ok()?, 0)),
    }
}

fn with_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}

/// Words that stand for prefixes.
pub const PREFIX_WORDS: [&str; 4] = ["loopback", "private", "lan", "any"];

/// Returns the prefixes that one of [`PREFIX_WORDS`] stands for; none for other words.
pub fn prefix_word(word: &str) -> Vec<Prefix> {
    const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];
    // RFC 1918, RFC 6598, RFC 3927; RFC 4193, RFC 4291 §2.5.6.
    const PRIVATE: [&str; 7] = [
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "169.254.0.0/16",
        "fc00::/7",
        "fe80::/10",
    ];
    let texts: Vec<&str> = match word {
        "loopback" => LOOPBACK.to_vec(),
        "private" => PRIVATE.to_vec(),
        "lan" => [LOOPBACK.as_slice(), PRIVATE.as_slice()].concat(),
        "any" => vec!["0.0.0.0/0", "::/0"],
        _ => Vec::new(),
    };
    texts.into_iter().filter_map(|text| prefix(text).ok()).collect()
}

/// Reads `10.0.0.0/8`, `2001:db8::/32` or a single address.
pub fn prefix(text: &str) -> Read<Prefix> {
    const EXPECTED: &str = "a prefix such as 192.0.2.0/24 or 2001:db8::/32";
    let not_one = || Misread::whole(text, format!("\"{text}\" is not an address prefix")).expected(EXPECTED);
    let (host, bits) = match text.split_once('/') {
        Some((host, bits)) => (host, Some(bits)),
        None => (text, None),
    };
    let address: IpAddr = host.parse().map_err(|_| not_one())?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        None => width,
        Some(part) => {
            part.parse::<u8>().ok().filter(|&bits| bits <= width && !part.starts_with('+')).ok_or_else(
                || {
                    Misread::part(host.len() + 1..text.len(), format!("\"{part}\" is not a prefix length"))
                        .expected(format!("0 to {width}"))
                },
            )?
        }
    };
    let prefix = Prefix::new(address, bits);
    if prefix.address() != address {
        return Err(Misread::whole(text, format!("\"{text}\" has bits set after the first {bits}"))
            .hint(format!("the prefix is \"{prefix}\", the single address \"{address}\"")));
    }
    Ok(prefix)
}
