//! Sets of records as a configuration has them: zone files without a zone, read by `zone::master`.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use diagnostic::io_text;
use engine::records::{Records, RecordsBuilder};
use values::{Misread, Read};
use wire::rtypes::{self, Field, NameRule};
use wire::{Class, HashKey, Name, NameBuf, Rtype, Ttl};
use zone::master::{self, Include, Included, MistakeKind, NameForm, Options, Outcome};

/// The TTL of records that say none, and no `$TTL` before them does.
const TTL: Ttl = Ttl::new(3600);
/// Files that may include each other, so that none includes itself for ever.
const INCLUDES_MAX: usize = 8;
/// Mistakes of one text that are told.
const MISTAKES_MAX: usize = 100;
/// Records that one `$GENERATE` may make.
const GENERATED_MAX: u32 = 65_536;

/// One record of class IN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its owner.
    pub owner: NameBuf,
    /// Its type.
    pub rtype: Rtype,
    /// How long it may be kept.
    pub ttl: Ttl,
    /// Its data, names in full.
    pub rdata: Vec<u8>,
    /// Whether a text in it was too long for one string, and became several.
    pub is_split: bool,
}

/// What is wrong in a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The octets of the text that are wrong.
    pub at: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What would have been right.
    pub expected: String,
    /// Whether it is in a file that the text includes, which the message names.
    pub is_within: bool,
}

/// Files that a text may include.
#[derive(Clone)]
pub struct Includes<'a> {
    /// Where names of files begin that do not begin at the root.
    pub directory: PathBuf,
    /// Reads a file.
    pub read: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
}

/// Opens what a text includes; nothing if it may not include anything.
struct Opener<'a>(Option<&'a Includes<'a>>);

impl Include for Opener<'_> {
    fn include(&mut self, name: &str, from: &str) -> Result<Included, String> {
        let Some(includes) = self.0 else { return Err("no file can be included here".to_owned()) };
        // The text itself has no name.
        let directory = match from {
            "" => &*includes.directory,
            from => Path::new(from).parent().unwrap_or(Path::new("")),
        };
        let path = directory.join(name);
        let text = (includes.read)(&path)
            .map_err(|error| format!("cannot read \"{}\": {}", path.display(), io_text(&error)))?;
        Ok(Included { name: path.display().to_string(), text })
    }
}

/// Reads all records of a text, and finds all mistakes. Names without a dot at their end are below
/// `origin` until `$ORIGIN` says another.
pub fn parse_all(text: &str, origin: Name<'_>, includes: &Includes<'_>) -> (Vec<Record>, Vec<Mistake>) {
    read(text, origin, Some(includes))
}

/// Reads all records of a text that includes no files, or finds its first mistake.
pub fn parse(text: &str, origin: Name<'_>) -> Result<Vec<Record>, Mistake> {
    let (records, mistakes) = read(text, origin, None);
    match mistakes.into_iter().next() {
        Some(mistake) => Err(mistake),
        None => Ok(records),
    }
}

fn read(text: &str, origin: Name<'_>, includes: Option<&Includes<'_>>) -> (Vec<Record>, Vec<Mistake>) {
    // Sets of records have no SOA that says a TTL, and the TTL of one record is not meant for the
    // next.
    let options = Options {
        origin,
        ttl: Some(TTL),
        ttl_outlives_include: false,
        names: NameForm::Idn,
        generated_max: GENERATED_MAX,
        includes_max: INCLUDES_MAX,
    };
    let mut records = Vec::new();
    let outcome = master::read("", text.as_bytes(), &options, &mut Opener(includes), |entry| {
        records.push(Record {
            owner: entry.owner.to_buf(),
            rtype: entry.rtype,
            ttl: entry.ttl,
            rdata: entry.rdata.to_vec(),
            is_split: entry.is_split,
        });
    });
    let mistakes = outcome.mistakes.iter().take(MISTAKES_MAX);
    let mistakes = mistakes.map(|mistake| Mistake::new(mistake, &outcome, includes.is_some())).collect();
    (records, mistakes)
}

