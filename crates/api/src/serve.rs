//! Connections that speak HTTP/1.1: what is asked on them, and what goes back.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use control::api::{self, Response};
use control::{Answer, Peer, Proof, Stream};
use hyper::body::Incoming;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH,
    TRANSFER_ENCODING,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use server::{Caller, Credential, Draft, Operator, SocketUsers};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;

use crate::backup;
use crate::body::Body;
use crate::call::{Call, path_parts, query_parts};
use crate::description::description;
use crate::limits::Limits;
use crate::members;
use crate::own_lists;
use crate::patience::Patient;
use crate::powerdns;
use crate::problem::Problem;
use crate::repeated::{self, UnderWay};
use crate::reply::{BodyTime, LONG_BODY_TIME_MAX, Reply, is_json, no_more, not_allowed, read, read_to_file};
use crate::route::{Route, TUNNEL, Wanted};
use crate::routes::all;
use crate::session::{Visitor, in_thread};
use crate::transfers::Transfers;
use crate::validity::Validity;

/// Octets of a body.
const BODY_OCTETS_MAX: u64 = 1 << 20;
/// Bodies that are longer than others at a time, and archives beside them, so that they do not fill
/// the memory.
const LONG_BODIES_MAX: usize = 1;
/// How long the head of a request may take, and a connection may be without one.
pub(crate) const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// Octets of a request's head.
const HEAD_OCTETS_MAX: usize = 16 << 10;
/// Fields of a request's head.
const HEADERS_MAX: usize = 64;

/// What every path of the API begins with.
const BASE: [&str; 2] = ["api", "v1"];
/// Where sessions begin and end, below that.
const SESSION: &str = "/session";
/// Where one changes one's password.
const OWN_PASSWORD: &str = "/session/password";
/// Where one logs in.
const LOG_IN: &str = "/api/v1/session";
/// Where anybody may ask whether the server does its work, and as often as they like.
pub(crate) const HEALTH: &str = "/health";
/// Where the description is.
const DESCRIPTION: &str = "openapi.json";
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
    /// Somebody at an address, whose requests show who it is.
    Stranger {
        /// The address.
        from: IpAddr,
        /// Whether the connection is encrypted.
        is_tls: bool,
        /// Given as soon as one of them does.
        proof: Proof,
    },
}

/// What answers.
pub(crate) struct Api {
    operator: Arc<Operator>,
    pub(crate) limits: Limits,
    under_way: Arc<UnderWay>,
    long_bodies: Arc<Semaphore>,
    archives: Arc<Semaphore>,
}

