//! Actions that tell somebody about the query: to steps.

use diagnostic::{Problem, Span};
use engine::events::{EventId, LABELS_MAX, LabelId};
use engine::ops::event::EventStep;
use engine::program::Op;
use plan::jobs::{Effect, EventAction, Jobs, Learn};

use super::Emitter;
use crate::jobs::{EffectSettings, ScheduleSettings};
use crate::policy::Action;
use crate::policy::action::Event;
use crate::settings::Settings;

/// Things that can be told about, over all configurations of one process.
const EVENTS_MAX: usize = 4096;
/// Queries that may wait for an effect that is written into a rule.
const INLINE_QUEUE: usize = 1024;

/// What can be told about, and by which number. Numbers keep their meaning while the process lives.
#[derive(Clone, Default)]
pub(crate) struct Numbers {
    event_set: Vec<EventAction>,
    labels: Vec<String>,
}

impl Numbers {
    /// Gives a number to everything that the policies tell, and says what the jobs run on.
    pub(crate) fn extend(&mut self, settings: &Settings, problems: &mut Vec<Problem>) -> Jobs {
        let mut effects: Vec<Effect> = settings.effects.iter().map(EffectSettings::plan).collect();
        if settings.recorder.is_some() {
            self.number(&EventAction::Record);
        }
        for action in settings.policies.iter().flat_map(|policy| &policy.rules).flat_map(|rule| &rule.actions)
        {
            let Action::Event(event) = &action.value else { continue };
            let has_number = match event {
                Event::Label(label) => {
                    if !self.labels.contains(label) {
                        self.labels.push(label.clone());
                    }
                    self.labels.len() <= LABELS_MAX
                }
                event => tell(event).is_none_or(|tell| self.number(&tell).is_some()),
            };
            if !has_number {
                let message =
                    "too many different things are told; some come from configurations before this one";
                problems.push(Problem::error(action.span, message).hint("start the server again"));
            }
            match event {
                Event::Inline(text, kind) if effects.iter().all(|effect| effect.name != *text) => {
                    effects.push(Effect { name: text.clone(), queue: INLINE_QUEUE, kind: kind.clone() });
                }
                Event::Record if settings.recorder.is_none() => problems.push(
                    Problem::warning(action.span, "\"record\" is ignored: nothing is recorded")
                        .hint("set \"file\" in the section \"recorder\""),
                ),
                _ => {}
            }
        }
        Jobs {
            effects,
            schedules: settings.schedules.iter().map(ScheduleSettings::plan).collect(),
            recorder: settings.recorder.clone(),
            event_set: self.event_set.clone(),
            resolvers: settings.resolvers.clone(),
            labels: self.labels.clone(),
        }
    }

    fn number(&mut self, tell: &EventAction) -> Option<EventId> {
        if let Some(id) = id(&self.event_set, tell) {
            return Some(id);
        }
        (self.event_set.len() < EVENTS_MAX).then(|| self.event_set.push(tell.clone()))?;
        id(&self.event_set, tell)
    }
}

fn id(event_set: &[EventAction], tell: &EventAction) -> Option<EventId> {
    let at = event_set.iter().position(|known| known == tell)?;
    u16::try_from(at).ok().map(EventId)
}

/// Returns what an action tells.
fn tell(event: &Event) -> Option<EventAction> {
    match event {
        Event::Effect(name) => Some(EventAction::Effect(name.value.clone())),
        Event::Inline(text, _) => Some(EventAction::Effect(text.clone())),
        Event::Record => Some(EventAction::Record),
        Event::Log(text) => Some(EventAction::Log(text.clone())),
        Event::Learn(set, what) => Some(EventAction::Learn(Learn { set: set.value.clone(), what: *what })),
        Event::Label(_) => None,
    }
}

/// Returns the step that emits `tell`.
fn step(jobs: &Jobs, tell: &EventAction) -> Option<EventStep> {
    let share = match (tell, &jobs.recorder) {
        (EventAction::Record, None) => return None,
        (EventAction::Record, Some(recorder)) if recorder.share_percent < 100 => {
            Some((u64::from(recorder.share_percent) * (1 << 32) / 100) as u32)
        }
        _ => None,
    };
    let is_urgent = match tell {
        EventAction::Effect(name) => {
            jobs.effects.iter().any(|effect| effect.name == *name && effect.kind.is_urgent())
        }
        EventAction::Learn(_) => true,
        EventAction::Record | EventAction::Log(_) => false,
    };
    Some(EventStep::Emit { id: id(&jobs.event_set, tell)?, share, is_urgent })
}

pub(super) fn emit(emitter: &mut Emitter<'_>, action: &Event, place: Span) {
    let jobs = emitter.parts.jobs;
    let step = match action {
        Event::Label(label) => {
            let at = jobs.labels.iter().position(|known| known == label);
            at.and_then(|at| u16::try_from(at).ok()).map(|at| EventStep::Count(LabelId(at)))
        }
        event => tell(event).and_then(|tell| step(jobs, &tell)),
    };
    if let Some(step) = step {
        emitter.push(Op::Event(step), place);
    }
}

/// Writes the step that records every query, if that is wanted.
pub(super) fn record_all(emitter: &mut Emitter<'_>) {
    let jobs = emitter.parts.jobs;
    if jobs.recorder.as_ref().is_some_and(|recorder| recorder.records_all)
        && let Some(step) = step(jobs, &EventAction::Record)
    {
        emitter.push(Op::Event(step), Span::BUILT_IN);
    }
}
