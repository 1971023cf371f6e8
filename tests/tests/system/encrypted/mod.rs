//! The built program and clients that encrypt: `kdig`, and our own where a test needs the octets.

mod dnscrypt;
mod flow_control;

use std::fs::Permissions;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;
use testkit::tls::NAME;
use testkit::{
    Answer, Ask, Authority, Heard, Identity, Script, Server, Stub, TlsClient, certificate, eventually,
    forwarding,
};
use wire::{OptionCode, Rcode, Rtype};

const TLS: &str = "tls: {certificates: [{certificate: certificate.pem, key: key.pem}]}";

const LISTEN: &str = "listen: [\"@ADDRESS@\", {at: \"@ANOTHER@\", transport: tls}, \
    {at: \"127.0.0.1:0\", transport: [https, h3], paths: [/dns-query, /kids]}, \
    {at: \"127.0.0.1:0\", transport: http, forwarded-from: 127.0.0.1}, \
    {at: \"127.0.0.1:0\", transport: quic}]";

/// Returns a configuration with a listener for each transport.
fn config(stub: &Stub, more: &str) -> String {
    forwarding(&[stub], more).replace("listen: [\"@ADDRESS@\"]", LISTEN)
}

fn start(stub: &Stub, more: &str) -> Server {
    let directory = TempDir::new().expect("a temporary directory");
    certificate(directory.path(), &[NAME, "127.0.0.1"]);
    Server::start_in(directory, &config(stub, &format!("{TLS}\n{more}")))
}

#[track_caller]
fn contains(text: &str, part: &str) {
    assert!(text.contains(part), "expected {part:?} in:\n{text}");
}

#[test]
fn kdig_asks_over_tls_and_checks_the_certificate() {
    let stub = Stub::start(Script::default());
    let server = start(&stub, "");
    let trusted = format!("+tls-ca={}", server.directory().join("certificate.pem").display());
    let name = format!("+tls-hostname={NAME}");
    let printed = testkit::kdig(server.another(), &["+tls", &trusted, &name, "example.org", "A"]);
    contains(&printed, ";; TLS session (TLS1.3)");
    contains(&printed, "status: NOERROR");
    contains(&printed, "192.0.2.1");
    let printed =
        testkit::kdig(server.another(), &["+tls", "+keepopen", "example.org", "A", "example.org", "AAAA"]);
    assert_eq!(printed.matches("status: NOERROR").count(), 2, "{printed}");
}

#[test]
fn replies_are_padded_if_the_query_was() {
    let stub = Stub::start(Script::default());
    let server = start(&stub, "");
    let mut client = TlsClient::connect(server.another(), &server.directory().join("certificate.pem"));
    let plain = client.ask(&Ask::new("example.org", Rtype::A).edns(1232));
    assert_eq!(plain.option(OptionCode::PADDING), None);
    let asks = [
        Ask::new("example.org", Rtype::A).edns(1232).option(OptionCode::PADDING, &[0; 3]),
        Ask::new("example.org", Rtype::A)
            .option(OptionCode::COOKIE, &[1; 8])
            .option(OptionCode::PADDING, &[]),
        Ask::new("nothing.invalid", Rtype::TXT).option(OptionCode::PADDING, &[0; 100]),
    ];
    for ask in &asks {
        let heard = client.ask(ask);
        assert_eq!(heard.bytes().len(), 468, "{heard:?}");
        assert!(heard.option(OptionCode::PADDING).expect("padding").iter().all(|&octet| octet == 0));
    }
    // Over UDP the length is everybody's to see anyway.
    assert_eq!(server.ask(&asks[0]).option(OptionCode::PADDING), None);
    let heard = client.ask(&Ask::new("example.org", Rtype::A).option(OptionCode::TCP_KEEPALIVE, &[]));
    assert_eq!(heard.option(OptionCode::TCP_KEEPALIVE), Some(100_u16.to_be_bytes().to_vec()));
    for (padding, length) in [("128", Some(128)), ("off", None)] {
        let server = start(&stub, &format!("edns: {{padding: {padding}}}\n"));
        let mut client = TlsClient::connect(server.another(), &server.directory().join("certificate.pem"));
        let heard = client.ask(&asks[0]);
        let found = heard.option(OptionCode::PADDING).map(|_| heard.bytes().len());
        assert_eq!(found, length, "{heard:?}");
    }
}

