//! The configuration as written: checked, complete with defaults, not yet resolved. Each group of
//! settings has a module.
//!
//! Names of groups, caches, sets and policies are still names here; [`compile`](crate::compile)
//! resolves them.

mod cache;
mod certificates;
mod control;
mod dnstap;
mod limits;
mod listeners;
mod local;
mod log;
mod oidc;
mod records;
mod resolvers;
mod sets;
mod signing;
mod sockets;
mod split;
mod startup;
mod transfers;
mod upstreams;
mod xdp;
mod zones;

use std::net::SocketAddr;
use std::sync::Arc;

use plan::checks::Check;
use plan::jobs::{AuditSink, Recorder, Webhook};

use crate::jobs::{EffectSettings, ScheduleSettings};

pub use cache::CacheSettings;
pub use certificates::OrderedCertificate;
pub use control::{
    ApiSettings, AuditKey, ChangesAllowed, ControlIdentity, ControlPlace, UnboundChannel, UnboundStatistics,
};
use diagnostic::At;
pub use dnstap::{DnstapSettings, ReceiverPlace};
pub use limits::{Cookies, Handshakes, Limits, Rate, Tcp, WaitNetwork};
pub use listeners::{Certificate, Dnscrypt, ListenDevice, Listener, LocalSocket, RelayTarget, Tls};
pub use local::{Hosts, LocalName};
pub use log::{Log, LogPlace};
pub use oidc::OidcSettings;
use policy::{NamedCondition, Policy, View};
pub use records::{IncludingText, RecordSet};
pub use resolvers::{LocalRootSettings, ResolverSettings, RouteSettings, RouteWay};
pub use schema::{
    AlgorithmWord, CdsDigestWord, CdsWord, CheckWord, ClientSubnetUse, DeviceFamilyWord, LogFormat, LogLevel,
    LogTime, SerialWord, SigningAlgorithmWord, StayAwake, TlsVersionWord, VerifyWord, ZonemdWord,
};
pub use sets::{DynamicKind, DynamicSet, ListPlace, Set, SetList};
pub use signing::SigningSettings;
pub use sockets::{OutgoingSettings, Sockets};
pub use split::Split;
pub use startup::{ApiListen, NeedsRestart, Startup, diff};
pub use transfers::{GrantSettings, KeySettings, ReachSettings, RemoteSettings, UpdateSettings};
pub use upstreams::{Bootstrap, Group, GroupServer, Host, RcodeTerm, Server, ServerTls, Stamp, TrustedRoots};
use wire::Prefix;
pub use xdp::Xdp;
pub use zones::{AliasSettings, ZoneAlternative, ZoneChoice, ZoneDirectory, ZoneMaker, ZoneSettings};

/// Everything that can be set.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// What is fixed until the server is started again.
    pub startup: Startup,
    /// What the server says about itself.
    pub presentation: Presentation,
    /// Clients that may ask for anything; others only for what is in the zones.
    pub allow: At<Vec<Prefix>>,
    /// Clients that hear nothing.
    pub deny: Vec<Prefix>,
    /// A set of more of them, changed while the server runs.
    pub deny_set: Option<At<String>>,
    /// Peers that are believed when they say for whom they ask.
    pub trusted_peers: Vec<Prefix>,
    /// DNS servers that know the addresses of web servers; empty: the machine is asked.
    pub server_resolvers: Vec<SocketAddr>,
    /// Sockets to other servers.
    pub outgoing: OutgoingSettings,
    /// Upstream groups, in the order of the file.
    pub upstreams: Vec<Group>,
    /// Resolvers, in the order of the file; the default one is always there.
    pub resolvers: Vec<ResolverSettings>,
    /// Caches, in the order of the file.
    pub caches: Vec<CacheSettings>,
    /// Hosts files.
    pub hosts: Hosts,
    /// Names and their addresses.
    pub local: Arc<Vec<LocalName>>,
    /// Zones that are served, in the order of the file.
    pub zones: Vec<ZoneSettings>,
    /// Whether there are zones, or may be, that were added while the server ran; no file says so.
    pub has_added_zones: bool,
    /// How it is checked whether what records lead to works, in the order of the file.
    pub checks: Vec<Arc<Check>>,
    /// Sets that templates of zones name, for zones that there may be.
    pub template_sets: Vec<At<String>>,
    /// How the server signs zones, in the order of the file.
    pub signing: Vec<SigningSettings>,
    /// Directories whose files are zones, in the order of the file.
    pub zone_directories: Vec<ZoneDirectory>,
    /// Whether the records of answers from zones, and addresses of others from memory, take turns
    /// in being the first.
    pub rotate: bool,
    /// Whether ANY gets one record, whatever there is.
    pub minimal_any: bool,
    /// Whether replies that are too large have as many RRsets as fit.
    pub fills_truncated: bool,
    /// How what ALIAS records lead to is resolved.
    pub alias: AliasSettings,
    /// Keys that sign messages between servers.
    pub keys: Vec<KeySettings>,
    /// How many transfers there may be at a time.
    pub transfers: plan::zones::TransferLimits,
    /// Sets of records.
    pub records: Vec<RecordSet>,
    /// Oblivious targets that messages are carried to.
    pub relay_to: Vec<RelayTarget>,
    /// Who the server is over TLS.
    pub tls: Tls,
    /// Certificates that the server orders, in the order of the file.
    pub certificates: Vec<OrderedCertificate>,
    /// Who the server is over DNSCrypt.
    pub dnscrypt: Dnscrypt,
    /// What protects the server.
    pub limits: Limits,
    /// DNS cookies.
    pub cookies: Cookies,
    /// Octets of the largest UDP message that is sent.
    pub udp_size: u16,
    /// Octets of the largest UDP message that others are told they may send.
    pub announced_size: u16,
    /// Octets that the length of a padded reply is a multiple of; zero: none is padded.
    pub padding: u16,
    /// Whether replies have Extended DNS Errors.
    pub extended_errors: bool,
    /// Whether clients that set DO get replies with EDNS.
    pub takes_dnssec_ok: bool,
    /// The least important messages to log.
    pub log_level: LogLevel,
    /// What the statistics of `unbound-control` show.
    pub unbound_statistics: UnboundStatistics,
    /// What may be changed while the server runs.
    pub changes: ChangesAllowed,
    /// Where the HTTP API is reached, and how people log in to it.
    pub api: ApiSettings,
    /// Who is given checkpoints of the audit log.
    pub audit_sinks: Vec<AuditSink>,
    /// Who is sent events of the server.
    pub webhooks: Vec<Webhook>,
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
    /// Who receives messages as dnstap.
    pub dnstap: Option<DnstapSettings>,
    /// What is done at certain times.
    pub schedules: Vec<ScheduleSettings>,
    /// Names that are asked for elsewhere, until their policy and groups are put among the others.
    pub split: Option<Split>,
    /// Where the policy for such names is said, if there is one; it comes before all others.
    pub split_at: Option<At<()>>,
    /// Policies, in the order of the file.
    pub policies: Vec<Policy>,
    /// Whether `policies` was written by somebody; the built-in one uses the only group and cache
    /// there are.
    pub policy_is_given: bool,
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
    /// Whether `trustanchor.unbound` is answered.
    pub trust_anchors: bool,
    /// The NSID; `None`: the same as `id.server`.
    pub nsid: Option<Vec<u8>>,
}

impl Settings {
    /// Returns the settings of policies.
    pub fn written(&self) -> policy::Written<'_> {
        policy::Written {
            policies: &self.policies,
            conditions: &self.conditions,
            views: &self.views,
            split: self.split_at.as_ref().map(|at| at.span),
        }
    }
}
