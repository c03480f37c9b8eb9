//! What happens to connections besides data: handed back to the kernel, shut down, forked, carried over exec.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

use libc::{FD_CLOEXEC, SHUT_RD, SHUT_RDWR, SHUT_WR};
use weft_fabric::stream::{KernelOnly, KernelReason, Reason, Stream};

use super::conn::{self, ATTACHED, Connection, FRESH, GRANTED, Hold, NEVER, OFFERED};
use super::far::{self, Urging};
use super::meet::STREAMS;
use super::table::{self, Entry};
use super::{attend, cookies, ends, epoll, family, log, meet, outgoing, passed, raw, rescue, tally, udp, wait};

/// How long the peer may take to answer that it sends by the kernel again.
const ANSWER_NS: u64 = 3_000_000_000;
/// How long we wait for it to read what we sent, or to want it back: what it has not read then stays there for it.
const SETTLE_NS: u64 = 500_000_000;
/// When it is called, and how often, if it is not inside one of our calls.
const CALL_AFTER_NS: u64 = 2_000_000;
const CALL_EVERY_NS: u64 = 20_000_000;
/// Between two looks for that answer.
const LOOK_EVERY_NS: u64 = 200_000;

/// Set while records are counted for a fork or an exec, so that a connection with two descriptors counts once.
const MARK: u32 = 1 << 31;

/// Whether this process came from a fork after the library was loaded; such a process gives back its references when it
/// ends, because the rendezvous does not know it by itself.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// The process in which we were loaded, or that came from a fork that we know of.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// Whether such a process has given them back.
static LEFT: AtomicBool = AtomicBool::new(false);

/// From now on this connection is the kernel's alone, in both directions, so that somebody who bypasses us may use the
/// descriptor. Waits for the peer; one that does not answer costs the connection, never bytes.
pub fn hand_back(fd: c_int, cause: impl Into<KernelReason>) {
    hand_back_since(fd, cause.into(), None, Whom::Anybody);
}

/// Who is to use the descriptor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whom {
    /// Who bypasses us, or has nothing of ours.
    Anybody,
    /// A child that shares our memory, and has no lane: it reads what is in a ring to the end, as we do.
    Child,
}

/// The same, asked for at the time `start`.
fn hand_back_since(fd: c_int, cause: KernelReason, start: Option<u64>, whom: Whom) {
    if udp::withdraw(fd, cause) {
        return;
    }
    let Some(held) = conn::hold(fd) else { return };
    let _errno = raw::KeepErrno::new();
    meet::give_up(&held, fd, cause);
    if held.state() == ATTACHED && !held.is_cut_off() {
        hand_back_attached(&held, fd, cause, start.unwrap_or_else(raw::now_ns), whom);
    }
}

#[cold]
fn hand_back_attached(held: &Hold, fd: c_int, cause: KernelReason, start: u64, whom: Whom) {
    let stream = held.stream();
    let mut call_at = start + CALL_AFTER_NS;
    let mut settled = false;
    let mut urging = Urging::new();
    loop {
        let back = has_come_back(&stream, whom);
        urging.urge(&stream);
        let now = raw::now_ns();
        // The peer may hand back next; then nothing of ours may be left in the ring, where its successor does not look.
        if !settled && (now > start + SETTLE_NS || stream.unread_by_peer() == 0) {
            outgoing::to_kernel(held, fd, &stream);
            outgoing::await_kernel(fd, &stream);
            settled = true;
        }
        if back && settled {
            break;
        }
        if !back && settled && rescue::is_due(held, fd) {
            if rescue::replace(held, fd) {
                break;
            }
            return cut_off(held, fd);
        }
        if now > call_at {
            stream.peer_processes(attend::call);
            call_at = now + CALL_EVERY_NS;
        }
        if now > start + ANSWER_NS {
            return cut_off(held, fd);
        }
        serve_all();
        far::nap(LOOK_EVERY_NS);
    }
    far::tell(&stream);
    let has_rest = whom == Whom::Child && !stream.lock_receive().want_kernel();
    if !has_rest && held.change(ATTACHED, NEVER) {
        STREAMS.counters().fell_back(cause);
        log::fell_back(fd, cause);
    }
    epoll::refresh(held);
}

/// Whether what comes, comes in a way that is of use to him. Asks for it.
fn has_come_back(stream: &Stream, whom: Whom) -> bool {
    // A peer that has gone back by itself cannot give back what we have not read.
    (whom == Whom::Child && stream.peer_returned()) || stream.lock_receive().want_kernel()
}

