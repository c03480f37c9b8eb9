//! The environment of a program that is started by a process which has become another user: one who cannot read this
//! library.
//!
//! The dynamic linker would complain of that in each such program. So the library is taken off the list of those to
//! preload, and we say it, once for all processes that came from one another by fork.

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::{log, raw};

type Words = *const *const c_char;

const LIBRARY: &[u8] = b"/libweft_sockets.so";
const PRELOAD: &[u8] = b"LD_PRELOAD=";
/// Longer environments and lists are left as they are: nothing is allocated here.
const MOST_VARIABLES: usize = 1024;
const MOST_BYTES: usize = 4096;

static USER: AtomicU32 = AtomicU32::new(0);
/// Shared with children: whether it was said.
static SAID: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());

/// Notes who we are. Only root becomes another user.
pub fn start() {
    USER.store(raw::user(), Ordering::Relaxed);
    if raw::user() == 0 {
        SAID.store(raw::map(size_of::<AtomicU32>(), true).cast(), Ordering::Relaxed);
    }
}

/// Calls `exec` with the environment that the program is to have.
///
/// # Safety
/// `environment` is null or a list of words that ends with null.
pub unsafe fn with_environment(environment: Words, exec: impl FnOnce(Words) -> c_int) -> c_int {
    let user = raw::user();
    if user == USER.load(Ordering::Relaxed) || environment.is_null() {
        return exec(environment);
    }
    // SAFETY: the caller's promise.
    let list = unsafe { words(environment) };
    without_library(user, list, exec)
}

/// Apart, because of what it wants of the stack. `list` is that of an environment, with the null behind it.
#[cold]
#[inline(never)]
fn without_library(user: u32, list: &[*const c_char], exec: impl FnOnce(Words) -> c_int) -> c_int {
    let environment = list.as_ptr();
    let is_list = |word: &*const c_char| bytes_of(*word).starts_with(PRELOAD);
    let Some(at) = list.iter().position(is_list) else { return exec(environment) };
    let all = &bytes_of(list[at])[PRELOAD.len()..];
    let Some(library) = names(all).find(|name| name.ends_with(LIBRARY) && !may_read(name)) else {
        return exec(environment);
    };
    if list.len() >= MOST_VARIABLES || all.len() + PRELOAD.len() >= MOST_BYTES {
        return exec(environment);
    }
    say(user, library);
    let mut text = [0u8; MOST_BYTES];
    let mut fresh = [std::ptr::null::<c_char>(); MOST_VARIABLES];
    without(library, all, &mut text);
    fresh[..list.len()].copy_from_slice(list);
    fresh[at] = text.as_ptr().cast();
    exec(fresh.as_ptr())
}

/// # Safety
/// A list of words that ends with null.
unsafe fn words<'a>(list: Words) -> &'a [*const c_char] {
    let mut count = 0;
    // SAFETY: the caller's promise: what is before the null is there.
    unsafe {
        while !(*list.add(count)).is_null() {
            count += 1;
        }
        std::slice::from_raw_parts(list, count)
    }
}

fn bytes_of<'a>(word: *const c_char) -> &'a [u8] {
    // SAFETY: called with words of the program's list only, which are strings of C.
    unsafe { CStr::from_ptr(word) }.to_bytes()
}

/// The dynamic linker's rule: blanks and colons separate.
fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| matches!(byte, b' ' | b':')).filter(|name| !name.is_empty())
}

fn may_read(name: &[u8]) -> bool {
    let mut path = [0u8; MOST_BYTES];
    let Some(place) = path[..MOST_BYTES - 1].get_mut(..name.len()) else { return true };
    place.copy_from_slice(name);
    let _errno = raw::KeepErrno::new();
    // SAFETY: a string of C: there is room for a zero behind the name.
    unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr().cast(), libc::R_OK, libc::AT_EACCESS) == 0 }
}

/// The variable with all libraries of `list` but `library`; there is room.
fn without(library: &[u8], list: &[u8], text: &mut [u8; MOST_BYTES]) {
    let mut end = PRELOAD.len();
    text[..end].copy_from_slice(PRELOAD);
    for name in names(list).filter(|name| *name != library) {
        if end > PRELOAD.len() {
            text[end] = b':';
            end += 1;
        }
        text[end..end + name.len()].copy_from_slice(name);
        end += name.len();
    }
}

fn say(user: u32, library: &[u8]) {
    let said = SAID.load(Ordering::Relaxed);
    // SAFETY: null, or the memory mapped above, which is never unmapped.
    let before = unsafe { said.as_ref() }.map_or(0, |said| said.swap(1, Ordering::Relaxed));
    if before == 0 {
        let library = std::str::from_utf8(library).unwrap_or("libweft_sockets.so");
        log::line(format_args!(
            "user {user} cannot read the library '{library}': programs that this user starts stay with the kernel; install \
             Weft where all users can read it"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_library_is_taken_off_the_list() {
        let of = |list: &str| {
            let mut text = [0; MOST_BYTES];
            without(b"/p/libweft_sockets.so", list.as_bytes(), &mut text);
            CStr::from_bytes_until_nul(&text).unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(of("/p/libweft_sockets.so"), "LD_PRELOAD=");
        assert_eq!(of("/p/libweft_sockets.so:/a.so b.so"), "LD_PRELOAD=/a.so:b.so");
        assert_eq!(of("/a.so:/p/libweft_sockets.so"), "LD_PRELOAD=/a.so");
    }
}
