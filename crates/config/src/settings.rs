//! The configuration as written: checked, complete with defaults, not yet resolved.
//!
//! Names of groups, caches, sets and policies are still names here; [`compile`](crate::compile) resolves them.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use engine::Transport;
use sets::Reach;
use wire::{NameBuf, Rcode, Rtype};

use crate::checks::Check;
use crate::jobs::{EffectSettings, Recorder, Schedule};
use crate::policy::{Condition, Rule};
use crate::records::Record;
use crate::signing::SigningPolicy;
use crate::source::{At, Span};
use crate::values::{Prefix, Secret, duration_text, size_text};

/// Declares a closed choice and the words it is written with, once.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_meta])* $variant,)* }

        impl $name {
            /// The words, in the order of the variants.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// Returns the choice that `word` stands for.
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }

            /// Returns the word for it.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

words! {
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
        }
    }

    /// Returns the port that clients expect it on.
    pub const fn port(self) -> u16 {
        match self {
            Self::Udp | Self::Tcp => 53,
            Self::Tls | Self::Quic => 853,
            Self::Https | Self::H3 => 443,
            Self::Http => 80,
        }
    }

    /// Returns whether both can be spoken at one address and port.
    pub const fn goes_with(self, other: Self) -> bool {
        let are_both_quic = matches!((self, other), (Self::Quic, Self::H3) | (Self::H3, Self::Quic));
        self.is_datagrams() != other.is_datagrams() || are_both_quic
    }

    const fn is_datagrams(self) -> bool {
        match self {
            Self::Udp | Self::Quic | Self::H3 => true,
            Self::Tcp | Self::Tls | Self::Https | Self::Http => false,
        }
    }

    /// Returns whether it is HTTP.
    pub const fn is_http(self) -> bool {
        matches!(self, Self::Https | Self::Http | Self::H3)
    }

    /// Returns whether it takes a certificate.
    pub const fn is_secure(self) -> bool {
        match self {
            Self::Udp | Self::Tcp | Self::Http => false,
            Self::Tls | Self::Https | Self::Quic | Self::H3 => true,
        }
    }
}

words! {
    /// Whether clients show certificates.
    ClientCertificateWord {
        /// They are not asked.
        Never = "never",
        /// They may.
        Optional = "optional",
        /// They must.
        Required = "required",
    }
}

words! {
    /// What comes over a Unix socket.
    LocalSocketWord {
        /// Connections.
        Stream = "stream",
        /// Datagrams.
        Datagram = "datagram",
    }
}

words! {
    /// The oldest version of TLS that is spoken.
    TlsVersionWord {
        /// TLS 1.2.
        V12 = "1.2",
        /// TLS 1.3.
        V13 = "1.3",
    }
}

words! {
    /// In which way packets are taken past the kernel's network stack.
    XdpMode {
        /// Not at all.
        Off = "off",
        /// The best that works.
        Auto = "auto",
        /// In the driver, without a copy.
        ZeroCopy = "zerocopy",
        /// In the driver, with a copy.
        Native = "native",
        /// Behind any driver.
        Generic = "generic",
    }
}

words! {
    /// What becomes of another program on an interface.
    XdpExisting {
        /// It stays.
        Keep = "keep",
        /// It is taken off.
        Replace = "replace",
    }
}

words! {
    /// What becomes of a client's EDNS client subnet.
    ClientSubnetUse {
        /// Upstreams do not see it.
        Strip = "strip",
        /// Upstreams see it, and the cache keeps answers apart by it.
        Forward = "forward",
    }
}

words! {
    /// How log lines look.
    LogFormat {
        /// By where they go.
        Auto = "auto",
        /// For people.
        Text = "text",
        /// One JSON object a line.
        Json = "json",
        /// The journal's own protocol.
        Journald = "journald",
    }
}

words! {
    /// The least important messages to log.
    LogLevel {
        /// What needs a person.
        Error = "error",
        /// What may need one.
        Warn = "warn",
        /// Changes of state.
        Info = "info",
        /// For finding mistakes.
        Debug = "debug",
        /// Everything, also what happens for every query.
        Trace = "trace",
    }
}

words! {
    /// How to choose among servers, without the number that a race takes.
    PickWord {
        /// The first that works.
        Ordered = "ordered",
        /// The one with the shortest round trip.
        Fastest = "fastest",
        /// Each in turn.
        Balanced = "balanced",
        /// Several at once.
        Race = "race",
        /// Several at once; answers with records before those without.
        PreferPositive = "prefer-positive",
        /// Several at once; what some agree on.
        Consensus = "consensus",
    }
}

