//! How a socket and a peer come to rings: counted, offered to the rendezvous, attached, retired. Nothing here waits for
//! anybody else.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use weft_fabric::datagram::{DatagramChannel, DatagramPeer};
use weft_fabric::stream::{AnchorOffer, Reason, sleep_barrier};

use crate::meet::{self, STREAMS};
use crate::table::{self, Entry};
use crate::{epoll, log, raw, settings};

use super::gate::{self, LockedSocket};
use super::outgoing;
use super::socket::{
    self, ATTACHED, COUNTED, DRAINING, LEAVING, OFFERED, PEERS, Pairing, SocketHold, UserSocket, VACANT,
};

/// Before a call: answers of the rendezvous.
#[inline]
pub fn look_for_mail() {
    if STREAMS.has_mail() {
        meet::read_mail();
    }
}

/// A datagram was sent to `peer` by the kernel.
pub fn sent(held: &SocketHold, fd: c_int, peer: &DatagramPeer) {
    if let Some(pairing) = known(held, fd, peer) {
        pairing.after_kernel.store(1, Ordering::Relaxed);
        count(held, fd, pairing);
    }
}

/// A datagram of `peer` came by the kernel.
pub fn heard(held: &SocketHold, fd: c_int, peer: &DatagramPeer) {
    if let Some(pairing) = known(held, fd, peer) {
        if pairing.heard.load(Ordering::Relaxed) == 0 {
            gate::heard(held, pairing);
        }
        count(held, fd, pairing);
    }
}

fn known<'a>(held: &'a SocketHold, fd: c_int, peer: &DatagramPeer) -> Option<&'a Pairing> {
    if held.kernels.load(Ordering::Relaxed) != 0 {
        return None;
    }
    let known = held.known().iter().find(|pairing| pairing.state.load(Ordering::Acquire) != VACANT && pairing.is(peer));
    known.or_else(|| begin(held, fd, peer))
}

fn count(held: &SocketHold, fd: c_int, pairing: &Pairing) {
    if pairing.state.load(Ordering::Relaxed) != COUNTED {
        return;
    }
    let count = pairing.count.fetch_add(1, Ordering::Relaxed) + 1;
    if count >= settings::attach_calls() {
        offer(held, fd, pairing);
    }
}

/// A place for a new peer: a vacant one, or that of the one with whom least was exchanged.
#[cold]
fn begin<'a>(held: &'a SocketHold, fd: c_int, peer: &DatagramPeer) -> Option<&'a Pairing> {
    outgoing::leave_the_gone(held, fd);
    sweep(held);
    let _locked = LockedSocket::new(held);
    let used = held.used.load(Ordering::Relaxed) as usize;
    let vacant = held.known().iter().position(|pairing| pairing.state.load(Ordering::Relaxed) == VACANT);
    let place = vacant.or((used < PEERS).then_some(used)).or_else(|| {
        let old = |pairing: &&(usize, &Pairing)| matches!(pairing.1.state.load(Ordering::Relaxed), COUNTED | OFFERED);
        let all = held.known().iter().enumerate().filter(|pairing| old(&pairing));
        all.min_by_key(|(_, pairing)| pairing.count.load(Ordering::Relaxed)).map(|(at, _)| at)
    })?;
    held.pairings[place].name(peer);
    held.used.fetch_max(place as u32 + 1, Ordering::Release);
    Some(&held.pairings[place])
}

#[cold]
fn offer(held: &SocketHold, fd: c_int, pairing: &Pairing) {
    let _errno = raw::KeepErrno::new();
    let peer = pairing.peer();
    if !crate::may_accelerate() || held.connected().is_some_and(|connected| connected != peer) {
        pairing.count.store(0, Ordering::Relaxed);
        return;
    }
    let Ok(cookie) = raw::cookie(fd) else { return };
    if !allowed(fd, &peer) {
        if held.kernels.swap(1, Ordering::SeqCst) == 0 {
            STREAMS.counters().fell_back(Reason::Rule);
            log::fell_back(fd, Reason::Rule);
        }
        return;
    }
    held.shown.cookie.store(cookie, Ordering::Relaxed);
    // Before it is shown: the answer may be in the mail before the call has returned.
    if !pairing.change(COUNTED, OFFERED) {
        return;
    }
    let answer = STREAMS.offer_pair(fd, cookie, peer);
    if answer == AnchorOffer::Sent {
        held.shown.count.store(STREAMS.shown(), Ordering::Relaxed);
        return;
    }
    pairing.count.store(0, Ordering::Relaxed);
    pairing.change(OFFERED, COUNTED);
    // As a connection: tried some times, and then no more.
    if answer == AnchorOffer::Unreachable && held.attempts.fetch_add(1, Ordering::Relaxed) >= meet::RETRY_FACTOR {
        gate::withdraw(fd, Reason::Unreachable);
    }
    if answer == AnchorOffer::OtherVersion {
        gate::withdraw(fd, Reason::OtherVersion);
    }
}

/// Before its last descriptor is closed: as long as it is open at the rendezvous, too, its port is in use.
pub fn await_let_go(socket: &UserSocket) {
    let shown = socket.shown.count.load(Ordering::Relaxed);
    if shown != 0 {
        STREAMS.await_let_go(shown);
    }
}

