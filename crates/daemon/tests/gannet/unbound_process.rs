//! The process in the place of Unbound: whom it becomes, where it is, and when whoever started it
//! goes on.

use std::net::UdpSocket;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use testkit::eventually;

use crate::harness::{PATIENCE, Place, Server, ask, free_port, is_root, text};

/// Ends a process that is nobody's child, and waits until it has gone.
struct Background(u32);

impl Background {
    /// Returns the process that a file names.
    fn of(file: &Path) -> Self {
        let number = std::fs::read_to_string(file).unwrap();
        let process = Self(number.trim().parse().unwrap());
        assert!(process.runs());
        process
    }

    fn runs(&self) -> bool {
        Path::new("/proc").join(self.0.to_string()).exists()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.to_string()).status();
        // Not `eventually`, which may panic while another panic unwinds.
        let begin = Instant::now();
        while self.runs() && begin.elapsed() < PATIENCE {
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

fn conf(place: &Place, port: u16, more: &str) -> String {
    let text = format!(
        "server:\n interface: 127.0.0.1@{port}\n directory: \"{}\"\n module-config: iterator\n \
         pidfile: pid\n local-data: \"www.example.org. 60 IN A 192.0.2.7\"\n{more}",
        place.path("").display()
    );
    place.write("unbound.conf", &text).display().to_string()
}

#[test]
fn without_d_it_goes_into_the_background_once_it_answers() {
    let place = Place::new();
    let port = free_port();
    let conf = conf(&place, port, " username: \"\"\n logfile: log\n");
    // To the end of standard error, too: nobody has it open any more.
    let (code, _, said) = text(&place.run(&["unbound", "-c", &conf]));
    assert_eq!(code, 0, "{said}");
    let process = Background::of(&place.path("pid"));
    let (reply, _) = ask(port, "www.example.org");
    assert!(reply.ends_with(&[192, 0, 2, 7]), "{reply:?}");
    let log = std::fs::read_to_string(place.path("log")).unwrap();
    assert!(log.contains(&format!("unbound[{}:0] info: start of service", process.0)), "{log}");
    // A session of its own, so that the terminal's end is not its own.
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.0)).unwrap();
    let session = stat.rsplit(')').next().unwrap().split_whitespace().nth(3).unwrap();
    assert_eq!(session, process.0.to_string());
}

#[test]
fn a_start_that_fails_ends_with_1_and_says_why() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let (code, _, said) = text(&place.run(&["unbound", "-c", &conf(&place, port, " username: \"\"\n")]));
    assert!(code == 1 && said.contains(&format!("127.0.0.1:{port}")), "{code}: {said}");
    assert!(!place.path("pid").exists());
    let (code, _, said) =
        text(&place.run(&["unbound", "-c", &conf(&place, port, " username: \"\"\n prot: 1\n")]));
    assert!(code == 1 && said.contains("prot"), "{code}: {said}");
}

#[test]
fn without_the_file_of_auto_trust_anchor_file_it_does_not_start() {
    let place = Place::new();
    let start = |modules: &str| {
        let more =
            format!(" username: \"\"\n module-config: \"{modules}\"\n auto-trust-anchor-file: none.key\n");
        text(&place.run(&["unbound", "-c", &conf(&place, free_port(), &more)]))
    };
    let (code, _, said) = start("validator iterator");
    assert!(code == 1 && said.contains("unable to open") && said.contains("none.key"), "{code}: {said}");
    // Who validates nothing needs none.
    let (code, _, said) = start("iterator");
    assert_eq!(code, 0, "{said}");
    drop(Background::of(&place.path("pid")));
}

