//! Limits, cookies, sizes of messages.

use diagnostic::{Problem, Span};
use wire::Prefix;

use super::clients::LOOPBACK;
use super::{Lowering, access};
use crate::tree;

/// Octets from which on a query is large there: more than one of UDP without EDNS (RFC 1035
/// §4.2.1).
const LARGE_OCTETS: u64 = 512;

impl Lowering<'_> {
    pub(super) fn limits(&mut self) {
        let (threads, _) = self.number("num-threads");
        let (waiting, at) = self.number("num-queries-per-thread");
        let waiting = waiting.saturating_mul(threads.max(1)).clamp(64, 10_000_000);
        self.set_number(&["limits", "waiting"], (waiting, at));
        // Unbound does not answer a query that finds no place, but for clients over "wait-limit".
        self.set(&["limits", "shed"], tree::text("drop-overload", at));
        let (wait_limit, at) = self.bounded("wait-limit", 0, 10_000_000);
        self.set_or_off(&["limits", "wait-limit"], wait_limit, &wait_limit.to_string(), at);
        self.wait_networks(wait_limit);
        let (discard, at) = self.bounded("discard-timeout", 0, 60_000);
        self.set_or_off(&["limits", "discard-timeout"], discard, &format!("{}ms", discard.max(100)), at);
        let (idle, at) = self.bounded("tcp-idle-timeout", 1000, 3_600_000);
        self.set_ms(&["limits", "tcp", "idle-timeout"], (idle, at));
        let (is_announced, at) = self.flag("edns-tcp-keepalive");
        let announced_to = if is_announced { "all" } else { "nobody" };
        self.set(&["limits", "tcp", "announce"], tree::text(announced_to, at));
        let (connections, at) = self.number("incoming-num-tcp");
        let connections = connections.saturating_mul(threads.max(1)).clamp(1, 1_000_000);
        self.set_number(&["limits", "tcp", "connections"], (connections, at));
        self.set_number(&["limits", "tcp", "connections-per-client"], (connections, at));
        if let (true, at) = self.flag("harden-large-queries") {
            self.set_number(&["limits", "query-size"], (LARGE_OCTETS, at));
        }
        self.networks();
        self.rate();
        self.cookies();
        let (octets, at) = self.bounded("max-udp-size", 512, 4096);
        self.set_number(&["edns", "udp-size"], (octets, at));
        let (is_on, at) = self.flag("ede");
        self.set(&["edns", "extended-errors"], tree::flag(is_on, at));
        let (pads, at) = self.flag("pad-responses");
        let (block, _) = self.bounded("pad-responses-block-size", 16, 4096);
        self.set_or_off(&["edns", "padding"], u64::from(pads), &block.to_string(), at);
    }

    /// Sets what zero switches off.
    fn set_or_off(&mut self, path: &[&str], number: u64, text: &str, at: Span) {
        self.set(path, tree::text(if number == 0 { "off" } else { text }, at));
    }

    /// Replies that are held for clients of networks, and for those with a cookie.
    fn wait_networks(&mut self, wait_limit: u64) {
        let (with_cookie, at) = self.bounded("wait-limit-cookie", 0, 10_000_000);
        // There "wait-limit: 0" switches all of them off.
        let text = with_cookie.max(1).to_string();
        self.set_or_off(&["limits", "wait-limit-with-cookie"], wait_limit, &text, at);
        if wait_limit == 0 {
            return;
        }
        let whole = self.tree.whole();
        let mut networks: Vec<(Prefix, [Option<String>; 2], Span)> = Vec::new();
        // This machine may always have any number.
        for text in LOOPBACK {
            let prefix = access::prefix(text).expect("a prefix");
            networks.push((prefix, [Some("off".to_owned()), Some("off".to_owned())], whole));
        }
        for (place, keyword) in ["wait-limit-netblock", "wait-limit-cookie-netblock"].into_iter().enumerate()
        {
            for statement in self.all(keyword) {
                let [network, limit] = [statement.word(0), statement.word(1)];
                let (prefix, number) = (access::prefix(&network.text), limit.text.parse::<i64>());
                let (Some(prefix), Ok(number @ -1..=10_000_000)) = (prefix, number) else {
                    let message = format!("\"{} {}\" is no limit", network.text, limit.text);
                    let problem = Problem::error(statement.span(), message);
                    self.problems.push(
                        problem.expected("a prefix and a number, such as 192.0.2.0/24 5000; -1 is no limit"),
                    );
                    continue;
                };
                let text = if number < 0 { "off".to_owned() } else { number.to_string() };
                let at = networks.iter().position(|(known, ..)| *known == prefix).unwrap_or_else(|| {
                    networks.push((prefix, [None, None], statement.span()));
                    networks.len() - 1
                });
                networks[at].1[place] = Some(text);
            }
        }
        for (prefix, numbers, at) in networks {
            let mut entries = vec![("prefix", tree::text(prefix.to_string(), at))];
            for (key, number) in ["replies", "with-cookie"].into_iter().zip(numbers) {
                entries.extend(number.map(|number| (key, tree::text(number, at))));
            }
            self.tree.push(&["limits", "wait-networks"], tree::map(entries, at));
        }
    }

    /// Connections of all clients of a network.
    fn networks(&mut self) {
        for statement in self.all("tcp-connection-limit") {
            let [network, limit] = [statement.word(0), statement.word(1)];
            let (prefix, number) = (access::prefix(&network.text), limit.text.parse::<u32>());
            let (Some(prefix), Ok(number @ 0..=1_000_000)) = (prefix, number) else {
                let problem = Problem::error(
                    statement.span(),
                    format!("\"{} {}\" is no limit", network.text, limit.text),
                );
                self.problems.push(problem.expected("a prefix and a number, such as 192.0.2.0/24 20"));
                continue;
            };
            let entries = vec![
                ("prefix", tree::text(prefix.to_string(), network.span)),
                ("connections", tree::text(number.to_string(), limit.span)),
            ];
            let item = tree::map(entries, network.span);
            self.tree.push(&["limits", "tcp", "networks"], item);
        }
    }

    /// Each address has an allowance of its own there.
    fn rate(&mut self) {
        let (rate, at) = self.bounded("ip-ratelimit", 0, 1_000_000);
        let (with_cookie, cookie_at) = self.bounded("ip-ratelimit-cookie", 0, 1_000_000);
        let (backs_off, backoff_at) = self.flag("ip-ratelimit-backoff");
        if rate == 0 {
            if with_cookie > 0 {
                self.warn(cookie_at, "\"ip-ratelimit-cookie\" has no effect without \"ip-ratelimit\"");
            }
            return;
        }
        if with_cookie > 0 {
            self.set_number(&["limits", "rate", "with-cookie"], (with_cookie, cookie_at));
        }
        if backs_off {
            self.set(&["limits", "rate", "backoff"], tree::flag(true, backoff_at));
        }
        self.set_number(&["limits", "rate", "per-second"], (rate, at));
        self.set_number(&["limits", "rate", "burst"], (rate, at));
        self.set_number(&["limits", "rate", "ipv4-prefix"], (32, at));
        self.set_number(&["limits", "rate", "ipv6-prefix"], (128, at));
        self.set(&["limits", "rate", "exempt"], tree::list(Vec::new()));
        let factor = self.bounded("ip-ratelimit-factor", 0, 100);
        self.set_number(&["limits", "rate", "pass"], factor);
        self.set_number(&["limits", "rate", "slip"], (0, at));
    }

    fn cookies(&mut self) {
        let (answers, at) = self.flag("answer-cookie");
        self.set(&["cookies", "enabled"], tree::flag(answers, at));
        if let (true, Some(secret)) = (answers, self.last("cookie-secret")) {
            self.set(&["cookies", "secret"], tree::as_written(secret));
        }
        if let (true, Some(file)) =
            (answers, self.last("cookie-secret-file").filter(|it| !it.text.is_empty()))
        {
            let file = self.file(file);
            self.set(&["cookies", "secrets-file"], file);
        }
    }
}
