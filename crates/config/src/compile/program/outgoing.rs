//! Actions that change the query that is sent to upstreams: to steps.

use super::Emitter;
use crate::policy::action::Outgoing;
use crate::source::Span;

pub(super) fn emit(_: &mut Emitter<'_>, action: &Outgoing, _: Span) {
    match *action {}
}
