//! Opens the sockets of all workers, once, before privileges are dropped.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::sync::Arc;

use engine::ListenerId;
use hyper::header::HeaderValue;
use socket2::{Domain, Protocol, Socket, Type};

use crate::allowances::Allowances;
use crate::budget::Budget;
use crate::dnscrypt::{self, DnscryptCell};
use crate::local::{self, FileOwner, LocalFile, LocalSocket};
use crate::oblivious::ObliviousKeys;
use crate::port_owner::{self, PortOwner};
use crate::refusals::Refusals;
use crate::steering::{Seated, Steering};
use crate::sys::{self, Activated, Kind};
use crate::tcp::Places;
use crate::tls::{Handshakes, TlsCell};
use plan::listeners::{
    ClientCertificates, Connections, Datagrams, LOCAL_LISTENERS_FROM, ListenerPlan, LocalPlan, Plan, Prefix,
    SocketOptions, TcpPlan, Transports, UdpPlan,
};

/// Ports tried when the system chooses one (port 0) and another transport has it already.
const PORT_ATTEMPTS_MAX: u32 = 16;

/// Whether sockets of one address share what comes among them. Elsewhere all workers read the same
/// socket.
const BALANCES: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// The open sockets of all workers.
#[derive(Debug)]
pub struct Sockets {
    workers: Vec<WorkerSockets>,
    bound: Vec<Bound>,
    unused: Vec<Activated>,
    refusals: Arc<Refusals>,
    budget: Arc<Budget>,
}

/// Where one listener listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The address, with the port in use.
    pub address: SocketAddr,
    /// What is offered there.
    pub transports: Transports,
}

/// The sockets of one worker, and what it needs to serve them.
#[derive(Debug)]
pub struct WorkerSockets {
    pub(crate) udp: Vec<Opened<OwnedFd>>,
    pub(crate) tcp: Vec<Opened<TcpListener>>,
    pub(crate) quic: Vec<Opened<OwnedFd>>,
    pub(crate) local: Vec<(UnixListener, Arc<ListenerInfo>)>,
    pub(crate) local_datagrams: Vec<(UnixDatagram, Arc<ListenerInfo>)>,
    /// With the same keys for all workers.
    pub(crate) quic_config: quinn::EndpointConfig,
    pub(crate) places: Arc<Places>,
    /// Its part in the steering of datagrams, where they are steered.
    pub(crate) seat: Option<Seated>,
    pub(crate) handshakes: Arc<Handshakes>,
    pub(crate) budget: Arc<Budget>,
    /// How TLS is spoken; nowhere, unless [`WorkerSockets::secured_by`] says so.
    pub(crate) tls: Arc<TlsCell>,
    /// Who this resolver is over DNSCrypt; nobody, unless [`WorkerSockets::sealed_by`] says so.
    pub(crate) dnscrypt: Arc<DnscryptCell>,
    /// How many keys clients of DNSCrypt may have agreed on, if any listener speaks it.
    pub(crate) key_agreements: Option<Arc<Allowances>>,
    /// The keys of the oblivious target, if it is one.
    pub(crate) oblivious: Option<Arc<ObliviousKeys>>,
    pub(crate) udp_plan: UdpPlan,
    pub(crate) tcp_plan: TcpPlan,
    /// How many workers there are.
    pub(crate) workers: usize,
    /// This worker's share of the memory for connections.
    pub(crate) buffered_octets_max: usize,
}

/// An open socket.
#[derive(Debug)]
pub(crate) struct Opened<T> {
    pub(crate) socket: T,
    pub(crate) address: SocketAddr,
    pub(crate) listener_info: Arc<ListenerInfo>,
    /// Whether the kernel chooses among the workers' sockets of this address.
    pub(crate) is_shared: bool,
}

/// What is known about every client that comes through one listener.
#[derive(Debug)]
pub(crate) struct ListenerInfo {
    /// Its place in the plan.
    pub(crate) listener: ListenerId,
    /// Peers that begin with a PROXY header.
    pub(crate) proxies: Box<[Prefix]>,
    /// What is spoken over connections.
    pub(crate) connections: Connections,
    /// What is spoken over datagrams.
    pub(crate) datagrams: Option<Datagrams>,
    /// Where the same is spoken over HTTP/3 (RFC 7838).
    pub(crate) alt_svc: Option<HeaderValue>,
    /// Paths at which HTTP requests are answered.
    pub(crate) paths: Box<[String]>,
    /// Peers that are believed when an HTTP header says for whom they ask.
    pub(crate) forwarders: Box<[Prefix]>,
    /// Whether clients show certificates.
    pub(crate) client_certificates: ClientCertificates,
}

