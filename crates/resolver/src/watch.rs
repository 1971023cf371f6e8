//! Who is asked before servers are.

use cache::Now;
use wire::Name;

use crate::servers::ServersKnown;

/// Policies that may have an answer of their own, so that servers need not be asked.
///
/// They are asked about the name that an alias leads to, and about the servers of a zone, before
/// one of these is sent anything. If they may have something to say, whoever waits gets what is
/// known so far ([`Resolution::is_interim`](crate::Resolution::is_interim)).
pub trait Watch: Send + Sync {
    /// Returns whether there are rules on name servers.
    fn looks_at_servers(&self) -> bool;

    /// Returns whether there is a rule on a name, or on the servers that lead to it as far as they
    /// are known. `now` is the time of the caches.
    fn speaks_of(&self, name: Name<'_>, servers: Option<&ServersKnown>, now: Now) -> bool;
}
