//! Messages on a stream of octets, each after its length (RFC 1035 §4.2.2): TCP and TLS.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::carrier::{Carrier, Outbox};
use super::connect::Secured;

/// Time to write what is queued.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for one message to arrive once it has begun: a server that sends it octet by octet is not
/// there.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(2);
/// Octets read from a connection at once.
const READ_OCTETS: usize = 16 * 1024;

/// Carries messages until one side is done.
pub(super) async fn carry_plain(carrier: &Carrier, mut stream: TcpStream) {
    let (mut reader, mut writer) = stream.split();
    tokio::select! {
        () = read(carrier, &mut reader) => (),
        () = write(&carrier.outbox, &mut writer, Records::OneForAll) => (),
    }
}

/// The same with encryption.
pub(super) async fn carry_secured(carrier: &Carrier, stream: Secured) {
    let (mut reader, mut writer) = tokio::io::split(stream);
    tokio::select! {
        () = read(carrier, &mut reader) => (),
        () = write(&carrier.outbox, &mut writer, Records::OneEach) => (),
    }
}

async fn read(carrier: &Carrier, reader: &mut (impl AsyncReadExt + Unpin)) {
    let mut buffer: Vec<u8> = Vec::with_capacity(READ_OCTETS);
    // When the message that has begun must be here.
    let mut deadline = None;
    loop {
        // The machine closes connections that idle or are silent, and the kernel dead ones: this
        // wait ends.
        let read = reader.read_buf(&mut buffer);
        let read = match deadline {
            None => read.await,
            Some(deadline) => match tokio::time::timeout_at(deadline, read).await {
                Ok(read) => read,
                Err(_) => {
                    if let Some(events) = carrier.events() {
                        events.stalled(carrier.key);
                    }
                    return;
                }
            },
        };
        match read {
            Ok(0) | Err(_) => return,
            Ok(_) => (),
        }
        let Some(events) = carrier.events() else { return };
        let used = events.hear(carrier.key, &buffer);
        buffer.drain(..used);
        if buffer.is_empty() {
            deadline = None;
        } else if used > 0 || deadline.is_none() {
            deadline = Some(Instant::now() + MESSAGE_TIMEOUT);
        }
        if buffer.capacity() - buffer.len() < READ_OCTETS / 2 {
            buffer.reserve(READ_OCTETS);
        }
    }
}

/// How messages that are sent together are put into TLS records.
#[derive(Clone, Copy)]
enum Records {
    /// All together, where there are no records.
    OneForAll,
    /// Each by itself. A server that waits for its socket after each message (dnsdist does) would
    /// not see those that it has decrypted already.
    OneEach,
}

async fn write(outbox: &Outbox, writer: &mut (impl AsyncWriteExt + Unpin), records: Records) {
    loop {
        let bytes = outbox.take().await;
        let written = async {
            match records {
                Records::OneForAll => writer.write_all(&bytes).await?,
                Records::OneEach => {
                    for message in framed(&bytes) {
                        writer.write_all(message).await?;
                    }
                }
            }
            writer.flush().await
        };
        match tokio::time::timeout(WRITE_TIMEOUT, written).await {
            Ok(Ok(())) => (),
            Ok(Err(_)) | Err(_) => return,
        }
    }
}

/// Walks messages that stand one after the other, each with its length.
fn framed(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let &length = bytes.first_chunk::<2>()?;
        let (message, after) = bytes.split_at_checked(2 + usize::from(u16::from_be_bytes(length)))?;
        bytes = after;
        Some(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_length() {
        assert_eq!(
            framed(b"\0\x02ab\0\0\0\x01c").collect::<Vec<_>>(),
            [&b"\0\x02ab"[..], b"\0\0", b"\0\x01c"]
        );
        assert_eq!(framed(b"\0\x02a").count(), 0);
    }
}
