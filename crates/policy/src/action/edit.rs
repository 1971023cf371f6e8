//! Actions that change the answer there is.

use std::time::Duration;

use diagnostic::At;
use engine::ops::edit::Instead;
use values::{Misread, Read};
use wire::rdata::SvcKey;
use wire::{EdeCode, Rcode, Rtype};

use super::answer::{reason_code, reason_text};
use super::{Action, Addresses, Meaning, Names, Reference, Row, addresses, names};
use crate::arguments::{Arguments, Reported, word};

/// One action.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// Change the TTLs of the answer.
    Ttl(TtlChange),
    /// Remove these records.
    Remove(Selection),
    /// Remove the others.
    Keep(Selection),
    /// Put everything under the name asked for.
    Flatten,
    /// Remove parameters of SVCB and HTTPS records.
    Strip(Vec<SvcKey>),
    /// Put addresses in order.
    Sort(Sort),
    /// Put another address first each time.
    Shuffle,
    /// Leave so many addresses of each kind.
    Limit(u16),
    /// Refuse addresses of one's own network in answers from outside.
    Rebind(Rebind),
    /// Add an Extended DNS Error.
    Ede(EdeCode, String),
    /// Keep the addresses for `reverse`.
    Remember {
        /// For how long.
        time: Duration,
        /// How many at most.
        size: usize,
    },
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
    /// Up to so many percent are taken off.
    Jitter(u8),
}

/// Which records are meant.
#[derive(Clone, Debug, PartialEq)]
pub enum Selection {
    /// Those of these types.
    Types(Vec<Rtype>),
    /// Those with these addresses.
    Addresses(Addresses),
}

/// How addresses are put in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Sort {
    /// Those in the first come first.
    Preferred(Vec<Addresses>),
    /// Those nearest to the client's come first.
    Client,
}

/// What protects against names of strangers that lead into one's own network.
#[derive(Clone, Debug, PartialEq)]
pub struct Rebind {
    /// Addresses that only we may give out; `None`: private ones and those of this machine.
    pub private: Option<Addresses>,
    /// Owners of records that may have them all the same.
    pub except: Names,
    /// What the client gets instead of the answer.
    pub instead: Instead,
}

/// Its rows of the table.
pub(super) const ROWS: &[Row] = &[
    Row {
        word: "ttl",
        arguments: "fixed TIME | min TIME, max TIME | jitter PERCENT",
        text: "Changes the TTLs of the answer that the client gets: `ttl(fixed 60s)`, `ttl(min 10s, max 1h)`, `ttl(max 1h)`; \
               `ttl(jitter 10%)` takes up to so much off, so that what was asked for together does not expire together.",
        read: |arguments| ttl(arguments).map(|change| Action::Edit(Edit::Ttl(change))),
    },
    Row {
        word: "remove",
        arguments: "TYPE, … | address PREFIX|SET|…",
        text: "Removes the records of these types from the answer, and signatures over them: `remove(AAAA)`; or A and AAAA \
               records with these addresses: `remove(address 10.0.0.0/8|lan)`. If nothing is left of what was asked for, \
               the answer is an empty one with an SOA, kept as long as what was removed.",
        read: |arguments| selection(arguments).map(|selection| Action::Edit(Edit::Remove(selection))),
    },
    Row {
        word: "keep",
        arguments: "TYPE, … | address PREFIX|SET|…",
        text: "Removes everything from the answer but records of these types (aliases stay), or all A and AAAA records but \
               those with these addresses.",
        read: |arguments| selection(arguments).map(|selection| Action::Edit(Edit::Keep(selection))),
    },
    Row {
        word: "flatten",
        arguments: "",
        text: "Removes aliases (CNAME) from the answer; what they lead to gets the name asked for.",
        read: |_| Ok(Action::Edit(Edit::Flatten)),
    },
    Row {
        word: "strip",
        arguments: "PARAMETER, …",
        text: "Removes parameters of HTTPS and SVCB records: `ech`, `alpn`, `ipv4hint`, `ipv6hint`, `hints` (both), `port`, \
               `dohpath`, or `key` and a number.",
        read: strip,
    },
    Row {
        word: "sort",
        arguments: "client | PREFIX|SET, …",
        text: "Puts addresses in order: `sort(192.0.2.0/24, 2001:db8::/32)` those of the first prefix or set first, then \
               those of the second; `sort(client)` those nearest to the address of the client, for whom one of `trusted-peers` \
               may have asked.",
        read: sort,
    },
    Row {
        word: "shuffle",
        arguments: "",
        text: "Puts another address of the answer first each time.",
        read: |_| Ok(Action::Edit(Edit::Shuffle)),
    },
    Row {
        word: "limit",
        arguments: "NUMBER",
        text: "Leaves at most so many IPv4 and so many IPv6 addresses in the answer, the first ones.",
        read: |arguments| Ok(Action::Edit(Edit::Limit(arguments.positional(count)?.value))),
    },
    Row {
        word: "rebind",
        arguments: "[filter | filter-records | nxdomain | nodata | refused | servfail, address PREFIX|SET|…, except NAME|SET|…]",
        text: "Protects against names of strangers that lead into your own network: an answer with a private address (or one \
               of this machine, or of `address`), also as IPv6 writes an IPv4 address or as a hint of an HTTPS record, is \
               refused with SERVFAIL, with another code, or loses those addresses (`filter`), or the records that have them (`filter-records`). Records of names behind `except` may \
               have them, whatever name was asked for: `rebind(filter, except suffix:corp.example)`.",
        read: |arguments| rebind(arguments).map(|rebind| Action::Edit(Edit::Rebind(rebind))),
    },
    Row {
        word: "ede",
        arguments: "CODE, [\"TEXT\"]",
        text: "Adds an Extended DNS Error (RFC 8914) to the answer there is: `ede(4, \"rewritten\")`.",
        read: ede,
    },
    Row {
        word: "remember",
        arguments: "[for TIME, size NUMBER]",
        text: "Keeps the addresses of the answer and the name asked for, so that `reverse` can answer from them: for two \
               hours, and 16384 addresses at most, unless said otherwise.",
        read: remember,
    },
];

