//! A bare echo over AF_XDP: each query comes back as a response with the same question and no
//! answer.
//!
//! What a server on this crate could cost at best.
//! `echo_frames INTERFACE PORT [auto|zerocopy|native|generic [QUEUES [check-routes]]]`; ends when
//! its standard input does. Answers on all addresses of the machine.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]

use std::io::Read;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use xdp::{Device, DeviceOptions, Mode, Routes, Socket};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [interface, port, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: echo_frames INTERFACE PORT [auto|zerocopy|native|generic [QUEUES [check-routes]]]");
        return ExitCode::from(2);
    };
    let Ok(port) = port.parse::<u16>() else {
        eprintln!("echo_frames: {port:?} is no port");
        return ExitCode::from(2);
    };
    let mode = match rest.first().map(String::as_str) {
        None | Some("auto") => Mode::Auto,
        Some("zerocopy") => Mode::ZeroCopy,
        Some("native") => Mode::Native,
        Some("generic") => Mode::Generic,
        Some(other) => {
            eprintln!("echo_frames: no mode {other:?}");
            return ExitCode::from(2);
        }
    };
    let queues = match rest.get(1).map(|queues| queues.parse()) {
        None => None,
        Some(Ok(queues)) => Some(queues),
        Some(Err(_)) => {
            eprintln!("echo_frames: a number of queues is expected");
            return ExitCode::from(2);
        }
    };
    let routes = match rest.get(2).map(String::as_str) {
        None => Routes::Trust,
        Some("check-routes") => Routes::Check,
        Some(other) => {
            eprintln!("echo_frames: no {other:?}");
            return ExitCode::from(2);
        }
    };
    match run(&DeviceOptions { mode, queues, routes, ..DeviceOptions::new(interface) }, port) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo_frames: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(plan: &DeviceOptions, port: u16) -> Result<(), Box<dyn std::error::Error>> {
    let (device, sockets) = Device::open(plan)?;
    let filter = device.filter().ok_or("no filter")?;
    for (address, _) in xdp::addresses()? {
        filter.serve(SocketAddr::new(address, port))?;
    }
    println!("mode {} on {} queues", device.reached(), sockets.len());
    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = sockets
        .into_iter()
        .map(|socket| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || serve(socket, &stop))
        })
        .collect();
    std::io::stdin().read_to_end(&mut Vec::new())?;
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        let socket = thread.join().map_err(|_| "a thread panicked")?;
        println!(
            "queue {}: {:?} {:?} {:?}",
            socket.queue(),
            socket.counts(),
            socket.frames(),
            socket.statistics()?
        );
    }
    println!("{:?}", filter.verdicts()?);
    Ok(())
}

fn serve(mut socket: Socket, stop: &AtomicBool) -> Socket {
    let mut left = 0;
    while !stop.load(Ordering::Relaxed) {
        if !socket.has_more() {
            let _ = xdp::socket::wait(&[(&socket, left)], Duration::from_millis(100));
        }
        while let Some(packet) = socket.receive() {
            if let Some(packet) = socket.turn(packet, answer)
                && let Err(packet) = socket.transmit(packet)
            {
                socket.release(packet);
            }
        }
        left = socket.finish();
    }
    socket
}

/// Makes a query a response; says no if it is too short for one.
fn answer(message: &mut [u8]) -> bool {
    message.get_mut(2).map(|flags| *flags |= 0x80).is_some()
}
