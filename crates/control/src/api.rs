//! The types that become JSON: requests, responses, and what the commands print with `--json`.
//!
//! Written for people and scripts alike: kebab-case keys, units in the key, absent instead of null.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a running server is asked to do: `{"request":"status"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Take a query through the policy and say what happens to it on its way.
    Explain(Explain),
    /// Say what is done at certain times.
    Jobs,
    /// Begin one of those now.
    JobRun(JobRun),
    /// Read the lists of one set again.
    SetReload(SetName),
    /// Say what a dynamic set holds.
    SetList(SetName),
    /// Add to a dynamic set.
    SetAdd(SetChange),
    /// Remove from a dynamic set.
    SetRemove(SetChange),
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
}

/// Which zones are to be added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ZoneAdd {
    /// Their names.
    pub zones: Vec<String>,
    /// What is said of each, as at an item of the setting `zones`, in YAML.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub options: String,
}

/// Which zones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ZoneNames {
    /// Their names.
    pub zones: Vec<String>,
}

/// What a zone is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ZoneLoad {
    /// The zone.
    pub zone: String,
    /// A master file, which the server reads once.
    pub file: String,
}

/// What became of zones that were to be added or removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ZonesChanged {
    /// How many were.
    pub done: usize,
    /// What is to be told of some of those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<ZoneNote>,
    /// The others, and why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<ZoneNote>,
}

/// Something about a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ZoneNote {
    /// The zone.
    pub zone: String,
    /// What there is to say.
    pub text: String,
}

/// Which zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ZoneName {
    /// Its name.
    pub zone: String,
}

/// Whose DS the parent has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DsSeen {
    /// The zone.
    pub zone: String,
    /// The tag of the key; all that wait when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<u16>,
}

/// Which keys to replace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ZoneRoll {
    /// The zone.
    pub zone: String,
    /// What the keys are for: `ksk`, `zsk` or `csk`.
    pub role: String,
}

/// How the keys of a zone stand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ZoneKeys {
    /// The zone.
    pub zone: String,
    /// Its keys.
    pub keys: Vec<ZoneKey>,
    /// When something is due next, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Why it cannot be signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// A key of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ZoneKey {
    /// Its tag.
    pub tag: u16,
    /// Its algorithm.
    pub algorithm: String,
    /// What it is for.
    pub role: String,
    /// Where it is in its life.
    pub state: String,
    /// Since when, in UTC.
    pub since: String,
    /// The DS that the parent should have; absent for a ZSK.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ds: Option<String>,
}

/// What to do with zones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ZoneOrder {
    /// What.
    pub what: ZoneWhat,
    /// The zone; all of them when absent, where that makes sense.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What can be done with a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ZoneWhat {
    /// Say how it is.
    Status,
    /// Read its file again if that has changed, or ask its primaries.
    Reload,
    /// Take the whole zone over from a primary, whatever its serial.
    Retransfer,
    /// Let it change no more.
    Freeze,
    /// Let it change again.
    Thaw,
    /// Say what changed since its file, or with the last transfer.
    Diff,
    /// Print the version that is served.
    Print,
}

/// How a zone is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Zone {
    /// Its name.
    pub name: String,
    /// `primary`, or `secondary` if it comes from other servers.
    pub role: String,
    /// The serial that is served; absent when questions get SERVFAIL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<u32>,
    /// Records.
    pub records: usize,
    /// Whether it may not change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_frozen: bool,
    /// Seconds until its primaries are asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_look_in_s: Option<u64>,
    /// Seconds until it is not served any more, if no primary is heard of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_s: Option<u64>,
    /// Versions that secondaries can get the difference to.
    pub history: usize,
    /// Octets of its journal.
    pub journal_octets: u64,
    /// Whether it was added while the server ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_added: bool,
    /// The catalog that it came with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
    /// Why the last attempt to get a newer version failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Its records that are checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<ZoneCheck>,
}

/// A record that is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ZoneCheck {
    /// The owner.
    pub name: String,
    /// Its type and address.
    pub record: String,
    /// What the check is called.
    pub check: String,
    /// Whether it is answered.
    pub is_up: bool,
    /// What went wrong with the last check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Which set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SetName {
    /// Its name.
    pub name: String,
}

/// What to add to a dynamic set, or to remove from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SetChange {
    /// The set's name.
    pub name: String,
    /// Names, addresses or prefixes.
    pub items: Vec<String>,
    /// How long they stay when they are added; as long as the set says when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_s: Option<u64>,
}

