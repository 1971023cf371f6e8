//! Where zones come from that are known by names: primaries by the names of their hosts, files on
//! web servers by their URLs.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use testkit::{Answer, Asked, Page, Script, Server, Stub, Web, eventually};
use wire::{Flags, Message, Rcode, Rtype, Section, Ttl, Writer};

use super::{directory_with_org, primary};

/// What says where `ns.example.net` is: at an address where nobody listens, until it has moved.
fn names(has_moved: &Arc<AtomicBool>) -> Stub {
    let has_moved = Arc::clone(has_moved);
    Stub::start(Script::answering(move |asked: &Asked| match asked.qtype {
        Rtype::A if asked.qname.eq_ignore_ascii_case("ns.example.net.") => {
            let last = if has_moved.load(Ordering::Relaxed) { 1 } else { 9 };
            Answer::a(300, Ipv4Addr::new(127, 0, 0, last)).authoritative()
        }
        Rtype::A => Answer::negative(Rcode::NXDOMAIN, 300, 300).authoritative(),
        _ => Answer::negative(Rcode::NOERROR, 300, 300).authoritative(),
    }))
}

/// Starts a secondary whose resolver asks this stub for names of `example.net`.
fn with_resolver(names: &Stub, zones: &str) -> Server {
    with_validation(names, "validation: \"off\"", zones)
}

fn with_validation(names: &Stub, validation: &str, zones: &str) -> Server {
    Server::start(&format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         keys: [{{name: {}, secret: {}}}]\n\
         resolvers:\n  default: {{{validation}, port: {}, zones: {{\".\": {{stub: \"{}\"}}}}, limits: {{time: 2s}}}}\n\
         zones: [{zones}]\npolicy: {{main: [recurse]}}\n",
        super::KEY,
        super::SECRET,
        names.address().port(),
        names.address(),
    ))
}

fn has_zone(server: &Server) -> bool {
    server.dig(&["mail.example.org", "A"]).contains("192.0.2.2")
}

/// Says that there is another version, to have it asked for now.
fn notify(server: &Server) {
    let said = server.dig(&["+opcode=notify", "example.org", "SOA"]);
    assert!(said.contains("status: NOERROR"), "{said}");
}

#[test]
fn a_primary_is_found_by_its_name_again_and_again() {
    let primary = primary("transfer: any", "");
    let has_moved = Arc::<AtomicBool>::default();
    let names = names(&has_moved);
    let zone = format!(
        "{{name: example.org, primaries: [\"ns.example.net:{}\"], notify-from: [loopback]}}",
        primary.address().port()
    );
    let mut server = with_resolver(&names, &zone);
    let line = server.wait_for_log("no transfer");
    assert!(line.contains("127.0.0.9"), "{line}");
    has_moved.store(true, Ordering::Relaxed);
    eventually("the zone, from where its primary is now", || {
        notify(&server);
        has_zone(&server)
    });
}

#[test]
fn a_name_without_addresses_is_told_and_the_next_primary_is_asked() {
    let primary = primary("transfer: any", "");
    let names = names(&Arc::default());
    let zone = format!(
        "{{name: example.org, primaries: [nowhere.example.net, \"{}\"], notify-from: [loopback]}}",
        primary.address()
    );
    let mut server = with_resolver(&names, &zone);
    let line = server.wait_for_log("the addresses of a primary are not known");
    assert!(line.contains("nowhere.example.net"), "{line}");
    eventually("the zone of the second primary", || has_zone(&server));
}

#[test]
fn a_primary_whose_address_is_bogus_is_not_asked() {
    let primary = primary("transfer: any", "");
    let names = names(&Arc::new(AtomicBool::new(true)));
    let zone = format!("{{name: example.org, primaries: [\"ns.example.net:{}\"]}}", primary.address().port());
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let file = directory.path().join("net.ds");
    // The zone should be signed, and nothing of it is.
    let anchor =
        "example.net. IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D\n";
    std::fs::write(&file, anchor).expect("a writable directory");
    let mut server = with_validation(&names, &format!("trust-anchors: {}", file.display()), &zone);
    let line = server.wait_for_log("the addresses of a primary are not known");
    assert!(line.contains("ns.example.net"), "{line}");
    assert!(!has_zone(&server));
}

#[test]
fn a_primary_known_by_name_notifies_with_its_key_alone() {
    let primary = primary("transfer: [\"key xfr.example.org\"]", "");
    let has_moved = Arc::new(AtomicBool::new(true));
    let names = names(&has_moved);
    let port = primary.address().port();
    let zone = format!("{{name: example.org, primaries: [\"ns.example.net:{port} key xfr.example.org\"]}}");
    let server = with_resolver(&names, &zone);
    eventually("the zone", || has_zone(&server));
    // From its address anybody could say so.
    let said = server.dig(&["+opcode=notify", "example.org", "SOA"]);
    assert!(said.contains("status: REFUSED") || said.contains("status: NOTAUTH"), "{said}");
    let key = super::key_option("hmac-sha256");
    let said = server.dig(&["-y", &key, "+opcode=notify", "example.org", "SOA"]);
    assert!(said.contains("status: NOERROR"), "{said}");
}

#[test]
fn max_transfer_size_of_one_zone_bounds_its_transfers() {
    let primary = primary("transfer: any", "");
    let primaries = format!("\"{}\"", primary.address());
    let mut server = super::secondary(&primaries, "transfer-size: 4KiB");
    server.wait_for_log("no transfer");
    assert!(!has_zone(&server));
    let server = super::secondary(&primaries, "transfer-size: 64KiB");
    eventually("the zone", || has_zone(&server));
}

/// Starts a primary that begins a transfer and sends a record now and then, for ever.
fn dripping() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || drip(stream));
        }
    });
    address
}

