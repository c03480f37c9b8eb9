//! Receiving datagrams.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use libc::{MSG_DONTWAIT, MSG_PEEK, MSG_TRUNC, iovec, msghdr, ssize_t};
use weft_fabric::datagram::{DatagramChannel, DatagramPeer};

use crate::meet::STREAMS;
use crate::{pace, raw, real};

use super::socket::{NEXT_KERNEL, SocketHold, UserSocket};
use super::{gate, names, pairs};

/// Flags that a ring can follow; calls with others are the kernel's.
const KNOWN: c_int =
    MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC | libc::MSG_WAITALL | libc::MSG_NOSIGNAL | libc::MSG_CMSG_CLOEXEC;
/// While rings have something in every call, the kernel comes first every so many datagrams, so that those who send by
/// the kernel do not starve.
const KERNEL_EVERY: u32 = 32;
/// A datagram that came after some by the kernel waits for so many of those at most.
/// More than what any receive buffer of a usual size holds, so that none of the same sender are overtaken.
const KERNEL_FIRST: u32 = 1 << 14;
/// While spinning, the kernel is asked every so many looks.
const KERNEL_LOOKS: u32 = 64;

/// What a look at the rings came to.
enum RingsLook {
    Took(usize),
    /// There is something in the ring of this pairing that was sent after what the kernel has.
    KernelFirst(usize),
    /// The kernel has its turn before the next one of this pairing, if nobody is overtaken so.
    KernelsTurn(usize),
    Nothing,
}

/// Of which pairings all that the kernel had before the next datagram in the ring is received.
#[derive(Clone, Copy)]
enum Cleared {
    None,
    One(usize),
    All,
}

impl Cleared {
    fn has(self, place: usize) -> bool {
        match self {
            Self::None => false,
            Self::One(one) => one == place,
            Self::All => true,
        }
    }
}

/// How a call receives.
pub enum ReceiveWay {
    /// By the program's own call. The socket is the kernel's for good.
    Kernel,
    /// By the program's own call, and what comes is counted: see [`count`].
    Counted(gate::SleepHold),
    /// By [`receive`].
    Rings(SocketHold),
}

/// How a call with `flags` receives; `odd`: its arguments are such as the kernel refuses or cuts.
pub fn way(held: SocketHold, fd: c_int, flags: c_int, odd: bool) -> ReceiveWay {
    if held.is_kernel_s() {
        return ReceiveWay::Kernel;
    }
    pairs::look_for_mail();
    if odd || flags & !KNOWN != 0 || !held.has_rings() {
        return ReceiveWay::Counted(gate::rest(held, fd));
    }
    ReceiveWay::Rings(held)
}

/// After the program's own call has answered `came`, with `flags`. `length` bytes of the sender's name can be read at
/// `name`; where it is null the program did not ask for one.
///
/// # Safety
/// As said.
pub unsafe fn count(held: &SocketHold, fd: c_int, (came, flags): (ssize_t, c_int), name: *const u8, length: usize) {
    if came < 0 || flags & (MSG_PEEK | libc::MSG_ERRQUEUE) != 0 {
        return;
    }
    STREAMS.counters().bytes_kernel_in.fetch_add(came as u64, Ordering::Relaxed);
    // SAFETY: the caller's promise.
    let peer = if name.is_null() { held.connected() } else { unsafe { names::read(name, length, held.family()) } };
    if let Some(peer) = peer {
        pairs::heard(held, fd, &peer);
    }
}

/// `recvmsg`, with `flags`, of a socket with rings. The header is ours, and changes on the way.
///
/// # Safety
/// What the program's header points at: buffers and room for a name.
pub unsafe fn receive(held: SocketHold, fd: c_int, header: &mut msghdr, flags: c_int) -> ssize_t {
    let mut held = held;
    // This call has seen rings and kernel empty: what is in a ring now is older than what comes by the kernel since the
    // gate was closed.
    let mut drained = false;
    let mut spun = false;
    loop {
        let open = gate::open(&held);
        if !open {
            pairs::sweep(&held);
        }
        // SAFETY: the caller's promise.
        if let Some(answer) = unsafe { receive_now(&held, fd, header, flags, drained) } {
            return answer;
        }
        if flags & MSG_DONTWAIT != 0 || is_nonblocking(fd) {
            raw::set_errno(libc::EAGAIN);
            return -1;
        }
        // Once: what it saw another thread may have taken, or is out of reach for a signal handler.
        if open && !spun && spin(&held, fd) {
            spun = true;
            continue;
        }
        let rest = gate::rest(held, fd);
        if !has_something(&rest) {
            STREAMS.counters().sleeps.fetch_add(1, Ordering::Relaxed);
            // SAFETY: the caller's promise.
            return unsafe { by_kernel(&rest, fd, header, flags) };
        }
        held = rest.into_held();
        drained = true;
    }
}