/// Everything that can be set.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// What is fixed until the server is started again.
    pub startup: Startup,
    /// What the server says about itself.
    pub presentation: Presentation,
    /// Clients that may ask.
    pub allow: Vec<Prefix>,
    /// Clients that hear nothing.
    pub deny: Vec<Prefix>,
    /// A set of more of them, changed while the server runs.
    pub deny_set: Option<At<String>>,
    /// Peers that are believed when they say for whom they ask.
    pub trusted_peers: Vec<Prefix>,
    /// DNS servers that know the addresses of web servers; empty: the machine is asked.
    pub resolvers: Vec<SocketAddr>,
    /// Upstream groups, in the order of the file.
    pub upstreams: Vec<Group>,
    /// Caches, in the order of the file.
    pub caches: Vec<CacheSettings>,
    /// Hosts files.
    pub hosts: Hosts,
    /// Names and their addresses.
    pub local: Vec<LocalName>,
    /// Zones that are served, in the order of the file.
    pub zones: Vec<ZoneSettings>,
    /// Whether there are zones, or may be, that were added while the server ran; no file says so.
    pub has_added_zones: bool,
    /// How the server signs zones, in the order of the file.
    pub signing: Vec<Arc<SigningPolicy>>,
    /// Directories whose files are zones, in the order of the file.
    pub zone_directories: Vec<ZoneDirectory>,
    /// Whether the records of answers from zones take turns in being the first.
    pub rotate: bool,
    /// How what ALIAS records lead to is resolved.
    pub alias: AliasSettings,
    /// Keys that sign messages between servers.
    pub keys: Vec<KeySettings>,
    /// How many transfers there may be at a time.
    pub transfers: Transfers,
    /// Sets of records.
    pub records: Vec<RecordSet>,
    /// Oblivious targets that messages are carried to.
    pub relay_to: Vec<RelayTarget>,
    /// Who the server is over TLS.
    pub tls: Tls,
    /// What protects the server.
    pub limits: Limits,
    /// DNS cookies.
    pub cookies: Cookies,
    /// Octets of the largest UDP message.
    pub udp_size: u16,
    /// The least important messages to log.
    pub log_level: LogLevel,
    /// Sets of names and clients.
    pub sets: Vec<Set>,
    /// Conditions with a name, in the order of the file.
    pub conditions: Vec<NamedCondition>,
    /// Who begins in which policy, in the order of the file.
    pub views: Vec<View>,
    /// Effects, in the order of the file.
    pub effects: Vec<EffectSettings>,
    /// Where queries are recorded.
    pub recorder: Option<Recorder>,
    /// What is done at certain times.
    pub schedules: Vec<Schedule>,
    /// Policies, in the order of the file.
    pub policies: Vec<Policy>,
    /// Whether `policies` was written by somebody; the built-in one uses the only group and cache there are.
    pub policy_is_given: bool,
}

/// A condition with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedCondition {
    /// The name.
    pub name: At<String>,
    /// The condition.
    pub condition: At<Condition>,
}

/// Clients whose queries begin in a policy of their own.
#[derive(Clone, Debug)]
pub struct View {
    /// The whole view.
    pub span: Span,
    /// When a query is in it.
    pub condition: At<Condition>,
    /// The policy.
    pub policy: At<String>,
}

/// Two views are equal when they say the same, wherever they say it.
impl PartialEq for View {
    fn eq(&self, other: &Self) -> bool {
        self.condition == other.condition && self.policy == other.policy
    }
}

/// What only a new start changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Startup {
    /// Threads that answer queries; `None`: one for each processor.
    pub workers: Option<u16>,
    /// Whether a worker looks for more before it sleeps, when that pays.
    pub stay_awake: bool,
    /// The user to become; `None`: `gannet` if there is one and we are root.
    pub user: Option<String>,
    /// Where state is kept.
    pub state_directory: PathBuf,
    /// How long a stopping server goes on with waiting queries.
    pub shutdown_timeout: Duration,
    /// Where clients' queries are taken; `None`: 127.0.0.1 and ::1 on port 53, or else on 5300.
    pub listen: Option<Vec<Listener>>,
    /// For how long each key of the oblivious target is the newest; `None`: there is no target.
    pub oblivious_target: Option<Duration>,
    /// Unix sockets where queries are taken.
    pub local_sockets: Vec<LocalSocket>,
    /// Interfaces whose packets are taken past the kernel's network stack.
    pub xdp: Xdp,
    /// Where metrics can be fetched.
    pub metrics: Vec<SocketAddr>,
    /// How log lines look.
    pub log_format: LogFormat,
    /// Limits of connections.
    pub tcp: Tcp,
    /// Limits of handshakes.
    pub tls: Handshakes,
    /// The memory for signatures that are made while clients wait, in octets.
    pub signatures_memory: u64,
    /// The memory of each cache, in octets.
    pub cache_sizes: Vec<(String, u64)>,
}

/// How packets are taken past the kernel's network stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Xdp {
    /// From which interfaces; none: not at all.
    pub interfaces: Vec<At<String>>,
    /// In which way.
    pub mode: XdpMode,
    /// What becomes of another program.
    pub existing: XdpExisting,
    /// Where another program has its map of sockets.
    pub map: Option<PathBuf>,
    /// On how many queues; `None`: on all.
    pub queues: Option<u32>,
    /// Entries of each ring, a power of two; `None`: what suits the card.
    pub ring: Option<u32>,
    /// Whether the way back is checked. A reload changes that.
    pub check_routes: bool,
    /// Whether frames are in huge pages.
    pub huge_pages: bool,
    /// Microseconds of busy polling.
    pub busy_poll: Option<u32>,
    /// Packets handled at a time then.
    pub busy_poll_budget: u32,
}

/// One address at which queries are taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// The address and port.
    pub at: At<SocketAddr>,
    /// What conditions call it.
    pub name: Option<At<String>>,
    /// What is spoken there.
    pub speaks: Vec<TransportWord>,
    /// Proxies that tell the client's address.
    pub proxy_protocol_from: Vec<Prefix>,
    /// Paths at which HTTP requests are answered.
    pub paths: Vec<String>,
    /// Proxies that tell the client's address in a header of HTTP.
    pub forwarded_from: Vec<Prefix>,
    /// Whether clients show certificates.
    pub client_certificates: Option<At<ClientCertificateWord>>,
}

/// An oblivious target that messages are carried to.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayTarget {
    /// Its name.
    pub host: At<String>,
    /// Its port.
    pub port: u16,
    /// Its address; looked up if `None`.
    pub dial: Option<IpAddr>,
    /// The authorities that may vouch for it.
    pub roots: At<TrustedRoots>,
}

/// A Unix socket where queries are taken.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalSocket {
    /// The file.
    pub path: At<PathBuf>,
    /// What comes over it.
    pub kind: LocalSocketWord,
    /// Its rights.
    pub mode: u32,
    /// Its owner, by name or number; `None`: the user that starts the server.
    pub owner: Option<String>,
    /// Its group, by name or number.
    pub group: Option<String>,
    /// What conditions call it.
    pub name: Option<At<String>>,
}

