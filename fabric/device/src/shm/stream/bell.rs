//! Bells: abstract datagram sockets that sleepers wait on. Anyone who knows a bell's number can ring it, with nothing
//! handed over; a bell that rings for nothing costs a look. The name, which others see, is only half of that number:
//! what does not begin with the other half is dropped by the kernel, and wakes nobody.

use crate::kernel::{self, Abstract};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use weft_wire::stream::arena::{BELL_BITS, bell_name, bell_word};

const VACANT: u32 = 0;
/// Free, and perhaps rung; free, and surely not.
const FREE: u32 = 1;
const SILENT: u32 = 3;
const TAKEN: u32 = 2;

/// Another number whenever the program may have closed one of our descriptors: see [`closed`].
static CLOSINGS: AtomicU32 = AtomicU32::new(0);
/// The lowest and the highest number that one of them ever had.
static LOWEST: AtomicI32 = AtomicI32::new(i32::MAX);
static HIGHEST: AtomicI32 = AtomicI32::new(-1);
/// Calls of the kernel on descriptors of ours that were just found intact.
static INSIDE: AtomicU32 = AtomicU32::new(0);
/// For how many looks somebody waits for those: one may have been interrupted by the very thread that waits.
const INSIDE_LOOKS: u32 = 1000;

/// A descriptor that is looked up from now on is not given to the program before this is dropped: see [`give_up`].
struct InsideBells;

impl InsideBells {
    fn enter() -> Self {
        // ORDER: bell-lost
        INSIDE.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for InsideBells {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::Release);
    }
}

/// All that is kept at present.
fn all_kept() -> impl Iterator<Item = &'static KeptDescriptor> {
    let of_bells = POOL.iter().filter(|entry| entry.state.load(Ordering::Relaxed) != VACANT).map(|entry| &entry.socket);
    of_bells.chain([&RINGER])
}

/// The lowest descriptor of ours from `first` to `last`. What is ours no call of the program closes: between our look
/// at a number and the kernel's call on it the number would become a file of the program's. Compared at every call:
/// what the program has put there unseen is its own to close.
pub fn first_of_ours(first: RawFd, last: RawFd) -> Option<RawFd> {
    let (low, high) = (LOWEST.load(Ordering::Relaxed).max(first), HIGHEST.load(Ordering::Relaxed).min(last));
    if low > high {
        return None;
    }
    let within = |kept: &&KeptDescriptor| (low..=high).contains(&kept.descriptor.load(Ordering::Relaxed));
    all_kept().filter(within).filter_map(KeptDescriptor::compare).min()
}

/// The program is about to put another file in the place of `descriptor`, which it may: that is ours no more, and
/// nobody is in the middle of a call on it when this returns.
pub fn give_up(descriptor: RawFd) {
    for kept in all_kept().filter(|kept| kept.descriptor.load(Ordering::Relaxed) == descriptor) {
        // ORDER: bell-lost
        kept.descriptor.store(-1, Ordering::SeqCst);
    }
    for _ in 0..INSIDE_LOOKS {
        if INSIDE.load(Ordering::SeqCst) == 0 {
            return;
        }
        kernel::yield_core();
    }
}

/// The program has put other files in the places of the descriptors from `first` to `last`, or closed them unseen.
pub fn closed(first: RawFd, last: RawFd) {
    if last >= LOWEST.load(Ordering::Relaxed) && first <= last {
        CLOSINGS.fetch_add(1, Ordering::SeqCst);
    }
}

/// One more than those so far.
fn closings() -> u64 {
    1 + u64::from(CLOSINGS.load(Ordering::SeqCst))
}

/// A descriptor of ours that a program may have closed behind our back: recognised by its cookie, which is compared
/// again after everything that may have been its end.
struct KeptDescriptor {
    descriptor: AtomicI32,
    cookie: AtomicU64,
    /// One more than the closings before it was last compared; 0 for never.
    compared: AtomicU64,
}

impl KeptDescriptor {
    const fn none() -> Self {
        Self { descriptor: AtomicI32::new(-1), cookie: AtomicU64::new(0), compared: AtomicU64::new(0) }
    }

    fn intact(&self) -> Option<RawFd> {
        let descriptor = self.descriptor.load(Ordering::SeqCst);
        if descriptor >= 0 && self.compared.load(Ordering::Relaxed) == closings() {
            return Some(descriptor);
        }
        self.compare()
    }

