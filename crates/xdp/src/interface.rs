//! What the kernel says of a network interface.

use std::io;
use std::net::IpAddr;

use crate::headers::Mac;
use crate::netlink::{self, Message, Netlink, attribute};
use crate::sys::{bpf, calls};

/// Attributes of interfaces (`linux/if_link.h`).
const LINK_ADDRESS: u16 = 1;
const LINK_MTU: u16 = 4;
const LINK_INFO: u16 = 18;
const LINK_INFO_KIND: u16 = 1;
const LINK_TRANSMIT_QUEUES: u16 = 31;
const LINK_RECEIVE_QUEUES: u16 = 32;
const LINK_XDP: u16 = 43;
const XDP_FD: u16 = 1;
const XDP_ATTACHED: u16 = 2;
const XDP_FLAGS: u16 = 3;
const XDP_PROGRAM: u16 = 4;
const XDP_PROGRAM_NATIVE: u16 = 5;
const XDP_PROGRAM_GENERIC: u16 = 6;

/// Attach flags (`linux/if_link.h`).
pub(crate) const GENERIC: u32 = 1 << 1;
pub(crate) const NATIVE: u32 = 1 << 2;

/// An interface.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number in this network namespace.
    pub index: u32,
    /// The most octets of an IP packet.
    pub mtu: u32,
    /// Its Ethernet address; `None` if it is no Ethernet.
    pub mac: Option<Mac>,
    /// The driver, or the kind of a virtual interface.
    pub driver: String,
    /// Queues in use.
    pub queues: Queues,
    /// Entries of the card's receive ring, if it has one.
    pub receive_ring_entries: Option<u32>,
    /// Which of the machine's memories the card is nearest to; `None` if there is only one, or no
    /// card.
    pub memory_node: Option<u32>,
    /// XDP programs attached to it.
    pub attached: Vec<Attached>,
    /// What the driver says it can do; `None` if the kernel does not tell (before 6.3).
    pub features: Option<Features>,
}

/// How many queues an interface has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queues {
    /// That receive.
    pub receive: u32,
    /// That send.
    pub transmit: u32,
}

impl Queues {
    /// Returns how many do both: as many sockets there can be.
    pub fn pairs(self) -> u32 {
        self.receive.min(self.transmit)
    }
}

/// An XDP program on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// The kernel's number of it.
    pub id: u32,
    /// Its name, if we may ask for it.
    pub name: Option<String>,
    /// Where it runs.
    pub way: Way,
}

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In the driver, before anything else is done with a packet.
    Native,
    /// In the network stack, behind any driver.
    Generic,
}

/// What a driver says it can do (`linux/netdev.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    bits: u64,
    /// Frames that a packet may take in zero-copy mode.
    pub zero_copy_frames_max: u32,
}

impl Features {
    /// Returns whether programs run in the driver and can pass packets to sockets.
    pub const fn native(self) -> bool {
        self.bits & 0b11 == 0b11
    }

    /// Returns whether packets pass without a copy.
    pub const fn zero_copy(self) -> bool {
        self.bits & 0b1000 != 0
    }

    /// Returns whether packets may come in several buffers.
    pub const fn multi_buffer(self) -> bool {
        self.bits & 0b10_0000 != 0
    }
}

