use std::collections::HashMap;

use super::*;

/// Files by name.
#[derive(Default)]
struct Shelf(HashMap<&'static str, &'static str>);

impl Include for Shelf {
    fn include(&mut self, name: &str, from: &str) -> Result<Included, String> {
        let text = self.0.get(name).ok_or_else(|| format!("{from} names a file that is not there"))?;
        Ok(Included { name: name.to_owned(), text: text.as_bytes().to_vec() })
    }
}

fn read_all(text: &[u8], shelf: &[(&'static str, &'static str)]) -> (Vec<String>, Vec<String>) {
    let origin = NameBuf::from_text("example.org").expect("a name");
    let options = Options { generated_max: 1000, ..Options::of_zone(origin.as_name()) };
    let mut shelf = Shelf(shelf.iter().copied().collect());
    let mut records = Vec::new();
    let mut owner = NameBuf::root();
    let outcome = read("zone", text, &options, &mut shelf, |entry| {
        if entry.has_same_owner {
            assert_eq!(entry.owner.as_bytes(), owner.as_name().as_bytes());
        }
        owner = entry.owner.to_buf();
        let data = wire::rdata::display(entry.rtype, entry.rdata, 0..entry.rdata.len());
        records.push(format!("{} {} {} {data} @{}", entry.owner, entry.ttl, entry.rtype, entry.place.line));
    });
    assert_eq!(outcome.records, records.len());
    let shown = |m: &Mistake| {
        format!("{}:{}:{}: {m}", outcome.files[usize::from(m.place.file)], m.place.line, m.column)
    };
    let mistakes = outcome.mistakes.iter().map(shown).collect();
    (records, mistakes)
}

fn check(text: &str, expect: &[&str]) {
    let (records, mistakes) = read_all(text.as_bytes(), &[]);
    assert_eq!(mistakes, [""; 0], "{text}");
    assert_eq!(records, expect, "{text}");
}

fn check_wrong(text: &str, expect: &[&str]) {
    assert_eq!(read_all(text.as_bytes(), &[]).1, expect, "{text}");
}

#[test]
fn the_example_of_rfc_1035_is_read() {
    check(
        "@   IN  SOA     VENERA      Action\\.domains (
                                 20     ; SERIAL
                                 7200   ; REFRESH
                                 600    ; RETRY
                                 3600000; EXPIRE
                                 60)    ; MINIMUM

        NS      A.ISI.EDU.
        NS      VENERA
        MX      10      VENERA

A       A       192.0.2.3

VENERA  A       192.0.2.52
        A       192.0.2.44",
        &[
            "example.org. 60 SOA VENERA.example.org. Action\\.domains.example.org. 20 7200 600 3600000 60 @1",
            "example.org. 60 NS A.ISI.EDU. @8",
            "example.org. 60 NS VENERA.example.org. @9",
            "example.org. 60 MX 10 VENERA.example.org. @10",
            "A.example.org. 60 A 192.0.2.3 @12",
            "VENERA.example.org. 60 A 192.0.2.52 @14",
            "VENERA.example.org. 60 A 192.0.2.44 @15",
        ],
    );
}

#[test]
fn ttl_and_class_come_in_either_order_or_not_at_all() {
    check(
        "$TTL 5m\na IN 60 A 192.0.2.1\nb 1h30m IN A 192.0.2.1\nc 70 A 192.0.2.1\nd IN A 192.0.2.1\ne A 192.0.2.1\n CLASS1 2D A 192.0.2.2\n",
        &[
            "a.example.org. 60 A 192.0.2.1 @2",
            "b.example.org. 5400 A 192.0.2.1 @3",
            "c.example.org. 70 A 192.0.2.1 @4",
            "d.example.org. 300 A 192.0.2.1 @5",
            "e.example.org. 300 A 192.0.2.1 @6",
            "e.example.org. 172800 A 192.0.2.2 @7",
        ],
    );
}

#[test]
fn without_a_default_the_ttl_before_carries_over() {
    check(
        "a 60 A 192.0.2.1\nb A 192.0.2.1",
        &["a.example.org. 60 A 192.0.2.1 @1", "b.example.org. 60 A 192.0.2.1 @2"],
    );
    check_wrong(
        "a A 192.0.2.1",
        &["zone:1:3: expected a TTL: neither $TTL nor a record before says one, found \"A\""],
    );
}

