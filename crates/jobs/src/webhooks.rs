//! Webhooks: events of the server, signed and sent to web servers.
//!
//! Each has a thread and a queue of its own, so that one that does not answer holds up no other,
//! and nobody waits for any. What cannot be delivered is sent again, with growing pauses; what
//! finds no room and what is given up is counted, and said once. Messages are signed as the
//! Standard Webhooks specification has it: HMAC-SHA-256 over id, time and body.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use events::Count;
use plan::jobs::{Webhook, WebhookTarget};
use socket2::{Domain, SockAddr, Socket, Type};
use tracing::{info, warn};
use ureq::http::{Request, header};

use crate::download::jittered;
use crate::http::{Trust, agent_following};
use crate::lock;
use crate::queue::{Queue, Taken};
use crate::resolver::Resolvers;

/// Events that wait for one receiver.
const QUEUE_MAX: usize = 256;
/// The pause before the first retry; each one is twice as long as the one before.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// The longest pause, also if the receiver asks for a longer one.
const RETRY_LAST: Duration = Duration::from_secs(600);
/// Octets of a response over a Unix socket that are read: its head is enough.
const RESPONSE_OCTETS_MAX: u64 = 4096;
/// How long what waits may still be delivered when the server ends.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long a look into an empty queue lasts.
const LOOK: Duration = Duration::from_secs(60);

/// An event as it is sent.
#[derive(Debug)]
pub struct Message {
    /// Its id: the same in every try.
    pub id: String,
    /// What happened, in JSON.
    pub body: String,
}

/// All webhooks. Clones are the same.
#[derive(Clone)]
pub struct Webhooks {
    hooks: Arc<Mutex<Vec<Hook>>>,
    resolvers: Resolvers,
}

struct Hook {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

struct Shared {
    /// Held for a moment. Its secrets may change while events wait: each try is signed with those
    /// of then.
    plan: Mutex<Arc<Webhook>>,
    queue: Queue<Arc<Message>>,
    counts: Arc<Counts>,
    /// Whether the log has been told that events find no room.
    is_full: AtomicBool,
}

/// What became of events. A webhook that is changed goes on counting.
#[derive(Default)]
struct Counts {
    delivered: Count,
    failed: Count,
    given_up: Count,
    dropped: Count,
}

/// What became of a try.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    /// It may succeed later, perhaps not before some time.
    Later(String, Option<Duration>),
    /// The receiver wants no more (410).
    Gone,
}

impl Webhooks {
    pub(crate) fn new(resolvers: Resolvers) -> Self {
        Self { hooks: Arc::default(), resolvers }
    }

    /// Delivers to these from now on. What is as before but for its secrets goes on undisturbed; of
    /// what is gone, the
    /// event that is being sent is the last: what waits was meant for a receiver that is gone.
    pub(crate) fn adopt(&self, plans: &[Webhook]) {
        let mut hooks = lock(&self.hooks);
        let mut old = std::mem::take(&mut *hooks);
        for plan in plans {
            if let Some(at) = old.iter().position(|hook| is_same_receiver(&hook.shared.plan(), plan)) {
                let hook = old.swap_remove(at);
                *lock(&hook.shared.plan) = Arc::new(plan.clone());
                hooks.push(hook);
                continue;
            }
            let before = old.iter().find(|hook| hook.shared.plan().name == plan.name);
            let shared = Arc::new(Shared {
                plan: Mutex::new(Arc::new(plan.clone())),
                queue: Queue::new(QUEUE_MAX),
                counts: before.map_or_else(Arc::default, |hook| Arc::clone(&hook.shared.counts)),
                is_full: AtomicBool::new(false),
            });
            let (own, resolvers) = (Arc::clone(&shared), self.resolvers.clone());
            let started =
                thread::Builder::new().name("webhook".to_owned()).spawn(move || own.serve(&resolvers));
            match started {
                Ok(thread) => hooks.push(Hook { shared, thread }),
                Err(error) => {
                    warn!(webhook = plan.name, %error, "the webhook gets no events: no thread for it");
                }
            }
        }
        drop(hooks);
        for hook in old {
            hook.close();
            hook.shared.forget();
        }
    }

