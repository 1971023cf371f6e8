//! Logging in elsewhere: a provider of OpenID Connect, and what it may not do.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use aws_lc_rs::{digest, hmac};
use oidc::{base64url, unbase64url};
use testkit::{Script, Server, Stub, contains, forwarding, lacks};

use super::network::{curl, text};
use super::users::{ask, is_on_disk};

const SECRET: &str = "the-secret-of-the-client";

/// What the provider says of somebody, and how.
#[derive(Clone)]
struct Answer {
    header: String,
    claims: BTreeMap<&'static str, String>,
    /// `none`, `HS256`, or else a signature of the key.
    signs_as: &'static str,
}

struct State {
    issuer: String,
    key: EcdsaKeyPair,
    kid: String,
    /// What is answered for a code: the challenge of the log-in, and the token.
    codes: BTreeMap<String, (String, Answer)>,
    asked: Vec<String>,
}

/// A provider on this machine.
#[derive(Clone)]
struct Provider(Arc<Mutex<State>>);

fn new_key() -> EcdsaKeyPair {
    EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key")
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

impl Provider {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let issuer = format!("http://{}/realm", listener.local_addr().expect("an address"));
        let (codes, asked) = (BTreeMap::new(), Vec::new());
        let state = State { issuer, key: new_key(), kid: "first".to_owned(), codes, asked };
        let provider = Self(Arc::new(Mutex::new(state)));
        let serving = provider.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serving.serve(stream);
            }
        });
        provider
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no panic")
    }

    fn serve(&self, mut stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
        let (mut first, mut length, mut authorization) = (String::new(), 0, String::new());
        if reader.read_line(&mut first).is_err() {
            return;
        }
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).is_err() || line.trim().is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            match name.to_lowercase().as_str() {
                "content-length" => length = value.trim().parse().unwrap_or(0),
                "authorization" => value.trim().clone_into(&mut authorization),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let body = String::from_utf8(body).expect("text");
        let (status, answer) = self.answer(first.trim(), &authorization, &body);
        let _ = write!(
            stream,
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}",
            answer.len()
        );
    }

    fn answer(&self, first: &str, authorization: &str, body: &str) -> (u16, String) {
        let mut state = self.state();
        let issuer = state.issuer.clone();
        state.asked.push(first.split(' ').nth(1).unwrap_or("").to_owned());
        if first.contains("openid-configuration") {
            let text = format!(
                "{{\"issuer\": \"{issuer}\", \"authorization_endpoint\": \"{issuer}/auth\", \"token_endpoint\": \
                  \"{issuer}/token\", \"jwks_uri\": \"{issuer}/keys\", \
                  \"authorization_response_iss_parameter_supported\": true}}"
            );
            return (200, text);
        }
        if first.contains("/keys") {
            let point = state.key.public_key().as_ref();
            let (x, y) = (base64url(&point[1..33]), base64url(&point[33..]));
            let kid = &state.kid;
            let text = format!(
                "{{\"keys\": [{{\"kty\": \"EC\", \"crv\": \"P-256\", \"kid\": \"{kid}\", \"x\": \"{x}\", \"y\": \"{y}\"}}]}}"
            );
            return (200, text);
        }
        // The token endpoint: the client is who it says, and the log-in is the one that the code is
        // of.
        let expected = format!("Basic {}", standard_base64(&format!("gannet:{SECRET}")));
        if !first.starts_with("POST") || authorization != expected {
            return (401, "{}".to_owned());
        }
        let field = |name: &str| {
            let mut pairs = body.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned()).unwrap_or_default()
        };
        let Some((challenge, answer)) = state.codes.remove(&field("code")) else {
            return (400, "{\"error\": \"invalid_grant\"}".to_owned());
        };
        let verifier = field("code_verifier");
        let shown = base64url(digest::digest(&digest::SHA256, verifier.as_bytes()).as_ref());
        if shown != challenge || field("grant_type") != "authorization_code" {
            return (400, "{\"error\": \"invalid_grant\"}".to_owned());
        }
        (200, format!("{{\"access_token\": \"x\", \"id_token\": \"{}\"}}", state.sign(&answer)))
    }
}

