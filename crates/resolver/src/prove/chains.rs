//! What is known of zones: their keys, what their parents say of them, or that no chain of
//! signatures leads to them.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use cache::Now;
use dnssec::chain::{Insecure, SecureKeys, TrustPoint, insecurity};
use dnssec::{Dnskey, Ds, ParsedKey};
use wire::{EdeCode, Name};

use super::seen::Seen;
use crate::delegation::DsState;
use crate::heap_name::HeapName;
use crate::moment::Moment;
use crate::settings::{Trust, TrustAnchor};

/// Zones that are remembered.
const ZONES_MAX: usize = 1024;
/// Octets of their keys and DS records. Those of an honest zone are some 500, those of a hostile
/// one a whole message.
const OCTETS_MAX: usize = 4 << 20;

/// What is known of a zone.
#[derive(Clone, Debug)]
pub(crate) enum ZoneTrust {
    /// Its keys.
    Keys(Arc<SecureKeys>),
    /// What stands for its keys.
    Signed(Points),
    /// It may say what it likes.
    Insecure(Why),
    /// It is none: the zone above goes on.
    NoCut,
    /// Nothing above it is trusted.
    Indeterminate,
}

/// Why a zone may say what it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The settings say so.
    Told,
    /// Its keys are not to be had, and the settings say that it counts as unsigned then.
    NoKeys,
    /// There is no DS, in this zone's parent or further up.
    Unsigned,
    /// The DS records are of kinds that do not count here.
    Unknown(Insecure),
    /// Absence is proved by names that were hashed too often.
    Iterations,
}

impl Why {
    /// Returns the code that tells a client why (RFC 8914 §4).
    pub(crate) const fn ede(self) -> Option<EdeCode> {
        match self {
            Self::Told | Self::NoKeys | Self::Unsigned => None,
            Self::Unknown(insecure) => Some(insecure.ede()),
            Self::Iterations => Some(EdeCode::UNSUPPORTED_NSEC3_ITERATIONS),
        }
    }
}

/// What stands for the keys of a zone.
#[derive(Clone, Debug)]
pub(crate) enum Points {
    /// The data of DS records.
    Ds(Arc<[Box<[u8]>]>),
    /// A trust anchor.
    Anchor(TrustAnchor),
}

impl Points {
    /// Returns them as the keys of a zone are judged by.
    pub(crate) fn trusted(&self) -> Vec<TrustPoint<'_>> {
        let (ds, keys) = match self {
            Self::Ds(ds) => (&**ds, None),
            Self::Anchor(anchor) => (&*anchor.ds, Some(&anchor.keys)),
        };
        let ds = ds.iter().filter_map(|ds| Ds::parse(ds)).map(TrustPoint::Ds);
        let keys = keys.into_iter().flatten().filter_map(|key| Dnskey::parse(key)).map(TrustPoint::Key);
        ds.chain(keys).collect()
    }
}

impl ZoneTrust {
    /// Returns the octets of what is remembered.
    fn octets(&self) -> usize {
        match self {
            Self::Keys(keys) => keys.keys().iter().map(ParsedKey::octets).sum(),
            Self::Signed(Points::Ds(ds)) => ds.iter().map(|ds| ds.len()).sum(),
            Self::Signed(Points::Anchor(_)) | Self::Insecure(_) | Self::NoCut | Self::Indeterminate => 0,
        }
    }
}

struct Known {
    trust: ZoneTrust,
    ends_at: Now,
    /// Whether somebody wanted it since it was its turn to go.
    is_used: Cell<bool>,
}

/// What one worker knows of zones.
#[derive(Default)]
pub(crate) struct Chains {
    known: HashMap<HeapName, Known>,
    /// Zones in the order in which they go, if nobody wants them meanwhile: those of top-level
    /// domains are wanted for nearly every question.
    order: VecDeque<HeapName>,
    /// Octets of what is known.
    octets: usize,
    /// Seconds since 1970 when the machine booted.
    booted_at: u64,
    pub(super) seen: Seen,
}

impl Chains {
    /// Returns how many zones something is known of.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// Sets the calendar by which signatures are judged.
    pub(crate) fn set_time(&mut self, unix_seconds: u64, now: Moment) {
        self.booted_at = unix_seconds.saturating_sub(now.0 / 1_000_000);
    }

    /// Returns the seconds since 1970.
    pub(crate) const fn unix_seconds(&self, now: Moment) -> u64 {
        self.booted_at.saturating_add(now.0 / 1_000_000)
    }

    /// Returns what is known of a zone; `None` if its parent has to be asked for DS records.
    ///
    /// What the settings say comes first, the closest zone that they name before those above it.
    pub(crate) fn trust(&self, zone: Name<'_>, settings: &Trust, now: Moment) -> Option<ZoneTrust> {
        let Some(anchor) = settings.anchor_of(zone) else {
            return Some(ZoneTrust::Indeterminate);
        };
        let unix_seconds = self.unix_seconds(now);
        let is_told = settings.negative.iter().any(|negative| {
            let above = negative.zone.as_name();
            zone.is_at_or_below(above)
                && above.is_at_or_below(anchor.zone.as_name())
                && negative.ends_at.is_none_or(|ends_at| unix_seconds < ends_at)
        });
        if is_told {
            return Some(ZoneTrust::Insecure(Why::Told));
        }
        let name = HeapName::new(zone);
        let known = self.known.get(&name).filter(|known| known.ends_at > now.seconds());
        if let Some(known) = known {
            known.is_used.set(true);
            return Some(known.trust.clone());
        }
        (name == anchor.zone).then(|| judged(Points::Anchor(anchor.clone()), settings))
    }

