//! What happens to the server, for those who watch it: a ring of events with numbers.
//!
//! Whoever has something to say waits for no reader. A reader has nothing but its place in the
//! ring: one that does not read costs no memory, and hears how many events it has lost.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use control::api::{self, Event, EventOf, EventPart, EventsAsked, EventsLost};
use control::{Caller, Role};
use jobs::{Message, Webhooks};

use crate::lock;
use crate::operator::OperatorError;

/// Events that are kept.
const EVENTS_MAX: usize = 1024;
/// Readers at once, and of one caller.
const READERS_MAX: usize = 32;
const READERS_OF_CALLER_MAX: usize = 16;
/// Characters of one text in an event: what other servers say has no bound of its own.
const TEXT_CHARS_MAX: usize = 1_000;
/// How long there may be nothing to say to a reader. One that is gone gives up its place then.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// The ring.
pub(crate) struct Feed {
    /// Drawn at each start, so that numbers of an earlier run are known as such.
    epoch: String,
    ring: Mutex<Ring>,
    /// There is another event.
    changed: Condvar,
    readers: Mutex<BTreeMap<String, usize>>,
    /// Who is sent events.
    webhooks: OnceLock<Webhooks>,
}

#[derive(Default)]
struct Ring {
    events: VecDeque<Arc<Event>>,
    /// The number of the next event.
    next: u64,
}

impl Ring {
    /// Returns the number of the oldest event that is kept.
    fn first(&self) -> u64 {
        self.next - self.events.len() as u64
    }

    /// Returns an event that is kept.
    fn at(&self, number: u64) -> Option<&Arc<Event>> {
        self.events.get(usize::try_from(number.checked_sub(self.first())?).ok()?)
    }
}

impl Default for Feed {
    fn default() -> Self {
        // Another one each time, and no secret: AWS-LC's first random number takes tens of
        // milliseconds, which no server without TLS has to wait for.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let epoch = format!("{:016x}", RandomState::new().hash_one(since.as_nanos()));
        let ring = Mutex::new(Ring { events: VecDeque::new(), next: 1 });
        Self { epoch, ring, changed: Condvar::new(), readers: Mutex::default(), webhooks: OnceLock::new() }
    }
}

impl Feed {
    /// Has webhooks get events from now on.
    pub(crate) fn send_to(&self, webhooks: Webhooks) {
        // It is called once.
        drop(self.webhooks.set(webhooks));
    }

    /// Has all readers know of something that happens now. Waits for none of them.
    pub(crate) fn tell(&self, what: EventOf) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_ms = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        let mut ring = lock(&self.ring);
        let event = Event { id: format!("{}-{}", self.epoch, ring.next), at_ms, what };
        ring.next += 1;
        if let Some(webhooks) = self.webhooks.get().filter(|webhooks| webhooks.want(event.what.kind())) {
            // While the ring is held: they get events in their order.
            let body = api::to_json_line(&event).trim_end().to_owned();
            webhooks.give(event.what.kind(), Message { id: event.id.clone(), body });
        }
        if ring.events.len() >= EVENTS_MAX {
            ring.events.pop_front();
        }
        ring.events.push_back(Arc::new(event));
        drop(ring);
        self.changed.notify_all();
    }

    /// Returns a reader of what somebody may see.
    ///
    /// # Errors
    ///
    /// What is asked makes no sense or is not for them, or there are enough readers.
    pub(crate) fn read(
        self: &Arc<Self>,
        asked: &EventsAsked,
        caller: &Caller,
    ) -> Result<Reader, OperatorError> {
        let unknown = asked.kinds.iter().find(|kind| !EventOf::KINDS.contains(&kind.as_str()));
        if let Some(unknown) = unknown {
            let expected = EventOf::KINDS.join(", ");
            return Err(OperatorError::Argument(format!("unknown kind \"{unknown}\" (expected {expected})")));
        }
        if let Some(kind) = asked.kinds.iter().find(|kind| needed(kind) > caller.role) {
            let (role, own) = (needed(kind).word(), caller.role.word());
            let why = format!("{kind} needs the role {role}, and {} has {own}", caller.name);
            return Err(OperatorError::Forbidden(why));
        }
        let is_wanted = |kind: &str| {
            (asked.kinds.is_empty() || asked.kinds.iter().any(|it| it == kind)) && needed(kind) <= caller.role
        };
        let kinds = EventOf::KINDS.into_iter().filter(|kind| is_wanted(kind)).collect();
        let (next, is_other_epoch) = match &asked.after {
            Some(id) => match self.number(id)? {
                Some(number) => (number + 1, false),
                None => (lock(&self.ring).first(), true),
            },
            None if asked.kept || asked.ends => (lock(&self.ring).first(), false),
            None => (lock(&self.ring).next, false),
        };
        let place = Place::take(self, &caller.name)?;
        let lost = is_other_epoch.then(EventsLost::default);
        Ok(Reader { place, role: caller.role, kinds, next, lost, ends: asked.ends, has_ended: false })
    }

    /// Returns the number of an event of this run; `None` if it is of another.
    fn number(&self, id: &str) -> Result<Option<u64>, OperatorError> {
        let wrong = || OperatorError::Argument(format!("\"{id}\" is no id of an event"));
        let (epoch, number) = id.rsplit_once('-').ok_or_else(wrong)?;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        Ok((epoch == self.epoch && number < lock(&self.ring).next).then_some(number))
    }
}

