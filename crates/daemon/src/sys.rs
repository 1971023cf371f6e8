//! What only the operating system can do, each call in a safe function.

use std::ffi::{CStr, CString, c_char, c_int};
use std::io;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::time::Duration;

/// Octets for the strings of one entry of the databases of users and groups; more than any real one needs, and groups have
/// members.
const ENTRY_OCTETS_MAX: usize = 1024 * 1024;
/// Capabilities are numbered below this (a 64-bit mask).
const CAPABILITIES_MAX: u64 = 64;

/// Octets of the largest pages that Linux uses on the processors we know (arm64 with 64 KiB).
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
const PAGE_OCTETS_MAX: u64 = 64 * 1024;

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

/// Returns the octets of memory that this process has in use (resident), if the system tells (proc(5)).
pub(crate) fn resident_octets() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: `_SC_PAGESIZE` takes nothing and cannot fail.
    let octets = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.checked_mul(u64::try_from(octets).ok()?)
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
    // SAFETY: `function` is one of the two that this is for; `name` ends in a zero byte, and `entry`, `strings` (with its
    // length) and `found` are ours to write.
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

/// Sees to it that no program started later can have any capability. Does what it may: it needs a capability itself.
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

/// Sees to it that capabilities outlive [`become_user`]; [`drop_capabilities`] says which of them stay.
pub(crate) fn keep_capabilities() -> io::Result<()> {
    // SAFETY: `PR_SET_KEEPCAPS` takes numbers only.
    check(unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, 1_u64, 0_u64, 0_u64, 0_u64) })
}

/// Makes the calling thread the least important: it runs when the others have nothing to do, and makes way at once when
/// they have.
pub(crate) fn lower_priority() {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: `none` is only read; zero means the calling thread (sched_setscheduler(2), on Linux).
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const none) } != 0 {
        be_nice(19);
    }
}

/// Makes the calling thread less important than those that answer queries, but not so that it stands still when they are
/// busy all the time: it gets about a tenth of what each of them gets.
pub(crate) fn step_back() {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: `none` is only read; zero means the calling thread. A refusal does no harm.
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const none) };
    be_nice(10);
}

fn be_nice(niceness: c_int) {
    // SAFETY: takes numbers only; zero means the calling thread (setpriority(2), on Linux). A refusal does no harm.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, niceness) };
}

/// Octets from which on a block of memory is the kernel's again as soon as it is freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_OCTETS_MIN: c_int = 1 << 20;

/// Sees to it that large blocks of memory are the kernel's again as soon as they are freed.
///
/// The allocator of glibc would do so only until the first of them was freed, and keep the next for itself: after a
/// reload, what reading large lists took would stay with the process.
pub(crate) fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for parameter in [libc::M_MMAP_THRESHOLD, libc::M_TRIM_THRESHOLD] {
        // SAFETY: takes numbers only. A refusal does no harm.
        let _ = unsafe { libc::mallopt(parameter, LARGE_OCTETS_MIN) };
    }
}

/// Gives the kernel back what is free of the memory that the allocator holds, in all of its arenas.
pub(crate) fn give_back_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes a number only, and changes nothing that is in use.
    let _ = unsafe { libc::malloc_trim(0) };
}

/// Takes the pages of the program's code and constants out of this process's memory: most of what the start has touched is not
/// touched again. What is, the kernel maps again from its page cache when it is used, without reading the file.
pub(crate) fn release_program_pages() {
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    {
        extern "C" fn release(object: *mut libc::dl_phdr_info, _: usize, _: *mut libc::c_void) -> c_int {
            // SAFETY: the dynamic linker passes a description that is valid during this call.
            let Some(object) = (unsafe { object.as_ref() }) else { return 0 };
            // SAFETY: it says how many headers there are, and they stay as long as the object is loaded.
            let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
            // Relocations are written to segments that are writable in the file, never to the others.
            let is_constant = |header: &&libc::Elf64_Phdr| {
                header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0
            };
            for header in headers.iter().filter(is_constant) {
                let first = object.dlpi_addr.wrapping_add(header.p_vaddr).next_multiple_of(PAGE_OCTETS_MAX);
                let end = object.dlpi_addr.wrapping_add(header.p_vaddr).wrapping_add(header.p_memsz);
                let octets = end.saturating_sub(first) / PAGE_OCTETS_MAX * PAGE_OCTETS_MAX;
                // SAFETY: the range lies inside a private mapping of a file that nobody has written to, so that it has the
                // same contents when it is mapped again.
                let _ = unsafe {
                    libc::madvise(first as *mut libc::c_void, octets as usize, libc::MADV_DONTNEED)
                };
            }
            // The program itself comes first; libraries are shared and small.
            1
        }
        // SAFETY: `release` keeps to the contract of the callback and does not use the null pointer it is given.
        let _ = unsafe { libc::dl_iterate_phdr(Some(release), std::ptr::null_mut()) };
    }
}