    /// The same, whatever was found before.
    #[cold]
    fn compare(&self) -> Option<RawFd> {
        let descriptor = self.descriptor.load(Ordering::SeqCst);
        // Before the comparison: what is closed meanwhile is seen the next time.
        let closings = closings();
        let same = descriptor >= 0 && kernel::cookie(descriptor).ok() == Some(self.cookie.load(Ordering::Relaxed));
        self.compared.store(if same { closings } else { 0 }, Ordering::Relaxed);
        same.then_some(descriptor)
    }

    fn keep(&self, descriptor: RawFd) -> io::Result<()> {
        LOWEST.fetch_min(descriptor, Ordering::SeqCst);
        HIGHEST.fetch_max(descriptor, Ordering::SeqCst);
        self.compared.store(0, Ordering::Relaxed);
        self.cookie.store(kernel::cookie(descriptor)?, Ordering::Relaxed);
        self.descriptor.store(descriptor, Ordering::Release);
        Ok(())
    }
}

struct BellEntry {
    state: AtomicU32,
    socket: KeptDescriptor,
    number: AtomicU64,
}

const BELLS: usize = 512;
static POOL: [BellEntry; BELLS] =
    [const { BellEntry { state: AtomicU32::new(VACANT), socket: KeptDescriptor::none(), number: AtomicU64::new(0) } };
        BELLS];
static RINGER: KeptDescriptor = KeptDescriptor::none();

/// A bell of this process.
#[derive(Debug)]
pub struct Bell {
    index: usize,
    number: u64,
    descriptor: RawFd,
}

fn new_bell(entry: &BellEntry) -> io::Result<()> {
    let socket = kernel::socket(libc::AF_UNIX, libc::SOCK_DGRAM)?;
    let bound = (0..8).find_map(|_| {
        let number = kernel::random() >> (64 - BELL_BITS);
        if number == 0 || kernel::bind(socket.as_raw_fd(), &Abstract::new(&bell_name(number))).is_err() {
            return None;
        }
        // Where the kernel has no filters the name is all that is wanted.
        let _ = kernel::admit_only(socket.as_raw_fd(), bell_word(number));
        Some(number)
    });
    let number = bound.ok_or_else(|| io::Error::from_raw_os_error(libc::EADDRINUSE))?;
    entry.socket.keep(kernel::out_of_the_way(socket.into_raw_fd()))?;
    entry.number.store(number, Ordering::Relaxed);
    Ok(())
}

