//! Accounts at authorities: closed ones, and whom the authority can write to.

use std::sync::OnceLock;

use wire::text::read_base64url;

use super::*;

/// An authority that keeps accounts.
#[derive(Default)]
struct Keeper {
    /// What was asked of it: the path, and the payload.
    heard: Vec<(String, Value)>,
    /// How many accounts it has made; the last one is open.
    accounts: usize,
    /// The problem that requests of the open account get, if it is closed now.
    closed: Option<&'static str>,
    /// Whether every account is closed at once.
    closes_all: bool,
    /// Whether the account itself can still be looked at.
    shows_account: bool,
}

impl Keeper {
    fn answer(&mut self, path: &str, body: Option<&str>) -> Answer {
        let signed: Value = body.and_then(|body| serde_json::from_str(body).ok()).unwrap_or_default();
        let part = |name: &str| {
            let mut octets = Vec::new();
            let text = signed[name].as_str().unwrap_or_default();
            if text.is_empty() {
                return Value::Null;
            }
            read_base64url(text.as_bytes(), &mut octets).expect("base64url");
            serde_json::from_slice::<Value>(&octets).unwrap_or_default()
        };
        let (header, payload) = (part("protected"), part("payload"));
        self.heard.push((path.to_owned(), payload));
        let open = format!("{BASE}/account/{}", self.accounts);
        let is_of_open = header["kid"] == open.as_str() && self.closed.is_none();
        match path {
            "/account" => {
                self.accounts += 1;
                self.closed = self.closes_all.then_some("accountDoesNotExist");
                Answer::json(&json!({"status": "valid"}))
                    .with("Location", format!("{BASE}/account/{}", self.accounts))
            }
            path if path.starts_with("/account/") && self.shows_account => {
                let state = if self.closed.is_some() { "deactivated" } else { "valid" };
                Answer::json(&json!({"status": state}))
            }
            path if header["kid"].is_string() && !is_of_open => {
                let kind = self.closed.unwrap_or("unauthorized");
                assert!(path.starts_with("/order") || path.starts_with("/account/"), "{path}");
                Answer::problem(kind)
            }
            path if path.starts_with("/account/") => Answer::json(&json!({"status": "valid"})),
            // No certificate comes of it.
            "/finalize" => Answer::problem("badCSR"),
            path => usual(path, BASE).expect("it answers"),
        }
    }

    fn count(&self, path: &str) -> usize {
        self.heard.iter().filter(|(heard, _)| heard == path).count()
    }
}

#[derive(Clone, Default)]
struct Reached(Arc<Mutex<Keeper>>);

