//! Lists in binary formats and from web servers, as clients of the built program meet them.

use std::net::Ipv4Addr;

use tempfile::TempDir;
use testkit::lists::{About, Domain, geoip, geosite, mmdb};
use testkit::web::Request;
use testkit::{Answer, Ask, Page, Script, Server, Stub, Web, eventually, forwarding};
use wire::{OptionCode, Rcode, Rtype};

/// Starts a server whose policy asks these conditions in turn and answers with the code beside the
/// first that holds; an answer with an address is got before, `192.0.2.N` for the name
/// `nN.example`.
fn with_events(files: &[(&str, Vec<u8>)], sets: &str, rules: &[(&str, &str)]) -> Server {
    let directory = TempDir::new().expect("a temporary directory");
    for (name, content) in files {
        std::fs::write(directory.path().join(name), content).expect("a writable directory");
    }
    let stub = Stub::start(Script::answering(|asked| {
        let octets = asked.qname.trim_end_matches(".example.").split('-');
        let octets: Vec<u8> = octets.filter_map(|octet| octet.parse().ok()).collect();
        match <[u8; 4]>::try_from(octets) {
            Ok(octets) => Answer::a(300, Ipv4Addr::from(octets)),
            Err(_) => Answer::a(300, Ipv4Addr::LOCALHOST),
        }
    }));
    let rules: String = rules
        .iter()
        .map(|(condition, rcode)| format!("    - {{if: '{condition}', do: reject({rcode})}}\n"))
        .collect();
    let policy = format!(
        "trusted-peers: 127.0.0.1\npolicy:\n  main:\n    - if: qname == localhost\n      do: local\n    - forward(default)\n{rules}sets:\n{sets}"
    );
    let server = Server::start_in(directory, &forwarding(&[&stub], &policy));
    // The answers are only needed while the queries of the test run: the stub lives as long as the
    // server.
    Box::leak(Box::new(stub));
    server
}

#[track_caller]
fn check(server: &Server, expect: Rcode, names: &[&str]) {
    for name in names {
        assert_eq!(server.ask(&Ask::new(name, Rtype::A)).rcode(), expect, "{name}");
    }
}

/// Asks as a trusted forwarder does for the client with this address.
fn asked_by(server: &Server, client: [u8; 4]) -> Rcode {
    let subnet = [&[0, 1, 32, 0][..], &client].concat();
    server.ask(&Ask::new("www.example", Rtype::A).option(OptionCode::CLIENT_SUBNET, &subnet)).rcode()
}

#[test]
fn parts_of_a_geosite_file_are_chosen_by_code_and_attribute() {
    let file = geosite(&[
        (
            "GOOGLE",
            &[
                (Domain::Suffix, "google.example", &[]),
                (Domain::Full, "ads.google.example", &["ads"]),
                (Domain::Full, "cn.google.example", &["ads", "cn"]),
            ],
        ),
        ("CN", &[(Domain::Keyword, "needle", &[]), (Domain::Regex, "^qq[0-9]+[.]example$", &[])]),
        ("US", &[(Domain::Suffix, "us.example", &[])]),
    ]);
    let server = with_events(
        &[("geosite.dat", file)],
        "  ads: {lists: \"geosite:geosite.dat:google@ads@!cn\"}\n  \
           plain: {lists: {list: \"geosite:geosite.dat\", select: [\"google@!ads\", CN]}}\n  \
           all: {lists: \"geosite:geosite.dat\"}\n",
        &[("qname in ads", "nxdomain"), ("qname in plain", "notimp"), ("qname in all", "refused")],
    );
    check(&server, Rcode::NXDOMAIN, &["ads.google.example"]);
    check(
        &server,
        Rcode::NOTIMP,
        &["google.example", "cn.google.example", "my-needle.example", "qq7.example"],
    );
    check(&server, Rcode::REFUSED, &["x.us.example"]);
    check(&server, Rcode::NOERROR, &["qqx.example", "example"]);
}

