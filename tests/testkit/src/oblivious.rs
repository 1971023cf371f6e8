//! A target of oblivious messages and a relay in front of it (RFC 9230), over HTTP/2.

use crate::identity::Identity;
use crate::stub::Answer;
use bytes::{Bytes, BytesMut};
use h2::server::SendResponse;
use http::{Request, Response, StatusCode};
use odoh::{CONFIGS_PATH, MEDIA_TYPE, Target};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A server that is relay and target at once, at different paths, so that one certificate is
/// enough. It runs until the test ends.
pub struct Oblivious {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// Makes a reply of a query.
type Reply = dyn Fn(&[u8]) -> Vec<u8> + Send + Sync;

struct Shared {
    target: Mutex<Target>,
    reply: Box<Reply>,
    /// Bodies that the relay was given, as they came, and what its request said of the target.
    relayed: Mutex<Vec<(String, Vec<u8>)>>,
    asked: AtomicUsize,
}

impl Oblivious {
    /// Starts one that shows this identity and always gives this answer.
    ///
    /// # Panics
    ///
    /// When loopback has no free port.
    pub fn start(identity: &Identity, answer: Answer) -> Self {
        Self::start_with(identity, move |query| answer.to(query))
    }

    /// Starts one that shows this identity and replies by a function.
    ///
    /// # Panics
    ///
    /// When loopback has no free port.
    pub fn start_with(identity: &Identity, reply: impl Fn(&[u8]) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let target = Mutex::new(Target::generate().expect("a key"));
        let shared = Arc::new(Shared {
            target,
            reply: Box::new(reply),
            relayed: Mutex::default(),
            asked: AtomicUsize::new(0),
        });
        let mut tls = (*identity.server()).clone();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let (sender, receiver) = std::sync::mpsc::channel();
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free loopback port");
                sender.send(listener.local_addr().expect("a bound socket")).expect("somebody waits");
                let acceptor = TlsAcceptor::from(Arc::new(tls));
                while let Ok((stream, _)) = listener.accept().await {
                    let (acceptor, shared) = (acceptor.clone(), Arc::clone(&serving));
                    tokio::spawn(async move {
                        let stream = acceptor.accept(stream).await.ok()?;
                        let mut connection = h2::server::handshake(stream).await.ok()?;
                        while let Some(Ok((request, respond))) = connection.accept().await {
                            tokio::spawn(serve(request, respond, Arc::clone(&shared)));
                        }
                        Some(())
                    });
                }
            });
        });
        Self { address: receiver.recv().expect("it listens"), shared }
    }

    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns what the relay saw: the query of each request, and its body.
    pub fn relayed(&self) -> Vec<(String, Vec<u8>)> {
        self.shared.relayed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns how often the target was asked for its key.
    pub fn keys_asked(&self) -> usize {
        self.shared.asked.load(Ordering::Relaxed)
    }

    /// Gives the target another key; it forgets the one before.
    ///
    /// # Panics
    ///
    /// When the machine has no randomness.
    pub fn rotate(&self) {
        *self.shared.target.lock().unwrap_or_else(PoisonError::into_inner) =
            Target::generate().expect("a key");
    }
}

async fn serve(
    mut request: Request<h2::RecvStream>,
    mut respond: SendResponse<Bytes>,
    shared: Arc<Shared>,
) -> Option<()> {
    let mut body = BytesMut::new();
    while let Some(data) = request.body_mut().data().await {
        body.extend_from_slice(&data.ok()?);
    }
    let is_oblivious = request.headers().get("content-type").is_some_and(|kind| kind == MEDIA_TYPE);
    let (status, reply) = match request.uri().path() {
        CONFIGS_PATH => {
            shared.asked.fetch_add(1, Ordering::Relaxed);
            (StatusCode::OK, shared.target.lock().unwrap_or_else(PoisonError::into_inner).configs())
        }
        "/proxy" if is_oblivious => {
            let query = request.uri().query().unwrap_or_default().to_owned();
            shared.relayed.lock().unwrap_or_else(PoisonError::into_inner).push((query, body.to_vec()));
            answer(&shared, &body)
        }
        "/dns-query" if is_oblivious => answer(&shared, &body),
        _ => (StatusCode::NOT_FOUND, Vec::new()),
    };
    let head = Response::builder().status(status).header("content-type", MEDIA_TYPE).body(()).ok()?;
    let mut writer = respond.send_response(head, false).ok()?;
    writer.send_data(reply.into(), true).ok()
}

/// Answers as the target.
fn answer(shared: &Shared, body: &[u8]) -> (StatusCode, Vec<u8>) {
    let opened = shared.target.lock().unwrap_or_else(PoisonError::into_inner).open(body);
    match opened {
        Ok((query, context)) => (StatusCode::OK, context.seal(&(shared.reply)(&query)).expect("room")),
        Err(odoh::Wrong::Key) => (StatusCode::UNAUTHORIZED, Vec::new()),
        Err(_) => (StatusCode::BAD_REQUEST, Vec::new()),
    }
}
