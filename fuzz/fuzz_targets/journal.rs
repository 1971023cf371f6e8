//! No file of a journal makes its reader panic, and what was read reads the same again.
#![no_main]

#[path = "../src/between.rs"]
#[allow(dead_code)]
mod target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| target::journal(bytes));
