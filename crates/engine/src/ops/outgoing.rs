//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Steps that change what other servers are sent: the client's subnet, EDNS options, flags.

use std::net::IpAddr;
use std::sync::Arc;

use sets::AddressSet;
use wire::{Flags, Message, OptionCode, Prefix, Query};

use clients::client::Client;
use clients::gate::prefix_set::PrefixSet;
use clients::subnet::{ClientSubnet, client_subnet, opts_out, own_subnet_bits};

/// Octets that the options of one query may have besides the client subnet, so that queries stay
/// small.
pub const OPTIONS_OCTETS_MAX: usize = 256;

/// Octets of an option that goes to certain servers, its head included.
pub const SERVER_OPTION_OCTETS_MAX: usize = 4 + 128;

/// EDNS options that certain servers are sent, whoever asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ServerOptions(Vec<(Prefix, Box<[u8]>)>);

impl ServerOptions {
    /// Returns the options that servers with these addresses are sent: their codes and data. Of
    /// several prefixes the longest one counts; data that is longer than there is room for is cut.
    // Once per configuration.
    pub fn of(options: Vec<(Prefix, OptionCode, Vec<u8>)>) -> Self {
        let wire = |(prefix, code, mut data): (Prefix, OptionCode, Vec<u8>)| {
            data.truncate(SERVER_OPTION_OCTETS_MAX - 4);
            let head = [code.0.to_be_bytes(), (data.len() as u16).to_be_bytes()].concat();
            (prefix, [head, data].concat().into_boxed_slice())
        };
        let mut all: Vec<_> = options.into_iter().map(wire).collect();
        all.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.bits()));
        Self(all)
    }

    /// Returns the option of a server, in wire form; empty: it is sent none.
    pub fn of_server(&self, address: IpAddr) -> &[u8] {
        let mut all = self.0.iter();
        all.find(|(prefix, _)| prefix.contains(address)).map_or(&[], |(_, option)| option)
    }
}

/// One change.
pub enum Change {
    /// What upstreams are told about where the client is (RFC 7871).
    Subnet(SubnetChange),
    /// Sets a flag, or clears it.
    Flag(OutFlag, bool),
    /// The EDNS options that are sent; replaces what an earlier step said.
    Options(Box<[OptionChange]>),
}

/// What becomes of the client subnet.
pub enum SubnetChange {
    /// None is sent.
    Strip,
    /// The one that the client sent goes on; none if it sent none.
    Forward,
    /// That of the client's address, as policies see it.
    Client {
        /// Leading bits of an IPv4 address that are told.
        ipv4: u8,
        /// Leading bits of an IPv6 address that are told.
        ipv6: u8,
        /// Whether the client's own option, if it sent one, is used instead.
        keeps: bool,
        /// Addresses that mean nothing outside: of them nothing is told.
        private: Arc<AddressSet>,
    },
    /// A fixed one: this for A questions and every other type, that for AAAA questions if there is
    /// one.
    Fixed {
        /// What is sent.
        subnet: ClientSubnet,
        /// What is sent with questions for AAAA.
        for_aaaa: Option<ClientSubnet>,
        /// Whether the client's own option, if it sent one, is used instead.
        keeps: bool,
    },
}

/// A flag of the query that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutFlag {
    /// DO: the upstream sends DNSSEC records too.
    Dnssec,
    /// CD: the upstream does not validate.
    CheckingDisabled,
    /// RD: the upstream asks others.
    Recursion,
    /// The name goes out in lower case.
    LowerCase,
}

/// One EDNS option of the query that is sent.
pub enum OptionChange {
    /// This option, in wire form: code, length, data.
    Set(Box<[u8]>),
    /// The client's own option of this code, if it sent one.
    Forward(OptionCode),
}

/// What later steps send besides the question. Part of what makes two fetches the same; small, and
/// empty in the common case: every query begins with one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Outgoing {
    subnet: Subnet,
    /// Flags that are set or cleared, one bit each.
    changed: u8,
    set: u8,
    /// The step that says which options are sent, and one more.
    options_at: u16,
}

/// The bit that no [`OutFlag`] has: servers are asked before response policy zones are.
const SERVERS_FIRST: u8 = 1 << 7;

const _: () = assert!(size_of::<Outgoing>() <= 24);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Subnet {
    /// What the upstream group's settings say.
    #[default]
    AsGroup,
    None,
    Some(ClientSubnet),
}

