//! Whose message it is: ours is signed, and a reply is checked (RFC 8945).

use std::time::{SystemTime, UNIX_EPOCH};

use plan::transfers::Remote;
use tsig::Verifier;
use wire::{Flags, Header, Opcode};
use zone::incoming::Fault;

use crate::error::PeerError;

/// Signs a message if a key is agreed with its receiver; what it returns verifies the reply.
pub(crate) fn signed(remote: &Remote, message: &mut Vec<u8>) -> Option<Verifier> {
    remote.key.as_ref().map(|key| tsig::sign_request(key, message, unix_seconds()))
}

/// Checks whose reply a message is, and takes its signature off.
pub(crate) fn believed(
    message: &[u8],
    (id, opcode): (u16, Opcode),
    verifier: Option<&mut Verifier>,
) -> Result<Vec<u8>, PeerError> {
    let malformed = PeerError::Fault(Fault::Malformed);
    let Some(header) = Header::parse(message) else { return Err(malformed) };
    if header.id != id || !header.flags.has(Flags::QR) || header.flags.opcode() != opcode {
        return Err(malformed);
    }
    match verifier {
        Some(verifier) => verifier.take(message, unix_seconds()).map_err(PeerError::Unsigned),
        None => Ok(message.to_vec()),
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
