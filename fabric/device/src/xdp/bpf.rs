//! The kernel's `bpf` call, as far as lanes need it: a map of sockets, programs, and the links that attach them.

use super::program::Instruction;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

const MAP_CREATE: i32 = 0;
const MAP_UPDATE: i32 = 2;
const PROGRAM_LOAD: i32 = 5;
const PROGRAM_ATTACH: i32 = 8;
const PROGRAM_BY_ID: i32 = 13;
const OBJECT_INFO: i32 = 15;
const LINK_CREATE: i32 = 28;

const SOCKET_MAP: u32 = 17;
const XDP_PROGRAM: u32 = 6;
const XDP_ATTACHMENT: u32 = 37;
const CLASSIFIER: u32 = 3;
const RECEIVED_ATTACHMENT: u32 = 46;
/// The program is content with packets of several pieces.
const PIECES: u32 = 1 << 5;
const GENERIC: u32 = 1 << 1;
const NATIVE: u32 = 1 << 2;

/// The name under which `bpftool` and others see map and program.
const NAME: [u8; 16] = *b"weft_lanes\0\0\0\0\0\0";
const LICENSE: &std::ffi::CStr = c"MIT OR Apache-2.0";

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
    inner: u32,
    node: u32,
    name: [u8; 16],
}

#[repr(C)]
struct MapUpdate {
    map: u32,
    _gap: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attachment: u32,
}

#[repr(C)]
struct ProgramAttach {
    interface: u32,
    program: u32,
    attachment: u32,
    flags: u32,
    replaced: u32,
    relative: u32,
    revision: u64,
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attachment: u32,
    flags: u32,
}

#[repr(C)]
struct ById {
    id: u32,
    next: u32,
    flags: u32,
}

#[repr(C)]
struct ObjectInfo {
    descriptor: u32,
    bytes: u32,
    info: u64,
}

/// # Safety
/// `attributes` are what the command reads, and what they point at lives across the call.
unsafe fn bpf<T>(command: i32, attributes: &mut T) -> io::Result<i32> {
    // SAFETY: the size is that of the attributes; the caller answers for what they say.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, attributes as *mut T, size_of::<T>()) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer as i32) }
}

fn owned(number: i32) -> OwnedFd {
    // SAFETY: the kernel has just made this descriptor, closed on exec, for us.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// A map of sockets by number, with room for `entries`.
pub fn socket_map(entries: u32) -> io::Result<OwnedFd> {
    let mut attributes =
        MapCreate { kind: SOCKET_MAP, key_bytes: 4, value_bytes: 4, entries, flags: 0, inner: 0, node: 0, name: NAME };
    // SAFETY: numbers only.
    unsafe { bpf(MAP_CREATE, &mut attributes) }.map(owned)
}

/// Puts a socket into a map.
pub fn put_socket(map: BorrowedFd<'_>, key: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
    let value = socket.as_raw_fd();
    let mut attributes = MapUpdate {
        map: map.as_raw_fd() as u32,
        _gap: 0,
        key: &raw const key as u64,
        value: &raw const value as u64,
        flags: 0,
    };
    // SAFETY: key and value are the four bytes each that the map was made for.
    unsafe { bpf(MAP_UPDATE, &mut attributes) }.map(drop)
}

/// What a program decides about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ProgramKind {
    /// Packets that an interface has received; with `pieces` also where they come in several.
    Filter { pieces: bool },
    /// Packets of the kernel's.
    Classifier,
}

/// Where a filter is attached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// Native XDP.
    Driver,
    /// Generic XDP.
    BehindDriver,
}

/// Has the kernel check and compile a program.
///
/// # Errors
/// The text ends with what the kernel's verifier said, if it said anything.
pub fn load(kind: ProgramKind, code: &[Instruction]) -> io::Result<OwnedFd> {
    let mut log = vec![0u8; 65536];
    let (kind, attachment, flags) = match kind {
        ProgramKind::Filter { pieces } => (XDP_PROGRAM, XDP_ATTACHMENT, if pieces { PIECES } else { 0 }),
        ProgramKind::Classifier => (CLASSIFIER, 0, 0),
    };
    let mut attributes = ProgramLoad {
        kind,
        instructions: code.len() as u32,
        code: code.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
        log_level: 0,
        log_bytes: 0,
        log: 0,
        kernel: 0,
        flags,
        name: NAME,
        interface: 0,
        attachment,
    };
    // SAFETY: code, license and log live across the call, with the lengths said.
    let refused = match unsafe { bpf(PROGRAM_LOAD, &mut attributes) } {
        Ok(number) => return Ok(owned(number)),
        Err(error) => error,
    };
    if refused.raw_os_error() == Some(libc::EPERM) {
        return Err(refused);
    }
    (attributes.log_level, attributes.log_bytes, attributes.log) = (1, log.len() as u32, log.as_mut_ptr() as u64);
    // SAFETY: as above. It fails again; this time the kernel says why.
    match unsafe { bpf(PROGRAM_LOAD, &mut attributes) } {
        Ok(number) => Ok(owned(number)),
        Err(error) => {
            let length = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
            let said = String::from_utf8_lossy(&log[..length]);
            let said: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
            Err(io::Error::new(error.kind(), format!("{error}: {}", said.join("; "))))
        }
    }
}

/// Has a classifier decide about all that an interface receives (`tcx`), as long as there is the interface.
pub fn classify(program: BorrowedFd<'_>, interface: u32) -> io::Result<()> {
    let mut attributes = ProgramAttach {
        interface,
        program: program.as_raw_fd() as u32,
        attachment: RECEIVED_ATTACHMENT,
        flags: 0,
        replaced: 0,
        relative: 0,
        revision: 0,
    };
    // SAFETY: numbers only.
    unsafe { bpf(PROGRAM_ATTACH, &mut attributes) }.map(drop)
}

/// Attaches a filter to an interface until the descriptor answered, and all that were made from it, are closed.
pub fn attach(program: BorrowedFd<'_>, interface: u32, hook: Hook) -> io::Result<OwnedFd> {
    let flags = match hook {
        Hook::Driver => NATIVE,
        Hook::BehindDriver => GENERIC,
    };
    let program = program.as_raw_fd() as u32;
    let mut attributes = LinkCreate { program, interface, attachment: XDP_ATTACHMENT, flags };
    // SAFETY: numbers only.
    unsafe { bpf(LINK_CREATE, &mut attributes) }.map(owned)
}

/// The name of a loaded program.
pub fn program_name(id: u32) -> io::Result<String> {
    // Up to the name, which is all that is asked for.
    const NAME_AT: usize = 64;
    let mut by_id = ById { id, next: 0, flags: 0 };
    // SAFETY: numbers only.
    let program = unsafe { bpf(PROGRAM_BY_ID, &mut by_id) }.map(owned)?;
    let mut info = [0u64; 10];
    let mut attributes = ObjectInfo {
        descriptor: RawFd::from(program.as_raw_fd()) as u32,
        bytes: size_of_val(&info) as u32,
        info: info.as_mut_ptr() as u64,
    };
    // SAFETY: `info` has as many bytes as said. Its pointers and lengths are 0, so that no lists are written.
    unsafe { bpf(OBJECT_INFO, &mut attributes) }?;
    let bytes: Vec<u8> = info[NAME_AT / 8..].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
}
