//! Connections whose client takes nothing: they end after a time, so that they hold no place.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long a client may take nothing of what waits for it, as over the control socket.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection that breaks when its client takes nothing for too long.
pub(crate) struct Patient<S> {
    stream: S,
    /// Runs while the client takes nothing.
    waits: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(crate) const fn new(stream: S) -> Self {
        Self { stream, waits: None }
    }

    /// Returns what became of a write, or that it has waited for too long.
    fn bounded<T>(
        waits: &mut Option<Pin<Box<Sleep>>>,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            *waits = None;
            return written;
        }
        let waits = waits.get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
        waits.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        let Self { stream, waits } = self.get_mut();
        let written = Pin::new(stream).poll_write(context, octets);
        Self::bounded(waits, written, context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, waits } = self.get_mut();
        let written = Pin::new(stream).poll_write_vectored(context, parts);
        Self::bounded(waits, written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, waits } = self.get_mut();
        let flushed = Pin::new(stream).poll_flush(context);
        Self::bounded(waits, flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_given_up_and_one_that_is_slow_is_not() {
        let (ours, mut theirs) = duplex(8);
        let mut patient = Patient::new(ours);
        let slow = tokio::spawn(async move {
            let mut octets = [0; 4];
            for _ in 0..5 {
                sleep(PATIENCE / 2).await;
                theirs.read_exact(&mut octets).await.expect("octets");
            }
            theirs
        });
        patient.write_all(&[0; 20]).await.expect("taken, slowly");
        let _theirs = slow.await.expect("it ends");
        let given_up = patient.write_all(&[0; 20]).await.expect_err("nobody takes it");
        assert_eq!(given_up.kind(), io::ErrorKind::TimedOut);
    }
}
