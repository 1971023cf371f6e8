//! The system call `bpf`: maps, programs, links.
//!
//! Its argument is a union whose members are told by the command; here it is an array of words,
//! filled at the offsets of `include/uapi/linux/bpf.h` and zero elsewhere, which to the kernel
//! means "not asked for".

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

const MAP_CREATE: i32 = 0;
const MAP_LOOKUP: i32 = 1;
const MAP_UPDATE: i32 = 2;
const MAP_DELETE: i32 = 3;
const MAP_NEXT_KEY: i32 = 4;
const PROGRAM_LOAD: i32 = 5;
const OBJECT_PIN: i32 = 6;
const OBJECT_GET: i32 = 7;
const PROGRAM_RUN: i32 = 10;
const PROGRAM_FD_BY_ID: i32 = 13;
const INFO_BY_FD: i32 = 15;
const LINK_CREATE: i32 = 28;
const LINK_FD_BY_ID: i32 = 30;
const LINK_NEXT_ID: i32 = 31;
const LINK_DETACH: i32 = 34;

const PROGRAM_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
const LINK_XDP: u32 = 6;
/// The program copes with packets in several buffers (`BPF_F_XDP_HAS_FRAGS`, Linux 5.18).
const HAS_FRAGMENTS: u32 = 1 << 5;

/// Kinds of maps that are used in a way of their own.
pub(crate) const MAP_PER_CPU_ARRAY: u32 = 6;
pub(crate) const MAP_SOCKETS: u32 = 17;

/// Octets of what the verifier may say.
const LOG_OCTETS: usize = 1 << 16;

/// The argument.
#[repr(C, align(8))]
struct Attributes([u8; 128]);

impl Attributes {
    const fn new() -> Self {
        Self([0; 128])
    }

    fn put(mut self, at: usize, bytes: &[u8]) -> Self {
        for (to, from) in self.0.iter_mut().skip(at).zip(bytes) {
            *to = *from;
        }
        self
    }

    fn number(self, at: usize, value: u32) -> Self {
        self.put(at, &value.to_ne_bytes())
    }

    fn fd(self, at: usize, fd: BorrowedFd<'_>) -> Self {
        self.number(at, fd.as_raw_fd() as u32)
    }

    fn address<T>(self, at: usize, start: *const T) -> Self {
        self.put(at, &(start as u64).to_ne_bytes())
    }

    fn read(&self, at: usize) -> u32 {
        let mut bytes = [0; 4];
        for (to, from) in bytes.iter_mut().zip(self.0.iter().skip(at)) {
            *to = *from;
        }
        u32::from_ne_bytes(bytes)
    }
}

/// Makes the call.
///
/// # Safety
///
/// Every address in `attributes` leads to memory that lives through the call and is as long as the
/// command, its other attributes and the map or program they name make the kernel believe.
unsafe fn bpf(command: i32, attributes: &mut Attributes) -> io::Result<i32> {
    let (start, octets) = (attributes.0.as_mut_ptr(), attributes.0.len());
    // SAFETY: the caller's promise; the attributes themselves live through the call.
    let returned = unsafe { libc::syscall(libc::SYS_bpf, command, start, octets) };
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned as i32) }
}

/// Makes a call that returns a new descriptor.
///
/// # Safety
///
/// As of [`bpf`], and the command returns a descriptor.
unsafe fn bpf_fd(command: i32, attributes: &mut Attributes) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    let fd = unsafe { bpf(command, attributes) }?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// What a map is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MapShape {
    pub(crate) kind: u32,
    pub(crate) key_octets: u32,
    pub(crate) value_octets: u32,
    pub(crate) entries: u32,
    pub(crate) flags: u32,
}

/// A map, which knows how long its keys and values are.
#[derive(Debug)]
pub(crate) struct Map {
    fd: OwnedFd,
    shape: MapShape,
}

impl Map {
    pub(crate) fn create(name: &str, shape: MapShape) -> io::Result<Self> {
        let mut attributes = Attributes::new()
            .number(0, shape.kind)
            .number(4, shape.key_octets)
            .number(8, shape.value_octets)
            .number(12, shape.entries)
            .number(16, shape.flags)
            .put(28, &object_name(name));
        // SAFETY: no addresses.
        let fd = unsafe { bpf_fd(MAP_CREATE, &mut attributes) }?;
        Ok(Self { fd, shape })
    }

