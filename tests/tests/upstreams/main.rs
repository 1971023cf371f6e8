//! The built program and its upstreams: plain and encrypted, sound and faulty.

mod faults;
mod others;
mod rules;
mod sealed;
mod tls;
