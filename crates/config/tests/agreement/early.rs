//! Cached answers that are given out before the rules, and those that `explain` takes through all
//! of them, are the same.

use engine::explain::Recorder;
use engine::{Engine, Outcome, Reply, Share, Verdict};
use proptest::prelude::*;
use wire::Message;

use crate::answers::upstream;
use crate::{Asked, COMMON, queries, start};

/// Tests of question, answer, client and marks; and of other things, now and then.
const TESTS: &[&str] = &[
    "qname in some",
    "qname in suffix:example",
    "qname in keyword:ad|some",
    "listed in some",
    "qtype == AAAA",
    "client in 10.0.0.0/8",
    "client in some|192.0.2.0/24",
    "not client in 203.0.113.0/24",
    "ptr-address in 10.0.0.0/8",
    "rd",
    "answer",
    "answered",
    "rcode == nxdomain",
    "answer has CNAME",
    "answer-address in some",
    "answer-cname in suffix:cdn.example",
    "mark(1)",
    "named",
    "transport == tcp",
    "do",
    "client-id == anna",
];

/// Whose queries fill the cache, whatever rules say.
const FILLER: &str = "198.51.100.77";

/// What rules do.
const ACTIONS: &[&str] = &[
    "mark(1)",
    "unmark",
    "reject(nxdomain)",
    "drop",
    "block(nxdomain)",
    "blocklist(some)",
    "blocklist(some, nxdomain, override)",
    "redirect(b.other)",
    "return",
    "ttl(max 100s)",
    "remove(AAAA)",
    "truncate",
];

fn rules() -> impl Strategy<Value = String> {
    let test = || prop::sample::select(TESTS);
    let condition = prop_oneof![
        3 => test().prop_map(str::to_owned),
        1 => (test(), test()).prop_map(|(one, other)| format!("{one} and {other}")),
        1 => (test(), test()).prop_map(|(one, other)| format!("{one} or {other}")),
    ];
    let some = (condition, prop::sample::select(ACTIONS))
        .prop_map(|(condition, action)| format!("    - {{if: '{condition}', do: '{action}'}}\n"));
    let list = Just("    - 'blocklist(some)'\n".to_owned());
    let local = Just("    - local\n".to_owned());
    let rule = prop_oneof![6 => some, 2 => list, 1 => local];
    prop::collection::vec(rule, 0..4).prop_map(|rules| rules.concat())
}

/// Policies with rules before and behind a cache that goes on, or a policy that is asked.
fn policies() -> impl Strategy<Value = String> {
    let view = prop::option::of(rules());
    (rules(), rules(), any::<bool>(), view).prop_map(|(before, after, asks, view)| {
        let find = if asks {
            "    - 'ask(find)'\n"
        } else {
            "    - 'cache(main, continue)'\n    - {if: not answer, do: 'forward(default)'}\n"
        };
        let views = view.as_ref().map_or("", |_| "views: [{clients: 10.1.0.0/16, policy: kids}]\n");
        let kids = view.map_or(String::new(), |rules| {
            format!("  kids:\n{rules}    - ['cache(main)', 'forward(default)']\n")
        });
        format!(
            "{COMMON}{views}policy:\n  main:\n    - {{if: client in {FILLER}, do: ['cache(main)', 'forward(default)']}}\n\
             {before}{find}{after}    - accept\n  \
             find: ['cache(main)', 'forward(default)']\n{kids}"
        )
    })
}

/// Asks without waiting; returns the reply, nothing if there is none, and what has to be waited
/// for.
fn reply_to(
    engine: &mut Engine,
    asked: &Asked,
    recorder: Option<&mut Recorder>,
) -> Result<Option<Vec<u8>>, Box<engine::Suspended>> {
    let (query, client) = (asked.bytes(), asked.client());
    let mut buffer = [0; 4096];
    let mut reply = Reply::new(&mut buffer);
    let verdict = match recorder {
        Some(recorder) => engine.explain(&query, &client, &mut reply, recorder),
        None => engine.answer(&query, &client, &mut reply),
    };
    match verdict {
        Verdict::Answered => Ok(Some(reply.bytes().to_vec())),
        Verdict::Drop | Verdict::Stream(_) => Ok(None),
        Verdict::Defer(suspended) => Err(suspended),
    }
}

/// Goes on with what the upstream says.
fn fill(engine: &mut Engine, asked: &Asked, suspended: Box<engine::Suspended>) {
    let name = asked.name.parse().expect("a name");
    let brought = upstream(&asked.text(), asked.rtype).message(&name, asked.rtype);
    let message = Message::parse(&brought).expect("a message");
    let mut buffer = [0; 4096];
    let _ = engine.resume(suspended, Outcome::Reply(&message), Share::First, &mut Reply::new(&mut buffer));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_given_out_early_is_what_all_steps_give(
        text in policies(),
        queries in prop::collection::vec(queries(), 8),
    ) {
        let (mut engine, _) = start(&format!("allow: any\n{text}"));
        // Whatever rules say, there is an answer in the cache.
        for asked in &queries {
            let [_, cd, ad] = asked.flags;
            let client = FILLER.parse().expect("an address");
            let filling = Asked { flags: [true, cd, ad], client, ..asked.clone() };
            if let Err(suspended) = reply_to(&mut engine, &filling, None) {
                fill(&mut engine, &filling, suspended);
            }
        }
        for round in 0..3 {
            for asked in &queries {
                let late = reply_to(&mut engine, asked, Some(&mut Recorder::default()));
                let early = reply_to(&mut engine, asked, None);
                match (late, early) {
                    (Ok(late), Ok(early)) => prop_assert_eq!(late, early, "{}: {:?}\n{}", round, asked, &text),
                    (Err(_), Err(_)) => {}
                    (late, early) => prop_assert!(
                        false, "{round}: {asked:?} waits: {}, {}\n{text}", late.is_err(), early.is_err()
                    ),
                }
            }
        }
    }
}