/// Who the server is over TLS, and whom it lets in.
#[derive(Clone, Debug, PartialEq)]
pub struct Tls {
    /// Certificates; the first is for clients that name no server, or one that no certificate has.
    pub certificates: Vec<Certificate>,
    /// The oldest version that is spoken.
    pub min_version: TlsVersionWord,
    /// Whether clients of plain DNS are told of encrypted listeners.
    pub discovery: bool,
    /// Files with the certificates of those who sign for clients; if there are any, clients must have one, unless a listener
    /// says otherwise.
    pub client_ca: Vec<At<PathBuf>>,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// The file with the chain, the server's own first.
    pub chain: At<PathBuf>,
    /// The file with the private key; may be the same.
    pub key: At<PathBuf>,
}

/// A zone that is served.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneSettings {
    /// Its apex.
    pub name: At<NameBuf>,
    /// Its master file, or a file in JSON that has it; a zone that comes from other servers needs none.
    pub file: Option<At<PathBuf>>,
    /// The set of zones that it is in, if not the one that answers before any policy.
    pub set: Option<At<String>>,
    /// Names that are made from addresses.
    pub make: Vec<ZoneMaker>,
    /// Records of which the client decides.
    pub choose: Vec<ZoneChoice>,
    /// How the server signs it.
    pub sign: Option<Arc<SigningPolicy>>,
    /// Where it comes from.
    pub primaries: Vec<At<RemoteSettings>>,
    /// Who is told of new versions.
    pub notify: Vec<At<RemoteSettings>>,
    /// Who may take it over.
    pub transfer: Vec<At<GrantSettings>>,
    /// Who may say that there is a newer version, besides its primaries.
    pub notify_from: Vec<At<GrantSettings>>,
    /// Who may change it, and what of it.
    pub update: Vec<At<UpdateSettings>>,
    /// How serials grow.
    pub serial: SerialWord,
    /// Octets of history that are kept.
    pub journal_size: u64,
    /// The catalog that it belongs to.
    pub catalog: Option<At<NameBuf>>,
    /// What it is in that catalog.
    pub group: Option<String>,
    /// What the catalog is to this server.
    pub catalog_role: Option<CatalogWord>,
}

/// Names that a zone makes from addresses, or addresses from names.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneMaker {
    /// What stands before the address in the first label.
    pub prefix: String,
    /// The addresses.
    pub networks: Vec<Prefix>,
    /// What stands after the first label, in a reverse zone.
    pub origin: Option<NameBuf>,
    /// How long what is made may be kept.
    pub ttl: Duration,
}

/// The records of one type at one name, of which the client decides.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneChoice {
    /// The name.
    pub name: At<NameBuf>,
    /// The type.
    pub rtype: At<Rtype>,
    /// How long they may be kept.
    pub ttl: Duration,
    /// How it is checked whether their addresses work.
    pub check: Option<Arc<Check>>,
    /// What there is to choose from.
    pub alternatives: Vec<ZoneAlternative>,
}

/// Records that some clients get.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneAlternative {
    /// The data of each record, in wire form.
    pub data: Vec<Vec<u8>>,
    /// Clients that get nothing else; empty: those for whom there is nothing closer.
    pub clients: Vec<Prefix>,
    /// Sets of addresses, likewise.
    pub sets: Vec<At<String>>,
    /// Its share among those that are equally close.
    pub weight: u32,
}

/// A directory whose files are zones.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneDirectory {
    /// The directory.
    pub path: At<PathBuf>,
    /// Which files are read.
    pub format: ZoneFormat,
    /// Which records of files in JSON are taken: those of these contexts, and those without any.
    pub contexts: Option<Vec<String>>,
    /// Whether a record with an empty list of contexts is taken, if contexts are chosen.
    pub matches_empty: bool,
    /// The set of zones that they are in, if not the one that answers before any policy.
    pub set: Option<At<String>>,
    /// How the server signs them.
    pub sign: Option<Arc<SigningPolicy>>,
    /// What other servers may do with each of them, if anything; name and file are its own.
    pub common: Option<Arc<ZoneSettings>>,
}

words! {
    /// The files of a directory that are zones.
    ZoneFormat {
        /// Master files (`.zone`), and JSON (`.json`).
        Auto = "auto",
        /// Master files.
        Master = "master",
        /// JSON, as erldns has it.
        Json = "json",
    }
}

words! {
    /// What a check tries.
    CheckWord {
        /// To connect.
        Tcp = "tcp",
        /// To get a page.
        Http = "http",
        /// To get a page over TLS.
        Https = "https",
    }
}
words! {
    /// How absence is proved.
    DenialWord {
        /// By names.
        Nsec = "nsec",
        /// By hashes of names.
        Nsec3 = "nsec3",
        /// By a record made for each question.
        Compact = "compact",
    }
}
words! {
    /// What new keys sign with.
    SigningAlgorithmWord {
        /// RSA with SHA-256.
        RsaSha256 = "rsasha256",
        /// RSA with SHA-512.
        RsaSha512 = "rsasha512",
        /// ECDSA over P-256.
        EcdsaP256 = "ecdsap256sha256",
        /// ECDSA over P-384.
        EcdsaP384 = "ecdsap384sha384",
        /// Ed25519.
        Ed25519 = "ed25519",
        /// Ed448.
        Ed448 = "ed448",
    }
}

words! {
    /// When CDS and CDNSKEY are in a zone.
    CdsWord {
        /// Never.
        None = "none",
        /// While the parent should change its DS.
        Rollover = "rollover",
        /// Always.
        Always = "always",
        /// Always, and they ask for all DS to be removed.
        DeleteDnssec = "delete-dnssec",
    }
}

