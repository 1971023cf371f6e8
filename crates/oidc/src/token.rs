//! ID tokens: signed, for us, of this log-in, and now (OpenID Connect Core 1.0 §3.1.3.7).

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::encoding::unbase64url;
use crate::keys::{Algorithm, Keys};

/// Seconds that clocks may differ by.
const LEEWAY_S: u64 = 60;
/// Octets of a token.
const OCTETS_MAX: usize = 64 << 10;
/// Groups of one person that are looked at.
const GROUPS_MAX: usize = 1_000;

/// What an ID token has to say.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// Who made it.
    pub issuer: &'a str,
    /// Whom for: us.
    pub client: &'a str,
    /// What the log-in was begun with.
    pub nonce: &'a str,
    /// Seconds since 1970.
    pub now: u64,
    /// The claim with the person's name.
    pub name_claim: &'a str,
    /// The claim with the person's groups.
    pub groups_claim: &'a str,
}

/// Somebody whom the other server knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// What nobody else there is and will be called.
    pub subject: String,
    /// What they are called; the subject, if the claim is not there.
    pub name: String,
    /// Their groups.
    pub groups: Vec<String>,
}

/// Why an ID token is not believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unproved {
    /// No key that is known has its name: the server may have a new one.
    UnknownKey,
    /// It is wrong.
    Wrong(&'static str),
}

impl fmt::Display for Unproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownKey => "it is signed by a key that the provider does not have",
            Self::Wrong(why) => why,
        })
    }
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that have to be understood: none is (RFC 7515 §4.1.11).
    crit: Option<Value>,
}

/// Returns who an ID token says that somebody is, if all of it is proved.
///
/// # Errors
///
/// Why it is not believed.
pub fn check(token: &str, keys: &Keys, expected: &Expected<'_>) -> Result<Person, Unproved> {
    let claims = signed(token, keys)?;
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let number = |name: &str| claims.get(name).and_then(Value::as_f64).filter(|number| *number >= 0.0);
    let wrong = |why| Err(Unproved::Wrong(why));
    if text("iss") != Some(expected.issuer) {
        return wrong("it is of another issuer");
    }
    let audience: Vec<&str> = match claims.get("aud") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let party = text("azp");
    let is_for_us = audience.contains(&expected.client)
        && party.is_none_or(|party| party == expected.client)
        && (audience.len() == 1 || party.is_some());
    if !is_for_us {
        return wrong("it is for somebody else");
    }
    let (now, leeway) = (expected.now as f64, LEEWAY_S as f64);
    match number("exp") {
        Some(end) if now < end + leeway => {}
        _ => return wrong("its time is over"),
    }
    match number("iat") {
        Some(made) if made <= now + leeway => {}
        _ => return wrong("it was made later than now"),
    }
    if claims.contains_key("nbf") && number("nbf").is_none_or(|begin| begin > now + leeway) {
        return wrong("its time has not come");
    }
    let nonce = text("nonce").unwrap_or("");
    if verify_slices_are_equal(nonce.as_bytes(), expected.nonce.as_bytes()).is_err() {
        return wrong("it is of another log-in");
    }
    let Some(subject) = text("sub").filter(|subject| !subject.is_empty()) else {
        return wrong("it is about nobody");
    };
    let groups = match claims.get(expected.groups_claim) {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(many)) => {
            many.iter().filter_map(Value::as_str).take(GROUPS_MAX).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    };
    let name = text(expected.name_claim).filter(|name| !name.is_empty()).unwrap_or(subject);
    Ok(Person { subject: subject.to_owned(), name: name.to_owned(), groups })
}

