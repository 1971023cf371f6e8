//! Turns text into settings; says everything that is wrong at once.
//!
//! Never touches a socket, and never guesses: a value it does not understand is an error with a
//! place.

#![forbid(unsafe_code)]

mod groups;
pub mod jobs;
mod link;
pub mod load;
mod lower;
mod origin;
pub mod overlay;
pub mod print;
mod secrets;

pub use groups::*;
pub use load::{Loaded, built_in, check_unbound, load, load_in, load_text, load_unbound, load_unbound_in};
pub use lower::{Known, added_zone, check_chosen, named_file, server};
pub use origin::Origin;
pub use secrets::keys as secret_keys;
pub use unbound::Changes;
