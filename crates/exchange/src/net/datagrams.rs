//! Datagrams to one server, sent again while no answer comes: for what is no socket of the
//! machine's, because it is sealed or relayed.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use hashbrown::HashMap;
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{connect, socks};
use crate::network::Remote;

/// How long to wait for an answer before each time that the query is sent again. The machine gives
/// up sooner or later.
const PATIENCE: [Duration; 4] = [
    Duration::from_millis(400),
    Duration::from_millis(800),
    Duration::from_millis(1600),
    Duration::from_millis(3200),
];
/// Octets of the largest datagram.
const DATAGRAM_OCTETS_MAX: usize = 65_535;

/// What a response is matched to its query by.
pub(super) type Tag = [u8; 12];

/// A socket that is connected to a server, or to a proxy that relays what it is sent.
pub(super) struct Datagrams {
    socket: UdpSocket,
    /// Where the server is, and what stands before each datagram, if a proxy relays them.
    relayed: Option<(SocketAddr, Vec<u8>)>,
    /// Datagrams are relayed for as long as this is open.
    control: Option<TcpStream>,
    waiting: RefCell<HashMap<Tag, oneshot::Sender<Vec<u8>>>>,
}

impl Datagrams {
    /// Opens a socket; `None` if the proxy does not relay datagrams.
    pub(super) async fn open(remote: &Remote) -> io::Result<Option<Self>> {
        let (to, control, relayed) = match &remote.way().proxy {
            None => (remote.address, None, None),
            Some(proxy) => {
                let mut control = connect::tcp(&remote.way().bind, proxy.address).await?;
                let Some(at) = socks::associate(&mut control, proxy.login.as_ref(), proxy.address).await?
                else {
                    return Ok(None);
                };
                (at, Some(control), Some((remote.address, socks::header(remote.address))))
            }
        };
        Ok(Some(Self {
            socket: connect::udp(&remote.way().bind, to)?,
            relayed,
            control,
            waiting: RefCell::default(),
        }))
    }

    /// Reads for ever what comes. `read` says whose answer a datagram is, and what it says; what it
    /// does not know is nobody's. An error says that the server or the proxy is gone.
    pub(super) async fn read(&self, read: impl Fn(&[u8]) -> Option<(Tag, Vec<u8>)>) -> io::Result<()> {
        let mut buffer = vec![0; DATAGRAM_OCTETS_MAX];
        let ended = async {
            let Some(control) = &self.control else { return std::future::pending().await };
            // Ends when there is nothing more to come: what the proxy says besides is of no
            // interest.
            while control.readable().await.is_ok() {
                match control.try_read(&mut [0; 64]) {
                    Ok(0) => return,
                    Ok(_) => (),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => (),
                    Err(_) => return,
                }
            }
        };
        tokio::pin!(ended);
        loop {
            let octets = tokio::select! {
                received = self.socket.recv(&mut buffer) => received?,
                () = &mut ended => return Err(io::Error::other("the SOCKS5 proxy no longer relays datagrams")),
            };
            let datagram = buffer.get(..octets).unwrap_or_default();
            let datagram = match (&self.relayed, socks::unwrapped(datagram)) {
                (None, _) => datagram,
                (Some((server, _)), Some((from, payload))) if *server == from => payload,
                (Some(_), _) => continue,
            };
            if let Some((tag, answer)) = read(datagram)
                && let Some(waiting) = self.waiting.borrow_mut().remove(&tag)
            {
                // Whoever gave up waiting needs no answer.
                let _ = waiting.send(answer);
            }
        }
    }

    /// Returns whether somebody waits for an answer with this tag.
    pub(super) fn awaits(&self, tag: &Tag) -> bool {
        self.waiting.borrow().contains_key(tag)
    }

    /// Sends a datagram, if need be several times, and waits for the answer with this tag.
    pub(super) async fn ask(&self, tag: Tag, datagram: &[u8]) -> Option<Vec<u8>> {
        let (sender, mut receiver) = oneshot::channel();
        self.waiting.borrow_mut().insert(tag, sender);
        // Removes the tag however this ends.
        let _guard = Waiting { datagrams: self, tag };
        for patience in PATIENCE {
            let sent = match &self.relayed {
                None => self.socket.send(datagram).await,
                Some((_, header)) => self.socket.send(&[header, datagram].concat()).await,
            };
            // An error that the reader sees, too, or one that passes: what is lost is sent again.
            drop(sent);
            match timeout(patience, &mut receiver).await {
                Ok(answer) => return answer.ok(),
                Err(_) => continue,
            }
        }
        None
    }
}

struct Waiting<'p> {
    datagrams: &'p Datagrams,
    tag: Tag,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.datagrams.waiting.borrow_mut().remove(&self.tag);
    }
}
