//! What other servers have to be asked for before a zone can come from elsewhere, and files on web
//! servers.

use std::net::IpAddr;
use std::time::Duration;

use wire::Name;

/// Looks up where zones come from, and fetches those that are files. Each method waits for answers
/// of other servers.
pub trait Elsewhere: Send + Sync {
    /// Returns the addresses of a host that zones come from, one at least; an error says why they
    /// are not known now.
    fn addresses(&self, host: Name<'_>) -> Result<Vec<IpAddr>, String>;

    /// Fetches a master file from a web server; an error says why it did not come.
    fn fetch(&self, file: &WebFile<'_>) -> Result<WebReply, String>;
}

/// A master file on a web server.
#[derive(Clone, Copy, Debug)]
pub struct WebFile<'a> {
    /// Where it is.
    pub url: &'a str,
    /// What the server said of the version that is here.
    pub known: Option<&'a Validators>,
    /// How long fetching it may take.
    pub patience: Duration,
    /// Octets it may have, unpacked.
    pub octets_max: u64,
}

/// What a web server says of a file, to ask later whether it has changed (RFC 9110 §8.8).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// `ETag`; empty if there is none.
    pub etag: String,
    /// `Last-Modified`; empty if there is none.
    pub last_modified: String,
}

/// What a web server says.
pub enum WebReply {
    /// The file is the one that is known.
    Unchanged,
    /// The file.
    Whole(Vec<u8>, Validators),
}
