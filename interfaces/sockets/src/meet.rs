//! How a connection comes to its rings: counted, offered to the rendezvous, granted, attached.
//!
//! Nothing here blocks. What is not sure stays with the kernel.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use weft_fabric::stream::{AnchorOffer, KernelReason, Mail, Reason, Stream, Streams};

use super::conn::{
    self, ATTACHED, ATTACHING, Connection, FAR, FRESH, GRANTED, Hold, NEVER, OFFERED, TAKEN, TOLD, WAS_ATTACHED,
};
use super::table::{self, Entry};
use super::{attend, cookies, early, epoll, family, far, kernel_counts, life, log, passed, raw, settings, udp};

pub static STREAMS: Streams = Streams::open();

/// So often a connection, or a datagram socket, that nobody could be shown is tried again, each time after as many
/// calls.
pub const RETRY_FACTOR: u32 = 8;

/// Before a data call: attaches a connection if both ends are known by now, and leaves one to the kernel that has gone
/// back to it. True if it is attached.
#[inline]
pub fn before_call(held: &Hold, fd: c_int) -> bool {
    match held.state() {
        ATTACHED => !held.stream().is_over() || !leave(held),
        OFFERED | GRANTED => look_for_mail(held, fd),
        _ => false,
    }
}

/// Another process that shares the socket may have handed it back: what we know of its options is old from then on.
/// False where an error is still to be told.
#[cold]
fn leave(held: &Hold) -> bool {
    let left = !held.owes() && held.change(ATTACHED, NEVER);
    if left {
        epoll::refresh(held);
    }
    left
}

/// After a data call that went to the kernel.
#[inline]
pub fn after_call(held: &Hold, fd: c_int) {
    let calls = held.calls.fetch_add(1, Ordering::Relaxed) + 1;
    held.begin_to_count();
    if (calls >= settings::attach_calls() || early::is_much(held))
        && held.state_now() == FRESH
        && early::is_enough(held, fd, 0)
    {
        offer(held, fd);
    }
}

/// Before a call that will move much. True if it is to be tried again.
pub fn offer_now(held: &Hold, fd: c_int) -> bool {
    offer(held, fd) == Some(AnchorOffer::Busy)
}

/// Stays with the kernel from now on; false where it has gone on from that state meanwhile.
pub fn refuse(conn: &Connection, from: u32, cause: impl Into<KernelReason>, fd: c_int) -> bool {
    let cause = cause.into();
    let refused = conn.change(from, NEVER);
    if refused {
        conn.count_as(Some(cause));
        log::fell_back(fd, cause);
    }
    refused
}

/// A connection that was never attached shall never be; gives back what the rendezvous granted.
pub fn give_up(held: &Hold, fd: c_int, cause: KernelReason) {
    if matches!(held.state(), FRESH | OFFERED | GRANTED) {
        family::spoil(held);
    }
    match held.state() {
        GRANTED => {
            let stream = held.stream();
            if refuse(held, GRANTED, cause, fd) {
                STREAMS.decline(stream);
            }
        }
        state @ (FRESH | OFFERED) => {
            cookies::remove(held.cookie.load(Ordering::Relaxed), held.index);
            // Not one that was granted meanwhile.
            if refuse(held, state, cause, fd) && state == OFFERED {
                far::withdraw(held);
            }
        }
        _ => {}
    }
}

/// What keeps a connection from being offered for now.
fn obstacle(held: &Hold, fd: c_int) -> Option<Reason> {
    if !super::may_accelerate() {
        return Some(Reason::KernelCall);
    }
    if !family::alone(held) {
        return Some(Reason::Shared);
    }
    (!passed::is_ours(held, fd)).then_some(Reason::Passed)
}