impl Change {
    /// Changes what is sent. `step` is this step's number; `trusted_peers` may ask for others, of
    /// whose addresses is told then.
    pub(crate) fn apply(
        &self,
        outgoing: &mut Outgoing,
        step: u16,
        query: &Query<'_>,
        client: &Client,
        trusted_peers: &PrefixSet,
    ) {
        match self {
            Self::Subnet(change) => {
                outgoing.subnet = match change.subnet(query, || client.address_of(query, trusted_peers)) {
                    Some(subnet) => Subnet::Some(subnet),
                    None => Subnet::None,
                };
            }
            Self::Flag(flag, is_set) => {
                let bit = 1 << *flag as u8;
                outgoing.changed |= bit;
                outgoing.set = if *is_set { outgoing.set | bit } else { outgoing.set & !bit };
            }
            Self::Options(_) => outgoing.options_at = step.saturating_add(1),
        }
    }
}

impl SubnetChange {
    /// Returns whether the client's own subnet is told, if it sent one.
    pub(crate) const fn takes_own(&self) -> bool {
        match self {
            Self::Strip => false,
            Self::Forward => true,
            Self::Client { keeps, .. } | Self::Fixed { keeps, .. } => *keeps,
        }
    }

    fn subnet(&self, query: &Query<'_>, client: impl FnOnce() -> IpAddr) -> Option<ClientSubnet> {
        let own = || query.edns.and_then(|edns| edns.option(OptionCode::CLIENT_SUBNET));
        match self {
            Self::Strip => None,
            Self::Forward => client_subnet(query),
            // RFC 7871 §7.1.2: a client that sends a prefix of zero wants nothing told about it.
            Self::Client { keeps: true, ipv4, ipv6, .. } if own().is_some() => {
                client_subnet(query).map(|subnet| subnet.cut(*ipv4, *ipv6))
            }
            Self::Fixed { keeps: true, .. } if own().is_some() => client_subnet(query),
            Self::Client { ipv4, ipv6, private, .. } => {
                let address = client();
                if private.contains(address) {
                    return None;
                }
                let subnet = ClientSubnet::of(address, if address.is_ipv4() { *ipv4 } else { *ipv6 });
                Some(subnet).filter(|subnet| subnet.prefix > 0)
            }
            Self::Fixed { subnet, for_aaaa, .. } => match for_aaaa {
                Some(other) if query.question.qtype == wire::Rtype::AAAA => Some(*other),
                _ => Some(*subnet),
            },
        }
    }
}

impl Outgoing {
    /// Returns the subnet that is told; `by_group` is whether the group's settings pass the
    /// client's on.
    pub(crate) fn subnet(&self, query: &Query<'_>, by_group: bool) -> Option<ClientSubnet> {
        match self.subnet {
            Subnet::AsGroup if by_group => client_subnet(query),
            Subnet::AsGroup | Subnet::None => None,
            Subnet::Some(subnet) => Some(subnet),
        }
    }

    /// Returns the same without a subnet.
    pub(crate) const fn without_subnet(mut self) -> Self {
        self.subnet = Subnet::None;
        self
    }

    /// Returns how many bits of its own subnet the client hears of in the reply, if it sent one:
    /// those that were told, or none, as it wished, if a step has said what becomes of subnets.
    #[inline(always)]
    pub(crate) fn echoed_bits(&self, query: &Query<'_>, told: Option<ClientSubnet>) -> Option<u8> {
        match told {
            // One by one: else the subnet would be written to memory for every query.
            Some(ClientSubnet { family, prefix, address }) => self.echoed(query, (family, prefix), address),
            None if self.subnet == Subnet::None => self.obeyed(query),
            // Nobody hears of subnets: nearly always.
            None => None,
        }
    }

    #[cold]
    #[inline(never)]
    fn echoed(&self, query: &Query<'_>, (family, prefix): (u8, u8), address: [u8; 16]) -> Option<u8> {
        let told = ClientSubnet { family, prefix, address };
        own_subnet_bits(query, Some(told)).or_else(|| self.obeyed(query))
    }

    /// Returns that no bits were told, if the client wished so.
    #[cold]
    fn obeyed(&self, query: &Query<'_>) -> Option<u8> {
        (self.subnet == Subnet::None && opts_out(query)).then_some(0)
    }

