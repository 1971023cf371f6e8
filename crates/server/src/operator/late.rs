//! What the store keeps beside settings and could not be read at the start, is read later.

use config::sets::Sets;
use environment::System;
use tracing::{error, info};

use super::{Operator, SERVER};

impl Operator {
    /// Returns whether something that is kept could not be read yet.
    pub(super) fn has_unread(&self, sets: &Sets) -> bool {
        self.components.own_lists.trouble().is_some()
            || self.bans.unread().is_some()
            || sets.dynamics().any(|(_, dynamic)| dynamic.trouble().is_some())
    }

    /// Reads again what could not be read: members of sets, bans, lists, and whom the store knows.
    /// It is in effect when this returns.
    pub(super) fn read_late(&self, sets: &Sets) {
        for (name, dynamic) in sets.dynamics() {
            if dynamic.trouble().is_some() && dynamic.read_again(&System) {
                info!(set = name, "the members that were kept can be read again");
            }
        }
        let authority = self.changing.authority();
        if self.bans.unread().is_some() && self.bans.read_again(authority, super::unix_seconds()) {
            info!("bans can be read again");
        }
        if self.components.own_lists.trouble().is_none() {
            return;
        }
        // That it cannot be read is in the status.
        let Ok(names) = self.components.own_lists.read_again(authority) else { return };
        info!(lists = names.len(), "what is kept beside the settings can be read again");
        self.read_tokens();
        self.read_accounts();
        self.read_sessions();
        let mut sets: Vec<String> = names.iter().flat_map(|name| self.sets_with(name)).collect();
        sets.sort_unstable();
        sets.dedup();
        for set in sets {
            let outcome = self.set_reload(&set);
            if let Err(why) = &outcome {
                error!(set, %why, "the set stays without its lists that are kept beside the settings");
            }
            let words = ("list-update", set.as_str());
            self.audit(SERVER, words, if outcome.is_ok() { "accepted" } else { "refused" });
        }
    }
}
