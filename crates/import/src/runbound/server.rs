//! The server itself: where it listens, whom it answers, how it finds answers.

use std::net::IpAddr;

use diagnostic::At;
use wire::Prefix;

use crate::authority::prefixes::{everything, read, subtract, text};
use crate::write::{Map, Noted, Out};

use super::Import;

impl Import<'_> {
    /// Returns a number, within bounds.
    fn number(&mut self, key: &str, otherwise: u64, min: u64, max: u64) -> u64 {
        let Some(At { value, span }) = self.server.last(key).cloned() else { return otherwise };
        match value.parse::<u64>() {
            Ok(number) => number.clamp(min, max),
            Err(_) => {
                self.files.wrong(span, format!("\"{value}\" is not a number"));
                otherwise
            }
        }
    }

    /// What the server says about itself: nothing, unless it is told to.
    pub(super) fn presentation(&mut self) {
        let mut server = Map::default();
        if !self.server.flag("hide-version", true) {
            let version = self.server.last("version").map_or("runbound", |at| &at.value).to_owned();
            server.put("version", version);
        }
        if !self.server.flag("hide-identity", true) {
            let identity = self.server.last("identity").map_or("host", |at| &at.value).to_owned();
            server.put("hostname", identity.clone());
            server.put("identity", identity);
        }
        if !server.is_empty() {
            self.sections.put("server", server);
        }
    }

    /// Listeners: each address with the plain port, and with the others if there is a certificate.
    pub(super) fn listening(&mut self) {
        let port = self.number("port", 53, 1, 65_535);
        let mut addresses: Vec<IpAddr> = Vec::new();
        for interface in self.server.clone().all("interface") {
            match interface.value.parse() {
                Ok(address) => addresses.push(address),
                Err(_) => {
                    self.files.wrong(interface.span, format!("\"{}\" is not an address", interface.value));
                }
            }
        }
        if addresses.is_empty() {
            addresses.push(IpAddr::from([0, 0, 0, 0]));
        }
        let mut plain = Vec::new();
        for (key, word) in [("do-udp", "udp"), ("do-tcp", "tcp")] {
            plain.extend(self.server.flag(key, true).then(|| word.to_owned()));
        }
        let certificate = self.server.last("tls-service-pem").cloned();
        let mut listeners: Vec<(u64, Vec<String>)> = vec![(port, plain)];
        if certificate.is_some() {
            for (key, otherwise, word) in
                [("tls-port", 853, "tls"), ("https-port", 443, "https"), ("quic-port", 853, "quic")]
            {
                listeners.push((self.number(key, otherwise, 1, 65_535), vec![word.to_owned()]));
            }
        }
        let mut items = Vec::new();
        for address in addresses {
            for (port, speaks) in listeners.iter().filter(|(_, speaks)| !speaks.is_empty()) {
                let host = if address.is_ipv6() { format!("[{address}]") } else { address.to_string() };
                let mut item = Map::default();
                item.put("at", format!("{host}:{port}"));
                item.put("transport", Out::Row(speaks.clone()));
                items.push(Noted::from(item));
            }
        }
        self.sections.put("listen", Out::List(items));
        let Some(certificate) = certificate else { return };
        let mut item = Map::default();
        item.put("certificate", self.files.beside(&certificate.value));
        if let Some(key) = self.server.last("tls-service-key").cloned() {
            item.put("key", self.files.beside(&key.value));
        }
        let mut tls = Map::default();
        tls.put("certificates", Out::List(vec![item.into()]));
        tls.put("discovery", Out::Flag(self.server.flag("ddr", false)));
        if let Some(file) = self.server.last("dot-client-auth-ca").cloned() {
            tls.put("client-ca", Out::Row(vec![self.files.beside(&file.value)]));
        }
        self.sections.put("tls", tls);
    }

    /// Who may ask: the first line that has a client counts, and without any everybody may.
    pub(super) fn access(&mut self) {
        let (mut allowed, mut denied, mut seen): (Vec<Prefix>, Vec<Prefix>, Vec<Prefix>) = Default::default();
        let lines: Vec<At<String>> = self.server.all("access-control").cloned().collect();
        for line in &lines {
            let mut words = line.value.split_whitespace();
            let (network, action) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            let Some(prefixes) = read(network) else {
                self.files.wrong(line.span, format!("\"{network}\" is not a network"));
                continue;
            };
            let new = subtract(&prefixes, &seen);
            match action {
                "allow" | "allow_setrd" | "allow_snoop" => allowed.extend(new),
                "deny" | "deny_non_local" => denied.extend(new),
                "refuse" | "refuse_non_local" => {}
                other => self.files.wrong(line.span, format!("\"{other}\" is no action")),
            }
            seen.extend(prefixes);
        }
        if lines.is_empty() {
            allowed = everything();
        }
        for (key, prefixes) in [("allow", allowed), ("deny", denied)] {
            if key == "allow" || !prefixes.is_empty() {
                self.sections.put(key, Out::Row(prefixes.into_iter().map(text).collect()));
            }
        }
    }

    /// The rate limit, which is on there, and cookies.
    pub(super) fn limits(&mut self) {
        let per_second = self.number("rate-limit", 200, 0, 1_000_000);
        if per_second > 0 {
            let burst = self.number("rate-limit-burst", 2 * per_second, 1, 10_000_000);
            let slip = self.number("rrl-slip", 0, 0, 100);
            let (v4, v6) = (
                self.number("rate-limit-prefix-v4", 24, 8, 32),
                self.number("rate-limit-prefix-v6", 48, 16, 128),
            );
            let mut rate = Map::default();
            for (key, number) in [
                ("per-second", per_second),
                ("burst", burst),
                ("slip", slip),
                ("ipv4-prefix", v4),
                ("ipv6-prefix", v6),
            ] {
                rate.put(key, number.to_string());
            }
            let mut limits = Map::default();
            limits.put("rate", rate);
            self.sections.put("limits", limits);
        }
        let mut cookies = Map::default();
        cookies.put("enabled", Out::Flag(self.server.flag("dns-cookies", false)));
        self.sections.put("cookies", cookies);
    }

    /// The cache of answers.
    pub(super) fn caches(&mut self) {
        let mut main = Map::default();
        for (key, ours, otherwise, max) in
            [("cache-min-ttl", "min-ttl", 0, 86_400), ("cache-max-ttl", "max-ttl", 86_400, 2_592_000)]
        {
            let seconds = self.number(key, otherwise, u64::from(ours == "max-ttl"), max);
            main.put(ours, format!("{seconds}s"));
        }
        if self.server.flag("serve-stale", true) {
            let age = self.number("stale-max-age", 86_400, 1, 2_592_000);
            main.put("stale", format!("{age}s"));
            let ttl = self.number("stale-answer-ttl", 30, 1, 3600);
            main.put("stale-ttl", format!("{ttl}s"));
        } else {
            main.put("stale", "off");
        }
        let is_on = self.server.flag("prefetch", false);
        main.put("prefetch", if is_on { "10%" } else { "off" });
        let mut caches = Map::default();
        caches.put("main", main);
        self.sections.put("cache", caches);
    }

    /// Where answers come from.
    pub(super) fn found(&mut self) {
        self.policy.push("cache(main)".into());
        if self.server.last("resolution").is_some_and(|at| at.value == "full-recursion") {
            let mut resolver = Map::default();
            let minimises = self.server.flag("qname-minimisation", true);
            resolver.put("qname-minimisation", if minimises { "relaxed" } else { "off" });
            for (key, ours) in [("do-ip4", "ipv4"), ("do-ip6", "ipv6")] {
                resolver.put(ours, Out::Flag(self.server.flag(key, true)));
            }
            let mut resolvers = Map::default();
            resolvers.put("default", resolver);
            self.sections.put("resolvers", resolvers);
            self.policy.push("recurse".into());
            return;
        }
        let servers = self.servers();
        let mut group = Map::default();
        let count = servers.len();
        group.put("servers", Out::List(servers));
        if count > 1 {
            // All are asked at once there, and the first answer counts.
            group.put("pick", format!("race({})", count.min(8)));
        }
        let mut groups = Map::default();
        groups.put("default", group);
        self.sections.put("upstreams", groups);
        self.policy.push("forward(default)".into());
        let private: Vec<String> = self.server.all("private-address").map(|at| at.value.clone()).collect();
        if !private.is_empty() {
            self.policy.push(format!("rebind(servfail, address {})", private.join("|")).into());
        }
    }

    /// Returns the servers: those of all forward zones, whatever their names are, and of the API.
    fn servers(&mut self) -> Vec<Noted> {
        let mut servers: Vec<(String, bool, Option<String>)> = Vec::new();
        let zones: Vec<_> =
            self.parts.iter().filter(|part| part.name.value == "forward-zone").cloned().collect();
        for zone in &zones {
            let is_tls = zone.flag("forward-tls-upstream", false);
            if let Some(name) = zone.last("name").filter(|name| !matches!(name.value.as_str(), "." | "")) {
                let message = "servers of all zones are one group there, and here: a condition before \"forward\" keeps names apart";
                self.files.warn(name.span, message);
            }
            let name = zone.last("forward-tls-hostname").map(|at| at.value.clone());
            for address in zone.all("forward-addr") {
                servers.push((address.value.clone(), is_tls, name.clone()));
            }
        }
        for server in self.store("upstreams.json", Some("upstreams")) {
            let Some(address) = server.text("addr") else { continue };
            let is_tls = server.text("protocol") == Some("dot");
            let port = server.text("port").map_or(String::new(), |port| format!("@{port}"));
            // What the API says of a server counts.
            servers
                .retain(|(known, tls, _)| known.split(['@', '#']).next() != Some(address) || *tls != is_tls);
            servers.push((
                format!("{address}{port}"),
                is_tls,
                server.text("tls_hostname").map(str::to_owned),
            ));
        }
        if servers.is_empty() {
            servers.push(("1.1.1.1@853".to_owned(), true, Some("cloudflare-dns.com".to_owned())));
            servers.push(("1.0.0.1@853".to_owned(), true, Some("cloudflare-dns.com".to_owned())));
        }
        servers
            .into_iter()
            .map(|(address, is_tls, name)| server_text(&address, is_tls, name).into())
            .collect()
    }

    /// The log.
    pub(super) fn log(&mut self) {
        let mut log = Map::default();
        let level = match self.number("verbosity", 1, 0, 5) {
            0 => "error",
            1 => "warn",
            2 => "info",
            _ => "debug",
        };
        log.put("level", level);
        if let Some(file) = self.server.last("logfile").filter(|at| !at.value.is_empty()).cloned() {
            log.put("to", self.files.beside(&file.value));
        }
        self.sections.put("log", log);
    }
}

/// Returns a server as upstreams are written.
fn server_text(address: &str, is_tls: bool, name: Option<String>) -> String {
    let (place, own_name) =
        address.split_once('#').map_or((address, None), |(place, name)| (place, Some(name)));
    let usual = if is_tls { "853" } else { "53" };
    let (host, port) = place.split_once('@').unwrap_or((place, usual));
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    match (is_tls, own_name.map(str::to_owned).or(name)) {
        (true, Some(name)) => format!("tls://{host}:{port}#{name}"),
        (true, None) => format!("tls://{host}:{port}"),
        (false, _) => format!("{host}:{port}"),
    }
}