impl Edit {
    pub(super) const fn meaning(&self) -> Meaning<'_> {
        Meaning::Changes(match self {
            Self::Ttl(_) => "ttl",
            Self::Remove(_) => "remove",
            Self::Keep(_) => "keep",
            Self::Flatten => "flatten",
            Self::Strip(_) => "strip",
            Self::Sort(_) => "sort",
            Self::Shuffle => "shuffle",
            Self::Limit(_) => "limit",
            Self::Rebind(_) => "rebind",
            Self::Ede(..) => "ede",
            Self::Remember { .. } => "remember",
        })
    }

    pub(super) fn references(&self) -> Vec<Reference<'_>> {
        match self {
            Self::Remove(Selection::Addresses(addresses)) | Self::Keep(Selection::Addresses(addresses)) => {
                addresses.references().collect()
            }
            Self::Sort(Sort::Preferred(list)) => list.iter().flat_map(Addresses::references).collect(),
            Self::Rebind(Rebind { private, except, .. }) => {
                private.iter().flat_map(Addresses::references).chain(except.references()).collect()
            }
            Self::Ttl(_)
            | Self::Remove(Selection::Types(_))
            | Self::Keep(Selection::Types(_))
            | Self::Flatten
            | Self::Strip(_)
            | Self::Sort(Sort::Client)
            | Self::Shuffle
            | Self::Limit(_)
            | Self::Ede(..)
            | Self::Remember { .. } => Vec::new(),
        }
    }
}

/// Seconds of the longest TTL (RFC 2181 §8).
const TTL_SECONDS_MAX: u64 = i32::MAX as u64;

/// Reads a time that fits into a TTL.
pub(super) fn ttl_time(text: &str) -> Read<Duration> {
    let duration = values::duration(text)?;
    if duration > Duration::from_secs(TTL_SECONDS_MAX) {
        return Err(misread(
            text,
            format!("\"{text}\" is too long for a TTL"),
            "at most 68 years (RFC 2181 §8)",
        ));
    }
    Ok(duration)
}

fn misread(text: &str, message: String, expected: &str) -> Misread {
    Misread { at: 0..text.len(), message, expected: Some(expected.to_owned()), hint: None }
}

/// Reads `10%`.
fn percent(text: &str) -> Read<u8> {
    let number =
        text.strip_suffix('%').and_then(|digits| digits.parse().ok()).filter(|&n| (1..=90).contains(&n));
    number.ok_or_else(|| misread(text, format!("\"{text}\" is not a share to take off"), "1% to 90%"))
}

/// Reads a number of addresses.
fn count(text: &str) -> Read<u16> {
    let number = text.parse().ok().filter(|&n| n >= 1);
    number.ok_or_else(|| misread(text, format!("\"{text}\" is not a number of addresses"), "1 or more"))
}

