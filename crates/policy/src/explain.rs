//! What happened to a query, in the words of the configuration that decided it.

use diagnostic::{Sources, Span};
use engine::Security;
use engine::explain::{Did, Event};
use engine::ops::cache::CacheStep;
use engine::program::{Op, Program};
use engine::shortlist::Kind;
use engine::trace::Note;
use engine::{Caches, PoolId, ResolverId};

/// One thing that happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explained {
    /// The file that says so, and the line there, from 1.
    pub place: Option<(String, u32)>,
    /// The condition or action as it is written.
    pub text: String,
    /// For a condition: whether it held.
    pub held: Option<bool>,
    /// What came of it.
    pub outcome: String,
}

/// What queries run on, and what it was made of.
pub struct Origin<'a> {
    /// The steps.
    pub program: &'a Program,
    /// Where each step was written.
    pub places: &'a [Span],
    /// What is written there.
    pub sources: &'a Sources,
    /// The caches.
    pub caches: &'a Caches,
    /// Returns what a group of upstream servers is called.
    pub group: &'a dyn Fn(PoolId) -> Option<&'a str>,
    /// Returns what a resolver is called.
    pub resolver: &'a dyn Fn(ResolverId) -> Option<&'a str>,
}

/// Tells what happened to a query.
pub fn explain(origin: &Origin<'_>, events: &[Event]) -> Vec<Explained> {
    let mut explained = Vec::new();
    for event in events {
        match event {
            Event::Skipped(rules) => skipped(origin, rules, &mut explained),
            other => explained.extend(one(origin, other)),
        }
    }
    explained
}

fn one(origin: &Origin<'_>, event: &Event) -> Option<Explained> {
    let (at, did) = match event {
        Event::Note(note) => {
            return Some(Explained { outcome: note_text(*note).to_owned(), ..Explained::default() });
        }
        Event::Came { rcode, answers } => {
            let records = if *answers == 1 { "record" } else { "records" };
            let outcome = format!("{rcode} came, with {answers} {records}");
            return Some(Explained { outcome, ..Explained::default() });
        }
        Event::Resolved { rcode, answers, security } => {
            let records = if *answers == 1 { "record" } else { "records" };
            let outcome = format!("{rcode} was found, with {answers} {records}{}", security_text(*security));
            return Some(Explained { outcome, ..Explained::default() });
        }
        Event::Unresolved { rcode, text } => {
            let outcome = format!("no answer was found, {rcode}: {text}");
            return Some(Explained { outcome, ..Explained::default() });
        }
        Event::Resolving(line) => {
            return Some(Explained { outcome: line.clone(), ..Explained::default() });
        }
        Event::Failed(failure) => {
            let outcome = format!("no answer came: {}", failure.ede().1);
            return Some(Explained { outcome, ..Explained::default() });
        }
        Event::Branch(branch) => {
            let outcome = match branch {
                Some(branch) => format!("branch {} wins", branch + 1),
                None => "no branch has an answer".to_owned(),
            };
            return Some(Explained { outcome, ..Explained::default() });
        }
        Event::Slept => return Some(Explained { outcome: "goes on".to_owned(), ..Explained::default() }),
        Event::Won { server, took } => {
            let outcome = format!("{server} answered after {:.1} ms", took.as_secs_f64() * 1e3);
            return Some(Explained { outcome, ..Explained::default() });
        }
        Event::Step { at, did } => (usize::from(*at), did),
        Event::Skipped(_) => return None,
    };
    let op = origin.program.ops().get(at)?;
    // What the compiler put between the steps that somebody wrote.
    if matches!(op, Op::Skip(_)) {
        return None;
    }
    let span = origin.places.get(at).copied()?;
    let place = place(origin, span);
    let text = origin.sources.text(span).unwrap_or_else(|| op_text(origin, op));
    let (held, outcome) = match did {
        Did::Tested { holds, why } => (Some(*holds), format!("{}: {why}", if *holds { "yes" } else { "no" })),
        Did::Something => match op {
            // The name of a policy stands for its end.
            Op::Return => (None, "ends, and goes back".to_owned()),
            Op::Call(_) => (None, "goes there".to_owned()),
            Op::Goto(_) => (None, "goes there, and does not come back".to_owned()),
            _ => (None, "done".to_owned()),
        },
        Did::Found(true) => (None, "a fresh answer is there".to_owned()),
        Did::Found(false) => (None, "an old answer is there".to_owned()),
        Did::NotFound => (None, "nothing is there; what comes will be kept".to_owned()),
        Did::Answered => (None, "answers".to_owned()),
        Did::Ended => (None, "ends".to_owned()),
        Did::Splits => (None, "starts its branches".to_owned()),
        Did::Sleeps(ms) => (None, format!("waits for {ms} ms")),
        Did::Resolves(id) => {
            (None, format!("resolver \"{}\" looks for the answer", resolver_name(origin, *id)))
        }
        Did::Asks(pool) => (None, format!("asks upstream group \"{}\"", pool_name(origin, *pool))),
    };
    Some(Explained { place, text, held, outcome })
}

