//! The server that knows people: where it is asked for what, and what it is told.

use aws_lc_rs::digest;
use serde::Deserialize;

use crate::encoding::{base64url, url_encoded};

/// What the server says about itself (OpenID Connect Discovery 1.0 §3).
#[derive(Clone, Debug, Deserialize)]
pub struct Provider {
    /// Who it is.
    pub issuer: String,
    /// Where people prove to it who they are.
    pub authorization_endpoint: String,
    /// Where we ask for tokens.
    pub token_endpoint: String,
    /// Where its keys are.
    pub jwks_uri: String,
    /// Whether it says who it is when it sends people back (RFC 9207).
    #[serde(default, rename = "authorization_response_iss_parameter_supported")]
    pub says_issuer: bool,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

/// A log-in that has begun: what is to come back, and what proves that it is ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Where to send the person.
    pub url: String,
    /// What comes back with them.
    pub state: String,
    /// What the ID token has to have.
    pub nonce: String,
    /// What we have to show with the code (RFC 7636).
    pub verifier: String,
}

/// What to send to the token endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRequest {
    /// The header `Authorization`, if the server wants us to prove ourselves with it.
    pub authorization: Option<String>,
    /// The form.
    pub body: String,
}

impl Provider {
    /// Returns where a server describes itself.
    pub fn description_of(issuer: &str) -> String {
        format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))
    }

    /// Reads what a server says about itself.
    ///
    /// # Errors
    ///
    /// It is no description, it is that of another, or part of it could be read along.
    pub fn parse(issuer: &str, octets: &[u8]) -> Result<Self, String> {
        let found: Self = serde_json::from_slice(octets)
            .map_err(|error| format!("this is no description of a provider: {error}"))?;
        if found.issuer != issuer {
            return Err(format!("it says that it is \"{}\", not \"{issuer}\"", found.issuer));
        }
        for url in [&found.authorization_endpoint, &found.token_endpoint, &found.jwks_uri] {
            if !is_safe(url) {
                return Err(format!("\"{url}\" could be read along: expected https"));
            }
        }
        Ok(found)
    }

    /// Begins a log-in; `chance` are octets that nobody can know.
    pub fn begin(&self, client: &str, redirect: &str, scopes: &str, chance: &[[u8; 32]; 3]) -> Flow {
        let [state, nonce, verifier] = chance.map(|octets| base64url(&octets));
        let challenge = base64url(digest::digest(&digest::SHA256, verifier.as_bytes()).as_ref());
        let separator = if self.authorization_endpoint.contains('?') { '&' } else { '?' };
        let fields = [
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", redirect),
            ("scope", scopes),
            ("state", &state),
            ("nonce", &nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        let url = format!("{}{separator}{}", self.authorization_endpoint, form(&fields));
        Flow { url, state, nonce, verifier }
    }

    /// Returns what to ask the token endpoint for a code.
    pub fn token_request(
        &self,
        (client, secret): (&str, Option<&str>),
        redirect: &str,
        code: &str,
        verifier: &str,
    ) -> TokenRequest {
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect),
            ("code_verifier", verifier),
        ];
        let methods = self.token_endpoint_auth_methods_supported.as_deref();
        // Basic is what counts where nothing is said (OpenID Connect Discovery 1.0 §3).
        let takes_basic = methods.is_none_or(|all| all.iter().any(|method| method == "client_secret_basic"));
        let authorization = secret.filter(|_| takes_basic).map(|secret| {
            // RFC 6749 §2.3.1: both are form-encoded first.
            let pair = format!("{}:{}", url_encoded(client), url_encoded(secret));
            format!("Basic {}", base64(pair.as_bytes()))
        });
        if authorization.is_none() {
            fields.push(("client_id", client));
            fields.extend(secret.map(|secret| ("client_secret", secret)));
        }
        TokenRequest { authorization, body: form(&fields) }
    }
}

/// Returns the ID token that the token endpoint answers with.
///
/// # Errors
///
/// It answers with none; a text of its own is not repeated.
pub fn id_token(octets: &[u8]) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Answer {
        id_token: String,
    }
    let answer: Answer =
        serde_json::from_slice(octets).map_err(|_| "the provider answers without an ID token".to_owned())?;
    Ok(answer.id_token)
}

fn form(fields: &[(&str, &str)]) -> String {
    let all: Vec<String> =
        fields.iter().map(|(name, value)| format!("{name}={}", url_encoded(value))).collect();
    all.join("&")
}

