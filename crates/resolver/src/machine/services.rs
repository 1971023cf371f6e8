//! What clients of SVCB and HTTPS records ask for next (RFC 9460 §4.2): targets of aliases, and
//! addresses, in the additional section.
//!
//! Only what is known is given, so that it costs no query: who wants the rest asks for it, as
//! clients do at the same time anyway.

use cache::Security;
use wire::{Name, Rtype};

use super::{Resolver, TaskKey};
use crate::heap_name::{HeapName, HeapQuestion};
use crate::moment::Moment;
use crate::scrub::Set;
use crate::tables::Known;

/// RRsets that are added at most.
const SETS_MAX: usize = 8;
/// Records of one RRset whose targets are looked for.
const RECORDS_MAX: usize = 4;
/// Aliases that are followed.
const ALIASES_MAX: usize = 4;

impl Resolver {
    /// Adds to a task's answer, which has this set of SVCB or HTTPS records, what is known of their
    /// targets.
    pub(super) fn add_services(&mut self, key: TaskKey, set: &Set, now: Moment) {
        if !self.settings.service_addresses || !matches!(set.rtype, Rtype::SVCB | Rtype::HTTPS) {
            return;
        }
        let is_secure = set.security == Security::Secure;
        let mut added: Vec<Set> = Vec::new();
        let mut next = Some(set.clone());
        for _ in 0..=ALIASES_MAX {
            let Some(set) = next.take() else { break };
            for (is_alias, target) in set.data().take(RECORDS_MAX).filter_map(|data| target(&set.owner, data))
            {
                let wanted = if is_alias { &[set.rtype][..] } else { &[Rtype::A, Rtype::AAAA] };
                for &rtype in wanted {
                    let question =
                        HeapQuestion { name: target.clone(), rtype, unchecked: false, subnet: None };
                    let Some(Known::Data(found)) = self.memory.look(&question, now.seconds()) else {
                        continue;
                    };
                    let is_good = !is_secure || found.security == Security::Secure;
                    let is_new = !added.iter().any(|set| set.owner == found.owner && set.rtype == rtype);
                    if is_good && is_new && added.len() < SETS_MAX && (!is_alias || target != set.owner) {
                        if is_alias {
                            next = Some(found.clone());
                        }
                        added.push(found);
                    }
                }
            }
        }
        if let Some(task) = self.task_mut(key) {
            task.add_additional(&added);
        }
    }
}

/// Reads where a record leads, and whether it only is an alias; a target of the root is the owner
/// (RFC 9460 §2.5).
fn target(owner: &HeapName, data: &[u8]) -> Option<(bool, HeapName)> {
    let (priority, rest) = data.split_first_chunk::<2>()?;
    let (target, _) = Name::parse(rest).ok()?;
    let is_alias = *priority == [0, 0];
    match (is_alias, target.is_root()) {
        // It says that there is no service.
        (true, true) => None,
        (false, true) => Some((false, owner.clone())),
        (_, false) => Some((is_alias, HeapName::new(target))),
    }
}
