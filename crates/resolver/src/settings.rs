//! What a resolver is told to do, with defaults.

use std::net::{IpAddr, SocketAddr};

use cache::rrsets::Partition;
use dnssec::anchors::ROOT_DS;
use dnssec::proof::ITERATIONS_MAX;
use dnssec::{Algorithms, Skew};
use wire::{Name, Prefix, Rtype};

use crate::addresses::AddressPolicy;
use crate::budget::Limits;
use crate::heap_name::HeapName;
use crate::hints;
use crate::zone_rates::ZoneRateRules;

/// How much of a name the servers above its zone see (RFC 9156).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Minimisation {
    /// All of it.
    Off,
    /// No more than they need; servers that cannot handle that see all of it.
    #[default]
    Relaxed,
    /// No more than they need, even if a name is lost by it.
    Strict,
}

/// A server of the root, known by configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// Its name.
    pub name: HeapName,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

/// What is made of signatures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validation {
    /// Nothing: none are asked for.
    #[default]
    Off,
    /// Nothing, but they are asked for all the same, and passed on to who validates by himself.
    Relay,
    /// What is bogus is given to clients all the same, as such.
    Permissive,
    /// What is bogus is given to nobody who does not ask for it with CD.
    On,
}

impl Validation {
    /// Returns whether signatures are checked.
    pub const fn judges(self) -> bool {
        matches!(self, Self::Permissive | Self::On)
    }
}

/// When signatures have to be valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignatureTime {
    /// At present.
    #[default]
    Present,
    /// At this time, in seconds since 1970 modulo 2^32.
    At(u32),
    /// At no time: when they begin and end does not count.
    Any,
}

impl SignatureTime {
    /// Returns the time that signatures are held against, if any; the present one is given.
    pub const fn at(self, present: u32) -> Option<u32> {
        match self {
            Self::Present => Some(present),
            Self::At(time) => Some(time),
            Self::Any => None,
        }
    }

    /// Returns the same for what goes on in time whatever signatures do.
    pub(crate) const fn or(self, present: u32) -> u32 {
        match self {
            Self::At(time) => time,
            Self::Present | Self::Any => present,
        }
    }
}

/// What is trusted without a parent that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustAnchor {
    /// The zone.
    pub zone: HeapName,
    /// Data of DS records.
    pub ds: Vec<Box<[u8]>>,
    /// Data of DNSKEY records.
    pub keys: Vec<Box<[u8]>>,
}

impl TrustAnchor {
    /// Puts a DS or DNSKEY record of a zone with the others of that zone.
    pub fn add(anchors: &mut Vec<Self>, zone: Name<'_>, rtype: Rtype, rdata: Vec<u8>) {
        let anchor = Self::of(anchors, &HeapName::new(zone));
        let list = if rtype == Rtype::DS { &mut anchor.ds } else { &mut anchor.keys };
        list.push(rdata.into());
    }

    /// Puts further anchors to some.
    pub fn extend(anchors: &mut Vec<Self>, more: &[Self]) {
        for other in more {
            let anchor = Self::of(anchors, &other.zone);
            anchor.ds.extend_from_slice(&other.ds);
            anchor.keys.extend_from_slice(&other.keys);
        }
    }

    fn of<'a>(anchors: &'a mut Vec<Self>, zone: &HeapName) -> &'a mut Self {
        let at = anchors.iter().position(|anchor| anchor.zone == *zone).unwrap_or_else(|| {
            anchors.push(Self { zone: zone.clone(), ds: Vec::new(), keys: Vec::new() });
            anchors.len() - 1
        });
        &mut anchors[at]
    }
}

/// A zone that counts as unsigned whatever it says, with all that is below it (RFC 7646).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NegativeAnchor {
    /// The zone.
    pub zone: HeapName,
    /// When that ends, in seconds since 1970; `None` if it does not.
    pub ends_at: Option<u64>,
}

