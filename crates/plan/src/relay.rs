//! Oblivious targets that clients' sealed messages are carried to (RFC 9230).

use std::net::IpAddr;

use crate::tls::ClientTls;

/// The targets that messages are carried to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelayPlan {
    /// None: nothing is carried.
    pub targets: Vec<RelayTarget>,
}

/// A target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayTarget {
    /// What clients call it: its name, with its port if that is not 443.
    pub authority: String,
    /// Its name.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Its address; looked up by the machine's resolver if `None`.
    pub dial: Option<IpAddr>,
    /// What it must prove.
    pub tls: ClientTls,
}
