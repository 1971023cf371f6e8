//! No list makes its reader panic, whatever its format says it is.

use lists::{List, ListFormat};

/// A list: an octet that says in which format, and its text.
pub fn lists(bytes: &[u8]) {
    let Some((&number, octets)) = bytes.split_first() else { return };
    let word = ListFormat::WORDS[usize::from(number) % ListFormat::WORDS.len()];
    let Some(format) = ListFormat::parse(word) else { return };
    // Half of the time one part of the list is selected.
    let select = if number >= 128 && format.has_parts() { vec!["cn"] } else { Vec::new() };
    let list = List { format, select, is_own: octets.len() % 2 == 0 };
    if let Err(why) = list.check(octets.to_vec()) {
        assert!(!why.is_empty(), "a refusal has a reason");
    }
}