fn standard_base64(text: &str) -> String {
    let text = base64url(text.as_bytes()).replace('-', "+").replace('_', "/");
    let padding = (4 - text.len() % 4) % 4;
    text + &"=".repeat(padding)
}

impl State {
    fn sign(&self, answer: &Answer) -> String {
        let claims: Vec<String> =
            answer.claims.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
        let claims = format!("{{{}}}", claims.join(", "));
        let message = format!("{}.{}", base64url(answer.header.as_bytes()), base64url(claims.as_bytes()));
        let signature = match answer.signs_as {
            "none" => String::new(),
            "HS256" => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, self.key.public_key().as_ref());
                base64url(hmac::sign(&key, message.as_bytes()).as_ref())
            }
            _ => {
                let signed = self.key.sign(&SystemRandom::new(), message.as_bytes()).expect("signed");
                base64url(signed.as_ref())
            }
        };
        format!("{message}.{signature}")
    }
}

/// A server that believes a provider.
struct Room {
    server: Server,
    at: SocketAddr,
    provider: Provider,
    _stub: Stub,
}

/// A log-in that has begun at the server.
struct Begun {
    cookie: String,
    state: String,
    nonce: String,
    challenge: String,
}

fn room() -> Room {
    let (stub, provider) = (Stub::start(Script::default()), Provider::start());
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("secret"), format!("{SECRET}\n")).expect("written");
    let issuer = provider.state().issuer.clone();
    let oidc = format!(
        "{{issuer: \"{issuer}\", client-id: gannet, client-secret-file: secret, url: \"https://dns.example.org\", \
          groups: {{staff: viewer, dns-admins: admin}}}}"
    );
    let yaml = forwarding(&[&stub], &format!("control: {{listen: [\"127.0.0.1:0\"], oidc: {oidc}}}\n"));
    let mut server = Server::start_in(directory, &yaml);
    let line = server.wait_for_log("the API can be reached");
    let (_, port) = line.rsplit_once("127.0.0.1:").expect("an address");
    let port: String = port.chars().take_while(char::is_ascii_digit).collect();
    let at = SocketAddr::new([127, 0, 0, 1].into(), port.parse().expect("a port"));
    Room { server, at, provider, _stub: stub }
}

impl Room {
    fn begin(&self) -> Begun {
        let (status, said) = curl(self.at, "/login/oidc", &["--include"]);
        assert_eq!(status, 303, "{said}");
        let line = |name: &str| {
            let mut lines = said.lines().filter_map(|line| line.strip_prefix(name));
            lines.next().unwrap_or_else(|| panic!("{name}: {said}")).to_owned()
        };
        let (location, cookie) = (line("location: "), line("set-cookie: "));
        contains(
            &location,
            &format!("{}/auth?response_type=code&client_id=gannet&", self.provider.state().issuer),
        );
        contains(&location, "redirect_uri=https%3A%2F%2Fdns.example.org%2Flogin%2Foidc");
        contains(&location, "code_challenge_method=S256");
        contains(&cookie, "; Path=/; HttpOnly; SameSite=Lax; Max-Age=600");
        let field = |name: &str| {
            let rest = location.split(&format!("&{name}=")).nth(1).unwrap_or_else(|| panic!("{location}"));
            rest.split('&').next().unwrap_or("").to_owned()
        };
        let cookie = cookie.split(';').next().unwrap_or("").to_owned();
        Begun { cookie, state: field("state"), nonce: field("nonce"), challenge: field("code_challenge") }
    }

    /// Returns what the provider says of anna, who is in a group.
    fn right(&self, begun: &Begun, group: &str) -> Answer {
        let state = self.provider.state();
        let claims = BTreeMap::from([
            ("iss", format!("\"{}\"", state.issuer)),
            ("sub", "\"248289\"".to_owned()),
            ("aud", "\"gannet\"".to_owned()),
            ("exp", (now() + 300).to_string()),
            ("iat", now().to_string()),
            ("nonce", format!("\"{}\"", begun.nonce)),
            ("preferred_username", "\"anna\"".to_owned()),
            ("groups", format!("[\"{group}\", \"others\"]")),
        ]);
        let header = format!("{{\"alg\": \"ES256\", \"kid\": \"{}\"}}", state.kid);
        Answer { header, claims, signs_as: "ES256" }
    }

