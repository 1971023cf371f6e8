//! The kernel program that chooses frames, and its maps: what is taken, what is blocked, what was
//! counted.
//!
//! Its source is `bpf/filter.c`, where the rules stand; the object beside it is part of this
//! library, so that nobody needs a compiler for it.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::object::Object;
use crate::socket::Socket;
use crate::sys::bpf::{self, MAP_SOCKETS, Map, MapShape};

/// The compiled program.
const OBJECT: &[u8] = include_bytes!("../bpf/filter.o");

/// What the program is to look at.
#[derive(Clone, Copy, Debug)]
pub struct FilterPlan {
    /// The most queues that sockets can be on.
    pub queues_max: u32,
    /// The most octets of a frame that is taken: what fits a frame of the sockets.
    pub frame_octets_max: u32,
    /// Which datagrams are taken.
    pub taking: Taking,
    /// The most destinations of each family.
    pub destinations_max: u32,
    /// The most blocked prefixes of each family. Takes memory only for what there is.
    pub blocks_max: u32,
    /// Whether the way back is checked.
    pub routes: Routes,
    /// Whether packets of several buffers are let through to the program, which a large MTU needs
    /// (Linux 5.18).
    pub takes_fragments: bool,
}

impl FilterPlan {
    /// Returns what suits most.
    pub const fn new() -> Self {
        Self {
            queues_max: 64,
            frame_octets_max: 2048 - crate::socket::HEADROOM_OCTETS,
            taking: Taking::Queries,
            destinations_max: 256,
            blocks_max: 65_536,
            routes: Routes::Trust,
            takes_fragments: false,
        }
    }
}

impl Default for FilterPlan {
    fn default() -> Self {
        Self::new()
    }
}

/// Which datagrams to a known destination are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taking {
    /// Those that may be DNS queries: twelve octets or more, and not marked as a response.
    Queries,
    /// All.
    All,
}

/// Where replies go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routes {
    /// To the station that the query came from.
    #[default]
    Trust,
    /// The same, but only if the kernel would send them there, too; other queries pass to it. Costs
    /// a look-up for each query, and works only while the loopback interface forwards
    /// (`net.ipv4.conf.lo.forwarding`, `net.ipv6.conf.lo.forwarding`).
    Check,
}

/// What is done with queries from a blocked prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// They are dropped.
    Drop,
    /// They pass to the kernel's sockets.
    Pass,
    /// They are taken as if not blocked: an exception inside a larger prefix.
    Take,
}

impl Action {
    const fn number(self) -> u32 {
        match self {
            Self::Drop => 0,
            Self::Pass => 1,
            Self::Take => 2,
        }
    }

    const fn of(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Drop),
            1 => Some(Self::Pass),
            2 => Some(Self::Take),
            _ => None,
        }
    }
}

/// A blocked prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its first address.
    pub prefix: IpAddr,
    /// Its length.
    pub bits: u8,
    /// What is done with queries from it.
    pub action: Action,
    /// How many of them there were.
    pub frames: u64,
}

/// What became of frames, as the program counted them since it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// Went to a socket.
    pub taken: u64,
    /// Passed because their queue has no socket.
    pub no_socket: u64,
    /// Dropped: blocked.
    pub dropped: u64,
    /// Passed: blocked, with that action.
    pub excepted: u64,
    /// Passed: no query, though to a known destination.
    pub implausible: u64,
    /// Passed: to an unknown destination.
    pub elsewhere: u64,
    /// Passed: fragments, options, damaged, too long.
    pub unfit: u64,
    /// Passed: no UDP.
    pub other: u64,
    /// Passed: the kernel would send the reply elsewhere, or we cannot know.
    pub misrouted: u64,
}

impl Verdicts {
    /// Octets of a counter.
    const OCTETS: usize = 8;

    /// Returns all, with their names.
    pub const fn named(&self) -> [(&'static str, u64); 9] {
        [
            ("taken", self.taken),
            ("no-socket", self.no_socket),
            ("dropped", self.dropped),
            ("excepted", self.excepted),
            ("implausible", self.implausible),
            ("elsewhere", self.elsewhere),
            ("unfit", self.unfit),
            ("other", self.other),
            ("misrouted", self.misrouted),
        ]
    }
}

/// What the program says of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The driver takes it as a fault of the program.
    Aborted,
    /// Drop it.
    Drop,
    /// The kernel's network stack.
    Pass,
    /// A socket.
    Take,
}

