//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! What a client gets that the gate does not admit: a refusal, a truncated reply, silence.

use wire::{Class, EdeCode, Query, Rcode, Rtype};

use crate::answer::Answer;
use crate::answer::finish::To;
use crate::answer::reply::Reply;
use crate::observe::trace::{Note, Tracer};
use crate::{Engine, Verdict};
use clients::client::Client;
use clients::gate::Admission;
use clients::gate::cookie::Proof;
use events::{EventId, RefusedContext};

/// Where a message has the octet of its flags that RA is in.
const FLAGS_LOW_AT: usize = 3;
/// RA in that octet.
const RA_BIT: u8 = 0x80;

impl Engine {
    /// Answers a client that is not on the access list: from the zones that are served, if the
    /// policy leads to them, and as a server that does nothing else would (RA clear). Everything
    /// else is refused.
    #[inline(never)]
    pub(crate) fn answer_outsider<T: Tracer + ?Sized>(
        &mut self,
        query: &Query<'_>,
        client: &Client,
        reply: &mut Reply<'_>,
        tracer: &mut T,
    ) -> Verdict {
        let question = &query.question;
        let (admission, proof) = if self.snapshot.program.has_zones() {
            self.snapshot.gate.admit_anyone(query, client, self.state.now)
        } else if self.snapshot.gate.bans(client) {
            (Admission::Banned, Proof::None)
        } else {
            (Admission::Denied, Proof::None)
        };
        if let Proof::Proven(_) = proof {
            self.state.counters.cookies_valid.bump();
        }
        let to = To { query, client, proof, options: &[] };
        let verdict = if admission != Admission::Admitted {
            tracer.note(note_of(admission));
            self.turn_away(admission, &to, reply)
        } else if question.qclass != Class::IN {
            tracer.note(Note::Denied);
            self.turn_away(Admission::Denied, &to, reply)
        } else {
            match self.by_rule_of_protocol(query, reply) {
                None => self.by_policy::<T, true>(&to, reply, tracer),
                // The rule about ANY is for names that are in no zone.
                Some(_) if question.qtype == Rtype::ANY => {
                    tracer.note(Note::Denied);
                    self.turn_away(Admission::Denied, &to, reply)
                }
                Some(answer) => {
                    tracer.note(Note::Protocol);
                    self.complete(&to, &answer, reply)
                }
            }
        };
        if matches!(verdict, Verdict::Answered) {
            clear_ra(reply);
        }
        verdict
    }

    #[cold]
    pub(crate) fn turn_away(&mut self, admission: Admission, to: &To<'_>, reply: &mut Reply<'_>) -> Verdict {
        let verdict = self.turned_away(admission, to, reply);
        if let Some(id) = self.snapshot.refused_event {
            // As far as the header says it: the code of a wrong cookie stands in EDNS.
            let low = reply.buffer().get(FLAGS_LOW_AT).map(|flags| Rcode(u16::from(flags & 0x0f)));
            let is_answered = matches!(verdict, Verdict::Answered);
            self.events.tell_refused(
                EventId(id),
                &RefusedContext {
                    trusted_peers: &self.snapshot.trusted_peers,
                    now: self.state.now,
                    query: to.query,
                    client: to.client,
                    rcode: low.filter(|_| is_answered),
                    snapshot: self.snapshot.number,
                },
            );
        }
        verdict
    }

    fn turned_away(&mut self, admission: Admission, to: &To<'_>, reply: &mut Reply<'_>) -> Verdict {
        match admission {
            Admission::Denied => {
                self.state.counters.denied.bump();
                self.complete(to, &denied(), reply)
            }
            Admission::Banned => {
                self.state.counters.banned.bump();
                self.stay_silent()
            }
            Admission::BadCookieOption => self.complete(to, &Answer::empty(Rcode::FORMERR, None), reply),
            Admission::Limited => {
                self.state.counters.limited.bump();
                // One with a good cookie is known, and asks too much.
                if matches!(to.proof, Proof::Proven(_)) {
                    return self.stay_silent();
                }
                // RFC 7873 §5.2.3: a client that speaks cookies gets one to come back with.
                if to.proof.client_cookie().is_some() {
                    return self.complete(to, &Answer::empty(Rcode::BADCOOKIE, None), reply);
                }
                if !self.slips() {
                    return self.stay_silent();
                }
                let answer = Answer { is_too_large: true, ..Answer::empty(Rcode::NOERROR, None) };
                self.complete(to, &answer, reply)
            }
            Admission::NoCookie => {
                self.state.counters.without_cookie.bump();
                if to.proof.client_cookie().is_some() {
                    return self.complete(to, &Answer::empty(Rcode::BADCOOKIE, None), reply);
                }
                // TC: who knows no cookies comes back over TCP, which proves its address, too.
                let why = Some((EdeCode::OTHER, "a cookie is needed over UDP"));
                let answer = Answer { is_too_large: true, ..Answer::empty(Rcode::REFUSED, why) };
                self.complete(to, &answer, reply)
            }
            Admission::Admitted => Verdict::Drop,
        }
    }

    /// Returns whether this limited query is one of those that get a truncated reply.
    fn slips(&mut self) -> bool {
        let slip = self.snapshot.gate.rate.as_ref().map_or(0, |rule| rule.slip);
        slip != 0 && self.counts_up_to(slip)
    }

    /// Counts a limited query; returns whether it is the last of so many.
    const fn counts_up_to(&mut self, many: u32) -> bool {
        self.limited = self.limited.wrapping_add(1);
        self.limited.is_multiple_of(many)
    }

    /// Returns what the gate says of a query that it does not admit: every so many of those over
    /// the rate limit may be answered all the same.
    #[cold]
    pub(crate) fn reconsider(&mut self, admission: Admission, to: &To<'_>) -> Admission {
        let pass = self.snapshot.gate.rate.as_ref().map_or(0, |rule| rule.pass);
        let is_proven = matches!(to.proof, Proof::Proven(_));
        if admission != Admission::Limited || pass == 0 || is_proven || !self.counts_up_to(pass) {
            return admission;
        }
        self.snapshot.gate.admit_limited(to.client, to.proof)
    }
}

/// Has a reply say nothing of recursion.
#[cold]
pub(crate) fn clear_ra(reply: &mut Reply<'_>) {
    if let Some(flags) = reply.buffer().get_mut(FLAGS_LOW_AT) {
        *flags &= !RA_BIT;
    }
}

/// Returns the answer for a client that is not on the access list.
#[cold]
pub(crate) const fn denied() -> Answer {
    Answer::empty(Rcode::REFUSED, Some((EdeCode::PROHIBITED, "client not on the access list")))
}

/// Returns the note of a query that the gate does not admit.
#[cold]
pub(crate) const fn note_of(admission: Admission) -> Note {
    match admission {
        Admission::Limited => Note::Limited,
        Admission::BadCookieOption => Note::BadCookie,
        Admission::NoCookie => Note::NoCookie,
        Admission::Banned => Note::Banned,
        Admission::Denied | Admission::Admitted => Note::Denied,
    }
}