    /// Notes what a parent says of a zone, if nothing is known of it.
    pub(crate) fn learn_ds(
        &mut self,
        zone: &HeapName,
        ds: &DsState,
        ends_at: Now,
        settings: &Trust,
        now: Moment,
    ) {
        // Who trusts the zone itself does not ask its parent.
        if settings.anchors.iter().any(|anchor| anchor.zone == *zone) {
            return;
        }
        let trust = match ds {
            DsState::Unknown => return,
            DsState::Unsigned => ZoneTrust::Insecure(Why::Unsigned),
            DsState::Signed(records) => judged(Points::Ds(records.as_slice().into()), settings),
        };
        if self.known.get(zone).is_none_or(|known| known.ends_at <= now.seconds()) {
            self.learn(zone, trust, ends_at, now);
        }
    }

    /// Notes the keys of a zone, for no longer than what stands for them.
    pub(crate) fn learn_keys(&mut self, zone: &HeapName, trust: ZoneTrust, ttl: u32, now: Moment) {
        let ends_at = Now(now.seconds().0.saturating_add(ttl));
        let bound = self.known.get(zone).filter(|known| known.ends_at > now.seconds());
        let bound = bound.map_or(ends_at, |known| known.ends_at);
        self.learn(zone, trust, ends_at.min(bound), now);
    }

    /// Forgets what is known of a zone and of those below it.
    pub(crate) fn forget_below(&mut self, zone: Name<'_>) {
        let Self { known, order, octets, .. } = self;
        known.retain(|other, known| {
            let stays = !other.as_name().is_at_or_below(zone);
            *octets -= if stays { 0 } else { known.trust.octets() };
            stays
        });
        order.retain(|other| known.contains_key(other));
    }

    /// Notes what is known of a zone. It is for a second at least, so that the question which it
    /// was asked for can use it.
    pub(crate) fn learn(&mut self, zone: &HeapName, trust: ZoneTrust, ends_at: Now, now: Moment) {
        let ends_at = ends_at.max(Now(now.seconds().0.saturating_add(1)));
        self.octets += trust.octets();
        match self.known.insert(zone.clone(), Known { trust, ends_at, is_used: Cell::new(false) }) {
            Some(before) => self.octets -= before.trust.octets(),
            None => self.order.push_back(zone.clone()),
        }
        // Ends: who is let go on once is not used any more.
        while (self.order.len() > ZONES_MAX || self.octets > OCTETS_MAX)
            && let Some(oldest) = self.order.pop_front()
        {
            if self.known.get(&oldest).is_some_and(|known| known.is_used.replace(false)) {
                self.order.push_back(oldest);
                continue;
            }
            let before = self.known.remove(&oldest);
            self.octets -= before.map_or(0, |known| known.trust.octets());
        }
    }
}

/// Returns what such trust points are worth.
fn judged(points: Points, settings: &Trust) -> ZoneTrust {
    match insecurity(&points.trusted(), settings.algorithms) {
        Some(insecure) => ZoneTrust::Insecure(Why::Unknown(insecure)),
        None => ZoneTrust::Signed(points),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::NameBuf;

    fn zone(number: usize) -> HeapName {
        HeapName::new(NameBuf::from_text(&format!("z{number}.example")).expect("a name").as_name())
    }

    fn signed(octets: usize) -> ZoneTrust {
        ZoneTrust::Signed(Points::Ds(vec![vec![0; octets].into_boxed_slice()].into()))
    }

    #[test]
    fn what_is_forgotten_takes_no_room() {
        let (mut chains, now) = (Chains::default(), Moment(0));
        for number in 0..10 {
            chains.learn(&zone(number), signed(100), Now(100), now);
        }
        let above = NameBuf::from_text("example").expect("a name");
        chains.learn(&HeapName::new(above.as_name()), signed(7), Now(100), now);
        chains.forget_below(zone(3).as_name());
        chains.forget_below(zone(3).as_name());
        assert_eq!((chains.known.len(), chains.order.len(), chains.octets), (10, 10, 907));
        chains.forget_below(above.as_name());
        assert_eq!((chains.known.len(), chains.order.len(), chains.octets), (0, 0, 0));
        // The place in the order is free as well.
        chains.learn(&zone(3), signed(100), Now(100), now);
        assert_eq!((chains.known.len(), chains.order.len(), chains.octets), (1, 1, 100));
    }

    #[test]
    fn zones_that_are_wanted_again_stay() {
        let (mut chains, now, settings) = (Chains::default(), Moment(0), Trust::default());
        for number in 0..5 * ZONES_MAX {
            chains.learn(&zone(number), signed(7), Now(100), now);
            assert!(chains.trust(zone(0).as_name(), &settings, now).is_some());
        }
        assert_eq!((chains.known.len(), chains.order.len()), (ZONES_MAX, ZONES_MAX));
        assert!(chains.trust(zone(1).as_name(), &settings, now).is_none());
    }

    #[test]
    fn zones_with_large_sets_are_forgotten_earlier() {
        let (mut chains, now) = (Chains::default(), Moment(0));
        for (octets, most) in [(500, ZONES_MAX), (60_000, OCTETS_MAX / 60_000)] {
            for number in 0..2 * ZONES_MAX {
                // The second time it is another set of the same zone.
                for _ in 0..2 {
                    chains.learn(&zone(number), signed(octets), Now(100), now);
                }
                assert!(chains.octets <= OCTETS_MAX);
            }
            assert_eq!((chains.known.len(), chains.order.len()), (most, most));
            assert_eq!(chains.octets, most * octets);
        }
    }
}
