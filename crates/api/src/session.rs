//! Sessions of users: what shows them, where it counts, how they begin and end.
//!
//! A session is shown by a cookie, which browsers send by themselves, whoever has them do it. So
//! what a cookie alone shows may change nothing: a request has to come from a page of ours, and to
//! have a header that no page of others can have sent.

use std::net::IpAddr;
use std::sync::Arc;

use control::api::{self, LogIn};
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, ORIGIN};
use serde::de::DeserializeOwned;
use server::{Caller, Credential, LogInRefusal, LoggedIn};

use crate::json;
use crate::problem::Problem;
use crate::reply::{Reply, is_json, read};
use crate::serve::{Api, Who};

/// The cookie over TLS: browsers take it from us alone, for all paths and no other host
/// (draft-ietf-httpbis-rfc6265bis §4.1.3.2).
const COOKIE_OVER_TLS: &str = "__Host-gannet";
/// The cookie at addresses of this machine, where there is no TLS.
const COOKIE_PLAIN: &str = "gannet";
/// The header that requests have that change something and are shown to be somebody's by a cookie.
const OWN_HEADER: HeaderName = HeaderName::from_static("x-gannet");
/// Where a browser says that a request is from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Octets of a body that somebody sends who has not proved who they are.
const BODY_OCTETS_MAX: u64 = 4 << 10;

/// Somebody who has proved who they are.
#[derive(Clone)]
pub(crate) struct Visitor {
    /// Who.
    pub(crate) caller: Caller,
    /// Where from, if that is a log-in.
    pub(crate) logs_in_from: Option<IpAddr>,
    /// What shows their session, if they have one.
    pub(crate) session: Option<String>,
    /// Whether the use of the session is to be noted.
    pub(crate) is_due: bool,
    /// What shows who it is, if the system does not.
    pub(crate) credential: Option<Credential>,
}

impl Visitor {
    /// Returns somebody who needs no session.
    pub(crate) const fn known(caller: Caller) -> Self {
        Self { caller, logs_in_from: None, session: None, is_due: false, credential: None }
    }
}

const fn cookie_name(is_tls: bool) -> &'static str {
    if is_tls { COOKIE_OVER_TLS } else { COOKIE_PLAIN }
}

/// Returns what shows a session; `None` if there is nothing, or something else beside it: who can
/// add a cookie of this name could have somebody be somebody else.
pub(crate) fn shown(headers: &HeaderMap, is_tls: bool) -> Option<&str> {
    cookie_value(headers, cookie_name(is_tls))
}

/// Returns the only cookie of a name.
pub(crate) fn cookie_value<'h>(headers: &'h HeaderMap, wanted: &str) -> Option<&'h str> {
    let all = headers.get_all(COOKIE).iter();
    let pairs = all.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(';'));
    let mut own = pairs.filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == wanted).then_some(value)
    });
    let first = own.next()?;
    own.next().is_none().then_some(first)
}

/// Returns an error unless a page of ours has a browser send this. Where `Origin` leads was looked
/// at before.
pub(crate) fn check_page(headers: &HeaderMap) -> Result<(), Problem> {
    let is_ours = match headers.get(FETCH_SITE) {
        // "none" is a person at the address bar.
        Some(site) => site == "same-origin",
        None => headers.contains_key(ORIGIN),
    };
    match is_ours {
        true => Ok(()),
        false => Err(Problem::new(403, "what a session changes has to be sent by a page of this server")),
    }
}

/// Returns an error unless a request that a cookie shows to be somebody's may change something.
pub(crate) fn check_write(headers: &HeaderMap) -> Result<(), Problem> {
    check_page(headers)?;
    match headers.contains_key(OWN_HEADER) {
        true => Ok(()),
        false => Err(Problem::new(403, "what a session changes needs the header X-Gannet")),
    }
}

/// Returns an error unless a request that a cookie shows to be somebody's may have the server do
/// much: a page of another port of this machine is of the same site, and its cookies come along. A
/// browser says where a page is over HTTPS alone, and no other page can send our header.
pub(crate) fn check_costly(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.contains_key(OWN_HEADER) { Ok(()) } else { check_page(headers) }
}

/// Returns the cookie that shows a session, or an empty one that is over.
pub(crate) fn cookie(secret: Option<&str>, is_tls: bool) -> String {
    let (name, secure) = (cookie_name(is_tls), if is_tls { "; Secure" } else { "" });
    let (value, age) = secret.map_or(("", "; Max-Age=0"), |secret| (secret, ""));
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{age}")
}

/// Returns why somebody is not logged in.
pub(crate) fn refused(refusal: LogInRefusal) -> Reply {
    match refusal {
        LogInRefusal::Slow(wait) => {
            let problem = Problem::new(429, "too many attempts to log in: try again in a moment");
            Reply::from(problem).with("retry-after", (wait.as_secs() + 1).to_string())
        }
        LogInRefusal::LinkOver => {
            Reply::from(Problem::new(410, "this link was used before, or its time is over"))
        }
        LogInRefusal::CodeNeeded => Reply::from(Problem::new(401, "this user needs a one-time code, too"))
            .with("x-gannet-needs", "code".to_owned()),
        LogInRefusal::Wrong => Reply::from(Problem::new(401, "the name, the password or the code is wrong")),
        LogInRefusal::Failed(error) => Reply::from(Problem::from(error)),
    }
}

