//! Turns settings into plans.
//!
//! Never touches a socket; says everything that is wrong at once, at its place.

#![forbid(unsafe_code)]

pub mod compile;
pub mod sets;
pub mod zones;

pub use compile::{
    Listening, OwnCertificate, Plans, Prepared, as_run, compile, devices, files_of_set, listening, prepare,
    resolvers_of_machine, upstream_descriptors, watched, workers,
};
