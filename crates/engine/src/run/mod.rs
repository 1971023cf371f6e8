//! One query on its way through its program, and what is kept of it while it waits.

pub(crate) mod buffers;
pub(crate) mod context;
mod interpret;
pub(crate) mod memo;
pub(crate) mod proof;
pub(crate) mod splits;
pub(crate) mod state;
pub(crate) mod suspended;
pub(crate) mod want;
