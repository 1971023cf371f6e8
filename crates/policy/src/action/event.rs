//! Actions that tell somebody about the query, and go on.
//!
//! What they tell is told when the reply is complete, with the answer the client gets; where they
//! stand says only which queries reach them.

use diagnostic::At;
use values::{Misread, Read};

use super::{Action, Meaning, Noun, Reference, Row};
use crate::arguments::{self, Arguments, Reported};
use plan::jobs::{EffectKind, Family, Ipset, Learned, Nftset, QueryLines, Timeout};

/// Octets of a text to log.
const TEXT_OCTETS_MAX: usize = 255;

/// One action.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Ask for an effect of the file.
    Effect(At<String>),
    /// Ask for an effect that is written here; the text names it.
    Inline(String, EffectKind),
    /// Record the query.
    Record,
    /// Log the query, with this text.
    Log(String),
    /// Log lines about the query, in the form of Unbound.
    Lines(QueryLines),
    /// Count the query under a label.
    Label(String),
    /// Put something of the query into a set.
    Learn(At<String>, Learned),
}

/// Its rows of the table.
pub(super) const ROWS: &[Row] = &[
    Row {
        word: "effect",
        arguments: "NAME",
        text: "Asks for an effect of `effects`: it happens when the reply is complete, with the reply's addresses.",
        read: |arguments| Ok(Action::Event(Event::Effect(arguments.label()?))),
    },
    Row {
        word: "nftset",
        arguments: "\"FAMILY TABLE [SET]\"[, set4 SET][, set6 SET][, prefix4 BITS][, prefix6 BITS][, timeout TIME]",
        text: "Puts the reply's addresses into sets of nftables: `nftset(\"inet fw4 video4\")`, \
               `nftset(\"inet fw4\", set4 video4, set6 video6, timeout 1h)`. The same as an effect of the type `nftset`.",
        read: |arguments| nftset(arguments).map(Action::Event),
    },
    Row {
        word: "ipset",
        arguments: "set4 SET[, set6 SET][, prefix4 BITS][, prefix6 BITS][, timeout TIME]",
        text: "Puts the reply's addresses into sets of ipset. The same as an effect of the type `ipset`.",
        read: |arguments| ipset(arguments).map(Action::Event),
    },
    Row {
        word: "record",
        arguments: "",
        text: "Records the query in the database of `recorder`, with its way through the policy.",
        read: |_| Ok(Action::Event(Event::Record)),
    },
    Row {
        word: "log",
        arguments: "\"TEXT\"",
        text: "Logs the query, its reply and the text, as a message of the level `info`. At most 20 a second; others are \
               counted.",
        read: |arguments| Ok(Action::Event(Event::Log(arguments.positional(text)?.value))),
    },
    Row {
        word: "query-lines",
        arguments: "[question][, reply[, destination]][, failure][, bogus[, reason]][, zone \"TEXT\"]",
        text: "Logs lines about the query in the form of Unbound, when its reply is complete: one with the `question`, one \
               with what became of it (`reply`; with the `destination` that it came to), one if it was answered SERVFAIL \
               (`failure`), one if that is because validation failed (`bogus`; with the `reason`), and one that begins with a \
               text (`zone`). Lines for which the log is too slow are left out, and counted.",
        read: |arguments| {
            let (question, reply) = (arguments.flag("question")?, arguments.flag("reply")?);
            let (failure, bogus) = (arguments.flag("failure")?, arguments.flag("bogus")?);
            let (reason, destination) = (arguments.flag("reason")?, arguments.flag("destination")?);
            let zone = arguments.keyed("zone", text)?.map(|at| at.value);
            Ok(Action::Event(Event::Lines(QueryLines {
                question,
                reply,
                failure,
                bogus,
                reason,
                destination,
                zone,
            })))
        },
    },
    Row {
        word: "label",
        arguments: "NAME",
        text: "Counts the query under a label of the metrics: `gannet stats` shows it.",
        read: |arguments| Ok(Action::Event(Event::Label(arguments.label()?.value))),
    },
    Row {
        word: "learn",
        arguments: "SET[, name | suffix | addresses | client]",
        text: "Puts the name asked for into a dynamic set (`suffix`: with everything below it, unless it says otherwise), \
               the `addresses` of the reply, or the `client`. What the reply says does not matter to names and clients; \
               what is not to be learned stands behind a condition.",
        read: |arguments| learn(arguments).map(Action::Event),
    },
];

fn text(text: &str) -> Read<String> {
    if text.is_empty() || text.len() > TEXT_OCTETS_MAX || text.contains(char::is_control) {
        return Err(Misread {
            at: 0..text.len(),
            message: "this cannot be logged".to_owned(),
            expected: Some(format!("1 to {TEXT_OCTETS_MAX} octets without control characters")),
            hint: None,
        });
    }
    if let Some(field) = field(text) {
        return Err(Misread {
            at: field.clone(),
            message: format!("\"{}\" is not filled in here", &text[field]),
            expected: None,
            hint: Some("name, type, client and result of the query stand beside the text anyway".to_owned()),
        });
    }
    Ok(text.to_owned())
}

