//! The types that become JSON: requests, responses, and what the commands print with `--json`.
//!
//! Written for people and scripts alike: kebab-case keys, units in the key, absent instead of null.

mod audit;
mod backup;
mod bans;
mod caches;
mod certificates;
mod check;
mod clients;
mod config;
mod events;
mod explain;
mod files;
mod jobs;
mod lists;
mod log;
mod lookup;
mod own_lists;
mod probe;
mod queries;
mod reload;
mod resolver;
mod rrsets;
mod sessions;
mod sets;
mod status;
mod tokens;
mod users;
mod zones;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use audit::{AuditFields, AuditRow, AuditRows, LastChange};
pub use backup::{BackupFile, BackupManifest, Restored};
pub use bans::{Ban, BanAdd, BanChanged, BanRemove, BanSource, BansOf};
pub use caches::{CacheEntries, CacheEntry, CacheFlush, CacheLookup, CacheStats, Dumped, Flush, Flushed};
pub use certificates::{CertificateName, CertificatesOf, OrderedCertificate};
pub use check::{Check, SettingsLanguage};
pub use clients::{ClientOf, ClientSeen, ClientShown, ClientsOf};
pub use config::{
    ChangesSummary, ConfigChange, ConfigChanged, ConfigDiff, ConfigDifference, ConfigEdit, ConfigExpected,
    ConfigExport, ConfigGet, ConfigHistory, ConfigOf, ConfigShown, ConfigStep, Setting,
};
pub use events::{
    CertificateEvent, ChangeEvent, Event, EventOf, EventPart, EventsAsked, EventsLost, ListEvent, LoginEvent,
    ReloadEvent, UpstreamEvent, ZoneEvent,
};
pub use explain::{Explain, Explained, ExplainedReply, ExplainedStep};
pub use files::{CheckedZone, StoredKey, VerifiedZone, ZoneFacts};
pub use jobs::{Job, JobRun};
pub use lists::{ListRules, ListRulesOf, ListShown, ListSource};
pub use log::{LogLevel, LogLevelIs};
pub use lookup::{EdnsOption, ExtendedError, Lookup, Question, Record, Transfer, flag_names};
pub use own_lists::{
    OwnList, OwnListChange, OwnListChanged, OwnListName, OwnListRemove, OwnListText, RuleEdit,
};
pub use probe::{
    Dnssec, Offered, Pipelining, Probe, ProbeAsked, RoundTrips, ShownCertificate, XdpCheck, XdpFact,
};
pub use queries::{
    QueriesAsked, QueriesFound, QueriesOf, QueriesRemoved, QueryEvent, QuerySum, QuerySums, Recorded, Tally,
};
pub use reload::{Diagnostic, Reload};
pub use resolver::{
    NegativeOrder, ResolverAnchor, ResolverAnchorKey, ResolverFlush, ResolverNegative, ResolverOrder,
    ResolverServer, ResolverServers, ResolverWhat, ResolverZone, ResolverZoneServer,
};
pub use rrsets::{Rrset, RrsetAction, RrsetEdit, Rrsets, RrsetsChange, RrsetsChanged, RrsetsOf};
pub use sessions::{LogIn, LogInLink, LogInLinkFor, OwnPassword, Session, SessionId, SessionKept, WhoAsks};
pub use sets::{
    DataHistory, DataStep, List, ListsFetched, ListsOf, Set, SetChange, SetChanged, SetEdits, SetItem,
    SetName,
};
pub use status::{
    Certificate, Configuration, Health, Listener, ListsSummary, MissingListener, Stats, Status, Upstream,
    ZonesSummary,
};
pub use tokens::{Token, TokenAdd, TokenAdded, TokenKept, TokenName};
pub use users::{
    CredentialsKept, PasswordKept, Secret, TotpBegun, TotpConfirm, TotpConfirmed, TotpKept, User, UserAdd,
    UserKept, UserName, UserPassword, UserRole,
};
pub use zones::{
    DsSeen, FileChange, Zone, ZoneAdd, ZoneCheck, ZoneDone, ZoneKey, ZoneKeys, ZoneLoad, ZoneName, ZoneNames,
    ZoneNote, ZoneOrder, ZoneRecords, ZoneRoll, ZoneWhat, ZonesChanged,
};

