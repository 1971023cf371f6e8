//! What goes to a client and comes from it while a command runs on a thread of its own.

use std::fmt;

use tokio::sync::mpsc;

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
        use fmt::Write as _;
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

/// Lines that follow a command, as far as they have come.
pub(crate) struct Input {
    receiver: mpsc::Receiver<String>,
}

impl Input {
    pub(crate) const fn new(receiver: mpsc::Receiver<String>) -> Self {
        Self { receiver }
    }

    /// Returns the next line; none if the client broke off.
    pub(crate) fn next(&mut self) -> Option<String> {
        self.receiver.blocking_recv()
    }
}
