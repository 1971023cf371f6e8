//! Reads master files (RFC 1035 §5): `$ORIGIN`, `$TTL` (RFC 2308 §4), `$INCLUDE`, `$GENERATE` (as
//! BIND has it), owners, TTLs and classes that carry over, parentheses, all types, and `\#` for any
//! (RFC 3597 §5).
//!
//! Reading goes on after a mistake, so that all mistakes of a file come at once. Records leave
//! through a function of the caller's, one after the other; nothing is kept here. Sets of records
//! in a configuration are read by the same rules but for what [`Options`] say.
//!
//! # Limitations
//!
//! Zones are of class IN; a record of another class is a mistake.

mod generate;
mod text;

use std::fmt;
use std::ops::Range;

use wire::rdata::parse_tokens;
use wire::rtypes::{self, Kind};
use wire::text::{TextError, Token, Tokens, idn_from_token, parse_period};
use wire::{Class, Name, NameBuf, Rtype, Ttl};

use self::text::Text;

/// Files that may include each other in a row, unless the caller says otherwise: a file that
/// includes itself is found out.
pub const INCLUDES_MAX: usize = 16;
/// Mistakes that are told; of those after them, only the number.
pub const MISTAKES_MAX: usize = 1000;
/// Records that one `$GENERATE` may make, unless the caller says otherwise: the reverse zone of a
/// network of 24 bits.
pub const GENERATED_MAX: u32 = 1 << 24;

/// Records that are read before somebody hears of it.
const RECORDS_UNTOLD: usize = 1 << 16;

/// Where something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file: 0 is the one that was given, others follow as they are included.
    pub file: u16,
    /// The line, from 1.
    pub line: u32,
}

impl Place {
    /// The place of a record that stands in no file.
    pub const NOWHERE: Self = Self { file: 0, line: 0 };
}

/// What kind of mistake it is, for callers that word it in their own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MistakeKind {
    /// Something else was expected, or more.
    Unexpected,
    /// A record is to carry over an owner, and no record before has one.
    NoOwner,
    /// A record is not of class IN.
    Class,
    /// There is no such type of data.
    Rtype,
    /// There is no such TTL.
    Ttl,
    /// The entry should have ended.
    Excess,
    /// There is no such directive.
    Directive,
    /// The range of `$GENERATE` makes no records, or too many.
    Range,
    /// A file cannot be included.
    Include,
    /// Files include each other too deep.
    IncludeDepth,
}

/// Something that is wrong in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// What kind it is.
    pub kind: MistakeKind,
    /// The file and the line.
    pub place: Place,
    /// The first character that is wrong, from 1.
    pub column: u32,
    /// The octets of the file that are wrong.
    pub at: Range<usize>,
    /// What stands there; empty at the end of an entry.
    pub found: String,
    /// What was expected in its place.
    pub expected: String,
    /// Why a file cannot be included.
    pub why: Option<String>,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.found.as_str() {
            "" => write!(f, "expected {}, found the end of the entry", self.expected),
            found => match &self.why {
                Some(why) => write!(f, "expected {} ({why}), found \"{found}\"", self.expected),
                None => write!(f, "expected {}, found \"{found}\"", self.expected),
            },
        }
    }
}

/// One record, borrowed for as long as the caller looks at it.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    /// Its owner in full, letter case as written.
    pub owner: Name<'a>,
    /// Whether the entry before had the same owner and left it to this one.
    pub has_same_owner: bool,
    /// Its type.
    pub rtype: Rtype,
    /// How long it may be kept.
    pub ttl: Ttl,
    /// Its data, names in full.
    pub rdata: &'a [u8],
    /// Where it begins.
    pub place: Place,
    /// Whether a text in its data was too long for one string, and became several.
    pub is_split: bool,
}

/// A file that `$INCLUDE` names.
pub struct Included {
    /// What it is called in messages, and what files that it includes itself are relative to.
    pub name: String,
    /// What is in it.
    pub text: Vec<u8>,
}

