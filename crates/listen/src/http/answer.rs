//! One request and its response.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use engine::{Client, ConnectionText, Now, Parcel, Said, Transport};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, ALLOW, ALT_SVC, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue,
};
use hyper::{Request, Response, StatusCode};
use odoh::ResponseContext;
use tokio::time::timeout;
use wire::message::Section;
use wire::{Flags, Header, MESSAGE_OCTETS_MAX, Message, Rcode, Rtype};

use super::oblivious::{NOT_CARRIED, configs, relayed, sealed, unopened};
use super::request::{self, Asked, Head, JSON, MESSAGE, Refusal};
use super::{Handle, Working, forwarded, json};
use crate::ask::{Asker, Late, Outcome, TooMany};
use crate::bind::ListenerInfo;
use crate::service::{Answer as _, Service};
use crate::tcp::Shared;
use crate::tls::ShownCertificate;
use crate::udp::is_proxy;
use plan::listeners::TcpPlan;

/// Who speaks HTTP with us, over one connection.
pub(crate) struct Visit<S: Service> {
    asker: Asker<S>,
    handle: Rc<Handle>,
    /// The connection's place in the worker's table.
    key: usize,
    listener_info: Arc<ListenerInfo>,
    client: Client,
    /// The name of the server that the client wants to speak with.
    server_name: Option<Box<str>>,
    /// What the client's certificate says.
    certificate: Option<ShownCertificate>,
}

impl<S: Service + 'static> Visit<S> {
    pub(crate) fn new(
        shared: Rc<Shared<S>>,
        (handle, key): (Rc<Handle>, usize),
        listener_info: Arc<ListenerInfo>,
        (address, port): (IpAddr, u16),
        transport: Transport,
    ) -> Self {
        let client = Client {
            address,
            port,
            transport,
            verified: true,
            reply_octets_max: u16::MAX,
            keepalive: None,
            listener: listener_info.listener,
            connection: 0,
            certificate: None,
        };
        Self {
            asker: Asker::new(shared, Arc::clone(handle.account())),
            handle,
            key,
            listener_info,
            client,
            server_name: None,
            certificate: None,
        }
    }

    /// Returns the same visit, by a client whose address a proxy has not seen proven.
    pub(super) fn unproven(self) -> Self {
        Self { client: Client { verified: false, ..self.client }, ..self }
    }

    /// Returns the same visit, with the name that the client has for us.
    pub(crate) fn named(self, server_name: Option<&str>) -> Self {
        Self { server_name: server_name.map(Into::into), ..self }
    }

    /// Returns the same visit, by a client that has shown a certificate, or not.
    pub(crate) fn shown(self, certificate: Option<ShownCertificate>) -> Self {
        Self { certificate, ..self }
    }

    pub(super) fn plan(&self) -> &TcpPlan {
        self.asker.shared().plan()
    }

    pub(super) const fn handle(&self) -> &Rc<Handle> {
        &self.handle
    }

    pub(super) const fn shared(&self) -> &Rc<Shared<S>> {
        self.asker.shared()
    }

    /// Says whether the connection has something to do.
    pub(super) fn note_busy(&self, is_busy: bool) {
        if is_busy {
            self.shared().busy(self.key);
        } else if !self.handle.is_evicted() {
            self.shared().quiet(self.key);
        }
    }
}

/// The body of a response: one piece, sent once.
pub(crate) struct Once(pub(super) Option<Bytes>);

impl Body for Once {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// A request that is being worked on: until it is done, or given up, its connection is not quiet.
struct Busy<S: Service + 'static> {
    visit: Rc<Visit<S>>,
    _working: Working,
}

impl<S: Service + 'static> Busy<S> {
    fn new(visit: &Rc<Visit<S>>) -> Self {
        visit.asker.shared().busy(visit.key);
        Self { visit: Rc::clone(visit), _working: visit.handle.working() }
    }
}

