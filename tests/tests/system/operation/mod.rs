//! The built program as an operator meets it: start, reload, limits, stop, and start again.

mod changes;
mod guarded;
mod secrets;
mod start;

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testkit::{Answer, Ask, Script, Server, Stub, TcpClient, UdpClient, eventually, forwarding};
use wire::{Flags, OptionCode, Rcode, Rtype};

fn ask(name: &str) -> Ask {
    Ask::new(name, Rtype::A).edns(1232)
}

#[test]
fn it_stops_when_it_is_told() {
    for signal in ["TERM", "INT"] {
        let stub = Stub::start(Script::default());
        let server = Server::start(&forwarding(&[&stub], ""));
        server.ask(&ask("example.org"));
        let (status, log, _) = server.stop_by(signal);
        assert!(status.success(), "SIG{signal}: {status}\n{}", log.join("\n"));
    }
}

#[test]
fn the_log_level_can_be_changed_until_the_next_reload() {
    let stub = Stub::start(Script::default());
    let mut server = Server::start(&forwarding(&[&stub], "log: {level: warn}\n"));
    let level = |server: &Server, arguments: &[&str]| {
        let output = server.command(&[&["log-level"], arguments].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(level(&server, &[]), (Some(0), "warn\n".to_owned()));
    let (code, said) = level(&server, &["debug"]);
    assert!(code == Some(0) && said.starts_with("debug until the next reload"), "{said}");
    server.wait_for_log("log level changed");
    let (_, said) = level(&server, &["--json"]);
    assert!(said.contains("\"level\": \"debug\"") && said.contains("\"configured\": \"warn\""), "{said}");
    assert_eq!(level(&server, &["loud"]).0, Some(2));
    assert!(server.command(&["reload"]).status.success());
    assert_eq!(level(&server, &[]).1, "warn\n");
}

/// Returns how often the threads of a process have gone to sleep so far.
fn sleeps(pid: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let of_each = tasks.filter_map(|task| {
        // A thread may end meanwhile.
        let status = std::fs::read_to_string(task.ok()?.path().join("status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<u64>().ok()
    });
    of_each.sum()
}

/// Returns a size that the kernel gives for a process, in octets.
fn size(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).expect("a size");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// Returns how much memory of its own a process has, in octets.
fn own_memory(pid: u32) -> u64 {
    size(pid, "RssAnon")
}

#[test]
fn code_that_only_the_start_uses_does_not_stay_in_memory() {
    let stub = Stub::start(Script::default());
    let server = Server::start(&forwarding(&[&stub], ""));
    server.ask(&ask("example.org"));
    // A test build, most of which is not optimised, maps some 41 million octets of its files while
    // it starts, and some 20 million are left.
    eventually("few pages of files", || size(server.pid(), "RssFile") <= 26 << 20);
    assert_eq!(server.ask(&ask("another.example.org")).rcode(), Rcode::NOERROR);
}

#[test]
fn what_loading_a_large_zone_takes_is_given_back_after_the_start_and_after_reloads() {
    const NAMES: usize = 100_000;
    let zone = |serial: u32| {
        let mut zone = format!("$TTL 300\n@ SOA ns h {serial} 3600 600 86400 300\n@ NS ns\nns A 192.0.2.1\n");
        for number in 0..NAMES {
            let [upper, middle, lower] = [number >> 16, number >> 8 & 255, number & 255];
            zone.push_str(&format!("host{number} A 10.{upper}.{middle}.{lower}\n"));
        }
        zone
    };
    let stub = Stub::start(Script::default());
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let file = directory.path().join("zone");
    std::fs::write(&file, zone(1)).expect("a writable directory");
    let server =
        Server::start_in(directory, &forwarding(&[&stub], "zones: [{name: example.com, file: zone}]\n"));
    server.ask(&ask("example.org"));
    // An empty server of a test build takes some six million octets, each of these names less than
    // eighty, and the database of the audit log, open from the first reload on, half a million. A
    // second version would be over it.
    const MEMORY_MAX: u64 = 17 << 20;
    eventually("little memory after the start", || own_memory(server.pid()) <= MEMORY_MAX);
    for serial in 2..5 {
        std::fs::write(&file, zone(serial)).expect("a writable directory");
        assert!(server.command(&["reload"]).status.success());
        let served = |said: &str| said.contains(&format!(" h.example.com. {serial} "));
        eventually("the new version", || served(&server.dig(&["example.com", "SOA"])));
        eventually("no more memory after a reload", || own_memory(server.pid()) <= MEMORY_MAX);
    }
}

#[test]
fn an_idle_server_is_not_woken_by_itself() {
    /// For a tick of some seconds, and what it has other threads do.
    const SLEEPS_MAX: u64 = 6;
    let stub = Stub::start(Script::default());
    let recorded = "recorder: {file: queries.db}\n";
    for more in ["", recorded] {
        let server = Server::start(&forwarding(&[&stub], more));
        server.ask(&ask("example.org"));
        // What its start and the query have begun ends before long.
        eventually("two seconds without work", || {
            let before = sleeps(server.pid());
            let (_nobody, time) = std::sync::mpsc::channel::<()>();
            assert!(time.recv_timeout(Duration::from_secs(2)).is_err());
            sleeps(server.pid()) - before <= SLEEPS_MAX
        });
        assert_eq!(server.ask(&ask("example.org")).rcode(), Rcode::NOERROR);
    }
}

#[test]
fn a_reload_loses_no_query() {
    let stub = Stub::start(Script::default());
    let config =
        |number: u8| forwarding(&[&stub], &format!("local: {{nas.home.arpa: [192.168.1.{number}]}}"));
    let server = Server::start(&config(0));
    let done = AtomicBool::new(false);
    let reached =
        |number: u8| server.ask(&ask("nas.home.arpa")).answers()[0].ends_with(&format!("192.168.1.{number}"));
    let asked = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4_u16)
            .map(|client| {
                let (address, done) = (server.address(), &done);
                scope.spawn(move || {
                    let socket = UdpClient::connect(address);
                    let mut tcp = TcpClient::connect(address);
                    let mut asked = 0_u32;
                    while !done.load(Ordering::Relaxed) {
                        // Hits, misses and local names; each must come back, or the receive panics.
                        for name in
                            ["hit.example.org", &format!("miss{client}-{asked}.example.org"), "nas.home.arpa"]
                        {
                            let heard = socket.ask(&ask(name).id(client));
                            assert_eq!(
                                (heard.id(), heard.rcode(), heard.answers().len()),
                                (client, Rcode::NOERROR, 1)
                            );
                        }
                        assert_eq!(tcp.ask(&ask("hit.example.org")).rcode(), Rcode::NOERROR);
                        asked += 4;
                    }
                    asked
                })
            })
            .collect();
        for number in 1..=20 {
            server.write_config(&config(number));
            if number % 2 == 0 {
                server.signal("HUP");
            } else {
                let output = server.command(&["reload"]);
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            }
            eventually("the new configuration is in use", || reached(number));
        }
        done.store(true, Ordering::Relaxed);
        clients.into_iter().map(|client| client.join().expect("no query was lost")).sum::<u32>()
    });
    assert!(asked > 100, "{asked} queries");
    // The cache outlived twenty reloads.
    assert!(stub.count("hit.example.org.") <= 4, "{}", stub.count("hit.example.org."));
}

#[test]
fn a_query_that_waits_during_a_reload_gets_its_answer() {
    let stub = Stub::start(Script::default().delayed(Duration::from_millis(300)));
    let config =
        |number: u8| forwarding(&[&stub], &format!("local: {{nas.home.arpa: [192.168.1.{number}]}}"));
    let server = Server::start(&config(1));
    let client = UdpClient::connect(server.address());
    client.send(&ask("waits.example.org").id(7).bytes());
    stub.wait_for("waits.example.org.", 1);
    server.write_config(&config(2));
    let output = server.command(&["reload"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let heard = client.receive();
    assert_eq!((heard.id(), heard.rcode(), heard.answers().len()), (7, Rcode::NOERROR, 1), "{heard:?}");
}

#[test]
fn a_bad_configuration_leaves_the_running_one_in_place() {
    let stub = Stub::start(Script::default());
    let mut server = Server::start(&forwarding(&[&stub], "local: {nas.home.arpa: [192.168.1.1]}"));
    server.write_config(&forwarding(
        &[&stub],
        "lokal: {nas.home.arpa: [192.168.1.2]}\ncache: {main: {size: lots}}",
    ));
    let output = server.command(&["reload"]);
    assert!(!output.status.success());
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    for part in ["gannet.yaml:4:1: error: ", "\"lokal\"", "did you mean", "gannet.yaml:5:", "\"lots\""] {
        assert!(said.contains(part), "expected {part:?} in:\n{said}");
    }
    assert_eq!(server.ask(&ask("nas.home.arpa")).answers().len(), 1);
    server.signal("HUP");
    server.wait_for_log("lokal");
    assert_eq!(server.ask(&ask("nas.home.arpa")).answers()[0].split(' ').next_back(), Some("192.168.1.1"));
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = taken.local_addr().expect("a bound socket");
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let config = directory.path().join("gannet.yaml");
    let yaml =
        format!("server: {{state-directory: \"{}\"}}\nlisten: [\"{address}\"]\n", directory.path().display());
    std::fs::write(&config, yaml).expect("a writable directory");
    let output = testkit::program::program(directory.path())
        .args(["run", "-c"])
        .arg(&config)
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains(&address.to_string()), "{said}");
    assert!(said.contains(&std::process::id().to_string()), "it does not say who has the port:\n{said}");
}

#[test]
fn check_reports_every_mistake_with_its_place() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let config = directory.path().join("gannet.yaml");
    std::fs::write(&config, "listen: [127.0.0.1:99999]\nupstream: {}\nallow: [privat]\n")
        .expect("a writable directory");
    let output = testkit::program::program(directory.path())
        .args(["check", "-c"])
        .arg(&config)
        .output()
        .expect("the program starts");
    assert!(!output.status.success());
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    for part in [
        "gannet.yaml:1:",
        "gannet.yaml:2:1:",
        "gannet.yaml:3:",
        "did you mean \"upstreams\"",
        "did you mean \"private\"",
    ] {
        assert!(said.contains(part), "expected {part:?} in:\n{said}");
    }
}

#[test]
fn a_client_over_its_rate_gets_a_truncated_reply_now_and_then() {
    let stub = Stub::start(Script::default());
    let more = "limits: {rate: {per-second: 5, burst: 10, slip: 2, exempt: []}}";
    let server = Server::start(&forwarding(&[&stub], more));
    let client = UdpClient::connect(server.address());
    for id in 0..200 {
        client.send(&Ask::new("localhost", Rtype::A).id(id).bytes());
    }
    client.set_patience(Duration::from_millis(500));
    let mut whole = 0;
    let mut slipped = 0;
    while let Ok(heard) = client.try_receive() {
        if heard.has(Flags::TC) { slipped += 1 } else { whole += 1 }
    }
    assert!((5..60).contains(&whole), "{whole} whole replies to 200 queries");
    assert!((30..150).contains(&slipped), "{slipped} truncated replies to 200 queries");
    // TCP proves the address and is not limited this way.
    assert_eq!(server.ask_tcp(&Ask::new("localhost", Rtype::A)).rcode(), Rcode::NOERROR);
}

#[test]
fn strangers_are_refused() {
    let stub = Stub::start(Script::default());
    let server = Server::start(&forwarding(&[&stub], "allow: [192.0.2.0/24]"));
    let heard = UdpClient::connect(server.address()).ask(&ask("example.org"));
    assert_eq!(heard.rcode(), Rcode::REFUSED);
    assert_eq!(stub.seen(), []);
}

/// Returns a PROXY v2 header for IPv4.
fn proxy_header(transport: u8, source: Ipv4Addr) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21".to_vec();
    header.extend([0x10 | transport, 0, 12]);
    header.extend(source.octets());
    header.extend([192, 0, 2, 53]);
    header.extend([0x12, 0x34, 0, 53]);
    header
}

