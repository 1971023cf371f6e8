//! What is printed from the table of settings: the manual, a file to begin with, the settings in
//! force, and a schema for editors.

mod json_schema;
mod man;
mod manual;
mod settings;
#[cfg(test)]
mod unbound_keywords;

pub use json_schema::json_schema;
pub use man::man_page;
pub use manual::manual;
pub use settings::{defaults, show, show_json};
pub(crate) use settings::{flow, key_text};

/// Breaks `text` into lines of at most `width` characters where it can; a longer word stands alone.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