    /// Returns whether somebody wants events of a kind.
    pub fn want(&self, kind: &str) -> bool {
        lock(&self.hooks).iter().any(|hook| hook.shared.plan().wants(kind))
    }

    /// Has an event delivered to all that want its kind; waits for none.
    pub fn give(&self, kind: &str, message: Message) {
        let message = Arc::new(message);
        for Hook { shared, .. } in lock(&self.hooks).iter().filter(|hook| hook.shared.plan().wants(kind)) {
            if !shared.queue.put(Arc::clone(&message)) {
                shared.counts.dropped.add(1);
                if !shared.is_full.swap(true, Ordering::Relaxed) {
                    warn!(webhook = shared.plan().name, "events find no room and are not delivered");
                }
            }
        }
    }

    /// Ends: what waits is tried once more, for a moment.
    pub(crate) fn stop(&self) {
        let hooks = std::mem::take(&mut *lock(&self.hooks));
        hooks.iter().for_each(Hook::close);
        let deadline = Instant::now() + LAST_WORDS;
        while hooks.iter().any(|hook| !hook.thread.is_finished()) && Instant::now() < deadline {
            thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// Returns the name of each, with what was delivered, tries that failed, what was given up,
    /// what found no room, and what waits.
    pub(crate) fn stats(&self) -> Vec<(String, [(&'static str, u64); 5])> {
        let of = |Hook { shared, .. }: &Hook| {
            let Counts { delivered, failed, given_up, dropped } = &*shared.counts;
            let counts = [
                ("delivered", delivered.read()),
                ("failed", failed.read()),
                ("given-up", given_up.read()),
                ("dropped", dropped.read()),
                ("waiting", shared.queue.len() as u64),
            ];
            (shared.plan().name.clone(), counts)
        };
        lock(&self.hooks).iter().map(of).collect()
    }
}

impl Hook {
    /// Takes no more events, and wakes the thread.
    fn close(&self) {
        self.shared.queue.close();
        self.thread.thread().unpark();
    }
}

/// How deliveries went lately, so that each change is said once.
#[derive(Default)]
struct Standing {
    is_failing: bool,
    /// Events that were given up since the last one that was delivered.
    given_up: u64,
}

impl Shared {
    fn plan(&self) -> Arc<Webhook> {
        Arc::clone(&lock(&self.plan))
    }

    fn serve(&self, resolvers: &Resolvers) {
        let mut taken = Vec::with_capacity(1);
        let mut standing = Standing::default();
        loop {
            match self.queue.take(&mut taken, 1, LOOK) {
                Taken::Some => {}
                Taken::Nothing => continue,
                Taken::Closed => return,
            }
            for message in taken.drain(..) {
                self.deliver(&message, resolvers, &mut standing);
            }
        }
    }

    /// Gives up what waits.
    fn forget(&self) {
        let mut waiting = Vec::new();
        if self.queue.take(&mut waiting, QUEUE_MAX, Duration::ZERO) == Taken::Some {
            self.counts.given_up.add(waiting.len() as u64);
            let given_up = waiting.len();
            warn!(
                webhook = self.plan().name,
                given_up, "events are given up: the webhook is another or gone"
            );
        }
    }

    /// Sends a message until the receiver has it, or it is given up.
    fn deliver(&self, message: &Message, resolvers: &Resolvers, standing: &mut Standing) {
        let deadline = Instant::now() + self.plan().retry_for;
        let mut pause = RETRY_FIRST;
        loop {
            let refusal = match send(&self.plan(), message, unix_seconds(), resolvers) {
                Ok(()) => return self.was_delivered(standing),
                Err(refusal) => refusal,
            };
            self.counts.failed.add(1);
            let (why, wanted) = match refusal {
                Refusal::Gone => return self.give_up(standing, "it wants no more (410 Gone)"),
                Refusal::Later(why, wanted) => (why, wanted),
            };
            if !std::mem::replace(&mut standing.is_failing, true) {
                warn!(webhook = self.plan().name, why, "an event is not delivered, and is tried again");
            }
            let until = Instant::now() + pause_before(wanted, jittered(pause));
            if until > deadline || self.queue.is_closed() {
                return self.give_up(standing, &why);
            }
            pause = (pause * 2).min(RETRY_LAST);
            while !self.queue.is_closed() {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                thread::park_timeout(left);
            }
        }
    }

    fn was_delivered(&self, standing: &mut Standing) {
        self.counts.delivered.add(1);
        self.is_full.store(false, Ordering::Relaxed);
        let Standing { is_failing, given_up } = std::mem::take(standing);
        if is_failing {
            info!(webhook = self.plan().name, given_up, "events are delivered again");
        }
    }

    fn give_up(&self, standing: &mut Standing, why: &str) {
        self.counts.given_up.add(1);
        if standing.given_up == 0 {
            warn!(
                webhook = self.plan().name,
                why, "an event is given up; those that follow it are not logged"
            );
        }
        standing.is_failing = true;
        standing.given_up += 1;
    }
}

/// Returns whether two plans differ in nothing but their secrets.
fn is_same_receiver(one: &Webhook, other: &Webhook) -> bool {
    let (secret, previous_secret) = (other.secret.clone(), other.previous_secret.clone());
    Webhook { secret, previous_secret, ..one.clone() } == *other
}

/// Returns how long to wait: as long as the receiver wants, within bounds, so that none has itself
/// asked without a pause.
fn pause_before(wanted: Option<Duration>, own: Duration) -> Duration {
    wanted.map_or(own, |wanted| wanted.max(RETRY_FIRST)).min(RETRY_LAST)
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Returns the signatures of a message that is sent at this second: two while the secret changes.
fn signatures(plan: &Webhook, message: &Message, at: u64) -> String {
    let secrets = std::iter::once(&plan.secret).chain(&plan.previous_secret);
    secrets.map(|secret| signature(secret.reveal(), message, at)).collect::<Vec<_>>().join(" ")
}

/// Returns the signature of a message with one secret.
fn signature(secret: &[u8], message: &Message, at: u64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let tag = hmac::sign(&key, format!("{}.{at}.{}", message.id, message.body).as_bytes());
    let mut text = "v1,".to_owned();
    // Writing to a text cannot fail.
    let _ = wire::text::write_base64(&mut text, tag.as_ref());
    text
}

/// Sends a message once. Redirections are not followed: whoever is signed for is who is named.
fn send(plan: &Webhook, message: &Message, at: u64, resolvers: &Resolvers) -> Result<(), Refusal> {
    let headers = [
        ("webhook-id", message.id.clone()),
        ("webhook-timestamp", at.to_string()),
        ("webhook-signature", signatures(plan, message, at)),
    ];
    let later = |why: String| Refusal::Later(why, None);
    match &plan.target {
        WebhookTarget::Url(url) => {
            let trust = plan.ca.as_ref().map_or(Trust::Usual, |file| Trust::File(file.clone()));
            let agent = agent_following(0, plan.patience, &trust, resolvers.clone())
                .map_err(|error| later(error.to_string()))?;
            let mut request = Request::post(url).header(header::CONTENT_TYPE, "application/json");
            for (name, value) in headers {
                request = request.header(name, value);
            }
            let request = request.body(message.body.clone()).map_err(|error| later(error.to_string()))?;
            // What the client says of a failure may repeat the URL, which may hold a secret.
            let response = agent.run(request).map_err(|error| later(said(&error)))?;
            // Nothing of the body is read.
            let wanted = response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
            judged(response.status().as_u16(), wanted)
        }
        WebhookTarget::Unix(path) => {
            let answered = over_unix(path, &headers, &message.body, plan.patience);
            let (status, wanted) = answered.map_err(|error| {
                let is_late = matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock);
                later(if is_late { "it takes too long".to_owned() } else { error.to_string() })
            })?;
            judged(status, wanted.as_deref())
        }
    }
}

fn said(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => error.to_string(),
        ureq::Error::Timeout(_) => "it takes too long".to_owned(),
        ureq::Error::HostNotFound => "its host is not known".to_owned(),
        other => diagnostic::without_secrets(&other.to_string()).into_owned(),
    }
}

/// Returns what a status means.
fn judged(status: u16, retry_after: Option<&str>) -> Result<(), Refusal> {
    match status {
        200..300 => Ok(()),
        410 => Err(Refusal::Gone),
        status => {
            let seconds = retry_after.and_then(|text| text.trim().parse().ok());
            Err(Refusal::Later(format!("the receiver answers {status}"), seconds.map(Duration::from_secs)))
        }
    }
}

/// Posts to what listens on a Unix socket; returns the status, and the `Retry-After`.
fn over_unix(
    path: &Path,
    headers: &[(&str, String)],
    body: &str,
    patience: Duration,
) -> io::Result<(u16, Option<String>)> {
    let deadline = Instant::now() + patience;
    let left = || match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(io::Error::from(io::ErrorKind::TimedOut)),
        left => Ok(left),
    };
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // Linux waits for a place with a receiver that takes no connections as long as it would wait
    // to send; others refuse at once.
    socket.set_write_timeout(Some(left()?))?;
    socket.connect(&SockAddr::unix(path)?)?;
    let mut stream = UnixStream::from(socket);
    let mut request = "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n".to_owned();
    request.push_str("Content-Type: application/json\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    let mut rest = request.as_bytes();
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left()?))?;
        match stream.write(rest)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            sent => rest = rest.get(sent..).unwrap_or_default(),
        }
    }
    let (mut head, mut chunk) = (Vec::new(), [0; 512]);
    loop {
        let status = status_of(&head);
        let is_enough = status.is_some_and(|status| (200..300).contains(&status))
            || head.windows(4).any(|end| end == b"\r\n\r\n")
            || head.len() as u64 >= RESPONSE_OCTETS_MAX;
        if is_enough {
            break;
        }
        let len = left().and_then(|left| {
            stream.set_read_timeout(Some(left))?;
            stream.read(&mut chunk)
        });
        match (len, status) {
            (Ok(0), _) => break,
            (Ok(len), _) => head.extend_from_slice(chunk.get(..len).unwrap_or_default()),
            // It has said what it thinks of it, if no more.
            (Err(_), Some(_)) => break,
            (Err(error), None) => return Err(error),
        }
    }
    let status = status_of(&head).ok_or_else(|| io::Error::other("what answers is no HTTP"))?;
    Ok((status, retry_after(&head)))
}