/// Answers one query after the other; what asks for the zone gets ever more of it.
fn drip(mut stream: TcpStream) -> Option<()> {
    loop {
        let mut length = [0; 2];
        stream.read_exact(&mut length).ok()?;
        let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut query).ok()?;
        let qtype = Message::parse(&query).ok()?.question?.qtype;
        stream.write_all(&framed(&record_for(&query, Rtype::SOA))).ok()?;
        if qtype == Rtype::SOA {
            continue;
        }
        // Each pause ends without a query.
        stream.set_read_timeout(Some(Duration::from_millis(50))).ok()?;
        while matches!(stream.read(&mut length), Err(why) if why.kind() == ErrorKind::WouldBlock) {
            stream.write_all(&framed(&record_for(&query, Rtype::A))).ok()?;
        }
        return None;
    }
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes()[..], message].concat()
}

/// Returns a reply with one record of the zone's own name.
fn record_for(query: &[u8], rtype: Rtype) -> Vec<u8> {
    let message = Message::parse(query).expect("a query");
    let question = message.question.expect("a question");
    let mut out = vec![0; 512];
    let mut writer = Writer::new(&mut out, 512, message.header.id, Flags::QR.with(Flags::AA));
    writer.question(&question).expect("room");
    let soa = [&[0, 0][..], &99_u32.to_be_bytes(), &[0, 0, 14, 16].repeat(4)].concat();
    let data = if rtype == Rtype::SOA { &soa[..] } else { &[192, 0, 2, 9] };
    let (qname, class) = (question.qname, question.qclass);
    writer
        .record(Section::Answer, qname, rtype, class, Ttl::new(60), |writer| writer.bytes(data))
        .expect("room");
    let len = writer.finish();
    out.truncate(len);
    out
}

#[test]
fn max_transfer_time_of_one_zone_ends_a_transfer_that_takes_longer() {
    let primary = primary("transfer: any", "");
    let primaries = format!("\"{}\", \"{}\"", dripping(), primary.address());
    let mut server = super::secondary(&primaries, "transfer-time: 1s");
    // What the first one does would go on for hours.
    eventually("the zone, from the other one", || has_zone(&server));
    server.wait_for_log("no transfer");
}

