//! Which of the replies that come is the answer.

use timers::{Moment, Span};
use wire::{Flags, Message, Rcode, Rtype, Section};

use crate::machine::{Ended, Ending, Forward, Held};
use exchange::Heard;
use exchange::network::Network;
use plan::upstreams::{Pick, RcodeSet};

/// The rank of an answer that is kept because there may be a better one.
pub(super) const USABLE: u8 = 4;

/// Returns how telling an unusable reply is: the most telling one is passed on.
const fn rank(rcode: Rcode) -> u8 {
    match rcode {
        Rcode::SERVFAIL => 3,
        Rcode::REFUSED => 2,
        _ => 1,
    }
}

/// Returns whether an answer has records of the type asked for.
fn is_positive(message: &Message<'_>, qtype: Rtype) -> bool {
    message.rcode() == Rcode::NOERROR && wanted(message, qtype).next().is_some()
}

/// Walks the data of the records asked for.
fn wanted<'m>(message: &Message<'m>, qtype: Rtype) -> impl Iterator<Item = &'m [u8]> {
    let answers = message.records().take_while(|record| record.section == Section::Answer);
    answers.filter(move |record| record.rtype == qtype).map(|record| record.rdata)
}

/// Returns whether a reply names other servers in place of the answer that was asked for with RD
/// (RFC 2308 §2.2): whoever sent it does not resolve names for us.
fn is_referral(message: &Message<'_>) -> bool {
    let header = &message.header;
    let has_resolved = !header.flags.has(Flags::RD) || header.flags.has(Flags::RA);
    if header.answers > 0 || header.authorities == 0 || has_resolved || header.flags.has(Flags::AA) {
        return false;
    }
    let mut is_referral = false;
    for record in message.records().filter(|record| record.section == Section::Authority) {
        match record.rtype {
            Rtype::SOA => return false,
            Rtype::NS => is_referral = true,
            _ => {}
        }
    }
    is_referral && message.rcode() == Rcode::NOERROR
}

/// Returns whether two answers say the same: that there is nothing, or that there is a certain
/// record.
fn agree(vote: &[u8], message: &Message<'_>, qtype: Rtype) -> bool {
    let Ok(vote) = Message::parse(vote) else { return false };
    match (is_positive(&vote, qtype), is_positive(message, qtype)) {
        (true, true) => wanted(&vote, qtype).any(|data| wanted(message, qtype).any(|other| data == other)),
        (false, false) => vote.rcode() == message.rcode(),
        _ => false,
    }
}

impl<N: Network> Forward<N> {
    /// Judges a reply.
    pub(super) fn reply<'b>(&mut self, heard: &Heard<'b>, now: Moment) -> Option<Ended<'b>> {
        let key = heard.tag;
        let pool = self.fetch_of(key, heard.request)?.pool;
        let from = Some((heard.address, heard.took));
        let rcode = heard.message.rcode();
        if !self.fallback_on(pool).has(rcode) && !is_referral(&heard.message) {
            self.exchange.was_usable(heard, now);
            let message = heard.message;
            let ended = match self.pools.get(pool as usize).map(|pool| pool.plan.pick) {
                Some(Pick::PreferPositive { wait_ms, .. }) => {
                    self.prefer_positive(key, message, wait_ms, now)
                }
                Some(Pick::Consensus { agreeing, .. }) => self.count_votes(key, message, agreeing, now),
                _ => self.finish(key, Ending::Reply(message), now),
            };
            return ended.map(|ended| Ended { from, ..ended });
        }
        if let Some(server) = self.exchange.server(heard.server) {
            server.meters.unusable.bump();
        }
        if let Some(fetch) = self.fetches.get_mut(key as usize) {
            fetch.last_failure = engine::Failure::BadReply(rcode);
            let better = fetch.held.as_ref().is_none_or(|held| rank(rcode) > held.rank);
            if better && heard.message.question.is_some() {
                fetch.held = Some(Held { rank: rank(rcode), bytes: heard.message.as_bytes().into() });
            }
        }
        self.advance(key, now);
        None
    }

    /// Takes an answer if it has what was asked for; another waits for such a one.
    fn prefer_positive<'b>(
        &mut self,
        key: u32,
        message: Message<'b>,
        wait_ms: u32,
        now: Moment,
    ) -> Option<Ended<'b>> {
        let fetch = self.fetches.get_mut(key as usize)?;
        let qtype = self.exchange.query(fetch.request)?.qtype;
        if is_positive(&message, qtype) || !self.exchange.is_waiting(fetch.request) {
            return self.finish(key, Ending::Reply(message), now);
        }
        if fetch.held.as_ref().is_none_or(|held| held.rank < USABLE) {
            fetch.held = Some(Held { rank: USABLE, bytes: message.as_bytes().into() });
            fetch.settle_at = now + Span::from_ms(u64::from(wait_ms));
        }
        self.arm(key);
        None
    }

    /// Takes an answer if enough others agree with it.
    fn count_votes<'b>(
        &mut self,
        key: u32,
        message: Message<'b>,
        agreeing: u8,
        now: Moment,
    ) -> Option<Ended<'b>> {
        let fetch = self.fetches.get_mut(key as usize)?;
        let qtype = self.exchange.query(fetch.request)?.qtype;
        let others = fetch.votes.iter().filter(|vote| agree(vote, &message, qtype)).count();
        if others + 1 >= usize::from(agreeing) {
            return self.finish(key, Ending::Reply(message), now);
        }
        fetch.votes.push(message.as_bytes().into());
        // The one that most agree on is kept in case no more come; of several such the first.
        let votes = &fetch.votes;
        let count = |vote: &[u8]| {
            Message::parse(vote)
                .map_or(0, |vote| votes.iter().filter(|other| agree(other, &vote, qtype)).count())
        };
        let best = votes.iter().rev().max_by_key(|vote| count(vote)).cloned();
        fetch.held = best.map(|bytes| Held { rank: USABLE, bytes });
        self.advance(key, now);
        None
    }

    /// Returns the rcodes that make a fetch go on to the next server.
    fn fallback_on(&self, pool: u32) -> RcodeSet {
        self.pools.get(pool as usize).map_or(RcodeSet::UNUSABLE, |pool| pool.plan.fallback_on)
    }
}