#[test]
fn a_trusted_proxy_speaks_for_its_client() {
    let stub = Stub::start(Script::default());
    let address = stub.address();
    let config = format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\n\
         listen: [\"@ADDRESS@\", {{at: \"@ANOTHER@\", proxy-protocol-from: [127.0.0.0/8]}}]\n\
         allow: [192.0.2.0/24, loopback]\nupstreams: {{default: {{servers: [\"{address}\"]}}}}\n"
    );
    let server = Server::start(&config);
    let query = ask("example.org").bytes();
    for (source, rcode) in
        [(Ipv4Addr::new(192, 0, 2, 1), Rcode::NOERROR), (Ipv4Addr::new(203, 0, 113, 1), Rcode::REFUSED)]
    {
        let udp = UdpClient::connect(server.another());
        udp.send(&[&proxy_header(2, source)[..], &query].concat());
        assert_eq!(udp.receive().rcode(), rcode, "UDP from {source}");
        let mut tcp = TcpClient::connect(server.another());
        tcp.send_raw(&proxy_header(1, source));
        tcp.send([query.as_slice()]);
        assert_eq!(tcp.receive().map(|heard| heard.rcode()), Some(rcode), "TCP from {source}");
    }
    // Who is trusted to speak for others must do so.
    let udp = UdpClient::connect(server.another());
    udp.send(&query);
    udp.send(
        &[&proxy_header(2, Ipv4Addr::new(192, 0, 2, 1))[..], &ask("example.org").id(1).bytes()].concat(),
    );
    assert_eq!(udp.receive().id(), 1);
}