/// Whether there is a datagram in a ring that this thread can take: a signal handler cannot where it has interrupted a
/// call that takes one.
fn has_something(held: &UserSocket) -> bool {
    !held.left.is_empty()
        || held.live_channels().any(|(_, channel)| channel.waiting() && channel.lock_receive().is_some())
}

/// Without waiting: the rings, the kernel, and the rings again if they let the kernel go first. `None` when nothing is
/// there. `drained`: what is in the rings comes first in any case.
#[inline]
unsafe fn receive_now(
    held: &SocketHold,
    fd: c_int,
    header: &mut msghdr,
    flags: c_int,
    drained: bool,
) -> Option<ssize_t> {
    // The kernel had nothing since the next one of this pairing was seen. Nothing is known about what came later.
    let mut cleared = if drained { Cleared::All } else { Cleared::None };
    let mut asked = false;
    // SAFETY: the caller's promise.
    if let Some(bytes) = unsafe { from_left(held, header, flags) } {
        return Some(bytes as ssize_t);
    }
    match held.next.load(Ordering::Relaxed) {
        0 => {}
        NEXT_KERNEL => {
            // SAFETY: the caller's promise.
            if let Some(came) = unsafe { kernel_now(held, fd, header, flags) } {
                return Some(came);
            }
            held.next.store(0, Ordering::Relaxed);
        }
        next => {
            let place = next as usize - 1;
            if let Some(channel) = held.pairings[place].channel() {
                // SAFETY: the caller's promise.
                if let RingsLook::Took(bytes) = unsafe { from_ring(held, place, &channel, header, flags, true) } {
                    return Some(bytes as ssize_t);
                }
            }
            held.next.store(0, Ordering::Relaxed);
        }
    }
    loop {
        // SAFETY: the caller's promise.
        match unsafe { from_rings(held, header, flags, cleared) } {
            RingsLook::Took(bytes) => return Some(bytes as ssize_t),
            RingsLook::Nothing if asked => return None,
            RingsLook::Nothing => cleared = Cleared::None,
            RingsLook::KernelFirst(place) => cleared = Cleared::One(place),
            RingsLook::KernelsTurn(place) => {
                cleared = Cleared::One(place);
                match kernel_may_be_first(held, fd) {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(error) => {
                        raw::set_errno(error);
                        return Some(-1);
                    }
                }
            }
        }
        // SAFETY: the caller's promise.
        if let Some(came) = unsafe { kernel_now(held, fd, header, flags) } {
            return Some(came);
        }
        asked = true;
    }
}

/// The kernel's call, which does not wait; `None` when it has nothing.
unsafe fn kernel_now(held: &SocketHold, fd: c_int, header: &mut msghdr, flags: c_int) -> Option<ssize_t> {
    let before = raw::errno();
    // SAFETY: the caller's promise.
    let came = unsafe { kernel_counted(held, fd, header, flags | MSG_DONTWAIT) };
    if came < 0 && raw::errno() == libc::EAGAIN {
        raw::set_errno(before);
        return None;
    }
    if came >= 0 {
        shown(held, flags, NEXT_KERNEL);
    }
    Some(came)
}

/// A look has shown the datagram of `next`, which the next receive must take, or it was taken.
#[inline]
fn shown(held: &UserSocket, flags: c_int, next: u32) {
    if flags & MSG_PEEK != 0 {
        held.next.store(next, Ordering::Relaxed);
    } else if held.next.load(Ordering::Relaxed) != 0 {
        held.next.store(0, Ordering::Relaxed);
    }
}

/// The length of the datagram that the next receive takes, if it takes it out of a ring. From now on it does.
pub fn next_length(held: &SocketHold, fd: c_int) -> Option<usize> {
    if let Some(left) = held.left.first() {
        return Some(left.bytes.len());
    }
    let first = |place: usize| held.pairings[place].channel()?.lock_receive()?.first();
    let next = held.next.load(Ordering::Relaxed);
    if next != 0 && next != NEXT_KERNEL {
        return first(next as usize - 1).map(|(length, _)| length);
    }
    let (known, turn) = (held.known().len(), held.turn.load(Ordering::Relaxed) as usize);
    let found = (0..known).map(|step| (turn + step) % known).find_map(|place| first(place).map(|found| (place, found)));
    match found {
        Some((place, (length, after_kernel))) if next == 0 && (!after_kernel || !kernel_has(fd)) => {
            held.next.store(place as u32 + 1, Ordering::Relaxed);
            Some(length)
        }
        _ => {
            if kernel_has(fd) {
                held.next.store(NEXT_KERNEL, Ordering::Relaxed);
            }
            None
        }
    }
}

