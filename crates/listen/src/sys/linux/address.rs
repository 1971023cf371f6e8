//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Addresses of sockets as the kernel writes them.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// A socket address as the kernel writes it: a `sockaddr_in` or `sockaddr_in6`.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(super) struct RawAddress([u8; 32]);

/// Octets of the two kinds.
const V4_OCTETS: libc::socklen_t = size_of::<libc::sockaddr_in>() as libc::socklen_t;
pub(super) const V6_OCTETS: libc::socklen_t = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
const _: () = assert!(size_of::<libc::sockaddr_in6>() <= size_of::<RawAddress>());

impl RawAddress {
    pub(super) const EMPTY: Self = Self([0; 32]);

    pub(super) fn parse(&self) -> Option<SocketAddr> {
        let (&[f0, f1, p0, p1], rest) = self.0.split_first_chunk::<4>()?;
        let port = u16::from_be_bytes([p0, p1]);
        let (&[a, b, c, d], rest) = rest.split_first_chunk::<4>()?;
        match i32::from(u16::from_ne_bytes([f0, f1])) {
            libc::AF_INET => Some(SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), port))),
            libc::AF_INET6 => {
                // The four octets above were the flow label, which replies need not repeat.
                let (address, rest) = rest.split_first_chunk::<16>()?;
                let scope = u32::from_ne_bytes(*rest.first_chunk::<4>()?);
                Some(SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::from(*address), port, 0, scope)))
            }
            _ => None,
        }
    }

    /// Writes `address`; returns how many octets count.
    pub(super) fn write(&mut self, address: &SocketAddr) -> libc::socklen_t {
        let [p0, p1] = address.port().to_be_bytes();
        match address {
            SocketAddr::V4(address) => {
                let [f0, f1] = (libc::AF_INET as libc::sa_family_t).to_ne_bytes();
                let [a, b, c, d] = address.ip().octets();
                if let Some(out) = self.0.first_chunk_mut::<16>() {
                    *out = [f0, f1, p0, p1, a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0];
                }
                V4_OCTETS
            }
            SocketAddr::V6(address) => {
                let [f0, f1] = (libc::AF_INET6 as libc::sa_family_t).to_ne_bytes();
                if let Some((head, rest)) = self.0.split_first_chunk_mut::<8>()
                    && let Some((ip, rest)) = rest.split_first_chunk_mut::<16>()
                    && let Some(scope) = rest.first_chunk_mut::<4>()
                {
                    *head = [f0, f1, p0, p1, 0, 0, 0, 0];
                    *ip = address.ip().octets();
                    *scope = address.scope_id().to_ne_bytes();
                }
                V6_OCTETS
            }
        }
    }
}
