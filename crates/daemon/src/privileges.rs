//! Gives up what the server needs only to open its sockets.

use std::io;

use tracing::{debug, warn};

use crate::sys::{self, Kept, User};

/// Descriptors we would like to have: connections, upstream sockets, and room.
const DESCRIPTORS_WANTED: u64 = 65_536;
/// With fewer, a busy hour is felt: worth a warning.
const DESCRIPTORS_NEEDED: u64 = 4_096;

/// The user to become once the sockets are open.
#[derive(Debug)]
pub(crate) enum Become {
    /// Not root: we are who we are.
    Self_,
    /// This user.
    Other(User),
    /// Root, and the user does not exist.
    Nobody {
        /// The name looked for.
        wanted: String,
    },
}

impl Become {
    /// Decides whom to become; `wanted` is the user in the configuration.
    pub(crate) fn plan(wanted: Option<&str>) -> io::Result<Self> {
        if sys::effective_user() != 0 {
            return Ok(Self::Self_);
        }
        let Some(wanted) = wanted.filter(|name| *name != "root") else { return Ok(Self::Self_) };
        Ok(match sys::find_user(wanted)? {
            Some(user) => Self::Other(user),
            None => Self::Nobody { wanted: wanted.to_owned() },
        })
    }

    /// Returns user and group that will own our files.
    pub(crate) fn owner(&self) -> Option<(u32, u32)> {
        match self {
            Self::Other(user) => Some((user.uid, user.gid)),
            Self::Self_ | Self::Nobody { .. } => None,
        }
    }
}

/// Raises the limit on descriptors to `wanted` or more, as far as the system lets us; returns what
/// it is. What it cannot get, it says.
pub(crate) fn raise_limits(wanted: u64) -> Option<u64> {
    match sys::raise_descriptor_limit(DESCRIPTORS_WANTED.max(wanted)) {
        Ok(limit) => {
            if limit < DESCRIPTORS_NEEDED {
                warn!(limit, "few descriptors may be open; raise the limit (ulimit -n, LimitNOFILE=)");
            } else {
                debug!(limit, "descriptors that may be open");
            }
            Some(limit)
        }
        Err(error) => {
            warn!(%error, "cannot raise the limit on open descriptors");
            None
        }
    }
}

/// Becomes another user if planned and gives up every capability that is not kept. Called before
/// threads are started.
///
/// Errors when the planned user could not be become: the server must not go on as root then.
pub(crate) fn give_up(plan: &Become, kept: Kept) -> io::Result<()> {
    // First, because becoming another user takes away the right to do it.
    sys::drop_bounding_set();
    if kept == Kept::PacketFilter
        && let Err(error) = sys::keep_capabilities()
    {
        warn!(%error, "cannot keep the right to change the packet filter");
    }
    match plan {
        Become::Other(user) => sys::become_user(user)?,
        Become::Nobody { wanted } => {
            warn!(
                user = %wanted,
                "stays root, without unneeded capabilities: there is no such user; make it (packaging/sysusers) or name another \
                 (server.user)"
            );
        }
        Become::Self_ => {}
    }
    if let Err(error) = sys::drop_capabilities(kept) {
        warn!(%error, "cannot give up capabilities");
    }
    if let Err(error) = sys::forbid_new_privileges() {
        warn!(%error, "cannot forbid new privileges");
    }
    Ok(())
}
