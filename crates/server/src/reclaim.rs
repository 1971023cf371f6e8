//! The thread that frees what workers no longer use.
//!
//! Freeing a set of a million names takes longer than answering a thousand queries. So a snapshot
//! that was replaced is kept until nobody else has it, however long a query waits that was begun
//! with it: no worker ever frees the last of it.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::sys;

/// How often it is looked whether somebody still uses what was handed over, as long as there is
/// something.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long after something was freed, and after the time before, memory is given back once more:
/// what belonged to it others may have let go of later, on a busy machine some seconds later.
const SETTLE_AFTER: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(15)];

/// Starts the thread; what is sent to it is freed there.
pub(crate) fn start<T: Send + Sync + 'static>() -> io::Result<Sender<Arc<T>>> {
    let (sender, old) = channel();
    std::thread::Builder::new().name("reclaim".into()).spawn(move || {
        sys::step_back();
        work(&old);
    })?;
    Ok(sender)
}

fn work<T>(old: &Receiver<Arc<T>>) {
    let mut kept: Vec<Arc<T>> = Vec::new();
    let mut settling = [].iter();
    loop {
        let next = match (kept.is_empty(), settling.as_slice().first()) {
            (true, None) => old.recv().map_err(|_| RecvTimeoutError::Disconnected),
            (true, Some(after)) => old.recv_timeout(*after),
            (false, _) => old.recv_timeout(LOOK_EVERY),
        };
        match next {
            // Each worker hands over the same: one is enough to keep it.
            Ok(next) if kept.iter().any(|known| Arc::ptr_eq(known, &next)) => {}
            Ok(next) => kept.push(next),
            Err(RecvTimeoutError::Timeout) if kept.is_empty() => {
                sys::give_back_memory();
                settling.next();
                if settling.as_slice().is_empty() {
                    // What reading and compiling has touched of the program is not touched again
                    // soon.
                    sys::release_program_pages();
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            // The process ends.
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let count = kept.len();
        // Nobody can get at what only we have.
        kept.retain(|kept| Arc::strong_count(kept) > 1);
        if kept.len() < count {
            sys::give_back_memory();
            settling = SETTLE_AFTER.iter();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::Sender;
    use std::thread::ThreadId;

    /// Tells which thread freed it.
    struct Witness(Sender<ThreadId>);

    impl Drop for Witness {
        fn drop(&mut self) {
            let _ = self.0.send(std::thread::current().id());
        }
    }

    #[test]
    fn who_uses_it_last_does_not_free_it() {
        let (tell, freed) = channel();
        let reclaim = start().expect("a thread");
        let first = Arc::new(Witness(tell));
        let (worker, waiting) = (Arc::clone(&first), Arc::clone(&first));
        reclaim.send(first).expect("it runs");
        reclaim.send(worker).expect("it runs");
        // A query that waited lets go of it, here or there: whichever comes first, it is not freed
        // here.
        drop(waiting);
        let thread = freed.recv_timeout(Duration::from_secs(30)).expect("it is freed");
        assert_ne!(thread, std::thread::current().id());
    }
}
