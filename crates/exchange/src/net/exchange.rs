//! Transports on which each query has an exchange of its own: HTTP/2, HTTP/3 and QUIC.

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinSet;
use wire::{Flags, Header, Rcode};

use super::carrier::Carrier;

/// Time for one exchange; whoever waited has long given up by then.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(10);

/// What a server said to one query.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A message.
    Message(Vec<u8>),
    /// That it will not or cannot, in its transport's own way.
    Refusal,
    /// Nothing.
    Silence,
}

impl Outcome {
    /// Returns the reply to the query with this ID; `None` if there is none, or it is no message at
    /// all.
    fn under(self, id: [u8; 2]) -> Option<Vec<u8>> {
        match self {
            Self::Message(mut reply) => {
                *reply.first_chunk_mut::<2>()? = id;
                Some(reply)
            }
            Self::Refusal => {
                let flags = Flags::QR.with_rcode(Rcode::SERVFAIL);
                let header = Header { id: u16::from_be_bytes(id), flags, ..Header::default() };
                Some(header.to_bytes().to_vec())
            }
            Self::Silence => None,
        }
    }
}

/// Carries messages until the connection has `ended`. What `ask` is given has an ID of zero: the
/// exchange says whose reply it is, and caches on the way recognise equal queries (RFC 8484 §4.1,
/// RFC 9250 §4.2.1).
pub(super) async fn carry<A>(carrier: &Carrier, ended: impl Future<Output = ()>, ask: impl Fn(Vec<u8>) -> A)
where
    A: Future<Output = Option<Outcome>> + 'static,
{
    let mut exchanges = JoinSet::new();
    tokio::pin!(ended);
    loop {
        tokio::select! {
            // First: what fails because the connection has ended is not refused, but asked again
            // over another one.
            biased;
            () = &mut ended => return,
            queued = carrier.outbox.take() => {
                for query in messages(&queued) {
                    let Some((&id, rest)) = query.split_first_chunk::<2>() else { continue };
                    let exchange = ask([&[0, 0][..], rest].concat());
                    exchanges.spawn_local(async move {
                        let said = tokio::time::timeout(EXCHANGE_TIMEOUT, exchange).await.ok().flatten();
                        said.unwrap_or(Outcome::Refusal).under(id)
                    });
                }
            }
            Some(first) = exchanges.join_next(), if !exchanges.is_empty() => {
                let mut replies = Vec::new();
                let mut next = Some(first);
                // Ends: as many as there are exchanges.
                while let Some(exchange) = next {
                    if let Ok(Some(reply)) = exchange
                        && let Ok(length) = u16::try_from(reply.len())
                    {
                        replies.extend_from_slice(&length.to_be_bytes());
                        replies.extend_from_slice(&reply);
                    }
                    next = exchanges.try_join_next();
                }
                let Some(events) = carrier.events() else { return };
                events.hear(carrier.key, &replies);
            }
        }
    }
}

/// Walks messages that stand one after the other, each after its length.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (&length, after) = bytes.split_first_chunk::<2>()?;
        let (message, after) = after.split_at_checked(usize::from(u16::from_be_bytes(length)))?;
        bytes = after;
        Some(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queued_messages_are_told_apart() {
        assert_eq!(messages(b"\0\x02ab\0\x01c").collect::<Vec<_>>(), [b"ab".as_slice(), b"c"]);
        assert_eq!(messages(b"\0\x02a").count(), 0);
        assert_eq!(messages(b"").count(), 0);
    }

    #[test]
    fn a_message_gets_the_id_of_its_query_back() {
        assert_eq!(Outcome::Message(vec![0, 0, 7]).under([1, 2]), Some(vec![1, 2, 7]));
        assert_eq!(Outcome::Message(vec![0]).under([1, 2]), None);
        assert_eq!(Outcome::Silence.under([1, 2]), None);
    }

    #[test]
    fn a_refusal_is_an_error_without_a_question() {
        let bytes = Outcome::Refusal.under([1, 2]).expect("a reply");
        let header = Header::parse(&bytes).expect("a header");
        assert_eq!((header.id, header.flags.rcode(), header.questions), (258, Rcode::SERVFAIL, 0));
        assert!(header.flags.has(Flags::QR));
    }
}
