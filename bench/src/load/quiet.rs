//! Connections that ask one question each and then stay, saying nothing: what they cost is the
//! server's memory.

use std::io;

use super::carrier::Carrier;
use super::window::Books;
use super::{Plan, Tally};
use crate::queries::Packets;

/// Octets of a reply, with its length, that are read at once.
const REPLY_OCTETS: usize = 2048;

/// Open connections; dropping them closes them.
pub struct Quiet {
    connections: Vec<Carrier>,
}

impl Quiet {
    /// Returns how many are still open: the server may have closed some.
    pub fn open(&mut self) -> usize {
        let mut room = [0; REPLY_OCTETS];
        let mut open = 0;
        for carrier in &mut self.connections {
            // Nothing is expected, so whatever comes but "not yet" is an end.
            let read = carrier.read(&mut room);
            open += usize::from(read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock));
        }
        open
    }
}

/// Opens the connections of `plan`, one after the other, each with one question and its answer.
pub fn open(plan: &Plan, packets: &Packets) -> io::Result<(Tally, Quiet)> {
    let mut books = Books::new(plan, packets, plan.clients);
    let mut connections = Vec::with_capacity(plan.clients);
    for client in 0..plan.clients {
        let mut carrier = Carrier::open(plan, client)?;
        let Some((id, query)) = books.next(client, books.now_ns()) else { break };
        let mut out = Vec::new();
        packets.frame(query, id, &mut out);
        carrier.wait(true)?;
        carrier.write(&mut out)?;
        let mut reply = Vec::new();
        let mut room = [0; REPLY_OCTETS];
        while whole(&reply).is_none() {
            match carrier.read(&mut room)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => reply.extend_from_slice(room.get(..read).unwrap_or(&[])),
            }
        }
        books.settle(client, whole(&reply).unwrap_or(&[]), books.now_ns());
        carrier.wait(false)?;
        connections.push(carrier);
    }
    Ok((books.close(), Quiet { connections }))
}

/// Returns the message behind its length, when it is there as a whole.
fn whole(octets: &[u8]) -> Option<&[u8]> {
    let (len, rest) = octets.split_first_chunk::<2>()?;
    rest.get(..usize::from(u16::from_be_bytes(*len)))
}
