//! The table of scenarios, and those that wait for a capability.

use std::time::Duration;

use testkit::world::Attack;

use super::internet::{HOSTILE_INTERNET, MIXED_INTERNET, ZONES, far, resolve};
use super::{Internet, Load, Maker, Network, Outage, Questions, Scenario, Series, Upstream};
use crate::load::Transport;
use crate::queries::Extras;
use crate::rules::Shape;
use crate::session::{Change, Event, What};

/// Names in the large set.
const MANY: usize = 100_000;
/// Names in the largest set.
const MILLION: usize = 1_000_000;
/// Names in the small cache.
const FEW: usize = 16;
/// Names in the home cache that users measured.
const HOME: usize = 20_000;
/// Names in the article on dnsdist and AF_XDP.
const ARTICLE: usize = 12_018;
/// Names that are asked again and again, most of them seldom; a small cache has room for one in
/// twenty.
const ZIPF: usize = MILLION;
/// Names that have expired when their upstream goes away.
const EXPIRED: usize = 1_000;
/// Names in the zones with NSEC3.
const HASHED: usize = 1_000;
/// Sockets that queries at a rate come from.
const EVEN: Load = Load::Even(8);
/// dnsperf as ForgeDNS's pages run it.
const SEED: Load = Load::Fixed { clients: 32, addresses: 1, outstanding: 1_024 };
/// Its threads.
const SEED_THREADS: usize = 4;
/// Connections at once where each has one query. Clients have many addresses, so that ports do not
/// run out.
const CONNECTIONS: Load = Load::Fixed { clients: 64, addresses: 64, outstanding: 64 };
/// Times the article's names are asked.
const ARTICLE_PASSES: usize = 10;

const PLAIN: Extras =
    Extras { edns_size: None, wants_dnssec: false, mixed_case: false, wants_verdict: false };
const MIXED: Extras = Extras { mixed_case: true, ..PLAIN };
pub(super) const EDNS: Extras = Extras { edns_size: Some(1232), ..PLAIN };
const DNSSEC: Extras = Extras { wants_dnssec: true, ..EDNS };
pub(super) const VERDICT: Extras = Extras { wants_verdict: true, ..EDNS };

