//! A PROXY header is read whole, refused, or waited for; what follows it is untouched.

use listen::proxy::{Unread, parse};

/// The octets that a connection begins with.
pub fn proxy(bytes: &[u8]) {
    match parse(bytes) {
        Ok((_, rest)) => assert!(bytes.ends_with(rest) && rest.len() < bytes.len()),
        Err(Unread::Incomplete | Unread::Malformed) => {}
    }
}