    /// Returns whether DO is set.
    pub(crate) fn wants_dnssec(&self, query: &Query<'_>) -> bool {
        self.flag(OutFlag::Dnssec).unwrap_or_else(|| query.wants_dnssec())
    }

    /// Returns whether CD is set.
    pub(crate) fn checking_disabled(&self, query: &Query<'_>) -> bool {
        self.flag(OutFlag::CheckingDisabled).unwrap_or(query.header.flags.has(Flags::CD))
    }

    /// Returns whether RD is cleared.
    pub(crate) const fn forbids_recursion(&self) -> bool {
        matches!(self.flag(OutFlag::Recursion), Some(false))
    }

    /// Returns whether a query without RD is treated as if it had it.
    pub(crate) const fn counts_as_rd(&self) -> bool {
        matches!(self.flag(OutFlag::Recursion), Some(true))
    }

    /// Returns the same for a query that response policy zones were asked about in vain: a resolver
    /// asks servers at once.
    pub(crate) const fn servers_first(mut self) -> Self {
        self.changed |= SERVERS_FIRST;
        self
    }

    /// Returns whether a resolver asks servers before response policy zones.
    pub(crate) const fn asks_servers_first(&self) -> bool {
        self.changed & SERVERS_FIRST != 0
    }

    /// Returns whether the name goes out in lower case.
    pub(crate) const fn folds_case(&self) -> bool {
        matches!(self.flag(OutFlag::LowerCase), Some(true))
    }

    /// Returns the step that says which options are sent, if one does.
    #[inline]
    pub(crate) fn options_step(&self) -> Option<usize> {
        self.options_at.checked_sub(1).map(usize::from)
    }

    const fn flag(&self, flag: OutFlag) -> Option<bool> {
        let bit = 1 << flag as u8;
        if self.changed & bit == 0 { None } else { Some(self.set & bit != 0) }
    }
}

/// Returns the options that such a step sends with a query, in wire form: they are put aside with
/// it.
#[cold]
pub(crate) fn options(changes: &[OptionChange], query: &Query<'_>) -> Box<[u8]> {
    let mut octets: Vec<u8> = Vec::new();
    let mut put = |option: &[&[u8]]| {
        let length: usize = option.iter().map(|part| part.len()).sum();
        if octets.len() + length <= OPTIONS_OCTETS_MAX {
            option.iter().for_each(|part| octets.extend_from_slice(part));
        }
    };
    for change in changes {
        match change {
            OptionChange::Set(option) => put(&[option]),
            OptionChange::Forward(code) => {
                let sent = query.edns.into_iter().flat_map(|edns| edns.options());
                for option in sent.filter(|option| option.code == *code) {
                    let length = (option.data.len() as u16).to_be_bytes();
                    put(&[&code.0.to_be_bytes(), &length, option.data]);
                }
            }
        }
    }
    octets.into_boxed_slice()
}

/// Returns the options of an upstream's reply that go on to the client, in wire form: those whose
/// codes went on from the client come back.
pub(crate) fn carried(changes: &[OptionChange], reply: &Message<'_>) -> Box<[u8]> {
    carry(reply, |code| {
        changes.iter().any(|change| matches!(change, OptionChange::Forward(listed) if *listed == code))
    })
}

/// Returns the options that a branch's answer brought from an upstream: all that it has.
pub(crate) fn carried_by_branch(answer: &Message<'_>) -> Box<[u8]> {
    carry(answer, |_| true)
}

/// Returns the wanted options of a message; nothing is put aside if there is none.
fn carry(message: &Message<'_>, is_wanted: impl Fn(OptionCode) -> bool) -> Box<[u8]> {
    let mut room = [0; OPTIONS_OCTETS_MAX];
    let mut at = 0;
    for option in message.edns.into_iter().flat_map(|edns| edns.options()) {
        let (head, end) = (at + 4, at + 4 + option.data.len());
        if is_wanted(option.code)
            && let Some(place) = room.get_mut(at..end)
            && let Some((fixed, data)) = place.split_at_mut_checked(head - at)
        {
            let ([c0, c1], [l0, l1]) =
                (option.code.0.to_be_bytes(), (option.data.len() as u16).to_be_bytes());
            fixed.copy_from_slice(&[c0, c1, l0, l1]);
            data.copy_from_slice(option.data);
            at = end;
        }
    }
    room.get(..at).unwrap_or(&[]).into()
}