impl<S: Service + 'static> Drop for Busy<S> {
    fn drop(&mut self) {
        // The place of a connection that has ended may be another's by now.
        if self.visit.handle.is_last() && !self.visit.handle.is_evicted() {
            self.visit.asker.shared().quiet(self.visit.key);
        }
    }
}

/// Answers one request over HTTP/1.1.
pub(super) async fn answer<S: Service + 'static>(
    visit: Rc<Visit<S>>,
    request: Request<Incoming>,
) -> Result<Response<Once>, Infallible> {
    let _busy = Busy::new(&visit);
    let (head, body) = request.into_parts();
    Ok(respond(&visit, &head, read_body(body)).await)
}

/// Returns the response to a request, whose body is read only if it holds the question.
pub(super) async fn respond<S: Service + 'static>(
    visit: &Visit<S>,
    head: &impl Head,
    body: impl Future<Output = Result<Vec<u8>, Refusal>>,
) -> Response<Once> {
    let counters = visit.asker.shared().counters();
    counters.http_requests.bump();
    let response = match try_respond(visit, head, body).await {
        Ok(response) => response,
        Err(refusal) => {
            counters.http_refused.bump();
            refuse(refusal)
        }
    };
    if head.method() == "HEAD" { without_body(response) } else { response }
}

/// Returns the response to HEAD instead of GET: with the length of the body, and without it (RFC
/// 9110 §9.3.2).
pub(super) fn without_body(mut response: Response<Once>) -> Response<Once> {
    if let Some(body) = response.body_mut().0.take() {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    }
    response
}

/// Returns what may be asked: here, and by scripts of other sites.
fn options() -> Response<Once> {
    /// Seconds for which a browser may remember it: as long as most do at most.
    const MAX_AGE: &str = "7200";
    let mut response = Response::new(Once(None));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ALLOW, HeaderValue::from_static(request::METHODS));
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(request::METHODS));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("accept, content-type"));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
    response
}

async fn try_respond<S: Service + 'static>(
    visit: &Visit<S>,
    head: &impl Head,
    body: impl Future<Output = Result<Vec<u8>, Refusal>>,
) -> Result<Response<Once>, Refusal> {
    let shared = visit.asker.shared();
    let target = shared.oblivious();
    let what = (&*visit.listener_info.paths, target.is_some());
    let asked = match request::read(head, what) {
        Ok(Asked::Options) => return Ok(options()),
        Ok(Asked::Head) => request::read_get(head)?,
        Ok(asked) => asked,
        Err(refusal) => {
            let file = request::challenge(head).and_then(|token| shared.challenge(token));
            if let Some(text) = file {
                return Ok(challenge_file(text));
            }
            // A stream that is reset while its body is under way looks broken to some clients: they
            // are heard out, within bounds.
            drop(timeout(visit.asker.shared().plan().query_timeout, body).await);
            return Err(refusal);
        }
    };
    let read = async {
        let slow = Refusal { status: StatusCode::REQUEST_TIMEOUT, text: "the body took too long\n" };
        timeout(shared.plan().query_timeout, body).await.map_err(|_| slow)?
    };
    let now_ms = || shared.service().now().monotonic_ms;
    let (query, form) = match asked {
        Asked::Message(text) => {
            let mut query = Vec::new();
            request::decode(text, &mut query)?;
            (query, Form::Message)
        }
        Asked::Body => (read.await?, Form::Message),
        Asked::Json(parameters) => {
            let query = json::query(parameters);
            (query.map_err(|text| Refusal { status: StatusCode::BAD_REQUEST, text })?, Form::Json)
        }
        Asked::ObliviousBody => {
            let sealed = read.await?;
            let opened = target.ok_or(FAULT)?.open(&sealed, now_ms());
            let (query, context) = opened.map_err(unopened)?;
            (query, Form::Oblivious(Box::new(context)))
        }
        Asked::Relay { target, path } => {
            // Those who are refused are heard out, too.
            let sealed = read.await?;
            let courier = shared.service().courier().filter(|courier| courier.serves(&target));
            let courier = courier.filter(|_| visit.may_relay(head)).ok_or(NOT_CARRIED)?;
            let parcel = Parcel { target, path, sealed };
            let delivery = visit.asker.carry(&*courier, parcel).await.map_err(|TooMany| TOO_MANY)?;
            return Ok(relayed(visit, delivery));
        }
        Asked::ObliviousConfigs => return configs(target.ok_or(FAULT)?, now_ms()),
        Asked::Head | Asked::Options => return Err(FAULT),
    };
    let reply = visit.ask(head, &query).await?;
    let max_age = max_age(&reply);
    let (kind, body) = match form {
        Form::Message => (MESSAGE, reply),
        Form::Json => (JSON, visit.keep(json::reply(&reply).ok_or(FAULT)?.as_bytes())),
        Form::Oblivious(context) => return sealed(visit, &context, &reply),
    };
    let mut response = visit.told(kind, body, max_age);
    if kind == JSON {
        // What anybody may ask is no secret of one site.
        response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    }
    Ok(response)
}