impl WorkerSockets {
    /// Speaks TLS as `cell` says.
    #[must_use]
    pub fn secured_by(self, cell: &Arc<TlsCell>) -> Self {
        Self { tls: Arc::clone(cell), ..self }
    }

    /// Speaks DNSCrypt as `cell` says.
    #[must_use]
    pub fn sealed_by(self, cell: &Arc<DnscryptCell>) -> Self {
        Self { dnscrypt: Arc::clone(cell), ..self }
    }
}

impl Sockets {
    /// Returns where it listens, in the order of the plan.
    pub fn addresses(&self) -> &[Bound] {
        &self.bound
    }

    /// Returns the sockets of the service manager that no listener asked for.
    pub fn unused(&self) -> &[Activated] {
        &self.unused
    }

    /// Opens a Unix socket besides, for all workers; `number` counts from 0.
    pub fn open_local(&mut self, plan: &LocalPlan, owner: FileOwner, number: u16) -> io::Result<LocalFile> {
        let backlog = self.workers.first().map_or(0, |worker| worker.tcp_plan.backlog);
        let (socket, file) = local::open(plan, owner, backlog)?;
        let listener_info = Arc::new(ListenerInfo {
            listener: ListenerId(LOCAL_LISTENERS_FROM + number),
            proxies: Box::default(),
            connections: plan.kind.connections().unwrap_or(Connections::Local),
            datagrams: None,
            alt_svc: None,
            paths: plan.paths.as_slice().into(),
            // Who connects is known by its right to write to the file; its address is this one.
            forwarders: plan.is_forwarded.then(|| Prefix::new(local::PEER, 32)).into_iter().collect(),
            client_certificates: ClientCertificates::Never,
        });
        for worker in &mut self.workers {
            let listener_info = Arc::clone(&listener_info);
            match &socket {
                LocalSocket::Connections(listener) => {
                    worker.local.push((listener.try_clone()?, listener_info));
                }
                LocalSocket::Datagrams(socket) => {
                    worker.local_datagrams.push((socket.try_clone()?, listener_info));
                }
            }
        }
        Ok(file)
    }

    /// Returns what counts the clients that are refused.
    pub fn refusals(&self) -> Arc<Refusals> {
        Arc::clone(&self.refusals)
    }

    /// Returns what knows how much connections hold of replies that clients have not taken.
    pub fn budget(&self) -> Arc<Budget> {
        Arc::clone(&self.budget)
    }

    /// Returns each worker's sockets.
    pub fn into_workers(self) -> Vec<WorkerSockets> {
        self.workers
    }
}

