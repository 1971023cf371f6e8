//! What only the operating system can do, each call in a safe function.

use std::ffi::{CStr, CString, c_char, c_int};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Octets for the strings of one entry of the databases of users and groups; more than any real one
/// needs, and groups have members.
const ENTRY_OCTETS_MAX: usize = 1024 * 1024;
/// Capabilities are numbered below this (a 64-bit mask).
const CAPABILITIES_MAX: u64 = 64;

/// A user of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    /// The name, for the group look-up.
    pub(crate) name: CString,
    /// The user ID.
    pub(crate) uid: u32,
    /// The ID of the primary group.
    pub(crate) gid: u32,
}

fn check(result: c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the effective user's ID.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// A function of the C library that looks something up by its name (getpwnam_r(3), getgrnam_r(3)).
type LookUp<T> = unsafe extern "C" fn(*const c_char, *mut T, *mut c_char, usize, *mut *mut T) -> c_int;

/// Looks up a group by name; `Ok(None)` if there is none.
pub(crate) fn find_group(name: &str) -> io::Result<Option<u32>> {
    let name = CString::new(name).map_err(|_| io::ErrorKind::InvalidInput)?;
    Ok(look_up(libc::getgrnam_r, &name)?.map(|entry: libc::group| entry.gr_gid))
}

/// Looks up a user by name; `Ok(None)` if there is none.
pub(crate) fn find_user(name: &str) -> io::Result<Option<User>> {
    let name = CString::new(name).map_err(|_| io::ErrorKind::InvalidInput)?;
    let found: Option<libc::passwd> = look_up(libc::getpwnam_r, &name)?;
    Ok(found.map(|entry| User { uid: entry.pw_uid, gid: entry.pw_gid, name }))
}

/// Returns the entry of a name. What its pointers lead to is gone by then: only its numbers count.
fn look_up<T>(function: LookUp<T>, name: &CStr) -> io::Result<Option<T>> {
    let mut strings: Vec<c_char> = vec![0; ENTRY_OCTETS_MAX];
    let mut entry = MaybeUninit::<T>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: `function` is one of the two that this is for; `name` ends in a zero byte, and
    // `entry`, `strings` (with its length) and `found` are ours to write.
    let error = unsafe {
        function(name.as_ptr(), entry.as_mut_ptr(), strings.as_mut_ptr(), strings.len(), &raw mut found)
    };
    if found.is_null() {
        // POSIX leaves open which of these mean "no such user" or group.
        return match error {
            0 | libc::ENOENT | libc::ESRCH => Ok(None),
            _ => Err(io::Error::from_raw_os_error(error)),
        };
    }
    // SAFETY: a non-null `found` means that `entry` was filled in.
    Ok(Some(unsafe { entry.assume_init() }))
}

/// Becomes `user` with its groups, for good. Needs root; called while there is one thread.
pub(crate) fn become_user(user: &User) -> io::Result<()> {
    // SAFETY: the name ends in a zero byte and lives through the call.
    check(unsafe { libc::initgroups(user.name.as_ptr(), user.gid) })?;
    // SAFETY: takes numbers only.
    check(unsafe { libc::setresgid(user.gid, user.gid, user.gid) })?;
    // SAFETY: takes numbers only.
    check(unsafe { libc::setresuid(user.uid, user.uid, user.uid) })
}

/// Which of two processes this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forked {
    /// The one that was there before.
    Parent,
    /// The new one.
    Child,
}

/// Makes a second process like this one.
///
/// # Errors
///
/// There is no room for one, or this process has threads, which the second would not have.
pub(crate) fn fork() -> io::Result<Forked> {
    match std::fs::read_dir("/proc/self/task").map(Iterator::count) {
        Ok(1) => {}
        Ok(_) => return Err(io::Error::other("threads were started already")),
        // A machine without /proc cannot tell: the one caller is there before all threads.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // SAFETY: there is one thread, so that no lock is held by one that the child lacks.
    let process = unsafe { libc::fork() };
    check(process)?;
    Ok(if process == 0 { Forked::Child } else { Forked::Parent })
}

/// Begins a session without a terminal.
pub(crate) fn leave_terminal() -> io::Result<()> {
    // SAFETY: takes nothing.
    check(unsafe { libc::setsid() })
}

/// Ends this process; nothing is flushed and nothing dropped, as another process has the same.
pub(crate) fn end_at_once(code: i32) -> ! {
    // SAFETY: takes a number only, and never returns.
    unsafe { libc::_exit(code) }
}

/// Puts a file in the place of standard input, output and error.
pub(crate) fn replace_standard_streams(file: BorrowedFd<'_>) -> io::Result<()> {
    for stream in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: both are numbers of descriptors, and the standard streams are nobody's: the
        // library opens them anew with each use.
        check(unsafe { libc::dup2(file.as_raw_fd(), stream) })?;
    }
    Ok(())
}

/// Forbids this thread and its children to gain privileges by starting programs.
pub(crate) fn forbid_new_privileges() -> io::Result<()> {
    // SAFETY: `PR_SET_NO_NEW_PRIVS` takes numbers only.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1_u64, 0_u64, 0_u64, 0_u64) })
}

