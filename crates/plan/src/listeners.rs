//! Listeners: addresses, transports, and limits of connections.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use engine::{Announce, Transport};
pub use wire::Prefix;

/// All listeners and their limits. Fixed until a restart.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Where to listen. If empty, the sockets handed over by the service manager are the listeners.
    pub listeners: Vec<ListenerPlan>,
    /// What the kernel is told of all sockets.
    pub options: SocketOptions,
    /// What holds for all datagram sockets.
    pub udp: UdpPlan,
    /// What holds for all connections.
    pub tcp: TcpPlan,
    /// Connections that clients of networks may have together, over any transport.
    pub networks: Vec<(Prefix, usize)>,
    /// For how long each key of the oblivious target (RFC 9230) is the newest; `None`: there is no
    /// target.
    pub oblivious: Option<Duration>,
}

values::words! {
    /// Who is told for how long a connection may be quiet (RFC 7828).
    AnnounceWord {
        /// Clients that send the option.
        Asked = "asked",
        /// All that send EDNS.
        All = "all",
        /// Nobody.
        Nobody = "nobody",
    }
}

impl From<AnnounceWord> for Announce {
    fn from(word: AnnounceWord) -> Self {
        match word {
            AnnounceWord::Asked => Self::Asked,
            AnnounceWord::All => Self::All,
            AnnounceWord::Nobody => Self::Nobody,
        }
    }
}

values::words! {
    /// What a listener speaks.
    TransportWord {
        /// Datagrams.
        Udp = "udp",
        /// Connections.
        Tcp = "tcp",
        /// DNS over TLS.
        Tls = "tls",
        /// DNS over HTTPS.
        Https = "https",
        /// DNS over HTTP, for a proxy that speaks TLS.
        Http = "http",
        /// DNS over QUIC.
        Quic = "quic",
        /// DNS over HTTP/3.
        H3 = "h3",
        /// DNSCrypt, over datagrams and connections.
        Dnscrypt = "dnscrypt",
    }
}

impl TransportWord {
    /// Returns what queries come over.
    pub const fn transport(self) -> Transport {
        match self {
            Self::Udp => Transport::Udp,
            Self::Tcp => Transport::Tcp,
            Self::Tls => Transport::Tls,
            Self::Https | Self::Http => Transport::Https,
            Self::Quic => Transport::Quic,
            Self::H3 => Transport::H3,
            Self::Dnscrypt => Transport::Dnscrypt,
        }
    }

    /// Returns the port that clients expect it on.
    pub const fn port(self) -> u16 {
        match self {
            Self::Udp | Self::Tcp => 53,
            Self::Tls | Self::Quic => 853,
            Self::Https | Self::H3 | Self::Dnscrypt => 443,
            Self::Http => 80,
        }
    }

    /// Returns whether both can be spoken at one address and port.
    pub const fn goes_with(self, other: Self) -> bool {
        let are_both_quic = matches!((self, other), (Self::Quic, Self::H3) | (Self::H3, Self::Quic));
        !self.shares_protocol(other) || are_both_quic
    }

    /// Returns whether both are carried by the same protocol, so that two listeners cannot have
    /// them at one address and port.
    pub const fn shares_protocol(self, other: Self) -> bool {
        let ([datagrams, connections], others) = (self.carriers(), other.carriers());
        datagrams && others[0] || connections && others[1]
    }

    /// Returns whether it comes over datagrams, and whether over connections.
    const fn carriers(self) -> [bool; 2] {
        match self {
            Self::Udp | Self::Quic | Self::H3 => [true, false],
            Self::Tcp | Self::Tls | Self::Https | Self::Http => [false, true],
            Self::Dnscrypt => [true, true],
        }
    }

    /// Returns whether it is HTTP.
    pub const fn is_http(self) -> bool {
        matches!(self, Self::Https | Self::Http | Self::H3)
    }

    /// Returns whether it takes a certificate.
    pub const fn is_secure(self) -> bool {
        match self {
            Self::Udp | Self::Tcp | Self::Http | Self::Dnscrypt => false,
            Self::Tls | Self::Https | Self::Quic | Self::H3 => true,
        }
    }
}

/// What is spoken over datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagrams {
    /// DNS as it is.
    Dns,
    /// QUIC.
    Quic {
        /// Whether DNS over QUIC is spoken (RFC 9250).
        doq: bool,
        /// Whether HTTP/3 is spoken.
        h3: bool,
    },
    /// DNSCrypt.
    Dnscrypt,
}

