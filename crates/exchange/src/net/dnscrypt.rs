//! DNSCrypt (draft-denis-dprive-dnscrypt): sealed messages in datagrams, over a connection each
//! where they do not fit.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use dnscrypt::{Certificate, Session, Travel, Wrong};
use identity::Dnscrypt;
use rand::Rng as _;
use tokio::sync::Notify;
use tokio::time::timeout;
use wire::{Flags, Header, Message, Rtype, Section};

use super::carrier::Carrier;
use super::connect::{self, CONNECT_TIMEOUT};
use super::datagrams::Datagrams;
use super::exchange::{self, Outcome};
use crate::network::Remote;

/// How long to wait for certificates in a datagram, each time.
const CERTIFICATE_PATIENCE: [Duration; 2] = [Duration::from_millis(600), Duration::from_millis(1000)];
/// Certificates are asked for again after this; resolvers have new ones every day or so.
const RENEW_AFTER: Duration = Duration::from_secs(3600);
/// And after this if nobody answered.
const RENEW_AGAIN_AFTER: Duration = Duration::from_secs(30);
/// A resolver from which nothing came for this long after a query may have other keys by now; it is
/// asked for them.
const DOUBT_AFTER: Duration = Duration::from_millis(1000);
/// But no more often than this.
const DOUBT_EVERY: Duration = Duration::from_secs(2);
/// Octets of a sealed query, at first: an answer of at most so many comes back in a datagram.
const QUERY_OCTETS_FIRST: usize = 512;
/// More octets after each answer that did not fit, up to what travels in one piece everywhere.
const QUERY_OCTETS_MORE: usize = 64;
const QUERY_OCTETS_LAST: usize = 1216;
/// Octets of a reply with certificates.
const REPLY_OCTETS_MAX: usize = 4096;

/// What the queries of one connection share.
struct DnscryptLink {
    remote: Remote,
    provider: Arc<Dnscrypt>,
    /// None if the proxy does not relay datagrams.
    datagrams: Option<Datagrams>,
    sessions: RefCell<Sessions>,
    octets: Cell<usize>,
    has_asked: Cell<bool>,
    /// When something was last decrypted.
    heard: Cell<Option<Instant>>,
    /// Notified when the resolver may have other keys than we think.
    doubt: Notify,
}

/// The session for new queries, and the one before, whose answers may still come.
struct Sessions {
    certificate: Certificate,
    now: Rc<Session>,
    before: Option<Rc<Session>>,
}

impl Drop for DnscryptLink {
    fn drop(&mut self) {
        // Perhaps the resolver has other keys than we think: the next connection asks for them.
        if self.has_asked.get() && self.heard.get().is_none() {
            self.provider.forget();
        }
    }
}

/// Connects; `opened` is called when queries can be sent. Returns when the connection has ended; an
/// error says why there was none.
pub(super) async fn carry(
    carrier: &Carrier,
    remote: &Remote,
    provider: &Arc<Dnscrypt>,
    opened: impl FnOnce(),
) -> Result<(), String> {
    let certificate = match provider.known(seconds()) {
        Some(known) => known,
        None => renew(remote, provider).await?,
    };
    let session =
        Session::new(&certificate).map_err(|wrong| format!("the resolver's certificate: {wrong}"))?;
    let datagrams = match timeout(CONNECT_TIMEOUT, Datagrams::open(remote)).await {
        Ok(Ok(datagrams)) => datagrams,
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err(format!("no SOCKS5 proxy within {} s", CONNECT_TIMEOUT.as_secs())),
    };
    let link = Rc::new(DnscryptLink {
        remote: remote.clone(),
        provider: Arc::clone(provider),
        datagrams,
        sessions: RefCell::new(Sessions { certificate, now: Rc::new(session), before: None }),
        octets: Cell::new(QUERY_OCTETS_FIRST),
        has_asked: Cell::new(false),
        heard: Cell::new(None),
        doubt: Notify::new(),
    });
    opened();
    let shared = Rc::clone(&link);
    let ended = async move {
        tokio::select! {
            () = shared.listen() => (),
            () = shared.keep_fresh() => (),
        }
    };
    exchange::carry(carrier, ended, |query| {
        let link = Rc::clone(&link);
        async move { Some(link.ask(&query).await.unwrap_or(Outcome::Silence)) }
    })
    .await;
    Ok(())
}

