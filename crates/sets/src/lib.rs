//! Tells whether a name or an address is in a set of millions of rules, and by which rule.
//!
//! Never allocates or waits while it is asked; never opens a file, reads a clock or keeps the text
//! of a rule.

#![deny(unsafe_code)]

mod addresses;
mod blocklist;
mod blocklist_builder;
mod builder;
mod changes;
mod changing;
mod dynamic;
mod epochs;
mod fingerprint;
mod literals;
mod live;
mod memory;
mod names;
mod patterns;
mod policy_zone;
mod prefixes;
mod reliance;
mod servers;
mod sought;
mod table;
mod zone_changes;

pub use addresses::{AddressSet, AddressSetBuilder};
pub use blocklist::{Asking, Blocklist, Class, Condition, ListedRecord, NameText, Ruling, Treatment};
pub use blocklist_builder::{BlocklistBuilder, Pattern, Trigger, ZoneBuilder};
pub use builder::{NameSetBuilder, check_regex};
pub use changes::Changes;
pub use changing::{ChangingNames, RulesOfName};
pub use dynamic::{Added, DynamicAddresses, DynamicNames};
pub use epochs::{Epochs, State};
pub use memory::{ask_for, ask_for_huge_pages};
pub use names::{Found, NameSet, RuleRef};
pub use patterns::{PatternError, REGEX_OCTETS_MAX};
pub use policy_zone::{PolicyZone, ServerRule};
pub use reliance::{CLASS_BITS, Reliance};
pub use servers::{KnownServers, NameServer, NameServers};
pub use sought::{Sought, top_bit};
pub use table::{Lookahead, Reach};
pub use zone_changes::{NameKind, PrefixKind, ZoneChanges};
