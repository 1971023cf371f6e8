//! What workers ask the keeper for, and the keeper's thread, which starts what takes time.

use std::net::IpAddr;
use std::sync::Arc;

use engine::authority::{self, Rights, Update};
use tokio::sync::mpsc;
use wire::Name;
use zone::Difference;

use crate::kept::lock;
use crate::{Order, Shared, ends, refresh, tell, unix_seconds};

/// The keeper as workers see it.
pub(crate) struct Desk(pub(crate) Arc<Shared>);

impl authority::Keeper for Desk {
    fn rights(&self, apex: Name<'_>) -> Option<Arc<Rights>> {
        self.0.kept(apex).map(|kept| Arc::clone(&kept.plan().rights))
    }

    fn history(&self, apex: Name<'_>, from: u32, to: u32) -> Option<Vec<Arc<Difference>>> {
        let kept = self.0.kept(apex)?;
        let history = lock(&kept.history);
        history.between(from, to)
    }

    fn left_s(&self, apex: Name<'_>, unix_seconds: u32) -> Option<u32> {
        self.0.kept(apex)?.left_s(unix_seconds.into())
    }

    fn notified(&self, apex: Name<'_>, from: IpAddr, serial: Option<u32>) {
        let Some(kept) = self.0.kept(apex) else { return };
        let is_known = serial == Some(kept.serial()) && lock(&kept.served).is_some();
        if !is_known {
            *lock(&kept.notified_by) = Some(from);
            kept.poke.notify_one();
        }
    }

    fn update(&self, update: Update) -> bool {
        // The place is given back when the update is done.
        let Ok(place) = Arc::clone(&self.0.updates).try_acquire_owned() else { return false };
        let Update { apex, message, scopes, done } = update;
        let done = Box::new(move |rcode| {
            drop(place);
            done(rcode);
        });
        let update = Box::new(Update { apex, message, scopes, done });
        self.0.orders.send(Order::Update(update)).is_ok()
    }
}

/// The keeper's thread: starts what is ordered.
pub(crate) async fn work(shared: &Arc<Shared>, mut ordered: mpsc::UnboundedReceiver<Order>) {
    let mut looks = tokio::time::interval(ends::LOOK_EVERY);
    loop {
        let order = tokio::select! {
            order = ordered.recv() => order,
            _ = looks.tick() => Some(Order::LookAtSignatures),
        };
        let Some(order) = order else { return };
        match order {
            Order::Follow(kept) => {
                tokio::spawn(refresh::follow(Arc::clone(shared), kept));
            }
            Order::Tell(kept) => {
                tell::tell(shared, &kept);
            }
            Order::Update(update) => {
                let shared = Arc::clone(shared);
                drop(tokio::task::spawn_blocking(move || carry_out(&shared, *update)));
            }
            Order::LookAtSignatures => {
                let shared = Arc::clone(shared);
                drop(tokio::task::spawn_blocking(move || shared.look_at_signatures()));
            }
        }
    }
}

fn carry_out(shared: &Arc<Shared>, update: Update) {
    let Update { apex, message, scopes, done } = update;
    let Some(kept) = shared.kept(apex.as_name()) else {
        return done(wire::Rcode::NOTAUTH);
    };
    let (rcode, is_new) = kept.update(&message, &scopes, shared.key, unix_seconds());
    if is_new {
        shared.changed(&kept);
    }
    done(rcode);
}
