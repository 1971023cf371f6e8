//! Actions: `cache(main)`, `reject(nxdomain)`, `ttl(min 10s, max 1h)`.
//!
//! Each file here holds one kind: its enum, its rows of the table, and what the rest of the
//! compiler needs to know about each of them. A new action is a row, a variant, its lines in these
//! functions, and its step in [`compile`](crate::compile).

mod addresses;
pub mod answer;
pub mod core;
pub mod edit;
pub mod event;
pub mod listed;
mod names;
pub mod outgoing;

use std::fmt;

use diagnostic::suggest::{nearest, one_of};
use diagnostic::{At, Problem, Scalar};

use super::arguments::{Arguments, Reported};

pub use self::addresses::Addresses;
pub use self::answer::Answer;
pub use self::core::Core;
pub use self::edit::{Edit, TtlChange};
pub use self::event::Event;
pub use self::listed::Listed;
pub use self::names::Names;
pub use self::outgoing::Outgoing;

/// What a rule does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Decides which way a query goes, and whom it asks.
    Core(Core),
    /// Makes an answer.
    Answer(Answer),
    /// Does what a list says.
    Listed(Listed),
    /// Changes the answer there is.
    Edit(Edit),
    /// Changes the query that is sent to upstreams.
    Outgoing(Outgoing),
    /// Tells somebody about the query, and goes on.
    Event(Event),
}

/// A kind of thing that the file defines and actions name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Noun {
    /// A group of `upstreams`.
    Group,
    /// A resolver.
    Resolver,
    /// A cache.
    Cache,
    /// A policy.
    Policy,
    /// A set.
    Set,
    /// An effect.
    Effect,
    /// A condition.
    Condition,
    /// A listener.
    Listener,
    /// A set of records.
    Records,
    /// A set of zones.
    Zones,
    /// A policy, or a group of `upstreams`.
    Way,
}

impl Noun {
    /// Returns the word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Group => "upstream group",
            Self::Resolver => "resolver",
            Self::Cache => "cache",
            Self::Policy => "policy",
            Self::Set => "set",
            Self::Effect => "effect",
            Self::Condition => "condition",
            Self::Listener => "listener",
            Self::Records => "set of records",
            Self::Zones => "set of zones",
            Self::Way => "policy or upstream group",
        }
    }
}

/// Something that an action names.
#[derive(Clone, Copy, Debug)]
pub struct Reference<'a> {
    /// What it is.
    pub noun: Noun,
    /// Its name.
    pub name: &'a At<String>,
}

