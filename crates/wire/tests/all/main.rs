//! DNS octets as other implementations read and write them, and what holds for every input.

mod normalise;
mod oracles;
mod presentation;
mod properties;
mod support;
