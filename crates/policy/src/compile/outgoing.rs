//! Actions that change the query that is sent to upstreams: to steps.

use diagnostic::Span;
use engine::ClientSubnet;
use engine::ops::outgoing::{Change, OptionChange, OutFlag, SubnetChange};
use engine::program::Op;
use wire::Prefix;

use super::Emitter;
use crate::action::Addresses;
use crate::action::outgoing::{EdnsOption, Flags, Outgoing, Subnet};

pub(super) fn emit(emitter: &mut Emitter<'_>, action: &Outgoing, place: Span) {
    match action {
        Outgoing::Subnet(subnet) => {
            let change = match subnet {
                Subnet::Strip => SubnetChange::Strip,
                Subnet::Forward => SubnetChange::Forward,
                Subnet::Client { ipv4, ipv6, keeps, sends_private } => {
                    let prefixes = if *sends_private { Vec::new() } else { values::prefix_word("lan") };
                    let private = Addresses { prefixes, sets: Vec::new() };
                    let private = emitter.addresses(&private);
                    SubnetChange::Client { ipv4: *ipv4, ipv6: *ipv6, keeps: *keeps, private }
                }
                Subnet::Fixed { first, second, keeps } => {
                    SubnetChange::Fixed { subnet: told(*first), for_aaaa: second.map(told), keeps: *keeps }
                }
            };
            emitter.push(Op::Outgoing(Change::Subnet(change)), place);
        }
        Outgoing::Options(options) => {
            let options = options.iter().map(|option| match option {
                EdnsOption::Set(code, data) => {
                    let mut octets = code.0.to_be_bytes().to_vec();
                    octets.extend((data.len() as u16).to_be_bytes());
                    octets.extend(data);
                    OptionChange::Set(octets.into())
                }
                EdnsOption::Forward(code) => OptionChange::Forward(*code),
            });
            let options = options.collect();
            emitter.push(Op::Outgoing(Change::Options(options)), place);
        }
        Outgoing::Flags(Flags { dnssec, checking_disabled, recursion, lower_case }) => {
            let flags = [
                (OutFlag::Dnssec, dnssec),
                (OutFlag::CheckingDisabled, checking_disabled),
                (OutFlag::Recursion, recursion),
                (OutFlag::LowerCase, lower_case),
            ];
            for (flag, change) in flags {
                if let Some(is_set) = change {
                    emitter.push(Op::Outgoing(Change::Flag(flag, *is_set)), place);
                }
            }
        }
    }
}

fn told(prefix: Prefix) -> ClientSubnet {
    ClientSubnet::of(prefix.address(), prefix.bits())
}
