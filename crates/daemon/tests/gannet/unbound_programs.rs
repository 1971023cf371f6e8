//! What runs in the place of Unbound's programs: its log, its files, looking names up.

use std::path::Path;
use std::process::Command;

use testkit::web::serve_securely;
use testkit::{Identity, eventually};

use crate::harness::{Place, Server, ask, free_port, text};

/// Starts a server with more of `server:`; returns it with its port.
fn start(more: &str) -> (Server, u16) {
    let place = Place::new();
    let port = free_port();
    let directory = place.path("");
    let file = place.write(
        "unbound.conf",
        &format!(
            "server:\n interface: 127.0.0.1@{port}\n username: \"\"\n directory: \"{}\"\n num-threads: 1\n \
             module-config: iterator\n do-ip6: no\n local-zone: static.example static\n \
             local-data: \"www.static.example A 192.0.2.1\"\n local-zone: told.example inform\n \
             local-data: \"www.told.example A 192.0.2.2\"\n{more}",
            directory.display()
        ),
    );
    let server = Server::start_with(place, |command| {
        command.args(["unbound", "-d", "-c"]).arg(&file);
    });
    (server, port)
}

/// Waits until a file has a line that ends so; returns it without what stands before the text.
fn line(server: &Server, file: &str, word: &str, end: &str) -> String {
    let path = server.place.path(file);
    let mut found = None;
    eventually(&format!("a line of {word} that ends with \"{end}\""), || {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let line = text.lines().find(|line| line.ends_with(end) && line.contains(&format!("] {word}: ")));
        found = line.map(str::to_owned);
        found.is_some()
    });
    found.expect("it was found")
}

#[test]
fn lines_about_queries_have_the_form_that_others_parse() {
    let (server, port) = start(
        " logfile: log\n verbosity: 0\n log-queries: yes\n log-replies: yes\n log-local-actions: yes\n",
    );
    let (_, client_port) = ask(port, "www.static.example");
    ask(port, "none.static.example");
    let pid = server.pid();
    let query = line(&server, "log", "info", " 127.0.0.1 www.static.example. A IN");
    let rest = query.strip_prefix('[').expect("a time");
    let (seconds, rest) = rest.split_once("] ").unwrap();
    assert!(seconds.parse::<u64>().is_ok(), "{query}");
    // Threads have the numbers of workers; who writes the log is none of them.
    assert_eq!(rest, format!("unbound[{pid}:0] info: 127.0.0.1 www.static.example. A IN"));
    // 12 octets of header, 24 of the question, 16 of the record.
    line(&server, "log", "info", ": 127.0.0.1 www.static.example. A IN NOERROR 0.000000 1 52");
    line(&server, "log", "info", ": 127.0.0.1 none.static.example. A IN NXDOMAIN 0.000000 1 37");
    let action = format!(": static.example. static 127.0.0.1@{client_port} www.static.example. A IN");
    line(&server, "log", "info", &action);
    let (_, client_port) = ask(port, "www.told.example");
    line(
        &server,
        "log",
        "info",
        &format!(": told.example. inform 127.0.0.1@{client_port} www.told.example. A IN"),
    );
    let said = std::fs::read_to_string(server.place.path("log")).unwrap();
    assert!(said.contains("] info: start of service (gannet "), "{said}");
}

#[test]
fn lines_say_what_they_are_and_when_in_other_forms() {
    let (server, port) = start(
        " logfile: log\n log-queries: yes\n log-replies: yes\n log-tag-queryreply: yes\n log-time-ascii: yes\n log-identity: dns\n",
    );
    ask(port, "www.static.example");
    let query = line(&server, "log", "query", " 127.0.0.1 www.static.example. A IN");
    line(&server, "log", "reply", " NOERROR 0.000000 1 52");
    // Mon DD HH:MM:SS
    let (time, rest) = query.split_at(15);
    assert!(time.is_char_boundary(3) && time.as_bytes()[6] == b' ' && time.as_bytes()[9] == b':', "{query}");
    assert!(rest.starts_with(&format!(" dns[{}:0] query: ", server.pid())), "{query}");
    let (server, port) =
        start(" logfile: log\n log-queries: yes\n log-time-ascii: yes\n log-time-iso: yes\n");
    ask(port, "www.static.example");
    let query = line(&server, "log", "info", " 127.0.0.1 www.static.example. A IN");
    assert!(query.as_bytes()[10] == b'T' && query.as_bytes()[19] == b'.', "{query}");
}

