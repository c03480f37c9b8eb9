//! Talking to the rendezvous: showing anchors, taking mail. Whoever finds another thread here goes on. Nothing blocks
//! but [`await_looked`], for a moment.

use super::answers::AnchorOffer;
use super::far;
use super::page::{self, PAGE};
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use weft_device::kernel::{self, Abstract, Descriptor};
use weft_device::shm::stream::{Arena, bell};
use weft_wire::stream::datagram::DatagramPeer;
use weft_wire::stream::packet::{Answer, BYTES, COMMON_NAME, SlotSide, StreamRequest, VERSION, user_name};

/// Arenas that a process can have at the same time: processes that it talks to.
const ARENAS: usize = 1024;
static ARENAS_HERE: [Arena; ARENAS] = [const { Arena::vacant() }; ARENAS];
/// One more than the last place that was ever used.
static ARENAS_USED: AtomicU32 = AtomicU32::new(0);

static SOCKET: AtomicI32 = AtomicI32::new(-1);
static COOKIE: AtomicU64 = AtomicU64::new(0);
/// The program has put another file in the place of our socket. The rendezvous looks on after our connections to other
/// hosts, as long as the page is there that it knows: no other is shown to it.
static IS_MUTE: AtomicBool = AtomicBool::new(false);
/// The rendezvous gives memory that is no arena of ours.
static IS_STRANGE: AtomicBool = AtomicBool::new(false);
/// Sockets that were shown, and how many there were when this rendezvous was met.
static SHOWN: AtomicU32 = AtomicU32::new(0);
static SHOWN_BEFORE: AtomicU32 = AtomicU32::new(0);
/// A failed connection is not tried again before.
static NOT_BEFORE: AtomicU64 = AtomicU64::new(0);
static TAKEN: AtomicU32 = AtomicU32::new(0);
/// The thread that is here, 0 if nobody.
static BUSY: AtomicU32 = AtomicU32::new(0);

const SECOND_NS: u64 = 1_000_000_000;
/// So long one waits until the rendezvous has looked at a socket: it takes an instant, unless it has no core, or is
/// stopped.
const LOOK_NS: u64 = 200_000_000;
/// Somebody has waited in vain until it had looked at so many: until then nobody waits again.
static IN_VAIN: AtomicU32 = AtomicU32::new(0);
const PATIENCE: u32 = 4000;
/// Looks between two times that the core is offered to others.
const YIELD_EVERY: u32 = 16;

/// Being the one thread that talks.
struct TalkTurn;

impl TalkTurn {
    fn try_take() -> Option<Self> {
        // Made only when it is ours: one that is made and dropped would end the turn of another thread.
        match BUSY.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Some(Self),
            Err(_) => None,
        }
    }

    fn take() -> Option<Self> {
        (0..PATIENCE).find_map(|look| {
            // Who has it may have lost the core in the middle.
            if look % YIELD_EVERY == YIELD_EVERY - 1 {
                kernel::yield_core();
            }
            std::hint::spin_loop();
            Self::try_take()
        })
    }
}

impl Drop for TalkTurn {
    fn drop(&mut self) {
        BUSY.store(0, Ordering::Release);
    }
}

/// Our socket, if it is still ours.
fn socket() -> Option<RawFd> {
    let socket = SOCKET.load(Ordering::Acquire);
    (socket >= 0 && kernel::cookie(socket).ok() == Some(COOKIE.load(Ordering::Relaxed))).then_some(socket)
}

/// It, if its number lies from `first` to `last`.
#[inline]
pub(super) fn socket_within(first: RawFd, last: RawFd) -> Option<RawFd> {
    let number = SOCKET.load(Ordering::Relaxed);
    if (first..=last).contains(&number) { socket() } else { None }
}

/// The socket, and whether the rendezvous has a number among our processes.
fn connect_to(name: &[u8], must_be: u32) -> io::Result<(RawFd, bool)> {
    let socket = kernel::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET)?;
    kernel::connect(socket.as_raw_fd(), &Abstract::new(name))?;
    let peer = kernel::peer(socket.as_raw_fd())?;
    if peer.uid != must_be {
        return Err(io::Error::from_raw_os_error(libc::EACCES));
    }
    Ok((kernel::out_of_the_way(socket.into_raw_fd()), peer.pid != 0))
}

