//! Trust anchors: where their state is kept, and what they begin with.

use std::path::PathBuf;

use dnssec::anchors::HoldDown;
use engine::ResolverId;
use resolver::TrustAnchor;

use crate::resolvers::ResolverPlan;

/// What a resolver trusts over time. It is no part of [`ResolverPlan`]: what is trusted may change
/// without the resolver losing what it has learned.
#[derive(Clone, Debug, PartialEq)]
pub struct AnchorPlan {
    /// The resolver.
    pub resolver: ResolverPlan,
    /// Where its anchors come from.
    pub source: AnchorSource,
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
