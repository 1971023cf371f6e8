//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The EDNS client subnet (RFC 7871).

use wire::{OptionCode, Query};

pub use wire::ClientSubnet;

/// Reads the client subnet of a query; `None` when there is none, it is malformed, or the client
/// opted out (prefix 0).
#[inline]
pub fn client_subnet(query: &Query<'_>) -> Option<ClientSubnet> {
    let data = query.edns?.option(OptionCode::CLIENT_SUBNET)?;
    ClientSubnet::parse(data).filter(|subnet| subnet.prefix > 0)
}

/// Returns the length of the subnet that the client sent if that is what was told, perhaps cut:
/// then the reply says for which addresses the answer holds (RFC 7871 §7.2.2).
#[inline]
pub fn own_subnet_bits(query: &Query<'_>, told: Option<ClientSubnet>) -> Option<u8> {
    let told = told?;
    told.contains(&client_subnet(query)?).then_some(told.prefix)
}

/// Returns whether the client wants nothing told about it (RFC 7871 §7.1.2: a prefix of zero).
pub fn opts_out(query: &Query<'_>) -> bool {
    let data = query.edns.and_then(|edns| edns.option(OptionCode::CLIENT_SUBNET));
    data.and_then(ClientSubnet::parse).is_some_and(|subnet| subnet.prefix == 0)
}
