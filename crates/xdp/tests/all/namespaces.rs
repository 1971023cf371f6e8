//! The whole way, between two network namespaces: a client of the kernel's, or frames made by hand,
//! on one end; the echo example with the filter and its sockets on the other.
//!
//! Skipped, with the reason, where namespaces or AF_XDP are not to be had.
#![expect(clippy::print_stdout, reason = "says why it is skipped")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use xdp::headers::{Datagram, Flow, Mac, Vlan};
use xdp::{
    Device, DeviceOptions, Existing, Filter, FilterPlan, Interface, Mode, Program, Reached, Taking, Way,
};

const CLIENT_V4: &str = "192.0.2.1";
const SERVER_V4: &str = "192.0.2.53";
const CLIENT_V6: &str = "2001:db8::1";
const SERVER_V6: &str = "2001:db8::53";

/// How long a client waits for a reply that must come.
const PATIENCE: Duration = Duration::from_secs(5);

static NUMBER: AtomicU32 = AtomicU32::new(0);

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split_whitespace()).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Two namespaces with a pair of interfaces between them, gone when dropped.
struct Topology {
    client: String,
    server: String,
}

impl Topology {
    /// Makes one, or says why there can be none.
    fn new(queues: u32) -> Option<Self> {
        Self::with_mtu(queues, 1500)
    }

    fn with_mtu(queues: u32, mtu: u32) -> Option<Self> {
        let id = format!("gxdp{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let (client, server) = (format!("{id}c"), format!("{id}s"));
        let topology = Self { client, server };
        match topology.build(queues, mtu) {
            Ok(()) => Some(topology),
            Err(reason) => {
                println!("skipped: {reason}");
                None
            }
        }
    }

    fn build(&self, queues: u32, mtu: u32) -> Result<(), String> {
        let Self { client, server } = self;
        ip(&format!("netns add {client}"))?;
        ip(&format!("netns add {server}"))?;
        let many = format!("numrxqueues {queues} numtxqueues {queues}");
        ip(&format!("link add c0 {many} netns {client} type veth peer name s0 {many} netns {server}"))?;
        for (namespace, interface, v4, v6) in
            [(client, "c0", CLIENT_V4, CLIENT_V6), (server, "s0", SERVER_V4, SERVER_V6)]
        {
            ip(&format!("-n {namespace} address add {v4}/24 dev {interface}"))?;
            ip(&format!("-n {namespace} address add {v6}/64 dev {interface} nodad"))?;
            ip(&format!("-n {namespace} link set lo up"))?;
            ip(&format!("-n {namespace} link set {interface} mtu {mtu} up"))?;
        }
        // What cannot be had here is found out before any test relies on it.
        let (ended, said) = self.role(server, "facts", "");
        if ended { Ok(()) } else { Err(said) }
    }

    fn command(namespace: &str, program: PathBuf) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace]).arg(program);
        command
    }

    /// Runs this test program once more inside a namespace, as [`role`]. Returns whether it passed
    /// and what it said.
    fn role(&self, namespace: &str, role: &str, argument: &str) -> (bool, String) {
        let output = self.prepared(namespace, role, argument).output().expect("ip runs");
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    }

    /// Returns the command of a role.
    fn prepared(&self, namespace: &str, role: &str, argument: &str) -> Command {
        let mut command = Self::command(namespace, std::env::current_exe().expect("this program"));
        command.args(["namespaces::role", "--exact", "--ignored", "--nocapture"]);
        command.env("GANNET_XDP_ROLE", role).env("GANNET_XDP_ARGUMENT", argument);
        command
    }

    fn client(&self, role: &str, argument: &str) {
        let (passed, said) = self.role(&self.client, role, argument);
        assert!(passed, "{role} {argument}: {said}");
    }

    fn server(&self, role: &str, argument: &str) {
        let (passed, said) = self.role(&self.server, role, argument);
        assert!(passed, "{role} {argument}: {said}");
    }

    /// Starts the echo and waits until it serves.
    fn echo(&self, arguments: &str) -> Echo {
        let program = std::env::current_exe().expect("this program");
        let program = program.parent().and_then(|deps| deps.parent()).expect("a target directory");
        let mut command = Self::command(&self.server, program.join("examples/echo_frames"));
        command.args(arguments.split_whitespace());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the example `echo_frames` is built with the tests");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        if !line.starts_with("mode ") {
            let mut said = String::new();
            let _ = child.stderr.take().expect("a pipe").read_to_string(&mut said);
            let _ = child.wait();
            panic!("echo {arguments}: {said}");
        }
        let input = child.stdin.take();
        Echo { child, input, output, mode: line }
    }
}

