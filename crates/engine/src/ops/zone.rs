//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Answers from zones that are served here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::{EdeCode, Flags, OptionCode, Query, Writer};
use zone::{Answered, Asked, Failure, Manner, Zones};

use crate::answer::finish::{Server, To, opt_octets_max, reply_limit};
use crate::answer::{Answer, CO, DO, SubnetScope};
use crate::query::request::{Environment, Request};
use clients::client::{Client, Transport};

/// What happens to a query for a zone that is not loaded, or has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unloaded {
    /// It gets SERVFAIL.
    Fails,
    /// It goes on to the next step.
    Passes,
}

/// How zones answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneStep {
    /// What happens to a query for a zone that is not there.
    pub unloaded: Unloaded,
    /// What goes with an answer.
    pub manner: Manner,
    /// Whether replies say RA to queries with RD alone.
    pub ra_needs_rd: bool,
}

impl From<Unloaded> for ZoneStep {
    fn from(unloaded: Unloaded) -> Self {
        Self { unloaded, manner: Manner::default(), ra_needs_rd: false }
    }
}

/// What a zone has for a query: the records stand after the question's place in the message.
pub(crate) struct Given {
    answered: Answered,
    octets: usize,
    counts: [u16; 3],
    subnet_bits: Option<u8>,
    takes_compact: bool,
}

impl Given {
    /// Returns whether the zone is not loaded, or has expired.
    #[inline(always)]
    pub(crate) fn is_unloaded(&self) -> bool {
        matches!(self.answered.failure, Some(Failure::Unloaded))
    }

    /// Returns what the reply is made of. Apart from [`answer`], so that it is made where it is
    /// returned and copied no more.
    #[inline(always)]
    pub(crate) fn into_answer(self) -> Answer {
        let Self { answered, octets, counts, subnet_bits, takes_compact } = self;
        Answer {
            authoritative: answered.is_authoritative,
            octets,
            counts,
            is_too_large: answered.is_truncated,
            subnet_bits,
            scope: if answered.depends_on_client { SubnetScope::OWN } else { SubnetScope::EVERY },
            edns_flags: if takes_compact { DO | CO } else { DO },
            ..Answer::empty(answered.rcode, answered.failure.map(why))
        }
    }
}

/// Answers if the name belongs to a zone.
#[inline(always)]
pub(crate) fn answer<S: Server>(
    (zones, step): (&Zones, ZoneStep),
    request: &Request<'_>,
    env: &Environment<'_>,
    server: &S,
    message: &mut [u8],
) -> Option<Given> {
    let question = &request.query.question;
    let to = To { query: request.query, client: request.client, proof: request.proof, options: &[] };
    // What may be left out is left out here; what may not makes the reply one that is cut.
    let limit = reply_limit(server, &to).saturating_sub(opt_octets_max(server, &to));
    let mut writer = Writer::new(message, limit, 0, Flags::QR);
    let takes_compact = request.query.edns.is_some_and(|edns| edns.takes_compact());
    let mut asked = Asked {
        known: Some((request.sought.hash(), request.sought.depth() as usize)),
        now: env.now.unix_seconds,
        age_at: env.now.cache,
        takes_compact,
        manner: step.manner,
        ..Asked::new(question.qname, question.qtype, request.query.wants_dnssec())
    };
    let mut subnet_bits = None;
    if zones.are_for_clients() {
        (asked.from, asked.client, subnet_bits) = asker(request.query, request.client);
    }
    if zones.draw() {
        asked.random = env.random();
    }
    // Without room for the question there is none for any answer.
    writer.question_of(request.query).ok()?;
    let answered = zones.answer(&asked, &mut writer)?;
    let counts = writer.counts();
    let octets = writer.len().saturating_sub(request.body_at());
    Some(Given { answered, octets, counts, subnet_bits, takes_compact })
}

#[cold]
const fn why(failure: Failure) -> (EdeCode, &'static str) {
    match failure {
        Failure::Unloaded => (EdeCode::NOT_READY, "the zone is not loaded"),
        Failure::Unfollowed => {
            (EdeCode::NO_REACHABLE_AUTHORITY, "the target of the ALIAS could not be resolved")
        }
        Failure::Unsigned => (EdeCode::OTHER, "too many signatures in this second"),
        Failure::Prohibited => (EdeCode::PROHIBITED, "client may not query this zone"),
    }
}

/// Returns whose address zones look at; whom an answer is for: the subnet that the query names (RFC
/// 7871 §6), else the client; and the length of that subnet.
#[cold]
fn asker(query: &Query<'_>, client: &Client) -> (Option<IpAddr>, Option<IpAddr>, Option<u8>) {
    // Who may use a Unix socket is a matter of the file's rights.
    let from = (client.transport != Transport::Unix).then_some(client.address);
    let (told, bits) = subnet(query, client).unzip();
    (from, told.or(Some(client.address)), bits)
}

/// Returns the subnet that a query names, as an address and its length.
fn subnet(query: &Query<'_>, client: &Client) -> Option<(IpAddr, u8)> {
    let option = query.edns.and_then(|edns| edns.option(OptionCode::CLIENT_SUBNET));
    let &[f0, f1, source, _, ref address @ ..] = option? else { return None };
    let mut octets = [0; 16];
    for (place, octet) in octets.iter_mut().zip(address) {
        *place = *octet;
    }
    let address = match (u16::from_be_bytes([f0, f1]), octets) {
        // RFC 7871 §7.1.2: a client that names no subnet wants none to be looked at but its own
        // address.
        (_, _) if source == 0 => client.address,
        (1, [a, b, c, d, ..]) if source <= 32 => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
        (2, octets) if source <= 128 => IpAddr::V6(Ipv6Addr::from(octets)),
        _ => return None,
    };
    Some((address, source))
}
