//! Who watches queries on their way: through one trait, and none of it changes what becomes of a
//! query.

pub mod explain;
mod path;
pub mod trace;