/// Returns what a token says whose signature is right.
fn signed(token: &str, keys: &Keys) -> Result<Map<String, Value>, Unproved> {
    let misread = Unproved::Wrong("it is no token");
    if token.len() > OCTETS_MAX {
        return Err(misread);
    }
    let (message, signature) = token.rsplit_once('.').ok_or(misread.clone())?;
    let (header, claims) = message.split_once('.').ok_or(misread.clone())?;
    let decoded = |part: &str| unbase64url(part).ok_or(misread.clone());
    let header: Header = serde_json::from_slice(&decoded(header)?).map_err(|_| misread.clone())?;
    if header.crit.is_some() {
        return Err(Unproved::Wrong("it has extensions that nobody knows"));
    }
    let algorithm = Algorithm::parse(&header.alg)
        .ok_or(Unproved::Wrong("it is not signed, or by an algorithm that is not believed"))?;
    let found = keys.find(header.kid.as_deref(), algorithm);
    if found.is_empty() {
        return Err(Unproved::UnknownKey);
    }
    let signature = decoded(signature)?;
    if !found.iter().any(|key| key.has_signed(algorithm, message.as_bytes(), &signature)) {
        return Err(Unproved::Wrong("its signature is wrong"));
    }
    serde_json::from_slice(&decoded(claims)?).map_err(|_| misread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::base64url;
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
        RSA_PSS_SHA256, RsaKeyPair,
    };
    use aws_lc_rs::{hmac, rsa::KeySize};

    const NOW: u64 = 1_800_000_000;
    const EXPECTED: Expected<'_> = Expected {
        issuer: "https://id.example.org",
        client: "gannet",
        nonce: "n-1",
        now: NOW,
        name_claim: "preferred_username",
        groups_claim: "groups",
    };

    fn claims(change: impl FnOnce(&mut Value)) -> Value {
        let mut claims = serde_json::json!({
            "iss": "https://id.example.org", "sub": "248289", "aud": "gannet", "exp": NOW + 300, "iat": NOW,
            "nonce": "n-1", "preferred_username": "anna", "groups": ["staff", "dns"], "more": {"a": 1},
        });
        change(&mut claims);
        claims
    }

    fn unsigned(header: &str, claims: &Value) -> String {
        format!("{}.{}", base64url(header.as_bytes()), base64url(claims.to_string().as_bytes()))
    }

    struct Signer {
        pair: EcdsaKeyPair,
        keys: Keys,
    }

    impl Signer {
        fn new(kid: &str) -> Self {
            let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
            let point = pair.public_key().as_ref();
            let (x, y) = (base64url(&point[1..33]), base64url(&point[33..]));
            let set = format!(
                "{{\"keys\": [{{\"kty\": \"OKP\", \"crv\": \"X25519\", \"use\": \"enc\"}}, \
                   {{\"kty\": \"EC\", \"crv\": \"P-256\", \"kid\": \"{kid}\", \"x\": \"{x}\", \"y\": \"{y}\"}}]}}"
            );
            Self { pair, keys: Keys::parse(set.as_bytes()).expect("keys") }
        }

        fn sign(&self, header: &str, claims: &Value) -> String {
            let message = unsigned(header, claims);
            let signature = self.pair.sign(&SystemRandom::new(), message.as_bytes()).expect("a signature");
            format!("{message}.{}", base64url(signature.as_ref()))
        }
    }

    const HEADER: &str = "{\"alg\": \"ES256\", \"kid\": \"1\", \"typ\": \"JWT\"}";

    #[test]
    fn a_token_says_who_somebody_is() {
        let signer = Signer::new("1");
        let check = |claims: &Value| check(&signer.sign(HEADER, claims), &signer.keys, &EXPECTED);
        let person = check(&claims(|_| ())).expect("right");
        assert_eq!((person.subject.as_str(), person.name.as_str()), ("248289", "anna"));
        assert_eq!(person.groups, ["staff", "dns"]);
        let many = claims(|it| {
            it["aud"] = serde_json::json!(["other", "gannet"]);
            it["azp"] = "gannet".into();
            it["preferred_username"] = Value::Null;
            it["groups"] = "staff".into();
        });
        let person = check(&many).expect("right");
        assert_eq!((person.name.as_str(), person.groups), ("248289", vec!["staff".to_owned()]));
    }

    #[test]
    fn what_is_not_for_us_now_in_this_log_in_is_not_believed() {
        let signer = Signer::new("1");
        let refused = |key: &str, value: Value, why: &str| {
            let token = signer.sign(HEADER, &claims(|it| it[key] = value.clone()));
            let error = check(&token, &signer.keys, &EXPECTED).expect_err(key);
            assert_eq!(error.to_string(), why, "{key}: {value}");
        };
        for issuer in ["https://id.example.org/", "https://evil.example", ""] {
            refused("iss", issuer.into(), "it is of another issuer");
        }
        for audience in [serde_json::json!("other"), serde_json::json!(["gannet", "other"]), Value::Null] {
            refused("aud", audience, "it is for somebody else");
        }
        refused("azp", "other".into(), "it is for somebody else");
        for end in
            [serde_json::json!(NOW - 61), serde_json::json!("2099"), Value::Null, serde_json::json!(-1)]
        {
            refused("exp", end, "its time is over");
        }
        refused("iat", (NOW + 61).into(), "it was made later than now");
        refused("iat", Value::Null, "it was made later than now");
        refused("nbf", (NOW + 61).into(), "its time has not come");
        for nonce in [serde_json::json!("n-2"), serde_json::json!(""), Value::Null] {
            refused("nonce", nonce, "it is of another log-in");
        }
        refused("sub", "".into(), "it is about nobody");
        let near = claims(|it| {
            it["exp"] = (NOW - 59).into();
            it["iat"] = (NOW + 59).into();
        });
        assert!(check(&signer.sign(HEADER, &near), &signer.keys, &EXPECTED).is_ok(), "clocks differ");
    }

    #[test]
    fn what_no_key_has_signed_is_not_believed() {
        let (signer, other) = (Signer::new("1"), Signer::new("1"));
        let claims = claims(|_| ());
        let error = |token: &str| check(token, &signer.keys, &EXPECTED).expect_err(token);
        assert_eq!(error(&other.sign(HEADER, &claims)), Unproved::Wrong("its signature is wrong"));
        let unknown = "{\"alg\": \"ES256\", \"kid\": \"2\"}";
        assert_eq!(error(&signer.sign(unknown, &claims)), Unproved::UnknownKey);
        for header in ["{\"alg\": \"none\"}", "{\"alg\": \"None\"}", "{\"alg\": \"\"}"] {
            assert!(
                error(&format!("{}.", unsigned(header, &claims))).to_string().starts_with("it is not signed")
            );
        }
        // The public key, taken for a secret that both share.
        let header = "{\"alg\": \"HS256\", \"kid\": \"1\"}";
        let message = unsigned(header, &claims);
        let key = hmac::Key::new(hmac::HMAC_SHA256, signer.pair.public_key().as_ref());
        let tag = base64url(hmac::sign(&key, message.as_bytes()).as_ref());
        assert!(error(&format!("{message}.{tag}")).to_string().starts_with("it is not signed"));
        // An algorithm of other keys finds none.
        assert_eq!(
            error(&signer.sign("{\"alg\": \"RS256\", \"kid\": \"1\"}", &claims)),
            Unproved::UnknownKey
        );
        let critical = "{\"alg\": \"ES256\", \"kid\": \"1\", \"crit\": [\"b64\"]}";
        assert!(error(&signer.sign(critical, &claims)).to_string().contains("extensions"));
        let right = signer.sign(HEADER, &claims);
        let changed = right.replace('.', "..");
        for token in ["", ".", "..", "a.b.c", &changed, &format!("{right}A"), &"x".repeat(100_000)] {
            assert!(check(token, &signer.keys, &EXPECTED).is_err(), "{token}");
        }
        let (head, rest) = right.split_once('.').expect("parts");
        let (_, signature) = rest.split_once('.').expect("parts");
        let mallory = base64url(claims.to_string().replace("anna", "root").as_bytes());
        assert_eq!(
            error(&format!("{head}.{mallory}.{signature}")),
            Unproved::Wrong("its signature is wrong")
        );
    }

    #[test]
    fn rsa_and_ed25519_are_believed() {
        let claims = claims(|_| ());
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).expect("a key");
        let public = pair.public_key();
        // RSAPublicKey (RFC 8017 §A.1.1): both numbers, of 257 octets and of three, behind their
        // lengths.
        let der = public.as_ref();
        let (n, e) = (&der[9..265], &der[der.len() - 3..]);
        let set = format!(
            "{{\"keys\": [{{\"kty\": \"RSA\", \"use\": \"sig\", \"n\": \"{}\", \"e\": \"{}\"}}]}}",
            base64url(n),
            base64url(e)
        );
        let keys = Keys::parse(set.as_bytes()).expect("keys");
        for (alg, padding) in [
            ("RS256", &RSA_PKCS1_SHA256 as &dyn aws_lc_rs::signature::RsaEncoding),
            ("PS256", &RSA_PSS_SHA256),
        ] {
            let message = unsigned(&format!("{{\"alg\": \"{alg}\"}}"), &claims);
            let mut signature = vec![0; pair.public_modulus_len()];
            pair.sign(padding, &SystemRandom::new(), message.as_bytes(), &mut signature).expect("signed");
            let token = format!("{message}.{}", base64url(&signature));
            assert!(check(&token, &keys, &EXPECTED).is_ok(), "{alg}");
            let swapped = if alg == "RS256" { "PS256" } else { "RS256" };
            let header = base64url(format!("{{\"alg\": \"{swapped}\"}}").as_bytes());
            let token = format!("{header}.{}", token.split_once('.').expect("parts").1);
            assert!(check(&token, &keys, &EXPECTED).is_err(), "{alg} for {swapped}");
        }
        let pair = Ed25519KeyPair::generate().expect("a key");
        let x = base64url(pair.public_key().as_ref());
        let set = format!("{{\"keys\": [{{\"kty\": \"OKP\", \"crv\": \"Ed25519\", \"x\": \"{x}\"}}]}}");
        let message = unsigned("{\"alg\": \"EdDSA\"}", &claims);
        let token = format!("{message}.{}", base64url(pair.sign(message.as_bytes()).as_ref()));
        assert!(check(&token, &Keys::parse(set.as_bytes()).expect("keys"), &EXPECTED).is_ok());
        assert!(Keys::parse(b"{\"keys\": []}").is_err() && Keys::parse(b"[]").is_err());
    }
}
