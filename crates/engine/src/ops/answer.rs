//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Steps that make an answer out of nothing but the question: `block`, `respond`, `records`,
//! `reverse`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use sets::{Asking, Blocklist, ListedRecord, Ruling, Treatment};
use wire::name::NAME_OCTETS_MAX;
use wire::{EdeCode, Header, NameBuf, Rcode, Rtype, Ttl};

use crate::answer::errors::Errors;
use crate::answer::put::{local_soa, put_record};
use crate::answer::records::Records;
use crate::answer::{Answer, Interim, Security};
use crate::matchers::{ADDRESSES_MAX, Alias, Facts};
use crate::query::request::{Environment, Request};
use crate::query::reverse::{ReverseTable, address_of};
use clients::client::Transport;
use events::{EventSink, LabelId};

/// What to answer.
pub enum Build {
    /// Something that keeps the client away from the name.
    Block(Block),
    /// A reply written in the configuration.
    Respond(Respond),
    /// What a set of records says about the name.
    Records {
        /// The set.
        set: Arc<Records>,
        /// Whether the query goes on with the answer.
        continues: bool,
    },
    /// The name behind an address that was in an answer before.
    Reverse(Arc<ReverseTable>),
    /// What a list with exceptions wants to become of the query.
    Listed(Listed),
}

/// What becomes of what a list has rules for.
pub struct Listed {
    /// The list.
    pub list: Arc<Blocklist>,
    /// What becomes of what is simply blocked there.
    pub block: Block,
    /// Whether the same becomes of everything that has a rule or an exception.
    pub overrides: bool,
    /// Whether rules on addresses of the answer there is count.
    pub by_address: bool,
    /// Under which labels queries are counted, by what becomes of them: [`Fate`] is the index.
    pub labels: Option<[LabelId; FATES]>,
}

/// What becomes of a query that a list has a rule for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is answered with NXDOMAIN.
    Nxdomain,
    /// It is answered without data.
    NoData,
    /// It is answered with addresses, records or an alias.
    Data,
    /// It gets no answer.
    Drop,
    /// Its client is sent to TCP.
    Truncate,
    /// It is answered with another code.
    OtherCode,
}

/// How many fates there are.
pub const FATES: usize = 6;

/// How a name is blocked.
pub struct Block {
    /// What the client gets.
    pub with: BlockWith,
    /// How long clients keep it.
    pub ttl: Ttl,
    /// The reason (RFC 8914), and words about it.
    pub ede: Option<(EdeCode, Box<str>)>,
    /// Whether it sets AA.
    pub authoritative: bool,
    /// Whether an answer without data has an SOA, so that clients know how long to keep it.
    pub has_soa: bool,
    /// Whether the query goes on with the answer.
    pub continues: bool,
}

/// What a client gets for a blocked name.
pub enum BlockWith {
    /// These addresses for A and AAAA, and no data for other types and for families without any.
    Addresses(Box<[Ipv4Addr]>, Box<[Ipv6Addr]>),
    /// An rcode; with NXDOMAIN and NOERROR an SOA says how long they hold.
    Rcode(Rcode),
    /// Nothing at all.
    Silence,
}

/// A reply written in the configuration. Names relative to the one asked for are pointers to the
/// question.
#[derive(Default)]
pub struct Respond {
    /// The response code.
    pub rcode: Option<Rcode>,
    /// Whether it sets AA.
    pub authoritative: bool,
    /// Whether it sets AD, for clients that look at it.
    pub authentic: bool,
    /// Records in the answer, authority and additional sections.
    pub counts: [u16; 3],
    /// Their octets, to stand after the question.
    pub body: Box<[u8]>,
    /// Octets that the longest relative name adds to the one asked for.
    pub relative_octets_max: u8,
    /// The Extended DNS Error, and its text.
    pub ede: Option<(EdeCode, Box<str>)>,
    /// Whether the query goes on with this answer.
    pub continues: bool,
}

/// What such a step did.
pub(crate) enum Built {
    /// The query ends with this answer.
    End(Answer),
    /// This answer goes on through the program.
    GoOn(Answer),
    /// The query ends without a reply.
    Silence,
    /// The step has nothing to say to this question.
    Nothing,
}

impl Built {
    const fn with(answer: Answer, continues: bool) -> Self {
        if continues { Self::GoOn(answer) } else { Self::End(answer) }
    }
}

/// What an answer is made from.
#[derive(Clone, Copy)]
pub(crate) struct Making<'m> {
    pub(crate) request: &'m Request<'m>,
    pub(crate) env: &'m Environment<'m>,
    pub(crate) interim: &'m Interim,
    pub(crate) events: &'m EventSink,
}