#[test]
fn policies_tell_clients_by_transport_and_server_name() {
    let stub = Stub::start(Script::default());
    let more = "views: [{server-names: dns.example.org, policy: named}]\n\
                policy:\n  \
                  named: [{if: transport == tls and qname == tls.example.org, do: respond(answer \"@ 60 A 192.0.2.53\")}, forward(default)]\n  \
                  main: [forward(default)]";
    let server = start(&stub, more);
    let ask = Ask::new("tls.example.org", Rtype::A);
    let mut client = TlsClient::connect(server.another(), &server.directory().join("certificate.pem"));
    contains(&client.ask(&ask).answers().join(" "), "192.0.2.53");
    contains(&server.ask(&ask).answers().join(" "), "192.0.2.1");
    let printed = testkit::kdig(server.another(), &["+tls", "+tls-sni=other.example.org", "tls.example.org"]);
    contains(&printed, "192.0.2.1");
}

/// Returns a zone in which `www` has this address.
fn zone(serial: u32, address: &str) -> String {
    format!("$TTL 60\n@ SOA ns admin {serial} 7200 600 86400 60\n@ NS ns\nns A 192.0.2.1\nwww A {address}\n")
}

#[test]
fn a_certificate_that_does_not_fit_its_key_keeps_all_else_of_a_reload_out() {
    let stub = Stub::start(Script::default());
    let directory = TempDir::new().expect("a temporary directory");
    certificate(directory.path(), &[NAME, "127.0.0.1"]);
    std::fs::write(directory.path().join("old"), zone(1, "192.0.2.7")).expect("a writable directory");
    let yaml = |zones: &str| config(&stub, &format!("{TLS}\nzones: [{zones}]\n"));
    let old = "{name: old.example, file: old}";
    let server = Server::start_in(directory, &yaml(old));
    let trusted = server.directory().join("first.pem");
    std::fs::copy(server.directory().join("certificate.pem"), &trusted).expect("a certificate");
    let own_key = std::fs::read(server.directory().join("key.pem")).expect("a key");
    let revision = || {
        let output = server.command(&["status", "--json"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find(|line| line.contains("\"revision\"")).expect("it is shown");
        line.trim().trim_end_matches(',').to_owned()
    };
    let ask = |name: &str| server.ask(&Ask::new(name, Rtype::A)).answers().join(" ");
    assert_eq!(revision(), "\"revision\": 1");
    // Everything differs: a zone's file, the zones, the listeners, the policy's steps, and the key,
    // which is another one's.
    let (_, key) = Identity::self_signed(&[NAME]).pem();
    std::fs::write(server.directory().join("key.pem"), key).expect("writable");
    std::fs::write(server.directory().join("old"), zone(2, "192.0.2.8")).expect("writable");
    std::fs::write(server.directory().join("new"), zone(1, "192.0.2.9")).expect("writable");
    let new = yaml(&format!("{old}, {{name: new.example, file: new}}"))
        .replace("policy:", "local: {local.example: 192.0.2.10}\npolicy:")
        .replace("listen: [", "listen: [\"127.0.0.1:0\", ");
    server.write_config(&new);
    let output = server.command(&["reload"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    contains(&said, "not reloaded; revision 1 stays in use");
    contains(&said, "key.pem");
    assert_eq!(revision(), "\"revision\": 1");
    contains(&ask("www.old.example"), "192.0.2.7");
    contains(&ask("www.new.example"), "300 A 192.0.2.1");
    let mut client = TlsClient::connect(server.another(), &trusted);
    contains(&client.ask(&Ask::new("www.old.example", Rtype::A)).answers().join(" "), "192.0.2.7");
    // With the right key all of it comes into use together, under the next number.
    std::fs::write(server.directory().join("key.pem"), own_key).expect("writable");
    let output = server.command(&["reload"]);
    contains(&String::from_utf8_lossy(&output.stdout), "in use after");
    contains(&ask("www.old.example"), "192.0.2.8");
    contains(&ask("www.new.example"), "192.0.2.9");
    assert_ne!(revision(), "\"revision\": 1");
}

#[test]
fn a_certificate_is_replaced_under_load_without_a_failed_query() {
    let stub = Stub::start(Script::always(Answer::a(86_400, Ipv4Addr::new(192, 0, 2, 1))));
    let server = start(&stub, "limits: {tls: {handshakes-per-client: 10000, handshakes-per-second: 10000}}");
    let (first, second) = (server.directory().join("first.pem"), server.directory().join("certificate.pem"));
    std::fs::rename(&second, &first).expect("a certificate");
    std::fs::copy(&first, &second).expect("a certificate");
    let ask = |client: &mut TlsClient| {
        let heard = client.ask(&Ask::new("example.org", Rtype::A));
        assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::NOERROR, 1));
    };
    let mut before = TlsClient::connect(server.another(), &first);
    let old = before.certificate();
    ask(&mut before);
    let at = server.another();
    let (first, second) = (&first, &second);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let lasting = scope.spawn(|| {
            let mut client = TlsClient::connect(at, first);
            let mut asked = 0_u32;
            while !done.load(Ordering::Relaxed) {
                ask(&mut client);
                asked += 1;
            }
            asked
        });
        let fresh = scope.spawn(|| {
            let mut opened = 0_u32;
            while !done.load(Ordering::Relaxed) {
                // Whichever of the two is shown, the handshake and the query succeed.
                let client = TlsClient::try_connect(at, first, "dot");
                let mut client =
                    client.or_else(|_| TlsClient::try_connect(at, second, "dot")).expect("either");
                ask(&mut client);
                opened += 1;
            }
            opened
        });
        certificate(server.directory(), &[NAME]);
        server.signal("HUP");
        eventually("the new certificate is in use", || {
            TlsClient::try_connect(at, second, "dot").is_ok_and(|client| client.certificate() != old)
        });
        done.store(true, Ordering::Relaxed);
        assert!(lasting.join().expect("no query failed") > 10);
        assert!(fresh.join().expect("no connection failed") > 2);
    });
    // The connection of before the change goes on.
    ask(&mut before);
}

