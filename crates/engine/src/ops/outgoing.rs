//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Steps that change what other servers are sent.

use crate::client::Client;
use wire::Query;

/// One change.
pub enum Change {}

/// What later steps send besides the question. Part of what makes two fetches the same; small, and empty in the common
/// case: every query begins with one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Outgoing {}

impl Change {
    pub(crate) const fn apply(&self, _: &mut Outgoing, _: &Query<'_>, _: &Client) {
        match *self {}
    }
}
