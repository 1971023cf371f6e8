//! Asks the kernel about interfaces by netlink, as far as nothing simpler knows.

use std::fs::File;
use std::io::{self, Read, Write};

use crate::sys::calls;

/// Octets of the largest message the kernel sends in reply to ours.
const REPLY_OCTETS_MAX: usize = 1 << 16;

const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const DUMP: u16 = 0x300;
const NESTED: u16 = 0x8000;

const MESSAGE_ERROR: u16 = 2;
const MESSAGE_DONE: u16 = 3;

/// Kinds of messages (`linux/rtnetlink.h`, `linux/genetlink.h`).
pub(crate) const GET_LINK: u16 = 18;
pub(crate) const SET_LINK: u16 = 19;
pub(crate) const GET_ADDRESS: u16 = 22;
pub(crate) const GENERIC_CONTROL: u16 = 16;

/// A message in the making.
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// Begins a message whose fixed part is `head`.
    pub(crate) fn new(kind: u16, head: &[u8]) -> Self {
        let mut bytes = vec![0; 16];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes.extend(head);
        Self(bytes)
    }

    /// Adds an attribute.
    pub(crate) fn with(mut self, kind: u16, value: &[u8]) -> Self {
        push(&mut self.0, kind, value);
        self
    }

    /// Adds an attribute that holds others.
    pub(crate) fn with_nested(self, kind: u16, attributes: &[(u16, &[u8])]) -> Self {
        let mut inner = Vec::new();
        for (kind, value) in attributes {
            push(&mut inner, *kind, value);
        }
        self.with(kind | NESTED, &inner)
    }

    fn finish(mut self, flags: u16) -> Vec<u8> {
        let octets = self.0.len() as u32;
        self.0[..4].copy_from_slice(&octets.to_ne_bytes());
        self.0[6..8].copy_from_slice(&(REQUEST | flags).to_ne_bytes());
        self.0
    }
}

fn push(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    to.extend((value.len() as u16 + 4).to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// A conversation with the kernel.
pub(crate) struct Netlink(File);

impl Netlink {
    /// Opens one about interfaces and addresses.
    pub(crate) fn route() -> io::Result<Self> {
        Ok(Self(File::from(calls::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?)))
    }

    /// Opens one about what came later.
    pub(crate) fn generic() -> io::Result<Self> {
        Ok(Self(File::from(calls::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_GENERIC)?)))
    }

    /// Asks, and returns the content of the first reply; empty if the kernel only agreed.
    pub(crate) fn ask(&mut self, message: Message) -> io::Result<Vec<u8>> {
        self.exchange(message, ACKNOWLEDGE).map(|replies| replies.into_iter().next().unwrap_or_default())
    }

    /// Asks for a list.
    pub(crate) fn list(&mut self, message: Message) -> io::Result<Vec<Vec<u8>>> {
        self.exchange(message, DUMP)
    }

    fn exchange(&mut self, message: Message, flags: u16) -> io::Result<Vec<Vec<u8>>> {
        self.0.write_all(&message.finish(flags))?;
        let mut replies = Vec::new();
        let mut buffer = vec![0; REPLY_OCTETS_MAX];
        // Ends: the kernel ends each of its answers with one of the messages that return below.
        loop {
            let octets = self.0.read(&mut buffer)?;
            let mut rest = buffer.get(..octets).unwrap_or(&[]);
            while let Some((kind, body, after)) = next_message(rest) {
                match kind {
                    MESSAGE_ERROR => {
                        let code = body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                        return if code == 0 {
                            Ok(replies)
                        } else {
                            Err(io::Error::from_raw_os_error(-code))
                        };
                    }
                    MESSAGE_DONE => return Ok(replies),
                    _ => replies.push(body.to_vec()),
                }
                rest = after;
            }
            if octets == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// Splits off the next message: its kind and content, and what follows.
fn next_message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let octets = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
    let body = bytes.get(16..octets)?;
    Some((kind, body, bytes.get(octets.next_multiple_of(4)..).unwrap_or(&[])))
}

/// Returns the attributes that stand in `bytes`.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let octets = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?) & !NESTED;
        let value = bytes.get(4..octets)?;
        bytes = bytes.get(octets.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    })
}

/// Returns the attribute of a kind.
pub(crate) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_written_and_read() {
        let message =
            Message::new(GET_LINK, &[0; 16]).with(3, b"veth0\0").with_nested(43, &[(1, &[1, 2, 3, 4])]);
        let bytes = message.finish(ACKNOWLEDGE);
        assert_eq!(bytes.len() % 4, 0);
        let (kind, body, rest) = next_message(&bytes).expect("a message");
        assert_eq!((kind, rest.len()), (GET_LINK, 0));
        let found: Vec<_> = attributes(&body[16..]).map(|(kind, value)| (kind, value.len())).collect();
        assert_eq!(found, [(3, 6), (43, 8)]);
        let nested = attribute(&body[16..], 43).expect("the nest");
        assert_eq!(attribute(nested, 1), Some(&[1, 2, 3, 4][..]));
    }

    #[test]
    fn cut_messages_end() {
        assert_eq!(attributes(&[8, 0, 1, 0, 1]).count(), 0);
        assert_eq!(attributes(&[0, 0, 1, 0]).count(), 0);
        assert!(next_message(&[200, 0, 0, 0, 2, 0]).is_none());
    }
}
