//! The built program as a resolver while one client asks for hostile names: what the others get.
//!
//! Each attack is one of the simulated internet's ([`ATTACKS`]); what it costs is in
//! `docs/attacks.md`.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use gannet_bench::world::{Service, Way};
use testkit::world::{ATTACKS, Attack, Denial, HOSTS, Options, deepest_below};
use testkit::{Ask, Server, TcpClient, UdpClient, eventually, name};
use wire::{Rcode, Rtype};

use super::recursion::{ZONES, check, count, start};

/// Top-level domains of each internet, the last two of which are hostile.
const HONEST_TLDS: u32 = 3;
/// Packets that one question may cost (`resolvers.*.limits.queries`), and those that go to it again
/// over TCP.
const PACKETS_MAX: u64 = 64;

struct Scene {
    service: std::sync::Arc<Service>,
    server: Server,
    /// The client that asks for hostile names, of an address of its own.
    attacker: UdpClient,
    /// The others.
    honest: UdpClient,
    /// Honest zones that nobody has asked for yet.
    fresh: std::ops::Range<u32>,
    /// What the attacker has asked, and not been told.
    open: BTreeSet<u16>,
}

impl Scene {
    fn new(options: Options) -> Self {
        let (service, server) = start(Options { is_hostile: true, ..options }, Way::default());
        let attacker = UdpClient::connect_from(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 66)), server.address());
        attacker.set_patience(Duration::from_millis(200));
        let honest = UdpClient::connect(server.address());
        Self { service, server, attacker, honest, fresh: 10..ZONES, open: BTreeSet::new() }
    }

    /// Returns the next honest zone.
    fn next_zone(&mut self) -> u32 {
        let mut honest = self.fresh.by_ref().filter(|leaf| leaf % (HONEST_TLDS + 2) < HONEST_TLDS);
        honest.next().expect("there are enough zones")
    }

    /// Asks for one name of an honest zone; the answer must be right.
    fn ask_honestly(&self, host: &str, leaf: u32) {
        let qname = format!("{host}.{}", self.service.world().zone_text(leaf));
        let heard = self.honest.ask(&Ask::new(&qname, Rtype::A).edns(1232).id(leaf as u16));
        check(&self.service, &heard, name(&qname).as_name(), Rtype::A);
    }

    /// Asks for names that are known, and for some that have to be found.
    fn others_are_served(&mut self, rounds: u32) {
        for _ in 0..rounds {
            for leaf in [0, 1, 2] {
                self.ask_honestly("www", leaf);
            }
            let leaf = self.next_zone();
            self.ask_honestly(HOSTS[leaf as usize % HOSTS.len()], leaf);
            self.ask_honestly("no", leaf);
        }
    }

    /// Asks a hostile name; the reply is taken later.
    fn attack(&mut self, text: &str, id: u16) {
        self.attacker.send(&Ask::new(text, Rtype::A).edns(1232).id(id).bytes());
        self.open.insert(id);
    }

    /// Takes replies until the attacker has them all, and returns their codes.
    fn take_replies(&mut self) -> Vec<Rcode> {
        let mut codes = Vec::new();
        eventually("each hostile question has a reply", || {
            while let Ok(heard) = self.attacker.try_receive() {
                if self.open.remove(&heard.id()) {
                    codes.push(heard.rcode());
                }
            }
            self.open.is_empty()
        });
        codes
    }
}

/// Returns the name that is asked for the nth time.
fn hostile_name(scene: &Scene, attack: Attack, number: u16) -> String {
    let below = scene.service.world().attack_text(attack).expect("hostile zones");
    match attack {
        Attack::Camp => format!("a.b.c.d.e{}.{below}", 1000 * (u32::from(number) + 1)),
        Attack::Long | Attack::Hashes => deepest_below(&format!("x{number}.{below}")),
        _ => format!("www.x{number}.{below}"),
    }
}

/// Lets one client attack while others ask; returns what the attacker was told.
fn hold_out(attack: Attack, signed: bool) -> BTreeSet<u16> {
    let options = match signed {
        true => Options { signed: 1_000, denial: Denial::Mixed, ..Options::default() },
        false => Options::default(),
    };
    let mut scene = Scene::new(options);
    scene.others_are_served(1);
    // What one question costs, from a cache that knows the way.
    let text = hostile_name(&scene, attack, 0);
    let before = count(&scene.service, "all");
    scene.attack(&text, 0);
    scene.take_replies();
    let packets = count(&scene.service, "all") - before;
    assert!(packets <= PACKETS_MAX, "{text} cost {packets}");
    // A build that is not optimised takes a second for some of them.
    let questions = match attack {
        Attack::Long => 1,
        Attack::Large | Attack::Wide => 8,
        _ => 60,
    };
    for number in 1..questions {
        let text = hostile_name(&scene, attack, number);
        scene.attack(&text, number);
    }
    scene.others_are_served(5);
    let codes = scene.take_replies();
    scene.others_are_served(2);
    assert_eq!(codes.len(), usize::from(questions) - 1);
    codes.into_iter().map(|code| code.0).collect()
}

