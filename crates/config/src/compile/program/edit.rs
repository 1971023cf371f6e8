//! Actions that change the answer there is: to steps.

use engine::ops::ttl::TtlRule;
use engine::program::Op;
use wire::Ttl;

use super::super::ttl;
use super::Emitter;
use crate::policy::TtlChange;
use crate::policy::action::Edit;
use crate::source::Span;

pub(super) fn emit(emitter: &mut Emitter<'_>, action: &Edit, place: Span) {
    match action {
        Edit::Ttl(change) => {
            let rule = match change {
                TtlChange::Fixed(time) => TtlRule::Fixed(ttl(*time)),
                TtlChange::Clamped { min, max } => TtlRule::Clamped {
                    min: min.map_or(Ttl::ZERO, ttl),
                    max: max.map_or(Ttl::new(i32::MAX as u32), ttl),
                },
            };
            emitter.push(Op::Ttl(rule), place);
        }
    }
}
