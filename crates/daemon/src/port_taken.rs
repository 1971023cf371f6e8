//! Turns "address in use" into something a person can act on.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;

/// A socket that could not be opened.
#[derive(Debug)]
pub(crate) struct Obstacle {
    /// Where we wanted to listen.
    pub(crate) at: SocketAddr,
    /// `udp` or `tcp`.
    pub(crate) transport: &'static str,
    /// What the system said.
    pub(crate) kind: io::ErrorKind,
    /// Whether the system does not know the address's family.
    pub(crate) lacks_family: bool,
    /// The error's own words.
    pub(crate) message: String,
    /// Who has the port, if that can be seen.
    pub(crate) port_owner: Option<PortOwner>,
}

/// A process that has the port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortOwner {
    /// Its number.
    pub(crate) pid: u32,
    /// Its program, as in `/proc/PID/comm`.
    pub(crate) program: String,
}

impl Obstacle {
    /// Returns the reason in a few words, for a sentence such as "port 53 …".
    pub(crate) fn reason(&self) -> String {
        match (self.kind, &self.port_owner) {
            (io::ErrorKind::AddrInUse, Some(port_owner)) => {
                format!("is taken by {} (process {})", port_owner.program, port_owner.pid)
            }
            (io::ErrorKind::AddrInUse, None) => "is taken".into(),
            (io::ErrorKind::PermissionDenied, _) => "needs root or CAP_NET_BIND_SERVICE".into(),
            (io::ErrorKind::AddrNotAvailable, _) => "is at an address this machine does not have".into(),
            _ if self.lacks_family => {
                let family = if self.at.is_ipv6() { "IPv6" } else { "IPv4" };
                format!("cannot be opened: this kernel has no {family}")
            }
            _ => format!("cannot be opened: {}", self.message),
        }
    }

    /// Returns the whole message with what to do about it.
    pub(crate) fn explain(&self) -> String {
        let mut text =
            format!("cannot listen on {} ({}): the port {}", self.at, self.transport, self.reason());
        for hint in self.hints() {
            let _ = write!(text, "\n   hint: {hint}");
        }
        text
    }

    fn hints(&self) -> Vec<String> {
        let elsewhere =
            format!("or listen elsewhere, in the configuration: listen: [\"{}\"]", other_port(self.at));
        match self.kind {
            io::ErrorKind::AddrInUse => {
                let program = self.port_owner.as_ref().map_or("", |port_owner| port_owner.program.as_str());
                let mut hints = hints_for(program);
                if self.port_owner.is_none() {
                    hints.push(format!("see who has it: sudo ss -lnup 'sport = :{}'", self.at.port()));
                }
                hints.push(elsewhere);
                hints
            }
            io::ErrorKind::PermissionDenied => {
                vec![
                    "run it as root (it gives root up once the port is open), or by its systemd unit".into(),
                    elsewhere,
                ]
            }
            io::ErrorKind::AddrNotAvailable => {
                vec!["see the addresses of this machine: ip address".into()]
            }
            _ if self.lacks_family => {
                vec![format!(
                    "take \"{}\" out of the setting listen, or turn the family on (ipv6.disable=0)",
                    self.at
                )]
            }
            _ => Vec::new(),
        }
    }
}

/// What to do about a program that has the port; it may be cut to fifteen octets by the kernel.
fn hints_for(program: &str) -> Vec<String> {
    match program {
        "systemd-resolve" | "systemd-resolved" => vec![
            "turn off its listener: put \"[Resolve]\" and \"DNSStubListener=no\" into \
             /etc/systemd/resolved.conf.d/gannet.conf, then: sudo systemctl restart systemd-resolved"
                .into(),
        ],
        "dnsmasq" => vec![
            "dnsmasq often belongs to libvirt, LXD or NetworkManager and then keeps its own address only; \
             a dnsmasq of its own stops with: sudo systemctl disable --now dnsmasq"
                .into(),
        ],
        "gannet" => vec!["another gannet is running; see: gannet status".into()],
        "unbound" | "named" | "pdns_recursor" | "dnsdist" | "kresd" | "coredns" | "AdGuardHome"
        | "pihole-FTL" | "mosdns" | "blocky" | "nsd" | "knotd" => {
            vec![format!(
                "stop it if gannet is to replace it: sudo systemctl disable --now {}",
                unit_of(program)
            )]
        }
        _ => Vec::new(),
    }
}

fn unit_of(program: &str) -> &str {
    match program {
        "pdns_recursor" => "pdns-recursor",
        "kresd" => "knot-resolver",
        "knotd" => "knot",
        other => other,
    }
}

/// Returns the address with a port that is probably free.
fn other_port(mut at: SocketAddr) -> SocketAddr {
    at.set_port(if at.port() == 5300 { 5353 } else { 5300 });
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn obstacle(kind: io::ErrorKind, program: Option<&str>) -> Obstacle {
        let port_owner = program.map(|program| PortOwner { pid: 812, program: program.to_owned() });
        let at = "127.0.0.1:53".parse().unwrap();
        Obstacle { at, transport: "udp", kind, lacks_family: false, message: String::new(), port_owner }
    }

    #[test]
    fn a_kernel_without_ipv6_is_told_with_the_way_out() {
        let at = "[::]:53".parse().unwrap();
        let lacking = Obstacle { at, lacks_family: true, ..obstacle(io::ErrorKind::Other, None) };
        let text = lacking.explain();
        assert!(text.contains("this kernel has no IPv6"), "{text}");
        assert!(text.contains("take \"[::]:53\" out of the setting listen"), "{text}");
    }

    #[test]
    fn the_holder_is_named_and_the_way_out_is_told() {
        let text = obstacle(io::ErrorKind::AddrInUse, Some("systemd-resolve")).explain();
        assert!(
            text.contains("127.0.0.1:53 (udp): the port is taken by systemd-resolve (process 812)"),
            "{text}"
        );
        assert!(
            text.contains("DNSStubListener=no") && text.contains("listen: [\"127.0.0.1:5300\"]"),
            "{text}"
        );
    }

    #[test]
    fn without_a_holder_there_is_a_way_to_find_it() {
        let text = obstacle(io::ErrorKind::AddrInUse, None).explain();
        assert!(text.contains("sport = :53"), "{text}");
    }

    #[test]
    fn low_ports_need_a_right() {
        let text = obstacle(io::ErrorKind::PermissionDenied, None).explain();
        assert!(text.contains("CAP_NET_BIND_SERVICE"), "{text}");
    }
}
