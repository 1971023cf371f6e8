//! What goes to a client and comes from it while a command runs on a thread of its own.

use std::fmt;
use std::fmt::Write as _;

use aws_lc_rs::digest;
use tokio::sync::mpsc;

use crate::lists::NoRoom;

/// Octets that are sent at once.
const CHUNK_OCTETS: usize = 32 * 1024;

/// The line that ends a list.
pub(crate) const END: &str = "\u{4}";

/// The client is gone, or does not take what it asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

/// What a command says. Gathered, and sent in pieces.
pub(crate) struct Output {
    buffer: String,
    sender: mpsc::Sender<Vec<u8>>,
}

impl Output {
    pub(crate) fn new(sender: mpsc::Sender<Vec<u8>>) -> Self {
        Self { buffer: String::new(), sender }
    }

    /// Says something.
    pub(crate) fn say(&mut self, text: fmt::Arguments<'_>) -> Result<(), Gone> {
        let _ = self.buffer.write_fmt(text);
        if self.buffer.len() >= CHUNK_OCTETS { self.send() } else { Ok(()) }
    }

    /// Says a line.
    pub(crate) fn line(&mut self, text: impl fmt::Display) -> Result<(), Gone> {
        self.say(format_args!("{text}\n"))
    }

    /// Sends what was said so far.
    pub(crate) fn send(&mut self) -> Result<(), Gone> {
        let chunk = std::mem::take(&mut self.buffer).into_bytes();
        if chunk.is_empty() { Ok(()) } else { self.sender.blocking_send(chunk).map_err(|_| Gone) }
    }
}

/// Why the lines that follow a command end before their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The client broke off.
    Gone,
    /// There is no room for them.
    NoRoom(NoRoom),
}

/// Lines that follow a command, as far as they have come.
pub(crate) struct Input {
    receiver: mpsc::Receiver<Result<String, NoRoom>>,
    count: u64,
    digest: digest::Context,
}

impl Input {
    pub(crate) fn new(receiver: mpsc::Receiver<Result<String, NoRoom>>) -> Self {
        Self { receiver, count: 0, digest: digest::Context::new(&digest::SHA256) }
    }

    /// Returns the next line.
    ///
    /// # Errors
    ///
    /// There are more that do not come.
    pub(crate) fn next(&mut self) -> Result<String, Broken> {
        let line = self.receiver.blocking_recv().ok_or(Broken::Gone)?.map_err(Broken::NoRoom)?;
        if line != END {
            self.count += 1;
            self.digest.update(line.as_bytes());
            self.digest.update(b"\n");
        }
        Ok(line)
    }

    /// Says how many lines were read so far, and what their SHA-256 is, each with a line feed.
    pub(crate) fn summary(&self) -> String {
        let mut text = format!("{} lines, SHA-256 ", self.count);
        for octet in self.digest.clone().finish().as_ref() {
            let _ = write!(text, "{octet:02x}");
        }
        text
    }
}
