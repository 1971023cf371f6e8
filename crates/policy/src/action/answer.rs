//! Actions that make an answer.

use std::net::IpAddr;
use std::time::Duration;

use diagnostic::At;
use values::{Misread, Read};
use wire::{EdeCode, Rcode};
use zone::Manner;

use super::edit::ttl_time;
use super::{Action, Meaning, Noun, Reference, Row};
use crate::arguments::{Arguments, Reported, label};
use crate::records::{self, Record, Reply};

/// One action.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Answer from hosts files.
    Hosts,
    /// Answer from `local` and the special-use names.
    Local,
    /// Answer from the zones, or from a set of them.
    Zones {
        /// The set whose zones answer; `None`: those in no set.
        set: Option<At<String>>,
        /// Whether a zone that is not loaded leaves the query to the next action.
        are_loaded: bool,
        /// What goes with their answers.
        manner: Manner,
        /// Whether replies say RA to queries with RD alone.
        ra_needs_rd: bool,
    },
    /// End: answer with this code.
    Reject(Rcode),
    /// End: say nothing.
    Drop,
    /// End: keep the client away from the name.
    Block(Block),
    /// Answer with records written here.
    Respond(Box<Respond>),
    /// Answer from records written here.
    Records(Vec<Record>),
    /// Answer from a set of records.
    RecordSet {
        /// The set.
        name: At<String>,
        /// Whether the query goes on with the answer.
        continues: bool,
    },
    /// Answer with the name that an address was given for.
    Reverse,
}

/// How a name is blocked.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// With what.
    pub with: BlockWith,
    /// How long clients keep it.
    pub ttl: Duration,
    /// The reason that is given, with words about it.
    pub reason: Option<(EdeCode, String)>,
    /// Whether AA is set.
    pub authoritative: bool,
    /// Whether an answer without data has an SOA.
    pub has_soa: bool,
    /// Whether the query goes on with the answer.
    pub continues: bool,
}

/// What the client gets.
#[derive(Clone, Debug, PartialEq)]
pub enum BlockWith {
    /// `0.0.0.0` and `::`.
    Null,
    /// These addresses.
    Addresses(Vec<IpAddr>),
    /// A response code.
    Rcode(Rcode),
    /// Nothing.
    Silence,
}

/// A reply written in the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Respond {
    /// The response code.
    pub rcode: Rcode,
    /// Whether AA is set.
    pub authoritative: bool,
    /// Whether AD is set for clients that look at it.
    pub authentic: bool,
    /// Its records.
    pub records: Reply,
    /// The Extended DNS Error, with its text.
    pub reason: Option<(EdeCode, String)>,
    /// Whether the query goes on with it.
    pub continues: bool,
}

/// How long clients keep what they get for a blocked name, when nobody says otherwise: an hour
/// after a mistake in a list is mended nobody should notice it any more, and a minute of asking
/// again costs nothing.
const BLOCK_TTL: Duration = Duration::from_secs(60);
/// Octets of the text of an Extended DNS Error that a reply has room for.
const REASON_OCTETS_MAX: usize = 64;

