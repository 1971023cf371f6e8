//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Receives batches of datagrams through `recvmmsg`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use super::address::{RawAddress, V6_OCTETS};
use super::memory::Fixed;
use super::{NO_BUFFER, NO_HEADER, control_octets};
use crate::sys::control::{self, Aligned, RECEIVE_OCTETS};
use crate::sys::{Message, Received, Shape};

/// Distance that keeps the beginnings of receive buffers from falling into the same cache set.
const STAGGER_OCTETS: usize = 64;

/// Receives batches of datagrams. One per socket, for life.
pub(crate) struct Inbox {
    // The pointers inside `headers` and `buffers` lead to the arrays below, which are freed with
    // them.
    headers: Fixed<libc::mmsghdr>,
    _buffers: Fixed<libc::iovec>,
    addresses: Fixed<RawAddress>,
    controls: Fixed<Aligned<RECEIVE_OCTETS>>,
    octets: Fixed<u8>,
    octets_each: usize,
    stride: usize,
    messages: usize,
    /// Octets of ancillary data asked for with each message.
    control_octets: usize,
    /// Messages of the batch at hand: their headers were written by the kernel.
    count: usize,
}

impl Inbox {
    pub(crate) fn new(shape: &Shape) -> Self {
        let messages = shape.messages.max(1);
        let octets_each = if shape.coalesced { 65_535 } else { shape.query_octets_max };
        let control_octets = match shape {
            Shape { coalesced: false, addressed: false, stamped: false, .. } => 0,
            _ => RECEIVE_OCTETS,
        };
        let stride = octets_each.next_multiple_of(STAGGER_OCTETS) + STAGGER_OCTETS;
        let mut headers = Fixed::new(messages, NO_HEADER);
        let mut buffers = Fixed::new(messages, NO_BUFFER);
        let addresses = Fixed::new(messages, RawAddress::EMPTY);
        let controls = Fixed::new(messages, Aligned([0; RECEIVE_OCTETS]));
        let octets = Fixed::new(messages * stride, 0u8);
        for index in 0..messages {
            let buffer = buffers.at(index);
            if let Some(buffer) = buffers.get_mut(index) {
                buffer.iov_base = octets.at(index * stride).cast();
                buffer.iov_len = octets_each;
            }
            if let Some(header) = headers.get_mut(index) {
                header.msg_hdr.msg_name = addresses.at(index).cast();
                header.msg_hdr.msg_namelen = V6_OCTETS;
                header.msg_hdr.msg_iov = buffer;
                header.msg_hdr.msg_iovlen = 1;
                header.msg_hdr.msg_control = controls.at(index).cast();
                header.msg_hdr.msg_controllen = control_octets as _;
            }
        }
        Self {
            headers,
            _buffers: buffers,
            addresses,
            controls,
            octets,
            octets_each,
            stride,
            messages,
            control_octets,
            count: 0,
        }
    }

    /// Returns how many messages one call receives at most.
    pub(crate) const fn capacity(&self) -> usize {
        self.messages
    }

    /// Receives what is there, up to a full batch; never waits.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        for index in 0..self.count {
            if let Some(header) = self.headers.get_mut(index) {
                header.msg_hdr.msg_namelen = V6_OCTETS;
                header.msg_hdr.msg_controllen = self.control_octets as _;
            }
        }
        self.count = 0;
        // SAFETY: the first `messages` headers point at buffers that `self` owns with exactly the
        // lengths given, nothing else refers to them during the call, and there is no timeout to
        // point at.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.at(0),
                self.messages as _,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        let Ok(count) = usize::try_from(received) else { return Err(io::Error::last_os_error()) };
        self.count = count.min(self.messages);
        Ok(self.count)
    }

    /// Returns message `index` of the batch; `None` beyond its end.
    pub(crate) fn message(&self, index: usize) -> Option<Received<'_>> {
        if index >= self.count {
            return None;
        }
        let header = self.headers.get(index)?;
        let len = (header.msg_len as usize).min(self.octets_each);
        if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
            return Some(Received::Unusable);
        }
        let Some(peer) = self.addresses.get(index)?.parse() else { return Some(Received::Unusable) };
        let bytes = self.octets.slice(index * self.stride, len)?;
        let (local, datagram_octets, came_at_us) = if header.msg_hdr.msg_controllen == 0 {
            (None, len, None)
        } else {
            let ancillary = self.ancillary(index, header);
            (ancillary.local, ancillary.datagram_octets.unwrap_or(len), ancillary.came_at_us)
        };
        Some(Received::Message(Message { bytes, peer, local, datagram_octets, came_at_us }))
    }

    fn ancillary(&self, index: usize, header: &libc::mmsghdr) -> control::Ancillary {
        let len = control_octets(header);
        let bytes = self.controls.get(index).and_then(|control| control.0.get(..len));
        bytes.map_or_else(Default::default, control::parse)
    }
}
