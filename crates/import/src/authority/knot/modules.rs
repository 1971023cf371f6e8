//! Knot's modules.

use diagnostic::At;

use super::super::super::write::{Map, Noted, Out};
use super::super::fields::{Entry, Fields, Known};
use super::super::made::{ZoneMade, seconds};
use super::super::prefixes;
use super::{Knot, geo};

const SYNTHRECORD: Known = Known {
    used: &["id", "type", "prefix", "origin", "ttl", "network"],
    left_out: &[(
        "reverse-short",
        "IPv6 addresses are written as short as they can be, and understood in every form",
    )],
    refused: &[],
};

const RRL: Known = Known {
    used: &["id", "rate-limit", "slip", "whitelist", "instant-limit"],
    left_out: &[
        ("table-size", "the table has room for what it needs"),
        ("log-period", "\"gannet stats\" shows how many were limited"),
        ("time-rate-limit", "connections are bounded by \"limits.tcp\""),
        ("time-instant-limit", "connections are bounded by \"limits.tcp\""),
    ],
    refused: &[("dry-run", "limits are in force")],
};

const COOKIES: Known = Known {
    used: &["id", "secret", "badcookie-slip"],
    left_out: &[("secret-lifetime", "a secret that is made here is a new one with every start")],
    refused: &[],
};

const DNSPROXY: Known = Known {
    used: &["id", "remote"],
    left_out: &[
        ("timeout", "who does not answer is found out by measuring"),
        ("tcp-fastopen", "the kernel decides"),
    ],
    refused: &[
        ("fallback", "what is not in the zones is passed on, and nothing else"),
        ("catch-nxdomain", "what a zone says does not exist is not asked for elsewhere"),
        ("address", "\"views\" tell clients apart"),
    ],
};

impl<'s> Knot<'_, '_, 's> {
    /// Returns the settings of a module that is named `mod-x` or `mod-x/id`.
    fn settings(&mut self, module: &At<String>) -> (String, Option<&'s [Entry]>) {
        let (kind, id) = match module.value.split_once('/') {
            Some((kind, id)) => (kind, id),
            None => (module.value.as_str(), "default"),
        };
        let found = self.item(kind, id);
        if found.is_none() && id != "default" {
            self.files.wrong(module.span, format!("there is no module \"{}\"", module.value));
        }
        (kind.to_owned(), found)
    }

    /// Carries over what holds for all zones.
    pub(super) fn global_modules(&mut self) {
        let Some(template) = self.item("template", "default") else { return };
        let fields = Fields(vec![template]);
        for module in fields.all("global-module") {
            let (kind, settings) = self.settings(module);
            let settings = Fields(settings.into_iter().collect());
            match kind.as_str() {
                "mod-rrl" => self.rate(&settings),
                "mod-cookies" => self.cookies(&settings),
                "mod-dnsproxy" => self.proxy(module, &settings),
                "mod-stats" => {
                    self.files.warn(module.span, "\"mod-stats\" is left out: \"gannet stats\" shows numbers");
                }
                "mod-whoami" | "mod-noudp" | "mod-dnstap" | "mod-probe" | "mod-queryacl"
                | "mod-authsignal" => {
                    self.no_module(module);
                }
                _ => self.no_module(module),
            }
        }
    }

    fn no_module(&mut self, module: &At<String>) {
        self.files.wrong(module.span, format!("\"{}\" cannot be carried over", module.value));
    }

    /// Carries over a module of one zone.
    pub(super) fn module(&mut self, module: &At<String>, made: &mut ZoneMade) {
        let (kind, settings) = self.settings(module);
        let settings = Fields(settings.into_iter().collect());
        match kind.as_str() {
            "mod-synthrecord" => self.synthesis(module, &settings, made),
            "mod-geoip" => geo::choose(self, module, &settings, made),
            "mod-stats" => {
                self.files.warn(module.span, "\"mod-stats\" is left out: \"gannet stats\" shows numbers");
            }
            "mod-rrl" | "mod-cookies" => {
                let message = format!(
                    "\"{kind}\" for one zone cannot be carried over: limits and cookies are of the whole server"
                );
                self.files.wrong(module.span, message);
            }
            _ => self.no_module(module),
        }
    }

