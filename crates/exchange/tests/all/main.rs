//! The crate's public face.

mod ask;
mod authorities;
