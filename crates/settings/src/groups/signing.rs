//! Policies that sign zones.

use std::sync::Arc;

use diagnostic::At;
use plan::signing::SigningPolicy;

use super::RemoteSettings;

/// A policy that zones name.
#[derive(Clone, Debug, PartialEq)]
pub struct SigningSettings {
    /// How zones are signed, and which addresses are sent DS.
    pub policy: Arc<SigningPolicy>,
    /// Settings of the servers of a parent that are sent DS.
    pub ds_push: Vec<At<RemoteSettings>>,
}
