//! Answering from memory does not allocate: a counting allocator watches while the corpus goes
//! through the engine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use counting::Counting;
use engine::edit::SvcKeys;
use engine::gate::rate::RateRule;
use engine::matchers::TypeSet;
use engine::ops::answer::{Block, BlockWith, Build, Listed, Respond};
use engine::ops::cache::{CacheRules, CacheStep, Early};
use engine::ops::edit::{Edit, Instead, Rebind, Selection};
use engine::ops::forward::ForwardStep;
use engine::ops::outgoing::{Change, OptionChange, OutFlag, SubnetChange};
use engine::program::{Matcher, Op};
use engine::records::RecordsBuilder;
use engine::reverse::ReverseTable;
use engine::{Client, Engine, PoolId, Reply, Transport, Verdict};
use gannet_tests::bare::{
    KEY, TTL, client, engine, engine_of, engine_serving, fetch, later, splitting, warm,
};
use sets::{AddressSet, AddressSetBuilder, BlocklistBuilder, NameSetBuilder, Reach, Treatment, Trigger};
use testkit::corpus::{CACHED, LOCAL, cases};
use testkit::{Answer, Ask, Heard};
use wire::rdata::SvcKey;
use wire::{Class, EdeCode, Flags, OptionCode, Rcode, Rtype, Ttl};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns what `f` returns and how often it allocated.
fn counted<T>(f: impl FnOnce() -> T) -> (T, u64) {
    let before = counting::calls();
    let outcome = f();
    (outcome, counting::calls() - before)
}

/// Answers one query and asserts that this allocates nothing; returns the reply, if there is one.
#[track_caller]
fn answer(engine: &mut Engine, what: &str, query: &[u8], client: &Client) -> Option<Heard> {
    let mut buffer = [0; 65_535];
    let ((has_reply, length), allocations) = counted(|| {
        let mut reply = Reply::new(&mut buffer);
        match engine.answer(query, client, &mut reply) {
            Verdict::Answered => (true, reply.len()),
            Verdict::Drop | Verdict::Stream(_) => (false, 0),
            Verdict::Defer(_) => panic!("{what}: not answered from memory"),
        }
    });
    assert_eq!(allocations, 0, "{what}");
    has_reply.then(|| Heard::new(buffer[..length].to_vec()))
}

#[test]
fn the_counter_counts() {
    assert_eq!(counted(|| 1 + 1).1, 0);
    assert_eq!(counted(|| drop(std::hint::black_box(Box::new(1)))).1, 1);
}

#[test]
fn the_corpus_is_answered_without_allocation() {
    let mut engine = warm(CacheRules::default());
    for transport in Transport::ALL {
        let mut replies = 0;
        let cases = cases();
        for case in &cases {
            replies += usize::from(answer(&mut engine, case.what, &case.bytes, &client(transport)).is_some());
        }
        assert!(replies > cases.len() * 3 / 4, "{replies} replies to {} cases", cases.len());
    }
}

#[test]
fn hits_are_right_and_free() {
    let mut engine = warm(CacheRules::default());
    engine.begin(later(600));
    let udp = client(Transport::Udp);
    let heard =
        answer(&mut engine, "hit", &Ask::new(CACHED, Rtype::A).edns(1232).bytes(), &udp).expect("a reply");
    assert_eq!(heard.answers(), [format!("{CACHED}. {} A 192.0.2.1", TTL - 600)]);
    let heard = answer(&mut engine, "negative", &Ask::new(CACHED, Rtype::MX).bytes(), &udp).expect("a reply");
    assert_eq!((heard.rcode(), heard.authorities().len()), (Rcode::NOERROR, 1));
    let heard =
        answer(&mut engine, "too long", &Ask::new(CACHED, Rtype::TXT).bytes(), &udp).expect("a reply");
    assert!(heard.has(Flags::TC) && heard.bytes().len() <= 512);
    let ask = Ask::new(CACHED, Rtype::TXT).option(OptionCode::TCP_KEEPALIVE, &[]);
    let heard = answer(&mut engine, "whole", &ask.bytes(), &client(Transport::Tcp)).expect("a reply");
    assert_eq!(heard.answers().len(), 10);
    assert!(heard.option(OptionCode::TCP_KEEPALIVE).is_some());
}

#[test]
fn what_the_server_says_about_itself_is_free() {
    let mut engine = warm(CacheRules::default());
    let ask = Ask::new("version.bind", Rtype::TXT).class(Class::CH);
    let heard = answer(&mut engine, "version.bind", &ask.bytes(), &client(Transport::Udp)).expect("a reply");
    assert_eq!(heard.answers(), ["version.bind. 0 TXT \"shown\""]);
}

#[test]
fn cookies_are_free() {
    let mut engine = warm(CacheRules::default());
    let udp = client(Transport::Udp);
    let ask = |cookie: &[u8]| Ask::new(CACHED, Rtype::A).option(OptionCode::COOKIE, cookie).bytes();
    let heard = answer(&mut engine, "client cookie", &ask(&[1; 8]), &udp).expect("a reply");
    let cookie = heard.option(OptionCode::COOKIE).expect("a server cookie");
    let heard = answer(&mut engine, "our cookie", &ask(&cookie), &udp).expect("a reply");
    assert_eq!(heard.rcode(), Rcode::NOERROR);
}