/// Its rows of the table.
pub(super) const ROWS: &[Row] = &[
    Row {
        word: "hosts",
        arguments: "",
        text: "Answers from hosts files, if they hold the name.",
        read: |_| Ok(Action::Answer(Answer::Hosts)),
    },
    Row {
        word: "local",
        arguments: "",
        text: "Answers from `local`, and names that never leave a server (`localhost`, reverse zones of private \
               addresses, `invalid`, …).",
        read: |_| Ok(Action::Answer(Answer::Local)),
    },
    Row {
        word: "zones",
        arguments: "[NAME, loaded, within, minimal, several, ra-with-rd]",
        text: "Answers from `zones`, if the name belongs to one of them: from those of the set NAME, or from those in no set, \
               which then do not answer before any policy. So conditions can come before zones, and clients of different views \
               can have different versions of a zone. With `loaded`, names of a zone that is not there yet, or has expired, \
               go on to the next action; else they get SERVFAIL. With `within`, an answer ends where an alias leads out of the zone; \
               with `minimal`, MX, SRV, SVCB and HTTPS records come without addresses; with `several`, ANY gets the SOA, MX, A \
               and AAAA records of the name, in place of one RRset; with `ra-with-rd`, replies to queries without RD have no RA.",
        read: |arguments| {
            let are_loaded = arguments.flag("loaded")?;
            let manner = Manner {
                within: arguments.flag("within")?,
                minimal: arguments.flag("minimal")?,
                several: arguments.flag("several")?,
            };
            let ra_needs_rd = arguments.flag("ra-with-rd")?;
            let piece = arguments.optional_piece()?;
            let set = piece.map(|piece| arguments.read(piece, label)).transpose()?;
            Ok(Action::Answer(Answer::Zones { set, are_loaded, manner, ra_needs_rd }))
        },
    },
    Row {
        word: "records",
        arguments: "NAME, [continue] | \"RECORD\", …",
        text: "Answers from records in the form of a zone file: from a set of `records`, or from those between quotes, \
               whose owners need no dot at their end: `records(\"www.example.org 60 A 192.0.2.1\")`. A wildcard \
               (`*.example.org`) stands for names that do not exist; aliases are followed within the set; a name with \
               other types only gets an empty answer. Below a name with an SOA, names that do not exist get NXDOMAIN. \
               Names the set does not know go on to the next action. With `continue`, the next actions see a set's answer \
               as the answer there is.",
        read: records,
    },
    Row {
        word: "block",
        arguments: "[null | nxdomain | nodata | refused | servfail | drop | ADDRESS, …, ttl TIME, ede REASON, text \"…\", authoritative, without-soa, continue]",
        text: "Ends with an answer that keeps the client away from the name: `null` (`0.0.0.0` and `::`; the default), an \
               empty answer, a response code, silence, or addresses of your own. Types that the addresses do not answer \
               (HTTPS, or AAAA where there are IPv4 addresses only) get an empty answer; empty answers and NXDOMAIN carry \
               an SOA. Clients keep it for a minute, or `ttl`. The reason given is `ede blocked`, or `filtered` (as the \
               client asked for), `censored`, `prohibited`, `forged` or `none`; `text` adds words to it. With `authoritative` \
               AA is set, with `without-soa` there is no SOA. With `continue`, the \
               next actions see it as the answer there is.",
        read: |arguments| block(arguments).map(|block| Action::Answer(Answer::Block(block))),
    },
    Row {
        word: "respond",
        arguments: "[RCODE, answer \"RECORD\"|…, authority …, additional …, authoritative, authentic, ede CODE, text \"…\", continue]",
        text: "Ends with a reply written here. Records are those of a zone file; `@` is the name asked for, and names \
               without a dot at their end lie below it: `respond(answer \"@ 60 CNAME cdn\"|\"cdn 60 A 192.0.2.1\")`. \
               With `continue`, the next actions see the reply as the answer there is.",
        read: respond,
    },
    Row {
        word: "reverse",
        arguments: "",
        text: "Answers a question for the name of an address (PTR) if `remember` saw that address in an answer.",
        read: |_| Ok(Action::Answer(Answer::Reverse)),
    },
    Row {
        word: "reject",
        arguments: "RCODE",
        text: "Ends with this response code: `noerror`, `nxdomain`, `refused`, `servfail`, `notimp` or `formerr`.",
        read: |arguments| Ok(Action::Answer(Answer::Reject(arguments.positional(values::rcode)?.value))),
    },
    Row {
        word: "drop",
        arguments: "",
        text: "Ends without a reply.",
        read: |_| Ok(Action::Answer(Answer::Drop)),
    },
];

