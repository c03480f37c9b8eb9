//! Ends with bytes unread.
//!
//! A process that closes a socket, or is gone, while bytes for it are unread has reset its connection: its peer reads what
//! is still there and then gets ECONNRESET, where it would have got an end. The kernel sees to that for what it has itself,
//! and knows nothing of bytes in a ring. So who closes or exits looks at its ring before; and who is told of an end looks
//! whether the other side left bytes unread without having looked itself, which is what a killed process does. Then the
//! socket is brought into the state that a reset leaves: undone and shut in both directions.
//!
//! What was sent to a process in the moments after it was killed counts as unread, too: nobody knows which was first.

use std::ffi::c_int;

use libc::{POLLHUP, POLLIN, POLLRDHUP, SHUT_RDWR};

use super::conn::{self, ASK_KERNEL, ATTACHED, Connection, Held, UNDONE};
use super::raw::{self, Errno};
use super::{kernel_counts, life};

/// Before `fd` is closed, the last descriptor of its connection. Answers what closing it did before, if that was changed.
pub fn before_close(fd: c_int) -> Option<libc::linger> {
    let held = conn::hold(fd)?;
    if held.is_last_descriptor() && life::is_known_process() { reset_if_unread(&held, fd) } else { None }
}

/// Before the process exits, which closes everything. Not a child that was made without a word to us: what it seems to hold
/// alone is its parent's, too.
pub fn before_exit() {
    if !life::is_known_process() {
        return;
    }
    life::for_each_connection(|fd, _, conn| {
        reset_if_unread(conn, fd);
        if conn.state_now() == ATTACHED && !conn.stream().is_shared() {
            conn.stream().set_closing();
        }
    });
}

fn reset_if_unread(conn: &Connection, fd: c_int) -> Option<libc::linger> {
    let unread = conn.state_now() == ATTACHED && conn.stream().has_unread() && !conn.stream().is_shared();
    if unread { raw::reset_when_closed(fd) } else { None }
}

/// The kernel has told of an error itself: if it is a reset, there is not to be another one.
#[cold]
pub fn told(held: &Held, fd: c_int, error: Errno) {
    if error == libc::ECONNRESET && held.stream().left_unread() > 0 && kernel_counts::has_ended(fd) {
        held.stream().lock_send().abandon_ring();
    }
}

/// The kernel may have been told of an end: `events` is what it reports. True if the connection is as if it had been
/// reset since; then the kernel is to be asked again.
#[inline]
pub fn notice(held: &Held, fd: c_int, events: i16) -> bool {
    events & (POLLIN | POLLRDHUP | POLLHUP) != 0
        && held.stream().left_unread() > 0
        && kernel_counts::has_ended(fd)
        && judge(held, fd)
}

/// The same for one who holds no lock of the connection, nor of a set.
#[cold]
fn judge(held: &Held, fd: c_int) -> bool {
    let guard = held.stream().lock_receive();
    !guard.is_nested() && judge_locked(held, fd)
}

/// The same under the lock of the receiving direction. Decided once, for all who share the socket.
#[cold]
pub fn judge_locked(held: &Held, fd: c_int) -> bool {
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
    stream.rouse_senders();
    let tells = kernel_counts::awaits_our_end(fd);
    let _ = raw::disconnect(fd);
    let _ = raw::shutdown(fd, SHUT_RDWR);
    if !tells {
        // The kernel tells of the error only where our direction was open; not twice.
        let _ = raw::option::<c_int>(fd, libc::SOL_SOCKET, libc::SO_ERROR, 0);
        held.owe(libc::ECONNRESET);
    }
    held.set_flag(ASK_KERNEL | UNDONE);
    true
}
