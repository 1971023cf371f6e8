//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Whether an upstream is worth asking: a circuit breaker that is tried again every half second or
//! so for ever.

use std::fmt;
use std::io::ErrorKind;

use timers::{Moment, Span};

/// Unanswered attempts in a row that open the circuit, if they span [`SILENCE_MIN`].
const SILENCES_MAX: u8 = 4;
/// Silence that opens the circuit. Under load a pause of some ten milliseconds leaves hundreds of
/// attempts unanswered, and says no more than one: others are asked meanwhile, but nobody is
/// declared dead for it.
const SILENCE_MIN: Span = Span::from_ms(1000);
/// Silence after which clients that could have an expired answer get it: they lose little if the
/// server only paused.
const SILENCE_FOR_STALE: Span = Span::from_ms(300);
/// Time between probes of an upstream that is down, before jitter: recovery is noticed within this
/// and a quarter, however long the outage was, and each worker sends fewer than two and a half
/// small queries a second for it.
const PROBE_EVERY: Span = Span::from_ms(600);

/// What we know about one upstream's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It answers, as far as we know.
    Up,
    /// It does not; asked only when all others are down too, and probed.
    Down {
        /// Since when.
        since: Moment,
    },
}

/// The circuit breaker of one upstream.
#[derive(Clone, Copy, Debug)]
pub struct Health {
    state: State,
    /// Whether it has been silent for [`SILENCE_FOR_STALE`].
    is_silent: bool,
    silences: u8,
    /// When the first of these attempts was sent.
    silent_since: Moment,
    heard: Moment,
}

/// Why the state changed, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It answers.
    Answers,
    /// Nothing came from it.
    Silence,
    /// The network refused what was sent.
    Network(ErrorKind),
    /// No connection could be made, or it ended badly.
    Connection(Option<String>),
    /// Connections to it end before it says anything.
    Mute,
}

impl From<ErrorKind> for Why {
    fn from(kind: ErrorKind) -> Self {
        Self::Network(kind)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answers => f.write_str("it answers"),
            Self::Silence => f.write_str("it does not answer"),
            Self::Network(kind) => write!(f, "{kind}"),
            Self::Connection(Some(trouble)) => f.write_str(trouble),
            Self::Connection(None) => f.write_str("it does not answer on its connections"),
            Self::Mute => f.write_str("it closes connections without an answer"),
        }
    }
}

/// What an event did to the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// The upstream has been silent for long enough to give expired answers.
    FellSilent,
    /// The upstream went down: arm its first probe.
    WentDown,
    /// The upstream is back.
    CameUp,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            state: State::Up,
            is_silent: false,
            silences: 0,
            silent_since: Moment::NEVER,
            heard: Moment(0),
        }
    }
}

impl Health {
    /// Returns whether queries go here.
    pub fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// Returns whether clients that could have an expired answer are not to wait for it.
    pub fn is_silent(&self) -> bool {
        self.is_silent || !self.is_up()
    }

    /// Returns the state.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Returns when its last reply came.
    pub const fn heard_at(&self) -> Moment {
        self.heard
    }

    /// Notes a reply: whatever it says, somebody is there.
    pub fn heard(&mut self, now: Moment) -> Change {
        self.heard = now;
        self.is_silent = false;
        self.silences = 0;
        self.silent_since = Moment::NEVER;
        match self.state {
            State::Up => Change::None,
            State::Down { .. } => {
                self.state = State::Up;
                Change::CameUp
            }
        }
    }

    /// Notes that the attempt sent at `sent` is overdue.
    ///
    /// Counts only if nothing at all came since: a slow name does not make a dead server.
    pub fn silence(&mut self, sent: Moment, now: Moment) -> Change {
        if self.heard >= sent && self.heard > Moment(0) {
            return Change::None;
        }
        self.silences = self.silences.saturating_add(1);
        self.silent_since = self.silent_since.min(sent);
        let silence = now.since(self.silent_since);
        if self.silences < SILENCES_MAX || silence < SILENCE_FOR_STALE {
            return Change::None;
        }
        if silence >= SILENCE_MIN {
            return self.fail(now);
        }
        let is_new = !self.is_silent();
        self.is_silent = true;
        if is_new { Change::FellSilent } else { Change::None }
    }