/// What is spoken over connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// DNS as it is.
    Dns,
    /// DNS over TLS (RFC 7858).
    Tls,
    /// DNS over HTTPS (RFC 8484), HTTP/1.1 and HTTP/2.
    Https,
    /// The same without TLS, for a proxy that speaks it.
    Http,
    /// DNSCrypt.
    Dnscrypt,
    /// DNS as it is, over a Unix socket.
    Local,
    /// HTTP without TLS, over a Unix socket.
    LocalHttp,
}

impl Connections {
    /// Returns how operators see it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Dns => TransportWord::Tcp.word(),
            Self::Tls => TransportWord::Tls.word(),
            Self::Https => TransportWord::Https.word(),
            Self::Http => TransportWord::Http.word(),
            Self::Dnscrypt => TransportWord::Dnscrypt.word(),
            Self::Local => "unix",
            Self::LocalHttp => "http+unix",
        }
    }
}

impl Datagrams {
    /// Returns how operators see what is spoken.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let [dns, doq, h3, dnscrypt] = match self {
            Self::Dns => [true, false, false, false],
            Self::Quic { doq, h3 } => [false, doq, h3, false],
            Self::Dnscrypt => [false, false, false, true],
        };
        let spoken = [
            (dns, TransportWord::Udp),
            (doq, TransportWord::Quic),
            (h3, TransportWord::H3),
            (dnscrypt, TransportWord::Dnscrypt),
        ];
        spoken.into_iter().filter(|(is_spoken, _)| *is_spoken).map(|(_, word)| word.word())
    }
}

/// Which transports a listener offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transports {
    /// Over datagrams.
    pub datagrams: Option<Datagrams>,
    /// Over connections.
    pub connections: Option<Connections>,
}

impl Transports {
    /// Both, as RFC 7766 §5 requires of a server.
    pub const UDP_AND_TCP: Self =
        Self { datagrams: Some(Datagrams::Dns), connections: Some(Connections::Dns) };
    /// Datagrams only.
    pub const UDP: Self = Self { datagrams: Some(Datagrams::Dns), connections: None };
    /// Connections only.
    pub const TCP: Self = Self { datagrams: None, connections: Some(Connections::Dns) };
    /// Connections with TLS only.
    pub const TLS: Self = Self { datagrams: None, connections: Some(Connections::Tls) };
    /// HTTPS only.
    pub const HTTPS: Self = Self { datagrams: None, connections: Some(Connections::Https) };
    /// HTTP without TLS only.
    pub const HTTP: Self = Self { datagrams: None, connections: Some(Connections::Http) };
    /// DNSCrypt, over both.
    pub const DNSCRYPT: Self =
        Self { datagrams: Some(Datagrams::Dnscrypt), connections: Some(Connections::Dnscrypt) };

    /// Returns whether DNSCrypt is spoken.
    pub fn speak_dnscrypt(self) -> bool {
        self.datagrams == Some(Datagrams::Dnscrypt) || self.connections == Some(Connections::Dnscrypt)
    }

    /// Returns what a listener that speaks all of these has to offer.
    pub fn of(words: &[TransportWord]) -> Self {
        let mut transports = Self { datagrams: None, connections: None };
        for word in words {
            match word {
                TransportWord::Udp => transports.datagrams = Some(Datagrams::Dns),
                TransportWord::Tcp => transports.connections = Some(Connections::Dns),
                TransportWord::Tls => transports.connections = Some(Connections::Tls),
                TransportWord::Https => transports.connections = Some(Connections::Https),
                TransportWord::Http => transports.connections = Some(Connections::Http),
                TransportWord::Dnscrypt => transports = Self::DNSCRYPT,
                TransportWord::Quic | TransportWord::H3 => {
                    transports.datagrams = Some(Datagrams::Quic {
                        doq: words.contains(&TransportWord::Quic),
                        h3: words.contains(&TransportWord::H3),
                    });
                }
            }
        }
        transports
    }

    /// Returns how operators see them.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        // DNSCrypt is one transport over both.
        let connections = self.connections.filter(|spoken| *spoken != Connections::Dnscrypt);
        self.datagrams.into_iter().flat_map(Datagrams::words).chain(connections.map(Connections::word))
    }
}

/// Whether the clients of a listener show certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    /// They must, if there are authorities that sign for clients.
    #[default]
    ByRoots,
    /// They are not asked for one.
    Never,
    /// They may; one that is shown must be good.
    Optional,
    /// They must.
    Required,
    /// They may, and whatever is shown over TLS is taken: that a client has its key is all that it
    /// proves. Over other transports they are not asked.
    Any,
}

