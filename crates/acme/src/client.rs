//! Requests to one authority (RFC 8555 §6): signed, with nonces, and within bounds, whatever it
//! answers.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http::Uri;
use plan::certificates::AuthorityPlan;
use serde_json::{Value, json};

use crate::jose::AccountKey;
use crate::schedule::Window;
use crate::web::{Request, Response, Session, Web};

/// Requests of one order, so that an authority that always wants another ends.
const REQUESTS_MAX: u32 = 400;
/// How often a request is repeated because of its nonce (RFC 8555 §6.5). An authority with several
/// machines may refuse many that are right.
const BAD_NONCES_MAX: u32 = 10;
/// Characters of what an authority says that are told.
const SAID_CHARS_MAX: usize = 300;
/// The longest time that an authority may have us wait.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Why there is no certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failure {
    /// In words.
    pub(crate) why: String,
    /// The type of the problem, if the authority has said one (RFC 8555 §6.7).
    pub(crate) kind: String,
    /// For how long the authority wants not to be asked.
    pub(crate) retry_after: Option<Duration>,
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self { why, ..Self::default() }
    }
}

impl From<&str> for Failure {
    fn from(why: &str) -> Self {
        Self::from(why.to_owned())
    }
}

/// Returns what an authority says, short enough and without what a log or a terminal takes for
/// something else.
pub(crate) fn said(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(SAID_CHARS_MAX).collect()
}

/// Where an authority does what (RFC 8555 §7.1.1).
#[derive(Debug, Default)]
pub(crate) struct Directory {
    new_nonce: String,
    pub(crate) new_account: String,
    pub(crate) new_order: String,
    /// Where it says when certificates are to be renewed (RFC 9773 §4), if it does.
    pub(crate) renewal_info: Option<String>,
    /// The profiles that it offers.
    pub(crate) profiles: Vec<String>,
    /// How it is called in CAA records.
    pub(crate) identities: Vec<String>,
}

impl Directory {
    fn read(body: &Value) -> Result<Self, Failure> {
        let place = |name: &str| match body[name].as_str() {
            Some(url) => checked(url).map(str::to_owned),
            None => Err(Failure::from(format!("its directory has no \"{name}\""))),
        };
        let renewal_info = body["renewalInfo"].as_str().map(checked).transpose()?.map(str::to_owned);
        let profiles = body["meta"]["profiles"].as_object();
        let identities = body["meta"]["caaIdentities"].as_array().into_iter().flatten();
        Ok(Self {
            new_nonce: place("newNonce")?,
            new_account: place("newAccount")?,
            new_order: place("newOrder")?,
            renewal_info,
            profiles: profiles.map(|known| known.keys().map(|name| said(name)).collect()).unwrap_or_default(),
            identities: identities.filter_map(|name| name.as_str()).map(said).collect(),
        })
    }
}

/// Checks a URL that an authority names: nothing but HTTPS is spoken (RFC 8555 §6.1).
pub(crate) fn checked(url: &str) -> Result<&str, Failure> {
    let is_https =
        url.parse::<Uri>().is_ok_and(|uri| uri.scheme_str() == Some("https") && uri.host().is_some());
    if is_https {
        Ok(url)
    } else {
        Err(format!("it names \"{}\", which is no URL of HTTPS", said(url)).into())
    }
}

/// What an authority answers.
pub(crate) struct Reply {
    /// What the response is about, where it says so.
    pub(crate) location: Option<String>,
    /// When to ask again.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// Returns the body as JSON.
    pub(crate) fn json(&self) -> Result<Value, Failure> {
        serde_json::from_slice(&self.body).map_err(|error| format!("its answer is no JSON: {error}").into())
    }
}

/// Asks one authority, until a deadline.
pub(crate) struct Client {
    session: Box<dyn Session>,
    pub(crate) directory: Directory,
    nonce: Option<String>,
    deadline: Instant,
    left: u32,
}