/// Starts a server that believes PROXY headers of this machine at its other address.
fn behind_proxy(more: &str) -> (Stub, Server) {
    let stub = Stub::start(Script::default());
    let address = stub.address();
    let config = format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\n\
         listen: [\"@ADDRESS@\", {{at: \"@ANOTHER@\", proxy-protocol-from: [127.0.0.0/8]}}]\n\
         allow: [192.0.2.0/24, loopback]\nupstreams: {{default: {{servers: [\"{address}\"]}}}}\n{more}"
    );
    let server = Server::start(&config);
    (stub, server)
}

#[test]
fn a_cookie_that_a_proxy_s_client_got_is_worth_nothing_to_others() {
    let (_stub, server) = behind_proxy("cookies: {required: [192.0.2.0/24, 127.0.0.0/8]}\n");
    let udp = UdpClient::connect(server.another());
    let through = |source: u8, cookie: &[u8]| {
        let query = Ask::new("example.org", Rtype::A).option(OptionCode::COOKIE, cookie).bytes();
        udp.send(&[&proxy_header(2, Ipv4Addr::new(192, 0, 2, source))[..], &query].concat());
        udp.receive()
    };
    let heard = through(1, b"clientck");
    assert_eq!(heard.rcode(), Rcode::BADCOOKIE);
    let cookie = heard.option(OptionCode::COOKIE).expect("a cookie");
    assert_eq!(through(1, &cookie).rcode(), Rcode::NOERROR);
    // Neither another client of the proxy's, nor the proxy itself.
    assert_eq!(through(2, &cookie).rcode(), Rcode::BADCOOKIE);
    let direct = Ask::new("example.org", Rtype::A).option(OptionCode::COOKIE, &cookie);
    assert_eq!(UdpClient::connect(server.address()).ask(&direct).rcode(), Rcode::BADCOOKIE);
}

