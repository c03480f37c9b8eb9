//! Hosts, tasks, siblings and the mailbox: C answers an array; Fortran has one entry of it with each call, and the
//! array anew after the last one, or when the program sets the number to -1.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Mutex;

use super::text;
use crate::errors::Code;

/// Where a program is in an array.
struct ArrayWalk(Mutex<Reached>);

struct Reached {
    first: *mut c_void,
    next: c_int,
    count: c_int,
    /// Beside the array, for hosts: how many formats of data there are.
    formats: c_int,
}

// SAFETY: the array is the library's until it is asked anew.
unsafe impl Send for Reached {}

impl ArrayWalk {
    const fn new() -> Self {
        Self(Mutex::new(Reached { first: std::ptr::null_mut(), next: 0, count: 0, formats: 0 }))
    }

    /// The next entry, an array being asked for (what that answers, and the array) if there is none: the entry, how
    /// many there are, and how many formats.
    ///
    /// # Safety
    /// `count` is null, or that of a number; `ask` answers an array with its length.
    unsafe fn next<T>(
        &self,
        count: *mut c_int,
        info: *mut c_int,
        ask: impl FnOnce(&mut c_int, &mut c_int, &mut *mut T) -> c_int,
    ) -> Option<(*mut T, c_int)> {
        let mut place = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // SAFETY: as the caller says.
        let again = unsafe { count.as_ref() }.is_some_and(|count| *count == -1);
        if place.next >= place.count || again {
            let (mut length, mut formats, mut first) = (0, 0, std::ptr::null_mut());
            let answer = ask(&mut length, &mut formats, &mut first);
            *place = Reached { first: first.cast(), next: 0, count: 0, formats };
            // SAFETY: as the caller says.
            unsafe {
                if answer < 0 || first.is_null() || length <= 0 {
                    put(count, length.max(0));
                    put(info, answer.min(0));
                    return None;
                }
            }
            place.count = length;
        }
        // SAFETY: within the array.
        let entry = unsafe { place.first.cast::<T>().add(place.next as usize) };
        place.next += 1;
        // SAFETY: as the caller says.
        unsafe {
            put(count, place.count);
            put(info, 1);
        }
        Some((entry, place.formats))
    }
}

/// # Safety
/// `at` is null, or that of a number.
unsafe fn put(at: *mut c_int, value: c_int) {
    if !at.is_null() {
        // SAFETY: as the caller says.
        unsafe { at.write(value) };
    }
}

/// `struct pvmhostinfo`.
#[repr(C)]
struct HostEntry {
    task: c_int,
    name: *const c_char,
    architecture: *const c_char,
    speed: c_int,
    _signature: c_int,
}

/// `struct pvmtaskinfo`.
#[repr(C)]
struct TaskEntry {
    task: c_int,
    parent: c_int,
    host: c_int,
    flag: c_int,
    program: *const c_char,
    _pid: c_int,
}

/// `struct pvmmboxinfo`.
#[repr(C)]
struct MailboxEntry {
    name: *const c_char,
    count: c_int,
    indices: *const c_int,
    owners: *const c_int,
    flags: *const c_int,
}

unsafe extern "C" {
    fn pvm_config(count: *mut c_int, formats: *mut c_int, hosts: *mut *mut HostEntry) -> c_int;
    fn pvm_tasks(place: c_int, count: *mut c_int, tasks: *mut *mut TaskEntry) -> c_int;
    fn pvm_getmboxinfo(pattern: *const c_char, count: *mut c_int, classes: *mut *mut MailboxEntry) -> c_int;
    fn pvm_siblings(tasks: *mut *mut c_int) -> c_int;
}

/// # Safety
/// Two texts with their lengths behind; all else are addresses of numbers, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvmfconfig_(
    count: *mut c_int,
    formats: *mut c_int,
    task: *mut c_int,
    name: *mut u8,
    architecture: *mut u8,
    speed: *mut c_int,
    info: *mut c_int,
    name_length: usize,
    architecture_length: usize,
) {
    static HOSTS: ArrayWalk = ArrayWalk::new();
    // SAFETY: as the caller says.
    unsafe {
        let ask = |length: &mut c_int, formats: &mut c_int, hosts: &mut _| pvm_config(length, formats, hosts);
        let Some((host, known)) = HOSTS.next(count, info, ask) else { return };
        let host: &HostEntry = &*host;
        put(formats, known);
        put(task, host.task);
        text::write(host.name, name, name_length);
        text::write(host.architecture, architecture, architecture_length);
        put(speed, host.speed);
    }
}

/// # Safety
/// A text with its length behind; all else are addresses of numbers, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvmftasks_(
    place: *const c_int,
    count: *mut c_int,
    task: *mut c_int,
    parent: *mut c_int,
    host: *mut c_int,
    flag: *mut c_int,
    program: *mut u8,
    info: *mut c_int,
    program_length: usize,
) {
    static TASKS: ArrayWalk = ArrayWalk::new();
    // SAFETY: as the caller says.
    unsafe {
        let ask = |length: &mut c_int, _: &mut c_int, tasks: &mut _| pvm_tasks(*place, length, tasks);
        let Some((entry, _)) = TASKS.next(count, info, ask) else { return };
        let entry: &TaskEntry = &*entry;
        put(task, entry.task);
        put(parent, entry.parent);
        put(host, entry.host);
        put(flag, entry.flag);
        text::write(entry.program, program, program_length);
    }
}

/// # Safety
/// Two texts with their lengths behind; all else are addresses of numbers, or null; indices, owners and flags those of
/// arrays with room for all entries of a class.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvmfgetmboxinfo_(
    pattern: *const u8,
    name: *mut u8,
    classes: *mut c_int,
    entries: *mut c_int,
    indices: *mut c_int,
    owners: *mut c_int,
    flags: *mut c_int,
    info: *mut c_int,
    pattern_length: usize,
    name_length: usize,
) {
    static CLASSES: ArrayWalk = ArrayWalk::new();
    // SAFETY: as the caller says.
    unsafe {
        let pattern = text::c_text(pattern, pattern_length);
        let ask = |length: &mut c_int, _: &mut c_int, list: &mut _| pvm_getmboxinfo(pattern.as_ptr(), length, list);
        let Some((class, _)) = CLASSES.next(classes, info, ask) else { return };
        let class: &MailboxEntry = &*class;
        text::write(class.name, name, name_length);
        put(entries, class.count);
        for (from, to) in [(class.indices, indices), (class.owners, owners), (class.flags, flags)] {
            if !from.is_null() && !to.is_null() {
                std::ptr::copy_nonoverlapping(from, to, class.count.max(0) as usize);
            }
        }
    }
}

/// # Safety
/// The arguments are addresses of numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvmfsiblings_(count: *mut c_int, index: *const c_int, sibling: *mut c_int) {
    // SAFETY: as the caller says.
    unsafe {
        let mut tasks = std::ptr::null_mut();
        let siblings = pvm_siblings(&mut tasks);
        put(count, siblings);
        match *index {
            -1 => (),
            index if (0..siblings).contains(&index) && !tasks.is_null() => *sibling = *tasks.add(index as usize),
            _ => *sibling = Code::NO_TASK.0,
        }
    }
}