#[test]
fn a_changed_certificate_is_noticed_without_being_told() {
    let stub = Stub::start(Script::default());
    let server = start(&stub, "");
    let file = server.directory().join("certificate.pem");
    let old = TlsClient::connect(server.another(), &file).certificate();
    certificate(server.directory(), &[NAME]);
    eventually("the new certificate is in use", || {
        TlsClient::try_connect(server.another(), &file, "dot").is_ok_and(|client| client.certificate() != old)
    });
}

#[test]
fn mistakes_with_certificates_are_explained() {
    let directory = TempDir::new().expect("a temporary directory");
    let check = |settings: &str| {
        std::fs::write(directory.path().join("gannet.yaml"), settings).expect("a writable directory");
        let output =
            testkit::program(directory.path()).args(["check", "gannet.yaml", "--format", "line"]).output();
        let output = output.expect("the program starts");
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let listen = "listen: [{at: 127.0.0.1, transport: tls}]\n";
    contains(&check(listen), "gannet.yaml:1:15: error: there is no certificate for this listener");
    certificate(directory.path(), &[NAME]);
    std::fs::rename(directory.path().join("key.pem"), directory.path().join("other.pem")).expect("a key");
    certificate(directory.path(), &[NAME]);
    let with = |files: &str| check(&format!("{listen}tls:\n  certificates: [{{{files}}}]\n"));
    let good = with("certificate: certificate.pem, key: key.pem");
    assert!(!good.contains("error") && !good.contains("warning"), "{good}");
    let found = with("certificate: certificate.pem, key: other.pem");
    contains(
        &found,
        "gannet.yaml:3:54: error: \"other.pem\": the key is not that of the certificate in \"certificate.pem\"",
    );
    contains(&with("certificate: key.pem"), "\"key.pem\": holds a private key only");
    contains(&with("certificate: certificate.pem"), "\"certificate.pem\": holds a certificate only");
    contains(&with("certificate: gannet.yaml"), "holds neither certificates nor keys in PEM form");
    contains(&with("certificate: missing.pem"), "\"missing.pem\": cannot read it");
    let key = directory.path().join("key.pem");
    std::fs::set_permissions(&key, Permissions::from_mode(0o644)).expect("our own file");
    let found = with("certificate: certificate.pem, key: key.pem");
    contains(&found, "warning: every user of this machine can read the private key in \"key.pem\"");
    assert!(!found.contains("BEGIN"), "no key is printed: {found}");
    let found = check("listen: [{at: 127.0.0.1, transport: [tcp, tls]}]\n");
    contains(&found, "\"tls\" and \"tcp\" cannot share a port");
}

/// Runs `curl` against the listener for HTTPS; `path` is what stands after the port.
fn curl(server: &Server, path: &str, arguments: &[&str]) -> String {
    let trusted = server.directory().join("certificate.pem");
    let url = format!("https://{NAME}:{}{path}", server.port("https"));
    let resolve = format!("{NAME}:{}:127.0.0.1", server.port("https"));
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--max-time", "20", "--resolve", &resolve, "--cacert"]);
    let output =
        command.arg(trusted).args(arguments).arg(url).output().expect("`cargo xtask test` installs curl");
    assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn kdig_asks_over_https() {
    let stub = Stub::start(Script::default());
    let server = start(&stub, "");
    let at = (server.address().ip(), server.port("https")).into();
    let trusted = format!("+tls-ca={}", server.directory().join("certificate.pem").display());
    let name = format!("+tls-hostname={NAME}");
    for method in ["+https", "+https-get"] {
        let printed = testkit::kdig(at, &["+https", method, &trusted, &name, "example.org", "A"]);
        contains(&printed, "HTTP/2");
        contains(&printed, "status: NOERROR");
        contains(&printed, "192.0.2.1");
    }
}

#[test]
fn curl_gets_answers_in_both_versions_of_http() {
    let stub = Stub::start(Script::always(Answer::a(300, Ipv4Addr::new(192, 0, 2, 1))));
    let server = start(&stub, "");
    for (version, told) in [("--http1.1", "HTTP/1.1 200"), ("--http2", "HTTP/2 200")] {
        // www.example.com, A: the example of RFC 8484 §4.1.1.
        let path = "/dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB";
        let head = curl(&server, path, &[version, "--dump-header", "-", "--output", "/dev/null"]);
        let head = head.to_lowercase();
        contains(&head, &told.to_lowercase());
        contains(&head, "content-type: application/dns-message");
        contains(&head, "cache-control: max-age=");
        let json = curl(&server, "/dns-query?name=json.example.org&type=A", &[version]);
        contains(&json, "\"Status\":0");
        contains(&json, "\"Question\":[{\"name\":\"json.example.org.\",\"type\":1}]");
        contains(&json, "\"data\":\"192.0.2.1\"");
        let status = ["--output", "/dev/null", "--write-out", "%{http_code}"];
        let of = |path: &str, more: &[&str]| curl(&server, path, &[&[version][..], &status, more].concat());
        assert_eq!(of("/elsewhere", &[]), "404");
        assert_eq!(of("/dns-query", &[]), "400");
        assert_eq!(of("/dns-query", &["--request", "DELETE"]), "405");
        assert_eq!(of("/dns-query", &["--data", "x"]), "415");
    }
}

#[test]
fn curl_gets_answers_over_http3_if_it_speaks_it() {
    let version = Command::new("curl").arg("--version").output().expect("`cargo xtask test` installs curl");
    if !String::from_utf8_lossy(&version.stdout).contains("HTTP3") {
        // dnspython with aioquic asks over HTTP/3 everywhere: see conformance.rs.
        println!("skipped: this curl does not speak HTTP/3");
        return;
    }
    let stub = Stub::start(Script::always(Answer::a(300, Ipv4Addr::new(192, 0, 2, 1))));
    let server = start(&stub, "");
    let path = "/dns-query?name=h3.example.org";
    let told = ["--http3-only", "--write-out", "%{http_version}"];
    let printed = curl(&server, path, &told);
    contains(&printed, "\"data\":\"192.0.2.1\"");
    assert!(printed.ends_with('3'), "{printed}");
}

#[test]
fn curl_resolves_names_through_the_server() {
    let stub = Stub::start(Script::default());
    let server = start(&stub, "local: {web.example.org: 127.0.0.1}");
    let web = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let port = web.local_addr().expect("bound").port();
    let page = std::thread::spawn(move || {
        let (mut client, _) = web.accept().expect("a client");
        client.set_read_timeout(Some(testkit::DEADLINE)).expect("a timeout");
        let mut request = [0; 1024];
        let _ = client.read(&mut request).expect("a request");
        client
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nfound")
            .expect("sent");
    });
    let doh = format!("https://127.0.0.1:{}/dns-query", server.port("https"));
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "20", "--doh-insecure", "--doh-url", &doh])
        .arg(format!("http://web.example.org:{port}/"))
        .output()
        .expect("`cargo xtask test` installs curl");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(printed, "found", "{}", String::from_utf8_lossy(&output.stderr));
    page.join().expect("served");
}

