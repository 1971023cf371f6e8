//! The crate's public face.

mod ask;
mod pool;