/// Why a socket could not be opened.
#[derive(Debug)]
pub struct BindError {
    /// The address as configured.
    pub address: SocketAddr,
    /// The transport.
    pub kind: Kind,
    /// What the system said.
    pub source: io::Error,
    /// Who has the port, if that is the reason and could be found out.
    pub port_owner: Option<PortOwner>,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = match self.kind {
            Kind::Datagrams => "UDP",
            Kind::Connections => "TCP",
        };
        write!(f, "cannot listen on {} over {transport}: ", self.address)?;
        match self.source.kind() {
            io::ErrorKind::AddrInUse => match &self.port_owner {
                Some(port_owner) => {
                    write!(f, "the port is taken by {} (process {})", port_owner.program, port_owner.process)
                }
                None => f.write_str("the port is taken by another program"),
            },
            io::ErrorKind::PermissionDenied => f.write_str(
                "ports below 1024 need root or CAP_NET_BIND_SERVICE; a port such as 5300 does not",
            ),
            io::ErrorKind::AddrNotAvailable => f.write_str("no interface of this machine has this address"),
            _ if self.source.raw_os_error() == Some(libc::EAFNOSUPPORT) => {
                f.write_str("this machine does not have this address family")
            }
            _ => write!(f, "{}", self.source),
        }
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl BindError {
    fn new(address: SocketAddr, kind: Kind, source: io::Error) -> Self {
        let port_owner = match source.kind() {
            io::ErrorKind::AddrInUse => port_owner::find(address, kind),
            _ => None,
        };
        Self { address, kind, source, port_owner }
    }
}

/// Opens what `plan` lists, for `workers` workers.
///
/// Sockets in `activated` (see [`sys::activation`](crate::activation)) stand in for listeners of
/// the same address and transport; if the plan lists none, they are the listeners. All workers read
/// the same activated socket, because the kernel shares out only among sockets that were opened for
/// that: each packet may wake several workers. Where that matters, let the server open its own.
pub fn bind(plan: &Plan, workers: usize, mut activated: Vec<Activated>) -> Result<Sockets, BindError> {
    let workers = workers.max(1);
    let listeners = if plan.listeners.is_empty() { listeners_of(&activated) } else { plan.listeners.clone() };
    let refusals = Arc::default();
    let places = Places::new(&plan.tcp, &plan.networks, &refusals);
    let handshakes = Arc::new(Handshakes::new(&plan.tcp, &refusals));
    let budget = Budget::new(&plan.tcp);
    let tls = Arc::new(TlsCell::default());
    let dnscrypt = Arc::new(DnscryptCell::default());
    let key_agreements = (listeners.iter().any(|it| it.transports.speak_dnscrypt()))
        .then(|| Arc::new(dnscrypt::key_agreements(&plan.tcp)));
    let quic_config = quinn::EndpointConfig::default();
    // Without randomness there is nobody to speak TLS with either: whoever asks obliviously is
    // refused.
    let oblivious = plan.oblivious.and_then(|lifetime| ObliviousKeys::new(lifetime).ok()).map(Arc::new);
    let mut sockets: Vec<_> = Steering::seats(workers)
        .into_iter()
        .map(|seat| WorkerSockets {
            seat,
            udp: Vec::new(),
            tcp: Vec::new(),
            quic: Vec::new(),
            local: Vec::new(),
            local_datagrams: Vec::new(),
            quic_config: quic_config.clone(),
            places: Arc::clone(&places),
            handshakes: Arc::clone(&handshakes),
            budget: Arc::clone(&budget),
            tls: Arc::clone(&tls),
            dnscrypt: Arc::clone(&dnscrypt),
            key_agreements: key_agreements.clone(),
            oblivious: oblivious.clone(),
            udp_plan: plan.udp,
            tcp_plan: plan.tcp,
            workers,
            buffered_octets_max: plan.tcp.buffered_octets_max / workers,
        })
        .collect();
    let opened = open_listeners(&listeners, &mut activated, plan, workers)?;
    let mut bound = Vec::with_capacity(listeners.len());
    for (number, (listener, opened)) in listeners.iter().zip(opened).enumerate() {
        bound.push(Bound { address: opened.address, transports: listener.transports });
        let listener_info = ListenerInfo {
            listener: ListenerId(u16::try_from(number).unwrap_or(u16::MAX)),
            proxies: listener.proxies.as_slice().into(),
            connections: listener.transports.connections.unwrap_or(Connections::Dns),
            datagrams: listener.transports.datagrams,
            alt_svc: alt_svc(&listeners, listener, opened.address.port()),
            paths: listener.paths.as_slice().into(),
            forwarders: listener.forwarders.as_slice().into(),
            client_certificates: listener.client_certificates,
        };
        opened.hand_out(listener, &Arc::new(listener_info), plan, &mut sockets);
    }
    Ok(Sockets { workers: sockets, bound, unused: activated, refusals, budget })
}

/// Turns activated sockets into listeners; both transports of an address make one.
fn listeners_of(activated: &[Activated]) -> Vec<ListenerPlan> {
    let mut listeners: Vec<ListenerPlan> = Vec::new();
    for socket in activated {
        let transports = match socket.kind {
            Kind::Datagrams => Transports::UDP,
            Kind::Connections => Transports::TCP,
        };
        match listeners.iter_mut().find(|listener| listener.address == socket.address) {
            Some(listener) if listener.transports == transports => {}
            Some(listener) => listener.transports = Transports::UDP_AND_TCP,
            None => listeners.push(ListenerPlan { transports, ..ListenerPlan::new(socket.address) }),
        }
    }
    listeners
}

/// Returns the header that says where HTTP/3 is spoken, if it is: by this listener, or by another
/// at the same address.
fn alt_svc(all: &[ListenerPlan], listener: &ListenerPlan, port: u16) -> Option<HeaderValue> {
    /// How long a client may remember it, in seconds: a day, as is usual (RFC 7838 §3.1).
    const MAX_AGE: u32 = 86_400;
    let speaks_h3 = |other: &ListenerPlan| match other.transports.datagrams {
        Some(Datagrams::Quic { h3, .. }) => h3,
        Some(Datagrams::Dns | Datagrams::Dnscrypt) | None => false,
    };
    let is_at_hand = speaks_h3(listener)
        || (listener.address.port() != 0
            && all.iter().any(|other| other.address == listener.address && speaks_h3(other)));
    is_at_hand.then(|| HeaderValue::try_from(format!("h3=\":{port}\"; ma={MAX_AGE}")).ok()).flatten()
}

/// Opens the sockets of all listeners, for `workers` workers, in the order of the listeners.
fn open_listeners(
    listeners: &[ListenerPlan],
    activated: &mut Vec<Activated>,
    plan: &Plan,
    workers: usize,
) -> Result<Vec<AllOpened>, BindError> {
    let (backlog, options) = (plan.tcp.backlog, plan.options);
    let mut opened: Vec<Option<AllOpened>> = listeners.iter().map(|_| None).collect();
    // Ports that the system chooses come last, when all others are taken: it knows of no port that
    // is only meant to be.
    let (chosen, named): (Vec<_>, Vec<_>) =
        (0..listeners.len()).partition(|&at| listeners.get(at).is_some_and(|one| one.address.port() == 0));
    let mut openings = Vec::with_capacity(named.len());
    for at in named {
        let Some(listener) = listeners.get(at) else { continue };
        let is_alone = !listeners.iter().enumerate().any(|(other, listener_there)| {
            other != at && listener_there.address.port() == listener.address.port()
        });
        openings.push((at, listener, Opening::begin(listener, activated, is_alone, options)?));
    }
    for (at, listener, opening) in openings {
        let all = opening.finish(listener, backlog, workers)?;
        if let Some(place) = opened.get_mut(at) {
            *place = Some(all);
        }
    }
    for at in chosen {
        let (Some(listener), Some(place)) = (listeners.get(at), opened.get_mut(at)) else { continue };
        let opening = Opening::begin(listener, activated, true, options)?;
        *place = Some(opening.finish(listener, backlog, workers)?);
    }
    Ok(opened.into_iter().flatten().collect())
}

/// What a listener's port is held with until each worker has a socket.
enum Hold {
    /// It was handed to us.
    Activated(Activated),
    /// The first socket, which nobody shares yet.
    First(Socket),
    /// Nothing: other listeners of ours have the same port at other addresses, and a socket of the
    /// one would be in the way of the other. It was free a moment ago.
    Nothing,
}

/// One listener, with its port known to be free.
struct Opening {
    address: SocketAddr,
    options: SocketOptions,
    udp: Option<Hold>,
    tcp: Option<Hold>,
}

impl Opening {
    /// Takes what was activated for `listener`, and tries the rest; keeps what it tried with if
    /// `holds`.
    fn begin(
        listener: &ListenerPlan,
        activated: &mut Vec<Activated>,
        holds: bool,
        options: SocketOptions,
    ) -> Result<Self, BindError> {
        let mut take = |kind| {
            let fits = |socket: &Activated| socket.kind == kind && socket.address == listener.address;
            activated.iter().position(fits).map(|at| Hold::Activated(activated.remove(at)))
        };
        let mut udp = if listener.transports.datagrams.is_some() { take(Kind::Datagrams) } else { None };
        let mut tcp = if listener.transports.connections.is_some() { take(Kind::Connections) } else { None };
        let mut kinds = Vec::new();
        if listener.transports.datagrams.is_some() && udp.is_none() {
            kinds.push(Kind::Datagrams);
        }
        if listener.transports.connections.is_some() && tcp.is_none() {
            kinds.push(Kind::Connections);
        }
        let (address, tried) = probe(listener.address, &kinds, options)?;
        for (kind, socket) in kinds.into_iter().zip(tried) {
            let hold = if holds { Hold::First(socket) } else { Hold::Nothing };
            match kind {
                Kind::Datagrams => udp = Some(hold),
                Kind::Connections => tcp = Some(hold),
            }
        }
        Ok(Self { address, options, udp, tcp })
    }

