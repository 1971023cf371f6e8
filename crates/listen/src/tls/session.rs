//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! One TLS session, between the octets of a connection and those of DNS. It has no buffers: records
//! are read from and written to memory that the worker has once for all its connections, so that a
//! quiet session costs its keys alone. (`rustls` itself allocates once for each record.)

use std::sync::Arc;

use engine::ClientCertificate;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use rustls::{HandshakeKind, ServerConfig};

use plan::tls::CertificateFacts;

use super::ALPN_CHALLENGE;
use super::identity::AskedName;
use super::shown::ShownCertificate;

/// The most octets of plain text in a record (RFC 8446 §5.1).
const RECORD_OCTETS_MAX: usize = 16 << 10;
/// The most octets that a record has besides its text: head, explicit nonce, type and tag, in
/// either version.
const RECORD_EXTRA_OCTETS: usize = 5 + 8 + 1 + 16;
/// Octets for what a session may have to say by itself beside the text, such as tickets or a change
/// of keys.
const OWN_OCTETS: usize = 8 << 10;

/// Returns the most octets that `plain` octets of text can become.
pub(crate) const fn sealed_octets(plain: usize) -> usize {
    plain + (plain / RECORD_OCTETS_MAX + 1) * RECORD_EXTRA_OCTETS + OWN_OCTETS
}

/// Octets of the largest flight of ours: handshake messages, or an alert.
pub(crate) const FLIGHT_OCTETS_MAX: usize = 2 * RECORD_OCTETS_MAX;

/// Steps of a session for one read: records of the least length that fit the worker's input, and
/// some.
const STEPS_MAX: usize = 4096;

/// Records of a flight of ours that an error may interrupt, and the alert.
const LAST_WORDS_MAX: usize = 16;

/// Returns whether a record is an alert (RFC 8446 §5.1, §5.2): by its type, or by its length where
/// the type is encrypted, as nothing else has two octets.
fn is_alert(record: &[u8]) -> bool {
    const ALERT: u8 = 21;
    const ENCRYPTED: u8 = 23;
    const ENCRYPTED_ALERT_OCTETS: usize = 5 + 2 + 1 + 16;
    match record.first() {
        Some(&ALERT) => true,
        Some(&ENCRYPTED) => record.len() == ENCRYPTED_ALERT_OCTETS,
        _ => false,
    }
}

/// What came of some octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Advance {
    /// How many of them are done.
    pub(crate) consumed: usize,
    /// How many octets of text they held.
    pub(crate) plain: usize,
    /// How many octets are to be sent.
    pub(crate) outgoing: usize,
    /// Whether the client will say no more.
    pub(crate) is_closed: bool,
    /// Whether the session is broken: when what is to be sent is sent, there is nothing more to do.
    pub(crate) is_broken: bool,
}

/// A session.
pub(crate) struct Session {
    tls: UnbufferedServerConnection,
    asked_name: Arc<AskedName>,
    server_name: Option<Box<str>>,
    /// Whether somebody we believe has signed the client's certificate.
    trust: Trust,
    is_established: bool,
    is_broken: bool,
}

/// What is known of a client's certificate besides that the client has its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// An authority has signed it.
    Vouched,
    /// Nothing.
    Nothing,
}

impl Session {
    pub(super) fn new(
        config: Arc<ServerConfig>,
        asked_name: Arc<AskedName>,
        trust: Trust,
    ) -> Result<Self, rustls::Error> {
        let tls = UnbufferedServerConnection::new(config)?;
        Ok(Self { tls, asked_name, server_name: None, trust, is_established: false, is_broken: false })
    }

    /// Returns whether the handshake is done.
    pub(crate) const fn is_established(&self) -> bool {
        self.is_established
    }

    /// Returns whether the handshake went on with a session of before.
    pub(crate) fn is_resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Returns the name of the server that the client wants to speak with.
    pub(crate) fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// Returns whether the client is an authority that has seen by now what it looked for.
    #[cold]
    pub(crate) fn is_challenge(&self) -> bool {
        self.tls.alpn_protocol() == Some(ALPN_CHALLENGE)
    }

    /// Returns what the client's certificate says, if it has shown one.
    #[cold]
    pub(crate) fn certificate(&self) -> Option<ShownCertificate> {
        // What nobody vouches for says nothing.
        let chain = self.tls.peer_certificates().filter(|_| self.trust == Trust::Vouched);
        ShownCertificate::of(chain)
    }

    /// Returns what the client's certificate is worth between servers, if it has shown one.
    #[cold]
    pub(crate) fn client_certificate(&self) -> Option<Arc<ClientCertificate>> {
        let CertificateFacts { hosts, key, .. } =
            CertificateFacts::parse(self.tls.peer_certificates()?.first()?)?;
        let hosts = if self.trust == Trust::Vouched { hosts } else { Vec::new() };
        Some(Arc::new(ClientCertificate { hosts, key }))
    }

