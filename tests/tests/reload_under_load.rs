//! The built program reads a set of a million rules again and again while clients ask: none of them
//! notices.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use testkit::{Ask, Server, TcpClient, UdpClient, eventually};
use wire::{Rcode, Rtype};

/// Rules of the set that never change.
const RULES: u32 = 1_000_000;
/// Times the set changes.
const CHANGES: u32 = 3;

/// What the policy says of a name that is in the set, and of others.
const HELD: Rcode = Rcode::NOTIMP;
const NOT_HELD: Rcode = Rcode::REFUSED;

const CONFIG: &str = "
server: {workers: 2, state-directory: '@DIRECTORY@'}
listen: ['@ADDRESS@']
sets:
  listed: {lists: 'names:rules.txt'}
policy:
  main:
    - {if: qname == localhost, do: local}
    - {if: qname in listed, do: reject(notimp)}
    - reject(refused)
";

/// A list of a million rules and one that tells which list it is.
fn list(number: u32) -> String {
    let mut text = String::with_capacity(24 << 20);
    for rule in 0..RULES {
        let _ = writeln!(text, "n{rule}.rules.example");
    }
    let _ = writeln!(text, "full:list{number}.example");
    text
}

fn ask(name: &str) -> Ask {
    Ask::new(name, Rtype::A)
}

#[test]
fn a_set_of_a_million_rules_is_reloaded_under_load_without_losing_a_query() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let (place, beside) = (directory.path().join("rules.txt"), directory.path().join("rules.new"));
    std::fs::write(&place, list(0)).expect("a writable directory");
    let server = Server::start_in(directory, CONFIG);
    let holds = |number: u32| server.ask(&ask(&format!("list{number}.example"))).rcode() == HELD;
    assert!(holds(0) && !holds(1));
    let done = AtomicBool::new(false);
    let asked = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..3_u16)
            .map(|client| {
                let (address, done) = (server.address(), &done);
                scope.spawn(move || {
                    let socket = UdpClient::connect(address);
                    let mut stream = TcpClient::connect(address);
                    let mut asked = 0_u32;
                    while !done.load(Ordering::Relaxed) {
                        // The set is never empty and never half full. What is not answered panics
                        // in the receive.
                        let rule = (asked.wrapping_mul(7919).wrapping_add(u32::from(client))) % RULES;
                        for (name, rcode) in [
                            (format!("n{rule}.rules.example"), HELD),
                            (format!("www.n{rule}.rules.example"), HELD),
                            (format!("x{rule}.rules.example"), NOT_HELD),
                        ] {
                            let heard = socket.ask(&ask(&name).id(client));
                            assert_eq!((heard.id(), heard.rcode()), (client, rcode), "{name}");
                            assert_eq!(stream.ask(&ask(&name)).rcode(), rcode, "{name}");
                            asked += 2;
                        }
                    }
                    asked
                })
            })
            .collect();
        for number in 1..=CHANGES {
            std::fs::write(&beside, list(number)).expect("a writable directory");
            std::fs::rename(&beside, &place).expect("a writable directory");
            server.signal("HUP");
            eventually("the changed list is in use", || holds(number));
            assert!(!holds(number - 1), "the list before is in use no more");
        }
        done.store(true, Ordering::Relaxed);
        clients.into_iter().map(|client| client.join().expect("every query was answered right")).sum::<u32>()
    });
    assert!(asked > 1000, "{asked} queries");
}
