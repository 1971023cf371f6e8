//! The lives of a zone's keys (RFC 6781, RFC 7583): which are made, published, signed with and
//! removed, and when.
//!
//! A ZSK is published before it signs. A KSK signs keys beside its predecessor until the parent has
//! the new DS. A CSK signs everything beside its predecessor. Another algorithm, or another split
//! into KSK and ZSK, signs everything before its keys are published, and goes on signing after they
//! are withdrawn (RFC 6781 §4.1.4).
//!
//! Times come in as arguments. [`advance`] may be called as often as one likes: it does what is due
//! and says when to call again.

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

use crate::algorithm::Algorithm;
use crate::sign::KeyUse;

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It signs keys.
    Ksk,
    /// It signs everything but keys.
    Zsk,
    /// It signs everything.
    Csk,
}

impl Role {
    /// Returns whether the parent has a DS for such a key.
    pub const fn is_entry_point(self) -> bool {
        matches!(self, Self::Ksk | Self::Csk)
    }

    const fn signs_zone(self) -> bool {
        matches!(self, Self::Zsk | Self::Csk)
    }
}

/// Where a key is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// It exists, nobody sees it.
    Generated,
    /// It is in the zone and becomes known.
    Published,
    /// It is known everywhere; the parent should have its DS.
    Ready,
    /// It is in use.
    Active,
    /// Its successor is in use; it stays for those who remember it.
    Retired,
    /// It is no longer in the zone.
    Removed,
}

macro_rules! words {
    ($type:ident: $($variant:ident = $word:literal),*) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $(Self::$variant => $word),* })
            }
        }

        impl FromStr for $type {
            type Err = wire::numbers::Unknown;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(wire::numbers::Unknown),
                }
            }
        }
    };
}

words!(Role: Ksk = "ksk", Zsk = "zsk", Csk = "csk");
words!(State: Generated = "generated", Published = "published", Ready = "ready", Active = "active",
    Retired = "retired", Removed = "removed");

/// One key's life so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// The algorithm of the key.
    pub algorithm: Algorithm,
    /// Its tag.
    pub tag: u16,
    /// What it is for.
    pub role: Role,
    /// Where it is.
    pub state: State,
    /// Since when, in seconds since 1970.
    pub since: u64,
    /// When it came into use; its lifetime counts from there.
    pub active_since: Option<u64>,
    /// Whether it is to be replaced now, whatever its lifetime is.
    pub is_to_go: bool,
    /// Whether the parent has been seen to have its DS.
    pub has_ds: bool,
}

impl Life {
    /// Begins the life of a key that was just made.
    pub const fn new(algorithm: Algorithm, tag: u16, role: Role, now: u64) -> Self {
        Self {
            algorithm,
            tag,
            role,
            state: State::Generated,
            since: now,
            active_since: None,
            is_to_go: false,
            has_ds: false,
        }
    }

    fn enter(&mut self, state: State, now: u64) {
        self.state = state;
        self.since = now;
        if state == State::Active {
            self.active_since.get_or_insert(now);
        }
    }

    const fn is_live(&self) -> bool {
        !matches!(self.state, State::Removed)
    }
}

/// When CDS and CDNSKEY stand in the zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Announce {
    /// Never.
    Never,
    /// While the parent should change its DS.
    #[default]
    Rollover,
    /// Always.
    Always,
}

/// How keys live. Times are in seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The algorithm of new keys.
    pub algorithm: Algorithm,
    /// Whether one key signs everything.
    pub is_single: bool,
    /// How long a KSK or CSK is in use; without one, for ever.
    pub ksk_lifetime: Option<u64>,
    /// How long a ZSK is in use; without one, for ever.
    pub zsk_lifetime: Option<u64>,
    /// How long a change takes to reach all servers of the zone.
    pub propagation_delay: u64,
    /// The TTL of DNSKEY.
    pub dnskey_ttl: u64,
    /// The largest TTL in the zone.
    pub zone_ttl_max: u64,
    /// The TTL of the DS at the parent, and how long a change takes to reach all its servers.
    pub ds_delay: u64,
    /// After so long, the parent is taken to have the DS although nobody saw it; without one, it is
    /// waited for.
    pub ds_timeout: Option<u64>,
    /// When CDS and CDNSKEY stand in the zone.
    pub announce: Announce,
}

