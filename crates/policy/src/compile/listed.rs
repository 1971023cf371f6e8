//! The action that does what a list says: to steps.

use std::sync::Arc;

use diagnostic::Span;
use engine::ops::answer::{self, Build};
use engine::ops::rewrite::{Rewrite, Style, Targets};
use engine::ops::split::Rule;
use engine::program::Op;

use super::Emitter;
use super::answer::blocked;
use crate::action::Listed;

pub(super) fn emit(emitter: &mut Emitter<'_>, action: &Listed, place: Span) {
    // A set that does not exist was reported before.
    let Some(list) = emitter.environment.sets.any_list(&action.set.value) else { return };
    let mut block = blocked(&action.block);
    // Without words of the operator's, the client hears which list it was.
    if let Some((_, text)) = &mut block.ede
        && text.is_empty()
    {
        *text = format!("set {}", action.set.value).into();
    }
    let overrides = action.overrides;
    let aliases = (list.has_aliases() && !overrides).then(|| Arc::clone(&list));
    let labels = action.labels().and_then(|labels| super::event::labels(emitter, &labels));
    let style = Style::Cname { ttl: None, authoritative: block.authoritative };
    emitter.push(
        Op::Answer(Build::Listed(answer::Listed {
            list,
            block,
            overrides,
            by_address: action.by_address,
            labels,
        })),
        place,
    );
    if let Some(list) = aliases {
        let rewrite = Rewrite { targets: Targets::Listed(list), style };
        emitter.rest(Rule::Rewrite(Box::new(rewrite)), place);
    }
}
