//! What only the operating system can do for a running server, each call in a safe function.

use std::ffi::{CStr, CString, c_char, c_int};
use std::io;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::time::Duration;

/// Octets of the largest pages that Linux uses on the processors we know (arm64 with 64 KiB).
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
const PAGE_OCTETS_MAX: u64 = 64 * 1024;

/// Octets from which on a block of memory is the kernel's again as soon as it is freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_OCTETS_MIN: c_int = 1 << 20;

fn check(result: c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the octets of memory that this process has in use (resident), if the system reports it
/// (proc(5)).
pub fn resident_octets() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: `_SC_PAGESIZE` takes nothing and cannot fail.
    let octets = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.checked_mul(u64::try_from(octets).ok()?)
}

/// Octets that an entry of the user database takes; longer ones are taken for unknown.
const USER_OCTETS: usize = 4096;

/// Returns the name of a user, if the system knows it.
pub fn user_name(user: u32) -> Option<String> {
    let mut strings: Vec<c_char> = vec![0; USER_OCTETS];
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: `entry`, `strings` (with its length) and `found` are ours to write.
    let error = unsafe {
        libc::getpwuid_r(user, entry.as_mut_ptr(), strings.as_mut_ptr(), strings.len(), &raw mut found)
    };
    if error != 0 || found.is_null() {
        return None;
    }
    // SAFETY: a non-null `found` means that `entry` was filled in, and its name ends in a zero byte
    // in `strings`, which still lives.
    let name = unsafe { CStr::from_ptr(entry.assume_init().pw_name) };
    name.to_str().ok().map(str::to_owned)
}

/// Returns whether the system knows a user of this name.
pub fn has_user(name: &str) -> bool {
    let Ok(name) = CString::new(name) else { return false };
    let mut strings: Vec<c_char> = vec![0; USER_OCTETS];
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: `name` ends in a zero byte, and `entry`, `strings` (with its length) and `found` are
    // ours to write.
    let error = unsafe {
        libc::getpwnam_r(
            name.as_ptr(),
            entry.as_mut_ptr(),
            strings.as_mut_ptr(),
            strings.len(),
            &raw mut found,
        )
    };
    error == 0 && !found.is_null()
}

/// Makes the calling thread the least important: it runs when the others have nothing to do, and
/// makes way at once when they have.
pub fn lower_priority() {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: `none` is only read; zero means the calling thread (sched_setscheduler(2), on Linux).
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const none) } != 0 {
        be_nice(19);
    }
}

/// Makes the calling thread less important than those that answer queries, but not so that it
/// stands still when they are busy all the time: it gets about a tenth of what each of them gets.
pub fn step_back() {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: `none` is only read; zero means the calling thread. A refusal does no harm.
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const none) };
    be_nice(10);
}

fn be_nice(niceness: c_int) {
    // SAFETY: takes numbers only; zero means the calling thread (setpriority(2), on Linux). A
    // refusal does no harm.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, niceness) };
}

/// Sees to it that large blocks of memory are the kernel's again as soon as they are freed.
///
/// The allocator of glibc would do so only until the first of them was freed, and keep the next for
/// itself: after a reload, what reading large lists took would stay with the process.
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for parameter in [libc::M_MMAP_THRESHOLD, libc::M_TRIM_THRESHOLD] {
        // SAFETY: takes numbers only. A refusal does no harm.
        let _ = unsafe { libc::mallopt(parameter, LARGE_OCTETS_MIN) };
    }
}

/// Gives the kernel back what is free of the memory that the allocator holds, in all of its arenas.
pub fn give_back_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes a number only, and changes nothing that is in use.
    let _ = unsafe { libc::malloc_trim(0) };
}

/// Takes the pages of the program's code and constants out of this process's memory: most of what
/// the start has touched is not touched again. What is, the kernel maps again from its page cache
/// when it is used, without reading the file.
pub fn release_program_pages() {
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    {
        extern "C" fn release(object: *mut libc::dl_phdr_info, _: usize, _: *mut libc::c_void) -> c_int {
            // SAFETY: the dynamic linker passes a description that is valid during this call.
            let Some(object) = (unsafe { object.as_ref() }) else { return 0 };
            // SAFETY: it says how many headers there are, and they stay as long as the object is
            // loaded.
            let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
            // Relocations are written to segments that are writable in the file, never to the
            // others.
            let is_constant = |header: &&libc::Elf64_Phdr| {
                header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0
            };
            for header in headers.iter().filter(is_constant) {
                let first = object.dlpi_addr.wrapping_add(header.p_vaddr).next_multiple_of(PAGE_OCTETS_MAX);
                let end = object.dlpi_addr.wrapping_add(header.p_vaddr).wrapping_add(header.p_memsz);
                let octets = end.saturating_sub(first) / PAGE_OCTETS_MAX * PAGE_OCTETS_MAX;
                // SAFETY: the range lies inside a private mapping of a file that nobody has written
                // to, so that it has the same contents when it is mapped again.
                let _ = unsafe {
                    libc::madvise(first as *mut libc::c_void, octets as usize, libc::MADV_DONTNEED)
                };
            }
            // The program itself comes first; libraries are shared and small.
            1
        }
        // SAFETY: `release` keeps to the contract of the callback and does not use the null pointer
        // it is given.
        let _ = unsafe { libc::dl_iterate_phdr(Some(release), std::ptr::null_mut()) };
    }
}

/// Returns the cores this process may run on, in order; never empty.
pub fn allowed_cores() -> Vec<usize> {
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
pub fn pin_to(core: usize) -> io::Result<()> {
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

/// Returns the time since the machine booted, times of sleep included (CLOCK_BOOTTIME): nobody can
/// set that clock, and reading it costs no system call.
pub fn since_boot() -> Duration {
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

/// Returns a number of this run of the machine, another one after each boot; `None` if the system
/// has none (random(4)).
pub fn boot_number() -> Option<NonZeroU64> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let number = u128::from_str_radix(&digits, 16).ok()?;
    NonZeroU64::new((number >> 64) as u64 ^ number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

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
