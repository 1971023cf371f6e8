//! Keeps changes of data beside the settings in the store: members of dynamic sets.

use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use environment::Keeper;
use store::{Change, Expected, Put};

use crate::{Authority, Refusal};

/// Keeps them in the store of changes, each as a revision of its own.
pub(crate) struct StoreKeeper(Arc<Authority>);

impl StoreKeeper {
    /// Returns what keeps changes there; `None` if nothing is kept.
    pub(crate) fn of(authority: &Arc<Authority>) -> Option<Arc<dyn Keeper>> {
        authority.keeps_changes().then(|| Arc::new(Self(Arc::clone(authority))) as Arc<dyn Keeper>)
    }
}

/// Returns the name of an entry: in the order of numbers.
fn name(number: u64) -> String {
    format!("{number:012}")
}

impl Keeper for StoreKeeper {
    fn texts(&self, space: &str) -> io::Result<Vec<(u64, String)>> {
        let entries = self.0.entries(space).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(entries.into_iter().filter_map(|entry| Some((entry.name.parse().ok()?, entry.text))).collect())
    }

    fn keep(&self, space: &str, number: u64, text: &str, said: (&str, &str)) -> io::Result<()> {
        let put = Put {
            space: space.to_owned(),
            name: name(number),
            text: Some(text.to_owned()),
            until: None,
            // One of which nobody knew whether it was kept was not acknowledged.
            expected: Expected::Any,
        };
        let (by, why) = (said.0.to_owned(), said.1.to_owned());
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let change = Change { by, why, at, puts: vec![put], ..Change::default() };
        self.0.keep(&change).map(drop).map_err(|refusal| {
            io::Error::other(match refusal {
                // Whoever hears of it is told that nothing is changed.
                Refusal::Store(error) => error.to_string(),
                other => other.to_string(),
            })
        })
    }

    fn forget(&self, space: &str, up_to: u64) -> io::Result<()> {
        let forgotten = self.0.forget(space, &name(up_to));
        forgotten.map_err(|error| io::Error::other(error.to_string()))
    }
}
