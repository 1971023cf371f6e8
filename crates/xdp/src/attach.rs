//! Puts the filter on an interface, and takes it off again whatever happens.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::filter::Filter;
use crate::interface::{self, Attached, Interface, Way};
use crate::sys::{bpf, calls};

/// How long a program of ours that is about to end may keep its place.
const BUSY_MAX: Duration = Duration::from_secs(1);
const BUSY_INTERVAL: Duration = Duration::from_millis(50);

/// What to do if another program is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Leave it, and fail.
    Keep,
    /// Take it off.
    Replace,
}

/// The filter is on the interface for as long as this lives; the kernel takes it off when the
/// process ends, however it does.
#[derive(Debug)]
pub struct Attachment {
    _link: OwnedFd,
    way: Way,
}

impl Attachment {
    /// Returns where the program runs.
    pub const fn way(&self) -> Way {
        self.way
    }
}

/// Why the filter could not be attached.
#[derive(Debug)]
pub struct AttachError {
    /// The interface's name.
    pub interface: String,
    /// Where it was to run.
    pub way: Way,
    /// The programs that are there.
    pub attached: Vec<Attached>,
    /// What the kernel said.
    pub source: io::Error,
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match self.way {
            Way::Native => "in the driver",
            Way::Generic => "in generic mode",
        };
        write!(f, "cannot attach to {} {way}: ", self.interface)?;
        match self.source.raw_os_error() {
            Some(libc::EBUSY | libc::EEXIST) => {
                f.write_str("another XDP program is there")?;
                for attached in &self.attached {
                    write!(f, " ({}, id {})", attached.name.as_deref().unwrap_or("unnamed"), attached.id)?;
                }
                Ok(())
            }
            Some(libc::EPERM) => f.write_str("CAP_NET_ADMIN and CAP_BPF are needed"),
            Some(libc::EOPNOTSUPP) => f.write_str("the driver cannot run XDP programs"),
            Some(libc::ENOSPC) => {
                f.write_str("the interface has too few queues (veth: the peer sends on more queues than this end receives on)")
            }
            Some(libc::EINVAL | libc::ERANGE) => {
                write!(f, "{} (often: the MTU is too large for the driver, or LRO is on)", self.source)
            }
            _ => write!(f, "{}", self.source),
        }
    }
}

impl std::error::Error for AttachError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl Filter {
    /// Attaches the program to an interface.
    pub fn attach(
        &self,
        interface: &Interface,
        way: Way,
        existing: Existing,
    ) -> Result<Attachment, AttachError> {
        let flags = match way {
            Way::Native => interface::NATIVE,
            Way::Generic => interface::GENERIC,
        };
        let begun = Instant::now();
        let mut replaced = false;
        // Ends: at the latest when `BUSY_MAX` is over.
        loop {
            let source = match bpf::create_link(self.as_fd(), interface.index, flags) {
                Ok(link) => return Ok(Attachment { _link: link, way }),
                Err(source) => source,
            };
            let is_busy = matches!(source.raw_os_error(), Some(libc::EBUSY | libc::EEXIST));
            if is_busy && existing == Existing::Replace && !replaced {
                // An error shows in the next attempt.
                let _ = remove_all(interface);
                replaced = true;
                continue;
            }
            if !is_busy || begun.elapsed() >= BUSY_MAX {
                let now = Interface::find(&interface.name);
                let attached = now.map(|now| now.attached).unwrap_or_default();
                return Err(AttachError { interface: interface.name.clone(), way, attached, source });
            }
            // Nothing tells when the place becomes free.
            let _ = calls::wait(&[], BUSY_INTERVAL);
        }
    }
}

/// Takes all XDP programs off an interface, whichever way they got there.
fn remove_all(interface: &Interface) -> io::Result<()> {
    let programs: Vec<_> =
        Interface::find(&interface.name)?.attached.iter().map(|attached| attached.id).collect();
    bpf::detach_links(interface.index, &programs)?;
    for attached in Interface::find(&interface.name)?.attached {
        interface::detach(interface.index, attached.way)?;
    }
    Ok(())
}