#[test]
fn without_a_resolver_the_servers_for_hosts_are_asked() {
    let primary = primary("transfer: any", "");
    let has_moved = Arc::new(AtomicBool::new(true));
    let names = names(&has_moved);
    let server = Server::start(&format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\", resolvers: [\"{}\"]}}\nlisten: [\"@ADDRESS@\"]\n\
         zones: [{{name: example.org, primaries: [\"ns.example.net:{}\"]}}]\n\
         policy: {{main: [{{do: reject(refused)}}]}}\n",
        names.address(),
        primary.address().port()
    ));
    eventually("the zone", || has_zone(&server));
    assert!(names.count("ns.example.net.") > 0);
}

#[test]
fn who_is_notified_is_not_known_by_a_name() {
    let directory = directory_with_org();
    let file = directory.path().join("gannet.yaml");
    std::fs::write(&file, "zones: [{name: example.org, file: org, notify: [ns.example.net]}]\n")
        .expect("a writable directory");
    let output = testkit::program(Path::new(directory.path())).args(["check", "gannet.yaml"]).output();
    let output = output.expect("gannet runs");
    let said = testkit::said(&output);
    assert!(!output.status.success() && said.contains("\"ns.example.net.\" is not the address"), "{said}");
}

/// Returns the zone with this serial and this address of `www`.
fn text(serial: u32, address: &str) -> String {
    format!(
        "example.org. 300 IN SOA ns.example.net. admin.example.net. {serial} 7200 600 86400 300\n\
         example.org. 300 IN NS ns.example.net.\nwww.example.org. 300 IN A {address}\n"
    )
}

/// Starts a secondary of files.
fn from_web(urls: &[String], more: &str) -> Server {
    Server::start(&web_config(urls, more))
}

fn web_config(urls: &[String], more: &str) -> String {
    let urls: Vec<String> = urls.iter().map(|url| format!("\"{url}\"")).collect();
    format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         transfers: {{size: 1MiB}}\n\
         zones: [{{name: example.org, urls: [{}], notify-from: [loopback]{more}}}]\n\
         policy: {{main: [{{do: reject(refused)}}]}}\n",
        urls.join(", ")
    )
}

fn address(server: &Server) -> String {
    server.dig_short(&["www.example.org", "A"]).concat()
}

#[test]
fn a_zone_is_fetched_from_a_web_server_and_again_only_when_it_has_changed() {
    let web = Web::start(|request| match request.headers.get("if-none-match") {
        Some(known) if known == "\"one\"" => Page::status("304 Not Modified", ""),
        _ => Page::found(text(7, "192.0.2.7")).header("ETag", "\"one\""),
    });
    let urls = [web.url("/zone")];
    let server = from_web(&urls, ", write-to: copy");
    eventually("the zone", || address(&server) == "192.0.2.7");
    let requests = web.heard().len();
    eventually("a request that costs nothing", || {
        notify(&server);
        web.heard().len() > requests
    });
    assert!(web.heard().iter().skip(1).all(|request| request.headers.contains_key("if-none-match")));
    assert_eq!(address(&server), "192.0.2.7");
    web.behave(|_| Page::found(text(8, "192.0.2.8")));
    eventually("the new version", || {
        notify(&server);
        address(&server) == "192.0.2.8"
    });
    // It is served before it is written.
    eventually("the file of the new version", || {
        let copy = std::fs::read_to_string(server.directory().join("copy"));
        copy.is_ok_and(|copy| copy.contains("192.0.2.8"))
    });
    // It is kept over a restart, whatever has become of the web server.
    let (_, _, directory) = server.stop();
    web.behave(|_| Page::status("404 Not Found", "nothing"));
    let server = Server::start_in(directory, &web_config(&urls, ""));
    assert_eq!(address(&server), "192.0.2.8");
}