#[test]
fn names_that_look_like_types_and_numbers_are_owners() {
    check(
        "$TTL 1\n60 A 192.0.2.1\nIN IN A 192.0.2.1\nA A 192.0.2.1\n* A 192.0.2.1\n\\@ A 192.0.2.1\n\\$x A 192.0.2.1\na\\.b A 192.0.2.1\n",
        &[
            "60.example.org. 1 A 192.0.2.1 @2",
            "IN.example.org. 1 A 192.0.2.1 @3",
            "A.example.org. 1 A 192.0.2.1 @4",
            "*.example.org. 1 A 192.0.2.1 @5",
            "\\@.example.org. 1 A 192.0.2.1 @6",
            "\\$x.example.org. 1 A 192.0.2.1 @7",
            "a\\.b.example.org. 1 A 192.0.2.1 @8",
        ],
    );
}

#[test]
fn origins_change_what_names_are_relative_to() {
    check(
        "$TTL 1\n$ORIGIN sub\na CNAME b\n$ORIGIN example.net.\n@ CNAME c\n$ORIGIN .\nd CNAME e\n",
        &[
            "a.sub.example.org. 1 CNAME b.sub.example.org. @3",
            "example.net. 1 CNAME c.example.net. @5",
            "d. 1 CNAME e. @7",
        ],
    );
}

#[test]
fn parentheses_strings_and_comments_are_understood() {
    check(
        "$TTL 1 ; first\na TXT ( \"b ; c\" ; comment )\n  d\\ e \"\" )\n\n ; nothing\n\t\nf TXT \"two\nlines\"\ng TXT \\# 3 026869\nh TYPE65400 ( \\# 2\n 01 02 )\r\n",
        &[
            "a.example.org. 1 TXT \"b ; c\" \"d e\" \"\" @2",
            "f.example.org. 1 TXT \"two\\010lines\" @7",
            "g.example.org. 1 TXT \"hi\" @9",
            "h.example.org. 1 TYPE65400 \\# 2 0102 @10",
        ],
    );
}

#[test]
fn octets_that_are_no_utf_8_are_kept_as_they_are() {
    let (records, mistakes) = read_all(b"a 1 TXT \"caf\xe9\" ; \xfc\nb\xff 1 A x", &[]);
    assert_eq!(records, ["a.example.org. 1 TXT \"caf\\233\" @1"]);
    assert_eq!(mistakes, ["zone:2:8: expected an IPv4 address, found \"x\""]);
    let (records, _) = read_all("\u{feff}a 1 TXT \"caf\u{e9}\"".as_bytes(), &[]);
    assert_eq!(records, ["a.example.org. 1 TXT \"caf\\195\\169\" @1"]);
}

#[test]
fn included_files_have_their_own_origin_and_owner() {
    let (records, mistakes) = read_all(
        b"$TTL 1\na A 192.0.2.1\n$INCLUDE hosts sub\n  A 192.0.2.3\n$INCLUDE \"hosts\" ; here\nb A 192.0.2.4\n",
        &[("hosts", "@ A 192.0.2.2\n$ORIGIN deeper\nc A 192.0.2.9\n")],
    );
    assert_eq!(mistakes, [""; 0]);
    assert_eq!(
        records,
        [
            "a.example.org. 1 A 192.0.2.1 @2",
            "sub.example.org. 1 A 192.0.2.2 @1",
            "c.deeper.sub.example.org. 1 A 192.0.2.9 @3",
            "a.example.org. 1 A 192.0.2.3 @4",
            "example.org. 1 A 192.0.2.2 @1",
            "c.deeper.example.org. 1 A 192.0.2.9 @3",
            "b.example.org. 1 A 192.0.2.4 @6",
        ]
    );
}

#[test]
fn a_file_cannot_include_itself_for_ever() {
    let (records, mistakes) =
        read_all(b"$INCLUDE loop\na 1 A 192.0.2.1\n$INCLUDE gone", &[("loop", "$INCLUDE loop\n")]);
    assert_eq!(records.len(), 1);
    assert_eq!(
        mistakes,
        [
            "loop:1:10: expected at most 16 files that include each other, found \"loop\"",
            "zone:3:10: expected a file that can be read (zone names a file that is not there), found \"gone\"",
        ]
    );
}

#[test]
fn an_included_file_does_not_pass_on_its_owner() {
    let (_, mistakes) = read_all(b"a 1 A 192.0.2.1\n$INCLUDE x", &[("x", " A 192.0.2.2")]);
    assert_eq!(mistakes, ["x:1:2: expected an owner: no record before has one to carry over, found \"A\""]);
}

