//! The built program and its upstreams: plain and encrypted, sound and faulty.

mod attacks;
mod authorities;
mod beside_unbound;
mod derived;
mod faults;
mod forwarding;
mod memory;
mod opportunistic;
mod others;
mod own_zones;
mod recursion;
mod rules;
mod scripted;
mod sealed;
mod second_level;
mod subnets;
mod tls;
mod unbound_words;