/// Returns who may see events of a kind.
fn needed(kind: &str) -> Role {
    match kind {
        // From where others log in, they alone see in the list of sessions, too.
        "login" => Role::Admin,
        _ => Role::Viewer,
    }
}

/// Returns an event as somebody may see it: why somebody is banned is for those who may ban.
fn seen(event: &Event, role: Role) -> Event {
    let mut event = event.clone();
    if let EventOf::Change(change) = &mut event.what
        && change.what == "ban"
        && role < Role::Helper
    {
        change.why = None;
    }
    event
}

/// Returns a text of others that fits into an event.
pub(crate) fn bounded(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}

/// A reader's place; it is free again when this is dropped.
struct Place {
    feed: Arc<Feed>,
    caller: String,
}

impl Place {
    fn take(feed: &Arc<Feed>, caller: &str) -> Result<Self, OperatorError> {
        let mut readers = lock(&feed.readers);
        let own = readers.get(caller).copied().unwrap_or(0);
        if own >= READERS_OF_CALLER_MAX || readers.values().sum::<usize>() >= READERS_MAX {
            let most = format!("{READERS_OF_CALLER_MAX} readers of {caller}, or {READERS_MAX} in all");
            return Err(OperatorError::Busy(format!("{most}, watch the events already")));
        }
        readers.insert(caller.to_owned(), own + 1);
        Ok(Self { feed: Arc::clone(feed), caller: caller.to_owned() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut readers = lock(&self.feed.readers);
        match readers.get_mut(&self.caller) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(readers.remove(&self.caller)),
        }
    }
}

/// One reader. Each turn waits until there is something, or for some seconds.
pub(crate) struct Reader {
    place: Place,
    role: Role,
    kinds: Vec<&'static str>,
    /// The number of the next event to look at.
    next: u64,
    /// Events before that which the reader has not heard of.
    lost: Option<EventsLost>,
    /// Whether it ends with what is kept.
    ends: bool,
    has_ended: bool,
}

impl Iterator for Reader {
    type Item = EventPart;

