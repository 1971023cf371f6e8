//! What of a reply is believed.
//!
//! A server is believed in what it was asked, about names in the zone that it was asked as a server
//! of, and in nothing else. What comes besides is as if it had not come: whoever can add a record
//! to a reply must not be able to plant it (promiscuous NS records, CVE-2025-11411;
//! CVE-2026-42960).
//!
//! - A chain of aliases is followed to the edge of the zone, not beyond.
//! - A referral must lead down, and to the name; its glue must be for servers that it names, in the
//!   zone that was asked, and is good for this delegation alone.
//! - NS records beside an answer, and addresses that no referral needs, are dropped.
//! - A CNAME that a DNAME is said to make is made here.
//! - A reply that takes too much work to be read is not read to its end ([`Work`]).

mod chain;
mod referral;
mod sets;
mod work;

use cache::Security;
use wire::{EdeCode, Flags, Message, Name, Rcode, Rtype};

use crate::addresses::AddressPolicy;
use crate::heap_name::HeapName;
use crate::routes::Routes;
pub(crate) use chain::substitute;
use chain::{Chain, End};
pub(crate) use referral::{Referral, read_priming};
pub(crate) use sets::{SERVERS_MAX, Set, host_in, minimum as soa_minimum};
pub(crate) use work::Work;

/// What a server was asked.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// The zone that it was asked as a server of.
    pub(crate) zone: Name<'a>,
    pub(crate) qname: Name<'a>,
    pub(crate) qtype: Rtype,
    /// The name that says by which route it is asked (see
    /// [`HeapQuestion::place`](crate::heap_name::HeapQuestion::place)).
    pub(crate) place: Name<'a>,
    /// Zones that others are asked for.
    pub(crate) routes: &'a Routes,
    /// Whether NS records of the zone itself say whom to ask from then on.
    pub(crate) primes: bool,
    pub(crate) by: Speaker,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// A server of the zone that was asked, or of one above it that refers on.
    Server,
    /// A forwarder: it has the answer from elsewhere, and refers to nobody.
    Forwarder {
        /// Whether what it says is proved before it is believed.
        is_judged: bool,
    },
}

impl Asked<'_> {
    /// Returns the zone that SOA records and proofs must be of, or of one below it. Names may be
    /// forwarded that are no zone: what denies them is of a zone above, and has to prove that.
    const fn denier(&self) -> Name<'_> {
        match self.by {
            Speaker::Forwarder { is_judged: true } => Name::ROOT,
            Speaker::Forwarder { is_judged: false } | Speaker::Server => self.zone,
        }
    }

    /// Returns whether the server may speak for a name.
    fn covers(&self, name: Name<'_>) -> bool {
        name.is_at_or_below(self.zone) && !self.routes.leads_away(self.zone, self.place, name)
    }
}

/// How replies are read.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    /// The name that was asked: what is of the same name shares its memory.
    pub(crate) name: &'a HeapName,
    pub(crate) addresses: &'a AddressPolicy,
    /// Name servers of a referral that are taken.
    pub(crate) servers_max: usize,
    /// Seconds that data is kept at most.
    pub(crate) ttl_max: u32,
    /// Seconds that negative answers are kept at most.
    pub(crate) negative_ttl_max: u32,
    /// Whether signatures and proofs were asked for; without that none are looked at.
    pub(crate) dnssec_ok: bool,
    /// Signatures of one RRset that are taken; zones have two while they change their keys.
    pub(crate) signatures_max: usize,
    /// What reading it may still cost.
    pub(crate) work: &'a Work,
    /// Whether answers without AA are of no use. If not, those of servers that offer recursion are
    /// doubtful.
    pub(crate) requires_authority: bool,
    /// Whether the zone's name servers beside an answer are taken for the client to see.
    pub(crate) takes_servers: bool,
    /// Whether addresses of hosts that the answer names are taken for the client to see.
    pub(crate) takes_addresses: bool,
    /// Whether they are beside what was made from a wildcard.
    pub(crate) takes_servers_with_expansions: bool,
    /// Whether they are beside a denial.
    pub(crate) takes_servers_with_denials: bool,
    /// Whether it counts what TTL the zone's own NS records have.
    pub(crate) reads_ns_ttl: bool,
    /// Whether forwarders that refer to others say that there is no data.
    pub(crate) takes_referrals: bool,
}

impl Terms<'_> {
    /// Copies a name, or shares the one that was asked.
    fn own(&self, name: Name<'_>) -> HeapName {
        if name.as_bytes() == self.name.as_name().as_bytes() {
            self.name.clone()
        } else {
            HeapName::new(name)
        }
    }

    /// Returns whether a reply with these flags is taken for that of a server of the zone.
    fn is_authoritative(&self, flags: Flags) -> bool {
        flags.has(Flags::AA) || (!self.requires_authority && !flags.has(Flags::RA))
    }

    /// Returns whether it may count as one, if no other server has a better one.
    fn may_be_authoritative(&self, flags: Flags) -> bool {
        flags.has(Flags::AA) || !self.requires_authority
    }
}