/// Returns the file that an authority looks for.
fn challenge_file(text: String) -> Response<Once> {
    let mut response = Response::new(Once(Some(text.into())));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The format of a response.
enum Form {
    Message,
    Json,
    /// Encrypted for whoever a relay speaks for.
    Oblivious(Box<ResponseContext>),
}

/// Something that does not happen.
pub(super) const FAULT: Refusal = Refusal { status: StatusCode::INTERNAL_SERVER_ERROR, text: "" };
const TOO_MANY: Refusal = Refusal {
    status: StatusCode::TOO_MANY_REQUESTS,
    text: "too many queries or replies of this connection wait\n",
};

/// Returns the response that says why there is no other.
pub(super) fn refuse(refusal: Refusal) -> Response<Once> {
    let mut response = Response::new(Once(Some(Bytes::from_static(refusal.text.as_bytes()))));
    *response.status_mut() = refusal.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if refusal.status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static(request::METHODS));
    }
    response
}

/// Reads a body that is one message.
async fn read_body(body: Incoming) -> Result<Vec<u8>, Refusal> {
    let too_large = Refusal { status: StatusCode::PAYLOAD_TOO_LARGE, text: "larger than a message can be\n" };
    if body.size_hint().lower() > MESSAGE_OCTETS_MAX as u64 {
        return Err(too_large);
    }
    let mut body = pin!(body);
    let mut octets = Vec::new();
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        let broken = Refusal { status: StatusCode::BAD_REQUEST, text: "the body is broken\n" };
        let frame = frame.map_err(|_| broken)?;
        let Some(data) = frame.data_ref() else { continue };
        if octets.len() + data.len() > MESSAGE_OCTETS_MAX {
            return Err(too_large);
        }
        octets.extend_from_slice(data);
    }
    Ok(octets)
}

