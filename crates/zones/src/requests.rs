//! What workers ask of managed zones, and the thread of the zones, which starts what takes time.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::peers::{self, Done, Forward, Rights, Update};
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tracing::debug;
use wire::{Message, Name, NameBuf, Rcode};
use zone::Difference;

use crate::forwarded::{FORWARD_PATIENCE, Way};
use crate::lock::lock;
use crate::shared::{Order, Shared, unix_seconds};
use crate::{notify, refresh, refused, signature_expiry};

/// Managed zones as workers see them.
pub(crate) struct Requests(pub(crate) Arc<Shared>);

impl peers::ManagedZones for Requests {
    fn rights(&self, apex: Name<'_>) -> Option<Arc<Rights>> {
        self.0.managed(apex).map(|managed| Arc::clone(&managed.loaded().plan.rights))
    }

    fn history(&self, apex: Name<'_>, from: u32, to: u32) -> Option<Vec<Arc<Difference>>> {
        let managed = self.0.managed(apex)?;
        let history = lock(&managed.history);
        history.between(from, to)
    }

    fn left_s(&self, apex: Name<'_>, unix_seconds: u32) -> Option<u32> {
        self.0.managed(apex)?.left_s(unix_seconds.into())
    }

    fn notified(&self, apex: Name<'_>, from: IpAddr, serial: Option<u32>) {
        let Some(managed) = self.0.managed(apex) else { return };
        let is_known = serial == Some(managed.serial()) && lock(&managed.served).is_some();
        if !is_known {
            *lock(&managed.notified_by) = Some(from);
            managed.refresh_now.notify_one();
        }
    }

    fn update(&self, update: Update) -> bool {
        // The place is given back when the update is done.
        let Ok(place) = Arc::clone(&self.0.updates).try_acquire_owned() else { return false };
        let Update { apex, message, scopes, signed_by, done } = update;
        let done = Box::new(move |outcome| {
            drop(place);
            done(outcome);
        });
        let update = Box::new(Update { apex, message, scopes, signed_by, done });
        self.0.orders.send(Order::Update(update)).is_ok()
    }

    fn forward(&self, forward: Forward) -> bool {
        let Ok(place) = Arc::clone(&self.0.forwards).try_acquire_owned() else { return false };
        let Forward { apex, message, from, done } = forward;
        match self.0.forwarded.begin(&apex, &message, from, done) {
            Way::Onward(done) => {
                let forward = Forward { apex, message, from, done };
                self.0.orders.send(Order::Forward(Box::new(forward), place)).is_ok()
            }
            Way::Again => true,
            Way::Back => {
                let why = format!("it has come back from {}: servers pass updates on to each other", from.0);
                self.0.not_forwarded.note(&apex, &why);
                false
            }
        }
    }
}

/// How often the two clocks are compared.
const CLOCKS_EVERY: Duration = Duration::from_secs(1);
/// By how much the wall clock may get ahead between two looks.
const AHEAD_MAX: Duration = Duration::from_secs(2);

/// What both clocks said when they were looked at last.
struct Clocks {
    wall_s: u64,
    timers: Instant,
}

impl Clocks {
    fn look() -> Self {
        Self { wall_s: unix_seconds(), timers: Instant::now() }
    }

    /// Looks again; returns whether the wall clock has got ahead meanwhile. Timers stand still
    /// while a machine is suspended, and zones are due and expire by the wall clock.
    fn are_apart(&mut self) -> bool {
        let before = std::mem::replace(self, Self::look());
        let by_wall = Duration::from_secs(self.wall_s.saturating_sub(before.wall_s));
        by_wall > self.timers.duration_since(before.timers) + AHEAD_MAX
    }
}