/// What became of a change of a dynamic set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SetChanged {
    /// How many were not there before, or were.
    pub changed: usize,
    /// How many it holds now.
    pub holds: usize,
}

/// Something that a dynamic set holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SetItem {
    /// A name, or a prefix.
    pub item: String,
    /// Seconds until it leaves; absent if it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaves_in_s: Option<u64>,
}

/// Which job to begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct JobRun {
    /// Its name.
    pub name: String,
}

/// A query to explain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Explain {
    /// The name.
    pub name: String,
    /// The type, by mnemonic or `TYPE` and number.
    #[serde(rename = "type")]
    pub rtype: String,
    /// The client's address; this machine when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The listener, by name; the first when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listener: Option<String>,
    /// Whether the query comes over TCP.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_tcp: bool,
    /// Whether the client asks for DNSSEC records.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wants_dnssec: bool,
}

/// Which answers to forget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CacheFlush {
    /// The cache's name in the configuration; every cache when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<String>,
    /// What to forget in it.
    pub what: Flush,
}

/// A selection of answers by name, as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Flush {
    /// Everything.
    All,
    /// Every type of one name.
    Name(String),
    /// A name and every name below it.
    Suffix(String),
    /// One type of one name.
    Type {
        /// The name.
        name: String,
        /// The type, by mnemonic or `TYPE` and number.
        rtype: String,
    },
}

/// What the server says: `{"status":{…}}`, or `{"error":{…}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// To [`Request::CacheFlush`].
    CacheFlush(Flushed),
    /// To [`Request::CacheDump`].
    CacheDump(Vec<Dumped>),
    /// To [`Request::CacheStats`].
    CacheStats(BTreeMap<String, CacheStats>),
    /// To [`Request::Jobs`] and [`Request::JobRun`].
    Jobs(Vec<Job>),
    /// To [`Request::Explain`].
    Explained(Explained),
    /// To [`Request::SetList`].
    SetList(Vec<SetItem>),
    /// To [`Request::SetAdd`] and [`Request::SetRemove`].
    SetChanged(SetChanged),
    /// To [`Request::ZoneKeys`], [`Request::ZoneDsSeen`] and [`Request::ZoneRoll`].
    ZoneKeys(ZoneKeys),
    /// To [`Request::Zone`] with [`ZoneWhat::Status`].
    Zones(Vec<Zone>),
    /// To [`Request::Zone`] with [`ZoneWhat::Diff`]: a line for each record, with `-` or `+` in front.
    ZoneDiff(Vec<String>),
    /// To [`Request::Zone`] with [`ZoneWhat::Print`]: one response after the other, until one is the last.
    ZoneRecords(ZoneRecords),
    /// To [`Request::Zone`] and [`Request::ZoneLoad`]: it is done, or has begun.
    ZoneDone(ZoneDone),
    /// To [`Request::ZoneAdd`] and [`Request::ZoneRemove`].
    ZonesChanged(ZonesChanged),
    /// The request was not carried out.
    Error(Failure),
}

/// Some of the records of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ZoneRecords {
    /// Lines of a zone file, each with its end.
    pub text: String,
    /// Whether nothing comes after it.
    pub is_last: bool,
}

/// What became of an order about zones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ZoneDone {
    /// For a person.
    pub message: String,
}

/// What happened to a query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Explained {
    /// What was asked.
    pub question: Question,
    /// The client's address.
    pub client: String,
    /// What happened, in order.
    pub steps: Vec<ExplainedStep>,
    /// What the client gets; absent when it gets nothing, or when nobody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<ExplainedReply>,
    /// Whether the way ends before an upstream that was not asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut_short: bool,
}

/// One thing that happened to a query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ExplainedStep {
    /// The file that says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The condition or action as it is written.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// For a condition: whether it held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<bool>,
    /// What came of it.
    pub outcome: String,
}

/// What a client gets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ExplainedReply {
    /// The response code's mnemonic, or `RCODE` and the number.
    pub status: String,
    /// The header flags that are set, in header order.
    pub flags: Vec<String>,
    /// The answer section.
    pub answer: Vec<Record>,
    /// The authority section.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authority: Vec<Record>,
    /// Extended errors (RFC 8914).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extended_errors: Vec<ExtendedError>,
}

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Failure {
    /// One sentence.
    pub message: String,
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
            Self::Status(it) => to_json(it),
            Self::Stats(it) => to_json(it),
            Self::Metrics(it) => to_json(it),
            Self::CacheFlush(it) => to_json(it),
            Self::CacheDump(it) => to_json(it),
            Self::CacheStats(it) => to_json(it),
            Self::Jobs(it) => to_json(it),
            Self::SetList(it) => to_json(it),
            Self::SetChanged(it) => to_json(it),
            Self::ZoneKeys(it) => to_json(it),
            Self::Explained(it) => to_json(it),
            Self::Error(it) => to_json(it),
        }
    }
}