impl Answer {
    pub(super) fn meaning(&self) -> Meaning<'_> {
        match self {
            Self::Hosts => Meaning::Looks("hosts"),
            Self::Local => Meaning::Looks("local"),
            Self::Zones { .. } => Meaning::Looks("zones"),
            Self::RecordSet { continues: true, .. } => Meaning::Finds("records"),
            Self::Records(_) | Self::RecordSet { .. } => Meaning::Looks("records"),
            Self::Reverse => Meaning::Looks("reverse"),
            Self::Respond(respond) if respond.continues => Meaning::Finds("respond"),
            Self::Block(block) if block.continues => Meaning::Finds("block"),
            Self::Reject(_) | Self::Drop | Self::Block(_) | Self::Respond(_) => Meaning::Ends,
        }
    }

    pub(super) fn references(&self) -> Vec<Reference<'_>> {
        match self {
            Self::RecordSet { name, .. } => vec![Reference { noun: Noun::Records, name }],
            Self::Zones { set: Some(name), .. } => vec![Reference { noun: Noun::Zones, name }],
            Self::Hosts
            | Self::Local
            | Self::Zones { set: None, .. }
            | Self::Reject(_)
            | Self::Drop
            | Self::Block(_)
            | Self::Respond(_)
            | Self::Records(_)
            | Self::Reverse => Vec::new(),
        }
    }
}

/// What an argument of `block` can be.
enum BlockTerm {
    Word(BlockWith),
    Address(IpAddr),
}

const BLOCK_WORDS: [(&str, BlockWith); 6] = [
    ("null", BlockWith::Null),
    ("nxdomain", BlockWith::Rcode(Rcode::NXDOMAIN)),
    ("nodata", BlockWith::Rcode(Rcode::NOERROR)),
    ("refused", BlockWith::Rcode(Rcode::REFUSED)),
    ("servfail", BlockWith::Rcode(Rcode::SERVFAIL)),
    ("drop", BlockWith::Silence),
];

fn block_term(text: &str) -> Read<BlockTerm> {
    if let Some((_, with)) = BLOCK_WORDS.iter().find(|(word, _)| *word == text) {
        return Ok(BlockTerm::Word(with.clone()));
    }
    text.parse().map(BlockTerm::Address).map_err(|_| Misread {
        at: 0..text.len(),
        message: format!("\"{text}\" is not a way to block"),
        expected: Some("null, nxdomain, nodata, refused, servfail, drop or addresses".to_owned()),
        hint: None,
    })
}

/// Reasons to block (RFC 8914 §4).
const REASONS: &[(&str, Option<EdeCode>)] = &[
    ("blocked", Some(EdeCode::BLOCKED)),
    ("filtered", Some(EdeCode::FILTERED)),
    ("censored", Some(EdeCode::CENSORED)),
    ("prohibited", Some(EdeCode::PROHIBITED)),
    ("forged", Some(EdeCode::FORGED_ANSWER)),
    ("none", None),
];

/// Reads the text of an Extended DNS Error.
pub(super) fn reason_text(text: &str) -> Read<String> {
    if text.len() <= REASON_OCTETS_MAX {
        return Ok(text.to_owned());
    }
    Err(Misread {
        at: 0..text.len(),
        message: format!("the text has {} octets", text.len()),
        expected: Some(format!("at most {REASON_OCTETS_MAX}: every reply carries it")),
        hint: None,
    })
}

/// Reads the number of an Extended DNS Error, or one of the words of [`REASONS`].
pub(super) fn reason_code(text: &str) -> Read<EdeCode> {
    if let Some((_, Some(code))) = REASONS.iter().find(|(word, _)| *word == text) {
        return Ok(*code);
    }
    text.parse().map(EdeCode).map_err(|_| Misread {
        at: 0..text.len(),
        message: format!("\"{text}\" is not an Extended DNS Error"),
        expected: Some(
            "a number (RFC 8914), or blocked, filtered, censored, prohibited or forged".to_owned(),
        ),
        hint: None,
    })
}