impl Drop for Topology {
    fn drop(&mut self) {
        // With a namespace go its interfaces, and with one end of a pair the other.
        for namespace in [&self.client, &self.server] {
            let _ = ip(&format!("netns del {namespace}"));
        }
    }
}

/// A role on the server's side that goes on until this is dropped, such as sockets of the kernel
/// behind the program.
struct Behind {
    child: Child,
    ready: PathBuf,
}

impl Behind {
    /// Starts it and waits until it serves.
    fn start(topology: &Topology, role: &str) -> Self {
        let ready = std::env::temp_dir().join(format!("{}-behind", topology.server));
        let mut command = topology.prepared(&topology.server, role, &ready.to_string_lossy());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut behind = Self { child: command.spawn().expect("ip runs"), ready };
        let until = Instant::now() + PATIENCE;
        while !behind.ready.exists() {
            let has_ended = !matches!(behind.child.try_wait(), Ok(None));
            assert!(Instant::now() < until && !has_ended, "{role} is not ready");
            std::thread::yield_now();
        }
        behind
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        // It ends with its input; the test that failed meanwhile shall not wait for it.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.ready);
    }
}

/// A running echo.
struct Echo {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
    mode: String,
}

impl Echo {
    /// Ends it and returns what it counted.
    fn stop(mut self) -> String {
        drop(self.input.take());
        let mut said = String::new();
        self.output.read_to_string(&mut said).expect("text");
        assert!(self.child.wait().expect("an end").success());
        said
    }

    fn kill(mut self) {
        self.child.kill().expect("a process of ours");
        self.child.wait().expect("an end");
    }
}

/// Returns the number behind a word such as `received: `.
fn count(said: &str, word: &str) -> u64 {
    said.split(word)
        .skip(1)
        .map(|rest| {
            rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u64>().unwrap_or(0)
        })
        .sum()
}

/// Says why a role failed, or nothing.
type Outcome = Result<(), String>;

fn fail<T>(error: impl std::fmt::Display) -> Result<T, String> {
    Err(error.to_string())
}

/// The parts that run inside a namespace. Only other tests start them.
#[test]
#[ignore = "a part of the other tests"]
fn role() {
    let Ok(role) = std::env::var("GANNET_XDP_ROLE") else { return };
    let argument = std::env::var("GANNET_XDP_ARGUMENT").unwrap_or_default();
    let outcome = match role.as_str() {
        "facts" => facts(),
        "ask" => ask(&argument),
        "ask-in-vain" => ask_in_vain(),
        "frames" => frames(),
        "answer-by-kernel" => answer_by_kernel(&argument),
        "is-free" => is_free(),
        "is-taken" => is_taken(),
        "take-over" => take_over(),
        "join" => join(&argument),
        "hold" => hold(&argument),
        "replace-and-answer" => replace_and_answer(&argument),
        "forward" => forward(),
        other => Err(format!("no role {other}")),
    };
    if let Err(reason) = outcome {
        panic!("{reason}");
    }
}

fn facts() -> Outcome {
    let facts = xdp::facts(Some(&DeviceOptions::new("s0")));
    for fact in &facts {
        println!("{fact}");
    }
    if xdp::is_usable(&facts) { Ok(()) } else { fail("AF_XDP cannot be used here") }
}

