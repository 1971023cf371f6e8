//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! `forward(group)`: asks an upstream group, waits, and goes on with its answer.

use wire::{HashKey, OptionCode, Query};

use crate::program::Op;
use crate::run::Run;
use crate::want::{ClientSubnet, FetchWant, OutQuery, PoolId};

/// In [`ForwardStep::members`]: every server of the group.
pub const ALL_MEMBERS: u64 = 0;

/// What the step needs to know about its group.
#[derive(Clone, Copy, Debug)]
pub struct ForwardStep {
    /// The group.
    pub pool: PoolId,
    /// Which of its servers may be asked, one bit each in their order; zero: all.
    pub members: u64,
    /// Whether the client's EDNS client subnet is passed on; otherwise upstreams learn nothing about clients.
    pub forwards_client_subnet: bool,
    /// Whether an AD bit from this group is believed and passed on (RFC 6840 §5.8): only for groups that validate
    /// and are reached over a path nobody can forge on.
    pub trusts_ad: bool,
}

impl ForwardStep {
    /// Returns what to fetch for a query before it goes on where it is.
    pub(crate) fn want(
        &self,
        key: &HashKey,
        ops: &[Op],
        run: &Run<'_>,
        stale_after_ms: Option<u32>,
    ) -> FetchWant {
        let (query, outgoing) = (run.query, &run.outgoing);
        let options = run.out_options(ops);
        let client_subnet = outgoing.subnet(query, self.forwards_client_subnet);
        let question = &query.question;
        let checking_disabled = outgoing.checking_disabled(query);
        let wants_dnssec = outgoing.wants_dnssec(query);
        let no_recursion = outgoing.forbids_recursion();
        let flags =
            u64::from(wants_dnssec) | u64::from(checking_disabled) << 1 | u64::from(no_recursion) << 2;
        let mut hash = key.mix(
            run.sought.hash(),
            u64::from(question.qtype.0)
                | u64::from(question.qclass.0) << 16
                | u64::from(self.pool.0) << 32
                | flags << 48,
        );
        if self.members != ALL_MEMBERS {
            hash = key.mix(hash, self.members);
        }
        if let Some(subnet) = client_subnet {
            let bits = subnet.address_bits();
            hash = key.mix(key.mix(hash, bits as u64), (bits >> 64) as u64 ^ u64::from(subnet.prefix));
        }
        for (part, place) in options.chunks(8).zip(1_u64..) {
            let word = part.iter().fold(place, |word, octet| word << 8 | u64::from(*octet));
            hash = key.mix(hash, word);
        }
        let folded = outgoing.folds_case().then(|| question.qname.to_folded());
        FetchWant {
            pool: self.pool,
            query: OutQuery {
                qname: folded.as_ref().map_or(question.qname, wire::Folded::as_name).to_buf(),
                qtype: question.qtype,
                qclass: question.qclass,
                checking_disabled,
                wants_dnssec,
                no_recursion,
                client_subnet,
                options,
                members: self.members,
                hash,
            },
            stale_after_ms,
        }
    }
}

/// Reads the client subnet of a query; `None` when there is none, it is malformed, or the client opted out (prefix 0).
pub(crate) fn client_subnet(query: &Query<'_>) -> Option<ClientSubnet> {
    let data = query.edns?.option(OptionCode::CLIENT_SUBNET)?;
    ClientSubnet::parse(data).filter(|subnet| subnet.prefix > 0)
}

/// Returns the length of the subnet that was told if it is the client's own: then the reply says for which addresses
/// the answer holds (RFC 7871 §7.2.2).
pub(crate) fn own_subnet_bits(query: &Query<'_>, told: Option<ClientSubnet>) -> Option<u8> {
    let told = told?;
    (client_subnet(query)? == told).then_some(told.prefix)
}

impl ClientSubnet {
    /// Reads the data of the option in a query (RFC 7871 §6): address bits beyond the source prefix are cut off.
    pub fn parse(data: &[u8]) -> Option<Self> {
        let (&[0, family @ (1 | 2), prefix, _scope], octets) = data.split_first_chunk::<4>()? else {
            return None;
        };
        let bits_max = if family == 1 { 32 } else { 128 };
        if prefix > bits_max || octets.len() != usize::from(prefix).div_ceil(8) {
            return None;
        }
        let mut address = [0; 16];
        for (to, from) in address.iter_mut().zip(octets) {
            *to = *from;
        }
        let kept = if prefix == 0 { 0 } else { u128::MAX << (128 - u32::from(prefix)) };
        Some(Self { family, prefix, address: (u128::from_be_bytes(address) & kept).to_be_bytes() })
    }

    pub(crate) const fn address_bits(&self) -> u128 {
        u128::from_be_bytes(self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subnet_keeps_only_its_prefix() {
        let subnet = ClientSubnet::parse(&[0, 1, 20, 0, 192, 0, 0xff]).expect("well formed");
        assert_eq!((subnet.prefix, &subnet.address[..4]), (20, &[192, 0, 0xf0, 0][..]));
        for malformed in
            [&[0, 1, 33, 0, 1, 2, 3, 4, 5][..], &[0, 1, 24, 0, 1, 2], &[0, 3, 8, 0, 1], &[0, 1], &[]]
        {
            assert_eq!(ClientSubnet::parse(malformed), None, "{malformed:?}");
        }
    }
}
