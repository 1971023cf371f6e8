//! `gannet query` beside servers that answer, refuse, or break off.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};

use testkit::eventually;

use crate::harness::{Place, Server, Upstream, text};
use crate::serving::config;

const KEY: &str = "hmac-sha256:xfr.example.org:c2VjcmV0IHNlY3JldA==";
const RECORDS: usize = 5000;

/// A server with a zone that takes many messages to transfer.
fn primary(rights: &str) -> Server {
    let place = Place::new();
    let mut zone = "$TTL 60\n@ SOA ns admin 7 7200 600 86400 300\n@ NS ns\nns A 192.0.2.1\n".to_owned();
    for number in 0..RECORDS {
        let _ = writeln!(zone, "host-{number} TXT \"number {number} of a zone that fills several messages\"");
    }
    place.write("org.zone", &zone);
    let file = place.write(
        "gannet.yaml",
        &format!(
            "server: {{workers: 2, state-directory: state}}\nlisten: [\"127.0.0.1:0\"]\n\
             keys: [{{name: xfr.example.org, secret: c2VjcmV0IHNlY3JldA==}}]\n\
             zones: [{{name: example.org, file: org.zone, transfer: [{rights}]}}]\n\
             policy: {{main: [{{do: reject(refused)}}]}}\n"
        ),
    );
    Server::start_with(place, |command| {
        command.arg("run").arg("-c").arg(&file);
    })
}

#[test]
fn a_zone_is_transferred_to_its_last_message() {
    let server = primary("127.0.0.1");
    let (code, stdout, stderr) = text(&server.run(&["query", "example.org", "AXFR"]));
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    let records: Vec<&str> = stdout.lines().filter(|line| !line.starts_with(';')).collect();
    // The SOA begins and ends it.
    assert_eq!(records.len(), RECORDS + 4);
    assert_eq!(records.first(), records.last());
    let last = stdout.lines().last().unwrap();
    assert!(last.starts_with("; 5004 records, serial 7, in ") && !last.contains(" in 1 message,"), "{last}");

    let (code, stdout, _) = text(&server.run(&["query", "example.org", "AXFR", "--json"]));
    assert_eq!(code, 0);
    assert!(stdout.contains("\"kind\": \"whole\"") && stdout.contains("\"records\": 5004,"), "{stdout:.300}");

    for serial in ["7", "8"] {
        let (code, stdout, _) = text(&server.run(&["query", "example.org", &format!("IXFR={serial}")]));
        assert!(code == 0 && stdout.contains("; nothing newer, serial 7, "), "{stdout}");
    }
    let (code, stdout, stderr) = text(&server.run(&["query", "example.net", "AXFR"]));
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains("the server answers NOTAUTH"), "{stderr}");
}

#[test]
fn a_transfer_that_is_signed_is_verified() {
    let server = primary("\"key xfr.example.org\"");
    let (code, stdout, _) = text(&server.run(&["query", "example.org", "AXFR", "-y", KEY]));
    assert_eq!(code, 0, "{stdout:.300}");
    assert!(
        stdout.lines().last().unwrap().ends_with("over TCP, signed by xfr.example.org."),
        "{stdout:.300}"
    );
    let file =
        "key \"xfr.example.org\" {\n\talgorithm hmac-sha256;\n\tsecret \"c2VjcmV0IHNlY3JldA==\";\n};\n";
    server.place.write("xfr.key", file);
    let (code, stdout, _) = text(&server.run(&["query", "ns.example.org", "-k", "xfr.key"]));
    assert!(code == 0 && stdout.contains("\nsigned     by xfr.example.org., verified\n"), "{stdout}");

    let (code, _, stderr) = text(&server.run(&["query", "example.org", "AXFR"]));
    assert!(code == 1 && stderr.contains("REFUSED"), "{stderr}");
    let wrong = "hmac-sha256:xfr.example.org:d3Jvbmc=";
    for question in [&["ns.example.org"][..], &["example.org", "AXFR"]] {
        let arguments = [&["query"], question, &["-y", wrong]].concat();
        let (code, stdout, stderr) = text(&server.run(&arguments));
        assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
        assert!(stderr.contains("BADSIG"), "{stderr}");
    }
}