/// Returns ticks at this pace; those that were missed while the machine slept or its clocks jumped
/// are left out.
#[expect(clippy::disallowed_methods, reason = "this is where missed ticks are left out")]
fn ticks(every: Duration) -> Interval {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

/// The thread of managed zones: it starts what is ordered.
pub(crate) async fn work(shared: &Arc<Shared>, mut ordered: mpsc::UnboundedReceiver<Order>) {
    let mut looks = ticks(signature_expiry::LOOK_EVERY);
    let mut minutes = ticks(refused::REPORT_EVERY);
    let (mut seconds, mut clocks) = (ticks(CLOCKS_EVERY), Clocks::look());
    loop {
        let order = tokio::select! {
            order = ordered.recv() => order,
            _ = looks.tick() => Some(Order::LookAtSignatures),
            () = shared.refresh_began.notified() => {
                clocks = Clocks::look();
                continue;
            }
            // A server without such zones is not woken for them.
            _ = seconds.tick(), if shared.refreshed.load(Ordering::Relaxed) > 0 => {
                if clocks.are_apart() {
                    shared.clock_moved.notify_waiters();
                }
                continue;
            }
            _ = minutes.tick() => {
                shared.refused.report();
                shared.not_forwarded.report();
                continue;
            }
        };
        let Some(order) = order else { return };
        match order {
            Order::Follow(managed) => {
                tokio::spawn(refresh::follow(Arc::clone(shared), managed));
            }
            Order::Notify(managed) => {
                notify::notify(shared, &managed);
            }
            Order::Update(update) => {
                let shared = Arc::clone(shared);
                drop(tokio::task::spawn_blocking(move || carry_out(&shared, *update)));
            }
            Order::Forward(forward, place) => {
                let shared = Arc::clone(shared);
                tokio::spawn(async move {
                    pass_on(&shared, *forward).await;
                    drop(place);
                });
            }
            Order::LookAtSignatures => {
                let shared = Arc::clone(shared);
                drop(tokio::task::spawn_blocking(move || shared.look_at_signatures()));
            }
        }
    }
}

fn carry_out(shared: &Arc<Shared>, update: Update) {
    let Update { apex, message, scopes, signed_by, done } = update;
    let Some(managed) = shared.managed(apex.as_name()) else {
        return done(Done::Rcode(Rcode::NOTAUTH));
    };
    let by = match signed_by {
        Some(key) => format!("an UPDATE with the key {key}"),
        None => "an UPDATE".to_owned(),
    };
    let answered = managed.update(&message, &scopes, shared.key, (&by, unix_seconds()));
    if let Some(error) = answered.trouble {
        shared.refused.note(&managed.apex, &error);
    }
    if answered.is_new {
        shared.changed(&managed);
    }
    done(Done::Rcode(answered.rcode));
}

/// Passes an update on, and passes its reply to everybody who sent it.
async fn pass_on(shared: &Arc<Shared>, forward: Forward) {
    let Forward { apex, message, done, .. } = forward;
    let outcome = ask_primaries(shared, &apex, &message).await;
    for other in shared.forwarded.end(&apex, &message) {
        other(match &outcome {
            Done::Rcode(rcode) => Done::Rcode(*rcode),
            Done::Reply(reply) => Done::Reply(reply.clone()),
        });
    }
    done(outcome);
}

/// Passes an update on to one primary after the other, until one decides on it.
async fn ask_primaries(shared: &Arc<Shared>, apex: &NameBuf, message: &[u8]) -> Done {
    let Some(managed) = shared.managed(apex.as_name()) else {
        return Done::Rcode(Rcode::NOTAUTH);
    };
    let (mut trouble, mut undecided) = (None, None);
    // Where hosts are is found out by waiting.
    let (finder, of) = (Arc::clone(shared), Arc::clone(&managed));
    let primaries = tokio::task::spawn_blocking(move || refresh::known_primaries(&finder, &of)).await;
    for primary in primaries.unwrap_or_default() {
        match transfer::pass_on(&shared.transfers, &primary, message, FORWARD_PATIENCE).await {
            Ok(reply) if is_decision(&reply) => {
                debug!(zone = %apex, %primary, "an update was passed on");
                // Whoever sent it wants to see it here.
                managed.refresh_now.notify_one();
                return Done::Reply(reply);
            }
            // Another one may know better.
            Ok(reply) => undecided = undecided.or(Some(reply)),
            Err(why) => trouble = Some(format!("{primary}: {why}")),
        }
    }
    if let Some(reply) = undecided {
        return Done::Reply(reply);
    }
    let why = trouble.unwrap_or_else(|| "it has no primaries".to_owned());
    shared.not_forwarded.note(apex, &format!("no primary answers it: {why}"));
    Done::Rcode(Rcode::SERVFAIL)
}

/// Returns whether a primary has decided on an update: it was made, or may not be. One that cannot,
/// or has no such zone, has not.
fn is_decision(reply: &[u8]) -> bool {
    let rcode = Message::parse(reply).map(|parsed| parsed.rcode());
    !matches!(
        rcode,
        Ok(Rcode::FORMERR | Rcode::SERVFAIL | Rcode::NOTIMP | Rcode::NOTAUTH | Rcode::NOTZONE) | Err(_)
    )
}