impl Mistake {
    fn new(mistake: &master::Mistake, outcome: &Outcome, can_include: bool) -> Self {
        let (message, expected) = described(mistake, can_include);
        let (mut file, mut at) = (mistake.place.file, mistake.at.clone());
        let is_within = file > 0;
        let message = match outcome.files.get(usize::from(file)).filter(|_| is_within) {
            Some(name) => format!("\"{name}\", line {}: {message}", mistake.place.line),
            None => message,
        };
        // The places of an included file's mistakes are in that file; in the text, its name is what
        // points to it.
        while let Some(inclusion) = usize::from(file).checked_sub(1).and_then(|at| outcome.inclusions.get(at))
        {
            (file, at) = (inclusion.file, inclusion.at.clone());
        }
        Self { at, message, expected, is_within }
    }

    /// Returns the number of its line in `text`, from 1.
    pub fn line(&self, text: &str) -> usize {
        text[..self.at.start.min(text.len())].matches('\n').count() + 1
    }
}

/// Returns what is wrong, and what would have been right.
fn described(mistake: &master::Mistake, can_include: bool) -> (String, String) {
    let found = &mistake.found;
    let (message, expected) = match mistake.kind {
        MistakeKind::Unexpected if found.is_empty() => ("the record ends too early".to_owned(), None),
        MistakeKind::Unexpected => (format!("\"{found}\" cannot stand here"), None),
        MistakeKind::NoOwner => {
            let message = "there is no record before whose owner this one could have";
            (message.to_owned(), Some("an owner"))
        }
        MistakeKind::Class => (format!("records of class {found} are not served"), Some("class IN")),
        MistakeKind::Rtype => (format!("\"{found}\" is not a type of records"), None),
        MistakeKind::Ttl => (format!("\"{found}\" is not a TTL"), None),
        MistakeKind::Excess => (format!("\"{found}\" is too much"), None),
        MistakeKind::Directive => (format!("\"{found}\" is not a directive that is understood here"), None),
        MistakeKind::Range => (format!("\"{found}\" makes no or too many records"), None),
        MistakeKind::Include => {
            let expected = if can_include { "a file" } else { "records" };
            (mistake.why.clone().unwrap_or_default(), Some(expected))
        }
        MistakeKind::IncludeDepth => {
            (format!("files include each other more than {INCLUDES_MAX} deep"), Some(""))
        }
    };
    (message, expected.map_or_else(|| mistake.expected.clone(), str::to_owned))
}

impl From<Mistake> for Misread {
    fn from(mistake: Mistake) -> Self {
        let expected = Some(mistake.expected).filter(|text| !text.is_empty());
        Self { at: mistake.at, message: mistake.message, expected, hint: None }
    }
}

/// Reads the records between one pair of quotes: names are taken from the root on.
pub fn inline(text: &str) -> Read<Vec<Record>> {
    let found = parse(text, Name::ROOT)?;
    if found.is_empty() {
        return Err(Misread {
            at: 0..text.len(),
            message: "there is no record".to_owned(),
            expected: Some("an owner, perhaps a TTL, a type and data".to_owned()),
            hint: None,
        });
    }
    Ok(found)
}

/// Returns an owner that has a CNAME and something else (RFC 2181 §10.1).
pub fn alias_with_others(records: &[Record]) -> Option<String> {
    let mut owners: BTreeMap<Vec<u8>, Vec<&Record>> = BTreeMap::new();
    for record in records {
        let list = owners.entry(record.owner.as_name().to_folded().as_bytes().to_vec()).or_default();
        if !list.iter().any(|other| other.rtype == record.rtype && other.rdata == record.rdata) {
            list.push(record);
        }
    }
    let both = owners.values().find(|list| {
        let aliases = list.iter().filter(|record| record.rtype == Rtype::CNAME).count();
        // RFC 4034 §2.5, §4: these may stand beside it.
        let beside = list.iter().filter(|record| matches!(record.rtype, Rtype::RRSIG | Rtype::NSEC)).count();
        aliases > 1 || aliases == 1 && list.len() > 1 + beside
    })?;
    both.first().map(|record| record.owner.to_string())
}

/// The name that stands for the one asked for while a reply is read. Nobody can write it: it has a
/// control character.
fn asked_for() -> NameBuf {
    let mut name = NameBuf::root();
    name.push_label(b"\x00the name asked for\x00").expect("a label that fits");
    name
}