/// Everything that can be measured, Gannet or not.
pub const SCENARIOS: &[Scenario] = &[
    // From memory.
    local("local", "hosts answers, five names, A and AAAA", Questions::Local),
    local("local-tcp", "hosts answers over TCP", Questions::Local).tcp(),
    local("one", "hosts answer, one name", Questions::One),
    local("one-tcp", "hosts answer, one name, over TCP", Questions::One).tcp(),
    cache("cache-warm", "cache hits, 16 names", Questions::Popular(FEW)),
    cache("cache-tcp", "cache hits over TCP, 16 names", Questions::Popular(FEW)).tcp(),
    cache("cache-20k", "cache hits, 20,000 names in random order", Questions::Many(HOME)),
    cache("cache-100k", "cache hits, 100,000 names in random order", Questions::Many(MANY)),
    cache("cache-negative", "cached denials of 16 names", Questions::Denied(FEW)),
    cache("cache-mixed-case", "cache hits, letters in changing case", Questions::Popular(FEW)).with(MIXED),
    cache("cache-edns", "cache hits, clients with EDNS", Questions::Popular(FEW)).with(EDNS),
    cache("cache-dnssec", "cache hits, clients with EDNS that ask for signatures", Questions::Popular(FEW))
        .with(DNSSEC),
    cache("cache-100k-mixed", "100,000 names in random order and changing case, EDNS", Questions::Many(MANY))
        .with(Extras { mixed_case: true, ..DNSSEC }),
    cache("memory-1m", "memory of a million cached A answers, and hits on them", Questions::Many(MILLION))
        .setting("cache-1m"),
    // At a rate, far from saturation: what a server that waits most of the time costs, and how fast
    // it reacts.
    at_rate("rate-500", "cache hits at 500 queries a second", 500.0),
    at_rate("rate-5k", "cache hits at 5,000 queries a second", 5_000.0),
    at_rate("rate-10k", "cache hits at 10,000 queries a second", 10_000.0),
    at_rate("rate-15k", "cache hits at 15,000 queries a second", 15_000.0),
    at_rate("rate-20k", "cache hits at 20,000 queries a second", 20_000.0),
    at_rate("rate-40k", "cache hits at 40,000 queries a second", 40_000.0),
    at_rate("rate-80k", "cache hits at 80,000 queries a second", 80_000.0),
    half("quota-5k", "cache hits at 5,000 queries a second with half a processor", 5_000.0),
    half("quota-20k", "cache hits at 20,000 queries a second with half a processor", 20_000.0),
    half("quota-40k", "cache hits at 40,000 queries a second with half a processor", 40_000.0),
    // Servers and load on the same cores, a server with as many workers as there are cores: as the
    // seeds of this suite measured.
    local("seed-local", "hosts answers by dnsperf on the server's own cores", Questions::Local).as_seed(),
    cache("seed-cache", "cache hits by dnsperf on the server's own cores, 16 names", Questions::Popular(FEW))
        .as_seed(),
    // From upstream.
    forward("forward", "forwarding to one stub, no cache, 100,000 names in random order"),
    forward("forward-tcp", "the same for clients on TCP").tcp(),
    forward("forward-1ms", "forwarding to a stub that takes 1 ms").upstream(&[Change::DelayMs(1)]),
    forward("forward-5ms", "forwarding to a stub that takes 5 ms").upstream(&[Change::DelayMs(5)]),
    forward("forward-loss", "forwarding to a stub that loses 1 % of the queries")
        .upstream(&[Change::Loss(10_000)]),
    forward("forward-edns", "forwarding for clients with EDNS that ask for signatures").with(DNSSEC),
    forward("race3", "race of three upstreams, one of which answers after 20 ms, no cache").setting("race3"),
    forward("unique", "a name that was never asked with each query, a cache of some 50,000 answers")
        .setting("cache-small")
        .asks(Questions::Many(MILLION)),
    forward(
        "zipf",
        "a million names, the k-th asked in proportion to 1/k (Zipf), a cache of some 50,000 answers",
    )
    .setting("cache-small")
    .asks(Questions::Zipf(ZIPF))
    .sometimes(),
    forward("doh-upstream", "forwarding to a stub that speaks DNS over HTTPS, no cache")
        .setting("doh-upstream"),
    // Encrypted.
    encrypted("dot", "cache hits over DNS over TLS, 16 names", Transport::Tls),
    encrypted("doh", "cache hits over DNS over HTTPS, HTTP/2, 16 names", Transport::Https).setting("doh"),
    encrypted("latency-tls-tcp-1", "cache hits over TCP, one client, beside TLS", Transport::Tcp)
        .load(Load::Single(1)),
    encrypted("latency-tls-1", "cache hits over DNS over TLS, one client", Transport::Tls)
        .load(Load::Single(1))
        .beside("latency-tls-tcp-1"),
    encrypted("latency-https-1", "cache hits over DNS over HTTPS, one client", Transport::Https)
        .setting("doh")
        .load(Load::Single(1)),
    encrypted(
        "handshakes",
        "DNS over TLS, a full handshake (ECDSA P-256) for each query",
        Transport::TlsEach,
    ),
    encrypted("idle-dot", "memory of ten thousand quiet connections of DNS over TLS", Transport::Tls)
        .load(Load::Quiet(10_000)),
    // Rules.
    refuse("sequence-base", "every query is refused by the only rule", "sequence-base", REFUSED),
    refuse("match-true", "a condition that always holds, then refused", "match-true", REFUSED),
    refuse("match-false", "a condition that never holds, then SERVFAIL", "match-false", SERVFAIL),
    refuse("match-qname", "a name compared, then refused", "match-qname", REFUSED),
    refuse("match-qtype", "a type compared, then refused", "match-qtype", REFUSED),
    refuse("match-client", "the client's network compared, then refused", "match-client", REFUSED),
    // Trouble.
    cache("reload-cache", "cache hits while the server reads its configuration again", Questions::Many(HOME))
        .while_timed(RELOAD, Some(GENTLE)),
    local("reload-local", "hosts answers while the server reads its configuration again", Questions::Local)
        .while_timed(RELOAD, Some(GENTLE)),
    forward("outage", "forwarding while the upstream's port is closed for two seconds")
        .while_timed(OUTAGE, Some(GENTLE)),
    forward("outage-silent", "forwarding while the upstream is silent for two seconds")
        .while_timed(SILENCE, Some(GENTLE)),
    cache(
        "outage-cached",
        "cache hits while the upstream's port is closed for two seconds",
        Questions::Popular(FEW),
    )
    .while_timed(OUTAGE, Some(GENTLE)),
    recovery(
        "recovery-refused",
        "names asked through ten seconds in which the upstream's port is closed",
        Outage::Refusing,
    ),
    recovery(
        "recovery-silent",
        "names asked through ten seconds in which the upstream is silent",
        Outage::Silent,
    ),
    stale(
        "stale-refused",
        "a thousand names that have expired, while the upstream's port is closed",
        Outage::Refusing,
    ),
    stale("stale-silent", "a thousand names that have expired, while the upstream is silent", Outage::Silent),
    // Runbound's page.
    local("runbound-1", "a local zone asked by 20 sockets of one address", Questions::LocalA)
        .load(Load::Fixed { clients: 20, addresses: 1, outstanding: 100 }),
    local("runbound-8", "a local zone asked by 20 sockets of each of eight addresses", Questions::LocalA)
        .load(Load::Fixed { clients: 160, addresses: 8, outstanding: 800 }),
    // The article on dnsdist with AF_XDP; -q is 100 where dnsperf is not told otherwise.
    article("dnsdist-once", "12,018 names, once each, one client").passes(1),
    article("dnsdist", "12,018 names, once each, ten times over, one client").passes(ARTICLE_PASSES),
    article("dnsdist-500", "12,018 names, once each, ten times over, 500 clients")
        .load(Load::Fixed { clients: 500, addresses: 1, outstanding: 500 })
        .passes(ARTICLE_PASSES),
    // Numa's end-to-end script: ten names, one question at a time.
    cache("numa-cached", "ten names, one question at a time, cached", Questions::Popular(10))
        .load(Load::Single(1)),
    forward("numa-cold", "one question at a time, none of which was asked before, a cache")
        .setting("cache")
        .asks(Questions::Many(MILLION))
        .load(Load::Single(1)),
    // Few clients.
    local("latency-local-1", "hosts answers, one client", Questions::Local).load(Load::Single(1)),
    local("latency-local-2", "hosts answers, two clients", Questions::Local).load(Load::Single(2)),
    local("latency-local-4", "hosts answers, four clients", Questions::Local).load(Load::Single(4)),
    local("latency-one-1", "hosts answer, one name, one client", Questions::One).load(Load::Single(1)),
    local("latency-one-2", "hosts answer, one name, two clients", Questions::One).load(Load::Single(2)),
    local("latency-one-4", "hosts answer, one name, four clients", Questions::One).load(Load::Single(4)),
    local("latency-tcp-1", "one name over TCP, one client", Questions::One).load(Load::Single(1)).tcp(),
    local("latency-tcp-2", "one name over TCP, two clients", Questions::One).load(Load::Single(2)).tcp(),
    local("latency-tcp-4", "one name over TCP, four clients", Questions::One).load(Load::Single(4)).tcp(),
    cache("latency-cache-1", "cache hits, one client", Questions::Popular(FEW)).load(Load::Single(1)),
    cache("latency-cache-2", "cache hits, two clients", Questions::Popular(FEW)).load(Load::Single(2)),
    cache("latency-cache-4", "cache hits, four clients", Questions::Popular(FEW)).load(Load::Single(4)),
    forward("latency-forward-1", "forwarding, one client").load(Load::Single(1)),
    forward("latency-forward-2", "forwarding, two clients").load(Load::Single(2)),
    forward("latency-forward-4", "forwarding, four clients").load(Load::Single(4)),
    forward("latency-forward-tcp-1", "forwarding, one client on TCP").load(Load::Single(1)).tcp(),
    forward("latency-forward-tcp-2", "forwarding, two clients on TCP").load(Load::Single(2)).tcp(),
    forward("latency-forward-tcp-4", "forwarding, four clients on TCP").load(Load::Single(4)).tcp(),
    forward("latency-5ms-1", "forwarding to a stub that takes 5 ms, one client")
        .upstream(&[Change::DelayMs(5)])
        .load(Load::Single(1)),
    forward("latency-5ms-4", "forwarding to a stub that takes 5 ms, four clients")
        .upstream(&[Change::DelayMs(5)])
        .load(Load::Single(4)),
    refuse("latency-sequence-1", "refused by the only rule, one client", "sequence-base", REFUSED)
        .load(Load::Single(1)),
    refuse("latency-sequence-2", "refused by the only rule, two clients", "sequence-base", REFUSED)
        .load(Load::Single(2)),
    refuse("latency-sequence-4", "refused by the only rule, four clients", "sequence-base", REFUSED)
        .load(Load::Single(4)),
    refuse(
        "latency-true-1",
        "a condition that always holds, then refused, one client",
        "match-true",
        REFUSED,
    )
    .load(Load::Single(1)),
    refuse(
        "latency-true-2",
        "a condition that always holds, then refused, two clients",
        "match-true",
        REFUSED,
    )
    .load(Load::Single(2)),
    refuse(
        "latency-true-4",
        "a condition that always holds, then refused, four clients",
        "match-true",
        REFUSED,
    )
    .load(Load::Single(4)),
    refuse(
        "latency-false-1",
        "a condition that never holds, then SERVFAIL, one client",
        "match-false",
        SERVFAIL,
    )
    .load(Load::Single(1)),
    refuse(
        "latency-false-2",
        "a condition that never holds, then SERVFAIL, two clients",
        "match-false",
        SERVFAIL,
    )
    .load(Load::Single(2)),
    refuse(
        "latency-false-4",
        "a condition that never holds, then SERVFAIL, four clients",
        "match-false",
        SERVFAIL,
    )
    .load(Load::Single(4)),
    refuse("latency-match-1", "a name compared, then refused, one client", "match-qname", REFUSED)
        .load(Load::Single(1)),
    refuse("latency-match-2", "a name compared, then refused, two clients", "match-qname", REFUSED)
        .load(Load::Single(2)),
    refuse("latency-match-4", "a name compared, then refused, four clients", "match-qname", REFUSED)
        .load(Load::Single(4)),
    // Sets of rules.
    rules("domain-set", "143,840 rules and 163 expressions, ten names match and eight do not", SET),
    rules("domain-hits", "143,840 rules and 163 expressions, 24 names that all match", SET)
        .asks(Questions::DomainHits),
    rules("latency-domain-1", "143,840 rules and 163 expressions, one client", SET).load(Load::Single(1)),
    rules("latency-domain-2", "143,840 rules and 163 expressions, two clients", SET).load(Load::Single(2)),
    rules("latency-domain-4", "143,840 rules and 163 expressions, four clients", SET).load(Load::Single(4)),
    rules("rules-1m", "a million rules, 20,000 names, half of which match", SET)
        .asks(Questions::RulesMany)
        .rules(Shape::Million)
        .setting("rules-1m"),
    rules("gentle-1m", "a million rules, at the rate at which they are read again", SET)
        .asks(Questions::RulesMany)
        .rules(Shape::Million)
        .setting("rules-1m")
        .rate(GENTLE),
    rules("reload-1m", "a million rules, read again under load", SET)
        .asks(Questions::RulesMany)
        .rules(Shape::Million)
        .setting("rules-1m")
        .while_timed(RELOAD, Some(GENTLE))
        .beside("gentle-1m"),
    rules("reload-1m-changed", "a million rules, read again under load after one was added", SET)
        .asks(Questions::RulesMany)
        .rules(Shape::Million)
        .setting("rules-1m")
        .while_timed(RELOAD_CHANGED, Some(GENTLE)),
    rules("rpz-1m", "a response policy zone of a million names, 20,000 names, half of which it has", SET)
        .asks(Questions::RulesMany)
        .rules(Shape::Million)
        .setting("rpz-1m"),
    rules("domain-answer", "143,840 rules; a match and a miss each have their address", SET)
        .asks(Questions::DomainAnswers)
        .setting("domain-answer"),
    local(
        "address-set",
        "eight names with an address each, four of them in a set of 64 networks",
        Questions::AddressSet,
    )
    .setting("address-set")
    .rules(Shape::Geosite),
    local(
        "address-hits",
        "four names with an address each, all in a set of 64 networks",
        Questions::AddressHits,
    )
    .setting("address-set")
    .rules(Shape::Geosite),
    chain("chain", "a set of 143,840 domains, then a set of 64 networks"),
    chain("latency-chain-1", "a set of domains, then a set of networks, one client").load(Load::Single(1)),
    chain("latency-chain-2", "a set of domains, then a set of networks, two clients").load(Load::Single(2)),
    chain("latency-chain-4", "a set of domains, then a set of networks, four clients").load(Load::Single(4)),
    local("local-mix", "hosts answers, then records of one's own: A, AAAA, TXT, CNAME", Questions::Mix)
        .setting("local-mix"),
    local("latency-mix-1", "hosts answers, then records of one's own, one client", Questions::Mix)
        .setting("local-mix")
        .load(Load::Single(1)),
    local("latency-mix-2", "hosts answers, then records of one's own, two clients", Questions::Mix)
        .setting("local-mix")
        .load(Load::Single(2)),
    local("latency-mix-4", "hosts answers, then records of one's own, four clients", Questions::Mix)
        .setting("local-mix")
        .load(Load::Single(4)),
    forward("fallback", "a second upstream on standby from 200 ms, both answering at once")
        .setting("fallback"),
    forward("latency-fallback-1", "a second upstream on standby, one client")
        .setting("fallback")
        .load(Load::Single(1)),
    forward("latency-fallback-2", "a second upstream on standby, two clients")
        .setting("fallback")
        .load(Load::Single(2)),
    forward("latency-fallback-4", "a second upstream on standby, four clients")
        .setting("fallback")
        .load(Load::Single(4)),
    local("recorder-off", "hosts answers, none of which is recorded", Questions::Local),
    local("recorder", "hosts answers, every query recorded on disk", Questions::Local)
        .setting("recorder")
        .beside("recorder-off"),
    // Between two namespaces: AF_XDP and the same servers without.
    pair("xdp-30k", "hosts answers at 30,000 queries a second", Maker::Kxdpgun).rate(30_000.0),
    pair("xdp-150k", "hosts answers, 150,000 queries a second sent", Maker::Kxdpgun).rate(150_000.0),
    pair("xdp-flood", "hosts answers, a million queries a second sent", Maker::Kxdpgun).rate(1_000_000.0),
    pair("xdp-steady", "hosts answers at 30,000 queries a second, none lost", Maker::Steady).rate(30_000.0),
    pair(
        "xdp-overload",
        "hosts answers at 30,000 queries a second, then under a flood, then at 30,000 again",
        Maker::Overload,
    )
    .rate(30_000.0),
    pair("xdp-once", "12,018 names, once each, dnsperf as it comes", Maker::Dnsperf(1)).article(1, 1),
    pair("xdp-article", "12,018 names, once each, ten times over, dnsperf as it comes", Maker::Dnsperf(1))
        .article(1, ARTICLE_PASSES),
    pair(
        "xdp-article-500",
        "12,018 names, once each, ten times over, dnsperf -c 500 -T 16",
        Maker::Dnsperf(16),
    )
    .article(500, ARTICLE_PASSES),
    // erldns's page.
    zones(
        "erldns-mix",
        "erldns's first query file: four names of strangers, two of ours",
        Questions::ErldnsMix,
    )
    .load(Load::Fixed { clients: 256, addresses: 1, outstanding: 256 }),
    zones("erldns-resolvable", "erldns's second query file: eight names of ours", Questions::ErldnsOurs)
        .load(Load::Fixed { clients: 256, addresses: 1, outstanding: 256 }),
    zones(
        "erldns-guide",
        "erldns's first query file with 20 clients, as its guide says",
        Questions::ErldnsMix,
    )
    .load(Load::Fixed { clients: 20, addresses: 1, outstanding: 100 }),
    zones("zones", "erldns's second query file under the session's load", Questions::ErldnsOurs),
    zones("latency-zones-1", "erldns's second query file, one client", Questions::ErldnsOurs)
        .load(Load::Single(1)),
    zones("latency-zones-4", "erldns's second query file, four clients", Questions::ErldnsOurs)
        .load(Load::Single(4)),
    // Large zones.
    large_zone("zone-1k", "a zone of 1,000 names in random order, one in ten does not exist", 1_000),
    large_zone("zone-100k", "a zone of 100,000 names in random order, one in ten does not exist", MANY),
    large_zone("zone-1m", "a zone of a million names in random order, one in ten does not exist", MILLION),
    large_zone("zone-signed", "a signed zone of 1,000 names, clients that ask for signatures", 1_000)
        .rules(Shape::Signed(1_000))
        .with(DNSSEC),
    large_zone("zone-signed-100k", "a signed zone of 100,000 names, clients that ask for signatures", MANY)
        .rules(Shape::Signed(MANY))
        .with(DNSSEC),
    // Hashed denial.
    hashed(
        "nsec3-0",
        "names that a zone with NSEC3 does not have, no iterations",
        Questions::Denial(HASHED),
        0,
    ),
    hashed(
        "nsec3-10",
        "names that a zone with NSEC3 does not have, 10 iterations",
        Questions::Denial(HASHED),
        10,
    ),
    hashed(
        "nsec3-nodata-0",
        "types that names of a zone with NSEC3 do not have, no iterations",
        Questions::NoData(HASHED),
        0,
    ),
    hashed(
        "nsec3-nodata-10",
        "types that names of a zone with NSEC3 do not have, 10 iterations",
        Questions::NoData(HASHED),
        10,
    ),
    // One query a connection.
    large_zone("tcp-each", "a zone of 1,000 names over TCP, a connection for each query", 1_000)
        .load(CONNECTIONS)
        .over(Transport::TcpEach),
    // Answers found from the root down, in a simulated internet.
    resolve("resolve-cold", "20,000 names of as many zones, once each", Internet::PLAIN, HOME as u32, 1),
    resolve("resolve-cold-5", "20,000 names of 4,000 zones, once each", Internet::PLAIN, 4_000, 5),
    resolve("resolve-signed", "20,000 names of as many signed zones", Internet::SIGNED, HOME as u32, 1),
    resolve("resolve-signed-5", "20,000 names of 4,000 signed zones", Internet::SIGNED, 4_000, 5),
    resolve("resolve-warm", "20,000 names that were found before", Internet::PLAIN, HOME as u32, 1).again(),
    resolve("resolve-mixed", "50,000 names, some often, in zones of all kinds", MIXED_INTERNET, 10_000, 5)
        .popular(50_000),
    resolve("resolve-far", "500 names of signed zones, servers 20 ms away", far(0), 500, 1).rate(50.0),
    resolve("resolve-lossy", "1,000 names of signed zones, 20 ms away, 2 % lost", far(20_000), 1_000, 1)
        .rate(50.0),
    resolve("resolve-hits", "5,000 names a second that are known", Internet::SIGNED, 1_000, 1).found(None),
    resolve(
        "resolve-hits-beside",
        "the same, beside 700 names a second that are not",
        Internet::SIGNED,
        1_000,
        1,
    )
    .found(Some(700)),
    attack("resolve-attack-nxns", "the same, beside referrals to names in a victim's zone", Attack::Nxns),
    attack("resolve-attack-camp", "the same, beside aliases times referrals (CAMP)", Attack::Camp),
    attack("resolve-attack-long", "the same, beside replies full of the longest names", Attack::Long),
    attack("resolve-attack-large", "the same, beside aliases in replies of 64 kB", Attack::Large),
    attack("resolve-attack-keytrap", "the same, beside many wrong signatures (KeyTrap)", Attack::KeyTrap),
    attack("resolve-attack-hashes", "the same, beside names of many labels, hashed 50 times", Attack::Hashes),
    attack("resolve-attack-silent", "the same, beside names whose servers are silent", Attack::Silent),
    resolve(
        "resolve-outage",
        "names in no cache, all servers silent for ten seconds",
        Internet::PLAIN,
        1_000,
        1,
    )
    .outlasting(),
    resolve("resolve-memory", "80,000 names of as many zones, once each", Internet::PLAIN, ZONES, 1),
    resolve("resolve-memory-signed", "80,000 names of as many signed zones", Internet::SIGNED, ZONES, 1),
    // Zones between servers, and many of them.
    large_zone("transfer-out", "a zone of a million names transferred whole to a client over TCP", MILLION)
        .setting("zone-out")
        .by(Maker::Receiver),
    large_zone(
        "transfer-in",
        "a zone of a million names taken over from a primary, from its word to the answer",
        MILLION,
    )
    .setting("zone-in")
    .without_rules()
    .by(Maker::Primary),
    large_zone("zones-many", "100,000 zones of five records, one more added while the server runs", MANY)
        .setting("zones-many")
        .asks(Questions::ManyZones(MANY))
        .rules(Shape::ManyZones(MANY))
        .by(Maker::Operator),
];