#[test]
fn parts_of_a_geoip_file_are_chosen_by_country() {
    let file = geoip(&[
        ("DE", &["192.0.2.0/25", "2001:db8::/32"]),
        ("FR", &["198.51.100.0/24"]),
        ("PRIVATE", &["10.0.0.0/8", "127.0.0.0/8"]),
    ]);
    let server = with_events(
        &[("geoip.dat", file)],
        "  germany: {lists: \"geoip:geoip.dat:de\"}\n  abroad: {lists: \"geoip:geoip.dat:!private\", except: [france, germany]}\n  \
           france: {lists: \"geoip:geoip.dat:FR\"}\n",
        &[
            ("answer-address in germany", "nxdomain"),
            ("answer-address in abroad", "notimp"),
            ("client in france", "refused"),
        ],
    );
    check(&server, Rcode::NXDOMAIN, &["192-0-2-1.example"]);
    check(&server, Rcode::NOTIMP, &["192-0-2-129.example", "203-0-113-1.example"]);
    check(&server, Rcode::NOERROR, &["10-1-2-3.example", "198-51-100-1.example"]);
    assert_eq!(asked_by(&server, [198, 51, 100, 7]), Rcode::REFUSED);
    assert_eq!(asked_by(&server, [198, 51, 101, 7]), Rcode::NOERROR);
}

#[test]
fn networks_of_a_maxmind_database_are_chosen_by_country_continent_and_system() {
    let countries = mmdb(&[
        ("192.0.2.0/25", About::Country("DE", "EU")),
        ("192.0.2.128/25", About::Country("FR", "EU")),
        ("198.51.100.0/24", About::Country("US", "NA")),
        ("2001:db8::/32", About::Country("DE", "EU")),
        ("127.0.0.0/8", About::Country("ZZ", "ZZ")),
    ]);
    let systems = mmdb(&[("203.0.113.0/24", About::System(64_500)), ("10.0.0.0/8", About::System(64_501))]);
    let server = with_events(
        &[("country.mmdb", countries), ("asn.mmdb", systems)],
        "  germany: {lists: \"mmdb:country.mmdb:DE\"}\n  europe: {lists: \"mmdb:country.mmdb:continent=EU\"}\n  \
           system: {lists: \"mmdb:asn.mmdb:asn=64500\"}\n  american: {lists: \"mmdb:country.mmdb:country=US\"}\n",
        &[
            ("answer-address in germany", "nxdomain"),
            ("answer-address in europe", "notimp"),
            ("answer-address in system", "refused"),
            ("client in american", "formerr"),
        ],
    );
    check(&server, Rcode::NXDOMAIN, &["192-0-2-1.example"]);
    check(&server, Rcode::NOTIMP, &["192-0-2-200.example"]);
    check(&server, Rcode::REFUSED, &["203-0-113-9.example"]);
    check(&server, Rcode::NOERROR, &["198-51-100-1.example", "10-0-0-1.example", "192-0-3-1.example"]);
    assert_eq!(asked_by(&server, [198, 51, 100, 1]), Rcode::FORMERR);
}

// ------------------------------------------------------------------------------------------ lists from web servers

const HELD: Rcode = Rcode::NOTIMP;
const NOT_HELD: Rcode = Rcode::REFUSED;

/// A configuration with a set from a URL, and a schedule that fetches it anew when it is told to.
fn listed(url: &str) -> String {
    let stub_that_is_not_asked = Stub::start(Script::silent());
    forwarding(
        &[&stub_that_is_not_asked],
        &format!(
            "policy:\n  main:\n    - if: qname == localhost\n      do: local\n    - if: qname in listed\n      do: reject(notimp)\n    \
             - if: rd or not rd\n      do: reject(refused)\n    - forward(default)\n\
             sets:\n  listed: {{lists: [{{list: \"names:{url}\", refresh: 1d, size: 2KiB, timeout: 1s}}]}}\n\
             schedules: [{{at: \"0 0 1 1 *\", do: refresh(sets), name: now}}]\n"
        ),
    )
}

fn refresh(server: &Server) {
    // What was begun before may need a moment to come to its end.
    eventually("the schedule begins", || server.command(&["jobs", "--run", "now"]).status.success());
}

fn rcode(server: &Server, name: &str) -> Rcode {
    server.ask(&Ask::new(name, Rtype::A)).rcode()
}

