//! When rings may be used: the gates of a socket are open while somebody looks, and closed before anybody sleeps.
//!
//! Who sleeps counts himself first and then looks whether the gates are open; who opens says so first and then looks
//! who sleeps. One of them sees the other. Gates themselves change under the lock.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use weft_fabric::datagram::DatagramChannel;
use weft_fabric::stream::{KernelReason, Reason, sleep_barrier};

use crate::meet::STREAMS;
use crate::table::{self, Entry};
use crate::{log, raw};

use super::left;
use super::outgoing;
use super::pairs;
use super::socket::{self, ATTACHED, Pairing, SocketHold, UserSocket};

/// How long a sender may be inside with the gate closed: one that was stopped there costs its ring, not our sleep.
const INSIDE_NS: u64 = 1_000_000_000;

/// The lock of a socket, with signals blocked: a handler of this thread that used the socket would wait for us.
pub struct LockedSocket<'a> {
    socket: &'a UserSocket,
    mask: u64,
}

impl<'a> LockedSocket<'a> {
    pub fn new(socket: &'a UserSocket) -> Self {
        let mask = raw::signal_mask(u64::MAX);
        while socket.lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            raw::yield_core();
        }
        Self { socket, mask }
    }
}

impl Drop for LockedSocket<'_> {
    fn drop(&mut self) {
        self.socket.lock.store(0, Ordering::Release);
        raw::signal_mask(self.mask);
    }
}

/// Opens the gates, unless somebody sleeps; whether they are open. The caller looks at the rings from now on.
#[inline]
pub fn open(held: &SocketHold) -> bool {
    held.open.load(Ordering::Relaxed) != 0 || open_slowly(held)
}

#[cold]
fn open_slowly(held: &SocketHold) -> bool {
    if held.asleep.load(Ordering::Relaxed) != 0 || held.kernels.load(Ordering::Relaxed) != 0 {
        return false;
    }
    let _locked = LockedSocket::new(held);
    held.open.store(1, Ordering::SeqCst);
    if held.asleep.load(Ordering::SeqCst) != 0 || held.kernels.load(Ordering::SeqCst) != 0 {
        held.open.store(0, Ordering::SeqCst);
        return false;
    }
    for pairing in attached(held).filter(|pairing| pairing.heard.load(Ordering::SeqCst) != 0) {
        pairing.channel().inspect(DatagramChannel::open_gate);
    }
    true
}

fn attached(socket: &UserSocket) -> impl Iterator<Item = &Pairing> {
    socket.known().iter().filter(|pairing| pairing.state.load(Ordering::Acquire) == ATTACHED)
}

/// The first datagram of this peer has come by the kernel: from now on its gate is open whenever the others are.
#[cold]
pub fn heard(held: &SocketHold, pairing: &Pairing) {
    // Said before the look: who attaches, or opens the gates, says so first and then looks whether it was heard. One of
    // us sees the other.
    pairing.heard.store(1, Ordering::SeqCst);
    let is_open = || held.open.load(Ordering::SeqCst) != 0 && pairing.state.load(Ordering::SeqCst) == ATTACHED;
    if !is_open() {
        return;
    }
    let _errno = raw::KeepErrno::new();
    let _locked = LockedSocket::new(held);
    if is_open()
        && let Some(channel) = pairing.channel()
    {
        channel.open_gate();
    }
}

/// Somebody may sleep on the socket in the kernel until this is dropped.
#[derive(Debug)]
pub struct SleepHold(SocketHold);

impl std::ops::Deref for SleepHold {
    type Target = SocketHold;

    fn deref(&self) -> &SocketHold {
        &self.0
    }
}

impl SleepHold {
    /// As a number, never 0, from which [`Self::kept`] makes it again.
    pub fn keep(self) -> c_int {
        let index = self.0.index;
        std::mem::forget(self);
        index as c_int
    }

    /// What was kept, once.
    pub fn kept(number: c_int) -> Self {
        Self(SocketHold { index: number as u32 })
    }

    /// Ends it, and goes on with the socket.
    pub fn into_held(self) -> SocketHold {
        socket::hold_again(&self.0)
    }
}

impl Drop for SleepHold {
    fn drop(&mut self) {
        self.0.asleep.fetch_sub(1, Ordering::SeqCst);
    }
}

/// From now on what comes for the socket comes by the kernel. The caller looks at the rings once more, and sleeps only
/// where they are empty.
pub fn rest(held: SocketHold, fd: c_int) -> SleepHold {
    held.asleep.fetch_add(1, Ordering::SeqCst);
    let rest = SleepHold(held);
    if rest.0.open.load(Ordering::SeqCst) != 0 || rest.0.channels.load(Ordering::SeqCst) != 0 {
        close(&rest.0);
        outgoing::send_again_what_the_dead_left(&rest.0, fd);
    }
    rest
}

