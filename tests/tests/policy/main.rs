//! The built program's policy as clients and operators meet it: language, actions, sets, lists,
//! jobs, imports.

mod actions;
mod import;
mod inventory;
mod jobs;
mod language;
mod lists;
mod own_lists;
mod policy_zones;
mod recorder;
mod sets;
mod splits;
mod zones;
