//! A name reads back from its text as the same octets, and a text that is a name does so too.
#![no_main]

use wire::{Name, NameBuf};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok((name, _)) = Name::parse(bytes) {
        let read = NameBuf::from_text(&name.to_string()).expect("our own text");
        assert_eq!(read.as_name().as_bytes(), name.as_bytes());
        assert_eq!(name.labels().count(), name.label_count());
        assert!(name.is_at_or_below(name.suffix(1)) && name.is_at_or_below(Name::ROOT));
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(name) = NameBuf::from_text(text)
    {
        let (parsed, rest) = Name::parse(name.as_name().as_bytes()).expect("a name");
        assert!(parsed == name.as_name() && rest.is_empty());
        let again = NameBuf::from_text(&name.to_string()).expect("our own text");
        assert_eq!(again.as_name().as_bytes(), name.as_name().as_bytes());
    }
});