impl<S: Service + 'static> Visit<S> {
    /// Returns who asks: the peer, or the one that a trusted proxy says it asks for.
    fn client(&self, head: &impl Head) -> Client {
        let trusted = &self.listener_info.forwarders;
        if !is_proxy(trusted, self.client.address) {
            return self.client.clone();
        }
        match forwarded::client(head, trusted) {
            Some(address) => Client { address, port: 0, ..self.client.clone() },
            None => self.client.clone(),
        }
    }

    /// Returns whether messages are carried for whoever sent this request: the access list holds
    /// for it as for a query.
    fn may_relay(&self, head: &impl Head) -> bool {
        let service = self.asker.shared().service();
        let now = service.now();
        let mut engine = service.engine();
        engine.begin(now);
        engine.lets_in(&self.client(head))
    }

    /// Returns what policy wants to know of a request.
    fn say<'t>(&'t self, head: &'t impl Head, text: &ConnectionText) -> Said<'t> {
        match text {
            ConnectionText::ServerName => self.server_name.as_deref().map(str::as_bytes).into(),
            ConnectionText::Path => Said::One(head.path().as_bytes()),
            ConnectionText::Header(name) => head.field(name).into(),
            ConnectionText::CertificateSubject
            | ConnectionText::CertificateNames
            | ConnectionText::CertificateFingerprint => {
                ShownCertificate::say(self.certificate.as_ref(), text)
            }
        }
    }

    /// Has the engine answer, and waits if it must.
    async fn ask(&self, head: &impl Head, query: &[u8]) -> Result<Bytes, Refusal> {
        self.asker.shared().counters().http_queries.bump();
        match self.asker.ask(query, self.client(head), |text| self.say(head, text)).await {
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => Err(unanswered(query)),
            Err(TooMany) => Err(TOO_MANY),
        }
    }

    /// Answers a request that is there as a whole, if it is a message and memory has the reply,
    /// which is shown to `reply` with the seconds that it may be kept. `query` is for a message
    /// that has to be read from the address.
    ///
    /// One of a batch, which ends with [`service::finish`](crate::service::finish).
    pub(super) fn answer_now(
        &self,
        head: &impl Head,
        body: &[u8],
        query: &mut Vec<u8>,
        now: Now,
        reply: impl FnOnce(&[u8], u32),
    ) -> Result<AtOnce, Refusal> {
        let shared = self.asker.shared();
        let query = match request::read(head, (&*self.listener_info.paths, shared.oblivious().is_some())) {
            Ok(Asked::Message(text)) => {
                query.clear();
                request::decode(text, query).map(|()| &**query)
            }
            Ok(Asked::Body) => Ok(body),
            Ok(_) => return Ok(AtOnce::Other),
            Err(_) if request::challenge(head).is_some() => return Ok(AtOnce::Other),
            Err(refusal) => Err(refusal),
        };
        let counters = shared.counters();
        counters.http_requests.bump();
        let answered = query.and_then(|query| {
            counters.http_queries.bump();
            let say = |text: &ConnectionText| self.say(head, text);
            let told = |octets: &[u8]| reply(octets, max_age(octets));
            match self.asker.ask_now(query, self.client(head), now, say, told) {
                Ok(Outcome::Replied) => Ok(AtOnce::Answered),
                Ok(Outcome::Nothing) => Err(unanswered(query)),
                Ok(Outcome::Late(late)) => Ok(AtOnce::Late(late, unanswered(query))),
                Err(TooMany) => Err(TOO_MANY),
            }
        });
        if answered.is_err() {
            counters.http_refused.bump();
        }
        answered
    }

    /// Returns the response with a reply that has come, or that says why there is none.
    pub(super) fn respond_late(
        &self,
        reply: Result<Option<Bytes>, TooMany>,
        unanswered: Refusal,
    ) -> Response<Once> {
        let refusal = match reply {
            Ok(Some(reply)) => {
                let max_age = max_age(&reply);
                return self.told(MESSAGE, reply, max_age);
            }
            Ok(None) => unanswered,
            Err(TooMany) => TOO_MANY,
        };
        self.asker.shared().counters().http_refused.bump();
        refuse(refusal)
    }

    /// Keeps a body until the client has it.
    pub(super) fn keep(&self, body: &[u8]) -> Bytes {
        self.handle.account().keep(body)
    }

    /// Returns the value of Alt-Svc that announces HTTP/3, if clients get it.
    pub(super) fn alt_svc(&self) -> Option<&HeaderValue> {
        self.listener_info.alt_svc.as_ref().filter(|_| self.client.transport == Transport::Https)
    }

    /// Returns the response with a reply.
    fn told(&self, kind: &'static str, body: Bytes, max_age: u32) -> Response<Once> {
        let mut response = Response::new(Once(Some(body)));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        if let Ok(value) = HeaderValue::try_from(format!("max-age={max_age}")) {
            headers.insert(CACHE_CONTROL, value);
        }
        if let Some(elsewhere) = self.alt_svc() {
            headers.insert(ALT_SVC, elsewhere.clone());
        }
        response
    }
}

