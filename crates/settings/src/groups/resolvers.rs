//! Resolvers.

use std::path::PathBuf;

use diagnostic::At;
use dnssec::anchors::HoldDown;
use plan::anchors::NegativePlan;
use plan::resolvers::SecondLevelPlan;
use resolver::{HeapName, Stub, TrustAnchor};

use super::RemoteSettings;

/// A resolver.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolverSettings {
    /// Its name.
    pub name: At<String>,
    /// The memory for what it learns, in octets.
    pub cache_size: u64,
    /// The file with the servers of the root; `None`: those that the program comes with.
    pub root_hints: Option<At<PathBuf>>,
    /// The file with trust anchors; `None`: those that the program comes with.
    pub trust_anchors: Vec<At<PathBuf>>,
    /// The file with the state of trust anchors.
    pub trust_anchor_state: Option<At<PathBuf>>,
    /// Zones that count as unsigned.
    pub negative: Vec<NegativePlan>,
    /// Whether zones are told which of their keys are trusted.
    pub signals: bool,
    /// Whether it says whom to ask to who wants no recursion.
    pub refers: bool,
    /// How long it takes until a change of an anchored zone's keys counts.
    pub hold_down: HoldDown,
    /// Zones that are not found from the root down.
    pub zones: Vec<RouteSettings>,
    /// Where the root zone comes from that it reads, if it does.
    pub local_root: Option<LocalRootSettings>,
    /// Its second-level cache, if it has one.
    pub second_level: Option<SecondLevelPlan>,
    /// Trust anchors that the configuration itself has, beside those of the file.
    pub anchor_records: Vec<TrustAnchor>,
    /// Everything else; the servers of the root in it are those that the program comes with.
    pub rules: resolver::Settings,
}

/// The root zone that a resolver reads.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalRootSettings {
    /// Where that is said.
    pub at: At<()>,
    /// Its primaries.
    pub primaries: Vec<At<RemoteSettings>>,
    /// Where it is as a master file on web servers.
    pub urls: Vec<At<String>>,
}

/// A zone that is not found from the root down.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteSettings {
    /// The zone.
    pub zone: HeapName,
    /// Whom to ask.
    pub way: RouteWay,
    /// Whether it is found as if it were not written if these fail.
    pub first: bool,
    /// Whether what they answer is kept.
    pub keeps: bool,
}

/// Who is asked for the names of a zone.
#[derive(Clone, Debug, PartialEq)]
pub enum RouteWay {
    /// Its servers.
    Stub(Stub),
    /// An upstream group.
    Forward(At<String>),
    /// Nobody: it is one of this server's zones.
    Own(At<()>),
}
