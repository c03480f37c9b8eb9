//! The page of the process table: where it is, and how it is found.
//!
//! It is a private mapping of a memory file with a name, which shows in the mappings of the process and in those of
//! nobody else. The file itself is closed at once.

use super::table::{ProcessTable, TableHead};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const NAME: &std::ffi::CStr = c"weft-process";
/// As the mappings show it.
const SHOWN: &str = "/memfd:weft-process";

/// Puts the table where the other libraries of this process find it. It stays.
pub(super) fn publish(table: ProcessTable) -> io::Result<&'static ProcessTable> {
    // SAFETY: the name is a C string; the descriptor answered is new and ours.
    let file = unsafe {
        match libc::memfd_create(NAME.as_ptr(), libc::MFD_CLOEXEC) {
            -1 => return Err(io::Error::last_os_error()),
            number => File::from(OwnedFd::from_raw_fd(number)),
        }
    };
    file.set_len(size_of::<ProcessTable>() as u64)?;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice, of all of the file.
    let at = unsafe {
        let (none, bytes) = (std::ptr::null_mut(), size_of::<ProcessTable>());
        libc::mmap(none, bytes, protection, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
    };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let at = at.cast::<ProcessTable>();
    // SAFETY: the mapping is long enough, aligned to a page, nobody else's yet, and stays.
    unsafe {
        at.write(table);
        (*at).open();
        Ok(&*at)
    }
}

/// The head of a table that another library of this process has published, of whatever version.
pub(super) fn find() -> Option<&'static TableHead> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().filter(|line| line.contains(SHOWN)).find_map(|line| {
        let mut words = line.split(' ');
        let (from, to) = words.next()?.split_once('-')?;
        let (from, to) = (usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?);
        if !words.next()?.starts_with('r') || to - from < size_of::<TableHead>() {
            return None;
        }
        // SAFETY: readable memory of this process for a head, in a mapping that is made to stay; any bytes are a head.
        let head = unsafe { &*(from as *const TableHead) };
        head.is_of_this_process().then_some(head)
    })
}

/// Keeps the library that holds this function loaded: others of the process call into it.
pub(super) fn stay_loaded(function: *const ()) {
    // SAFETY: asks which file holds an address, and has that one stay, which is loaded.
    unsafe {
        let mut found: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(function.cast(), &mut found) != 0 && !found.dli_fname.is_null() {
            libc::dlopen(found.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
        }
    }
}