/// Answers each query over TCP with these messages, each given the query's ID, and closes the
/// connection.
fn saying(messages: Vec<Vec<u8>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut length = [0; 2];
            if stream.read_exact(&mut length).is_err() {
                continue;
            }
            let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut query).unwrap();
            for message in &messages {
                let mut message = message.clone();
                message[..2].copy_from_slice(&query[..2]);
                let framed = [&(message.len() as u16).to_be_bytes()[..], &message].concat();
                stream.write_all(&framed).unwrap();
            }
        }
    });
    address
}

/// Writes a message of a transfer: a SOA, then so many addresses.
fn first_message(addresses: u8) -> Vec<u8> {
    let name: wire::NameBuf = "example.org".parse().unwrap();
    let mut bytes = vec![0; 4096];
    let mut writer = wire::Writer::new(&mut bytes, 4096, 0, wire::Flags::QR.with(wire::Flags::AA));
    let question =
        wire::Question { qname: name.as_name(), qtype: wire::Rtype::AXFR, qclass: wire::Class::IN };
    writer.question(&question).unwrap();
    let mut put = |rtype, data: &[u8]| {
        let (section, class, ttl) = (wire::Section::Answer, wire::Class::IN, wire::Ttl::new(60));
        writer.record(section, name.as_name(), rtype, class, ttl, |writer| writer.bytes(data)).unwrap();
    };
    put(wire::Rtype::SOA, &[&[0, 0, 0, 0, 0, 9][..], &[0; 16]].concat());
    for number in 0..addresses {
        put(wire::Rtype::A, &[192, 0, 2, number]);
    }
    let len = writer.finish();
    bytes.truncate(len);
    bytes
}

#[test]
fn a_transfer_that_breaks_off_is_none() {
    let place = Place::new();
    let server = format!("@{}", saying(vec![first_message(3)]));
    let (code, stdout, stderr) = text(&place.run(&["query", "example.org", "AXFR", &server]));
    assert_eq!((code, stdout.lines().count()), (1, 4), "{stdout}");
    assert!(stderr.contains("broke off after 4 records: hung up"), "{stderr}");
    // In JSON there is nothing but the error.
    let (code, stdout, stderr) = text(&place.run(&["query", "example.org", "AXFR", &server, "--json"]));
    assert_eq!((code, stderr.as_str()), (1, ""));
    assert!(stdout.starts_with("{\n  \"error\": \"the transfer from "), "{stdout}");
}

#[test]
fn its_own_encrypted_listeners_can_be_asked() {
    let upstream = Upstream::start();
    let place = Place::new();
    assert_eq!(text(&place.run(&["certificate", "dns.example.org"])).0, 0);
    let listen = "listen: [\"127.0.0.1:0\", {at: \"127.0.0.1:0\", transport: tls}, \
                  {at: \"127.0.0.1:0\", transport: [https, h3], paths: [/dns-query, /kids]}, \
                  {at: \"127.0.0.1:0\", transport: quic}]";
    let more = "tls: {certificates: [{certificate: certificate.pem, key: key.pem}]}\n";
    let file =
        place.write("gannet.yaml", &config(&upstream, more).replace("listen: [\"127.0.0.1:0\"]", listen));
    let server = Server::start_with(place, |command| {
        command.arg("run").arg("-c").arg(&file);
    });
    let proof = ["+tls-ca=certificate.pem", "+tls-hostname=dns.example.org"];
    for (option, transport) in
        [("+tls", "tls"), ("+https", "https"), ("+https=/kids", "https"), ("+h3", "h3"), ("+quic", "quic")]
    {
        let arguments = [&["query", "www.example.org", "--json", option], &proof[..]].concat();
        let (code, stdout, stderr) = text(&server.run(&arguments));
        assert_eq!(code, 0, "{option}: {stdout}{stderr}");
        assert!(stdout.contains(&format!("\"transport\": \"{transport}\"")), "{option}: {stdout}");
        assert!(stdout.contains("\"data\": \"192.0.2.1\""), "{option}: {stdout}");
    }
    // The reply is padded because the query was.
    let arguments = [&["query", "www.example.org", "+tls"], &proof[..]].concat();
    let (code, stdout, _) = text(&server.run(&arguments));
    assert!(code == 0 && stdout.contains("\noption     PADDING "), "{stdout}");
    let (_, stdout, _) = text(&server.run(&["status", "--json"]));
    let at = stdout.split("\"transport\": \"tls\"").next().and_then(|before| before.rsplit('"').nth(1));
    let at = at.unwrap_or_else(|| panic!("no listener for TLS in {stdout}"));
    let (code, stdout, _) =
        text(&server.run(&["query", "www.example.org", &format!("@tls://{at}#dns.example.org"), proof[0]]));
    assert!(code == 0 && stdout.contains(" over TLS, "), "{stdout}");
    // Without the authority, or for another name, it is not believed.
    for wrong in [&["+tls"][..], &["+tls", proof[0], "+tls-hostname=dns.example.net"]] {
        let arguments = [&["query", "www.example.org"], wrong].concat();
        let (code, stdout, stderr) = text(&server.run(&arguments));
        assert_eq!((code, stdout.as_str()), (1, ""));
        assert!(stderr.contains("certificate"), "{stderr}");
    }
    let (code, _, _) = text(&server.run(&["query", "www.example.org", "+tls", "+insecure"]));
    assert_eq!(code, 0);
    let (code, stdout, _) = text(&server.run(&["status"]));
    assert!(code == 0 && stdout.contains("\ncertificates   dns.example.org, ends in "), "{stdout}");
}