    fn check(&mut self, known: &Known, fields: &Fields<'_>, owner: &str) {
        for entries in &fields.0 {
            known.check(owner, entries, self.files);
        }
    }

    fn synthesis(&mut self, module: &At<String>, fields: &Fields<'_>, made: &mut ZoneMade) {
        self.check(&SYNTHRECORD, fields, "\"mod-synthrecord\"");
        let mut map = Map::default();
        map.put_some("prefix", fields.one("prefix").map(|at| at.value.as_str()));
        let mut networks = Vec::new();
        for at in fields.all("network") {
            match prefixes::read(&at.value) {
                Some(found) => networks.extend(found.into_iter().map(prefixes::text)),
                None => self.files.wrong(at.span, format!("\"{}\" is no network", at.value)),
            }
        }
        if networks.is_empty() {
            self.files.wrong(module.span, format!("\"{}\" names no network", module.value));
        }
        map.put("networks", Out::Row(networks));
        let is_reverse = fields.one("type").is_some_and(|word| word.value == "reverse");
        if is_reverse {
            map.put_some("origin", fields.one("origin").map(|at| at.value.trim_end_matches('.').to_owned()));
        }
        map.put_some("ttl", self.time(fields, "ttl").map(|ttl| seconds(ttl.value)));
        made.make.push(map.into());
    }

    fn rate(&mut self, fields: &Fields<'_>) {
        self.check(&RRL, fields, "\"mod-rrl\"");
        // Knot's default.
        let rate = fields.number("rate-limit", self.files).map_or(50, |rate| rate.value);
        self.made.rate.note(
            "per-second",
            vec![
                "Knot counts for every length of prefix; here each client network has this many.".to_owned(),
            ],
            rate.max(1).to_string(),
        );
        if let Some(burst) = fields.number("instant-limit", self.files) {
            self.made.rate.put("burst", burst.value.max(1).to_string());
        }
        let slip = fields.number("slip", self.files).map_or(1, |slip| slip.value);
        self.made.rate.put("slip", slip.to_string());
        let exempt: Vec<String> = fields.all("whitelist").iter().map(|at| at.value.clone()).collect();
        if !exempt.is_empty() {
            self.made.rate.put("exempt", Out::Row(exempt));
        }
    }

    fn cookies(&mut self, fields: &Fields<'_>) {
        self.check(&COOKIES, fields, "\"mod-cookies\"");
        self.made.cookies.put("enabled", Out::Flag(true));
        let secrets = fields.all("secret");
        for (key, secret) in ["secret", "other-secret"].iter().zip(&secrets) {
            let hex = secret.value.trim_start_matches("0x");
            self.made.cookies.put(*key, hex);
        }
        if let Some(slip) = fields.number("badcookie-slip", self.files).filter(|slip| slip.value != 1) {
            self.files.warn(
                slip.span,
                "\"badcookie-slip\" is left out: a bad cookie is always answered with a good one",
            );
        }
    }

    fn proxy(&mut self, module: &At<String>, fields: &Fields<'_>) {
        self.check(&DNSPROXY, fields, "\"mod-dnsproxy\"");
        let peers: Vec<_> = fields.all("remote").into_iter().flat_map(|id| self.peers(id)).collect();
        if peers.is_empty() {
            self.files.wrong(module.span, "\"mod-dnsproxy\" names no remote");
            return;
        }
        let text = |peer: &super::super::Peer| match peer.address.port() {
            53 => peer.address.ip().to_string(),
            _ => peer.address.to_string(),
        };
        self.made.upstream("proxied", peers.iter().map(text).collect());
        self.made.main = vec![Noted::from("zones"), Noted::from("forward(proxied)")];
    }
}
