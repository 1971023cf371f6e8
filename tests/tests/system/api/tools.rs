//! Settings that are checked and upstream servers that are measured without anything being changed.

use std::io::Write as _;
use std::net::TcpListener;
use std::time::Duration;

use testkit::{contains, lacks};

use super::network::{curl, shown, start as start_network, text, token};
use super::{JSON, YAML, ask, connect, hear, start};

#[test]
fn settings_that_are_sent_are_checked_and_not_used() {
    let (_stub, server) = start("");
    let check = |query: &str, body: &str| ask(&server, "POST", &format!("/check{query}"), &[YAML], body);
    let right = check("", "local: {nas.home.arpa: 192.0.2.1}\n");
    assert_eq!((right.status, right.json().as_str()), (200, "[]"), "{right:?}");
    assert!(super::address(&server, "nas.home.arpa").is_empty(), "it is not used");
    let wrong = check("?name=my.yaml", "edns:\n  udp-siz: 1232\nallow: 192.0.2.300\n");
    assert_eq!(wrong.status, 200, "{wrong:?}");
    let said = wrong.json();
    contains(&said, "\"severity\": \"error\", \"file\": \"my.yaml\", \"line\": 2, \"column\": 3");
    contains(&said, "unknown setting \\\"udp-siz\\\"");
    contains(&said, "\"line\": 3, \"column\": 8");
    // What only the compiler finds.
    contains(&check("", "policy: {main: ['forward(nobody)']}\n").json(), "nobody");
    // A cache is not made for it.
    assert_eq!(check("", "cache: {main: {size: 1024GiB}}\n").json(), "[]");
    let unbound = check("?language=unbound", "server:\n  port: 5353\n  prot: 1\n");
    contains(&unbound.json(), "\"file\": \"unbound.conf\", \"line\": 3, \"column\": 3");
    assert_eq!(check("?language=bind", "").status, 400);
    assert_eq!(ask(&server, "POST", "/check", &[], "local: {}").status, 415);
    assert_eq!(super::get(&server, "/status").status, 200);
}

#[test]
fn a_text_that_is_sent_includes_no_files_and_shows_nothing_of_the_machine_to_operators() {
    let (server, at, _stub) = start_network("");
    let secret = server.directory().join("secret.yaml");
    std::fs::write(&secret, "hunter2: [hunter3\n").expect("written");
    let path = secret.display().to_string();
    let operator = shown(&token(&server, "operator", &["--role", "operator"]));
    let viewer = shown(&token(&server, "viewer", &[]));
    let admin = shown(&token(&server, "admin", &["--role", "admin"]));
    let check = |who: &str, query: &str, body: &str| {
        let arguments = ["--header", who, "--header", YAML, "--data-binary", body];
        curl(at, &format!("/api/v1/check{query}"), &arguments)
    };
    for who in [&operator, &admin] {
        for (query, body) in [
            ("", format!("include: {path}\n")),
            ("", format!("include: [\"{path}\", /etc/*]\n")),
            ("?language=unbound", format!("include: {path}\n")),
            ("?language=unbound", "include-toplevel: \"/etc/*\"\n".to_owned()),
            ("?language=unbound", format!("server:\n include: {path}\n")),
        ] {
            let (status, said) = check(who, query, &body);
            assert_eq!(status, 200, "{body}: {said}");
            contains(&said, "settings that are sent include no files");
            lacks(&said, "hunter");
        }
    }
    // Files that settings name are for admins, and whether they are there is no more to be seen.
    let list = |file: &str| format!("sets: {{bad: {{lists: [{{list: \"names:{file}\"}}]}}}}\n");
    let (status, said) = check(&operator, "", &list(&path));
    assert_eq!(status, 200, "{said}");
    contains(&said, "\"severity\": \"warning\"");
    contains(&said, "not read for settings that are sent by others than admins");
    lacks(&said, "hunter");
    let (_, none) = check(&operator, "", &list(&path.replace("secret", "absent")));
    assert_eq!(none.replace("absent", "secret"), said, "the same is said of a file that is not there");
    let (_, of_admin) = check(&admin, "", &list(&path.replace("secret", "absent")));
    contains(&of_admin, "no such file");
    // What a message would show of a variable is for admins, too.
    let variable = "edns: {udp-size: \"${PATH}\"}\n";
    assert_eq!(check(&operator, "", variable).0, 403);
    contains(&check(&admin, "", variable).1, "/bin");
    assert_eq!(check(&viewer, "", "local: {}\n").0, 403);
    // An admin for some settings or zones may not set everything, and sees no more than operators.
    let of_paths = shown(&token(&server, "paths", &["--role", "admin", "--path", "local"]));
    let of_zones = shown(&token(&server, "zones", &["--role", "admin", "--zone", "example.org"]));
    for bound in [&of_paths, &of_zones] {
        assert_eq!(check(bound, "", &list(&path)), check(&operator, "", &list(&path)));
        let (status, said) = check(bound, "", variable);
        assert_eq!(status, 403, "{said}");
        lacks(&said, "/bin");
        assert_eq!(check(bound, "", "local: {a.home.arpa: 192.0.2.1}\n").0, 200);
    }
    // The text is what has its name, and nothing else.
    let (_, said) = check(&operator, &format!("?name={path}"), "local: 1\n");
    lacks(&said, "hunter");
    let output = server.command(&["check", &path, "--running"]);
    assert_eq!(output.status.code(), Some(1));
    contains(&text(&output), "secret.yaml:1:");
    let url = format!("http://{at}");
    std::fs::write(server.directory().join("token"), operator.rsplit(' ').next().expect("a token"))
        .expect("written");
    let token_file = server.directory().join("token").display().to_string();
    let good = server.directory().join("good.yaml").display().to_string();
    std::fs::write(&good, "local: {a.home.arpa: 192.0.2.1}\n").expect("written");
    let remote = ["check", &good, "--server", &url, "--token-file", &token_file];
    let output = server.command(&remote);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    contains(&text(&output), "no mistakes found");
}

