//! Takes over newer versions of zones (RFC 5936, RFC 1995).

use plan::transfers::Remote;
use tokio::time::timeout;
use tsig::Broken;
use wire::serial::is_newer;
use wire::{Name, Opcode, Rcode, Rtype, Section, Ttl};
use zone::incoming::{Fault, Incoming, Received};

use crate::connection::{Client, Connection, Patience};
use crate::datagram::{SHORT_WAITS, WAITS, soa_by_datagram};
use crate::error::PeerError;
use crate::messages::{Expire, expire_in, query, serial_in};
use crate::signature::{believed, signed};

/// What a zone's primary had to say.
pub struct Word {
    /// Whether there is something newer, and what.
    pub heard: Heard,
    /// For how many seconds the primary may still serve that version itself, if it says so (RFC
    /// 7314).
    pub expire_s: Option<u32>,
    /// Whether it was said over a connection or is signed: a datagram alone may be forged.
    pub is_confirmed: bool,
}

/// Whether a zone's primary has something newer.
pub enum Heard {
    /// It has this serial, which is not newer than ours.
    UpToDate(u32),
    /// Something newer.
    New(Received),
}

/// The version that there is here.
#[derive(Clone)]
pub struct Have {
    /// Its serial.
    pub serial: u32,
    /// The TTL and the data of its SOA.
    pub soa: (Ttl, Box<[u8]>),
}

/// How a transfer is to go.
#[derive(Clone, Copy)]
pub struct Wish {
    /// Names are hashed with this key.
    pub key: wire::HashKey,
    /// Octets of messages that a transfer may have.
    pub octets_max: u64,
    /// Whether a datagram without a signature that has our serial is doubted, and the primary asked
    /// again over TCP.
    pub doubts: bool,
    /// How long things may take.
    pub patience: Patience,
}

/// Asks a primary for a version newer than `have`; for a whole zone if there is none.
///
/// The SOA is asked for first, over UDP (RFC 1034 §4.3.5), so that a zone that is up to date takes
/// no connection; over TCP if nobody answers that with a SOA record.
pub async fn refresh(
    client: &Client,
    remote: &Remote,
    apex: Name<'_>,
    have: Option<&Have>,
    wish: &Wish,
) -> Result<Word, PeerError> {
    let work = async {
        match ask(client, remote, apex, (have, Expire::Asked), wish).await {
            // RFC 6891 §7: that is what they say who do not know EDNS.
            Err(PeerError::Fault(Fault::Rcode(Rcode::FORMERR | Rcode::NOTIMP))) => {
                ask(client, remote, apex, (have, Expire::Unasked), wish).await
            }
            other => other,
        }
    };
    timeout(wish.patience.whole, work).await.unwrap_or(Err(PeerError::Slow))
}

async fn ask(
    client: &Client,
    remote: &Remote,
    apex: Name<'_>,
    (have, expire): (Option<&Have>, Expire),
    wish: &Wish,
) -> Result<Word, PeerError> {
    // With TLS nothing is asked in the clear (RFC 9103 §6).
    let waits = if have.is_some() { WAITS } else { SHORT_WAITS };
    let told = match remote.tls {
        None => soa_by_datagram(remote, apex, expire, waits).await,
        Some(_) => None,
    };
    let Some(have) = have else {
        // Who does not say what the SOA is may give the zone all the same.
        let mut connection = Connection::open(client, remote, wish.patience).await?;
        return transfer(&mut connection, remote, apex, (None, expire), wish).await;
    };
    let (mut open, mut reply) = match told {
        Some(reply) => (None, reply),
        None => {
            let mut connection = Connection::open(client, remote, wish.patience).await?;
            let reply = connection.ask_soa(remote, apex, expire).await?;
            (Some(connection), reply)
        }
    };
    let mut serial = serial_in(&reply, apex)?;
    let is_doubted = match serial == have.serial {
        true => wish.doubts,
        false => !is_newer(serial, have.serial),
    };
    if is_doubted && open.is_none() && remote.key.is_none() {
        // A datagram without a signature may be forged: it must not hide a newer version.
        let mut connection = Connection::open(client, remote, wish.patience).await?;
        reply = connection.ask_soa(remote, apex, expire).await?;
        serial = serial_in(&reply, apex)?;
        open = Some(connection);
    }
    if serial == have.serial {
        // A datagram without a signature may be forged: it must not keep a zone alive for longer
        // than the SOA says.
        let is_confirmed = open.is_some() || remote.key.is_some();
        let expire_s = expire_in(&reply).filter(|_| is_confirmed);
        return Ok(Word { heard: Heard::UpToDate(serial), expire_s, is_confirmed });
    }
    if !is_newer(serial, have.serial) {
        return Err(PeerError::Fault(Fault::Older(serial)));
    }
    let mut connection = match open {
        Some(connection) => connection,
        None => Connection::open(client, remote, wish.patience).await?,
    };
    match transfer(&mut connection, remote, apex, (Some(have), expire), wish).await {
        // Who has no steps for us may say so in many ways; the whole zone is always there.
        Err(PeerError::Fault(
            Fault::Rcode(Rcode::NOTIMP | Rcode::FORMERR | Rcode::REFUSED | Rcode::SERVFAIL)
            | Fault::Disordered
            | Fault::NoSoa
            | Fault::Malformed,
        )) => {
            let mut connection = Connection::open(client, remote, wish.patience).await?;
            transfer(&mut connection, remote, apex, (None, expire), wish).await
        }
        other => other,
    }
}

async fn transfer(
    connection: &mut Connection,
    remote: &Remote,
    apex: Name<'_>,
    (have, expire): (Option<&Have>, Expire),
    wish: &Wish,
) -> Result<Word, PeerError> {
    let qtype = if have.is_some() { Rtype::IXFR } else { Rtype::AXFR };
    let soa = have.map(|have| (Section::Authority, have.soa.0, &*have.soa.1));
    let (id, mut message) = query(apex, (qtype, Opcode::QUERY), soa, expire);
    let mut verifier = signed(remote, &mut message);
    connection.send(&message).await?;
    let mut incoming = Incoming::new(apex, wish.key, have.map(|have| have.serial), wish.octets_max);
    let mut buffer = Vec::new();
    let mut expire_s = None;
    let mut is_first = true;
    loop {
        connection.receive(&mut buffer).await?;
        let message = believed(&buffer, (id, Opcode::QUERY), verifier.as_mut())?;
        if std::mem::take(&mut is_first) {
            expire_s = expire_in(&message);
        }
        if let Some(received) = incoming.take(&message).map_err(PeerError::Fault)? {
            if verifier.as_ref().is_some_and(|verifier| !verifier.is_complete()) {
                return Err(PeerError::Unsigned(Broken::Unsigned));
            }
            let heard = match (received, have) {
                (Received::UpToDate, Some(have)) => Heard::UpToDate(have.serial),
                (received, _) => Heard::New(received),
            };
            return Ok(Word { heard, expire_s, is_confirmed: true });
        }
    }
}