impl Plan {
    const fn dnskey_wait(&self) -> u64 {
        self.dnskey_ttl + self.propagation_delay
    }

    const fn zone_wait(&self) -> u64 {
        self.zone_ttl_max + self.propagation_delay
    }

    fn both_waits(&self) -> u64 {
        self.dnskey_wait().max(self.zone_wait())
    }

    const fn lifetime(&self, role: Role) -> Option<u64> {
        match role {
            Role::Ksk | Role::Csk => self.ksk_lifetime,
            Role::Zsk => self.zsk_lifetime,
        }
    }

    /// Returns whether a key is of another kind than new ones.
    fn is_old(&self, life: &Life) -> bool {
        life.algorithm != self.algorithm || (life.role == Role::Csk) != self.is_single
    }

    /// Returns when the key's time is over; `None` if never.
    fn ends(&self, life: &Life) -> Option<u64> {
        if life.is_to_go {
            return Some(0);
        }
        Some(life.active_since? + self.lifetime(life.role)?)
    }
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Keys to be made, given to [`Life::new`] and added; then [`advance`] is to be called again.
    pub generate: Vec<Role>,
    /// Keys that entered another state, by place.
    pub entered: Vec<(usize, State)>,
    /// When to call again at the latest; `None`: nothing happens by itself.
    pub again_at: Option<u64>,
    /// Keys whose DS the parent is waited for to have, by place.
    pub waits_for_ds: Vec<usize>,
}

/// Does what is due at `now`. `lives` are in the order in which the keys were made.
pub fn advance(plan: &Plan, lives: &mut [Life], now: u64) -> Due {
    let mut due = Due::default();
    // Ends: every turn moves a key on, and there are six states.
    for _ in 0..=lives.len() * 6 {
        let Some((at, state)) = next_step(plan, lives, now) else { break };
        if let Some(life) = lives.get_mut(at) {
            life.enter(state, now);
            due.entered.push((at, state));
        }
    }
    let wanted: &[Role] = if plan.is_single { &[Role::Csk] } else { &[Role::Ksk, Role::Zsk] };
    for &role in wanted {
        let of_role = || {
            lives.iter().filter(|life| life.role == role && !plan.is_old(life) && life.state < State::Retired)
        };
        let has_successor = of_role().any(|life| life.state < State::Active);
        let is_ending = of_role().all(|life| {
            life.state == State::Active
                && plan.ends(life).is_some_and(|ends| now + plan.dnskey_wait() >= ends)
        });
        // Without any, `all` holds.
        if !has_successor && is_ending {
            due.generate.push(role);
        }
    }
    due.again_at = deadlines(plan, lives).filter(|&at| at > now).min();
    due.waits_for_ds = (0..lives.len())
        .filter(|&at| lives.get(at).is_some_and(|life| life.state == State::Ready && !life.has_ds))
        .collect();
    due
}

/// Returns the next key that moves on.
fn next_step(plan: &Plan, lives: &[Life], now: u64) -> Option<(usize, State)> {
    (0..lives.len()).find_map(|at| Some((at, step_of(plan, lives, at, now)?)))
}