impl Web for Reached {
    fn session(&self, _: Option<&Path>) -> Result<Box<dyn web::Session>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl web::Session for Reached {
    fn send(&self, request: web::Request<'_>) -> Result<web::Response, String> {
        let path = request.url.strip_prefix(BASE).expect("nobody else is asked");
        let Answer(status, fields, body) = lock(&self.0).answer(path, request.body.as_deref());
        let location = fields.into_iter().find(|(name, _)| *name == "Location").map(|(_, value)| value);
        Ok(web::Response { status, nonce: Some("n".to_owned()), location, retry_after: None, body })
    }
}

/// Returns a server that orders from this authority.
fn certificates(room: &Room, keeper: &Reached, place: Arc<dyn Place>) -> Certificates {
    let now = Arc::clone(&room.now);
    let clock: WallClock = Arc::new(move || now.load(Ordering::Relaxed));
    let certificates = Certificates::new(place, Arc::new(keeper.clone()), clock);
    certificates.adopt(&[Arc::clone(&room.plan)]);
    certificates
}

/// Orders, which comes to nothing in the end.
fn order(certificates: &Certificates) -> String {
    certificates.renew("dns").expect("there is one");
    Room::turn(certificates).trouble.expect("a reason").1
}

/// Returns where the only account is kept.
fn account_file(room: &Room) -> std::path::PathBuf {
    let folder = room.plan.file.with_file_name("accounts");
    let mut files = fs::read_dir(folder).expect("a directory").map(|entry| entry.expect("an entry").path());
    files.next().expect("an account")
}

#[test]
fn an_account_that_is_closed_is_made_anew_once_a_day() {
    for (closed, shows_account) in
        [("accountDoesNotExist", false), ("unauthorized", false), ("unauthorized", true)]
    {
        let (room, keeper) = (Room::new(usual), Reached::default());
        let certificates = certificates(&room, &keeper, Arc::clone(&room.place) as _);
        order(&certificates);
        assert_eq!(lock(&keeper.0).accounts, 1);
        order(&certificates);
        assert_eq!(lock(&keeper.0).accounts, 1, "the account is used again");
        lock(&keeper.0).closed = Some(closed);
        lock(&keeper.0).shows_account = shows_account;
        let why = order(&certificates);
        assert_eq!(lock(&keeper.0).accounts, 2, "{closed}");
        assert!(!why.contains("account"), "the order went on: {why}");
        // It is closed again at once.
        lock(&keeper.0).closed = Some(closed);
        for _ in 0..3 {
            let why = order(&certificates);
            assert!(why.contains("made anew less than a day ago"), "{why}");
        }
        assert_eq!(lock(&keeper.0).accounts, 2, "{closed}");
        // A day later there is another try.
        let file = account_file(&room);
        let mut kept: Value =
            serde_json::from_str(&fs::read_to_string(&file).expect("readable")).expect("JSON");
        let remade_at = kept["remade-at"].as_u64().expect("a time");
        kept["remade-at"] = (remade_at - DAY).into();
        fs::write(&file, kept.to_string()).expect("writable");
        order(&certificates);
        assert_eq!(lock(&keeper.0).accounts, 3, "{closed}");
    }
}

#[test]
fn an_authority_that_closes_every_account_gets_one_more_and_what_is_unauthorized_otherwise_none() {
    let (room, keeper) = (Room::new(usual), Reached::default());
    lock(&keeper.0).closes_all = true;
    let certificates_of = certificates(&room, &keeper, Arc::clone(&room.place) as _);
    for _ in 0..4 {
        order(&certificates_of);
    }
    assert_eq!(lock(&keeper.0).accounts, 2);
    // The account is open, and may not do this.
    let (room, keeper) = (Room::new(usual), Reached::default());
    let certificates_of = certificates(&room, &keeper, Arc::clone(&room.place) as _);
    order(&certificates_of);
    lock(&keeper.0).closed = Some("rejectedIdentifier");
    let why = order(&certificates_of);
    assert!(why.contains("rejectedIdentifier"), "{why}");
    assert_eq!(lock(&keeper.0).accounts, 1);
}

#[test]
fn contacts_that_changed_are_told_once_also_when_nothing_is_ordered() {
    let (room, keeper) = (Room::new(usual), Reached::default());
    let with_contact = |contact: &[&str]| {
        let mut plan = (*room.plan).clone();
        plan.authorities[0].contact = contact.iter().map(|it| (*it).to_owned()).collect();
        Arc::new(plan)
    };
    let certificates = certificates(&room, &keeper, Arc::clone(&room.place) as _);
    certificates.adopt(&[with_contact(&["mailto:a@example.org"])]);
    order(&certificates);
    let of_account = |at: usize| {
        let keeper = lock(&keeper.0);
        let heard = keeper.heard.iter().filter(|(path, _)| path.starts_with("/account"));
        heard.map(|(path, payload)| (path.clone(), payload["contact"].clone())).nth(at)
    };
    assert_eq!(of_account(0), Some(("/account".to_owned(), json!(["mailto:a@example.org"]))));
    // With the next order.
    certificates.adopt(&[with_contact(&["mailto:b@example.org"])]);
    order(&certificates);
    order(&certificates);
    assert_eq!(of_account(1), Some(("/account/1".to_owned(), json!(["mailto:b@example.org"]))));
    assert_eq!(of_account(2), None, "once");
    // With a certificate that is good for long, at once.
    room.with_certificate();
    let keep = self::certificates(&room, &keeper, Arc::clone(&room.place) as _);
    room.now.store(NOW + 10, Ordering::Relaxed);
    keep.adopt(&[with_contact(&["mailto:b@example.org"])]);
    Room::turn(&keep);
    assert_eq!(of_account(2), None, "they are the same");
    let orders = lock(&keeper.0).count("/order");
    keep.adopt(&[with_contact(&[])]);
    Room::turn(&keep);
    assert_eq!(of_account(2), Some(("/account/1".to_owned(), json!([]))));
    assert_eq!(lock(&keeper.0).count("/order"), orders, "nothing is ordered for it");
}

/// Looks how the certificate stands when it comes into use.
#[derive(Default)]
struct Onlooker {
    shared: OnceLock<Certificates>,
    seen: Mutex<Option<CertificateState>>,
}

impl Place for Onlooker {
    fn hear(&self, _: &CertificatePlan, _: &News<'_>) {}

    fn show(&self, _: &CertificatePlan, _: &[Challenge]) -> Result<(), String> {
        Ok(())
    }

    fn hide(&self, _: &CertificatePlan, _: &[Challenge]) {}

    fn caa(&self, _: &str) -> Result<Vec<Caa>, String> {
        Ok(Vec::new())
    }

    fn adopt(&self, _: &str) -> Result<(), String> {
        let states = self.shared.get().expect("it is there").states();
        *lock(&self.seen) = states.into_iter().next();
        Ok(())
    }
}

#[test]
fn a_certificate_that_is_shown_in_handshakes_is_one_that_commands_know() {
    let (room, keeper) = (Room::new(usual), Reached::default());
    let place = Arc::new(Onlooker::default());
    let certificates = certificates(&room, &keeper, Arc::clone(&place) as _);
    assert!(place.shared.set(Certificates(Arc::clone(&certificates.0))).is_ok());
    let (mut entry, _) = certificates.0.next().expect("an order is due");
    assert_eq!(Room::state(&certificates).life, None);
    let pem = String::from_utf8(room.with_certificate()).expect("text");
    entry.record.failures = 1;
    let url = &room.plan.authorities[0].url;
    certificates.0.keep(&mut entry, &Issued { pem }, url).expect("it is kept");
    let seen = lock(&place.seen).take().expect("it came into use");
    assert_eq!(seen.life, Some((NOW - DAY, NOW + 89 * DAY)));
    assert_eq!((seen.failures, seen.authority.as_ref(), seen.is_at_work), (0, Some(url), true));
}