impl Bell {
    /// Takes a bell that is not rung out of the pool.
    ///
    /// # Errors
    /// Those of `socket` and `bind`; `EMFILE` also when the pool is exhausted.
    pub fn take() -> io::Result<Self> {
        let take = |entry: &BellEntry, wanted: &[u32]| {
            let state = entry.state.load(Ordering::Relaxed);
            let right = wanted.contains(&state);
            (right && entry.state.compare_exchange(state, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok())
                .then_some(state)
        };
        let first = |wanted: &[u32]| POOL.iter().enumerate().find_map(|(at, e)| take(e, wanted).map(|was| (at, was)));
        let (index, state) =
            first(&[SILENT, FREE]).or_else(|| first(&[VACANT])).ok_or(io::Error::from_raw_os_error(libc::EMFILE))?;
        let entry = &POOL[index];
        if entry.socket.intact().is_none()
            && let Err(error) = new_bell(entry)
        {
            entry.state.store(VACANT, Ordering::Release);
            return Err(error);
        }
        let (number, descriptor) =
            (entry.number.load(Ordering::Relaxed), entry.socket.descriptor.load(Ordering::Relaxed));
        let bell = Self { index, number, descriptor };
        if state == FREE {
            bell.drain();
        }
        Ok(bell)
    }

    /// Which of the process's bells it is.
    pub fn index(&self) -> usize {
        self.index
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn descriptor(&self) -> RawFd {
        self.descriptor
    }

    /// Whether the descriptor is still the bell's.
    pub fn is_intact(&self) -> bool {
        POOL[self.index].socket.intact() == Some(self.descriptor)
    }

    /// Makes it unreadable until it is rung again.
    pub fn drain(&self) {
        let _inside = InsideBells::enter();
        // What stands in its place would lose bytes of the program's.
        while self.is_intact() && kernel::discard(self.descriptor) {}
    }

    /// `silent`: it was not rung since it was last drained, and nobody is left who would.
    pub fn give_back(self, silent: bool) {
        POOL[self.index].state.store(if silent { SILENT } else { FREE }, Ordering::Release);
    }
}

/// A bell that goes back when its owner goes.
pub struct OwnBell(Option<Bell>);

impl OwnBell {
    /// # Errors
    /// Those of [`Bell::take`].
    pub fn take() -> io::Result<Self> {
        Bell::take().map(|bell| Self(Some(bell)))
    }
}

impl Deref for OwnBell {
    type Target = Bell;
    fn deref(&self) -> &Bell {
        self.0.as_ref().expect("it goes back at the end")
    }
}

impl Drop for OwnBell {
    fn drop(&mut self) {
        if let Some(bell) = self.0.take() {
            bell.give_back(false);
        }
    }
}

/// Sees to it that bells can be rung also when the process has no descriptors left later. False when that is so
/// already.
pub fn prepare() -> bool {
    ringer().is_some()
}

/// A socket to ring from.
fn ringer() -> Option<RawFd> {
    RINGER.intact().or_else(new_ringer).or_else(|| POOL.iter().find_map(|entry| entry.socket.intact()))
}

#[cold]
fn new_ringer() -> Option<RawFd> {
    let socket = kernel::out_of_the_way(kernel::socket(libc::AF_UNIX, libc::SOCK_DGRAM).ok()?.into_raw_fd());
    // Two threads may do so at once; the loser's socket stays open and is used no more.
    let _ = RINGER.keep(socket);
    Some(socket)
}

/// Rings a bell. One that is gone, or was rung and not answered yet, is left alone.
pub fn ring(number: u64) {
    let _inside = InsideBells::enter();
    // Without a descriptor nobody can be rung: only where the program has closed ours, and used up all others since.
    if let Some(ringer) = ringer() {
        let _ = kernel::send_to(ringer, &bell_word(number).to_be_bytes(), &Abstract::new(&bell_name(number)));
    }
}

/// In the child of a fork: the bells are the parent's.
pub fn forked() {
    INSIDE.store(0, Ordering::Relaxed);
    for entry in &POOL {
        if entry.state.swap(VACANT, Ordering::Relaxed) != VACANT
            && let Some(descriptor) = entry.socket.intact()
        {
            kernel::close(descriptor);
        }
        entry.socket.descriptor.store(-1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rung_bell_is_readable_until_it_is_drained() {
        let bell = Bell::take().expect("a bell");
        let mut byte = [0];
        assert!(kernel::receive(bell.descriptor(), &mut byte).is_err(), "silent at first");
        ring(bell.number());
        ring(bell.number());
        assert!(kernel::receive(bell.descriptor(), &mut byte).is_ok(), "rung");
        bell.drain();
        assert!(kernel::receive(bell.descriptor(), &mut byte).is_err(), "drained");
        bell.give_back(true);
    }

    /// Names are seen by everybody in the network namespace.
    #[test]
    fn who_knows_the_name_alone_rings_nothing() {
        let bell = Bell::take().expect("a bell");
        let (name, ringer) = (Abstract::new(&bell_name(bell.number())), ringer().expect("a socket"));
        let mut bytes = [0; 64];
        for length in [0, 1, 3, 4, 8, 64] {
            assert_eq!(kernel::send_to(ringer, &vec![0xff; length], &name).ok(), Some(length), "who sends is not told");
            assert!(kernel::receive(bell.descriptor(), &mut bytes).is_err(), "{length} bytes have rung it");
        }
        ring(bell.number());
        assert!(kernel::receive(bell.descriptor(), &mut bytes).is_ok());
        bell.give_back(true);
    }

    #[test]
    fn what_is_given_up_is_used_no_more() {
        let bell = Bell::take().expect("a bell");
        let descriptor = bell.descriptor();
        assert_eq!(first_of_ours(descriptor, descriptor), Some(descriptor));
        give_up(descriptor);
        assert_eq!(first_of_ours(descriptor, descriptor), None);
        ring(bell.number());
        bell.drain();
        let mut byte = [0];
        assert!(kernel::receive(descriptor, &mut byte).is_ok(), "still there: it is another's by now");
        kernel::close(descriptor);
        bell.give_back(true);
    }

    #[test]
    fn a_bell_that_was_closed_behind_our_back_is_made_anew() {
        let bell = Bell::take().expect("a bell");
        kernel::close(bell.descriptor());
        closed(bell.descriptor(), bell.descriptor());
        assert!(!bell.is_intact());
        let (index, number) = (bell.index(), bell.number());
        let others: Vec<Bell> = std::iter::from_fn(|| Bell::take().ok()).take(3).collect();
        bell.give_back(true);
        let again = Bell::take().expect("a bell");
        assert!(again.is_intact());
        assert!(again.index() != index || again.number() != number);
        again.give_back(true);
        others.into_iter().for_each(|bell| bell.give_back(true));
    }
}
