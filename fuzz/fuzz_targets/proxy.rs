//! A PROXY header is read whole, refused, or waited for; what follows it is untouched.
#![no_main]

use listen::proxy::{Unread, parse};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    match parse(bytes) {
        Ok((_, rest)) => assert!(bytes.ends_with(rest) && rest.len() < bytes.len()),
        Err(Unread::Incomplete | Unread::Malformed) => {}
    }
});