/// The bytes in the ring cannot come by the kernel: nobody shall get those behind them. What we have is still read by
/// us, in order, and then the connection is reset.
fn cut_off(held: &Hold, fd: c_int) {
    log::line(format_args!("descriptor {fd}: the other side does not answer; the connection is shut down"));
    let stream = held.stream();
    let _guard = stream.lock_receive();
    // For all who share it, and for good: later looks at the same end come to nothing else.
    stream.options().cut_off.store(1, Ordering::Relaxed);
    // Not only shut down: whoever gets the descriptor now must see an error where bytes are missing, not an end.
    if raw::disconnect(fd).is_err() {
        let _ = raw::shutdown(fd, SHUT_RDWR);
    }
    held.owe(libc::ECONNRESET);
    STREAMS.counters().fell_back(Reason::Broken);
}

/// This process is one that we know.
pub fn note_process() {
    PROCESS.store(raw::process() as i32, Ordering::Relaxed);
}

pub fn is_known_process() -> bool {
    process() == raw::process() as i32
}

/// Its number.
pub fn process() -> i32 {
    PROCESS.load(Ordering::Relaxed)
}

/// Answers all peers: the one that we wait for may be this process itself, or wait for us elsewhere.
fn serve_all() {
    for (fd, entry) in table::entries(0, c_int::MAX) {
        if let Entry::Connection(_) = entry
            && let Some(held) = conn::hold(fd)
            && held.state_now() == ATTACHED
        {
            wait::serve(&held, fd);
        }
    }
}

/// The peer broke the rules of the shared memory: the program sees a connection that was reset.
#[cold]
pub fn reset(held: &Hold, fd: c_int) {
    let _ = raw::shutdown(fd, SHUT_RDWR);
    if held.change(ATTACHED, NEVER) {
        STREAMS.counters().fell_back(Reason::Broken);
        log::fell_back(fd, Reason::Broken);
    }
    epoll::refresh(held);
}

/// Before `shutdown`: what is sent afterwards must fail as the kernel has it.
pub fn before_shutdown(fd: c_int, how: c_int) {
    udp::withdraw(fd, KernelOnly::Shutdown);
    let Some(held) = conn::hold(fd) else { return };
    held.set_flag(conn::SHUT);
    if how != SHUT_RD {
        held.note_end(fd);
    }
    if how != SHUT_RD && held.state() == ATTACHED {
        let stream = held.stream();
        outgoing::to_kernel(&held, fd, &stream);
        stream.rouse_senders();
        if how == SHUT_WR {
            stream.set_half_closed();
        } else {
            stream.set_closing();
        }
        if !far::await_told(&stream) {
            cut_off(&held, fd);
        }
    }
}

/// Calls `each` once for every connection of this process, with one of its descriptors.
pub fn for_each_connection(mut each: impl FnMut(c_int, u32, &Connection)) {
    for (fd, entry) in table::entries(0, c_int::MAX) {
        let Entry::Connection(index) = entry else { continue };
        let conn = conn::at(index);
        if conn.flags.fetch_or(MARK, Ordering::Relaxed) & MARK == 0 {
            each(fd, index, conn);
        }
    }
    for (_, entry) in table::entries(0, c_int::MAX) {
        if let Entry::Connection(index) = entry {
            conn::at(index).take_flag(MARK);
        }
    }
}

/// One fork at a time, and no signal handler of the forking thread meanwhile: it could fork.
static FORKING: AtomicBool = AtomicBool::new(false);
/// How many have begun.
static FORKS: AtomicU64 = AtomicU64::new(0);
/// The signal mask of the thread that forks.
static MASK: AtomicU64 = AtomicU64::new(0);

fn begin_fork() {
    let mask = raw::signal_mask(u64::MAX);
    while FORKING.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
        raw::yield_core();
    }
    MASK.store(mask, Ordering::Relaxed);
    FORKS.fetch_add(1, Ordering::SeqCst);
}

/// Runs `fork`; when there is no child, what was counted for it is taken back. (Where another thread has forked since,
/// it stays counted, which is the safe side.)
pub fn forking(fork: impl FnOnce() -> libc::pid_t) -> libc::pid_t {
    let before = FORKS.load(Ordering::SeqCst);
    let child = fork();
    if child < 0 && super::is_on() {
        let _errno = raw::KeepErrno::new();
        begin_fork();
        if FORKS.load(Ordering::SeqCst) == before + 2 {
            for_each_connection(|_, _, conn| disinherit(conn));
        }
        end_fork();
    }
    child
}

fn disinherit(conn: &Connection) {
    if conn.take_flag(conn::FORK_REFERENCE) {
        conn.stream().drop_ref();
    }
    if conn.take_flag(conn::FORK_SHARE) {
        family::leave(conn);
    }
}

fn end_fork() {
    let mask = MASK.load(Ordering::Relaxed);
    FORKING.store(false, Ordering::Release);
    raw::signal_mask(mask);
}