#[test]
fn an_upstream_is_measured_by_operators_if_it_is_configured_and_by_admins_in_any_case() {
    let (server, at, stub) = start_network("");
    let operator = shown(&token(&server, "operator", &["--role", "operator"]));
    let helper = shown(&token(&server, "helper", &["--role", "helper"]));
    let admin = shown(&token(&server, "admin", &["--role", "admin"]));
    let probe = |who: &str, body: &str| {
        curl(at, "/api/v1/probe", &["--header", who, "--header", JSON, "--data-binary", body])
    };
    let of = |server: &str| format!("{{\"server\": \"{server}\", \"timeout-ms\": 500, \"count\": 2}}");
    let known = stub.address().to_string();
    let (status, said) = probe(&operator, &of(&known));
    assert_eq!(status, 200, "{said}");
    for part in [
        "\"answered\": 2",
        "\"transport\": \"udp\"",
        "\"rcode\": \"NOERROR\"",
        "\"passes-signatures-on\"",
        "\"median-ms\"",
    ] {
        contains(&said, part);
    }
    lacks(&said, "\"offered\"");
    // Whoever is no admin reaches nothing else: not even a connection is made.
    let elsewhere = TcpListener::bind("127.0.0.1:0").expect("a listener");
    elsewhere.set_nonblocking(true).expect("no waiting");
    let other = format!("tcp://{}", elsewhere.local_addr().expect("an address"));
    for server in [other.as_str(), &format!("tcp://{known}"), "169.254.169.254", "localhost", "tls://[::1]"] {
        let (status, said) = probe(&operator, &of(server));
        assert_eq!(status, 403, "{server}: {said}");
    }
    for mapping in ["{address: 127.0.0.1}", "{address: 127.0.0.1}]}}\\ncache: {x: {size: 1024GiB}}\\n#"] {
        assert_eq!(probe(&operator, &of(mapping)).0, 400, "{mapping}");
    }
    assert!(elsewhere.accept().is_err(), "nobody came");
    assert_eq!(probe(&helper, &of(&known)).0, 403);
    let (status, said) = probe(&admin, &of(&other));
    assert_eq!(status, 200, "{said}");
    contains(&said, "\"trouble\": \"no reply in time\"");
    contains(&said, "\"transport\": \"tcp\"");
    assert!(elsewhere.accept().is_ok(), "the admin's probe came");
    // Nothing of a mapping is in the audit log: it may hold passwords.
    let mapping =
        format!("{{address: tcp://{known}, proxy: 127.0.0.1, proxy-user: anna, proxy-password: hunter2}}");
    let (status, said) = probe(&admin, &of(&mapping));
    assert_eq!(status, 200, "{said}");
    // It is asked as the mapping says, not as the server that is configured.
    contains(&said, "\"trouble\": ");
    for wrong in ["\"count\": 21", "\"count\": 0", "\"timeout-ms\": 5001", "\"name\": \"a..b\""] {
        let body = format!("{{\"server\": \"{known}\", {wrong}}}");
        assert_eq!(probe(&operator, &body).0, 400, "{wrong}");
    }
    let audit = text(&server.command(&["audit", "tail"]));
    contains(&audit, &format!("probe {known} by token operator: accepted"));
    contains(&audit, "refused: ");
    contains(&audit, "probe a mapping by token admin: accepted");
    lacks(&audit, "hunter2");
    let output = server.command(&["probe", &known, "--running", "--count", "1", "--timeout", "1"]);
    assert!(output.status.success(), "{}", text(&output));
    contains(&text(&output), &format!("address         {known} over udp"));
}

#[test]
fn two_probes_are_made_at_once_and_others_do_not_wait_for_them() {
    let (_stub, server) = start("");
    // Nobody answers there.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    silent.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let body =
        format!("{{\"server\": \"{}\", \"timeout-ms\": 5000}}", silent.local_addr().expect("an address"));
    let request = format!(
        "POST /api/v1/probe HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{JSON}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let probes: Vec<_> = (0..2)
        .map(|_| {
            let mut stream = connect(&server);
            stream.write_all(request.as_bytes()).expect("taken");
            stream
        })
        .collect();
    for _ in 0..2 {
        silent.recv(&mut [0; 512]).expect("both have begun");
    }
    let third = ask(&server, "POST", "/probe", &[JSON], &body);
    assert_eq!(third.status, 409, "{third:?}");
    contains(&third.body, "2 probes are under way already");
    assert_eq!(super::get(&server, "/status").status, 200);
    for stream in probes {
        let heard = hear(stream);
        assert_eq!(heard.status, 200, "{heard:?}");
        contains(&heard.body, "no reply in time");
    }
}