impl ClientCertificates {
    /// The words of settings. [`ByRoots`](Self::ByRoots) has none: it is what holds if nothing is
    /// said.
    pub const WORDS: &'static [&'static str] = &["never", "optional", "required", "any"];

    /// Returns the choice that `word` stands for.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "never" => Some(Self::Never),
            "optional" => Some(Self::Optional),
            "required" => Some(Self::Required),
            "any" => Some(Self::Any),
            _ => None,
        }
    }

    /// Returns the word for it, if there is one.
    pub const fn word(self) -> Option<&'static str> {
        match self {
            Self::ByRoots => None,
            Self::Never => Some("never"),
            Self::Optional => Some("optional"),
            Self::Required => Some("required"),
            Self::Any => Some("any"),
        }
    }
}

/// One address to listen on.
#[derive(Clone, Debug)]
pub struct ListenerPlan {
    /// The address; port 0 lets the system choose one that is free on all transports. An IPv6
    /// address stands for IPv6 only, so that `0.0.0.0` and `::` can be had side by side; a zone is
    /// given as its scope.
    pub address: SocketAddr,
    /// What to offer there.
    pub transports: Transports,
    /// Peers that must begin with a PROXY protocol header (version 2). What others send is DNS.
    pub proxies: Vec<Prefix>,
    /// Paths at which HTTP requests are answered.
    pub paths: Vec<String>,
    /// Peers that are believed when an HTTP header says for whom they ask.
    pub forwarders: Vec<Prefix>,
    /// Whether clients show certificates where TLS is spoken.
    pub client_certificates: ClientCertificates,
}

impl ListenerPlan {
    /// The path that everybody uses (RFC 8484 has it in its examples).
    pub const PATH: &'static str = "/dns-query";

    /// Returns a listener for UDP and TCP without proxies.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            transports: Transports::UDP_AND_TCP,
            proxies: Vec::new(),
            paths: vec![Self::PATH.to_owned()],
            forwarders: Vec::new(),
            client_certificates: ClientCertificates::ByRoots,
        }
    }
}

/// What the kernel is told of sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// The DSCP of packets (RFC 2474).
    pub dscp: u8,
    /// The largest segment over TCP, in octets (`TCP_MAXSEG`).
    pub tcp_mss: Option<u16>,
    /// Whether they may have addresses that no interface has (`IP_FREEBIND`).
    pub free_bind: bool,
    /// Whether they may have addresses of other machines (`IP_TRANSPARENT`).
    pub transparent: bool,
}

/// What is done with several datagrams of one client that have the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Each is a message of its own.
    Apart,
    /// They pass between us and the kernel as one message (`UDP_GRO`, `UDP_SEGMENT`).
    Together,
}

/// Limits of datagram sockets.
#[derive(Clone, Copy, Debug)]
pub struct UdpPlan {
    /// Octets the kernel may queue for us per socket, as far as the system allows it (`SO_RCVBUF`).
    pub receive_buffer_octets: usize,
    /// Octets the kernel may queue for the network per socket (`SO_SNDBUF`).
    pub send_buffer_octets: usize,
    /// The most octets of a reply, whatever the client's EDNS says; not below 512.
    pub reply_octets_max: u16,
    /// Seconds that a query may have waited in the kernel's queue before it is read; zero: as long
    /// as it likes.
    pub queue_timeout_s: u32,
    /// How queries are received. Together costs 1 MB per socket, and pays only where the network
    /// card merges datagrams of one sender; on loopback no difference was found.
    pub receiving: Grouping,
    /// How replies are sent. Together, an echo took 0.79 of the CPU time of sending apart with one
    /// client, 0.94 with ten and 1.00 with a hundred (dnsperf, Linux 6.18).
    pub sending: Grouping,
}

impl UdpPlan {
    /// A burst of some 2,000 queries; at full load they wait about as long as 10 ms.
    pub const RECEIVE_BUFFER_OCTETS: usize = 2 << 20;
    /// Replies are sent at once, the buffer only bridges a busy interface.
    pub const SEND_BUFFER_OCTETS: usize = 1 << 20;
    /// What fits every path without fragments (DNS flag day 2020).
    pub const REPLY_OCTETS_MAX: u16 = 1232;
    /// The least any client takes (RFC 1035 §2.3.4).
    pub const REPLY_OCTETS_MIN: u16 = 512;
}