/// Forks that have begun and are not over.
static FORKS_NOW: AtomicU32 = AtomicU32::new(0);

/// Whether this process forks, so that no connection to another host is to be attached.
pub fn forks_now() -> bool {
    FORKS_NOW.load(Ordering::SeqCst) > 0
}

/// Before a fork: the child will hold everything that this process holds.
pub extern "C" fn before_fork() {
    if !super::is_on() {
        return;
    }
    // Before the look at them: who attaches sets the state and then looks here, so that one of us sees the other.
    FORKS_NOW.fetch_add(1, Ordering::SeqCst);
    if STREAMS.lane().is_some() {
        // One process can have a lane.
        hand_back_all(Reason::Passed, for_each_far, Whom::Child);
    }
    if may_count_otherwise() {
        // What is shared by both would be locked in the names of threads, which mean nothing to each other.
        hand_back_all(Reason::Passed, for_each_attached, Whom::Anybody);
    }
    begin_fork();
    // Before the sets are held: rings of datagrams have locks that are waited for.
    udp::before_fork();
    epoll::lock_all();
    for_each_connection(|fd, _, conn| {
        passed::spread(conn, fd);
        inherit(conn);
    });
}

/// Whether a child would be in another namespace of process numbers than we are.
fn may_count_otherwise() -> bool {
    if !table::entries(0, c_int::MAX).any(|(_, entry)| is_attached(entry)) {
        return false;
    }
    let (ours, theirs) = (c"/proc/thread-self/ns/pid", c"/proc/thread-self/ns/pid_for_children");
    match (raw::read_link(ours), raw::read_link(theirs)) {
        (Ok(ours), Ok(theirs)) => ours != theirs,
        // There is none as long as nobody lives in it.
        (Ok(_), Err(error)) => error == libc::ENOENT,
        (Err(_), _) => false,
    }
}

fn is_attached(entry: Entry) -> bool {
    matches!(entry, Entry::Connection(index) if conn::at(index).state_now() == ATTACHED)
}

/// Calls `each` with every descriptor of one whose bytes go by the lane. Waits for threads that attach one.
fn for_each_far(each: &mut dyn FnMut(c_int)) {
    for (fd, entry) in table::entries(0, c_int::MAX) {
        if let Entry::Connection(_) = entry
            && conn::hold(fd).is_some_and(|held| held.state() == ATTACHED && held.stream().is_far())
        {
            each(fd);
        }
    }
}

/// Calls `each` with every descriptor of a connection whose bytes go by the ring.
fn for_each_attached(each: &mut dyn FnMut(c_int)) {
    table::entries(0, c_int::MAX).filter(|(_, entry)| is_attached(*entry)).for_each(|(fd, _)| each(fd));
}

/// One more process will hold this connection.
fn inherit(conn: &Connection) {
    conn.take_flag(conn::FORK_REFERENCE | conn::FORK_SHARE);
    // Waits for a thread that is attaching it: what it comes to decides what is counted.
    if matches!(conn.state(), ATTACHED | NEVER) {
        if conn.has_flag(conn::WAS_ATTACHED) {
            conn.stream().add_ref();
            conn.set_flag(conn::FORK_REFERENCE);
        }
        return;
    }
    family::share(conn);
    // A thread that began before it could see that may have attached it after all. One that begins now does see it.
    if conn.state() == ATTACHED {
        family::leave(conn);
        conn.stream().add_ref();
        conn.set_flag(conn::FORK_REFERENCE);
    } else {
        conn.set_flag(conn::FORK_SHARE);
    }
}

/// After a fork, in the parent.
pub extern "C" fn after_fork_in_parent() {
    if super::is_on() {
        epoll::unlock_all();
        end_fork();
        FORKS_NOW.fetch_sub(1, Ordering::SeqCst);
    }
}

/// After a fork, in the child: other threads are gone, and what the parent has shown to the rendezvous is the parent's.
pub extern "C" fn after_fork_in_child() {
    if !super::is_on() {
        return;
    }
    note_process();
    FORKS_NOW.store(0, Ordering::SeqCst);
    IS_CHILD.store(true, Ordering::Relaxed);
    LEFT.store(false, Ordering::Relaxed);
    epoll::forked();
    STREAMS.forked();
    udp::after_fork_in_child();
    for_each_connection(|_, _, conn| {
        conn.forget_calls();
        conn.forget_counts();
        if matches!(conn.state_now(), OFFERED | GRANTED | conn::ATTACHING) {
            conn.calls.store(0, Ordering::Relaxed);
            cookies::remove_of(conn);
            conn.set_state(FRESH);
        }
    });
    end_fork();
}

/// Before another program is started beside us (`spawn`) or in our place: what it would inherit becomes the kernel's.
pub fn before_exec(reason: Reason) {
    tally::before_exec();
    if super::is_on() {
        hand_back_all(reason, for_each_inherited, Whom::Anybody);
    }
}

