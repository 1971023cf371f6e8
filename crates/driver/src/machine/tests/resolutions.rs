//! Queries that wait for a resolver, which asks a root that has all names.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::mpsc::sync_channel;

use authorities::PoolSocketKey;
use engine::{Failure, OutQuery, ResolveWant, ResolverId, Want};
use plan::resolvers::{Plan, ResolverPlan};
use plan::upstreams::Limits;
use resolver::{HeapName, Hint, Minimisation, Settings, Validation};
use timers::Span;
use wire::{Flags, Name, NameBuf, Query, Rcode, Rtype, Section, Ttl, Writer};

use super::sim::{CLIENT, Sim, question};
use crate::recursion::{Probe, Probing};

const RESOLVER: ResolverId = ResolverId(3);

/// A query to an authoritative server.
struct Asked {
    socket: PoolSocketKey,
    to: SocketAddr,
    octets: Vec<u8>,
}

fn resolver(root: u8) -> ResolverPlan {
    let addresses = vec![IpAddr::V4(Ipv4Addr::new(198, 51, 100, root))];
    let settings = Settings {
        hints: vec![Hint { name: HeapName::new(Name::ROOT), addresses }],
        priming: false,
        minimisation: Minimisation::Off,
        ..Settings::default()
    };
    ResolverPlan {
        id: RESOLVER,
        name: "default".to_owned(),
        octets_max: 1 << 20,
        settings,
        second_level: None,
    }
}

fn resolving(resolvers: Vec<ResolverPlan>) -> Sim {
    Sim::with_plans(Vec::new(), Limits::default(), &Plan { resolvers, ..Plan::default() })
}

impl Sim {
    fn resolve(&mut self, text: &str, client: Option<IpAddr>) -> u32 {
        self.resolve_query(question(text), text, client)
    }

    fn resolve_query(&mut self, query: OutQuery, text: &str, client: Option<IpAddr>) -> u32 {
        let want = Want::Resolve(ResolveWant {
            resolver: RESOLVER,
            query,
            wants_servers: false,
            watch: None,
            stale_after_ms: None,
        });
        self.ask_want(text, want, client)
    }

    /// Takes the oldest query to an authoritative server.
    fn asked(&mut self) -> Option<Asked> {
        let (socket, to, octets) = self.machine.pool_network_mut().queued.pop_front()?;
        Some(Asked { socket, to, octets })
    }

    /// Has the server say that the name has an address.
    fn answer(&mut self, asked: &Asked) {
        let query = Query::parse(&asked.octets).expect("we send queries");
        let mut out = vec![0; 512];
        let flags = Flags::QR.with(Flags::AA);
        let mut writer = Writer::new(&mut out, 512, query.header.id, flags);
        let question = query.question;
        writer.question(&question).expect("fits");
        let data = |w: &mut Writer<'_>| w.bytes(&[192, 0, 2, 1]);
        writer
            .record(Section::Answer, question.qname, Rtype::A, question.qclass, Ttl::new(60), data)
            .expect("fits");
        let len = writer.finish();
        self.machine.pool_datagram(asked.socket, asked.to, (&out[..len], false), self.now);
        self.settle();
    }
}

#[test]
fn what_a_resolver_finds_ends_all_who_wait_for_it() {
    let mut sim = resolving(vec![resolver(1)]);
    let first = sim.resolve("www.example.org", Some(CLIENT));
    let second = sim.resolve("www.example.org", Some(CLIENT));
    let with_dnssec = OutQuery { wants_dnssec: true, hash: 1, ..question("www.example.org") };
    let third = sim.resolve_query(with_dnssec, "www.example.org", Some(CLIENT));
    assert_eq!((sim.machine.active(), sim.machine.waiting()), (2, 3));
    let asked = sim.asked().expect("the root is asked");
    assert_eq!(asked.to, SocketAddr::from(([198, 51, 100, 1], 53)));
    let query = Query::parse(&asked.octets).expect("well formed");
    assert!(!query.header.flags.has(Flags::RD), "nobody is asked to recurse");
    assert!(sim.asked().is_none(), "all of them ask the same");
    sim.answer(&asked);
    for asker in [first, second, third] {
        assert_eq!(sim.ended[&asker], Ok(Rcode::NOERROR));
    }
    assert_eq!((sim.machine.active(), sim.machine.waiting()), (0, 0));
    // It is in the tables now.
    let again = sim.resolve("www.example.org", Some(CLIENT));
    assert_eq!(sim.ended[&again], Ok(Rcode::NOERROR));
    assert!(sim.asked().is_none());
}

#[test]
fn a_probe_asks_whatever_is_known_and_leaves_nothing_behind() {
    let mut sim = resolving(vec![resolver(1)]);
    sim.resolve("www.example.org", Some(CLIENT));
    let asked = sim.asked().expect("the root is asked");
    sim.answer(&asked);
    for octet in 0..2 {
        let (answer, heard) = sync_channel(1);
        let qname = NameBuf::from_text("www.example.org").expect("a name");
        let probing = Probing::Unchecked;
        sim.machine.probe(Probe { resolver: resolver(1), qname, qtype: Rtype::A, probing, answer }, sim.now);
        sim.machine.flush(sim.now);
        let asked = sim.asked().unwrap_or_else(|| panic!("the root is asked again, {octet}"));
        sim.adopt_resolvers(vec![resolver(1)]);
        assert_eq!(sim.machine.active(), 0, "no client waits for it");
        sim.answer(&asked);
        assert_eq!(heard.try_recv().map(|resolution| resolution.rcode), Ok(Rcode::NOERROR));
    }
    let (answer, heard) = sync_channel(1);
    let (qname, probing) = (NameBuf::root(), Probing::Checked);
    sim.machine.probe(Probe { resolver: resolver(9), qname, qtype: Rtype::NS, probing, answer }, sim.now);
    sim.pass(20_000);
    let resolution = heard.try_recv().expect("it ends in time");
    assert_eq!(resolution.failure.as_ref().map(|failure| failure.reason.name()), Some("silent"));
}