#[test]
fn policies_see_paths_headers_and_clients_behind_proxies() {
    let stub = Stub::start(Script::default());
    let more = "views: [{paths: /kids, policy: kids}]\n\
                policy:\n  \
                  kids: [respond(answer \"@ 60 A 192.0.2.66\")]\n  \
                  main:\n    \
                  - {if: header(user-agent) contains robot, do: respond(answer \"@ 60 A 192.0.2.77\")}\n    \
                  - {if: transport == https and client == 192.0.2.200, do: respond(answer \"@ 60 A 192.0.2.88\")}\n    \
                  - forward(default)\n\
                allow: [loopback, 192.0.2.200]";
    let server = start(&stub, more);
    let query = "?name=view.example.org";
    contains(&curl(&server, &format!("/kids{query}"), &[]), "192.0.2.66");
    let path = format!("/dns-query{query}");
    contains(&curl(&server, &path, &[]), "192.0.2.1\"");
    contains(&curl(&server, &path, &["--user-agent", "a robot"]), "192.0.2.77");
    let plain = |header: &str| {
        let url = format!("http://127.0.0.1:{}{path}", server.port("http"));
        let output =
            Command::new("curl").args(["--silent", "--max-time", "20", "--header", header, &url]).output();
        String::from_utf8_lossy(&output.expect("curl").stdout).into_owned()
    };
    contains(&plain("X-Forwarded-For: 198.51.100.1, 192.0.2.200"), "192.0.2.88");
    // The access list holds for whom the proxy speaks.
    contains(&plain("X-Forwarded-For: 198.51.100.1"), "\"Status\":5");
}

