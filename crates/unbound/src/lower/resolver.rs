//! How answers are found.

use diagnostic::Problem;

use super::{Lowering, RESOLVER};
use crate::tree;

impl Lowering<'_> {
    pub(super) fn resolver(&mut self) {
        let [a, b] = RESOLVER;
        if let Some(file) = self.last("root-hints").filter(|file| !super::is_none(&file.text)) {
            let file = self.file(file);
            self.set(&[a, b, "root-hints"], file);
        }
        for (ours, theirs) in [("ipv4", "do-ip4"), ("ipv6", "do-ip6")] {
            let (is, at) = self.flag(theirs);
            self.set(&[a, b, ours], tree::flag(is, at));
        }
        if let (true, at) = self.flag("do-nat64") {
            let prefix = match self.last("nat64-prefix") {
                Some(word) => tree::as_written(word),
                None => tree::text(super::default("nat64-prefix"), at),
            };
            self.set(&[a, b, "nat64"], prefix);
        }
        for (ours, theirs) in [("servers", "send-client-subnet"), ("zones", "client-subnet-zone")] {
            for statement in self.all(theirs) {
                let word = statement.word(0);
                self.tree.push(&[a, b, "client-subnet", ours], tree::as_written(word));
            }
        }
        // Only loopback is left out there, and what the file names.
        let whole = self.tree.whole();
        self.set(&[a, b, "ask-private"], tree::flag(true, whole));
        let (spares, at) = self.flag("do-not-query-localhost");
        self.set(&[a, b, "ask-loopback"], tree::flag(!spares, at));
        for statement in self.all("do-not-query-address") {
            let word = statement.word(0);
            self.tree.push(&[a, b, "never-ask"], tree::as_written(word));
        }
        for (ours, theirs) in
            [("private-addresses", "private-address"), ("private-domains", "private-domain")]
        {
            for statement in self.all(theirs) {
                let word = statement.word(0);
                self.tree.push(&[a, b, ours], tree::as_written(word));
            }
        }
        // Rules on name servers are for those of all zones there.
        self.set_number(&[a, b, "min-ns-labels"], (0, whole));
        let (minimises, at) = self.flag("qname-minimisation");
        let (is_strict, strict_at) = self.flag("qname-minimisation-strict");
        let (word, at) = match (minimises, is_strict) {
            (false, _) => ("off", at),
            (true, false) => ("relaxed", at),
            (true, true) => ("strict", strict_at),
        };
        self.set(&[a, b, "qname-minimisation"], tree::text(word, at));
        self.set(&[a, b, "qname-minimisation-type"], tree::flag(minimises, at));
        for (key, is_on) in [
            ("check-dnames", false),
            ("minimal-denials", false),
            ("accept-referrals", true),
            ("own-ns-ttl", true),
            ("refer-without-rd", true),
        ] {
            self.set(&[a, b, key], tree::flag(is_on, whole));
        }
        let octets = self.bounded("edns-buffer-size", 512, 4096);
        self.set_number(&[a, b, "udp-size"], octets);
        self.set_number(&["edns", "announced-size"], octets);
        self.set(&[a, b, "require-authority"], tree::flag(false, whole));
        // It knows none; who matches the options of its queries would see others.
        self.set(&[a, b, "cookies"], tree::flag(false, whole));
        let (is_minimal, at) = self.flag("minimal-responses");
        // Either leaves the name servers beside an answer out.
        let (scrubs, scrubs_at) = self.flag("iter-scrub-promiscuous");
        self.set(&[a, b, "minimal-responses"], tree::flag(is_minimal || scrubs, at));
        self.set(&[a, b, "minimal-additional"], tree::flag(is_minimal, at));
        self.set(&[a, b, "minimal-expansions"], tree::flag(scrubs, scrubs_at));
        let (reports, at) = self.flag("dns-error-reporting");
        self.set(&[a, b, "error-reports"], tree::flag(reports, at));
        self.quotas();
        self.zone_rates();
        self.signatures();
    }

    /// How often the servers of one zone are asked.
    fn zone_rates(&mut self) {
        let [a, b] = RESOLVER;
        let (rate, at) = self.bounded("ratelimit", 0, 1_000_000);
        if rate > 0 {
            self.set_number(&[a, b, "zone-rate", "per-second"], (rate, at));
        }
        let mut has_any = rate > 0;
        for (keyword, ours) in [("ratelimit-for-domain", "per-second"), ("ratelimit-below-domain", "below")] {
            for statement in self.all(keyword) {
                let [zone, limit] = [statement.word(0), statement.word(1)];
                let Ok(number @ 0..=1_000_000) = limit.text.parse::<u32>() else {
                    let problem = Problem::error(limit.span, format!("\"{}\" is no rate", limit.text));
                    self.problems.push(problem.expected("queries a second, or 0 for any number"));
                    continue;
                };
                let text = if number == 0 { "off".to_owned() } else { number.to_string() };
                let zone = crate::names::bare(&zone.text);
                self.set(&[a, b, "zone-rate", "zones", &zone, ours], tree::text(text, limit.span));
                has_any = true;
            }
        }
        if has_any {
            let factor = self.bounded("ratelimit-factor", 0, 1000);
            self.set_number(&[a, b, "zone-rate", "pass"], factor);
            let (backs_off, at) = self.flag("ratelimit-backoff");
            self.set(&[a, b, "zone-rate", "backoff"], tree::flag(backs_off, at));
        }
    }

    /// What counts of signatures, and for whom.
    fn signatures(&mut self) {
        let [a, b] = RESOLVER;
        for keyword in ["caps-exempt", "caps-whitelist"] {
            for statement in self.all(keyword) {
                let word = statement.word(0);
                self.tree.push(&[a, b, "exact-case"], tree::as_written(word));
            }
        }
        if let (true, at) = self.flag("ignore-cd-flag") {
            self.set(&[a, b, "ignore-cd"], tree::flag(true, at));
        }
        let bogus = self.bounded("val-bogus-ttl", 1, 86_400);
        self.set_seconds(&[a, b, "bogus-ttl"], bogus);
        let most = 365 * 86_400;
        let (min, max) =
            (self.bounded("val-sig-skew-min", 0, most), self.bounded("val-sig-skew-max", 0, most));
        // The smaller bound is cut to the larger one there.
        self.set_seconds(&[a, b, "signature-skew", "min"], (min.0.min(max.0), min.1));
        self.set_seconds(&[a, b, "signature-skew", "max"], max);
    }

    /// What one question may cost.
    fn quotas(&mut self) {
        let [a, b] = RESOLVER;
        let servers = self.bounded("iter-scrub-ns", 2, 64);
        self.set_number(&[a, b, "name-servers"], servers);
        let lame = self.bounded("infra-host-ttl", 1, 86_400);
        self.set_seconds(&[a, b, "lame-time"], lame);
        let unknown = self.bounded("unknown-server-time-limit", 1, 60_000);
        self.set_ms(&[a, b, "patience", "unknown"], unknown);
        let known = self.bounded("infra-cache-min-rtt", 1, 2000);
        self.set_ms(&[a, b, "patience", "min"], known);
        let attempts = self.bounded("outbound-msg-retry", 1, 16);
        self.set_number(&[a, b, "attempts"], attempts);
        let queries = self.bounded("max-global-quota", 4, 255);
        self.set_number(&[a, b, "limits", "queries"], queries);
        let of_zone = self.bounded("max-sent-count", 1, 255);
        self.set_number(&[a, b, "limits", "queries-per-zone"], of_zone);
        let aliases = self.bounded("max-query-restarts", 1, 64);
        self.set_number(&[a, b, "limits", "aliases"], aliases);
        let Some(policy) = self.last("target-fetch-policy") else { return };
        let mut numbers = policy.text.split_whitespace().map(str::parse::<i64>);
        match numbers.next() {
            Some(Ok(first)) if numbers.all(|number| number.is_ok()) => {
                // Minus one: all at once. Zero: one when it is needed.
                let at_once = u64::try_from(first).unwrap_or(8).clamp(1, 8);
                self.set_number(&[a, b, "limits", "glueless-at-once"], (at_once, policy.span));
            }
            _ => {
                let problem = Problem::error(policy.span, format!("\"{}\" is no policy", policy.text));
                self.problems.push(problem.expected("numbers, such as \"3 2 1 0 0\""));
            }
        }
    }
}
