//! Measures DNS servers side by side: an echo, a stub upstream, a simulated internet, a load
//! generator, scenarios, reports.
//!
//! Never prints a figure of a server whose answers were not found right first.

pub mod certificate;
pub mod changes;
pub mod echo;
pub mod frames;
pub mod histogram;
pub mod in_place;
pub mod install;
pub mod load;
pub mod pair;
pub mod probe;
pub mod process;
pub mod queries;
pub mod quota;
pub mod report;
pub mod rival;
pub mod rules;
pub mod scenario;
pub mod session;
pub mod stub;
pub mod stub_https;
pub mod sys;
pub mod transfer;
pub mod world;
