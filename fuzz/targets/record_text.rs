//! A text that is data of a type reads back from what we show of it.
#![no_main]

use wire::{Rtype, rdata};

libfuzzer_sys::fuzz_target!(|input: (u16, &str)| {
    let (rtype, text) = (Rtype(input.0 % 300), input.1);
    let mut octets = Vec::new();
    if rdata::parse_text(rtype, text, Some(wire::Name::ROOT), &mut octets).is_err() {
        assert!(octets.is_empty(), "what is refused leaves nothing behind");
        return;
    }
    rdata::check(rtype, &octets, 0..octets.len()).expect("data that we read has the form of its type");
    let shown = rdata::display(rtype, &octets, 0..octets.len()).to_string();
    let mut again = Vec::new();
    rdata::parse_text(rtype, &shown, None, &mut again).expect("our own text");
    assert_eq!(octets, again, "{shown}");
});
