//! AF_XDP on our own crate: the bare echo that is the limit, the program for a server that brings none, and a flood.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use xdp::headers::Datagram;
use xdp::{Device, DevicePlan, Existing, Filter, FilterPlan, Interface, Mode, Packet, Socket, Taking, Way};

use crate::pair::Pair;
use crate::queries::Packets;
use crate::sys;

/// Packets between two system calls.
const BATCH: usize = 64;
/// How long the echo sleeps when nobody asks.
const PATIENCE: Duration = Duration::from_secs(1);
/// Ports that a flood comes from.
const PORTS: std::ops::Range<u16> = 20_000..20_064;

/// Echoes queries to `address` that come in by `interface`, in place, until it is killed.
pub fn echo(interface: &str, address: SocketAddr) -> Result<(), String> {
    let plan = DevicePlan { mode: Mode::Native, ..DevicePlan::new(interface) };
    let (device, mut sockets) = Device::open(&plan).map_err(|error| error.to_string())?;
    let filter = device.filter().ok_or("no program of ours")?;
    filter.serve(address).map_err(|error| error.to_string())?;
    let mut socket = sockets.pop().ok_or("the interface has no queue")?;
    let mut left = 0;
    loop {
        if !socket.has_more() {
            xdp::socket::wait(&[(&socket, left)], PATIENCE).map_err(|error| error.to_string())?;
        }
        for _ in 0..BATCH {
            let Some(packet) = socket.receive() else { break };
            if let Some(packet) = turned(&mut socket, packet)
                && let Err(packet) = socket.transmit(packet)
            {
                socket.release(packet);
            }
        }
        left = socket.finish();
    }
}

/// Turns a query into its response; gives the packet up if it is none.
fn turned(socket: &mut Socket, mut packet: Packet) -> Option<Packet> {
    let frame = socket.write(&packet);
    let octets = Datagram::parse(frame).ok().filter(|_| !packet.continues()).and_then(|datagram| {
        *frame.get_mut(datagram.payload.start + 2)? |= 0x80;
        datagram.flow.reversed().write(frame, datagram.payload.len())
    });
    match octets {
        Some(octets) if socket.resize(&mut packet, octets) => Some(packet),
        _ => {
            socket.release(packet);
            None
        }
    }
}

/// Attaches our program to `interface` for queries to `address`, pins its maps in `folder` of a BPF file system of its own, and
/// runs `command` there until that ends.
pub fn filter_for(
    interface: &str,
    address: SocketAddr,
    folder: &Path,
    command: &[String],
) -> Result<ExitCode, String> {
    let said = |error: io::Error| error.to_string();
    let root = folder.parent().and_then(Path::to_str).ok_or("a folder of a BPF file system is expected")?;
    sys::mount_bpf(root).map_err(|error| format!("{root}: {error}"))?;
    std::fs::create_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let filter = Filter::load(&FilterPlan::new()).map_err(|error| error.to_string())?;
    filter.sockets().pin(&folder.join("xskmap")).map_err(said)?;
    let [v4, v6] = ["xsk-destinations-v4", "xsk-destinations-v6"].map(|name| folder.join(name));
    filter.pin_destinations(&v4, &v6).map_err(said)?;
    filter.serve(address).map_err(said)?;
    let interface = Interface::find(interface).map_err(said)?;
    let attached = filter.attach(&interface, Way::Native, Existing::Keep);
    let _attachment = attached.map_err(|error| error.to_string())?;
    let (program, arguments) = command.split_first().ok_or("a command is expected")?;
    let mut server = Command::new(program);
    server.args(arguments);
    sys::end_with_us(&mut server);
    let status = server.status().map_err(|error| format!("{program}: {error}"))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What a flood brought.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flood {
    /// Queries sent.
    pub sent: u64,
    /// Responses without an error.
    pub answered: u64,
    /// Other responses.
    pub wrong: u64,
}

/// Asks as fast as the interface takes it, for `time`. Runs at the client's end.
pub fn flood(pair: &Pair, packets: &Packets, time: Duration) -> Result<Flood, String> {
    let plan =
        DevicePlan { mode: Mode::Native, taking: Taking::All, ..DevicePlan::new(&pair.client.interface) };
    let (device, mut sockets) = Device::open(&plan).map_err(|error| error.to_string())?;
    let filter = device.filter().ok_or("no program of ours")?;
    for port in PORTS {
        filter.serve(pair.flow(port).source).map_err(|error| error.to_string())?;
    }
    let mut socket = sockets.pop().ok_or("the interface has no queue")?;
    let mut flood = Flood::default();
    let begun = Instant::now();
    while begun.elapsed() < time {
        while let Some(packet) = socket.receive() {
            let frame = socket.read(&packet);
            let header = Datagram::parse(frame).ok().and_then(|it| frame.get(it.payload)?.first_chunk::<4>());
            match header {
                Some([_, _, flags, code]) if flags & 0x80 != 0 && code & 0xf == 0 => flood.answered += 1,
                _ => flood.wrong += 1,
            }
            socket.release(packet);
        }
        for _ in 0..BATCH {
            let Some(packet) = socket.spare() else { break };
            let query = packets.packet(flood.sent as usize % packets.len());
            let flow = pair.flow(PORTS.start + (flood.sent % PORTS.len() as u64) as u16);
            match sent(&mut socket, packet, &flow, query, flood.sent as u16) {
                true => flood.sent += 1,
                false => break,
            }
        }
        socket.finish();
    }
    Ok(flood)
}

/// Queues a query; returns whether there was room for it.
fn sent(socket: &mut Socket, mut packet: Packet, flow: &xdp::headers::Flow, query: &[u8], id: u16) -> bool {
    let frame = socket.write(&packet);
    let at = flow.headers_octets();
    let written = frame.get_mut(at..at + query.len()).and_then(|room| {
        room.copy_from_slice(query);
        room.first_chunk_mut::<2>().map(|place| *place = id.to_be_bytes())
    });
    let octets = written.and_then(|()| flow.write(socket.write(&packet), query.len()));
    let is_ready = octets.is_some_and(|octets| socket.resize(&mut packet, octets));
    let rest = if is_ready { socket.transmit(packet) } else { Err(packet) };
    match rest {
        Ok(()) => true,
        Err(packet) => {
            socket.release(packet);
            false
        }
    }
}
