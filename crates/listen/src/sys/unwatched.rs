//! Short-lived connections where there is no epoll: the runtime watches all sockets.

use std::io;
use std::rc::Rc;
use std::task::Context;

use socket2::Socket;

/// Nothing.
pub(crate) struct ShortLived;

/// The wait of one socket: there is none.
pub(crate) enum Wait {}

impl ShortLived {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self)
    }

    /// Returns `None`: the runtime has to watch the socket.
    pub(crate) fn begin(self: &Rc<Self>, _socket: &Socket) -> Option<Wait> {
        None
    }

    /// Does nothing until it is dropped.
    pub(crate) async fn serve(self: Rc<Self>) -> io::Result<()> {
        std::future::pending().await
    }
}

impl Wait {
    /// Is never called.
    pub(crate) fn again(&self, _socket: &Socket) -> bool {
        match *self {}
    }

    /// Is never called.
    pub(crate) fn is_over(&self, _context: &Context<'_>) -> bool {
        match *self {}
    }
}
