//! One connection's task: connects, secures, then carries messages both ways until one side is
//! done.

use std::rc::{Rc, Weak};

use plan::upstreams::Protocol;
use tracing::{info, warn};

use super::carrier::{Carrier, LinkEvents, Outbox};
use super::connect::{self, ConnectError, secured};
use super::{dnscrypt, https, https3, oblivious, quic, relayed, stream};
use crate::network::{LinkKey, Remote};

/// Runs one connection to its end.
pub(crate) async fn run(events: Weak<dyn LinkEvents>, key: LinkKey, remote: Remote, outbox: Rc<Outbox>) {
    let carrier = Carrier { events, key, outbox };
    let trouble = match begin(&carrier, &remote).await.err() {
        None => None,
        Some(ConnectError::Remote(reason)) => Some(reason),
        Some(ConnectError::Local(_)) => {
            if let Some(events) = carrier.events() {
                events.lacked(key);
            }
            return;
        }
    };
    if let (Some(trouble), Some((name, errors))) = (&trouble, remote.transport.identity())
        && errors.is_new(remote.address, trouble)
    {
        let address = remote.address;
        warn!("cannot connect to {}{address} ({name}): {trouble}", remote.way().protocol.scheme().prefix());
    }
    if let Some(events) = carrier.events() {
        events.closed(key, trouble);
    }
}

/// Connects and goes on until the connection ends; an error says why there was none.
async fn begin(carrier: &Carrier, remote: &Remote) -> Result<(), ConnectError> {
    let (way, transport) = (remote.way(), &remote.transport);
    let opened = || opened(carrier, remote);
    // The registry makes them of the same plan.
    let client = || transport.tls.as_ref().ok_or_else(|| "there is no TLS".to_owned());
    match &way.protocol {
        Protocol::Udp => {
            // Where the proxy does not relay datagrams it connects.
            if way.proxy.is_none() || !relayed::carry(carrier, remote, opened).await? {
                plain(carrier, remote).await?;
            }
        }
        Protocol::Tcp => plain(carrier, remote).await?,
        Protocol::Tls(_) => {
            let stream = secured(client()?, remote, connect::in_time(remote).await?).await?;
            opened();
            stream::carry_secured(carrier, stream).await;
        }
        Protocol::Https(_, http) => {
            let stream = secured(client()?, remote, connect::in_time(remote).await?).await?;
            https::carry(carrier, http, stream, opened).await?;
        }
        Protocol::Quic(_) => quic::carry(carrier, remote, client()?, opened).await?,
        Protocol::Https3(_, http) => https3::carry(carrier, remote, (client()?, http), opened).await?,
        Protocol::Dnscrypt(_) => {
            let provider = transport.dnscrypt.as_ref().ok_or_else(|| "there is no provider".to_owned())?;
            dnscrypt::carry(carrier, remote, provider, opened).await?;
        }
        Protocol::Odoh { http, .. } => {
            let target = transport.odoh.as_ref().ok_or_else(|| "there is no target".to_owned())?;
            let stream = secured(client()?, remote, connect::in_time(remote).await?).await?;
            oblivious::carry(carrier, (target, http, remote), stream, opened).await?;
        }
    }
    Ok(())
}

/// Connects, and carries messages as they are.
async fn plain(carrier: &Carrier, remote: &Remote) -> Result<(), ConnectError> {
    let stream = connect::in_time(remote).await?;
    opened(carrier, remote);
    stream::carry_plain(carrier, stream).await;
    Ok(())
}

/// Tells the desk that queries can be written.
fn opened(carrier: &Carrier, remote: &Remote) {
    if let Some((name, errors)) = remote.transport.identity()
        && errors.resolve(remote.address)
    {
        info!("connected to {}{} ({name}) again", remote.way().protocol.scheme().prefix(), remote.address);
    }
    if let Some(events) = carrier.events() {
        events.opened(carrier.key);
    }
}