fn greet(socket: RawFd) -> io::Result<()> {
    let page = page::share()?;
    TAKEN.store(0, Ordering::Relaxed);
    SHOWN_BEFORE.store(SHOWN.load(Ordering::Relaxed), Ordering::Relaxed);
    kernel::send_packet(socket, &StreamRequest::Hello { version: VERSION }.pack(), Some(page.as_raw_fd()))
}

/// Opens a connection: root's rendezvous, or our user's.
fn connect() -> io::Result<RawFd> {
    let me = kernel::user();
    let (name, length) = user_name(me);
    let (socket, is_near) = connect_to(COMMON_NAME.as_bytes(), 0).or_else(|_| connect_to(&name[..length], me))?;
    let greeted = kernel::cookie(socket).and_then(|cookie| greet(socket).map(|()| cookie));
    match greeted {
        Ok(cookie) => {
            COOKIE.store(cookie, Ordering::Relaxed);
            SOCKET.store(socket, Ordering::Release);
            if !is_near {
                PAGE.apart.store(1, Ordering::Relaxed);
            }
            Ok(socket)
        }
        Err(error) => {
            kernel::close(socket);
            Err(error)
        }
    }
}

fn hang_up() {
    if let Some(socket) = socket() {
        kernel::close(socket);
    } else if SOCKET.load(Ordering::Relaxed) >= 0 && far::has_gateway() {
        IS_MUTE.store(true, Ordering::Relaxed);
    }
    SOCKET.store(-1, Ordering::Release);
    // No mail will come from there, and no slot of what we share through it.
    arenas().for_each(|arena| arena.retired.store(1, Ordering::Relaxed));
    TAKEN.store(PAGE.mails.load(Ordering::Relaxed), Ordering::Relaxed);
    PAGE.host_only.store(0, Ordering::Relaxed);
    PAGE.apart.store(0, Ordering::Relaxed);
    IS_STRANGE.store(false, Ordering::Relaxed);
}

fn connected() -> Option<RawFd> {
    if let Some(socket) = socket() {
        return Some(socket);
    }
    hang_up();
    if IS_MUTE.load(Ordering::Relaxed) || kernel::now() < NOT_BEFORE.load(Ordering::Relaxed) {
        return None;
    }
    let made = connect().ok();
    if made.is_none() {
        NOT_BEFORE.store(kernel::now() + SECOND_NS, Ordering::Relaxed);
    }
    made
}

/// The rendezvous or the kernel has said that numbers of processes mean something else there than here.
pub(super) fn is_apart() -> bool {
    PAGE.apart.load(Ordering::Relaxed) != 0
}

/// The rendezvous is of another version, as was seen by what it has given.
pub(super) fn is_strange() -> bool {
    IS_STRANGE.load(Ordering::Relaxed)
}

pub(super) fn offer(anchor: RawFd, cookie: u64) -> AnchorOffer {
    show(anchor, &StreamRequest::Offer { cookie })
}

pub(super) fn offer_pair(socket: RawFd, cookie: u64, peer: DatagramPeer) -> AnchorOffer {
    show(socket, &StreamRequest::OfferPair { cookie, peer })
}

fn show(shown: RawFd, request: &StreamRequest) -> AnchorOffer {
    let Some(_turn) = TalkTurn::take() else { return AnchorOffer::Busy };
    // Twice: a rendezvous that has ended is noticed only by talking to it.
    for _ in 0..2 {
        let Some(socket) = connected() else { break };
        if is_apart() && !kernel::is_hung_up(socket) {
            return AnchorOffer::Apart;
        }
        if is_strange() && !kernel::is_hung_up(socket) {
            return AnchorOffer::OtherVersion;
        }
        // Before it is: another thread may close it in between.
        SHOWN.fetch_add(1, Ordering::Relaxed);
        let Err(error) = kernel::send_packet(socket, &request.pack(), Some(shown)) else { return AnchorOffer::Sent };
        SHOWN.fetch_sub(1, Ordering::Relaxed);
        match error {
            error if is_gone(&error) => hang_up(),
            error if is_passing(&error) => return AnchorOffer::Busy,
            _ => break,
        }
    }
    AnchorOffer::Unreachable
}

