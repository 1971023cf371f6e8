//! Actions: `cache(main)`, `reject(nxdomain)`, `ttl(min 10s max 1h)`.

use std::ops::Range;
use std::time::Duration;

use wire::Rcode;

use crate::diagnostic::Problem;
use crate::policy::condition;
use crate::source::{At, Span};
use crate::suggest::{nearest, one_of};
use crate::values::{self, Misread, Read};
use crate::yaml::Scalar;

/// What a rule does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Answer from hosts files.
    Hosts,
    /// Answer from `local` and the special-use names.
    Local,
    /// Answer from a cache; fill it with what the steps after it bring.
    Cache(At<String>),
    /// Ask an upstream group.
    Forward(At<String>),
    /// End: send what there is.
    Accept,
    /// End: answer with this code.
    Reject(Rcode),
    /// End: say nothing.
    Drop,
    /// Put a mark on the query.
    Mark(u8),
    /// Run another policy, then go on here.
    Call(At<String>),
    /// Go back to where this policy was called.
    Return,
    /// Change the TTLs of the answer.
    Ttl(TtlChange),
}

/// What becomes of TTLs. One variant per meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TtlChange {
    /// All become this.
    Fixed(Duration),
    /// They are kept between these.
    Clamped {
        /// At least.
        min: Option<Duration>,
        /// At most.
        max: Option<Duration>,
    },
}

impl Action {
    /// Returns whether nothing after it in its policy is reached.
    pub const fn ends(&self) -> bool {
        match self {
            Self::Accept | Self::Reject(_) | Self::Drop | Self::Return => true,
            Self::Hosts
            | Self::Local
            | Self::Cache(_)
            | Self::Forward(_)
            | Self::Mark(_)
            | Self::Call(_)
            | Self::Ttl(_) => false,
        }
    }
}

/// One action of the language.
pub struct Row {
    /// Its word.
    pub word: &'static str,
    /// How its arguments are written; empty if it takes none.
    pub arguments: &'static str,
    /// What it does, for the manual.
    pub text: &'static str,
    read: fn(&Argument<'_>) -> Read<Action>,
}

/// Every action, in the order of the manual.
pub const ACTIONS: &[Row] = &[
    Row {
        word: "hosts",
        arguments: "",
        text: "Answers from hosts files, if they hold the name.",
        read: |_| Ok(Action::Hosts),
    },
    Row {
        word: "local",
        arguments: "",
        text: "Answers from `local`, and names that never leave a server (`localhost`, reverse zones of private \
               addresses, `invalid`, …).",
        read: |_| Ok(Action::Local),
    },
    Row {
        word: "cache",
        arguments: "NAME",
        text: "Answers from the cache of that name, and ends; otherwise what the steps after it bring is kept there.",
        read: |argument| argument.label().map(Action::Cache),
    },
    Row {
        word: "forward",
        arguments: "NAME",
        text: "Asks the upstream group of that name.",
        read: |argument| argument.label().map(Action::Forward),
    },
    Row {
        word: "accept",
        arguments: "",
        text: "Ends: the answer so far is sent.",
        read: |_| Ok(Action::Accept),
    },
    Row {
        word: "reject",
        arguments: "RCODE",
        text: "Ends with this response code: `noerror`, `nxdomain`, `refused`, `servfail`, `notimp` or `formerr`.",
        read: |argument| values::rcode(argument.text).map(Action::Reject),
    },
    Row { word: "drop", arguments: "", text: "Ends without a reply.", read: |_| Ok(Action::Drop) },
    Row {
        word: "mark",
        arguments: "NUMBER",
        text: "Puts a mark, 0 to 63, on the query; conditions can look at it.",
        read: |argument| condition::mark(argument.text).map(Action::Mark),
    },
    Row {
        word: "call",
        arguments: "NAME",
        text: "Runs the policy of that name and goes on here, unless it ended the query.",
        read: |argument| argument.label().map(Action::Call),
    },
    Row {
        word: "return",
        arguments: "",
        text: "Goes back to where this policy was called; in `main`, ends.",
        read: |_| Ok(Action::Return),
    },
    Row {
        word: "ttl",
        arguments: "fixed TIME | min TIME max TIME",
        text: "Changes the TTLs of the answer that the client gets: `ttl(fixed 60s)`, `ttl(min 10s max 1h)`, `ttl(max 1h)`.",
        read: |argument| argument.ttl().map(Action::Ttl),
    },
];

/// What stands between the parentheses.
struct Argument<'t> {
    text: &'t str,
    span: Span,
}

