//! The control channel, as Debian's `unbound-control` and ours use it, and as nobody should.

mod caches;
mod checked;
mod lists;
mod load;
mod readers;
mod statistics;
mod zones;

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::harness::{PATIENCE, Place, Server, ask, free_port, text};

/// Debian's program.
const THEIRS: &str = "unbound-control";

/// A server that runs on an `unbound.conf`.
pub(crate) struct Running {
    server: Server,
    port: u16,
    control_port: u16,
}

/// What `remote-control:` says.
pub(crate) enum Control {
    Unix,
    Plain,
    Certificates,
}

impl Running {
    /// Starts a server with one name, and what else `server:` and other sections are to have.
    pub(crate) fn start(control: &Control, server: &str, sections: &str) -> Self {
        let place = Place::new();
        let (port, control_port) = (free_port(), free_port());
        let directory = place.path("");
        let directory = directory.display();
        let remote = match control {
            Control::Unix => format!("control-interface: {directory}/u.sock"),
            Control::Plain => {
                format!("control-interface: 127.0.0.1\n control-port: {control_port}\n control-use-cert: no")
            }
            Control::Certificates => {
                let files = [
                    ("server-key", "server.key"),
                    ("server-cert", "server.pem"),
                    ("control-key", "control.key"),
                    ("control-cert", "control.pem"),
                ];
                let files = files.map(|(word, file)| format!(" {word}-file: {directory}/unbound_{file}\n"));
                format!("control-interface: 127.0.0.1@{control_port}\n{}", files.concat())
            }
        };
        if matches!(control, Control::Certificates) {
            let made = place.run(&["unbound", "control-setup", "-d", "."]);
            assert_eq!(made.status.code(), Some(0), "{}", String::from_utf8_lossy(&made.stderr));
        }
        place.write("hints", ". 3600 IN NS ns.root.example.\nns.root.example. 3600 IN A 127.0.0.1\n");
        let file = place.write(
            "unbound.conf",
            &format!(
                "server:\n interface: 127.0.0.1@{port}\n username: \"\"\n directory: \"{directory}\"\n \
                 num-threads: 2\n root-hints: hints\n module-config: \"respip iterator\"\n \
                 local-zone: static.example static\n local-data: \"www.static.example A 192.0.2.1\"\n{server}\
                 remote-control:\n control-enable: yes\n {remote}\n{sections}"
            ),
        );
        let server = Server::start_with(place, |command| {
            command.args(["unbound", "-d", "-c"]).arg(&file);
        });
        Self { server, port, control_port }
    }

    fn conf(&self) -> String {
        self.server.place.path("unbound.conf").display().to_string()
    }

    /// Gives a command with Debian's program; returns its exit code and what it printed.
    fn theirs(&self, command: &str, input: &str) -> (i32, String) {
        let mut arguments: Vec<String> = vec!["-c".to_owned(), self.conf()];
        let socket = self.server.place.path("u.sock");
        if socket.exists() {
            arguments.extend(["-s".to_owned(), socket.display().to_string()]);
        }
        with_input(Command::new(THEIRS).args(arguments).args(command.split(' ')), input)
    }

    /// Gives a command with ours.
    fn ours(&self, command: &str, input: &str) -> (i32, String) {
        let mut program = self.server.place.gannet();
        program.args(["unbound", "control", "-c", &self.conf()]).args(command.split(' '));
        with_input(&mut program, input)
    }

    /// Says what both programs are told, which is the same.
    pub(crate) fn says(&self, command: &str, code: i32, expect: &str) {
        assert_eq!(self.theirs(command, ""), (code, expect.to_owned()), "{command}");
    }

    /// Returns the code and the last four octets of the reply to a question for an address.
    pub(crate) fn ask(&self, name: &str) -> (u8, [u8; 4]) {
        let (reply, _) = ask(self.port, name);
        (reply[3] & 15, reply[reply.len() - 4..].try_into().unwrap())
    }

    /// Connects to the Unix socket of the channel.
    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.server.place.path("u.sock")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Returns whether the channel still serves its users.
    fn is_well(&self) -> bool {
        let (code, said) = self.theirs("status", "");
        code == 0 && said.contains("is running...") && self.ask("www.static.example") == (0, [192, 0, 2, 1])
    }
}