/// How many sockets were shown so far.
pub(super) fn shown() -> u32 {
    SHOWN.load(Ordering::Relaxed)
}

/// Waits until the rendezvous has let go of the first so many that were shown, for a moment at most.
pub(super) fn await_looked(shown: u32) {
    let is_ahead = |count: u32| {
        let looked = PAGE.looked.load(Ordering::Acquire).wrapping_add(SHOWN_BEFORE.load(Ordering::Relaxed));
        count.wrapping_sub(looked).cast_signed() > 0
    };
    let is_there = || socket().is_some_and(|socket| !kernel::is_hung_up(socket));
    if !is_ahead(shown) || is_ahead(IN_VAIN.load(Ordering::Relaxed)) {
        return;
    }
    let end = kernel::now() + LOOK_NS;
    while is_ahead(shown) && is_there() {
        if kernel::now() > end {
            IN_VAIN.store(shown, Ordering::Relaxed);
            return;
        }
        kernel::yield_core();
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS))
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPIPE | libc::ECONNRESET | libc::ENOTCONN | libc::EBADF | libc::ENOTSOCK))
}

/// Says that a side of a slot is free. Lost words cost the slot, until one of the two processes ends.
pub(super) fn release(place: SlotSide) {
    let Some(_turn) = TalkTurn::take() else { return };
    if let Some(socket) = socket() {
        let _ = kernel::send_packet(socket, &StreamRequest::Release(place).pack(), None);
    }
}

/// Lost words cost the kernel's word of an end, until the rendezvous gives the connection up by itself. Within a host
/// they cost the next connection between the same ports its rings, if its other end is shown first.
pub(super) fn withdraw(cookie: u64) {
    let Some(_turn) = TalkTurn::take() else { return };
    if let Some(socket) = socket() {
        let _ = kernel::send_packet(socket, &StreamRequest::Withdraw { cookie }.pack(), None);
    }
}

/// Whether it is of no use to show what leads to another host: the rendezvous has said so, and is there still.
pub(super) fn is_host_only(looks_after: bool) -> bool {
    if looks_after
        && let Some(_turn) = TalkTurn::try_take()
        && socket().is_none_or(kernel::is_hung_up)
    {
        hang_up();
    }
    PAGE.host_only.load(Ordering::Relaxed) != 0
}

#[inline]
pub(super) fn has_mail() -> bool {
    PAGE.mails.load(Ordering::Relaxed) != TAKEN.load(Ordering::Relaxed)
}

/// An answer of the rendezvous: cookie of our socket, the other one's address if it is a pair, and the slot, held.
pub(super) struct Granted {
    pub cookie: u64,
    pub peer: Option<DatagramPeer>,
    pub place: SlotSide,
    pub arena: &'static Arena,
}

