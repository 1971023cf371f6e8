//! Trust anchors as text: records as in a zone file, and the state file that Unbound's
//! `auto-trust-anchor-file` made common.

use std::fmt::{self, Write as _};

use wire::text::Tokens;
use wire::{NameBuf, Rtype};

use super::{Anchor, KeyState, TrustAnchors, statements};
use crate::algorithm::Algorithm;
use crate::dnskey::{Dnskey, ENTRY_POINT, RsaParts};
use crate::times::write_calendar;

/// A DS or DNSKEY record of a trust anchor file.
#[derive(Clone, Debug)]
pub struct AnchorRow {
    /// The zone.
    pub owner: NameBuf,
    /// DS or DNSKEY.
    pub rtype: Rtype,
    /// The TTL, if the line has one.
    pub ttl: Option<u32>,
    /// The data.
    pub rdata: Vec<u8>,
    /// Where the key stands, if a state file says so: state, times seen, last change.
    pub state: Option<(KeyState, u32, u64)>,
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnchorFault {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, in words.
    pub what: String,
}

impl fmt::Display for AnchorFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for AnchorFault {}

const STATES: [(KeyState, &str); 6] = [
    (KeyState::Start, " START "),
    (KeyState::AddPend, "ADDPEND"),
    (KeyState::Valid, " VALID "),
    (KeyState::Missing, "MISSING"),
    (KeyState::Revoked, "REVOKED"),
    (KeyState::Removed, "REMOVED"),
];

/// What the part of a zone begins with.
const HEADER: &str = "; autotrust trust anchor file";

/// Cuts a text into entries and the lines that are only comments.
struct Entries<'t> {
    text: &'t str,
    at: usize,
    line: usize,
}

enum Entry<'t> {
    Comment(&'t str),
    Row(AnchorRow),
}

impl<'t> Entries<'t> {
    const fn new(text: &'t str) -> Self {
        Self { text, at: 0, line: 1 }
    }

    fn fault(&self, what: impl Into<String>) -> AnchorFault {
        AnchorFault { line: self.line, what: what.into() }
    }

    /// Reads the next entry; `None` at the end.
    fn next_entry(&mut self) -> Result<Option<Entry<'t>>, AnchorFault> {
        loop {
            let rest = self.text.get(self.at..).unwrap_or("");
            if rest.is_empty() {
                return Ok(None);
            }
            let line = rest.lines().next().unwrap_or("");
            let plain = line.trim();
            if plain.is_empty() || plain.starts_with(';') {
                self.step(line.len() + 1);
                if plain.is_empty() {
                    continue;
                }
                return Ok(Some(Entry::Comment(plain)));
            }
            let mut tokens = Tokens::new(rest);
            let row = self.row(line, &mut tokens)?;
            let end = tokens.at().max(1);
            // What a zone's servers say of its keys has signatures; who trusts keys needs none.
            let Some(row) = row else {
                self.step(end + 1);
                continue;
            };
            let entry = rest.get(..end).unwrap_or(rest);
            let state = state_of(entry).map_err(|what| self.fault(what))?;
            self.step(end + 1);
            return Ok(Some(Entry::Row(AnchorRow { state, ..row })));
        }
    }

    fn step(&mut self, octets: usize) {
        let end = (self.at + octets).min(self.text.len());
        let passed = self.text.as_bytes().get(self.at..end).unwrap_or(&[]);
        self.line += passed.iter().filter(|&&octet| octet == b'\n').count();
        self.at = end;
    }

    /// Reads a record; `None` if it is a signature.
    fn row(&self, line: &str, tokens: &mut Tokens<'_>) -> Result<Option<AnchorRow>, AnchorFault> {
        let wrong = |error: wire::TextError| self.fault(error.to_string());
        if line.starts_with([' ', '\t']) {
            return Err(self.fault("expected a zone at the start of the line"));
        }
        let owner = tokens.expect("a zone").map_err(wrong)?;
        let owner = NameBuf::from_text(owner.text).map_err(wrong)?;
        let mut ttl = None;
        let rtype = loop {
            let token = tokens.expect("DS or DNSKEY").map_err(wrong)?;
            match token.text.parse::<Rtype>() {
                Ok(rtype @ (Rtype::DS | Rtype::DNSKEY)) => break rtype,
                Ok(Rtype::RRSIG) => {
                    while tokens.next_token().map_err(wrong)?.is_some() {}
                    return Ok(None);
                }
                _ if token.text.eq_ignore_ascii_case("IN") => {}
                _ => match token.text.parse().ok().filter(|_| ttl.is_none()) {
                    Some(seconds) => ttl = Some(seconds),
                    None => return Err(wrong(token.expected("DS or DNSKEY"))),
                },
            }
        };
        let mut rdata = Vec::new();
        wire::rdata::parse_tokens(rtype, tokens, None, &mut rdata).map_err(wrong)?;
        match tokens.next_token().map_err(wrong)? {
            Some(token) => Err(wrong(token.expected("nothing more"))),
            None => Ok(Some(AnchorRow { owner, rtype, ttl, rdata, state: None })),
        }
    }
}