/// Has a number of sockets ask over one family, each some times; every query must be answered.
fn ask(argument: &str) -> Outcome {
    let (family, rest) = argument.split_once(' ').ok_or("ask FAMILY CLIENTS [OCTETS]")?;
    let (clients, octets_max) = rest.split_once(' ').unwrap_or((rest, "1400"));
    let clients: u16 = clients.parse().map_err(|_| "a number of clients")?;
    let octets_max: usize = octets_max.parse().map_err(|_| "a number of octets")?;
    let (own, server) = match family {
        "4" => (CLIENT_V4, SERVER_V4),
        _ => (CLIENT_V6, SERVER_V6),
    };
    let server = SocketAddr::new(server.parse::<IpAddr>().map_err(|error| error.to_string())?, 53);
    for client in 0..clients {
        let socket = UdpSocket::bind((own, 0)).map_err(|error| error.to_string())?;
        socket.set_read_timeout(Some(PATIENCE)).map_err(|error| error.to_string())?;
        for octets in [12, 17, 29, 60, 511, 1232, 1400, 1800, 3000] {
            if octets > octets_max {
                break;
            }
            let mut query = vec![0u8; octets];
            query[..2].copy_from_slice(&client.to_be_bytes());
            query[octets - 1] = octets as u8;
            query[2] = 1;
            socket.send_to(&query, server).map_err(|error| error.to_string())?;
            let mut reply = [0; 4096];
            let received = socket.recv_from(&mut reply);
            let (len, from) =
                received.map_err(|error| format!("client {client}, {octets} octets: {error}"))?;
            query[2] |= 0x80;
            if from != server || reply[..len] != query {
                return fail(format!("client {client}: {len} octets from {from} for {octets}"));
            }
        }
    }
    Ok(())
}

/// Asks once, and must hear nothing.
fn ask_in_vain() -> Outcome {
    let socket = UdpSocket::bind((CLIENT_V4, 0)).map_err(|error| error.to_string())?;
    socket.set_read_timeout(Some(Duration::from_millis(300))).map_err(|error| error.to_string())?;
    socket.send_to(&[0; 12], (SERVER_V4, 53)).map_err(|error| error.to_string())?;
    if socket.recv_from(&mut [0; 64]).is_err() { Ok(()) } else { fail("answered") }
}

/// Answers on the server's address by a socket of the kernel, until its input ends, like a server
/// does beside AF_XDP.
fn answer_by_kernel(argument: &str) -> Outcome {
    let socket = UdpSocket::bind((SERVER_V4, 53)).map_err(|error| error.to_string())?;
    std::fs::write(argument, "ready").map_err(|error| error.to_string())?;
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        // Ends with the process. A client that cannot be reached is not the next one's trouble.
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            buffer[2] |= 0x80;
            let _ = socket.send_to(&buffer[..len], from);
        }
    });
    std::io::stdin().read_to_end(&mut Vec::new()).map(drop).map_err(|error| error.to_string())
}

fn is_free() -> Outcome {
    let interface = Interface::find("s0").map_err(|error| error.to_string())?;
    if interface.attached.is_empty() { Ok(()) } else { fail(format!("{:?}", interface.attached)) }
}

fn is_taken() -> Outcome {
    let error = match Device::open(&DeviceOptions { mode: Mode::Native, ..DeviceOptions::new("s0") }) {
        Ok(_) => return fail("taken twice"),
        Err(error) => error.to_string(),
    };
    if error.contains("another XDP program is there (gannet, id") { Ok(()) } else { fail(error) }
}

fn take_over() -> Outcome {
    let plan = DeviceOptions {
        mode: Mode::Native,
        program: Program::Ours(Existing::Replace),
        // The queue itself is still taken by the socket of the other.
        queues: Some(0),
        ..DeviceOptions::new("s0")
    };
    let (device, _) = Device::open(&plan).map_err(|error| error.to_string())?;
    let filter = device.filter().ok_or("no filter")?;
    filter
        .serve(SocketAddr::new(SERVER_V4.parse().expect("an address"), 53))
        .map_err(|error| error.to_string())?;
    let interface = Interface::find("s0").map_err(|error| error.to_string())?;
    if interface.attached.len() == 1 { Ok(()) } else { fail(format!("{:?}", interface.attached)) }
}

/// Lets the loopback interface forward, which looking for routes needs.
fn forward() -> Outcome {
    for family in ["ipv4", "ipv6"] {
        let setting = format!("/proc/sys/net/{family}/conf/lo/forwarding");
        std::fs::write(&setting, "1").map_err(|error| format!("{setting}: {error}"))?;
    }
    if xdp::loopback_forwards() == [true, true] { Ok(()) } else { fail("it does not forward") }
}

