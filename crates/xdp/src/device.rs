//! An interface taken into use: the filter on it, and a socket for each of its queues, in the best
//! way that works.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::attach::{AttachError, Attachment, Existing};
use crate::filter::{Filter, FilterPlan, LoadError, Routes, SocketMap, Taking};
use crate::interface::{Interface, Way};
use crate::meter::Meter;
use crate::socket::{self, BusyPoll, Copying, HEADROOM_OCTETS, OpenError, Socket};

/// Octets of an Ethernet header with a tag: what a frame has more than its IP packet.
const LINK_OCTETS: u32 = 18;

/// What is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The best that works.
    #[default]
    Auto,
    /// In the driver, without a copy.
    ZeroCopy,
    /// In the driver, with a copy.
    Native,
    /// Behind any driver, with a copy.
    Generic,
}

/// What was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// In the driver, without a copy.
    ZeroCopy,
    /// In the driver, with a copy.
    Native,
    /// Behind the driver, with a copy.
    Generic,
    /// Through a program of somebody else's; without a copy or with one.
    Foreign {
        /// Whether packets pass without a copy.
        zero_copy: bool,
    },
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ZeroCopy => "zerocopy",
            Self::Native => "native",
            Self::Generic => "generic",
            Self::Foreign { zero_copy: true } => "foreign-zerocopy",
            Self::Foreign { zero_copy: false } => "foreign-copy",
        })
    }
}

/// Which program chooses the frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// Ours; what to do if another is there.
    Ours(Existing),
    /// One that is attached already and has its map of sockets pinned at this path.
    Foreign(PathBuf),
}

/// How an interface is to be used.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// Its name.
    pub interface: String,
    /// In which way.
    pub mode: Mode,
    /// By which program.
    pub program: Program,
    /// On how many of its queues, from the first; `None` for all. Others pass to the kernel.
    pub queues: Option<u32>,
    /// Entries of each ring; `None` for what suits the card.
    pub ring_entries: Option<u32>,
    /// Octets of a frame; `None` for what suits the MTU.
    pub frame_octets: Option<u32>,
    /// Whether to ask for huge pages.
    pub huge_pages: bool,
    /// Whether to poll the card ourselves.
    pub busy_poll: Option<BusyPoll>,
    /// Which datagrams are taken.
    pub taking: Taking,
    /// Whether the way back is checked.
    pub routes: Routes,
    /// The most blocked prefixes of each family.
    pub blocks_max: u32,
}

impl DeviceOptions {
    /// Returns what suits most.
    pub fn new(interface: &str) -> Self {
        Self {
            interface: interface.to_string(),
            mode: Mode::Auto,
            program: Program::Ours(Existing::Keep),
            queues: None,
            ring_entries: None,
            frame_octets: None,
            huge_pages: false,
            busy_poll: None,
            taking: Taking::Queries,
            routes: Routes::Trust,
            blocks_max: FilterPlan::new().blocks_max,
        }
    }

    /// Returns the entries of each ring: twice as many as the card's own receive ring has, because
    /// what it holds to receive into is not there for us, but no fewer than usual.
    pub fn ring_entries(&self, interface: &Interface) -> u32 {
        let usual = socket::Plan::RING_ENTRIES;
        let suitable = || {
            let of_card = interface.receive_ring_entries.unwrap_or(0).min(RING_ENTRIES_MAX);
            (2 * of_card).next_power_of_two().clamp(usual, RING_ENTRIES_MAX)
        };
        self.ring_entries.unwrap_or_else(suitable)
    }

    /// Returns the octets of a frame for an MTU: small ones unless it needs large ones.
    pub fn frame_octets(&self, mtu: u32) -> u32 {
        let fits_small = mtu + LINK_OCTETS + HEADROOM_OCTETS <= 2048;
        self.frame_octets.unwrap_or(if fits_small { 2048 } else { 4096 })
    }
}

/// The most entries of a ring that are chosen for a card: 128 MB of frames for each queue.
const RING_ENTRIES_MAX: u32 = 16_384;

