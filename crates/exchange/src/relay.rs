//! Carries sealed messages to oblivious targets (RFC 9230): who they are from, the target never
//! learns.
//!
//! Never looks into a message, and never carries one to a target that the configuration does not
//! name. Each target has one connection of HTTP/2 that all clients of the worker share, opened when
//! it is needed.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::{Courier, Delivery, Parcel};
use h2::client::SendRequest;
use http::{HeaderValue, Request, header};
use identity::{Registry, tls};
use plan::relay::{RelayPlan, RelayTarget};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tracing::warn;

/// The media type of what is carried.
const MEDIA_TYPE: &str = "application/oblivious-dns-message";
/// Messages of a worker that are under way at once; further ones are not carried.
const CARRIED_MAX: u32 = 1024;
/// How long a target may take, the handshake included.
const PATIENCE: Duration = Duration::from_secs(5);
/// Octets of a response: the largest message, sealed.
const RESPONSE_OCTETS_MAX: usize = 66_000;
/// Octets of the header fields of a response.
const HEADERS_OCTETS_MAX: u32 = 16 << 10;
/// How long a connection may carry nothing before it is closed.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// One worker's messages under way.
pub struct Relay {
    registry: Arc<Registry>,
    plan: RefCell<Arc<RelayPlan>>,
    targets: RefCell<Vec<Rc<Target>>>,
    /// Open connections, by target.
    connections: RefCell<HashMap<String, SendRequest<Bytes>>>,
    carried: Cell<u32>,
    tasks: RefCell<JoinSet<()>>,
}

/// A target, and how it proves who it is.
struct Target {
    plan: RelayTarget,
    tls: Arc<tls::Client>,
}

impl Relay {
    /// Makes a relay to the targets of a plan.
    pub fn new(plan: Arc<RelayPlan>, registry: Arc<Registry>) -> Rc<Self> {
        let relay = Self {
            registry,
            plan: RefCell::default(),
            targets: RefCell::default(),
            connections: RefCell::default(),
            carried: Cell::new(0),
            tasks: RefCell::default(),
        };
        relay.adopt(plan);
        Rc::new(relay)
    }

    /// Carries to other targets from now on; what is under way goes on.
    pub fn adopt(&self, plan: Arc<RelayPlan>) {
        if *plan == **self.plan.borrow() {
            return;
        }
        let target =
            |plan: &RelayTarget| Rc::new(Target { plan: plan.clone(), tls: self.registry.tls(&plan.tls) });
        // Before those of the old plan go: what is known of a target that stays is kept.
        let targets = plan.targets.iter().map(target).collect();
        self.targets.replace(targets);
        self.plan.replace(plan);
        self.connections.borrow_mut().clear();
    }

    fn find(&self, authority: &str) -> Option<Rc<Target>> {
        let targets = self.targets.borrow();
        targets.iter().find(|target| target.plan.authority.eq_ignore_ascii_case(authority)).cloned()
    }
}

/// Carries messages of one worker.
#[derive(Clone)]
pub struct RelayCourier(pub Rc<Relay>);

impl Courier for RelayCourier {
    fn serves(&self, target: &str) -> bool {
        self.0.find(target).is_some()
    }

    fn carry(&self, parcel: Parcel, done: Box<dyn FnOnce(Delivery)>) {
        let relay = &self.0;
        let Some(target) = relay.find(&parcel.target) else { return };
        if relay.carried.get() >= CARRIED_MAX {
            return;
        }
        let carried = Carried::new(relay);
        let mut tasks = relay.tasks.borrow_mut();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_local(async move {
            let relay = Rc::clone(&carried.0);
            match timeout(PATIENCE, exchange(&relay, &target, parcel)).await {
                Ok(Ok(delivery)) => done(delivery),
                Ok(Err(trouble)) => {
                    relay.connections.borrow_mut().remove(&target.plan.authority);
                    let dial = target.plan.dial.unwrap_or([0, 0, 0, 0].into());
                    let address = SocketAddr::new(dial, target.plan.port);
                    if target.tls.last_errors().is_new(address, &trouble) {
                        warn!("cannot carry oblivious messages to {}: {trouble}", target.plan.authority);
                    }
                }
                Err(_) => drop(relay.connections.borrow_mut().remove(&target.plan.authority)),
            }
        });
    }
}

