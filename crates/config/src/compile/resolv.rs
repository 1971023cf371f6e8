//! `resolv.conf`: which servers this machine asks (resolv.conf(5)).

use std::net::{SocketAddr, SocketAddrV6};
use std::path::PathBuf;

use environment::Environment;

/// Servers that are taken; the C library stops at three.
const SERVERS_MAX: usize = 8;

/// Returns the addresses after `nameserver`, in order, each once; lines that it does not understand
/// do not count.
pub(super) fn servers(text: &str, environment: &dyn Environment) -> Vec<SocketAddr> {
    let mut servers = Vec::new();
    for line in text.lines() {
        // resolv.conf(5): the keyword begins the line; ";" and "#" in the first column begin a
        // comment.
        let mut words = line.split_whitespace();
        if !line.starts_with("nameserver") || words.next() != Some("nameserver") {
            continue;
        }
        // What follows the address is a comment by habit.
        let Some(address) = words.next().and_then(|word| address(word, environment)) else { continue };
        if !servers.contains(&address) && servers.len() < SERVERS_MAX {
            servers.push(address);
        }
    }
    servers
}

/// Returns the servers that this machine asks.
pub fn resolvers_of_machine(environment: &dyn Environment) -> Vec<SocketAddr> {
    let text = environment.read(&environment.resolv_conf()).unwrap_or_default();
    servers(&String::from_utf8_lossy(&text), environment)
}

/// Reads an address whose scope may be the name of an interface: `fe80::1%eth0`.
fn address(word: &str, environment: &dyn Environment) -> Option<SocketAddr> {
    if let Some(mut address) = values::scoped(word) {
        address.set_port(53);
        return Some(address);
    }
    let (host, interface) = word.split_once('%')?;
    let host = host.parse().ok()?;
    if interface.contains('/') {
        return None;
    }
    // Linux tells the number of an interface in a file.
    let file = PathBuf::from("/sys/class/net").join(interface).join("ifindex");
    let number = String::from_utf8(environment.read(&file).ok()?).ok()?;
    Some(SocketAddr::V6(SocketAddrV6::new(host, 53, 0, number.trim().parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use environment::Memory;

    fn check(text: &str, expect: &[&str]) {
        let memory = Memory::new(&[("/sys/class/net/eth0/ifindex", "7\n")]);
        let found: Vec<String> = servers(text, &memory).iter().map(ToString::to_string).collect();
        assert_eq!(found, expect, "{text}");
    }

    #[test]
    fn nameserver_lines_are_read() {
        check(
            "# nameserver 1.1.1.1\n; x\nnameserver 192.0.2.1\nnameserver\t2001:db8::1 # home\nsearch example.org\n",
            &["192.0.2.1:53", "[2001:db8::1]:53"],
        );
        check("nameserver 192.0.2.1\nnameserver 192.0.2.1\n", &["192.0.2.1:53"]);
        check(" nameserver 192.0.2.1\nnameservers 192.0.2.1\nnameserver x\nnameserver\n", &[]);
        check(
            "nameserver fe80::1%eth0\nnameserver fe80::1%3\nnameserver fe80::1%none\n",
            &["[fe80::1%7]:53", "[fe80::1%3]:53"],
        );
        check("", &[]);
    }
}
