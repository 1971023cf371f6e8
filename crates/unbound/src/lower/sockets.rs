//! Sockets: of clients, and to other servers.

use diagnostic::{Problem, Span};

use super::{Lowering, RESOLVER, access};
use crate::tree;

/// Ports that the other program begins with, but for those that IANA has assigned.
const USUAL_PORTS: (u16, u16) = (1024, 65_535);

impl Lowering<'_> {
    pub(super) fn sockets(&mut self) {
        for (ours, theirs) in [("receive-buffer", "so-rcvbuf"), ("send-buffer", "so-sndbuf")] {
            if self.last(theirs).is_some() {
                let (octets, at) = self.number(theirs);
                // Zero leaves it to the system there; a socket without a buffer is none.
                if octets > 0 {
                    let octets = octets.clamp(4 << 10, 1 << 30);
                    self.set(&["sockets", ours], tree::text(format!("{octets}B"), at));
                }
            }
        }
        if self.number("sock-queue-timeout").0 > 0 {
            let seconds = self.bounded("sock-queue-timeout", 1, 3600);
            self.set_seconds(&["sockets", "queue-timeout"], seconds);
        }
        for (ours, theirs) in [("free-bind", "ip-freebind"), ("transparent", "ip-transparent")] {
            if let (true, at) = self.flag(theirs) {
                self.set(&["sockets", ours], tree::flag(true, at));
            }
        }
        if self.last("ip-dscp").is_some() {
            let dscp = self.bounded("ip-dscp", 0, 63);
            self.set_number(&["sockets", "dscp"], dscp);
            self.set_number(&["outgoing", "dscp"], dscp);
        }
        for (section, theirs) in [("sockets", "tcp-mss"), ("outgoing", "outgoing-tcp-mss")] {
            if self.number(theirs).0 > 0 {
                let octets = self.bounded(theirs, 88, 32_767);
                self.set_number(&[section, "tcp-mss"], octets);
            }
        }
        self.outgoing();
    }

    /// Where queries come from, and how they leave.
    fn outgoing(&mut self) {
        for statement in self.all("outgoing-interface") {
            let word = statement.word(0);
            if access::prefix(&word.text).is_none() {
                let problem = Problem::error(word.span, format!("\"{}\" is not an address", word.text));
                self.problems.push(problem.expected("one such as 192.0.2.1, or a prefix of IPv6"));
                continue;
            }
            self.tree.push(&["outgoing", "sources"], tree::as_written(word));
        }
        self.ports();
        self.strings();
        if self.last("outgoing-num-tcp").is_some() {
            let connections = self.bounded("outgoing-num-tcp", 1, 4096);
            self.set_number(&["outgoing", "connections"], connections);
        }
        let [a, b] = RESOLVER;
        let (four, six) = (self.flag("prefer-ip4"), self.flag("prefer-ip6"));
        for ((is_preferred, at), word) in [(four, "ipv4"), (six, "ipv6")] {
            if is_preferred {
                self.set(&[a, b, "prefer"], tree::text(word, at));
            }
        }
        if let (true, at) = self.flag("tcp-upstream") {
            self.set(&[a, b, "tcp-only"], tree::flag(true, at));
        }
    }

    /// What certain servers are told of us.
    fn strings(&mut self) {
        let code = self.bounded("edns-client-string-opcode", 1, 65_535);
        for statement in self.all("edns-client-string") {
            let [servers, text] = [statement.word(0), statement.word(1)];
            let Some(prefix) = access::prefix(&servers.text) else {
                let problem = Problem::error(servers.span, format!("\"{}\" is not a prefix", servers.text));
                self.problems.push(problem.expected("an address, perhaps with the number of its bits"));
                continue;
            };
            let entries = vec![
                ("servers", tree::text(prefix.to_string(), servers.span)),
                ("code", tree::text(code.0.to_string(), code.1)),
                ("text", tree::as_written(text)),
            ];
            self.tree.push(&["outgoing", "options"], tree::map(entries, servers.span));
        }
    }

    /// What is permitted and avoided changes the set of ports in the order of the file.
    fn ports(&mut self) {
        let mut ranges = vec![USUAL_PORTS];
        let mut at: Option<Span> = None;
        let names = ["outgoing-port-permit", "outgoing-port-avoid"];
        for statement in self.server().iter().filter(|it| names.contains(&it.row.name)) {
            let word = statement.word(0);
            let Some(range) = range(&word.text) else {
                let problem = Problem::error(word.span, format!("\"{}\" is no port", word.text));
                self.problems.push(problem.expected("a number or a range, such as 3200-3208"));
                continue;
            };
            if statement.row.name == "outgoing-port-permit" {
                ranges.push(range);
            } else {
                ranges = ranges.into_iter().flat_map(|known| without(known, range)).flatten().collect();
            }
            at = Some(word.span);
        }
        let Some(at) = at else { return };
        if ranges.is_empty() {
            self.error(at, "no port is left that queries could leave through");
        }
        for (first, last) in ranges {
            self.tree.push(&["outgoing", "ports"], tree::text(format!("{first}-{last}"), at));
        }
    }
}

/// Reads a port or a range of ports. Nobody can be asked from port 0.
fn range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse::<u16>().ok()?, last.trim().parse().ok()?);
    (first <= last).then_some((first.max(1), last))
}

/// Returns what of a range lies below and above another one.
fn without(known: (u16, u16), other: (u16, u16)) -> [Option<(u16, u16)>; 2] {
    let below = other.0.checked_sub(1).map(|end| (known.0, known.1.min(end)));
    let above = other.1.checked_add(1).map(|begin| (known.0.max(begin), known.1));
    [below, above].map(|part| part.filter(|(first, last)| first <= last))
}