/// The next mail with the arena that it is about. The slot is held.
pub(super) fn take_mail() -> Option<Granted> {
    let _turn = TalkTurn::try_take()?;
    while has_mail() {
        let socket = socket()?;
        let (answer, memory) = next_answer(socket)?;
        TAKEN.fetch_add(1, Ordering::Relaxed);
        let found = match (answer, memory) {
            (Some(Answer::Gateway { arena, lane, part }), Some(descriptor)) => {
                far::take_part(arena, lane, part, descriptor);
                None
            }
            (Some(Answer::Mail { cookie, place }), memory) => accept(socket, (cookie, None), place, memory),
            (Some(Answer::Pair { cookie, place, peer }), memory) => accept(socket, (cookie, Some(peer)), place, memory),
            (Some(Answer::Retired { arena }), _) => {
                retire(arena);
                None
            }
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

fn next_answer(socket: RawFd) -> Option<(Option<Answer>, Option<Descriptor>)> {
    let mut packet = [0; BYTES];
    match kernel::receive_packet(socket, &mut packet) {
        Ok((BYTES, memory)) => Some((Answer::parse(&packet), memory)),
        Ok((0, _)) => {
            hang_up();
            None
        }
        Ok((_, memory)) => Some((None, memory)),
        Err(error) => {
            if is_gone(&error) {
                hang_up();
            } else {
                // Counted, and not there.
                TAKEN.store(PAGE.mails.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            None
        }
    }
}

fn accept(
    socket: RawFd,
    (cookie, peer): (u64, Option<DatagramPeer>),
    place: SlotSide,
    memory: Option<Descriptor>,
) -> Option<Granted> {
    let known = arenas().find(|arena| arena.name() == place.arena && arena.side() == place.side as usize);
    // Who could not ring anybody shares nothing: its peer would sleep for ever.
    let known = known.filter(|_| !far::refuses(place.arena));
    let opened = known.or_else(|| open(place, memory.as_ref().filter(|_| !far::refuses(place.arena))?));
    let arena = opened.filter(|_| bell::prepare());
    let Some(arena) = arena else {
        let _ = kernel::send_packet(socket, &StreamRequest::Release(place).pack(), None);
        return None;
    };
    arena.held.fetch_add(1, Ordering::Relaxed);
    Some(Granted { cookie, peer, place, arena })
}

fn open(place: SlotSide, memory: &Descriptor) -> Option<&'static Arena> {
    arenas().for_each(close_if_done);
    let vacant = ARENAS_HERE.iter().position(|arena| arena.name() == 0)?;
    let arena = &ARENAS_HERE[vacant];
    if !arena.open(memory.as_raw_fd(), place.arena, place.side) {
        if arena.was_strange() {
            IS_STRANGE.store(true, Ordering::Relaxed);
        }
        return None;
    }
    ARENAS_USED.fetch_max(vacant as u32 + 1, Ordering::Release);
    far::note_arena(arena);
    Some(arena)
}

fn retire(name: u64) {
    for arena in arenas().filter(|arena| arena.name() == name) {
        arena.retired.store(1, Ordering::Relaxed);
    }
}

fn close_if_done(arena: &Arena) {
    if far::keeps(arena) {
        return;
    }
    if arena.retired.load(Ordering::Relaxed) != 0 && arena.held.load(Ordering::Acquire) == 0 {
        let name = arena.hide();
        if VISITORS.load(Ordering::SeqCst) == 0 {
            // SAFETY: nothing is held, and nothing will be; callers keep what they use held. Visitors that come now do
            // not find it.
            unsafe { arena.close() };
        } else {
            arena.show(name);
        }
    }
}

/// Threads that look through all arenas now, held or not: none is unmapped meanwhile.
static VISITORS: AtomicU32 = AtomicU32::new(0);

/// Calls `each` with every arena of this process.
pub(super) fn visit_arenas(each: impl FnMut(&'static Arena)) {
    VISITORS.fetch_add(1, Ordering::SeqCst);
    arenas().for_each(each);
    VISITORS.fetch_sub(1, Ordering::Release);
}

pub(super) fn has_arenas() -> bool {
    ARENAS_USED.load(Ordering::Relaxed) > 0
}

fn arenas() -> impl Iterator<Item = &'static Arena> {
    let used = ARENAS_USED.load(Ordering::Acquire) as usize;
    ARENAS_HERE[..used.min(ARENAS)].iter().filter(|arena| arena.name() != 0)
}

/// In the child of a fork: talks for itself, with new connection, page and listeners.
pub(super) fn forked() {
    BUSY.store(0, Ordering::Relaxed);
    VISITORS.store(0, Ordering::Relaxed);
    if let Some(socket) = socket() {
        kernel::close(socket);
    }
    SOCKET.store(-1, Ordering::Relaxed);
    IS_MUTE.store(false, Ordering::Relaxed);
    IS_STRANGE.store(false, Ordering::Relaxed);
    page::forget();
    TAKEN.store(0, Ordering::Relaxed);
    for arena in arenas() {
        // What the parent shares is used further, but what comes to us comes elsewhere.
        arena.retired.store(1, Ordering::Relaxed);
        arena.claim_listener();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_get_the_turn_leaves_it_to_who_has_it() {
        let turn = TalkTurn::try_take().expect("nobody else is here");
        assert!(TalkTurn::try_take().is_none());
        assert!(TalkTurn::try_take().is_none() && TalkTurn::take().is_none(), "the one that failed has ended the turn");
        assert_eq!(offer(-1, 0), AnchorOffer::Busy, "which says nothing about the rendezvous");
        drop(turn);
        assert!(TalkTurn::take().is_some());
    }
}