    fn next(&mut self) -> Option<EventPart> {
        if self.has_ended {
            return None;
        }
        if let Some(lost) = self.lost.take() {
            return Some(EventPart { lost: Some(lost), ..EventPart::default() });
        }
        let deadline = Instant::now() + SILENCE_MAX;
        let feed = &self.place.feed;
        let mut ring = lock(&feed.ring);
        loop {
            let missed = ring.first().saturating_sub(self.next);
            if missed > 0 {
                self.next = ring.first();
                let lost = EventsLost { events: Some(missed) };
                return Some(EventPart { lost: Some(lost), ..EventPart::default() });
            }
            while let Some(event) = ring.at(self.next) {
                self.next += 1;
                if self.kinds.contains(&event.what.kind()) {
                    let event = Arc::clone(event);
                    // Copied when nobody waits for the ring.
                    drop(ring);
                    return Some(EventPart { event: Some(seen(&event, self.role)), ..EventPart::default() });
                }
            }
            if self.ends {
                self.has_ended = true;
                return Some(EventPart { is_last: true, ..EventPart::default() });
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(EventPart::default());
            }
            ring = feed.changed.wait_timeout(ring, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control::api::{LoginEvent, ZoneEvent};

    fn somebody(name: &str, role: Role) -> Caller {
        Caller { name: name.to_owned(), role, scope: Arc::default(), from: None }
    }

    #[test]
    fn viewers_do_not_see_why_somebody_is_banned() {
        let feed = Arc::new(Feed::default());
        let (what, why) = ("ban".to_owned(), Some("noise".to_owned()));
        feed.tell(EventOf::Change(api::ChangeEvent { what, why, ..api::ChangeEvent::default() }));
        for (role, expect) in [(Role::Viewer, None), (Role::Helper, Some("noise"))] {
            let parts = kept(&feed, EventsAsked::default(), role);
            let Some(EventOf::Change(change)) = parts[0].event.as_ref().map(|event| &event.what) else {
                panic!("{parts:?}");
            };
            assert_eq!(change.why.as_deref(), expect, "{role:?}");
        }
    }

    fn zone(feed: &Feed, name: &str) {
        feed.tell(EventOf::Zone(ZoneEvent { zone: name.to_owned(), ..ZoneEvent::default() }));
    }

    /// Reads what is kept.
    fn kept(feed: &Arc<Feed>, asked: EventsAsked, role: Role) -> Vec<EventPart> {
        feed.read(&EventsAsked { ends: true, ..asked }, &somebody("anna", role)).expect("a reader").collect()
    }

    fn ids(parts: &[EventPart]) -> Vec<&str> {
        parts.iter().filter_map(|part| Some(part.event.as_ref()?.id.rsplit_once('-')?.1)).collect()
    }

    #[test]
    fn a_reader_goes_on_behind_the_event_that_it_names() {
        let feed = Arc::<Feed>::default();
        (0..3).for_each(|_| zone(&feed, "example.org"));
        let all = kept(&feed, EventsAsked::default(), Role::Viewer);
        assert_eq!(ids(&all), ["1", "2", "3"]);
        assert!(all.last().is_some_and(|part| part.is_last));
        let first = all[0].event.as_ref().expect("an event").id.clone();
        let asked = EventsAsked { after: Some(first), ..EventsAsked::default() };
        let rest = kept(&feed, asked, Role::Viewer);
        assert_eq!((ids(&rest), rest[0].lost), (vec!["2", "3"], None));
    }

    #[test]
    fn settings_know_all_kinds() {
        assert_eq!(plan::jobs::EventKind::WORDS, EventOf::KINDS);
    }

    #[test]
    fn what_is_not_kept_is_lost_and_counted() {
        let feed = Arc::<Feed>::default();
        let mut slow = feed.read(&EventsAsked::default(), &somebody("slow", Role::Viewer)).expect("a reader");
        (0..EVENTS_MAX + 9).for_each(|_| zone(&feed, "example.org"));
        assert_eq!(slow.next().and_then(|part| part.lost), Some(EventsLost { events: Some(9) }));
        assert_eq!(
            slow.next().and_then(|part| part.event).map(|it| it.id),
            Some(format!("{}-10", feed.epoch))
        );
        assert_eq!(lock(&feed.ring).events.len(), EVENTS_MAX);
        let asked = EventsAsked { after: Some(format!("{}-4", feed.epoch)), ..EventsAsked::default() };
        let parts = kept(&feed, asked, Role::Viewer);
        assert_eq!(parts[0].lost, Some(EventsLost { events: Some(5) }));
        assert_eq!(ids(&parts).len(), EVENTS_MAX);
    }

    #[test]
    fn an_id_of_another_run_means_that_nobody_knows_what_is_lost() {
        let feed = Arc::<Feed>::default();
        zone(&feed, "example.org");
        for id in ["00-1".to_owned(), format!("{}-2", feed.epoch)] {
            let asked = EventsAsked { after: Some(id), ..EventsAsked::default() };
            let parts = kept(&feed, asked, Role::Viewer);
            assert_eq!((parts[0].lost, ids(&parts)), (Some(EventsLost { events: None }), vec!["1"]));
        }
        let asked = EventsAsked { after: Some("soon".to_owned()), ..EventsAsked::default() };
        assert!(feed.read(&asked, &somebody("anna", Role::Viewer)).is_err());
    }

    #[test]
    fn each_sees_the_kinds_that_are_wanted_and_allowed() {
        let feed = Arc::<Feed>::default();
        zone(&feed, "example.org");
        feed.tell(EventOf::Login(LoginEvent::default()));
        let of = |kind: &str| EventsAsked { kinds: vec![kind.to_owned()], ..EventsAsked::default() };
        assert_eq!(ids(&kept(&feed, EventsAsked::default(), Role::Admin)), ["1", "2"]);
        assert_eq!(ids(&kept(&feed, EventsAsked::default(), Role::Operator)), ["1"]);
        assert_eq!(ids(&kept(&feed, of("login"), Role::Admin)), ["2"]);
        let refused = |kind, role| feed.read(&of(kind), &somebody("anna", role)).err();
        assert!(matches!(refused("login", Role::Operator), Some(OperatorError::Forbidden(_))));
        assert!(matches!(refused("nonsense", Role::Admin), Some(OperatorError::Argument(_))));
    }

    #[test]
    fn readers_are_bounded_for_one_caller_and_for_all() {
        let feed = Arc::<Feed>::default();
        let read = |name: &str| feed.read(&EventsAsked::default(), &somebody(name, Role::Viewer));
        let mut open: Vec<_> = (0..READERS_OF_CALLER_MAX).map(|_| read("one").expect("a place")).collect();
        assert!(matches!(read("one").err(), Some(OperatorError::Busy(_))));
        open.extend((open.len()..READERS_MAX).map(|_| read("other").expect("a place")));
        assert!(read("third").is_err());
        drop(open.pop());
        assert!(read("third").is_ok());
        drop(open);
        assert!(lock(&feed.readers).is_empty());
    }
}