/// Whether the user's rules allow the pair.
fn allowed(fd: c_int, peer: &DatagramPeer) -> bool {
    // The port stands at the same place in the addresses of both families.
    let own = raw::name(libc::SYS_getsockname, fd).map_or(0, |name| {
        // SAFETY: the storage holds an address of the internet, or zeros.
        u16::from_be(unsafe { (*(&raw const name).cast::<libc::sockaddr_in>()).sin_port })
    });
    settings::port_allowed(own) || settings::port_allowed(peer.port)
}

/// Takes an answer of the rendezvous; false when nobody here has asked for it.
pub fn deliver(cookie: u64, peer: &DatagramPeer, channel: DatagramChannel) -> bool {
    for (fd, entry) in table::entries(0, c_int::MAX) {
        let Entry::Datagram(_) = entry else { continue };
        let Some(held) = socket::hold(fd).filter(|held| held.shown.cookie.load(Ordering::Relaxed) == cookie) else {
            continue;
        };
        if !attach(&held, peer, channel) {
            return false;
        }
        log::attached(fd);
        epoll::datagrams_attached(fd);
        return true;
    }
    false
}

fn attach(held: &SocketHold, peer: &DatagramPeer, channel: DatagramChannel) -> bool {
    let _locked = LockedSocket::new(held);
    let asked = |pairing: &&Pairing| pairing.state.load(Ordering::Acquire) == OFFERED && pairing.is(peer);
    let Some(pairing) = held.known().iter().find(asked) else { return false };
    // Since it was shown it may have been connected to somebody else.
    let elsewhere = held.connected().is_some_and(|connected| connected != *peer);
    if elsewhere || held.kernels.load(Ordering::SeqCst) != 0 {
        return false;
    }
    pairing.set_channel(channel);
    held.channels.fetch_add(1, Ordering::SeqCst);
    pairing.state.store(ATTACHED, Ordering::SeqCst);
    channel.attach();
    if held.open.load(Ordering::SeqCst) != 0 && pairing.heard.load(Ordering::SeqCst) != 0 {
        channel.open_gate();
    }
    true
}

/// Nothing is waited for from the rendezvous any more. Under the lock, so that no answer is being taken.
pub fn forget_offer(pairing: &Pairing, _: &LockedSocket<'_>) {
    if !pairing.change(OFFERED, VACANT) {
        pairing.change(COUNTED, VACANT);
    }
}

/// Forgets one of whom the rendezvous knows nothing; whether it was such a one, or nobody.
pub fn forget_counted(pairing: &Pairing) -> bool {
    pairing.change(COUNTED, VACANT) || pairing.state.load(Ordering::SeqCst) == VACANT
}

/// The other socket is gone, or its process, or nobody is there to say so: nothing more goes by this ring, and what has
/// come by the other one is still read.
#[cold]
pub fn retire(held: &SocketHold, pairing: &Pairing) {
    let _errno = raw::KeepErrno::new();
    drain(pairing, &LockedSocket::new(held));
    sweep(held);
}

/// The gate closes for good. Under the lock, so that nobody opens it again.
pub fn drain(pairing: &Pairing, _: &LockedSocket<'_>) {
    if pairing.state.load(Ordering::Acquire) == ATTACHED
        && let Some(channel) = pairing.channel()
    {
        channel.close_gate();
        pairing.state.store(DRAINING, Ordering::SeqCst);
    }
}

/// Gives back channels that have nothing any more, if nobody else is inside.
pub fn sweep(held: &SocketHold) {
    for pairing in held.known() {
        if pairing.state.load(Ordering::Acquire) != DRAINING || pairing.channel().is_some_and(|left| left.waiting()) {
            continue;
        }
        let _errno = raw::KeepErrno::new();
        let _locked = LockedSocket::new(held);
        // Whoever comes after this change does not touch the channel; whoever came before is inside.
        if !pairing.change(DRAINING, LEAVING) {
            continue;
        }
        if !held.alone() {
            pairing.change(LEAVING, DRAINING);
            continue;
        }
        let channel = pairing.last_of_channel();
        // The peer may live, and be inside: it has seen the gate open, and sends.
        sleep_barrier();
        if !channel.settled() || channel.waiting() {
            pairing.change(LEAVING, DRAINING);
            continue;
        }
        held.channels.fetch_sub(1, Ordering::SeqCst);
        pairing.state.store(VACANT, Ordering::SeqCst);
        channel.leave();
    }
}

/// The record is given back: nobody uses it any more.
pub fn forget_all(socket: &UserSocket) {
    let _errno = raw::KeepErrno::new();
    for pairing in socket.known() {
        if let Some(channel) = pairing.channel() {
            channel.leave();
        }
        pairing.state.store(VACANT, Ordering::SeqCst);
    }
    socket.channels.store(0, Ordering::SeqCst);
    socket.left.forget();
}

/// In the child of a fork: its rings are the parent's, who gives them back.
pub fn disown(socket: &UserSocket) {
    socket.forget_calls();
    socket.kernels.store(1, Ordering::SeqCst);
    socket.open.store(0, Ordering::SeqCst);
    socket.channels.store(0, Ordering::SeqCst);
    for pairing in socket.known() {
        pairing.state.store(VACANT, Ordering::SeqCst);
    }
}