/// What a running server is asked to do: `{"request":"status"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Read the configuration again and replace the running one if it is right.
    Reload,
    /// Say how the server is.
    Status,
    /// Give the counters.
    Stats,
    /// Give all numbers as Prometheus reads them.
    Metrics,
    /// Forget answers.
    CacheFlush(CacheFlush),
    /// Write the caches to their files now.
    CacheDump,
    /// Say how full the caches are.
    CacheStats,
    /// Say what the caches hold for a name.
    CacheLookup(CacheLookup),
    /// Do something with resolvers.
    Resolver(ResolverOrder),
    /// Take a query through the policy and say what happens to it on its way.
    Explain(Explain),
    /// Check settings without using them.
    Check(Check),
    /// Measure an upstream server.
    Probe(ProbeAsked),
    /// Say what is logged, and change it until the next reload.
    LogLevel(LogLevel),
    /// Say what is done at certain times.
    Jobs,
    /// Begin one of those now.
    JobRun(JobRun),
    /// Say how certificates stand that are ordered.
    Certificates(CertificatesOf),
    /// Order one of those now.
    CertificateRenew(CertificateName),
    /// Read the lists of one set again.
    SetReload(SetName),
    /// Say how sets and their lists stand.
    Lists(ListsOf),
    /// Fetch lists from their web servers now, and say how they stand then.
    ListsFetch(ListsOf),
    /// Say how all lists stand: those that are kept beside the settings, and those of sets.
    ListStates,
    /// Give rules of a list.
    ListRules(ListRulesOf),
    /// Say which lists are kept beside the settings.
    OwnLists,
    /// Give the text of one.
    OwnListContent(OwnListName),
    /// Change single rules of one.
    OwnListChange(OwnListChange),
    /// Remove one.
    OwnListRemove(OwnListRemove),
    /// Say what a dynamic set holds.
    SetList(SetName),
    /// Say who changed a dynamic set or a list that is kept beside the settings.
    DataHistory(DataHistory),
    /// Add to a dynamic set.
    SetAdd(SetChange),
    /// Remove from a dynamic set.
    SetRemove(SetChange),
    /// Add to a dynamic set and remove from it.
    SetEdit(SetEdits),
    /// Say who is banned.
    Bans(BansOf),
    /// Ban a prefix, from now on and after a restart.
    Ban(BanAdd),
    /// Ban a prefix no longer.
    Unban(BanRemove),
    /// Say how the keys of a zone stand that the server signs.
    ZoneKeys(ZoneName),
    /// Take it that the parent has the DS of a zone's new key.
    ZoneDsSeen(DsSeen),
    /// Replace a zone's key now.
    ZoneRoll(ZoneRoll),
    /// Do something with a zone, or with all of them.
    Zone(ZoneOrder),
    /// Serve more zones, from now on and after a restart.
    ZoneAdd(ZoneAdd),
    /// Take zones out that were added.
    ZoneRemove(ZoneNames),
    /// Make what a file says the next version of a zone.
    ZoneLoad(ZoneLoad),
    /// Say which RRsets a zone has, without signatures that the server makes.
    Rrsets(RrsetsOf),
    /// Change RRsets of a zone.
    RrsetsChange(RrsetsChange),
    /// Change settings, from now on and after a restart.
    ConfigChange(ConfigChange),
    /// Print the settings in use, with where each is from.
    ConfigShow,
    /// Print changed settings as they would stand in the file.
    ConfigExport(ConfigExport),
    /// Say which settings two revisions of the changes say differently.
    ConfigDiff(ConfigDiff),
    /// Say who changed which settings.
    ConfigHistory(ConfigHistory),
    /// Say what settings say, from where, and who changed them.
    ConfigGet(ConfigGet),
    /// Give rows of the audit log.
    Audit(AuditRows),
    /// Say what happens to the server, as it happens: one response after the other.
    Events(EventsAsked),
    /// Find recorded queries.
    Queries(QueriesAsked),
    /// Say which queries are recorded, as they come: one response after the other.
    QueriesLive(QueriesAsked),
    /// Say what was asked for most, and by whom.
    QueriesTop(QuerySums),
    /// Say how many queries there were in each minute, hour or day.
    QueriesOverTime(QuerySums),
    /// Say which clients asked lately.
    Clients(ClientsOf),
    /// Say what became of the queries of a client.
    Client(ClientOf),
    /// Remove a client's queries from the record.
    QueriesForget(QueriesOf),
    /// Make a token of the API.
    TokenAdd(TokenAdd),
    /// Say which tokens there are.
    TokenList,
    /// Take a token back.
    TokenRevoke(TokenName),
    /// Add a user of the API.
    UserAdd(UserAdd),
    /// Say which users there are.
    UserList,
    /// Remove a user, and end their sessions.
    UserRemove(UserName),
    /// Give a user another password, and end their sessions.
    UserPassword(UserPassword),
    /// Give a user another role, and end their sessions.
    UserRole(UserRole),
    /// Make what a user's device is to make one-time codes of.
    TotpBegin(UserName),
    /// Have a user need one-time codes from now on.
    TotpConfirm(TotpConfirm),
    /// Have a user need no one-time codes any more, and end their sessions.
    TotpRemove(UserName),
    /// Make a link that logs somebody in, once.
    LogInLink(LogInLinkFor),
    /// Say which sessions there are.
    SessionList,
    /// End a session.
    SessionRevoke(SessionId),
}

