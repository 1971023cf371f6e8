//! Actions that tell somebody about the query: to steps.

use diagnostic::{Problem, Span};
use engine::events::{LABELS_MAX, LabelId, TellId};
use engine::ops::event::EventStep;
use engine::program::Op;
use plan::jobs::{Effect, Jobs, Learn, Tell};

use super::Emitter;
use crate::jobs::{EffectSettings, ScheduleSettings};
use crate::policy::Action;
use crate::policy::action::Event;
use crate::settings::Settings;

/// Things that can be told about, over all configurations of one process.
const TELLS_MAX: usize = 4096;
/// Queries that may wait for an effect that is written into a rule.
const INLINE_QUEUE: usize = 1024;

/// What can be told about, and by which number. Numbers keep their meaning while the process lives.
#[derive(Clone, Default)]
pub(crate) struct Numbers {
    tells: Vec<Tell>,
    labels: Vec<String>,
}

impl Numbers {
    /// Gives a number to everything that the policies tell, and says what the jobs run on.
    pub(crate) fn extend(&mut self, settings: &Settings, problems: &mut Vec<Problem>) -> Jobs {
        let mut effects: Vec<Effect> = settings.effects.iter().map(EffectSettings::plan).collect();
        if settings.recorder.is_some() {
            self.number(&Tell::Record);
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
            tells: self.tells.clone(),
            resolvers: settings.resolvers.clone(),
            labels: self.labels.clone(),
        }
    }

    fn number(&mut self, tell: &Tell) -> Option<TellId> {
        if let Some(id) = id(&self.tells, tell) {
            return Some(id);
        }
        (self.tells.len() < TELLS_MAX).then(|| self.tells.push(tell.clone()))?;
        id(&self.tells, tell)
    }
}

fn id(tells: &[Tell], tell: &Tell) -> Option<TellId> {
    let at = tells.iter().position(|known| known == tell)?;
    u16::try_from(at).ok().map(TellId)
}

/// Returns what an action tells.
fn tell(event: &Event) -> Option<Tell> {
    match event {
        Event::Effect(name) => Some(Tell::Effect(name.value.clone())),
        Event::Inline(text, _) => Some(Tell::Effect(text.clone())),
        Event::Record => Some(Tell::Record),
        Event::Log(text) => Some(Tell::Log(text.clone())),
        Event::Learn(set, what) => Some(Tell::Learn(Learn { set: set.value.clone(), what: *what })),
        Event::Label(_) => None,
    }
}

/// Returns the step that tells `tell`.
fn step(jobs: &Jobs, tell: &Tell) -> Option<EventStep> {
    let share = match (tell, &jobs.recorder) {
        (Tell::Record, None) => return None,
        (Tell::Record, Some(recorder)) if recorder.share_percent < 100 => {
            Some((u64::from(recorder.share_percent) * (1 << 32) / 100) as u32)
        }
        _ => None,
    };
    let is_urgent = match tell {
        Tell::Effect(name) => {
            jobs.effects.iter().any(|effect| effect.name == *name && effect.kind.is_urgent())
        }
        Tell::Learn(_) => true,
        Tell::Record | Tell::Log(_) => false,
    };
    Some(EventStep::Tell { id: id(&jobs.tells, tell)?, share, is_urgent })
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
        && let Some(step) = step(jobs, &Tell::Record)
    {
        emitter.push(Op::Event(step), Span::BUILT_IN);
    }
}