/// What an action means for a query that comes to it, as far as rules before and after it are
/// concerned.
#[derive(Clone, Debug)]
pub enum Meaning<'a> {
    /// Looks for an answer and ends with it; one that was there is lost. Says what looks.
    Looks(&'static str),
    /// Looks for an answer and goes on, with it or without one; one that was there is lost. Says
    /// what looks.
    Finds(&'static str),
    /// Looks into a cache, and fills it with what comes after.
    Keeps {
        /// Which.
        cache: &'a str,
        /// Whether it goes on with what it finds.
        continues: bool,
    },
    /// Asks a group and goes on with its answer.
    Asks(&'a str),
    /// Has a resolver find an answer and goes on with it.
    Resolves(&'a str),
    /// Runs policies, one or several, and goes on with the answer that one of them brought.
    Runs(Vec<&'a At<String>>),
    /// Runs a policy and goes on.
    Calls(&'a At<String>),
    /// Runs a policy and does not come back.
    Goes(&'a At<String>),
    /// Goes back to where this policy was called.
    Returns,
    /// Ends the query.
    Ends,
    /// Takes the answer away.
    Forgets,
    /// Changes what upstreams are sent from here on. Says what does.
    Sends(&'static str),
    /// Has what follows look for answers in its own way; an answer that is there stays. Says what
    /// does.
    Steers(&'static str),
    /// Changes the answer there is. Says what does.
    Changes(&'static str),
    /// Goes on, with an answer or without one.
    Passes,
}

impl Action {
    /// Returns what it means for the rules around it.
    pub fn meaning(&self) -> Meaning<'_> {
        match self {
            Self::Core(action) => action.meaning(),
            Self::Answer(action) => action.meaning(),
            Self::Listed(action) => action.meaning(),
            Self::Edit(action) => action.meaning(),
            Self::Outgoing(action) => action.meaning(),
            Self::Event(action) => action.meaning(),
        }
    }

    /// Returns whether nothing after it in its policy is reached.
    pub fn ends(&self) -> bool {
        matches!(self.meaning(), Meaning::Ends | Meaning::Returns | Meaning::Goes(_))
    }

    /// Returns the policies that it runs.
    pub fn policies(&self) -> Vec<&At<String>> {
        match self.meaning() {
            Meaning::Runs(names) => names,
            Meaning::Calls(name) | Meaning::Goes(name) => vec![name],
            Meaning::Looks(_)
            | Meaning::Finds(_)
            | Meaning::Keeps { .. }
            | Meaning::Asks(_)
            | Meaning::Resolves(_)
            | Meaning::Returns
            | Meaning::Ends
            | Meaning::Forgets
            | Meaning::Sends(_)
            | Meaning::Steers(_)
            | Meaning::Changes(_)
            | Meaning::Passes => Vec::new(),
        }
    }

    /// Returns everything that it names.
    pub fn references(&self) -> Vec<Reference<'_>> {
        match self {
            Self::Core(action) => action.references(),
            Self::Answer(action) => action.references(),
            Self::Listed(action) => action.references(),
            Self::Edit(action) => action.references(),
            Self::Outgoing(action) => action.references(),
            Self::Event(action) => action.references(),
        }
    }
}

/// One action of the language.
pub struct Row {
    /// Its word.
    pub word: &'static str,
    /// How its arguments are written; empty if it takes none, in `[ ]` if it may go without.
    pub arguments: &'static str,
    /// What it does, for the manual.
    pub text: &'static str,
    /// Reads the arguments; what it does not ask for is reported after it.
    pub read: fn(&mut Arguments<'_>) -> Result<Action, Reported>,
}

impl Row {
    /// Returns how it is written.
    pub fn form(&self) -> String {
        if self.arguments.is_empty() {
            self.word.to_owned()
        } else {
            format!("{}({})", self.word, self.arguments)
        }
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.form())
    }
}

/// Every action, in the order of the manual.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    [answer::ROWS, listed::ROWS, core::ROWS, edit::ROWS, outgoing::ROWS, event::ROWS].into_iter().flatten()
}

/// Reads one action.
pub fn parse(scalar: &Scalar, problems: &mut Vec<Problem>) -> Option<Action> {
    let text = scalar.text.trim();
    let lead = scalar.text.len() - scalar.text.trim_start().len();
    let word_end = text.find(['(', ' ']).unwrap_or(text.len());
    let word = &text[..word_end];
    let Some(row) = rows().find(|row| row.word == word) else {
        let word_span = scalar.span(lead, lead + word_end.max(1));
        let words: Vec<&str> = rows().map(|row| row.word).collect();
        let problem = Problem::error(word_span, format!("unknown action \"{word}\""));
        problems.push(match (nearest(word, words.iter().copied()), values::rcode(word)) {
            (Some(near), _) => problem.hint(format!("did you mean \"{near}\"?")),
            (None, Ok(_)) => problem.hint(format!("did you mean \"reject({word})\"?")),
            (None, Err(_)) => problem.expected(one_of(&words)),
        });
        return None;
    };
    let whole = lead..lead + text.len();
    let mut arguments = Arguments::parse(scalar, whole, word, row.form(), problems).ok()?;
    if row.arguments.is_empty() && !arguments.is_empty() {
        arguments.wrong(arguments.place(), format!("\"{word}\" takes nothing in parentheses"), word);
        return None;
    }
    let action = (row.read)(&mut arguments).ok()?;
    arguments.finish().ok()?;
    Some(action)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnostic::{Diagnostic, Sources, Span, diagnostics};
    use std::path::Path;
    use std::time::Duration;
    use wire::Rcode;

    pub(super) fn read(text: &str) -> Result<Action, Vec<String>> {
        let mut sources = Sources::new(&[]);
        let file = sources.add(Path::new("x"), text.to_owned());
        let span = Span { file, start: 0, end: text.len() as u32 };
        let mut problems = Vec::new();
        let found = parse(&Scalar::straight(text.to_owned(), span), &mut problems);
        found.ok_or_else(|| diagnostics(problems, &sources).iter().map(Diagnostic::line).collect())
    }

    fn label(text: &str) -> At<String> {
        At { value: text.to_owned(), span: Span::BUILT_IN }
    }

    pub(super) fn check(text: &str, expect: Action) {
        assert_eq!(read(text), Ok(expect), "{text}");
    }

    pub(super) fn check_wrong(text: &str, expect: &str) {
        assert_eq!(read(text), Err(vec![expect.to_owned()]), "{text}");
    }

    #[test]
    fn each_action_is_read() {
        check("hosts", Action::Answer(Answer::Hosts));
        check("cache(main)", Action::Core(Core::Cache(label("main"))));
        check("cache ( main )", Action::Core(Core::Cache(label("main"))));
        check("reject(NXDOMAIN)", Action::Answer(Answer::Reject(Rcode::NXDOMAIN)));
        check("mark(63)", Action::Core(Core::Mark(63)));
        check("unmark(63)", Action::Core(Core::Unmark(Some(63))));
        check("unmark", Action::Core(Core::Unmark(None)));
        for (text, continues, without_rd) in [
            ("cache(main, continue)", true, false),
            ("cache(main, without-rd)", false, true),
            ("cache(main, without-rd, continue)", true, true),
        ] {
            check(text, Action::Core(Core::CacheWith { name: label("main"), continues, without_rd }));
        }
        let members = vec![label("a"), label("b")];
        check("forward(all, members a|b)", Action::Core(Core::ForwardTo { group: label("all"), members }));
        check("recurse", Action::Core(Core::Recurse(label("default"))));
        check("recurse(own)", Action::Core(Core::Recurse(label("own"))));
        check("goto(other)", Action::Core(Core::Goto(label("other"))));
        check("sleep(20ms)", Action::Core(Core::Sleep(Duration::from_millis(20))));
        let sides = [label("fast"), label("root")];
        let fallback = |unusable, on_slow, always, after| {
            let sides = sides.clone();
            let after = Duration::from_millis(after);
            Action::Core(Core::Fallback(core::Fallback { sides, after, on_slow, always, unusable }))
        };
        let usual = || core::Unusable { rcodes: vec![], every: true, failures: true };
        check("fallback(fast, root)", fallback(usual(), true, false, 500));
        check("fallback(fast, root, after 300ms, standby always)", fallback(usual(), true, true, 300));
        check(
            "fallback(fast, root, on servfail|timeout)",
            fallback(
                core::Unusable { rcodes: vec![Rcode::SERVFAIL], every: false, failures: true },
                true,
                false,
                500,
            ),
        );
        check(
            "fallback(fast, root, on [nxdomain, error])",
            fallback(
                core::Unusable { rcodes: vec![Rcode::NXDOMAIN], every: false, failures: true },
                false,
                false,
                500,
            ),
        );
        let name = |text| values::name(text).expect("a name");
        let rename =
            |with_alias, to| Action::Core(Core::Rename { with_alias, ttl: None, authoritative: false, to });
        check("redirect(example.net)", rename(true, core::Renaming::To(name("example.net"))));
        let pattern = |text, covers_below| At {
            value: core::Pattern { name: name(text), covers_below },
            span: Span::BUILT_IN,
        };
        let renaming = core::Renaming::From(pattern("a.example", true), pattern("b.example", true));
        check("rewrite(*.a.example, suffix:b.example)", rename(false, renaming));
        check("ttl(fixed 60s)", Action::Edit(Edit::Ttl(TtlChange::Fixed(Duration::from_secs(60)))));
        check(
            "ttl(max 1h)",
            Action::Edit(Edit::Ttl(TtlChange::Clamped { min: None, max: Some(Duration::from_secs(3600)) })),
        );
    }

    #[test]
    fn mistakes_point_into_the_text() {
        check_wrong("cach(main)", "x:1:1: error: unknown action \"cach\"");
        check_wrong(
            "cache",
            "x:1:1: error: \"cache\" needs something in parentheses: expected cache(NAME, [continue], [without-rd])",
        );
        check_wrong("drop(x)", "x:1:1: error: \"drop\" takes nothing in parentheses: expected drop");
        check_wrong("recurse(a, b)", "x:1:12: error: \"b\" cannot stand here: expected recurse([NAME])");
        check_wrong(
            "cache(main",
            "x:1:1: error: \"cache(main\" has no \")\" at its end: expected cache(NAME, [continue], [without-rd])",
        );
        check_wrong(
            "reject(nope)",
            "x:1:8: error: unknown response code \"nope\": expected noerror, formerr, servfail, nxdomain, notimp or refused",
        );
        check_wrong(
            "ttl(fixed 60)",
            "x:1:11: error: \"60\" has no unit: expected a duration such as 500ms, 10s, 1m30s, 2h or 1d",
        );
        check_wrong(
            "fallback(a)",
            "x:1:1: error: something is missing in the parentheses of \"fallback\": expected fallback(FIRST, SECOND, \
             [after TIME], [on unusable|timeout|error|RCODE…], [standby late|always])",
        );
        check_wrong(
            "fallback(a, b, after 1s, on servfail)",
            "x:1:22: error: the time says nothing: being slow is no reason here: expected \"timeout\" after \"on\"",
        );
        check_wrong("race(a)", "x:1:1: error: 1 in a race: expected 2 to 4");
        check_wrong(
            "race(a, b, on timeout)",
            "x:1:15: error: a race waits for the first usable answer, however long: expected unusable, error or response codes",
        );
        check_wrong(
            "rewrite(a.example, *.b.example)",
            "x:1:20: error: one name cannot become many: expected a name, or a suffix before it too",
        );
        check_wrong("sleep(2m)", "x:1:7: error: \"2m\" is not a time to wait: expected 1ms to 60s");
        check_wrong(
            "dns64(2001:db8::/80)",
            "x:1:7: error: \"2001:db8::/80\" cannot hold IPv4 addresses: expected an IPv6 prefix of 32, 40, 48, 56, 64 \
             or 96 bits (RFC 6052 §2.2)",
        );
        check_wrong("ttl(min 1h max 1s)", "x:1:9: error: the smallest TTL is larger than the largest");
        check_wrong(
            "ttl(min)",
            "x:1:5: error: \"min\" needs a value after it: expected ttl(fixed TIME | min TIME, max TIME | jitter PERCENT)",
        );
        let words: Vec<&str> = rows().map(|row| row.word).collect();
        check_wrong("", &format!("x:1:1: error: unknown action \"\": expected {}", one_of(&words)));
    }

    #[test]
    fn every_action_has_words_for_the_manual() {
        assert!(rows().all(|row| row.text.ends_with('.')));
    }
}
