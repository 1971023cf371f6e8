//! The built program on a network interface, between two network namespaces: the same answers through AF_XDP as through the
//! kernel's sockets, whatever becomes of the program.
//!
//! Skipped, with the reason, where namespaces or AF_XDP are not to be had.
#![expect(clippy::print_stdout, reason = "says why it is skipped")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use testkit::corpus::{CACHED, LOCAL, cases};
use testkit::{Answer, Ask, Heard, Script, Server, Stub};
use wire::{Flags, Message, Rtype};

const CLIENT: [&str; 2] = ["10.77.0.1", "fd77::1"];
const SERVER: [&str; 2] = ["10.77.0.53", "fd77::53"];

/// The user who owns nothing.
const NOBODY: u32 = 65_534;

/// How long to wait for what must come.
const PATIENCE: Duration = Duration::from_secs(10);

static NUMBER: AtomicU32 = AtomicU32::new(0);

fn ip(arguments: &str) -> Result<String, String> {
    let output = Command::new("ip").args(arguments.split_whitespace()).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Two namespaces with a pair of interfaces between them and a folder for what their processes tell each other.
struct Topology {
    client: String,
    server: String,
    folder: tempfile::TempDir,
}

impl Topology {
    fn new(queues: u32) -> Option<Self> {
        let id = format!("gsys{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::TempDir::new().expect("a temporary directory");
        let topology = Self { client: format!("{id}c"), server: format!("{id}s"), folder };
        match topology.build(queues) {
            Ok(()) => Some(topology),
            Err(reason) => {
                println!("skipped: {reason}");
                None
            }
        }
    }

    fn build(&self, queues: u32) -> Result<(), String> {
        let Self { client, server, .. } = self;
        ip(&format!("netns add {client}"))?;
        ip(&format!("netns add {server}"))?;
        let many = format!("numrxqueues {queues} numtxqueues {queues}");
        ip(&format!("link add c0 {many} netns {client} type veth peer name s0 {many} netns {server}"))?;
        for (namespace, interface, addresses) in [(client, "c0", CLIENT), (server, "s0", SERVER)] {
            let [v4, v6] = addresses;
            ip(&format!("-n {namespace} address add {v4}/24 dev {interface}"))?;
            ip(&format!("-n {namespace} address add {v6}/64 dev {interface} nodad"))?;
            ip(&format!("-n {namespace} link set lo up"))?;
            ip(&format!("-n {namespace} link set {interface} up"))?;
        }
        let check = Command::new("ip")
            .args(["netns", "exec", server])
            .arg(testkit::program::gannet())
            .args(["xdp", "check", "s0"])
            .output()
            .map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&check.stdout);
        let bad: Vec<_> = said.lines().filter(|line| line.starts_with("no ")).collect();
        if check.status.success() && bad.is_empty() { Ok(()) } else { Err(bad.join("; ")) }
    }

    /// Starts this test program once more inside a namespace, as [`role`].
    fn start(&self, namespace: &str, role: &str) -> Child {
        Command::new("ip")
            .args(["netns", "exec", namespace])
            .arg(std::env::current_exe().expect("this program"))
            .args(["role", "--exact", "--ignored", "--nocapture"])
            .env("GANNET_XDP_ROLE", role)
            .env("GANNET_XDP_FOLDER", self.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ip runs")
    }

    fn end(role: &str, child: Child) {
        let output = child.wait_with_output().expect("an end");
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{role}: {}", String::from_utf8_lossy(&said));
    }

    fn client(&self, role: &str) {
        Self::end(role, self.start(&self.client, role));
    }

    /// Waits until a process has left a note.
    fn wait_for(&self, note: &str, from: &mut Child) {
        wait_for(self.folder.path(), note, || matches!(from.try_wait(), Ok(Some(_))));
    }

    fn tell(&self, note: &str) {
        tell(self.folder.path(), note, b"");
    }

    fn read(&self, note: &str) -> Vec<u8> {
        std::fs::read(self.folder.path().join(note)).expect("a note")
    }
}

impl Drop for Topology {
    fn drop(&mut self) {
        for namespace in [&self.client, &self.server] {
            let _ = ip(&format!("netns del {namespace}"));
        }
    }
}

fn tell(folder: &Path, note: &str, content: &[u8]) {
    // In one step, so that nobody reads half of it.
    let draft = folder.join(format!("{note}.draft"));
    std::fs::write(&draft, content).expect("a note");
    std::fs::rename(draft, folder.join(note)).expect("a note");
}

fn wait_for(folder: &Path, note: &str, mut is_over: impl FnMut() -> bool) {
    let until = Instant::now() + 3 * PATIENCE;
    while !folder.join(note).exists() {
        assert!(Instant::now() < until && !is_over(), "{note} does not come");
        std::thread::yield_now();
    }
}

/// The parts that run inside a namespace. Only other tests start them.
#[test]
#[ignore = "a part of the other tests"]
fn role() {
    let (Ok(role), Ok(folder)) = (std::env::var("GANNET_XDP_ROLE"), std::env::var("GANNET_XDP_FOLDER"))
    else {
        return;
    };
    let folder = Path::new(&folder);
    match role.as_str() {
        "serve" => serve(folder, "native"),
        "serve-generic" => serve(folder, "generic"),
        "serve-and-die" => serve_and_die(folder),
        "load" => load(folder),
        "record" => {
            for (family, server) in ["4", "6"].iter().zip(SERVER) {
                let replies = record(SocketAddr::new(server.parse().expect("an address"), 53));
                tell(folder, &format!("client-{family}"), &replies);
            }
        }
        "miss" => miss(),
        "bystander" => bystander(),
        "flows" => flows(),
        "is-dropped" => is_dropped(),
        "serve-narrow" => serve_narrow(folder),
        "ask-for-much" => ask_for_much(),
        "serve-limited" => serve_limited(folder),
        "offend" => offend(),
        "is-banned" => is_banned(),
        "is-let-in" => is_let_in(),
        "share" => share(folder),
        "join" => join(folder),
        other => panic!("no role {other}"),
    }
}

/// Starts the program three times, and kills it each time that it is known to answer.
fn serve_and_die(folder: &Path) {
    let mut directory = tempfile::TempDir::new().expect("a temporary directory");
    for life in 0..3 {
        let mut server = Server::start_in(
            directory,
            &format!(
                "server: {{workers: 2, state-directory: \"@DIRECTORY@\", user: root}}\n\
                 listen: [\"@ADDRESS@\", \"0.0.0.0:53\"]\n\
                 xdp: {{interfaces: s0, mode: native}}\n\
                 local: {{{LOCAL}: [192.168.1.10]}}\n"
            ),
        );
        server.wait_for_log("queries are taken past the kernel's network stack");
        tell(folder, &format!("up-{life}"), b"");
        wait_for(folder, &format!("asked-{life}"), || false);
        let stats = server.command(&["stats"]);
        let stats = String::from_utf8_lossy(&stats.stdout).into_owned();
        assert!(counter(&stats, "listen", "xdp_replies") >= 200, "{stats}");
        let (status, _, kept) = server.stop_by("KILL");
        assert!(!status.success());
        directory = kept;
        let link = ip("-d link show s0").expect("the interface");
        assert!(!link.contains("prog/xdp"), "{link}");
    }
}

/// Asks all the time, answered or not, until told to end.
fn load(folder: &Path) {
    let socket = socket_to(SocketAddr::new(SERVER[0].parse().expect("an address"), 53));
    socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
    let query = Ask::new(LOCAL, Rtype::A).bytes();
    while folder.exists() && !folder.join("end").exists() {
        for _ in 0..16 {
            // Refused while nobody is there.
            let _ = socket.send(&query);
        }
        while socket.recv(&mut [0; 512]).is_ok() {}
    }
}

/// Starts the program on the server's interface, records what its kernel sockets answer, and stays until told to end.
fn serve(folder: &Path, mode: &str) {
    let stub = Stub::start(Script::answering(|asked| match asked.qtype {
        Rtype::TXT => Answer::long_text(86_400, 2500),
        Rtype::AAAA => Answer::aaaa(86_400, Ipv6Addr::LOCALHOST),
        _ => Answer::a(86_400, Ipv4Addr::new(192, 0, 2, 1)),
    }));
    let mut server = Server::start(&format!(
        "server: {{workers: 2, state-directory: \"@DIRECTORY@\", user: root}}\n\
         listen: [\"@ADDRESS@\", \"0.0.0.0:53\", \"[::]:53\"]\n\
         xdp: {{interfaces: s0, mode: {mode}}}\n\
         cookies: {{enabled: false}}\n\
         upstreams: {{default: {{servers: [\"{}\"]}}}}\n\
         local: {{{LOCAL}: [192.168.1.10]}}\n\
         sets: {{bans: {{dynamic: {{holds: addresses, persist: false}}}}}}\n\
         deny-set: bans\n",
        stub.address()
    ));
    server.wait_for_log("queries are taken past the kernel's network stack");
    for qtype in [Rtype::A, Rtype::AAAA, Rtype::TXT] {
        server.ask(&Ask::new(CACHED, qtype));
        server.ask(&Ask::new(CACHED, qtype).dnssec());
    }
    tell(folder, "kernel", &record(server.address()));
    tell(folder, "ready", b"");
    wait_for(folder, "end", || false);
    be_dropped_and_let_in_again(folder, &server);
    be_banned_and_let_in_again(folder, &server);
    check_routes_and_trust_again(folder, &server);
    let metrics = server.command(&["stats", "--prometheus"]);
    tell(folder, "metrics", &metrics.stdout);
    let stats = server.command(&["stats"]);
    tell(folder, "stats", &stats.stdout);
    let (status, log, _) = server.stop();
    assert!(status.success(), "{}", log.join("\n"));
    let link = ip("-d link show s0").expect("the interface");
    assert!(!link.contains("prog/xdp"), "{link}");
}

/// Drops the client's queries by a reload, and takes them again by another.
fn be_dropped_and_let_in_again(folder: &Path, server: &Server) {
    let config = server.directory().join("gannet.yaml");
    let text = std::fs::read_to_string(&config).expect("the configuration");
    let reload = |text: &str| {
        std::fs::write(&config, text).expect("a writable directory");
        let output = server.command(&["reload"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    reload(&format!("{text}deny: [10.77.0.0/28, \"fd77::1\"]\n"));
    tell(folder, "dropping", b"");
    wait_for(folder, "was-dropped", || false);
    let stats = server.command(&["stats"]);
    let stats = String::from_utf8_lossy(&stats.stdout);
    for banned in ["10.77.0.0/28", "fd77::1/128"] {
        assert_eq!(counter(&stats, "xdp.s0.banned", banned), 1, "{stats}");
    }
    // What came by TCP met the gate.
    assert_eq!(counter(&stats, "engine", "banned"), 2, "{stats}");
    reload(&text);
    tell(folder, "not-dropping", b"");
    wait_for(folder, "was-let-in", || false);
}

/// Has the program check the way back, which it does not find as long as the loopback interface forwards nothing, and ends that.
fn check_routes_and_trust_again(folder: &Path, server: &Server) {
    let config = server.directory().join("gannet.yaml");
    let text = std::fs::read_to_string(&config).expect("the configuration");
    let count =
        |name: &str| counter(&String::from_utf8_lossy(&server.command(&["stats"]).stdout), "xdp.s0", name);
    let reload = |text: &str| {
        std::fs::write(&config, text).expect("a writable directory");
        let output = server.command(&["reload"]);
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(output.status.success() && !said.contains("restart"), "{said}");
    };
    std::fs::write("/proc/sys/net/ipv4/conf/lo/forwarding", "0").expect("root may");
    assert_eq!(count("misrouted"), 0);
    reload(&text.replace("interfaces: s0,", "interfaces: s0, check-routes: true,"));
    let taken = count("taken");
    tell(folder, "checking", b"");
    wait_for(folder, "was-checked", || false);
    assert_eq!((count("misrouted"), count("taken")), (200, taken));
    reload(&text);
    tell(folder, "trusting", b"");
    wait_for(folder, "was-trusted", || false);
    assert_eq!((count("misrouted"), count("taken")), (200, taken + 200));
}

/// A name whose addresses take more than a narrow interface takes, and less than the largest message.
const MANY: &str = "many.example.org";

/// Serves an interface whose packets have 600 octets at most.
fn serve_narrow(folder: &Path) {
    let addresses: Vec<String> = (1..=50).map(|last| format!("192.168.2.{last}")).collect();
    let mut server = Server::start(&format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\", user: root}}\n\
         listen: [\"@ADDRESS@\", \"{}:53\"]\n\
         xdp: {{interfaces: s0, mode: native}}\n\
         local: {{{MANY}: [{}]}}\n",
        SERVER[0],
        addresses.join(", ")
    ));
    server.wait_for_log("queries are taken past the kernel's network stack");
    let whole = server.ask(&Ask::new(MANY, Rtype::A).edns(1232));
    assert!(!whole.has(Flags::TC) && whole.answers().len() == 50 && whole.bytes().len() > 600);
    tell(folder, "ready", b"");
    wait_for(folder, "asked", || false);
    let stats = server.command(&["stats"]);
    let stats = String::from_utf8_lossy(&stats.stdout).into_owned();
    assert_eq!(counter(&stats, "listen", "xdp_replies"), 1, "{stats}");
}

/// Asks for more than one packet holds: the reply is cut to what does, and whole over TCP.
fn ask_for_much() {
    let server = SocketAddr::new(SERVER[0].parse().expect("an address"), 53);
    let ask = Ask::new(MANY, Rtype::A).edns(1232);
    let socket = socket_to(server);
    socket.send(&ask.bytes()).expect("sent");
    let heard = Heard::new(receive(&socket));
    assert!(heard.has(Flags::TC), "{:?}", heard.answers());
    assert!(heard.bytes().len() <= 600 - 40 - 8, "{} octets", heard.bytes().len());
    assert_eq!(testkit::TcpClient::connect(server).ask(&ask).answers().len(), 50);
}

/// Limits its clients, and bans those who keep on: first for long, then for a second.
fn serve_limited(folder: &Path) {
    let mut server = Server::start(&format!(
        "server: {{workers: 2, state-directory: \"@DIRECTORY@\", user: root}}\n\
         listen: [\"@ADDRESS@\", \"0.0.0.0:53\"]\n\
         xdp: {{interfaces: s0, mode: native}}\n\
         limits: {{rate: {{per-second: 1, burst: 5, slip: 0, ban-for: 1h, ban-after: 50}}}}\n\
         local: {{{LOCAL}: [192.168.1.10]}}\n"
    ));
    server.wait_for_log("queries are taken past the kernel's network stack");
    let stats = |server: &Server| String::from_utf8_lossy(&server.command(&["stats"]).stdout).into_owned();
    let reload = |server: &Server, from: &str, to: &str| {
        let config = server.directory().join("gannet.yaml");
        let text = std::fs::read_to_string(&config).expect("the configuration");
        assert!(text.contains(from), "{text}");
        std::fs::write(&config, text.replace(from, to)).expect("a writable directory");
        assert!(server.command(&["reload"]).status.success());
    };
    assert_eq!(counter(&stats(&server), "bans", "rate"), 0);
    tell(folder, "ready", b"");
    server.wait_for_log("banned for a time: it kept on being over the rate limit prefix=10.77.0.0/24");
    testkit::eventually("the program knows of it", || stats(&server).contains("xdp.s0.banned.10.77.0.0/24 "));
    let said = stats(&server);
    assert_eq!((counter(&said, "bans", "rate"), counter(&said, "bans", "rate-begun")), (1, 1), "{said}");
    assert!((1..=3600).contains(&counter(&said, "bans.seconds-left", "10.77.0.0/24")), "{said}");
    assert!(counter(&said, "engine", "limited") >= 50, "{said}");
    let dropped = counter(&said, "xdp.s0", "dropped");
    tell(folder, "banned", b"");
    wait_for(folder, "was-banned", || false);
    let said = stats(&server);
    assert!(counter(&said, "xdp.s0", "dropped") > dropped, "{said}");
    // Whom the limit does not concern is not dropped with the neighbours.
    reload(&server, "ban-after: 50", "ban-after: 50, exempt: 10.77.0.1");
    tell(folder, "exempt", b"");
    wait_for(folder, "was-exempt", || false);
    reload(&server, "ban-for: 1h, ban-after: 50, exempt: 10.77.0.1", "exempt: 192.0.2.1");
    testkit::eventually("who nobody bans any more is let in", || !stats(&server).contains("xdp.s0.banned."));
    reload(&server, "exempt: 192.0.2.1", "ban-for: 1s, ban-after: 50");
    tell(folder, "forgiving", b"");
    wait_for(folder, "was-let-in", || false);
    let said = stats(&server);
    assert!(counter(&said, "bans", "rate-begun") >= 1, "{said}");
    server.wait_for_log("not banned any more prefix=10.77.0.0/24");
    let (status, log, _) = server.stop();
    assert!(status.success(), "{}", log.join("\n"));
}

/// Asks far more than is allowed.
fn offend() {
    let socket = socket_to(SocketAddr::new(SERVER[0].parse().expect("an address"), 53));
    for _ in 0..200 {
        socket.send(&Ask::new(LOCAL, Rtype::A).bytes()).expect("sent");
    }
}

/// Hears nothing over UDP, and is answered over TCP, where nobody can forge an address.
fn is_banned() {
    let server = SocketAddr::new(SERVER[0].parse().expect("an address"), 53);
    let socket = socket_to(server);
    socket.set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout");
    socket.send(&Ask::new(LOCAL, Rtype::A).bytes()).expect("sent");
    assert!(socket.recv(&mut [0; 512]).is_err(), "{server} answers");
    let heard = testkit::TcpClient::connect(server).ask(&Ask::new(LOCAL, Rtype::A));
    assert_eq!(heard.answers().len(), 1);
}

/// Is answered over UDP, sooner or later.
fn is_let_in() {
    let socket = socket_to(SocketAddr::new(SERVER[0].parse().expect("an address"), 53));
    socket.set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout");
    testkit::eventually("it is answered again", || {
        socket.send(&Ask::new(LOCAL, Rtype::A).bytes()).is_ok() && socket.recv(&mut [0; 512]).is_ok()
    });
}

/// Starts a server on an interface that has a program of somebody else's, which it is to leave alone, and then to replace.
fn share(folder: &Path) {
    let filter = xdp::Filter::load(&xdp::FilterPlan::new()).expect("a program");
    let interface = xdp::Interface::find("s0").expect("the interface");
    let _attached = filter.attach(&interface, xdp::Way::Native, xdp::Existing::Keep).expect("attached");
    let settings = |existing: &str, address: &str| {
        format!(
            "server: {{workers: 1, state-directory: \"@DIRECTORY@\", user: root}}\n\
             listen: [{address}\"{}:53\"]\n\
             xdp: {{interfaces: s0, mode: native, existing: {existing}}}\n\
             local: {{{LOCAL}: [192.168.1.10]}}\n",
            SERVER[0]
        )
    };
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let config = directory.path().join("gannet.yaml");
    let text = settings("keep", "").replace("@DIRECTORY@", &directory.path().display().to_string());
    std::fs::write(&config, text).expect("a writable directory");
    let output = testkit::program(directory.path()).args(["run", "-c"]).arg(config).output();
    let output = output.expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("the interface s0 cannot be used"), "{said}");
    assert!(said.contains("another XDP program is there (gannet, id "), "{said}");
    let mut server = Server::start(&settings("replace", "\"@ADDRESS@\", "));
    server.wait_for_log("queries are taken past the kernel's network stack");
    tell(folder, "replaced", b"");
    wait_for(folder, "asked", || false);
    let stats = server.command(&["stats"]);
    let stats = String::from_utf8_lossy(&stats.stdout).into_owned();
    assert_eq!(counter(&stats, "listen", "xdp_replies"), 200, "{stats}");
    assert_eq!(filter.verdicts().expect("counts").taken, 0);
}

/// Joins the program of somebody else, whose map of sockets is pinned.
fn join(folder: &Path) {
    let root = folder.join("bpf");
    std::fs::create_dir_all(&root).expect("a directory");
    let mounted = Command::new("mount").args(["-t", "bpf", "bpf"]).arg(&root).status().expect("mount runs");
    assert!(mounted.success());
    let pinned = root.join("sockets");
    let filter = xdp::Filter::load(&xdp::FilterPlan::new()).expect("a program");
    filter.sockets().pin(&pinned).expect("a pinned map");
    filter.serve(SocketAddr::new(SERVER[0].parse().expect("an address"), 53)).expect("a destination");
    let interface = xdp::Interface::find("s0").expect("the interface");
    let _attached = filter.attach(&interface, xdp::Way::Native, xdp::Existing::Keep).expect("attached");
    let mut server = Server::start(&format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\", user: root}}\n\
         listen: [\"@ADDRESS@\", \"{}:53\"]\n\
         xdp: {{interfaces: s0, map: \"{}\"}}\n\
         local: {{{LOCAL}: [192.168.1.10]}}\n",
        SERVER[0],
        pinned.display()
    ));
    let line = server.wait_for_log("queries are taken past the kernel's network stack");
    assert!(line.contains("foreign-copy"), "{line}");
    tell(folder, "joined", b"");
    wait_for(folder, "asked", || false);
    let stats = server.command(&["stats", "--prometheus"]);
    let stats = String::from_utf8_lossy(&stats.stdout).into_owned();
    assert!(stats.contains("gannet_xdp_mode_info{interface=\"s0\",mode=\"foreign-copy\"} 1"), "{stats}");
    assert!(stats.contains("gannet_listen_xdp_replies_total 200\n"), "{stats}");
    assert_eq!(filter.verdicts().expect("counts").taken, 200);
    drop(server);
    drop(Command::new("umount").arg(&root).status());
}

/// Drops the client's queries by a set that changes while the server runs, and takes them again.
fn be_banned_and_let_in_again(folder: &Path, server: &Server) {
    let change = |command: &str| {
        let output = server.command(&["set", command, "bans", "10.77.0.1", "fd77::1"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // The programs hear of it within a second or so.
        let until = Instant::now() + PATIENCE;
        loop {
            let stats = server.command(&["stats"]);
            let banned = String::from_utf8_lossy(&stats.stdout).matches("xdp.s0.banned.").count();
            if banned == if command == "add" { 2 } else { 0 } {
                break;
            }
            assert!(Instant::now() < until, "{command} is not heard of");
            std::thread::yield_now();
        }
    };
    change("add");
    tell(folder, "banning", b"");
    wait_for(folder, "was-banned", || false);
    change("del");
    tell(folder, "not-banning", b"");
    wait_for(folder, "was-welcome", || false);
}

/// Returns a socket on the interface's own address, or on loopback for a server there.
fn socket_to(server: SocketAddr) -> UdpSocket {
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).expect("a socket");
    socket.connect(server).expect("a way there");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    socket
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = vec![0; 65_536];
    let octets = socket.recv(&mut buffer).expect("a reply");
    buffer.truncate(octets);
    buffer
}

/// Sends the whole corpus; returns all replies, one after the other with their names, TTLs made equal.
fn record(server: SocketAddr) -> Vec<u8> {
    let marker = Ask::new("localhost", Rtype::A).id(0xbeef).bytes();
    let mut all = Vec::new();
    for case in cases() {
        let socket = socket_to(server);
        // A query that is empty or damaged may be refused by the socket itself; the marker tells.
        let _ = socket.send(&case.bytes);
        socket.send(&marker).expect("sent");
        let mut reply = receive(&socket);
        if reply.starts_with(&[0xbe, 0xef]) {
            reply.clear();
        }
        // They run down from one recording to the next.
        let places: Vec<usize> = Message::parse(&reply)
            .map(|message| {
                message.records().filter(|it| it.rtype != Rtype::OPT).map(|it| it.ttl_at).collect()
            })
            .unwrap_or_default();
        for at in places {
            reply[at..at + 4].fill(0);
        }
        all.extend(format!("\n{}: ", case.what).into_bytes());
        all.extend(reply.iter().flat_map(|octet| format!("{octet:02x}").into_bytes()));
    }
    all
}

/// Asks for what nobody has asked for, so that an upstream has to be.
fn miss() {
    for server in SERVER {
        let socket = socket_to(SocketAddr::new(server.parse().expect("an address"), 53));
        for number in 0..50 {
            let family = if server.contains(':') { "six" } else { "four" };
            let ask = Ask::new(&format!("m{number}.{family}.example.org"), Rtype::A).id(number);
            socket.send(&ask.bytes()).expect("sent");
        }
        let mut found: Vec<u16> = (0..50)
            .map(|_| {
                let heard = Heard::new(receive(&socket));
                assert!(heard.has(Flags::RA) && heard.answers().len() == 1, "{:?}", heard.answers());
                heard.id()
            })
            .collect();
        found.sort_unstable();
        assert_eq!(found, (0..50).collect::<Vec<_>>());
    }
}

/// Asks again and again over the family that is not in the way, and must always be answered.
fn bystander() {
    let socket = socket_to(SocketAddr::new(SERVER[0].parse().expect("an address"), 53));
    for number in 0..200 {
        socket.send(&Ask::new(LOCAL, Rtype::A).id(number).bytes()).expect("sent");
        assert_eq!(Heard::new(receive(&socket)).id(), number);
    }
}

/// Asks from many ports, so that every queue gets something, over both families.
fn flows() {
    for server in SERVER {
        for number in 0..64 {
            let socket = socket_to(SocketAddr::new(server.parse().expect("an address"), 53));
            socket.send(&Ask::new(LOCAL, Rtype::A).id(number).bytes()).expect("sent");
            assert_eq!(Heard::new(receive(&socket)).id(), number);
        }
    }
}

/// Asks once over each family, and must hear nothing; nor over TCP, which the program lets pass.
fn is_dropped() {
    for server in SERVER {
        let server = SocketAddr::new(server.parse().expect("an address"), 53);
        let socket = socket_to(server);
        socket.set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout");
        socket.send(&Ask::new(LOCAL, Rtype::A).bytes()).expect("sent");
        assert!(socket.recv(&mut [0; 512]).is_err(), "{server} answers");
        let mut connection = std::net::TcpStream::connect(server).expect("a connection");
        let query = Ask::new(LOCAL, Rtype::A).bytes();
        let framed = [&(query.len() as u16).to_be_bytes()[..], &query].concat();
        connection.write_all(&framed).expect("sent");
        connection.set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout");
        let heard = connection.read(&mut [0; 14]);
        assert!(!matches!(heard, Ok(1..)), "{server} answers over TCP");
    }
}

/// Returns a counter of `gannet stats`.
fn counter(stats: &str, group: &str, name: &str) -> u64 {
    let number = stats.lines().find_map(|line| line.strip_prefix(&format!("{group}.{name} "))?.parse().ok());
    number.unwrap_or_else(|| panic!("no {group}.{name} in\n{stats}"))
}

fn gives_the_same_bytes(role: &str, queues: u32) {
    let Some(topology) = Topology::new(queues) else { return };
    let mut server = topology.start(&topology.server, role);
    topology.wait_for("ready", &mut server);
    topology.client("record");
    topology.client("miss");
    topology.client("bystander");
    topology.tell("end");
    topology.wait_for("dropping", &mut server);
    topology.client("is-dropped");
    topology.tell("was-dropped");
    topology.wait_for("not-dropping", &mut server);
    topology.client("bystander");
    topology.tell("was-let-in");
    topology.wait_for("banning", &mut server);
    topology.client("is-dropped");
    topology.tell("was-banned");
    topology.wait_for("not-banning", &mut server);
    topology.client("bystander");
    topology.tell("was-welcome");
    topology.wait_for("checking", &mut server);
    topology.client("bystander");
    topology.tell("was-checked");
    topology.wait_for("trusting", &mut server);
    topology.client("bystander");
    topology.tell("was-trusted");
    topology.wait_for("stats", &mut server);
    Topology::end(role, server);
    let text = |note: &str| String::from_utf8(topology.read(note)).expect("text");
    let kernel = text("kernel");
    assert!(kernel.lines().count() > 50);
    for client in ["client-4", "client-6"] {
        for (expected, found) in kernel.lines().zip(text(client).lines()) {
            assert_eq!(expected, found, "{client}");
        }
        assert_eq!(kernel.len(), text(client).len());
    }
    // It was AF_XDP that answered, not the sockets behind it.
    let stats = text("stats");
    let metrics = text("metrics");
    let mode = role.strip_prefix("serve-").unwrap_or("native");
    for sample in [
        format!("gannet_xdp_mode_info{{interface=\"s0\",mode=\"{mode}\"}} 1\n"),
        "gannet_xdp_ring_entries{interface=\"s0\",queue=\"0\"} 2048\n".to_owned(),
        "gannet_xdp_program_frames_total{interface=\"s0\",verdict=\"dropped\"} 4\n".to_owned(),
        "gannet_xdp_lost_packets_total{interface=\"s0\",queue=\"0\",reason=\"ring_full\"} 0\n".to_owned(),
    ] {
        assert!(metrics.contains(&sample), "no {sample}in {metrics}");
    }
    let taken = counter(&stats, "listen", "xdp_datagrams");
    // Of the corpus some pass: a reply, and what is less than a header. Each case has a marker behind it.
    let least = 2 * (2 * cases().len() as u64 - 5) + 100 + 2 * 200;
    assert!(taken >= least, "{taken} of {least}\n{stats}");
    assert!(counter(&stats, "xdp.s0", "taken") >= least, "{stats}");
    assert_eq!(counter(&stats, "xdp.s0", "dropped"), 4, "{stats}");
    assert_eq!(counter(&stats, "listen", "xdp_unsent"), 0, "{stats}");
    assert_eq!(counter(&stats, "listen", "xdp_lost"), 0, "{stats}");
}

#[test]
fn af_xdp_and_the_kernel_give_the_same_bytes() {
    gives_the_same_bytes("serve", 1);
}

#[test]
fn so_does_af_xdp_in_generic_mode_on_two_queues() {
    gives_the_same_bytes("serve-generic", 2);
}

#[test]
fn a_reply_is_no_longer_than_a_packet() {
    let Some(topology) = Topology::new(1) else { return };
    for (namespace, interface) in [(&topology.client, "c0"), (&topology.server, "s0")] {
        ip(&format!("-n {namespace} link set {interface} mtu 600")).expect("another MTU");
    }
    let mut server = topology.start(&topology.server, "serve-narrow");
    topology.wait_for("ready", &mut server);
    topology.client("ask-for-much");
    topology.tell("asked");
    Topology::end("serve-narrow", server);
}

#[test]
fn whoever_keeps_on_being_over_the_limit_is_banned_for_a_time() {
    let Some(topology) = Topology::new(1) else { return };
    let mut server = topology.start(&topology.server, "serve-limited");
    topology.wait_for("ready", &mut server);
    topology.client("offend");
    topology.wait_for("banned", &mut server);
    topology.client("is-banned");
    topology.tell("was-banned");
    topology.wait_for("exempt", &mut server);
    topology.client("is-let-in");
    topology.tell("was-exempt");
    topology.wait_for("forgiving", &mut server);
    topology.client("offend");
    topology.client("is-let-in");
    topology.tell("was-let-in");
    Topology::end("serve-limited", server);
}

#[test]
fn another_program_is_kept_or_replaced_as_is_set() {
    let Some(topology) = Topology::new(1) else { return };
    let mut server = topology.start(&topology.server, "share");
    topology.wait_for("replaced", &mut server);
    topology.client("bystander");
    topology.tell("asked");
    Topology::end("share", server);
}

#[test]
fn a_program_of_somebody_else_is_joined_as_is_set() {
    let Some(topology) = Topology::new(1) else { return };
    let mut server = topology.start(&topology.server, "join");
    topology.wait_for("joined", &mut server);
    topology.client("bystander");
    topology.tell("asked");
    Topology::end("join", server);
}

#[test]
fn killed_under_load_it_comes_back() {
    let Some(topology) = Topology::new(1) else { return };
    let load = topology.start(&topology.client, "load");
    let mut server = topology.start(&topology.server, "serve-and-die");
    for life in 0..3 {
        topology.wait_for(&format!("up-{life}"), &mut server);
        topology.client("bystander");
        topology.tell(&format!("asked-{life}"));
    }
    Topology::end("serve-and-die", server);
    topology.tell("end");
    Topology::end("load", load);
}

/// Returns what the program says in the server's namespace, without any capability.
fn without_rights(topology: &Topology, arguments: &[&str]) -> Option<(bool, String)> {
    let output = Command::new("ip")
        .args(["netns", "exec", &topology.server, "setpriv", "--bounding-set", "-all"])
        .arg(testkit::program::gannet())
        .args(arguments)
        .output()
        .expect("ip runs");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if said.contains("setpriv") {
        println!("skipped: {said}");
        return None;
    }
    Some((output.status.success(), said))
}

#[test]
fn missing_rights_are_named() {
    let Some(topology) = Topology::new(1) else { return };
    let Some((is_fine, said)) = without_rights(&topology, &["xdp", "check", "s0"]) else { return };
    assert!(!is_fine, "{said}");
    assert!(said.contains("no   rights: missing: CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF"), "{said}");
    assert!(said.contains("no   sockets: cannot open an AF_XDP socket: CAP_NET_RAW is needed"), "{said}");
}

/// The capabilities that AF_XDP takes, as setpriv calls them.
const RIGHTS: [&str; 3] = ["net_raw", "net_admin", "bpf"];

/// The program as a user who is nobody, with some rights and so many octets of lockable memory, in the server's namespace.
struct Unprivileged {
    child: Child,
    log: Receiver<String>,
}

impl Unprivileged {
    /// Starts it; `None` where the tools for that are missing.
    fn start(topology: &Topology, rights: &[&str], memory_octets: u64) -> Option<Self> {
        let folder = topology.folder.path();
        std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY)).expect("root may");
        std::os::unix::fs::chown(folder.join("gannet.yaml"), Some(NOBODY), Some(NOBODY)).expect("root may");
        let rights: String = rights.iter().map(|right| format!(",+{right}")).collect();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &topology.server, "prlimit"]);
        command.arg(format!("--memlock={memory_octets}:{memory_octets}"));
        command.arg("setpriv").args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")]);
        command.arg("--clear-groups");
        for set in ["--inh-caps", "--ambient-caps", "--bounding-set"] {
            command.arg(format!("{set}=-all{rights}"));
        }
        command.arg(testkit::program::gannet()).args(["run", "--socket"]).arg(folder.join("control.sock"));
        command.arg("--config").arg(folder.join("gannet.yaml"));
        let mut child = command.stderr(Stdio::piped()).spawn().expect("ip runs");
        let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let (sender, log) = channel();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut unprivileged = Self { child, log };
        let first = unprivileged.hear("");
        if first.starts_with("prlimit:")
            || first.starts_with("setpriv:")
            || first.contains("Permission denied")
        {
            println!("skipped: {first}");
            return None;
        }
        // What was heard to find that out is heard again.
        let (sender, log) = channel();
        sender.send(first).expect("somebody hears");
        let rest = std::mem::replace(&mut unprivileged.log, log);
        std::thread::spawn(move || rest.into_iter().try_for_each(|line| sender.send(line)));
        Some(unprivileged)
    }

    /// Waits for a line of the log that has `text` in it.
    fn hear(&mut self, text: &str) -> String {
        let mut heard = Vec::new();
        loop {
            match self.log.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => heard.push(line),
                Err(_) => panic!("{text:?} does not come: {heard:#?}"),
            }
        }
    }

    /// Returns the capabilities that its threads have, in hexadecimal digits: those it could use, and those it could get.
    fn rights(&self) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("it runs");
        let of_task = |task: std::fs::DirEntry| {
            let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let sets = ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"];
            let lines = status.lines().filter(|line| sets.iter().any(|set| line.starts_with(set)));
            lines
                .map(|line| line.split_whitespace().nth(1).unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        };
        tasks.map_while(Result::ok).flat_map(of_task).collect()
    }
}

