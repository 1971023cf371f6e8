//! No update makes who carries it out panic, and what it changes is what it says.
#![no_main]

#[path = "../src/between.rs"]
#[allow(dead_code)]
mod target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| target::update(bytes));
