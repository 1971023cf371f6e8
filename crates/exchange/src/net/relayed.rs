//! Plain DNS in datagrams that a SOCKS5 proxy relays.

use std::rc::Rc;

use rand::Rng as _;
use tokio::time::timeout;
use wire::{Flags, Header};

use super::carrier::Carrier;
use super::connect::{self, CONNECT_TIMEOUT};
use super::datagrams::{Datagrams, Tag};
use super::exchange::{self, Outcome};
use crate::network::Remote;

/// Replies to other questions after which a query is given up: somebody may be guessing.
const WRONG_MAX: u8 = 4;

/// What the queries of one connection share.
struct RelayedLink {
    remote: Remote,
    datagrams: Datagrams,
}

/// Connects; `opened` is called when queries can be sent. Returns when the connection has ended; an
/// error says why there was none. `Ok(false)` says that the proxy does not relay datagrams.
pub(super) async fn carry(carrier: &Carrier, remote: &Remote, opened: impl FnOnce()) -> Result<bool, String> {
    let datagrams = match timeout(CONNECT_TIMEOUT, Datagrams::open(remote)).await {
        Ok(Ok(Some(datagrams))) => datagrams,
        Ok(Ok(None)) => return Ok(false),
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err(format!("no SOCKS5 proxy within {} s", CONNECT_TIMEOUT.as_secs())),
    };
    let link = Rc::new(RelayedLink { remote: remote.clone(), datagrams });
    opened();
    let reader = Rc::clone(&link);
    let ended = async move {
        drop(reader.datagrams.read(|datagram| Some((tag(datagram)?, datagram.to_vec()))).await);
    };
    exchange::carry(carrier, ended, |query| {
        let link = Rc::clone(&link);
        async move { Some(ask(link, query).await.unwrap_or(Outcome::Silence)) }
    })
    .await;
    Ok(true)
}

/// Returns the tag of a message: its ID.
fn tag(message: &[u8]) -> Option<Tag> {
    let mut tag = Tag::default();
    *tag.first_chunk_mut::<2>()? = *message.first_chunk::<2>()?;
    Some(tag)
}

/// Asks one question; `None` if there was no answer.
async fn ask(link: Rc<RelayedLink>, mut query: Vec<u8>) -> Option<Outcome> {
    for _ in 0..WRONG_MAX {
        let tag = loop {
            let id = rand::rng().next_u32() as u16;
            *query.first_chunk_mut::<2>()? = id.to_be_bytes();
            let tag = tag(&query)?;
            // Ends: a connection has far fewer queries than there are IDs.
            if !link.datagrams.awaits(&tag) {
                break tag;
            }
        };
        let reply = link.datagrams.ask(tag, &query).await?;
        if !echoes(&query, &reply) {
            continue;
        }
        let is_cut = Header::parse(&reply).is_some_and(|header| header.flags.has(Flags::TC));
        return if is_cut { connect::ask_once(&link.remote, &query).await } else { Some(reply) }
            .map(Outcome::Message);
    }
    None
}

/// Returns whether a reply repeats the question of a query, or is an error without any.
fn echoes(query: &[u8], reply: &[u8]) -> bool {
    let Some(header) = Header::parse(reply) else { return false };
    let question = query.get(Header::LEN..).and_then(wire_question).unwrap_or_default();
    let echoed = reply.get(Header::LEN..Header::LEN + question.len());
    header.flags.has(Flags::QR)
        && (header.questions == 0 || echoed.is_some_and(|echoed| echoed.eq_ignore_ascii_case(question)))
}

/// Returns the octets of the question that a message begins with after its header.
fn wire_question(body: &[u8]) -> Option<&[u8]> {
    let (name, _) = wire::Name::parse(body).ok()?;
    body.get(..name.as_bytes().len() + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_replies_to_the_question_are_taken() {
        let query = b"\0\x01\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01";
        let mut reply = query.to_vec();
        assert!(!echoes(query, &reply), "a query");
        reply[2] |= 0x80;
        assert!(echoes(query, &reply));
        reply[13] = b'A';
        assert!(echoes(query, &reply));
        reply[13] = b'b';
        assert!(!echoes(query, &reply));
        reply[5] = 0;
        assert!(echoes(query, &reply), "an error without a question");
        assert!(!echoes(query, b"\0\x01"));
    }
}