/// What a reply says about the question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// The zone's servers are asked no more: it has the answer, or says that there is none.
    Answer(Answer),
    /// An answer that counts if no other server of the zone has a better one.
    Doubtful(Answer, Doubt),
    /// Others know more.
    Referral(Referral),
    /// It is of no use.
    Fault(Fault),
}

/// Why another server is asked before an answer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The server has it from elsewhere: it offers recursion, and answers without AA.
    Recursive,
    /// It says that there is no data, and nothing besides: so do servers that lack the zone.
    Empty,
}

/// Why a reply is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The server does not serve the zone: it refuses, answers without AA, or refers to where we
    /// come from.
    Lame,
    /// It has an error of its own (SERVFAIL, NOTIMP, FORMERR…).
    Error(Rcode),
    /// The reply cannot be read, is cut although it came over TCP, or contradicts itself.
    Malformed,
    /// It is not proved to be the zone's own.
    Bogus,
}

/// What a server of the zone answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Aliases from the question's name on, in their order, and the RRset asked for behind them if
    /// it is there.
    pub(crate) sets: Vec<Set>,
    /// What the question comes to.
    pub(crate) verdict: Verdict,
    /// What is denied of which name, if the server says so and may.
    pub(crate) denial: Option<Denial>,
    /// Whether a DNAME says so: a forged one would take a whole tree of names.
    pub(crate) has_dname: bool,
    /// NSEC and NSEC3 RRsets that came along.
    pub(crate) proofs: Vec<Set>,
    /// What stands beside the answer, for the client alone: nothing is done because of it, and
    /// nobody keeps it.
    pub(crate) beside: Beside,
    /// Seconds that the zone's own NS records last, if they came along and count.
    pub(crate) ns_ttl: Option<u32>,
    /// Why it is insecure, if a judgement said so and there is a code for that.
    pub(crate) insecure_because: Option<EdeCode>,
    /// For how many bits of the client's subnet it is, if the server looked at that.
    pub(crate) scope: Option<u8>,
}

impl Answer {
    /// Has nothing in it kept for longer than so many seconds.
    pub(crate) fn keep_for(&mut self, seconds: u32) {
        let soa = self.denial.iter_mut().filter_map(|denial| denial.soa.as_mut());
        for set in self.sets.iter_mut().chain(&mut self.proofs).chain(soa) {
            set.ttl = set.ttl.min(seconds);
        }
    }

    /// Forgets the SOA record of a zone above the one that was asked, if it is not proved: then the
    /// denial is good for this question alone.
    pub(crate) fn drop_foreign_soa(&mut self, zone: &HeapName) {
        if let Some(denial) = &mut self.denial {
            denial.soa.take_if(|soa| {
                soa.security != Security::Secure && !soa.owner.as_name().is_at_or_below(zone.as_name())
            });
        }
    }
}

/// The zone's name servers, as they stand beside an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beside {
    /// NS RRsets, for the authority section.
    pub(crate) servers: Vec<Set>,
    /// Their addresses, for the additional section.
    pub(crate) addresses: Vec<Set>,
}

impl Beside {
    /// Returns whether nothing stands there.
    pub(crate) const fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.addresses.is_empty()
    }
}

/// What the question comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The sets are what was asked for: one, all of the name, or a CNAME behind the DNAME that it
    /// is made from.
    Data,
    /// The name is an alias for this one.
    Alias(HeapName),
    /// The name has no such data.
    NoData,
    /// There is no such name.
    NoName,
    /// A DNAME makes it a name that is too long (RFC 6672 §2.2).
    TooLong,
}

/// That there is no such name or no such data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denial {
    /// Of which name: the end of the chain.
    pub(crate) name: HeapName,
    /// Whether the name does not exist at all.
    pub(crate) is_of_name: bool,
    /// Who says so, until when (RFC 2308 §5); without it nobody keeps the denial.
    pub(crate) soa: Option<Set>,
    /// What is known of the proof.
    pub(crate) security: Security,
}

