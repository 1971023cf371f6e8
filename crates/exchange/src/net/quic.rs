//! DNS over QUIC (RFC 9250): each query has a stream of its own.

use std::io;
use std::net::UdpSocket;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use identity::tls;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Connection, ConnectionError, Endpoint, EndpointConfig, TokioRuntime, TransportConfig, VarInt};
use socket2::{Domain, Socket, Type};
use wire::MESSAGE_OCTETS_MAX;

use super::carrier::Carrier;
use super::connect::{CONNECT_TIMEOUT, HANDSHAKE_TIMEOUT, apply_udp};
use super::exchange::{self, Outcome};
use super::tunnel::Tunnel;
use crate::network::Remote;

/// Silence after which the connection is gone; the machine gives up sooner if queries are
/// outstanding.
const IDLE_MAX: Duration = Duration::from_secs(120);
/// DOQ_PROTOCOL_ERROR (RFC 9250 §4.3).
const PROTOCOL_ERROR: VarInt = VarInt::from_u32(2);

/// The codes of errors that stand for TLS alerts (RFC 9000 §20.1).
const TLS_ALERTS: RangeInclusive<u64> = 0x100..=0x1ff;

/// Connects; `opened` is called when queries can be sent. Returns when the connection has ended; an
/// error says why there was none.
pub(super) async fn carry(
    carrier: &Carrier,
    remote: &Remote,
    client: &tls::Client,
    opened: impl FnOnce(),
) -> Result<(), String> {
    let endpoint = endpoint(remote).await?;
    let connection = connect(&endpoint, remote, client, 0).await?;
    opened();
    let ended = async { drop(connection.closed().await) };
    exchange::carry(carrier, ended, |query| ask(connection.clone(), query)).await;
    Ok(())
}

/// Makes a socket of the connection's own, perhaps behind a proxy.
pub(super) async fn endpoint(remote: &Remote) -> Result<Endpoint, String> {
    let runtime = Arc::new(TokioRuntime);
    let made = if remote.way().proxy.is_some() {
        match tokio::time::timeout(CONNECT_TIMEOUT, Tunnel::open(remote)).await {
            Ok(Ok(Some(tunnel))) => {
                Endpoint::new_with_abstract_socket(EndpointConfig::default(), None, tunnel, runtime)
            }
            Ok(Ok(None)) => return Err("the SOCKS5 proxy does not relay datagrams".to_owned()),
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err(format!("no SOCKS5 proxy within {} s", CONNECT_TIMEOUT.as_secs())),
        }
    } else {
        socket(remote).and_then(|socket| Endpoint::new(EndpointConfig::default(), None, socket, runtime))
    };
    made.map_err(|error| error.to_string())
}

fn socket(remote: &Remote) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(remote.address), Type::DGRAM.nonblocking(), None)?;
    apply_udp(&socket, &remote.way().bind, remote.address)?;
    Ok(UdpSocket::from(socket))
}

/// Has the server prove who it is; it may open so many streams of its own.
pub(super) async fn connect(
    endpoint: &Endpoint,
    remote: &Remote,
    client: &tls::Client,
    server_streams_max: u32,
) -> Result<Connection, String> {
    let plan = &client.plan;
    let crypto = QuicClientConfig::try_from(client.config()).map_err(|error| error.to_string())?;
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    let mut transport = TransportConfig::default();
    transport.max_concurrent_bidi_streams(VarInt::from_u32(0));
    transport.max_concurrent_uni_streams(VarInt::from_u32(server_streams_max));
    transport.max_idle_timeout(IDLE_MAX.try_into().ok());
    config.transport_config(Arc::new(transport));
    let connecting = endpoint
        .connect_with(config, remote.address, &plan.name_at(remote.address.ip()).to_str())
        .map_err(|error| error.to_string())?;
    let connecting = if plan.early_data {
        // Queries leave with the first packet if there is a session from before.
        match connecting.into_0rtt() {
            Ok((connection, _)) => return Ok(connection),
            Err(connecting) => connecting,
        }
    } else {
        connecting
    };
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, connecting).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(error)) => Err(explain(&error, client)),
        Err(_) => Err(format!("no QUIC handshake within {} s", HANDSHAKE_TIMEOUT.as_secs())),
    }
}

/// Says why there is no connection, for a person.
fn explain(error: &ConnectionError, client: &tls::Client) -> String {
    match error {
        ConnectionError::TransportError(cause) if TLS_ALERTS.contains(&u64::from(cause.code)) => {
            client.last_refusal().unwrap_or_else(|| error.to_string())
        }
        other => other.to_string(),
    }
}

/// Asks one question; `None` if there was no answer.
async fn ask(connection: Connection, query: Vec<u8>) -> Option<Outcome> {
    match exchange(&connection, &query).await {
        Some(said) => Some(said),
        // What left as early data may have been refused as such; the connection itself goes on.
        None if connection.close_reason().is_none() => exchange(&connection, &query).await,
        None => None,
    }
}

async fn exchange(connection: &Connection, query: &[u8]) -> Option<Outcome> {
    // Waits while the server allows no more streams.
    let (mut writer, mut reader) = connection.open_bi().await.ok()?;
    let length = u16::try_from(query.len()).ok()?.to_be_bytes();
    writer.write_all(&[&length[..], query].concat()).await.ok()?;
    writer.finish().ok()?;
    let mut reply = reader.read_to_end(2 + MESSAGE_OCTETS_MAX).await.ok()?;
    let length = usize::from(u16::from_be_bytes(*reply.first_chunk::<2>()?));
    if reply.len() != 2 + length {
        // RFC 9250 §4.2: one reply, whole, and nothing else.
        connection.close(PROTOCOL_ERROR, b"");
        return None;
    }
    reply.drain(..2);
    Some(Outcome::Message(reply))
}
