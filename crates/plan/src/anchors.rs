//! Trust anchors: where their state is kept, and what they begin with.

use std::path::PathBuf;

use dnssec::anchors::HoldDown;
use engine::ResolverId;
use resolver::TrustAnchor;
use wire::NameBuf;

use crate::resolvers::ResolverPlan;

/// What a resolver trusts over time. It is no part of [`ResolverPlan`]: what is trusted may change
/// without the resolver losing what it has learned.
#[derive(Clone, Debug, PartialEq)]
pub struct AnchorPlan {
    /// The resolver.
    pub resolver: ResolverPlan,
    /// Where its anchors come from.
    pub source: AnchorSource,
    /// Zones that count as unsigned.
    pub negative: Vec<NegativePlan>,
    /// The file with those that commands have added.
    pub negative_file: PathBuf,
    /// Whether the zones are told which of their keys are trusted (RFC 8145).
    pub signals: bool,
}

/// A zone that counts as unsigned, with all that is below it (RFC 7646).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NegativePlan {
    /// The zone.
    pub zone: NameBuf,
    /// When that ends.
    pub end: NegativeEnd,
    /// Why it is so.
    pub reason: Option<String>,
}

/// When a negative trust anchor ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NegativeEnd {
    /// When the settings no longer have it.
    Never,
    /// Then, in seconds since 1970.
    At(u64),
    /// So many seconds after the server has first read of it.
    After(u64),
}

/// Where trust anchors come from.
#[derive(Clone, Debug, PartialEq)]
pub enum AnchorSource {
    /// They are those of the resolver's settings, and stay the same.
    Fixed {
        /// The file that they were read from.
        file: Option<PathBuf>,
    },
    /// They follow the keys of their zones (RFC 5011), and begin with those of the settings.
    Followed {
        /// The file with their state.
        file: PathBuf,
        /// What it held when the configuration was read: a state file without mistakes.
        text: Option<String>,
        /// Whether zones that the settings name are anchors although the file does not have them.
        completes: bool,
        /// How long it takes until something counts.
        hold_down: HoldDown,
    },
}

impl AnchorPlan {
    /// Returns the number of the resolver.
    pub const fn id(&self) -> ResolverId {
        self.resolver.id
    }

    /// Returns what is trusted to begin with.
    pub fn initial(&self) -> &[TrustAnchor] {
        &self.resolver.settings.trust.anchors
    }
}
