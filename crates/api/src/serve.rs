//! Connections that speak HTTP/1.1: what is asked on them, and what goes back.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use control::api::{self, Response};
use control::{Answer, Peer, Stream};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, TRANSFER_ENCODING};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use server::{Caller, Operator, SocketUsers};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use crate::body::Body;
use crate::call::{Call, path_parts, query_parts};
use crate::description::description;
use crate::limits::Limits;
use crate::powerdns;
use crate::problem::Problem;
use crate::repeated::{self, UnderWay};
use crate::routes::{Route, TUNNEL, Wanted, all};

/// Octets of a body.
const BODY_OCTETS_MAX: u64 = 1 << 20;
/// How long the head of a request may take, and a connection may be without one.
pub(crate) const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a body may take.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a connection may last from its beginning to its end.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(600);
/// Octets of a request's head.
const HEAD_OCTETS_MAX: usize = 16 << 10;
/// Fields of a request's head.
const HEADERS_MAX: usize = 64;

/// What every path of the API begins with.
const BASE: [&str; 2] = ["api", "v1"];
/// Where the description is.
const DESCRIPTION: &str = "openapi.json";
/// Nothing of a page may be loaded from anywhere, or run.
const PAGE_POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const PAGE: &str = "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>Gannet</title></head>\n\
    <body>\n<h1>Gannet</h1>\n<p>This DNS server answers queries. Its API is below <code>/api/v1</code>, \
    <a href=\"/api/v1/openapi.json\">described in OpenAPI</a>.</p>\n</body>\n</html>\n";

/// What goes back.
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Body,
    /// Whether the rest of what the client sends is not looked at.
    ends_connection: bool,
}

impl Reply {
    fn new(status: u16, kind: &str, body: Body) -> Self {
        Self { status, headers: vec![("content-type", kind.to_owned())], body, ends_connection: false }
    }

    pub(crate) fn json(text: String) -> Self {
        Self::new(200, "application/json", Body::whole(text))
    }

    pub(crate) fn text(kind: &str, text: String) -> Self {
        Self::new(200, kind, Body::whole(text))
    }

    /// Returns what was answered before.
    pub(crate) fn again(status: u16, kind: &str, text: String) -> Self {
        Self::new(status, kind, Body::whole(text))
    }

    /// Returns status, type, ETag and body, if all of it is there already.
    pub(crate) fn known(&self) -> Option<(u16, String, Option<String>, String)> {
        let header = |name: &str| {
            self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
        };
        Some((self.status, header("content-type")?, header("etag"), self.body.text()?))
    }

    pub(crate) fn nothing(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::whole(""), ends_connection: false }
    }

    /// Adds a header.
    pub(crate) fn with(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Says where what comes next is.
    pub(crate) fn linked(self, next: Option<String>) -> Self {
        match next {
            Some(next) => self.with("link", format!("<{next}>; rel=\"next\"")),
            None => self,
        }
    }

    /// Answers with another status.
    pub(crate) const fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    const fn ending(mut self) -> Self {
        self.ends_connection = true;
        self
    }
}

impl From<Problem> for Reply {
    fn from(problem: Problem) -> Self {
        let text = api::to_json(&problem);
        Self::new(problem.status(), "application/problem+json", Body::whole(text))
    }
}

/// Returns what goes on with connections of the control socket that speak HTTP.
pub fn http(operator: Arc<Operator>, users: SocketUsers) -> control::Http {
    let api = Arc::new(Api::new(operator));
    Arc::new(move |stream: Stream, peer: Peer| {
        let api = Arc::clone(&api);
        Box::pin(async move {
            // The socket has heard who it is, and why not.
            if let Ok(caller) = users.caller(peer) {
                api.converse(stream, Who::User(caller)).await;
            }
        })
    })
}

/// Who is at the other end of a connection.
pub(crate) enum Who {
    /// A user of this machine, as the system says.
    User(Caller),
    /// Somebody at this address, whose requests show who it is.
    Stranger(IpAddr),
}

/// What answers.
pub(crate) struct Api {
    operator: Arc<Operator>,
    pub(crate) limits: Limits,
    under_way: Arc<UnderWay>,
}

impl Api {
    /// Returns what answers for this server.
    pub(crate) fn new(operator: Arc<Operator>) -> Self {
        Self { operator, limits: Limits::default(), under_way: Arc::default() }
    }

    pub(crate) const fn operator(&self) -> &Arc<Operator> {
        &self.operator
    }