impl DnscryptLink {
    /// Reads answers until there can be none any more.
    async fn listen(&self) {
        let Some(datagrams) = &self.datagrams else { return std::future::pending().await };
        let read = |datagram: &[u8]| {
            // Before anything is decrypted: is it for somebody?
            let tag = dnscrypt::is_response(datagram).filter(|tag| datagrams.awaits(tag))?;
            self.open(datagram).map(|reply| (tag, reply))
        };
        drop(datagrams.read(read).await);
    }

    /// Decrypts an answer with the session that it belongs to.
    fn open(&self, response: &[u8]) -> Option<Vec<u8>> {
        let sessions = self.sessions.borrow();
        let (_, reply) = sessions
            .now
            .open(response)
            .ok()
            .or_else(|| sessions.before.as_ref().and_then(|before| before.open(response).ok()))?;
        self.heard.set(Some(Instant::now()));
        Some(reply)
    }

    /// Asks for certificates now and then, and when there is doubt; changes to a newer one, with a
    /// new key of ours. Ends when there is none that is valid.
    async fn keep_fresh(&self) {
        let mut pause = RENEW_AFTER;
        loop {
            let expires = u64::from(self.sessions.borrow().certificate.valid.1).saturating_sub(seconds());
            let is_due = tokio::select! {
                () = tokio::time::sleep(pause.min(Duration::from_secs(expires / 2 + 1))) => true,
                () = self.doubt.notified() => false,
            };
            match renew(&self.remote, &self.provider).await {
                Ok(newer) => {
                    pause = RENEW_AFTER;
                    let mut sessions = self.sessions.borrow_mut();
                    // When it is due even if the certificate is the same: our own key need not live
                    // for ever.
                    if (is_due || newer != sessions.certificate)
                        && let Ok(session) = Session::new(&newer)
                    {
                        let before = std::mem::replace(&mut sessions.now, Rc::new(session));
                        sessions.before = Some(before);
                        sessions.certificate = newer;
                    }
                }
                Err(_) if self.sessions.borrow().certificate.is_valid_at(seconds()) => {
                    pause = RENEW_AGAIN_AFTER;
                }
                Err(_) => return,
            }
            if !is_due {
                // Doubts that come meanwhile are the same.
                tokio::time::sleep(DOUBT_EVERY).await;
            }
        }
    }

    /// Asks one question; `None` if there was no answer.
    async fn ask(&self, query: &[u8]) -> Option<Outcome> {
        self.has_asked.set(true);
        // The resolver may pass on what it hears as it is: the ID is not to be guessed.
        let id = rand::rng().next_u32() as u16;
        let mut query = query.to_vec();
        *query.first_chunk_mut::<2>()? = id.to_be_bytes();
        if let Some(datagrams) = &self.datagrams {
            let session = Rc::clone(&self.sessions.borrow().now);
            let (packet, tag) = session.seal(&query, Travel::Datagram(self.octets.get())).ok()?;
            let sent = Instant::now();
            let answer = datagrams.ask(tag, &packet);
            tokio::pin!(answer);
            let reply = match timeout(DOUBT_AFTER, &mut answer).await {
                Ok(answer) => answer?,
                Err(_) => {
                    if self.heard.get().is_none_or(|heard| heard < sent) {
                        self.doubt.notify_one();
                    }
                    answer.await?
                }
            };
            if !Header::parse(&reply).is_some_and(|header| header.flags.has(Flags::TC)) {
                return checked(id, reply);
            }
            let more = self.octets.get() + QUERY_OCTETS_MORE;
            self.octets.set(more.min(QUERY_OCTETS_LAST));
        }
        let session = Rc::clone(&self.sessions.borrow().now);
        let (packet, tag) = session.seal(&query, Travel::Connection).ok()?;
        let response = connect::ask_once(&self.remote, &packet).await?;
        let (found, reply) = session.open(&response).ok()?;
        self.heard.set(Some(Instant::now()));
        if found == tag { checked(id, reply) } else { None }
    }
}

/// Takes a reply with the ID that was sent.
fn checked(id: u16, reply: Vec<u8>) -> Option<Outcome> {
    reply.starts_with(&id.to_be_bytes()).then_some(Outcome::Message(reply))
}