#[test]
fn clients_of_plain_dns_hear_of_the_encrypted_listeners() {
    let stub = Stub::start(Script::default());
    let server = start(&stub, "");
    let told = server.dig(&["+noall", "+answer", "_dns.resolver.arpa", "SVCB"]);
    for (alpn, port) in
        [("dot", server.another().port()), ("h3,h2", server.port("https")), ("doq", server.port("quic"))]
    {
        contains(&told, &format!("{NAME}. alpn=\"{alpn}\" port={port} ipv4hint=127.0.0.1"));
    }
    contains(&told, "/dns-query{?dns}");
    let silent = Server::start_in(
        {
            let directory = TempDir::new().expect("a temporary directory");
            certificate(directory.path(), &[NAME]);
            directory
        },
        &config(&stub, &TLS.replace("tls: {", "tls: {discovery: false, ")),
    );
    assert!(silent.ask(&Ask::new("_dns.resolver.arpa", Rtype::SVCB)).answers().is_empty());
}

#[test]
fn kdig_asks_over_quic() {
    let stub = Stub::start(Script::default());
    let server = start(&stub, "");
    let at = (server.address().ip(), server.port("quic")).into();
    for _ in 0..2 {
        let printed = testkit::kdig(at, &["+quic", "example.org", "A"]);
        contains(&printed, "QUIC session");
        contains(&printed, "status: NOERROR");
        contains(&printed, "192.0.2.1");
    }
}

