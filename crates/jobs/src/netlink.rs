//! Messages to the kernel's packet filter: how they are laid out, sent, and acknowledged
//! (netlink(7), nfnetlink).
//!
//! Numbers in headers and lengths are in the machine's own order; what attributes hold is in
//! network order where the subsystem says so.

use std::io::{self, Read as _};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// How long the kernel may take to answer; it does so at once unless another writer holds the
/// tables.
const PATIENCE: Duration = Duration::from_secs(5);
/// Octets of one answer; acknowledgements have tens.
const ANSWER_OCTETS_MAX: usize = 64 * 1024;
/// Datagrams that are read for one request, so that a talkative kernel cannot hold us.
const ANSWERS_MAX: usize = 4096;

/// Octets of `struct nlmsghdr`.
const HEADER_OCTETS: usize = 16;
/// Octets of `struct nfgenmsg`.
const GENERIC_OCTETS: usize = 4;
/// `NLMSG_ERROR`: an acknowledgement, good or bad.
const ERROR: u16 = 2;
/// `NFNL_MSG_BATCH_BEGIN` and `_END`.
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;

/// `NLM_F_REQUEST | NLM_F_ACK`.
pub(crate) const REQUEST: u16 = 0x01 | 0x04;
/// `NLM_F_CREATE`.
pub(crate) const CREATE: u16 = 0x400;

/// `NLA_F_NESTED`.
const NESTED: u16 = 0x8000;
/// `NLA_F_NET_BYTEORDER`.
pub(crate) const NET_ORDER: u16 = 0x4000;

/// Writes messages one after the other.
pub(crate) struct Request {
    octets: Vec<u8>,
    first: u32,
    next: u32,
}

impl Request {
    /// Begins; messages are numbered from `first`.
    pub(crate) const fn new(first: u32) -> Self {
        Self { octets: Vec::new(), first, next: first }
    }

    /// Returns the number of the next message.
    pub(crate) const fn next(&self) -> u32 {
        self.next
    }

    /// Returns the octets.
    pub(crate) fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// Adds a message and returns its number. `kind` is the subsystem in the upper octet and the
    /// command in the lower.
    pub(crate) fn message(
        &mut self,
        kind: u16,
        flags: u16,
        family: u8,
        resource: u16,
        fill: impl FnOnce(&mut Attributes<'_>),
    ) -> u32 {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        let at = self.octets.len();
        self.octets.extend_from_slice(&[0; 4]);
        self.octets.extend_from_slice(&kind.to_ne_bytes());
        self.octets.extend_from_slice(&flags.to_ne_bytes());
        self.octets.extend_from_slice(&number.to_ne_bytes());
        self.octets.extend_from_slice(&0_u32.to_ne_bytes());
        self.octets.extend_from_slice(&[family, 0]);
        self.octets.extend_from_slice(&resource.to_be_bytes());
        fill(&mut Attributes { octets: &mut self.octets });
        let len = (self.octets.len() - at) as u32;
        self.octets[at..at + 4].copy_from_slice(&len.to_ne_bytes());
        number
    }

    /// Begins a transaction of `subsystem`: what follows happens altogether or not at all.
    pub(crate) fn begin(&mut self, subsystem: u8) {
        self.message(BATCH_BEGIN, 0x01, 0, subsystem.into(), |_| ());
    }

    /// Ends the transaction.
    pub(crate) fn end(&mut self, subsystem: u8) {
        self.message(BATCH_END, 0x01, 0, subsystem.into(), |_| ());
    }
}

/// Writes the attributes of a message.
pub(crate) struct Attributes<'a> {
    octets: &'a mut Vec<u8>,
}

impl Attributes<'_> {
    /// Adds an attribute.
    pub(crate) fn put(&mut self, kind: u16, data: &[u8]) {
        self.octets.extend_from_slice(&((4 + data.len()) as u16).to_ne_bytes());
        self.octets.extend_from_slice(&kind.to_ne_bytes());
        self.octets.extend_from_slice(data);
        self.octets.resize(self.octets.len().next_multiple_of(4), 0);
    }

    /// Adds a text with its final zero.
    pub(crate) fn text(&mut self, kind: u16, text: &str) {
        let mut octets = text.as_bytes().to_vec();
        octets.push(0);
        self.put(kind, &octets);
    }

    /// Adds an attribute of attributes.
    pub(crate) fn nested(&mut self, kind: u16, fill: impl FnOnce(&mut Attributes<'_>)) {
        let at = self.octets.len();
        self.octets.extend_from_slice(&[0; 2]);
        self.octets.extend_from_slice(&(kind | NESTED).to_ne_bytes());
        fill(&mut Attributes { octets: self.octets });
        let len = (self.octets.len() - at) as u16;
        self.octets[at..at + 2].copy_from_slice(&len.to_ne_bytes());
    }
}

/// What the kernel said to one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The message's number.
    pub(crate) number: u32,
    /// Zero, or why not: an `errno`, or what the subsystem has of its own.
    pub(crate) errno: i32,
}

/// What the kernel said to a request.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// To each message that asked for it.
    pub(crate) verdicts: Vec<Verdict>,
    /// Messages that are no acknowledgements: their kind, and their attributes.
    pub(crate) messages: Vec<(u16, Vec<u8>)>,
}

impl Answer {
    /// Returns the first refusal.
    pub(crate) fn refusal(&self) -> Option<Verdict> {
        self.verdicts.iter().copied().find(|verdict| verdict.errno != 0)
    }

