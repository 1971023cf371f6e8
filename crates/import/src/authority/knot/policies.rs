//! Knot's policies of signing.

use super::super::super::write::{Map, Out};
use super::super::Peer;
use super::super::fields::{Fields, Known};
use super::super::made::{self, ZoneMade, seconds, signing_algorithm};
use super::{Knot, row};
use dnssec::KeySize;

/// What one policy of ours is made from: a policy of Knot's, and what zones say beside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Variant {
    policy: String,
    serial: Option<String>,
    zonemd: Option<String>,
    /// Servers that are sent DS.
    ds_push: Vec<String>,
}

const ALONE: &str = "one server signs a zone";

const POLICY: Known = Known {
    used: &[
        "id",
        "algorithm",
        "ksk-size",
        "zsk-size",
        "single-type-signing",
        "dnskey-ttl",
        "zone-max-ttl",
        "ksk-lifetime",
        "zsk-lifetime",
        "propagation-delay",
        "rrsig-lifetime",
        "rrsig-refresh",
        "rrsig-pre-refresh",
        "nsec3",
        "nsec3-iterations",
        "nsec3-opt-out",
        "nsec3-salt-length",
        "signing-threads",
        "ksk-submission",
        "cds-cdnskey-publish",
        "cds-digest-type",
        "manual",
        "ds-push",
        "keystore",
    ],
    left_out: &[
        ("delete-delay", "keys are removed when they are not needed any more"),
        ("nsec3-salt-lifetime", "there is no salt (RFC 9276)"),
        ("reproducible-signing", "it makes no difference to whoever validates"),
        ("dnskey-management", ALONE),
        ("keytag-modulo", ALONE),
    ],
    refused: &[
        ("ksk-shared", "each zone has keys of its own"),
        ("offline-ksk", "both keys are on the server"),
        ("dnskey-sync", ALONE),
        ("unsafe-operation", "nothing unsafe is done"),
    ],
};