/// Calls what it is given with each of some descriptors.
type ForEach = fn(&mut dyn FnMut(c_int));

/// Everything that goes by rings becomes the kernel's.
pub fn hand_back_everything(reason: Reason) {
    hand_back_all(reason, for_each_attached, Whom::Anybody);
}

/// Hands all of these back. All peers are asked before one is waited for.
fn hand_back_all(reason: Reason, for_each: ForEach, whom: Whom) {
    let start = raw::now_ns();
    await_all(start, for_each, whom);
    for_each(&mut |fd| hand_back_since(fd, reason.into(), Some(start), whom));
}

/// Asks the peers of all of these, calls those that do not answer, and waits for them together: one that never answers
/// uses up nobody else's time.
fn await_all(start: u64, for_each: ForEach, whom: Whom) {
    let mut call_at = start + CALL_AFTER_NS;
    let mut urging = Urging::new();
    loop {
        STREAMS.drive();
        let (now, tells) = (raw::now_ns(), urging.is_due());
        let calls = now > call_at;
        if calls {
            call_at = now + CALL_EVERY_NS;
        }
        let mut waits = false;
        for_each(&mut |fd| waits |= awaits_answer(fd, calls, tells, whom));
        if !waits || now > start + ANSWER_NS {
            return;
        }
        serve_all();
        far::nap(LOOK_EVERY_NS);
    }
}

/// Whether the peer of this connection still has to answer, and may: it is asked, and called with `calls`; one on
/// another host is told of it with `tells`.
fn awaits_answer(fd: c_int, calls: bool, tells: bool, whom: Whom) -> bool {
    let Some(held) = conn::hold(fd).filter(|held| held.state_now() == ATTACHED && !held.is_cut_off()) else {
        return false;
    };
    if has_come_back(&held.stream(), whom) {
        return false;
    }
    if tells {
        far::tell(&held.stream());
    }
    if calls {
        held.stream().peer_processes(attend::call);
    }
    !rescue::is_due(&held, fd)
}

/// Calls `each` with every descriptor of a connection that a program started now would get.
fn for_each_inherited(each: &mut dyn FnMut(c_int)) {
    for (fd, entry) in table::entries(0, c_int::MAX) {
        let may_go = match entry {
            Entry::Connection(index) => conn::at(index).state_now() != NEVER,
            Entry::Datagram(_) => true,
            Entry::Set(_) => false,
        };
        if may_go && (is_heir(fd) || survives_exec(fd)) {
            each(fd);
        }
    }
}

/// Descriptors that some child is to get as another number. Never forgotten: a list of actions may be used again, when
/// its numbers are other files. A number takes the bit of its remainder; one too many handed back is only slower.
static HEIRS: AtomicU64 = AtomicU64::new(0);

/// A list of actions for `spawn` duplicates `fd`.
pub fn note_heir(fd: c_int) {
    HEIRS.fetch_or(1 << (fd & 63), Ordering::SeqCst);
}

fn is_heir(fd: c_int) -> bool {
    HEIRS.load(Ordering::SeqCst) & 1 << (fd & 63) != 0
}

fn survives_exec(fd: c_int) -> bool {
    raw::fcntl(fd, libc::F_GETFD, 0).is_ok_and(|flags| flags & FD_CLOEXEC as usize == 0)
}

/// A process that came from a fork ends, or becomes another program: it holds nothing any more. Once only: a reference
/// given back twice would be another process's.
pub fn leave() {
    if !super::is_on() || !IS_CHILD.load(Ordering::Relaxed) || LEFT.swap(true, Ordering::SeqCst) {
        return;
    }
    for_each_connection(|_, _, conn| match conn.state_now() {
        NEVER | ATTACHED if conn.has_flag(conn::WAS_ATTACHED) => conn.stream().drop_ref(),
        FRESH | OFFERED | GRANTED => family::leave(conn),
        _ => {}
    });
}

/// Ends the process at once.
pub fn exit(status: c_int) -> ! {
    if super::is_on() {
        meet::before_exit();
        ends::before_exit();
    }
    leave();
    udp::leave();
    raw::exit(status)
}

/// The program that was to take our place could not be started.
pub fn stay() {
    if !super::is_on() || !IS_CHILD.load(Ordering::Relaxed) || !LEFT.swap(false, Ordering::SeqCst) {
        return;
    }
    for_each_connection(|_, _, conn| match conn.state_now() {
        NEVER | ATTACHED if conn.has_flag(conn::WAS_ATTACHED) => conn.stream().add_ref(),
        FRESH | OFFERED | GRANTED => family::share(conn),
        _ => {}
    });
}
