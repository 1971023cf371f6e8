//! What the record of queries and explanations call the steps of a policy.

use std::sync::Arc;

use diagnostic::{Sources, Span};
use engine::matchers::Matcher;
use engine::program::{Op, Program};
use plan::jobs::StepFacts;

/// Characters of a step's name.
const STEP_CHARACTERS_MAX: usize = 60;

/// Returns what each step of a program is called.
pub(super) fn names(program: &Program, places: &[Span], sources: &Sources) -> Arc<[String]> {
    let names = program.ops().iter().zip(places).map(|(op, place)| {
        let source = sources.file(place.file);
        let text = source.and_then(|source| source.part(*place));
        let (Some(source), Some(text)) = (source, text) else {
            return if matches!(op, Op::Event(_)) { "record" } else { "built in" }.to_owned();
        };
        let is_test = matches!(op, Op::SkipIf(..) | Op::SkipUnless(..) | Op::Seek(_));
        let mut name = format!("{}:", source.place(place.start).line);
        if is_test {
            name.push_str(" if");
        }
        for word in text.split_whitespace() {
            name.push(' ');
            name.push_str(word);
        }
        if let Some((at, _)) = name.char_indices().nth(STEP_CHARACTERS_MAX) {
            name.truncate(at);
            name.push('…');
        }
        // What separates the steps of a path.
        name.replace(';', ",")
    });
    names.collect()
}

/// Returns what the record of queries says of steps beside what they are called.
pub(super) fn facts(program: &Program, places: &[Span], sources: &Sources) -> StepFacts {
    // The number of a rule, and the step behind its last: what its conditions lead past.
    let (mut rule, mut end) = (0, 0);
    let mut facts = StepFacts::default();
    for (at, (op, place)) in program.ops().iter().zip(places).enumerate() {
        if at >= end {
            rule += 1;
        }
        facts.places.push((place_text(*place, sources), rule));
        let (Op::SkipIf(matcher, steps) | Op::SkipUnless(matcher, steps)) = op else { continue };
        end = end.max(at + 1 + usize::from(*steps));
        let labels = match matcher {
            Matcher::Qname(set) => set.labels(),
            Matcher::Listed(list) | Matcher::Ruled(list) => list.labels(),
            _ => continue,
        };
        labels.into_iter().for_each(|label| facts.add_list(label));
    }
    facts
}

/// Returns the file's name and the line of a place; nothing for what no file says.
fn place_text(place: Span, sources: &Sources) -> String {
    let Some(source) = sources.file(place.file).filter(|source| source.part(place).is_some()) else {
        return String::new();
    };
    let name = source.path.file_name().unwrap_or_default().to_string_lossy();
    format!("{name}:{}", source.place(place.start).line)
}