fn ttl(arguments: &mut Arguments<'_>) -> Result<TtlChange, Reported> {
    let fixed = arguments.keyed("fixed", ttl_time)?;
    let min = arguments.keyed("min", ttl_time)?;
    let max = arguments.keyed("max", ttl_time)?;
    let jitter = arguments.keyed("jitter", percent)?;
    if let Some(jitter) = jitter {
        return match fixed.or(min).or(max) {
            None => Ok(TtlChange::Jitter(jitter.value)),
            Some(other) => Err(arguments.wrong(
                other.span,
                "\"jitter\" stands alone",
                "two actions, one after the other",
            )),
        };
    }
    match (fixed, min, max) {
        (None, None, None) => Err(arguments.missing()),
        (Some(fixed), None, None) => Ok(TtlChange::Fixed(fixed.value)),
        (Some(_), Some(other), _) | (Some(_), None, Some(other)) => Err(arguments.wrong(
            other.span,
            "a fixed TTL has no bounds",
            "either \"fixed\" or \"min\" and \"max\"",
        )),
        (None, Some(min), Some(max)) if min.value > max.value => {
            Err(arguments.wrong(min.span, "the smallest TTL is larger than the largest", ""))
        }
        (None, min, max) => {
            let value = |at: Option<At<Duration>>| at.map(|at| at.value);
            Ok(TtlChange::Clamped { min: value(min), max: value(max) })
        }
    }
}

fn selection(arguments: &mut Arguments<'_>) -> Result<Selection, Reported> {
    if let Some(list) = arguments.keyed_list("address", addresses::term)? {
        return Ok(Selection::Addresses(Addresses::new(list)));
    }
    let types = arguments.rest(values::rtype)?;
    for rtype in &types {
        if matches!(rtype.value, Rtype::CNAME | Rtype::DNAME) {
            let problem = "an answer without its aliases belongs to no name";
            return Err(arguments.wrong(
                rtype.span,
                problem,
                "\"flatten\", which puts the rest under the name asked for",
            ));
        }
    }
    Ok(Selection::Types(types.into_iter().map(|at| at.value).collect()))
}

/// Parameters by name; those that nobody would remove are not among them.
const PARAMETERS: [(&str, &[SvcKey]); 8] = [
    ("ech", &[SvcKey::ECH]),
    ("alpn", &[SvcKey::ALPN]),
    ("ipv4hint", &[SvcKey::IPV4HINT]),
    ("ipv6hint", &[SvcKey::IPV6HINT]),
    ("hints", &[SvcKey::IPV4HINT, SvcKey::IPV6HINT]),
    ("port", &[SvcKey::PORT]),
    ("dohpath", &[SvcKey::DOHPATH]),
    ("ohttp", &[SvcKey::OHTTP]),
];

fn parameter(text: &str) -> Read<Vec<SvcKey>> {
    if let Some((_, keys)) = PARAMETERS.iter().find(|(word, _)| *word == text) {
        return Ok(keys.to_vec());
    }
    let number =
        text.strip_prefix("key").and_then(|digits| digits.parse().ok()).filter(|key| (1..64).contains(key));
    match number {
        Some(key) => Ok(vec![SvcKey(key)]),
        None => {
            let words: Vec<&str> = PARAMETERS.iter().map(|(word, _)| *word).collect();
            let expected = format!("{}, or key1 to key63", words.join(", "));
            Err(misread(text, format!("\"{text}\" is not a parameter that can be removed"), &expected))
        }
    }
}

fn strip(arguments: &mut Arguments<'_>) -> Result<Action, Reported> {
    let keys = arguments.rest(parameter)?;
    Ok(Action::Edit(Edit::Strip(keys.into_iter().flat_map(|at| at.value).collect())))
}

fn sort(arguments: &mut Arguments<'_>) -> Result<Action, Reported> {
    if arguments.flag("client")? {
        return Ok(Action::Edit(Edit::Sort(Sort::Client)));
    }
    let terms = arguments.rest(addresses::term)?;
    let list = terms.into_iter().map(|term| Addresses::new(vec![term])).collect();
    Ok(Action::Edit(Edit::Sort(Sort::Preferred(list))))
}

const INSTEAD: &[(&str, Instead)] = &[
    ("filter", Instead::WithoutAddresses),
    ("filter-records", Instead::WithoutRecords),
    ("nxdomain", Instead::Code(Rcode::NXDOMAIN)),
    ("nodata", Instead::Code(Rcode::NOERROR)),
    ("refused", Instead::Code(Rcode::REFUSED)),
    ("servfail", Instead::Code(Rcode::SERVFAIL)),
];