fn step_of(plan: &Plan, lives: &[Life], at: usize, now: u64) -> Option<State> {
    let life = lives.get(at)?;
    let others = || lives.iter().filter(|other| !std::ptr::eq(*other, life) && other.is_live());
    // Lives are in the order in which they began.
    let later =
        || lives.iter().skip(at + 1).filter(|other| other.state == State::Active && !plan.is_old(other));
    let has_passed = |wait: u64| now >= life.since + wait;
    // A key that came after this one and is in use.
    let has_heir = || later().any(|other| other.role.is_entry_point());
    match life.state {
        State::Generated => {
            if plan.is_old(life) {
                return Some(State::Removed);
            }
            let has_other_algorithm = others().any(|other| other.algorithm != life.algorithm);
            if has_other_algorithm {
                // First the signatures, then the keys.
                return has_passed(plan.zone_wait()).then_some(State::Published);
            }
            let has_signer = others().any(|other| other.role.signs_zone() && other.state >= State::Published);
            match life.role == Role::Zsk && !has_signer {
                true => Some(State::Active),
                false => Some(State::Published),
            }
        }
        State::Published => match life.role {
            Role::Zsk => {
                if plan.is_old(life) {
                    return Some(State::Removed);
                }
                if !has_passed(plan.dnskey_wait()) {
                    return None;
                }
                let is_held = others().any(|other| {
                    other.role == Role::Zsk
                        && other.state == State::Active
                        && !plan.is_old(other)
                        && plan.ends(other).is_none_or(|ends| now < ends)
                });
                (!is_held).then_some(State::Active)
            }
            Role::Ksk | Role::Csk => {
                if has_heir() {
                    return Some(State::Retired);
                }
                let is_plain_roll = life.role == Role::Ksk
                    && others().any(|other| other.role == Role::Ksk && other.state == State::Active)
                    && !others().any(|other| plan.is_old(other));
                let wait = if is_plain_roll { plan.dnskey_wait() } else { plan.both_waits() };
                has_passed(wait).then_some(State::Ready)
            }
        },
        State::Ready => {
            let is_assumed = plan.ds_timeout.is_some_and(has_passed);
            if life.has_ds || is_assumed {
                return Some(State::Active);
            }
            has_heir().then_some(State::Retired)
        }
        State::Active => match life.role {
            Role::Ksk | Role::Csk => has_heir().then_some(State::Retired),
            Role::Zsk if plan.is_old(life) => {
                let is_replaced = others().any(|other| {
                    other.role.is_entry_point() && other.state == State::Active && !plan.is_old(other)
                });
                let has_old_entry = others().any(|other| other.role.is_entry_point() && plan.is_old(other));
                (is_replaced && !has_old_entry).then_some(State::Retired)
            }
            Role::Zsk => later().any(|other| other.role == Role::Zsk).then_some(State::Retired),
        },
        State::Retired => has_passed(leaves_after(plan, life)).then_some(State::Removed),
        State::Removed => None,
    }
}

/// Returns how long a retired key's DNSKEY stays in the zone.
fn withdrawn_after(plan: &Plan, life: &Life) -> u64 {
    match life.role {
        Role::Ksk => plan.ds_delay,
        Role::Csk if life.algorithm == plan.algorithm => plan.ds_delay.max(plan.zone_wait()),
        Role::Csk => plan.ds_delay,
        Role::Zsk if life.algorithm == plan.algorithm => plan.zone_wait(),
        // The signatures outlive the key.
        Role::Zsk => 0,
    }
}

/// Returns how long a retired key does anything at all.
fn leaves_after(plan: &Plan, life: &Life) -> u64 {
    let outlives = life.role.signs_zone() && life.algorithm != plan.algorithm;
    withdrawn_after(plan, life) + if outlives { plan.dnskey_wait() } else { 0 }
}

