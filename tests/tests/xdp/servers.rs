//! What runs at the server's end.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use testkit::corpus::{CACHED, LOCAL};
use testkit::{Answer, Ask, Script, Server, Stub};
use wire::{Flags, Rtype};

use crate::clients::record;
use crate::topology::{PATIENCE, SERVER, ip, tell, wait_for};

/// A name whose addresses take more than a narrow interface takes, and less than the largest
/// message.
pub(crate) const MANY: &str = "many.example.org";

/// Starts the program three times, and kills it each time that it is known to answer.
pub(crate) fn serve_and_die(folder: &Path) {
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

/// Starts the program on the server's interface, records what its kernel sockets answer, and stays
/// until told to end.
pub(crate) fn serve(folder: &Path, mode: &str) {
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
pub(crate) fn be_dropped_and_let_in_again(folder: &Path, server: &Server) {
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

/// Has the program check the way back, which it does not find as long as the loopback interface
/// forwards nothing, and ends that.
pub(crate) fn check_routes_and_trust_again(folder: &Path, server: &Server) {
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

/// Serves an interface whose packets have 600 octets at most.
pub(crate) fn serve_narrow(folder: &Path) {
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

/// Serves a zone for the client's own network, and one for others.
pub(crate) fn serve_guarded(folder: &Path) {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let zone = "$TTL 60\n@ SOA ns admin 1 7200 600 86400 300\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.2\n";
    std::fs::write(directory.path().join("zone"), zone).expect("a writable directory");
    let mut server = Server::start_in(
        directory,
        "server: {workers: 1, state-directory: \"@DIRECTORY@\", user: root}\n\
         listen: [\"@ADDRESS@\", \"0.0.0.0:53\"]\n\
         xdp: {interfaces: s0, mode: native}\n\
         allow: any\n\
         zones:\n  - {name: mine.example, file: zone, allow-query: [10.77.0.0/24]}\n  - {name: theirs.example, file: zone, allow-query: [198.51.100.0/24]}\n\
         policy: {main: [zones, reject(refused)]}\n",
    );
    server.wait_for_log("queries are taken past the kernel's network stack");
    tell(folder, "ready", b"");
    wait_for(folder, "asked", || false);
    let stats = server.command(&["stats"]);
    let stats = String::from_utf8_lossy(&stats.stdout).into_owned();
    assert_eq!(counter(&stats, "listen", "xdp_replies"), 2, "{stats}");
}

/// Limits its clients, and bans those who keep on: first for long, then for a second.
pub(crate) fn serve_limited(folder: &Path) {
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

/// Starts a server on an interface that has a program of somebody else's, which it is to leave
/// alone, and then to replace.
pub(crate) fn share(folder: &Path) {
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
pub(crate) fn join(folder: &Path) {
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
pub(crate) fn be_banned_and_let_in_again(folder: &Path, server: &Server) {
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

pub(crate) use testkit::program::counter;
