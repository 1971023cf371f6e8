//! A bare echo server: what receiving and sending a datagram costs on this machine, and no DNS at all.
//!
//! Never looks at a datagram beyond setting QR: nothing that answers queries can be cheaper.

use std::io;
use std::net::UdpSocket;

use crate::sys::{self, Batch, Grouped, Wait};

/// Datagrams taken by one call.
const BATCH: usize = 64;
/// Octets of a plain datagram buffer.
const DATAGRAM_OCTETS: usize = 2048;
/// Octets of a buffer that may receive coalesced datagrams.
const COALESCED_OCTETS: usize = 65_535;
/// Octets of socket buffer asked for.
const SOCKET_OCTETS: i32 = 4 << 20;

/// How datagrams cross the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One by one.
    Plain,
    /// Replies of one size to one address as one `UDP_SEGMENT` send, and `UDP_GRO` on receipt.
    Segmented,
}

/// Echoes until an error.
pub fn serve(socket: &UdpSocket, mode: Mode) -> io::Result<()> {
    sys::set_buffers(socket, SOCKET_OCTETS)?;
    match mode {
        Mode::Plain => plain(socket),
        Mode::Segmented => segmented(socket),
    }
}

fn plain(socket: &UdpSocket) -> io::Result<()> {
    let mut batch = Batch::new(BATCH, DATAGRAM_OCTETS);
    loop {
        let count = batch.receive(socket, BATCH, Wait::ForOne)?;
        for i in 0..count {
            set_qr(batch.received(i));
            batch.address_in_place(i);
        }
        batch.send(socket, count)?;
    }
}

fn segmented(socket: &UdpSocket) -> io::Result<()> {
    sys::enable_gro(socket)?;
    let mut batch = Batch::new(BATCH, COALESCED_OCTETS);
    let mut grouped = Grouped::new(BATCH);
    loop {
        let count = batch.receive_coalesced(socket, BATCH, Wait::ForOne)?;
        for i in 0..count {
            let segment = batch.segment_size(i).map_or(COALESCED_OCTETS, usize::from).max(1);
            batch.received(i).chunks_mut(segment).for_each(set_qr);
        }
        grouped.send_back(socket, &mut batch, count)?;
    }
}

fn set_qr(datagram: &mut [u8]) {
    if let Some(flags) = datagram.get_mut(2) {
        *flags |= 0x80;
    }
}