fn u32_of(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

/// Returns the fixed part of messages about interfaces.
fn link_head(index: u32) -> [u8; 16] {
    let mut head = [0; 16];
    head[4..8].copy_from_slice(&index.to_ne_bytes());
    head
}

impl Interface {
    /// Looks an interface up by its name.
    pub fn find(name: &str) -> io::Result<Self> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("there is no interface {name:?}"));
        let index = calls::interface_index(name).ok_or_else(missing)?;
        let reply = Netlink::route()?.ask(Message::new(netlink::GET_LINK, &link_head(index)))?;
        let attributes = reply.get(16..).unwrap_or(&[]);
        let number = |kind| attribute(attributes, kind).and_then(u32_of);
        let is_ethernet = reply.get(2..4).is_some_and(|kind| matches!(kind, [1, 0] | [4, 3]));
        let mac = attribute(attributes, LINK_ADDRESS).and_then(|it| it.first_chunk::<6>()).map(|it| Mac(*it));
        let kind = attribute(attributes, LINK_INFO).and_then(|info| attribute(info, LINK_INFO_KIND));
        let kind = kind.map(|kind| String::from_utf8_lossy(kind).trim_end_matches('\0').to_string());
        let allocated = Queues {
            receive: number(LINK_RECEIVE_QUEUES).unwrap_or(1),
            transmit: number(LINK_TRANSMIT_QUEUES).unwrap_or(1),
        };
        Ok(Self {
            name: name.to_string(),
            index,
            mtu: number(LINK_MTU).unwrap_or(1500),
            mac: mac.filter(|_| is_ethernet),
            driver: driver(name).or(kind).unwrap_or_default(),
            queues: queues(name).unwrap_or(allocated),
            receive_ring_entries: receive_ring_entries(name),
            memory_node: memory_node(name),
            attached: attribute(attributes, LINK_XDP).map(attached).unwrap_or_default(),
            features: features(index).ok().flatten(),
        })
    }

    /// Returns the program attached in one way.
    pub fn attached(&self, way: Way) -> Option<&Attached> {
        self.attached.iter().find(|attached| attached.way == way)
    }
}

fn attached(xdp: &[u8]) -> Vec<Attached> {
    let mut found = Vec::new();
    let mut add = |kind, way| {
        let id = attribute(xdp, kind).and_then(u32_of).filter(|id| *id != 0);
        found.extend(id.map(|id| Attached { id, name: bpf::program_name(id).ok(), way }));
    };
    add(XDP_PROGRAM_NATIVE, Way::Native);
    add(XDP_PROGRAM_GENERIC, Way::Generic);
    if found.is_empty() {
        // Kernels before 4.20 name one program, and its way beside it.
        let is_generic = attribute(xdp, XDP_ATTACHED) == Some(&[2]);
        let id = attribute(xdp, XDP_PROGRAM).and_then(u32_of).filter(|id| *id != 0);
        let way = if is_generic { Way::Generic } else { Way::Native };
        found.extend(id.map(|id| Attached { id, name: bpf::program_name(id).ok(), way }));
    }
    found
}

/// Takes a program off that was attached by netlink, as older tools do.
pub(crate) fn detach(index: u32, way: Way) -> io::Result<()> {
    let flags = match way {
        Way::Native => NATIVE,
        Way::Generic => GENERIC,
    };
    let none = (-1i32).to_ne_bytes();
    let message = Message::new(netlink::SET_LINK, &link_head(index))
        .with_nested(LINK_XDP, &[(XDP_FD, &none), (XDP_FLAGS, &flags.to_ne_bytes())]);
    Netlink::route()?.ask(message).map(|_| ())
}

/// Returns all addresses of this network namespace, with the interface each belongs to.
pub fn addresses() -> io::Result<Vec<(IpAddr, u32)>> {
    let replies = Netlink::route()?.list(Message::new(netlink::GET_ADDRESS, &[0; 8]))?;
    let address_of = |reply: &Vec<u8>| {
        let index = u32_of(reply.get(4..8)?)?;
        let attributes = reply.get(8..)?;
        // The local end of a point-to-point link stands in an attribute of its own.
        let bytes = attribute(attributes, 2).or_else(|| attribute(attributes, 1))?;
        let address = match bytes.len() {
            4 => IpAddr::from(*bytes.first_chunk::<4>()?),
            16 => IpAddr::from(*bytes.first_chunk::<16>()?),
            _ => return None,
        };
        Some((address, index))
    };
    Ok(replies.iter().filter_map(address_of).collect())
}

