//! No zone file makes its reader, the compiler or an answer panic, and what is printed reads back.
#![no_main]

#[path = "../src/zone.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| target::zone_file(bytes));