#[test]
fn certificates_of_clients_let_them_in_and_tell_them_apart() {
    let stub = Stub::start(Script::default());
    let directory = TempDir::new().expect("a temporary directory");
    certificate(directory.path(), &[NAME]);
    let (office, strangers) = (Authority::named("office"), Authority::named("strangers"));
    std::fs::write(directory.path().join("office.pem"), office.pem()).expect("a writable directory");
    let anna = office.vouch_for_client("anna.example.org", "Example, Inc.");
    let ben = office.vouch_for_client("ben.example.org", "Example, Inc.");
    let (pem, key) = anna.pem();
    std::fs::write(directory.path().join("anna.pem"), pem + &key).expect("a writable directory");
    let more = format!(
        "tls: {{certificates: [{{certificate: certificate.pem, key: key.pem}}], client-ca: office.pem}}\n\
         policy:\n  \
           main:\n    \
           - {{if: client-certificate(name) == anna.example.org, do: respond(answer \"@ 60 A 192.0.2.11\")}}\n    \
           - {{if: 'client-certificate(fingerprint) == \"{}\"', do: respond(answer \"@ 60 A 192.0.2.12\")}}\n    \
           - {{if: client-certificate, do: respond(answer \"@ 60 A 192.0.2.13\")}}\n    \
           - respond(answer \"@ 60 A 192.0.2.14\")",
        ben.fingerprint()
    );
    let listen = LISTEN.replace("paths: [/dns-query, /kids]}", "client-certificates: optional}");
    let config = forwarding(&[&stub], &more).replace("listen: [\"@ADDRESS@\"]", &listen);
    let server = Server::start_in(directory, &config);
    let trusted = server.directory().join("certificate.pem");
    let ask = Ask::new("example.org", Rtype::A);
    let as_client = |own: &Identity| {
        let mut client = TlsClient::try_connect_as(server.another(), &trusted, own)?;
        client.try_ask(&ask).map(|heard| heard.answers().join(" "))
    };
    contains(&as_client(&anna).expect("let in"), "192.0.2.11");
    contains(&as_client(&ben).expect("let in"), "192.0.2.12");
    contains(
        &as_client(&office.vouch_for_client("carl.example.org", "Other")).expect("let in"),
        "192.0.2.13",
    );
    as_client(&strangers.vouch_for_client("anna.example.org", "Example, Inc."))
        .expect_err("another authority");
    as_client(&Identity::self_signed(&["anna.example.org"])).expect_err("no authority");
    // TLS 1.3 clients hear that they were to show one only when they read.
    let without = TlsClient::try_connect(server.another(), &trusted, "dot");
    without.and_then(|mut client| client.try_ask(&ask)).expect_err("no certificate");

    let query = "/dns-query?name=example.org";
    contains(&curl(&server, query, &[]), "192.0.2.14");
    let own = server.directory().join("anna.pem");
    contains(&curl(&server, query, &["--cert", &own.display().to_string()]), "192.0.2.11");
}

