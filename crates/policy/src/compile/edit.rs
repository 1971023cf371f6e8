//! Actions that change the answer there is: to steps.

use std::sync::Arc;

use diagnostic::Span;
use engine::edit::SvcKeys;
use engine::ops::edit as steps;
use engine::ops::ttl::TtlRule;
use engine::program::Op;
use wire::Ttl;

use super::Emitter;
use crate::TtlChange;
use crate::action::Addresses;
use crate::action::edit::{Edit, Rebind, Selection, Sort};
use values::ttl;

pub(super) fn emit(emitter: &mut Emitter<'_>, action: &Edit, place: Span) {
    let step = match action {
        Edit::Ttl(change) => {
            let rule = match change {
                TtlChange::Fixed(time) => TtlRule::Fixed(ttl(*time)),
                TtlChange::Clamped { min, max } => TtlRule::Clamped {
                    min: min.map_or(Ttl::ZERO, ttl),
                    max: max.map_or(Ttl::new(i32::MAX as u32), ttl),
                },
                TtlChange::Jitter(percent) => {
                    return emitter.push(Op::Edit(steps::Edit::Jitter(*percent)), place);
                }
            };
            return emitter.push(Op::Ttl(rule), place);
        }
        Edit::Remove(what) => steps::Edit::Remove(selection(emitter, what)),
        Edit::Keep(what) => steps::Edit::Keep(selection(emitter, what)),
        Edit::Flatten => steps::Edit::Flatten,
        Edit::Strip(keys) => {
            let with = |all: SvcKeys, key: &wire::rdata::SvcKey| all.with(*key).unwrap_or(all);
            steps::Edit::StripParams(keys.iter().fold(SvcKeys::default(), with))
        }
        Edit::Sort(Sort::Client) => steps::Edit::SortByClient,
        Edit::Sort(Sort::Preferred(list)) => {
            steps::Edit::Sort(list.iter().map(|addresses| emitter.addresses(addresses)).collect())
        }
        Edit::Shuffle => steps::Edit::Shuffle,
        Edit::Limit(limit) => steps::Edit::Limit(*limit),
        Edit::Rebind(Rebind { private, except, instead }) => {
            // What names of strangers have no business with: also "this network" (RFC 1122
            // §3.2.1.3).
            let usual = || {
                let mut prefixes = values::prefix_word("lan");
                prefixes.extend(["0.0.0.0/8", "::/128"].iter().filter_map(|text| values::prefix(text).ok()));
                Addresses { prefixes, sets: Vec::new() }
            };
            let private = match private {
                Some(private) => emitter.addresses(private),
                None => emitter.addresses(&usual()),
            };
            let except = (!except.is_empty()).then(|| emitter.names(except));
            steps::Edit::Rebind(steps::Rebind { private, except, instead: *instead })
        }
        Edit::Ede(code, text) => steps::Edit::Ede(*code, text.as_str().into()),
        Edit::Remember { time, .. } => match emitter.environment.reverse {
            Some(table) => steps::Edit::Remember(Arc::clone(table), ttl(*time).seconds()),
            None => return,
        },
    };
    emitter.push(Op::Edit(step), place);
}

fn selection(emitter: &Emitter<'_>, selection: &Selection) -> steps::Selection {
    match selection {
        Selection::Types(types) => steps::Selection::Types(types.as_slice().into()),
        Selection::Addresses(addresses) => steps::Selection::Addresses(emitter.addresses(addresses)),
    }
}