/// What came of a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Reload {
    /// Whether the new configuration is in use; otherwise the old one still is.
    pub is_adopted: bool,
    /// The number of the configuration now in use; the one at the start is 1.
    pub generation: u64,
    /// The settings that differ but are read at the start only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs_restart: Vec<String>,
    /// Everything the checker found, errors and warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    /// How long reading and compiling took.
    pub took_ms: u64,
}

/// One finding of the configuration checker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Diagnostic {
    /// `error` or `warning`.
    pub severity: String,
    /// The file, as it was given or included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column in characters, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// How many characters are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// What is wrong.
    pub message: String,
    /// What would have been right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The finding with its source line, as a person reads it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

impl From<&config::Diagnostic> for Diagnostic {
    fn from(found: &config::Diagnostic) -> Self {
        let known = |number: u32| (number > 0).then_some(number);
        Self {
            severity: found.severity.word().to_owned(),
            file: Some(found.file.display().to_string()).filter(|file| !file.is_empty()),
            line: known(found.line),
            column: known(found.column),
            width: known(found.width),
            message: found.message.clone(),
            expected: found.expected.clone(),
            hint: found.hint.clone(),
            text: found.human(),
        }
    }
}

/// How the server is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Status {
    /// The program's version.
    pub version: String,
    /// The server's process.
    pub pid: u32,
    /// Seconds since it was ready.
    pub uptime_s: u64,
    /// Worker threads.
    pub workers: usize,
    /// Queries waiting for other servers, all workers together.
    pub waiting: u64,
    /// Where it answers, `address:port` and transport.
    pub listeners: Vec<Listener>,
    /// Whom it asks, by pool.
    pub upstreams: BTreeMap<String, Vec<Upstream>>,
    /// The configuration in use.
    pub configuration: Configuration,
}

/// One listening address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Listener {
    /// Address and port, or the path of a Unix socket.
    pub at: String,
    /// What is spoken there, such as `udp`.
    pub transport: String,
}

/// One upstream server as the workers see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Upstream {
    /// The server as configured.
    pub server: String,
    /// `up`, `down` or `untried`.
    pub health: String,
    /// The smoothed round-trip time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_ms: Option<f64>,
    /// Why no connection could be made, if it is down for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Queries sent to it.
    pub queries: u64,
    /// Queries it did not answer or answered with a failure.
    pub failures: u64,
}

/// The configuration in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Configuration {
    /// The file; absent when the server runs on its defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The number of the configuration in use; the one at the start is 1.
    pub generation: u64,
    /// Seconds since it was adopted.
    pub age_s: u64,
    /// Whether the last reload was refused because of mistakes in the file.
    pub is_last_reload_refused: bool,
}

/// Counters by group, summed over the workers.
pub type Stats = BTreeMap<String, BTreeMap<String, u64>>;

/// What a machine can do with AF_XDP, as `gannet xdp check --json` prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct XdpCheck {
    /// Whether nothing is in the way.
    pub is_usable: bool,
    /// What was looked at, in order.
    pub facts: Vec<XdpFact>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct XdpFact {
    /// What.
    pub what: String,
    /// `ok`, `note` (could be better) or `no` (in the way).
    pub standing: String,
    /// What was found, and what to do if it is not good.
    pub found: String,
}

/// How full a cache is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CacheStats {
    /// Answers held.
    pub entries: u64,
    /// Octets they take.
    pub octets: u64,
    /// Octets they may take.
    pub octets_max: u64,
    /// Answers put in since the start.
    pub inserts: u64,
    /// Answers put out for want of room since the start.
    pub evictions: u64,
}

/// What a flush did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Flushed {
    /// Answers forgotten.
    pub removed: u64,
}

/// What a dump of one cache did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Dumped {
    /// The cache's name in the configuration.
    pub cache: String,
    /// The file.
    pub file: String,
    /// Answers written.
    pub entries: u64,
    /// Why nothing was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Something that is done at certain times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Job {
    /// Its name.
    pub name: String,
    /// When, as cron says it.
    pub at: String,
    /// The time zone that is meant.
    pub time_zone: String,
    /// What it does.
    pub tasks: Vec<String>,
    /// When it runs next (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// When it began last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// Whether it is at work.
    pub is_running: bool,
    /// Whether it failed when it ran last.
    pub is_failed: bool,
    /// What came of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// How often it ran.
    pub runs: u64,
    /// Times at which it was still at work and was not begun again.
    pub skipped: u64,
}