/// Who signs a request.
#[derive(Clone, Copy)]
pub(crate) enum By<'a> {
    /// An account that is yet to be made.
    Key,
    /// An account, by its URL.
    Account(&'a str),
}

impl Client {
    /// Fetches the directory of an authority.
    pub(crate) fn new(authority: &AuthorityPlan, web: &dyn Web, deadline: Instant) -> Result<Self, Failure> {
        let session = web.session(authority.roots.as_deref())?;
        let directory = Directory::default();
        let mut client = Self { session, directory, nonce: None, deadline, left: REQUESTS_MAX };
        let body = client.get(&authority.url)?.json()?;
        client.directory = Directory::read(&body)?;
        Ok(client)
    }

    /// Returns how much time is left; an error if there is none.
    pub(crate) fn time_left(&self) -> Result<Duration, Failure> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err("the authority takes too long".into()) } else { Ok(left) }
    }

    /// Fetches something that is not signed.
    pub(crate) fn get(&mut self, url: &str) -> Result<Reply, Failure> {
        self.send(Request { method: "GET", url: checked(url)?, body: None })
    }

    fn send(&mut self, request: Request<'_>) -> Result<Reply, Failure> {
        self.time_left()?;
        let Some(left) = self.left.checked_sub(1) else {
            return Err("the authority takes too many requests for one order".into());
        };
        self.left = left;
        let response = self.session.send(request).map_err(|why| Failure::from(said(&why)))?;
        self.taken(response)
    }

    /// Sends a signed request, again if its nonce was refused.
    pub(crate) fn post(
        &mut self,
        (key, by): (&AccountKey, By<'_>),
        url: &str,
        payload: Option<&Value>,
    ) -> Result<Reply, Failure> {
        checked(url)?;
        let mut refused = 0;
        loop {
            let nonce = self.take_nonce()?;
            let header = match by {
                By::Key => json!({"jwk": key.public(), "nonce": nonce, "url": url}),
                By::Account(account) => json!({"kid": account, "nonce": nonce, "url": url}),
            };
            let body = key.sign(header, payload)?.to_string();
            match self.send(Request { method: "POST", url, body: Some(body) }) {
                Err(failure) if failure.kind == "badNonce" && refused < BAD_NONCES_MAX => refused += 1,
                taken => return taken,
            }
        }
    }

    /// Asks when a certificate is to be renewed (RFC 9773 §4.1), and when to ask again; `None` if
    /// the authority does not say such things.
    pub(crate) fn window(&mut self, id: &str) -> Result<(Option<Window>, Option<Duration>), Failure> {
        let Some(url) = self.directory.renewal_info.clone() else { return Ok((None, None)) };
        let reply = self.get(&format!("{}/{id}", url.trim_end_matches('/')))?;
        let body = reply.json()?;
        let time = |name: &str| {
            let text = body["suggestedWindow"][name].as_str()?;
            let seconds = text.parse::<jiff::Timestamp>().ok()?.as_second();
            Some(u64::try_from(seconds).unwrap_or(0))
        };
        match time("start").zip(time("end")).filter(|(start, end)| start < end) {
            Some((start, end)) => Ok((Some(Window { start, end }), reply.retry_after)),
            None => Err(Failure {
                retry_after: reply.retry_after,
                ..Failure::from("it names no time for renewal")
            }),
        }
    }

    fn take_nonce(&mut self) -> Result<String, Failure> {
        if let Some(nonce) = self.nonce.take() {
            return Ok(nonce);
        }
        let url = self.directory.new_nonce.clone();
        self.send(Request { method: "HEAD", url: &url, body: None })?;
        self.nonce.take().ok_or_else(|| "it gives no nonce".into())
    }

    /// Takes a response: what it says, or the problem that it is.
    fn taken(&mut self, response: Response) -> Result<Reply, Failure> {
        let Response { status, nonce, location, retry_after, body } = response;
        // RFC 8555 §6.5.1: base64url; whatever else it is goes into JSON as a text.
        self.nonce = nonce;
        let retry_after = retry_after.and_then(|text| wait(&text));
        match status {
            200..=299 => return Ok(Reply { location, retry_after, body }),
            300..=399 => {
                let to = location.as_deref().map(said).unwrap_or_default();
                return Err(format!("it redirects to \"{to}\", which is not followed").into());
            }
            _ => {}
        }
        let problem = serde_json::from_slice::<Value>(&body).unwrap_or_default();
        let why = told(&problem).unwrap_or_else(|| format!("it answers with the status {status}"));
        Err(Failure { why, kind: kind(&problem), retry_after })
    }
}

