//! A server that goes into the background: whoever starts it gets the prompt back once clients are
//! answered, or hears why they are not.

use std::fs::File;
use std::io::{self, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd as _;

use crate::sys::{self, Forked};

/// Exit code of the first process if the start fails.
const FAILED: i32 = 1;

/// The process that was started first, and waits for what becomes of this one.
#[derive(Debug)]
pub(super) struct Starter(PipeWriter);

/// Goes on in a process of its own, without a terminal. The one that was started first stays until
/// [`Starter::let_go`] is called, and ends with 0 then; with 1 if this process ends before.
///
/// # Errors
///
/// The machine has no room for another process, or there is a second thread already.
pub(super) fn detach() -> io::Result<Starter> {
    let (mut outcome, ours) = io::pipe()?;
    match sys::fork()? {
        Forked::Child => {
            drop(outcome);
            sys::leave_terminal()?;
            Ok(Starter(ours))
        }
        Forked::Parent => {
            drop(ours);
            // It ends when the other says so, or is gone.
            let is_ready = matches!(outcome.read(&mut [0]), Ok(1));
            sys::end_at_once(if is_ready { 0 } else { FAILED });
        }
    }
}

impl Starter {
    /// Lets the first process go: from here on nobody reads what is printed.
    pub(super) fn let_go(mut self) -> io::Result<()> {
        let nowhere = File::options().read(true).write(true).open("/dev/null")?;
        sys::replace_standard_streams(nowhere.as_fd())?;
        self.0.write_all(&[1])
    }
}