/// Opens the files that `$INCLUDE` names.
pub trait Include {
    /// Returns the file `name`, as the file `from` writes it, or says why it cannot be read.
    fn include(&mut self, name: &str, from: &str) -> Result<Included, String>;

    /// Hears how many records are read: again and again, as long as there are more.
    fn hear(&mut self, records: usize) {
        let _ = records;
    }
}

/// Includes nothing.
pub struct NoIncludes;

impl Include for NoIncludes {
    fn include(&mut self, _: &str, _: &str) -> Result<Included, String> {
        Err("$INCLUDE cannot be used here".to_owned())
    }
}

/// What names outside ASCII are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameForm {
    /// Octets as they stand: the instances of RFC 6763 §4.1.1 are UTF-8.
    Octets,
    /// Internationalized domain names (UTS #46).
    Idn,
}

/// How a file is read.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// What names without a dot at their end are below, until `$ORIGIN` says another.
    pub origin: Name<'a>,
    /// The TTL of records that say none where no `$TTL` counts. Without one, it is that of the
    /// record before, and of the first record the MINIMUM of a SOA.
    pub ttl: Option<Ttl>,
    /// Whether the `$TTL` of an included file still counts after it.
    pub ttl_outlives_include: bool,
    /// What names outside ASCII are.
    pub names: NameForm,
    /// Records that one `$GENERATE` may make.
    pub generated_max: u32,
    /// Files that may include each other in a row.
    pub includes_max: usize,
}

impl<'a> Options<'a> {
    /// Returns how the file of a zone is read.
    pub const fn of_zone(origin: Name<'a>) -> Self {
        Self {
            origin,
            ttl: None,
            ttl_outlives_include: true,
            names: NameForm::Octets,
            generated_max: GENERATED_MAX,
            includes_max: INCLUDES_MAX,
        }
    }

    fn tokens<'t>(&self, text: &'t str) -> Tokens<'t> {
        match self.names {
            NameForm::Octets => Tokens::new(text),
            NameForm::Idn => Tokens::new(text).with_idn(),
        }
    }
}

/// Where a file is included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inclusion {
    /// The file that names it.
    pub file: u16,
    /// The octets there that are its name.
    pub at: Range<usize>,
}

/// What came of reading, besides the records.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The files, by [`Place::file`].
    pub files: Vec<String>,
    /// Where each of them is included, but for the first.
    pub inclusions: Vec<Inclusion>,
    /// What is wrong, in the order of reading; at most [`MISTAKES_MAX`].
    pub mistakes: Vec<Mistake>,
    /// Mistakes after those.
    pub more_mistakes: usize,
    /// Records that were handed out.
    pub records: usize,
}

/// Reads a file and those it includes; hands each record to `sink`.
pub fn read(
    name: &str,
    text: &[u8],
    options: &Options<'_>,
    include: &mut dyn Include,
    mut sink: impl FnMut(&Entry<'_>),
) -> Outcome {
    let mut reader = Reader {
        options: *options,
        origin: options.origin.to_buf(),
        default_ttl: None,
        last_ttl: None,
        owner: None,
        is_owner_new: true,
        rdata: Vec::new(),
        last_type: None,
        outcome: Outcome::default(),
        depth: 0,
        include,
        sink: &mut sink,
    };
    reader.file(name, text);
    reader.outcome
}

/// Something wrong at an octet of the text under way.
struct Wrong {
    kind: MistakeKind,
    at: usize,
    len: usize,
    found: String,
    expected: String,
    why: Option<String>,
}

impl Wrong {
    fn new(kind: MistakeKind, token: &Token<'_>, expected: impl Into<String>) -> Self {
        Self {
            kind,
            at: token.at,
            len: token.text.len(),
            found: token.text.to_owned(),
            expected: expected.into(),
            why: None,
        }
    }
}

impl From<TextError> for Wrong {
    fn from(error: TextError) -> Self {
        Self {
            kind: MistakeKind::Unexpected,
            at: error.at,
            len: error.what.len(),
            found: error.what,
            expected: error.expected.to_owned(),
            why: None,
        }
    }
}

/// A file under way.
#[derive(Clone, Copy)]
struct File<'t> {
    number: u16,
    text: &'t Text<'t>,
    /// Where in the text the entry under way begins.
    at: usize,
}

