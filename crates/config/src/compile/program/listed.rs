//! The action that does what a list says: to a step.

use engine::ops::answer::{Block, BlockWith, Build};
use engine::program::Op;
use std::net::{Ipv4Addr, Ipv6Addr};
use wire::{EdeCode, Rcode, Ttl};

use super::Emitter;
use crate::policy::action::Listed;
use crate::policy::action::listed::Otherwise;
use crate::source::Span;

/// Seconds that clients keep what they get: after a mistake in a list is mended, nobody should notice it for long.
const TTL_SECONDS: u32 = 60;

pub(super) fn emit(emitter: &mut Emitter<'_>, action: &Listed, place: Span) {
    // A set that does not exist was reported before.
    let Some(list) = emitter.parts.sets.any_list(&action.set.value) else { return };
    let with = match action.otherwise {
        Otherwise::Null => {
            BlockWith::Addresses([Ipv4Addr::UNSPECIFIED].into(), [Ipv6Addr::UNSPECIFIED].into())
        }
        Otherwise::Nxdomain => BlockWith::Rcode(Rcode::NXDOMAIN),
        Otherwise::Nodata => BlockWith::Rcode(Rcode::NOERROR),
        Otherwise::Refused => BlockWith::Rcode(Rcode::REFUSED),
    };
    let ede = Some((EdeCode::BLOCKED, format!("set {}", action.set.value).into()));
    let block = Block { with, ttl: Ttl::new(TTL_SECONDS), ede, continues: false };
    emitter.push(Op::Answer(Build::Listed(list, block)), place);
}
