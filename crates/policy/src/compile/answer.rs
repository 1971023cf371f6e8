//! Actions that make an answer: to steps.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use diagnostic::Span;
use engine::ops::answer::{Block, BlockWith, Build, Respond};
use engine::ops::zone::{Unloaded, ZoneStep};
use engine::program::Op;
use wire::EdeCode;

use super::Emitter;
use crate::action::answer::{self, Answer};
use crate::records;
use values::ttl;

pub(super) fn emit(emitter: &mut Emitter<'_>, action: &Answer, place: Span) {
    let build = match action {
        Answer::Hosts => {
            if let Some(hosts) = emitter.environment.hosts {
                emitter.push(Op::Local(Arc::clone(hosts)), place);
            }
            return;
        }
        Answer::Local => return emitter.push(Op::Local(Arc::clone(emitter.environment.local)), place),
        Answer::Zones { set, are_loaded, manner, ra_needs_rd } => {
            let unloaded = if *are_loaded { Unloaded::Passes } else { Unloaded::Fails };
            let step = ZoneStep { unloaded, manner: *manner, ra_needs_rd: *ra_needs_rd };
            let environment = emitter.environment;
            let op = match set {
                None => environment.zones.map(|_| Op::Zone(step)),
                Some(name) => {
                    let zones = environment.zone_sets.get(&name.value);
                    zones.map(|zones| Op::ZoneSet(Arc::clone(zones), step))
                }
            };
            if let Some(op) = op {
                emitter.push(op, place);
            }
            return;
        }
        Answer::Reject(rcode) => return emitter.push(Op::Reject(*rcode, None), place),
        Answer::Drop => return emitter.push(Op::Drop, place),
        Answer::Block(block) => Build::Block(blocked(block)),
        Answer::Respond(respond) => Build::Respond(Respond {
            rcode: Some(respond.rcode),
            authoritative: respond.authoritative,
            authentic: respond.authentic,
            counts: respond.records.counts,
            body: respond.records.body.as_slice().into(),
            relative_octets_max: respond.records.relative_octets_max,
            ede: told(respond.reason.as_ref()),
            continues: respond.continues,
        }),
        Answer::Records(list) => {
            Build::Records { set: records::compile(list, emitter.environment.key), continues: false }
        }
        Answer::RecordSet { name, continues } => match emitter.environment.records.get(&name.value) {
            Some(set) => Build::Records { set: Arc::clone(set), continues: *continues },
            None => return,
        },
        Answer::Reverse => match emitter.environment.reverse {
            Some(table) => Build::Reverse(Arc::clone(table)),
            None => return,
        },
    };
    emitter.push(Op::Answer(build), place);
}

fn told(reason: Option<&(EdeCode, String)>) -> Option<(EdeCode, Box<str>)> {
    reason.map(|(code, text)| (*code, text.as_str().into()))
}

/// Returns how the engine blocks.
pub(super) fn blocked(block: &answer::Block) -> Block {
    Block {
        with: with(&block.with),
        ttl: ttl(block.ttl),
        ede: told(block.reason.as_ref()),
        authoritative: block.authoritative,
        has_soa: block.has_soa,
        continues: block.continues,
    }
}

fn with(with: &answer::BlockWith) -> BlockWith {
    match with {
        answer::BlockWith::Null => {
            BlockWith::Addresses([Ipv4Addr::UNSPECIFIED].into(), [Ipv6Addr::UNSPECIFIED].into())
        }
        answer::BlockWith::Addresses(addresses) => {
            let (mut v4, mut v6) = (Vec::new(), Vec::new());
            for address in addresses {
                match address {
                    IpAddr::V4(address) => v4.push(*address),
                    IpAddr::V6(address) => v6.push(*address),
                }
            }
            BlockWith::Addresses(v4.into(), v6.into())
        }
        answer::BlockWith::Rcode(rcode) => BlockWith::Rcode(*rcode),
        answer::BlockWith::Silence => BlockWith::Silence,
    }
}
