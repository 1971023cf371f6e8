//! What short-lived connections wait for, on an epoll instance of the worker's own.
//!
//! Many a client asks once and closes. To have the runtime watch its socket for that costs a
//! registration, and a system call to undo it before the socket is closed. The kernel forgets a
//! closed socket by itself: here nobody undoes anything. Whoever asks more than once is handed to
//! the runtime, which hears of each event directly and not from this instance inside its own.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::rc::Rc;
use std::task::{Context, Waker};

use slab::Slab;
use socket2::Socket;
use tokio::io::Interest;

use crate::sys;

/// Events taken by one system call.
const EVENTS_MAX: usize = 64;

/// Sockets of one worker that are waited for one event at a time.
pub(crate) struct ShortLived {
    /// Absent if the system has no descriptor left for it.
    instance: Option<OwnedFd>,
    waiting: RefCell<Slab<State>>,
}

/// What is known of a socket.
struct State {
    is_ready: bool,
    waker: Option<Waker>,
}

/// The wait of one socket. Is dropped before the socket is closed.
pub(crate) struct Wait {
    of: Rc<ShortLived>,
    key: usize,
}

impl ShortLived {
    pub(crate) fn new() -> Rc<Self> {
        // SAFETY: takes a number only.
        let instance = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        // SAFETY: the descriptor is new, and nobody else has it.
        let instance = (instance >= 0).then(|| unsafe { OwnedFd::from_raw_fd(instance) });
        Rc::new(Self { instance, waiting: RefCell::default() })
    }

    /// Begins to wait until there is something to read from `socket`, or its client has closed it;
    /// `None` if that does not work here. What is there already counts.
    pub(crate) fn begin(self: &Rc<Self>, socket: &Socket) -> Option<Wait> {
        let instance = self.instance.as_ref()?;
        let key = self.waiting.borrow_mut().insert(State { is_ready: false, waker: None });
        let wait = Wait { of: Rc::clone(self), key };
        control(instance, libc::EPOLL_CTL_ADD, socket, key).then_some(wait)
    }

    /// Wakes whose socket is ready, until it is dropped.
    pub(crate) async fn serve(self: Rc<Self>) -> io::Result<()> {
        let Some(instance) = &self.instance else { return std::future::pending().await };
        let watched = sys::watch(instance.try_clone()?, Interest::READABLE)?;
        loop {
            let mut ready = watched.readable().await?;
            if self.collect(instance)? {
                // Whatever comes after the last event wakes us again.
                ready.clear_ready();
            }
        }
    }

    /// Takes what has happened; returns whether that was all.
    fn collect(&self, instance: &OwnedFd) -> io::Result<bool> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
        // SAFETY: the kernel writes at most as many events as there is room for, which is ours.
        let count = unsafe {
            libc::epoll_wait(instance.as_raw_fd(), events.as_mut_ptr(), EVENTS_MAX as libc::c_int, 0)
        };
        let Ok(count) = usize::try_from(count) else {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(error) };
        };
        let mut waiting = self.waiting.borrow_mut();
        for event in events.iter().take(count) {
            // SAFETY: the field is read where it is, without a reference to it.
            let key = unsafe { ptr::read_unaligned(&raw const event.u64) };
            // A wait that is over may have left its key to another, which then looks once in vain.
            let state = usize::try_from(key).ok().and_then(|key| waiting.get_mut(key));
            let Some(state) = state else { continue };
            state.is_ready = true;
            if let Some(waker) = state.waker.take() {
                waker.wake();
            }
        }
        Ok(count < EVENTS_MAX)
    }
}

/// Adds a socket to the instance, or asks for its next event; returns whether that worked.
fn control(instance: &OwnedFd, operation: libc::c_int, socket: &Socket, key: usize) -> bool {
    let events = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLONESHOT) as u32;
    let mut event = libc::epoll_event { events, u64: key as u64 };
    // SAFETY: both descriptors are open, and the kernel copies the event.
    unsafe { libc::epoll_ctl(instance.as_raw_fd(), operation, socket.as_raw_fd(), &raw mut event) == 0 }
}

impl Wait {
    /// Waits for the next event of the same socket; returns whether that works.
    pub(crate) fn again(&self, socket: &Socket) -> bool {
        let Some(instance) = self.of.instance.as_ref() else { return false };
        if let Some(state) = self.of.waiting.borrow_mut().get_mut(self.key) {
            state.is_ready = false;
        }
        control(instance, libc::EPOLL_CTL_MOD, socket, self.key)
    }

    /// Returns whether it is over; if not, the task is woken when it is.
    pub(crate) fn is_over(&self, context: &Context<'_>) -> bool {
        let mut waiting = self.of.waiting.borrow_mut();
        let Some(state) = waiting.get_mut(self.key) else { return true };
        if !state.is_ready {
            match state.waker.as_mut() {
                Some(waker) => waker.clone_from(context.waker()),
                None => state.waker = Some(context.waker().clone()),
            }
        }
        state.is_ready
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.of.waiting.borrow_mut().try_remove(self.key);
    }
}