/// Why an interface cannot be used.
#[derive(Debug)]
pub enum DeviceError {
    /// It is not there, or no Ethernet.
    Interface(io::Error),
    /// The program could not be loaded.
    Load(LoadError),
    /// The program could not be attached.
    Attach(AttachError),
    /// A socket could not be opened, on this queue.
    Open(u32, OpenError),
    /// A socket could not be made known to the program.
    Connect(io::Error),
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(error) => write!(f, "{error}"),
            Self::Load(error) => write!(f, "{error}"),
            Self::Attach(error) => write!(f, "{error}"),
            Self::Open(queue, error) => write!(f, "queue {queue}: {error}"),
            Self::Connect(error) => write!(f, "cannot use the map of sockets: {error}"),
        }
    }
}

impl std::error::Error for DeviceError {}

/// An interface in use. Dropping it takes the program off; traffic then goes to the kernel's
/// sockets.
#[derive(Debug)]
pub struct Device {
    interface: Interface,
    reached: Reached,
    filter: Option<Filter>,
    _attachment: Option<Attachment>,
    /// What better ways were tried, and why they did not work.
    declined: Vec<DeviceError>,
    meters: Vec<Arc<Meter>>,
}

/// A way to try.
struct Attempt {
    way: Way,
    copying: Copying,
}

impl Device {
    /// Takes an interface into use; returns it with one socket for each queue.
    ///
    /// Nothing is taken from the kernel until destinations are added to the
    /// [`filter`](Self::filter).
    pub fn open(plan: &DeviceOptions) -> Result<(Self, Vec<Socket>), DeviceError> {
        let interface = Interface::find(&plan.interface).map_err(DeviceError::Interface)?;
        if interface.mac.is_none() {
            let message = format!("{} is no Ethernet interface", interface.name);
            return Err(DeviceError::Interface(io::Error::new(io::ErrorKind::Unsupported, message)));
        }
        if let Program::Foreign(path) = &plan.program {
            return Self::join(plan, interface, path);
        }
        let native = |copying| Attempt { way: Way::Native, copying };
        let generic = Attempt { way: Way::Generic, copying: Copying::Always };
        let attempts = match plan.mode {
            Mode::Auto => vec![native(Copying::Avoid), generic],
            Mode::ZeroCopy => vec![native(Copying::Never)],
            Mode::Native => vec![native(Copying::Always)],
            Mode::Generic => vec![generic],
        };
        let mut declined = Vec::new();
        for attempt in &attempts {
            match Self::attempt(plan, &interface, attempt) {
                Ok((filter, attachment, sockets)) => {
                    let reached = match attachment.way() {
                        Way::Generic => Reached::Generic,
                        Way::Native if sockets.iter().all(Socket::is_zero_copy) => Reached::ZeroCopy,
                        Way::Native => Reached::Native,
                    };
                    let device = Self {
                        interface,
                        reached,
                        filter: Some(filter),
                        _attachment: Some(attachment),
                        declined,
                        meters: meters(&sockets),
                    };
                    return Ok((device, sockets));
                }
                // Another way would meet the same program, or lack the same right.
                Err(error @ DeviceError::Load(_)) => return Err(error),
                Err(error) => declined.push(error),
            }
        }
        // The first reason is why the best way did not work, the last why nothing did.
        Err(declined.pop().unwrap_or(DeviceError::Interface(io::ErrorKind::Unsupported.into())))
    }

    fn attempt(
        plan: &DeviceOptions,
        interface: &Interface,
        attempt: &Attempt,
    ) -> Result<(Filter, Attachment, Vec<Socket>), DeviceError> {
        let Program::Ours(existing) = &plan.program else {
            return Err(DeviceError::Interface(io::ErrorKind::InvalidInput.into()));
        };
        let frame_octets = plan.frame_octets(interface.mtu);
        let is_large = interface.mtu + LINK_OCTETS + HEADROOM_OCTETS > frame_octets;
        let filter_plan = FilterPlan {
            queues_max: interface.queues.receive.max(1),
            frame_octets_max: frame_octets - HEADROOM_OCTETS,
            taking: plan.taking,
            routes: plan.routes,
            blocks_max: plan.blocks_max,
            takes_fragments: is_large && attempt.way == Way::Native,
            ..FilterPlan::new()
        };
        let filter = Filter::load(&filter_plan).map_err(DeviceError::Load)?;
        let attachment = filter.attach(interface, attempt.way, *existing).map_err(DeviceError::Attach)?;
        let sockets = open_sockets(plan, interface, attempt.copying, is_large && attempt.way == Way::Native)?;
        for socket in &sockets {
            filter.sockets().connect(socket).map_err(DeviceError::Connect)?;
        }
        Ok((filter, attachment, sockets))
    }