/// Scenarios by the publication that measured them first: a name for the command line, what it is,
/// and its scenarios.
pub const PAGES: &[(&str, &str, &[&str])] = &[
    (
        "forgedns",
        "ForgeDNS 0.3.0, higher concurrency",
        &[
            "=forward",
            "cache-warm",
            "forward-tcp",
            "race3",
            "local-mix",
            "domain-set",
            "address-set",
            "chain",
            "=one",
            "one-tcp",
        ],
    ),
    (
        "forgedns-0.1.0",
        "ForgeDNS 0.1.0, higher concurrency, what the newer page left out",
        &[
            "fallback",
            "doh-upstream",
            "sequence-base",
            "match-true",
            "match-false",
            "match-qname",
            "latency-fallback",
            "latency-sequence",
            "latency-true",
            "latency-false",
            "latency-match",
        ],
    ),
    (
        "forgedns-latency",
        "ForgeDNS 0.3.0, one, two and four clients",
        &[
            "latency-forward",
            "latency-forward-tcp",
            "latency-cache",
            "latency-mix",
            "latency-domain",
            "latency-chain",
            "latency-one",
            "latency-tcp",
        ],
    ),
    (
        "forgedns-more",
        "what ForgeDNS's pages left out",
        &[
            "cache-mixed-case",
            "cache-edns",
            "cache-dnssec",
            "cache-negative",
            "cache-20k",
            "unique",
            "forward-loss",
            "outage",
            "outage-silent",
            "outage-cached",
            "recovery",
            "stale",
            "zipf",
            "reload-cache",
            "reload-local",
            "reload-1m",
            "recorder-off",
            "recorder",
            "rules-1m",
            "domain-answer",
        ],
    ),
    (
        "runbound",
        "Runbound 0.3.5",
        &["runbound-1", "runbound-8", "=forward", "memory-1m", "reload-local", "reload-cache"],
    ),
    ("erldns", "erldns, June 2025", &["erldns-mix", "erldns-resolvable", "erldns-guide"]),
    (
        "numa",
        "Numa, the end-to-end script (the micro-benchmarks are in the crates' own)",
        &["numa-cached", "numa-cold"],
    ),
    (
        "dnsdist-article",
        "dnsdist with AF_XDP, on loopback without it and between namespaces with it",
        &["dnsdist-once", "=dnsdist", "dnsdist-500", "xdp-once", "xdp-article"],
    ),
];