#[test]
fn options_reach_the_server_and_names_are_converted() {
    let upstream = Upstream::start();
    let server = Server::start(&config(&upstream, ""));
    let (code, stdout, _) = text(&server.run(&["query", "www.example.org", "+cookie", "+keepalive", "+tcp"]));
    assert_eq!(code, 0);
    assert!(
        stdout.contains("\noption     COOKIE ") && stdout.contains("\noption     TCP-KEEPALIVE 10.0 s\n"),
        "{stdout}"
    );
    let (code, stdout, _) = text(&server.run(&["query", "bücher.example.org", "--json"]));
    assert!(code == 0 && stdout.contains("\"name\": \"xn--bcher-kva.example.org.\""), "{stdout}");
    let (_, stdout, _) = text(&server.run(&["query", "bücher.example.org", "+idnout"]));
    assert!(stdout.contains("question   bücher.example.org. IN A\n"), "{stdout}");
    // Nobody listens there over IPv6.
    let address = server.address();
    let (code, _, stderr) = text(&server.run(&["query", "www.example.org", "-6", &format!("@{address}")]));
    assert!(code == 1 && stderr.contains("no address of IPv6"), "{stderr}");
    let from = ["query", "www.example.org", "-4", "-b", "127.0.0.7", &format!("@{address}")];
    assert_eq!(text(&server.run(&from)).0, 0);
}

#[test]
fn wrong_words_are_wrong_usage() {
    let place = Place::new();
    for words in
        ["@tsl://127.0.0.1", "@127.0.0.1:x", "+tsl", "+bufsize=many", "-y c2VjcmV0", "@udp://127.0.0.1 +tls"]
    {
        let mut arguments = vec!["query", "example.org"];
        arguments.extend(words.split(' '));
        let (code, stdout, stderr) = text(&place.run(&arguments));
        assert_eq!((code, stdout.as_str()), (2, ""), "{words}: {stderr}");
        arguments.push("--json");
        let (code, stdout, stderr) = text(&place.run(&arguments));
        assert_eq!((code, stderr.as_str()), (2, ""), "{words}: {stdout}");
        assert!(stdout.starts_with("{\n  \"error\": \""), "{stdout}");
    }
}

#[test]
fn what_the_cache_holds_is_shown_with_the_time_that_is_left() {
    let upstream = Upstream::start();
    let server = Server::start(&config(&upstream, ""));
    assert_eq!(text(&server.run(&["query", "www.example.org"])).0, 0);
    let (code, stdout, _) = text(&server.run(&["cache", "lookup", "www.example.org"]));
    assert_eq!(code, 0, "{stdout}");
    assert!(stdout.starts_with("www.example.org. A NOERROR in main, fresh for "), "{stdout}");
    assert!(stdout.lines().nth(1).unwrap().ends_with(" A 192.0.2.1"), "{stdout}");
    let (code, stdout, _) = text(&server.run(&["cache", "lookup", "--below", "example.org", "--json"]));
    assert!(
        code == 0 && stdout.contains("\"fresh-for-s\": ") && stdout.contains("\"data\": \"192.0.2.1\""),
        "{stdout}"
    );
    for nothing in [&["example.org"][..], &["www.example.org", "MX"]] {
        let (code, stdout, _) = text(&server.run(&[&["cache", "lookup"], nothing].concat()));
        assert_eq!((code, stdout.as_str()), (1, "no cache holds it\n"));
    }
}