/// Asks for certificates and remembers the one to use; an error says why there is none.
async fn renew(remote: &Remote, provider: &Dnscrypt) -> Result<Certificate, String> {
    let reply = certificates(remote, provider).await?;
    let certificate = choose(&reply, &provider.plan.key, seconds())?;
    provider.remember(certificate.clone(), seconds());
    Ok(certificate)
}

/// Asks for certificates, in datagrams and then over a connection.
async fn certificates(remote: &Remote, provider: &Dnscrypt) -> Result<Vec<u8>, String> {
    let id = rand::rng().next_u32() as u16;
    let header = Header { id, flags: Flags::RD, questions: 1, ..Header::default() };
    let name = provider.plan.name.as_name();
    let question = [name.as_bytes(), &Rtype::TXT.0.to_be_bytes(), &wire::Class::IN.0.to_be_bytes()].concat();
    let query = [&header.to_bytes()[..], &question].concat();
    let is_ours = |reply: &[u8]| {
        reply.starts_with(&id.to_be_bytes())
            && reply
                .get(Header::LEN..Header::LEN + question.len())
                .is_some_and(|echoed| echoed.eq_ignore_ascii_case(&question))
    };
    // A proxy connects sooner than it relays one datagram.
    if remote.way().proxy.is_none() {
        let socket = connect::udp(&remote.way().bind, remote.address).map_err(|error| error.to_string())?;
        let mut buffer = vec![0; REPLY_OCTETS_MAX];
        'sent: for patience in CERTIFICATE_PATIENCE {
            socket.send(&query).await.map_err(|error| error.to_string())?;
            let received = timeout(patience, async {
                loop {
                    let octets = socket.recv(&mut buffer).await?;
                    if is_ours(buffer.get(..octets).unwrap_or_default()) {
                        return Ok::<usize, std::io::Error>(octets);
                    }
                }
            });
            match received.await {
                Ok(Ok(octets)) => {
                    let reply = buffer.get(..octets).unwrap_or_default().to_vec();
                    if !Header::parse(&reply).is_some_and(|header| header.flags.has(Flags::TC)) {
                        return Ok(reply);
                    }
                    break 'sent;
                }
                Ok(Err(error)) => return Err(error.to_string()),
                Err(_) => (),
            }
        }
    }
    let reply = connect::ask_once(remote, &query).await.filter(|reply| is_ours(reply));
    reply.ok_or_else(|| "the server does not answer when it is asked for its certificates".to_owned())
}

/// Returns the certificate to use of those in a reply; an error says why none can be used.
fn choose(reply: &[u8], provider: &[u8; 32], now: u64) -> Result<Certificate, String> {
    let message =
        Message::parse(reply).map_err(|_| "the reply with certificates cannot be read".to_owned())?;
    let mut good = Vec::new();
    let mut worst = None;
    let answers = message.records().filter(|record| record.section == Section::Answer);
    for record in answers.filter(|record| record.rtype == Rtype::TXT) {
        let octets = dnscrypt::text(record.rdata).unwrap_or_default();
        match Certificate::parse(&octets, provider) {
            Ok(certificate) => good.push(certificate),
            // That it is not the provider who signed says more than that there are kinds that we do
            // not know.
            Err(wrong) if worst != Some(Wrong::Signature) => worst = Some(wrong),
            Err(_) => (),
        }
    }
    let last = good.iter().map(|certificate| certificate.valid).max_by_key(|valid| valid.1);
    dnscrypt::newest(good, now).ok_or_else(|| match (last, worst) {
        (Some((from, _)), _) if u64::from(from) > now => {
            "the server's certificate is not valid yet: is this machine's clock right?".to_owned()
        }
        (Some((_, until)), _) => {
            format!("the server's certificate expired {} ago", identity::tls::span(now, until.into()))
        }
        (None, Some(Wrong::Signature)) => {
            "the server's certificate is not signed with the provider's key".to_owned()
        }
        (None, Some(wrong)) => format!("the server has no certificate that can be used: {wrong}"),
        (None, None) => "the server has no certificate for this provider's name".to_owned(),
    })
}

/// Returns the seconds since 1970.
fn seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
