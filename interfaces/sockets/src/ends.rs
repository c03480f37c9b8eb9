//! Ends with bytes unread.
//!
//! A process that closes a socket, or is gone, while bytes for it are unread has reset its connection: its peer reads
//! what is still there and then gets ECONNRESET, where it would have got an end. The kernel sees to that for what it
//! has itself, and knows nothing of bytes in a ring. So who closes or exits looks at its ring before; and who is told
//! of an end looks whether the other side left bytes unread without having looked itself, which is what a killed
//! process does. Then the socket is brought into the state that a reset leaves: undone and shut in both directions.
//!
//! What was sent to a process in the moments after it was killed counts as unread, too: nobody knows which was first.

use std::ffi::c_int;

use libc::{POLLHUP, POLLIN, POLLRDHUP, SHUT_RDWR};

use weft_fabric::stream::{Reason, Writable};

use super::conn::{self, ASK_KERNEL, ATTACHED, Connection, FAR, Hold, OFFERED, UNDONE};
use super::meet::STREAMS;
use super::raw::{self, Errno};
use super::table::{self, Entry};
use super::{epoll, family, far, kernel_counts, life, log};

/// Before `fd` is closed, the last descriptor of its connection. Answers what closing it did before, if that was
/// changed.
pub fn before_close(fd: c_int) -> Option<libc::linger> {
    let held = conn::hold(fd)?;
    if held.is_last_descriptor() {
        held.note_end(fd);
        // In a child that was made without a word to us the set is its parent's, too.
        if held.state_now() == OFFERED && family::alone(&held) && life::is_known_process() {
            epoll::take_out(fd);
            await_let_go(&held);
        }
    }
    if held.is_last_descriptor() && life::is_known_process() { reset_if_unread(&held, fd) } else { None }
}

/// Before the process exits, which closes everything. Not a child that was made without a word to us: what it seems to
/// hold alone is its parent's, too.
pub fn before_exit() {
    if !life::is_known_process() {
        return;
    }
    // First: what comes meanwhile is unread, too.
    life::for_each_connection(|_, _, conn| await_let_go(conn));
    life::for_each_connection(|fd, _, conn| {
        reset_if_unread(conn, fd);
        if conn.state_now() == ATTACHED && !conn.stream().is_shared() {
            conn.stream().set_closing();
            far::tell(&conn.stream());
        }
        conn.note_end(fd);
    });
}

/// Before what was shown is closed: its end is none as long as it is open at the rendezvous, too, and would be seen
/// behind what is done next. What leads to another host that keeps open.
fn await_let_go(conn: &Connection) {
    if conn.state_now() == OFFERED && !conn.has_flag(FAR) {
        STREAMS.await_let_go(STREAMS.shown());
    }
}

fn reset_if_unread(conn: &Connection, fd: c_int) -> Option<libc::linger> {
    let unread = conn.state_now() == ATTACHED && conn.stream().has_unread() && !conn.stream().is_shared();
    if unread { raw::reset_when_closed(fd) } else { None }
}

/// The kernel has told of an error itself: if it is a reset, there is not to be another one.
#[cold]
pub fn told(held: &Hold, fd: c_int, error: Errno) {
    if error == libc::ECONNRESET && held.stream().left_unread() > 0 && kernel_counts::has_ended(fd) {
        held.stream().lock_send().abandon_ring();
    }
}

/// The kernel may have been told of an end: `events` is what it reports. True if the connection is as if it had been
/// reset since; then the kernel is to be asked again.
#[inline]
pub fn notice(held: &Hold, fd: c_int, events: i16) -> bool {
    events & (POLLIN | POLLRDHUP | POLLHUP) != 0
        && held.stream().left_unread() > 0
        && kernel_counts::has_ended(fd)
        && judge(held, fd)
}

/// The same for one who holds no lock of the connection, nor of a set.
#[cold]
fn judge(held: &Hold, fd: c_int) -> bool {
    let guard = held.stream().lock_receive();
    !guard.is_nested() && judge_locked(held, fd)
}

/// The same under the lock of the receiving direction. Decided once, for all who share the socket.
#[cold]
pub fn judge_locked(held: &Hold, fd: c_int) -> bool {
    let stream = held.stream();
    if held.is_cut_off()
        || stream.left_unread() == 0
        // Whoever has said something looked itself, and may still be reading.
        || stream.peer_closing()
        || !kernel_counts::has_ended(fd)
        // Those come first, and would be lost.
        || raw::ioctl_number(fd, libc::FIONREAD) != Ok(0)
        || stream.lock_send().abandon_ring() == 0
    {
        return false;
    }
    undo(held, fd, kernel_counts::awaits_our_end(fd));
    true
}

/// Leaves the socket as a reset does. Whether the kernel `tells` of the error: only where our direction is open. The
/// ring in which we send is abandoned already.
fn undo(held: &Hold, fd: c_int, tells: bool) {
    held.stream().rouse_senders();
    let _ = raw::disconnect(fd);
    let _ = raw::shutdown(fd, SHUT_RDWR);
    if !tells {
        // Not twice.
        let _ = raw::option::<c_int>(fd, libc::SOL_SOCKET, libc::SO_ERROR, 0);
        held.owe(libc::ECONNRESET);
    }
    held.set_flag(ASK_KERNEL | UNDONE);
}

/// The rendezvous is gone, and with it the way by the lane: every connection of this process that needs it is reset,
/// which the kernel tells the other end. What is in a ring here is read before that is seen. The caller holds no lock.
#[cold]
pub fn reset_deserted() {
    for (fd, entry) in table::entries(0, c_int::MAX) {
        if let Entry::Connection(_) = entry
            && let Some(held) = conn::hold(fd).filter(|held| held.state() == ATTACHED && held.stream().is_far())
        {
            reset_if_needed(&held, fd);
        }
    }
}

fn reset_if_needed(held: &Hold, fd: c_int) {
    let stream = held.stream();
    let guard = stream.lock_receive();
    if guard.is_nested() || held.has_flag(UNDONE) || held.is_cut_off() || !needs_lane(held, fd) {
        return;
    }
    log::line(format_args!("descriptor {fd}: the rendezvous has ended; the connection is reset"));
    STREAMS.counters().fell_back(Reason::Broken);
    stream.lock_send().abandon_ring();
    undo(held, fd, true);
}

/// Whether something is to come by the lane still, or to go by it.
fn needs_lane(held: &Hold, fd: c_int) -> bool {
    let stream = held.stream();
    // The other host has ended the connection when all had come that it had sent; where it only reads on, ours is to
    // go.
    let reads_on = kernel_counts::awaits_our_end(fd) && stream.peer_reads_on();
    let ended = kernel_counts::has_ended(fd) && !reads_on;
    // What the kernel has comes first, and would be lost. Who cannot send does not wait for it to be read.
    let comes_first = raw::ioctl_number(fd, libc::FIONREAD) != Ok(0) && stream.writable() != Writable::Full;
    !stream.is_over() && !ended && !comes_first
}