    /// Opens a map that somebody pinned; it must have the kind and sizes of `shape`.
    pub(crate) fn open(path: &Path, shape: MapShape) -> io::Result<Self> {
        let fd = open_pinned(path)?;
        let mut info = [0u8; 88];
        info_of(fd.as_fd(), &mut info)?;
        let word = |at: usize| {
            info.get(at..at + 4).and_then(|it| it.first_chunk()).map(|it| u32::from_ne_bytes(*it))
        };
        let found = [word(0), word(8), word(12)];
        if found != [Some(shape.kind), Some(shape.key_octets), Some(shape.value_octets)] {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the pinned object is not a map of AF_XDP sockets",
            ));
        }
        Ok(Self { fd, shape: MapShape { entries: word(16).unwrap_or(0), ..shape } })
    }

    /// Makes the map available by a path in a BPF file system.
    pub(crate) fn pin(&self, path: &Path) -> io::Result<()> {
        let path = c_path(path)?;
        let mut attributes = Attributes::new().address(0, path.as_ptr()).fd(8, self.fd.as_fd());
        // SAFETY: the path lives through the call and ends with a NUL.
        unsafe { bpf(OBJECT_PIN, &mut attributes) }?;
        Ok(())
    }

    fn element(&self, key: &[u8]) -> io::Result<Attributes> {
        if key.len() != self.shape.key_octets as usize {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Attributes::new().fd(0, self.fd.as_fd()).address(8, key.as_ptr()))
    }

    /// Octets that the kernel reads and writes for a value: one for each processor in per-processor
    /// maps.
    fn value_octets(&self) -> usize {
        let octets = self.shape.value_octets as usize;
        if self.shape.kind == MAP_PER_CPU_ARRAY {
            octets.next_multiple_of(8) * processors_max()
        } else {
            octets
        }
    }

    pub(crate) fn set(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        if value.len() != self.value_octets() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut attributes = self.element(key)?.address(16, value.as_ptr());
        // SAFETY: key and value are as long as the map's, and live through the call.
        unsafe { bpf(MAP_UPDATE, &mut attributes) }?;
        Ok(())
    }

    /// Returns an entry's value; of a per-processor map the values of all, one after the other.
    pub(crate) fn look_up(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut value = vec![0; self.value_octets()];
        let mut attributes = self.element(key)?.address(16, value.as_mut_ptr());
        // SAFETY: as in `set`; the kernel writes as many octets as the value has.
        absent(unsafe { bpf(MAP_LOOKUP, &mut attributes) }).map(|found| found.map(|()| value))
    }

    /// Removes an entry; returns whether there was one.
    pub(crate) fn remove(&self, key: &[u8]) -> io::Result<bool> {
        let mut attributes = self.element(key)?;
        // SAFETY: the key is as long as the map's, and lives through the call.
        absent(unsafe { bpf(MAP_DELETE, &mut attributes) }).map(|found| found.is_some())
    }

    /// Returns the key that follows `key`, or the first one.
    pub(crate) fn next_key(&self, key: Option<&[u8]>) -> io::Result<Option<Vec<u8>>> {
        let mut next = vec![0; self.shape.key_octets as usize];
        let attributes = match key {
            Some(key) => self.element(key)?,
            None => Attributes::new().fd(0, self.fd.as_fd()),
        };
        let mut attributes = attributes.address(16, next.as_mut_ptr());
        // SAFETY: both keys are as long as the map's, and live through the call.
        absent(unsafe { bpf(MAP_NEXT_KEY, &mut attributes) }).map(|found| found.map(|()| next))
    }

    pub(crate) const fn entries(&self) -> u32 {
        self.shape.entries
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Tells "there is none" from other errors.
fn absent(result: io::Result<i32>) -> io::Result<Option<()>> {
    match result {
        Ok(_) => Ok(Some(())),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns how many processors there can ever be, which is how many values a per-processor map has.
fn processors_max() -> usize {
    // A list such as `0-3` or `0,2-7`: its last number counts.
    let listed = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = listed.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<usize>().ok());
    // Should the file be missing, too much room does no harm and too little would.
    last.map_or(4096, |last| last + 1)
}

/// Loads an XDP program. The error says what the verifier said.
pub(crate) fn load_program(
    name: &str,
    instructions: &[u64],
    licence: &str,
    takes_fragments: bool,
) -> io::Result<OwnedFd> {
    let licence = CString::new(licence)?;
    let flags = if takes_fragments { HAS_FRAGMENTS } else { 0 };
    let attributes = || {
        Attributes::new()
            .number(0, PROGRAM_XDP)
            .number(4, instructions.len() as u32)
            .address(8, instructions.as_ptr())
            .address(16, licence.as_ptr())
            .number(44, flags)
            .put(48, &object_name(name))
            .number(68, ATTACH_XDP)
    };
    // SAFETY: as many instructions of 64 bits as `attributes` declare; the licence ends with a NUL;
    // both live through the call.
    let error = match unsafe { bpf_fd(PROGRAM_LOAD, &mut attributes()) } {
        Ok(fd) => return Ok(fd),
        Err(error) => error,
    };
    if matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS)) {
        return Err(error);
    }
    // Once more with a log, which is not asked for at first because making it takes memory and
    // rights.
    let mut log = vec![0u8; LOG_OCTETS];
    let mut attributes =
        attributes().number(24, 1).number(28, LOG_OCTETS as u32).address(32, log.as_mut_ptr());
    // SAFETY: as above; the log has as many octets as declared.
    if let Ok(fd) = unsafe { bpf_fd(PROGRAM_LOAD, &mut attributes) } {
        return Ok(fd);
    }
    let text = String::from_utf8_lossy(&log);
    let text = text.trim_end_matches('\0').trim();
    let last =
        text.lines().rev().take(3).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("; ");
    Err(io::Error::new(error.kind(), format!("{error}: {last}")))
}