/// Returns the times at which something may be due.
fn deadlines<'l>(plan: &'l Plan, lives: &'l [Life]) -> impl Iterator<Item = u64> + 'l {
    lives.iter().flat_map(move |life| {
        let mut times = Vec::new();
        match life.state {
            State::Generated => times.push(life.since + plan.zone_wait()),
            State::Published => {
                times.push(life.since + plan.dnskey_wait());
                times.push(life.since + plan.both_waits());
            }
            State::Ready => times.extend(plan.ds_timeout.map(|timeout| life.since + timeout)),
            State::Active => {
                if let Some(ends) = plan.ends(life).filter(|&ends| ends > 0) {
                    times.push(ends.saturating_sub(plan.dnskey_wait()));
                    times.push(ends);
                }
            }
            State::Retired => {
                times.push(life.since + withdrawn_after(plan, life));
                times.push(life.since + leaves_after(plan, life));
            }
            State::Removed => {}
        }
        times
    })
}

/// Returns what a key does at `now`.
pub fn does(plan: &Plan, lives: &[Life], life: &Life, now: u64) -> KeyUse {
    let is_changing = lives.iter().any(|other| {
        other.is_live() && !std::ptr::eq(other, life) && plan.is_old(other) != plan.is_old(life)
    });
    let has_other_algorithm = lives.iter().any(|other| other.is_live() && other.algorithm != life.algorithm);
    let is_withdrawn = life.state == State::Retired && now >= life.since + withdrawn_after(plan, life);
    let is_published = match life.state {
        State::Generated | State::Removed => false,
        State::Published | State::Ready | State::Active => true,
        State::Retired => !is_withdrawn,
    };
    let signs_zone = life.role.signs_zone()
        && match life.state {
            State::Generated => has_other_algorithm,
            State::Published => life.role == Role::Csk || is_changing,
            State::Ready | State::Active => true,
            State::Retired => life.role == Role::Csk || life.algorithm != plan.algorithm,
            State::Removed => false,
        };
    let is_someone_ready =
        lives.iter().any(|other| other.role.is_entry_point() && other.state == State::Ready);
    let is_announced = life.role.is_entry_point()
        && match plan.announce {
            Announce::Never => false,
            Announce::Rollover => life.state == State::Ready,
            Announce::Always => {
                life.state == State::Ready || (life.state == State::Active && !is_someone_ready)
            }
        };
    KeyUse { is_published, signs_keys: is_published && life.role.is_entry_point(), signs_zone, is_announced }
}

/// Writes lives as a text that [`parse`] reads.
pub fn write(lives: &[Life]) -> String {
    let mut text = String::from("# The states of this zone's keys, kept by Gannet.\n");
    for life in lives {
        let _ = write!(
            text,
            "{} {} {} {} since={}",
            life.algorithm.0, life.tag, life.role, life.state, life.since
        );
        if let Some(active_since) = life.active_since {
            let _ = write!(text, " active-since={active_since}");
        }
        for (is_so, word) in [(life.is_to_go, " to-go"), (life.has_ds, " has-ds")] {
            if is_so {
                text.push_str(word);
            }
        }
        text.push('\n');
    }
    text
}

/// Reads what [`write`] wrote; errors name the line, from 1.
pub fn parse(text: &str) -> Result<Vec<Life>, usize> {
    let mut lives = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        if first.starts_with('#') {
            continue;
        }
        lives.push(parse_line(first, words).ok_or(index + 1)?);
    }
    Ok(lives)
}

fn parse_line<'t>(first: &str, mut words: impl Iterator<Item = &'t str>) -> Option<Life> {
    let algorithm = Algorithm(first.parse().ok()?);
    let tag = words.next()?.parse().ok()?;
    let role = words.next()?.parse().ok()?;
    let state = words.next()?.parse().ok()?;
    let since = words.next()?.strip_prefix("since=")?.parse().ok()?;
    let mut life = Life { state, ..Life::new(algorithm, tag, role, since) };
    for word in words {
        match word {
            "to-go" => life.is_to_go = true,
            "has-ds" => life.has_ds = true,
            word => life.active_since = Some(word.strip_prefix("active-since=")?.parse().ok()?),
        }
    }
    Some(life)
}

#[cfg(test)]
mod tests;
