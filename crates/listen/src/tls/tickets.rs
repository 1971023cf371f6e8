//! Session tickets (RFC 8446 §4.6.1, RFC 5077).

use std::fmt;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::server::ProducesTickets;

/// The keys of session tickets, which all workers and configurations share, so that a client can
/// resume on any of them. A new key is made every six hours, and the one before is still read.
///
/// Who resumes is not asked for a certificate again: a ticket is worth nothing where more is
/// demanded than where it was given, because there the keys are others.
#[derive(Clone)]
pub(super) struct TicketKeys(pub(super) [Arc<dyn ProducesTickets>; 4]);

impl TicketKeys {
    /// Makes keys.
    pub(super) fn new() -> Result<Self, rustls::Error> {
        let new = aws_lc_rs::Ticketer::new;
        Ok(Self([new()?, new()?, new()?, new()?]))
    }
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketKeys(…)")
    }
}
