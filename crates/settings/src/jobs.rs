//! Effects, schedules and their texts as written, with their places; what the jobs run on is
//! [`plan::jobs`].

use diagnostic::At;
use diagnostic::suggest::{nearest, one_of};
use plan::jobs::{Effect, EffectKind, Field, Jobs, Schedule, Task, Template, UnknownField};
use policy::Action;
use policy::action::Event;
use values::{Misread, Read};

use crate::groups::Settings;

/// An effect as written.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectSettings {
    /// Its name.
    pub name: At<String>,
    /// How many queries may wait for it.
    pub queue: usize,
    /// What it does.
    pub kind: EffectKind,
}

impl EffectSettings {
    /// Returns the effect without its place.
    pub fn plan(&self) -> Effect {
        Effect { name: self.name.value.clone(), queue: self.queue, kind: self.kind.clone() }
    }
}

/// A schedule as written.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleSettings {
    /// Its name.
    pub name: String,
    /// When, in the form of cron, with five fields.
    pub at: At<String>,
    /// The time zone that means; `None`: the machine's own.
    pub time_zone: Option<At<String>>,
    /// What.
    pub tasks: Vec<At<Task>>,
}

impl ScheduleSettings {
    /// Returns the schedule without its places.
    pub fn plan(&self) -> Schedule {
        Schedule {
            name: self.name.clone(),
            at: self.at.value.clone(),
            time_zone: self.time_zone.as_ref().map(|zone| zone.value.clone()),
            tasks: self.tasks.iter().map(|task| task.value.clone()).collect(),
        }
    }
}

/// Returns what the settings ask of the jobs; the policies add events to it.
pub fn plan(settings: &Settings) -> Jobs {
    Jobs {
        effects: settings.effects.iter().map(EffectSettings::plan).collect(),
        schedules: settings.schedules.iter().map(ScheduleSettings::plan).collect(),
        recorder: settings.recorder.clone(),
        resolvers: settings.server_resolvers.clone(),
        audit_sinks: settings.audit_sinks.clone(),
        webhooks: settings.webhooks.clone(),
        ..Jobs::default()
    }
}

/// Returns whether any effect changes the packet filter of this machine, which takes a capability.
pub fn touches_packet_filter(settings: &Settings) -> bool {
    let is_filter = |kind: &EffectKind| matches!(kind, EffectKind::Nftset(_) | EffectKind::Ipset(_));
    let rules = settings.policies.iter().flat_map(|policy| &policy.rules);
    settings.effects.iter().any(|effect| is_filter(&effect.kind))
        || rules
            .flat_map(|rule| &rule.actions)
            .any(|action| matches!(&action.value, Action::Event(Event::Inline(_, kind)) if is_filter(kind)))
}

/// Reads a template such as `https://example.org/{name}`.
pub fn template(text: &str) -> Read<Template> {
    Template::parse(text).map_err(|unknown| {
        let UnknownField { at, word } = &unknown;
        let words: Vec<&str> = Field::WORDS.iter().map(|(word, ..)| *word).collect();
        Misread {
            at: at.clone(),
            message: unknown.to_string(),
            expected: Some(one_of(&words)),
            hint: nearest(word, words.iter().copied()).map(|near| format!("did you mean \"{near}\"?")),
        }
    })
}

/// Reads `refresh(sets)`, `refresh(NAME)`, `dump(caches)`, `dump(NAME)` or `effect(NAME)`.
pub fn task(text: &str) -> Read<Task> {
    const EXPECTED: &str = "refresh(sets), refresh(NAME), dump(caches), dump(NAME) or effect(NAME)";
    let wrong = |at: std::ops::Range<usize>| Misread {
        at,
        message: format!("\"{text}\" is nothing that can be done at a time"),
        expected: Some(EXPECTED.to_owned()),
        hint: None,
    };
    let split = text.split_once('(').and_then(|(word, rest)| Some((word, rest.strip_suffix(')')?)));
    let Some((word, inside)) = split else { return Err(wrong(0..text.len())) };
    let name = inside.trim();
    let start = name.as_ptr() as usize - text.as_ptr() as usize;
    let name = values::identifier(name)
        .map_err(|misread| Misread { at: start + misread.at.start..start + misread.at.end, ..misread })?;
    let or_all = |all: &str| (name != all).then(|| name.to_owned());
    match word.trim() {
        "refresh" => Ok(Task::Refresh(or_all("sets"))),
        "dump" => Ok(Task::Dump(or_all("caches"))),
        "effect" => Ok(Task::Effect(name.to_owned())),
        _ => Err(wrong(0..word.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_read() {
        for text in ["refresh(sets)", "refresh(ads)", "dump(caches)", "dump(main)", "effect(hook)"] {
            assert_eq!(task(text).map(|task| task.to_string()), Ok(text.to_owned()));
        }
        for text in ["refresh", "refresh()", "play(x)", "effect(a", ""] {
            assert!(task(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_field_that_is_nearly_one_is_suggested() {
        let misread = template("x {nme}").expect_err("there is no such field");
        assert_eq!((misread.at, misread.hint.as_deref()), (3..6, Some("did you mean \"name\"?")));
    }
}