#[test]
fn stale_answers_are_free_once_somebody_refreshes_them() {
    let rules = CacheRules { stale_client_timeout_ms: 0, ..CacheRules::default() };
    let mut engine = warm(rules);
    engine.begin(later(TTL + 10));
    let udp = client(Transport::Udp);
    let query = Ask::new(CACHED, Rtype::A).edns(1232).bytes();
    // The first to find it stale causes the refresh, and that is put aside on the heap.
    let mut buffer = [0; 1232];
    assert!(matches!(engine.answer(&query, &udp, &mut Reply::new(&mut buffer)), Verdict::Answered));
    assert!(engine.next_prefetch().is_some());
    let heard = answer(&mut engine, "stale", &query, &udp).expect("a reply");
    assert_eq!(heard.ttls(), [30]);
    assert_eq!(heard.errors().first().map(|(code, _)| *code), Some(3));
}

#[test]
fn remembered_failures_are_free() {
    let mut engine = warm(CacheRules::default());
    let ask = Ask::new("broken.example.org", Rtype::A).edns(1232);
    fetch(&mut engine, &ask, None);
    let heard = answer(&mut engine, "failure", &ask.bytes(), &client(Transport::Udp)).expect("a reply");
    assert_eq!(heard.rcode(), Rcode::SERVFAIL);
    assert!(!heard.errors().is_empty());
}

#[test]
fn turning_strangers_and_floods_away_is_free() {
    let rule = RateRule {
        per_second: 1,
        burst: 2,
        slip: 2,
        ipv4_prefix: 24,
        ipv6_prefix: 56,
        ..RateRule::default()
    };
    let mut engine = engine(Some(rule), CacheRules::default());
    let query = Ask::new(LOCAL, Rtype::A).edns(1232).bytes();
    let stranger = Client { address: IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1)), ..client(Transport::Udp) };
    let heard = answer(&mut engine, "stranger", &query, &stranger).expect("a reply");
    assert_eq!(heard.rcode(), Rcode::REFUSED);
    let replies: Vec<_> =
        (0..20).map(|_| answer(&mut engine, "flood", &query, &client(Transport::Udp))).collect();
    assert!(replies.iter().any(Option::is_none));
    assert!(replies.iter().flatten().any(|heard| heard.has(Flags::TC)));
    let cookie = Ask::new(LOCAL, Rtype::A).option(OptionCode::COOKIE, &[1; 8]).bytes();
    let heard = answer(&mut engine, "flood with cookie", &cookie, &client(Transport::Udp)).expect("a reply");
    assert_eq!(heard.rcode(), Rcode::BADCOOKIE);
}

#[test]
fn telling_about_queries_is_free() {
    let (writer, mut reader) = events::ring(0, Arc::default());
    let mut engine = warm(CacheRules::default()).with_events(writer);
    let udp = client(Transport::Udp);
    let query = Ask::new(CACHED, Rtype::A).edns(1232).bytes();
    // Until the ring is full, and when it is.
    for _ in 0..500 {
        answer(&mut engine, "told", &query, &udp);
    }
    assert!(reader.told() > 10 && reader.dropped() > 10, "{} {}", reader.told(), reader.dropped());
    let mut record = events::EventRecord::default();
    assert!(reader.read(&mut record));
    assert_eq!(
        record.view().addresses().map(|address| address.to_string()).collect::<Vec<_>>(),
        ["192.0.2.1"]
    );
}

#[test]
fn copying_messages_for_dnstap_is_free() {
    let tap = Arc::<dnstap::Tap>::default();
    let (writer, mut reader) = dnstap::ring(0, Arc::clone(&tap));
    reader.view().fill_in();
    tap.open(dnstap::Kinds::of(dnstap::Kind::ALL), dnstap::Sampling { one_of: 2, seed: 7 });
    let text =
        "local: {www.example.org: 192.0.2.1}\npolicy: {main: [local]}\ndnstap: {to: \"unix:/d.sock\"}\n";
    let mut engine = configured(text).with_tap(writer);
    let udp = client(Transport::Udp);
    // Until the ring is full, and when it is.
    for id in 0..4000 {
        let query = Ask::new("www.example.org", Rtype::A).id(id).edns(1232).bytes();
        answer(&mut engine, "copied", &query, &udp);
    }
    assert!(reader.view().dropped() > 10, "{}", reader.view().dropped());
    let mut message = dnstap::Message::default();
    assert!(reader.read(&mut message) && message.kind == dnstap::Kind::ClientQuery);
    assert!(reader.read(&mut message) && message.kind == dnstap::Kind::ClientResponse);
}

/// Returns an engine that runs a configuration.
fn configured(text: &str) -> Engine {
    let loaded = settings::load_text(std::path::Path::new("x"), text, &environment::System)
        .unwrap_or_else(|found| panic!("{}\n{text}", found[0].line()));
    let (plans, zones) = gannet_tests::configured::compile(&loaded, &environment::System)
        .unwrap_or_else(|found| panic!("{}", found[0].line()));
    let (reclaim, _) = std::sync::mpsc::channel();
    let cell = engine::SnapshotCell::new(plans.snapshot, reclaim).serving(zones.served().cloned());
    let mut engine = Engine::new(Arc::new(cell), Arc::default());
    engine.begin(later(0));
    engine
}