/// Makes a test of each attack, and of none a second one.
macro_rules! attacks {
    ($($name:ident: $attack:ident, signed $signed:literal, told $($code:ident)|+;)*) => {
        $(
            #[test]
            fn $name() {
                let told = hold_out(Attack::$attack, $signed);
                let expected = [$(Rcode::$code.0),+];
                assert!(told.iter().all(|code| expected.contains(code)), "{told:?}");
            }
        )*

        #[test]
        fn each_attack_of_the_world_is_tested() {
            let mut tested = vec![$(Attack::$attack),*];
            for (label, attack) in ATTACKS {
                let at = tested.iter().position(|other| *other == attack);
                tested.remove(at.unwrap_or_else(|| panic!("{label} is not tested")));
            }
            assert!(tested.is_empty(), "{tested:?}");
        }
    };
}

attacks! {
    others_are_served_during_nxns: Nxns, signed false, told SERVFAIL;
    others_are_served_during_a_referral_to_a_thousand_servers: Wide, signed false, told SERVFAIL;
    others_are_served_while_zones_lead_from_one_to_the_next: Loop, signed false, told SERVFAIL;
    others_are_served_during_camp: Camp, signed false, told SERVFAIL;
    others_are_served_during_endless_dnames: Dname, signed false, told SERVFAIL;
    others_are_served_during_the_largest_replies: Large, signed false, told SERVFAIL;
    others_are_served_during_the_longest_names: Long, signed false, told SERVFAIL;
    others_are_served_what_is_right_during_poisoning: Poison, signed false, told NOERROR;
    others_are_served_during_referrals_to_the_root: Upwards, signed false, told SERVFAIL;
    others_are_served_while_replies_are_cut_for_ever: Cut, signed false, told SERVFAIL;
    others_are_served_while_connections_drip: Drip, signed false, told SERVFAIL;
    a_reply_behind_others_that_are_none_is_found: Noise, signed false, told NOERROR;
    others_are_served_while_servers_are_silent: Silent, signed false, told SERVFAIL;
    others_are_served_during_keytrap: KeyTrap, signed true, told SERVFAIL;
    others_are_served_while_names_are_hashed: Hashes, signed true, told SERVFAIL | NXDOMAIN;
}

/// Slow TCP: more connections drip than there may be, and others need one.
#[test]
fn who_needs_tcp_gets_it_while_connections_drip() {
    let mut scene = Scene::new(Options::default());
    scene.others_are_served(1);
    for number in 0..200 {
        let text = hostile_name(&scene, Attack::Drip, number);
        scene.attack(&text, number);
    }
    eventually("connections drip", || count(&scene.service, "tcp") >= 32);
    for _ in 0..5 {
        let leaf = scene.next_zone();
        let qname = format!("big.{}", scene.service.world().zone_text(leaf));
        let heard = TcpClient::connect(scene.server.address()).ask(&Ask::new(&qname, Rtype::TXT).edns(1232));
        check(&scene.service, &heard, name(&qname).as_name(), Rtype::TXT);
    }
}

/// Water torture: thousands of names that are not there, of one honest zone, and of servers that
/// have fallen silent under it.
#[test]
fn one_zone_under_water_torture_leaves_the_others_alone() {
    let mut scene = Scene::new(Options::default());
    scene.others_are_served(1);
    let victim = scene.service.world().zone_text(1);
    for (below, rounds) in [(victim, 10), (hostile_name(&scene, Attack::Silent, 0), 10)] {
        for round in 0..rounds {
            for number in 0..200 {
                let id = round * 200 + number;
                scene.attack(&format!("x{id}.{below}"), id);
            }
            scene.others_are_served(1);
        }
        // The zone's own names are served as well, if they are known.
        scene.ask_honestly("www", 1);
    }
}

/// Returns the Rust files below a folder.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(std::fs::read_to_string(&path).expect("a text"));
        }
    }
}

#[test]
fn every_test_that_the_page_of_attacks_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut texts = Vec::new();
    sources(&root.join("crates"), &mut texts);
    sources(&root.join("tests"), &mut texts);
    let page = std::fs::read_to_string(root.join("docs/attacks.md")).expect("the page");
    let is_name = |word: &&str| {
        word.matches('_').count() > 1
            && word
                .chars()
                .all(|letter| letter == '_' || letter.is_ascii_lowercase() || letter.is_ascii_digit())
    };
    let named: BTreeSet<&str> = page.split('`').filter(is_name).collect();
    assert!(named.len() > 60, "{}", named.len());
    let is_there = |name: &&&str| {
        let (plain, in_macro) = (format!("fn {name}("), format!("\n    {name}: "));
        texts.iter().any(|text| text.contains(&plain) || text.contains(&in_macro))
    };
    let lost: Vec<&&str> = named.iter().filter(|name| !is_there(name)).collect();
    assert!(lost.is_empty(), "docs/attacks.md names tests that are not there: {lost:?}");
}
