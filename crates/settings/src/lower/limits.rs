//! What protects the server: the tree to settings.

use diagnostic::{At, Problem};
use plan::listeners::AnnounceWord;
use plan::upstreams::Shed;
use wire::Prefix;

use super::{Lowering, Section};
use crate::groups::{Handshakes, Limits, Rate, Tcp, WaitNetwork};

impl Lowering<'_> {
    /// Reads the network that an item is about, which none before may be about.
    fn network(&mut self, item: &Section<'_>, mut before: impl Iterator<Item = Prefix>) -> Option<Prefix> {
        let prefix = self.optional(item, "prefix", |lowering, row, node| {
            lowering.read(node, &row.kind.expected(), values::prefix)
        });
        let Some(At { value: prefix, span }) = prefix else {
            if item.entry("prefix").is_none() {
                self.problems.push(Problem::error(item.span, "this item has no \"prefix\""));
            }
            return None;
        };
        if before.any(|known| known == prefix) {
            self.problems.push(Problem::error(span, format!("\"{prefix}\" is listed twice")));
        }
        Some(prefix)
    }

    /// Reads how many connections networks may have.
    fn networks(&mut self, tcp: &Section<'_>) -> Vec<(Prefix, u32)> {
        let mut networks: Vec<(Prefix, u32)> = Vec::new();
        for item in self.items(tcp, "networks") {
            let connections = self.whole(&item, "connections") as u32;
            if let Some(prefix) = self.network(&item, networks.iter().map(|(prefix, _)| *prefix)) {
                networks.push((prefix, connections));
            }
        }
        networks
    }

    /// Reads how many replies are held for clients of networks.
    fn wait_networks(&mut self, limits: &Section<'_>) -> Vec<WaitNetwork> {
        let mut networks: Vec<WaitNetwork> = Vec::new();
        for item in self.items(limits, "wait-networks") {
            let mut number = |key| {
                let limit = self.optional(&item, key, Self::read_whole)?.value;
                Some(limit.map(|number| number as u32))
            };
            let (replies, with_cookie) = (number("replies"), number("with-cookie"));
            let Some(prefix) = self.network(&item, networks.iter().map(|network| network.prefix)) else {
                continue;
            };
            if (replies, with_cookie) == (None, None) {
                let message = format!("nothing is said about clients of \"{prefix}\"");
                self.problems
                    .push(Problem::warning(item.span, message).hint("set \"replies\" or \"with-cookie\""));
            }
            networks.push(WaitNetwork { prefix, replies, with_cookie });
        }
        networks
    }

    pub(super) fn limits(&mut self, root: &Section<'_>) -> (Limits, Tcp, Handshakes, u64) {
        let limits = self.section(root, "limits");
        let rate = self.section(&limits, "rate");
        let per_second = self.whole_or(&rate, "per-second").map(|number| number as u32);
        if per_second.is_none() {
            for entry in rate.entries.iter().filter(|entry| entry.key != "per-second") {
                if schema::find(&rate.child(&entry.key)).is_none() || self.said(&rate, &entry.key).is_none() {
                    continue;
                }
                self.problems.push(
                    Problem::warning(
                        entry.key_span,
                        format!("\"{}\" is ignored: there is no rate limit", entry.key),
                    )
                    .hint("set \"per-second\" beside it"),
                );
            }
        }
        let ban_for = self.duration_or(&rate, "ban-for");
        if let (Some(_), None, Some(entry)) = (per_second, ban_for, self.said(&rate, "ban-after")) {
            let message = "\"ban-after\" is ignored: nobody is banned for being over the limit";
            self.problems.push(Problem::warning(entry.key_span, message).hint("set \"ban-for\" beside it"));
        }
        let tcp = self.section(&limits, "tcp");
        let tcp = Tcp {
            networks: self.networks(&tcp),
            connections: self.whole(&tcp, "connections") as u32,
            connections_per_client: self.whole(&tcp, "connections-per-client") as u32,
            idle_timeout: self.duration(&tcp, "idle-timeout"),
            announced_to: self.word(&tcp, "announce", AnnounceWord::parse),
            first_query_timeout: self.duration(&tcp, "first-query-timeout"),
            age: self.duration_or(&tcp, "age"),
            pipeline: self.whole(&tcp, "pipeline") as u32,
            buffers: self.size(&tcp, "buffers"),
        };
        let rate = Rate {
            per_second,
            burst: self.whole(&rate, "burst") as u32,
            slip: self.whole(&rate, "slip") as u32,
            pass: self.whole(&rate, "pass") as u32,
            ipv4_prefix: self.whole(&rate, "ipv4-prefix") as u8,
            ipv6_prefix: self.whole(&rate, "ipv6-prefix") as u8,
            exempt: self.prefixes(&rate, "exempt"),
            with_cookie: self.whole_or(&rate, "with-cookie").map(|number| number as u32),
            backoff: self.boolean(&rate, "backoff"),
            ban_for,
            ban_after: self.whole(&rate, "ban-after") as u32,
        };
        let tls = self.section(&limits, "tls");
        let handshakes = Handshakes {
            handshakes_per_second: self.whole(&tls, "handshakes-per-second") as u32,
            handshakes_per_client: self.whole(&tls, "handshakes-per-client") as u32,
            handshakes_burst: self.whole(&tls, "handshakes-burst") as u32,
            handshake_timeout: self.duration(&tls, "handshake-timeout"),
        };
        let signatures = self.section(&limits, "signatures");
        let limits = Limits {
            rate,
            waiting: self.whole(&limits, "waiting") as u32,
            shed: self.word(&limits, "shed", Shed::parse),
            query_size: self.whole_or(&limits, "query-size").map(|number| number as u16),
            wait_limit: self.whole_or(&limits, "wait-limit").map(|number| number as u32),
            wait_limit_with_cookie: self
                .whole_or(&limits, "wait-limit-with-cookie")
                .map(|number| number as u32),
            wait_networks: self.wait_networks(&limits),
            discard_timeout: self.duration_or(&limits, "discard-timeout"),
            signatures_per_second: self.whole(&signatures, "per-second") as u32,
        };
        (limits, tcp, handshakes, self.size(&signatures, "memory"))
    }
}
