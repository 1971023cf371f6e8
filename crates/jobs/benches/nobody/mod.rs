//! The rest of a program, for benchmarks of the recorder.

use std::sync::Arc;
use std::time::Instant;

use jobs::{Download, Occurrence, Server};
use plan::jobs::Learn;
use wire::{NameBuf, Rtype};

/// Nothing is scheduled or fetched here.
#[derive(Debug)]
pub(crate) struct Nobody;

impl Server for Nobody {
    fn dump(&self, _: Option<&str>) -> Result<String, String> {
        Ok(String::new())
    }

    fn check_list(&self, _: &Download, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn adopt_lists(&self, _: &[String]) {}

    fn list_fetched(&self, _: &Download, _: Result<u64, &str>) {}

    fn learn(&self, _: &Learn, _: &Occurrence) {}

    fn serve_signed(&self, _: Vec<Arc<zone::Zone>>) {}
}

impl jobs::Lookup for Nobody {
    fn addresses(
        &self,
        _: &[std::net::SocketAddr],
        _: &NameBuf,
        _: Rtype,
        _: Instant,
    ) -> Result<jobs::Addresses, String> {
        Err("nobody is asked".to_owned())
    }
}
