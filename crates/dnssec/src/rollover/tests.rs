//! Keys live through years in a moment, and at every moment somebody who remembers the oldest data
//! still validates.

use super::*;

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;
/// The steps in which time goes on.
const STEP: u64 = HOUR / 2;

fn plan() -> Plan {
    Plan {
        algorithm: Algorithm::ECDSAP256SHA256,
        is_single: false,
        ksk_lifetime: Some(60 * DAY),
        zsk_lifetime: Some(20 * DAY),
        propagation_delay: HOUR,
        dnskey_ttl: 2 * HOUR,
        zone_ttl_max: 6 * HOUR,
        ds_delay: 26 * HOUR,
        ds_timeout: None,
        announce: Announce::Rollover,
    }
}

/// What the world could see at one time.
#[derive(Clone)]
struct Seen {
    at: u64,
    /// DNSKEY set and, of each key, whether it signs it: algorithm, tag.
    keys: Vec<(Algorithm, u16, bool)>,
    /// Who signs the zone.
    zone: Vec<(Algorithm, u16)>,
    /// Keys that the parent has a DS for.
    ds: Vec<(Algorithm, u16)>,
}

/// A zone, its parent, and everything they ever said.
struct World {
    plan: Plan,
    lives: Vec<Life>,
    now: u64,
    next_tag: u16,
    ds: Vec<(Algorithm, u16)>,
    /// How long the parent takes to follow CDS.
    parent_delay: Option<u64>,
    announced: Option<(Vec<(Algorithm, u16)>, u64)>,
    history: Vec<Seen>,
    /// Keys that came into use.
    activated: Vec<(Role, u16, u64)>,
}

impl World {
    fn new(plan: Plan, parent_delay: Option<u64>) -> Self {
        Self {
            plan,
            lives: Vec::new(),
            now: 1_000_000,
            next_tag: 1,
            ds: Vec::new(),
            parent_delay,
            announced: None,
            history: Vec::new(),
            activated: Vec::new(),
        }
    }

    fn turn(&mut self) {
        loop {
            let due = advance(&self.plan, &mut self.lives, self.now);
            for &(at, state) in &due.entered {
                if state == State::Active {
                    self.activated.push((self.lives[at].role, self.lives[at].tag, self.now));
                }
            }
            if due.generate.is_empty() {
                break;
            }
            for role in due.generate {
                self.lives.push(Life::new(self.plan.algorithm, self.next_tag, role, self.now));
                self.next_tag += 1;
            }
        }
        let uses: Vec<(Algorithm, u16, KeyUse)> = self
            .lives
            .iter()
            .map(|life| (life.algorithm, life.tag, does(&self.plan, &self.lives, life, self.now)))
            .collect();
        let announced: Vec<_> =
            uses.iter().filter(|(_, _, does)| does.is_announced).map(|&(a, t, _)| (a, t)).collect();
        if announced.is_empty() {
            self.announced = None;
        } else if self.announced.as_ref().is_none_or(|(before, _)| *before != announced) {
            self.announced = Some((announced, self.now));
        }
        if let (Some(delay), Some((announced, since))) = (self.parent_delay, &self.announced)
            && self.now >= since + delay
        {
            self.ds.clone_from(announced);
        }
        // The parent is looked at.
        for life in &mut self.lives {
            if life.state == State::Ready && self.ds.contains(&(life.algorithm, life.tag)) {
                life.has_ds = true;
            }
        }
        self.history.push(Seen {
            at: self.now,
            keys: uses
                .iter()
                .filter(|(_, _, does)| does.is_published)
                .map(|&(a, t, does)| (a, t, does.signs_keys))
                .collect(),
            zone: uses.iter().filter(|(_, _, does)| does.signs_zone).map(|&(a, t, _)| (a, t)).collect(),
            ds: self.ds.clone(),
        });
        self.judge();
        self.now += STEP;
    }

    /// A validator may hold the oldest DS, DNSKEY and data that their TTLs allow, in any
    /// combination.
    fn judge(&self) {
        let window = |age: u64| {
            let oldest = self.now.saturating_sub(age);
            self.history.iter().rev().take_while(move |seen| seen.at > oldest)
        };
        let recent = |age| {
            // What repeats is looked at once.
            let mut seen: Vec<&Seen> = Vec::new();
            for one in window(age) {
                if !seen
                    .iter()
                    .any(|other| other.keys == one.keys && other.zone == one.zone && other.ds == one.ds)
                {
                    seen.push(one);
                }
            }
            seen
        };
        let plan = &self.plan;
        for parent in recent(plan.ds_delay) {
            if parent.ds.is_empty() {
                continue;
            }
            for keys in recent(plan.dnskey_ttl + plan.propagation_delay) {
                assert!(
                    keys.keys.iter().any(|&(a, t, signs)| signs && parent.ds.contains(&(a, t))),
                    "at {}: no key of {:?} has one of the DS {:?}\n{:#?}",
                    self.now,
                    keys.keys,
                    parent.ds,
                    self.lives
                );
                for data in recent(plan.zone_ttl_max + plan.propagation_delay) {
                    // RFC 4035 §2.2, as the strictest of validators read it: each algorithm of the
                    // keys.
                    for &(algorithm, ..) in &keys.keys {
                        assert!(
                            data.zone.iter().any(|&(a, t)| {
                                a == algorithm && keys.keys.iter().any(|&(b, u, _)| (a, t) == (b, u))
                            }),
                            "at {}: data signed by {:?}, keys {:?}\n{:#?}",
                            self.now,
                            data.zone,
                            keys.keys,
                            self.lives
                        );
                    }
                }
            }
        }
    }