/// Reads the records of a reply; names without a dot at their end are below the name asked for.
pub fn relative(text: &str) -> Read<Vec<Record>> {
    let records = parse(text, asked_for().as_name())?;
    let marker = asked_for();
    let marker = marker.as_name().as_bytes();
    for record in &records {
        let has_marker = record.rdata.windows(marker.len()).any(|window| window == marker);
        let fields = rtypes::describe(record.rtype).and_then(|known| known.fields).unwrap_or(&[]);
        let can_point = fields.iter().any(|field| matches!(field, Field::Name(NameRule::Compressed)));
        if has_marker && !can_point {
            // RFC 3597 §4: only the types of RFC 1035 may hold pointers.
            return Err(Misread {
                at: 0..0,
                message: format!(
                    "{} data cannot hold a name relative to the one asked for: end it in a dot",
                    record.rtype
                ),
                expected: None,
                hint: None,
            });
        }
    }
    Ok(records)
}

/// The records of a reply as octets, to stand behind any question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Records in the answer, authority and additional sections.
    pub counts: [u16; 3],
    /// Their octets.
    pub body: Vec<u8>,
    /// Octets that the longest relative name adds to the name asked for.
    pub relative_octets_max: u8,
}

/// Octets that a written reply may have.
const REPLY_OCTETS_MAX: usize = 16_384;

impl Reply {
    /// Puts the records of three sections together.
    pub fn new(sections: &[Vec<Record>; 3]) -> Result<Self, String> {
        let mut reply = Self::default();
        for (section, count) in sections.iter().zip(&mut reply.counts) {
            for record in section {
                *count += 1;
                let mut rdata = Vec::new();
                let mut longest = relative_octets(record.owner.as_name().as_bytes());
                put_relative(&record.rdata, &mut rdata, &mut longest);
                reply.relative_octets_max = reply.relative_octets_max.max(longest);
                let mut owner = Vec::new();
                put_relative(record.owner.as_name().as_bytes(), &mut owner, &mut 0);
                reply.body.extend(owner);
                reply.body.extend(record.rtype.0.to_be_bytes());
                reply.body.extend(Class::IN.0.to_be_bytes());
                reply.body.extend(record.ttl.seconds().to_be_bytes());
                reply.body.extend((rdata.len() as u16).to_be_bytes());
                reply.body.extend(rdata);
            }
        }
        if reply.body.len() > REPLY_OCTETS_MAX {
            return Err(format!(
                "the records have {} octets, more than {REPLY_OCTETS_MAX}",
                reply.body.len()
            ));
        }
        Ok(reply)
    }
}

/// Returns how many octets stand before the name asked for; 0 for a name that does not end in it.
fn relative_octets(name: &[u8]) -> u8 {
    let marker = asked_for();
    name.strip_suffix(marker.as_name().as_bytes()).map_or(0, |head| head.len() as u8)
}

/// Copies octets with a pointer to the question in place of each name asked for.
fn put_relative(octets: &[u8], out: &mut Vec<u8>, longest: &mut u8) {
    let marker = asked_for();
    let marker = marker.as_name().as_bytes();
    let mut rest = octets;
    while let Some(at) = rest.windows(marker.len()).position(|window| window == marker) {
        out.extend(&rest[..at]);
        out.extend([0xc0, wire::Header::LEN as u8]);
        // The labels before it are at most all that was copied since the name before.
        *longest = (*longest).max(u8::try_from(at).unwrap_or(u8::MAX));
        rest = &rest[at + marker.len()..];
    }
    out.extend(rest);
}

/// Compiles some records.
pub fn compile(records: &[Record], key: HashKey) -> Arc<Records> {
    Arc::new(builder(records).compile(key))
}

