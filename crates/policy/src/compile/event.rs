//! Actions that emit an event: to steps.

use diagnostic::{Problem, Span};
use engine::ops::event::EventStep;
use engine::program::Op;
use events::{EventId, LABELS_MAX, LabelId};
use plan::jobs::{Effect, EventAction, Jobs, Learn};

use super::Emitter;
use crate::action::Event;
use crate::{Action, Policy};

/// Different events, over all configurations of one process.
const EVENTS_MAX: usize = 4096;
/// Queries that may wait for an effect that is written into a rule.
const INLINE_QUEUE: usize = 1024;

/// Numbers of the events that policies emit. They keep their meaning while the process lives.
#[derive(Clone, Default)]
pub struct Numbers {
    event_set: Vec<EventAction>,
    labels: Vec<String>,
}

impl Numbers {
    /// Gives a number to every event that the policies emit, and adds to the jobs of the settings
    /// what the policies ask of them: events, labels, and effects that are written into a rule.
    pub fn extend(&mut self, policies: &[Policy], mut jobs: Jobs, problems: &mut Vec<Problem>) -> Jobs {
        if jobs.recorder.is_some() {
            self.number(&EventAction::Record);
        }
        for action in policies.iter().flat_map(|policy| &policy.rules).flat_map(|rule| &rule.actions) {
            let has_number = match &action.value {
                Action::Event(Event::Label(label)) => self.label(label),
                Action::Event(event) => emitted(event).is_none_or(|event| self.number(&event).is_some()),
                Action::Listed(listed) => listed.labels().iter().flatten().all(|label| self.label(label)),
                _ => continue,
            };
            if !has_number {
                let message =
                    "too many different things are told; some come from configurations before this one";
                problems.push(Problem::error(action.span, message).hint("start the server again"));
            }
            match &action.value {
                Action::Event(Event::Inline(text, kind))
                    if jobs.effects.iter().all(|effect| effect.name != *text) =>
                {
                    jobs.effects.push(Effect { name: text.clone(), queue: INLINE_QUEUE, kind: kind.clone() });
                }
                Action::Event(Event::Record) if jobs.recorder.is_none() => problems.push(
                    Problem::warning(action.span, "\"record\" is ignored: nothing is recorded")
                        .hint("set \"file\" in the section \"recorder\""),
                ),
                _ => {}
            }
        }
        Jobs { event_set: self.event_set.clone(), labels: self.labels.clone(), ..jobs }
    }

    /// Gives a number to a label; false if there are too many.
    fn label(&mut self, label: &str) -> bool {
        if !self.labels.iter().any(|known| known == label) {
            self.labels.push(label.to_owned());
        }
        self.labels.len() <= LABELS_MAX
    }

    fn number(&mut self, event: &EventAction) -> Option<EventId> {
        if let Some(id) = id(&self.event_set, event) {
            return Some(id);
        }
        (self.event_set.len() < EVENTS_MAX).then(|| self.event_set.push(event.clone()))?;
        id(&self.event_set, event)
    }
}

fn id(event_set: &[EventAction], event: &EventAction) -> Option<EventId> {
    let at = event_set.iter().position(|known| known == event)?;
    u16::try_from(at).ok().map(EventId)
}

/// Returns the event that an action emits.
fn emitted(event: &Event) -> Option<EventAction> {
    match event {
        Event::Effect(name) => Some(EventAction::Effect(name.value.clone())),
        Event::Inline(text, _) => Some(EventAction::Effect(text.clone())),
        Event::Record => Some(EventAction::Record),
        Event::Log(text) => Some(EventAction::Log(text.clone())),
        Event::Lines(lines) => Some(EventAction::Lines(lines.clone())),
        Event::Learn(set, what) => Some(EventAction::Learn(Learn { set: set.value.clone(), what: *what })),
        Event::Label(_) => None,
    }
}

/// Returns the step that emits an event.
fn step(jobs: &Jobs, event: &EventAction) -> Option<EventStep> {
    let share = match (event, &jobs.recorder) {
        (EventAction::Record, None) => return None,
        (EventAction::Record, Some(recorder)) if recorder.share_percent < 100 => {
            Some((u64::from(recorder.share_percent) * (1 << 32) / 100) as u32)
        }
        _ => None,
    };
    let is_urgent = match event {
        EventAction::Effect(name) => {
            jobs.effects.iter().any(|effect| effect.name == *name && effect.kind.is_urgent())
        }
        EventAction::Learn(_) => true,
        EventAction::Record | EventAction::Log(_) | EventAction::Lines(_) => false,
    };
    Some(EventStep::Emit { id: id(&jobs.event_set, event)?, share, is_urgent })
}

/// Returns the numbers of labels; `None` if one has none, which was reported.
pub(super) fn labels<const N: usize>(emitter: &Emitter<'_>, labels: &[String; N]) -> Option<[LabelId; N]> {
    let mut ids = [LabelId(0); N];
    for (id, label) in ids.iter_mut().zip(labels) {
        *id = label_id(emitter.environment.jobs, label)?;
    }
    Some(ids)
}

fn label_id(jobs: &Jobs, label: &str) -> Option<LabelId> {
    let at = jobs.labels.iter().position(|known| known == label)?;
    u16::try_from(at).ok().map(LabelId)
}

pub(super) fn emit(emitter: &mut Emitter<'_>, action: &Event, place: Span) {
    let jobs = emitter.environment.jobs;
    let step = match action {
        Event::Label(label) => label_id(jobs, label).map(EventStep::Count),
        event => emitted(event).and_then(|event| step(jobs, &event)),
    };
    if let Some(step) = step {
        emitter.push(Op::Event(step), place);
    }
}

/// Writes the step that records every query, if that is wanted.
pub(super) fn record_all(emitter: &mut Emitter<'_>) {
    let jobs = emitter.environment.jobs;
    if jobs.recorder.as_ref().is_some_and(|recorder| recorder.records_all)
        && let Some(step) = step(jobs, &EventAction::Record)
    {
        emitter.push(Op::Event(step), Span::BUILT_IN);
    }
}