struct Reader<'o, 's> {
    options: Options<'o>,
    origin: NameBuf,
    /// What `$TTL` says.
    default_ttl: Option<Ttl>,
    /// The TTL of the record before.
    last_ttl: Option<Ttl>,
    /// The owner of the record before.
    owner: Option<NameBuf>,
    is_owner_new: bool,
    rdata: Vec<u8>,
    /// The type that was read last, as it was written: mostly the next one is the same.
    last_type: Option<(String, Rtype)>,
    outcome: Outcome,
    depth: usize,
    include: &'s mut dyn Include,
    sink: &'s mut dyn FnMut(&Entry<'_>),
}

impl Reader<'_, '_> {
    fn file(&mut self, name: &str, octets: &[u8]) {
        let Ok(number) = u16::try_from(self.outcome.files.len()) else { return };
        self.outcome.files.push(name.to_owned());
        let text = Text::new(octets);
        let all = text.as_str();
        let mut at = 0;
        let mut line = 1;
        while at < all.len() {
            let rest = &all[at..];
            let mut tokens = self.options.tokens(rest);
            let file = File { number, text: &text, at };
            let place = Place { file: number, line };
            let is_indented = matches!(rest.as_bytes().first(), Some(b' ' | b'\t'));
            let mut used = match self.entry(file, place, &mut tokens, is_indented) {
                Ok(()) => tokens.at(),
                Err(mut wrong) => {
                    if wrong.at >= rest.len() && wrong.expected.starts_with("a closing") {
                        // What is not closed is told where it began.
                        wrong.at = rest.len() - rest.trim_start().len();
                    }
                    self.mistake(file, wrong);
                    end_of_entry(rest, &mut tokens)
                }
            };
            // What follows is the end of the line.
            used = (used + 1).min(rest.len());
            line += rest.as_bytes()[..used].iter().map(|&octet| u32::from(octet == b'\n')).sum::<u32>();
            at += used;
        }
    }

    fn mistake(&mut self, file: File<'_>, wrong: Wrong) {
        if self.outcome.mistakes.len() == MISTAKES_MAX {
            self.outcome.more_mistakes += 1;
            return;
        }
        let at = file.at + wrong.at;
        let (line, column) = file.text.line_and_column(at);
        self.outcome.mistakes.push(Mistake {
            kind: wrong.kind,
            place: Place { file: file.number, line },
            column,
            at: file.text.original(at)..file.text.original(at + wrong.len),
            found: wrong.found,
            expected: wrong.expected,
            why: wrong.why,
        });
    }