/// Returns the type of a problem without what all have in common (RFC 8555 §6.7).
fn kind(problem: &Value) -> String {
    let kind = problem["type"].as_str().unwrap_or("");
    said(kind.strip_prefix("urn:ietf:params:acme:error:").unwrap_or(kind))
}

/// Returns what a problem says, in words; `None` if it is none.
pub(crate) fn told(problem: &Value) -> Option<String> {
    let detail = problem["detail"].as_str().map(said);
    let kind = Some(kind(problem)).filter(|kind| !kind.is_empty());
    let mut told = match (detail, kind) {
        (Some(detail), Some(kind)) => format!("{detail} ({kind})"),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => return None,
    };
    // RFC 8555 §6.7.1: which names it is about.
    for part in problem["subproblems"].as_array().into_iter().flatten().take(4) {
        if let (Some(name), Some(why)) = (part["identifier"]["value"].as_str(), part["detail"].as_str()) {
            told.push_str(&format!("; {}: {}", said(name), said(why)));
        }
    }
    Some(told)
}

/// Reads when to ask again: seconds, or a date (RFC 9110 §10.2.3).
fn wait(text: &str) -> Option<Duration> {
    let text = text.trim();
    let seconds = match text.parse::<u64>() {
        Ok(seconds) => seconds,
        Err(_) => {
            let at = jiff::fmt::rfc2822::parse(text).ok()?.timestamp().as_second();
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            u64::try_from(at).ok()?.saturating_sub(now)
        }
    };
    Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_authority_has_us_wait_for_longer_than_a_day() {
        assert_eq!(wait("5"), Some(Duration::from_secs(5)));
        for far in ["18446744073709551615", "Thu, 31 Dec 2099 23:59:59 GMT"] {
            assert_eq!(wait(far), Some(RETRY_AFTER_MAX), "{far}");
        }
        assert_eq!(wait("Fri, 31 Dec 1999 23:59:59 GMT"), Some(Duration::ZERO));
        for wrong in ["", "soon", "-1", "99999999999999999999999"] {
            assert_eq!(wait(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_directory_names_urls_of_https_alone() {
        let url = "https://ca.example.org/x";
        let whole = json!({"newNonce": url, "newAccount": url, "newOrder": url});
        assert!(Directory::read(&whole).is_ok());
        for wrong in
            ["http://ca.example.org/x", "not a url", "https://", "", "https://a b/", "file:///etc/passwd"]
        {
            for name in ["newNonce", "newAccount", "newOrder", "renewalInfo"] {
                let mut body = whole.clone();
                body[name] = wrong.into();
                assert!(Directory::read(&body).is_err(), "{name}: {wrong}");
            }
        }
        assert!(Directory::read(&json!({"newNonce": url})).is_err());
        assert!(Directory::read(&json!([])).is_err());
    }

    #[test]
    fn what_an_authority_says_is_short_and_has_no_control_characters() {
        let problem = json!({
            "type": "urn:ietf:params:acme:error:caa",
            "detail": format!("no\u{1b}[31m\nway{}", "x".repeat(10_000)),
            "subproblems": [{"identifier": {"type": "dns", "value": "a.example.org"}, "detail": "CAA"}],
        });
        let told = told(&problem).expect("a problem");
        assert!(told.starts_with("no[31mwayx") && told.len() < 400, "{told}");
        assert!(told.ends_with("(caa); a.example.org: CAA"), "{told}");
    }
}