/// Attaches the filter as another program would, joins it by its pinned map, and answers seven
/// queries.
fn join(folder: &str) -> Outcome {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    // In the mount namespace that `ip netns exec` made, so it goes with this process.
    let mounted = Command::new("mount").args(["-t", "bpf", "bpf", folder]).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return fail("no BPF file system");
    }
    let map = PathBuf::from(folder).join("sockets");
    let interface = Interface::find("s0").map_err(|error| said(&error))?;
    let filter = Filter::load(&FilterPlan::new()).map_err(|error| said(&error))?;
    let _attachment = filter.attach(&interface, Way::Native, Existing::Keep).map_err(|error| said(&error))?;
    filter
        .serve(SocketAddr::new(SERVER_V4.parse().expect("an address"), 53))
        .map_err(|error| said(&error))?;
    filter.sockets().pin(&map).map_err(|error| said(&error))?;
    let plan = DeviceOptions { program: Program::Foreign(map), ..DeviceOptions::new("s0") };
    let (device, mut sockets) = Device::open(&plan).map_err(|error| said(&error))?;
    if device.reached() != (Reached::Foreign { zero_copy: false }) || device.filter().is_some() {
        return fail(format!("{:?}", device.reached()));
    }
    answer_seven(sockets.pop().ok_or("no queue")?, &format!("{folder}.ready"))
}

/// Attaches the filter as another program would, without sockets, until its input ends.
fn hold(ready: &str) -> Outcome {
    let interface = Interface::find("s0").map_err(|error| error.to_string())?;
    let filter = Filter::load(&FilterPlan::new()).map_err(|error| error.to_string())?;
    let attached = filter.attach(&interface, Way::Native, Existing::Keep);
    let _attachment = attached.map_err(|error| error.to_string())?;
    std::fs::write(ready, "ready").map_err(|error| error.to_string())?;
    std::io::stdin().read_to_end(&mut Vec::new()).map(drop).map_err(|error| error.to_string())
}

/// Takes the interface from another program, and answers seven queries.
fn replace_and_answer(ready: &str) -> Outcome {
    let plan = DeviceOptions {
        mode: Mode::Native,
        program: Program::Ours(Existing::Replace),
        ..DeviceOptions::new("s0")
    };
    let (device, mut sockets) = Device::open(&plan).map_err(|error| error.to_string())?;
    let filter = device.filter().ok_or("no filter")?;
    let server = SocketAddr::new(SERVER_V4.parse().expect("an address"), 53);
    filter.serve(server).map_err(|error| error.to_string())?;
    answer_seven(sockets.pop().ok_or("no queue")?, ready)
}

/// Answers seven queries, once it has left a note that it will.
fn answer_seven(mut socket: xdp::Socket, note: &str) -> Outcome {
    std::fs::write(note, "ready").map_err(|error| error.to_string())?;
    for _ in 0..7 {
        let Some(mut packet) = receive(&mut socket)? else { return fail("nobody asks") };
        let frame = socket.write(&packet);
        let datagram = Datagram::parse(frame).map_err(|unfit| format!("{unfit:?}"))?;
        frame[datagram.payload.start + 2] |= 0x80;
        let octets = datagram.flow.reversed().write(frame, datagram.payload.len()).ok_or("no room")?;
        if !socket.resize(&mut packet, octets) || socket.transmit(packet).is_err() {
            return fail("no room");
        }
        socket.finish();
    }
    Ok(())
}

/// Waits for a packet.
fn receive(socket: &mut xdp::Socket) -> Result<Option<xdp::Packet>, String> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Some(packet) = socket.receive() {
            return Ok(Some(packet));
        }
        xdp::socket::wait(&[(socket, 0)], PATIENCE).map_err(|error| error.to_string())?;
    }
    Ok(None)
}