#[test]
fn silence_of_all_servers_is_a_failure_in_time() {
    let mut sim = resolving(vec![resolver(1)]);
    let asker = sim.resolve("www.example.org", Some(CLIENT));
    sim.pass(20_000);
    assert_eq!(sim.ended[&asker], Ok(Rcode::SERVFAIL));
    assert_eq!(sim.machine.active(), 0);
    assert!(sim.counters.authorities.timeouts.read() > 0);
}

#[test]
fn a_resolver_that_is_not_there_is_a_failure() {
    let mut sim = resolving(Vec::new());
    let asker = sim.resolve("www.example.org", Some(CLIENT));
    assert_eq!(sim.ended[&asker], Err(Failure::NoUpstream));
}

#[test]
fn a_stop_ends_what_waits_and_begins_nothing() {
    let mut sim = resolving(vec![resolver(1)]);
    let asker = sim.resolve("www.example.org", Some(CLIENT));
    sim.machine.stop(sim.now);
    sim.settle();
    assert_eq!(sim.ended[&asker], Err(Failure::Stopping));
    let late = sim.resolve("late.example.org", Some(CLIENT));
    assert_eq!(sim.ended[&late], Err(Failure::Stopping));
    let asked = sim.asked().expect("it was asked before");
    sim.answer(&asked);
    assert_eq!((sim.machine.active(), sim.machine.waiting()), (0, 0));
}

#[test]
fn a_reload_changes_whom_the_next_question_goes_to_and_loses_none() {
    let mut sim = resolving(vec![resolver(1)]);
    let before = sim.resolve("www.example.org", Some(CLIENT));
    let first = sim.asked().expect("the first root is asked");
    sim.adopt_resolvers(vec![resolver(2)]);
    let after = sim.resolve("www.example.org", Some(CLIENT));
    let second = sim.asked().expect("the second root is asked");
    assert_eq!(second.to, SocketAddr::from(([198, 51, 100, 2], 53)));
    sim.answer(&first);
    assert_eq!(sim.ended[&before], Ok(Rcode::NOERROR));
    assert!(!sim.ended.contains_key(&after), "what the first root says is not for the second resolver");
    sim.answer(&second);
    assert_eq!(sim.ended[&after], Ok(Rcode::NOERROR));
    // The same plan again keeps what is known.
    sim.adopt_resolvers(vec![resolver(2)]);
    let again = sim.resolve("www.example.org", Some(CLIENT));
    assert_eq!(sim.ended[&again], Ok(Rcode::NOERROR));
}

#[test]
fn a_client_with_more_than_its_share_takes_no_place_of_others() {
    let limits = Limits { waiting_per_client_max: 8, fetching_max: 64, ..Limits::default() };
    let mut sim =
        Sim::with_plans(Vec::new(), limits, &Plan { resolvers: vec![resolver(1)], ..Plan::default() });
    let greedy = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9));
    for round in 0..200 {
        sim.resolve(&format!("n{round}.example.org"), Some(greedy));
    }
    assert!(sim.machine.active() <= 64);
    let other = sim.resolve("www.example.com", Some(CLIENT));
    assert!(!sim.ended.contains_key(&other), "it waits as if nobody else asked");
    while let Some(asked) = sim.asked() {
        sim.answer(&asked);
    }
    assert_eq!(sim.ended[&other], Ok(Rcode::NOERROR));
}

#[test]
fn ignore_cd_flag_validates_although_a_client_asks_for_data_as_it_is() {
    for ignores_cd in [false, true] {
        let plan = resolver(1);
        let settings = Settings { validation: Validation::On, ignores_cd, ..plan.settings };
        let mut sim = resolving(vec![ResolverPlan { settings, ..plan }]);
        let query = OutQuery { checking_disabled: true, ..question("www.example.org") };
        let asker = sim.resolve_query(query, "www.example.org", Some(CLIENT));
        let mut asked = sim.asked().expect("the root is asked");
        while Query::parse(&asked.octets).expect("well formed").question.qtype != Rtype::A {
            asked = sim.asked().expect("the question itself");
        }
        // Nothing is signed: who validates does not take that.
        sim.answer(&asked);
        let is_taken = sim.ended.get(&asker) == Some(&Ok(Rcode::NOERROR));
        assert_eq!(is_taken, !ignores_cd);
    }
}

#[test]
fn who_asks_after_a_machine_has_slept_is_not_told_that_time_was_over() {
    // Before and after others are asked in place of the server that was silent when it fell asleep.
    for is_noticed in [false, true] {
        let mut sim = resolving(vec![resolver(1)]);
        let before = sim.resolve("www.example.org", Some(CLIENT));
        sim.pass(500);
        assert!(!sim.ended.contains_key(&before), "it waits for the server");
        while sim.asked().is_some() {}
        sim.now = sim.now + Span::from_ms(90_000_000);
        if is_noticed {
            sim.pass(0);
        }
        let after = sim.resolve("www.example.org", Some(CLIENT));
        sim.pass(0);
        while let Some(asked) = sim.asked() {
            sim.answer(&asked);
        }
        for asker in [before, after] {
            assert_eq!(sim.ended.get(&asker), Some(&Ok(Rcode::NOERROR)), "{is_noticed}");
        }
    }
}