/// Closes the gates, and waits for senders that saw them open.
#[cold]
fn close(socket: &UserSocket) {
    let _errno = raw::KeepErrno::new();
    {
        let _locked = LockedSocket::new(socket);
        if socket.open.swap(0, Ordering::SeqCst) != 0 {
            attached(socket).filter_map(Pairing::channel).for_each(|channel| channel.close_gate());
        }
    }
    sleep_barrier();
    settle(socket);
}

/// Waits for senders that may have seen a gate open.
fn settle(socket: &UserSocket) {
    let mut end = 0;
    for (pairing, channel) in socket.live_channels() {
        let mut looks = 0u32;
        while !channel.settled() {
            looks += 1;
            if looks.is_multiple_of(64) {
                raw::yield_core();
                let now = raw::now_ns();
                end = if end == 0 { now + INSIDE_NS } else { end };
                if now > end || channel.peer_dead() {
                    channel.give_up();
                    pairs::drain(pairing, &LockedSocket::new(socket));
                    break;
                }
            }
            std::hint::spin_loop();
        }
    }
}

/// The socket is the kernel's from now on: somebody will use it who does not look at rings, or it asks for what only
/// the kernel has. What is in the rings is still read by this process. False when `fd` is no datagram socket of ours.
pub fn withdraw(fd: c_int, cause: impl Into<KernelReason>) -> bool {
    let Some(held) = socket::hold(fd) else { return false };
    let cause = cause.into();
    let goes_on = matches!(cause.reason, Reason::Passed | Reason::Exec);
    if give_to_kernel(&held, fd, cause) && held.waiting() && goes_on {
        log::line(format_args!("descriptor {fd}: datagrams in the ring are for this process only"));
    }
    true
}

/// False when it was the kernel's already.
fn give_to_kernel(held: &SocketHold, fd: c_int, cause: impl Into<KernelReason>) -> bool {
    if held.kernels.swap(1, Ordering::SeqCst) != 0 {
        return false;
    }
    let cause = cause.into();
    if held.channels.load(Ordering::SeqCst) > 0 {
        STREAMS.counters().fell_back(cause);
        log::fell_back(fd, cause);
    } else if cause.option.is_some() {
        // It would have had some, perhaps.
        STREAMS.counters().fell_back(cause);
    }
    leave_all(held);
    true
}

/// Before a fork: the child would hold the sockets, too, and could not know what the parent takes out of rings.
pub fn before_fork() {
    for (fd, entry) in table::entries(0, c_int::MAX) {
        if let Entry::Datagram(_) = entry
            && let Some(held) = socket::hold(fd)
        {
            give_to_kernel(&held, fd, Reason::Passed);
            left::keep(&held, fd);
        }
    }
}

/// No ring of this socket is used for further datagrams; what is there is still read.
pub fn leave_all(held: &SocketHold) {
    // Who was only counted has no ring, and asks for none from now on.
    if held.known().iter().all(pairs::forget_counted) {
        return;
    }
    let _errno = raw::KeepErrno::new();
    {
        let locked = LockedSocket::new(held);
        for pairing in held.known() {
            pairs::drain(pairing, &locked);
            pairs::forget_offer(pairing, &locked);
        }
    }
    sleep_barrier();
    settle(held);
    pairs::sweep(held);
}

/// All sockets are the kernel's: somebody may wait for them whom we do not see.
pub fn withdraw_all(reason: Reason) {
    for (fd, entry) in table::entries(0, c_int::MAX) {
        if let Entry::Datagram(_) = entry {
            withdraw(fd, reason);
        }
    }
}

/// The process ends, or becomes another program: nobody looks at its rings from now on, and those who send learn it
/// from the kernel. Not a child that was made without a word to us: what it seems to hold is its parent's.
pub fn leave() {
    if !crate::life::is_known_process() {
        return;
    }
    for (fd, entry) in table::entries(0, c_int::MAX) {
        if let Entry::Datagram(index) = entry
            && socket::has_rings(index)
            && let Some(held) = socket::hold(fd)
        {
            leave_all(&held);
        }
    }
}

/// In the child: the rings are the parent's.
pub fn after_fork_in_child() {
    for (_, entry) in table::entries(0, c_int::MAX) {
        if let Entry::Datagram(index) = entry {
            pairs::disown(socket::at(index));
        }
    }
}