/// Sends frames that no socket of the kernel would, and looks at what comes back.
fn frames() -> Outcome {
    let plan = DeviceOptions { taking: Taking::All, ..DeviceOptions::new("c0") };
    let (device, mut sockets) = Device::open(&plan).map_err(|error| error.to_string())?;
    let filter = device.filter().ok_or("no filter")?;
    let mut socket = sockets.pop().ok_or("no queue")?;
    let own_mac = device.interface().mac.ok_or("no Ethernet")?;
    let server_mac = std::env::var("GANNET_XDP_ARGUMENT").unwrap_or_default();
    let mut octets = server_mac.split(':').filter_map(|octet| u8::from_str_radix(octet, 16).ok());
    let server_mac = Mac(std::array::from_fn(|_| octets.next().unwrap_or(0)));
    let end = |address: &str, port| SocketAddr::new(address.parse().expect("an address"), port);
    for address in [CLIENT_V4, CLIENT_V6] {
        filter.serve(end(address, 5000)).map_err(|error| error.to_string())?;
    }
    let flow = |own: &str, server: &str, vlan| Flow {
        source: end(own, 5000),
        destination: end(server, 53),
        source_mac: own_mac,
        destination_mac: server_mac,
        vlan,
    };
    let query = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03org\x00\x00\x01\x00\x01";
    let frame = |flow: &Flow, payload: &[u8]| {
        let mut frame = vec![0; flow.headers_octets()];
        frame.extend(payload);
        flow.write(&mut frame, payload.len()).expect("room");
        frame
    };
    let send = |socket: &mut xdp::Socket, frame: &[u8]| -> Outcome {
        let mut packet = socket.spare().ok_or("no frame")?;
        if !socket.resize(&mut packet, frame.len()) {
            return fail("too long");
        }
        socket.write(&packet).copy_from_slice(frame);
        socket.transmit(packet).map_err(|_| "no room")?;
        socket.finish();
        Ok(())
    };
    let receive = |socket: &mut xdp::Socket, patience: Duration| -> Option<Vec<u8>> {
        let until = Instant::now() + patience;
        loop {
            if let Some(packet) = socket.receive() {
                let frame = socket.read(&packet).to_vec();
                socket.release(packet);
                socket.finish();
                return Some(frame);
            }
            let rest = until.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return None;
            }
            let _ = xdp::socket::wait(&[(socket, 0)], rest);
        }
    };
    let expect_answer = |socket: &mut xdp::Socket, what: &str, flow: &Flow, padding: usize| -> Outcome {
        let mut bytes = frame(flow, query);
        bytes.extend(vec![0; padding]);
        send(socket, &bytes)?;
        let reply = receive(socket, PATIENCE).ok_or(format!("{what}: no answer"))?;
        let datagram = Datagram::parse(&reply).map_err(|unfit| format!("{what}: {unfit:?}"))?;
        let mut expected = query.to_vec();
        expected[2] |= 0x80;
        let is_right = datagram.flow == flow.reversed()
            && reply[datagram.payload.clone()] == expected
            && reply.len() == datagram.payload.end
            && datagram.udp_checksum_holds(&reply);
        if is_right { Ok(()) } else { fail(format!("{what}: {datagram:?}")) }
    };
    for (own, server) in [(CLIENT_V4, SERVER_V4), (CLIENT_V6, SERVER_V6)] {
        expect_answer(&mut socket, "plain", &flow(own, server, None), 0)?;
        expect_answer(&mut socket, "padded", &flow(own, server, None), 17)?;
        expect_answer(&mut socket, "tagged", &flow(own, server, Some(Vlan::new(0xa007))), 0)?;
        expect_answer(&mut socket, "tagged and padded", &flow(own, server, Some(Vlan::new(7))), 30)?;
    }

    // None of these is answered by the echo; what follows them is.
    let plain = || frame(&flow(CLIENT_V4, SERVER_V4, None), query);
    let changed = |at: usize, value: u8| {
        let mut bytes = plain();
        bytes[at] = value;
        bytes
    };
    let mut odd =
        vec![changed(14, 0x46), changed(20, 0x20), changed(21, 1), changed(23, 6), changed(44, 0x81)];
    odd.extend((14..plain().len()).map(|len| plain()[..len].to_vec()));
    odd.push(frame(&flow(CLIENT_V4, SERVER_V4, None), &[0; 1500]));
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for len in 14..400 {
        odd.push(
            (0..len)
                .map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    state as u8
                })
                .collect(),
        );
    }
    for bytes in &odd {
        send(&mut socket, bytes)?;
    }
    let last = flow(CLIENT_V6, SERVER_V6, Some(Vlan::new(9)));
    send(&mut socket, &frame(&last, query))?;
    let mut others = 0;
    loop {
        let reply = receive(&mut socket, PATIENCE).ok_or("no answer after odd frames")?;
        match Datagram::parse(&reply) {
            Ok(datagram) if datagram.flow == last.reversed() => break,
            _ => others += 1,
        }
    }
    // The frame of 1500 octets is plain but long: it may be answered where the MTU and the frames
    // allow.
    if others <= 1 { Ok(()) } else { fail(format!("{others} odd frames were answered")) }
}

