//! State of a list that is being read: where its rules go, its mistakes, and what all formats
//! share.

use std::collections::HashSet;
use std::net::IpAddr;

use sets::{AddressSetBuilder, BlocklistBuilder, NameSetBuilder, PatternError, Reach};
use values::Read;
use wire::{HashKey, NameBuf, Prefix};

/// Mistakes of a downloaded list that are reported; the rest is counted.
const MISTAKES_TOLD_MAX: usize = 3;
/// Mistakes of the operator's own list that are reported: he wants to see all of them at once.
const OWN_MISTAKES_TOLD_MAX: usize = 100;

/// The mistakes in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes {
    told_max: usize,
    /// The first ones: the line, from 1 (zero if it is about the whole list), and the message.
    pub told: Vec<(u32, String)>,
    /// The number of all of them.
    pub count: usize,
}

impl Mistakes {
    /// Returns no mistakes; of the operator's own list, more are reported than of a download.
    pub const fn of(is_own: bool) -> Self {
        let told_max = if is_own { OWN_MISTAKES_TOLD_MAX } else { MISTAKES_TOLD_MAX };
        Self { told_max, told: Vec::new(), count: 0 }
    }

    /// Returns a message for each reported mistake, and one that counts the rest.
    pub fn each(&self) -> impl Iterator<Item = String> {
        let more = self.count - self.told.len();
        let told = self.told.iter().map(|(line, what)| at_line(*line, what));
        told.chain((more > 0).then(|| format!("and {more} more")))
    }

    /// Adds a mistake; `what` makes the message if it is reported.
    pub fn add(&mut self, line: u32, what: impl FnOnce() -> String) {
        self.count += 1;
        if self.told.len() < self.told_max {
            self.told.push((line, what()));
        }
    }

    /// Adds those of another reading, in the order of their lines.
    pub(crate) fn append(&mut self, other: Self) {
        self.count += other.count;
        self.told.extend(other.told);
        self.told.sort_by_key(|(line, _)| *line);
        self.told.truncate(self.told_max);
    }

    /// Returns one message for all; `None` if there are no mistakes.
    pub fn describe(&self) -> Option<String> {
        let told: Vec<String> = self.told.iter().map(|(line, what)| at_line(*line, what)).collect();
        let more = self.count - self.told.len();
        let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
        (self.count > 0).then(|| format!("{}{rest}", told.join("; ")))
    }
}

fn at_line(line: u32, what: &str) -> String {
    if line == 0 { what.to_owned() } else { format!("line {line}: {what}") }
}

/// Entries between two reports of progress.
const ENTRIES_UNTOLD: u32 = 1 << 16;

/// A function that is called with the number of entries read, or none.
#[derive(Clone, Copy, Default)]
pub struct Progress<'a>(Option<&'a dyn Fn(usize)>);

impl<'a> Progress<'a> {
    /// Reports progress to `report`.
    pub fn to(report: &'a dyn Fn(usize)) -> Self {
        Self(Some(report))
    }

    /// Reports progress, but only at every [`ENTRIES_UNTOLD`]th entry.
    pub(crate) fn at(self, entry: u32) {
        if let Some(report) = self.0
            && entry.is_multiple_of(ENTRIES_UNTOLD)
        {
            report(entry as usize);
        }
    }
}

/// A list that is being read.
pub(crate) struct Reading<'a> {
    pub(crate) progress: Progress<'a>,
    pub(crate) key: &'a HashKey,
    /// Names that the set holds, by rules without modifiers.
    pub(crate) names: &'a mut NameSetBuilder,
    pub(crate) addresses: &'a mut AddressSetBuilder,
    /// Addresses that the set does not hold.
    pub(crate) without: &'a mut AddressSetBuilder,
    pub(crate) list: &'a mut BlocklistBuilder,
    /// Names of clients (`$client=` in AdGuard lists) and their networks.
    pub(crate) tags: &'a [(&'a str, &'a [Prefix])],
    /// Selected parts of the list; none means all.
    pub(crate) select: Vec<&'a str>,
    /// Rules that a `badfilter` takes back, in all lists of the set.
    pub(crate) revoked: &'a HashSet<String>,
    /// Whether it is the operator's own list: then a host bit in a prefix is a mistake.
    pub(crate) is_own: bool,
    pub(crate) mistakes: Mistakes,
}