#[test]
fn one_line_generates_a_row_of_records() {
    check(
        "$TTL 1\n$GENERATE 1-5/2 h${0,3} 60 A 192.0.2.$\n$GENERATE 0-1 $ IN PTR h-$.example.net.\n$GENERATE 7-7 t TXT \"a $ \\$ $$\"\n$GENERATE 254-255 ${0,3,n}.8 CNAME x${0,2,x}",
        &[
            "h001.example.org. 60 A 192.0.2.1 @2",
            "h003.example.org. 60 A 192.0.2.3 @2",
            "h005.example.org. 60 A 192.0.2.5 @2",
            "0.example.org. 1 PTR h-0.example.net. @3",
            "1.example.org. 1 PTR h-1.example.net. @3",
            "t.example.org. 1 TXT \"a 7 $ $\" @4",
            "e.f.8.example.org. 1 CNAME xfe.example.org. @5",
            "f.f.8.example.org. 1 CNAME xff.example.org. @5",
        ],
    );
    check_wrong(
        "$TTL 1\n$GENERATE 5-1 a A 192.0.2.1\n$GENERATE 1-2/0 a A 192.0.2.1\n$GENERATE 1-5000 a A 192.0.2.1\n$GENERATE 1-2\n$GENERATE 250-260 h$ A 192.0.2.$\n$GENERATE 1-2 ${x} A 192.0.2.1\n$GENERATE 1-2 a AX 192.0.2.1",
        &[
            "zone:2:11: expected a range such as 1-10 or 0-100/2, found \"5-1\"",
            "zone:3:11: expected a range such as 1-10 or 0-100/2, found \"1-2/0\"",
            "zone:4:11: expected a range of at most 1000 numbers, found \"1-5000\"",
            "zone:5:14: expected an owner, a type and data, found the end of the entry",
            "zone:6:24: expected an IPv4 address, found \"192.0.2.256\"",
            "zone:7:15: expected ${offset,width,base}, the base one of d, o, x, X, n and N, found \"${x}\"",
            "zone:8:17: expected a type such as A, CNAME or TYPE65280, found \"AX\"",
        ],
    );
}

#[test]
fn all_mistakes_come_at_once_with_their_places() {
    check_wrong(
        "$TTL 1\n  A 192.0.2.1\na A 192.0.2\nb CH TXT x\nc AX x\nd OPT x\ne A 192.0.2.1 2\nf A\ng..h A 192.0.2.1\n$ORIGN x\n$TTL 1y\n$ORIGIN a b\nh 1 2 A 192.0.2.1\ni 3000000000 A 192.0.2.1\nj MX mail\nk TXT \"a\nl A 192.0.2.1\n",
        &[
            "zone:2:3: expected an owner: no record before has one to carry over, found \"A\"",
            "zone:3:5: expected an IPv4 address, found \"192.0.2\"",
            "zone:4:3: expected class IN, the only one that is served, found \"CH\"",
            "zone:5:3: expected a type such as A, CNAME or TYPE65280, found \"AX\"",
            "zone:6:3: expected a type such as A, CNAME or TYPE65280, found \"OPT\"",
            "zone:7:15: expected the end of the record, found \"2\"",
            "zone:8:4: expected an IPv4 address, found the end of the entry",
            "zone:9:1: expected a domain name (labels of 1 to 63 octets, 255 in all), found \"g..h\"",
            "zone:10:1: expected $ORIGIN, $TTL, $INCLUDE or $GENERATE, found \"$ORIGN\"",
            "zone:11:6: expected seconds, or a period such as 1h30m, found \"1y\"",
            "zone:12:11: expected the end of the line, found \"b\"",
            "zone:13:5: expected a class or a type: there is a TTL already, found \"2\"",
            "zone:14:3: expected a TTL of at most 2147483647 seconds, or a type, found \"3000000000\"",
            "zone:15:6: expected a number from 0 to 65535, found \"mail\"",
            "zone:16:1: expected a closing quote, found the end of the entry",
        ],
    );
}

#[test]
fn reading_goes_on_after_a_parenthesis_that_is_never_closed() {
    let (records, mistakes) = read_all(b"$TTL 1\na TXT ( b\n c\nd A 192.0.2.1\ne A x\nf A 192.0.2.2", &[]);
    assert_eq!(records, ["d.example.org. 1 A 192.0.2.1 @4", "f.example.org. 1 A 192.0.2.2 @6"]);
    assert_eq!(
        mistakes,
        [
            "zone:2:1: expected a closing parenthesis, found the end of the entry",
            "zone:5:5: expected an IPv4 address, found \"x\"",
        ]
    );
}

#[test]
fn a_flood_of_mistakes_is_counted() {
    let options = Options::of_zone(Name::ROOT);
    let text = "a A x\n".repeat(MISTAKES_MAX + 5);
    let outcome = read("zone", text.as_bytes(), &options, &mut NoIncludes, |_| {});
    assert_eq!((outcome.mistakes.len(), outcome.more_mistakes), (MISTAKES_MAX, 5));
    assert_eq!(outcome.mistakes[1].at, 10..11);
}