words! {
    /// The digests of CDS.
    CdsDigestWord {
        /// SHA-256.
        Sha256 = "sha256",
        /// SHA-384.
        Sha384 = "sha384",
    }
}

words! {
    /// The digest of a whole zone.
    ZonemdWord {
        /// None.
        None = "none",
        /// SHA-384.
        Sha384 = "sha384",
        /// SHA-512.
        Sha512 = "sha512",
    }
}

words! {
    /// How the serial of a signed zone goes on.
    SigningSerialWord {
        /// By one.
        Increment = "increment",
        /// Seconds since 1970.
        Unixtime = "unixtime",
        /// The date and two digits.
        Dateserial = "dateserial",
    }
}

/// How many transfers there may be at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfers {
    /// To other servers.
    pub outgoing_max: u16,
    /// To each of them.
    pub outgoing_client_max: u16,
    /// From other servers.
    pub incoming_max: u16,
    /// Octets of one from another server.
    pub octets_max: u64,
}

/// A key that signs messages.
#[derive(Clone, Debug, PartialEq)]
pub struct KeySettings {
    /// Its name.
    pub name: At<NameBuf>,
    /// The key.
    pub key: Arc<tsig::Key>,
}

/// Another server of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteSettings {
    /// Where it is.
    pub address: SocketAddr,
    /// Whether it is spoken to over TLS.
    pub over_tls: bool,
    /// What its certificate is for; its address if nothing is said.
    pub tls_name: Option<String>,
    /// What messages are signed with.
    pub key: Option<NameBuf>,
    /// Its keys, as hashes; its certificate counts if there are none.
    pub pins: Vec<[u8; 32]>,
    /// Authorities that sign its certificate; those that Mozilla trusts if nothing is said.
    pub roots: Option<PathBuf>,
    /// What is shown to it: a certificate and its key.
    pub certificate: Option<PathBuf>,
    /// The key of that certificate; in its own file if nothing is said.
    pub private_key: Option<PathBuf>,
}

/// Who may do something with a zone: everything that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantSettings {
    /// Who comes from there.
    pub from: Option<Vec<Prefix>>,
    /// Who signs with this key.
    pub key: Option<NameBuf>,
    /// Who comes over TLS.
    pub needs_tls: bool,
}

/// Who may change what of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateSettings {
    /// Who.
    pub grant: GrantSettings,
    /// At which names; everywhere if there are none.
    pub names: Vec<ReachSettings>,
    /// Records of which types; of all if there are none.
    pub types: Vec<Rtype>,
}

/// Names that may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReachSettings {
    /// This one.
    Name(NameBuf),
    /// All below this one.
    Below(NameBuf),
}

words! {
    /// What signatures are made with.
    AlgorithmWord {
        /// HMAC-MD5.
        Md5 = "hmac-md5",
        /// HMAC-SHA-1.
        Sha1 = "hmac-sha1",
        /// HMAC-SHA-224.
        Sha224 = "hmac-sha224",
        /// HMAC-SHA-256.
        Sha256 = "hmac-sha256",
        /// HMAC-SHA-384.
        Sha384 = "hmac-sha384",
        /// HMAC-SHA-512.
        Sha512 = "hmac-sha512",
    }
}

impl AlgorithmWord {
    /// Returns the algorithm.
    pub const fn algorithm(self) -> tsig::Algorithm {
        match self {
            Self::Md5 => tsig::Algorithm::Md5,
            Self::Sha1 => tsig::Algorithm::Sha1,
            Self::Sha224 => tsig::Algorithm::Sha224,
            Self::Sha256 => tsig::Algorithm::Sha256,
            Self::Sha384 => tsig::Algorithm::Sha384,
            Self::Sha512 => tsig::Algorithm::Sha512,
        }
    }
}

words! {
    /// How the serial of a new version is chosen.
    SerialWord {
        /// One more than before.
        Increment = "increment",
        /// The seconds since 1970.
        Unixtime = "unixtime",
        /// The date and two digits.
        Dateserial = "dateserial",
    }
}

words! {
    /// What a catalog zone is to this server.
    CatalogWord {
        /// It says which zones there are here.
        Consumer = "consumer",
        /// It is made here from the zones that name it.
        Producer = "producer",
    }
}

/// A set of records that actions can name.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordSet {
    /// Its name.
    pub name: At<String>,
    /// Records written in the configuration.
    pub records: Vec<Record>,
    /// Texts of the configuration that include files: these may change without it.
    pub including: Vec<IncludingText>,
    /// Files with more.
    pub files: Vec<At<PathBuf>>,
    /// What names without a dot at their end are below.
    pub origin: NameBuf,
}

/// A text with records that includes files.
#[derive(Clone, Debug, PartialEq)]
pub struct IncludingText {
    /// The text.
    pub text: At<String>,
    /// Where names of files begin that do not begin at the root.
    pub directory: PathBuf,
}

/// What the server says about itself; `None`: nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Presentation {
    /// `version.bind`, `version.server`.
    pub version: Option<String>,
    /// `hostname.bind`.
    pub hostname: Option<String>,
    /// `id.server`.
    pub identity: Option<String>,
}

/// A group of upstream servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name.
    pub name: At<String>,
    /// Its servers.
    pub servers: Vec<GroupServer>,
    /// How to choose among them.
    pub pick: Pick,
    /// How long an answer without records waits for one with.
    pub negative_wait: Duration,
    /// How long to try altogether.
    pub timeout: Duration,
    /// When to ask a second one.
    pub hedge: Hedge,
    /// Response codes after which the next one is asked.
    pub fallback_on: Vec<RcodeTerm>,
    /// Who knows the addresses of servers given by name.
    pub bootstrap: Vec<At<Bootstrap>>,
    /// What becomes of a client's EDNS client subnet.
    pub client_subnet: ClientSubnetUse,
    /// Whether its AD bit is believed.
    pub trust_ad: bool,
    /// Whether the letter case of names is made random.
    pub case_randomisation: bool,
}