impl Reading<'_> {
    /// Adds a name.
    pub(crate) fn name(&mut self, name: &[u8], reach: Reach, line: u32) {
        match name_of(name) {
            Ok(name) => self.names.name(name.as_name(), reach, line),
            Err(why) => self.mistakes.add(line, || why),
        }
    }

    /// Adds a range of addresses.
    pub(crate) fn range(&mut self, (first, last): (IpAddr, IpAddr), line: u32) {
        if !self.addresses.range(first, last) {
            self.mistakes.add(line, || format!("{first} to {last} is not a range"));
        }
    }

    /// Adds the mistake in a pattern, if there is one.
    pub(crate) fn pattern(&mut self, result: Result<(), PatternError>, line: u32) {
        if let Err(error) = result {
            self.mistakes.add(line, || error.to_string());
        }
    }
}

/// Adds prefixes.
pub(crate) fn add_prefixes(builder: &mut AddressSetBuilder, prefixes: &[Prefix]) {
    for prefix in prefixes {
        let is_right = builder.prefix(prefix.address(), prefix.bits());
        debug_assert!(is_right, "a prefix is never longer than an address");
    }
}

/// Iterates over the lines of a text, trimmed, with their numbers from 1.
pub(super) fn lines<'o>(octets: &'o [u8], progress: Progress<'_>) -> impl Iterator<Item = (u32, &'o [u8])> {
    (1..).zip(octets.split(|&octet| octet == b'\n')).map(move |(number, line)| {
        progress.at(number);
        (number, line.trim_ascii())
    })
}

/// Returns a part of a list as a message may show it: escaped, and not longer than a limit.
pub(super) fn shown(octets: &[u8]) -> String {
    const OCTETS_MAX: usize = 60;
    let text = String::from_utf8_lossy(&octets[..octets.len().min(OCTETS_MAX)]);
    let more = if octets.len() > OCTETS_MAX { "…" } else { "" };
    format!("{}{more}", text.escape_debug())
}

/// Reads a name; a dot at its end is allowed.
pub(super) fn name_of(text: &[u8]) -> Result<NameBuf, String> {
    // Lists have a million names: the plain ones are read here, the others where names are read
    // everywhere.
    if let Some(name) = plain_name(text) {
        return Ok(name);
    }
    let wrong = || format!("\"{}\" is not a domain name", shown(text));
    let name = std::str::from_utf8(text).map_err(|_| wrong())?;
    let read = values::name(name).map_err(|misread| misread.message)?;
    // What no list means: a page of HTML has lines that could be names in other places.
    if name.contains('\\') || !name.is_ascii() { Ok(read) } else { Err(wrong()) }
}

fn plain_name(text: &[u8]) -> Option<NameBuf> {
    let text = text.strip_suffix(b".").unwrap_or(text);
    let mut name = NameBuf::root();
    for label in text.split(|&octet| octet == b'.') {
        let is_plain =
            label.iter().all(|octet| matches!(octet, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_'));
        if !is_plain {
            return None;
        }
        name.push_label(label).ok()?;
    }
    Some(name)
}

/// Reads an address, a prefix or a range from a downloaded list, where prefixes may have host bits.
pub(super) fn lenient_range(text: &str) -> Read<(IpAddr, IpAddr)> {
    if let Some((host, bits)) = text.split_once('/')
        && let (Ok(address), Ok(bits)) = (host.parse::<IpAddr>(), bits.parse::<u8>())
        && bits <= if address.is_ipv4() { 32 } else { 128 }
    {
        return Ok(Prefix::new(address, bits).range());
    }
    address_range(text)
}

/// Reads an address, a prefix or a range `first-last`.
pub fn address_range(text: &str) -> Read<(IpAddr, IpAddr)> {
    if let Some((first, last)) = text.split_once('-') {
        let read = |text: &str, start: usize| {
            text.trim().parse::<IpAddr>().map_err(|_| values::Misread {
                at: start..start + text.len(),
                message: format!("\"{}\" is not an IP address", text.trim()),
                expected: None,
                hint: None,
            })
        };
        let range = (read(first, 0)?, read(last, first.len() + 1)?);
        return match range {
            (IpAddr::V4(a), IpAddr::V4(b)) if a <= b => Ok(range),
            (IpAddr::V6(a), IpAddr::V6(b)) if a <= b => Ok(range),
            _ => Err(values::Misread {
                at: 0..text.len(),
                message: format!("\"{text}\" is not a range of addresses"),
                expected: Some("the first and the last address of one family".to_owned()),
                hint: None,
            }),
        };
    }
    values::prefix(text).map(Prefix::range)
}
