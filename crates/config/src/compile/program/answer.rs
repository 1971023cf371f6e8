//! Actions that make an answer: to steps.

use engine::program::Op;

use super::Emitter;
use crate::policy::action::Answer;
use crate::source::Span;

pub(super) fn emit(emitter: &mut Emitter<'_>, action: &Answer, place: Span) {
    match action {
        Answer::Hosts => {
            if let Some(hosts) = &emitter.parts.names.hosts {
                emitter.push(Op::Local(hosts.clone()), place);
            }
        }
        Answer::Local => emitter.push(Op::Local(emitter.parts.names.local.clone()), place),
        Answer::Reject(rcode) => emitter.push(Op::Reject(*rcode, None), place),
        Answer::Drop => emitter.push(Op::Drop, place),
    }
}