    /// Reads the messages of a datagram.
    fn read(&mut self, datagram: &[u8]) {
        let mut rest = datagram;
        while let Some((len, _)) = rest.split_first_chunk::<4>() {
            let len = u32::from_ne_bytes(*len) as usize;
            let Some(message) = rest.get(..len).filter(|message| message.len() >= HEADER_OCTETS) else {
                break;
            };
            rest = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
            let kind = u16::from_ne_bytes([message[4], message[5]]);
            let payload = &message[HEADER_OCTETS..];
            match payload.split_first_chunk::<4>() {
                Some((errno, original)) if kind == ERROR => {
                    let number = original.get(8..12).and_then(|number| number.first_chunk());
                    self.verdicts.push(Verdict {
                        number: number.map_or(0, |number| u32::from_ne_bytes(*number)),
                        errno: i32::from_ne_bytes(*errno).wrapping_neg(),
                    });
                }
                _ => self.messages.push((kind, payload.get(GENERIC_OCTETS..).unwrap_or(&[]).to_vec())),
            }
        }
    }
}

/// Returns the data of an attribute.
pub(crate) fn attribute(attributes: &[u8], kind: u16) -> Option<&[u8]> {
    let mut rest = attributes;
    loop {
        let &[l0, l1, k0, k1] = rest.first_chunk::<4>()?;
        let len = usize::from(u16::from_ne_bytes([l0, l1]));
        let data = rest.get(4..len)?;
        if u16::from_ne_bytes([k0, k1]) & !(NESTED | NET_ORDER) == kind {
            return Some(data);
        }
        rest = rest.get(len.next_multiple_of(4)..)?;
    }
}

/// Returns a number in an attribute.
pub(crate) fn number(attributes: &[u8], kind: u16) -> Option<u32> {
    Some(u32::from_be_bytes(*attribute(attributes, kind)?.first_chunk()?))
}

/// A socket to the packet filter of this network namespace.
pub(crate) struct Filter {
    socket: Socket,
    next: u32,
}

impl Filter {
    /// Opens it; nothing is asked of the kernel yet.
    pub(crate) fn open() -> io::Result<Self> {
        let (domain, protocol) = (Domain::from(libc::AF_NETLINK), Protocol::from(libc::NETLINK_NETFILTER));
        let socket = Socket::new(domain, Type::RAW.cloexec(), Some(protocol))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        // Every message of a request is acknowledged before we read the first acknowledgement.
        socket.set_recv_buffer_size(1 << 20)?;
        Ok(Self { socket, next: 1 })
    }

    /// Returns a request whose numbers no other has.
    pub(crate) const fn request(&self) -> Request {
        Request::new(self.next)
    }

    /// Sends a request and waits for the verdict on its message `last`.
    pub(crate) fn send(&mut self, request: &Request, last: u32) -> io::Result<Answer> {
        self.next = request.next();
        self.socket.send(request.octets())?;
        let mut answer = Answer::default();
        let mut buffer = vec![0; ANSWER_OCTETS_MAX];
        for _ in 0..ANSWERS_MAX {
            let before = answer.verdicts.len();
            let len = (&self.socket).read(&mut buffer)?;
            answer.read(&buffer[..len]);
            // A verdict on the first message of a transaction is the verdict on all.
            let is_ours =
                |number: u32| number.wrapping_sub(request.first) < request.next.wrapping_sub(request.first);
            answer.verdicts.retain(|verdict| is_ours(verdict.number));
            let is_refused_whole = |verdict: &Verdict| verdict.number == request.first && verdict.errno != 0;
            let said = answer.verdicts.get(before.min(answer.verdicts.len())..).unwrap_or(&[]);
            if said.iter().any(|verdict| verdict.number == last || is_refused_whole(verdict)) {
                return Ok(answer);
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_how_long_they_are() {
        let mut request = Request::new(7);
        let number = request.message(0x0a0c, REQUEST, 1, 0, |attributes| {
            attributes.text(1, "fw4");
            attributes.nested(3, |inner| inner.put(1, &[192, 0, 2, 1, 5]));
        });
        assert_eq!((number, request.next()), (7, 8));
        let octets = request.octets();
        assert_eq!(octets.len() % 4, 0);
        assert_eq!(u32::from_ne_bytes(octets[..4].try_into().expect("four")), octets.len() as u32);
        let attributes = &octets[HEADER_OCTETS + GENERIC_OCTETS..];
        assert_eq!(attribute(attributes, 1), Some(&b"fw4\0"[..]));
        let inner = attribute(attributes, 3).expect("the nested one");
        assert_eq!(attribute(inner, 1), Some(&[192, 0, 2, 1, 5][..]));
        assert_eq!(attribute(attributes, 2), None);
    }

    #[test]
    fn acknowledgements_are_told_from_what_was_asked_for() {
        let mut datagram = Vec::new();
        for errno in [0_i32, -17] {
            datagram.extend(36_u32.to_ne_bytes());
            datagram.extend(ERROR.to_ne_bytes());
            datagram.extend([0; 10]);
            datagram.extend(errno.to_ne_bytes());
            // The header of the message it is about.
            datagram.extend([0; 8]);
            datagram.extend(9_u32.to_ne_bytes());
            datagram.extend([0; 4]);
        }
        let mut request = Request::new(1);
        request.message(0x0a09, 0, 1, 0, |attributes| attributes.put(3, &4_u32.to_be_bytes()));
        datagram.extend_from_slice(request.octets());
        let mut answer = Answer::default();
        answer.read(&datagram);
        assert_eq!(answer.verdicts, [Verdict { number: 9, errno: 0 }, Verdict { number: 9, errno: 17 }]);
        assert_eq!(answer.refusal(), Some(Verdict { number: 9, errno: 17 }));
        assert_eq!(answer.messages.len(), 1);
        assert_eq!(number(&answer.messages[0].1, 3), Some(4));
        // Cut anywhere, nothing panics.
        (0..datagram.len()).for_each(|len| Answer::default().read(&datagram[..len]));
    }
}
