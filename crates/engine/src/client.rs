//! Who asks, and over what.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

/// How a query reached us. Decides sizes and limits, never policy by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A datagram: the source address may be forged, the reply may be truncated.
    Udp,
    /// A connection: the source address is proven.
    Tcp,
}

/// The client of one query, as far as policy may know it.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Its address; IPv4-mapped IPv6 addresses are given as IPv4.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// How it reached us.
    pub transport: Transport,
    /// Whether the transport proves that the address is not forged.
    pub verified: bool,
    /// The most octets the transport carries in a reply, whatever the client's EDNS says.
    pub reply_octets_max: u16,
    /// The idle timeout to announce in edns-tcp-keepalive (RFC 7828), in units of 100 ms.
    pub keepalive: Option<u16>,
}

/// The time, as the worker saw it when it began the batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Seconds since the Unix epoch.
    pub unix_seconds: u32,
    /// Milliseconds of a clock that never goes back.
    pub monotonic_ms: u64,
}

impl Now {
    /// Returns the time that is `unix` on the wall and `since_start` after [`Worker::started`](crate::Worker::started).
    pub fn new(unix: SystemTime, since_start: Duration) -> Self {
        let unix = unix.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self {
            unix_seconds: u32::try_from(unix).unwrap_or(u32::MAX),
            monotonic_ms: u64::try_from(since_start.as_millis()).unwrap_or(u64::MAX),
        }
    }
}
