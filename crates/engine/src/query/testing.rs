//! What the tests of this crate share.

use wire::NameBuf;

/// Returns the name written as `text`; no escapes.
pub(crate) fn name(text: &str) -> NameBuf {
    let mut name = NameBuf::root();
    for label in text.split('.').filter(|label| !label.is_empty()) {
        name.push_label(label.as_bytes()).expect("a name that fits");
    }
    name
}
