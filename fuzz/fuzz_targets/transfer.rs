//! No transfer makes its receiver panic, and what it makes of one is a zone.
#![no_main]

#[path = "../src/between.rs"]
#[allow(dead_code)]
mod target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| target::transfer(bytes));
