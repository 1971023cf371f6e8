//! Designated resolvers (RFC 9462): how clients of plain DNS hear of the encrypted transports.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use engine::Transport;
use engine::local::LocalBuilder;
use wire::{NameBuf, Rtype, Ttl};

use plan::listeners::TransportWord;
use settings::Listener;

/// How long a client may believe it: a certificate or a listener may be gone tomorrow.
const TTL: Ttl = Ttl::new(300);

/// Keys of parameters (RFC 9460 §14.3.2, RFC 9461 §5).
mod key {
    pub(super) const ALPN: u16 = 1;
    pub(super) const PORT: u16 = 3;
    pub(super) const IPV4_HINT: u16 = 4;
    pub(super) const IPV6_HINT: u16 = 6;
    pub(super) const DOH_PATH: u16 = 7;
}

/// Where the listeners are that were opened at the start; others may be written by now.
#[derive(Clone, Copy)]
pub(super) struct Started<'a> {
    /// As the configuration had it.
    pub(super) written: &'a [SocketAddr],
    /// The same with the ports that the system chose, if they are open.
    pub(super) open: &'a [SocketAddr],
}

impl Started<'_> {
    /// Returns the port of the listener at an address behind so many others at the same one.
    fn port(self, address: SocketAddr, others: usize) -> Option<u16> {
        let pairs = self.written.iter().zip(self.open).filter(|(written, _)| **written == address);
        pairs.map(|(_, open)| open.port()).nth(others)
    }
}

/// Adds `_dns.resolver.arpa` for listeners that are called `name` in their certificate, unless the
/// operator has spoken about it.
pub(super) fn add(local: &mut LocalBuilder, listeners: &[Listener], started: Started<'_>, name: &NameBuf) {
    let owner: NameBuf = match "_dns.resolver.arpa".parse() {
        Ok(owner) => owner,
        Err(_) => return,
    };
    if local.knows(owner.as_name()) {
        return;
    }
    let mut priority = 0;
    // Each device is told of once, whatever its addresses are.
    let mut devices = Vec::new();
    for (number, listener) in listeners.iter().enumerate() {
        if listener.device.is_some() {
            if devices.contains(&listener.place()) {
                continue;
            }
            devices.push(listener.place());
        }
        // Port 0 let the system choose.
        let port = match listener.at.value.port() {
            0 => {
                let before = listeners.iter().take(number);
                let others = before.filter(|other| other.at.value == listener.at.value).count();
                started.port(listener.at.value, others).unwrap_or(0)
            }
            port => port,
        };
        if port == 0 {
            continue;
        }
        for rdata in records(listener, port, name, &mut priority) {
            local.record(owner.as_name(), Rtype::SVCB, TTL, &rdata);
        }
    }
}

/// Returns the data of the records of one listener.
fn records(listener: &Listener, port: u16, name: &NameBuf, priority: &mut u16) -> Vec<Vec<u8>> {
    let speaks = |wanted: Transport| {
        listener.speaks.iter().any(|word| word.transport() == wanted && *word != TransportWord::Http)
    };
    let mut http: Vec<&str> = Vec::new();
    if speaks(Transport::H3) {
        http.push("h3");
    }
    if speaks(Transport::Https) {
        http.push("h2");
    }
    let mut dns = Vec::new();
    if speaks(Transport::Quic) {
        dns.push("doq");
    }
    if speaks(Transport::Tls) {
        dns.push("dot");
    }
    let mut found = Vec::new();
    for (alpn, is_http) in [(dns, false), (http, true)] {
        if alpn.is_empty() {
            continue;
        }
        *priority += 1;
        let path = listener.paths.first().filter(|_| is_http);
        let address = match listener.device {
            Some(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            None => listener.at.value.ip(),
        };
        found.push(rdata(*priority, name, &alpn, port, address, path));
    }
    found
}

fn rdata(
    priority: u16,
    name: &NameBuf,
    alpn: &[&str],
    port: u16,
    address: IpAddr,
    path: Option<&String>,
) -> Vec<u8> {
    let mut out = priority.to_be_bytes().to_vec();
    out.extend_from_slice(name.as_name().as_bytes());
    let mut param = |key: u16, value: &[u8]| {
        out.extend_from_slice(&key.to_be_bytes());
        // All of them are short: names of protocols, an address, a path of a configuration.
        out.extend_from_slice(&u16::try_from(value.len()).unwrap_or(0).to_be_bytes());
        out.extend_from_slice(value);
    };
    let list: Vec<u8> =
        alpn.iter().flat_map(|name| [&[name.len() as u8][..], name.as_bytes()].concat()).collect();
    param(key::ALPN, &list);
    param(key::PORT, &port.to_be_bytes());
    match address {
        _ if address.is_unspecified() => {}
        IpAddr::V4(address) => param(key::IPV4_HINT, &address.octets()),
        IpAddr::V6(address) => param(key::IPV6_HINT, &address.octets()),
    }
    if let Some(path) = path {
        param(key::DOH_PATH, format!("{path}{{?dns}}").as_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnostic::{At, Span};

    #[test]
    fn ports_that_the_system_chose_are_those_of_the_start() {
        let [one, two] = ["192.0.2.1:0", "192.0.2.2:0"].map(|text| text.parse::<SocketAddr>().expect("one"));
        let at = |port| SocketAddr::new(one.ip(), port);
        let written = [at(53), one, two, one];
        let open = [at(53), at(1001), SocketAddr::new(two.ip(), 1002), at(1003)];
        let started = Started { written: &written, open: &open };
        let ports = [(one, 0), (two, 0), (one, 1), (one, 2)].map(|(at, others)| started.port(at, others));
        assert_eq!(ports, [Some(1001), Some(1002), Some(1003), None]);
        // Nothing is open where a configuration is only checked.
        assert_eq!(Started { open: &[], ..started }.port(one, 0), None);
    }

    #[test]
    fn records_say_how_each_listener_is_reached() {
        let listener = |at: &str, speaks: Vec<TransportWord>| Listener {
            device: None,
            at: At { value: at.parse().expect("an address"), span: Span::BUILT_IN },
            name: None,
            speaks,
            proxy_protocol_from: Vec::new(),
            paths: vec!["/dns-query".to_owned()],
            forwarded_from: Vec::new(),
            client_certificates: None,
        };
        let name = "dns.example.org".parse().expect("a name");
        let shown = |listener: &Listener| -> Vec<String> {
            let all = records(listener, listener.at.value.port(), &name, &mut 0);
            all.iter()
                .map(|rdata| wire::rdata::display(Rtype::SVCB, rdata, 0..rdata.len()).to_string())
                .collect()
        };
        assert_eq!(
            shown(&listener("192.0.2.1:853", vec![TransportWord::Tls])),
            ["1 dns.example.org. alpn=dot port=853 ipv4hint=192.0.2.1"]
        );
        assert_eq!(
            shown(&listener("0.0.0.0:443", vec![TransportWord::Https])),
            ["1 dns.example.org. alpn=h2 port=443 dohpath=/dns-query{?dns}"]
        );
        assert!(shown(&listener("0.0.0.0:80", vec![TransportWord::Http])).is_empty(), "not encrypted");
        assert!(shown(&listener("0.0.0.0:53", vec![TransportWord::Udp, TransportWord::Tcp])).is_empty());
    }
}