/// What cannot be measured yet, Gannet or not, with what is missing.
pub const PENDING: [(&str, &str); 1] = [("pools", "pools and balancing")];

const SET: Questions = Questions::DomainSet;
const REFUSED: Questions = Questions::Coded(5);
const SERVFAIL: Questions = Questions::Coded(2);
/// Queries per second in the scenarios of trouble: well below what any of the servers answers.
const GENTLE: f64 = 5_000.0;

/// The upstream's answers may be kept for a second.
const EXPIRING: &[Change] = &[Change::Ttl(1)];

/// One reload, when the run has settled.
const RELOAD: &[Event] = &[Event { at: Duration::from_millis(1_000), what: What::Reload }];

/// One reload that finds another rule.
const RELOAD_CHANGED: &[Event] = &[
    Event { at: Duration::from_millis(1_000), what: What::Rules },
    Event { at: Duration::from_millis(1_000), what: What::Reload },
];

/// The upstream's port is closed for two seconds.
const OUTAGE: &[Event] = &[
    Event { at: Duration::from_millis(1_000), what: What::Stub("stub", Change::Stop) },
    Event { at: Duration::from_millis(3_000), what: What::Stub("stub", Change::Start) },
];

/// The upstream hears nothing for two seconds, as with a broken path.
const SILENCE: &[Event] = &[
    Event { at: Duration::from_millis(1_000), what: What::Stub("stub", Change::Loss(1_000_000)) },
    Event { at: Duration::from_millis(3_000), what: What::Stub("stub", Change::Loss(0)) },
];

