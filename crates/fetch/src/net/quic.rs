//! DNS over QUIC (RFC 9250): each query has a stream of its own.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Connection, ConnectionError, Endpoint, EndpointConfig, TokioRuntime, TransportConfig, VarInt};
use socket2::{Domain, Socket, Type};
use tokio::task::JoinSet;

use super::https::messages;
use super::link::{Carrier, HANDSHAKE_TIMEOUT};
use super::{apply, source};
use crate::network::Remote;
use crate::plan::Secure;

/// Time for one exchange; whoever waited has long given up by then.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Octets of the largest reply, with its length.
const REPLY_OCTETS_MAX: usize = 2 + 65_535;
/// Silence after which the connection is gone; the machine gives up sooner if queries are outstanding.
const IDLE_MAX: Duration = Duration::from_secs(120);
/// RFC 9250 §4.3: the connection ends without an error, and the client has no interest in an answer any more.
const NO_ERROR: VarInt = VarInt::from_u32(0);

/// Connects; `opened` is called when queries can be sent. Returns when the connection has ended; an error says why there
/// was none.
pub(super) async fn carry(
    carrier: &Carrier,
    remote: &Remote,
    secure: &Secure,
    opened: impl FnOnce(),
) -> Result<(), String> {
    let endpoint = endpoint(remote).map_err(|error| error.to_string())?;
    let connection = connect(&endpoint, remote, secure).await?;
    opened();
    let mut exchanges = JoinSet::new();
    loop {
        tokio::select! {
            _ = connection.closed() => return Ok(()),
            queued = carrier.outbox.take() => {
                for query in messages(&queued) {
                    let (connection, query) = (connection.clone(), query.to_vec());
                    exchanges.spawn_local(async move {
                        tokio::time::timeout(EXCHANGE_TIMEOUT, exchange(connection, query)).await.ok().flatten()
                    });
                }
            }
            Some(first) = exchanges.join_next(), if !exchanges.is_empty() => {
                let mut replies = Vec::new();
                let mut next = Some(first);
                // Ends: as many as there are exchanges.
                while let Some(ended) = next {
                    replies.extend(ended.ok().flatten().unwrap_or_default());
                    next = exchanges.try_join_next();
                }
                let Some(desk) = carrier.desk() else { return Ok(()) };
                desk.messages(carrier.key, &replies);
            }
        }
    }
}

/// Makes a socket of the connection's own.
fn endpoint(remote: &Remote) -> io::Result<Endpoint> {
    let socket = Socket::new(Domain::for_address(remote.address), Type::DGRAM.nonblocking(), None)?;
    let bind = &remote.way.bind;
    apply(&socket, bind)?;
    socket.bind(&source(bind, remote.address).into())?;
    Endpoint::new(EndpointConfig::default(), None, UdpSocket::from(socket), Arc::new(TokioRuntime))
}

/// Has the server prove who it is.
async fn connect(endpoint: &Endpoint, remote: &Remote, secure: &Secure) -> Result<Connection, String> {
    let plan = secure.plan();
    let crypto = QuicClientConfig::try_from(secure.config()).map_err(|error| error.to_string())?;
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    let mut transport = TransportConfig::default();
    transport.max_concurrent_bidi_streams(VarInt::from_u32(0));
    transport.max_concurrent_uni_streams(VarInt::from_u32(0));
    transport.max_idle_timeout(IDLE_MAX.try_into().ok());
    config.transport_config(Arc::new(transport));
    let connecting = endpoint
        .connect_with(config, remote.address, &plan.name.to_str())
        .map_err(|error| error.to_string())?;
    let connecting = match plan.early_data {
        // Queries leave with the first packet if there is a session from before.
        true => match connecting.into_0rtt() {
            Ok((connection, _)) => return Ok(connection),
            Err(connecting) => connecting,
        },
        false => connecting,
    };
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, connecting).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(error)) => Err(explain(&error, secure)),
        Err(_) => Err(format!("no QUIC handshake within {} s", HANDSHAKE_TIMEOUT.as_secs())),
    }
}

/// Says why there is no connection, for a person.
fn explain(error: &ConnectionError, secure: &Secure) -> String {
    match error {
        ConnectionError::TransportError(_) => secure.take_refusal().unwrap_or_else(|| error.to_string()),
        other => other.to_string(),
    }
}

/// Asks one question; `None` if there was no answer.
async fn exchange(connection: Connection, mut query: Vec<u8>) -> Option<Vec<u8>> {
    // RFC 9250 §4.2.1: the ID is zero on the way; the stream says whose reply it is.
    let id = *query.first_chunk::<2>()?;
    query.first_chunk_mut::<2>()?.fill(0);
    // Waits while the server allows no more streams.
    let (mut writer, mut reader) = connection.open_bi().await.ok()?;
    let length = u16::try_from(query.len()).ok()?.to_be_bytes();
    writer.write_all(&[&length, query.as_slice()].concat()).await.ok()?;
    writer.finish().ok()?;
    let mut reply = reader.read_to_end(REPLY_OCTETS_MAX).await.ok()?;
    let length = usize::from(u16::from_be_bytes(*reply.first_chunk::<2>()?));
    // One reply, whole, and nothing else.
    if reply.len() != 2 + length {
        connection.close(NO_ERROR, b"");
        return None;
    }
    *reply.get_mut(2..)?.first_chunk_mut::<2>()? = id;
    Some(reply)
}