/// Reads how to block.
pub(super) fn block(arguments: &mut Arguments<'_>) -> Result<Block, Reported> {
    let continues = arguments.flag("continue")?;
    let authoritative = arguments.flag("authoritative")?;
    let has_soa = !arguments.flag("without-soa")?;
    let ttl = arguments.keyed("ttl", ttl_time)?.map_or(BLOCK_TTL, |at| at.value);
    let code = arguments.keyed("ede", crate::arguments::word(REASONS))?;
    let text = arguments.keyed("text", reason_text)?;
    let mut terms = arguments.rest_or_none(block_term)?.into_iter();
    let with = match terms.next() {
        None => BlockWith::Null,
        Some(At { value: BlockTerm::Word(with), .. }) => match terms.next() {
            None => with,
            Some(more) => {
                return Err(arguments.wrong(
                    more.span,
                    "there is one way to block already",
                    "either a word or addresses",
                ));
            }
        },
        Some(At { value: BlockTerm::Address(first), .. }) => {
            let mut addresses = vec![first];
            for term in terms {
                match term.value {
                    BlockTerm::Address(address) => addresses.push(address),
                    BlockTerm::Word(_) => {
                        return Err(arguments.wrong(
                            term.span,
                            "there are addresses to block with already",
                            "either a word or addresses",
                        ));
                    }
                }
            }
            BlockWith::Addresses(addresses)
        }
    };
    let code = code.map_or(Some(EdeCode::BLOCKED), |at| at.value);
    let reason = match (code, text) {
        (Some(code), text) => Some((code, text.map(|at| at.value).unwrap_or_default())),
        (None, None) => None,
        (None, Some(text)) => {
            return Err(arguments.wrong(
                text.span,
                "the text belongs to a reason, and \"ede none\" gives none",
                "",
            ));
        }
    };
    if continues && with == BlockWith::Silence {
        return Err(arguments.wrong(
            arguments.place(),
            "silence is no answer to go on with",
            "no \"continue\"",
        ));
    }
    Ok(Block { with, ttl, reason, authoritative, has_soa, continues })
}

fn records(arguments: &mut Arguments<'_>) -> Result<Action, Reported> {
    let continues = arguments.flag("continue")?;
    let mut found = Vec::new();
    let mut is_first = true;
    while let Some(piece) = arguments.optional_piece()? {
        if !piece.is_quoted {
            let name = arguments.read(piece, label)?;
            if !is_first {
                return Err(arguments.wrong(name.span, "a set of records stands alone", "records(NAME)"));
            }
            return Ok(Action::Answer(Answer::RecordSet { name, continues }));
        }
        found.extend(arguments.read(piece, records::inline)?.value);
        is_first = false;
    }
    if is_first {
        return Err(arguments.missing());
    }
    if continues {
        return Err(arguments.wrong(
            arguments.place(),
            "only a set of records can go on",
            "records(NAME, continue)",
        ));
    }
    if let Some(owner) = records::alias_with_others(&found) {
        let message = format!("{owner} has an alias (CNAME) and other records");
        return Err(arguments.wrong(
            arguments.place(),
            message,
            "either one CNAME or other records (RFC 2181 §10.1)",
        ));
    }
    Ok(Action::Answer(Answer::Records(found)))
}