/// Returns the status of a response, once its first line is there.
fn status_of(head: &[u8]) -> Option<u16> {
    let end = head.iter().position(|&octet| octet == b'\n')?;
    let line = std::str::from_utf8(head.get(..end)?).ok()?;
    line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.get(..3)?.parse().ok()
}

/// Returns what the head of a response says of when to come again.
fn retry_after(head: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let fields = head.split("\r\n").skip(1).take_while(|line| !line.is_empty());
    let mut fields = fields.filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(name, _)| name.eq_ignore_ascii_case("retry-after"))?;
    Some(value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader};
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;
    use std::sync::mpsc::{Receiver, channel};

    fn hook(target: WebhookTarget) -> Webhook {
        Webhook {
            name: "hook".to_owned(),
            target,
            kinds: Vec::new(),
            secret: plan::Secret::new(b"0123456789abcdef01234567".to_vec()),
            previous_secret: None,
            ca: None,
            patience: Duration::from_secs(5),
            retry_for: Duration::from_secs(60),
        }
    }

    fn resolvers() -> Resolvers {
        Resolvers::new(Arc::new(crate::resolver::Nobody))
    }

    fn message(number: usize) -> Message {
        Message { id: format!("a-{number}"), body: format!("{{\"number\":{number}}}") }
    }

    /// Reads a request and answers it; returns its head and body.
    fn answer(stream: impl io::Read + io::Write, status: &str) -> String {
        let mut reader = BufReader::new(stream);
        let (mut heard, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            assert!(reader.read_line(&mut line).expect("a line") > 0, "{heard}");
            if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = text.trim().parse().expect("a length");
            }
            heard.push_str(&line);
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        heard.push_str(&String::from_utf8_lossy(&body));
        let response = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        let _ = reader.get_mut().write_all(response.as_bytes());
        heard
    }

    #[test]
    fn events_wait_for_their_receiver_while_its_secret_changes() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        let before = hook(WebhookTarget::Url(url));
        let hooks = Webhooks::new(resolvers());
        hooks.adopt(std::slice::from_ref(&before));
        (1..=3).for_each(|number| hooks.give("change", message(number)));
        // The first one is being sent.
        let (first, _) = listener.accept().expect("a connection");
        let secret = plan::Secret::new(b"another secret of the hook".to_vec());
        let after = Webhook { previous_secret: Some(before.secret.clone()), secret, ..before };
        hooks.adopt(std::slice::from_ref(&after));
        answer(first, "200 OK");
        for number in 2..=3 {
            let heard = answer(listener.accept().expect("a connection").0, "200 OK");
            assert!(heard.contains(&format!("\"number\":{number}")), "{heard}");
            let signatures = heard.lines().find_map(|line| line.strip_prefix("webhook-signature: "));
            assert_eq!(signatures.map(|all| all.split(' ').count()), Some(2), "{heard}");
        }
        hooks.stop();
        assert_eq!(hooks.stats(), []);
    }

    /// Answers one request after the other with these statuses.
    fn receiver(statuses: &'static [&'static str]) -> (WebhookTarget, Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        let (sender, heard) = channel();
        thread::spawn(move || {
            for status in statuses {
                let (stream, _) = listener.accept().expect("a connection");
                let _ = sender.send(answer(stream, status));
            }
        });
        (WebhookTarget::Url(url), heard)
    }

    #[test]
    fn a_signature_is_that_of_the_specification() {
        // Of the specification's own libraries: secret whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw.
        let secret = wire::text::read_base64(b"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("base64");
        let message = Message {
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek".to_owned(),
            body: "{\"test\": 2432232314}".to_owned(),
        };
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(signature(&secret, &message, 1_614_265_330), expected);
    }

    #[test]
    fn an_event_is_sent_again_until_it_is_taken_and_keeps_its_id() {
        let (target, heard) = receiver(&["503 Later", "204 No Content"]);
        let hooks = Webhooks::new(resolvers());
        hooks.adopt(&[hook(target)]);
        assert!(hooks.want("zone"));
        hooks.give("zone", message(1));
        let [first, second] = [(); 2].map(|()| heard.recv().expect("a request").to_ascii_lowercase());
        for request in [&first, &second] {
            assert!(request.starts_with("post /hook http/1.1\r\n"), "{request}");
            assert!(request.contains("webhook-id: a-1\r\n"), "{request}");
            assert!(request.contains("content-type: application/json\r\n"), "{request}");
            assert!(request.ends_with("{\"number\":1}"), "{request}");
        }
        hooks.stop();
    }

    #[test]
    fn no_dns_server_is_asked_where_localhost_is() {
        let (target, heard) = receiver(&["200 OK"]);
        let WebhookTarget::Url(url) = target else { unreachable!("it has a port") };
        let plan = hook(WebhookTarget::Url(url.replace("127.0.0.1", "localhost")));
        let resolvers = resolvers();
        resolvers.adopt(&["192.0.2.53:53".parse().expect("an address")]);
        assert_eq!(send(&plan, &message(1), 7, &resolvers), Ok(()));
        assert!(heard.recv().is_ok());
        let other = hook(WebhookTarget::Url("https://hooks.example/".to_owned()));
        assert!(send(&other, &message(1), 7, &resolvers).is_err(), "nobody is there to ask");
    }

    #[test]
    fn a_receiver_on_a_unix_socket_is_posted_to() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("hook.sock");
        let listener = UnixListener::bind(&path).expect("a socket");
        let plan = hook(WebhookTarget::Unix(path));
        let heard = thread::spawn(move || answer(listener.accept().expect("a connection").0, "200 OK"));
        assert_eq!(send(&plan, &message(2), 7, &resolvers()), Ok(()));
        let heard = heard.join().expect("it ends");
        assert!(heard.contains("webhook-timestamp: 7\r\n") && heard.ends_with("{\"number\":2}"), "{heard}");
    }

    #[test]
    fn a_receiver_on_a_unix_socket_says_when_to_come_again() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("hook.sock");
        let listener = UnixListener::bind(&path).expect("a socket");
        let plan = hook(WebhookTarget::Unix(path));
        thread::spawn(move || answer(listener.accept().expect("a connection").0, "429 No\r\nretry-after: 9"));
        let wait = Some(Duration::from_secs(9));
        let expected = Refusal::Later("the receiver answers 429".to_owned(), wait);
        assert_eq!(send(&plan, &message(2), 7, &resolvers()), Err(expected));
    }

    #[test]
    fn a_unix_socket_that_takes_no_connection_is_waited_for_no_longer_than_the_patience() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("hook.sock");
        let listener = Socket::new(Domain::UNIX, Type::STREAM, None).expect("a socket");
        let address = SockAddr::unix(&path).expect("an address");
        listener.bind(&address).expect("bound");
        listener.listen(0).expect("it listens");
        // It has room for one that waits.
        let _waiting = UnixStream::connect(&path).expect("a connection");
        let mut plan = hook(WebhookTarget::Unix(path));
        plan.patience = Duration::from_millis(50);
        assert!(matches!(send(&plan, &message(2), 7, &resolvers()), Err(Refusal::Later(_, None))));
    }

    #[test]
    fn no_receiver_is_asked_again_without_a_pause_or_after_a_very_long_one() {
        let [none, second, long] = [0, 1, 100_000].map(Duration::from_secs);
        assert_eq!(pause_before(Some(none), long), RETRY_FIRST);
        assert_eq!(pause_before(Some(long), second), RETRY_LAST);
        assert_eq!(pause_before(Some(second * 9), long), second * 9);
        assert_eq!(pause_before(None, second), second);
    }

    #[test]
    fn a_webhook_that_is_changed_or_removed_gets_nothing_that_waited_and_it_is_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let old = hook(WebhookTarget::Url(url));
        let (target, heard) = receiver(&["200 OK"]);
        let hooks = Webhooks::new(resolvers());
        hooks.adopt(std::slice::from_ref(&old));
        hooks.give("zone", message(1));
        // The first is on its way, and is not answered.
        let (stream, _) = listener.accept().expect("a connection");
        hooks.give("zone", message(2));
        hooks.give("zone", message(3));
        hooks.adopt(&[hook(target)]);
        assert_eq!(hooks.stats()[0].1[2], ("given-up", 2));
        hooks.give("zone", message(4));
        assert!(heard.recv().expect("a request").ends_with("{\"number\":4}"));
        // The one on its way is the last, also if it is refused.
        answer(stream, "503 Later");
        while hooks.stats()[0].1[2].1 < 3 {
            thread::yield_now();
        }
        listener.set_nonblocking(true).expect("no waiting");
        assert!(listener.accept().is_err(), "nothing else comes");
        hooks.adopt(&[]);
        assert!(hooks.stats().is_empty());
    }

    #[test]
    fn a_redirection_and_a_refusal_are_failures_and_gone_is_the_end() {
        for (status, expected) in [
            (302, Refusal::Later("the receiver answers 302".to_owned(), None)),
            (500, Refusal::Later("the receiver answers 500".to_owned(), None)),
            (410, Refusal::Gone),
        ] {
            assert_eq!(judged(status, None), Err(expected));
        }
        let wait = Some(Duration::from_secs(9));
        assert_eq!(judged(429, Some("9")), Err(Refusal::Later("the receiver answers 429".to_owned(), wait)));
        let (target, heard) = receiver(&["302 Found"]);
        assert!(matches!(send(&hook(target), &message(3), 7, &resolvers()), Err(Refusal::Later(..))));
        assert!(heard.recv().is_ok());
    }

    #[test]
    fn a_receiver_that_is_gone_keeps_no_other_waiting_and_what_finds_no_room_is_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let silent = format!("http://{}/", listener.local_addr().expect("an address"));
        let (target, heard) = receiver(&["200 OK"]);
        let good =
            Webhook { kinds: vec![plan::jobs::EventKind::Zone], name: "good".to_owned(), ..hook(target) };
        let hooks = Webhooks::new(resolvers());
        hooks.adopt(&[hook(WebhookTarget::Url(silent)), good]);
        for number in 0..QUEUE_MAX + 10 {
            hooks.give("list", message(number));
        }
        hooks.give("zone", message(1_000));
        assert!(heard.recv().expect("a request").contains("1000"));
        let stats = hooks.stats();
        assert_eq!(stats[0].0, "hook");
        let dropped = stats[0].1[3].1;
        assert!((10..=11).contains(&dropped), "{dropped}: one may be on its way");
        assert_eq!(stats[1].1[3], ("dropped", 0));
    }
}