fn with_input(command: &mut Command, input: &str) -> (i32, String) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A program that was told enough reads no more.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let (code, stdout, _) = text(&child.wait_with_output().unwrap());
    (code, stdout)
}

pub(crate) const NXDOMAIN: u8 = 3;
const REFUSED: u8 = 5;

#[test]
fn local_zones_and_data_change_while_it_runs_and_a_reload_forgets_it() {
    let running = Running::start(&Control::Unix, "", "");
    let (code, status) = running.theirs("status", "");
    assert_eq!(code, 0);
    for line in [
        "version: ",
        "verbosity: 1\n",
        "threads: 2\n",
        "modules: 2 [ respip iterator ]\n",
        "options: reuseport control(namedpipe)\n",
        "is running...\n",
    ] {
        assert!(status.contains(line), "{status}");
    }
    assert_eq!(running.ask("www.static.example"), (0, [192, 0, 2, 1]));
    running.says("local_data new.static.example A 192.0.2.9", 0, "ok\n");
    assert_eq!(running.ask("new.static.example"), (0, [192, 0, 2, 9]));
    running.says("local_data_remove www.static.example", 0, "ok\n");
    assert_eq!(running.ask("www.static.example").0, NXDOMAIN);
    running.says("local_zone static.example always_refuse", 0, "ok\n");
    assert_eq!(running.ask("new.static.example").0, REFUSED);
    let (_, zones) = running.theirs("list_local_zones", "");
    assert!(zones.contains("static.example. always_refuse\n"), "{zones}");
    running.says("local_zone_remove static.example", 0, "ok\n");
    let (_, zones) = running.theirs("list_local_zones", "");
    assert!(!zones.contains("static.example"), "{zones}");
    let (_, changes) = running.ours("list_changes", "");
    assert_eq!(changes, "- local-zone: static.example\n");
    assert_eq!(running.ours("undo_changes", ""), (0, "ok\n".to_owned()));
    assert_eq!(running.ask("www.static.example"), (0, [192, 0, 2, 1]));
    running.says("local_data new.static.example A 192.0.2.9", 0, "ok\n");
    running.says("reload", 0, "ok\n");
    assert_eq!(running.ask("new.static.example").0, NXDOMAIN);
}

#[test]
fn lists_come_into_use_at_once_and_end_at_their_first_mistake() {
    let running = Running::start(&Control::Unix, "", "view:\n name: v\n local-zone: v.example static\n");
    let many: String = (0..20_000).map(|n| format!("n{n}.many.example A 192.0.2.7\n")).collect();
    let revision = |running: &Running| {
        let (_, status, _) = text(&running.server.run(&["status", "--json"]));
        let at = status.find("\"revision\"").unwrap();
        status[at..].chars().filter(char::is_ascii_digit).take(1).collect::<String>()
    };
    assert_eq!(revision(&running), "1");
    assert_eq!(running.theirs("local_datas", &many), (0, "added 20000 datas\n".to_owned()));
    assert_eq!(revision(&running), "2", "all of it is compiled once");
    assert_eq!(running.ask("n19999.many.example"), (0, [192, 0, 2, 7]));
    let removed: String = (0..20_000).map(|n| format!("n{n}.many.example\n")).collect();
    assert_eq!(running.ours("local_datas_remove", &removed), (0, "removed 20000 datas\n".to_owned()));
    let (code, said) =
        running.theirs("local_datas", "a.example A 192.0.2.3\nb.example A x\nc.example A 192.0.2.4\n");
    assert!(
        said.starts_with("error parsing local-data at line 2 ") && said.ends_with("\nadded 2 datas\n"),
        "{said}"
    );
    assert_eq!(code, 1);
    assert_eq!(running.ask("a.example"), (0, [192, 0, 2, 3]));
    assert_eq!(running.ask("c.example"), (0, [192, 0, 2, 4]), "what stands behind a mistake counts");
    let zones = "x.example always_nxdomain\ny.example nonsense\nz.example always_nxdomain\n";
    assert_eq!(
        running.theirs("local_zones", zones),
        (1, "error not a zone type. nonsense\nerror for input line: y.example\nadded 2 zones\n".to_owned())
    );
    assert_eq!(running.ask("a.z.example").0, NXDOMAIN);
    let wrong = "wrong\n".repeat(1_010) + "d.example A 192.0.2.5\n";
    let (_, said) = running.theirs("local_datas", &wrong);
    assert!(said.ends_with("\nerror in 10 more lines\nadded 1 datas\n"), "{}", said.len());
    assert_eq!(said.lines().count(), 1_002);
    assert_eq!(running.ask("a.x.example").0, NXDOMAIN);
    assert_eq!(running.theirs("local_zones_remove", "x.example\n"), (0, "removed 1 zones\n".to_owned()));
    assert_eq!(running.theirs("view_local_datas v", "a.v.example A 192.0.2.1\n").1, "added 1 datas\n");
    let (_, data) = running.theirs("view_list_local_data v", "");
    for line in ["a.v.example.\t3600\tIN\tA\t192.0.2.1\n\n", "localhost.\t10800\tIN\tA\t127.0.0.1\n\n"] {
        assert!(data.contains(line), "{data}");
    }
    assert_eq!(running.theirs("view_local_datas_remove v", "a.v.example\n").1, "removed 1 datas\n");
}