/// A server of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupServer {
    /// What policies call it.
    pub name: Option<String>,
    /// What was written.
    pub server: At<Server>,
    /// Its share of the queries.
    pub weight: u16,
    /// The address to ask from.
    pub source: Option<IpAddr>,
    /// The interface to ask through.
    pub interface: Option<String>,
    /// The routing mark.
    pub mark: Option<u32>,
    /// The address to connect to, whatever the server's name stands for.
    pub dial: Option<At<IpAddr>>,
    /// The relay that passes oblivious messages on, an HTTPS server.
    pub relay: Option<At<Server>>,
    /// The SOCKS5 proxy that connects to it.
    pub proxy: Option<At<SocketAddr>>,
    /// The user and the password that the proxy is told.
    pub proxy_login: Option<(String, Secret)>,
    /// What the server must prove, where connections are encrypted.
    pub tls: ServerTls,
    /// Connections kept open, at least.
    pub connections_min: u8,
    /// Connections at most.
    pub connections_max: u8,
    /// How long a connection may have nothing to do.
    pub idle: Duration,
}

/// What a server of a group must prove.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerTls {
    /// The name in its certificate, if it is another than the one in its address.
    pub name: Option<At<String>>,
    /// The keys that it may have, as SHA-256 of their SubjectPublicKeyInfo; if there are any, only they count.
    pub pins: Vec<[u8; 32]>,
    /// The authorities that are trusted.
    pub roots: At<TrustedRoots>,
    /// Whether it must prove anything.
    pub verify: bool,
    /// Whether queries may leave before it has answered (TLS 1.3 early data).
    pub early_data: bool,
}

/// Authorities whose certificates are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustedRoots {
    /// Mozilla's, as of when this program was built.
    Mozilla,
    /// Those in this file (PEM).
    File(PathBuf),
}

/// A response code, or all that are no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RcodeTerm {
    /// All but those that are answers.
    Unusable,
    /// This one.
    One(Rcode),
}

/// An upstream server as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// The servers of `resolv.conf`.
    System,
    /// One server.
    One {
        /// What carries the queries.
        scheme: Scheme,
        /// Where it is.
        host: Host,
        /// The name in its certificate, where it stands after `#`.
        tls_name: Option<String>,
        /// The path of its URL; empty where there are none.
        path: String,
        /// What its stamp says besides, if it was given as one.
        stamp: Option<Box<Stamp>>,
    },
}

/// What only a DNS stamp says of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The address to connect to.
    pub dial: Option<IpAddr>,
    /// SHA-256 of what is signed (TBSCertificate) of certificates of which one must vouch for the server.
    pub certificates: Vec<[u8; 32]>,
    /// Whose resolver it must be, for DNSCrypt: the provider's name and key.
    pub provider: Option<(NameBuf, [u8; 32])>,
}

/// What carries queries to an upstream server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// UDP, and TCP for what does not fit.
    Udp,
    /// TCP.
    Tcp,
    /// TLS over TCP.
    Tls,
    /// HTTP/2 over TLS.
    Https,
    /// QUIC.
    Quic,
    /// HTTP/3 over QUIC.
    Https3,
    /// DNSCrypt; only stamps say so.
    Dnscrypt,
    /// Oblivious messages over HTTP/2, perhaps through a relay.
    Odoh,
}

impl Scheme {
    /// Returns the scheme that a URL begins with.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "udp" => Some(Self::Udp),
            "tcp" => Some(Self::Tcp),
            "tls" | "dot" => Some(Self::Tls),
            "https" | "doh" => Some(Self::Https),
            "quic" | "doq" => Some(Self::Quic),
            "h3" => Some(Self::Https3),
            "odoh" => Some(Self::Odoh),
            _ => None,
        }
    }

    /// Returns the port if none is written.
    pub const fn port(self) -> u16 {
        match self {
            Self::Udp | Self::Tcp => 53,
            Self::Tls | Self::Quic => 853,
            Self::Https | Self::Https3 | Self::Dnscrypt | Self::Odoh => 443,
        }
    }

    /// Returns whether the server must prove who it is by a certificate of TLS.
    pub const fn is_secured(self) -> bool {
        match self {
            Self::Udp | Self::Tcp | Self::Dnscrypt => false,
            Self::Tls | Self::Https | Self::Quic | Self::Https3 | Self::Odoh => true,
        }
    }

    /// Returns the path if none is written; `None` where there are no paths.
    pub const fn path(self) -> Option<&'static str> {
        match self {
            Self::Udp | Self::Tcp | Self::Tls | Self::Quic | Self::Dnscrypt => None,
            // RFC 8484 leaves the path to the server; this is what everybody chose.
            Self::Https | Self::Https3 | Self::Odoh => Some("/dns-query"),
        }
    }
}

/// Where an upstream server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// At an address.
    Address(SocketAddr),
    /// At the addresses of a name.
    Name {
        /// The name.
        name: NameBuf,
        /// The port.
        port: u16,
    },
}

/// Who is asked for the addresses of upstream servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bootstrap {
    /// The servers of `resolv.conf`.
    System,
    /// A server.
    Address(SocketAddr),
}

/// How to choose among servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The first that works.
    Ordered,
    /// The one with the shortest round trip.
    Fastest,
    /// Each in turn.
    Balanced,
    /// This many at once.
    Race(u8),
    /// This many at once; an answer without records waits for one with.
    PreferPositive(u8),
    /// The answer that some of several agree on.
    Consensus {
        /// How many must agree.
        agreeing: u8,
        /// How many are asked.
        of: u8,
    },
}