#[test]
fn a_local_zone_of_the_type_truncate_sends_clients_to_tcp() {
    let (_server, port) = start(" local-zone: cut.example truncate\n");
    let (reply, _) = ask(port, "www.cut.example");
    // TC, NOERROR, and nothing else.
    assert_eq!((reply[2] & 2, reply[3] & 15, &reply[6..12]), (2, 0, &[0; 6][..]), "{reply:?}");
    let (reply, _) = ask(port, "www.static.example");
    assert_eq!(reply[2] & 2, 0, "{reply:?}");
}

#[test]
fn log_destaddr_says_where_a_query_came_to() {
    let (server, port) = start(" logfile: log\n log-replies: yes\n log-destaddr: yes\n");
    ask(port, "www.static.example");
    let end = format!(" NOERROR 0.000000 1 52 on udp 127.0.0.1 {port}");
    line(&server, "log", "info", &end);
}

#[test]
fn nothing_is_logged_of_queries_unless_the_file_says_so() {
    let (server, port) = start(" logfile: log\n");
    ask(port, "www.static.example");
    let (_, client_port) = ask(port, "www.told.example");
    line(
        &server,
        "log",
        "info",
        &format!(": told.example. inform 127.0.0.1@{client_port} www.told.example. A IN"),
    );
    let said = std::fs::read_to_string(server.place.path("log")).unwrap();
    assert!(!said.contains("www.static.example"), "{said}");
}

#[test]
fn a_log_that_was_moved_away_is_begun_anew_on_a_signal() {
    let (mut server, port) = start(" logfile: log\n log-queries: yes\n");
    ask(port, "www.static.example");
    line(&server, "log", "info", " www.static.example. A IN");
    std::fs::rename(server.place.path("log"), server.place.path("old")).unwrap();
    server.forget_notices();
    server.signal(libc::SIGHUP);
    server.wait_for("READY=1");
    ask(port, "www.told.example");
    line(&server, "log", "info", ": 127.0.0.1 www.told.example. A IN");
    let old = std::fs::read_to_string(server.place.path("old")).unwrap();
    assert!(!old.contains("127.0.0.1 www.told.example"), "{old}");
}

#[test]
fn a_file_has_the_number_of_the_process_unless_it_is_not_wanted() {
    let (server, _) = start(" pidfile: pid\n");
    let file = server.place.path("pid");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{}\n", server.pid()));
    let place = server.stop_in_place();
    assert!(!file.exists());
    let conf = place.path("unbound.conf");
    let server = Server::start_with(place, |command| {
        command.args(["unbound", "-d", "-p", "-c"]).arg(&conf);
    });
    assert!(!file.exists());
    drop(server);
}

/// What both say of names that the configuration has. Nobody is asked: nobody is at the root's
/// address.
#[test]
fn names_are_looked_up_as_debian_s_program_does() {
    let place = Place::new();
    place.write("hints", ". 3600 IN NS ns.root.example.\nns.root.example. 3600 IN A 127.0.0.1\n");
    let conf = format!(
        "server:\n root-hints: \"{}\"\n module-config: iterator\n local-zone: x.example static\n \
         local-data: \"x.example A 192.0.2.1\"\n local-data: \"x.example AAAA 2001:db8::1\"\n \
         local-data: \"x.example MX 10 mail.x.example\"\n local-data: 'x.example TXT \"hello\"'\n \
         local-data: \"x.example SOA ns root 1 2 3 4 5\"\n local-data: \"only.x.example A 192.0.2.2\"\n \
         local-data-ptr: \"192.0.2.1 x.example\"\n",
        place.path("hints").display()
    );
    let conf = place.write("host.conf", &conf).display().to_string();
    for arguments in [
        vec!["x.example"],
        vec!["-v", "x.example"],
        vec!["-t", "A", "x.example"],
        vec!["-t", "TXT", "x.example"],
        vec!["-t", "SOA", "x.example"],
        vec!["-v", "only.x.example"],
        vec!["only.x.example"],
        vec!["none.x.example"],
        vec!["-v", "none.x.example"],
        vec!["192.0.2.1"],
        vec!["-t", "BOGUS", "x.example"],
        vec!["-c", "BOGUS", "x.example"],
        vec!["a..b"],
    ] {
        let arguments = [&["-C", &conf], arguments.as_slice()].concat();
        let theirs = text(&Command::new("unbound-host").args(&arguments).output().unwrap());
        let ours = text(&place.run(&[&["unbound", "host"], arguments.as_slice()].concat()));
        assert_eq!((ours.0, &ours.1), (theirs.0, &theirs.1), "{arguments:?}: {}", ours.2);
    }
    assert_eq!(text(&place.run(&["unbound", "host", "-z"])).0, 1);
}