#[test]
fn a_zone_that_is_not_kept_is_gone_after_a_restart_unless_its_file_has_it() {
    let web = Web::start(|_| Page::found(text(7, "192.0.2.7")));
    let urls = [web.url("/zone")];
    let server = from_web(&urls, ", keep: false");
    eventually("the zone", || address(&server) == "192.0.2.7");
    let (_, _, directory) = server.stop();
    assert!(!directory.path().join("zones").exists(), "nothing is written down");
    web.behave(|_| Page::status("404 Not Found", "nothing"));
    let server = Server::start_in(directory, &web_config(&urls, ", keep: false, write-to: copy"));
    assert_eq!(address(&server), "");
    web.behave(|_| Page::found(text(8, "192.0.2.8")));
    eventually("the zone and its file", || {
        notify(&server);
        server.directory().join("copy").exists()
    });
    let (_, _, directory) = server.stop();
    web.behave(|_| Page::status("404 Not Found", "nothing"));
    let server = Server::start_in(directory, &web_config(&urls, ", keep: false, write-to: copy"));
    assert_eq!(address(&server), "192.0.2.8");
}

/// Returns the lines of the log about files that were not taken.
fn refusals(server: &mut Server) -> Vec<String> {
    let lines = server.log().iter();
    lines.filter(|line| line.contains("was not taken from a web server")).cloned().collect()
}

#[test]
fn a_file_that_is_not_the_zone_leaves_the_version_that_was_good() {
    let web = Web::start(|_| Page::found(text(7, "192.0.2.7")));
    let mut server = from_web(&[web.url("/zone")], "");
    eventually("the zone", || address(&server) == "192.0.2.7");
    let large = format!("{}; {}\n", text(9, "192.0.2.9"), "x".repeat(2 << 20));
    for (page, why) in [
        (Page::found("<html>not found</html>\n"), "expected"),
        (Page::status("500 Internal Server Error", text(9, "192.0.2.9")), "500"),
        (Page::found(text(6, "192.0.2.6")), "its serial 6 is older than ours, 7"),
        (Page::found(large), "more than 1048576 octets"),
        (Page::found(text(9, "192.0.2.9")).cut_off(), "was not taken"),
        (Page::found(format!("{}$INCLUDE /etc/passwd\n", text(9, "192.0.2.9"))), "line 4"),
        (Page::found(text(9, "192.0.2.9").replace("example.org.", "example.com.")), "was not taken"),
    ] {
        let before = refusals(&mut server).len();
        web.behave(move |_| page.clone());
        notify(&server);
        eventually("the file is refused", || refusals(&mut server).len() > before);
        let line = refusals(&mut server).last().cloned().unwrap_or_default();
        assert!(line.contains(why), "{why}: {line}");
        assert_eq!(address(&server), "192.0.2.7");
        let status = testkit::said(&server.command(&["zone", "status", "example.org"]));
        assert!(status.contains("/zone: "), "{status}");
    }
    web.behave(|_| Page::found(text(8, "192.0.2.8")));
    eventually("the next good one", || {
        notify(&server);
        address(&server) == "192.0.2.8"
    });
}

#[test]
fn files_are_fetched_in_order_when_no_primary_answers() {
    let gone = Web::start(|_| Page::status("404 Not Found", "nothing"));
    let good = Web::start(|_| Page::found(text(7, "192.0.2.7")));
    let never = Web::start(|_| Page::found(text(9, "192.0.2.9")));
    let urls = [gone.url("/zone"), good.url("/zone"), never.url("/zone")];
    let server = from_web(&urls, ", primaries: [\"127.0.0.9:9\"]");
    eventually("the zone", || address(&server) == "192.0.2.7");
    assert!(!gone.heard().is_empty());
    assert!(never.heard().is_empty(), "the one before had it");
    // A primary that answers is enough.
    let primary = primary("transfer: any", "");
    let server = from_web(&urls[2..], &format!(", primaries: [\"{}\"]", primary.address()));
    eventually("the zone of the primary", || has_zone(&server));
    assert!(never.heard().is_empty());
}

#[test]
fn the_server_of_a_url_is_found_by_the_resolver() {
    let web = Web::start(|_| Page::found(text(7, "192.0.2.7")));
    let has_moved = Arc::new(AtomicBool::new(true));
    let names = names(&has_moved);
    let url = format!("http://ns.example.net:{}/zone", web.address().port());
    let server = with_resolver(&names, &format!("{{name: example.org, urls: [\"{url}\"]}}"));
    eventually("the zone", || address(&server) == "192.0.2.7");
    assert!(names.count("ns.example.net.") > 0);
}