fn kernel_has(fd: c_int) -> bool {
    raw::poll_one(fd, libc::POLLIN) & libc::POLLIN != 0
}

/// Whether the kernel has a datagram of somebody who has nothing in a ring: what lies there unmarked was sent before.
/// An error that was due is told once, here.
#[cold]
fn kernel_may_be_first(held: &SocketHold, fd: c_int) -> Result<bool, raw::Errno> {
    let _errno = raw::KeepErrno::new();
    // SAFETY: zeros are an address, and a header without buffers; the name lives across the call.
    let (came, name, length) = unsafe {
        let mut name: libc::sockaddr_storage = std::mem::zeroed();
        let mut header: msghdr = std::mem::zeroed();
        header.msg_name = (&raw mut name).cast();
        header.msg_namelen = size_of_val(&name) as libc::socklen_t;
        (real::recvmsg(fd, &raw mut header, MSG_PEEK | MSG_DONTWAIT), name, header.msg_namelen as usize)
    };
    if came < 0 {
        return if raw::errno() == libc::EAGAIN { Ok(false) } else { Err(raw::errno()) };
    }
    // SAFETY: the kernel has written that much.
    let peer = unsafe { names::read((&raw const name).cast(), length.min(size_of_val(&name)), held.family()) };
    Ok(peer.is_none_or(|peer| !held.live_channels().any(|(known, channel)| known.is(&peer) && channel.waiting())))
}

/// Whether something has come while it was worth looking.
fn spin(held: &UserSocket, fd: c_int) -> bool {
    let mut looks = 0u32;
    pace::spin(|| {
        looks += 1;
        held.waiting() || (looks.is_multiple_of(KERNEL_LOOKS) && raw::poll_one(fd, libc::POLLIN) != 0)
    })
}

fn is_nonblocking(fd: c_int) -> bool {
    raw::fcntl(fd, libc::F_GETFL, 0).is_ok_and(|flags| flags & libc::O_NONBLOCK as usize != 0)
}

/// The kernel's call, which may sleep.
///
/// # Safety
/// The program's header, its buffers and its room for a name.
pub unsafe fn by_kernel(rest: &gate::SleepHold, fd: c_int, header: &mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { kernel_counted(rest, fd, header, flags) }
}

/// The kernel's call; what comes is counted for the peer that it comes from.
unsafe fn kernel_counted(held: &SocketHold, fd: c_int, header: &mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: zeros are an address.
    let mut name: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let (unnamed, given) = (header.msg_name.is_null(), header.msg_namelen);
    if unnamed {
        header.msg_name = (&raw mut name).cast();
        header.msg_namelen = size_of_val(&name) as libc::socklen_t;
    }
    // SAFETY: the caller's promise; the name is the program's or ours.
    let came = unsafe { real::recvmsg(fd, header, flags) };
    let room = if unnamed { size_of_val(&name) as u32 } else { given };
    if came >= 0 && flags & MSG_PEEK == 0 && flags & libc::MSG_ERRQUEUE == 0 {
        STREAMS.counters().bytes_kernel_in.fetch_add(came as u64, Ordering::Relaxed);
        let length = header.msg_namelen.min(room) as usize;
        // SAFETY: the kernel has written that much.
        if let Some(peer) = unsafe { names::read(header.msg_name.cast(), length, held.family()) } {
            pairs::heard(held, fd, &peer);
        }
    }
    if unnamed {
        (header.msg_name, header.msg_namelen) = (std::ptr::null_mut(), given);
    }
    came
}