/// Returns what compiles some records.
pub fn builder(records: &[Record]) -> RecordsBuilder {
    let mut builder = RecordsBuilder::new();
    for Record { owner, rtype, ttl, rdata, .. } in records {
        builder.add(owner.as_name(), *rtype, *ttl, rdata);
    }
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[&str]) {
        let found = parse(text, NameBuf::from_text("example.org").expect("a name").as_name());
        let shown: Vec<String> = match found {
            Ok(records) => records
                .iter()
                .map(|r| {
                    let data = wire::rdata::display(r.rtype, &r.rdata, 0..r.rdata.len());
                    format!("{} {} {} {data}", r.owner, r.ttl, r.rtype)
                })
                .collect(),
            Err(mistake) => {
                vec![format!("{}: {}: expected {}", mistake.line(text), mistake.message, mistake.expected)]
            }
        };
        assert_eq!(shown, expect, "{text}");
    }

    #[test]
    fn records_are_read_as_in_zone_files() {
        check(
            "$TTL 5m\n@ IN SOA ns admin ( 1 ; serial\n 2 3 4 1h )\n  NS ns.example.net.\n\nwww 60 IN A 192.0.2.1\n  IN 1h AAAA 2001:db8::1 ; more\n",
            &[
                "example.org. 300 SOA ns.example.org. admin.example.org. 1 2 3 4 3600",
                "example.org. 300 NS ns.example.net.",
                "www.example.org. 60 A 192.0.2.1",
                "www.example.org. 3600 AAAA 2001:db8::1",
            ],
        );
        check(
            "$ORIGIN sub\n* TXT \"a b\" c\nx TYPE65400 \\# 2 0102",
            &["*.sub.example.org. 3600 TXT \"a b\" \"c\"", "x.sub.example.org. 3600 TYPE65400 \\# 2 0102"],
        );
        check(
            "$GENERATE 1-3/2 host${0,3} A 192.0.2.$",
            &["host001.example.org. 3600 A 192.0.2.1", "host003.example.org. 3600 A 192.0.2.3"],
        );
        check("; nothing\n\n", &[]);
    }

    #[test]
    fn names_outside_ascii_are_internationalized_and_strings_stay() {
        check(
            "bücher CNAME münchen.example.\nx TXT \"bücher\" bücher\n",
            &[
                "xn--bcher-kva.example.org. 3600 CNAME xn--mnchen-3ya.example.",
                "x.example.org. 3600 TXT \"b\\195\\188cher\" \"b\\195\\188cher\"",
            ],
        );
        let wrong = "1: \"\u{fffd}\" cannot stand here: expected an internationalized domain name (UTS #46)";
        check("\u{fffd} A 192.0.2.1", &[wrong]);
    }

    /// Reads a text that may include these files; returns owners, and mistakes.
    fn read_with(files: &[(&str, &str)], text: &str) -> (Vec<String>, Vec<String>) {
        let read = |path: &Path| {
            let known = files.iter().find(|(name, _)| Path::new(name) == path);
            known.map(|(_, text)| text.as_bytes().to_vec()).ok_or(io::ErrorKind::NotFound.into())
        };
        let includes = Includes { directory: "zones".into(), read: &read };
        let origin = NameBuf::from_text("example.org").expect("a name");
        let (records, mistakes) = parse_all(text, origin.as_name(), &includes);
        let owners = records.iter().map(|record| format!("{} {}", record.owner, record.ttl)).collect();
        (owners, mistakes.iter().map(|found| format!("{}: {}", found.line(text), found.message)).collect())
    }

    #[test]
    fn files_are_included_and_leave_nothing_behind() {
        let files = [
            ("zones/more.zone", "$TTL 60\n$ORIGIN x\nfirst A 192.0.2.1\n$INCLUDE deep/last.zone\n"),
            ("zones/deep/last.zone", "last A 192.0.2.1\n"),
            ("/abs.zone", "absolute A 192.0.2.1"),
        ];
        let text = "a A 192.0.2.1\n$INCLUDE more.zone below\n  A 192.0.2.2\n$INCLUDE /abs.zone ; why\nb A 192.0.2.1\n";
        let (owners, mistakes) = read_with(&files, text);
        assert_eq!(mistakes, Vec::<String>::new());
        assert_eq!(
            owners,
            [
                "a.example.org. 3600",
                "first.x.below.example.org. 60",
                "last.x.below.example.org. 60",
                "a.example.org. 3600",
                "absolute.example.org. 3600",
                "b.example.org. 3600",
            ]
        );
    }

    #[test]
    fn every_mistake_is_found_also_in_files_that_are_included() {
        let files = [("zones/bad.zone", "x A nowhere\ny A 192.0.2.1\nz MX\n")];
        let text =
            "a A 1\nb A 192.0.2.1\nc (\n AX x )\n$INCLUDE bad.zone\n$INCLUDE gone.zone\nd A 192.0.2.1 more\n";
        let (owners, mistakes) = read_with(&files, text);
        assert_eq!(owners, ["b.example.org. 3600", "y.example.org. 3600"]);
        let begins = [
            "1: \"1\" cannot stand here",
            "4: \"AX\" is not a type of records",
            "5: \"zones/bad.zone\", line 1: \"nowhere\" cannot stand here",
            "5: \"zones/bad.zone\", line 3: the record ends too early",
            "6: cannot read \"zones/gone.zone\"",
            "7: \"more\" is too much",
        ];
        assert_eq!(mistakes.len(), begins.len(), "{mistakes:#?}");
        for (mistake, begin) in mistakes.iter().zip(begins) {
            assert!(mistake.starts_with(begin), "{mistake}");
        }
        let (_, mistakes) = read_with(&[("zones/loop", "$INCLUDE loop")], "$INCLUDE loop");
        assert_eq!(mistakes.len(), 1);
        assert!(mistakes[0].ends_with("files include each other more than 8 deep"), "{mistakes:?}");
        let (_, mistakes) = read_with(&[], &"a A x\n".repeat(500));
        assert_eq!(mistakes.len(), MISTAKES_MAX);
        check("$INCLUDE x", &["1: no file can be included here: expected records"]);
    }

    #[test]
    fn mistakes_have_a_place() {
        check("a A 192.0.2.1\nb A 192.0.2", &["2: \"192.0.2\" cannot stand here: expected an IPv4 address"]);
        check(
            "  A 192.0.2.1",
            &["1: there is no record before whose owner this one could have: expected an owner"],
        );
        check("a CH TXT x", &["1: records of class CH are not served: expected class IN"]);
        check(
            "a AX x",
            &["1: \"AX\" is not a type of records: expected a type such as A, CNAME or TYPE65280"],
        );
        check(
            "a OPT x",
            &["1: \"OPT\" is not a type of records: expected a type such as A, CNAME or TYPE65280"],
        );
        check("a A 192.0.2.1 2", &["1: \"2\" is too much: expected the end of the record"]);
        check("a A", &["1: the record ends too early: expected an IPv4 address"]);
        check(
            "$INCLUDED x",
            &[
                "1: \"$INCLUDED\" is not a directive that is understood here: expected $ORIGIN, $TTL, $INCLUDE or $GENERATE",
            ],
        );
        check(
            "$GENERATE 3-1 a A 192.0.2.1",
            &["1: \"3-1\" makes no or too many records: expected a range such as 1-10 or 0-100/2"],
        );
    }

    #[test]
    fn an_alias_stands_alone() {
        let found = |text| alias_with_others(&parse(text, Name::ROOT).expect("records"));
        assert_eq!(found("a CNAME b.\na A 192.0.2.1"), Some("a.".to_owned()));
        assert_eq!(found("a CNAME b.\nA CNAME c."), Some("a.".to_owned()));
        assert_eq!(found("a CNAME b.\na CNAME b.\nb A 192.0.2.1"), None);
    }

    #[test]
    fn names_below_the_one_asked_for_become_pointers() {
        let records = relative("@ 60 MX 10 mail\nmail A 192.0.2.1\nother.example. CNAME @").expect("records");
        let reply = Reply::new(&[records, vec![], vec![]]).expect("a reply");
        assert_eq!((reply.counts, reply.relative_octets_max), ([3, 0, 0], 7));
        assert_eq!(reply.body[..14], *b"\xc0\x0c\0\x0f\0\x01\0\0\0\x3c\0\x09\0\x0a");
        assert_eq!(reply.body[14..21], *b"\x04mail\xc0\x0c");
        assert!(reply.body.ends_with(b"\x05other\x07example\0\0\x05\0\x01\0\0\x0e\x10\0\x02\xc0\x0c"));
        assert!(relative("@ SRV 1 2 3 host").is_err());
        assert!(relative("@ SRV 1 2 3 host.example.").is_ok());
    }
}
