//! Zones of the built program: served, signed, transferred, updated.

mod alias;
mod checks;
mod key_sets;
mod online;
mod peers;
mod served;
mod signed_by_command;
mod signed_by_server;
mod signed_by_token;
