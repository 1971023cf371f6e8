//! The built program under a load of names that it has not heard of: its memory stays bounded.

use std::collections::BTreeSet;

use gannet_bench::world::Way;
use testkit::world::{Denial, Options};
use testkit::{Ask, Server, UdpClient};
use wire::{Rcode, Rtype};

use super::recursion::{ZONES, start};

/// Queries on their way at the same time.
const WINDOW: u16 = 64;
/// Windows before memory is looked at: the tables are full by then.
const WINDOWS_BEFORE: u32 = 80;
/// And from then on.
const WINDOWS_AFTER: u32 = 200;
/// Octets by which it may have grown meanwhile. It would be several times that if a question left
/// behind what it takes.
const GROWTH_MAX: u64 = 10 << 20;

/// Returns the octets of memory that a server has in use.
fn resident(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its resident set");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

#[test]
fn names_that_are_new_all_the_time_do_not_make_the_server_grow() {
    let options = Options { signed: 500, denial: Denial::Mixed, lame: 200, dead: 50, ..Options::default() };
    let (service, server) = start(options, Way::default());
    let config = std::fs::read_to_string(server.directory().join("gannet.yaml")).expect("the configuration");
    let config = config
        .replace(
            "resolvers: {default: {",
            "cache: {main: {size: 1MiB}}\nresolvers: {default: {cache-size: 2MiB, ",
        )
        .replace("main: [recurse]", "main: [cache(main), recurse]");
    server.write_config(&config);
    assert!(server.command(&["reload"]).status.success());
    let client = UdpClient::connect(server.address());
    let mut number = 0;
    let mut windows = |count: u32| {
        for _ in 0..count {
            let mut open = BTreeSet::new();
            for id in 0..WINDOW {
                number += 1;
                let zone = service.world().zone_text(number % ZONES);
                // What is there, what is not, and types that are not.
                let (name, rtype) = match number / ZONES % 3 {
                    0 => (format!("n{number}.none.{zone}"), Rtype::A),
                    1 => (format!("n{number}.wild.{zone}"), Rtype::MX),
                    _ => (format!("n{number}.wild.{zone}"), Rtype::A),
                };
                let ask = Ask::new(&name, rtype).edns(1232).id(id);
                client.send(&if number % 2 == 0 { ask.dnssec() } else { ask }.bytes());
                open.insert(id);
            }
            while !open.is_empty() {
                let heard = client.receive();
                assert!([Rcode::NOERROR, Rcode::NXDOMAIN].contains(&heard.rcode()), "{heard:?}");
                open.remove(&heard.id());
            }
        }
    };
    windows(WINDOWS_BEFORE);
    let before = resident(&server);
    windows(WINDOWS_AFTER);
    let after = resident(&server);
    assert!(after <= before + GROWTH_MAX, "{} kB, then {} kB", before >> 10, after >> 10);
}
