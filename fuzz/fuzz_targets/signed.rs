//! No message makes what checks signatures panic, and nobody without a key is believed.
#![no_main]

#[path = "../src/between.rs"]
#[allow(dead_code)]
mod target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| target::signed(bytes));
