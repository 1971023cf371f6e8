//! A stream whose writes leave together, when it is flushed.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Octets that wait before they are sent, flushed or not: two records of TLS.
const WAITING_OCTETS_MAX: usize = 32 << 10;
/// Octets of the first room that is made: most batches are smaller.
const FIRST_OCTETS: usize = 4 << 10;

/// What carries HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    /// TLS: each write is a record of its own, or several.
    Tls,
    /// Nothing that knows of writes.
    Plain,
}

/// A stream whose system can be told to acknowledge at once what has come.
pub(super) trait Acknowledge {
    /// Has what came acknowledged now, and not with what is sent next.
    fn acknowledge(&self);
}

impl Acknowledge for tokio::net::TcpStream {
    fn acknowledge(&self) {
        // Systems that know nothing of it, and sockets that are no longer connected, are none the
        // worse.
        #[cfg(target_os = "linux")]
        let _ = socket2::SockRef::from(self).set_tcp_quickack(true);
    }
}

impl Acknowledge for tokio::net::UnixStream {
    /// Unix sockets have nothing to acknowledge.
    fn acknowledge(&self) {}
}

impl<IO: Acknowledge> Acknowledge for Corked<IO> {
    fn acknowledge(&self) {
        self.stream.acknowledge();
    }
}

impl<IO: Acknowledge> Acknowledge for tokio_rustls::server::TlsStream<IO> {
    fn acknowledge(&self) {
        self.get_ref().0.acknowledge();
    }
}

/// What TLS writes its records into, so that several of them leave with one system call.
#[derive(Debug)]
pub(super) struct Corked<IO> {
    stream: IO,
    waiting: Vec<u8>,
    sent: usize,
}

impl<IO> Corked<IO> {
    pub(super) const fn new(stream: IO) -> Self {
        Self { stream, waiting: Vec::new(), sent: 0 }
    }
}

impl<IO: AsyncWrite + Unpin> Corked<IO> {
    /// Sends what waits.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.waiting.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut self.stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                octets => self.sent += octets,
            }
        }
        // A quiet connection keeps none.
        self.waiting = Vec::new();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }

    /// Makes room for more.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.waiting.len() >= WAITING_OCTETS_MAX {
            ready!(self.poll_send(context))?;
        }
        if self.waiting.capacity() == 0 {
            self.waiting.reserve(FIRST_OCTETS);
        }
        Poll::Ready(Ok(()))
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Corked<IO> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_room(context))?;
        self.waiting.extend_from_slice(octets);
        Poll::Ready(Ok(octets.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_room(context))?;
        let before = self.waiting.len();
        for piece in pieces {
            self.waiting.extend_from_slice(piece);
        }
        Poll::Ready(Ok(self.waiting.len() - before))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Corked<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, room)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Takes everything and counts how often it is written to.
    #[derive(Default)]
    struct Sink {
        writes: Vec<usize>,
        refuses: bool,
    }

    impl AsyncWrite for Sink {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            octets: &[u8],
        ) -> Poll<io::Result<usize>> {
            if self.refuses {
                return Poll::Pending;
            }
            self.writes.push(octets.len());
            Poll::Ready(Ok(octets.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn writes_leave_together_and_what_is_not_taken_is_bounded() {
        let mut context = Context::from_waker(Waker::noop());
        let mut corked = Corked::new(Sink::default());
        for _ in 0..3 {
            assert!(Pin::new(&mut corked).poll_write(&mut context, &[0; 100]).is_ready());
        }
        assert!(corked.stream.writes.is_empty());
        assert!(Pin::new(&mut corked).poll_flush(&mut context).is_ready());
        assert_eq!(corked.stream.writes, [300]);
        assert_eq!(corked.waiting.capacity(), 0);
        corked.stream.refuses = true;
        let piece = [0; 16 << 10];
        let taken = (0..10).filter(|_| Pin::new(&mut corked).poll_write(&mut context, &piece).is_ready());
        assert_eq!(taken.count(), 2);
    }

    #[tokio::test]
    async fn nothing_is_lost_over_a_narrow_stream() {
        let (near, mut far) = tokio::io::duplex(7);
        let mut corked = Corked::new(near);
        let sender = async move {
            for number in 0..100_u8 {
                corked.write_all(&[number; 1000]).await.expect("it is read");
            }
            corked.shutdown().await.expect("it is read");
        };
        let receiver = async move {
            let mut octets = Vec::new();
            far.read_to_end(&mut octets).await.expect("it is written");
            octets
        };
        let ((), octets) = tokio::join!(sender, receiver);
        assert_eq!(octets, (0..100_u8).flat_map(|number| [number; 1000]).collect::<Vec<_>>());
    }
}