#[test]
fn do_daemonize_no_stays_in_the_foreground() {
    let place = Place::new();
    let port = free_port();
    let conf = conf(&place, port, " username: \"\"\n do-daemonize: no\n logfile: log\n");
    let mut child = place.gannet().args(["unbound", "-c", &conf]).spawn().unwrap();
    eventually("it starts", || {
        std::fs::read_to_string(place.path("log")).is_ok_and(|log| log.contains("start of service"))
    });
    assert_eq!(std::fs::read_to_string(place.path("pid")).unwrap(), format!("{}\n", child.id()));
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn with_sockets_of_a_service_manager_it_stays_in_the_foreground() {
    let place = Place::new();
    let port = free_port();
    let conf = conf(&place, port, " username: \"\"\n logfile: log\n");
    let gannet = place.gannet();
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"LISTEN_PID=$$ LISTEN_FDS=0 exec "$0" unbound -c "$1""#]).arg(gannet.get_program());
    shell
        .arg(&conf)
        .current_dir(place.path(""))
        .env_remove("NOTIFY_SOCKET")
        .env("GANNET_SOCKET", place.path("control.sock"));
    let mut child = shell.spawn().unwrap();
    eventually("it starts", || {
        std::fs::read_to_string(place.path("log")).is_ok_and(|log| log.contains("start of service"))
    });
    assert_eq!(std::fs::read_to_string(place.path("pid")).unwrap(), format!("{}\n", child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn in_the_background_a_log_without_a_place_is_told_of_before() {
    let place = Place::new();
    let port = free_port();
    let (code, _, said) = text(&place.run(&["unbound", "-c", &conf(&place, port, " username: \"\"\n")]));
    assert_eq!(code, 0, "{said}");
    let _process = Background::of(&place.path("pid"));
    assert_eq!(said.contains("the log is lost"), !Path::new("/dev/log").exists(), "{said}");
}

#[test]
fn a_configuration_of_ours_can_go_into_the_background_too() {
    let place = Place::new();
    let port = free_port();
    let text_of_file = format!(
        "server: {{daemonize: true, user: root, pid-file: pid, state-directory: state}}\nlog: {{to: log}}\n\
         listen: 127.0.0.1:{port}\nlocal: {{www.example.org: 192.0.2.7}}\n"
    );
    let file = place.write("gannet.yaml", &text_of_file).display().to_string();
    let (code, _, said) = text(&place.run(&["run", "-c", &file]));
    assert_eq!(code, 0, "{said}");
    let _process = Background::of(&place.path("pid"));
    let (reply, _) = ask(port, "www.example.org");
    assert!(reply.ends_with(&[192, 0, 2, 7]), "{reply:?}");
}

#[test]
fn unbound_control_start_returns_when_clients_are_answered() {
    let place = Place::new();
    let port = free_port();
    let conf = conf(&place, port, " username: \"\"\n logfile: log\n");
    let (code, _, said) = text(&place.run(&["unbound", "control", "-c", &conf, "start"]));
    assert_eq!(code, 0, "{said}");
    let _process = Background::of(&place.path("pid"));
    let (reply, _) = ask(port, "www.example.org");
    assert!(reply.ends_with(&[192, 0, 2, 7]), "{reply:?}");
}

#[test]
fn a_device_is_listened_on_with_all_its_addresses() {
    let place = Place::new();
    let port = free_port();
    let control = free_port();
    let text_of_file = format!(
        "server:\n interface: lo@{port}\n username: \"\"\n module-config: iterator\n directory: \"{}\"\n\
         remote-control:\n control-enable: yes\n control-use-cert: no\n control-interface: lo@{control}\n",
        place.path("").display()
    );
    let conf = place.write("unbound.conf", &text_of_file).display().to_string();
    let server = Server::start_with(place, |command| {
        command.args(["unbound", "-d", "-c", &conf]);
    });
    let (_, listeners, _) = text(&server.run(&["status"]));
    assert!(listeners.contains(&format!("127.0.0.1:{port}")), "{listeners}");
    assert_eq!(
        listeners.contains(&format!("[::1]:{port}")),
        Path::new("/proc/net/if_inet6").exists(),
        "{listeners}"
    );
    let (code, said, _) = text(&server.run(&["unbound", "control", "-c", &conf, "status"]));
    assert!(code == 0 && said.contains("is running"), "{said}");
}

#[test]
fn a_device_that_is_not_there_keeps_the_server_from_starting() {
    let place = Place::new();
    let conf = place.write("unbound.conf", "server:\n interface: nodev0\n").display().to_string();
    for arguments in [&["unbound", "-d", "-c", &conf][..], &["unbound", "checkconf", &conf]] {
        let (code, _, said) = text(&place.run(arguments));
        assert_eq!(code, 1);
        assert!(said.contains("unbound.conf:2:") && said.contains("there is no device \"nodev0\""), "{said}");
    }
    let file = place.write("gannet.yaml", "listen: [nodev0]\n").display().to_string();
    let (code, said, _) = text(&place.run(&["check", &file]));
    assert!(code == 1 && said.contains("there is no device \"nodev0\""), "{code}: {said}");
}

/// Returns the number of the user `unbound`, if there is one and this test may become it.
#[expect(clippy::print_stdout, reason = "whoever reads the tests' output should know")]
fn unbound_user() -> Option<u32> {
    let output = Command::new("id").args(["-u", "unbound"]).output().unwrap();
    let user = String::from_utf8_lossy(&output.stdout).trim().parse().ok().filter(|_| is_root());
    if user.is_none() {
        println!("skipped: needs root and the user unbound");
    }
    user
}

/// Starts a server with authority for a root zone that is signed, and writes its anchor to a file.
fn signed_root(anchor: &Path) -> (Server, u16) {
    let place = Place::new();
    place.write(
        "root.zone",
        "$ORIGIN .\n$TTL 3600\n. IN SOA ns.root.example. host.root.example. 1 3600 600 86400 60\n\
         . IN NS ns.root.example.\nns.root.example. IN A 127.0.0.1\nwww.example. IN A 192.0.2.9\n",
    );
    std::fs::create_dir(place.path("keys")).unwrap();
    for arguments in [
        &["zone", "keys", "generate", ".", "--keys", "keys", "--role", "csk"][..],
        &["zone", "sign", "--keys", "keys", "--name", ".", "root.zone"],
    ] {
        let (code, _, said) = text(&place.run(arguments));
        assert_eq!(code, 0, "{said}");
    }
    std::fs::write(anchor, place.run(&["zone", "keys", "ds", ".", "--keys", "keys"]).stdout).unwrap();
    let port = free_port();
    let text_of_file = format!(
        "server: {{user: root, workers: 1, state-directory: state}}\nlisten: 127.0.0.1:{port}\nallow: any\n\
         zones: [{{name: \".\", file: root.zone.signed}}]\npolicy: {{main: [zones]}}\n"
    );
    let file = place.write("gannet.yaml", &text_of_file);
    let server = Server::start_with(place, |command| {
        command.arg("run").arg("-c").arg(&file);
    });
    (server, port)
}

#[test]
fn without_username_the_process_is_the_user_unbound_and_writes_the_keys_that_it_follows() {
    let Some(user) = unbound_user() else { return };
    let place = Place::new();
    let key = place.path("root.key");
    let (_root, root) = signed_root(&key);
    chown(&key, Some(user), None).unwrap();
    let port = free_port();
    let more = format!(
        " module-config: \"validator iterator\"\n auto-trust-anchor-file: root.key\n do-not-query-localhost: no\n \
         trust-anchor-signaling: no\nstub-zone:\n name: \".\"\n stub-addr: 127.0.0.1@{root}\n"
    );
    let conf = conf(&place, port, &more);
    let server = Server::start_with(place, |command| {
        command.args(["unbound", "-d", "-c", &conf]);
    });
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let ids = status.lines().find(|line| line.starts_with("Uid:")).unwrap();
    assert_eq!(ids.split_whitespace().skip(1).collect::<Vec<_>>(), vec![user.to_string(); 4]);
    eventually("the key is valid", || std::fs::read_to_string(&key).is_ok_and(|text| text.contains("VALID")));
    let owner = |path: &Path| std::fs::metadata(path).unwrap().uid();
    assert_eq!((owner(&key), owner(&server.place.path("gannet"))), (user, user));
    let checked = text(&server.run(&["unbound", "checkconf", "-o", "username", &conf]));
    assert_eq!((checked.0, &*checked.1), (0, "unbound\n"));
}

/// Answers queries for addresses with one, for as long as the process of the tests runs.
fn answers_from_elsewhere() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            // The question ends with its type and class, behind the root label.
            let end = buffer[12..len].iter().position(|octet| *octet == 0).unwrap() + 12 + 5;
            let mut reply = [&buffer[..2], &[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]].concat();
            reply.extend_from_slice(&buffer[12..end]);
            reply.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 8]);
            socket.send_to(&reply, from).unwrap();
        }
    });
    port
}