/// Gives up the capabilities of this thread that are not kept, for good. Threads started later inherit that.
pub(crate) fn drop_capabilities(kept: Kept) -> io::Result<()> {
    // SAFETY: `PR_CAP_AMBIENT` takes numbers only. Kernels before 4.3 do not know it and have no ambient set.
    let _ = unsafe {
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as u64, 0_u64, 0_u64, 0_u64)
    };
    let mut header = CapabilityHeader { version: CAPABILITY_VERSION_3, pid: 0 };
    let mut data = [CapabilityData::default(); 2];
    if kept == Kept::PacketFilter {
        // Asking for what we do not have is refused, so ask what we have.
        let mut had = [CapabilityData::default(); 2];
        // SAFETY: both structures have the layout of version 3 and are ours to write; `had` has its two data elements.
        let result = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, had.as_mut_ptr()) };
        if result == 0 {
            data[0].permitted = had[0].permitted & NET_ADMIN;
            data[0].effective = data[0].permitted;
        }
    }
    // SAFETY: both structures have the layout of version 3, which takes two data elements, and are only read.
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

/// Returns how many octets of addresses the process may have, and how many of these it does not have yet; `None` if there is no
/// limit.
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

/// Returns the cores this process may run on, in order; never empty.
pub(crate) fn allowed_cores() -> Vec<usize> {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: `set` is ours to write and its size is given.
    let result = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr()) };
    if result != 0 {
        return vec![0];
    }
    // SAFETY: all-zero bytes are a valid set, and the kernel wrote into it.
    let set = unsafe { set.assume_init() };
    let cores = 0..libc::CPU_SETSIZE as usize;
    // SAFETY: every `core` is below `CPU_SETSIZE`.
    let allowed: Vec<usize> = cores.filter(|&core| unsafe { libc::CPU_ISSET(core, &set) }).collect();
    if allowed.is_empty() { vec![0] } else { allowed }
}

/// Keeps the calling thread on one of [`allowed_cores`].
pub(crate) fn pin_to(core: usize) -> io::Result<()> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: all-zero bytes are the empty set.
    let mut set: libc::cpu_set_t = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: `core` is below `CPU_SETSIZE`.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: `set` is only read and its size is given; 0 means the calling thread.
    check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) })
}

/// Returns the time since the machine booted, times of sleep included (CLOCK_BOOTTIME): nobody can set that clock, and reading
/// it costs no system call.
pub(crate) fn since_boot() -> Duration {
    // Elsewhere there may be none that counts sleep.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: `time` is ours to write.
    unsafe { libc::clock_gettime(CLOCK, time.as_mut_ptr()) };
    // SAFETY: all-zero bytes are a valid `timespec`, should the call have failed.
    let time = unsafe { time.assume_init() };
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// Returns a number of this run of the machine, another one after each boot; `None` if the system has none (random(4)).
pub(crate) fn boot_number() -> Option<NonZeroU64> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let number = u128::from_str_radix(&digits, 16).ok()?;
    NonZeroU64::new((number >> 64) as u64 ^ number as u64)
}

/// Returns hour, minute and second of a moment in the local time zone.
pub(crate) fn local_time_of_day(unix_seconds: u64) -> (i32, i32, i32) {
    let seconds = unix_seconds as libc::time_t;
    let mut split = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: `seconds` is only read and `split` is ours to write.
    unsafe { libc::localtime_r(&raw const seconds, split.as_mut_ptr()) };
    // SAFETY: all-zero bytes are a valid `tm`, should the call have failed.
    let split = unsafe { split.assume_init() };
    (split.tm_hour, split.tm_min, split.tm_sec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_found_and_nobody_invents_users() {
        assert_eq!(find_user("root").unwrap().map(|user| user.uid), Some(0));
        assert_eq!(find_user("no such user").unwrap(), None);
    }

    #[test]
    fn a_thread_can_be_pinned_where_it_may_run() {
        let cores = allowed_cores();
        std::thread::spawn(move || {
            pin_to(cores[0]).unwrap();
            assert_eq!(allowed_cores(), [cores[0]]);
        })
        .join()
        .unwrap();
    }
}