impl Pick {
    /// Returns how many servers are asked at once.
    pub const fn width(self) -> u8 {
        match self {
            Self::Ordered | Self::Fastest | Self::Balanced => 1,
            Self::Race(width) | Self::PreferPositive(width) | Self::Consensus { of: width, .. } => width,
        }
    }
}

/// When to ask a second server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hedge {
    /// When the first takes longer than it usually does.
    Auto,
    /// Only when the first has failed.
    Off,
    /// After this time.
    After(Duration),
}

/// A cache.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheSettings {
    /// Its name.
    pub name: At<String>,
    /// Its memory, in octets.
    pub size: u64,
    /// Answers are kept at least this long.
    pub min_ttl: Duration,
    /// Answers are kept at most this long.
    pub max_ttl: Duration,
    /// Negative answers are kept at most this long.
    pub max_negative_ttl: Duration,
    /// How long a failure is remembered.
    pub failure_ttl: Duration,
    /// How long an answer may be used after its end.
    pub stale: Option<Duration>,
    /// How long a client waits when a stale answer is at hand.
    pub stale_client_timeout: Duration,
    /// The TTL in stale answers.
    pub stale_ttl: Duration,
    /// The part of an answer's time, in percent, in which asking for it renews it.
    pub prefetch: Option<u8>,
    /// Where its content is kept over restarts.
    pub dump_file: Option<PathBuf>,
    /// How often it is written in between.
    pub dump_every: Option<Duration>,
}

/// Hosts files.
#[derive(Clone, Debug, PartialEq)]
pub struct Hosts {
    /// Whether the system's own is one.
    pub system: bool,
    /// The others.
    pub files: Vec<At<PathBuf>>,
    /// The TTL of their names and of local names.
    pub ttl: Duration,
}

/// A name and its addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalName {
    /// The name.
    pub name: At<NameBuf>,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

/// How what ALIAS records lead to is resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasSettings {
    /// Servers that are asked.
    pub resolvers: Vec<SocketAddr>,
    /// For how long addresses are used that could not be asked for again.
    pub stale: Duration,
    /// Targets that are looked after.
    pub targets: u32,
}

/// What protects the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Queries of one client prefix.
    pub rate: Rate,
    /// Queries that may wait for upstreams at once.
    pub waiting: u32,
    /// Signatures that may be made in a second while clients wait.
    pub signatures_per_second: u32,
}

/// Queries that one client prefix may send.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// In the long run; `None`: any number.
    pub per_second: Option<u32>,
    /// At once.
    pub burst: u32,
    /// Every how many over the limit get a truncated reply; zero: none.
    pub slip: u32,
    /// Leading bits of an IPv4 address that share one allowance.
    pub ipv4_prefix: u8,
    /// Leading bits of an IPv6 address that share one allowance.
    pub ipv6_prefix: u8,
    /// Clients without a limit.
    pub exempt: Vec<Prefix>,
    /// How long those are banned who keep on; `None`: not at all.
    pub ban_for: Option<Duration>,
    /// After how many queries over the limit.
    pub ban_after: u32,
}

/// Limits for connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// In all.
    pub connections: u32,
    /// Of one address.
    pub connections_per_client: u32,
    /// How long one may be quiet.
    pub idle_timeout: Duration,
    /// How long after connecting the first query must be there.
    pub first_query_timeout: Duration,
    /// Queries of one connection that may wait at once.
    pub pipeline: u32,
    /// How old one may become.
    pub age: Option<Duration>,
}

/// Limits of TLS handshakes, which cost more than anything else that a stranger can ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshakes {
    /// Of all clients together, in a second.
    pub handshakes_per_second: u32,
    /// Of one client, in a second.
    pub handshakes_per_client: u32,
    /// How long one may take.
    pub handshake_timeout: Duration,
}

/// DNS cookies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cookies {
    /// Whether they are used.
    pub enabled: bool,
    /// The key; `None`: a random one.
    pub secret: Option<Secret>,
    /// Another key whose cookies are accepted.
    pub other_secret: Option<Secret>,
}

/// A set of names and addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct Set {
    /// Its name.
    pub name: At<String>,
    /// Names.
    pub names: Vec<NamePattern>,
    /// Addresses: the first and the last of each range.
    pub addresses: Vec<(IpAddr, IpAddr)>,
    /// Lists to read.
    pub lists: Vec<SetList>,
    /// Sets whose content it holds too.
    pub include: Vec<At<String>>,
    /// Sets whose content it does not hold.
    pub except: Vec<At<String>>,
    /// What clients are called in lists, and where they are.
    pub tags: Vec<(At<String>, Vec<Prefix>)>,
    /// What it holds is changed while the server runs.
    pub dynamic: Option<DynamicSet>,
}

/// Sets that are followed from one to the next; a circle of them is reported elsewhere.
const SETS_DEPTH_MAX: usize = 64;

impl Set {
    /// Returns whether a name can be in the set, one of `all`.
    pub fn may_hold_names(&self, all: &[Set]) -> bool {
        self.may_hold(all, SETS_DEPTH_MAX, &|set| {
            !set.names.is_empty()
                || set.lists.iter().any(|list| list.format.has_names())
                || set.dynamic.as_ref().is_some_and(|dynamic| dynamic.holds == DynamicKind::Names)
        })
    }

    /// Returns whether an address can be in the set, one of `all`.
    pub fn may_hold_addresses(&self, all: &[Set]) -> bool {
        self.may_hold(all, SETS_DEPTH_MAX, &|set| {
            !set.addresses.is_empty()
                || set.lists.iter().any(|list| list.format.has_addresses())
                || set.dynamic.as_ref().is_some_and(|dynamic| dynamic.holds == DynamicKind::Addresses)
        })
    }

    fn may_hold(&self, all: &[Set], depth: usize, holds: &dyn Fn(&Set) -> bool) -> bool {
        let part = |name: &At<String>| all.iter().find(|set| set.name.value == name.value);
        holds(self)
            || (depth > 0
                && self.include.iter().filter_map(part).any(|set| set.may_hold(all, depth - 1, holds)))
    }
}

