//! What other servers have to be asked for before a zone can come from elsewhere.

use std::net::IpAddr;

use wire::Name;

/// Looks up where zones come from. Each method waits for answers of other servers.
pub trait Elsewhere: Send + Sync {
    /// Returns the addresses of a host that zones come from, one at least; an error says why they
    /// are not known now.
    fn addresses(&self, host: Name<'_>) -> Result<Vec<IpAddr>, String>;
}
