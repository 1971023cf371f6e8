//! What the tests of this crate share.

use wire::{Flags, Header, NameBuf, Rtype};

/// Returns the name written as `text`; no escapes.
pub(crate) fn name(text: &str) -> NameBuf {
    let mut name = NameBuf::root();
    for label in text.split('.').filter(|label| !label.is_empty()) {
        name.push_label(label.as_bytes()).expect("a name that fits");
    }
    name
}

/// Returns a query with RD set.
pub(crate) fn query(text: &str, qtype: Rtype) -> Vec<u8> {
    let header = Header { id: 0x1234, flags: Flags::RD, questions: 1, ..Header::default() };
    let mut bytes = header.to_bytes().to_vec();
    bytes.extend_from_slice(name(text).as_name().as_bytes());
    bytes.extend_from_slice(&qtype.0.to_be_bytes());
    bytes.extend_from_slice(&[0, 1]);
    bytes
}