impl Argument<'_> {
    fn label(&self) -> Read<At<String>> {
        values::identifier(self.text).map(|name| At { value: name.to_owned(), span: self.span })
    }

    fn ttl(&self) -> Read<TtlChange> {
        const EXPECTED: &str = "\"fixed 60s\", \"min 10s\", \"max 1h\" or \"min 10s max 1h\"";
        let mut words = self.text.split_whitespace();
        let offset = |word: &str| word.as_ptr() as usize - self.text.as_ptr() as usize;
        let (mut fixed, mut min, mut max) = (None, None, None);
        while let Some(word) = words.next() {
            let place = match word {
                "fixed" => &mut fixed,
                "min" => &mut min,
                "max" => &mut max,
                other => return Err(self.wrong(offset(other)..offset(other) + other.len(), other, EXPECTED)),
            };
            let Some(time) = words.next() else {
                return Err(self.wrong(offset(word)..offset(word) + word.len(), word, EXPECTED));
            };
            let at = offset(time);
            let duration = values::duration(time)
                .map_err(|misread| Misread { at: at + misread.at.start..at + misread.at.end, ..misread })?;
            if duration > Duration::from_secs(TTL_SECONDS_MAX) {
                return Err(Misread {
                    at: at..at + time.len(),
                    message: format!("\"{time}\" is too long for a TTL"),
                    expected: Some("at most 68 years (RFC 2181 §8)".to_owned()),
                    hint: None,
                });
            }
            if place.replace(duration).is_some() {
                return Err(self.wrong(offset(word)..offset(word) + word.len(), word, EXPECTED));
            }
        }
        match (fixed, min, max) {
            (Some(fixed), None, None) => Ok(TtlChange::Fixed(fixed)),
            (None, Some(min), Some(max)) if min > max => Err(Misread {
                at: 0..self.text.len(),
                message: "the smallest TTL is larger than the largest".to_owned(),
                expected: None,
                hint: None,
            }),
            (None, min, max) if min.is_some() || max.is_some() => Ok(TtlChange::Clamped { min, max }),
            _ => Err(self.wrong(0..self.text.len(), self.text, EXPECTED)),
        }
    }

    fn wrong(&self, at: Range<usize>, found: &str, expected: &str) -> Misread {
        Misread {
            at,
            message: format!("\"{found}\" does not say what becomes of the TTL"),
            expected: Some(expected.to_owned()),
            hint: None,
        }
    }
}

/// Seconds of the longest TTL (RFC 2181 §8).
const TTL_SECONDS_MAX: u64 = i32::MAX as u64;

