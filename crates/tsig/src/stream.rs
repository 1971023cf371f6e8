//! Replies as who asked verifies them: one message, or many of which not all are signed.

use std::sync::Arc;

use crate::key::Key;
use crate::mac::{Digest, Mac};
use crate::record::{Signed, TsigError, split};
use crate::sign::{feed_prior, feed_timers, feed_variables};

/// Messages in a row that need not be signed (RFC 8945 §5.3.1).
pub const UNSIGNED_MAX: u32 = 99;

/// Why a reply is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// It cannot be read.
    Malformed,
    /// The first message, or one of a hundred in a row, is not signed.
    Unsigned,
    /// Signed with another key or algorithm than the request.
    OtherKey,
    /// The MAC is wrong or too short.
    Mac,
    /// The clocks are too far apart.
    Time,
    /// The server says so.
    Server(TsigError),
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Malformed => "a message that cannot be read",
            Self::Unsigned => "messages that are not signed",
            Self::OtherKey => "messages signed with another key",
            Self::Mac => "a wrong signature",
            Self::Time => "a signature of another time: are both clocks right?",
            Self::Server(error) => error.word(),
        })
    }
}

/// Verifies the reply to one request, message by message.
pub struct Verifier {
    key: Arc<Key>,
    /// What was fed since the last signature, that signature's MAC before it.
    digest: Digest,
    is_first: bool,
    unsigned: u32,
}

impl Verifier {
    pub(crate) fn new(key: Arc<Key>, request: Mac) -> Self {
        let mut digest = key.prepared.begin();
        feed_prior(&mut digest, request.as_bytes());
        Self { key, digest, is_first: true, unsigned: 0 }
    }

    /// Takes the next message at `now` and returns it without its signature.
    pub fn take(&mut self, message: &[u8], now: u64) -> Result<Vec<u8>, Broken> {
        let Some(signed) = split(message).map_err(|_| Broken::Malformed)? else {
            self.unsigned += 1;
            if self.is_first || self.unsigned > UNSIGNED_MAX {
                return Err(Broken::Unsigned);
            }
            self.digest.feed(message);
            return Ok(message.to_vec());
        };
        self.check(&signed, now)?;
        Ok(signed.message())
    }

    fn check(&mut self, signed: &Signed<'_>, now: u64) -> Result<(), Broken> {
        let algorithm = self.key.algorithm();
        let is_same = signed.key.as_name() == self.key.name()
            && signed.algorithm.as_name().as_bytes().eq_ignore_ascii_case(algorithm.name());
        // RFC 8945 §5.3.2: such replies carry no MAC, so that anybody could have sent them; they
        // end it all the same.
        if signed.mac.is_empty() && signed.error != TsigError::NONE {
            return Err(Broken::Server(signed.error));
        }
        if !is_same {
            return Err(Broken::OtherKey);
        }
        self.digest.feed(&signed.digested());
        if self.is_first {
            let timers = (signed.time, signed.fudge);
            let name = self.key.name();
            feed_variables(&mut self.digest, name, algorithm.name(), timers, signed.error, signed.other);
        } else {
            feed_timers(&mut self.digest, signed.time, signed.fudge);
        }
        let next = self.key.prepared.begin();
        let mac = std::mem::replace(&mut self.digest, next).finish();
        if signed.mac.len() < self.key.mac_octets || !mac.begins_with(signed.mac) {
            return Err(Broken::Mac);
        }
        if signed.error != TsigError::NONE {
            return Err(Broken::Server(signed.error));
        }
        if now.abs_diff(signed.time) > u64::from(signed.fudge) {
            return Err(Broken::Time);
        }
        feed_prior(&mut self.digest, signed.mac);
        self.is_first = false;
        self.unsigned = 0;
        Ok(())
    }

    /// Returns whether the last message was signed, as that of a whole reply must be.
    pub const fn is_complete(&self) -> bool {
        !self.is_first && self.unsigned == 0
    }
}
