//! No octets are an ID token that nobody has signed, and no set of keys makes its reader panic.

use oidc::{Expected, Keys, Provider, check, id_token};

/// The only key that is believed; nobody has its other half any more.
const KEYS: &str = include_str!("tokens/keys.json");
/// The only token that it has signed.
const TOKEN: &str = include_str!("tokens/token");
/// An issuer.
const ISSUER: &str = "https://id.example.org";

/// A line that is a token, and behind it keys, the description of a provider, or what it answers.
pub fn token(bytes: &[u8]) {
    let (first, rest) = match bytes.iter().position(|octet| *octet == b'\n') {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &[][..]),
    };
    let token = String::from_utf8_lossy(first);
    let expected = Expected {
        issuer: ISSUER,
        client: "gannet",
        nonce: "n-1",
        now: 1_900_000_000,
        name_claim: "name",
        groups_claim: "groups",
    };
    let known = Keys::parse(KEYS.as_bytes()).expect("keys");
    if let Ok(person) = check(&token, &known, &expected) {
        let message = |token: &str| token.rsplit_once('.').map(|(message, _)| message.to_owned());
        assert_eq!(message(&token), message(TOKEN), "what was not signed is believed");
        assert_eq!((person.subject.as_str(), person.name.as_str()), ("248289", "anna"));
    }
    if let Ok(keys) = Keys::parse(rest) {
        // Whoever chooses the keys can sign: it must only end.
        let _ = check(&token, &keys, &expected);
    }
    if let Ok(provider) = Provider::parse(ISSUER, rest) {
        let flow = provider.begin("gannet", "https://dns.example.org/login/oidc", "openid", &[[7; 32]; 3]);
        assert!(flow.url.starts_with("http") && flow.url.contains(&flow.state), "{}", flow.url);
    }
    let _ = id_token(rest);
}