/// Counts a message for as long as it is under way.
struct Carried(Rc<Relay>);

impl Carried {
    fn new(relay: &Rc<Relay>) -> Self {
        relay.carried.set(relay.carried.get() + 1);
        Self(Rc::clone(relay))
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        self.0.carried.set(self.0.carried.get().saturating_sub(1));
    }
}

/// Sends a message and waits for what the target says; an error is for a person.
async fn exchange(relay: &Rc<Relay>, target: &Target, parcel: Parcel) -> Result<Delivery, String> {
    let known = relay.connections.borrow().get(&target.plan.authority).cloned();
    let sender = match known {
        Some(sender) => match sender.ready().await {
            Ok(sender) => sender,
            // It has ended since.
            Err(_) => connect(relay, target).await?,
        },
        None => connect(relay, target).await?,
    };
    let request = Request::post(format!("https://{}{}", target.plan.authority, parcel.path))
        .header(header::ACCEPT, MEDIA_TYPE)
        .header(header::CONTENT_TYPE, MEDIA_TYPE)
        .header(header::CONTENT_LENGTH, parcel.sealed.len())
        .body(())
        .map_err(|error| error.to_string())?;
    let mut sender = sender.ready().await.map_err(|error| error.to_string())?;
    let (response, mut body) = sender.send_request(request, false).map_err(|error| error.to_string())?;
    body.send_data(parcel.sealed.into(), true).map_err(|error| error.to_string())?;
    let response = response.await.map_err(|error| error.to_string())?;
    let status = response.status().as_u16();
    let kind = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_sealed = kind.is_some_and(|kind| kind.eq_ignore_ascii_case(MEDIA_TYPE.as_bytes()));
    let mut body = response.into_body();
    let mut octets = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.map_err(|error| error.to_string())?;
        if octets.len() + data.len() > RESPONSE_OCTETS_MAX {
            return Err("the response is longer than a message can be".to_owned());
        }
        octets.extend_from_slice(&data);
        body.flow_control().release_capacity(data.len()).map_err(|error| error.to_string())?;
    }
    // Whatever else a target says is not passed on to a stranger.
    if !is_sealed {
        octets.clear();
    }
    Ok(Delivery { status, sealed: octets })
}

/// Opens a connection to a target.
async fn connect(relay: &Rc<Relay>, target: &Target) -> Result<SendRequest<Bytes>, String> {
    let stream = match target.plan.dial {
        Some(address) => TcpStream::connect((address, target.plan.port)).await,
        None => TcpStream::connect((&*target.plan.host, target.plan.port)).await,
    };
    let stream = stream.map_err(|error| error.to_string())?;
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    let name = target.tls.plan.name.clone();
    let handshake = TlsConnector::from(target.tls.config()).connect(name, stream).await;
    let stream = handshake.map_err(|error: io::Error| tls::explain(&error))?;
    if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
        return Err("the target does not offer HTTP/2".to_owned());
    }
    let mut builder = h2::client::Builder::new();
    builder.enable_push(false).max_header_list_size(HEADERS_OCTETS_MAX);
    let made = builder.handshake::<_, Bytes>(stream).await;
    let (sender, connection) = made.map_err(|error| format!("HTTP/2: {error}"))?;
    relay.connections.borrow_mut().insert(target.plan.authority.clone(), sender.clone());
    let (watched, authority) = (Rc::downgrade(relay), target.plan.authority.clone());
    relay.tasks.borrow_mut().spawn_local(async move {
        let mut connection = std::pin::pin!(connection);
        // It reads and writes for all messages; one that has carried none for long is closed.
        while timeout(IDLE_MAX, connection.as_mut()).await.is_err() {
            let Some(relay) = watched.upgrade() else { return };
            if relay.carried.get() == 0 {
                relay.connections.borrow_mut().remove(&authority);
                return;
            }
        }
    });
    Ok(sender)
}