fn serves_kernel_clients(mode: &str, expect: &str) {
    let Some(topology) = Topology::new(1) else { return };
    let echo = topology.echo(&format!("s0 53 {mode}"));
    assert_eq!(echo.mode.trim(), format!("mode {expect} on 1 queues"));
    topology.client("ask", "4 20");
    topology.client("ask", "6 20");
    let said = echo.stop();
    assert_eq!(count(&said, "received: "), 280, "{said}");
    assert_eq!(count(&said, "taken: "), 280, "{said}");
    assert_eq!(count(&said, "held: ") + count(&said, "strays: "), 0, "{said}");
    topology.server("is-free", "");
}

#[test]
fn clients_of_the_kernel_are_answered_in_native_mode() {
    serves_kernel_clients("auto", "native");
}

#[test]
fn clients_of_the_kernel_are_answered_in_generic_mode() {
    serves_kernel_clients("generic", "generic");
}

#[test]
fn odd_frames_are_answered_or_passed_and_none_is_lost() {
    let Some(topology) = Topology::new(1) else { return };
    let show = Command::new("ip").args(["-n", &topology.server, "-brief", "link", "show", "s0"]).output();
    let show = String::from_utf8(show.expect("ip runs").stdout).expect("text");
    let mac = show.split_whitespace().find(|word| word.len() == 17 && word.contains(':')).expect("a MAC");
    let echo = topology.echo("s0 53 native");
    topology.client("frames", mac);
    let said = echo.stop();
    assert!(count(&said, "taken: ") >= 9, "{said}");
    assert_eq!(count(&said, "held: ") + count(&said, "strays: "), 0, "{said}");
    assert_eq!(count(&said, "receive_dropped: "), 0, "{said}");
}

#[test]
fn a_large_mtu_is_no_obstacle() {
    // Programs that know one buffer only are refused by the driver from 3.5 kB on.
    let Some(topology) = Topology::with_mtu(1, 9000) else { return };
    let echo = topology.echo("s0 53 native");
    topology.client("ask", "4 2 3000");
    topology.client("ask", "6 2 3000");
    let said = echo.stop();
    assert_eq!(count(&said, "received: "), 36, "{said}");
    assert_eq!(count(&said, "receive_dropped: "), 0, "{said}");
}

#[test]
fn each_queue_has_its_socket() {
    let Some(topology) = Topology::new(2) else { return };
    let echo = topology.echo("s0 53 native");
    assert_eq!(echo.mode.trim(), "mode native on 2 queues");
    topology.client("ask", "4 24");
    let said = echo.stop();
    assert_eq!(count(&said, "received: "), 168, "{said}");
}

#[test]
fn a_queue_without_a_socket_is_served_by_the_kernel() {
    let Some(topology) = Topology::new(2) else { return };
    let _behind = Behind::start(&topology, "answer-by-kernel");
    let echo = topology.echo("s0 53 native 1");
    topology.client("ask", "4 24");
    let said = echo.stop();
    // Without the program everything is the kernel's.
    topology.client("ask", "4 3");
    assert!(count(&said, "taken: ") + count(&said, "no_socket: ") == 168, "{said}");
}

#[test]
fn a_killed_process_leaves_nothing_behind() {
    let Some(topology) = Topology::new(1) else { return };
    for _ in 0..3 {
        let echo = topology.echo("s0 53 native");
        topology.client("ask", "4 1");
        echo.kill();
        topology.server("is-free", "");
    }
}

