//! What jobs want of the server that they work for.

use std::sync::Arc;

use plan::jobs::Learn;
use zone::Zone;

use crate::download::Download;
use crate::effects::Occurrence;

/// What jobs want of the server that they work for. Each method is called from a job's own thread
/// and may take long.
pub trait Server: Send + Sync {
    /// Writes caches to their files: all that have one, or the one of this name. Returns what came
    /// of it, for the log.
    fn dump(&self, cache: Option<&str>) -> Result<String, String>;

    /// Returns what is wrong with a list that was fetched, if it cannot take the place of the last.
    fn check_list(&self, download: &Download, octets: &[u8]) -> Result<(), String>;

    /// Hears that there is a new copy of a list, with its octets, or why there is none. Must not
    /// wait.
    fn list_fetched(&self, download: &Download, outcome: Result<u64, &str>);

    /// Takes new lists of these sets into use.
    fn adopt_lists(&self, sets: &[String]);

    /// Puts what `learn` says of a query into its set.
    fn learn(&self, learn: &Learn, occurrence: &Occurrence);

    /// Serves these versions of zones, which were just signed.
    fn serve_signed(&self, zones: Vec<Arc<Zone>>);
}

/// A server of which nothing is wanted, for tests.
#[cfg(test)]
pub(crate) struct Nobody;

#[cfg(test)]
impl Server for Nobody {
    fn dump(&self, _: Option<&str>) -> Result<String, String> {
        Err("nobody is there".to_owned())
    }

    fn check_list(&self, _: &Download, _: &[u8]) -> Result<(), String> {
        Err("nobody is there".to_owned())
    }

    fn list_fetched(&self, _: &Download, _: Result<u64, &str>) {}

    fn adopt_lists(&self, _: &[String]) {}

    fn learn(&self, _: &Learn, _: &Occurrence) {}

    fn serve_signed(&self, _: Vec<Arc<Zone>>) {}
}
