//! What does it cost to change one line of a list of a million, and ten thousand, against compiling
//! the list anew? In time, and in memory.

#![expect(clippy::print_stderr, reason = "a benchmark talks to its user")]

use std::collections::HashSet;
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use lists::own::{Changed, OwnList, RuleChange};
use lists::{List, ListFormat, Progress, SetBuilder};
use wire::HashKey;

const RULES: usize = 1_000_000;
const MANY: usize = 10_000;
const KEY: HashKey = HashKey::new([1, 2]);
const ROUNDS: usize = 15;

/// Scatters a number, so that the names are in no order.
const fn scatter(number: usize) -> u32 {
    (number as u32).wrapping_mul(0x9e37_79b1)
}

fn name(number: usize) -> String {
    format!("domain{}.{}", scatter(number), ["com", "net", "org", "de"][number % 4])
}

fn changes(range: std::ops::Range<usize>, is_added: bool) -> Vec<RuleChange> {
    range.map(|number| RuleChange { is_added, rule: name(number) }).collect()
}

fn median(mut all: Vec<Duration>) -> Duration {
    all.sort_unstable();
    all[all.len() / 2]
}

fn main() {
    let mut text = String::new();
    for number in 0..RULES {
        writeln!(text, "{}", name(number)).expect("text");
    }
    let compile = || {
        let mut builder = SetBuilder::new(KEY);
        let list = List { format: ListFormat::Names, select: Vec::new(), is_own: true };
        let octets = text.as_bytes().into();
        builder.read(&list, "list", octets, &HashSet::new(), Progress::default());
        builder.compile(&[], &[])
    };
    let mut times = Vec::new();
    let mut octets = 0;
    for _ in 0..5 {
        let begin = Instant::now();
        let set = black_box(compile());
        times.push(begin.elapsed());
        assert_eq!(set.rules, RULES);
        octets = set.octets;
    }
    let whole = median(times);

    let list = OwnList::new(1, Vec::new());
    let read = || Ok(text.clone().into_bytes());
    let (names, _) = list.names((&KEY, "list"), Progress::default(), read).expect("read");
    let change = |changes: &[RuleChange]| {
        let begin = Instant::now();
        assert_eq!(list.change(changes), Some(Changed { changed: changes.len(), is_late: false }));
        begin.elapsed()
    };
    let mut one = Vec::new();
    let mut many = Vec::new();
    for round in 0..ROUNDS {
        one.push(change(&changes(RULES + round..RULES + round + 1, true)));
        one.push(change(&changes(round..round + 1, false)));
    }
    for _ in 0..ROUNDS {
        many.push(change(&changes(RULES / 2..RULES / 2 + MANY, false)));
        many.push(change(&changes(RULES / 2..RULES / 2 + MANY, true)));
    }
    let (one, many) = (median(one), median(many));
    let share = |part: Duration| part.as_secs_f64() / whole.as_secs_f64();
    eprintln!("1 M rules compiled:         {whole:?}, {octets} octets");
    eprintln!("one rule changed:           {one:?}, {:.6} of that", share(one));
    eprintln!("{MANY} rules changed:        {many:?}, {:.4} of that", share(many));
    let memory = names.octets() as f64 / octets as f64;
    eprintln!("memory with what changes:   {} octets, {memory:.3} of that", names.octets());
    assert!(share(one) <= 0.05 && memory <= 1.05);
}