    /// Notes that the network said no (refused, unreachable): no need to wait for more of that.
    pub fn fail(&mut self, now: Moment) -> Change {
        match self.state {
            State::Up => {
                self.state = State::Down { since: now };
                Change::WentDown
            }
            State::Down { .. } => Change::None,
        }
    }

    /// Returns when to probe next; `None` if it is up.
    ///
    /// `jitter` is any random number: workers and servers must not probe in step.
    pub fn next_probe(&self, now: Moment, jitter: u32) -> Option<Moment> {
        let State::Down { .. } = self.state else { return None };
        let wait = PROBE_EVERY.0;
        // 3/4 to 5/4 of it.
        Some(now + Span(wait * 3 / 4 + wait / 2 * u64::from(jitter & 0xffff) / 0xffff))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_silence_opens_the_circuit_and_one_reply_closes_it() {
        let mut health = Health::default();
        let (sent, overdue) = (Moment(10), Moment(10) + SILENCE_MIN);
        for _ in 1..SILENCES_MAX {
            assert_eq!(health.silence(sent, overdue), Change::None);
        }
        assert_eq!(health.silence(sent, overdue), Change::WentDown);
        assert!(!health.is_up());
        assert_eq!(health.silence(sent, overdue), Change::None);
        assert_eq!(health.heard(overdue + Span(1)), Change::CameUp);
        assert!(health.is_up());
    }

    #[test]
    fn a_short_silence_opens_nothing_however_many_attempts_it_costs() {
        let mut health = Health::default();
        let almost = Span(SILENCE_FOR_STALE.0 - 1);
        for pause in 0..10 {
            let since = Moment(10) + Span(2 * SILENCE_MIN.0 * pause);
            for attempt in 0..1000 {
                assert_eq!(health.silence(since + Span(attempt), since + almost), Change::None);
            }
            assert_eq!(health.heard(since + almost), Change::None, "each pause counts for itself");
        }
    }

    #[test]
    fn a_third_of_a_second_of_silence_is_enough_to_give_expired_answers() {
        let mut health = Health::default();
        let (sent, overdue) = (Moment(10), Moment(10) + SILENCE_FOR_STALE);
        for _ in 1..SILENCES_MAX {
            assert_eq!(health.silence(sent, overdue), Change::None);
        }
        assert_eq!(health.silence(sent, overdue), Change::FellSilent);
        assert_eq!(health.silence(sent, overdue), Change::None, "it is said once");
        assert!(health.is_silent() && health.is_up());
        assert_eq!(health.heard(overdue), Change::None);
        assert!(!health.is_silent());
    }

    #[test]
    fn a_slow_name_does_not_take_a_talking_server_down() {
        let mut health = Health::default();
        for step in 1..100 {
            let sent = Moment(step * 100);
            health.heard(sent + Span(1));
            assert_eq!(health.silence(sent, sent + Span(50)), Change::None);
        }
        assert!(health.is_up());
    }

    #[test]
    fn a_network_error_opens_the_circuit_at_once() {
        let mut health = Health::default();
        assert_eq!(health.fail(Moment(5)), Change::WentDown);
        assert_eq!(health.fail(Moment(6)), Change::None);
    }

    #[test]
    fn probes_never_stop_and_lie_half_a_second_to_three_quarters_apart() {
        let mut health = Health::default();
        health.fail(Moment(0));
        let mut now = Moment(0);
        for jitter in (0..200_000u32).step_by(977) {
            let next = health.next_probe(now, jitter).expect("still down");
            assert!(next.since(now) >= Span::from_ms(450), "no busy probing");
            assert!(next.since(now) <= Span::from_ms(750), "recovery within a second");
            now = next;
        }
        health.heard(now);
        assert_eq!(health.next_probe(now, 0), None);
    }
}