/// What is trusted, and how signatures are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// Zones that are trusted. Without one above it, a name is indeterminate.
    pub anchors: Vec<TrustAnchor>,
    /// Zones below these that are not.
    pub negative: Vec<NegativeAnchor>,
    /// Algorithms that count; what is signed only with others is insecure.
    pub algorithms: Algorithms,
    /// Iterations of NSEC3 above which proofs are not looked at, and the answer is insecure (RFC
    /// 9276 §3.2).
    pub iterations_max: u16,
    /// When signatures have to be valid.
    pub time: SignatureTime,
    /// How far clocks of signers may be wrong.
    pub skew: Skew,
    /// Signatures that are checked in one call before the caller can go on with other work; three
    /// of P-256 take some 250 us. The RRset that is looked at is finished: eight more at most.
    pub checks_per_run: u32,
    /// Whether clients may find out which keys of the root are trusted (RFC 8509).
    pub root_key_sentinel: bool,
    /// Whether a zone with a trust anchor is bogus while its DNSKEY RRset is not to be had or not
    /// proved; else it is insecure.
    pub requires_anchor_keys: bool,
    /// Replies of one zone's servers that are bogus before the answer is.
    pub bogus_replies_max: u8,
}

impl Default for Trust {
    /// Returns the root's keys, and what Gannet does by default.
    fn default() -> Self {
        let root = TrustAnchor {
            zone: HeapName::new(Name::ROOT),
            ds: ROOT_DS.iter().map(|&ds| ds.into()).collect(),
            keys: Vec::new(),
        };
        Self {
            anchors: vec![root],
            negative: Vec::new(),
            algorithms: Algorithms::SUPPORTED,
            iterations_max: ITERATIONS_MAX,
            time: SignatureTime::Present,
            skew: Skew::default(),
            checks_per_run: 3,
            root_key_sentinel: true,
            requires_anchor_keys: true,
            bogus_replies_max: 3,
        }
    }
}

impl Trust {
    /// Returns the trust anchor that is closest to a name, of those at and above it.
    pub(crate) fn anchor_of(&self, name: Name<'_>) -> Option<&TrustAnchor> {
        let anchors = self.anchors.iter().filter(|anchor| name.is_at_or_below(anchor.zone.as_name()));
        anchors.max_by_key(|anchor| anchor.zone.as_name().label_count())
    }
}

/// How names of a zone and of those below it are found, if not from the root down.
///
/// Of several routes that a name could go by, it goes by the one whose zone is closest to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The zone.
    pub zone: HeapName,
    /// Whom to ask.
    pub way: Way,
    /// Whether names go by the next route above, or from the root down, if these servers fail.
    pub first: bool,
    /// Whether what they answer is kept in the tables.
    pub keeps: bool,
}

/// Whom a route leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// To servers that are asked as those of the zone: a stub zone.
    Stub(Stub),
    /// To servers that find answers themselves, for names of any zone: a forward zone.
    Forward(Forwarders),
    /// To nobody: the zone is one of this server's, and is read.
    Own,
}

/// Names servers that find answers themselves. Who they are, and which of them is asked, is known
/// to the caller alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Forwarders(pub u16);

/// How a second-level cache is used: one behind the tables, that others may write to as well. Where
/// it is, and what an entry is made of, is known to the caller alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondLevel {
    /// Whether what servers answer is stored there.
    pub stores: bool,
    /// Whether it is asked although the client can have an expired answer.
    pub when_stale: bool,
}

/// The servers of a stub zone. Their addresses may be private ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stub {
    /// Addresses of servers.
    pub addresses: Vec<SocketAddr>,
    /// Names of further servers, whose addresses are looked for, and their ports.
    pub hosts: Vec<(HeapName, u16)>,
    /// Whether these servers are only asked which ones the zone has, and those are used.
    pub primes: bool,
    /// Whether they are asked over TCP alone.
    pub tcp_only: bool,
}