pub(super) const fn local(name: &'static str, about: &'static str, questions: Questions) -> Scenario {
    Scenario {
        name,
        about,
        setting: "local",
        questions,
        warm: false,
        upstream: Upstream::Silent,
        upstream_is: &[],
        load: Load::Full,
        passes: None,
        transport: Transport::Udp,
        extras: PLAIN,
        rate: None,
        series: None,
        quota: None,
        shares_cores: false,
        expired: None,
        events: &[],
        rules: None,
        beside: None,
        network: Network::Loopback,
        maker: Maker::Session,
        needs: None,
    }
}

const fn cache(name: &'static str, about: &'static str, questions: Questions) -> Scenario {
    Scenario { setting: "cache", warm: true, ..local(name, about, questions) }
}

/// Cache hits at an even rate.
const fn at_rate(name: &'static str, about: &'static str, rate: f64) -> Scenario {
    let cache = cache(name, about, Questions::Popular(FEW)).load(EVEN).rate(rate);
    Scenario { series: Some(Series::Rates), ..cache }
}

/// The same with half a processor.
const fn half(name: &'static str, about: &'static str, rate: f64) -> Scenario {
    Scenario { quota: Some(0.5), series: Some(Series::Quota), ..at_rate(name, about, rate) }
}

/// Names of which none is cached, asked until the upstream has come back.
const fn recovery(name: &'static str, about: &'static str, outage: Outage) -> Scenario {
    let upstream = Upstream::Sometimes;
    Scenario {
        warm: false,
        upstream,
        maker: Maker::Recovery(outage),
        ..cache(name, about, Questions::Many(HOME))
    }
}