/// Reads one action.
pub(crate) fn parse(scalar: &Scalar, problems: &mut Vec<Problem>) -> Option<Action> {
    let text = scalar.text.trim();
    let lead = scalar.text.len() - scalar.text.trim_start().len();
    let word_end = text.find(['(', ' ']).unwrap_or(text.len());
    let word = &text[..word_end];
    let word_span = scalar.span(lead, lead + word_end.max(1));
    let Some(row) = ACTIONS.iter().find(|row| row.word == word) else {
        let words: Vec<&str> = ACTIONS.iter().map(|row| row.word).collect();
        let problem =
            Problem::error(word_span, format!("unknown action \"{word}\"")).expected(one_of(&words));
        problems.push(match (nearest(word, words.iter().copied()), values::rcode(word)) {
            (Some(near), _) => problem.hint(format!("did you mean \"{near}\"?")),
            (None, Ok(_)) => problem.hint(format!("did you mean \"reject({word})\"?")),
            (None, Err(_)) => problem,
        });
        return None;
    };
    let rest = text[word_end..].trim_start();
    let whole = scalar.span(lead, lead + text.len());
    let form = if row.arguments.is_empty() { word.to_owned() } else { format!("{word}({})", row.arguments) };
    let inside = match rest.strip_prefix('(') {
        None if rest.is_empty() => "",
        Some(inside) if inside.ends_with(')') => &inside[..inside.len() - 1],
        Some(_) => {
            problems
                .push(Problem::error(whole, format!("\"{text}\" has no \")\" at its end")).expected(form));
            return None;
        }
        None => {
            problems.push(Problem::error(whole, format!("\"{text}\" is not an action")).expected(form));
            return None;
        }
    };
    let argument = inside.trim();
    if argument.is_empty() != row.arguments.is_empty() {
        let message = if row.arguments.is_empty() {
            format!("\"{word}\" takes nothing in parentheses")
        } else {
            format!("\"{word}\" needs something in parentheses")
        };
        problems.push(Problem::error(whole, message).expected(form));
        return None;
    }
    // Where the argument begins in the text of the scalar.
    let at = if argument.is_empty() { 0 } else { argument.as_ptr() as usize - scalar.text.as_ptr() as usize };
    let argument = Argument { text: argument, span: scalar.span(at, at + argument.len()) };
    match (row.read)(&argument) {
        Ok(action) => Some(action),
        Err(misread) => {
            let span = scalar.span(at + misread.at.start, at + misread.at.end);
            problems.push(misread.into_problem(span));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{Diagnostic, diagnostics};
    use crate::source::Sources;
    use std::path::Path;

    fn read(text: &str) -> Result<Action, Vec<String>> {
        let mut sources = Sources::default();
        let file = sources.add(Path::new("x"), text.to_owned());
        let span = Span { file, start: 0, end: text.len() as u32 };
        let mut problems = Vec::new();
        let found = parse(&Scalar::straight(text.to_owned(), span), &mut problems);
        found.ok_or_else(|| diagnostics(problems, &sources).iter().map(Diagnostic::line).collect())
    }

    fn label(text: &str) -> At<String> {
        At { value: text.to_owned(), span: Span::BUILT_IN }
    }

    fn check(text: &str, expect: Action) {
        assert_eq!(read(text), Ok(expect), "{text}");
    }

    fn check_wrong(text: &str, expect: &str) {
        assert_eq!(read(text), Err(vec![expect.to_owned()]), "{text}");
    }

    #[test]
    fn each_action_is_read() {
        check("hosts", Action::Hosts);
        check("cache(main)", Action::Cache(label("main")));
        check("cache ( main )", Action::Cache(label("main")));
        check("reject(NXDOMAIN)", Action::Reject(Rcode::NXDOMAIN));
        check("mark(63)", Action::Mark(63));
        check("ttl(fixed 60s)", Action::Ttl(TtlChange::Fixed(Duration::from_secs(60))));
        check(
            "ttl(max 1h)",
            Action::Ttl(TtlChange::Clamped { min: None, max: Some(Duration::from_secs(3600)) }),
        );
    }

    #[test]
    fn mistakes_point_into_the_text() {
        check_wrong(
            "cach(main)",
            "x:1:1: error: unknown action \"cach\": expected hosts, local, cache, forward, accept, reject, drop, mark, call, return or ttl",
        );
        check_wrong("cache", "x:1:1: error: \"cache\" needs something in parentheses: expected cache(NAME)");
        check_wrong("drop(x)", "x:1:1: error: \"drop\" takes nothing in parentheses: expected drop");
        check_wrong(
            "cache(main",
            "x:1:1: error: \"cache(main\" has no \")\" at its end: expected cache(NAME)",
        );
        check_wrong(
            "reject(nope)",
            "x:1:8: error: unknown response code \"nope\": expected noerror, formerr, servfail, nxdomain, notimp or refused",
        );
        check_wrong(
            "ttl(fixed 60)",
            "x:1:11: error: \"60\" has no unit: expected a duration such as 500ms, 10s, 1m30s, 2h or 1d",
        );
        check_wrong("ttl(min 1h max 1s)", "x:1:5: error: the smallest TTL is larger than the largest");
        check_wrong(
            "ttl(min)",
            "x:1:5: error: \"min\" does not say what becomes of the TTL: expected \"fixed 60s\", \"min 10s\", \"max 1h\" or \"min 10s max 1h\"",
        );
        check_wrong(
            "",
            "x:1:1: error: unknown action \"\": expected hosts, local, cache, forward, accept, reject, drop, mark, call, return or ttl",
        );
    }

    #[test]
    fn every_action_has_words_for_the_manual() {
        assert!(ACTIONS.iter().all(|row| row.text.ends_with('.')));
    }
}