#[test]
fn each_command_says_what_its_users_expect() {
    let running = Running::start(
        &Control::Unix,
        " domain-insecure: insecure.example\n",
        "forward-zone:\n name: fwd.example\n forward-addr: 127.0.0.1@9\n\
         stub-zone:\n name: stub.example\n stub-addr: 127.0.0.1@9\n stub-prime: no\n",
    );
    let ok = "ok\n";
    let removed = "ok removed 0 rrsets, 0 messages and 0 key entries\n";
    let needs_name = "error: this option requires a domain name\n";
    for (command, code, expect) in [
        ("verbosity 2", 0, ok),
        ("verbosity x", 1, "error in verbosity number syntax: x\n"),
        ("log_reopen", 0, ok),
        ("local_zone a.example bogus", 1, "error not a zone type. bogus\n"),
        ("local_zone a.example", 1, "error could not find next argument after a.example\n"),
        ("local_zone_remove none.example", 0, ok),
        ("local_data_remove", 1, needs_name),
        ("flush www.example.org", 0, ok),
        ("flush", 1, needs_name),
        ("flush_type www.example.org A", 0, ok),
        ("flush_type www.example.org NONE", 1, "error parsing RRset type: 'NONE'\n"),
        ("log_reopen foo", 1, "error command log_reopen takes no arguments, have 'foo'\n"),
        ("flush_zone example.org", 0, removed),
        ("flush_zone +c example.org", 0, removed),
        ("flush_bogus", 0, removed),
        ("flush_negative", 0, removed),
        ("flush_stats", 0, ok),
        ("flush_infra all", 0, ok),
        ("flush_infra 192.0.2.1", 0, ok),
        ("flush_infra x", 1, "error parsing ip addr: 'x'\n"),
        ("dump_infra", 0, ""),
        ("dump_requestlist", 0, "thread #0\n#   type cl name    seconds    module status\n"),
        ("get_option verbosity", 0, "1\n"),
        ("get_option module-config", 0, "respip iterator\n"),
        ("get_option domain-insecure", 0, "insecure.example\n"),
        ("get_option nosuch", 1, "error unknown option\n"),
        ("get_option local-zone", 1, "error unknown option\n"),
        ("get_option msg-cache-size", 0, "4194304\n"),
        ("get_option msg-cache-slabs", 0, "4\n"),
        ("get_option log-identity", 0, "\n"),
        ("cache_lookup", 0, ""),
        ("set_option cache-max-ttl: 300", 0, ok),
        ("get_option cache-max-ttl", 0, "300\n"),
        ("set_option prefetch: maybe", 1, "error setting option\n"),
        ("set_option nosuch: 1", 1, "error setting option\n"),
        ("insecure_add a.example", 0, ok),
        ("get_option domain-insecure", 0, "insecure.example\n"),
        ("list_insecure", 0, "a.example.\ninsecure.example.\n"),
        ("insecure_remove a.example", 0, ok),
        ("list_insecure", 0, "insecure.example.\n"),
        ("forward_add +it z.example 127.0.0.1@99#dns.example ::1", 0, ok),
        (
            "list_forwards",
            0,
            "fwd.example. IN forward 127.0.0.1@9\nz.example. IN forward +i ::1 127.0.0.1@99#dns.example\n",
        ),
        ("forward_add z.example bad@x", 1, "error cannot parse 'bad@x'\n"),
        ("forward_add +x z.example 127.0.0.1", 1, "error: unknown option x\n"),
        ("forward_remove +i z.example", 0, ok),
        ("list_forwards", 0, "fwd.example. IN forward 127.0.0.1@9\n"),
        ("forward", 0, "off (using root hints)\n"),
        ("forward 127.0.0.1@98", 0, ok),
        ("forward", 0, "127.0.0.1@98\n"),
        ("forward off", 0, ok),
        ("forward", 0, "off (using root hints)\n"),
        ("stub_add +p s.example 127.0.0.1@97", 0, ok),
        (
            "list_stubs",
            0,
            ". IN stub prime ns.root.example. 127.0.0.1\ns.example. IN stub prime 127.0.0.1@97\n\
             stub.example. IN stub noprime 127.0.0.1@9\n",
        ),
        ("stub_remove s.example", 0, ok),
        ("ratelimit_list", 0, ""),
        ("ip_ratelimit_list +a", 0, ""),
        ("list_auth_zones", 0, ""),
        ("auth_zone_reload none.example", 1, "error no auth-zone none.example\n"),
        ("auth_zone_transfer none.example", 1, "error zone xfr task not found none.example\n"),
        ("flush_requestlist", 0, ok),
        ("rpz_enable none.example", 1, "error no auth-zone none.example\n"),
        ("view_list_local_zones none", 0, "no view with name: none\n"),
        ("view_local_data none a.example A 192.0.2.1", 0, "no view with name: none\n"),
        ("reload_keep_cache", 0, ok),
        ("nosuchcommand", 1, "error unknown command 'nosuchcommand'\n"),
    ] {
        running.says(command, code, expect);
    }
    let (_, said) = running.theirs("lookup www.fwd.example", "");
    let known = "127.0.0.1       \tnot in infra cache.\n";
    assert!(said.contains("forwarding request:\n") && said.contains(known), "{said}");
    let (_, said) = running.theirs("lookup www.example.org", "");
    assert!(said.ends_with("no delegation from cache; goes to configured roots\n"), "{said}");
    for command in ["fast_reload", "fast_reload +dpv", "cache_lookup example.org", "list_changes"] {
        assert_eq!(running.ours(command, "").0, 0, "{command}");
    }
    let no_file = "error: no cookie secret file configured\n".to_owned();
    for command in ["add_cookie_secret 00", "activate_cookie_secret", "drop_cookie_secret"] {
        assert_eq!(running.ours(command, ""), (1, no_file.clone()), "{command}");
    }
    assert_eq!(running.ours("print_cookie_secrets", ""), (0, String::new()));
    assert_eq!(running.ours("stats_shm", "").0, 1);
    let (code, said) = running.ours("verbosity -1", "");
    assert!(code == 1 && said.starts_with("Usage:\tunbound-control"), "{said}");
    let short = "error name too short: 'org'. Need example.com. or longer, short names take very long, use +t to \
                 allow them.\n";
    assert_eq!(running.ours("cache_lookup org", ""), (1, short.to_owned()));
    assert_eq!(running.ours("cache_lookup +t org", ""), (0, String::new()));
    assert!(running.is_well());
}