/// Shows the connection to the rendezvous; `None` where it is not to be shown.
#[cold]
fn offer(held: &Hold, fd: c_int) -> Option<AnchorOffer> {
    let _errno = raw::KeepErrno::new();
    if let Some(reason) = obstacle(held, fd) {
        held.count_as(Some(reason.into()));
        held.calls.store(0, Ordering::Relaxed);
        return None;
    }
    let cookie = match kernel_counts::may_be_accelerated(fd) {
        Ok(cookie) => cookie,
        Err(reason) => match far::note(held, fd, reason) {
            Some(cookie) => cookie,
            None => {
                refuse(held, FRESH, or_too_short(reason, fd), fd);
                return None;
            }
        },
    };
    held.cookie.store(cookie, Ordering::Relaxed);
    if !cookies::insert(cookie, held.index) {
        refuse(held, FRESH, Reason::Resources, fd);
        return None;
    }
    // Before it is shown: the answer may be in the mail before the call has returned.
    if !held.change(FRESH, OFFERED) {
        return None;
    }
    let far = held.has_flag(FAR);
    held.count_as(Some(if far { Reason::NotLocal } else { Reason::Unanswered }.into()));
    held.offered_at.store(raw::now_ns(), Ordering::Relaxed);
    let answer = STREAMS.offer(fd, cookie);
    if answer == AnchorOffer::Sent {
        return Some(answer);
    }
    cookies::remove(cookie, held.index);
    if held.change(OFFERED, FRESH) {
        held.calls.store(0, Ordering::Relaxed);
        held.count_as(Some(unshown(answer, far).into()));
        if matches!(answer, AnchorOffer::Apart | AnchorOffer::OtherVersion) {
            refuse(held, FRESH, unshown(answer, far), fd);
        }
        // Who is busy answers some calls later: a thread that lost its core while it talked is no reason to give up.
        if answer == AnchorOffer::Unreachable && held.attempts.fetch_add(1, Ordering::Relaxed) >= RETRY_FACTOR {
            refuse(held, FRESH, unshown(answer, far), fd);
        }
    }
    Some(answer)
}

/// Why a connection stays with the kernel: where the other side has ended it meanwhile, for that, and not for `reason`.
fn or_too_short(reason: Reason, fd: c_int) -> Reason {
    if kernel_counts::has_ended(fd) { Reason::Short } else { reason }
}

/// Why a connection is with the kernel that could not be shown.
fn unshown(answer: AnchorOffer, far: bool) -> Reason {
    match answer {
        _ if far => Reason::NotLocal,
        AnchorOffer::Apart => Reason::Apart,
        AnchorOffer::OtherVersion => Reason::OtherVersion,
        AnchorOffer::Unreachable => Reason::Unreachable,
        AnchorOffer::Busy | AnchorOffer::Sent => Reason::Short,
    }
}

#[inline]
fn look_for_mail(held: &Hold, fd: c_int) -> bool {
    if STREAMS.has_mail() {
        read_mail();
    }
    match held.state_now() {
        GRANTED => attach(held, fd),
        OFFERED if held.has_flag(FAR) => {
            far::look_at_patience(held, fd);
            false
        }
        OFFERED => {
            look_at_silence(held, fd);
            false
        }
        _ => false,
    }
}

/// So many looks for the other end, and the log says that it does not come.
const LOOKS: u32 = 64;

/// Why nothing that is shown comes about with this rendezvous.
fn refusal() -> Option<Reason> {
    if STREAMS.is_apart() {
        return Some(Reason::Apart);
    }
    STREAMS.is_of_other_version().then_some(Reason::OtherVersion)
}

/// The other end of a connection of this host has not been shown. It may be later.
fn look_at_silence(held: &Hold, fd: c_int) {
    if let Some(reason) = refusal() {
        cookies::remove(held.cookie.load(Ordering::Relaxed), held.index);
        refuse(held, OFFERED, reason, fd);
    } else if held.empty_looks.load(Ordering::Relaxed) < LOOKS {
        // Counted there while there is no ring yet.
        held.empty_looks.fetch_add(1, Ordering::Relaxed);
    } else {
        tell_of_silence(held, fd);
    }
}

/// Once for each connection.
fn tell_of_silence(conn: &Connection, fd: c_int) {
    if !conn.has_flag(TOLD | FAR) {
        conn.set_flag(TOLD);
        log::fell_back(fd, refusal().unwrap_or(Reason::Unanswered));
    }
}

/// The process ends: what has not been counted, or said in the log, of its connections.
pub fn before_exit() {
    if !life::is_known_process() {
        return;
    }
    // An answer that nobody has taken is no end that was not shown.
    if STREAMS.has_mail() {
        for_each_mail(drop);
    }
    udp::await_let_go();
    if settings::log_level() == 0 {
        return;
    }
    life::for_each_connection(|fd, _, conn| {
        if conn.state_now() == OFFERED {
            tell_of_silence(conn, fd);
        }
    });
}

#[cold]
pub fn read_mail() {
    for_each_mail(|held| attach_for_others(&held));
}

/// Takes all mail, and calls `granted` with each connection that has got an answer.
fn for_each_mail(granted: impl Fn(Hold)) {
    let _errno = raw::KeepErrno::new();
    while let Some(mail) = STREAMS.take_mail() {
        match mail {
            Mail::Stream { cookie, stream } => match deliver(cookie, stream) {
                Some(held) => granted(held),
                None => STREAMS.decline(stream),
            },
            Mail::Pair { cookie, peer, channel } if !udp::deliver(cookie, &peer, channel) => channel.leave(),
            _ => {}
        }
    }
}