/// A list that a set is read from.
#[derive(Clone, Debug, PartialEq)]
pub struct SetList {
    /// Where it is named.
    pub span: Span,
    /// How it is written.
    pub format: ListFormat,
    /// Where it is.
    pub place: ListPlace,
    /// Which parts of it count; all if there are none.
    pub select: Vec<At<String>>,
    /// How often a URL is asked for a newer one.
    pub refresh: Option<Duration>,
    /// How long fetching it may take.
    pub timeout: Duration,
    /// Octets it may have.
    pub octets_max: u64,
}

/// Where a list is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListPlace {
    /// In a file.
    File(PathBuf),
    /// On a web server.
    Url(String),
    /// In the configuration: its lines.
    Here(String),
}

words! {
    /// How a list is written.
    ListFormat {
        /// A rule on names on each line: `domain:`, `full:`, `keyword:`, `regexp:`.
        Names = "names",
        /// An address, a prefix or a range on each line.
        Addresses = "addresses",
        /// The `geosite.dat` of v2ray.
        Geosite = "geosite",
        /// The `geoip.dat` of v2ray.
        Geoip = "geoip",
        /// The syntax of AdGuard and Adblock Plus.
        Adguard = "adguard",
        /// A hosts file: the names in it.
        Hosts = "hosts",
        /// A dnsmasq configuration: the names in `address=`, `server=` and `local=`.
        Dnsmasq = "dnsmasq",
        /// A response policy zone.
        Rpz = "rpz",
        /// A MaxMind database of countries or networks.
        Mmdb = "mmdb",
    }
}

impl ListFormat {
    /// Returns whether lists of this format say of names that they hold them.
    pub const fn has_names(self) -> bool {
        !matches!(self, Self::Addresses | Self::Geoip | Self::Mmdb)
    }

    /// Returns whether lists of this format hold addresses.
    pub const fn has_addresses(self) -> bool {
        matches!(self, Self::Addresses | Self::Geoip | Self::Mmdb | Self::Rpz)
    }

    /// Returns whether lists of this format have exceptions, or say what is to become of a query.
    pub const fn has_treatments(self) -> bool {
        matches!(self, Self::Adguard | Self::Rpz)
    }

    /// Returns whether parts of such a list can be selected.
    pub const fn has_parts(self) -> bool {
        matches!(self, Self::Geosite | Self::Geoip | Self::Mmdb)
    }
}

/// What a set holds that is changed while the server runs.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicSet {
    /// Whether it is names or addresses.
    pub holds: DynamicKind,
    /// How many at most.
    pub limit: u32,
    /// How long each stays; for ever if there is none.
    pub ttl: Option<Duration>,
    /// Whether it is kept over restarts.
    pub persist: bool,
}

words! {
    /// What a dynamic set holds.
    DynamicKind {
        /// Names, each with those below it.
        Names = "names",
        /// Addresses and prefixes.
        Addresses = "addresses",
    }
}

/// A rule that names fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamePattern {
    /// A name, what lies below it, or both.
    Name(NameBuf, Reach),
    /// A part of a name.
    Keyword(String),
    /// A regular expression that a part of a name fits.
    Regex(String),
}

/// A policy: rules in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Its name.
    pub name: At<String>,
    /// Its rules.
    pub rules: Vec<Rule>,
}

/// A changed setting that a running server does not take up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeedsRestart {
    /// The setting, such as `cache.main.size`.
    pub path: String,
    /// Its value in the running server.
    pub old: String,
    /// Its value in the file.
    pub new: String,
}

impl fmt::Display for NeedsRestart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, old, new } = self;
        write!(f, "{path}: {old} -> {new} takes a restart")
    }
}

/// Returns what of `new` a server that was started with `old` does not take up.
pub fn diff(old: &Startup, new: &Startup) -> Vec<NeedsRestart> {
    let mut found = Vec::new();
    let (old_values, new_values) = (old.values(), new.values());
    for (path, new) in &new_values {
        // A cache that is new is made at once; one that is gone is left to itself.
        let old = old_values.iter().find(|(other, _)| other == path).map(|(_, old)| old);
        if let Some(old) = old.filter(|old| *old != new) {
            found.push(NeedsRestart { path: path.clone(), old: old.clone(), new: new.clone() });
        }
    }
    found
}

