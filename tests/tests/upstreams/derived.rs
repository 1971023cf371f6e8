//! The built program as a resolver: what it does not ask again, and what it does not ask at all.

use testkit::world::{Denial, Options};
use testkit::{Ask, UdpClient, eventually, name};
use wire::{Flags, Rcode, Rtype};

use crate::recursion::{check, count, start};
use gannet_bench::world::Way;

#[test]
fn made_up_names_of_a_signed_zone_are_denied_from_what_is_proved() {
    for denial in [Denial::Nsec, Denial::Nsec3] {
        let (service, server) = start(Options { signed: 1000, denial, ..Options::default() }, Way::default());
        let client = UdpClient::connect(server.address());
        let zone = service.world().zone_text(1);
        let ask_some = |from: u16| {
            let before = count(&service, "zone");
            for number in from..from + 200 {
                let qname = format!("n{number}.{zone}");
                let heard = client.ask(&Ask::new(&qname, Rtype::A).edns(1232).dnssec().id(number));
                assert_eq!((heard.rcode(), heard.has(Flags::AD)), (Rcode::NXDOMAIN, true), "{heard:?}");
                check(&service, &heard, name(&qname).as_name(), Rtype::A);
            }
            count(&service, "zone") - before
        };
        let first = ask_some(0);
        assert!((1..60).contains(&first), "{first}");
        assert!(ask_some(1000) <= 3, "nearly all ranges are known");
        for what in [&["--negative"][..], &["--suffix", &zone], &["--all"]] {
            assert!(server.command(&[&["resolver", "flush"], what].concat()).status.success());
            let again = ask_some(2000);
            assert!((1..60).contains(&again), "{what:?}: {again}");
        }
        let name = format!("n2000.{zone}");
        assert!(server.command(&["resolver", "flush", "--name", &name]).status.success());
        let before = count(&service, "zone");
        assert_eq!(client.ask(&Ask::new(&name, Rtype::A).edns(1232)).rcode(), Rcode::NXDOMAIN);
        assert!(count(&service, "zone") > before, "what says something of it is forgotten");
    }
}

#[test]
fn a_name_that_failed_is_found_when_the_internet_is_back() {
    let (service, server) = start(Options::default(), Way::default());
    let client = UdpClient::connect(server.address());
    let ask = |host: &str| Ask::new(&format!("{host}.{}", service.world().zone_text(0)), Rtype::A).edns(1232);
    assert_eq!(client.ask(&ask("www")).rcode(), Rcode::NOERROR);
    service.lose(1_000_000);
    let failed = client.ask(&ask("mail"));
    assert_eq!(failed.rcode(), Rcode::SERVFAIL);
    let before = count(&service, "all");
    let again = client.ask(&ask("mail"));
    assert_eq!((again.rcode(), again.errors()), (Rcode::SERVFAIL, failed.errors()), "it says again why");
    assert_eq!(count(&service, "all"), before, "nobody is asked");
    service.lose(0);
    eventually("it is found", || client.ask(&ask("mail")).rcode() == Rcode::NOERROR);
}