#[test]
fn clients_of_a_proxy_have_each_the_allowance_of_their_own_network() {
    let rate = "limits: {rate: {per-second: 1, burst: 3, slip: 1, exempt: [loopback]}}\n";
    let (_stub, server) = behind_proxy(rate);
    let udp = UdpClient::connect(server.another());
    let through = |source: Ipv4Addr| {
        udp.send(&[&proxy_header(2, source)[..], &ask("example.org").bytes()].concat());
        udp.receive().has(Flags::TC)
    };
    // The proxy is exempt; its clients are not.
    let is_cut = |last: u8| (0..10).any(|_| through(Ipv4Addr::new(192, 0, 2, last)));
    assert!(is_cut(1), "ten are more than it may have at once");
    // One of the same network is over it, too; this machine is not, whoever asks through it.
    assert!(is_cut(200));
    assert!((0..10).all(|_| !through(Ipv4Addr::LOCALHOST)));
    let direct = UdpClient::connect(server.address());
    assert!((0..10).all(|_| !direct.ask(&ask("example.org")).has(Flags::TC)));
}

#[test]
fn a_proxy_header_of_a_stranger_wins_nothing() {
    let stub = Stub::start(Script::default());
    let address = stub.address();
    let config = format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\n\
         listen: [\"@ADDRESS@\", {{at: \"@ANOTHER@\", proxy-protocol-from: [192.0.2.9]}}]\n\
         allow: [192.0.2.0/24]\nupstreams: {{default: {{servers: [\"{address}\"]}}}}\n"
    );
    let server = Server::start(&config);
    let forged = [&proxy_header(2, Ipv4Addr::new(192, 0, 2, 1))[..], &ask("example.org").bytes()].concat();
    for to in [server.another(), server.address()] {
        let udp = UdpClient::connect(to);
        udp.send(&forged);
        // What is no query of somebody who may ask gets nothing; a query is refused.
        assert_eq!(udp.ask(&ask("example.org").id(7)).rcode(), Rcode::REFUSED);
        let mut tcp = TcpClient::connect(to);
        tcp.send_raw(&proxy_header(1, Ipv4Addr::new(192, 0, 2, 1)));
        tcp.send([ask("example.org").bytes().as_slice()]);
        assert_ne!(tcp.receive().map(|heard| heard.rcode()), Some(Rcode::NOERROR));
    }
    assert_eq!(stub.seen(), []);
}