/// The next datagram of the rings. `cleared`: of this pairing whatever the kernel may have.
unsafe fn from_rings(held: &SocketHold, header: &mut msghdr, flags: c_int, cleared: Cleared) -> RingsLook {
    let known = held.known();
    let first = held.turn.load(Ordering::Relaxed) as usize;
    for step in 0..known.len() {
        let place = (first + step) % known.len();
        let Some(channel) = known[place].channel().filter(DatagramChannel::waiting) else { continue };
        // SAFETY: the caller's promise.
        match unsafe { from_ring(held, place, &channel, header, flags, cleared.has(place)) } {
            RingsLook::Nothing => {}
            RingsLook::Took(bytes) => {
                // Many peers take turns.
                held.turn.store(place as u32 + u32::from(known.len() > 1), Ordering::Relaxed);
                return RingsLook::Took(bytes);
            }
            kernel => return kernel,
        }
    }
    RingsLook::Nothing
}

unsafe fn from_ring(
    held: &SocketHold,
    place: usize,
    channel: &DatagramChannel,
    header: &mut msghdr,
    flags: c_int,
    cleared: bool,
) -> RingsLook {
    let pairing = &held.known()[place];
    let Some(mut guard) = channel.lock_receive() else { return RingsLook::Nothing };
    let Some((length, after_kernel)) = guard.first() else {
        drop(guard);
        if channel.is_broken() {
            pairs::retire(held, pairing);
        }
        return RingsLook::Nothing;
    };
    if !cleared && is_kernel_s_turn(held, after_kernel) {
        return if after_kernel { RingsLook::KernelFirst(place) } else { RingsLook::KernelsTurn(place) };
    }
    // SAFETY: the caller's promise.
    let copied = unsafe { copy_out(length, header, |offset, into| guard.read(offset, into)) };
    if flags & MSG_PEEK == 0 {
        guard.take();
        held.takes.fetch_add(1, Ordering::Relaxed);
        held.kernel_first.store(0, Ordering::Relaxed);
        let counters = STREAMS.counters();
        counters.datagrams_ring_in.fetch_add(1, Ordering::Relaxed);
        counters.bytes_ring_in.fetch_add(length as u64, Ordering::Relaxed);
    }
    drop(guard);
    shown(held, flags, place as u32 + 1);
    // SAFETY: the caller's promise.
    RingsLook::Took(unsafe { describe(&pairing.peer(), held.family(), header, flags, (length, copied)) })
}

/// The next datagram of those that lay in rings at a fork.
unsafe fn from_left(held: &SocketHold, header: &mut msghdr, flags: c_int) -> Option<usize> {
    loop {
        let left = held.left.first()?;
        let length = left.bytes.len();
        // SAFETY: the caller's promise.
        let copied = unsafe {
            copy_out(length, header, |offset, into| into.copy_from_slice(&left.bytes[offset..offset + into.len()]))
        };
        if flags & MSG_PEEK != 0 || held.left.take(&left) {
            // SAFETY: as above.
            return Some(unsafe { describe(&left.peer, held.family(), header, flags, (length, copied)) });
        }
    }
}

/// Whether the kernel is to be asked before a datagram is taken out of a ring.
#[inline]
fn is_kernel_s_turn(held: &UserSocket, after_kernel: bool) -> bool {
    if after_kernel {
        return held.kernel_first.fetch_add(1, Ordering::Relaxed) < KERNEL_FIRST;
    }
    held.takes.load(Ordering::Relaxed) % KERNEL_EVERY == KERNEL_EVERY - 1
}

/// Copies what fits into the program's buffers; answers how much.
unsafe fn copy_out(length: usize, header: &msghdr, read: impl Fn(usize, &mut [u8])) -> usize {
    let mut copied = 0;
    for at in 0..header.msg_iovlen {
        // SAFETY: the program promises so many buffers, and that they are writable.
        unsafe {
            let iovec { iov_base, iov_len } = header.msg_iov.add(at).read_unaligned();
            let part = iov_len.min(length - copied);
            if part > 0 {
                read(copied, std::slice::from_raw_parts_mut(iov_base.cast(), part));
                copied += part;
            }
        }
    }
    copied
}

/// Fills in what `recvmsg` answers beside the bytes of a datagram of `length`, and answers their number.
unsafe fn describe(
    peer: &DatagramPeer,
    family: c_int,
    header: &mut msghdr,
    flags: c_int,
    (length, copied): (usize, usize),
) -> usize {
    if !header.msg_name.is_null() {
        // SAFETY: the program promises so much room.
        header.msg_namelen = unsafe { names::write(peer, family, header.msg_name.cast(), header.msg_namelen as usize) };
    }
    header.msg_controllen = 0;
    header.msg_flags = flags & libc::MSG_CMSG_CLOEXEC | if length > copied { MSG_TRUNC } else { 0 };
    if flags & MSG_TRUNC != 0 { length } else { copied }
}
