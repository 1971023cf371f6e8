//! The built program as its user meets it.

#![allow(clippy::print_stderr, reason = "what a test says goes there")]

mod asking;
mod commands;
mod first_run;
mod harness;
mod manual;
mod readme;
mod serving;
mod starters;
mod unbound;
mod unbound_control;
mod unbound_hostile;
mod unbound_machines;
mod unbound_process;
mod unbound_programs;
mod unbound_views;