#[test]
fn oblivious_queries_are_answered_for_whoever_a_relay_speaks_for() {
    let stub = Stub::start(Script::default());
    let server = start(&stub, "oblivious: {target: true}");
    let file = |name: &str| server.directory().join(name).display().to_string();
    let configs = file("configs");
    let head = curl(&server, "/.well-known/odohconfigs", &["--output", &configs, "--dump-header", "-"]);
    contains(&head.to_lowercase(), "cache-control: max-age=86");
    let client =
        odoh::Client::from_configs(&std::fs::read(&configs).expect("configurations")).expect("a key");
    let ask = Ask::new("example.org", Rtype::A);
    let post = |sealed: &[u8]| {
        std::fs::write(file("query"), sealed).expect("a writable directory");
        let (body, query) = (file("body"), format!("@{}", file("query")));
        let kind = format!("content-type: {}", odoh::MEDIA_TYPE);
        let told = ["--output", &body, "--write-out", "%{http_code} %{content_type}"];
        let told =
            curl(&server, "/dns-query", &[&told[..], &["--header", &kind, "--data-binary", &query]].concat());
        (told, std::fs::read(&body).expect("a body"))
    };
    let (sealed, context) = client.seal(&ask.bytes()).expect("sealed");
    let (told, body) = post(&sealed);
    assert_eq!(told, format!("200 {}", odoh::MEDIA_TYPE));
    let heard = Heard::new(context.open(&body).expect("for us"));
    assert_eq!(heard.rcode(), Rcode::NOERROR, "{heard:?}");
    contains(&heard.answers().join(" "), "192.0.2.1");
    // Somebody else's key, and no message at all.
    let other =
        odoh::Client::from_configs(&odoh::Target::generate().expect("a key").configs()).expect("a key");
    contains(&post(&other.seal(&ask.bytes()).expect("sealed").0).0, "401 ");
    contains(&post(b"nonsense").0, "400 ");
    let mut changed = sealed;
    *changed.last_mut().expect("octets") ^= 1;
    contains(&post(&changed).0, "400 ");

    let plain = start(&stub, "");
    let status = ["--output", "/dev/null", "--write-out", "%{http_code}"];
    assert_eq!(curl(&plain, "/.well-known/odohconfigs", &status), "404");
}

#[test]
fn oblivious_messages_are_carried_to_the_targets_of_the_configuration_only() {
    let stub = Stub::start(Script::default());
    let target = start(&stub, "oblivious: {target: true}");
    let authority = format!("{NAME}:{}", target.port("https"));
    let roots = target.directory().join("certificate.pem");
    let relay_to = format!(
        "oblivious: {{relay-to: {{target: \"{authority}\", dial: 127.0.0.1, roots: \"{}\"}}}}",
        roots.display()
    );
    let relay = start(&stub, &relay_to);
    let file = |name: &str| relay.directory().join(name).display().to_string();
    let configs = file("configs");
    curl(&target, "/.well-known/odohconfigs", &["--output", &configs]);
    let client =
        odoh::Client::from_configs(&std::fs::read(&configs).expect("configurations")).expect("a key");
    let post = |relay: &Server, target: &str, sealed: &[u8]| {
        std::fs::write(file("query"), sealed).expect("a writable directory");
        let (body, head, query) = (file("body"), file("head"), format!("@{}", file("query")));
        let kind = format!("content-type: {}", odoh::MEDIA_TYPE);
        let path = format!("/dns-query?targethost={}&targetpath=/dns-query", target.replace(':', "%3A"));
        let told = ["--output", &body, "--dump-header", &head, "--write-out", "%{http_code}"];
        let told = curl(relay, &path, &[&told[..], &["--header", &kind, "--data-binary", &query]].concat());
        let head = std::fs::read_to_string(&head).expect("a head").to_lowercase();
        (told, head, std::fs::read(&body).unwrap_or_default())
    };
    let ask = Ask::new("example.org", Rtype::A);
    for _ in 0..2 {
        let (sealed, context) = client.seal(&ask.bytes()).expect("sealed");
        let (status, head, body) = post(&relay, &authority, &sealed);
        assert_eq!(status, "200", "{head}");
        contains(&head, &format!("content-type: {}", odoh::MEDIA_TYPE));
        contains(&Heard::new(context.open(&body).expect("for us")).answers().join(" "), "192.0.2.1");
    }
    let (sealed, _) = client.seal(&ask.bytes()).expect("sealed");
    assert_eq!(post(&relay, "odoh.example.net", &sealed).0, "403");
    // What the target says about keys reaches the client.
    let other =
        odoh::Client::from_configs(&odoh::Target::generate().expect("a key").configs()).expect("a key");
    let (status, head, _) = post(&relay, &authority, &other.seal(&ask.bytes()).expect("sealed").0);
    assert_eq!(status, "401");
    contains(&head, "proxy-status: gannet; received-status=401");
    // The access list holds for those who want something carried, too.
    let closed = start(&stub, &format!("allow: [192.0.2.0/24]\n{relay_to}"));
    assert_eq!(post(&closed, &authority, &sealed).0, "403");
    drop(target);
    let (status, head, _) = post(&relay, &authority, &sealed);
    assert_eq!(status, "502");
    contains(&head, "proxy-status: gannet; error=");
}