#[test]
fn an_anchor_that_is_missing_is_written_and_one_that_is_there_stays() {
    let place = Place::new();
    let run = |arguments: &[&str]| text(&place.run(&[&["unbound", "anchor"], arguments].concat()));
    // That it was written is what the exit code says.
    assert_eq!(run(&["-a", "root.key"]).0, 1);
    let written = std::fs::read_to_string(place.path("root.key")).unwrap();
    assert!(
        written.contains(". IN DS 20326 8 2 E06D44B8") && written.contains(". IN DS 38696 8 2 683D2D0A"),
        "{written}"
    );
    place.write("hints", ". 3600 IN NS ns.root.example.\nns.root.example. 3600 IN A 127.0.0.1\n");
    let (code, _, said) = run(&["-v", "-a", "root.key", "-r", "hints"]);
    assert_eq!(code, 0);
    assert!(said.contains("root.key has content") && said.contains("NOT ok"), "{said}");
    assert_eq!(std::fs::read_to_string(place.path("root.key")).unwrap(), written);
    let (code, said, _) = run(&["-l"]);
    assert!(code == 0 && said.contains(". IN DS 20326 8 2"), "{said}");
    let (code, _, said) = text(&place.run(&["unbound", "nonsense"]));
    assert!(code == 1 && said.contains("there is no program \"nonsense\""), "{said}");
}

#[test]
fn an_anchor_that_no_longer_works_becomes_the_one_that_is_published_and_signed() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/anchor");
    let ca = fixtures.join("ca.pem").display().to_string();
    let identity = Identity::self_signed(&["data.example"]);
    let web = serve_securely(&identity, move |path| std::fs::read(fixtures.join(&path[1..])).ok());
    let port = web.port().to_string();
    let place = Place::new();
    place.write("hints", ". 3600 IN NS ns.root.example.\nns.root.example. 3600 IN A 127.0.0.1\n");
    let run = |arguments: &[&str]| {
        let usual = ["unbound", "anchor", "-v", "-a", "root.key", "-r", "hints", "-u", "127.0.0.1"];
        let (code, _, said) =
            text(&place.run(&[&usual[..], &["-P", &port, "-x", "anchors.xml"], arguments].concat()));
        (code, said, std::fs::read_to_string(place.path("root.key")).unwrap())
    };
    let old = ". IN DS 19036 8 2 49AAC11D7B6F6446702E54A1607371607A1A41855200FD2CE1CDDE32F24E8FB5\n";
    place.write("root.key", old);
    for (arguments, why) in [
        (&["-c", &ca, "-s", "mail.p7s"][..], "the signer is not dnssec@iana.org"),
        (&["-c", &ca, "-s", "strange.p7s"], "UnknownIssuer"),
        // The certificates of ICANN.
        (&["-s", "good.p7s"], "UnknownIssuer"),
        (&["-c", &ca, "-s", "none.p7s"], "404 Not Found"),
        (&["-c", &ca, "-s", "anchors.xml"], "the signature cannot be read"),
    ] {
        let (code, said, file) = run(arguments);
        assert!(code == 0 && said.contains(why) && file == old, "{arguments:?}: {said} {file}");
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let seen = format!(";;last_success: {now}\n{old}");
    place.write("root.key", &seen);
    let right = ["-c", &ca, "-s", "good.p7s"];
    // Who looked a short time ago has missed no key: something else is wrong.
    let (code, said, file) = run(&right);
    assert!(code == 0 && said.contains("could not be fixed") && file == seen, "{said}");
    let new = |(code, said, file): (i32, String, String)| {
        assert!(code == 1 && said.contains("updated using the cert"), "{said}");
        assert!(file.starts_with(". IN DS 20326 8 2 E06D44B8") && file.lines().count() == 2, "{file}");
    };
    new(run(&[&right[..], &["-F"]].concat()));
    place.write("root.key", old);
    new(run(&right));
}