/// Returns octets in base64 with padding (RFC 4648 §4).
fn base64(octets: &[u8]) -> String {
    let text = base64url(octets).replace('-', "+").replace('_', "/");
    let padding = (4 - text.len() % 4) % 4;
    text + &"=".repeat(padding)
}

/// Returns whether what is said to a URL stays between the two: HTTPS, or on this machine.
fn is_safe(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or("");
    let is_local = || {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        matches!(name, "127.0.0.1" | "[::1]" | "localhost")
    };
    !host.is_empty() && !host.contains('@') && (scheme == "https" || (scheme == "http" && is_local()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUER: &str = "https://id.example.org";

    fn description(issuer: &str, token_endpoint: &str) -> String {
        format!(
            "{{\"issuer\": \"{issuer}\", \"authorization_endpoint\": \"{ISSUER}/auth?x=1\", \
              \"token_endpoint\": \"{token_endpoint}\", \"jwks_uri\": \"{ISSUER}/keys\", \"more\": []}}"
        )
    }

    #[test]
    fn a_provider_is_who_it_was_taken_for() {
        let parse =
            |issuer: &str, token: &str| Provider::parse(ISSUER, description(issuer, token).as_bytes());
        assert!(parse(ISSUER, "https://id.example.org/token").is_ok());
        assert!(parse(ISSUER, "http://127.0.0.1:8080/token").is_ok());
        for issuer in ["https://id.example.org/", "https://evil.example", ""] {
            assert!(parse(issuer, "https://id.example.org/token").is_err(), "{issuer}");
        }
        for token in [
            "http://id.example.org/token",
            "http://127.0.0.1.evil.example/token",
            "http://127.0.0.1@evil.example/token",
            "http://127.0.0.1:1@evil.example/token",
            "ftp://id.example.org",
            "https://",
            "token",
        ] {
            assert!(parse(ISSUER, token).is_err(), "{token}");
        }
        assert!(Provider::parse(ISSUER, b"{}").is_err());
        assert_eq!(Provider::description_of("https://a/b/"), "https://a/b/.well-known/openid-configuration");
    }

    #[test]
    fn a_log_in_has_a_challenge_whose_verifier_stays_here() {
        let provider = Provider::parse(ISSUER, description(ISSUER, "https://t").as_bytes()).expect("right");
        // RFC 7636 Appendix B.
        let octets = [
            116, 24, 223, 180, 151, 153, 224, 37, 79, 250, 96, 125, 216, 173, 187, 186, 22, 212, 37, 77, 105,
            214, 191, 240, 91, 88, 5, 88, 83, 132, 141, 121,
        ];
        let flow = provider.begin("me", "https://dns/login/oidc", "openid", &[[0; 32], [1; 32], octets]);
        assert_eq!(flow.verifier, "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        let url = flow.url;
        assert!(url.starts_with("https://id.example.org/auth?x=1&response_type=code&client_id=me&"), "{url}");
        assert!(url.contains("&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&"), "{url}");
        assert!(
            !url.contains(&flow.verifier) && url.contains("redirect_uri=https%3A%2F%2Fdns%2Flogin%2Foidc")
        );
    }

    #[test]
    fn we_prove_ourselves_as_the_provider_wants_it() {
        let with = |methods: &str| {
            let text = description(ISSUER, "https://t").replace("\"more\": []", methods);
            Provider::parse(ISSUER, text.as_bytes()).expect("right")
        };
        let ask =
            |provider: &Provider, secret| provider.token_request(("m e", secret), "https://d", "c", "v");
        let asked = ask(&with("\"more\": 1"), Some("s:s"));
        // "m%20e:s%3As"
        assert_eq!(asked.authorization.as_deref(), Some("Basic bSUyMGU6cyUzQXM="));
        assert_eq!(
            asked.body,
            "grant_type=authorization_code&code=c&redirect_uri=https%3A%2F%2Fd&code_verifier=v"
        );
        let post = with("\"token_endpoint_auth_methods_supported\": [\"client_secret_post\"]");
        let asked = ask(&post, Some("s"));
        assert!(asked.authorization.is_none() && asked.body.ends_with("&client_id=m%20e&client_secret=s"));
        assert!(ask(&post, None).body.ends_with("&client_id=m%20e"));
    }

    #[test]
    fn a_token_is_read_and_what_else_is_said_is_not_repeated() {
        assert_eq!(id_token(b"{\"access_token\": 1, \"id_token\": \"a.b.c\"}").as_deref(), Ok("a.b.c"));
        let error = id_token(b"{\"error\": \"<secret>\"}").expect_err("none");
        assert!(!error.contains("secret"));
    }
}