/// Which encryption is used with servers that have it, whoever they are (RFC 9539).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opportunistic {
    /// TLS.
    pub tls: bool,
    /// QUIC.
    pub quic: bool,
    /// The port of both.
    pub port: u16,
}

impl Default for Opportunistic {
    /// Returns that nothing is encrypted.
    fn default() -> Self {
        Self { tls: false, quic: false, port: 853 }
    }
}

/// Which servers hear of clients' subnets (RFC 7871).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subnets {
    /// Servers of these zones, and of those below them.
    pub zones: Vec<HeapName>,
    /// Servers with these addresses.
    pub servers: Vec<Prefix>,
    /// These forwarders.
    pub forwarders: Vec<Forwarders>,
}

impl Subnets {
    /// Returns whether nobody hears of any.
    pub const fn is_empty(&self) -> bool {
        self.zones.is_empty() && self.servers.is_empty() && self.forwarders.is_empty()
    }

    /// Returns whether servers hear of the subnet because of the name that is asked for.
    pub(crate) fn has_zone_of(&self, name: Name<'_>) -> bool {
        self.zones.iter().any(|zone| name.is_at_or_below(zone.as_name()))
    }

    /// Returns whether forwarders hear of it, because of the name that they are asked for or
    /// because of who they are.
    pub(crate) fn has_forwarders(&self, forwarders: Forwarders, name: Name<'_>) -> bool {
        self.forwarders.contains(&forwarders) || self.has_zone_of(name)
    }

    /// Returns whether a server hears of it because of its address.
    pub(crate) fn has_server(&self, address: IpAddr) -> bool {
        self.servers.iter().any(|prefix| prefix.contains(address))
    }
}