#[test]
fn everybody_in_an_office_behind_one_address_connects_at_once() {
    let stub = Stub::start(Script::default());
    // They do not ask at once, and a slow machine is no reason to end them.
    let server = start(&stub, "limits: {tcp: {first-query-timeout: 60s, idle-timeout: 60s}}");
    let trusted = server.directory().join("certificate.pem");
    let mut clients: Vec<_> = (0..260).map(|_| TlsClient::connect(server.another(), &trusted)).collect();
    for client in clients.iter_mut().step_by(50) {
        assert_eq!(client.ask(&Ask::new("example.org", Rtype::A)).rcode(), Rcode::NOERROR);
    }
}

#[test]
fn clients_that_are_refused_are_named_in_the_log_now_and_then() {
    let stub = Stub::start(Script::default());
    let limits =
        "limits: {tcp: {connections-per-client: 10}, tls: {handshakes-per-client: 1, handshakes-burst: 3}}";
    let mut server = start(&stub, limits);
    let trusted = server.directory().join("certificate.pem");
    let clients: Vec<_> =
        (0..20).map(|_| TlsClient::try_connect(server.another(), &trusted, "dot")).collect();
    assert!(clients.iter().any(Result::is_ok) && clients.iter().any(Result::is_err));
    let line = server.wait_for_log("connections are refused");
    contains(&line, "WARN");
    contains(&line, "client=127.0.0.1/32");
    // Many more of them are no reason to say it again at once.
    for _ in 0..3 {
        let refused = server.stat("listen", "tls-refused");
        let _ = TlsClient::try_connect(server.another(), &trusted, "dot");
        eventually("the numbers are told again", || server.stat("listen", "tls-refused") >= refused);
    }
    assert_eq!(server.log().iter().filter(|line| line.contains("connections are refused")).count(), 1);
}

#[test]
fn one_address_and_port_has_a_listener_over_tcp_and_another_over_udp() {
    let stub = Stub::start(Script::default());
    let directory = TempDir::new().expect("a temporary directory");
    certificate(directory.path(), &[NAME, "127.0.0.1"]);
    let listen = "listen: [\"@ADDRESS@\", {at: \"@ANOTHER@\", transport: tls, name: dot}, \
        {at: \"@ANOTHER@\", transport: quic, name: doq}]";
    let policy = "policy: {main: [{if: listener == dot, do: respond(answer \"@ 60 A 192.0.2.3\")}, {if: listener == doq, do: respond(answer \"@ 60 A 192.0.2.4\")}, forward(default)]}";
    let config = forwarding(&[&stub], &format!("{TLS}\n{policy}")).replace("listen: [\"@ADDRESS@\"]", listen);
    let server = Server::start_in(directory, &config);
    let trusted = server.directory().join("certificate.pem");
    let ask = Ask::new("example.org", Rtype::A);
    let heard = TlsClient::connect(server.another(), &trusted).ask(&ask);
    contains(&heard.answers().join("\n"), "192.0.2.3");
    let heard = testkit::streams::ask_doq(server.another(), &trusted, &ask.bytes()).expect("a reply");
    contains(&Heard::new(heard).answers().join("\n"), "192.0.2.4");
}
