//! Tells other servers that there is a new version of a zone (RFC 1996).

use std::time::Duration;

use plan::transfers::Remote;
use tokio::net::UdpSocket;
use tsig::Verifier;
use wire::{Message, Name, Opcode, Rcode, Rtype, Section, Ttl};
use zone::incoming::Fault;

use crate::connection::{Client, Connection, Patience};
use crate::datagram::bound;
use crate::error::PeerError;
use crate::messages::{Expire, query};
use crate::signature::{believed, signed};

/// How long the first datagram waits for its reply; each after it waits twice as long.
const NOTIFY_WAIT: Duration = Duration::from_secs(3);

/// Tells another server that there is a new version.
pub async fn notify(
    client: &Client,
    remote: &Remote,
    apex: Name<'_>,
    (ttl, soa): (Ttl, &[u8]),
    patience: Patience,
) -> Result<(), PeerError> {
    let soa = Some((Section::Answer, ttl, soa));
    let (id, mut message) = query(apex, (Rtype::SOA, Opcode::NOTIFY), soa, Expire::Unasked);
    let mut verifier = signed(remote, &mut message);
    let reply = if remote.tls.is_some() {
        let mut connection = Connection::open(client, remote, patience).await?;
        connection.send(&message).await?;
        let mut buffer = Vec::new();
        connection.receive(&mut buffer).await?;
        believed(&buffer, (id, Opcode::NOTIFY), verifier.as_mut())?
    } else {
        let socket = bound(remote).await?;
        told(&socket, &message, id, (verifier.as_mut(), patience.notify_tries)).await?
    };
    match Message::parse(&reply).map(|parsed| parsed.rcode()) {
        // RFC 1996 §3.12: whoever does not know what this is will not know it the next time.
        Ok(Rcode::NOERROR | Rcode::NOTIMP) => Ok(()),
        Ok(rcode) => Err(PeerError::Refused(rcode)),
        Err(_) => Err(PeerError::Fault(Fault::Malformed)),
    }
}

async fn told(
    socket: &UdpSocket,
    message: &[u8],
    id: u16,
    (mut verifier, tries): (Option<&mut Verifier>, u32),
) -> Result<Vec<u8>, PeerError> {
    let mut wait = NOTIFY_WAIT;
    let mut buffer = vec![0; 4096];
    for _ in 0..tries {
        // An address that nobody listens at says so here.
        let _ = socket.send(message).await;
        let deadline = tokio::time::Instant::now() + wait;
        while let Ok(Ok(len)) = tokio::time::timeout_at(deadline, socket.recv(&mut buffer)).await {
            let reply = buffer.get(..len).unwrap_or(&[]);
            match believed(reply, (id, Opcode::NOTIFY), verifier.as_deref_mut()) {
                // Anybody could have sent what is not a reply to this; the right one may still
                // come.
                Err(PeerError::Fault(Fault::Malformed)) => {}
                other => return other,
            }
        }
        tokio::time::sleep_until(deadline).await;
        wait *= 2;
    }
    Err(PeerError::Slow)
}
