//! Turns text into settings, and settings into plans; says everything that is wrong at once.
//!
//! Never touches a socket, and never guesses: a value it does not understand is an error with a
//! place.

#![forbid(unsafe_code)]

pub mod compile;
pub mod jobs;
mod link;
pub mod load;
mod lower;
mod origin;
pub mod print;
mod secrets;
pub mod sets;
pub mod settings;
pub mod zones;

pub use compile::{
    Listening, OwnCertificate, Plans, Prepared, compile, devices, files_of_set, listening, prepare,
    upstream_descriptors, watched, workers,
};
pub use load::{Loaded, built_in, load, load_in, load_text, load_unbound, load_unbound_in};
pub use lower::{named_file, server};
pub use origin::Origin;
pub use secrets::keys as secret_keys;
pub use settings::{NeedsRestart, Settings, diff};
