//! What every zone file must keep to. The tests of `zone` run the same function.

use std::sync::Arc;

use wire::{Class, Flags, HashKey, Message, NameBuf, Question, Rcode, Rtype, Writer};
use zone::master::{self, Include, Included, Options};
use zone::{Asked, Builder, Zone, Zones};

const KEY: HashKey = HashKey::new([0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]);
/// Records that one line may make: more would only take time.
const GENERATED_MAX: u32 = 50;
/// Records of a zone that are asked for.
const ASKED_MAX: usize = 100;

/// Has one file, whatever it is called; it includes others.
struct Shelf;

impl Include for Shelf {
    fn include(&mut self, name: &str, _: &str) -> Result<Included, String> {
        match name.len() {
            0..=3 => Err("not there".to_owned()),
            _ => {
                Ok(Included { name: name.to_owned(), text: b"inside 60 A 192.0.2.1\n$INCLUDE x\n".to_vec() })
            }
        }
    }
}

fn load(text: &[u8]) -> (Option<Zone>, usize) {
    let apex = NameBuf::from_text("example.org").expect("a name");
    let mut builder = Builder::new(apex.as_name(), KEY);
    let options = Options { generated_max: GENERATED_MAX, ..Options::of_zone(apex.as_name()) };
    let outcome = master::read("zone", text, &options, &mut Shelf, |entry| {
        assert!(entry.place.line > 0 && usize::from(entry.place.file) < 1 << 12);
        assert_eq!(wire::rdata::check(entry.rtype, entry.rdata, 0..entry.rdata.len()), Ok(()));
        builder.push(entry);
    });
    let mut last = master::Place { file: 0, line: 0 };
    for mistake in outcome.mistakes.iter().filter(|mistake| mistake.place.file == 0) {
        assert!(mistake.column > 0 && !mistake.to_string().is_empty());
        assert!(mistake.at.start <= mistake.at.end && mistake.at.start <= text.len());
        let lines = 1 + text.iter().filter(|&&octet| octet == b'\n').count();
        assert!(mistake.place.line as usize <= lines);
        last = last.max(mistake.place);
    }
    let built = builder.compile();
    for finding in &built.findings {
        assert!(!finding.problem.to_string().is_empty());
    }
    (built.zone, outcome.mistakes.len())
}

fn printed(zone: &Zone) -> (String, Vec<(NameBuf, Rtype)>) {
    use std::fmt::Write;
    let (mut text, mut asked) = (String::new(), Vec::new());
    zone.for_each_record(|owner, rtype, ttl, rdata| {
        let data = wire::rdata::display(rtype, rdata, 0..rdata.len());
        writeln!(text, "{owner} {ttl} IN {rtype} {data}").expect("a string takes all");
        if asked.len() < ASKED_MAX {
            asked.push((owner.to_buf(), rtype));
        }
    });
    (text, asked)
}

/// A zone's file.
pub fn zone_file(bytes: &[u8]) {
    // What is no zone file may be zones in JSON.
    let file = zone::json::read(bytes, KEY, None);
    for mistake in &file.mistakes {
        assert!(mistake.column > 0 && mistake.place.line > 0 && !mistake.to_string().is_empty());
        assert!(mistake.at.start <= mistake.at.end && mistake.at.start <= bytes.len());
    }
    let (Some(zone), _) = load(bytes) else { return };
    let (text, asked) = printed(&zone);
    let (again, mistakes) = load(text.as_bytes());
    assert_eq!(mistakes, 0, "{text}");
    let again = again.expect("what is printed can be read");
    assert_eq!(printed(&again).0, text);
    assert_eq!(again.facts(), zone.facts());
    let has_aliases = zone.facts().aliases > 0;
    let zones = Zones::new(KEY, vec![Arc::new(zone)]);
    let mut buffer = vec![0; 65_535];
    for (qname, rtype) in asked {
        for (qtype, wants_dnssec, limit) in
            [(rtype, false, 65_535), (Rtype::A, true, 65_535), (rtype, true, 200)]
        {
            let mut writer = Writer::new(&mut buffer, limit.max(300), 1, Flags::QR);
            let question = Question { qname: qname.as_name(), qtype, qclass: Class::IN };
            writer.question(&question).expect("room for the question");
            let asked = Asked::new(qname.as_name(), qtype, wants_dnssec);
            let answered = zones.answer(&asked, &mut writer).expect("a name of the zone");
            let len = writer.finish();
            let message = Message::parse(&buffer[..len]).expect("a message");
            let expect = [Rcode::NOERROR, Rcode::NXDOMAIN, Rcode::YXDOMAIN];
            // Nobody knows the addresses of what an ALIAS leads to here.
            let is_unknown = answered.rcode == Rcode::SERVFAIL && has_aliases;
            assert!(is_unknown || expect.contains(&answered.rcode), "{} {qname} {qtype}", answered.rcode);
            for record in message.records() {
                let range = record.rdata_at..record.end();
                assert_eq!(wire::rdata::check(record.rtype, &buffer[..len], range), Ok(()));
            }
        }
    }
}