/// What the server says: `{"status":{…}}`, or `{"error":{…}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// To [`Request::Reload`].
    Reload(Reload),
    /// To [`Request::Status`].
    Status(Status),
    /// To [`Request::Stats`].
    Stats(Stats),
    /// To [`Request::Metrics`]: the exposition's text.
    Metrics(String),
    /// To [`Request::CacheFlush`], and to [`Request::Resolver`] with [`ResolverWhat::Flush`].
    CacheFlush(Flushed),
    /// To [`Request::CacheDump`].
    CacheDump(Vec<Dumped>),
    /// To [`Request::CacheStats`].
    CacheStats(BTreeMap<String, CacheStats>),
    /// To [`Request::Jobs`] and [`Request::JobRun`].
    Jobs(Vec<Job>),
    /// To [`Request::Certificates`] and [`Request::CertificateRenew`].
    Certificates(Vec<OrderedCertificate>),
    /// To [`Request::LogLevel`].
    LogLevel(LogLevelIs),
    /// To [`Request::Explain`].
    Explained(Explained),
    /// To [`Request::Check`]: everything the checker found.
    Checked(Vec<Diagnostic>),
    /// To [`Request::Probe`].
    Probed(Box<Probe>),
    /// To [`Request::Lists`].
    Lists(Vec<Set>),
    /// To [`Request::ListsFetch`].
    ListsFetched(ListsFetched),
    /// To [`Request::ListStates`].
    ListStates(Vec<ListShown>),
    /// To [`Request::ListRules`].
    ListRules(ListRules),
    /// To [`Request::OwnLists`].
    OwnLists(Vec<OwnList>),
    /// To [`Request::OwnListContent`]: one response after the other, until one is the last.
    OwnListText(OwnListText),
    /// To [`Request::OwnListChange`] and [`Request::OwnListRemove`].
    OwnListChanged(OwnListChanged),
    /// To [`Request::DataHistory`], the newest first.
    DataSteps(Vec<DataStep>),
    /// To [`Request::CacheLookup`].
    CacheEntries(CacheEntries),
    /// To [`Request::Resolver`] with [`ResolverWhat::Stats`].
    ResolverStats(BTreeMap<String, CacheStats>),
    /// To [`Request::Resolver`] with [`ResolverWhat::Servers`].
    ResolverServers(ResolverServers),
    /// To [`Request::Resolver`] with [`ResolverWhat::Zone`].
    ResolverZones(Vec<ResolverZone>),
    /// To [`Request::Resolver`] with [`ResolverWhat::Anchors`].
    ResolverAnchors(Vec<ResolverAnchor>),
    /// To [`Request::Resolver`] with [`ResolverWhat::Negative`].
    ResolverNegative(Vec<ResolverNegative>),
    /// To [`Request::SetList`].
    SetList(Vec<SetItem>),
    /// To [`Request::SetAdd`], [`Request::SetRemove`] and [`Request::SetEdit`].
    SetChanged(SetChanged),
    /// To [`Request::Bans`], by prefix.
    Bans(Vec<Ban>),
    /// To [`Request::Ban`] and [`Request::Unban`].
    BanChanged(BanChanged),
    /// To [`Request::ZoneKeys`], [`Request::ZoneDsSeen`] and [`Request::ZoneRoll`].
    ZoneKeys(ZoneKeys),
    /// To [`Request::Zone`] with [`ZoneWhat::Status`].
    Zones(Vec<Zone>),
    /// To [`Request::Zone`] with [`ZoneWhat::Diff`]: a line for each record, with `-` or `+` in
    /// front.
    ZoneDiff(Vec<String>),
    /// To [`Request::Zone`] with [`ZoneWhat::Print`]: one response after the other, until one is
    /// the last.
    ZoneRecords(ZoneRecords),
    /// To [`Request::Zone`] and [`Request::ZoneLoad`]: it is done, or has begun.
    ZoneDone(ZoneDone),
    /// To [`Request::ZoneAdd`] and [`Request::ZoneRemove`].
    ZonesChanged(ZonesChanged),
    /// To [`Request::Rrsets`].
    Rrsets(Rrsets),
    /// To [`Request::RrsetsChange`].
    RrsetsChanged(RrsetsChanged),
    /// To [`Request::ConfigChange`].
    ConfigChanged(ConfigChanged),
    /// To [`Request::ConfigShow`] and [`Request::ConfigExport`].
    ConfigShown(ConfigShown),
    /// To [`Request::ConfigDiff`].
    ConfigDifferences(Vec<ConfigDifference>),
    /// To [`Request::ConfigHistory`].
    ConfigSteps(Vec<ConfigStep>),
    /// To [`Request::ConfigGet`].
    Settings(Vec<Setting>),
    /// To [`Request::Audit`].
    Audited(Vec<AuditRow>),
    /// To [`Request::Events`].
    Event(Box<EventPart>),
    /// To [`Request::Queries`].
    Queries(QueriesFound),
    /// To [`Request::QueriesLive`]; without anything in it when nothing has come for a while.
    QueryEvent(Box<QueryEvent>),
    /// To [`Request::QueriesTop`].
    QueriesTop(Vec<Tally>),
    /// To [`Request::QueriesOverTime`].
    QueriesOverTime(Vec<QuerySum>),
    /// To [`Request::Clients`], by their names.
    Clients(Vec<ClientSeen>),
    /// To [`Request::Client`].
    Client(Box<ClientShown>),
    /// To [`Request::QueriesForget`].
    QueriesRemoved(QueriesRemoved),
    /// To [`Request::TokenAdd`].
    TokenAdded(Box<TokenAdded>),
    /// To [`Request::TokenList`] and [`Request::TokenRevoke`].
    Tokens(Vec<Token>),
    /// To what is asked about users: those that it was about, or all.
    Users(Vec<User>),
    /// To [`Request::TotpBegin`].
    TotpBegun(TotpBegun),
    /// To [`Request::TotpConfirm`].
    TotpConfirmed(TotpConfirmed),
    /// To [`Request::LogInLink`].
    LogInLink(LogInLink),
    /// To [`Request::SessionList`] and [`Request::SessionRevoke`].
    Sessions(Vec<Session>),
    /// The request was not carried out.
    Error(Failure),
}

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Failure {
    /// One sentence.
    pub message: String,
}