    /// Answers the requests of one connection.
    pub(crate) async fn converse(
        self: Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        who: Who,
    ) {
        let who = &who;
        let service = service_fn(|request: Request<Incoming>| {
            let api = Arc::clone(&self);
            async move {
                let reply = api.answer(request, who).await.unwrap_or_else(Reply::from);
                Ok::<_, Infallible>(as_response(reply))
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME_MAX)
            .max_headers(HEADERS_MAX)
            .max_buf_size(HEAD_OCTETS_MAX)
            .serve_connection(TokioIo::new(stream), service);
        // What goes wrong here concerns this client alone, and it notices.
        drop(timeout(CONNECTION_TIME_MAX, connection).await);
    }

    /// Answers one request.
    async fn answer(&self, request: Request<Incoming>, who: &Who) -> Result<Reply, Problem> {
        let path = request.uri().path().to_owned();
        let caller = match who {
            Who::User(caller) => Some((caller.clone(), None)),
            Who::Stranger(from) => {
                let needs_token = !matches!(path.as_str(), "/" | "/health");
                match self.welcome(&request, *from, needs_token) {
                    Ok(caller) => caller.map(|(caller, is_login)| (caller, is_login.then_some(*from))),
                    // What it would have brought is not read.
                    Err(refusal) => return Ok(refusal.ending()),
                }
            }
        };
        if let Some(refusal) = refused_body(&request) {
            return Ok(Reply::from(refusal).ending());
        }
        let parts = path_parts(&path)?;
        let method = request.method().as_str().to_owned();
        let words: Vec<&str> = parts.iter().map(String::as_str).collect();
        match words.as_slice() {
            [""] | ["health"] | [_, _, DESCRIPTION] if method != "GET" => Ok(not_allowed("GET")),
            [""] => {
                let page = Reply::text("text/html; charset=utf-8", PAGE.to_owned());
                Ok(page.with("content-security-policy", PAGE_POLICY.to_owned()))
            }
            // Where programs that speak PowerDNS's API find out which versions there are.
            ["api"] if method == "GET" => {
                Ok(Reply::json("[{\"url\": \"/api/v1\", \"version\": 1}]\n".to_owned()))
            }
            ["health"] => Ok(Reply::json("{\"is-serving\": true}\n".to_owned())),
            [base @ .., DESCRIPTION] if base == BASE => Ok(Reply::json(description())),
            [first, second, ..] if [*first, *second] == BASE => {
                let (route, parts) = match find(&method, parts.get(2..).unwrap_or_default()) {
                    Found::Route(route, parts) => (route, parts),
                    Found::OtherMethods(methods) => return Ok(not_allowed(&methods)),
                    Found::Nothing => return Err(nothing_at(&path)),
                };
                let caller = caller.ok_or_else(|| Problem::new(401, "this needs a token"))?;
                let is_powerdns = path.starts_with(powerdns::BASE);
                let done = self.carry_out(route, (path, parts), request, caller).await;
                done.map_err(|problem| if is_powerdns { problem.for_powerdns() } else { problem })
            }
            _ => Err(nothing_at(&path)),
        }
    }

    /// Has what a row of the table asks for carried out.
    async fn carry_out(
        &self,
        route: &'static Route,
        (path, parts): (String, Vec<String>),
        request: Request<Incoming>,
        (caller, login): (Caller, Option<IpAddr>),
    ) -> Result<Reply, Problem> {
        let query = query_parts(request.uri().query().unwrap_or(""))?;
        if let Some((unknown, _)) =
            query.iter().find(|(name, _)| route.query.iter().all(|known| known.name != name))
        {
            let known: Vec<&str> = route.query.iter().map(|known| known.name).collect();
            let expected = match known.is_empty() {
                true => "nothing".to_owned(),
                false => known.join(", "),
            };
            return Err(Problem::new(
                400,
                format!("unknown \"{unknown}\" in the query (expected {expected})"),
            ));
        }
        let headers = request.headers().clone();
        let is_json = |value: &HeaderValue| {
            let text = value.to_str().unwrap_or("");
            text.split(';').next().unwrap_or("").trim().eq_ignore_ascii_case("application/json")
        };
        if matches!(route.body, Wanted::Json(_)) && !headers.get(CONTENT_TYPE).is_some_and(is_json) {
            return Err(Problem::new(415, "expected a Content-Type of application/json"));
        }
        let target = request.uri().to_string();
        let body = read(request.into_body()).await?;
        if matches!(route.body, Wanted::Nothing) && !body.is_empty() {
            return Err(Problem::new(400, "this takes no body"));
        }
        let call =
            Call { operator: Arc::clone(&self.operator), path, target, parts, query, headers, body, caller };
        let under_way = Arc::clone(&self.under_way);
        let done = tokio::task::spawn_blocking(move || {
            if let Some(from) = login {
                call.operator.audit(&call.caller.name, ("log-in", &from.to_string()), "accepted");
            }
            match route.method {
                "GET" => done(route, &call),
                method => repeated::once(&under_way, method, &call, || done(route, &call)),
            }
        });
        done.await.unwrap_or_else(|_| Err(Problem::new(500, "the server could not carry this out")))
    }
}

/// Carries out what a row asks for.
fn done(route: &Route, call: &Call) -> Result<Reply, Problem> {
    let request = (route.request)(call)?;
    let outcome = server::carry_out(&call.operator, request, &call.caller);
    if route.path == TUNNEL {
        return Ok(match server::answered(outcome) {
            Answer::Whole(response) => Reply::json(api::to_json_line(&*response)),
            Answer::Parts(parts) => {
                let lines = parts.map(|part| api::to_json_line(&part));
                Reply::new(200, "application/x-ndjson", Body::in_parts(lines))
            }
        });
    }
    match outcome {
        Ok(Answer::Whole(response)) => (route.reply)(call, *response),
        Ok(Answer::Parts(parts)) => {
            let text = parts.map(|part| match part {
                Response::ZoneRecords(records) => records.text,
                other => other.to_json(),
            });
            Ok(Reply::new(200, "text/dns", Body::in_parts(text)))
        }
        Err(server::OperatorError::Conflict(why)) => {
            let is_setting = route.path.starts_with("/settings/");
            let current = if is_setting { crate::resources::current(call)? } else { None };
            Err(Problem::new(412, why).with_current(current))
        }
        Err(error) => Err(error.into()),
    }
}

/// What there is for a method and a path.
enum Found {
    Route(&'static Route, Vec<String>),
    /// The path is known, and takes these methods.
    OtherMethods(String),
    Nothing,
}

fn find(method: &str, path: &[String]) -> Found {
    let known = all().filter_map(|route| Some((route, route.parts(path)?)));
    let mut methods = Vec::new();
    for (route, parts) in known {
        if route.method == method {
            return Found::Route(route, parts);
        }
        methods.push(route.method);
    }
    match methods.is_empty() {
        true => Found::Nothing,
        false => Found::OtherMethods(methods.join(", ")),
    }
}

fn nothing_at(path: &str) -> Problem {
    Problem::new(404, format!("there is nothing at {path}"))
}

fn not_allowed(methods: &str) -> Reply {
    let problem = Problem::new(405, format!("expected {methods}"));
    Reply::from(problem).with("allow", methods.to_owned())
}

/// Returns why a body is not read at all.
///
/// Its length has to be said beforehand, and once: what two readers could delimit differently is
/// how requests are smuggled (RFC 9112 §11.2).
fn refused_body(request: &Request<Incoming>) -> Option<Problem> {
    if request.headers().contains_key(TRANSFER_ENCODING) {
        return Some(Problem::new(411, "a body needs a Content-Length, and no Transfer-Encoding"));
    }
    let length = request.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse::<u64>().ok()?;
    (length > BODY_OCTETS_MAX)
        .then(|| Problem::new(413, format!("a body has at most {BODY_OCTETS_MAX} octets")))
}

/// Reads a body, whose length was looked at.
async fn read(mut body: Incoming) -> Result<Vec<u8>, Problem> {
    let mut octets = Vec::new();
    let all = async {
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let frame = frame.map_err(|_| Problem::new(400, "the body was cut off"))?;
            if let Some(data) = frame.data_ref() {
                octets.extend_from_slice(data);
            }
            if octets.len() as u64 > BODY_OCTETS_MAX {
                return Err(Problem::new(413, format!("a body has at most {BODY_OCTETS_MAX} octets")));
            }
        }
        Ok(())
    };
    let late = |_| Err(Problem::new(408, "the body took too long"));
    timeout(BODY_TIME_MAX, all).await.unwrap_or_else(late)?;
    Ok(octets)
}

fn as_response(reply: Reply) -> hyper::Response<Body> {
    let mut response = hyper::Response::new(reply.body);
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    for (name, value) in reply.headers {
        // What a client chose is escaped in it, so that it always is a value.
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    for (name, value) in [
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if reply.ends_connection {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