impl Api {
    /// Answers what is asked of `/session`.
    pub(crate) async fn session(
        &self,
        request: Request<Incoming>,
        visitor: Option<Visitor>,
        who: &Who,
    ) -> Result<Reply, Problem> {
        if request.uri().query().is_some() {
            return Err(Problem::new(400, "this has nothing in the query"));
        }
        let method = request.method().as_str();
        if method == "POST" {
            return self.begin_session(request, who).await;
        }
        let visitor = visitor.ok_or_else(|| Problem::new(401, "nobody is logged in"))?;
        let operator = Arc::clone(self.operator());
        let is_over = method == "DELETE";
        if is_over && visitor.session.is_none() {
            return Err(Problem::new(409, "who has no session cannot log out"));
        }
        let work = move || {
            let said = operator.who_asks(&visitor.caller, visitor.session.as_deref());
            if let Some(secret) = visitor.session.filter(|_| is_over) {
                operator.log_out(&visitor.caller, &secret)?;
            } else if visitor.is_due {
                operator.note_sessions();
            }
            Ok::<_, Problem>(said)
        };
        let said = in_thread(work).await??;
        let reply = Reply::json(api::to_json(&said));
        Ok(match who {
            Who::Stranger { is_tls, .. } if is_over => reply.with("set-cookie", cookie(None, *is_tls)),
            Who::Stranger { .. } | Who::User(_) => reply,
        })
    }

    /// Changes the password of who has logged in.
    pub(crate) async fn own_password(
        &self,
        request: Request<Incoming>,
        visitor: Option<Visitor>,
        who: &Who,
    ) -> Result<Reply, Problem> {
        let (Who::Stranger { from, is_tls, .. }, Some(visitor)) =
            (who, visitor.filter(|it| it.session.is_some()))
        else {
            return Err(Problem::new(409, "only users who have logged in have a password"));
        };
        let asked: api::OwnPassword = read_json(request).await?;
        let (operator, from) = (Arc::clone(self.operator()), *from);
        let changed = in_thread(move || operator.change_own_password(&visitor.caller, &asked, from)).await?;
        Ok(begun(changed, *is_tls))
    }

    /// Logs somebody in.
    async fn begin_session(&self, request: Request<Incoming>, who: &Who) -> Result<Reply, Problem> {
        let Who::Stranger { from, is_tls, .. } = *who else {
            return Err(Problem::new(409, "the control socket knows who asks: nobody logs in here"));
        };
        let asked: LogIn = read_json(request).await?;
        let operator = Arc::clone(self.operator());
        Ok(begun(in_thread(move || operator.log_in(&asked, from)).await?, is_tls))
    }
}

/// Reads what somebody sends to begin a session.
async fn read_json<T: DeserializeOwned>(request: Request<Incoming>) -> Result<T, Problem> {
    if !request.headers().get(CONTENT_TYPE).is_some_and(is_json) {
        return Err(Problem::new(415, "expected a Content-Type of application/json"));
    }
    json::parse(&read(request.into_body(), BODY_OCTETS_MAX).await?)
}

/// Answers with a session that began, or why none did.
fn begun(outcome: Result<LoggedIn, LogInRefusal>, is_tls: bool) -> Reply {
    match outcome {
        Ok(begun) => {
            let reply = Reply::json(api::to_json(&begun.who));
            reply.with("set-cookie", cookie(Some(&begun.secret.0), is_tls))
        }
        Err(refusal) => refused(refusal),
    }
}

/// Has something done that may wait.
pub(crate) async fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Problem::new(500, "the server could not carry this out"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let header = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"))
        };
        all.iter().map(header).collect()
    }

    #[test]
    fn a_cookie_counts_where_it_was_set_and_once() {
        let check = |cookies: &[&str], is_tls: bool, expect: Option<&str>| {
            let all: Vec<_> = cookies.iter().map(|cookie| ("cookie", *cookie)).collect();
            assert_eq!(shown(&headers(&all), is_tls), expect, "{cookies:?}");
        };
        check(&["a=b; __Host-gannet=gns_1; c"], true, Some("gns_1"));
        check(&["__Host-gannet=gns_1"], false, None);
        check(&["gannet=gns_1"], false, Some("gns_1"));
        check(&["gannet=gns_1"], true, None);
        check(&["gannet=gns_1; gannet=gns_2"], false, None);
        check(&["gannet=gns_1", "gannet=gns_1"], false, None);
        check(&["Gannet=gns_1; xgannet=gns_2"], false, None);
    }

    #[test]
    fn a_cookie_leaves_the_browser_for_us_alone() {
        assert_eq!(
            cookie(Some("gns_1"), true),
            "__Host-gannet=gns_1; Path=/; HttpOnly; SameSite=Strict; Secure"
        );
        assert_eq!(cookie(None, false), "gannet=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
    }

    #[test]
    fn what_costs_much_comes_from_a_page_of_ours_or_with_our_header() {
        let check = |all: &[(&'static str, &str)]| check_costly(&headers(all)).is_ok();
        assert!(check(&[("sec-fetch-site", "same-origin")]) && check(&[("x-gannet", "1")]));
        for site in ["cross-site", "same-site", "none"] {
            assert!(!check(&[("sec-fetch-site", site)]), "{site}");
        }
        assert!(!check(&[]));
    }

    #[test]
    fn what_changes_something_comes_from_a_page_of_ours_with_our_header() {
        let check = |all: &[(&'static str, &str)]| check_write(&headers(all)).is_ok();
        let own = ("x-gannet", "1");
        assert!(check(&[("sec-fetch-site", "same-origin"), own]));
        assert!(check(&[("origin", "https://dns.example.org"), own]));
        for site in ["cross-site", "same-site", "none"] {
            let others = [("sec-fetch-site", site), ("origin", "https://dns.example.org"), own];
            assert!(!check(&others), "{site}");
        }
        assert!(!check(&[own]) && !check(&[("sec-fetch-site", "same-origin")]));
    }
}
