//! AF_XDP on our own crate: the bare echo that is the limit, and the program for a server that
//! brings none.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use xdp::{Device, DeviceOptions, Existing, Filter, FilterPlan, Interface, Mode, Way};

use crate::sys;

/// Packets between two system calls.
const BATCH: usize = 64;
/// How long the echo sleeps when nobody asks.
const PATIENCE: Duration = Duration::from_secs(1);

/// Echoes queries to `address` that come in by `interface`, in place, until it is killed.
pub fn echo(interface: &str, address: SocketAddr) -> Result<(), String> {
    let plan = DeviceOptions { mode: Mode::Native, ..DeviceOptions::new(interface) };
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
            if let Some(packet) =
                socket.turn(packet, |message| message.get_mut(2).map(|it| *it |= 0x80).is_some())
                && let Err(packet) = socket.transmit(packet)
            {
                socket.release(packet);
            }
        }
        left = socket.finish();
    }
}

/// Attaches our program to `interface` for queries to `address`, pins its maps in `folder` of a BPF
/// file system of its own, and runs `command` there until that ends.
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