impl Build {
    /// Writes the answer's records after the question's place in `message`. `step` is this step's
    /// number.
    pub(crate) fn build(&self, step: u16, making: &Making<'_>, message: &mut [u8]) -> Built {
        let Making { request, env, .. } = *making;
        match self {
            Self::Block(block) => match block.build(step, request, message) {
                Some(answer) => Built::with(answer, block.continues),
                None => Built::Silence,
            },
            Self::Respond(respond) => respond.build(step, request, message),
            Self::Records { set, continues } => {
                let qtype = request.query.question.qtype;
                match set.answer(&request.sought, qtype, message, request.body_at()) {
                    Some(answer) => Built::with(answer, *continues),
                    None => Built::Nothing,
                }
            }
            Self::Listed(listed) => listed.build(step, making, message),
            Self::Reverse(table) => match reverse(table, request, env, message) {
                Some(answer) => Built::End(answer),
                None => Built::Nothing,
            },
        }
    }

    /// Returns the Extended DNS Error that the step sends.
    pub(crate) fn ede(&self) -> Option<(EdeCode, &str)> {
        match self {
            Self::Block(Block { ede, .. })
            | Self::Respond(Respond { ede, .. })
            | Self::Listed(Listed { block: Block { ede, .. }, .. }) => {
                ede.as_ref().map(|(code, text)| (*code, &**text))
            }
            Self::Records { .. } | Self::Reverse(_) => None,
        }
    }
}

impl Block {
    /// Writes the answer; `None` is silence.
    fn build(&self, step: u16, request: &Request<'_>, message: &mut [u8]) -> Option<Answer> {
        let mut answer = match &self.with {
            BlockWith::Silence => return None,
            BlockWith::Rcode(rcode) => self.negative(message, request, *rcode),
            BlockWith::Addresses(v4, v6) => match request.query.question.qtype {
                Rtype::A if !v4.is_empty() => {
                    self.addresses(message, request, Rtype::A, v4.iter().map(Ipv4Addr::octets))
                }
                Rtype::AAAA if !v6.is_empty() => {
                    self.addresses(message, request, Rtype::AAAA, v6.iter().map(Ipv6Addr::octets))
                }
                _ => self.negative(message, request, Rcode::NOERROR),
            },
        };
        answer.authoritative = self.authoritative;
        if self.ede.is_some() {
            answer.errors = Errors::Step(step);
        }
        Some(answer)
    }

    /// Returns what becomes of a query that is treated like this. Records of other types than the
    /// one asked for are data, too.
    const fn fate(&self, treatment: &Treatment) -> Fate {
        let rcode = match (treatment, &self.with) {
            (Treatment::Rcode(rcode), _) | (Treatment::Block, BlockWith::Rcode(rcode)) => *rcode,
            (Treatment::Drop, _) | (Treatment::Block, BlockWith::Silence) => return Fate::Drop,
            (Treatment::Truncate, _) => return Fate::Truncate,
            (Treatment::Block, BlockWith::Addresses(..))
            | (Treatment::Records(_) | Treatment::Alias(_) | Treatment::AliasBelow(_), _) => {
                return Fate::Data;
            }
        };
        match rcode {
            Rcode::NXDOMAIN => Fate::Nxdomain,
            Rcode::NOERROR => Fate::NoData,
            _ => Fate::OtherCode,
        }
    }

    /// Returns an answer without data, with an SOA if there is to be one.
    fn negative(&self, message: &mut [u8], request: &Request<'_>, rcode: Rcode) -> Answer {
        if self.has_soa { negative(message, request, rcode, self.ttl) } else { Answer::empty(rcode, None) }
    }

    fn addresses<const N: usize>(
        &self,
        message: &mut [u8],
        request: &Request<'_>,
        rtype: Rtype,
        addresses: impl Iterator<Item = [u8; N]>,
    ) -> Answer {
        let mut answer = Answer::empty(Rcode::NOERROR, None);
        let [count, ..] = &mut answer.counts;
        let body_at = request.body_at();
        for address in addresses {
            match put_record(message, body_at + answer.octets, Header::LEN, rtype, self.ttl, &address) {
                Some(octets) => {
                    answer.octets += octets;
                    *count += 1;
                }
                None => answer.is_too_large = true,
            }
        }
        answer
    }
}