    /// Reads one entry: a directive, a record or nothing.
    fn entry<'t>(
        &mut self,
        file: File<'_>,
        place: Place,
        tokens: &mut Tokens<'t>,
        is_indented: bool,
    ) -> Result<(), Wrong> {
        let Some(first) = tokens.next_token()? else { return Ok(()) };
        if first.text.starts_with('$') && !first.is_quoted {
            return self.directive(file, place, &first, tokens);
        }
        let mut next = first;
        if is_indented {
            if self.owner.is_none() {
                return Err(Wrong::new(
                    MistakeKind::NoOwner,
                    &first,
                    "an owner: no record before has one to carry over",
                ));
            }
        } else {
            let owner = self.name(&first)?;
            // Written twice is the same as left out.
            let is_same =
                self.owner.is_some_and(|last| last.as_name().as_bytes() == owner.as_name().as_bytes());
            self.is_owner_new |= !is_same;
            self.owner = Some(owner);
            next = tokens.expect("a type")?;
        }
        self.record(place, next, tokens)
    }

    fn name(&self, token: &Token<'_>) -> Result<NameBuf, Wrong> {
        let origin = self.origin.as_name();
        match self.options.names {
            NameForm::Octets => NameBuf::from_text_below(token.text, origin)
                .map_err(|error| Wrong::from(TextError { at: token.at, ..error })),
            NameForm::Idn => idn_from_token(token, Some(origin)).map_err(Wrong::from),
        }
    }

    /// Reads a record from the word after its owner on.
    fn record<'t>(&mut self, place: Place, first: Token<'t>, tokens: &mut Tokens<'t>) -> Result<(), Wrong> {
        let (mut ttl, mut class) = (None, None);
        let mut next = first;
        // TTL and class may stand in either order (RFC 1035 §5.1).
        let rtype = loop {
            let is_number = next.text.starts_with(|c: char| c.is_ascii_digit());
            if is_number {
                match (ttl, parse_period(next.text)) {
                    (None, Some(seconds)) if seconds <= i32::MAX as u32 => ttl = Some(Ttl::new(seconds)),
                    (None, _) => {
                        return Err(Wrong::new(
                            MistakeKind::Ttl,
                            &next,
                            "a TTL of at most 2147483647 seconds, or a type",
                        ));
                    }
                    (Some(_), _) => {
                        return Err(Wrong::new(
                            MistakeKind::Unexpected,
                            &next,
                            "a class or a type: there is a TTL already",
                        ));
                    }
                }
            } else if class.is_none()
                && self.last_type.as_ref().is_none_or(|(text, _)| text != next.text)
                && let Ok(found) = next.text.parse::<Class>()
            {
                if found != Class::IN {
                    return Err(Wrong::new(
                        MistakeKind::Class,
                        &next,
                        "class IN, the only one that is served",
                    ));
                }
                class = Some(found);
            } else {
                break self.rtype(&next)?;
            }
            next = tokens.expect("a type")?;
        };
        let mut rdata = std::mem::take(&mut self.rdata);
        rdata.clear();
        let read = parse_tokens(rtype, tokens, Some(self.origin.as_name()), &mut rdata);
        self.rdata = rdata;
        read?;
        if let Some(more) = tokens.next_token()? {
            return Err(Wrong::new(MistakeKind::Excess, &more, "the end of the record"));
        }
        let Some(owner) = &self.owner else { return Ok(()) };
        let Some(ttl) = ttl.or(self.default_ttl).or(self.options.ttl).or(self.last_ttl).or_else(|| {
            // RFC 2308 §4 gave MINIMUM another meaning, but files from before have no $TTL.
            let minimum = self.rdata.last_chunk::<4>().filter(|_| rtype == Rtype::SOA)?;
            Some(Ttl::new(u32::from_be_bytes(*minimum)))
        }) else {
            return Err(Wrong::new(
                MistakeKind::Unexpected,
                &first,
                "a TTL: neither $TTL nor a record before says one",
            ));
        };
        self.last_ttl = Some(ttl);
        let entry = Entry {
            owner: owner.as_name(),
            has_same_owner: !self.is_owner_new,
            rtype,
            ttl,
            rdata: &self.rdata,
            place,
            is_split: tokens.has_split(),
        };
        (self.sink)(&entry);
        self.outcome.records += 1;
        if self.outcome.records.is_multiple_of(RECORDS_UNTOLD) {
            self.include.hear(self.outcome.records);
        }
        self.is_owner_new = false;
        Ok(())
    }

    fn rtype(&mut self, token: &Token<'_>) -> Result<Rtype, Wrong> {
        if let Some((text, rtype)) = &self.last_type
            && text == token.text
        {
            return Ok(*rtype);
        }
        match token.text.parse::<Rtype>() {
            Ok(rtype) if rtypes::describe(rtype).is_none_or(|known| known.kind == Kind::Data) => {
                self.last_type = Some((token.text.to_owned(), rtype));
                Ok(rtype)
            }
            _ => Err(Wrong::new(MistakeKind::Rtype, token, "a type such as A, CNAME or TYPE65280")),
        }
    }

    fn directive(
        &mut self,
        file: File<'_>,
        place: Place,
        first: &Token<'_>,
        tokens: &mut Tokens<'_>,
    ) -> Result<(), Wrong> {
        let is = |word: &str| first.text.eq_ignore_ascii_case(word);
        if is("$ORIGIN") {
            let name = tokens.expect("a name")?;
            let origin = self.name(&name)?;
            end_of_line(tokens)?;
            self.origin = origin;
        } else if is("$TTL") {
            let period = tokens.expect("a TTL")?;
            let seconds = parse_period(period.text).filter(|&seconds| seconds <= i32::MAX as u32);
            let ttl = seconds
                .map(Ttl::new)
                .ok_or_else(|| Wrong::new(MistakeKind::Ttl, &period, "seconds, or a period such as 1h30m"))?;
            end_of_line(tokens)?;
            self.default_ttl = Some(ttl);
        } else if is("$INCLUDE") {
            return self.include(file, tokens);
        } else if is("$GENERATE") {
            return self.generate(file, place, tokens);
        } else {
            return Err(Wrong::new(MistakeKind::Directive, first, "$ORIGIN, $TTL, $INCLUDE or $GENERATE"));
        }
        Ok(())
    }

    /// Reads `file [origin]` and the file. Its origin and owner are its own (RFC 1035 §5.1); its
    /// `$TTL` stays, unless the options say otherwise.
    fn include(&mut self, file: File<'_>, tokens: &mut Tokens<'_>) -> Result<(), Wrong> {
        let name = tokens.expect("a file")?;
        let origin = match tokens.next_token()? {
            Some(token) => self.name(&token)?,
            None => self.origin,
        };
        end_of_line(tokens)?;
        let wrong = |expected: &str| Wrong::new(MistakeKind::Unexpected, &name, expected);
        let includes_max = self.options.includes_max;
        if self.depth == includes_max {
            let expected = format!("at most {includes_max} files that include each other");
            return Err(Wrong { kind: MistakeKind::IncludeDepth, expected, ..wrong("") });
        }
        let path = name.octets()?;
        let path = String::from_utf8(path).map_err(|_| wrong("the name of a file in UTF-8"))?;
        let from = self.outcome.files.get(usize::from(file.number)).cloned().unwrap_or_default();
        let included = self.include.include(&path, &from).map_err(|why| {
            let (kind, why) = (MistakeKind::Include, Some(why));
            Wrong { kind, why, ..wrong("a file that can be read") }
        })?;
        if self.outcome.files.len() > usize::from(u16::MAX) {
            return Err(wrong("at most 65535 files"));
        }
        let at =
            file.text.original(file.at + name.at)..file.text.original(file.at + name.at + name.text.len());
        self.outcome.inclusions.push(Inclusion { file: file.number, at });
        let outer = (self.origin, self.owner.take(), self.default_ttl);
        self.origin = origin;
        self.depth += 1;
        self.file(&included.name, &included.text);
        self.depth -= 1;
        let ttl;
        (self.origin, self.owner, ttl) = outer;
        if !self.options.ttl_outlives_include {
            self.default_ttl = ttl;
        }
        self.is_owner_new = true;
        Ok(())
    }
}

fn end_of_line(tokens: &mut Tokens<'_>) -> Result<(), Wrong> {
    match tokens.next_token()? {
        Some(more) => Err(Wrong::new(MistakeKind::Excess, &more, "the end of the line")),
        None => Ok(()),
    }
}

/// Returns where an entry with a mistake ends, so that reading goes on with the next.
fn end_of_entry(rest: &str, tokens: &mut Tokens<'_>) -> usize {
    let mut ahead = tokens.clone();
    loop {
        match ahead.next_token() {
            Ok(Some(_)) => {}
            Ok(None) => return ahead.at(),
            // A parenthesis or quote that is never closed would swallow the rest of the file: the
            // next line that looks like the beginning of an entry is one.
            Err(_) => break,
        }
    }
    let mut at = 0;
    while let Some(len) = rest.as_bytes()[at..].iter().position(|&octet| octet == b'\n') {
        at += len;
        match rest.as_bytes().get(at + 1) {
            None
            | Some(b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'@' | b'$' | b'*' | b'_' | b'\\' | b'\n') => {
                return at;
            }
            _ => at += 1,
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests;