/// Returns where a text has `{word}`.
fn field(text: &str) -> Option<std::ops::Range<usize>> {
    let start = text.find('{')?;
    let word = text[start + 1..].split('}').next()?;
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, '-' | '_'));
    let end = start + word.len() + 2;
    (is_word && text.len() >= end).then_some(start..end)
}

/// Reads the name of a set in the kernel.
fn kernel_name(text: &str) -> Read<String> {
    let is_legal = |c: char| c.is_ascii_graphic() && !matches!(c, ',' | '(' | ')' | '"');
    if text.is_empty() || text.len() > 31 || !text.chars().all(is_legal) {
        return Err(Misread {
            at: 0..text.len(),
            message: format!("\"{text}\" cannot be the name of a set"),
            expected: Some("at most 31 characters".to_owned()),
            hint: None,
        });
    }
    Ok(text.to_owned())
}

/// Reads a number of leading bits.
fn bits(text: &str, max: u8) -> Read<u8> {
    text.parse().ok().filter(|bits| (1..=max).contains(bits)).ok_or_else(|| Misread {
        at: 0..text.len(),
        message: format!("\"{text}\" is not a number of bits"),
        expected: Some(format!("1 to {max}")),
        hint: None,
    })
}

/// What both kinds of sets have.
struct Sets {
    set4: Option<String>,
    set6: Option<String>,
    prefix4: u8,
    prefix6: u8,
    timeout: Timeout,
}

fn sets(arguments: &mut Arguments<'_>) -> Result<Sets, Reported> {
    let set4 = arguments.keyed("set4", kernel_name)?.map(|at| at.value);
    let set6 = arguments.keyed("set6", kernel_name)?.map(|at| at.value);
    let prefix4 = arguments.keyed("prefix4", |text| bits(text, 32))?.map_or(32, |at| at.value);
    let prefix6 = arguments.keyed("prefix6", |text| bits(text, 128))?.map_or(128, |at| at.value);
    let timeout = arguments.keyed("timeout", values::duration)?;
    let timeout = timeout.map_or(Timeout::None, |at| Timeout::Fixed(at.value));
    Ok(Sets { set4, set6, prefix4, prefix6, timeout })
}

fn nftset(arguments: &mut Arguments<'_>) -> Result<Event, Reported> {
    let Sets { set4, set6, prefix4, prefix6, timeout } = sets(arguments)?;
    let place = arguments.positional(|text| {
        let words: Vec<&str> = text.split_whitespace().collect();
        let wrong = || Misread {
            at: 0..text.len(),
            message: format!("\"{text}\" does not name a table"),
            expected: Some("\"inet fw4\" or \"inet fw4 video4\"".to_owned()),
            hint: None,
        };
        let (family, table, set) = match words.as_slice() {
            [family, table] => (family, table, None),
            [family, table, set] => (family, table, Some((*set).to_owned())),
            _ => return Err(wrong()),
        };
        let family = Family::WORDS.iter().find(|(word, _)| word == family).ok_or_else(wrong)?;
        Ok((family.1, (*table).to_owned(), set))
    })?;
    let At { value: (family, table, set), span } = place;
    if set.is_none() && set4.is_none() && set6.is_none() {
        return Err(arguments.wrong(
            span,
            "no set is named",
            "\"set4\", \"set6\", or the set after the table",
        ));
    }
    let settings = Nftset { family, table, set4, set6, set, prefix4, prefix6, timeout };
    Ok(Event::Inline(arguments.text().to_owned(), EffectKind::Nftset(settings)))
}

fn ipset(arguments: &mut Arguments<'_>) -> Result<Event, Reported> {
    let Sets { set4, set6, prefix4, prefix6, timeout } = sets(arguments)?;
    if set4.is_none() && set6.is_none() {
        return Err(arguments.missing());
    }
    let settings = Ipset { set4, set6, prefix4, prefix6, timeout };
    Ok(Event::Inline(arguments.text().to_owned(), EffectKind::Ipset(settings)))
}

fn learn(arguments: &mut Arguments<'_>) -> Result<Event, Reported> {
    let words: &'static [(&'static str, Learned)] = &[
        ("suffix", Learned::Suffix),
        ("name", Learned::Name),
        ("addresses", Learned::Addresses),
        ("client", Learned::Client),
    ];
    let set = arguments.label()?;
    let what = arguments.optional(arguments::word(words))?.map_or(Learned::Suffix, |at| at.value);
    Ok(Event::Learn(set, what))
}

impl Event {
    pub(super) fn meaning(&self) -> Meaning<'_> {
        Meaning::Passes
    }

    pub(super) fn references(&self) -> Vec<Reference<'_>> {
        match self {
            Self::Effect(name) => vec![Reference { noun: Noun::Effect, name }],
            Self::Learn(name, _) => vec![Reference { noun: Noun::Set, name }],
            Self::Inline(..) | Self::Record | Self::Log(_) | Self::Lines(_) | Self::Label(_) => Vec::new(),
        }
    }
}
