//! A reload: a configuration comes into use as one transaction over the parts that it changes.
//!
//! Every part prepares first: it starts and reads what it needs, says all that is in its way, and
//! changes nothing. If one cannot, what the others have prepared is dropped, and the server stays
//! as it was. If all can, all commit, which cannot fail, in the order of the list in `parts`.

mod parts;

use std::sync::Arc;

use config::Plans;
use diagnostic::Diagnostic;
use jobs::signing::Signing;
use settings::Loaded;
use zones::LoadedZones;

use crate::compile::Previous;
pub(crate) use parts::{Components, bring_into_use, bring_into_use_kept};

/// A configuration as the server runs on it.
pub(crate) struct Revision {
    /// One more than that of the revision before, from 1.
    pub(crate) number: u64,
    pub(crate) loaded: Arc<Loaded>,
    pub(crate) plans: Plans,
    pub(crate) zones: LoadedZones,
}

impl Revision {
    pub(crate) const fn as_previous(&self) -> Previous<'_> {
        Previous { plans: &self.plans, zones: &self.zones }
    }
}

/// Why a revision comes into use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It is the first.
    Start,
    /// The operator has the configuration read again.
    Reload,
    /// A file beside the configuration's own has changed.
    Files,
    /// The operator has laid changes over the configuration.
    Changes,
    /// Zones were signed or added. It is no revision of its own: zones have serials for that.
    Zones,
}

/// A revision that is compiled, with what was read for it, and is not in use yet.
pub(crate) struct Candidate {
    pub(crate) revision: Revision,
    pub(crate) cause: Cause,
    /// Zones that are to be signed; nothing if they are the same as before.
    pub(crate) signing: Option<jobs::signing::Prepared>,
    /// Who changed the configuration, if somebody did.
    pub(crate) by: Option<String>,
}

impl Candidate {
    /// Returns a candidate in which what was signed last is served until it is signed again.
    pub(crate) fn with_last_signed(signing: &Signing, mut revision: Revision, cause: Cause) -> Self {
        let prepared = signing.prepare(revision.zones.to_sign(), &revision.zones.plan().parents);
        // The engine answers from what the manager of zones publishes, so no policy is compiled
        // again for these.
        revision.zones.take_signed(prepared.last().map(Arc::clone));
        Self { revision, cause, signing: Some(prepared), by: None }
    }

    /// Returns it as a change of the configuration by `by`.
    pub(crate) fn by(self, by: &str) -> Self {
        Self { by: Some(by.to_owned()), ..self }
    }
}

/// Brings into use what a part has prepared; dropping it leaves everything as it was.
pub(crate) type Commit<'i> = Box<dyn FnOnce() + 'i>;

/// What a part is ready for, or all that is in its way.
pub(crate) type Prepared<'i> = Result<Commit<'i>, Vec<Diagnostic>>;

/// A part of the server that a configuration changes. `I` is what it prepares from.
pub(crate) struct Part<I> {
    /// What it is, for whoever reads the list.
    pub(crate) name: &'static str,
    pub(crate) prepare: for<'i> fn(&'i I) -> Prepared<'i>,
}

/// Why nothing has changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotCarriedOut<E> {
    /// What is in the way of parts.
    Found(Vec<Diagnostic>),
    /// It cannot be kept.
    NotKept(E),
}

/// Has all parts prepare, then all commit, in their order. Between the two, when nothing is in the
/// way any more, `keep` puts on the disk what must be there before it counts.
///
/// # Errors
///
/// What is in the way of any of them; then nothing has changed.
pub(crate) fn carry_out<I, E>(
    parts: &[Part<I>],
    input: &I,
    keep: impl FnOnce() -> Result<(), E>,
) -> Result<(), NotCarriedOut<E>> {
    let mut commits = Vec::with_capacity(parts.len());
    let mut found = Vec::new();
    for part in parts {
        match (part.prepare)(input) {
            Ok(commit) => commits.push(commit),
            Err(more) => {
                tracing::debug!(part = part.name, mistakes = more.len(), "not prepared");
                found.extend(more);
            }
        }
    }
    if !found.is_empty() {
        return Err(NotCarriedOut::Found(found));
    }
    keep().map_err(NotCarriedOut::NotKept)?;
    commits.into_iter().for_each(|commit| commit());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::path::PathBuf;

    use diagnostic::Severity;

    use super::*;

    /// What two parts work on, and whether others stand in the way.
    #[derive(Default)]
    struct Input {
        done: RefCell<Vec<&'static str>>,
        /// Prepared, and neither committed nor dropped.
        open: Cell<usize>,
        refused: Cell<bool>,
    }

    struct Open<'i>(&'i Cell<usize>);

    impl<'i> Open<'i> {
        fn new(count: &'i Cell<usize>) -> Self {
            count.set(count.get() + 1);
            Self(count)
        }
    }

    impl Drop for Open<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() - 1);
        }
    }

    fn ready<'i>(input: &'i Input, name: &'static str) -> Prepared<'i> {
        let open = Open::new(&input.open);
        Ok(Box::new(move || {
            let _open = open;
            input.done.borrow_mut().push(name);
        }))
    }

    fn refused<'i>(input: &'i Input, message: &str) -> Prepared<'i> {
        assert!(input.done.borrow().is_empty(), "nobody commits before all have prepared");
        Err(vec![Diagnostic {
            severity: Severity::Error,
            file: PathBuf::new(),
            line: 0,
            column: 0,
            width: 0,
            excerpt: String::new(),
            message: message.to_owned(),
            expected: None,
            hint: None,
        }])
    }

    const PARTS: [Part<Input>; 4] = [
        Part { name: "first", prepare: |input| ready(input, "first") },
        Part {
            name: "second",
            prepare: |input| match input.refused.get() {
                true => refused(input, "second"),
                false => ready(input, "second"),
            },
        },
        Part { name: "third", prepare: |input| ready(input, "third") },
        Part {
            name: "fourth",
            prepare: |input| match input.refused.get() {
                true => refused(input, "fourth"),
                false => ready(input, "fourth"),
            },
        },
    ];

    #[test]
    fn parts_commit_in_their_order_when_all_are_ready() {
        let input = Input::default();
        let keep = || {
            assert!(
                input.done.borrow().is_empty() && input.open.get() == 4,
                "all are ready, and none has committed"
            );
            Ok::<_, ()>(())
        };
        assert_eq!(carry_out(&PARTS, &input, keep), Ok(()));
        assert_eq!(*input.done.borrow(), ["first", "second", "third", "fourth"]);
        assert_eq!(input.open.get(), 0);
    }

    #[test]
    fn one_that_is_not_ready_keeps_all_from_committing_and_all_are_heard() {
        let input = Input { refused: Cell::new(true), ..Input::default() };
        let keep = || -> Result<(), ()> { panic!("nothing is kept that does not come into use") };
        let Err(NotCarriedOut::Found(found)) = carry_out(&PARTS, &input, keep) else {
            panic!("two are not ready")
        };
        let messages: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
        assert_eq!(messages, ["second", "fourth"]);
        assert!(input.done.borrow().is_empty());
        assert_eq!(input.open.get(), 0, "what the others prepared is gone");
    }

    #[test]
    fn what_cannot_be_kept_does_not_come_into_use() {
        let input = Input::default();
        assert_eq!(carry_out(&PARTS, &input, || Err("full")), Err(NotCarriedOut::NotKept("full")));
        assert!(input.done.borrow().is_empty());
        assert_eq!(input.open.get(), 0, "what was prepared is gone");
    }
}
