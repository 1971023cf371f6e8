//! Zones as their users see them: loaded, answered from, changed, printed.

mod agreement;
mod aliases;
mod answers;
mod checks;
mod printing;
mod properties;
mod records;
mod rfcs;
mod rrsets;
mod sharing;
mod specials;
mod support;
mod versions;