#[test]
fn status_has_the_verbosity_of_the_file_once_it_was_read_again() {
    let running = Running::start(&Control::Unix, "", "");
    let shows = |number: u8| {
        let line = format!("verbosity: {number}\n");
        running.theirs("status", "").1.contains(&line)
    };
    running.says("verbosity 3", 0, "ok\n");
    assert!(shows(3));
    running.says("local_zone a.example static", 0, "ok\n");
    assert!(shows(3), "what is laid over the files says nothing of it");
    running.server.signal(libc::SIGHUP);
    let begun = Instant::now();
    while !shows(1) {
        assert!(begun.elapsed() < PATIENCE, "the file says 1");
    }
}

/// Asks with a cookie, and returns the one that comes back; 16 octets of it are the server's.
fn cookie_of(port: u16, cookie: &[u8]) -> Vec<u8> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut query = b"\0\x01\x01\0\0\x01\0\0\0\0\0\x01\x03www\x06static\x07example\0\0\x01\0\x01".to_vec();
    query.extend_from_slice(&[
        0,
        0,
        41,
        4,
        208,
        0,
        0,
        0,
        0,
        0,
        4 + cookie.len() as u8,
        0,
        10,
        0,
        cookie.len() as u8,
    ]);
    query.extend_from_slice(cookie);
    socket.send_to(&query, ("127.0.0.1", port)).unwrap();
    let mut reply = [0; 512];
    let octets = socket.recv(&mut reply).unwrap();
    let begins = reply[..octets].windows(8).position(|eight| eight == &cookie[..8]).unwrap();
    reply[begins..begins + 24].to_vec()
}

