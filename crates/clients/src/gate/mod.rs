//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Who may ask at all: access list, bans, cookie, rate limit, in this order on every transport.
//!
//! A client that is not on the access list is answered from the zones that are served, and refused
//! everything else.

pub mod bans;
pub mod cookie;
pub mod live;
pub mod offenders;
pub mod prefix_set;
pub mod rate;

use std::sync::Arc;

use wire::{OptionCode, Query};

use crate::client::{Client, ListenerId, Now, Transport};
use cookie::Proof;

/// The limits at the door.
#[derive(Debug)]
pub struct Gate {
    /// Clients that may ask for anything; others only for what is in the zones.
    pub allowed: prefix_set::PrefixSet,
    /// Clients that hear nothing. Programs on network interfaces may know them, too, and drop their
    /// queries earlier.
    pub banned: prefix_set::PrefixSet,
    /// The same, changed while the server runs.
    pub banned_live: Option<Arc<sets::DynamicAddresses>>,
    /// Clients that the operator bans while the server runs, whatever is configured.
    pub banned_now: Arc<live::LiveBans>,
    /// Octets of a query that gets a reply.
    pub query_octets_max: u16,
    /// Secrets for cookies; `None` ignores the option.
    pub cookies: Option<cookie::Secrets>,
    /// Clients that must show a cookie, unless a connection proves their address; `None` if nobody
    /// must.
    pub cookie_required: Option<Box<CookieRequired>>,
    /// The limit for clients whose address is not proven.
    pub rate: Option<rate::RateRule>,
    /// What the limit counts in; shared by all workers and kept over reloads.
    pub table: Arc<rate::RateTable>,
}

/// What the gate says about a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Let in.
    Admitted,
    /// Not on the access list.
    Denied,
    /// Banned: not worth a reply.
    Banned,
    /// Over the rate limit.
    Limited,
    /// No cookie of ours, which such clients must show.
    NoCookie,
    /// The COOKIE option cannot be read (RFC 7873 §5.2.2).
    BadCookieOption,
}

/// Who must show a cookie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CookieRequired {
    /// Clients with these addresses.
    pub clients: prefix_set::PrefixSet,
    /// Those that come to these listeners.
    pub listeners: Box<[ListenerId]>,
    /// But for these of them.
    pub spared: prefix_set::PrefixSet,
}

impl CookieRequired {
    fn is_of(&self, client: &Client) -> bool {
        self.clients.contains(client.address)
            || self.listeners.contains(&client.listener) && !self.spared.contains(client.address)
    }
}

/// Returns whether a client has to show a cookie and has not.
#[cold]
#[inline(never)]
fn lacks_cookie(required: &CookieRequired, client: &Client, is_proven: bool) -> bool {
    !is_proven && !client.verified && required.is_of(client)
}

impl Gate {
    /// Judges one query; returns what its cookie proves as well.
    #[inline(always)]
    pub fn admit(&self, query: &Query<'_>, client: &Client, now: Now) -> (Admission, Proof) {
        if !self.allowed.contains(client.address) && client.transport != Transport::Unix {
            return (Admission::Denied, Proof::None);
        }
        self.admit_anyone(query, client, now)
    }

    /// Judges a query likewise, whether or not its client is on the access list.
    #[inline(always)]
    pub fn admit_anyone(&self, query: &Query<'_>, client: &Client, now: Now) -> (Admission, Proof) {
        if self.bans(client) || self.bans_for_now(client, now) {
            return (Admission::Banned, Proof::None);
        }
        let proof = match (&self.cookies, &query.edns) {
            (Some(secrets), Some(edns)) => {
                secrets.check(edns.option(OptionCode::COOKIE), client.address, now.unix_seconds)
            }
            (Some(_), None) | (None, _) => Proof::None,
        };
        if proof == Proof::Malformed {
            return (Admission::BadCookieOption, proof);
        }
        let is_proven = matches!(proof, Proof::Proven(_));
        if let Some(rule) = &self.rate
            && !client.verified
            && (!is_proven || rule.proven_per_second > 0)
            && !rule.exempt.contains(client.address)
            && !self.table.admit(rule, client.address, is_proven, now.monotonic_ms)
        {
            self.table.note(rule, client.address, now.monotonic_ms);
            if !is_proven {
                rule.offended(client.address, now.monotonic_ms);
            }
            return (Admission::Limited, proof);
        }
        if let Some(required) = &self.cookie_required
            && lacks_cookie(required, client, is_proven)
        {
            return (Admission::NoCookie, proof);
        }
        (Admission::Admitted, proof)
    }

    /// Judges a query that the rate limit has let through.
    #[cold]
    pub fn admit_limited(&self, client: &Client, proof: Proof) -> Admission {
        let is_proven = matches!(proof, Proof::Proven(_));
        match &self.cookie_required {
            Some(required) if lacks_cookie(required, client, is_proven) => Admission::NoCookie,
            _ => Admission::Admitted,
        }
    }

    /// Returns whether a client is banned. Usually nobody is.
    #[inline(always)]
    pub fn bans(&self, client: &Client) -> bool {
        let has_some = !self.banned.is_empty() || self.banned_live.is_some() || !self.banned_now.are_none();
        has_some && self.is_banned(client)
    }

    /// Returns whether a client is banned because its prefix kept on being over the rate limit:
    /// where the limit counts, and whether or not it shows a cookie, because programs on network
    /// interfaces do not look for one either.
    #[inline(always)]
    fn bans_for_now(&self, client: &Client, now: Now) -> bool {
        self.rate.as_ref().is_some_and(|rule| {
            !client.verified
                && rule.bans(client.address, now.monotonic_ms)
                && !rule.exempt.contains(client.address)
        })
    }

    #[inline(never)]
    fn is_banned(&self, client: &Client) -> bool {
        self.banned.contains(client.address)
            || self.banned_live.as_ref().is_some_and(|live| live.contains(client.address))
            || self.banned_now.contains(client.address)
    }

    /// Returns whether to answer something that is not even a query: to our own clients, and within
    /// their limit.
    pub fn admits_noise(&self, client: &Client, now: Now) -> bool {
        let is_allowed = self.allowed.contains(client.address) || client.transport == Transport::Unix;
        is_allowed && self.admits_server(client, now)
    }

    /// Returns whether to hear what another server says. Zones say themselves whom they believe;
    /// who is banned is not heard, and datagrams count against the limit.
    pub fn admits_server(&self, client: &Client, now: Now) -> bool {
        if self.bans_for_now(client, now) {
            return false;
        }
        let is_limited = self.rate.as_ref().is_some_and(|rule| {
            let is_over = !client.verified
                && !rule.exempt.contains(client.address)
                && !self.table.admit(rule, client.address, false, now.monotonic_ms);
            if is_over {
                self.table.note(rule, client.address, now.monotonic_ms);
                rule.offended(client.address, now.monotonic_ms);
            }
            is_over
        });
        !self.bans(client) && !is_limited
    }
}