/// Returns whether the loopback interface forwards, IPv4 and IPv6: without that, the filter finds
/// no routes.
pub fn loopback_forwards() -> [bool; 2] {
    ["ipv4", "ipv6"].map(|family| {
        let setting = std::fs::read_to_string(format!("/proc/sys/net/{family}/conf/lo/forwarding"));
        setting.is_ok_and(|setting| setting.trim() == "1")
    })
}

fn driver(name: &str) -> Option<String> {
    // `struct ethtool_drvinfo`: the command, then the driver's name in 32 octets.
    let mut words = [0u32; 49];
    words[0] = 3;
    calls::ethtool(name, &mut words).ok()?;
    let octets: Vec<_> = words[1..9].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let name = octets.split(|octet| *octet == 0).next().unwrap_or(&[]);
    Some(String::from_utf8_lossy(name).into_owned()).filter(|name| !name.is_empty())
}

fn queues(name: &str) -> Option<Queues> {
    // `struct ethtool_channels`: the command; the most of each kind; then those in use: receive,
    // transmit, other, combined.
    let mut words = [0u32; 9];
    words[0] = 0x3c;
    calls::ethtool(name, &mut words).ok()?;
    let [_, _, _, _, _, receive, transmit, _, combined] = words;
    let queues = Queues { receive: receive + combined, transmit: transmit + combined };
    (queues.pairs() > 0).then_some(queues)
}

fn receive_ring_entries(name: &str) -> Option<u32> {
    // `struct ethtool_ringparam`: the command; four maxima; then those in use, receive first.
    let mut words = [0u32; 9];
    words[0] = 0x10;
    calls::ethtool(name, &mut words).ok()?;
    Some(words[5]).filter(|entries| *entries != 0)
}

/// Returns which memory a card is nearest to, on a machine with several.
fn memory_node(name: &str) -> Option<u32> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let online = read("/sys/devices/system/node/online")?;
    let node = read(&format!("/sys/class/net/{name}/device/numa_node"))?;
    nearest(&online, &node)
}

/// Returns the card's node of what the kernel says of nodes (such as `0-1`) and of the card (-1 if
/// it does not know).
fn nearest(online: &str, node: &str) -> Option<u32> {
    let has_several = online.trim().contains([',', '-']);
    node.trim().parse().ok().filter(|_| has_several)
}

fn features(index: u32) -> io::Result<Option<Features>> {
    const FAMILY_ID: u16 = 1;
    const FAMILY_NAME: u16 = 2;
    const GET_FAMILY: u8 = 3;
    const GET_DEVICE: u8 = 1;
    let mut netlink = Netlink::generic()?;
    let head = |command: u8| [command, 1, 0, 0];
    let request = Message::new(netlink::GENERIC_CONTROL, &head(GET_FAMILY)).with(FAMILY_NAME, b"netdev\0");
    let reply = netlink.ask(request)?;
    let id = attribute(reply.get(4..).unwrap_or(&[]), FAMILY_ID).and_then(|id| id.first_chunk());
    let Some(id) = id else { return Ok(None) };
    let request = Message::new(u16::from_ne_bytes(*id), &head(GET_DEVICE)).with(1, &index.to_ne_bytes());
    let reply = netlink.ask(request)?;
    let attributes = reply.get(4..).unwrap_or(&[]);
    let bits = attribute(attributes, 3).and_then(|bits| bits.first_chunk()).map(|it| u64::from_ne_bytes(*it));
    let frames = attribute(attributes, 4).and_then(u32_of).unwrap_or(1);
    Ok(bits.map(|bits| Features { bits, zero_copy_frames_max: frames }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_has_a_memory_of_its_own_only_where_there_are_several() {
        assert_eq!(nearest("0\n", "0\n"), None);
        assert_eq!(nearest("0-1\n", "1\n"), Some(1));
        assert_eq!(nearest("0,2\n", "2\n"), Some(2));
        assert_eq!(nearest("0-1\n", "-1\n"), None);
    }
}