    fn live_until(&mut self, days: u64) {
        let end = self.now + days * DAY;
        while self.now < end {
            self.turn();
        }
    }

    fn in_state(&self, role: Role, state: State) -> usize {
        self.lives.iter().filter(|life| life.role == role && life.state == state).count()
    }

    fn actives(&self, role: Role) -> usize {
        self.activated.iter().filter(|(other, ..)| *other == role).count()
    }
}

#[test]
fn keys_of_two_roles_replace_each_other_and_nobody_loses_the_zone() {
    let mut world = World::new(plan(), Some(5 * HOUR));
    world.live_until(365);
    // A ZSK every 20 days, a KSK every 60 and the delays of its replacement.
    assert!((17..=19).contains(&world.actives(Role::Zsk)), "{:?}", world.activated);
    assert!((5..=7).contains(&world.actives(Role::Ksk)), "{:?}", world.activated);
    assert_eq!(world.in_state(Role::Zsk, State::Active), 1);
    assert_eq!(world.in_state(Role::Ksk, State::Active), 1);
    assert!(world.ds.len() == 1);
}

#[test]
fn a_single_key_is_replaced_and_nobody_loses_the_zone() {
    let mut world = World::new(Plan { is_single: true, ..plan() }, Some(DAY));
    world.live_until(365);
    assert!((5..=7).contains(&world.actives(Role::Csk)), "{:?}", world.activated);
    assert_eq!(world.actives(Role::Zsk) + world.actives(Role::Ksk), 0);
}

#[test]
fn an_old_ksk_stays_until_the_parent_has_the_new_ds() {
    let mut world = World::new(plan(), Some(5 * HOUR));
    world.live_until(30);
    let first = world.ds.clone();
    assert_eq!(first.len(), 1);
    world.parent_delay = None;
    world.live_until(200);
    assert_eq!(world.ds, first);
    assert_eq!(world.in_state(Role::Ksk, State::Ready), 1);
    assert_eq!(world.in_state(Role::Ksk, State::Active), 1);
    world.parent_delay = Some(0);
    world.live_until(3);
    assert_ne!(world.ds, first);
    assert_eq!(world.in_state(Role::Ksk, State::Ready), 0);
}

#[test]
fn another_algorithm_takes_over_and_nobody_loses_the_zone() {
    for is_single in [false, true] {
        let forever = Plan { ksk_lifetime: None, zsk_lifetime: None, is_single, ..plan() };
        let mut world = World::new(forever, Some(5 * HOUR));
        world.live_until(10);
        world.plan.algorithm = Algorithm::ED25519;
        world.live_until(20);
        let live: Vec<&Life> = world.lives.iter().filter(|life| life.is_live()).collect();
        assert!(live.iter().all(|life| life.algorithm == Algorithm::ED25519), "{live:?}");
        assert!(live.iter().all(|life| life.state == State::Active), "{live:?}");
        assert_eq!(live.len(), if is_single { 1 } else { 2 });
    }
}

#[test]
fn another_split_takes_over_and_nobody_loses_the_zone() {
    for is_single in [false, true] {
        let forever = Plan { ksk_lifetime: None, zsk_lifetime: None, is_single, ..plan() };
        let mut world = World::new(forever, Some(5 * HOUR));
        world.live_until(10);
        world.plan.is_single = !is_single;
        world.live_until(20);
        let live: Vec<&Life> = world.lives.iter().filter(|life| life.is_live()).collect();
        assert!(live.iter().all(|life| (life.role == Role::Csk) != is_single), "{live:?}");
        assert!(live.iter().all(|life| life.state == State::Active), "{live:?}");
    }
}

#[test]
fn a_key_that_is_to_go_goes_before_its_time() {
    let forever = Plan { ksk_lifetime: None, zsk_lifetime: None, ..plan() };
    let mut world = World::new(forever, Some(5 * HOUR));
    world.live_until(10);
    assert_eq!(world.lives.len(), 2);
    for life in &mut world.lives {
        life.is_to_go = true;
    }
    world.live_until(10);
    assert_eq!(world.lives.len(), 4);
    assert_eq!(world.lives.iter().filter(|life| life.state == State::Removed).count(), 2);
    assert_eq!(world.lives.iter().filter(|life| life.state == State::Active).count(), 2);
}

#[test]
fn the_next_call_is_never_too_late() {
    // Called only when it asked to be, the same comes out as when called all the time.
    let plan = Plan { ds_timeout: Some(DAY), ..plan() };
    let mut lives = Vec::new();
    let mut now = 1_000_000;
    let end = now + 200 * DAY;
    let mut tag = 1;
    let mut calls = 0;
    while now < end {
        let due = advance(&plan, &mut lives, now);
        calls += 1;
        for role in &due.generate {
            lives.push(Life::new(plan.algorithm, tag, *role, now));
            tag += 1;
        }
        if due.generate.is_empty() {
            now = due.again_at.expect("with lifetimes there is always something to come");
        }
    }
    let active: Vec<u64> =
        lives.iter().filter(|life| life.role == Role::Zsk).filter_map(|life| life.active_since).collect();
    assert!(active.windows(2).all(|pair| pair[1] - pair[0] == 20 * DAY), "{active:?}");
    assert!(calls < 200, "{calls}");
}

#[test]
fn lives_are_written_and_read() {
    let mut world = World::new(plan(), Some(5 * HOUR));
    world.live_until(61);
    world.lives[0].is_to_go = true;
    assert_eq!(parse(&write(&world.lives)), Ok(world.lives));
    assert_eq!(parse("# nothing\n\n13 1 ksk\n"), Err(3));
    assert_eq!(parse("13 1 ksk active since=1 else\n"), Err(1));
}