/// Conditions that look at each thing that conditions can look at.
const CONDITIONS: &[&str] = &[
    "qname in suffix:a.example|exact:b.example|keyword:ads|\"regex:^ad[0-9]+x\"",
    "qname in some",
    "qname in listed or qname in zone or qname in seen",
    "qname starts-with www or qname contains mid or qname matches \"^[a-z]+[0-9]+$\"",
    "qtype in [AAAA, TYPE65280] or rd and cd or ad and do",
    "qclass == IN and opcode == query",
    "edns and edns-option in nsid|65001 or edns-size < 600",
    "qname-labels > 20 or qname-length > 200 or subnet-ipv4-bits > 24 or subnet-ipv6-bits > 56",
    "client in some or client in seen-addresses or client starts-with \"10.\"",
    "client-mac == 00:00:5e:00:53:01 or client-id matches \"^a+$\"",
    "transport == tcp or listener == home",
    "sni == dns.example or path is empty or header(user-agent) contains curl",
    "client-certificate or client-certificate(name) == anna.example or client-certificate(subject) contains anna",
    "now in hours(\"mon-fri 21:00-07:00\", \"day 1-7\", \"Europe/Berlin\")",
    "random < 50%",
    "rate(client/24/48, qname/2, qtype, listener) > 5/s burst 3",
    "mark in [2, 3] or mark == 1 or env(HOME) or env(NO_SUCH_VARIABLE) == berlin",
    "answer and answered and rcode == nxdomain and answer has A",
    "ns-name in suffix:c.example or ns-name in zone or ns-address in 10.0.0.0/8|zone",
    "security == secure or security in [bogus, unchecked]",
    "answer-address in some or answer-cname in some or answer-address is empty",
    "answer-address in 192.0.2.0/24 and answer-cname in suffix:c.example",
    "ptr-address in 10.0.0.0/8",
];

/// What the policies of these tests name.
struct World {
    directory: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::TempDir::new().expect("a temporary directory");
        let write = |name: &str, text: &str| {
            std::fs::write(directory.path().join(name), text).expect("a file is written");
        };
        write(
            "adguard",
            "||ads.example^\n@@||good.ads.example^\n||txt.example^$dnstype=TXT\n||mine.example^$client=127.0.0.1\n\
             ||alias.example^$dnsrewrite=www.c.example\n/^ad[0-9]+x/\n",
        );
        write(
            "rpz",
            "$TTL 60\n@ SOA a.example. b.example. 1 2 3 4 5\n nodata.example *.\nown.example A 192.0.2.3\n\
             32.66.2.0.192.rpz-ip CNAME .\n",
        );
        write("map", "old.example www.c.example\n");
        write("zoned", "$TTL 60\n@ SOA ns a 1 2 3 4 5\n@ NS ns\nns A 192.0.2.5\n");
        write("hosts", "192.0.2.8 here.example\n");
        Self { directory }
    }

    /// Returns an engine with this policy, which tells a ring that nobody reads, and that ring.
    fn engine(&self, rules: &str) -> (Engine, events::EventReader) {
        let directory = self.directory.path().display();
        let text = format!(
            "upstreams: {{default: {{servers: 192.0.2.1}}}}\n\
             listen: [{{at: \"127.0.0.1:0\", name: home}}]\n\
             trusted-peers: 127.0.0.0/8\n\
             recorder: {{file: queries.db, queries: chosen}}\n\
             hosts: {{files: \"{directory}/hosts\"}}\n\
             local: {{nas.example: [192.0.2.9]}}\n\
             cache: {{main: {{}}}}\n\
             zones:\n  - {{name: zoned.example, file: \"{directory}/zoned\"}}\n  \
             - {{name: inner.example, file: \"{directory}/zoned\", set: inside, make: [{{prefix: h-, networks: 192.0.2.0/24}}], \
             choose: [{{name: www.inner.example, type: A, from: [{{data: 192.0.2.6, clients: lan}}, {{data: 192.0.2.7}}]}}]}}\n\
             records: {{own: {{text: \"www.own.example. 60 A 192.0.2.4\"}}}}\n\
             effects:\n  tell: {{type: script, command: \"true\"}}\n\
             sets:\n  some: {{names: [suffix:c.example], addresses: [10.0.0.0/8]}}\n  \
             listed: {{lists: \"adguard:{directory}/adguard\"}}\n  zone: {{lists: \"rpz:{directory}/rpz\"}}\n  \
             seen: {{dynamic: {{holds: names}}}}\n  seen-addresses: {{dynamic: {{holds: addresses}}}}\n\
             policy:\n  \
             one: [respond(answer \"@ 60 A 192.0.2.1\")]\n  \
             bad: [reject(servfail)]\n  \
             marked: [mark(7)]\n  \
             main:\n{}",
            rules.replace("MAP", &format!("{directory}/map"))
        );
        let (writer, reader) = events::ring(0, Arc::default());
        (configured(&text).with_events(writer), reader)
    }
}

#[test]
fn conditions_are_free() {
    let world = World::new();
    for condition in CONDITIONS {
        // Once without an answer, and once with one.
        let (mut engine, _) = world.engine(&format!(
            "    - if: {condition}\n      do: mark(1)\n\
             \x20   - respond(answer \"@ 60 CNAME x.c.example.\"|\"x.c.example. 60 A 192.0.2.1\", continue)\n\
             \x20   - if: {condition}\n      do: mark(2)\n    - reject(nxdomain)\n"
        ));
        for transport in [Transport::Udp, Transport::Tcp] {
            for ask in [
                Ask::new("www.c.example", Rtype::A),
                Ask::new("x.ads.example", Rtype::TXT),
                Ask::new("4.3.2.10.in-addr.arpa", Rtype::PTR).edns(1232),
                Ask::new("a17.example", Rtype::AAAA).option(OptionCode(65001), b"\x00\x00\x5e\x00\x53\x01"),
                Ask::new("x.example", Rtype::A).option(OptionCode(65074), b"aaa").dnssec(),
                Ask::new(&"deep.".repeat(12), Rtype::A),
            ] {
                let heard = answer(&mut engine, condition, &ask.bytes(), &client(transport));
                assert_eq!(heard.map(|heard| heard.rcode()), Some(Rcode::NXDOMAIN), "{condition}");
            }
        }
    }
    for field in policy::condition::FIELDS {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let words = || CONDITIONS.iter().flat_map(|condition| condition.split(|c| !is_part(c)));
        assert!(words().any(|word| word == field.word), "no condition here looks at `{}`", field.word);
    }
}