impl Request {
    /// Returns what it is called and with what, as JSON.
    pub fn words(&self) -> (String, String) {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        let fields = value.as_object_mut();
        let word = fields.and_then(|fields| fields.remove("request"));
        let word = word.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
        (word, value.to_string())
    }
}

impl Response {
    /// Returns the response that says why not.
    pub fn error(message: impl Into<String>) -> Self {
        Self::Error(Failure { message: message.into() })
    }

    /// Returns what the response holds, without its kind, as indented JSON.
    pub fn to_json(&self) -> String {
        match self {
            Self::Reload(it) => to_json(it),
            Self::Zones(it) => to_json(it),
            Self::ZoneDiff(it) => to_json(it),
            Self::ZoneDone(it) => to_json(it),
            Self::ZoneRecords(it) => to_json(it),
            Self::ZonesChanged(it) => to_json(it),
            Self::Rrsets(it) => to_json(it),
            Self::RrsetsChanged(it) => to_json(it),
            Self::Status(it) => to_json(it),
            Self::Stats(it) => to_json(it),
            Self::Metrics(it) => to_json(it),
            Self::CacheFlush(it) => to_json(it),
            Self::CacheDump(it) => to_json(it),
            Self::CacheStats(it) => to_json(it),
            Self::Jobs(it) => to_json(it),
            Self::Certificates(it) => to_json(it),
            Self::LogLevel(it) => to_json(it),
            Self::Lists(it) => to_json(it),
            Self::ListsFetched(it) => to_json(it),
            Self::CacheEntries(it) => to_json(it),
            Self::ResolverStats(it) => to_json(it),
            Self::ResolverServers(it) => to_json(it),
            Self::ResolverZones(it) => to_json(it),
            Self::ResolverAnchors(it) => to_json(it),
            Self::ResolverNegative(it) => to_json(it),
            Self::DataSteps(it) => to_json(it),
            Self::ListStates(it) => to_json(it),
            Self::ListRules(it) => to_json(it),
            Self::OwnLists(it) => to_json(it),
            Self::OwnListText(it) => to_json(it),
            Self::OwnListChanged(it) => to_json(it),
            Self::SetList(it) => to_json(it),
            Self::SetChanged(it) => to_json(it),
            Self::Bans(it) => to_json(it),
            Self::BanChanged(it) => to_json(it),
            Self::ZoneKeys(it) => to_json(it),
            Self::Explained(it) => to_json(it),
            Self::Checked(it) => to_json(it),
            Self::Probed(it) => to_json(it),
            Self::ConfigChanged(it) => to_json(it),
            Self::ConfigShown(it) => to_json(it),
            Self::ConfigDifferences(it) => to_json(it),
            Self::ConfigSteps(it) => to_json(it),
            Self::Settings(it) => to_json(it),
            Self::Audited(it) => to_json(it),
            Self::Event(it) => to_json(it),
            Self::Queries(it) => to_json(it),
            Self::QueryEvent(it) => to_json(it),
            Self::QueriesTop(it) => to_json(it),
            Self::QueriesOverTime(it) => to_json(it),
            Self::Clients(it) => to_json(it),
            Self::Client(it) => to_json(it),
            Self::QueriesRemoved(it) => to_json(it),
            Self::TokenAdded(it) => to_json(it),
            Self::Tokens(it) => to_json(it),
            Self::Users(it) => to_json(it),
            Self::TotpBegun(it) => to_json(it),
            Self::TotpConfirmed(it) => to_json(it),
            Self::LogInLink(it) => to_json(it),
            Self::Sessions(it) => to_json(it),
            Self::Error(it) => to_json(it),
        }
    }
}