/// Names that were answered once, and have expired when the upstream goes away.
const fn stale(name: &'static str, about: &'static str, outage: Outage) -> Scenario {
    let load = Load::Single(64);
    let upstream = Upstream::Sometimes;
    let cache = cache(name, about, Questions::Many(EXPIRED)).setting("stale").upstream(EXPIRING);
    Scenario { load, upstream, expired: Some(outage), ..cache }
}

/// Asks for what is known beside 50 hostile names a second.
const fn attack(name: &'static str, about: &'static str, attack: Attack) -> Scenario {
    resolve(name, about, HOSTILE_INTERNET, 1_000, 1).attacked(attack, 50)
}

const fn encrypted(name: &'static str, about: &'static str, transport: Transport) -> Scenario {
    Scenario { setting: "dot", transport, ..cache(name, about, Questions::Popular(FEW)) }
}

const fn forward(name: &'static str, about: &'static str) -> Scenario {
    Scenario { setting: "forward", upstream: Upstream::Asked, ..local(name, about, Questions::Many(MANY)) }
}

const fn refuse(
    name: &'static str,
    about: &'static str,
    setting: &'static str,
    questions: Questions,
) -> Scenario {
    Scenario { setting, ..local(name, about, questions) }
}

const fn article(name: &'static str, about: &'static str) -> Scenario {
    let load = Load::Fixed { clients: 1, addresses: 1, outstanding: 100 };
    let upstream = Upstream::Sometimes;
    Scenario { setting: "cache", upstream, load, ..local(name, about, Questions::Many(ARTICLE)) }
}