/// Returns the file and the line of a place.
fn place(origin: &Origin<'_>, span: Span) -> Option<(String, u32)> {
    let source = origin.sources.file(span.file)?;
    Some((source.path.display().to_string(), source.place(span.start).line))
}

/// Tells about rules that were left out; those in a row that ask for the same are told together.
fn skipped(origin: &Origin<'_>, rules: &[(u16, Kind)], explained: &mut Vec<Explained>) {
    for alike in rules.chunk_by(|(_, kind), (_, next)| kind == next) {
        let span = |(at, _): &(u16, Kind)| origin.places.get(usize::from(*at)).copied();
        let (Some((_, kind)), Some(first)) = (alike.first(), alike.first().and_then(span)) else { continue };
        let what = match kind {
            Kind::Qtype => "other types",
            Kind::Flags => "other flags, or an answer",
            Kind::Marks => "other marks",
            Kind::Listener => "other listeners",
            Kind::Transport => "other transports",
            Kind::ClientMac => "other hardware addresses",
            Kind::Client => "other clients",
            Kind::Qname => "other names",
            Kind::Test => "something that this query is not",
        };
        let (text, outcome) = match alike.last().and_then(span).and_then(|last| place(origin, last)) {
            Some((_, line)) if alike.len() > 1 => {
                (String::new(), format!("no: the rules from here to line {line} look for {what}"))
            }
            _ => {
                let text = origin.sources.text(first).unwrap_or_default();
                (text, format!("no: this rule looks for {what}"))
            }
        };
        explained.push(Explained { place: place(origin, first), text, held: Some(false), outcome });
    }
}

/// Returns what is said of the signatures of an answer.
const fn security_text(security: Security) -> &'static str {
    match security {
        Security::Unchecked => "",
        Security::Secure => ", secure",
        Security::Insecure => ", insecure",
        Security::Bogus => ", bogus",
        Security::Indeterminate => ", indeterminate",
    }
}

const fn note_text(note: Note) -> &'static str {
    match note {
        Note::Malformed => "this is not readable as a query",
        Note::Denied => "the client is not on the access list (setting allow): refused",
        Note::Banned => "the client is banned (setting deny): no reply",
        Note::Limited => "the client asks too often (setting limits.rate)",
        Note::BadCookie => "the cookie of the query is malformed",
        Note::TooLarge => "the query is larger than queries may be (limits.query-size)",
        Note::NoCookie => "the client has to show a cookie, and does not",
        Note::Protocol => "the protocol decides, before any rule",
    }
}

/// Returns how a step that no file says would be written.
fn op_text(origin: &Origin<'_>, op: &Op) -> String {
    match op {
        Op::Cache(CacheStep { cache, .. }) => {
            format!("cache({})", origin.caches.name_of(cache).unwrap_or(""))
        }
        Op::Forward(step) => format!("forward({})", pool_name(origin, step.pool)),
        Op::Recurse(step) => format!("recurse({})", resolver_name(origin, step.resolver)),
        Op::Local(_) => "own names".to_owned(),
        Op::Zone(_) | Op::ZoneSet(..) => "zones".to_owned(),
        Op::Accept => "the end".to_owned(),
        _ => "built in".to_owned(),
    }
}

fn resolver_name<'o>(origin: &Origin<'o>, id: ResolverId) -> &'o str {
    (origin.resolver)(id).unwrap_or("")
}

fn pool_name<'o>(origin: &Origin<'o>, id: PoolId) -> &'o str {
    (origin.group)(id).unwrap_or("")
}
