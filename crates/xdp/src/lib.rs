//! Datagrams through AF_XDP: frames in, frames out, past the kernel's network stack.
//!
//! Never looks into a datagram: what clients ask and what they are told is somebody else's
//! business.
//!
//! # How it works
//!
//! [`Device::open`] puts a small program on an interface and opens one [`Socket`] for each of its
//! queues. The program ([`filter`]) takes plain UDP datagrams to addresses and ports that were
//! named and passes everything else to the kernel, where ordinary sockets should stay open on the
//! same addresses: what the program does not take, or cannot because a socket is gone, they
//! receive. A socket hands out received packets and takes packets to send; both live in frames of
//! one memory that the kernel shares, and each frame has one owner at a time. [`headers`] reads and
//! writes what stands around a datagram.
//!
//! When the process ends, even by SIGKILL, the kernel takes the program off and traffic goes on
//! through its own sockets.
//!
//! # Limitations
//!
//! Linux on little-endian machines, from 5.9 on. Frames are placed by the kernel as it likes on
//! machines with several memories (NUMA). Checksums are always made by the processor.

#![deny(unsafe_code)]

mod attach;
mod device;
mod facts;
mod filter;
pub mod headers;
mod interface;
mod meter;
mod netlink;
mod object;
pub mod socket;
mod sys;

#[cfg(test)]
mod frames;

pub use attach::{AttachError, Attachment, Existing};
pub use device::{Device, DeviceError, DeviceOptions, Mode, Program, Reached};
pub use facts::{Fact, Standing, facts, is_usable};
pub use filter::{
    Action, Block, Filter, FilterPlan, LoadError, Routes, SocketMap, Taking, Verdict, Verdicts,
};
pub use interface::{Attached, Features, Interface, Queues, Way, addresses, loopback_forwards};
pub use meter::Meter;
pub use socket::{BusyPoll, Copying, Packet, Socket};