/// Puts an answer of the rendezvous to the connection that was offered; `None` when there is none any more.
fn deliver(cookie: u64, stream: Stream) -> Option<Hold> {
    let held = conn::hold_index(cookies::take(cookie)?);
    if held.cookie.load(Ordering::Relaxed) != cookie || held.state_now() != OFFERED {
        return None;
    }
    far::answered(&held);
    held.set_stream(stream);
    held.patience.store(conn::PATIENCE, Ordering::Relaxed);
    held.empty_looks.store(0, Ordering::Relaxed);
    let is_granted = held.change(OFFERED, GRANTED);
    if is_granted {
        held.count_as(Some(Reason::Untaken.into()));
    }
    is_granted.then_some(held)
}

/// Attaches one that this thread has got the answer for. Its own threads may be long without a core, or have nothing
/// to do with it for a while, and the other end waits.
fn attach_for_others(held: &Hold) {
    let mut descriptor = None;
    held.descriptors(held.index, |fd| descriptor = Some(fd));
    // One that was passed is asked for by its number, which another thread may be giving to something else.
    if let Some(fd) = descriptor.filter(|_| !held.has_flag(TAKEN)) {
        attach(held, fd);
    }
}

/// Attaches if no other call of this process is inside; otherwise the next call tries again.
#[cold]
fn attach(held: &Hold, fd: c_int) -> bool {
    let _errno = raw::KeepErrno::new();
    // A signal handler on this thread that used the connection would wait for us.
    let mask = raw::signal_mask(u64::MAX);
    let attached = attach_undisturbed(held, fd);
    raw::signal_mask(mask);
    attached
}

fn attach_undisturbed(held: &Hold, fd: c_int) -> bool {
    if !held.change(GRANTED, ATTACHING) {
        return held.state_now() == ATTACHED;
    }
    if !super::may_accelerate()
        || !held.alone()
        || !family::alone(held)
        || !passed::is_ours(held, fd)
        || (held.has_flag(FAR) && life::forks_now())
    {
        held.change(ATTACHING, GRANTED);
        return false;
    }
    let (sent, received) = (held.sent.load(Ordering::Relaxed), held.received.load(Ordering::Relaxed));
    let stream = held.stream();
    if !kernel_counts::agree(fd, sent, received) {
        STREAMS.decline(stream);
        refuse(held, ATTACHING, or_too_short(Reason::Uncountable, fd), fd);
        return false;
    }
    kernel_counts::read_options(held, fd);
    let flags = raw::fcntl(fd, libc::F_GETFL, 0).unwrap_or(0);
    stream.set_nonblocking(flags & libc::O_NONBLOCK as usize != 0);
    let counts = stream.kernel_counts();
    counts.0.store(sent, Ordering::Relaxed);
    counts.1.store(received, Ordering::Relaxed);
    // Those that it is passed to from here on are told by ourselves.
    held.take_flag(TAKEN);
    if held.set.load(Ordering::SeqCst) != 0 {
        stream.ask_for_order();
    }
    if table::entry(fd) != Some(Entry::Connection(held.index)) {
        // It was looked up for somebody else, and closed meanwhile: what was read may be of another socket.
        held.change(ATTACHING, GRANTED);
        return false;
    }
    stream.attach(held.index);
    far::tell(&stream);
    held.attached_at.store(raw::now_ns(), Ordering::Relaxed);
    held.set_flag(WAS_ATTACHED);
    attend::begin();
    held.count_as(None);
    held.change(ATTACHING, ATTACHED);
    log::attached(fd);
    epoll::attached(held);
    true
}

/// Whether it was worth it to offer this connection, which has ended.
fn judge(conn: &Connection, state: u32) {
    if conn.has_flag(WAS_ATTACHED) {
        let [offered, attached] = [&conn.offered_at, &conn.attached_at].map(|time| time.load(Ordering::Relaxed));
        early::judge(conn, raw::now_ns().saturating_sub(attached) >= attached.saturating_sub(offered));
    } else if matches!(state, OFFERED | GRANTED) {
        early::judge(conn, false);
    }
}

/// The last descriptor and the last call are gone.
pub fn left(conn: &Connection, state: u32) {
    let _errno = raw::KeepErrno::new();
    family::leave(conn);
    judge(conn, state);
    match state {
        OFFERED => {
            cookies::remove_of(conn);
            if let Some(reason) = refusal() {
                conn.count_as(Some(reason.into()));
            }
            tell_of_silence(conn, conn.descriptor.load(Ordering::Relaxed));
            far::withdraw(conn);
        }
        GRANTED => STREAMS.decline(conn.stream()),
        _ if conn.has_flag(WAS_ATTACHED) => conn.stream().drop_ref(),
        _ => {}
    }
}
