//! What every primary listens on: a port for datagrams and for connections.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::thread;

/// Returns sockets of both kinds with one port.
pub(crate) fn bind() -> io::Result<(UdpSocket, TcpListener)> {
    const ATTEMPTS_MAX: usize = 100;
    let mut last = None;
    for _ in 0..ATTEMPTS_MAX {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        match UdpSocket::bind(listener.local_addr()?) {
            Ok(datagrams) => return Ok((datagrams, listener)),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::AddrInUse.into()))
}

/// Gives each connection a thread of its own, which ends when `converse` does. Returns with the
/// first connection that comes when `is_over` holds.
pub(crate) fn accept<C>(listener: &TcpListener, is_over: impl Fn() -> bool, converse: C)
where
    C: Fn(TcpStream) -> io::Result<()> + Clone + Send + 'static,
{
    for stream in listener.incoming() {
        if is_over() {
            return;
        }
        let Ok(stream) = stream else { continue };
        let converse = converse.clone();
        thread::spawn(move || converse(stream));
    }
}
