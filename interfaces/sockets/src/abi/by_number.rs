//! `syscall`: calls by number go to the same places as calls by name.

use std::ffi::{c_int, c_long, c_uint};

use libc::c_void;

use super::{data, descriptors, multiplex, process};
use crate::{life, real, requests};

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    // SAFETY: the program's own arguments; each is of the width that the kernel takes.
    unsafe {
        match data_call(number, [a, b, c, d, e, f]) {
            Some(answer) => answer,
            None => match other_call(number, [a, b, c, d, e]) {
                Some(answer) => answer,
                None => {
                    match number {
                        libc::SYS_io_uring_enter => requests::before_enter(a as c_int, b as c_uint, d),
                        libc::SYS_io_uring_register => requests::before_register(b),
                        _ => {}
                    }
                    let answer = real::syscall(number, a, b, c, d, e, f);
                    if number == libc::SYS_io_uring_setup && answer >= 0 {
                        requests::after_setup(answer as c_int, b as _);
                    }
                    answer
                }
            },
        }
    }
}

unsafe fn data_call(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> Option<c_long> {
    let fd = a as c_int;
    // SAFETY: the caller's arguments, of the call that the number names.
    let answer = unsafe {
        match number {
            libc::SYS_read => data::read(fd, b as *mut c_void, c),
            libc::SYS_write => data::write(fd, b as *const c_void, c),
            libc::SYS_readv => data::readv(fd, b as _, c as c_int),
            libc::SYS_writev => data::writev(fd, b as _, c as c_int),
            libc::SYS_recvfrom => data::recvfrom(fd, b as _, c, d as c_int, e as _, f as _),
            libc::SYS_sendto => data::sendto(fd, b as _, c, d as c_int, e as _, f as _),
            libc::SYS_recvmsg => data::recvmsg(fd, b as _, c as c_int),
            libc::SYS_sendmsg => data::sendmsg(fd, b as _, c as c_int),
            libc::SYS_recvmmsg => data::recvmmsg(fd, b as _, c as c_uint, d as c_int, e as _) as isize,
            libc::SYS_sendmmsg => data::sendmmsg(fd, b as _, c as c_uint, d as c_int) as isize,
            libc::SYS_sendfile => data::sendfile(fd, b as c_int, c as _, d),
            libc::SYS_splice => data::splice(fd, b as _, c as c_int, d as _, e, f as c_uint),
            _ => return None,
        }
    };
    Some(answer as c_long)
}

unsafe fn other_call(number: c_long, [a, b, c, d, e]: [usize; 5]) -> Option<c_long> {
    let fd = a as c_int;
    // SAFETY: the caller's arguments, of the call that the number names.
    let answer = unsafe {
        match number {
            libc::SYS_socket => descriptors::socket(fd, b as c_int, c as c_int),
            libc::SYS_accept => descriptors::accept(fd, b as _, c as _),
            libc::SYS_accept4 => descriptors::accept4(fd, b as _, c as _, d as c_int),
            libc::SYS_connect => descriptors::connect(fd, b as _, c as _),
            libc::SYS_listen => descriptors::listen(fd, b as c_int),
            libc::SYS_shutdown => descriptors::shutdown(fd, b as c_int),
            libc::SYS_setsockopt => descriptors::setsockopt(fd, b as c_int, c as c_int, d as _, e as _),
            libc::SYS_getsockopt => descriptors::getsockopt(fd, b as c_int, c as c_int, d as _, e as _),
            libc::SYS_close => descriptors::close(fd),
            libc::SYS_close_range => descriptors::close_range(a as c_uint, b as c_uint, c as c_int),
            libc::SYS_dup => descriptors::dup(fd),
            libc::SYS_dup3 => descriptors::dup3(fd, b as c_int, c as c_int),
            libc::SYS_fcntl => descriptors::fcntl(fd, b as c_int, c),
            libc::SYS_ioctl => descriptors::ioctl(fd, b, c),
            libc::SYS_epoll_create1 => multiplex::epoll_create1(fd),
            libc::SYS_epoll_ctl => multiplex::epoll_ctl(fd, b as c_int, c as c_int, d as _),
            libc::SYS_epoll_pwait => multiplex::epoll_pwait(fd, b as _, c as c_int, d as c_int, e as _),
            libc::SYS_epoll_pwait2 => multiplex::epoll_pwait2(fd, b as _, c as c_int, d as _, e as _),
            libc::SYS_ppoll => multiplex::ppoll(a as _, b as _, c as _, d as _),
            libc::SYS_execve => process::execve(a as _, b as _, c as _),
            _ => return old_call(number, [a, b, c, d, e]),
        }
    };
    Some(c_long::from(answer))
}

/// Calls that newer architectures do not have.
#[cfg(target_arch = "x86_64")]
unsafe fn old_call(number: c_long, [a, b, c, d, e]: [usize; 5]) -> Option<c_long> {
    let fd = a as c_int;
    // SAFETY: the caller's arguments, of the call that the number names.
    let answer = unsafe {
        match number {
            libc::SYS_dup2 => descriptors::dup2(fd, b as c_int),
            libc::SYS_poll => multiplex::poll(a as _, b as _, c as c_int),
            libc::SYS_select => multiplex::select(fd, b as _, c as _, d as _, e as _),
            libc::SYS_epoll_create => multiplex::epoll_create(fd),
            libc::SYS_epoll_wait => multiplex::epoll_wait(fd, b as _, c as c_int, d as c_int),
            libc::SYS_vfork => process::vfork(),
            libc::SYS_fork => {
                life::before_fork();
                let child = real::syscall(number, a, b, c, d, e, 0) as c_int;
                if child == 0 {
                    life::after_fork_in_child()
                } else {
                    life::after_fork_in_parent()
                }
                child
            }
            _ => return None,
        }
    };
    Some(c_long::from(answer))
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn old_call(_: c_long, _: [usize; 5]) -> Option<c_long> {
    None
}
