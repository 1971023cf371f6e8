//! Names as people and other programs read them.

use wire::Name;

/// Returns a name in lower case and without its final dot; the root is `.`.
pub fn name_text(name: Name<'_>) -> String {
    let mut text = name.to_string();
    text.make_ascii_lowercase();
    if text.len() > 1 && text.ends_with('.') && !text.ends_with("\\.") {
        text.pop();
    }
    text
}