    /// Has the provider know somebody by a code.
    fn agree(&self, code: &str, begun: &Begun, answer: Answer) {
        self.provider.state().codes.insert(code.to_owned(), (begun.challenge.clone(), answer));
    }

    /// Comes back from the provider.
    fn back(&self, code: &str, state: &str, cookie: &str) -> (u16, String) {
        let issuer = self.provider.state().issuer.replace(':', "%3A").replace('/', "%2F");
        self.back_with(&format!("code={code}&state={state}&iss={issuer}"), cookie)
    }

    fn back_with(&self, query: &str, cookie: &str) -> (u16, String) {
        let cookie = format!("Cookie: {cookie}");
        let site = "Sec-Fetch-Site: cross-site";
        let arguments = ["--include", "--header", &cookie, "--header", site];
        curl(self.at, &format!("/login/oidc?{query}"), &arguments)
    }
}

pub(super) fn session_of(said: &str) -> String {
    let mut cookies = said.lines().filter_map(|line| line.strip_prefix("set-cookie: gannet=gns_"));
    let rest = cookies.next().and_then(|line| line.split(';').next()).unwrap_or_else(|| panic!("{said}"));
    format!("gannet=gns_{rest}")
}

#[test]
fn whom_the_provider_proves_is_logged_in_with_the_role_of_their_group() {
    let mut room = room();
    contains(&curl(room.at, "/", &[]).1, "href=\"/login/oidc\"");
    let begun = room.begin();
    room.agree("c0de-1", &begun, room.right(&begun, "dns-admins"));
    let (status, said) = room.back("c0de-1", &begun.state, &begun.cookie);
    assert_eq!(status, 200, "{said}");
    let cookie = session_of(&said);
    let who = ask(room.at, &cookie, "GET", "/session", &[]).1;
    contains(&who, "\"name\": \"oidc anna 248289\"");
    contains(&who, "\"role\": \"admin\"");
    contains(&ask(room.at, &cookie, "GET", "/sessions", &[]).1, "\"user\": \"oidc anna 248289\"");
    // All of it once more: the state is used up, and so is the code.
    assert_eq!(room.back("c0de-1", &begun.state, &begun.cookie).0, 403);
    let again = room.begin();
    let (status, said) = room.back("c0de-1", &again.state, &again.cookie);
    assert_eq!(status, 409, "{said}");
    // Another one, with less of a role, whose key is new by now.
    room.provider.state().key = new_key();
    room.provider.state().kid = "second".to_owned();
    let viewer = room.begin();
    room.agree("c0de-2", &viewer, room.right(&viewer, "staff"));
    let (status, said) = room.back("c0de-2", &viewer.state, &viewer.cookie);
    assert_eq!(status, 200, "{said}");
    contains(&ask(room.at, &session_of(&said), "GET", "/session", &[]).1, "\"role\": \"viewer\"");
    let audit = |server: &Server| text(&server.command(&["audit", "tail", "-n", "50"]));
    contains(&audit(&room.server), "log-in 127.0.0.1 by oidc anna 248289: accepted");
    contains(&audit(&room.server), "log-in 127.0.0.0/24 by nobody: refused");
    let log = room.server.log().join("\n");
    for secret in [SECRET, "c0de-1", &begun.state, &begun.nonce, cookie.trim_start_matches("gannet=")] {
        lacks(&log, secret);
        lacks(&audit(&room.server), secret);
        if secret != SECRET {
            assert_eq!(is_on_disk(&room.server, secret), "", "{secret}");
        }
    }
}