/// Reads a reply.
pub(crate) fn read(message: &Message<'_>, asked: &Asked<'_>, terms: &Terms<'_>) -> Reading {
    let is_asked = message.question.is_some_and(|question| {
        question.qname == asked.qname && question.qtype == asked.qtype && question.qclass == wire::Class::IN
    });
    let flags = message.header.flags;
    if !is_asked || flags.has(Flags::TC) {
        return Reading::Fault(Fault::Malformed);
    }
    match message.rcode() {
        Rcode::NOERROR | Rcode::NXDOMAIN => {}
        // RFC 6672 §2.2: a name that a DNAME makes too long.
        Rcode::YXDOMAIN => {}
        Rcode::REFUSED | Rcode::NOTAUTH => return Reading::Fault(Fault::Lame),
        rcode => return Reading::Fault(Fault::Error(rcode)),
    }
    let Some(chain) = Chain::follow(message, asked, terms) else {
        return Reading::Fault(Fault::Malformed);
    };
    let is_at_start = chain.sets.is_empty() && matches!(chain.end, End::Open(_));
    let is_forwarder = asked.by != Speaker::Server;
    if is_at_start && message.rcode() == Rcode::NOERROR {
        match referral::read(message, asked, terms) {
            Ok(Some(_)) if is_forwarder && terms.takes_referrals => {}
            // Who refers to others does not find answers for us.
            Ok(Some(_)) if is_forwarder => return Reading::Fault(Fault::Lame),
            Ok(Some(referral)) => return Reading::Referral(referral),
            Ok(None) => {}
            Err(fault) => return Reading::Fault(fault),
        }
    }
    // A server of the zone answers with AA (RFC 1035 §4.1.1); another one has it from elsewhere,
    // and most of these offer recursion.
    if !is_forwarder && !terms.may_be_authoritative(flags) {
        return Reading::Fault(Fault::Lame);
    }
    if message.rcode() == Rcode::YXDOMAIN && !matches!(chain.end, End::TooLong) {
        return Reading::Fault(Fault::Error(Rcode::YXDOMAIN));
    }
    let Some(answer) = answer(message, asked, terms, chain) else {
        return Reading::Fault(Fault::Malformed);
    };
    let is_empty = message.records().all(|record| record.section == wire::Section::Additional);
    match is_forwarder {
        true => Reading::Answer(answer),
        false if flags.has(Flags::RA) && !flags.has(Flags::AA) => Reading::Doubtful(answer, Doubt::Recursive),
        false if is_empty && answer.verdict == Verdict::NoData => Reading::Doubtful(answer, Doubt::Empty),
        false => Reading::Answer(answer),
    }
}

/// Puts together what a chain, its end and the response code say; `None` if they contradict each
/// other or cannot be read.
fn answer(message: &Message<'_>, asked: &Asked<'_>, terms: &Terms<'_>, chain: Chain) -> Option<Answer> {
    let Chain { sets, first_target, end, has_dname } = chain;
    let is_of_name = message.rcode() == Rcode::NXDOMAIN;
    let mut denial = None;
    if let End::Open(name) = &end {
        let soa = sets::soa(message, name.as_name(), asked.denier(), terms)?;
        // Of the end of a chain only who has the SOA can say that it is not there: the name may
        // belong to a child of the zone.
        if first_target.is_none() || soa.is_some() {
            denial = Some(Denial {
                name: HeapName::new(name.as_name()),
                is_of_name,
                soa,
                security: Security::Unchecked,
            });
        }
    }
    let first_is_none = first_target.is_none();
    let verdict = match (first_target, &end) {
        (Some(target), _) => Verdict::Alias(target),
        (None, End::Data) => Verdict::Data,
        (None, End::TooLong) => Verdict::TooLong,
        (None, End::Open(_)) if is_of_name => Verdict::NoName,
        (None, End::Open(_)) => Verdict::NoData,
        (None, End::Outside) => return None,
    };
    let proofs = sets::proofs(message, asked.denier(), terms).ok()?;
    // Who asks for all gets what belongs to it; who asks for servers, where these are (RFC 9609
    // §4.2).
    let takes_servers = terms.takes_servers
        || matches!(asked.qtype, Rtype::ANY | Rtype::NS)
        || (terms.takes_servers_with_expansions && sets.iter().any(Set::claims_expansion));
    let beside = match end {
        End::Data if takes_servers || terms.takes_addresses => match sets.last() {
            Some(last) => {
                let terms = Terms { takes_servers, ..*terms };
                sets::beside(message, (last.owner.as_name(), last.rtype), &sets, asked.zone, &terms).ok()?
            }
            None => Beside::default(),
        },
        End::Open(name) if first_is_none && terms.takes_servers_with_denials => {
            sets::beside(message, (name.as_name(), asked.qtype), &[], asked.zone, terms).ok()?
        }
        _ => Beside::default(),
    };
    let ns_ttl = if terms.reads_ns_ttl { ns_ttl(message, asked, terms).ok()? } else { None };
    Some(Answer {
        sets,
        verdict,
        denial,
        has_dname,
        proofs,
        beside,
        ns_ttl,
        insecure_because: None,
        scope: None,
    })
}

/// Returns for how many seconds the NS records last that a zone's servers say it has.
fn ns_ttl(
    message: &Message<'_>,
    asked: &Asked<'_>,
    terms: &Terms<'_>,
) -> Result<Option<u32>, work::Unreadable> {
    let mut least = None;
    if asked.by != Speaker::Server {
        return Ok(None);
    }
    for record in message.records() {
        terms.work.pass()?;
        let is_ns = record.rtype == Rtype::NS && record.section != wire::Section::Additional;
        if is_ns && terms.work.owner(&record)?.as_name() == asked.zone {
            let ttl = record.ttl().seconds();
            least = Some(least.map_or(ttl, |least: u32| least.min(ttl)));
        }
    }
    Ok(least)
}

#[cfg(test)]
mod tests;