    /// Opens each worker's sockets.
    fn finish(self, listener: &ListenerPlan, backlog: i32, workers: usize) -> Result<AllOpened, BindError> {
        let Self { address, options, udp, tcp } = self;
        let is_activated = matches!(udp, Some(Hold::Activated(_)));
        let open = |kind, hold: Option<Hold>| {
            let Some(hold) = hold else { return Ok(Vec::new()) };
            open_all((address, kind), hold, workers, (backlog, options))
                .map_err(|error| BindError::new(listener.address, kind, error))
        };
        let (udp, tcp) = (open(Kind::Datagrams, udp)?, open(Kind::Connections, tcp)?);
        Ok(AllOpened { address, udp, tcp, is_activated })
    }
}

/// All sockets of one listener: none of a kind, or one for each worker.
struct AllOpened {
    address: SocketAddr,
    udp: Vec<Socket>,
    tcp: Vec<Socket>,
    /// Whether the datagram sockets are one that was handed to us.
    is_activated: bool,
}

impl AllOpened {
    /// Gives each worker its own.
    fn hand_out(
        self,
        listener: &ListenerPlan,
        listener_info: &Arc<ListenerInfo>,
        plan: &Plan,
        workers: &mut [WorkerSockets],
    ) {
        let Self { address, udp, tcp, is_activated } = self;
        let is_shared = BALANCES && !is_activated;
        let opened = |socket| Opened { socket, address, listener_info: Arc::clone(listener_info), is_shared };
        for (socket, worker) in udp.into_iter().zip(&mut *workers) {
            sys::set_buffers(socket.as_fd(), plan.udp.receive_buffer_octets, plan.udp.send_buffer_octets);
            match listener.transports.datagrams {
                Some(Datagrams::Quic { .. }) => worker.quic.push(opened(OwnedFd::from(socket))),
                Some(Datagrams::Dns | Datagrams::Dnscrypt) | None => {
                    worker.udp.push(opened(OwnedFd::from(socket)));
                }
            }
        }
        let opened = |socket| Opened { socket, address, listener_info: Arc::clone(listener_info), is_shared };
        for (socket, worker) in tcp.into_iter().zip(workers) {
            worker.tcp.push(opened(TcpListener::from(socket)));
        }
    }
}

/// Returns `address` with a port that is free on all `kinds`, and the sockets that show it, in the
/// order of `kinds`.
///
/// Nobody shares with them: a socket that may share its port (`SO_REUSEPORT`) would also do so with
/// another server of the same user, and each would get half of the queries.
fn probe(
    address: SocketAddr,
    kinds: &[Kind],
    options: SocketOptions,
) -> Result<(SocketAddr, Vec<Socket>), BindError> {
    let mut attempts = 0;
    'attempt: loop {
        attempts += 1;
        let mut chosen = address;
        let mut sockets = Vec::with_capacity(kinds.len());
        for &kind in kinds {
            let tried = open(chosen, kind, Sharing::Alone, options)
                .and_then(|socket| socket.local_addr().map(|local| (socket, local)));
            match tried {
                Ok((socket, local)) => {
                    if let Some(local) = local.as_socket() {
                        chosen.set_port(local.port());
                    }
                    sockets.push(socket);
                }
                Err(error)
                    if error.kind() == io::ErrorKind::AddrInUse
                        && address.port() == 0
                        && attempts < PORT_ATTEMPTS_MAX =>
                {
                    continue 'attempt;
                }
                Err(error) => return Err(BindError::new(address, kind, error)),
            }
        }
        return Ok((chosen, sockets));
    }
}