/// Returns an answer without data. NXDOMAIN and NOERROR come with an SOA at the name asked for, so
/// that clients know how long they may keep them (RFC 2308 §3).
pub(crate) fn negative(message: &mut [u8], request: &Request<'_>, rcode: Rcode, ttl: Ttl) -> Answer {
    let mut answer = Answer::empty(rcode, None);
    if matches!(rcode, Rcode::NOERROR | Rcode::NXDOMAIN) {
        let soa = local_soa(Header::LEN, ttl);
        let written = put_record(message, request.body_at(), Header::LEN, Rtype::SOA, ttl, &soa);
        answer.counts = [0, 1, 0];
        answer.octets = written.unwrap_or(0);
        answer.is_too_large = written.is_none();
    }
    answer
}

impl Respond {
    fn build(&self, step: u16, request: &Request<'_>, message: &mut [u8]) -> Built {
        let rcode = self.rcode.unwrap_or(Rcode::NOERROR);
        let mut answer = Answer { authoritative: self.authoritative, ..Answer::empty(rcode, None) };
        if self.authentic {
            answer.security = Security::Secure;
        }
        if self.ede.is_some() {
            answer.errors = Errors::Step(step);
        }
        if request.sought.name().len() + usize::from(self.relative_octets_max) > NAME_OCTETS_MAX {
            // A name in the reply would be too long to exist.
            let ede = Some((EdeCode::OTHER, "a name in the configured reply is too long"));
            return Built::End(Answer::empty(Rcode::SERVFAIL, ede));
        }
        let body_at = request.body_at();
        match message.get_mut(body_at..body_at + self.body.len()) {
            Some(room) => {
                room.copy_from_slice(&self.body);
                answer.octets = self.body.len();
                answer.counts = self.counts;
            }
            None => answer.is_too_large = true,
        }
        Built::with(answer, self.continues)
    }
}

/// What a list says about a query.
struct Found<'l> {
    ruling: Ruling<'l>,
    /// What stays of the answer.
    kept: Answer,
    /// Where the name stands that it is about.
    name_at: usize,
    /// The name that is asked for in its place.
    target: Option<NameBuf>,
}

impl Listed {
    /// Finds what the list says about a query, and what of the answer it is about; nothing if that
    /// leaves the query alone.
    #[inline(always)]
    fn find<'l>(&'l self, facts: &Facts<'_>) -> Option<Found<'l>> {
        let Self { list, overrides, by_address, .. } = self;
        let request = facts.request;
        let mut addresses = [IpAddr::V4(Ipv4Addr::UNSPECIFIED); ADDRESSES_MAX];
        // What stays of the answer: the aliases up to the one whose target the list speaks of.
        let mut kept = Answer::empty(Rcode::NOERROR, None);
        let (mut name_at, mut target) = (Header::LEN, None);
        // In the order in which it was found: the name, what it is an alias of, addresses.
        let mut ruling = list.rule(&facts.asking());
        if ruling.is_none()
            && let Some((alias, (found, leads_to))) = facts.answer_cname(|sought| {
                let ruling = list.rule(&Asking { sought, ..facts.asking() })?;
                Some((ruling, ruling.treatment.target(sought.name())))
            })
        {
            let Alias { records, rdata_at, end } = alias;
            (kept.counts, kept.octets) = ([records, 0, 0], end.saturating_sub(request.body_at()));
            (name_at, target, ruling) = (rdata_at, leads_to, Some(found));
        }
        if ruling.is_none() && *by_address {
            let count = facts.answer_addresses(&mut addresses);
            ruling = list.rule(&facts.asking_with(addresses.get(..count).unwrap_or(&[])));
            // Aliases lead to the addresses, and say nothing of them.
            let keeps =
                |treatment: &Treatment| matches!(treatment, Treatment::Rcode(_) | Treatment::Records(_));
            if ruling.as_ref().is_some_and(|ruling| keeps(ruling.treatment))
                && let Some(Alias { records, rdata_at, end }) = facts.last_alias()
            {
                (kept.counts, kept.octets) = ([records, 0, 0], end.saturating_sub(request.body_at()));
                name_at = rdata_at;
            }
        }
        let ruling = ruling.filter(|ruling| *overrides || !ruling.is_allowed)?;
        Some(Found { ruling, kept, name_at, target })
    }

    /// Returns whether the list leaves a query alone.
    pub(crate) fn says_nothing(&self, facts: &Facts<'_>) -> bool {
        self.find(facts).is_none()
    }