const fn pair(name: &'static str, about: &'static str, maker: Maker) -> Scenario {
    Scenario { network: Network::Pair, maker, ..local(name, about, Questions::Local) }
}

const fn rules(name: &'static str, about: &'static str, questions: Questions) -> Scenario {
    let local = local(name, about, questions);
    Scenario { setting: "domain-set", rules: Some(Shape::Geosite), ..local }
}

const fn chain(name: &'static str, about: &'static str) -> Scenario {
    Scenario { setting: "chain", ..rules(name, about, Questions::Chain) }
}

const fn zones(name: &'static str, about: &'static str, questions: Questions) -> Scenario {
    Scenario { setting: "zones", ..local(name, about, questions) }
}

const fn large_zone(name: &'static str, about: &'static str, names: usize) -> Scenario {
    let rules = Some(Shape::Zone(names));
    Scenario { setting: "zone", rules, ..local(name, about, Questions::Zone(names)) }
}

const fn hashed(name: &'static str, about: &'static str, questions: Questions, iterations: u16) -> Scenario {
    let rules = Shape::Hashed { names: HASHED, iterations };
    large_zone(name, about, HASHED).asks(questions).rules(rules).with(DNSSEC)
}

impl Scenario {
    const fn setting(self, setting: &'static str) -> Self {
        Self { setting, ..self }
    }

