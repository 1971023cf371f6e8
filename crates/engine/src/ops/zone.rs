//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Answers from zones that are served here.

use wire::{EdeCode, Flags, Header, Rcode, Writer};
use zone::{Asked, Zones};

use crate::finish::{Answer, To, opt_octets_max, reply_limit};
use crate::run::Run;
use crate::snapshot::Snapshot;

/// Answers if the name belongs to a zone; the records stand after the question's place in `message`.
pub(crate) fn answer(
    zones: &Zones,
    run: &Run<'_>,
    snapshot: &Snapshot,
    message: &mut [u8],
) -> Option<Answer> {
    let question = &run.query.question;
    let to = To { query: run.query, client: run.client, proof: run.proof, options: &[] };
    // What may be left out is left out here; what may not makes the reply one that is cut.
    let limit = reply_limit(snapshot, &to).saturating_sub(opt_octets_max(snapshot, &to));
    let mut writer = Writer::new(message, limit, 0, Flags::QR);
    let asked =
        Asked { qname: question.qname, qtype: question.qtype, wants_dnssec: run.query.wants_dnssec() };
    // Without room for the question there is none for any answer.
    writer.question(question).ok()?;
    let answered = zones.answer(&asked, &mut writer)?;
    let ede = (answered.rcode == Rcode::SERVFAIL).then_some((EdeCode::NOT_READY, "the zone is not loaded"));
    let counts = writer.counts();
    let body_at = Header::LEN + run.query.question_bytes().len();
    Some(Answer {
        authoritative: answered.is_authoritative,
        octets: writer.len().saturating_sub(body_at),
        counts,
        is_too_large: answered.is_truncated,
        ..Answer::empty(answered.rcode, ede)
    })
}