/// The two structures of capset(2), version 3.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapabilityData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// `_LINUX_CAPABILITY_VERSION_3` of linux/capability.h.
const CAPABILITY_VERSION_3: u32 = 0x2008_0522;

/// Sees to it that no program started later can have any capability. Does what it may: it needs a
/// capability itself.
pub(crate) fn drop_bounding_set() {
    for capability in 0..CAPABILITIES_MAX {
        // SAFETY: `PR_CAPBSET_DROP` takes numbers only; it refuses those the kernel does not know.
        let _ = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0_u64, 0_u64, 0_u64) };
    }
}

/// `CAP_NET_ADMIN`, as a bit.
const NET_ADMIN: u32 = 1 << 12;

/// What a server keeps of its rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Nothing.
    Nothing,
    /// The right to change the packet filter, if it has it (CAP_NET_ADMIN).
    PacketFilter,
}

/// Sees to it that capabilities outlive [`become_user`]; [`drop_capabilities`] says which of them
/// stay.
pub(crate) fn keep_capabilities() -> io::Result<()> {
    // SAFETY: `PR_SET_KEEPCAPS` takes numbers only.
    check(unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, 1_u64, 0_u64, 0_u64, 0_u64) })
}

/// Gives up the capabilities of this thread that are not kept, for good. Threads started later
/// inherit that.
pub(crate) fn drop_capabilities(kept: Kept) -> io::Result<()> {
    // SAFETY: `PR_CAP_AMBIENT` takes numbers only. Kernels before 4.3 do not know it and have no
    // ambient set.
    let _ = unsafe {
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as u64, 0_u64, 0_u64, 0_u64)
    };
    let mut header = CapabilityHeader { version: CAPABILITY_VERSION_3, pid: 0 };
    let mut data = [CapabilityData::default(); 2];
    if kept == Kept::PacketFilter {
        // Asking for what we do not have is refused, so ask what we have.
        let mut had = [CapabilityData::default(); 2];
        // SAFETY: both structures have the layout of version 3 and are ours to write; `had` has its
        // two data elements.
        let result = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, had.as_mut_ptr()) };
        if result == 0 {
            data[0].permitted = had[0].permitted & NET_ADMIN;
            data[0].effective = data[0].permitted;
        }
    }
    // SAFETY: both structures have the layout of version 3, which takes two data elements, and are
    // only read.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Raises the limit on open descriptors towards `wanted`; returns what it is now.
pub(crate) fn raise_descriptor_limit(wanted: u64) -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is ours to write.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    if limit.rlim_cur >= wanted {
        return Ok(limit.rlim_cur);
    }
    // Root may raise the hard limit too; everybody else takes what it allows.
    for rlim_max in [limit.rlim_max.max(wanted), limit.rlim_max] {
        let raised = libc::rlimit { rlim_cur: wanted.min(rlim_max), rlim_max };
        // SAFETY: `raised` is only read.
        if check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) }).is_ok() {
            return Ok(raised.rlim_cur);
        }
    }
    Ok(limit.rlim_cur)
}

/// Returns how many octets of addresses the process may have, and how many of these it does not
/// have yet; `None` if there is no limit.
pub(crate) fn address_space() -> Option<(u64, u64)> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is ours to write.
    check(unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) }).ok()?;
    if limit.rlim_cur == libc::RLIM_INFINITY {
        return None;
    }
    // Pages of the whole program come first (proc(5)).
    let pages: u64 = std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').next()?.parse().ok()?;
    // SAFETY: takes a number only.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
    Some((limit.rlim_cur, limit.rlim_cur.saturating_sub(pages.saturating_mul(page))))
}

/// A moment in the local time zone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalTime {
    pub(crate) year: i32,
    /// From zero.
    pub(crate) month: i32,
    pub(crate) day: i32,
    pub(crate) hour: i32,
    pub(crate) minute: i32,
    pub(crate) second: i32,
    /// Seconds east of Greenwich.
    pub(crate) offset_s: i64,
}

/// Returns a moment in the local time zone.
pub(crate) fn local_time(unix_seconds: u64) -> LocalTime {
    let seconds = unix_seconds as libc::time_t;
    let mut split = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: `seconds` is only read and `split` is ours to write.
    unsafe { libc::localtime_r(&raw const seconds, split.as_mut_ptr()) };
    // SAFETY: all-zero bytes are a valid `tm`, should the call have failed.
    let split = unsafe { split.assume_init() };
    LocalTime {
        year: split.tm_year + 1900,
        month: split.tm_mon,
        day: split.tm_mday,
        hour: split.tm_hour,
        minute: split.tm_min,
        second: split.tm_sec,
        offset_s: split.tm_gmtoff,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_found_and_nobody_invents_users() {
        assert_eq!(find_user("root").unwrap().map(|user| user.uid), Some(0));
        assert_eq!(find_user("no such user").unwrap(), None);
    }
}