    pub(super) const fn asks(self, questions: Questions) -> Self {
        Self { questions, ..self }
    }

    const fn load(self, load: Load) -> Self {
        Self { load, ..self }
    }

    pub(super) const fn passes(self, passes: usize) -> Self {
        Self { passes: Some(passes), ..self }
    }

    const fn rate(self, rate: f64) -> Self {
        Self { rate: Some(rate), ..self }
    }

    /// Asks the article's names instead, so many times, of a server with a cache.
    const fn article(self, clients: usize, passes: usize) -> Self {
        let load = Load::Fixed { clients, addresses: 1, outstanding: 100 };
        let questions = Questions::Many(ARTICLE);
        Self { setting: "cache", upstream: Upstream::Sometimes, questions, load, ..self }.passes(passes)
    }

    const fn tcp(self) -> Self {
        self.over(Transport::Tcp)
    }

    const fn over(self, transport: Transport) -> Self {
        Self { transport, ..self }
    }

    /// Lets only some of the queries go to the upstream.
    const fn sometimes(self) -> Self {
        Self { upstream: Upstream::Sometimes, ..self }
    }

    /// Lets dnsperf ask, on the cores that the server has too.
    const fn as_seed(self) -> Self {
        Self { load: SEED, maker: Maker::Dnsperf(SEED_THREADS), shares_cores: true, ..self }
    }

    pub(super) const fn with(self, extras: Extras) -> Self {
        Self { extras, ..self }
    }

    const fn upstream(self, upstream_is: &'static [Change]) -> Self {
        Self { upstream_is, ..self }
    }

    const fn while_timed(self, events: &'static [Event], rate: Option<f64>) -> Self {
        Self { events, rate, ..self }
    }

    const fn beside(self, row_before: &'static str) -> Self {
        Self { beside: Some(row_before), ..self }
    }

    const fn by(self, maker: Maker) -> Self {
        Self { maker, ..self }
    }

    const fn without_rules(self) -> Self {
        Self { rules: None, ..self }
    }

    const fn rules(self, shape: Shape) -> Self {
        Self { rules: Some(shape), ..self }
    }
}