impl Startup {
    /// Returns each setting and its value as text.
    fn values(&self) -> Vec<(String, String)> {
        let listener = |listener: &Listener| {
            let words: Vec<&str> = listener.speaks.iter().map(|word| word.word()).collect();
            let transports = match words.join(", ") {
                usual if usual == "udp, tcp" => String::new(),
                other => format!(" ({other})"),
            };
            let proxies: Vec<String> = listener.proxy_protocol_from.iter().map(ToString::to_string).collect();
            let proxies =
                if proxies.is_empty() { String::new() } else { format!(" (proxies {})", proxies.join(", ")) };
            let paths = match listener.paths.join(", ") {
                usual if usual == listen::ListenerPlan::PATH => String::new(),
                other => format!(" (paths {other})"),
            };
            let forwarders: Vec<String> = listener.forwarded_from.iter().map(ToString::to_string).collect();
            let forwarders = if forwarders.is_empty() {
                String::new()
            } else {
                format!(" (forwarded from {})", forwarders.join(", "))
            };
            let certificates = listener.client_certificates.as_ref();
            let certificates = certificates
                .map_or_else(String::new, |at| format!(" (client certificates {})", at.value.word()));
            format!("{}{transports}{proxies}{paths}{forwarders}{certificates}", listener.at.value)
        };
        let listen = self.listen.as_ref().map_or_else(
            || "auto".to_owned(),
            |listen| format!("[{}]", listen.iter().map(listener).collect::<Vec<_>>().join(", ")),
        );
        let local_sockets: Vec<String> = self
            .local_sockets
            .iter()
            .map(|socket| {
                let whose = |word: &str, who: &Option<String>| {
                    who.as_ref().map_or_else(String::new, |who| format!(" ({word} {who})"))
                };
                let (owner, group) = (whose("owner", &socket.owner), whose("group", &socket.group));
                let kind = socket.kind.word();
                format!("{} ({kind}, {:04o}){owner}{group}", socket.path.value.display(), socket.mode)
            })
            .collect();
        let auto = || "auto".to_owned();
        let none = || "none".to_owned();
        let metrics: Vec<String> = self.metrics.iter().map(ToString::to_string).collect();
        let xdp_interfaces: Vec<&str> = self.xdp.interfaces.iter().map(|at| at.value.as_str()).collect();
        let mut values = vec![
            ("server.workers".to_owned(), self.workers.map_or_else(auto, |workers| workers.to_string())),
            ("server.stay-awake".to_owned(), self.stay_awake.to_string()),
            ("server.user".to_owned(), self.user.clone().unwrap_or_else(auto)),
            ("server.state-directory".to_owned(), self.state_directory.display().to_string()),
            ("server.shutdown-timeout".to_owned(), duration_text(self.shutdown_timeout)),
            ("limits.signatures.memory".to_owned(), self.signatures_memory.to_string()),
            ("listen".to_owned(), listen),
            ("oblivious.target".to_owned(), self.oblivious_target.is_some().to_string()),
            ("oblivious.key-lifetime".to_owned(), self.oblivious_target.map_or_else(none, duration_text)),
            ("local-sockets".to_owned(), format!("[{}]", local_sockets.join(", "))),
            ("xdp.interfaces".to_owned(), format!("[{}]", xdp_interfaces.join(", "))),
            ("xdp.mode".to_owned(), self.xdp.mode.word().to_owned()),
            ("xdp.existing".to_owned(), self.xdp.existing.word().to_owned()),
            ("xdp.map".to_owned(), self.xdp.map.as_ref().map_or_else(none, |map| map.display().to_string())),
            (
                "xdp.queues".to_owned(),
                self.xdp.queues.map_or_else(|| "all".to_owned(), |queues| queues.to_string()),
            ),
            ("xdp.ring".to_owned(), self.xdp.ring.map_or_else(auto, |entries| entries.to_string())),
            ("xdp.huge-pages".to_owned(), self.xdp.huge_pages.to_string()),
            (
                "xdp.busy-poll".to_owned(),
                self.xdp.busy_poll.map_or_else(|| "off".to_owned(), |microseconds| microseconds.to_string()),
            ),
            ("xdp.busy-poll-budget".to_owned(), self.xdp.busy_poll_budget.to_string()),
            ("metrics.listen".to_owned(), format!("[{}]", metrics.join(", "))),
            ("log.format".to_owned(), self.log_format.word().to_owned()),
            ("limits.tcp.connections".to_owned(), self.tcp.connections.to_string()),
            ("limits.tcp.connections-per-client".to_owned(), self.tcp.connections_per_client.to_string()),
            ("limits.tcp.idle-timeout".to_owned(), duration_text(self.tcp.idle_timeout)),
            ("limits.tcp.first-query-timeout".to_owned(), duration_text(self.tcp.first_query_timeout)),
            ("limits.tcp.age".to_owned(), self.tcp.age.map_or_else(|| "off".to_owned(), duration_text)),
            ("limits.tcp.pipeline".to_owned(), self.tcp.pipeline.to_string()),
            ("limits.tls.handshakes-per-second".to_owned(), self.tls.handshakes_per_second.to_string()),
            ("limits.tls.handshakes-per-client".to_owned(), self.tls.handshakes_per_client.to_string()),
            ("limits.tls.handshake-timeout".to_owned(), duration_text(self.tls.handshake_timeout)),
        ];
        values.extend(
            self.cache_sizes.iter().map(|(name, size)| (format!("cache.{name}.size"), size_text(*size))),
        );
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load_text;
    use crate::load::tests::Memory;
    use crate::schema;
    use std::path::Path;

    fn startup(text: &str) -> Startup {
        load_text(Path::new("x"), text, &Memory::default()).expect("no mistakes").settings.startup
    }

    fn check(old: &str, new: &str, expect: &[&str]) {
        let found: Vec<String> = diff(&startup(old), &startup(new)).iter().map(ToString::to_string).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn what_takes_a_restart_is_named() {
        check("", "", &[]);
        check("", "allow: any\nlog: {level: debug}\n", &[]);
        check(
            "cache: {main: {size: 32MiB}}\n",
            "cache: {main: {size: 1GiB}}\n",
            &["cache.main.size: 32MiB -> 1GiB takes a restart"],
        );
        check(
            "listen: 127.0.0.1\n",
            "listen: [{at: \"::1\", transport: udp}]\nserver: {workers: 3}\n",
            &[
                "server.workers: auto -> 3 takes a restart",
                "listen: [127.0.0.1:53] -> [[::1]:53 (udp)] takes a restart",
            ],
        );
        check(
            "",
            "limits: {tcp: {idle-timeout: 20s}}\n",
            &["limits.tcp.idle-timeout: 10s -> 20s takes a restart"],
        );
    }

    #[test]
    fn every_setting_that_takes_a_restart_is_compared() {
        let compared: Vec<String> = startup("").values().into_iter().map(|(path, _)| path).collect();
        for row in schema::ROWS.iter().filter(|row| row.apply == schema::Apply::Restart) {
            let path = row.path.replace(".*.", ".main.");
            let path = path.split("[]").next().unwrap_or("").to_owned();
            assert!(compared.contains(&path), "{path}");
        }
    }
}
