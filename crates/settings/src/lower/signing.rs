//! Policies of signing: the tree to settings.

use std::sync::Arc;

use diagnostic::suggest::{nearest, one_of};
use diagnostic::{At, Problem};
use dnssec::rollover::Announce;
use dnssec::{Algorithm, Denial, DigestType, KeySize, Nsec3Parameters, ZonemdHash};
use values::{Misread, TokenUri};

use super::{Lowering, Section};
use crate::groups::{
    CdsDigestWord, CdsWord, KeySettings, SerialWord, SigningAlgorithmWord, SigningSettings, ZonemdWord,
};
use plan::signing::{DenialKind, SigningPolicy};
use schema::Value;

/// Octets that a salt may have.
const SALT_OCTETS_MAX: usize = 255;

impl Lowering<'_> {
    /// Reads the policies of signing.
    pub(super) fn signing(&mut self, root: &Section<'_>, keys: &[KeySettings]) -> Vec<SigningSettings> {
        let mut policies = Vec::new();
        for (name, section) in self.named_sections(root, "signing") {
            policies.push(self.signing_policy(&name.value, &section, keys));
        }
        policies
    }

    fn signing_policy(&mut self, name: &str, section: &Section<'_>, keys: &[KeySettings]) -> SigningSettings {
        let algorithm = self.signing_algorithm(section);
        let (ksk_size, zsk_size) = (self.key_size(section, "ksk-size"), self.key_size(section, "zsk-size"));
        let rrsig_lifetime = self.duration(section, "rrsig-lifetime");
        let rrsig_refresh = self.duration_or(section, "rrsig-refresh");
        let rrsig_pre_refresh = self.duration(section, "rrsig-pre-refresh");
        let rrsig_jitter = self.duration(section, "rrsig-jitter");
        let refresh = rrsig_refresh.unwrap_or(rrsig_lifetime / 10);
        if refresh + rrsig_pre_refresh + rrsig_jitter >= rrsig_lifetime {
            let key = ["rrsig-refresh", "rrsig-jitter", "rrsig-pre-refresh", "rrsig-lifetime"];
            let span =
                key.iter().find_map(|key| section.entry(key)).map_or(section.span, |entry| entry.node.span);
            self.problems.push(
                Problem::error(span, "new signatures would be due for renewal at once").expected(
                    "rrsig-lifetime longer than rrsig-refresh, rrsig-pre-refresh and rrsig-jitter together",
                ),
            );
        }
        let denial = self.denial(section, algorithm);
        let token = self.token(section, &denial);
        let announced = self.word(section, "cds-cdnskey-publish", CdsWord::parse);
        let digests = self.list(section, "cds-digest-type", |_, value, scalar| match value {
            Value::Word(words) => Self::one_word(words, &scalar.text, CdsDigestWord::parse),
            other => super::read::unreachable_kind(other),
        });
        let zonemd = match self.word(section, "zonemd", ZonemdWord::parse) {
            ZonemdWord::None => None,
            ZonemdWord::Sha384 => Some(ZonemdHash::SHA384),
            ZonemdWord::Sha512 => Some(ZonemdHash::SHA512),
        };
        let serial = self.word(section, "serial", SerialWord::parse).policy();
        let parent = self.list(section, "parent", |_, value, scalar| match *value {
            Value::Socket { port, .. } => values::socket_address(&scalar.text, port),
            ref other => super::read::unreachable_kind(other),
        });
        let ds_push = self.remotes(section, "ds-push");
        for server in &ds_push {
            self.check_key(keys, server.value.key.as_ref(), server.span);
        }
        if let (Some(server), CdsWord::None) = (ds_push.first(), announced) {
            let message = "what is sent is what CDS records say, and this policy makes none";
            self.problems.push(
                Problem::error(server.span, message)
                    .expected("\"cds-cdnskey-publish\" with another word than \"none\", or no \"ds-push\""),
            );
        }
        let policy = SigningPolicy {
            name: name.to_owned(),
            algorithm,
            token,
            ksk_size,
            zsk_size,
            is_single: self.boolean(section, "single-type-signing"),
            ksk_lifetime: self.duration_or(section, "ksk-lifetime"),
            zsk_lifetime: self.duration_or(section, "zsk-lifetime"),
            propagation_delay: self.duration(section, "propagation-delay"),
            dnskey_ttl: self.duration_or(section, "dnskey-ttl"),
            zone_max_ttl: self.duration_or(section, "zone-max-ttl"),
            rrsig_lifetime,
            rrsig_refresh,
            rrsig_pre_refresh,
            rrsig_jitter,
            denial,
            announce: match announced {
                CdsWord::None | CdsWord::DeleteDnssec => Announce::Never,
                CdsWord::Rollover => Announce::Rollover,
                CdsWord::Always => Announce::Always,
            },
            asks_for_removal: matches!(announced, CdsWord::DeleteDnssec),
            cds_digests: digests
                .into_iter()
                .map(|At { value, .. }| match value {
                    CdsDigestWord::Sha256 => DigestType::SHA256,
                    CdsDigestWord::Sha384 => DigestType::SHA384,
                })
                .collect(),
            has_csync: self.boolean(section, "csync"),
            zonemd,
            serial,
            parent: parent.into_iter().map(|at| at.value).collect(),
            parent_check_interval: self.duration(section, "parent-check-interval"),
            parent_delay: self.duration(section, "parent-delay"),
            parent_timeout: self.duration_or(section, "parent-timeout"),
            ds_push: ds_push.iter().map(|server| server.value.address).collect(),
            threads: self.whole_or(section, "threads").map(|count| count as usize),
        };
        SigningSettings { policy: Arc::new(policy), ds_push }
    }

    fn signing_algorithm(&mut self, section: &Section<'_>) -> Algorithm {
        match self.word(section, "algorithm", SigningAlgorithmWord::parse) {
            SigningAlgorithmWord::RsaSha256 => Algorithm::RSASHA256,
            SigningAlgorithmWord::RsaSha512 => Algorithm::RSASHA512,
            SigningAlgorithmWord::EcdsaP256 => Algorithm::ECDSAP256SHA256,
            SigningAlgorithmWord::EcdsaP384 => Algorithm::ECDSAP384SHA384,
            SigningAlgorithmWord::Ed25519 => Algorithm::ED25519,
            SigningAlgorithmWord::Ed448 => Algorithm::ED448,
        }
    }

    /// Reads how long RSA keys are.
    fn key_size(&mut self, section: &Section<'_>, key: &str) -> KeySize {
        let bits = self.whole(section, key);
        let size = u32::try_from(bits).ok().and_then(KeySize::of_bits);
        if size.is_none()
            && let Some(entry) = section.entry(key)
        {
            self.problems.push(
                Problem::error(entry.node.span, format!("{bits} is no size of an RSA key"))
                    .expected("2048, 3072 or 4096"),
            );
        }
        size.unwrap_or(KeySize::Bits2048)
    }

    /// Reads the token that keys are made in.
    fn token(&mut self, section: &Section<'_>, denial: &Denial) -> Option<TokenUri> {
        let At { value: uri, span } = self.optional(section, "token", |lowering, _, node| {
            lowering.read(node, "a PKCS#11 URI", TokenUri::parse)
        })?;
        if uri.module.is_none() {
            let problem = Problem::error(span, "the URI does not say which module speaks with the token");
            self.problems.push(problem.expected("?module-path= and the path of a module at its end"));
        }
        if uri.names_key() {
            let problem = Problem::error(span, "this is the URI of a key, and new ones are made");
            self.problems.push(problem.expected("the URI of a token, without \"object\" and \"id\""));
        }
        if *denial == Denial::Compact {
            let problem = Problem::error(span, "a token takes too long to sign while clients wait");
            self.problems.push(problem.expected("\"denial: nsec\" or \"denial: nsec3\" beside \"token\""));
        }
        Some(uri)
    }

    fn denial(&mut self, section: &Section<'_>, algorithm: Algorithm) -> Denial {
        let named = self.optional(section, "denial", |lowering, _, node| {
            lowering.read(node, &one_of(DenialKind::WORDS), |text| {
                Self::one_word(DenialKind::WORDS, text, DenialKind::parse)
            })
        });
        let says_nsec3 = self.boolean(section, "nsec3");
        if let Some(At { value, span }) = named
            && says_nsec3
            && value != DenialKind::Nsec3
        {
            let message = format!("\"denial: {}\" and \"nsec3: true\" exclude each other", value.word());
            self.problems.push(Problem::error(span, message).expected("one of them"));
        }
        let is_online = named.is_some_and(|named| named.value == DenialKind::Compact);
        let is_quick =
            matches!(algorithm, Algorithm::ECDSAP256SHA256 | Algorithm::ECDSAP384SHA384 | Algorithm::ED25519);
        if is_online && !is_quick {
            let place = section.entry("algorithm").map_or(section.span, |entry| entry.node.span);
            let message = format!("{algorithm} takes too long to sign while clients wait");
            self.problems.push(
                Problem::error(place, message)
                    .expected("ecdsap256sha256, ecdsap384sha384 or ed25519 with \"denial: compact\""),
            );
        }
        let nsec3 = self.nsec3(section, says_nsec3 || named.is_some_and(|at| at.value == DenialKind::Nsec3));
        match nsec3 {
            _ if is_online => Denial::Compact,
            Some(parameters) => Denial::Nsec3(parameters),
            None => Denial::Nsec,
        }
    }

    fn nsec3(&mut self, section: &Section<'_>, is_wanted: bool) -> Option<Nsec3Parameters> {
        let iterations = self.whole(section, "nsec3-iterations") as u16;
        let opts_out = self.boolean(section, "nsec3-opt-out");
        let salt = self.required(section, "nsec3-salt", |lowering, _, node| {
            const EXPECTED: &str = "\"none\", or up to 255 octets in hexadecimal";
            lowering.read(node, EXPECTED, |text| match text {
                "none" => Ok(Vec::new()),
                text => wire::text::read_hex(text.as_bytes())
                    .filter(|salt| !salt.is_empty() && salt.len() <= SALT_OCTETS_MAX)
                    .ok_or_else(|| Misread {
                        at: 0..text.len(),
                        message: format!("\"{text}\" is no salt"),
                        expected: Some(EXPECTED.to_owned()),
                        hint: None,
                    }),
            })
        });
        if !is_wanted {
            for key in ["nsec3-iterations", "nsec3-salt", "nsec3-opt-out"] {
                if let Some(entry) = section.entry(key) {
                    self.problems.push(Problem::warning(
                        entry.key_span,
                        format!("\"{key}\" does nothing without \"denial: nsec3\""),
                    ));
                }
            }
        }
        is_wanted.then(|| Nsec3Parameters { iterations, salt: salt.value.into(), opts_out })
    }

    /// Finds the policy that a zone is signed by.
    pub(super) fn signed_by(
        &mut self,
        item: &Section<'_>,
        policies: &[SigningSettings],
    ) -> Option<Arc<SigningPolicy>> {
        let named = self.optional(item, "sign", |lowering, _, node| {
            lowering.read(node, "the name of a policy", |text| Ok(text.to_owned()))
        })?;
        let policies = policies.iter().map(|settings| &settings.policy);
        let found = policies.clone().find(|policy| policy.name == named.value).cloned();
        if found.is_none() {
            let known: Vec<&str> = policies.map(|policy| policy.name.as_str()).collect();
            let problem =
                Problem::error(named.span, format!("there is no signing policy \"{}\"", named.value))
                    .expected("a policy of \"signing:\"");
            self.problems.push(match nearest(&named.value, known.iter().copied()) {
                Some(near) => problem.hint(format!("did you mean \"{near}\"?")),
                None => problem,
            });
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::load::load_text;
    use environment::System;

    /// Reads a policy with a token; returns what is wrong with it, for people and for editors.
    fn problems(token: &str, more: &str) -> (Vec<String>, String) {
        let text = format!("signing:\n  a:\n    token: \"{token}\"\n{more}");
        match load_text(Path::new("c.yaml"), &text, &System) {
            Ok(loaded) => {
                let uri = loaded.settings.signing.iter().find_map(|settings| settings.policy.token.as_ref());
                (Vec::new(), uri.map(ToString::to_string).unwrap_or_default())
            }
            Err(found) => (
                found.iter().map(diagnostic::Diagnostic::line).collect(),
                found.iter().map(|found| found.human() + &found.json()).collect(),
            ),
        }
    }

    #[test]
    fn a_token_is_said_as_a_uri_of_its_own() {
        let uri = "pkcs11:token=one?module-path=/usr/lib/m.so&pin-source=file:/etc/pin";
        assert_eq!(problems(uri, ""), (Vec::new(), uri.to_owned()));
        let check = |token: &str, more: &str, expect: &str| {
            assert_eq!(problems(token, more).0, [expect], "{token}");
        };
        check(
            "pkcs11:token=one",
            "",
            "c.yaml:3:12: error: the URI does not say which module speaks with the token: expected ?module-path= and the \
             path of a module at its end",
        );
        check(
            "pkcs11:token=one;object=a?module-path=/m.so",
            "",
            "c.yaml:3:12: error: this is the URI of a key, and new ones are made: expected the URI of a token, without \
             \"object\" and \"id\"",
        );
        check(
            "pkcs11:token=one?module-path=/m.so",
            "    denial: compact\n",
            "c.yaml:3:12: error: a token takes too long to sign while clients wait: expected \"denial: nsec\" or \
             \"denial: nsec3\" beside \"token\"",
        );
        check(
            "pkcs11:tokken=one?module-path=/m.so",
            "",
            "c.yaml:3:20: error: the URI has an attribute \"tokken\", which is not known",
        );
        check(
            "pkcs11:token=one?module-path=m.so",
            "",
            "c.yaml:3:42: error: \"m.so\" does not begin at the root: expected an absolute path",
        );
    }

    #[test]
    fn a_pin_in_a_file_of_settings_is_refused_and_not_shown() {
        let (lines, shown) =
            problems("pkcs11:token=one?module-path=/m.so&pin-value=123456", "    algorithm: x\n");
        assert_eq!(
            lines.first().map(String::as_str),
            Some("c.yaml:3:48: error: \"pin-value\" would have the PIN where everybody reads it")
        );
        assert!(shown.contains("pin-source=file:") && !shown.contains("123456"), "{shown}");
    }
}