#[test]
fn slow_and_silent_connections_do_not_stand_in_the_way() {
    let stub = Stub::start(Script::default());
    let server = Server::start(&forwarding(&[&stub], ""));
    let mut idle = Vec::new();
    for number in 0..50_u8 {
        let mut stream = TcpStream::connect(server.address()).expect("a connection");
        // Half a length, and then nothing.
        stream.write_all(&[0]).expect("an open connection");
        idle.push((number, stream));
    }
    assert_eq!(server.ask_tcp(&ask("example.org")).rcode(), Rcode::NOERROR);
    assert_eq!(server.ask(&ask("example.org")).rcode(), Rcode::NOERROR);
}

#[test]
fn dnsperf_loses_nothing() {
    let stub = Stub::start(Script::answering(|_| Answer::a(300, Ipv4Addr::new(192, 0, 2, 1))));
    let server = Server::start(&forwarding(&[&stub], ""));
    let names: Vec<_> = (0..1000).map(|number| format!("n{number}.example.org A\n")).collect();
    let file = server.directory().join("names");
    std::fs::write(&file, names.concat()).expect("a writable directory");
    for mode in ["udp", "tcp"] {
        let port = server.address().port().to_string();
        let output = Command::new("dnsperf")
            .args(["-s", "127.0.0.1", "-p", &port, "-m", mode, "-n", "20", "-c", "4", "-q", "50", "-d"])
            .arg(&file)
            .stderr(Stdio::inherit())
            .output()
            .unwrap_or_else(|why| panic!("cannot run dnsperf ({why}); `cargo xtask test` installs it"));
        let said = String::from_utf8_lossy(&output.stdout);
        for part in
            ["Queries sent:         20000", "Queries lost:         0 (0.00%)", "NOERROR 20000 (100.00%)"]
        {
            assert!(said.contains(part), "expected {part:?} in:\n{said}");
        }
    }
    assert!(stub.seen().len() < 3000, "{} upstream queries for 1000 names", stub.seen().len());
}