    /// Works on what came, and on what of before was not done: text goes to `plain`, which has room
    /// for as much as came, and the session's own records to `outgoing`.
    pub(crate) fn advance(&mut self, came: &mut [u8], plain: &mut [u8], outgoing: &mut [u8]) -> Advance {
        let mut done = Advance::default();
        let was_established = self.is_established;
        for _ in 0..STEPS_MAX {
            let rest = came.get_mut(done.consumed..).unwrap_or(&mut []);
            let UnbufferedStatus { discard, state } = self.tls.process_tls_records(rest);
            let is_over = match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(Ok(record)) = traffic.next_record() {
                        let end = done.plain + record.payload.len();
                        let Some(room) = plain.get_mut(done.plain..end) else {
                            done.is_broken = true;
                            break;
                        };
                        room.copy_from_slice(record.payload);
                        done.plain = end;
                    }
                    false
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    let room = outgoing.get_mut(done.outgoing..).unwrap_or(&mut []);
                    match data.encode(room) {
                        Ok(octets) => {
                            done.outgoing += octets;
                            false
                        }
                        // A certificate chain larger than all our room.
                        Err(_) => {
                            done.is_broken = true;
                            true
                        }
                    }
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    false
                }
                Ok(ConnectionState::PeerClosed) => {
                    done.is_closed = true;
                    false
                }
                Ok(ConnectionState::WriteTraffic(_)) => {
                    self.is_established = true;
                    true
                }
                Ok(ConnectionState::Closed | ConnectionState::BlockedHandshake) => true,
                // Early data is not offered; whatever else there may be one day is not either.
                Ok(_) => {
                    done.is_broken = true;
                    true
                }
                Err(_) => {
                    done.is_broken = true;
                    done.consumed += discard;
                    let room = outgoing.get_mut(done.outgoing..).unwrap_or(&mut []);
                    done.outgoing += self.last_words(came, done.consumed, room);
                    break;
                }
            };
            done.consumed += discard;
            if is_over {
                break;
            }
        }
        self.is_broken |= done.is_broken;
        if !was_established && let Some(name) = self.asked_name.take() {
            self.server_name = Some(name);
        }
        done
    }

    /// Writes the records that are still due after an error, the last of them the alert; returns
    /// their octets.
    ///
    /// What came is handed over again, as the session may remember places in it; but not once the
    /// alert is there: then it would be worked on, and fail, again.
    #[cold]
    fn last_words(&mut self, came: &mut [u8], consumed: usize, outgoing: &mut [u8]) -> usize {
        let mut used = 0;
        for _ in 0..LAST_WORDS_MAX {
            let rest = came.get_mut(consumed..).unwrap_or(&mut []);
            let room = outgoing.get_mut(used..).unwrap_or(&mut []);
            let Ok(ConnectionState::EncodeTlsData(mut data)) = self.tls.process_tls_records(rest).state
            else {
                break;
            };
            let Ok(octets) = data.encode(room) else { break };
            used += octets;
            if is_alert(room.get(..octets).unwrap_or(&[])) {
                break;
            }
        }
        used
    }

    /// Encrypts `plain` into `outgoing`; returns how many octets that are, or `None` when the
    /// session cannot go on.
    ///
    /// `kept` is what came and is not done, the same octets that the next [`Session::advance`] will
    /// begin with: the session remembers where in them parts of messages stand, and `rustls` panics
    /// when they are not there.
    pub(crate) fn seal(&mut self, kept: &mut [u8], plain: &[u8], outgoing: &mut [u8]) -> Option<usize> {
        if self.is_broken {
            return None;
        }
        let mut used = 0;
        for _ in 0..STEPS_MAX {
            let UnbufferedStatus { discard, state } = self.tls.process_tls_records(kept);
            if discard > 0 {
                // There is nothing whole in what is kept.
                self.is_broken = true;
                return None;
            }
            match state.ok()? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    return traffic
                        .encrypt(plain, outgoing.get_mut(used..)?)
                        .ok()
                        .map(|octets| used + octets);
                }
                ConnectionState::EncodeTlsData(mut data) => {
                    used += data.encode(outgoing.get_mut(used..)?).ok()?;
                }
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => {}
                _ => return None,
            }
        }
        None
    }

    /// Writes the last words of a session into `outgoing`; returns how many octets that are. `kept`
    /// is as for [`Session::seal`].
    #[cold]
    pub(crate) fn close(&mut self, kept: &mut [u8], outgoing: &mut [u8]) -> usize {
        if !self.is_established || self.is_broken {
            return 0;
        }
        match self.tls.process_tls_records(kept).state {
            Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                traffic.queue_close_notify(outgoing).unwrap_or(0)
            }
            _ => 0,
        }
    }
}