fn rebind(arguments: &mut Arguments<'_>) -> Result<Rebind, Reported> {
    let private = arguments.keyed_list("address", addresses::term)?.map(Addresses::new);
    let except = arguments.keyed_list("except", names::term)?.map(Names::new).unwrap_or_default();
    let instead = arguments.optional(word(INSTEAD))?;
    Ok(Rebind { private, except, instead: instead.map_or(Instead::Code(Rcode::SERVFAIL), |at| at.value) })
}

fn ede(arguments: &mut Arguments<'_>) -> Result<Action, Reported> {
    let code = arguments.positional(reason_code)?.value;
    let text = arguments.optional(reason_text)?.map(|at| at.value).unwrap_or_default();
    Ok(Action::Edit(Edit::Ede(code, text)))
}

/// Addresses that are kept for reverse look-ups, when nobody says how many: 4.5 MB.
const REMEMBERED: usize = 16_384;
/// Addresses that can be kept: 288 MB.
const REMEMBERED_MAX: usize = 1 << 20;

fn remember(arguments: &mut Arguments<'_>) -> Result<Action, Reported> {
    let size = |text: &str| {
        let number = text.parse().ok().filter(|size| (16..=REMEMBERED_MAX).contains(size));
        number.ok_or_else(|| misread(text, format!("\"{text}\" is not a size"), "16 to 1048576"))
    };
    let time = arguments.keyed("for", ttl_time)?.map_or(Duration::from_secs(7200), |at| at.value);
    let size = arguments.keyed("size", size)?.map_or(REMEMBERED, |at| at.value);
    Ok(Action::Edit(Edit::Remember { time, size }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check, check_wrong};
    use super::*;

    #[test]
    fn records_are_chosen_by_type_or_address() {
        let types = |types: &[Rtype]| Selection::Types(types.to_vec());
        check("remove(AAAA)", Action::Edit(Edit::Remove(types(&[Rtype::AAAA]))));
        check("keep(A|AAAA, TXT)", Action::Edit(Edit::Keep(types(&[Rtype::A, Rtype::AAAA, Rtype::TXT]))));
        check("strip(hints, key9)", Action::Edit(Edit::Strip(vec![SvcKey(4), SvcKey(6), SvcKey(9)])));
        check("limit(2)", Action::Edit(Edit::Limit(2)));
        check("ttl(jitter 10%)", Action::Edit(Edit::Ttl(TtlChange::Jitter(10))));
        check("sort(client)", Action::Edit(Edit::Sort(Sort::Client)));
        check(
            "rebind",
            Action::Edit(Edit::Rebind(Rebind {
                private: None,
                except: Names::default(),
                instead: Instead::Code(Rcode::SERVFAIL),
            })),
        );
        check(
            "rebind(filter)",
            Action::Edit(Edit::Rebind(Rebind {
                private: None,
                except: Names::default(),
                instead: Instead::WithoutAddresses,
            })),
        );
        check("ede(4, \"x\")", Action::Edit(Edit::Ede(EdeCode(4), "x".to_owned())));
        check(
            "remember(for 1h, size 100)",
            Action::Edit(Edit::Remember { time: Duration::from_secs(3600), size: 100 }),
        );
    }

    #[test]
    fn mistakes_point_into_the_text() {
        check_wrong(
            "remove(CNAME)",
            "x:1:8: error: an answer without its aliases belongs to no name: expected \"flatten\", which puts the rest under the name asked for",
        );
        check_wrong("limit(0)", "x:1:7: error: \"0\" is not a number of addresses: expected 1 or more");
        check_wrong(
            "strip(mandatory)",
            "x:1:7: error: \"mandatory\" is not a parameter that can be removed: expected ech, alpn, ipv4hint, ipv6hint, hints, port, dohpath, ohttp, or key1 to key63",
        );
        check_wrong(
            "remove(address 10.0.0.1/8)",
            "x:1:16: error: \"10.0.0.1/8\" has bits set after the first 8",
        );
        check_wrong("ttl(jitter 10)", "x:1:12: error: \"10\" is not a share to take off: expected 1% to 90%");
        check_wrong(
            "ede(4, \"0123456789012345678901234567890123456789012345678901234567890123456789\")",
            "x:1:9: error: the text has 70 octets: expected at most 64: every reply carries it",
        );
    }
}