/// Whether a port may be bound more than once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    Alone,
    WithOthers,
}

/// Opens a socket for each of `count` workers; those of connections listen.
fn open_all(
    (address, kind): (SocketAddr, Kind),
    hold: Hold,
    count: usize,
    (backlog, options): (i32, SocketOptions),
) -> io::Result<Vec<Socket>> {
    let listen = |socket: &Socket| match kind {
        Kind::Datagrams => Ok(()),
        Kind::Connections => {
            // Replies are written whole; waiting to fill packets would only delay them.
            let _ = socket.set_tcp_nodelay(true);
            socket.listen(backlog)
        }
    };
    let sharing = if count > 1 { Sharing::WithOthers } else { Sharing::Alone };
    let is_activated = matches!(hold, Hold::Activated(_));
    let first = match hold {
        Hold::Activated(activated) => {
            let socket = Socket::from(activated.socket);
            mark(&socket, address, kind, options)?;
            socket
        }
        Hold::First(first) => first,
        Hold::Nothing => open(address, kind, if BALANCES { sharing } else { Sharing::Alone }, options)?,
    };
    first.set_nonblocking(true)?;
    // Before it may share: two sockets that do not listen yet may have the same port.
    listen(&first)?;
    let mut all = Vec::with_capacity(count);
    if BALANCES && !is_activated {
        if sharing == Sharing::WithOthers {
            first.set_reuse_port(true)?;
        }
        all.push(first);
        for _ in 1..count {
            let socket = open(address, kind, sharing, options)?;
            listen(&socket)?;
            all.push(socket);
        }
    } else {
        for _ in 1..count {
            all.push(first.try_clone()?);
        }
        all.push(first);
    }
    Ok(all)
}