/// What became of a request that was asked at once.
pub(super) enum AtOnce {
    /// It was answered.
    Answered,
    /// The reply comes later; if none does, this is why.
    Late(Late, Refusal),
    /// It is not a message in the body or the address.
    Other,
}

/// Says why a query has no reply, in words of HTTP.
fn unanswered(query: &[u8]) -> Refusal {
    let is_query = Header::parse(query).is_some_and(|header| !header.flags.has(Flags::QR));
    if is_query {
        Refusal { status: StatusCode::FORBIDDEN, text: "this query gets no answer\n" }
    } else {
        Refusal { status: StatusCode::BAD_REQUEST, text: "this is not a DNS query\n" }
    }
}

/// Returns how many seconds a reply may be kept: not longer than any record in its answer, or than
/// the SOA of a negative one says (RFC 8484 §5.1).
fn max_age(reply: &[u8]) -> u32 {
    let Ok(message) = Message::parse(reply) else { return 0 };
    if !matches!(message.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN) || message.header.flags.has(Flags::TC) {
        return 0;
    }
    let answers = message.records().filter(|record| record.section == Section::Answer);
    if let Some(least) = answers.map(|record| record.ttl().seconds()).min() {
        return least;
    }
    let soa =
        message.records().find(|record| record.section == Section::Authority && record.rtype == Rtype::SOA);
    let negative = soa.and_then(|record| {
        let minimum = record.rdata.last_chunk::<4>()?;
        // RFC 2308 §5: the smaller of the SOA's own TTL and its MINIMUM.
        Some(record.ttl().seconds().min(u32::from_be_bytes(*minimum)))
    });
    negative.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use wire::{Class, NameBuf, Ttl, Writer};

    use super::*;

    fn reply(rcode: Rcode, records: &[(Section, Rtype, u32, &[u8])]) -> Vec<u8> {
        let mut buffer = vec![0; 512];
        let flags = Flags::QR.with_rcode(rcode);
        let mut writer = Writer::new(&mut buffer, 512, 0, flags);
        let name: NameBuf = "example.org".parse().expect("a name");
        for &(section, rtype, ttl, rdata) in records {
            let ttl = Ttl::new(ttl);
            let written =
                writer.record(section, name.as_name(), rtype, Class::IN, ttl, |out| out.bytes(rdata));
            written.expect("room");
        }
        let len = writer.finish();
        buffer.truncate(len);
        buffer
    }

    #[test]
    fn replies_are_kept_no_longer_than_their_records() {
        let soa = [&[0, 0][..], &[0; 16], &60_u32.to_be_bytes()].concat();
        let a = [192, 0, 2, 1];
        for (rcode, records, expect) in [
            (
                Rcode::NOERROR,
                vec![(Section::Answer, Rtype::A, 300, &a[..]), (Section::Answer, Rtype::A, 20, &a)],
                20,
            ),
            (
                Rcode::NOERROR,
                vec![(Section::Answer, Rtype::A, 300, &a[..]), (Section::Authority, Rtype::A, 20, &a)],
                300,
            ),
            (Rcode::NXDOMAIN, vec![(Section::Authority, Rtype::SOA, 900, &soa[..])], 60),
            (Rcode::NOERROR, vec![(Section::Authority, Rtype::SOA, 30, &soa[..])], 30),
            (Rcode::NOERROR, Vec::new(), 0),
            (Rcode::SERVFAIL, vec![(Section::Answer, Rtype::A, 300, &a[..])], 0),
        ] {
            assert_eq!(max_age(&reply(rcode, &records)), expect, "{rcode:?} {records:?}");
        }
    }
}