#[test]
fn cookie_secrets_of_a_file_are_added_activated_and_dropped() {
    let (old, new) = ("000102030405060708090a0b0c0d0e0f", "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
    let running = Running::start(&Control::Unix, " answer-cookie: yes\n cookie-secret-file: cookies\n", "");
    let ok = "ok\n";
    // Debian's program does not know the keyword yet.
    let says = |command: &str, code: i32, expect: &str| {
        assert_eq!(running.ours(command, ""), (code, expect.to_owned()), "{command}");
    };
    says("print_cookie_secrets", 0, "");
    assert_eq!(running.ours("activate_cookie_secret", "").0, 1);
    assert_eq!(running.ours("add_cookie_secret 00", "").0, 1);
    says(&format!("add_cookie_secret {old}"), 0, ok);
    let made = cookie_of(running.port, b"clientck");
    says(&format!("add_cookie_secret {new}"), 0, ok);
    says("print_cookie_secrets", 0, &format!("active : {old}\nstaging: {new}\n"));
    says("activate_cookie_secret", 0, ok);
    says("print_cookie_secrets", 0, &format!("active : {new}\nstaging: {old}\n"));
    let valid = || {
        let stats = running.ours("stats_noreset", "").1;
        let line = stats.lines().find_map(|line| line.strip_prefix("total.num.queries_cookie_valid="));
        line.expect("it is counted").parse::<u64>().unwrap()
    };
    let before = valid();
    assert_ne!(cookie_of(running.port, &made)[8..], made[8..], "it is made with the new one");
    assert_eq!(valid(), before + 1, "the old one is accepted");
    says("drop_cookie_secret", 0, ok);
    cookie_of(running.port, &made);
    assert_eq!(valid(), before + 1, "no more");
    let file = running.server.place.path("cookies");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{new}\n"));
}

#[test]
fn ip_ratelimit_list_has_who_is_over_the_limit_and_others_are_served() {
    let running = Running::start(&Control::Unix, " ip-ratelimit: 5\n ip-ratelimit-factor: 0\n", "");
    let socket = UdpSocket::bind("127.0.0.5:0").unwrap();
    let query =
        [&[0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], b"\x03www\x06static\x07example\0\0\x01\0\x01"].concat();
    let begun = Instant::now();
    loop {
        for _ in 0..50 {
            socket.send_to(&query, ("127.0.0.1", running.port)).unwrap();
        }
        let (code, listed) = running.theirs("ip_ratelimit_list", "");
        assert_eq!(code, 0);
        if listed.starts_with("127.0.0.5 ") && listed.ends_with(" limit 5\n") {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{listed}");
    }
    assert_eq!(running.ask("www.static.example"), (0, [192, 0, 2, 1]), "another address");
}

#[test]
fn a_cache_that_was_dumped_can_be_loaded_again() {
    let running = Running::start(&Control::Unix, "", "");
    let dump = "START_RRSET_CACHE\n;rrset 300 2 0 8 0\nwww.example.org.\t300\tIN\tA\t192.0.2.5\n\
                www.example.org.\t300\tIN\tA\t192.0.2.5\n;rrset 300 1 0 8 0\nt.example.org.\t300\tIN\tTXT\t\"a b\"\n\
                END_RRSET_CACHE\nSTART_MSG_CACHE\nmsg www.example.org. IN A 32896 1 300 0 1 0 0\n\
                www.example.org. IN A 0\nmsg gone.example.org. IN A 32896 1 300 0 1 0 0\ngone.example.org. IN A 0\n\
                msg t.example.org. IN TXT 32896 1 300 0 1 0 0 -1 \nt.example.org. IN TXT 0\nEND_MSG_CACHE\nEOF\n";
    assert_eq!(running.theirs("load_cache", dump), (0, "ok\n".to_owned()));
    assert_eq!(running.ask("www.example.org"), (0, [192, 0, 2, 5]));
    let (code, written) = running.theirs("dump_cache", "");
    assert_eq!(code, 0);
    for line in [
        "START_RRSET_CACHE\n",
        "www.example.org.\t",
        "\tIN\tTXT\t\"a b\"\n",
        "msg t.example.org. IN TXT 32896 1 ",
        "END_MSG_CACHE\nEOF\n",
    ] {
        assert!(written.contains(line), "{line}: {written}");
    }
    assert!(!written.contains("gone"), "an answer whose records are missing is none: {written}");
    running.says("flush_zone example.org", 0, "ok removed 0 rrsets, 2 messages and 0 key entries\n");
    let (_, empty) = running.theirs("dump_cache", "");
    assert!(!empty.contains("example.org"), "{empty}");
    assert_eq!(running.ours("load_cache", &written), (0, "ok\n".to_owned()));
    assert_eq!(running.ask("www.example.org"), (0, [192, 0, 2, 5]));
    let (code, said) = running.theirs("load_cache", "garbage\nEOF\n");
    assert!(said.starts_with("error expected START_RRSET_CACHE"), "{code} {said}");
}

#[test]
fn certificates_decide_who_may_give_commands() {
    let running = Running::start(&Control::Certificates, "", "");
    for (code, said) in [running.theirs("status", ""), running.ours("status", "")] {
        assert!(code == 0 && said.contains("control(ssl)"), "{code} {said}");
    }
    let bulk = "a.example A 192.0.2.3\n";
    assert_eq!(running.theirs("local_datas", bulk), (0, "added 1 datas\n".to_owned()));
    assert_eq!(running.ours("local_datas_remove", "a.example\n"), (0, "removed 1 datas\n".to_owned()));

    // Certificates of somebody else, who knows the server's.
    let place = &running.server.place;
    std::fs::create_dir(place.path("other")).unwrap();
    assert_eq!(place.run(&["unbound", "control-setup", "-d", "other"]).status.code(), Some(0));
    let conf = std::fs::read_to_string(place.path("unbound.conf")).unwrap();
    let foreign = conf.replace("unbound_control.", "other/unbound_control.");
    let foreign = place.write("foreign.conf", &foreign);
    let (code, said) = with_input(Command::new(THEIRS).arg("-c").arg(&foreign).arg("status"), "");
    assert!(code != 0 && said.is_empty(), "{code} {said}");
    let mut ours = place.gannet();
    let (code, said) = with_input(ours.args(["unbound", "control", "-c"]).arg(&foreign).arg("status"), "");
    assert!(code != 0 && said.is_empty(), "{code} {said}");

    // Without TLS.
    let mut plain = TcpStream::connect(("127.0.0.1", running.control_port)).unwrap();
    plain.set_read_timeout(Some(PATIENCE)).unwrap();
    plain.write_all(b"UBCT1 stop\n").unwrap();
    let mut said = Vec::new();
    let _ = plain.read_to_end(&mut said);
    assert!(!said.starts_with(b"ok"), "{said:?}");
    assert!(running.is_well());
}

#[test]
fn whoever_says_nothing_sensible_holds_up_nobody() {
    let running = Running::start(&Control::Unix, "", "");
    let connect = || running.connect();
    let answer = |mut stream: UnixStream| {
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        said
    };
    // Another protocol, another version.
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"UBCT2 status\n", b"\0\0\0\0\0\0\0\0"] {
        let mut stream = connect();
        stream.write_all(garbage).unwrap();
        assert_eq!(answer(stream), b"");
    }
    // A command without end.
    let mut endless = connect();
    let _ = endless.write_all(b"UBCT1 ").and_then(|()| endless.write_all(&[b'a'; 100_000]));
    assert_eq!(answer(endless), b"");
    // A list that breaks off in the middle of nothing, and one of a single endless line.
    let mut half = connect();
    half.write_all(b"UBCT1 load_cache\nSTART_RRSET_CACHE\n").unwrap();
    half.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(answer(half), b"");
    let mut long = connect();
    let _ = long.write_all(b"UBCT1 local_datas\n").and_then(|()| long.write_all(&[b'a'; 100_000]));
    assert_eq!(answer(long), b"");
    // As many as there may be, and more, none of which says anything.
    let silent: Vec<UnixStream> = (0..40).map(|_| connect()).collect();
    assert!(running.is_well());
    // And in the middle of a request.
    let half: Vec<UnixStream> = (0..16)
        .map(|_| {
            let mut stream = connect();
            let _ = stream.write_all(b"UBCT1 sta");
            stream
        })
        .collect();
    assert!(running.is_well());
    drop((silent, half));
}

#[test]
fn commands_during_a_reload_wait_for_it() {
    let running = Running::start(&Control::Plain, "", "");
    let begin = |command: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", running.control_port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(format!("UBCT1 {command}\n").as_bytes()).unwrap();
        stream
    };
    let commands = (0..12).map(|n| match n % 3 {
        0 => begin("reload_keep_cache"),
        1 => begin(&format!("local_data n{n}.example A 192.0.2.{n}")),
        _ => begin("stats_noreset"),
    });
    let streams: Vec<TcpStream> = commands.collect();
    for mut stream in streams {
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        assert!(said == "ok\n" || said.starts_with("thread0.num.queries="), "{said}");
    }
    assert!(running.is_well());
}

