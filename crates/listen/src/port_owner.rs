//! Who has a port: what `/proc` shows, as far as we may look.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::sys::Kind;

/// A program that has a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortOwner {
    /// Its process ID.
    pub process: u32,
    /// Its name.
    pub program: String,
}

/// Finds who has a socket that is in the way of `address`; `None` if it is not known.
pub(crate) fn find(address: SocketAddr, kind: Kind) -> Option<PortOwner> {
    let tables = match kind {
        Kind::Datagrams => ["/proc/net/udp", "/proc/net/udp6"],
        Kind::Connections => ["/proc/net/tcp", "/proc/net/tcp6"],
    };
    let inodes: Vec<u64> = tables
        .into_iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|text| text.lines().filter_map(|line| in_the_way(line, address, kind)).collect::<Vec<_>>())
        .collect();
    if inodes.is_empty() {
        return None;
    }
    let wanted: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let process: u32 = entry.file_name().to_str()?.parse().ok()?;
        let mut descriptors = fs::read_dir(entry.path().join("fd")).ok()?.flatten();
        let has_it = descriptors.any(|descriptor| {
            fs::read_link(descriptor.path())
                .is_ok_and(|target| wanted.iter().any(|wanted| target.as_os_str() == wanted.as_str()))
        });
        if !has_it {
            return None;
        }
        let program = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        Some(PortOwner { process, program: program.trim_end().to_owned() })
    })
}

/// Reads one line of a socket table; returns the inode of a socket that keeps `address` from being
/// bound.
fn in_the_way(line: &str, address: SocketAddr, kind: Kind) -> Option<u64> {
    /// The state of a listening TCP socket (`TCP_LISTEN`).
    const LISTENING: &str = "0A";
    let mut fields = line.split_ascii_whitespace();
    let (local, port) = fields.nth(1)?.split_once(':')?;
    let state = fields.nth(1)?;
    let inode = fields.nth(5)?.parse().ok()?;
    if u16::from_str_radix(port, 16).ok()? != address.port()
        || (kind == Kind::Connections && state != LISTENING)
    {
        return None;
    }
    let local = parse_address(local)?;
    let overlaps = local.to_canonical() == address.ip().to_canonical()
        || local.is_unspecified() && (local.is_ipv6() || address.is_ipv4())
        || address.ip().is_unspecified() && local.to_canonical().is_ipv4() == address.is_ipv4();
    overlaps.then_some(inode)
}

/// Reads an address as the kernel prints it: 32-bit words in the machine's own order.
fn parse_address(text: &str) -> Option<IpAddr> {
    let word = |at: usize| Some(u32::from_str_radix(text.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let mut octets = [0; 16];
            octets.copy_from_slice(words.as_flattened());
            Some(Ipv6Addr::from(octets).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, address: &str, kind: Kind, expect: Option<u64>) {
        assert_eq!(in_the_way(line, address.parse().expect("an address"), kind), expect, "{line} {address}");
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn lines_of_the_socket_tables_are_read() {
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
        check(head, "127.0.0.53:53", Kind::Datagrams, None);
        let udp = "  317: 3500007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000   101        0 20554 2 0 0";
        check(udp, "127.0.0.53:53", Kind::Datagrams, Some(20554));
        check(udp, "0.0.0.0:53", Kind::Datagrams, Some(20554));
        check(udp, "[::]:53", Kind::Datagrams, None);
        check(udp, "127.0.0.1:53", Kind::Datagrams, None);
        check(udp, "127.0.0.53:54", Kind::Datagrams, None);
        let tcp = "   0: 0100007F:0277 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 999 1 0 100";
        check(tcp, "127.0.0.1:631", Kind::Connections, Some(999));
        check(&tcp.replace(" 0A ", " 01 "), "127.0.0.1:631", Kind::Connections, None);
        let udp6 = "  1: 00000000000000000000000001000000:0035 00000000000000000000000000000000:0000 07 0:0 00:0 0 0 0 77 2 0 0";
        check(udp6, "[::1]:53", Kind::Datagrams, Some(77));
        check("", "[::1]:53", Kind::Datagrams, None);
        check("é: é:é", "[::1]:53", Kind::Datagrams, None);
    }
}