fn respond(arguments: &mut Arguments<'_>) -> Result<Action, Reported> {
    let authoritative = arguments.flag("authoritative")?;
    let authentic = arguments.flag("authentic")?;
    let continues = arguments.flag("continue")?;
    let mut sections = [const { Vec::new() }; 3];
    for (section, key) in sections.iter_mut().zip(["answer", "authority", "additional"]) {
        for lines in arguments.keyed_list(key, records::relative)?.into_iter().flatten() {
            section.extend(lines.value);
        }
    }
    let code = arguments.keyed("ede", reason_code)?;
    let text = arguments.keyed("text", reason_text)?;
    let rcode = arguments.optional(values::rcode)?.map_or(Rcode::NOERROR, |at| at.value);
    let reason = match (code, text) {
        (Some(code), text) => Some((code.value, text.map(|at| at.value).unwrap_or_default())),
        (None, None) => None,
        (None, Some(text)) => {
            return Err(arguments.wrong(text.span, "the text belongs to a reason", "\"ede CODE\" beside it"));
        }
    };
    let records = match Reply::new(&sections) {
        Ok(records) => records,
        Err(message) => {
            let place = arguments.place();
            return Err(arguments.wrong(place, message, ""));
        }
    };
    let respond = Respond { rcode, authoritative, authentic, records, reason, continues };
    Ok(Action::Answer(Answer::Respond(Box::new(respond))))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check_wrong, read};
    use super::*;

    fn block(text: &str) -> Block {
        match read(text) {
            Ok(Action::Answer(Answer::Block(block))) => block,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn there_are_many_ways_to_block() {
        let usual = Block {
            with: BlockWith::Null,
            ttl: BLOCK_TTL,
            reason: Some((EdeCode::BLOCKED, String::new())),
            authoritative: false,
            has_soa: true,
            continues: false,
        };
        assert_eq!(block("block"), usual);
        assert!(block("block(nxdomain, continue)").continues);
        assert_eq!(block("block()"), usual);
        let bare = Block { authoritative: true, has_soa: false, ..usual };
        assert_eq!(block("block(authoritative, without-soa)"), bare);
        assert_eq!(block("block(nodata)").with, BlockWith::Rcode(Rcode::NOERROR));
        let addresses =
            BlockWith::Addresses(["192.0.2.1", "2001:db8::1"].map(|a| a.parse().expect("one")).to_vec());
        assert_eq!(block("block(192.0.2.1, \"2001:db8::1\")").with, addresses);
        let told = block("block(nxdomain, ttl 5m, ede filtered, text \"no ads, here\")");
        assert_eq!(told.ttl, Duration::from_secs(300));
        assert_eq!(told.reason, Some((EdeCode::FILTERED, "no ads, here".to_owned())));
        assert_eq!(block("block(drop, ede none)").reason, None);
    }

    #[test]
    fn mistakes_point_into_the_text() {
        check_wrong(
            "block(nxdomian)",
            "x:1:7: error: \"nxdomian\" is not a way to block: expected null, nxdomain, nodata, refused, servfail, drop or addresses",
        );
        check_wrong(
            "block(null, 192.0.2.1)",
            "x:1:13: error: there is one way to block already: expected either a word or addresses",
        );
        check_wrong(
            "records(\"www.example.org A 192.0.2.256\")",
            "x:1:28: error: \"192.0.2.256\" cannot stand here: expected an IPv4 address",
        );
        check_wrong(
            "respond(answer \"@ 60 SRV 1 1 1 host\")",
            "x:1:17: error: SRV data cannot hold a name relative to the one asked for: end it in a dot",
        );
        check_wrong(
            "respond(text \"x\")",
            "x:1:15: error: the text belongs to a reason: expected \"ede CODE\" beside it",
        );
    }

    #[test]
    fn replies_are_written_like_zone_files() {
        let Ok(Action::Answer(Answer::Respond(respond))) = read(
            "respond(nxdomain, authoritative, answer \"@ 60 A 192.0.2.1\"|\"x 60 AAAA 2001:db8::1\", ede 29)",
        ) else {
            panic!("a reply");
        };
        assert_eq!((respond.rcode, respond.authoritative, respond.continues), (Rcode::NXDOMAIN, true, false));
        assert_eq!((respond.records.counts, respond.records.relative_octets_max), ([2, 0, 0], 2));
        assert_eq!(respond.reason, Some((EdeCode::SYNTHESIZED, String::new())));
    }
}