impl Api {
    /// Returns what answers for this server.
    pub(crate) fn new(operator: Arc<Operator>) -> Self {
        let places = || Arc::new(Semaphore::new(LONG_BODIES_MAX));
        let (long_bodies, archives) = (places(), places());
        Self { operator, limits: Limits::default(), under_way: Arc::default(), long_bodies, archives }
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
        let (who, transfers) = (&who, &Transfers::default());
        let service = service_fn(|request: Request<Incoming>| {
            let api = Arc::clone(&self);
            async move {
                let reply = api.answer(request, (who, transfers)).await.unwrap_or_else(Reply::from);
                Ok::<_, Infallible>(as_response(reply))
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME_MAX)
            .max_headers(HEADERS_MAX)
            .max_buf_size(HEAD_OCTETS_MAX)
            .serve_connection(TokioIo::new(Patient::new(stream)), service);
        // What goes wrong here concerns this client alone, and it notices.
        transfers.wait_for(connection).await;
    }

    /// Answers one request.
    async fn answer(
        &self,
        request: Request<Incoming>,
        (who, transfers): (&Who, &Transfers),
    ) -> Result<Reply, Problem> {
        let path = request.uri().path().to_owned();
        let visitor = match who {
            Who::User(caller) => Some(Visitor::known(caller.clone())),
            Who::Stranger { from, is_tls, proof } => {
                let logs_in = request.method() == "POST" && path == LOG_IN;
                let needs_proof = !is_page(&path) && path != HEALTH && !logs_in;
                match self.welcome(&request, (*from, *is_tls), needs_proof) {
                    Ok(mut visitor) => {
                        if let Some(visitor) = &mut visitor {
                            proof.give();
                            visitor.caller.from = Some(*from);
                        }
                        visitor
                    }
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
            ["health"] | [_, _, DESCRIPTION] if method != "GET" => Ok(not_allowed("GET")),
            // Where programs that speak PowerDNS's API find out which versions there are.
            ["api"] if method == "GET" => {
                Ok(Reply::json("[{\"url\": \"/api/v1\", \"version\": 1}]\n".to_owned()))
            }
            _ if is_page(&path) => self.page(request, visitor, who).await,
            ["health"] => self.health().await,
            [base @ .., DESCRIPTION] if base == BASE => Ok(Reply::json(description())),
            [first, second, ..] if [*first, *second] == BASE => {
                let (route, parts) = match find(&method, parts.get(2..).unwrap_or_default()) {
                    Found::Route(route, parts) => (route, parts),
                    Found::OtherMethods(methods) => return Ok(not_allowed(&methods)),
                    Found::Nothing => return Err(nothing_at(&path)),
                };
                if route.path == OWN_PASSWORD {
                    return self.own_password(request, visitor, who).await;
                }
                if route.path == SESSION {
                    return self.session(request, visitor, who).await;
                }
                let visitor = visitor.ok_or_else(|| Problem::new(401, "this needs a token or a session"))?;
                let is_powerdns = path.starts_with(powerdns::BASE);
                let done = self.carry_out(route, (path, parts), request, (visitor, transfers)).await;
                done.map_err(|problem| if is_powerdns { problem.for_powerdns() } else { problem })
            }
            _ => Err(nothing_at(&path)),
        }
    }

    /// Says whether the server does its work: with 503 if clients are not answered.
    async fn health(&self) -> Result<Reply, Problem> {
        let operator = Arc::clone(&self.operator);
        let health = in_thread(move || operator.health()).await?;
        let status = if health.is_serving { 200 } else { 503 };
        Ok(Reply::json(api::to_json_line(&health)).with_status(status))
    }

    /// Reads the body of a request, into a file if it is a long one; `are_members` says whether it
    /// is one of lines that name members of a set.
    async fn body(
        &self,
        route: &Route,
        request: Request<Incoming>,
        are_members: bool,
        validity: &mut Option<Validity>,
    ) -> Result<(Vec<u8>, Option<Draft>), Problem> {
        let body = request.into_body();
        let (draft, limits) = match route.body {
            Wanted::Upload => {
                let time = BodyTime::All(LONG_BODY_TIME_MAX);
                (self.operator.own_list_draft()?, (own_lists::UPLOAD_OCTETS_MAX, time))
            }
            Wanted::Archive => {
                let time = BodyTime::Rate(backup::ARCHIVE_RATE);
                (self.operator.restore_draft()?, (server::ARCHIVE_OCTETS_MAX, time))
            }
            Wanted::Members if are_members => {
                return Ok((read(body, members::LINES_OCTETS_MAX).await?, None));
            }
            Wanted::Lines => return Ok((read(body, own_lists::LINES_OCTETS_MAX).await?, None)),
            _ => return Ok((read(body, BODY_OCTETS_MAX).await?, None)),
        };
        Ok((Vec::new(), Some(read_to_file(body, draft, limits, validity).await?)))
    }

    /// Refuses a body of another kind, and what nobody may change: that is not read first, however
    /// short it is said to be.
    fn check_before_reading(
        &self,
        route: &Route,
        headers: &HeaderMap,
        parts: &[String],
        visitor: &Visitor,
    ) -> Result<(), Problem> {
        let name = parts.first().map_or("", String::as_str);
        let is_json = headers.get(CONTENT_TYPE).is_some_and(is_json);
        match route.body {
            Wanted::Json(_) if !is_json => {
                return Err(Problem::new(415, "expected a Content-Type of application/json"));
            }
            Wanted::Members if members::are_lines(headers) => {
                server::members_allowed(&self.operator, name, &visitor.caller)?;
            }
            Wanted::Members if !is_json => {
                let why = "expected a Content-Type of application/json or application/x-ndjson";
                return Err(Problem::new(415, why));
            }
            Wanted::Upload | Wanted::Lines => {
                server::own_list_allowed(&self.operator, name, &visitor.caller)?;
            }
            Wanted::Archive => server::restore_allowed(&self.operator, "restore", &visitor.caller)?,
            _ => {}
        }
        Ok(())
    }

    /// Has what a row of the table asks for carried out.
    async fn carry_out(
        &self,
        route: &'static Route,
        (path, parts): (String, Vec<String>),
        request: Request<Incoming>,
        (visitor, transfers): (Visitor, &Transfers),
    ) -> Result<Reply, Problem> {
        let is_archive = matches!(route.body, Wanted::Archive) || route.path == backup::BACKUP;
        let transfer = is_archive.then(|| transfers.begin());
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
        let are_lines = members::are_lines(&headers);
        self.check_before_reading(route, &headers, &parts, &visitor)?;
        let target = request.uri().to_string();
        let is_long = content_length(&request).is_some_and(|octets| octets > BODY_OCTETS_MAX);
        // An archive may come for days, and keeps no other body out.
        let places = if matches!(route.body, Wanted::Archive) { &self.archives } else { &self.long_bodies };
        let _long_body = match is_long {
            true => Some(Arc::clone(places).try_acquire_owned().map_err(|_| {
                Problem::new(503, "another long body is being read; try again when it is done")
            })?),
            false => None,
        };
        let credential = visitor.credential.clone();
        let mut validity = credential.clone().map(|it| Validity::new(&self.operator, it, &visitor.caller));
        let (body, upload) = self.body(route, request, are_lines, &mut validity).await?;
        let upload = Mutex::new(upload);
        if matches!(route.body, Wanted::Nothing) && !body.is_empty() {
            return Err(Problem::new(400, "this takes no body"));
        }
        let Visitor { caller, logs_in_from, is_due, .. } = visitor;
        let call = Call {
            operator: Arc::clone(&self.operator),
            path,
            target,
            parts,
            query,
            headers,
            body,
            upload,
            caller,
            tag: OnceLock::new(),
        };
        let under_way = Arc::clone(&self.under_way);
        let done = tokio::task::spawn_blocking(move || {
            // It may have taken long to come.
            let is_over = |it: &Credential| !call.operator.is_valid(it, call.caller.role);
            if !matches!(route.body, Wanted::Nothing) && credential.as_ref().is_some_and(is_over) {
                return Err(no_more());
            }
            if is_due {
                call.operator.note_sessions();
            }
            if let Some(from) = logs_in_from {
                call.operator.note_log_in(&call.caller.name, from);
            }
            match route.method {
                "GET" => done(route, &call),
                _ => repeated::once(&under_way, route, &call, || done(route, &call)),
            }
        });
        let failed = |_| Err(Problem::new(500, "the server could not carry this out"));
        let reply = done.await.unwrap_or_else(failed)?;
        Ok(reply.lasting(transfer, validity))
    }
}

/// Carries out what a row asks for.
fn done(route: &Route, call: &Call) -> Result<Reply, Problem> {
    if route.path == backup::BACKUP {
        return backup::get_archive(call);
    }
    if let Some(draft) = call.take_upload() {
        if matches!(route.body, Wanted::Archive) {
            return backup::restore(call, &draft);
        }
        return (route.reply)(call, own_lists::put(call, draft)?);
    }
    let request = (route.request)(call)?;
    let outcome = match call.flag("dry-run")? {
        true => server::check_only(&call.operator, request, &call.caller),
        false => server::carry_out(&call.operator, request, &call.caller),
    };
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
        Ok(Answer::Parts(parts)) if matches!(route.path, "/lists/{list}/content") => {
            Ok(own_lists::content(call, parts))
        }
        Ok(Answer::Parts(parts)) if route.path == crate::queries::LIVE.path => {
            Ok(crate::queries::live(parts))
        }
        Ok(Answer::Parts(parts)) if route.path == crate::events::LIVE.path => Ok(crate::events::live(parts)),
        Ok(Answer::Parts(parts)) => {
            let text = parts.map(|part| match part {
                Response::ZoneRecords(records) => records.text,
                other => other.to_json(),
            });
            Ok(Reply::new(200, "text/dns", Body::in_parts(text)))
        }
        Err(server::OperatorError::Conflict(_)) if lacks_tag(route, call)? => {
            let why = "this needs If-Match with the ETag of what it changes, or *";
            Err(Problem::new(428, why).with_change(changed(route, call)))
        }
        Err(server::OperatorError::Conflict(why)) => {
            let is_setting = route.path.starts_with("/settings/");
            let current = if is_setting { crate::resources::current(call)? } else { None };
            Err(Problem::new(412, why).with_current(current).with_change(changed(route, call)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns whether a change of what is there already came without its ETag (RFC 6585 §3).
fn lacks_tag(route: &Route, call: &Call) -> Result<bool, Problem> {
    let needs_tag = matches!(route.path, "/zones/{zone}" | "/bans" | "/bans/{prefix}");
    Ok(needs_tag && call.header(&IF_MATCH)?.is_none() && call.header(&IF_NONE_MATCH)?.is_none())
}

/// Returns who changed what a request was made for.
fn changed(route: &Route, call: &Call) -> Option<api::LastChange> {
    let (operator, name) = (&call.operator, call.part(0));
    match route.path {
        "/zones/{zone}" => operator.last_change_of_zone(&name),
        "/zones/{zone}/rrsets" => operator.last_change_of_rrsets(&name, None),
        "/zones/{zone}/rrsets/{name}/{type}" => {
            operator.last_change_of_rrsets(&name, Some((&call.part(1), &call.part(2))))
        }
        path if path.starts_with("/users/") => {
            let user = operator.user_list().into_iter().find(|user| user.name == name)?;
            Some(api::LastChange { by: user.by, at: user.at })
        }
        path if path.starts_with("/tokens/") => {
            let token = operator.token_list().into_iter().find(|token| token.name == name)?;
            Some(api::LastChange { by: token.by, at: token.at })
        }
        "/bans" => {
            let asked: api::BanAdd = crate::json::parse(&call.body).ok()?;
            operator.last_change_of_ban(&asked.prefix)
        }
        path if path.starts_with("/bans/") => operator.last_change_of_ban(&name),
        path if path.starts_with("/sets/") => operator.last_change_of_set(&name),
        path if path.starts_with("/lists/") => operator.last_change_of_list(&name),
        _ => None,
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
    // A word of ours in a path is nobody's name.
    let is_ours = |route: &Route| !route.path.contains('{');
    let is_word = all().any(|route| is_ours(route) && route.parts(path).is_some());
    let known = all().filter(|route| !is_word || is_ours(route));
    let known = known.filter_map(|route| Some((route, route.parts(path)?)));
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

/// Returns whether there is a page at a path; everybody may see it.
fn is_page(path: &str) -> bool {
    matches!(path, "/" | "/login" | "/login/oidc" | "/logout" | "/style.css")
}

/// Returns why a body is not read at all.
///
/// Its length has to be said beforehand, and once: what two readers could delimit differently is
/// how requests are smuggled (RFC 9112 §11.2).
fn refused_body(request: &Request<Incoming>) -> Option<Problem> {
    if request.headers().contains_key(TRANSFER_ENCODING) {
        return Some(Problem::new(411, "a body needs a Content-Length, and no Transfer-Encoding"));
    }
    let octets_max = own_lists::body_octets_max(request.method().as_str(), request.uri().path());
    let octets_max = octets_max.unwrap_or(BODY_OCTETS_MAX);
    let length = content_length(request)?;
    (length > octets_max).then(|| Problem::new(413, format!("a body has at most {octets_max} octets")))
}

fn content_length(request: &Request<Incoming>) -> Option<u64> {
    request.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn as_response(reply: Reply) -> hyper::Response<Body> {
    let mut response = hyper::Response::new(reply.body);
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    for (name, value) in [
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    for (name, value) in reply.headers {
        // What a client chose is escaped in it, so that it always is a value.
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    if reply.ends_connection {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