#[test]
fn recorded_queries_are_found_where_the_running_server_keeps_them() {
    let upstream = Upstream::start();
    let more = "recorder: {file: queries.db}\npolicy: {main: [{if: qname == ads.example.org, do: reject(nxdomain)}, forward(default)]}\n";
    let server = Server::start(&config(&upstream, more));
    for name in ["www.example.org", "ads.example.org", "mail.example.org"] {
        server.run(&["query", name]);
    }
    // No word of the configuration: the server is asked.
    let log = |more: &[&str]| text(&server.run(&[&["log"], more].concat()));
    eventually("all three are recorded", || log(&[]).1.lines().count() >= 3);
    let (code, stdout, _) = log(&[]);
    let names: Vec<&str> = stdout.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    assert_eq!(
        (code, names.as_slice()),
        (0, &["mail.example.org", "ads.example.org", "www.example.org"][..])
    );
    for (options, expect) in [
        (&["--blocked"][..], 1),
        (&["--rcode", "nxdomain"], 1),
        (&["--rcode", "noerror"], 2),
        (&["--rcode", "none"], 0),
        (&["--since", "1h"], 3),
        (&["--until", "1h"], 0),
    ] {
        let (code, stdout, stderr) = log(options);
        assert_eq!((code, stdout.lines().count()), (0, expect), "{options:?}: {stdout}{stderr}");
    }
    assert_eq!(log(&["--since", "soon"]).0, 2);

    let mut command = server.place.gannet();
    command.args(["log", "-f", "-n", "1"]).stdout(std::process::Stdio::piped());
    let mut follower = command.spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(follower.stdout.take().unwrap()));
    let mut next = || lines.next().unwrap().unwrap();
    assert!(next().contains(" mail.example.org A NOERROR "));
    server.run(&["query", "new.example.org"]);
    assert!(next().contains(" new.example.org A NOERROR "));
    follower.kill().unwrap();
    follower.wait().unwrap();
}

#[test]
fn options_stand_before_the_command_or_behind_it() {
    let upstream = Upstream::start();
    let server = Server::start(&config(&upstream, ""));
    let socket = server.place.path("control.sock");
    let socket = socket.to_str().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = server.place.gannet();
        text(&command.env_remove("GANNET_SOCKET").args(arguments).output().unwrap())
    };
    for arguments in [
        &["--socket", socket, "status"][..],
        &["--json", "--socket", socket, "cache", "stats"],
        &["cache", "--socket", socket, "stats"],
        &["lists", "--socket", socket],
    ] {
        let (code, stdout, stderr) = run(arguments);
        assert_eq!(code, 0, "{arguments:?}: {stdout}{stderr}");
    }
    let (_, stdout, _) = run(&["--socket", socket, "status"]);
    assert!(
        stdout.contains("\nload           ") && stdout.contains(" queries a second, memory "),
        "{stdout}"
    );
    // What is wrong is told in the form that was asked for.
    let folder = server.place.path(".");
    let (code, _, stderr) = run(&["--socket", folder.to_str().unwrap(), "status"]);
    assert!(code == 1 && stderr.contains("(is no socket)"), "{stderr}");
    let (code, stdout, stderr) = run(&["status", "--json", "--socket", "/nonexistent/socket"]);
    assert_eq!((code, stderr.as_str()), (1, ""));
    assert!(
        stdout.contains("\"error\": \"no running gannet found; tried /nonexistent/socket (not there)\""),
        "{stdout}"
    );
    let (code, _, stderr) = run(&["explain", "-c", "/nonexistent", "example.org"]);
    assert!(code == 1 && !stderr.contains("\\u{a}") && stderr.lines().count() > 1, "{stderr}");
}