#[test]
fn a_list_from_a_web_server_is_asked_for_once_and_then_for_what_changed() {
    let web = Web::start(|_| Page::found("one.example\n").header("ETag", "\"v1\""));
    let server = Server::start(&listed(&web.url("/list.txt")));
    eventually("the list is in use", || rcode(&server, "x.one.example") == HELD);
    assert_eq!(rcode(&server, "two.example"), NOT_HELD);
    let requests = web.heard();
    assert_eq!((requests.len(), requests[0].line.as_str()), (1, "GET /list.txt HTTP/1.1"));
    assert!(!requests[0].headers.contains_key("if-none-match"));
    // Nothing new: the server says so, and the set stays.
    web.behave(|request: &Request| {
        let knows = request.headers.get("if-none-match").is_some_and(|tag| tag == "\"v1\"");
        if knows { Page::status("304 Not Modified", "") } else { Page::status("500 Forgetful", "") }
    });
    refresh(&server);
    eventually("nothing is new", || server.stat("downloads", "unchanged") == 1);
    assert_eq!((web.heard().len(), server.stat("downloads", "failed")), (2, 0));
    assert_eq!(rcode(&server, "one.example"), HELD);
    // A new one takes its place as a whole.
    web.behave(|_| Page::found("two.example\n").header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT"));
    refresh(&server);
    eventually("the new list is in use", || rcode(&server, "two.example") == HELD);
    assert_eq!(rcode(&server, "one.example"), NOT_HELD);
    web.behave(|request: &Request| {
        let since = request.headers.get("if-modified-since").map(String::as_str);
        let is_known =
            since == Some("Thu, 01 Jan 2026 00:00:00 GMT") && !request.headers.contains_key("if-none-match");
        if is_known { Page::status("304 Not Modified", "") } else { Page::status("500 Forgetful", "") }
    });
    refresh(&server);
    eventually("nothing is new", || server.stat("downloads", "unchanged") == 2);
}

#[test]
fn a_broken_download_never_empties_a_set() {
    let web = Web::start(|_| Page::found("one.example\n"));
    let mut server = Server::start(&listed(&web.url("/list.txt")));
    eventually("the list is in use", || rcode(&server, "one.example") == HELD);
    let large: String = (0..200).map(|number| format!("n{number}.example\n")).collect();
    let broken: [(Page, &str); 7] = [
        (Page::status("500 Oops", "two.example\n"), "the server answers 500"),
        (Page::status("404 Not Found", "two.example\n"), "the server answers 404"),
        (Page::found(""), "it has no rule"),
        (Page::found("<html><body>Please log in.</body></html>\n"), "it has no rule"),
        (Page::found(large), "it has more than 2048 octets"),
        (Page::found("two.example\nthree.example\n").cut_off(), ""),
        (Page::found("two.example\nthree.example\n").stalling(), "timeout"),
    ];
    for (failed, (page, why)) in (1..).zip(broken) {
        web.behave(move |_| page.clone());
        refresh(&server);
        eventually("the download fails", || server.stat("downloads", "failed") == failed);
        assert_eq!((rcode(&server, "one.example"), rcode(&server, "two.example")), (HELD, NOT_HELD), "{why}");
        server.wait_for_log(why);
    }
    // The last good copy is in use after a restart before anything is fetched, and whatever the web
    // server says then.
    let url = web.url("/list.txt");
    let asked = web.heard().len();
    let (status, log, directory) = server.stop();
    assert!(status.success(), "{}", log.join("\n"));
    let server = Server::start_in(directory, &listed(&url));
    assert_eq!(rcode(&server, "one.example"), HELD);
    assert_eq!(web.heard().len(), asked, "it is not a day old");
    // A reload that changes nothing about it does not ask either; a list that is there now takes
    // its place.
    assert!(server.command(&["reload"]).status.success());
    web.behave(|_| Page::found("two.example\n"));
    refresh(&server);
    eventually("the new list is in use", || rcode(&server, "two.example") == HELD);
}

#[test]
fn a_set_without_its_first_list_is_empty_until_it_comes() {
    let web = Web::start(|_| Page::status("503 Later", ""));
    let mut server = Server::start(&listed(&web.url("/list.txt")));
    server.wait_for_log("there is no copy yet");
    assert_eq!(rcode(&server, "one.example"), NOT_HELD);
    web.behave(|_| Page::found("one.example\n"));
    refresh(&server);
    eventually("the list is in use", || rcode(&server, "one.example") == HELD);
}

#[test]
fn lists_are_shown_and_fetched_when_somebody_wants_it() {
    let web = Web::start(|_| Page::status("503 Later", ""));
    let mut server = Server::start(&listed(&web.url("/list.txt")));
    server.wait_for_log("there is no copy yet");
    let said = |arguments: &[&str]| {
        let output = server.command(arguments);
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (code, shown) = said(&["lists"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("listed: 0 rules, ") && shown.contains("not fetched yet, "), "{shown}");
    assert!(shown.contains("ago: the server answers 503"), "{shown}");
    let (code, shown) = said(&["lists", "update", "listed"]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("0 lists fetched, 1 not\n"), "{shown}");
    web.behave(|_| Page::found("one.example\n"));
    let (code, shown) = said(&["lists", "update"]);
    assert_eq!(code, Some(0), "{shown}");
    // It is in use when the command ends.
    assert_eq!(rcode(&server, "one.example"), HELD);
    assert!(shown.starts_with("1 list fetched\nlisted: 1 rule, ") && shown.contains(" fetched "), "{shown}");
    let (_, json) = said(&["lists", "listed", "--json"]);
    assert!(json.contains("\"is-fetched\": true") && json.contains("\"age-s\": "), "{json}");
    let (code, shown) = said(&["lists", "update", "nothing"]);
    assert!(code == Some(1) && shown.contains("there is no set \"nothing\""), "{shown}");
    let (_, metrics) = said(&["stats", "--prometheus"]);
    assert!(metrics.contains("gannet_set_rules{set=\"listed\"} 1\n"), "{metrics}");
    assert!(metrics.contains("gannet_list_age_seconds{set=\"listed\",list=\"1\"} "), "{metrics}");
    let (_, status) = said(&["status"]);
    assert!(status.contains("\nlists          1 rule in 1 set, 1 fetched\n"), "{status}");
}

#[test]
fn web_servers_are_found_by_the_resolvers_that_are_named() {
    let web = Web::start(|_| Page::found("one.example\n"));
    // Cut over UDP: the server comes back over TCP.
    let answers = Script::answering(|asked| match asked.qtype {
        Rtype::A => Answer::a(60, Ipv4Addr::LOCALHOST).alias(60, &asked.qname, "web.test"),
        _ => Answer::negative(Rcode::NOERROR, 60, 60),
    });
    let dns = Stub::start(answers.truncating());
    let url = format!("http://lists.test:{}/list.txt", web.address().port());
    let config =
        listed(&url).replace("workers: 2,", &format!("workers: 2, resolvers: [\"{}\"],", dns.address()));
    let server = Server::start(&config);
    eventually("the list is in use", || rcode(&server, "x.one.example") == HELD);
    assert!(dns.seen().iter().any(|asked| asked.qname == "lists.test." && asked.over_tcp));
    assert_eq!(web.heard()[0].headers["host"], format!("lists.test:{}", web.address().port()));
    // Another resolver after a reload, which does not know the name: the copy stays in use.
    let ignorant = Stub::start(Script::always(Answer::negative(Rcode::NXDOMAIN, 60, 60)));
    server.write_config(
        &listed(&url)
            .replace("workers: 2,", &format!("workers: 2, resolvers: [\"{}\"],", ignorant.address())),
    );
    assert!(server.command(&["reload"]).status.success());
    refresh(&server);
    eventually("the download fails", || server.stat("downloads", "failed") == 1);
    assert!(ignorant.count("lists.test.") >= 1);
    assert_eq!(rcode(&server, "one.example"), HELD);
}

#[test]
fn a_server_that_reads_a_large_list_says_how_far_it_is() {
    let directory = TempDir::new().expect("a temporary directory");
    // Lines count, whatever is on them: empty ones are read quickly.
    let mut list = vec![b'\n'; 1 << 20];
    list.extend(b"one.example\n");
    std::fs::write(directory.path().join("large"), &list).expect("a writable directory");
    let stub = Stub::start(Script::default());
    let policy = "sets: {large: {lists: \"names:large\"}}\npolicy: {main: [local, {if: qname in large, do: reject(nxdomain)}, forward(default)]}";
    let mut server = Server::start_in(directory, &forwarding(&[&stub], policy));
    let line = server.wait_for_log("reading a list");
    for part in ["large", "1048576"] {
        assert!(line.contains(part), "{line}");
    }
    assert_eq!(rcode(&server, "www.one.example"), Rcode::NXDOMAIN);
    // So it does while it runs on.
    list.extend(b"two.example\n");
    let lines =
        |server: &mut Server| server.log().iter().filter(|line| line.contains("reading a list")).count();
    let before = lines(&mut server);
    std::fs::write(server.directory().join("large"), &list).expect("a writable directory");
    eventually("the list is read again", || rcode(&server, "two.example") == Rcode::NXDOMAIN);
    eventually("it says so again", || lines(&mut server) > before);
}
