//! No list makes its reader panic, whatever its format says it is.

use std::time::Duration;

use config::settings::{ListFormat, ListPlace, SetList};
use diagnostic::{At, Span};

/// A list: an octet that says in which format, and its text.
pub fn lists(bytes: &[u8]) {
    let Some((&number, octets)) = bytes.split_first() else { return };
    let word = ListFormat::WORDS[usize::from(number) % ListFormat::WORDS.len()];
    let Some(format) = ListFormat::parse(word) else { return };
    // Half of the time one part of the list is selected.
    let select = if number >= 128 && format.has_parts() { vec!["cn".to_owned()] } else { Vec::new() };
    let list = SetList {
        span: Span::BUILT_IN,
        format,
        place: ListPlace::File("list".into()),
        select: select.into_iter().map(|value| At { value, span: Span::BUILT_IN }).collect(),
        refresh: None,
        timeout: Duration::from_secs(1),
        octets_max: 1 << 20,
        is_strict: octets.len() % 2 == 0,
    };
    if let Err(why) = config::sets::check_list(&list, octets.to_vec()) {
        assert!(!why.is_empty(), "a refusal has a reason");
    }
}