/// What a command with `--json` prints in place of its result when it could not do what it was
/// told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Complaint {
    /// Why not.
    pub error: String,
}

/// Returns what parts of something are known by together: FNV-1a, as it is compared with itself and
/// nobody gains by a collision.
fn tag(parts: &[&str]) -> String {
    let octets = parts.iter().flat_map(|part| part.bytes().chain([0]));
    let step = |sum: u64, octet: u8| (sum ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", octets.fold(0xcbf2_9ce4_8422_2325, step))
}

/// Returns `value` as indented JSON with a final newline.
pub fn to_json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("our types have text keys and finite numbers");
    text.push('\n');
    text
}

/// Returns `value` as one line of JSON with its newline.
pub fn to_json_line(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string(value).expect("our types have text keys and finite numbers");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(request: &Request, line: &str) {
        assert_eq!(serde_json::to_string(request).unwrap(), line);
        assert_eq!(&serde_json::from_str::<Request>(line).unwrap(), request);
    }

    #[test]
    fn requests_are_one_flat_object() {
        check(&Request::Status, r#"{"request":"status"}"#);
        let what = Flush::Suffix("example.org".into());
        check(
            &Request::CacheFlush(CacheFlush { cache: None, what }),
            r#"{"request":"cache-flush","what":{"suffix":"example.org"}}"#,
        );
        let what = Flush::Type { name: "example.org".into(), rtype: "MX".into() };
        check(
            &Request::CacheFlush(CacheFlush { cache: Some("main".into()), what }),
            r#"{"request":"cache-flush","cache":"main","what":{"type":{"name":"example.org","rtype":"MX"}}}"#,
        );
    }
}
