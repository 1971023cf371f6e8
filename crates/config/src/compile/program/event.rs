//! Actions that tell somebody about the query: to steps.

use super::Emitter;
use crate::policy::action::Event;
use crate::source::Span;

pub(super) fn emit(_: &mut Emitter<'_>, action: &Event, _: Span) {
    match *action {}
}