/// Returns the number behind a mark in the comments of a line.
fn number<N: std::str::FromStr>(comment: &str, mark: &str) -> Option<Result<N, String>> {
    let (_, rest) = comment.split_once(mark)?;
    let rest = rest.trim_start();
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or("");
    let name = mark.trim_matches([';', '=', ':']);
    Some(digits.parse().map_err(|_| format!("expected a number as {name}, found \"{digits}\"")))
}

/// Returns the zone that a comment names: that of all that follows.
fn zone_of(comment: &str) -> Option<Result<NameBuf, String>> {
    let rest = comment.strip_prefix(";;id:")?;
    let zone = rest.split_whitespace().next().unwrap_or("");
    Some(NameBuf::from_text(zone).map_err(|error| error.to_string()))
}

/// Returns what the comments of a record say of its key.
fn state_of(entry: &str) -> Result<Option<(KeyState, u32, u64)>, String> {
    let Some(state) = number::<usize>(entry, ";;state=").transpose()? else { return Ok(None) };
    let (state, _) =
        STATES.get(state).ok_or_else(|| format!("expected a state from 0 to 5, found {state}"))?;
    let count = number(entry, ";;count=").transpose()?.unwrap_or(0);
    let last_change = number(entry, ";;lastchange=").transpose()?.unwrap_or(0);
    Ok(Some((*state, count, last_change)))
}

/// Reads trust anchors as records of a zone file, DS and DNSKEY of any zone, absolute names; or as
/// statements of BIND.
pub fn read_anchors(text: &str) -> Result<Vec<AnchorRow>, AnchorFault> {
    if statements::is_so_written(text) {
        return statements::read(text);
    }
    let mut entries = Entries::new(text);
    let mut rows = Vec::new();
    while let Some(entry) = entries.next_entry()? {
        if let Entry::Row(row) = entry {
            rows.push(row);
        }
    }
    Ok(rows)
}

impl TrustAnchors {
    /// Reads a state file of one zone; a plain file of trust anchors is one as well, and
    /// its keys are valid. A file without records is none.
    pub fn read(text: &str) -> Result<Self, AnchorFault> {
        let mut all = Self::read_all(text)?;
        let first = all.swap_remove(0);
        match all.first() {
            None => Ok(first),
            Some(other) => {
                let line = text.lines().count();
                Err(AnchorFault { line, what: format!("anchors of {} and {}", first.zone(), other.zone()) })
            }
        }
    }