impl Default for UdpPlan {
    fn default() -> Self {
        Self {
            receive_buffer_octets: Self::RECEIVE_BUFFER_OCTETS,
            queue_timeout_s: 0,
            send_buffer_octets: Self::SEND_BUFFER_OCTETS,
            reply_octets_max: Self::REPLY_OCTETS_MAX,
            receiving: Grouping::Apart,
            sending: Grouping::Together,
        }
    }
}

/// Limits of connections.
#[derive(Clone, Copy, Debug)]
pub struct TcpPlan {
    /// Connections open at a time, of all workers together.
    pub connections_max: usize,
    /// Connections open at a time from one client prefix. A proxy counts as the client it speaks
    /// for.
    pub connections_per_client_max: usize,
    /// Leading bits of an IPv4 address that make a client.
    pub client_bits_v4: u8,
    /// Leading bits of an IPv6 address that make a client.
    pub client_bits_v6: u8,
    /// Queries of one connection that may wait for an upstream at a time; further ones are not
    /// read.
    pub waiting_max: u32,
    /// Queries after which a connection is closed; `None` for any number.
    pub queries_max: Option<u64>,
    /// How old a connection may become, however busy it is; `None` for any age. What waits then is
    /// still answered.
    pub age_max: Option<Duration>,
    /// How long a connection may be quiet, while there is room for others (RFC 7766 §6.2.3).
    pub idle_timeout: Duration,
    /// Who is told of it.
    pub announced_to: Announce,
    /// How long it may be quiet when nearly all connections are taken. From half of them on the
    /// time goes down to this.
    pub idle_timeout_min: Duration,
    /// How long a new connection may take to send its first octet.
    pub first_timeout: Duration,
    /// How long a query may take to arrive, from its first octet (or a PROXY header to its end).
    pub query_timeout: Duration,
    /// How long a client may take no octet of a reply that waits for it.
    pub write_timeout: Duration,
    /// Octets of replies that may wait for a client to take them; beyond that no more of its
    /// queries are read.
    pub output_octets_max: usize,
    /// Octets of half queries and waiting replies over TCP and TLS, of all connections together;
    /// the one that needs more is closed. Replies that wait over HTTP and QUIC have as much; those
    /// that hold most of it are closed.
    pub buffered_octets_max: usize,
    /// Connections the kernel may hold before we accept them.
    pub backlog: i32,
    /// Handshakes of TLS that may begin in a second, of all clients together.
    pub handshakes_per_second: u32,
    /// Handshakes of TLS that one client may begin in a second, in the long run.
    pub handshakes_per_client: u32,
    /// Handshakes of TLS that one client may begin at once.
    pub handshakes_burst: u32,
    /// How long a handshake may take, from the connection's begin.
    pub handshake_timeout: Duration,
}

impl TcpPlan {
    /// A quiet one costs 1.7 KB of ours (measured), besides what the kernel keeps.
    pub const CONNECTIONS_MAX: usize = 10_000;
    /// Enough for an office behind one address, and a tenth of all.
    pub const CONNECTIONS_PER_CLIENT_MAX: usize = 1000;
    /// A single address.
    pub const CLIENT_BITS_V4: u8 = 32;
    /// What one customer is usually given.
    pub const CLIENT_BITS_V6: u8 = 56;
    /// More than any stub keeps in flight.
    pub const WAITING_MAX: u32 = 256;
    /// The usual order of magnitude (RFC 7766 §6.2.3 says "a few seconds").
    pub const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
    /// Two slow round trips.
    pub const IDLE_TIMEOUT_MIN: Duration = Duration::from_secs(1);
    /// Whoever connects has a question at hand.
    pub const FIRST_TIMEOUT: Duration = Duration::from_secs(5);
    /// A query is one packet; this survives a few retransmissions.
    pub const QUERY_TIMEOUT: Duration = Duration::from_secs(5);
    /// As long as the other way.
    pub const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
    /// Two of the largest replies.
    pub const OUTPUT_OCTETS_MAX: usize = 128 << 10;
    /// 6 KB for each of the most connections.
    pub const BUFFERED_OCTETS_MAX: usize = 64 << 20;
    /// The kernel's own default bound (`somaxconn`).
    pub const BACKLOG: i32 = 4096;
    /// About as many as one processor can do.
    pub const HANDSHAKES_PER_SECOND: u32 = 1000;
    /// An office behind one address.
    pub const HANDSHAKES_PER_CLIENT: u32 = 200;
    /// Everybody there connects anew after a restart.
    pub const HANDSHAKES_BURST: u32 = 1000;
    /// Three slow round trips.
    pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
}

