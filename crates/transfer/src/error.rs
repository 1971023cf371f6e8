//! Errors of other servers.

use std::fmt;
use std::io;

use identity::tls;
use tsig::Broken;
use wire::Rcode;
use zone::incoming::Fault;

/// Why another server is of no use now.
#[derive(Debug)]
pub enum PeerError {
    /// It cannot be reached, or the connection broke.
    Io(String),
    /// It took too long.
    Slow,
    /// What it says is not believed.
    Unsigned(Broken),
    /// What it says makes no zone.
    Fault(Fault),
    /// It does not do what it is asked for.
    Refused(Rcode),
    /// It does not serve the parent of a zone.
    NoParent,
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => f.write_str(error),
            Self::Slow => f.write_str("no answer in time"),
            Self::Unsigned(broken) => write!(f, "{broken}"),
            Self::Fault(fault) => write!(f, "{fault}"),
            Self::Refused(rcode) => write!(f, "it answers {rcode}"),
            Self::NoParent => f.write_str("it does not serve the parent zone"),
        }
    }
}

impl From<io::Error> for PeerError {
    fn from(error: io::Error) -> Self {
        Self::Io(tls::explain(&error))
    }
}