    /// Does what the list says about a query: of the name, of the names that the answer's aliases
    /// lead to, and of its addresses.
    fn build(&self, step: u16, making: &Making<'_>, message: &mut [u8]) -> Built {
        let Self { block, overrides, labels, .. } = self;
        let Making { request, env, interim, events } = *making;
        let Some(found) = self.find(&Facts { request, interim, env, message }) else { return Built::Nothing };
        let Found { ruling, kept, name_at, mut target } = found;
        let question = &request.query.question;
        if kept.octets == 0 && question.qtype == Rtype::CNAME {
            // Who asks for an alias wants nothing of what it leads to.
            target = ruling.treatment.target(question.qname);
        }
        let one_for_all;
        let treatment = match &block.with {
            BlockWith::Rcode(rcode) if *overrides => {
                one_for_all = Treatment::Rcode(*rcode);
                &one_for_all
            }
            _ if *overrides => &Treatment::Block,
            _ => ruling.treatment,
        };
        let leaves_alone = match treatment {
            // Over a connection the client has done what was asked of it.
            Treatment::Truncate => request.client.transport != Transport::Udp,
            // The step after this one asks for the other name of a question; what stands for an
            // alias's target is not followed.
            Treatment::Alias(_) | Treatment::AliasBelow(_) => target.is_none() && kept.octets > 0,
            _ => false,
        };
        if let Some(labels) = labels
            && !leaves_alone
            && let (Some(label), Some(writer)) = (labels.get(block.fate(treatment) as usize), events.writer())
        {
            writer.count(*label);
        }
        let mut answer = match treatment {
            Treatment::Block => {
                return block.build(step, request, message).map_or(Built::Silence, Built::End);
            }
            Treatment::Drop => return Built::Silence,
            Treatment::Truncate if leaves_alone => return Built::Nothing,
            Treatment::Truncate => Answer { is_too_large: true, ..Answer::empty(Rcode::NOERROR, None) },
            Treatment::Rcode(rcode) if kept.octets > 0 => Answer { rcode: *rcode, ..kept },
            Treatment::Rcode(rcode) => block.negative(message, request, *rcode),
            Treatment::Records(records) => write_records(records, block, request, (kept, name_at), message),
            Treatment::Alias(_) | Treatment::AliasBelow(_) => match target {
                None => return Built::Nothing,
                Some(target) => {
                    let data = target.as_name().as_bytes();
                    let at = request.body_at() + kept.octets;
                    match put_record(message, at, name_at, Rtype::CNAME, block.ttl, data) {
                        Some(octets) => {
                            let [count, ..] = kept.counts;
                            Answer { octets: kept.octets + octets, counts: [count + 1, 0, 0], ..kept }
                        }
                        None => Answer { is_too_large: true, ..kept },
                    }
                }
            },
        };
        // An answer that an address triggers is no answer to the question.
        answer.authoritative = block.authoritative && !ruling.is_by_address;
        if block.ede.is_some() {
            answer.errors = Errors::Step(step);
        }
        Built::End(answer)
    }
}

/// Writes those of the records that have the type asked for behind what is kept of the answer; none
/// of them is no data.
fn write_records(
    records: &[ListedRecord],
    block: &Block,
    request: &Request<'_>,
    (mut answer, name_at): (Answer, usize),
    message: &mut [u8],
) -> Answer {
    let (body_at, qtype) = (request.body_at(), request.query.question.qtype);
    for ListedRecord { rtype, ttl, data } in records.iter().filter(|record| record.rtype == qtype) {
        let ttl = ttl.unwrap_or(block.ttl);
        match put_record(message, body_at + answer.octets, name_at, *rtype, ttl, data) {
            Some(octets) => {
                answer.octets += octets;
                let [count, ..] = &mut answer.counts;
                *count += 1;
            }
            None => answer.is_too_large = true,
        }
    }
    if answer.octets == 0 && !answer.is_too_large {
        return block.negative(message, request, Rcode::NOERROR);
    }
    answer
}

/// The most seconds that a name found by its address may be kept: the next answer with that address
/// may be for another.
const REVERSE_TTL_MAX: u32 = 60;

fn reverse(
    table: &ReverseTable,
    request: &Request<'_>,
    env: &Environment<'_>,
    message: &mut [u8],
) -> Option<Answer> {
    if request.query.question.qtype != Rtype::PTR {
        return None;
    }
    let address = address_of(request.sought.name())?;
    let (name, left): (NameBuf, u32) = table.find(address, env.now.cache.0)?;
    let ttl = Ttl::new(left.min(REVERSE_TTL_MAX));
    let data = name.as_name().as_bytes();
    let written = put_record(message, request.body_at(), Header::LEN, Rtype::PTR, ttl, data);
    Some(Answer {
        octets: written.unwrap_or(0),
        counts: [u16::from(written.is_some()), 0, 0],
        is_too_large: written.is_none(),
        ..Answer::empty(Rcode::NOERROR, None)
    })
}