#[test]
fn a_channel_that_everybody_reaches_needs_certificates() {
    let place = Place::new();
    let file = place.write(
        "unbound.conf",
        "server:\n username: \"\"\nremote-control:\n control-enable: yes\n control-interface: 0.0.0.0\n control-use-cert: no\n",
    );
    let (code, said, _) =
        text(&place.run(&["check", "--unbound", &file.display().to_string(), "--format", "line"]));
    assert_eq!(code, 1);
    assert!(
        said.contains("without certificates everybody who reaches 0.0.0.0:8953 could give orders"),
        "{said}"
    );
}

#[test]
fn a_configuration_of_ours_may_have_the_channel_too() {
    let place = Place::new();
    let socket = place.path("u.sock");
    let file = place.write(
        "gannet.yaml",
        &format!("listen: 127.0.0.1:0\ncontrol: {{unbound: {{listen: \"{}\"}}}}\n", socket.display()),
    );
    let server = Server::start_with(place, |command| {
        command.args(["run", "-c"]).arg(&file);
    });
    let conf = server.place.write(
        "client.conf",
        &format!("remote-control:\n control-enable: yes\n control-interface: {}\n", socket.display()),
    );
    let ask = |command: &str| {
        let mut program = Command::new(THEIRS);
        program.arg("-c").arg(&conf).arg("-s").arg(&socket).args(command.split(' '));
        with_input(&mut program, "")
    };
    assert_eq!(ask("status").0, 0);
    assert!(ask("stats").1.contains("total.num.queries=0\n"));
    let (code, said) = ask("local_data a.example A 192.0.2.1");
    assert!(code == 1 && said.starts_with("error the configuration is no unbound.conf"), "{said}");
}