/// Actions that wait, for another server or for time to pass.
const WAITING: [&str; 3] = ["forward", "recurse", "sleep"];

/// An action, the rules around it where `…` stands for an answer with two addresses, the question,
/// and what is answered.
type Case = (&'static str, &'static str, (&'static str, Rtype), (Rcode, usize));

/// Every action that does not wait.
#[rustfmt::skip]
const ACTIONS: &[Case] = &[
    ("hosts", "- hosts", ("here.example", Rtype::A), (Rcode::NOERROR, 1)),
    ("local", "- local", ("nas.example", Rtype::A), (Rcode::NOERROR, 1)),
    ("zones", "- zones", ("ns.zoned.example", Rtype::A), (Rcode::NOERROR, 1)),
    ("zones", "- zones(inside)", ("h-192-0-2-9.inner.example", Rtype::A), (Rcode::NOERROR, 1)),
    ("zones", "- zones(inside)", ("www.inner.example", Rtype::A), (Rcode::NOERROR, 1)),
    ("records", "- records(own)", ("www.own.example", Rtype::A), (Rcode::NOERROR, 1)),
    ("block", "- block", ("x.example", Rtype::A), (Rcode::NOERROR, 1)),
    ("block", "- block(nxdomain, ede filtered, text \"no\")", ("x.example", Rtype::A), (Rcode::NXDOMAIN, 0)),
    ("block", "- block(192.0.2.1, continue)", ("x.example", Rtype::A), (Rcode::NOERROR, 1)),
    ("respond", "- respond(answer \"@ 60 CNAME cdn\"|\"cdn 60 A 192.0.2.1\")", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("remember", "- …\n- remember", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("reverse", "- if: qtype == PTR\n  do: reverse\n- …\n- remember", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("reject", "- reject(notimp)", ("x.example", Rtype::A), (Rcode::NOTIMP, 0)),
    ("drop", "- if: qtype == MX\n  do: drop\n- …", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("cache", "- cache(main)\n- …", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("cache", "- cache(main, continue)\n- …", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("fallback", "- fallback(bad, one)", ("x.example", Rtype::A), (Rcode::NOERROR, 1)),
    ("ask", "- ask(one)", ("x.example", Rtype::A), (Rcode::NOERROR, 1)),
    ("race", "- race(bad, one)", ("x.example", Rtype::A), (Rcode::NOERROR, 1)),
    ("redirect", "- redirect(*.old.example, www.own.example)\n- records(own)", ("x.old.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("redirect", "- redirect(map MAP)\n- …", ("old.example", Rtype::A), (Rcode::NOERROR, 3)),
    ("rewrite", "- rewrite(www.own.example)\n- records(own)", ("x.old.example", Rtype::A), (Rcode::NOERROR, 1)),
    ("prefer-ipv4", "- prefer-ipv4\n- …", ("x.example", Rtype::AAAA), (Rcode::NOERROR, 0)),
    ("prefer-ipv6", "- prefer-ipv6\n- …", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("dns64", "- dns64\n- …", ("x.example", Rtype::AAAA), (Rcode::NOERROR, 2)),
    ("quickest", "- …\n- quickest", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("forget", "- …\n- forget\n- reject(nxdomain)", ("x.example", Rtype::A), (Rcode::NXDOMAIN, 0)),
    ("truncate", "- …\n- truncate", ("x.example", Rtype::A), (Rcode::NOERROR, 0)),
    ("accept", "- …\n- {if: qtype == A, do: accept}\n- reject(nxdomain)", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("mark", "- mark(1)\n- if: mark == 1\n  do: …", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("unmark", "- mark(1)\n- unmark(1)\n- mark(2)\n- unmark\n- if: not mark in [1, 2]\n  do: …", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("call", "- call(marked)\n- if: mark == 7\n  do: …", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("goto", "- goto(one)", ("x.example", Rtype::A), (Rcode::NOERROR, 1)),
    ("return", "- …\n- return", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("ttl", "- …\n- ttl(min 1h, max 2h)\n- ttl(jitter 10%)", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("remove", "- …\n- remove(address 10.0.0.0/8|some)", ("x.example", Rtype::A), (Rcode::NOERROR, 1)),
    ("remove", "- …\n- remove(A)", ("x.example", Rtype::A), (Rcode::NOERROR, 0)),
    ("keep", "- …\n- keep(address 10.0.0.0/8)", ("x.example", Rtype::A), (Rcode::NOERROR, 1)),
    ("flatten", "- respond(answer \"@ 60 CNAME cdn\"|\"cdn 60 A 192.0.2.1\", continue)\n- flatten", ("x.example", Rtype::A), (Rcode::NOERROR, 1)),
    ("strip", "- respond(answer \"@ 60 HTTPS 1 . alpn=h2 ech=AAAA\", continue)\n- strip(ech, hints)", ("x.example", Rtype::HTTPS), (Rcode::NOERROR, 1)),
    ("sort", "- …\n- sort(10.0.0.0/8)\n- sort(client)", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("shuffle", "- …\n- shuffle", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("limit", "- …\n- limit(1)", ("x.example", Rtype::A), (Rcode::NOERROR, 1)),
    ("rebind", "- …\n- rebind(filter, except suffix:corp.example)", ("x.example", Rtype::A), (Rcode::NOERROR, 1)),
    ("ede", "- …\n- ede(4, \"changed\")", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("effect", "- effect(tell)\n- …", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("nftset", "- nftset(\"inet fw4 video4\")\n- …", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("ipset", "- ipset(set4 video, timeout 1h)\n- …", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("record", "- record\n- …", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("log", "- log(\"seen\")\n- …", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("query-lines", "- query-lines(question, reply, failure, bogus, reason, destination, zone \"here. static\")\n- …", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("label", "- label(seen)\n- …", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("learn", "- learn(seen)\n- learn(seen-addresses, addresses)\n- …", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("blocklist", "- blocklist(listed)", ("x.ads.example", Rtype::A), (Rcode::NOERROR, 1)),
    ("blocklist", "- blocklist(listed, nxdomain)\n- …", ("txt.example", Rtype::TXT), (Rcode::NXDOMAIN, 0)),
    ("blocklist", "- blocklist(listed, refused)\n- …", ("mine.example", Rtype::A), (Rcode::REFUSED, 0)),
    ("blocklist", "- blocklist(listed, nxdomain)\n- …", ("ad7x.example", Rtype::A), (Rcode::NXDOMAIN, 0)),
    ("blocklist", "- blocklist(listed, nxdomain)\n- …", ("good.ads.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("blocklist", "- blocklist(zone)", ("own.example", Rtype::A), (Rcode::NOERROR, 1)),
    ("blocklist", "- blocklist(zone, nxdomain, override, without-addresses)", ("own.example", Rtype::A), (Rcode::NXDOMAIN, 0)),
    ("blocklist", "- if: listed in zone\n  do: reject(notimp)", ("own.example", Rtype::A), (Rcode::NOTIMP, 0)),
    ("ecs", "- ecs(client, ipv4 24, ipv6 56)\n- cache(main)\n- …", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("options", "- options(65001 0a0b, 65002 forward)\n- …", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
    ("outgoing", "- outgoing(dnssec on, case keep)\n- cache(main)\n- …", ("x.example", Rtype::A), (Rcode::NOERROR, 2)),
];

#[test]
fn every_action_that_does_not_wait_is_free() {
    const TWO: &str = "respond(answer \"@ 60 A 192.0.2.1\"|\"@ 60 A 10.0.0.1\", continue)";
    let world = World::new();
    let mut wrong = Vec::new();
    for (word, rules, (name, qtype), expected) in ACTIONS {
        let rules: String = rules.lines().map(|line| format!("    {}\n", line.replace('…', TWO))).collect();
        let (mut engine, _reader) = world.engine(&rules);
        let udp = client(Transport::Udp);
        let query = Ask::new(name, *qtype).edns(1232).bytes();
        if *word == "quickest" {
            // The first answer with an address makes room for distances, once in a worker's life.
            let mut buffer = [0; 1232];
            assert!(matches!(engine.answer(&query, &udp, &mut Reply::new(&mut buffer)), Verdict::Answered));
        }
        // Until the ring of what is told is full, and when it is.
        for _ in 0..300 {
            let heard = answer(&mut engine, &rules, &query, &udp).expect("a reply");
            if (heard.rcode(), heard.answers().len()) != *expected {
                wrong.push(format!("{rules}{heard:?}"));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for row in policy::action::rows() {
        let is_here = ACTIONS.iter().any(|(word, ..)| *word == row.word);
        assert_eq!(is_here, !WAITING.contains(&row.word), "`{}`", row.word);
    }
}

#[test]
fn what_is_learned_is_found_without_allocation() {
    let names = sets::DynamicNames::new(&KEY, 100, Some(60));
    names.add(testkit::name("learned.example").as_name(), 0, None);
    names.add_alone(testkit::name("alone.example").as_name(), 0, None);
    let mut builder = NameSetBuilder::new(&KEY);
    builder.live(Arc::new(names));
    let in_set = Op::SkipUnless(Matcher::Qname(Arc::new(builder.compile())), 1);
    let mut engine =
        engine_of(None, vec![in_set, Op::Reject(Rcode::NXDOMAIN, None), Op::Reject(Rcode::NOTIMP, None)]);
    for (name, rcode) in [
        ("www.learned.example", Rcode::NXDOMAIN),
        ("alone.example", Rcode::NXDOMAIN),
        ("www.alone.example", Rcode::NOTIMP),
        ("a.b.c.d.e.f.g.h.i.j.learned.example", Rcode::NXDOMAIN),
    ] {
        let query = Ask::new(name, Rtype::A).bytes();
        let heard = answer(&mut engine, name, &query, &client(Transport::Udp)).expect("a reply");
        assert_eq!(heard.rcode(), rcode, "{name}");
    }
}

#[test]
fn a_list_that_changes_is_asked_without_allocation() {
    let mut rules = NameSetBuilder::new(&KEY);
    for (line, name) in (1..).zip(["stays.example", "goes.example"]) {
        rules.name(testkit::name(name).as_name(), Reach::ItselfAndBelow, line);
    }
    let names = rules.compile_changing(10);
    let none = sets::RulesOfName::default();
    assert!(names.set(testkit::name("goes.example").as_name(), none));
    assert!(names.set(testkit::name("comes.example").as_name(), sets::RulesOfName { alone: true, ..none }));
    let mut builder = NameSetBuilder::new(&KEY);
    builder.changing(Arc::new(names));
    let in_set = Op::SkipUnless(Matcher::Qname(Arc::new(builder.compile())), 1);
    let mut engine =
        engine_of(None, vec![in_set, Op::Reject(Rcode::NXDOMAIN, None), Op::Reject(Rcode::NOTIMP, None)]);
    for (name, rcode) in [
        ("a.b.c.d.e.f.g.h.i.j.stays.example", Rcode::NXDOMAIN),
        ("comes.example", Rcode::NXDOMAIN),
        ("www.comes.example", Rcode::NOTIMP),
        ("a.b.c.d.e.f.g.h.i.j.goes.example", Rcode::NOTIMP),
    ] {
        let query = Ask::new(name, Rtype::A).bytes();
        let heard = answer(&mut engine, name, &query, &client(Transport::Udp)).expect("a reply");
        assert_eq!(heard.rcode(), rcode, "{name}");
    }
}

/// Steps that run for one type only.
fn only(qtype: Rtype, op: Op) -> [Op; 2] {
    [Op::SkipUnless(Matcher::Qtype(TypeSet::new([qtype])), 1), op]
}

fn prefix(address: &str, length: u8) -> Arc<AddressSet> {
    let mut builder = AddressSetBuilder::new();
    assert!(builder.prefix(address.parse().expect("an address"), length));
    Arc::new(builder.compile())
}

#[test]
fn making_answers_is_free() {
    let block = |with| {
        let ede = Some((EdeCode::BLOCKED, "a reason".into()));
        Op::Answer(Build::Block(Block {
            with,
            ttl: Ttl::new(60),
            ede,
            continues: false,
            authoritative: false,
            has_soa: true,
        }))
    };
    let mut records = RecordsBuilder::new();
    let name = testkit::name;
    records.add(
        name("alias.example").as_name(),
        Rtype::CNAME,
        Ttl::new(60),
        name("www.example").as_name().as_bytes(),
    );
    records.add(name("*.example").as_name(), Rtype::TXT, Ttl::new(60), b"\x01x");
    records.add(name("www.example").as_name(), Rtype::TXT, Ttl::new(60), b"\x01y");
    let reverse = Arc::new(ReverseTable::new(64, 1));
    reverse.put(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), name("www.example").as_name(), 1, u32::MAX);
    let respond = Respond {
        counts: [1, 0, 0],
        body: (*b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x04\x01a\xc0\x0c").into(),
        relative_octets_max: 2,
        ..Respond::default()
    };
    let addresses = BlockWith::Addresses([Ipv4Addr::UNSPECIFIED].into(), [Ipv6Addr::UNSPECIFIED].into());
    let mut ops = Vec::new();
    ops.extend(only(Rtype::A, block(addresses)));
    ops.extend(only(Rtype::MX, block(BlockWith::Rcode(Rcode::NXDOMAIN))));
    ops.extend(only(Rtype::NS, Op::Answer(Build::Respond(respond))));
    ops.push(Op::Answer(Build::Reverse(reverse)));
    ops.push(Op::Answer(Build::Records { set: Arc::new(records.compile(KEY)), continues: false }));
    let mut engine = engine_of(None, ops);
    let udp = client(Transport::Udp);
    for (name, qtype, rcode, answers) in [
        ("ads.example", Rtype::A, Rcode::NOERROR, 1),
        ("ads.example", Rtype::MX, Rcode::NXDOMAIN, 0),
        ("ads.example", Rtype::NS, Rcode::NOERROR, 1),
        ("1.2.0.192.in-addr.arpa", Rtype::PTR, Rcode::NOERROR, 1),
        ("alias.example", Rtype::TXT, Rcode::NOERROR, 2),
        ("any.example", Rtype::TXT, Rcode::NOERROR, 1),
        ("any.example", Rtype::SRV, Rcode::NOERROR, 0),
    ] {
        let query = Ask::new(name, qtype).edns(1232).bytes();
        let heard = answer(&mut engine, name, &query, &udp).expect("a reply");
        assert_eq!((heard.rcode(), heard.answers().len()), (rcode, answers), "{name} {qtype}");
    }
}

#[test]
fn changing_answers_and_outgoing_queries_is_free() {
    let cache = Arc::new(cache::Cache::new(cache::Limits { octets_max: 1 << 20 }, KEY));
    let step = |continues| {
        Op::Cache(CacheStep { cache: Arc::clone(&cache), rules: CacheRules::default(), view: 0, continues })
    };
    let forward =
        ForwardStep { pool: PoolId(0), members: 0, forwards_client_subnet: false, trusts_ad: false };
    let mut filler = engine_of(None, vec![step(false), Op::Forward(forward)]);
    let addresses = |alias: bool| {
        let some = Answer::a(TTL, Ipv4Addr::new(192, 0, 2, 1)).and(Rtype::A, TTL, &[10, 0, 0, 1]);
        let some = some.and(Rtype::A, TTL, &[198, 51, 100, 1]);
        if alias { some.alias(TTL, "alias.example.org", "edge.example.net") } else { some }
    };
    let mut service = Vec::new();
    let text = "1 . alpn=h2 ipv4hint=10.0.0.1 ech=AAAA";
    wire::rdata::parse_text(Rtype::HTTPS, text, None, &mut service).expect("record data");
    fetch(&mut filler, &Ask::new("plain.example.org", Rtype::A), Some(&addresses(false)));
    fetch(&mut filler, &Ask::new("alias.example.org", Rtype::A), Some(&addresses(true)));
    let https = Answer::default().and(Rtype::HTTPS, TTL, &service);
    fetch(&mut filler, &Ask::new("plain.example.org", Rtype::HTTPS), Some(&https));

    let keys = SvcKeys::default().with(SvcKey::ECH).expect("a small key");
    let private = || prefix("10.0.0.0", 8);
    let subnet = SubnetChange::Client { ipv4: 24, ipv6: 56, keeps: true, private: prefix("127.0.0.0", 8) };
    let option = OptionChange::Set((*b"\xfd\xe9\0\0").into());
    let edits: [(Edit, usize); 12] = [
        (Edit::Jitter(10), 3),
        (Edit::Remove(Selection::Types([Rtype::A].into())), 0),
        (Edit::Remove(Selection::Addresses(private())), 2),
        (Edit::Keep(Selection::Addresses(private())), 1),
        (Edit::Flatten, 3),
        (Edit::StripParams(keys), 3),
        (Edit::Sort([private()].into()), 3),
        (Edit::SortByClient, 3),
        (Edit::Shuffle, 3),
        (Edit::Limit(1), 1),
        (Edit::Rebind(Rebind { private: private(), except: None, instead: Instead::WithoutAddresses }), 2),
        (Edit::Ede(EdeCode::FORGED_ANSWER, "changed".into()), 3),
    ];
    let table = Arc::new(ReverseTable::new(64, 1));
    for (number, (edit, addresses)) in edits.into_iter().enumerate() {
        let removes_aliases = matches!(edit, Edit::Flatten);
        let mut engine = engine_of(
            None,
            vec![
                Op::Outgoing(Change::Subnet(SubnetChange::Strip)),
                Op::Outgoing(Change::Options([].into())),
                step(true),
                Op::Outgoing(Change::Subnet(SubnetChange::Forward)),
                Op::Outgoing(Change::Flag(OutFlag::Dnssec, true)),
                Op::Edit(edit),
                Op::Edit(Edit::Remember(Arc::clone(&table), 60)),
            ],
        );
        for (name, alias) in [("plain.example.org", 0), ("alias.example.org", 1)] {
            let query = Ask::new(name, Rtype::A).edns(1232).bytes();
            let heard = answer(&mut engine, name, &query, &client(Transport::Udp)).expect("a reply");
            let alias = if removes_aliases { 0 } else { alias };
            assert_eq!(heard.answers().len(), addresses + alias, "edit {number} of {name}: {heard:?}");
        }
        let query = Ask::new("plain.example.org", Rtype::HTTPS).bytes();
        let heard = answer(&mut engine, "HTTPS", &query, &client(Transport::Udp)).expect("a reply");
        assert_eq!(heard.answers().len(), 1, "edit {number}");
    }
    let mut engine = engine_of(
        None,
        vec![
            Op::Outgoing(Change::Subnet(subnet)),
            Op::Outgoing(Change::Options([option].into())),
            step(false),
        ],
    );
    let query = Ask::new("plain.example.org", Rtype::A).bytes();
    let heard = answer(&mut engine, "outgoing", &query, &client(Transport::Udp)).expect("a reply");
    assert_eq!(heard.answers().len(), 3);
}

#[test]
fn finding_out_that_rules_leave_an_answer_alone_is_free() {
    let cache = Arc::new(cache::Cache::new(cache::Limits { octets_max: 1 << 20 }, KEY));
    let step = CacheStep { cache, rules: CacheRules::default(), view: 0, continues: true };
    let forward =
        ForwardStep { pool: PoolId(0), members: 0, forwards_client_subnet: false, trusts_ad: false };
    let mut list = BlocklistBuilder::new(&KEY);
    let mut zone = list.zone();
    let bad = testkit::name("bad.example.org");
    let treatment = || Some(Treatment::Rcode(Rcode::NXDOMAIN));
    assert!(zone.rule(Trigger::Name(bad.as_name()), treatment(), 1));
    assert!(zone.rule(Trigger::Client([203, 0, 113, 0].into(), 24), treatment(), 2));
    assert!(zone.rule(Trigger::Answer([203, 0, 113, 0].into(), 24), treatment(), 3));
    list.add_zone(zone.compile());
    let names = Arc::new(NameSetBuilder::new(&KEY).compile());
    let list = Arc::new(list.compile(names, Vec::new(), Vec::new()));
    let listed = || {
        let with = BlockWith::Rcode(Rcode::NXDOMAIN);
        let (ttl, ede) = (Ttl::new(60), None);
        let block = Block { with, ttl, ede, authoritative: true, has_soa: false, continues: false };
        let list = Arc::clone(&list);
        Op::Answer(Build::Listed(Listed { list, block, overrides: false, by_address: true, labels: None }))
    };
    let in_view = Matcher::Client(prefix("198.51.100.0", 24));
    let mut engine = engine_of(
        None,
        vec![
            Op::Cache(step.early(Early::Yes)),
            Op::SkipUnless(in_view, 1),
            Op::Drop,
            listed(),
            Op::Cache(step),
            Op::SkipIf(Matcher::Answer, 1),
            Op::Forward(forward),
            listed(),
        ],
    );
    let ask = Ask::new("plain.example.org", Rtype::A).edns(1232);
    fetch(&mut engine, &ask, Some(&Answer::a(TTL, Ipv4Addr::new(192, 0, 2, 1))));
    let query = ask.bytes();
    for what in ["finding out", "early", "early again"] {
        let heard = answer(&mut engine, what, &query, &client(Transport::Udp)).expect("a reply");
        assert_eq!(heard.answers().len(), 1, "{what}");
    }
}

#[test]
fn asking_in_several_ways_is_free_as_long_as_memory_answers() {
    let mut engine = splitting();
    // The first answer with an address makes room for distances, once in a worker's life.
    let mut buffer = [0; 1232];
    let query = Ask::new(CACHED, Rtype::A).bytes();
    let first = engine.answer(&query, &client(Transport::Udp), &mut Reply::new(&mut buffer));
    assert!(matches!(first, Verdict::Answered));
    let (v4, v6) = ("A 192.0.2.1".to_string(), "AAAA ::1".to_string());
    for (name, qtype, expected) in [
        (CACHED, Rtype::A, vec![format!("{CACHED}. 60 {v4}")]),
        (
            "alias.example.org",
            Rtype::A,
            vec![format!("alias.example.org. 3600 CNAME {CACHED}."), format!("{CACHED}. 60 {v4}")],
        ),
        ("x.hidden.example.org", Rtype::AAAA, vec![format!("x.hidden.example.org. 60 {v6}")]),
        ("v4.example.org", Rtype::A, vec![format!("v4.example.org. 60 {v4}")]),
        ("v4.example.org", Rtype::AAAA, vec![]),
        ("nowhere.example.org", Rtype::A, vec![]),
    ] {
        for transport in [Transport::Udp, Transport::Tcp] {
            let query = Ask::new(name, qtype).edns(1232).bytes();
            let heard = answer(&mut engine, name, &query, &client(transport)).expect("a reply");
            let shown: Vec<String> = heard.answers();
            let strip = |text: &String| text.replace(" 3600 CNAME", " 60 CNAME");
            assert_eq!(
                shown.iter().map(strip).collect::<Vec<_>>(),
                expected.iter().map(strip).collect::<Vec<_>>(),
                "{name} {qtype}"
            );
        }
    }
    let query = Ask::new("made.example.org", Rtype::AAAA).edns(1232).bytes();
    let heard = answer(&mut engine, "made", &query, &client(Transport::Udp)).expect("a reply");
    assert_eq!(heard.answers().len(), 2, "an alias and the address that is there");
    let reverse = format!("{}.ip6.arpa", "1.0.0.0.".repeat(6) + "b.9.f.f.4.6.0.0");
    answer(&mut engine, "reverse", &Ask::new(&reverse, Rtype::PTR).bytes(), &client(Transport::Udp))
        .expect("a reply");
}

/// A zone with all that answers are made of; the chain of proofs covers what it says, whether or
/// not that is so.
const ZONE: &str = "$TTL 60\n@ SOA ns a 1 2 3 4 5\n@ RRSIG SOA 13 2 60 20300101000000 20200101000000 1 @ AAAA\n\
    @ NS ns\n@ MX 1 ns\nns A 192.0.2.1\nsub NS ns.sub\nns.sub A 192.0.2.2\n*.w TXT x\nc CNAME d.w\nold DNAME w\nloop CNAME loop\n";

#[test]
fn zones_are_answered_without_allocation() {
    let name = wire::NameBuf::from_text("zone.example").expect("a name");
    let nsec = "@ NSEC *.w NS SOA\n*.w NSEC @ TXT\n";
    let hash = "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom";
    let nsec3 = format!("@ NSEC3PARAM 1 0 3 ab\n{hash} NSEC3 1 1 3 ab {hash} A\n");
    for proofs in ["", nsec, nsec3.as_str()] {
        let text = format!("{ZONE}{proofs}");
        let loaded = zone::load(name.as_name(), "zone", text.as_bytes(), &mut zone::master::NoIncludes, KEY);
        let loaded = loaded.zone.unwrap_or_else(|| panic!("{:?}", loaded.findings));
        let zones = Arc::new(zone::Zones::new(KEY, vec![Arc::new(loaded)]));
        let mut engine = engine_serving(zones);
        let udp = client(Transport::Udp);
        for (qname, qtype, rcode) in [
            ("ns.zone.example", Rtype::A, Rcode::NOERROR),
            ("zone.example", Rtype::MX, Rcode::NOERROR),
            ("a.w.zone.example", Rtype::TXT, Rcode::NOERROR),
            ("a.w.zone.example", Rtype::A, Rcode::NOERROR),
            ("no.zone.example", Rtype::A, Rcode::NXDOMAIN),
            ("w.zone.example", Rtype::A, Rcode::NOERROR),
            ("x.sub.zone.example", Rtype::A, Rcode::NOERROR),
            ("c.zone.example", Rtype::TXT, Rcode::NOERROR),
            ("a.old.zone.example", Rtype::TXT, Rcode::NOERROR),
            ("loop.zone.example", Rtype::A, Rcode::NOERROR),
            ("other.example", Rtype::A, Rcode::REFUSED),
        ] {
            for ask in [Ask::new(qname, qtype), Ask::new(qname, qtype).edns(1232).dnssec()] {
                let heard = answer(&mut engine, qname, &ask.bytes(), &udp).expect("a reply");
                assert_eq!(heard.rcode(), rcode, "{qname} {qtype}");
            }
        }
    }
}