impl Knot<'_, '_, '_> {
    /// Says by which policy a zone is signed, if it is.
    pub(super) fn sign(&mut self, zone: &Fields<'_>, serial: Option<String>, made: &mut ZoneMade) {
        let is_signed = zone.flag("dnssec-signing", self.files).is_some_and(|flag| flag.value);
        let zonemd = zone.one("zonemd-generate").filter(|word| word.value != "none");
        if !is_signed {
            if let Some(zonemd) = zonemd {
                self.files.wrong(zonemd.span, "ZONEMD is made only for zones that are signed here");
            }
            return;
        }
        let zonemd = match zonemd.map(|word| (word.value.as_str(), word.span)) {
            None => None,
            Some(("zonemd-sha384", _)) => Some("sha384".to_owned()),
            Some(("zonemd-sha512", _)) => Some("sha512".to_owned()),
            Some((other, span)) => {
                self.files.wrong(span, format!("\"zonemd-generate: {other}\" cannot be carried over"));
                None
            }
        };
        let named = zone.one("dnssec-policy");
        let policy = named.map_or("default", |at| at.value.as_str()).to_owned();
        let entries = self.item("policy", &policy);
        if entries.is_none() && policy != "default" {
            let span = named.map_or(diagnostic::Span::BUILT_IN, |at| at.span);
            self.files.wrong(span, format!("there is no policy \"{policy}\""));
            return;
        }
        let fields = Fields(entries.into_iter().collect());
        // What a zone says counts before what its policy says; an empty word is nobody.
        let pushed = match zone.all("ds-push") {
            own if own.is_empty() => fields.all("ds-push"),
            own => own,
        };
        let pushed = pushed.into_iter().filter(|id| !id.value.is_empty());
        let peers: Vec<Peer> = pushed.flat_map(|id| self.peers(id)).collect();
        let variant = Variant { policy: policy.clone(), serial, zonemd, ds_push: made::texts(&peers) };
        if let Some(name) = self.policies.get(&variant) {
            made.sign = Some(name.clone());
            return;
        }
        let legal = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
        let base: String = policy.chars().map(legal).collect();
        let mut name = base.clone();
        let mut number = 2;
        while self.policies.values().any(|taken| *taken == name) {
            name = format!("{base}-{number}");
            number += 1;
        }
        let is_first = !self.policies.keys().any(|other| other.policy == policy);
        let map = self.policy(&fields, &variant, is_first);
        self.made.signing.put(name.clone(), map);
        self.policies.insert(variant, name.clone());
        made.sign = Some(name);
    }

    fn policy(&mut self, fields: &Fields<'_>, variant: &Variant, is_first: bool) -> Map {
        let mut map = Map::default();
        if is_first {
            for entries in &fields.0 {
                POLICY.check("a policy of Knot's", entries, self.files);
            }
        }
        if let Some(flag) = fields.flag("manual", self.files).filter(|flag| flag.value) {
            self.files
                .wrong(flag.span, "\"manual\" cannot be carried over: the server looks after keys itself");
        }
        if let Some(word) = fields.one("algorithm") {
            match signing_algorithm(&word.value) {
                Some(ours) => map.put("algorithm", ours),
                None => {
                    self.files.wrong(word.span, format!("\"{}\" is no algorithm to sign with", word.value));
                }
            }
        }
        self.key_sizes(fields, &mut map);
        for key in ["single-type-signing", "nsec3", "nsec3-opt-out"] {
            if let Some(true) = fields.flag(key, self.files).map(|flag| flag.value) {
                map.put(key, Out::Flag(true));
            }
        }
        let has_nsec3 = fields.flag("nsec3", self.files).is_some_and(|flag| flag.value);
        if let Some(rounds) = fields.number("nsec3-iterations", self.files).filter(|_| has_nsec3) {
            map.put("nsec3-iterations", rounds.value.to_string());
        }
        if let Some(salt) = fields.number("nsec3-salt-length", self.files).filter(|salt| salt.value > 0) {
            self.files.warn(salt.span, "\"nsec3-salt-length\" is left out: there is no salt (RFC 9276)");
        }
        self.times(fields, &mut map);
        self.cds(fields, &mut map);
        if let Some(threads) = fields.number("signing-threads", self.files) {
            map.put("threads", threads.value.to_string());
        }
        map.put_some("serial", variant.serial.clone());
        map.put_some("zonemd", variant.zonemd.clone());
        if !variant.ds_push.is_empty() {
            map.put("ds-push", Out::Row(variant.ds_push.clone()));
        }
        if let Some(id) = fields.one("ksk-submission") {
            self.submission(id, &mut map);
        }
        match fields.all("keystore").as_slice() {
            [] => {}
            [id] => {
                let before = self.files.problems.len();
                map.put_some("token", self.token(id));
                if !is_first {
                    // The first has the finding.
                    self.files.problems.truncate(before);
                }
            }
            [_, other, ..] => self.files.wrong(
                other.span,
                "several key stores cannot be carried over: a policy makes all its keys in one place",
            ),
        }
        map
    }

    /// Carries over the sizes of RSA keys.
    fn key_sizes(&mut self, fields: &Fields<'_>, map: &mut Map) {
        let algorithm = fields.one("algorithm");
        let is_rsa = algorithm.is_some_and(|word| word.value.to_ascii_lowercase().starts_with("rsa"));
        for key in ["ksk-size", "zsk-size"] {
            let Some(bits) = fields.number(key, self.files).filter(|_| is_rsa) else { continue };
            // What there is here; the next larger one is no weaker.
            let sizes = [1024_u64, 1280, 1536, 2048, 3072, 4096].into_iter();
            let mut legal =
                sizes.filter(|&bits| u32::try_from(bits).is_ok_and(|bits| KeySize::of_bits(bits).is_some()));
            let kept = legal.find(|&kept| kept >= bits.value).unwrap_or(4096);
            if kept != bits.value {
                self.files.warn(bits.span, format!("new keys have {kept} bits here, not {}", bits.value));
            }
            map.put(key, kept.to_string());
        }
    }

    /// Carries over TTLs, lifetimes of keys and signatures, and how long a change takes to be
    /// everywhere.
    fn times(&mut self, fields: &Fields<'_>, map: &mut Map) {
        let times = [
            "dnskey-ttl",
            "zone-max-ttl",
            "ksk-lifetime",
            "zsk-lifetime",
            "propagation-delay",
            "rrsig-lifetime",
            "rrsig-refresh",
            "rrsig-pre-refresh",
        ];
        for key in times {
            let Some(time) = self.time(fields, key) else { continue };
            match (key, time.value) {
                ("ksk-lifetime" | "zsk-lifetime", 0) => map.put(key, "forever"),
                (_, value) => map.put(key, seconds(value)),
            }
        }
    }

    /// Carries over when CDS and CDNSKEY are published, and with which digests.
    fn cds(&mut self, fields: &Fields<'_>, map: &mut Map) {
        if let Some(word) = fields.one("cds-cdnskey-publish") {
            match word.value.as_str() {
                ours @ ("none" | "rollover" | "always" | "delete-dnssec") => {
                    map.put("cds-cdnskey-publish", ours);
                }
                other => {
                    let message = format!(
                        "\"cds-cdnskey-publish: {other}\" cannot be carried over: CDS and CDNSKEY come together"
                    );
                    self.files.wrong(word.span, message);
                }
            }
        }
        let digests: Vec<String> =
            fields.all("cds-digest-type").iter().map(|word| word.value.replace('-', "")).collect();
        if !digests.is_empty() {
            map.put("cds-digest-type", Out::Row(digests));
        }
    }

    /// Returns the token of a key store; `None` if its keys are files.
    fn token(&mut self, id: &diagnostic::At<String>) -> Option<String> {
        const KEYSTORE: Known = Known {
            used: &["id", "backend", "config"],
            left_out: &[("key-label", "keys have labels")],
            refused: &[("ksk-only", "a policy makes all its keys in one place")],
        };
        let Some(entries) = self.item("keystore", &id.value) else {
            // The one that there is without being said.
            if id.value != "default" {
                self.files.wrong(id.span, format!("there is no keystore \"{}\"", id.value));
            }
            return None;
        };
        let fields = Fields(vec![entries]);
        if fields.one("backend").is_none_or(|backend| backend.value != "pkcs11") {
            return None;
        }
        KEYSTORE.check("a keystore of Knot's", entries, self.files);
        let Some(config) = fields.one("config") else {
            self.files.wrong(id.span, format!("the keystore \"{}\" does not say its token", id.value));
            return None;
        };
        // "URI module".
        let (uri, module) = match config.value.trim().split_once(char::is_whitespace) {
            Some((uri, module)) => (uri, Some(module.trim())),
            None => (config.value.trim(), None),
        };
        made::token(self.files, config.span, uri, module)
    }

    fn submission(&mut self, id: &diagnostic::At<String>, map: &mut Map) {
        let Some(entries) = self.item("submission", &id.value) else {
            self.files.wrong(id.span, format!("there is no submission \"{}\"", id.value));
            return;
        };
        const SUBMISSION: Known = Known {
            used: &["id", "parent", "check-interval", "timeout", "parent-delay"],
            left_out: &[],
            refused: &[],
        };
        SUBMISSION.check("a submission of Knot's", entries, self.files);
        let fields = Fields(vec![entries]);
        let parents: Vec<_> = fields.all("parent").into_iter().flat_map(|id| self.peers(id)).collect();
        if !parents.is_empty() {
            map.put("parent", row(parents.iter().map(|peer| peer.address)));
        }
        for (key, ours) in [
            ("check-interval", "parent-check-interval"),
            ("timeout", "parent-timeout"),
            ("parent-delay", "parent-delay"),
        ] {
            if let Some(time) = self.time(&fields, key) {
                match (key, time.value) {
                    ("timeout", 0) => {}
                    (_, value) => map.put(ours, seconds(value)),
                }
            }
        }
    }
}