/// Over a configuration of ours nothing can be laid, and there is an audit log.
#[test]
fn the_audit_log_names_lists_by_their_digest_and_has_no_secret_and_no_long_text() {
    let place = Place::new();
    let socket = place.path("u.sock");
    let file = place.write(
        "gannet.yaml",
        &format!(
            "server: {{state-directory: \"{}\"}}\nlisten: 127.0.0.1:0\n\
             control: {{unbound: {{listen: \"{}\"}}}}\n",
            place.path("state").display(),
            socket.display()
        ),
    );
    let server = Server::start_with(place, |command| {
        command.args(["run", "-c"]).arg(&file);
    });
    let say = |text: &str| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(format!("UBCT1 {text}").as_bytes()).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    };
    let secret = "000102030405060708090a0b0c0d0e0f";
    for command in ["set_option cookie-secret: ", "set_option cookie-secret ", "add_cookie_secret "] {
        assert!(say(&format!("{command}{secret}\n")).starts_with("error"), "{command}");
    }
    let list = "a.example A 192.0.2.1\nb.example A 192.0.2.2\n";
    assert!(say(&format!("local_datas\n{list}\x04\n")).starts_with("error the configuration is no"));
    assert!(say(&format!("local_zone {0} {0}\n", "a".repeat(30_000))).starts_with("error"));
    for _ in 0..50 {
        assert!(say("flush a.example\n").starts_with("ok"));
    }
    let (code, rows, said) = text(&server.run(&["audit", "export"]));
    assert_eq!(code, 0, "{said}");
    assert!(!rows.contains(secret), "{rows}");
    assert_eq!(rows.matches(r#"cookie-secret\""#).count(), 2, "{rows}");
    let digest = "2 lines, SHA-256 920f3da967aeb7679e1852c8ce7c7916b2fbe21bd6f7fd5b02b6a6fef9513869";
    let of_list: Vec<&str> = rows.lines().filter(|row| row.contains(digest)).collect();
    assert!(
        of_list.len() == 2 && of_list[0].contains("accepted") && of_list[1].contains("refused"),
        "{rows}"
    );
    assert!(rows.lines().all(|row| row.len() < 4000), "{rows}");
    // Those that came in the next minute, if it began meanwhile, have rows of their own.
    let flushes = rows.lines().filter(|row| row.contains(r#"flush\""#)).count();
    assert!((1..=5).contains(&flushes), "{rows}");
}

#[test]
fn the_server_ends_when_it_is_told_and_says_so() {
    let running = Running::start(&Control::Unix, "", "");
    running.says("stop", 0, "ok\n");
    let socket = running.server.place.path("u.sock");
    let conf = std::fs::read_to_string(running.server.place.path("unbound.conf")).unwrap();
    assert_eq!(running.server.end().status.code(), Some(0));
    assert!(!socket.exists());
    let place = Place::new();
    let port = free_port();
    let conf = place.write("unbound.conf", &conf);
    let mut ours = place.gannet();
    ours.args(["unbound", "unbound-control", "-c"]).arg(&conf).args([
        "-s",
        &format!("127.0.0.1@{port}"),
        "status",
    ]);
    assert_eq!(with_input(&mut ours, ""), (3, "unbound is stopped\n".to_owned()));
}

/// Files with one mistake each: Debian's checker refuses each of them, and so does ours.
#[test]
fn a_file_with_one_mistake_is_refused_as_by_debian_s_program() {
    let place = Place::new();
    let mistakes = include_str!("unbound_control/mistakes.txt");
    let mut count = 0;
    for line in mistakes.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let text_of_file = match line.strip_prefix('!') {
            Some(whole) => whole.replace("\\n", "\n"),
            None => format!("server:\n username: \"\"\n {}", line.replace("\\n", "\n ")),
        };
        let file = place.write("mistake.conf", &(text_of_file + "\n")).display().to_string();
        let (theirs, said_there, _) = text(&Command::new("unbound-checkconf").arg(&file).output().unwrap());
        assert_eq!(theirs, 1, "{line}: {said_there}");
        let (ours, _, said) = text(&place.run(&["unbound", "checkconf", &file]));
        assert_eq!(ours, 1, "{line}");
        assert!(said.contains("mistake.conf:") && said.contains("error: "), "{line}: {said}");
        count += 1;
    }
    assert!(count > 60, "{count}");
}

#[test]
fn keys_that_are_there_stay_when_certificates_are_made() {
    let place = Place::new();
    assert_eq!(place.run(&["unbound", "control-setup", "-d", "."]).status.code(), Some(0));
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    let files = ["unbound_server.key", "unbound_server.pem", "unbound_control.key", "unbound_control.pem"];
    let before = files.map(read);
    assert_eq!(place.run(&["unbound", "control-setup", "-d", "."]).status.code(), Some(0));
    assert_eq!(files.map(read), before);
    assert_eq!(place.run(&["unbound", "control-setup", "-r", "-d", "."]).status.code(), Some(0));
    let after = files.map(read);
    assert_eq!((&after[0], &after[2]), (&before[0], &before[2]));
    assert_ne!(after[1], before[1]);
}

#[test]
fn dump_requestlist_has_the_queries_that_wait_and_who_for() {
    // It takes queries, and never says anything.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let running = Running::start(
        &Control::Unix,
        " do-not-query-localhost: no\n",
        &format!(
            "forward-zone:\n name: silent.example\n forward-addr: 127.0.0.1@{}\n",
            silent.local_addr().unwrap().port()
        ),
    );
    let _client = crate::harness::send(running.port, "www.silent.example");
    let begin = Instant::now();
    loop {
        let (code, list) = running.theirs("dump_requestlist", "");
        assert_eq!(code, 0);
        assert!(list.starts_with("thread #0\n#   type cl name    seconds    module status\n"), "{list}");
        let line = list.lines().find(|line| line.contains("www.silent.example."));
        if let Some(line) = line {
            assert!(line.starts_with("  0    A IN www.silent.example. 0."), "{line}");
            assert!(line.ends_with(" iterator wait for servers"), "{line}");
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "{list}");
    }
}