/// A recorded query, as `gannet log --json` prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Recorded {
    /// When its reply was complete, in milliseconds since 1970.
    pub at_ms: i64,
    /// How long it waited for other servers.
    pub waited_ms: u32,
    /// Who asked.
    pub client: String,
    /// `udp` or `tcp`.
    pub transport: String,
    /// The name asked for.
    pub name: String,
    /// The type asked for.
    #[serde(rename = "type")]
    pub rtype: String,
    /// The reply's code; absent when there was no reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Records in the answer section.
    pub answers: u16,
    /// The addresses among them.
    pub addresses: Vec<String>,
    /// The way through the policy: each step and what came of it.
    pub path: Vec<String>,
}

/// A name or client and how often it asked or was asked for, as `gannet log --top` prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Tally {
    /// The name or the client.
    pub what: String,
    /// Queries.
    pub queries: u64,
}

/// What `gannet query --json` prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Lookup {
    /// Who answered.
    pub server: String,
    /// `udp` or `tcp`.
    pub transport: String,
    /// From the first packet sent to the reply.
    pub time_ms: f64,
    /// The reply's length.
    pub size_octets: usize,
    /// The response code's mnemonic, or `RCODE` and the number.
    pub status: String,
    /// The response code.
    pub rcode: u16,
    /// The header flags that are set, in header order.
    pub flags: Vec<String>,
    /// What was asked.
    pub question: Question,
    /// The answer section.
    pub answer: Vec<Record>,
    /// The authority section.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authority: Vec<Record>,
    /// The additional section without OPT.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub additional: Vec<Record>,
    /// Extended errors (RFC 8914).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extended_errors: Vec<ExtendedError>,
}

/// A question in presentation form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Question {
    /// The name, with its final dot.
    pub name: String,
    /// The type.
    #[serde(rename = "type")]
    pub rtype: String,
    /// The class.
    pub class: String,
}

/// A record in presentation form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Record {
    /// The owner, with its final dot.
    pub name: String,
    /// Seconds the record may be kept.
    pub ttl: u32,
    /// The class.
    pub class: String,
    /// The type.
    #[serde(rename = "type")]
    pub rtype: String,
    /// The data.
    pub data: String,
}

/// An extended error (RFC 8914).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ExtendedError {
    /// The code.
    pub code: u16,
    /// What the code means.
    pub name: String,
    /// What the server adds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// What `gannet probe` found out about an upstream server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Probe {
    /// The server as written.
    pub server: String,
    /// Where it was asked.
    pub address: String,
    /// What became of each transport, at its usual port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<Offered>,
    /// Why the rest could not be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// The time to connect and to prove who is who.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_ms: Option<f64>,
    /// The same once more, with what is remembered of the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_ms: Option<f64>,
    /// Queries answered, one after the other, over one connection.
    pub answered: u32,
    /// Queries not answered.
    pub unanswered: u32,
    /// How long the answers took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trips: Option<RoundTrips>,
    /// What became of many queries at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipelining: Option<Pipelining>,
    /// When the server closed the connection that had nothing to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_after_ms: Option<f64>,
    /// How long was waited for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched_for_ms: Option<f64>,
    /// What becomes of a client's subnet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_subnet: Option<String>,
    /// What becomes of signatures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dnssec: Option<Dnssec>,
}

/// One transport of an upstream server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Offered {
    /// `udp`, `tcp`, `tls`, `https`, `h3` or `quic`.
    pub transport: String,
    /// Whether a query was answered.
    pub answers: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// How long answers took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RoundTrips {
    /// The shortest.
    pub least_ms: f64,
    /// The one in the middle.
    pub median_ms: f64,
    /// Longer than nineteen of twenty.
    pub p95_ms: f64,
    /// The longest.
    pub most_ms: f64,
}

/// What became of queries that were sent at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Pipelining {
    /// Queries sent.
    pub sent: u32,
    /// Queries answered.
    pub answered: u32,
    /// Whether a later one was answered before an earlier one.
    pub out_of_order: bool,
}

/// What an upstream server does with signatures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Dnssec {
    /// Whether they are in its answers.
    pub passes_signatures_on: bool,
    /// Whether it says that it checked them (AD).
    pub says_it_validated: bool,
    /// Whether it refuses what is wrongly signed; absent when that could not be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refuses_bogus: Option<bool>,
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