/// Runs a program on a frame, without any interface. Returns its verdict and the frame as it left
/// it.
pub(crate) fn run_program(program: BorrowedFd<'_>, frame: &[u8]) -> io::Result<(u32, Vec<u8>)> {
    // A program may make a packet longer, by no more than this.
    let mut out = vec![0u8; frame.len() + 256];
    let mut attributes = Attributes::new()
        .fd(0, program)
        .number(8, frame.len() as u32)
        .number(12, out.len() as u32)
        .address(16, frame.as_ptr())
        .address(24, out.as_mut_ptr());
    // SAFETY: both buffers are as long as declared, and live through the call.
    unsafe { bpf(PROGRAM_RUN, &mut attributes) }?;
    out.truncate(attributes.read(12) as usize);
    Ok((attributes.read(4), out))
}

/// Attaches a program to an interface for as long as the returned descriptor is open.
pub(crate) fn create_link(program: BorrowedFd<'_>, interface: u32, flags: u32) -> io::Result<OwnedFd> {
    let mut attributes =
        Attributes::new().fd(0, program).number(4, interface).number(8, ATTACH_XDP).number(12, flags);
    // SAFETY: no addresses.
    unsafe { bpf_fd(LINK_CREATE, &mut attributes) }
}

/// Detaches these programs from an interface, as far as they are attached to it by links.
///
/// Links of all network namespaces are listed, and interfaces of several may have one number: the
/// programs tell them apart.
pub(crate) fn detach_links(interface: u32, programs: &[u32]) -> io::Result<()> {
    let mut id = 0;
    // Ends: the numbers only grow.
    loop {
        let mut attributes = Attributes::new().number(0, id);
        // SAFETY: no addresses.
        match absent(unsafe { bpf(LINK_NEXT_ID, &mut attributes) })? {
            Some(()) => id = attributes.read(4),
            None => return Ok(()),
        }
        let mut attributes = Attributes::new().number(0, id);
        // SAFETY: no addresses.
        let Ok(link) = (unsafe { bpf_fd(LINK_FD_BY_ID, &mut attributes) }) else { continue };
        let mut info = [0u8; 64];
        if info_of(link.as_fd(), &mut info).is_err() {
            continue;
        }
        let word = |at: usize| {
            info.get(at..at + 4).and_then(|it| it.first_chunk()).map(|it| u32::from_ne_bytes(*it))
        };
        let is_meant = word(8).is_some_and(|program| programs.contains(&program));
        if word(0) == Some(LINK_XDP) && word(16) == Some(interface) && is_meant {
            let mut attributes = Attributes::new().fd(0, link.as_fd());
            // SAFETY: no addresses.
            unsafe { bpf(LINK_DETACH, &mut attributes) }?;
        }
    }
}

/// Returns the name of a loaded program.
pub(crate) fn program_name(id: u32) -> io::Result<String> {
    let mut attributes = Attributes::new().number(0, id);
    // SAFETY: no addresses.
    let program = unsafe { bpf_fd(PROGRAM_FD_BY_ID, &mut attributes) }?;
    let mut info = [0u8; 96];
    info_of(program.as_fd(), &mut info)?;
    let name = info.get(64..80).unwrap_or(&[]);
    Ok(name.iter().take_while(|byte| **byte != 0).map(|byte| char::from(*byte)).collect())
}

fn info_of(object: BorrowedFd<'_>, info: &mut [u8]) -> io::Result<()> {
    let mut attributes =
        Attributes::new().fd(0, object).number(4, info.len() as u32).address(8, info.as_mut_ptr());
    // SAFETY: the kernel writes at most as many octets as declared, which is what `info` has.
    unsafe { bpf(INFO_BY_FD, &mut attributes) }?;
    Ok(())
}

fn open_pinned(path: &Path) -> io::Result<OwnedFd> {
    let path = c_path(path)?;
    let mut attributes = Attributes::new().address(0, path.as_ptr());
    // SAFETY: the path lives through the call and ends with a NUL.
    unsafe { bpf_fd(OBJECT_GET, &mut attributes) }
}

fn c_path(path: &Path) -> io::Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Returns a name as the kernel takes it: at most 15 octets and a NUL.
fn object_name(name: &str) -> [u8; 16] {
    let mut octets = [0; 16];
    for (to, from) in octets.iter_mut().zip(name.bytes().take(15)) {
        *to = from;
    }
    octets
}