    /// Joins a program that somebody else attached.
    fn join(
        plan: &DeviceOptions,
        interface: Interface,
        path: &std::path::Path,
    ) -> Result<(Self, Vec<Socket>), DeviceError> {
        let map = SocketMap::open(path).map_err(DeviceError::Connect)?;
        let copying = match plan.mode {
            Mode::Auto => Copying::Avoid,
            Mode::ZeroCopy => Copying::Never,
            Mode::Native | Mode::Generic => Copying::Always,
        };
        let sockets = open_sockets(plan, &interface, copying, false)?;
        for socket in &sockets {
            map.connect(socket).map_err(DeviceError::Connect)?;
        }
        let reached = Reached::Foreign { zero_copy: sockets.iter().all(Socket::is_zero_copy) };
        let device = Self {
            interface,
            reached,
            filter: None,
            _attachment: None,
            declined: Vec::new(),
            meters: meters(&sockets),
        };
        Ok((device, sockets))
    }

    /// Returns the interface as it was when taken into use.
    pub const fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Returns in which way it is used.
    pub const fn reached(&self) -> Reached {
        self.reached
    }

    /// Returns the filter; `None` if the program is somebody else's.
    pub const fn filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    /// Returns the numbers of its sockets, queue by queue.
    pub fn meters(&self) -> &[Arc<Meter>] {
        &self.meters
    }

    /// Returns why better ways did not work.
    pub fn declined(&self) -> &[DeviceError] {
        &self.declined
    }
}

fn meters(sockets: &[Socket]) -> Vec<Arc<Meter>> {
    sockets.iter().map(Socket::meter).collect()
}

fn open_sockets(
    plan: &DeviceOptions,
    interface: &Interface,
    copying: Copying,
    multi_buffer: bool,
) -> Result<Vec<Socket>, DeviceError> {
    let queues = interface.queues.pairs().min(plan.queues.unwrap_or(u32::MAX));
    let frame_octets = plan.frame_octets(interface.mtu);
    let open = |queue| {
        let plan = socket::Plan {
            interface: interface.index,
            queue,
            frame_octets,
            ring_entries: plan.ring_entries(interface),
            node: interface.memory_node,
            copying,
            multi_buffer,
            huge_pages: plan.huge_pages,
            busy_poll: plan.busy_poll,
        };
        Socket::open(&plan).map_err(|error| DeviceError::Open(queue, error))
    };
    (0..queues).map(open).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Queues;

    fn entries(wanted: Option<u32>, of_card: Option<u32>) -> u32 {
        let interface = Interface {
            name: "eth0".to_owned(),
            index: 1,
            mtu: 1500,
            mac: None,
            driver: String::new(),
            queues: Queues { receive: 1, transmit: 1 },
            receive_ring_entries: of_card,
            memory_node: None,
            attached: Vec::new(),
            features: None,
        };
        DeviceOptions { ring_entries: wanted, ..DeviceOptions::new("eth0") }.ring_entries(&interface)
    }

    #[test]
    fn rings_hold_twice_what_the_cards_does() {
        let usual = socket::Plan::RING_ENTRIES;
        for (of_card, expect) in [
            (None, usual),
            (Some(512), usual),
            (Some(2048), 4096),
            (Some(3000), 8192),
            (Some(8192), RING_ENTRIES_MAX),
            (Some(u32::MAX), RING_ENTRIES_MAX),
        ] {
            assert_eq!(entries(None, of_card), expect, "{of_card:?}");
            assert_eq!(entries(Some(64), of_card), 64);
        }
    }
}