#[test]
fn the_log_has_the_lines_on_the_service_that_scripts_wait_for() {
    let place = Place::new();
    let (port, elsewhere) = (free_port(), answers_from_elsewhere());
    let more = format!(
        " username: \"\"\n do-daemonize: no\n logfile: log\n do-not-query-localhost: no\n verbosity: 2\n\
         forward-zone:\n name: .\n forward-addr: 127.0.0.1@{elsewhere}\n"
    );
    let conf = conf(&place, port, &more);
    let mut child = place.gannet().args(["unbound", "-c", &conf]).spawn().unwrap();
    let log = || std::fs::read_to_string(place.path("log")).unwrap_or_default();
    let starts = || log().matches(" info: start of service (gannet ").count();
    eventually("it starts", || starts() == 1);
    for _ in 0..2 {
        let (reply, _) = ask(port, "www.example.net");
        assert!(reply.ends_with(&[192, 0, 2, 8]), "{reply:?}");
    }
    Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap();
    eventually("it starts again", || starts() == 2);
    Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let own = format!(" unbound[{}:0] ", child.id());
    let log = log();
    let version = concat!("(gannet ", env!("CARGO_PKG_VERSION"), ").");
    let stopped = format!("info: service stopped {version}");
    let counted = "info: server stats for thread 0: 2 queries, 1 answers from cache, 1 recursions, 0 prefetch, 0 rejected by \
                   ip ratelimiting";
    let place_of = |text: &str| log.find(&format!("{own}{text}\n"));
    let in_order = [
        "notice: init module 0: iterator".to_owned(),
        format!("info: start of service {version}"),
        "info: resolving www.example.net. A IN".to_owned(),
        "info: response for www.example.net. A IN".to_owned(),
        format!("info: reply from <.> 127.0.0.1#{elsewhere}"),
        "info: query response was ANSWER".to_owned(),
        stopped.clone(),
        counted.to_owned(),
        concat!("notice: Restart of gannet ", env!("CARGO_PKG_VERSION"), ".").to_owned(),
    ];
    let places: Vec<Option<usize>> = in_order.iter().map(|text| place_of(text)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}: {log}");
    for text in [&stopped, "info: start of service", "notice: init module 0: iterator", counted] {
        assert_eq!(log.matches(&format!("{own}{text}")).count(), 2, "{text}: {log}");
    }
    // The second query was answered from memory.
    assert_eq!(log.matches("resolving").count(), 1, "{log}");
}

#[test]
fn without_verbosity_the_log_has_begin_and_end_of_the_service_alone() {
    let place = Place::new();
    let (port, elsewhere) = (free_port(), answers_from_elsewhere());
    let more = format!(
        " username: \"\"\n do-daemonize: no\n logfile: log\n do-not-query-localhost: no\n verbosity: 0\n\
         forward-zone:\n name: .\n forward-addr: 127.0.0.1@{elsewhere}\n"
    );
    let conf = conf(&place, port, &more);
    let mut child = place.gannet().args(["unbound", "-c", &conf]).spawn().unwrap();
    let log = || std::fs::read_to_string(place.path("log")).unwrap_or_default();
    eventually("it starts", || log().contains("start of service"));
    let (reply, _) = ask(port, "www.example.net");
    assert!(reply.ends_with(&[192, 0, 2, 8]), "{reply:?}");
    Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let log = log();
    assert!(log.contains(" info: service stopped (gannet "), "{log}");
    for text in ["init module", "server stats", "resolving", "query response"] {
        assert!(!log.contains(text), "{text}: {log}");
    }
}