/// What a resolver is told to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What is made of signatures.
    pub validation: Validation,
    /// What is trusted, and how signatures are checked.
    pub trust: Trust,
    /// Whether what was proved for other names answers a question too (RFC 8198).
    pub aggressive_nsec: bool,
    /// What one client's question may cost.
    pub limits: Limits,
    /// How much of a name the servers above its zone see.
    pub minimisation: Minimisation,
    /// Questions with less than the full name for one question (RFC 9156 §2.3: its
    /// MAX_MINIMISE_COUNT); after that the full name is sent.
    pub minimised_max: u8,
    /// Whether the servers of the name's own zone see it with the type A first, unless it is asked
    /// for one that is common to all names.
    pub hides_type: bool,
    /// Whether a DNAME that nobody signed is asked for again over TCP, unless it is hard to forge.
    pub checks_dnames: bool,
    /// Which addresses of servers are asked.
    pub addresses: AddressPolicy,
    /// Name servers of a zone that are used; one that names more does not want more.
    pub servers_max: usize,
    /// Which servers hear of clients' subnets.
    pub subnets: Subnets,
    /// Servers of the root, to begin with.
    pub hints: Vec<Hint>,
    /// Whether the root's servers are asked which they are (RFC 9609).
    pub priming: bool,
    /// Zones that are not found from the root down. Of several ways to one zone, each is tried when
    /// the one before it has failed.
    pub routes: Vec<Route>,
    /// What is asked before any server, if there is one.
    pub second_level: Option<SecondLevel>,
    /// Whether zones that this server answers everybody from are read in memory, although no route
    /// names them.
    pub reads_own_zones: bool,
    /// Port of the servers of zones.
    pub port: u16,
    /// Whether queries have cookies (RFC 7873).
    pub cookies: bool,
    /// Which encryption is used with servers that have it.
    pub opportunistic: Opportunistic,
    /// UDP payload that is announced in EDNS.
    pub udp_octets: u16,
    /// Whether servers are asked over TCP alone.
    pub tcp_only: bool,
    /// Whether a server that answers without AA is taken for one that does not serve the zone; if
    /// not, only one that offers recursion besides is.
    pub requires_authority: bool,
    /// Whether clients get what they asked for and nothing besides; else also the name servers that
    /// stand beside it in the reply.
    pub minimal_responses: bool,
    /// Whether clients get no addresses besides, of hosts that MX and SRV records name.
    pub minimal_additional: bool,
    /// Whether clients get no name servers besides what was made from a wildcard.
    pub minimal_expansions: bool,
    /// Whether clients that are told that there is no data or no name get no name servers besides.
    pub minimal_denials: bool,
    /// Whether a delegation lasts no longer than the zone's own NS records do, as they come along
    /// with its answers.
    pub own_ns_ttl: bool,
    /// Whether a forwarder that refers to other servers says that there is no data; else another
    /// one is asked.
    pub takes_referrals: bool,
    /// Whether SVCB and HTTPS records come with what is known of their targets (RFC 9460 §4.2).
    pub service_addresses: bool,
    /// Seconds that data is kept at most.
    pub ttl_max: u32,
    /// Seconds that negative answers are kept at most (RFC 2308 §5).
    pub negative_ttl_max: u32,
    /// Whether agents that zones name are told of names without an answer (RFC 9567).
    pub error_reports: bool,
    /// Seconds for which a question that had no answer is not asked again, at most; one at first,
    /// and twice as many each time (RFC 9520 §3.2).
    pub failure_seconds_max: u32,
    /// Seconds for which a server that does not serve a zone is asked for it last.
    pub lame_seconds: u32,
    /// Milliseconds after which another server is asked beside one of which nothing is known.
    pub patience_unknown_ms: u32,
    /// Milliseconds that a server has to answer in any case before another one is asked.
    pub patience_ms_min: u32,
    /// Milliseconds after which another server is asked in any case.
    pub patience_ms_max: u32,
    /// Times that one address is asked one question.
    pub attempts: u8,
    /// How often the servers of one zone are asked.
    pub zone_rates: ZoneRateRules,
    /// Zones whose servers see letter case as it is kept here, with those below them.
    pub exact_case: Vec<HeapName>,
    /// Whether clients get validated answers although they set CD.
    pub ignores_cd: bool,
    /// Labels of the highest zones whose name servers policies look at.
    pub ns_labels_min: u8,
    /// Seconds for which an answer that is bogus is not asked for again, at most; five at first.
    pub bogus_seconds_max: u32,
    /// What of the tables is this resolver's.
    pub partition: Partition,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            validation: Validation::default(),
            trust: Trust::default(),
            aggressive_nsec: true,
            limits: Limits::default(),
            minimisation: Minimisation::default(),
            minimised_max: 10,
            hides_type: false,
            checks_dnames: true,
            addresses: AddressPolicy::default(),
            servers_max: 13,
            subnets: Subnets::default(),
            hints: hints::root(),
            priming: true,
            routes: Vec::new(),
            second_level: None,
            reads_own_zones: true,
            port: 53,
            cookies: true,
            opportunistic: Opportunistic::default(),
            // RFC 9715 §3: what passes nearly everywhere without fragments.
            udp_octets: 1232,
            tcp_only: false,
            requires_authority: true,
            minimal_responses: true,
            minimal_additional: true,
            minimal_expansions: true,
            minimal_denials: true,
            own_ns_ttl: false,
            takes_referrals: false,
            service_addresses: true,
            ttl_max: 86_400,
            negative_ttl_max: 3600,
            error_reports: false,
            failure_seconds_max: 30,
            lame_seconds: 900,
            patience_unknown_ms: 150,
            patience_ms_min: 30,
            patience_ms_max: 2000,
            attempts: 4,
            zone_rates: ZoneRateRules { factor: 10, ..ZoneRateRules::default() },
            exact_case: Vec::new(),
            ignores_cd: false,
            ns_labels_min: 2,
            bogus_seconds_max: 60,
            partition: Partition::default(),
        }
    }
}
