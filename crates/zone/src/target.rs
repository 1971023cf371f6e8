//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Which records name a host whose addresses are sent along.

use wire::Rtype;

/// Returns where the data of a type names a host whose addresses are sent along.
pub(crate) const fn target_at(rtype: Rtype) -> Option<usize> {
    match rtype {
        Rtype::NS => Some(0),
        Rtype::MX | Rtype::SVCB | Rtype::HTTPS => Some(2),
        Rtype::SRV => Some(6),
        _ => None,
    }
}
