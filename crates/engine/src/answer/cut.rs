//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! What is left of a reply that is too large for its client.

use wire::message::records;
use wire::{Header, NameBuf, Record, Rtype, Section};

use super::put::put;

/// What of an answer is in its reply.
pub(super) struct Kept {
    /// Octets behind the question.
    pub(super) octets: usize,
    /// Records by section.
    pub(super) counts: [u16; 3],
    /// Whether what is left out has to be fetched in another way (TC).
    pub(super) is_cut: bool,
}

/// Returns what of an answer fits into so many octets of a message: whole RRsets with their
/// signatures, the first ones. Nothing, if there is no such limit.
///
/// RFC 2181 §9: TC is set if something is left out that belongs to the answer; what the additional
/// section has behind one does not.
#[cold]
#[inline(never)]
pub(super) fn what_fits(buffer: &mut [u8], question: &[u8], counts: [u16; 3], limit: Option<usize>) -> Kept {
    let mut kept = Kept { octets: 0, counts: [0; 3], is_cut: true };
    let body_at = Header::LEN + question.len();
    // Owners point at the question.
    let (Some(limit), Some(())) = (limit, put(buffer, Header::LEN, question)) else { return kept };
    let [answers, authorities, additionals] = counts;
    let header = Header { questions: 1, answers, authorities, additionals, ..Header::default() };
    let mut seen = [0; 3];
    let mut last: Option<(Section, Rtype, NameBuf)> = None;
    let mut end = body_at;
    for record in records(buffer, body_at, &header).map_while(Result::ok) {
        let Ok(owner) = record.owner.expand() else { break };
        let set = (record.section, covered(&record), owner);
        let is_of_last = last.as_ref().is_some_and(|(section, rtype, owner)| {
            (*section, *rtype) == (set.0, set.1) && owner.as_name() == set.2.as_name()
        });
        if !is_of_last {
            (kept.octets, kept.counts) = (end - body_at, seen);
        }
        if record.end() > limit {
            kept.is_cut = record.section != Section::Additional || answers == 0;
            return kept;
        }
        end = record.end();
        if let Some(count) = seen.get_mut(record.section as usize) {
            *count += 1;
        }
        last = Some(set);
    }
    kept
}

/// Returns the type of the RRset that a record belongs to.
fn covered(record: &Record<'_>) -> Rtype {
    match (record.rtype, record.rdata.first_chunk()) {
        (Rtype::RRSIG, Some(covered)) => Rtype(u16::from_be_bytes(*covered)),
        (rtype, _) => rtype,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Class, Flags, Question, Ttl, Writer};

    const LIMIT: usize = 512;

    /// What is left of RRsets of so many octets of data each: section, type, and how many records.
    fn left(sets: &[(Section, Rtype, u8, usize)]) -> (bool, [u16; 3]) {
        let name: NameBuf = "www.example.org".parse().expect("a name");
        let mut buffer = vec![0; 4096];
        let mut writer = Writer::new(&mut buffer, 4096, 7, Flags::QR);
        let question = Question { qname: name.as_name(), qtype: Rtype::TXT, qclass: Class::IN };
        writer.question(&question).expect("room");
        let mut counts = [0; 3];
        for &(section, rtype, count, octets) in sets {
            for number in 0..count {
                let mut data = vec![number; octets];
                if rtype == Rtype::RRSIG {
                    data[..2].copy_from_slice(&Rtype::TXT.0.to_be_bytes());
                }
                let write = |writer: &mut Writer<'_>| writer.bytes(&data);
                writer.record(section, name.as_name(), rtype, Class::IN, Ttl::new(60), write).expect("room");
                counts[section as usize] += 1;
            }
        }
        let len = writer.finish();
        assert!(len > LIMIT, "{len} octets fit");
        let question = buffer[Header::LEN..Header::LEN + name.as_name().len() + 4].to_vec();
        let kept = what_fits(&mut buffer, &question, counts, Some(LIMIT));
        assert!(Header::LEN + question.len() + kept.octets <= LIMIT);
        let header = Header {
            questions: 1,
            answers: counts[0],
            authorities: counts[1],
            additionals: counts[2],
            ..Header::default()
        };
        let at = Header::LEN + question.len();
        let records = kept.counts.iter().map(|&count| usize::from(count)).sum();
        let octets: usize = wire::message::records(&buffer, at, &header)
            .map_while(Result::ok)
            .take(records)
            .map(|record| record.end() - record.at)
            .sum();
        assert_eq!(octets, kept.octets, "whole records");
        assert_eq!(what_fits(&mut buffer, &question, counts, None).octets, 0);
        (kept.is_cut, kept.counts)
    }

    #[test]
    fn whole_rrsets_are_left_with_their_signatures() {
        use Section::{Additional, Answer, Authority};
        let (txt, rrsig, other) = (Rtype::TXT, Rtype::RRSIG, Rtype(65_400));
        let answer = [(Answer, txt, 2, 50), (Answer, rrsig, 1, 100)];
        let with = |more: &[_]| left(&[&answer[..], more].concat());
        // What belongs to the answer has to be fetched in another way.
        assert_eq!(with(&[(Authority, other, 2, 120)]), (true, [3, 0, 0]));
        assert_eq!(with(&[(Authority, txt, 1, 50), (Authority, other, 1, 200)]), (true, [3, 1, 0]));
        assert_eq!(with(&[(Authority, txt, 1, 50), (Authority, rrsig, 1, 200)]), (true, [3, 0, 0]));
        // What stands beside it does not.
        assert_eq!(with(&[(Additional, other, 2, 120)]), (false, [3, 0, 0]));
        assert_eq!(with(&[(Additional, txt, 1, 50), (Additional, other, 1, 200)]), (false, [3, 0, 1]));
        // Addresses of a referral do: there is nothing else in it.
        assert_eq!(left(&[(Authority, txt, 1, 50), (Additional, txt, 9, 60)]), (true, [0, 1, 0]));
        // No half of an RRset, and no RRset without its signatures.
        assert_eq!(left(&[(Answer, txt, 9, 60)]), (true, [0, 0, 0]));
        assert_eq!(left(&[(Answer, txt, 3, 60), (Answer, rrsig, 2, 150)]), (true, [0, 0, 0]));
    }
}