#[test]
fn new_keys_of_the_provider_are_fetched_and_not_all_the_time() {
    let room = room();
    let begun = room.begin();
    room.agree("a", &begun, room.right(&begun, "staff"));
    assert_eq!(room.back("a", &begun.state, &begun.cookie).0, 200);
    let fetched = || room.provider.state().asked.iter().filter(|path| path.contains("/keys")).count();
    let before = fetched();
    for number in 0..3 {
        let begun = room.begin();
        let mut answer = room.right(&begun, "staff");
        answer.header = "{\"alg\": \"ES256\", \"kid\": \"unknown\"}".to_owned();
        let code = format!("b{number}");
        room.agree(&code, &begun, answer);
        let (status, said) = room.back(&code, &begun.state, &begun.cookie);
        assert_eq!(status, 403, "{said}");
        contains(&said, "it is signed by a key that the provider does not have");
    }
    assert!(fetched() <= before + 1, "{before} and {}", fetched());
}

#[test]
fn who_did_not_begin_here_is_not_logged_in() {
    let room = room();
    let (mine, others) = (room.begin(), room.begin());
    room.agree("a", &mine, room.right(&mine, "staff"));
    // A link with the state of somebody else, in a browser that has begun itself, or not at all.
    assert_eq!(room.back("a", &mine.state, &others.cookie).0, 403);
    assert_eq!(room.back("a", &mine.state, "x=y").0, 403);
    assert_eq!(room.back("a", "", "gannet-oidc=").0, 403);
    assert_eq!(room.back("a", "made-up", "gannet-oidc=made-up").0, 403);
    // Another provider sends them back, or does not say who it is although it always does.
    let query = format!("code=a&state={}", mine.state);
    assert_eq!(room.back_with(&format!("{query}&iss=https%3A%2F%2Fevil.example"), &mine.cookie).0, 403);
    let next = room.begin();
    assert_eq!(room.back_with(&format!("code=a&state={}", next.state), &next.cookie).0, 403);
    let next = room.begin();
    room.agree("b", &next, room.right(&next, "staff"));
    let issuer = room.provider.state().issuer.replace(':', "%3A").replace('/', "%2F");
    let query = format!("error=access_denied%3Cb%3E&state={}&iss={issuer}", next.state);
    let (status, said) = room.back_with(&query, &next.cookie);
    assert_eq!(status, 403);
    contains(&said, "the provider refuses: access_denied&lt;b&gt;");
}

#[test]
fn what_the_provider_does_not_prove_is_not_believed() {
    let room = room();
    let check = |what: &str, change: &dyn Fn(&mut Answer)| {
        let begun = room.begin();
        let mut answer = room.right(&begun, "staff");
        change(&mut answer);
        room.agree("code", &begun, answer);
        let (status, said) = room.back("code", &begun.state, &begun.cookie);
        assert_eq!(status, 403, "{what}: {said}");
        lacks(&said, "set-cookie: gannet=");
    };
    check("none", &|it| {
        it.header = "{\"alg\": \"none\"}".to_owned();
        it.signs_as = "none";
    });
    check("HS256", &|it| {
        it.header = "{\"alg\": \"HS256\", \"kid\": \"first\"}".to_owned();
        it.signs_as = "HS256";
    });
    check("RS256", &|it| it.header = "{\"alg\": \"RS256\", \"kid\": \"first\"}".to_owned());
    for (claim, value) in [
        ("iss", "\"https://evil.example\"".to_owned()),
        ("aud", "\"others\"".to_owned()),
        ("aud", "[\"gannet\", \"others\"]".to_owned()),
        ("exp", (now() - 600).to_string()),
        ("iat", (now() + 600).to_string()),
        ("nonce", "\"of another log-in\"".to_owned()),
        ("groups", "[\"nobody\"]".to_owned()),
    ] {
        check(claim, &|it| drop(it.claims.insert(claim, value.clone())));
    }
    check("no nonce", &|it| drop(it.claims.remove("nonce")));
    // Signed by a key of the same name that is not the provider's.
    room.provider.state().key = new_key();
    check("another key", &|_| ());
    let begun = room.begin();
    assert!(unbase64url(&begun.nonce).is_some_and(|nonce| nonce.len() == 32));
}