#[test]
fn another_program_is_left_alone_or_replaced() {
    let Some(topology) = Topology::new(1) else { return };
    let echo = topology.echo("s0 53 native");
    topology.server("is-taken", "");
    topology.client("ask", "4 1");
    topology.server("take-over", "");
    topology.server("is-free", "");
    let said = echo.stop();
    assert_eq!(count(&said, "received: "), 7, "{said}");
    let _ = std::io::stdout().flush();
}

#[test]
fn whoever_takes_over_leaves_other_namespaces_alone() {
    // The interfaces of both have one number, and one program each.
    let (Some(topology), Some(bystander)) = (Topology::new(1), Topology::new(1)) else { return };
    let echo = bystander.echo("s0 53 native");
    let _other = Behind::start(&topology, "hold");
    topology.server("take-over", "");
    bystander.server("is-taken", "");
    bystander.client("ask", "4 1");
    let said = echo.stop();
    assert_eq!(count(&said, "taken: "), 7, "{said}");
}

#[test]
fn a_program_that_is_replaced_takes_no_more_queries() {
    let Some(topology) = Topology::new(1) else { return };
    let _other = Behind::start(&topology, "hold");
    topology.server("is-taken", "");
    let ready = std::env::temp_dir().join(format!("{}-replaced", topology.server));
    std::thread::scope(|scope| {
        let replaced =
            scope.spawn(|| topology.role(&topology.server, "replace-and-answer", &ready.to_string_lossy()));
        let until = Instant::now() + PATIENCE;
        while !ready.exists() && !replaced.is_finished() {
            assert!(Instant::now() < until, "nobody takes over");
            std::thread::yield_now();
        }
        if ready.exists() {
            topology.client("ask", "4 1");
        }
        let (passed, said) = replaced.join().expect("a thread");
        assert!(passed, "{said}");
    });
    let _ = std::fs::remove_file(ready);
}

#[test]
fn a_program_of_somebody_else_is_joined_by_its_map() {
    let Some(topology) = Topology::new(1) else { return };
    let folder = std::env::temp_dir().join(format!("{}-bpf", topology.server));
    std::fs::create_dir(&folder).expect("a folder");
    let ready = folder.with_extension("ready");
    std::thread::scope(|scope| {
        let joined = scope.spawn(|| topology.role(&topology.server, "join", &folder.to_string_lossy()));
        let until = Instant::now() + PATIENCE;
        while !ready.exists() && !joined.is_finished() {
            assert!(Instant::now() < until, "nobody joins");
            std::thread::yield_now();
        }
        if ready.exists() {
            topology.client("ask", "4 1");
        }
        let (passed, said) = joined.join().expect("a thread");
        if said.contains("no BPF file system") {
            println!("skipped: no BPF file system can be mounted");
        } else {
            assert!(passed, "{said}");
        }
    });
    let _ = std::fs::remove_file(ready);
    let _ = std::fs::remove_dir(folder);
}

#[test]
fn queries_whose_replies_have_another_way_are_left_to_the_kernel() {
    let Some(topology) = Topology::new(1) else { return };
    topology.server("forward", "");
    // The kernel serves what is passed: the first queries, too, as long as it does not know the
    // client's station.
    let _behind = Behind::start(&topology, "answer-by-kernel");
    topology.client("ask", "4 1");
    let echo = topology.echo("s0 53 native 1 check-routes");
    topology.client("ask", "4 10");
    let straight = echo.stop();
    // Now the way back leads elsewhere, for the kernel as well: only the program's verdict can be
    // seen.
    let echo = topology.echo("s0 53 native 1 check-routes");
    ip(&format!("-n {} route add {CLIENT_V4}/32 dev lo", topology.server)).expect("a route");
    topology.client("ask-in-vain", "");
    let elsewhere = echo.stop();
    assert_eq!(count(&straight, "taken: "), 70, "{straight}");
    assert_eq!(count(&straight, "misrouted: "), 0, "{straight}");
    assert_eq!(count(&elsewhere, "taken: "), 0, "{elsewhere}");
    assert!(count(&elsewhere, "misrouted: ") > 0, "{elsewhere}");
}