impl Default for TcpPlan {
    fn default() -> Self {
        Self {
            connections_max: Self::CONNECTIONS_MAX,
            connections_per_client_max: Self::CONNECTIONS_PER_CLIENT_MAX,
            client_bits_v4: Self::CLIENT_BITS_V4,
            client_bits_v6: Self::CLIENT_BITS_V6,
            waiting_max: Self::WAITING_MAX,
            queries_max: None,
            age_max: None,
            idle_timeout: Self::IDLE_TIMEOUT,
            announced_to: Announce::Asked,
            idle_timeout_min: Self::IDLE_TIMEOUT_MIN,
            first_timeout: Self::FIRST_TIMEOUT,
            query_timeout: Self::QUERY_TIMEOUT,
            write_timeout: Self::WRITE_TIMEOUT,
            output_octets_max: Self::OUTPUT_OCTETS_MAX,
            buffered_octets_max: Self::BUFFERED_OCTETS_MAX,
            backlog: Self::BACKLOG,
            handshakes_per_second: Self::HANDSHAKES_PER_SECOND,
            handshakes_per_client: Self::HANDSHAKES_PER_CLIENT,
            handshakes_burst: Self::HANDSHAKES_BURST,
            handshake_timeout: Self::HANDSHAKE_TIMEOUT,
        }
    }
}

impl TcpPlan {
    /// Returns how long a connection may be quiet when `open` are open.
    pub fn idle_timeout(&self, open: usize) -> Duration {
        let free = self.connections_max.saturating_sub(open);
        let half = self.connections_max.div_ceil(2).max(1);
        let shorter = self.idle_timeout_min.min(self.idle_timeout);
        if free >= half {
            return self.idle_timeout;
        }
        let share = u32::try_from(free.saturating_mul(1000) / half).unwrap_or(1000);
        shorter + (self.idle_timeout - shorter) * share / 1000
    }

    /// Returns what of an address makes a client.
    pub fn client(&self, address: IpAddr) -> Prefix {
        let address = address.to_canonical();
        Prefix::new(address, if address.is_ipv4() { self.client_bits_v4 } else { self.client_bits_v6 })
    }
}

/// The first number of listeners that are Unix sockets; those with addresses have smaller ones.
pub const LOCAL_LISTENERS_FROM: u16 = 0x8000;

values::words! {
    /// What comes over a Unix socket.
    LocalKind {
        /// Connections, on which queries have their lengths in front.
        Stream = "stream",
        /// Datagrams, a query each.
        Datagram = "datagram",
        /// DNS over HTTP, for a proxy that speaks TLS.
        Http = "http",
    }
}

impl LocalKind {
    /// Returns what is spoken over its connections; `None`: there are none.
    pub const fn connections(self) -> Option<Connections> {
        match self {
            Self::Stream => Some(Connections::Local),
            Self::Http => Some(Connections::LocalHttp),
            Self::Datagram => None,
        }
    }

    /// Returns what queries come over.
    pub const fn transport(self) -> Transport {
        match self {
            Self::Stream | Self::Datagram => Transport::Unix,
            Self::Http => Transport::Https,
        }
    }
}

/// A Unix socket to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalPlan {
    /// The file.
    pub path: PathBuf,
    /// What comes over it.
    pub kind: LocalKind,
    /// Its rights: who may write may connect.
    pub mode: u32,
    /// Its owner, by name or number; `None`: the user that opens it.
    pub owner: Option<String>,
    /// Its group, by name or number.
    pub group: Option<String>,
    /// Paths at which HTTP requests are answered.
    pub paths: Vec<String>,
    /// Whether an HTTP header is believed that says for whom a request asks.
    pub is_forwarded: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_client_certificates_are_read_as_they_are_written() {
        for word in ClientCertificates::WORDS {
            assert_eq!(ClientCertificates::parse(word).and_then(ClientCertificates::word), Some(*word));
        }
    }

    #[test]
    fn quiet_connections_get_less_time_the_more_there_are() {
        let plan = TcpPlan { connections_max: 100, ..TcpPlan::default() };
        assert_eq!(plan.idle_timeout(0), TcpPlan::IDLE_TIMEOUT);
        assert_eq!(plan.idle_timeout(50), TcpPlan::IDLE_TIMEOUT);
        assert_eq!(plan.idle_timeout(75), Duration::from_millis(5500));
        assert_eq!(plan.idle_timeout(100), TcpPlan::IDLE_TIMEOUT_MIN);
        assert_eq!(plan.idle_timeout(1000), TcpPlan::IDLE_TIMEOUT_MIN);
    }
}
