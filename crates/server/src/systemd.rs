//! Tells systemd how we are (sd_notify(3)). Outside of systemd nothing happens.

use std::time::Duration;

use sd_notify::NotifyState;
use tracing::debug;

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        debug!(%error, "systemd could not be told");
    }
}

/// Says that queries are answered (again).
pub(crate) fn ready(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Says that a reload has begun; [`ready`] ends it (`Type=notify-reload` wants the time).
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(error) => debug!(%error, "no clock for systemd"),
    }
}

/// Says that the end has begun.
pub(crate) fn stopping() {
    notify(&[NotifyState::Stopping, NotifyState::Status("finishing waiting queries")]);
}

/// Says that we are alive. Due well within [`watchdog`]'s time.
pub(crate) fn alive() {
    notify(&[NotifyState::Watchdog]);
}

/// Returns the time within which systemd wants to hear [`alive`]; `None` if it does not.
pub(crate) fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}