    /// Reads a state file of any zones, at least one: those of several stand one behind the other.
    /// Comments belong to the zone that `;;id:` names, or to that of the record before them.
    pub fn read_all(text: &str) -> Result<Vec<Self>, AnchorFault> {
        let mut entries = Entries::new(text);
        let mut all: Vec<Self> = Vec::new();
        let mut current: Option<usize> = None;
        // What is said before it is clear of which zone.
        let mut early = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            match entry {
                Entry::Comment(HEADER) => {
                    current = None;
                    early.clear();
                }
                Entry::Comment(comment) => {
                    let line = entries.line - 1;
                    if let Some(zone) = zone_of(comment) {
                        let zone = zone.map_err(|what| AnchorFault { line, what })?;
                        current = Some(Self::place(&mut all, zone.as_name()));
                    }
                    early.push((line, comment));
                }
                Entry::Row(row) => {
                    let place = Self::place(&mut all, row.owner.as_name());
                    if let Some(anchors) = all.get_mut(place) {
                        anchors.take(&row);
                    }
                    current = Some(place);
                }
            }
            if let Some(anchors) = current.and_then(|place| all.get_mut(place)) {
                for (line, comment) in early.drain(..) {
                    anchors.note(comment).map_err(|what| AnchorFault { line, what })?;
                }
            }
        }
        all.iter_mut().for_each(Self::leave_zone_keys);
        let is_empty = |anchors: &Self| anchors.ds.is_empty() && anchors.keys.is_empty();
        if all.is_empty() || all.iter().any(|anchors| is_empty(anchors) && !anchors.is_revoked) {
            return Err(entries.fault("there is no trust anchor"));
        }
        Ok(all)
    }

    /// Returns the place of a zone, which is there from then on.
    fn place(all: &mut Vec<Self>, zone: wire::Name<'_>) -> usize {
        all.iter().position(|anchors| anchors.zone() == zone).unwrap_or_else(|| {
            all.push(Self::new(zone));
            all.len() - 1
        })
    }

    /// Takes a row of a file.
    fn take(&mut self, row: &AnchorRow) {
        self.ttl = row.ttl.unwrap_or(self.ttl);
        match row.state {
            _ if row.rtype == Rtype::DS => self.add_ds(&row.rdata),
            None => self.add_key(&row.rdata),
            Some((KeyState::Start, ..)) => {}
            Some((state, pending_count, last_change)) => {
                self.track(&row.rdata, state, last_change);
                if let Some(anchor) = self.keys.last_mut().filter(|anchor| *anchor.rdata == *row.rdata) {
                    anchor.pending_count = pending_count;
                }
            }
        }
    }

    /// Leaves out keys that nothing is known of and that sign zones only, if there are others: who
    /// asks for the keys of a zone gets all of them (RFC 5011 §3).
    fn leave_zone_keys(&mut self) {
        let is_entry = |anchor: &Anchor| anchor.key().is_some_and(|key| key.flags() & ENTRY_POINT != 0);
        if !self.ds.is_empty() || self.keys.iter().any(is_entry) {
            self.keys.retain(|anchor| anchor.last_change != 0 || is_entry(anchor));
        }
    }

    /// Takes what a comment line says of the whole.
    fn note(&mut self, comment: &str) -> Result<(), String> {
        self.is_revoked |= comment == ";;REVOKED";
        for (mark, place) in [
            (";;last_queried:", &mut self.last_queried),
            (";;last_success:", &mut self.last_success),
            (";;next_probe_time:", &mut self.next_probe),
            (";;query_interval:", &mut self.query_interval),
            (";;retry_time:", &mut self.retry_time),
        ] {
            if comment.starts_with(mark) {
                *place = number(comment, mark).transpose()?.unwrap_or(0);
            }
        }
        if comment.starts_with(";;query_failed:") {
            self.failures = number(comment, ";;query_failed:").transpose()?.unwrap_or(0);
        }
        Ok(())
    }

    /// Writes the state file. Keys that were removed are not in it.
    pub fn write(&self) -> String {
        let mut text = format!("{HEADER}\n");
        let times = [
            ("last_queried", self.last_queried),
            ("last_success", self.last_success),
            ("next_probe_time", self.next_probe),
        ];
        if self.is_revoked {
            text.push_str(";;REVOKED\n");
        }
        let _ = writeln!(text, ";;id: {} 1", self.zone());
        for (name, time) in times {
            let _ = writeln!(text, ";;{name}: {time} ;;{}", write_calendar(time));
        }
        let _ = writeln!(text, ";;query_failed: {}", self.failures);
        let _ = writeln!(text, ";;query_interval: {}", self.query_interval);
        let _ = writeln!(text, ";;retry_time: {}", self.retry_time);
        for ds in &self.ds {
            let data = wire::rdata::display(Rtype::DS, ds, 0..ds.len());
            let _ = writeln!(text, "{}\t{}\tIN\tDS\t{data}", self.zone(), self.ttl);
        }
        for anchor in &self.keys {
            if anchor.state != KeyState::Removed {
                self.write_key(anchor, &mut text);
            }
        }
        text
    }

    fn write_key(&self, anchor: &Anchor, text: &mut String) {
        let Some(key) = Dnskey::parse(&anchor.rdata) else { return };
        let data = wire::rdata::display(Rtype::DNSKEY, &anchor.rdata, 0..anchor.rdata.len());
        let kind = if key.is_entry_point() { "ksk" } else { "zsk" };
        let (number, name) = (0..)
            .zip(STATES)
            .find(|(_, (state, _))| *state == anchor.state)
            .map_or((0, ""), |(number, (_, name))| (number, name));
        let _ = writeln!(
            text,
            "{}\t{}\tIN\tDNSKEY\t{data} ;{{id = {} ({kind}), size = {}b}} \
             ;;state={number} [ {name} ] ;;count={} ;;lastchange={} ;;{}",
            self.zone(),
            self.ttl,
            key.tag(),
            bits(key),
            anchor.pending_count,
            anchor.last_change,
            write_calendar(anchor.last_change),
        );
    }
}

/// Returns the size of a key, as people say it.
fn bits(key: Dnskey<'_>) -> usize {
    match key.algorithm() {
        Algorithm::RSASHA1 | Algorithm::RSASHA1_NSEC3_SHA1 | Algorithm::RSASHA256 | Algorithm::RSASHA512 => {
            RsaParts::parse(key.key()).map_or(0, |parts| parts.modulus.len() * 8)
        }
        // RFC 2536 §2: the first octet says how much larger than 512 bits it is.
        Algorithm(3 | 6) => 512 + key.key().first().map_or(0, |&size| usize::from(size) * 64),
        Algorithm::ECDSAP256SHA256 | Algorithm::ECDSAP384SHA384 => key.key().len() * 4,
        _ => key.key().len() * 8,
    }
}