/// Opens and binds one socket.
fn open(address: SocketAddr, kind: Kind, sharing: Sharing, options: SocketOptions) -> io::Result<Socket> {
    let (socket_type, protocol) = match kind {
        Kind::Datagrams => (Type::DGRAM, Protocol::UDP),
        Kind::Connections => (Type::STREAM, Protocol::TCP),
    };
    let socket = Socket::new(Domain::for_address(address), socket_type, Some(protocol))?;
    socket.set_nonblocking(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if socket_type == Type::STREAM {
        // Connections of a former run that still linger are no reason not to listen.
        socket.set_reuse_address(true)?;
    }
    if sharing == Sharing::WithOthers {
        socket.set_reuse_port(true)?;
    }
    // The options of IPv4 are for both families.
    if options.free_bind {
        socket.set_freebind_v4(true)?;
    }
    if options.transparent {
        socket.set_ip_transparent_v4(true).map_err(|error| {
            let text = "\"sockets.transparent\" needs CAP_NET_ADMIN or CAP_NET_RAW";
            io::Error::other(format!("{text}: {error}"))
        })?;
    }
    mark(&socket, address, kind, options)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Tells the kernel how packets of a socket look.
fn mark(socket: &Socket, address: SocketAddr, kind: Kind, options: SocketOptions) -> io::Result<()> {
    if options.dscp != 0 {
        // The last two bits are for congestion (ECN).
        let octet = u32::from(options.dscp) << 2;
        if address.is_ipv4() { socket.set_tos_v4(octet)? } else { socket.set_tclass_v6(octet)? }
    }
    match (kind, options.tcp_mss) {
        (Kind::Connections, Some(octets)) => socket.set_tcp_mss(octets.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn plan(addresses: &[&str]) -> Plan {
        let listeners =
            addresses.iter().map(|text| ListenerPlan::new(text.parse().expect("an address"))).collect();
        Plan { listeners, ..Plan::default() }
    }

    #[test]
    fn all_workers_and_transports_share_a_port_the_system_chose() {
        let sockets =
            bind(&plan(&["127.0.0.1:0", "[::1]:0"]), 3, Vec::new()).expect("loopback has free ports");
        let addresses: Vec<_> = sockets.addresses().iter().map(|bound| bound.address).collect();
        assert!(addresses.iter().all(|address| address.port() != 0), "{addresses:?}");
        for worker in sockets.into_workers() {
            let tcp: Vec<_> =
                worker.tcp.iter().map(|opened| opened.socket.local_addr().expect("bound")).collect();
            assert_eq!(tcp, addresses);
            assert_eq!(worker.udp.iter().map(|opened| opened.address).collect::<Vec<_>>(), addresses);
        }
    }

    #[test]
    fn no_two_listeners_get_the_same_port_from_the_system() {
        // The kernel chooses among some seven thousand: of so many choices two would be the same if
        // the first were not kept.
        let listeners = (0..300).map(|_| {
            let address = "127.0.0.1:0".parse().expect("an address");
            ListenerPlan { transports: Transports::TCP, ..ListenerPlan::new(address) }
        });
        let plan = Plan { listeners: listeners.collect(), ..Plan::default() };
        let sockets = bind(&plan, 2, Vec::new()).expect("loopback has free ports");
        let ports: HashSet<_> = sockets.addresses().iter().map(|bound| bound.address.port()).collect();
        assert_eq!(ports.len(), 300);
    }

    #[test]
    fn wildcard_and_specific_addresses_go_together() {
        let first = bind(&plan(&["127.0.0.1:0"]), 1, Vec::new()).expect("loopback has free ports");
        let port = first.addresses()[0].address.port();
        drop(first);
        let texts = [format!("0.0.0.0:{port}"), format!("127.0.0.1:{port}"), format!("[::]:{port}")];
        let sockets = bind(&plan(&texts.each_ref().map(String::as_str)), 2, Vec::new()).expect("all free");
        assert_eq!(sockets.addresses().len(), 3);
    }

    #[test]
    fn a_taken_port_is_refused_by_name_even_if_its_owner_would_share() {
        let first = bind(&plan(&["127.0.0.1:0"]), 2, Vec::new()).expect("loopback has free ports");
        let text = first.addresses()[0].address.to_string();
        let refused = || bind(&plan(&[&text]), 2, Vec::new()).expect_err("it is taken");
        assert_eq!(refused().source.kind(), io::ErrorKind::AddrInUse);
        if cfg!(target_os = "linux") {
            // The kernel's table may leave a socket out while others come and go.
            let error = (0..50).map(|_| refused()).find(|error| error.port_owner.is_some());
            let error = error.expect("we may look into our own process");
            assert_eq!(
                error.port_owner.as_ref().map(|port_owner| port_owner.process),
                Some(std::process::id())
            );
            assert!(error.to_string().ends_with(&format!("(process {})", std::process::id())), "{error}");
        }
    }

    #[test]
    fn ip_freebind_listens_on_addresses_that_no_interface_has() {
        let free = SocketOptions { free_bind: true, ..SocketOptions::default() };
        let plan = Plan { options: free, ..plan(&["192.0.2.1:0", "[2001:db8::1]:0"]) };
        let sockets = bind(&plan, 2, Vec::new()).expect("the kernel takes any address");
        assert_eq!(sockets.addresses().len(), 2);
    }

    #[test]
    fn ip_transparent_listens_on_addresses_of_others_or_says_what_it_lacks() {
        let transparent = SocketOptions { transparent: true, ..SocketOptions::default() };
        match bind(&Plan { options: transparent, ..plan(&["192.0.2.1:0"]) }, 1, Vec::new()) {
            Ok(sockets) => assert_eq!(sockets.addresses().len(), 1),
            Err(error) => {
                assert!(error.to_string().contains("needs CAP_NET_ADMIN or CAP_NET_RAW"), "{error}");
            }
        }
    }

    #[test]
    fn ip_dscp_tcp_mss_and_so_rcvbuf_are_what_the_kernel_has_of_the_sockets() {
        let options = SocketOptions { dscp: 46, tcp_mss: Some(1000), ..SocketOptions::default() };
        let udp = UdpPlan { receive_buffer_octets: 40_000, send_buffer_octets: 30_000, ..UdpPlan::default() };
        let plan = Plan { options, udp, ..plan(&["127.0.0.1:0", "[::1]:0"]) };
        let workers = bind(&plan, 2, Vec::new()).expect("loopback has free ports").into_workers();
        assert_eq!(workers.len(), 2);
        for worker in workers {
            for opened in &worker.udp {
                let socket = socket2::SockRef::from(&opened.socket);
                let is_v4 = opened.address.is_ipv4();
                let octet = if is_v4 { socket.tos_v4() } else { socket.tclass_v6() };
                assert_eq!(octet.expect("it is known"), 46 << 2);
                // The kernel counts its own records of packets, too: twice as much.
                assert_eq!(socket.recv_buffer_size().expect("it is known"), 80_000);
                assert_eq!(socket.send_buffer_size().expect("it is known"), 60_000);
            }
            for opened in &worker.tcp {
                let socket = socket2::SockRef::from(&opened.socket);
                assert_eq!(socket.tcp_mss().expect("it is known"), 1000);
                if opened.address.is_ipv4() {
                    assert_eq!(socket.tos_v4().expect("it is known"), 46 << 2);
                }
            }
        }
    }

    #[test]
    fn addresses_of_others_are_refused_with_a_reason() {
        let error = bind(&plan(&["192.0.2.1:0"]), 1, Vec::new()).expect_err("not ours");
        assert_eq!(
            error.to_string(),
            "cannot listen on 192.0.2.1:0 over UDP: no interface of this machine has this address"
        );
    }
}