#[test]
fn a_connection_without_a_query_is_closed() {
    let stub = Stub::start(Script::default());
    let more = "limits: {tcp: {first-query-timeout: 200ms}}";
    let server = Server::start(&forwarding(&[&stub], more));
    let mut silent = TcpClient::connect(server.address());
    assert_eq!(silent.receive(), None);
    let mut half = TcpClient::connect(server.address());
    half.send_raw(&[0]);
    assert_eq!(half.receive(), None);
}

#[test]
fn keepalive_is_announced_to_those_who_ask() {
    let stub = Stub::start(Script::default());
    let server = Server::start(&forwarding(&[&stub], "limits: {tcp: {idle-timeout: 7s}}"));
    let with = Ask::new("localhost", Rtype::A).option(OptionCode::TCP_KEEPALIVE, &[]);
    assert_eq!(server.ask_tcp(&with).option(OptionCode::TCP_KEEPALIVE), Some(vec![0, 70]));
    assert_eq!(server.ask_tcp(&ask("localhost")).option(OptionCode::TCP_KEEPALIVE), None);
    // RFC 7828 §3.2.1: over UDP the option means nothing.
    assert_eq!(server.ask(&with).option(OptionCode::TCP_KEEPALIVE), None);
}

#[test]
fn keepalive_can_be_announced_to_all_or_nobody() {
    let stub = Stub::start(Script::default());
    let with = Ask::new("localhost", Rtype::A).option(OptionCode::TCP_KEEPALIVE, &[]);
    for (word, expected) in [("all", Some(vec![0, 70])), ("nobody", None)] {
        let limits = format!("limits: {{tcp: {{idle-timeout: 7s, announce: {word}}}}}");
        let server = Server::start(&forwarding(&[&stub], &limits));
        for ask in [&with, &Ask::new("localhost", Rtype::A).dnssec()] {
            assert_eq!(server.ask_tcp(ask).option(OptionCode::TCP_KEEPALIVE), expected);
            assert_eq!(server.ask(ask).option(OptionCode::TCP_KEEPALIVE), None);
        }
    }
}

#[test]
fn sockets_that_systemd_opened_are_used() {
    let address = testkit::free_address();
    let udp = UdpSocket::bind(address).expect("a free port");
    let tcp = TcpListener::bind(address).expect("the same port for TCP");
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let config = directory.path().join("gannet.yaml");
    let yaml = format!(
        "server: {{workers: 2, state-directory: \"{}\"}}\nlisten: [\"{address}\"]\n",
        directory.path().display()
    );
    std::fs::write(&config, yaml).expect("a writable directory");
    // The shell moves them to where sd_listen_fds(3) says, and becomes the server, so that the
    // process ID fits.
    let start =
        "exec 3<&0 4<&1 0</dev/null 1>/dev/null; LISTEN_PID=$$ LISTEN_FDS=2 exec \"$0\" run -c \"$1\"";
    let environment = testkit::program::program(directory.path());
    let mut command = Command::new("sh");
    command.args(["-c", start]).arg(testkit::program::gannet()).arg(&config);
    for (name, value) in environment.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(OwnedFd::from(udp)).stdout(OwnedFd::from(tcp)).stderr(Stdio::null());
    let mut child = command.spawn().expect("a shell");
    // The sockets exist already: these wait in them until the server reads.
    let probe = Ask::new("localhost", Rtype::A);
    let (over_udp, mut over_tcp) = (UdpClient::connect(address), TcpClient::connect(address));
    assert_eq!(over_udp.ask(&probe).rcode(), Rcode::NOERROR);
    assert_eq!(over_tcp.ask(&probe).rcode(), Rcode::NOERROR);
    child.kill().expect("a running server");
    child.wait().expect("a child");
}

#[test]
fn the_small_client_shows_what_matters() {
    let stub = Stub::start(Script::default());
    let server = Server::start(&forwarding(&[&stub], ""));
    let output = server.command(&["query", "example.org", "AAAA", &format!("@{}", server.address())]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    for part in ["example.org.", "300", "AAAA", "2001:db8::1", "NOERROR"] {
        assert!(said.contains(part), "expected {part:?} in:\n{said}");
    }
}
