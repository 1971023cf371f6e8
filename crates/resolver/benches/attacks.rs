//! What one question costs when the servers that it leads to are hostile: queries sent, signatures
//! checked, and the processor's time of the resolver, replies parsed. A question for an honest name
//! stands beside them.
//!
//! Each row is the median of some internets that are made anew, so that nothing is known. The tests
//! with the same scenes say what must come out; `docs/attacks.md` has the figures.

#![allow(dead_code, unused_imports, reason = "of the tests' modules, only the scenes are used here")]
#![expect(clippy::print_stdout, reason = "what was measured is what it is for")]

#[path = "../tests/all/attacks.rs"]
mod attacks;
#[path = "../tests/all/attacks_replies.rs"]
mod attacks_replies;
#[path = "../tests/all/attacks_signed.rs"]
mod attacks_signed;
#[path = "../tests/all/referrals.rs"]
mod referrals;
#[path = "../tests/all/signed.rs"]
mod signed;
#[path = "../tests/all/validation.rs"]
mod validation;
#[path = "../tests/all/world.rs"]
mod world;

use std::time::Duration;

use wire::Rtype;

use signed::Signing;
use world::World;

/// Internets that are made for each row; odd, so that there is a middle one.
const ROUNDS: usize = 15;

/// Measures a question for this name in such internets, and prints a row.
fn row(what: &str, name: &str, make: impl Fn() -> World) {
    let mut costs: Vec<(Duration, usize, u64)> = (0..ROUNDS)
        .map(|_| {
            let mut world = make();
            let seen = world.resolve(name, Rtype::A);
            (world.spent, seen.sends, world.resolver.signatures_checked())
        })
        .collect();
    costs.sort_unstable();
    let (spent, sends, checked) = costs[ROUNDS / 2];
    println!("{what:34} {sends:3} queries {checked:3} signatures {:8.0} us", spent.as_secs_f64() * 1e6);
}

fn main() {
    row("honest", "www.victim.org", || attacks::with_evil(""));
    row("honest, signed", "www.example.org", || {
        validation::internet(Signing::Nsec, Signing::Nsec).build().world
    });
    row("NXNSAttack", "www.sub.evil.org", attacks::nxns);
    row("NRDelegation, silent servers", "www.sub.evil.org", attacks::silent);
    row("NRDelegation, 1,500 servers", "www.sub.evil.org", || attacks_replies::many_servers(true));
    row("CAMP", "a.b.c.d.e0.evil.org", attacks::camp);
    row("CAMP, referrals", "www.z0.evil.org", attacks::camp);
    let (_, long) = attacks_replies::long_names();
    row("long names in a large reply", &long, || attacks_replies::long_names().0);
    row("large replies", "na.evil.org", attacks_replies::large_replies);
    row("KeyTrap", "www.example.org", || attacks_signed::keytrap().world);
    let (_, deep) = attacks_signed::deep_hashes();
    let deep = format!("{deep}none.example.org");
    row("NSEC3, 50 iterations", &deep, || attacks_signed::deep_hashes().0.world);
}
