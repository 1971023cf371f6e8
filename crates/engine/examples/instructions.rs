//! Runs one case of the hot path a number of times, for a tool that counts instructions.
//!
//! `instructions` lists the cases; `instructions CASE TIMES` runs one. What the set-up costs is the difference
//! between two runs' totals taken away: see `cargo xtask instructions`.

#![allow(clippy::print_stdout, reason = "a list for the tool that calls it")]

use std::hint::black_box;

use engine::ops::cache::CacheRules;
use engine::{Reply, Verdict};
use wire::{Query, Rtype};

#[path = "../tests/common/mod.rs"]
mod common;
use common::{Ask, Server, with_address};

const CASES: [&str; 8] =
    ["parse", "parse_edns", "cached_1", "cached_1000", "cached_edns", "local", "local_nxdomain", "deferred"];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(case), Some(times)) = (arguments.next(), arguments.next()) else {
        CASES.iter().for_each(|case| println!("{case}"));
        return;
    };
    let times: usize = times.parse().expect("a number of times");
    let rules = CacheRules { prefetch_percent: 0, ..CacheRules::default() };
    let mut server = Server::new(rules);
    let names: Vec<Ask> = (0..1000).map(|i| Ask::new(&format!("domain-{i}.example.com"), Rtype::A)).collect();
    for (i, ask) in (0_u32..).zip(&names) {
        server.fetch(ask, &with_address(ask, 3600, i.to_be_bytes()));
    }
    let plain = names.iter().map(Ask::bytes).collect::<Vec<_>>();
    let edns = Ask::new("domain-0.example.com", Rtype::A).edns(1232);
    let queries = match case.as_str() {
        "parse" | "cached_1" => vec![plain[0].clone()],
        "cached_1000" => plain,
        "parse_edns" | "cached_edns" => vec![edns.bytes()],
        "local" => vec![Ask::new("nas.home.arpa", Rtype::A).bytes()],
        "local_nxdomain" => vec![Ask::new("no.such.invalid", Rtype::A).bytes()],
        "deferred" => vec![Ask::new("www.example.net", Rtype::A).bytes()],
        other => panic!("no case {other}; without arguments there is a list"),
    };
    let client = server.client;
    let mut buf = [0; 1232];
    for i in 0..times {
        let query = black_box(queries[i % queries.len()].as_slice());
        if case.starts_with("parse") {
            assert!(black_box(Query::parse(query)).is_ok());
            continue;
        }
        let mut reply = Reply::new(&mut buf);
        match server.engine.answer(query, &client, &mut reply) {
            Verdict::Answered => assert!(case != "deferred" && reply.len() > query.len()),
            // Taken, as listeners take it.
            Verdict::Defer(suspended) => {
                assert_eq!(case, "deferred");
                drop(suspended);
            }
            Verdict::Hand(handed) => {
                drop(handed);
                panic!("handed over");
            }
            Verdict::Drop => panic!("dropped"),
        }
        black_box(reply.bytes());
    }
}