impl Drop for Unprivileged {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes a configuration for port 53, which nobody in particular may have in this namespace.
fn unprivileged_configuration(topology: &Topology, xdp: &str, more: &str) {
    let folder = topology.folder.path();
    let text = format!(
        "server: {{workers: 1, state-directory: \"{}\"}}\n\
         listen: [\"{}:53\", \"[{}]:53\"]\n\
         xdp: {{interfaces: s0, {xdp}}}\n\
         local: {{{LOCAL}: [192.168.1.10]}}\n{more}",
        folder.display(),
        SERVER[0],
        SERVER[1],
    );
    std::fs::write(folder.join("gannet.yaml"), text).expect("a writable directory");
    let everybody = "echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start";
    let set = Command::new("ip").args(["netns", "exec", &topology.server, "sh", "-c", everybody]).status();
    assert!(set.expect("ip runs").success());
}

#[test]
fn three_rights_and_locked_memory_are_enough_and_given_up() {
    let Some(topology) = Topology::new(1) else { return };
    unprivileged_configuration(&topology, "mode: native", "");
    let Some(mut server) = Unprivileged::start(&topology, &RIGHTS, 16 << 20) else { return };
    server.hear("queries are taken past the kernel's network stack");
    server.hear("answers on");
    topology.client("bystander");
    let rights = server.rights();
    assert!(rights.len() >= 8 && rights.iter().all(|right| right.trim_matches('0').is_empty()), "{rights:?}");
    // Without any of them, the program still hears of bans.
    unprivileged_configuration(&topology, "mode: native", "deny: [10.77.0.0/28, \"fd77::1\"]\n");
    let told = Command::new("kill").args(["-HUP", &server.child.id().to_string()]).status();
    assert!(told.expect("kill runs").success());
    server.hear("configuration in use");
    topology.client("is-dropped");
}

#[test]
fn small_rings_busy_polling_and_fewer_queues_serve_as_well() {
    let Some(topology) = Topology::new(2) else { return };
    let xdp = "mode: auto, ring: 64, busy-poll: 20, busy-poll-budget: 8, huge-pages: true, queues: 1";
    unprivileged_configuration(&topology, xdp, "");
    let Some(mut server) = Unprivileged::start(&topology, &RIGHTS, 16 << 20) else { return };
    let taken = server.hear("queries are taken past the kernel's network stack");
    assert!(taken.contains("native") && taken.contains('1'), "{taken}");
    server.hear("what comes to other queues goes to the kernel's sockets");
    server.hear("answers on");
    topology.client("bystander");
    topology.client("flows");
}

#[test]
fn each_right_that_is_missing_is_named() {
    let Some(topology) = Topology::new(1) else { return };
    unprivileged_configuration(&topology, "mode: native", "");
    let check = |rights: &[&str], memory_octets: u64, expect: &str| {
        let Some(mut server) = Unprivileged::start(&topology, rights, memory_octets) else { return };
        server.hear(expect);
        assert!(!server.child.wait().expect("an end").success());
    };
    let enough = 16 << 20;
    check(&["net_admin", "bpf"], enough, "CAP_NET_RAW is needed");
    check(&["net_raw", "bpf"], enough, "CAP_BPF and CAP_NET_ADMIN are needed");
    check(&["net_raw", "net_admin"], enough, "CAP_BPF and CAP_NET_ADMIN are needed");
    check(&RIGHTS, 1 << 20, "too much locked memory; raise LimitMEMLOCK or grant CAP_IPC_LOCK");
}

#[test]
fn a_mode_that_is_demanded_and_not_there_is_an_error() {
    let Some(topology) = Topology::new(1) else { return };
    let config = topology.folder.path().join("gannet.yaml");
    let folder = topology.folder.path().display();
    // Pairs of virtual interfaces have no zero-copy mode.
    let yaml = format!(
        "server: {{state-directory: \"{folder}\", user: root}}\nlisten: [\"{}:53\"]\nxdp: {{interfaces: s0, mode: zerocopy}}\n",
        SERVER[0]
    );
    std::fs::write(&config, yaml).expect("a writable directory");
    let output = Command::new("ip")
        .args(["netns", "exec", &topology.server])
        .arg(testkit::program::gannet())
        .args(["run", "--socket", &format!("{folder}/control.sock"), "-c"])
        .arg(config)
        .output()
        .expect("ip runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    let expected = "the interface s0 cannot be used: queue 0: cannot bind to the queue: the driver does not support this mode";
    assert!(said.contains(expected), "{said}");
}
