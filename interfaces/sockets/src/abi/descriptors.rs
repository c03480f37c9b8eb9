//! Calls that make, copy, close and set descriptors.

use std::ffi::{c_char, c_int, c_uint, c_void};

use libc::{FILE, sockaddr, socklen_t};
use weft_fabric::stream::Reason;

use crate::meet::STREAMS;
use crate::{conn, ends, life, options, raw, real, requests, table, udp};

const CLOSE_RANGE_UNSHARE: c_int = 2;
const KIND_MASK: c_int = 0xf;

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: numbers only.
    let fd = unsafe { real::socket(domain, kind, protocol) };
    let stream = matches!(domain, libc::AF_INET | libc::AF_INET6) && kind & KIND_MASK == libc::SOCK_STREAM;
    if fd >= 0 && stream {
        conn::note(fd);
    } else if fd >= 0 && is_datagram(domain, kind, protocol) {
        udp::note(fd, domain);
    }
    fd
}

fn is_datagram(domain: c_int, kind: c_int, protocol: c_int) -> bool {
    matches!(domain, libc::AF_INET | libc::AF_INET6)
        && kind & KIND_MASK == libc::SOCK_DGRAM
        && matches!(protocol, 0 | libc::IPPROTO_UDP)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    // SAFETY: the program's own arguments.
    let accepted = unsafe { real::accept(fd, address, length) };
    if accepted >= 0 {
        conn::note_accepted(accepted);
    }
    accepted
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn accept4(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's own arguments.
    let accepted = unsafe { real::accept4(fd, address, length, flags) };
    if accepted >= 0 {
        conn::note_accepted(accepted);
    }
    accepted
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    if let Some(held) = udp::before_connect(fd) {
        // SAFETY: the program's own arguments.
        unsafe {
            let answer = real::connect(fd, address, length);
            if answer == 0 {
                udp::after_connect(&held, address, length);
            }
            return answer;
        }
    }
    options::before_connect(fd, address, length);
    // SAFETY: the program's own arguments.
    unsafe { real::connect(fd, address, length) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    let is_number = !value.is_null() && length as usize >= size_of::<c_int>();
    // SAFETY: the program promises `length` bytes.
    let number = is_number.then(|| unsafe { value.cast::<c_int>().read_unaligned() });
    options::before_set(fd, level, name, number);
    // SAFETY: the program's own arguments.
    let answer = unsafe { real::setsockopt(fd, level, name, value, length) };
    if answer == 0 {
        options::after_set(fd, level, name);
    }
    answer
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    if STREAMS.first_of_ours(fd, fd).is_some() {
        // A program that closes all numbers. It has no such file.
        raw::set_errno(libc::EBADF);
        return -1;
    }
    ends::before_close(fd);
    conn::forget(fd);
    // SAFETY: a number.
    unsafe { real::close(fd) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // Others close nothing, or are refused.
    if flags & !CLOSE_RANGE_UNSHARE != 0 || first > last {
        // SAFETY: numbers only.
        return unsafe { real::close_range(first, last, flags) };
    }
    let [low, high] = [first, last].map(|number| number.min(c_int::MAX as c_uint) as c_int);
    forget_range(low, high);
    let mut from = first;
    while let Some(ours) = STREAMS.first_of_ours(from.min(c_int::MAX as c_uint) as c_int, high) {
        let ours = ours.cast_unsigned();
        // SAFETY: numbers only.
        if from < ours && unsafe { real::close_range(from, ours - 1, flags) } != 0 {
            return -1;
        }
        from = ours + 1;
    }
    // SAFETY: numbers only.
    if from <= last { unsafe { real::close_range(from, last, flags) } } else { 0 }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn closefrom(first: c_int) {
    let first = first.max(0);
    forget_range(first, c_int::MAX);
    let mut from = first;
    while let Some(ours) = STREAMS.first_of_ours(from, c_int::MAX) {
        // One by one, as it has to be done where the kernel cannot close ranges.
        (from..ours).for_each(raw::close);
        from = ours + 1;
    }
    // SAFETY: a number.
    unsafe { real::closefrom(from) };
}

fn forget_range(first: c_int, last: c_int) {
    requests::closed(first, last);
    table::entries(first, last).for_each(|(fd, _)| {
        ends::before_close(fd);
        conn::forget(fd);
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup(fd: c_int) -> c_int {
    // SAFETY: a number.
    let copy = unsafe { real::dup(fd) };
    if copy >= 0 {
        conn::duplicate(fd, copy);
    }
    copy
}

/// A copy onto a number, which closes what that was. The kernel refuses some: then that was left as it is.
fn copy_onto(fd: c_int, to: c_int, copy: impl FnOnce() -> c_int) -> c_int {
    let closes = fd != to && raw::fcntl(fd, libc::F_GETFD, 0).is_ok();
    let before = if closes { ends::before_close(to) } else { None };
    if closes && STREAMS.first_of_ours(to, to).is_some() {
        STREAMS.give_up(to);
    }
    let answer = copy();
    if answer >= 0 {
        conn::duplicate(fd, answer);
        STREAMS.closed(answer, answer);
    } else if let Some(linger) = before {
        let _errno = raw::KeepErrno::new();
        raw::set_linger(to, linger);
    }
    answer
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup2(fd: c_int, to: c_int) -> c_int {
    // SAFETY: numbers only.
    copy_onto(fd, to, || unsafe { real::dup2(fd, to) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    // SAFETY: numbers only.
    copy_onto(fd, to, || unsafe { real::dup3(fd, to, flags) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    udp::before_fcntl(fd, command, argument);
    // SAFETY: the program's own arguments; one word is what every command takes.
    let answer = unsafe { real::fcntl(fd, command, argument) };
    options::after_fcntl(fd, command, argument, answer);
    answer
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ioctl(fd: c_int, request: usize, argument: usize) -> c_int {
    udp::before_ioctl(fd, request);
    // SAFETY: the program's own arguments; one word is what every request takes.
    let answer = unsafe { real::ioctl(fd, request, argument) };
    if answer >= 0 {
        // SAFETY: the request succeeded, so its argument is what it must be.
        unsafe { options::after_ioctl(fd, request, argument) };
    }
    answer
}

before! {
    listen(fd: c_int, backlog: c_int) -> c_int: options::before_listen(fd);
    shutdown(fd: c_int, how: c_int) -> c_int: life::before_shutdown(fd, how);
    getsockopt(
        fd: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut socklen_t
    ) -> c_int: options::before_get(fd, level, name);
    fdopen(fd: c_int, mode: *const c_char) -> *mut FILE: life::hand_back(fd, Reason::Stdio);
    vdprintf(
        fd: c_int, format: *const c_char, arguments: *mut c_void
    ) -> c_int: life::hand_back(fd, Reason::Stdio);
}

aliases! {
    __socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int = socket;
    __connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int = connect;
    __close(fd: c_int) -> c_int = close;
    __dup2(fd: c_int, to: c_int) -> c_int = dup2;
    fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int = fcntl;
    __fcntl(fd: c_int, command: c_int, argument: usize) -> c_int = fcntl;
}
