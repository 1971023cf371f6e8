//! One certificate, and an authority that does what it wants.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use plan::certificates::{AuthorityPlan, ChallengeWord, Identifier, KeyWord};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};

use super::*;

mod accounts;

const DAY: u64 = 86_400;
const NOW: u64 = 1_900_000_000;

/// What an authority answers: a status, fields of the head, and a body.
struct Answer(u16, Vec<(&'static str, String)>, Vec<u8>);

impl Answer {
    fn json(body: &Value) -> Self {
        Self(200, Vec::new(), body.to_string().into_bytes())
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.1.push((name, value.into()));
        self
    }

    fn problem(kind: &str) -> Self {
        let body =
            json!({"type": format!("urn:ietf:params:acme:error:{kind}"), "detail": "as it pleases us"});
        Self(400, Vec::new(), body.to_string().into_bytes())
    }
}

/// How an authority behaves: told the path and where it is itself; `None` never answers.
type Conduct = fn(path: &str, base: &str) -> Option<Answer>;

/// Where the authority is.
const BASE: &str = "https://ca.example.net";

/// The authority, as it is reached.
struct Authority {
    conduct: Conduct,
    requests: Arc<AtomicU64>,
}

impl Web for Authority {
    fn session(&self, _: Option<&Path>) -> Result<Box<dyn web::Session>, String> {
        Ok(Box::new(Self { conduct: self.conduct, requests: Arc::clone(&self.requests) }))
    }
}

impl web::Session for Authority {
    fn send(&self, request: web::Request<'_>) -> Result<web::Response, String> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let path = request.url.strip_prefix(BASE).expect("nobody else is asked");
        let Some(Answer(status, fields, body)) = (self.conduct)(path, BASE) else {
            return Err("timeout: global".to_owned());
        };
        let field =
            |wanted: &str| fields.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.clone());
        let nonce = Some(format!("n{number}"));
        let (location, retry_after) = (field("Location"), field("Retry-After"));
        Ok(web::Response { status, nonce, location, retry_after, body })
    }
}

/// Answers as an authority should, up to the certificate, which is for another key.
fn usual(path: &str, base: &str) -> Option<Answer> {
    let at = |path: &str| format!("{base}/{path}");
    Some(match path {
        "/directory" => Answer::json(&json!({
            "newNonce": at("nonce"), "newAccount": at("account"), "newOrder": at("order"),
            "renewalInfo": at("renewal"),
        })),
        "/nonce" => Answer(200, Vec::new(), Vec::new()),
        "/account" => Answer::json(&json!({"status": "valid"})).with("Location", at("account/1")),
        "/order" => Answer::json(&json!({
            "status": "pending", "authorizations": [at("authorization")], "finalize": at("finalize"),
        }))
        .with("Location", at("order/1")),
        "/authorization" => Answer::json(&json!({
            "status": "valid", "identifier": {"type": "dns", "value": "dns.example.org"}, "challenges": [],
        })),
        // Ready and valid at once.
        "/order/1" => Answer::json(&json!({"status": "ready"})),
        "/finalize" => Answer::json(&json!({"status": "valid"})),
        _ => Answer(404, Vec::new(), Vec::new()),
    })
}

/// Shows nothing, and counts.
#[derive(Default)]
struct Nowhere {
    shown: AtomicU64,
    hidden: AtomicU64,
    adopted: AtomicU64,
}

impl Place for Nowhere {
    fn hear(&self, _: &CertificatePlan, _: &News<'_>) {}

    fn show(&self, _: &CertificatePlan, _: &[Challenge]) -> Result<(), String> {
        self.shown.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn hide(&self, _: &CertificatePlan, _: &[Challenge]) {
        self.hidden.fetch_add(1, Ordering::Relaxed);
    }

    fn caa(&self, host: &str) -> Result<Vec<Caa>, String> {
        let record = b"\0\x05issueother.example";
        Ok(Caa::read(host.to_owned(), record).into_iter().collect())
    }

    fn adopt(&self, _: &str) -> Result<(), String> {
        self.adopted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// A directory with one certificate of one authority.
struct Room {
    directory: tempfile::TempDir,
    conduct: Conduct,
    requests: Arc<AtomicU64>,
    place: Arc<Nowhere>,
    now: Arc<AtomicU64>,
    plan: Arc<CertificatePlan>,
}

impl Room {
    fn new(conduct: Conduct) -> Self {
        let directory = tempfile::TempDir::new().expect("a directory");
        let plan = CertificatePlan {
            name: "dns".to_owned(),
            identifiers: vec![Identifier::Host("dns.example.org".to_owned())],
            authorities: vec![AuthorityPlan {
                url: format!("{BASE}/directory"),
                contact: Vec::new(),
                profile: None,
                binding: None,
                roots: None,
            }],
            challenge: ChallengeWord::Http,
            update: Vec::new(),
            key: KeyWord::EcdsaP256,
            file: directory.path().join("certificates/dns.pem"),
        };
        let now = Arc::new(AtomicU64::new(NOW));
        Self {
            directory,
            conduct,
            requests: Arc::default(),
            place: Arc::default(),
            now,
            plan: Arc::new(plan),
        }
    }

    /// Puts a certificate there that this authority gave, and returns it.
    fn with_certificate(&self) -> Vec<u8> {
        let mut issuer = CertificateParams::default();
        issuer.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer =
            CertifiedIssuer::self_signed(issuer, KeyPair::generate().expect("a key")).expect("an issuer");
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec!["dns.example.org".to_owned()]).expect("a name");
        params.use_authority_key_identifier_extension = true;
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        params.not_before = epoch + Duration::from_secs(NOW - DAY);
        params.not_after = epoch + Duration::from_secs(NOW + 89 * DAY);
        let certificate = params.signed_by(&key, &issuer).expect("a certificate");
        let pem = format!("{}{}", key.serialize_pem(), certificate.pem()).into_bytes();
        write_private(&self.plan.file, &pem).expect("a writable directory");
        let record = Record {
            order: order_of(&self.plan),
            authority: Some(self.plan.authorities[0].url.clone()),
            issued_at: NOW - DAY,
            ask_at: NOW,
            ..Record::default()
        };
        record.write(&self.plan).expect("a writable directory");
        pem
    }

    /// Returns a server that was just started.
    fn certificates(&self) -> Certificates {
        let now = Arc::clone(&self.now);
        let authority = Authority { conduct: self.conduct, requests: Arc::clone(&self.requests) };
        let clock: WallClock = Arc::new(move || now.load(Ordering::Relaxed));
        let certificates = Certificates::new(Arc::clone(&self.place) as _, Arc::new(authority), clock);
        certificates.adopt(&[Arc::clone(&self.plan)]);
        certificates
    }

    fn state(certificates: &Certificates) -> CertificateState {
        certificates.states().remove(0)
    }

    /// Does what is due now.
    fn turn(certificates: &Certificates) -> CertificateState {
        let (entry, due) = certificates.0.next().expect("something is due");
        certificates.0.turn(entry, &due);
        Self::state(certificates)
    }
}

/// Orders from an authority that never gives a certificate; says what is then known.
fn refused(conduct: Conduct) -> String {
    let room = Room::new(conduct);
    let certificates = room.certificates();
    let state = Room::turn(&certificates);
    assert_eq!((state.failures, state.attempts, state.life), (1, 1, None));
    assert!(state.next_at >= NOW + 5 * 60, "it is not tried again at once");
    assert!(!room.plan.file.exists());
    let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
    assert_eq!(count(&room.place.shown), count(&room.place.hidden), "what was shown is shown no more");
    assert_eq!(count(&room.place.adopted), 0);
    assert!(count(&room.requests) < 30, "{}", count(&room.requests));
    state.trouble.expect("a reason").1.replace(BASE, "")
}

#[test]
fn an_authority_that_redirects_is_not_followed() {
    let why =
        refused(|_, base| Some(Answer(302, vec![("Location", format!("{base}/elsewhere"))], Vec::new())));
    assert!(why.ends_with("it redirects to \"/elsewhere\", which is not followed"), "{why}");
    let why = refused(|path, base| match path {
        "/order" => Some(Answer(307, vec![("Location", format!("{base}/elsewhere"))], Vec::new())),
        path => usual(path, base),
    });
    assert!(why.contains("redirects"), "{why}");
}

#[test]
fn an_authority_that_a_name_does_not_want_is_asked_for_nothing() {
    let why = refused(|path, base| match path {
        "/directory" => {
            let at = |path: &str| format!("{base}/{path}");
            let meta = json!({"caaIdentities": ["ca.example.net"]});
            Some(Answer::json(
                &json!({"newNonce": at("a"), "newAccount": at("b"), "newOrder": at("c"), "meta": meta}),
            ))
        }
        _ => panic!("nothing is asked for"),
    });
    assert!(why.contains("CAA records of dns.example.org (issue \"other.example\")"), "{why}");
}

#[test]
fn an_authority_that_never_answers_is_not_waited_for() {
    let why = refused(|_, _| None);
    assert!(why.contains("timeout"), "{why}");
}

#[test]
fn an_authority_that_refuses_every_nonce_is_asked_a_few_times() {
    let why = refused(|path, base| match path {
        "/account" => Some(Answer::problem("badNonce")),
        path => usual(path, base),
    });
    assert!(why.ends_with("as it pleases us (badNonce)"), "{why}");
}

#[test]
fn an_authority_that_lies_gets_nothing_shown_and_nothing_used() {
    let why = refused(|path, base| match path {
        "/directory" => {
            Some(Answer::json(&json!({"newNonce": "not a url", "newAccount": "", "newOrder": ""})))
        }
        path => usual(path, base),
    });
    assert!(why.contains("no URL of HTTPS"), "{why}");
    let why = refused(|path, base| match path {
        "/authorization" => Some(Answer::json(&json!({
            "status": "pending", "identifier": {"type": "dns", "value": "bank.example.net"}, "challenges": [],
        }))),
        path => usual(path, base),
    });
    assert!(why.contains("asks about \"bank.example.net\""), "{why}");
    let why = refused(|path, base| match path {
        "/authorization" => Some(Answer::json(&json!({
            "status": "pending", "identifier": {"type": "dns", "value": "dns.example.org"},
            "challenges": [{"type": "http-01", "url": base, "token": "../../etc/passwd"}],
        }))),
        path => usual(path, base),
    });
    assert!(why.contains("no base64url"), "{why}");
    let why = refused(|path, base| {
        match path {
        "/order" => Some(
            Answer::json(&json!({
                "status": "pending", "finalize": base, "authorizations": vec![format!("{base}/authorization"); 2000],
            }))
            .with("Location", format!("{base}/order/1")),
        ),
        path => usual(path, base),
    }
    });
    assert!(why.contains("more authorizations than names"), "{why}");
    let why = refused(|path, base| match path {
        "/account" => Some(Answer::problem("rateLimited").with("Retry-After", u64::MAX.to_string())),
        path => usual(path, base),
    });
    assert!(why.contains("rateLimited"), "{why}");
}

#[test]
fn a_certificate_for_another_key_does_not_replace_the_one_that_is_there() {
    static IS_FINAL: AtomicBool = AtomicBool::new(false);
    let room = Room::new(|path, base| match path {
        "/finalize" => {
            IS_FINAL.store(true, Ordering::Relaxed);
            usual(path, base)
        }
        "/order/1" if IS_FINAL.load(Ordering::Relaxed) => {
            Some(Answer::json(&json!({"status": "valid", "certificate": format!("{base}/certificate")})))
        }
        "/certificate" => {
            let other = rcgen::generate_simple_self_signed(vec!["dns.example.org".to_owned()]);
            Some(Answer(200, Vec::new(), other.expect("a certificate").cert.pem().into_bytes()))
        }
        path => usual(path, base),
    });
    let before = room.with_certificate();
    let certificates = room.certificates();
    certificates.renew("dns").expect("there is one");
    let state = Room::turn(&certificates);
    let why = state.trouble.expect("a reason").1;
    assert!(why.ends_with("the key is not that of the certificate"), "{why}");
    assert_eq!(fs::read(&room.plan.file).expect("it is there"), before);
    assert_eq!(state.life, Some((NOW - DAY, NOW + 89 * DAY)));
}

#[test]
fn what_is_waited_for_after_a_failure_outlives_a_restart() {
    let room = Room::new(|_, _| Some(Answer(500, Vec::new(), Vec::new())));
    let certificates = room.certificates();
    let first = Room::turn(&certificates);
    assert!(room.plan.file.with_extension("json").exists());
    // A crash loop: each start finds that nothing is due.
    for _ in 0..3 {
        let again = Room::state(&room.certificates());
        assert_eq!((again.next_at, again.failures, again.attempts), (first.next_at, 1, 1));
        assert_eq!(again.trouble, first.trouble);
    }
    room.now.store(first.next_at, Ordering::Relaxed);
    let certificates = room.certificates();
    let second = Room::turn(&certificates);
    assert_eq!((second.failures, second.attempts), (2, 2));
    assert!(second.next_at - first.next_at >= 10 * 60, "later and later");
    // Another order is another matter.
    let mut other = (*room.plan).clone();
    other.identifiers.push(Identifier::Host("other.example.org".to_owned()));
    certificates.adopt(&[Arc::new(other)]);
    let state = Room::state(&certificates);
    assert_eq!((state.failures, state.next_at, state.trouble), (0, 0, None));
    drop(room.directory);
}

#[test]
fn a_window_that_is_moved_is_followed() {
    static START: AtomicU64 = AtomicU64::new(NOW + 50 * DAY);
    let room = Room::new(|path, base| {
        let start = START.load(Ordering::Relaxed);
        let text = |seconds: u64| jiff::Timestamp::from_second(seconds as i64).expect("a time").to_string();
        match path.strip_prefix("/renewal/") {
            Some(id) if id.split('.').count() == 2 => Some(
                Answer::json(&json!({"suggestedWindow": {"start": text(start), "end": text(start + DAY)}}))
                    .with("Retry-After", "3600"),
            ),
            _ => usual(path, base),
        }
    });
    room.with_certificate();
    let certificates = room.certificates();
    assert_eq!(Room::state(&certificates).window, None);
    let state = Room::turn(&certificates);
    assert_eq!(state.window, Some(Window { start: NOW + 50 * DAY, end: NOW + 51 * DAY }));
    assert!((NOW + 50 * DAY..=NOW + 51 * DAY).contains(&state.next_at), "{}", state.next_at);
    // It is known after a restart, and asked for again when the authority has said.
    assert_eq!(Room::state(&room.certificates()), state);
    START.store(NOW, Ordering::Relaxed);
    room.now.store(NOW + 3600, Ordering::Relaxed);
    let state = Room::turn(&certificates);
    assert!((NOW..=NOW + DAY).contains(&state.next_at), "{}", state.next_at);
    assert_eq!((state.attempts, state.failures), (0, 0));
}

#[test]
fn without_an_authority_that_says_so_it_is_renewed_at_two_thirds_of_its_life() {
    let room = Room::new(|path, base| match path {
        "/directory" => {
            let at = |path: &str| format!("{base}/{path}");
            Some(Answer::json(&json!({"newNonce": at("a"), "newAccount": at("b"), "newOrder": at("c")})))
        }
        path => usual(path, base),
    });
    room.with_certificate();
    let state = Room::turn(&room.certificates());
    assert_eq!(state.window, None);
    let two_thirds = NOW - DAY + 60 * DAY;
    assert!((two_thirds - 2 * DAY..=two_thirds).contains(&state.next_at), "{}", state.next_at);
}
