//! Calls that move bytes.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};

use libc::{iovec, mmsghdr, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t, timespec};
use weft_fabric::stream::{KernelOnly, Reason};

use crate::{conn, life, passed, real, rest, route, udp};

unsafe extern "C-unwind" {
    fn __chk_fail() -> !;
}

fn piece(buffer: *const c_void, length: size_t) -> [iovec; 1] {
    [iovec { iov_base: buffer.cast_mut(), iov_len: length }]
}

/// # Safety
/// The program's list of buffers.
unsafe fn list<'a>(pieces: *const iovec, count: usize) -> &'a [iovec] {
    // The kernel's own limit; it refuses more, and so the call is left to it.
    const MOST: usize = 1024;
    if pieces.is_null() || count > MOST {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(pieces, count) }
}

/// No room for a sender's name, and no receiver's name.
const NAMELESS: (*mut sockaddr, *mut socklen_t) = (std::ptr::null_mut(), std::ptr::null_mut());
const NOWHERE: (*const sockaddr, socklen_t) = (std::ptr::null(), 0);

/// As `read` has it: without room it takes no datagram.
///
/// # Safety
/// The program's own arguments.
unsafe fn read_datagram(fd: c_int, pieces: &[iovec], flags: c_int, plain: impl FnOnce() -> ssize_t) -> ssize_t {
    if pieces.iter().all(|piece| piece.iov_len == 0) {
        return plain();
    }
    // SAFETY: the caller's promise.
    unsafe { udp::receive(fd, pieces, flags, NAMELESS, plain) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn read(fd: c_int, buffer: *mut c_void, length: size_t) -> ssize_t {
    // SAFETY: the program's own arguments.
    let plain = || unsafe { real::read(fd, buffer, length) };
    let pieces = piece(buffer, length);
    // SAFETY: as above.
    route::read(fd, &pieces, 0, || unsafe { read_datagram(fd, &pieces, 0, plain) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __read_chk(fd: c_int, buffer: *mut c_void, length: size_t, room: size_t) -> ssize_t {
    // SAFETY: as `read`, with the compiler's knowledge of the buffer.
    unsafe {
        if length > room {
            __chk_fail();
        }
        read(fd, buffer, length)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn write(fd: c_int, buffer: *const c_void, length: size_t) -> ssize_t {
    // SAFETY: the program's own arguments.
    let plain = || unsafe { real::write(fd, buffer, length) };
    let pieces = piece(buffer, length);
    // SAFETY: as above.
    route::send(fd, &pieces, 0, || unsafe { udp::send(fd, &pieces, 0, NOWHERE, plain) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn readv(fd: c_int, pieces: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the program's own arguments.
    unsafe {
        let list = list(pieces, count as usize);
        route::read(fd, list, 0, || read_datagram(fd, list, 0, || real::readv(fd, pieces, count)))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn writev(fd: c_int, pieces: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the program's own arguments.
    unsafe {
        let list = list(pieces, count as usize);
        let plain = || real::writev(fd, pieces, count);
        route::send(fd, list, 0, || if list.is_empty() { plain() } else { udp::send(fd, list, 0, NOWHERE, plain) })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn preadv2(
    fd: c_int,
    pieces: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the program's own arguments.
    let plain = || unsafe { real::preadv2(fd, pieces, count, offset, flags) };
    if offset != -1 {
        return plain();
    }
    // SAFETY: as above.
    unsafe {
        let (list, flags) = (list(pieces, count as usize), route::flags_of_vector_call(flags));
        route::read(fd, list, flags, || read_datagram(fd, list, flags, plain))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pwritev2(
    fd: c_int,
    pieces: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the program's own arguments.
    let plain = || unsafe { real::pwritev2(fd, pieces, count, offset, flags) };
    if offset != -1 {
        return plain();
    }
    // SAFETY: as above.
    unsafe {
        let (list, flags) = (list(pieces, count as usize), route::flags_of_vector_call(flags));
        route::send(
            fd,
            list,
            flags,
            || if list.is_empty() { plain() } else { udp::send(fd, list, flags, NOWHERE, plain) },
        )
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recv(fd: c_int, buffer: *mut c_void, length: size_t, flags: c_int) -> ssize_t {
    // SAFETY: the program's own arguments.
    let plain = || unsafe { real::recv(fd, buffer, length, flags) };
    let pieces = piece(buffer, length);
    // SAFETY: as above.
    route::receive(fd, &pieces, flags, || unsafe { udp::receive(fd, &pieces, flags, NAMELESS, plain) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __recv_chk(
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    room: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as `recv`, with the compiler's knowledge of the buffer.
    unsafe {
        if length > room {
            __chk_fail();
        }
        recv(fd, buffer, length, flags)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn send(fd: c_int, buffer: *const c_void, length: size_t, flags: c_int) -> ssize_t {
    // SAFETY: the program's own arguments.
    let plain = || unsafe { real::send(fd, buffer, length, flags) };
    let pieces = piece(buffer, length);
    // SAFETY: as above.
    route::send(fd, &pieces, flags, || unsafe { udp::send(fd, &pieces, flags, NOWHERE, plain) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvfrom(
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    flags: c_int,
    address: *mut sockaddr,
    size: *mut socklen_t,
) -> ssize_t {
    let by_kernel = Cell::new(false);
    let pieces = piece(buffer, length);
    let came = route::receive(fd, &pieces, flags, || {
        by_kernel.set(true);
        // SAFETY: the program's own arguments.
        unsafe {
            let plain = || real::recvfrom(fd, buffer, length, flags, address, size);
            udp::receive(fd, &pieces, flags, (address, size), plain)
        }
    });
    if !by_kernel.get() && came >= 0 && !size.is_null() {
        // SAFETY: as above. A stream names no sender.
        unsafe { *size = 0 };
    }
    came
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __recvfrom_chk(
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    room: size_t,
    flags: c_int,
    address: *mut sockaddr,
    size: *mut socklen_t,
) -> ssize_t {
    // SAFETY: as `recvfrom`, with the compiler's knowledge of the buffer.
    unsafe {
        if length > room {
            __chk_fail();
        }
        recvfrom(fd, buffer, length, flags, address, size)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendto(
    fd: c_int,
    buffer: *const c_void,
    length: size_t,
    flags: c_int,
    address: *const sockaddr,
    size: socklen_t,
) -> ssize_t {
    // A connected stream ignores the address.
    // SAFETY: the program's own arguments.
    let plain = || unsafe { real::sendto(fd, buffer, length, flags, address, size) };
    let pieces = piece(buffer, length);
    // SAFETY: as above.
    route::send(fd, &pieces, flags, || unsafe { udp::send(fd, &pieces, flags, (address, size), plain) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvmsg(fd: c_int, header: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the program's own arguments.
    let plain = || unsafe { udp::receive_header(fd, header, flags, || real::recvmsg(fd, header, flags)) };
    if conn::hold(fd).is_none() || header.is_null() {
        let came = plain();
        if came >= 0 && !header.is_null() {
            // SAFETY: as above, and the kernel has filled it.
            unsafe { passed::after_message(&*header, flags & libc::MSG_PEEK != 0) };
        }
        return came;
    }
    let by_kernel = Cell::new(false);
    // SAFETY: as above.
    unsafe {
        let pieces = list((*header).msg_iov, (*header).msg_iovlen);
        let came = route::receive(fd, pieces, flags, || {
            by_kernel.set(true);
            plain()
        });
        if !by_kernel.get() && came >= 0 {
            // As the kernel: where there is no place for a name nothing is said about one.
            if !(*header).msg_name.is_null() {
                (*header).msg_namelen = 0;
            }
            (*header).msg_flags = flags & libc::MSG_CMSG_CLOEXEC;
            rest::tell(fd, &mut *header);
        }
        came
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmsg(fd: c_int, header: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the program's own arguments.
    let plain = || unsafe { udp::send_header(fd, header, flags, || real::sendmsg(fd, header, flags)) };
    if header.is_null() {
        return plain();
    }
    // SAFETY: as above.
    unsafe {
        if conn::hold(fd).is_none() {
            route::before_passing(&*header);
            return plain();
        }
        if (*header).msg_controllen > 0 {
            life::hand_back(fd, KernelOnly::Control);
        }
        route::send(fd, list((*header).msg_iov, (*header).msg_iovlen), flags, plain)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvmmsg(
    fd: c_int,
    headers: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    if conn::hold(fd).is_none() {
        // SAFETY: the program's own arguments; the kernel has filled as many as it says.
        return unsafe {
            let (came, peeked) =
                (udp::receive_headers(fd, headers, count, flags, timeout), flags & libc::MSG_PEEK != 0);
            (0..came.max(0) as usize).for_each(|at| passed::after_message(&(*headers.add(at)).msg_hdr, peeked));
            came
        };
    }
    let mut now = flags & !libc::MSG_WAITFORONE;
    for at in 0..count as usize {
        // SAFETY: the program promises `count` headers.
        unsafe {
            let one = headers.add(at);
            let came = recvmsg(fd, &raw mut (*one).msg_hdr, now);
            if came < 0 || (came == 0 && at > 0) {
                return if at > 0 { at as c_int } else { -1 };
            }
            (*one).msg_len = came as c_uint;
        }
        if flags & libc::MSG_WAITFORONE != 0 {
            now |= libc::MSG_DONTWAIT;
        }
    }
    count as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmmsg(fd: c_int, headers: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
    if conn::hold(fd).is_none() {
        // SAFETY: the program's own arguments.
        unsafe {
            for at in 0..count as usize {
                route::before_passing(&(*headers.add(at)).msg_hdr);
            }
            return udp::send_headers(fd, headers, count, flags, || real::sendmmsg(fd, headers, count, flags));
        }
    }
    for at in 0..count as usize {
        // SAFETY: the program promises `count` headers.
        unsafe {
            let one = headers.add(at);
            let went = sendmsg(fd, &raw const (*one).msg_hdr, flags);
            if went < 0 {
                return if at > 0 { at as c_int } else { -1 };
            }
            (*one).msg_len = went as c_uint;
            let whole = list((*one).msg_hdr.msg_iov, (*one).msg_hdr.msg_iovlen);
            // What follows a part of a message must wait for its rest.
            if went.cast_unsigned() < route::bytes_of(whole) {
                return at as c_int + 1;
            }
        }
    }
    count as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendfile(out: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
    udp::withdraw(out, Reason::KernelCall);
    // SAFETY: the program's own arguments.
    unsafe { route::send_file(out, from, offset, count, || real::sendfile(out, from, offset, count)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn splice(
    from: c_int,
    offset_from: *mut i64,
    to: c_int,
    offset_to: *mut i64,
    length: size_t,
    flags: c_uint,
) -> ssize_t {
    // SAFETY: the program's own arguments.
    let plain = || unsafe { real::splice(from, offset_from, to, offset_to, length, flags) };
    // Neither a pipe nor a socket has positions: the kernel refuses them.
    if !offset_from.is_null() && conn::hold(from).is_some() || !offset_to.is_null() && conn::hold(to).is_some() {
        return plain();
    }
    udp::withdraw(from, Reason::KernelCall);
    udp::withdraw(to, Reason::KernelCall);
    crate::splice::splice(from, to, length, flags, plain)
}

aliases! {
    __read(fd: c_int, buffer: *mut c_void, length: size_t) -> ssize_t = read;
    __write(fd: c_int, buffer: *const c_void, length: size_t) -> ssize_t = write;
    preadv64v2(fd: c_int, pieces: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t = preadv2;
    pwritev64v2(fd: c_int, pieces: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t = pwritev2;
    __recv(fd: c_int, buffer: *mut c_void, length: size_t, flags: c_int) -> ssize_t = recv;
    __send(fd: c_int, buffer: *const c_void, length: size_t, flags: c_int) -> ssize_t = send;
    __sendmmsg(fd: c_int, headers: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int = sendmmsg;
    sendfile64(out: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t = sendfile;
}