/// Why the program could not be loaded.
#[derive(Debug)]
pub struct LoadError {
    /// What was tried.
    pub step: &'static str,
    /// What the kernel said.
    pub source: io::Error,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: ", self.step)?;
        match self.source.raw_os_error() {
            Some(libc::EPERM) => f.write_str("CAP_BPF and CAP_NET_ADMIN are needed"),
            Some(libc::ENOSYS) => f.write_str("the kernel has no BPF, or a sandbox forbids it"),
            _ => write!(f, "{}", self.source),
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Which socket has which queue: a map that may also be somebody else's.
#[derive(Debug)]
pub struct SocketMap(Map);

impl SocketMap {
    /// Opens the map of a program that somebody else attached, by the path it is pinned at.
    pub fn open(path: &Path) -> io::Result<Self> {
        let shape = MapShape { kind: MAP_SOCKETS, key_octets: 4, value_octets: 4, entries: 0, flags: 0 };
        Map::open(path, shape).map(Self)
    }

    /// Makes it available to other programs by a path in a BPF file system.
    pub fn pin(&self, path: &Path) -> io::Result<()> {
        self.0.pin(path)
    }

    /// Has a socket receive what its queue gets. The entry goes when the socket is closed.
    pub fn connect(&self, socket: &Socket) -> io::Result<()> {
        let fd = socket.as_fd().as_raw_fd();
        self.0.set(&socket.queue().to_ne_bytes(), &fd.to_ne_bytes())
    }

    /// Lets a queue pass to the kernel's sockets again.
    pub fn disconnect(&self, queue: u32) -> io::Result<()> {
        self.0.remove(&queue.to_ne_bytes()).map(|_| ())
    }

    /// Returns how many queues there can be.
    pub const fn queues_max(&self) -> u32 {
        self.0.entries()
    }
}

/// The loaded program. Takes nothing until it is attached, destinations are added and sockets
/// connected.
#[derive(Debug)]
pub struct Filter {
    program: OwnedFd,
    settings: Map,
    destinations: [Map; 2],
    blocked: [Map; 2],
    sockets: SocketMap,
    counters: Map,
    plan: FilterPlan,
    /// Whether the way back is checked now; what the plan says at first.
    checks_routes: AtomicBool,
}

/// The family's place in pairs of maps.
const fn family(address: IpAddr) -> usize {
    if address.is_ipv4() { 0 } else { 1 }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

impl Filter {
    /// Loads the program.
    pub fn load(plan: &FilterPlan) -> Result<Self, LoadError> {
        let invalid = |step| move || LoadError { step, source: io::ErrorKind::InvalidData.into() };
        let object = Object::parse(OBJECT).ok_or_else(invalid("read the kernel program"))?;
        let mut maps = Vec::new();
        for map in &object.maps {
            let entries = match map.name.as_str() {
                "sockets" => plan.queues_max,
                "destinations_v4" | "destinations_v6" => plan.destinations_max,
                "blocked_v4" | "blocked_v6" => plan.blocks_max,
                _ => map.shape.entries,
            };
            let shape = MapShape { entries: entries.max(1), ..map.shape };
            let created = Map::create(&map.name, shape);
            maps.push(created.map_err(|source| LoadError { step: "create a BPF map", source })?);
        }
        let descriptors: Vec<_> = maps.iter().map(|map| map.as_fd().as_raw_fd()).collect();
        let instructions = object.link(&descriptors).ok_or_else(invalid("link the kernel program"))?;
        let program = bpf::load_program("gannet", &instructions, &object.licence, plan.takes_fragments);
        let program = program.map_err(|source| LoadError { step: "load the kernel program", source })?;
        let mut named: Vec<_> = object.maps.iter().map(|map| map.name.as_str()).zip(maps).collect();
        let mut take = |name| {
            let at = named.iter().position(|(known, _)| *known == name);
            at.map(|at| named.swap_remove(at).1).ok_or_else(invalid("find the maps of the kernel program"))
        };
        let filter = Self {
            program,
            settings: take("settings")?,
            destinations: [take("destinations_v4")?, take("destinations_v6")?],
            blocked: [take("blocked_v4")?, take("blocked_v6")?],
            sockets: SocketMap(take("sockets")?),
            counters: take("counters")?,
            plan: *plan,
            checks_routes: AtomicBool::new(plan.routes == Routes::Check),
        };
        let set = filter.set([0, 0]);
        set.map_err(|source| LoadError { step: "set up the kernel program", source })?;
        Ok(filter)
    }

    fn set(&self, has_blocks: [u32; 2]) -> io::Result<()> {
        let [v4, v6] = has_blocks;
        let queries_only = u32::from(self.plan.taking == Taking::Queries);
        let checks_routes = u32::from(self.checks_routes.load(Ordering::Relaxed));
        let words = [self.plan.frame_octets_max, queries_only, v4, v6, checks_routes];
        self.settings.set(&0u32.to_ne_bytes(), words.map(u32::to_ne_bytes).as_flattened())
    }

    /// Makes the destinations of both families changeable by other programs, by paths in a BPF file
    /// system. A key is the address, the port and two zero octets, as they stand in packets; a
    /// value is any four octets.
    pub fn pin_destinations(&self, v4: &Path, v6: &Path) -> io::Result<()> {
        let [of_v4, of_v6] = &self.destinations;
        of_v4.pin(v4)?;
        of_v6.pin(v6)
    }

    /// Checks the way back from now on, or does not.
    pub fn check_routes(&self, routes: Routes) -> io::Result<()> {
        self.checks_routes.store(routes == Routes::Check, Ordering::Relaxed);
        self.note_blocks()
    }

    /// Takes datagrams to this address and port from now on.
    pub fn serve(&self, destination: SocketAddr) -> io::Result<()> {
        let (map, key) = self.destination(destination);
        map.set(&key, &1u32.to_ne_bytes())
    }

    /// Leaves datagrams to this address and port to the kernel.
    pub fn forget(&self, destination: SocketAddr) -> io::Result<()> {
        let (map, key) = self.destination(destination);
        map.remove(&key).map(|_| ())
    }

    fn destination(&self, destination: SocketAddr) -> (&Map, Vec<u8>) {
        let mut key = octets(destination.ip());
        key.extend(destination.port().to_be_bytes());
        key.extend([0, 0]);
        (&self.destinations[family(destination.ip())], key)
    }

    /// Treats queries from a prefix in another way. The longest prefix of a source counts.
    pub fn block(&self, prefix: IpAddr, bits: u8, action: Action) -> io::Result<()> {
        let mut value = action.number().to_ne_bytes().to_vec();
        value.extend([0; 12]);
        self.blocked[family(prefix)].set(&prefix_key(prefix, bits), &value)?;
        self.note_blocks()
    }

    /// Ends what [`block`](Self::block) began, if that was not done before.
    pub fn unblock(&self, prefix: IpAddr, bits: u8) -> io::Result<()> {
        self.blocked[family(prefix)].remove(&prefix_key(prefix, bits))?;
        self.note_blocks()
    }

    /// Returns how many frames a block has hit; `None` if there is no such block.
    pub fn hits(&self, prefix: IpAddr, bits: u8) -> io::Result<Option<u64>> {
        let key = prefix_key(prefix, bits);
        let found = self.find(family(prefix), |known| known == key)?;
        Ok(found.first().map(|block| block.frames))
    }

    /// Returns all blocks. A system call or two for each.
    pub fn blocks(&self) -> io::Result<Vec<Block>> {
        let mut found = self.find(0, |_| true)?;
        found.extend(self.find(1, |_| true)?);
        Ok(found)
    }

    /// Returns the blocks of a family whose keys are wanted. A look-up by key would find the
    /// longest prefix that covers it, which need not be the one that is meant, so this goes through
    /// all.
    fn find(&self, family: usize, is_wanted: impl Fn(&[u8]) -> bool) -> io::Result<Vec<Block>> {
        let map = &self.blocked[family];
        let mut found = Vec::new();
        let mut known = map.next_key(None)?;
        while let Some(key) = known {
            if is_wanted(&key)
                && let Some(value) = map.look_up(&key)?
            {
                found.extend(block_of(&key, &value));
            }
            known = map.next_key(Some(&key))?;
        }
        Ok(found)
    }

    /// Tells the program which families have blocks at all.
    fn note_blocks(&self) -> io::Result<()> {
        let [v4, v6] = &self.blocked;
        self.set([u32::from(v4.next_key(None)?.is_some()), u32::from(v6.next_key(None)?.is_some())])
    }

    /// Returns which socket has which queue.
    pub const fn sockets(&self) -> &SocketMap {
        &self.sockets
    }

    /// Returns what was counted, of all processors together.
    pub fn verdicts(&self) -> io::Result<Verdicts> {
        let count = |index: u32| -> io::Result<u64> {
            let values = self.counters.look_up(&index.to_ne_bytes())?.unwrap_or_default();
            let (values, _) = values.as_chunks::<{ Verdicts::OCTETS }>();
            Ok(values.iter().map(|value| u64::from_ne_bytes(*value)).sum())
        };
        Ok(Verdicts {
            taken: count(0)?,
            no_socket: count(1)?,
            dropped: count(2)?,
            excepted: count(3)?,
            implausible: count(4)?,
            elsewhere: count(5)?,
            unfit: count(6)?,
            other: count(7)?,
            misrouted: count(8)?,
        })
    }

    /// Runs the program on a frame, as if it had come to queue 0. Needs no interface.
    pub fn judge(&self, frame: &[u8]) -> io::Result<Verdict> {
        let (verdict, _) = bpf::run_program(self.program.as_fd(), frame)?;
        match verdict {
            0 => Ok(Verdict::Aborted),
            1 => Ok(Verdict::Drop),
            2 => Ok(Verdict::Pass),
            4 => Ok(Verdict::Take),
            other => Err(io::Error::new(io::ErrorKind::InvalidData, format!("verdict {other}"))),
        }
    }
}

impl AsFd for Filter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }
}

/// Reads a block as it stands in the map.
fn block_of(key: &[u8], value: &[u8]) -> Option<Block> {
    let (bits, address) = key.split_first_chunk::<4>()?;
    let prefix = match address.len() {
        4 => IpAddr::from(*address.first_chunk::<4>()?),
        _ => IpAddr::from(*address.first_chunk::<16>()?),
    };
    Some(Block {
        prefix,
        bits: u8::try_from(u32::from_ne_bytes(*bits)).ok()?,
        action: Action::of(u32::from_ne_bytes(*value.first_chunk::<4>()?))?,
        frames: u64::from_ne_bytes(*value.get(8..)?.first_chunk::<8>()?),
    })
}

/// Returns the key of a prefix: its length, then the address with the other bits cleared.
fn prefix_key(prefix: IpAddr, bits: u8) -> Vec<u8> {
    let mut key = octets(prefix);
    let bits = usize::from(bits).min(key.len() * 8);
    for (index, octet) in key.iter_mut().enumerate() {
        let kept = bits.saturating_sub(index * 8).min(8) as u32;
        *octet &= 0xffu8.checked_shl(8 - kept).unwrap_or(0);
    }
    [&(bits as u32).to_ne_bytes(), key.as_slice()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::{self, Frame};
    use crate::headers::{Datagram, Mac};

    /// Loads the filter with the destinations of the hand-made frames; says why if it may not.
    fn filter(plan: &FilterPlan) -> Option<Filter> {
        let filter = match Filter::load(plan) {
            Ok(filter) => filter,
            Err(error) if matches!(error.source.raw_os_error(), Some(libc::EPERM | libc::ENOSYS)) => {
                println!("skipped: {error}");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        for frame in [frames::query_v4(), frames::query_v6()] {
            filter.serve(frame.destination).expect("room for a destination");
        }
        Some(filter)
    }

    /// Runs the program and expects exactly this counter to have gone on by one.
    fn check(filter: &Filter, frame: &Frame, expect: &str) {
        check_bytes(filter, &frame.bytes(), expect, frame);
    }

    fn check_bytes(filter: &Filter, bytes: &[u8], expect: &str, what: &dyn fmt::Debug) {
        let before = filter.verdicts().expect("counters").named();
        let verdict = filter.judge(bytes).expect("the program runs");
        let after = filter.verdicts().expect("counters").named();
        let changed: Vec<_> = before
            .iter()
            .zip(after)
            .filter(|(before, after)| before.1 != after.1)
            .map(|(before, after)| (after.0, after.1 - before.1))
            .collect();
        assert_eq!(changed, [(expect, 1)], "{what:?}");
        // There are no sockets here, so what is meant for one passes.
        let expected = if expect == "dropped" { Verdict::Drop } else { Verdict::Pass };
        assert_eq!(verdict, expected, "{what:?}");
    }

    #[test]
    fn plain_queries_are_meant_for_sockets() {
        let Some(filter) = filter(&FilterPlan::new()) else { return };
        for plain in [frames::query_v4(), frames::query_v6()] {
            check(&filter, &plain, "no-socket");
            check(&filter, &Frame { tags: vec![7], ..plain.clone() }, "no-socket");
            check(&filter, &Frame { padding: 20, ..plain.clone() }, "no-socket");
            check(&filter, &Frame { traffic_class: 3, hops: 1, ..plain.clone() }, "no-socket");
            check(&filter, &Frame { fragment: 0x4000, udp_checksum: Some(0), ..plain }, "no-socket");
        }
    }

    #[test]
    fn everything_else_passes() {
        let Some(filter) = filter(&FilterPlan::new()) else { return };
        let (v4, v6) = (frames::query_v4, frames::query_v6);
        check(&filter, &Frame { tags: vec![7, 8], ..v4() }, "other");
        check(&filter, &Frame { ihl: 6, ..v4() }, "unfit");
        check(&filter, &Frame { fragment: 0x2000, ..v4() }, "unfit");
        check(&filter, &Frame { fragment: 0x0010, ..v4() }, "unfit");
        check(&filter, &Frame { protocol: 6, ..v4() }, "other");
        check(&filter, &Frame { protocol: 1, ..v4() }, "other");
        for header in [0, 43, 44, 51, 58, 60, 6] {
            check(&filter, &Frame { protocol: header, ..v6() }, "other");
        }
        for plain in [v4(), v6()] {
            check(&filter, &Frame { cut: 1, ..plain.clone() }, "unfit");
            check(&filter, &Frame { udp_octets: Some(7), ..plain.clone() }, "unfit");
            check(&filter, &Frame { udp_octets: Some(2000), ..plain.clone() }, "unfit");
            check(&filter, &Frame { payload: vec![0; 11], ..plain.clone() }, "implausible");
            check(&filter, &Frame { payload: Vec::new(), ..plain.clone() }, "implausible");
            let mut response = frames::QUERY.to_vec();
            response[2] |= 0x80;
            check(&filter, &Frame { payload: response, ..plain.clone() }, "implausible");
            check(&filter, &Frame { payload: vec![0; 1800], ..plain.clone() }, "unfit");
            let group = Mac([1, 0, 0x5e, 0, 0, 1]);
            check(&filter, &Frame { destination_mac: group, ..plain.clone() }, "unfit");
            let mut other_port = plain.clone();
            other_port.destination.set_port(54);
            check(&filter, &other_port, "elsewhere");
            let mut other_address = plain;
            other_address.destination.set_ip(other_address.source.ip());
            check(&filter, &other_address, "elsewhere");
        }
    }

    #[test]
    fn every_cut_passes() {
        let Some(filter) = filter(&FilterPlan::new()) else { return };
        for frame in [frames::query_v4(), Frame { tags: vec![7], ..frames::query_v6() }] {
            let bytes = frame.bytes();
            // The kernel does not run programs on less than an Ethernet header.
            for len in 14..bytes.len() {
                assert_eq!(filter.judge(&bytes[..len]).expect("the program runs"), Verdict::Pass);
            }
        }
        assert_eq!(filter.verdicts().expect("counters").no_socket, 0);
    }

    #[test]
    fn what_the_program_takes_can_be_parsed() {
        let Some(filter) = filter(&FilterPlan::new()) else { return };
        // A generator of its own is enough here: what matters is that bits fall everywhere.
        let mut state = 0x2545_f491_4f6c_dd1du64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize
        };
        let mut taken = 0;
        for round in 0..4000 {
            let plain = if round % 2 == 0 { frames::query_v4() } else { frames::query_v6() };
            let mut bytes = Frame { tags: vec![1; round / 2 % 2], ..plain }.bytes();
            for _ in 0..random() % 3 {
                let at = random() % bytes.len();
                bytes[at] ^= 1 << (random() % 8);
            }
            let before = filter.verdicts().expect("counters").no_socket;
            filter.judge(&bytes).expect("the program runs");
            if filter.verdicts().expect("counters").no_socket > before {
                taken += 1;
                // The program does not look at checksums, nor at addresses that cannot ask.
                use crate::headers::Unfit;
                let parsed = Datagram::parse(&bytes);
                let is_fine = matches!(parsed, Ok(_) | Err(Unfit::Checksum | Unfit::Address));
                assert!(is_fine, "{parsed:?} {bytes:02x?}");
            }
        }
        assert!(taken > 1000, "{taken}");
    }

    #[test]
    fn all_datagrams_are_taken_if_asked_for() {
        let Some(filter) = filter(&FilterPlan { taking: Taking::All, ..FilterPlan::new() }) else { return };
        for plain in [frames::query_v4(), frames::query_v6()] {
            check(&filter, &Frame { payload: Vec::new(), ..plain.clone() }, "no-socket");
            check(&filter, &Frame { payload: vec![0xff; 30], ..plain }, "no-socket");
        }
    }

    #[test]
    fn what_has_no_way_back_passes() {
        let Some(filter) = filter(&FilterPlan { routes: Routes::Check, ..FilterPlan::new() }) else { return };
        // Nobody has routes to documentation addresses, and no interface is in play here.
        check(&filter, &frames::query_v4(), "misrouted");
        check(&filter, &frames::query_v6(), "misrouted");
        // What would not be taken anyway is judged by the rest.
        check(&filter, &Frame { ihl: 6, ..frames::query_v4() }, "unfit");
    }

    #[test]
    fn what_is_forgotten_passes() {
        let Some(filter) = filter(&FilterPlan::new()) else { return };
        for plain in [frames::query_v4(), frames::query_v6()] {
            filter.forget(plain.destination).expect("a destination");
            check(&filter, &plain, "elsewhere");
            filter.serve(plain.destination).expect("a destination");
            check(&filter, &plain, "no-socket");
        }
    }

    #[test]
    fn blocked_sources_are_dropped_and_counted() {
        let Some(filter) = filter(&FilterPlan::new()) else { return };
        let cases: [(Frame, &str, u8, &str, u8); 2] = [
            (frames::query_v4(), "192.0.2.0", 24, "192.0.2.1", 32),
            (frames::query_v6(), "2001:db8::", 32, "2001:db8::1", 128),
        ];
        for (plain, prefix, bits, exception, exception_bits) in cases {
            let (prefix, exception): (IpAddr, IpAddr) = (prefix.parse().unwrap(), exception.parse().unwrap());
            filter.block(prefix, bits, Action::Drop).expect("a block");
            check(&filter, &plain, "dropped");
            check(&filter, &plain, "dropped");
            assert_eq!(filter.hits(prefix, bits).expect("hits"), Some(2));
            // The longest prefix counts.
            filter.block(exception, exception_bits, Action::Pass).expect("a block");
            check(&filter, &plain, "excepted");
            filter.block(exception, exception_bits, Action::Take).expect("a block");
            check(&filter, &plain, "no-socket");
            let block = |prefix, bits, action, frames| Block { prefix, bits, action, frames };
            let mut blocks = filter.blocks().expect("blocks");
            blocks.sort_by_key(|block| block.bits);
            let expected =
                [block(prefix, bits, Action::Drop, 2), block(exception, exception_bits, Action::Take, 1)];
            assert_eq!(blocks, expected);
            filter.unblock(exception, exception_bits).expect("a block");
            check(&filter, &plain, "dropped");
            assert_eq!(filter.hits(prefix, bits).expect("hits"), Some(3));
            filter.unblock(prefix, bits).expect("a block");
            filter.unblock(prefix, bits).expect("no block");
            assert_eq!(filter.hits(prefix, bits).expect("no hits"), None);
            check(&filter, &plain, "no-socket");
        }
    }

    #[test]
    fn prefixes_have_no_bits_beyond_their_length() {
        let check = |address: &str, bits, expect: &[u8]| {
            let key = prefix_key(address.parse().unwrap(), bits);
            assert_eq!(key.split_at(4).1, expect, "{address}/{bits}");
        };
        check("192.0.2.255", 32, &[192, 0, 2, 255]);
        check("192.0.2.255", 25, &[192, 0, 2, 128]);
        check("192.0.2.255", 0, &[0, 0, 0, 0]);
        check("192.0.2.255", 200, &[192, 0, 2, 255]);
        check("2001:db8:ffff::", 33, &[0x20, 1, 0x0d, 0xb8, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}
