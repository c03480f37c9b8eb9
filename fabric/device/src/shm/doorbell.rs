//! The mailbox's doorbell and set of active senders: who is polled, who sleeps.
//!
//! Both have the same race: the sender stores a cell, then looks at the flag; the owner clears the flag (or lies down),
//! then looks at the ring. Each needs store-load order. The owner pays for both sides with `membarrier`; the sender has
//! only a compiler fence (design decision: the price of sleeping falls on the sleeper). An owner that can do this says
//! so in its mailbox once it has joined; whoever sends to another one fences, and so does a sender that `membarrier`
//! does not reach. The word is looked at with each send, and it errs to the safe side: an owner that has not joined
//! yet, or that the kernel refuses the barrier, has said nothing.
//!
//! Orderings:
//! - `ring-doorbell`: sender's cell store, light barrier, load of doorbell | owner's doorbell store, membarrier, poll.
//! - `join-active`: sender's cell store, light barrier, load of its bit | owner's clearing of bits, membarrier, poll.

#[cfg(not(loom))]
use super::stream::bell;
#[cfg(not(loom))]
use crate::kernel;
use crate::sync::{AtomicU32, AtomicU64, Label, Ordering, owner_barrier, sender_barrier};

/// The shared part of a mailbox.
#[derive(Clone, Copy)]
pub struct Mailbox<'a> {
    pub doorbell: &'a AtomicU32,
    pub active: &'a [AtomicU64],
    /// 1 once the owner has said that it orders others with `membarrier`.
    pub orders: &'a AtomicU32,
    /// The bell that the owner sleeps on, 0 for none: then it sleeps on the doorbell itself.
    pub bell: &'a AtomicU64,
    /// `membarrier` is refused to this process: it does not order others, and they do not order it.
    pub fences: bool,
}

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;
/// Asleep on sockets, one of which is the bell of the mailbox.
const ON_BELL: u32 = 2;

/// Wakes an owner whose doorbell has said how it sleeps. Both are claims; a bell that does not exist is nobody's.
#[cfg(not(loom))]
fn wake(doorbell: &AtomicU32, how: u32, number: u64) {
    match how {
        ASLEEP => kernel::futex_wake(doorbell, i32::MAX),
        _ => bell::ring(number),
    }
}

impl Mailbox<'_> {
    /// Owner: has joined, and says whether it orders others.
    pub fn open(&self) {
        self.orders.store(u32::from(!self.fences), Ordering::SeqCst);
    }

    /// Whether who sends to this mailbox must fence.
    #[inline]
    pub fn needs_fence(&self) -> bool {
        // The models always fence: there the two barriers are one.
        cfg!(loom) || self.fences || self.orders.load(Ordering::Relaxed) == 0
    }

    /// The sender's side of the race with a sleeper: orders an earlier store before a later load.
    #[inline]
    pub fn order(&self) {
        sender_barrier(Label::AnnounceSender, self.needs_fence());
    }

    /// To be called by sender `me` after it has published a cell. True if the owner was woken.
    #[inline]
    pub fn announce(&self, me: u32) -> bool {
        self.order();
        // ORDER: join-active
        let word = &self.active[me as usize / 64];
        let bit = 1 << (me % 64);
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::SeqCst);
            // The owner looks at the set after it has lain down: without this the look at its doorbell below could come
            // before the bit, and both would miss each other.
            sender_barrier(Label::JoinActiveSender, self.needs_fence());
        }
        // ORDER: ring-doorbell
        self.doorbell.load(Ordering::Relaxed) != AWAKE && self.ring()
    }

    /// To be called after storing what the owner may wait for in other shared memory than a ring. True if it was woken.
    #[inline]
    pub fn rouse(&self) -> bool {
        self.order();
        // ORDER: ring-doorbell, with that store in the place of the cell.
        self.doorbell.load(Ordering::Relaxed) != AWAKE && self.ring()
    }

    /// To be called after telling `owner`, whose mailbox this is, something in its mailbox page. Its own bit in the
    /// set, which no packet sets, makes it look there. True if it was woken.
    #[cold]
    pub fn alert(&self, owner: u32) -> bool {
        // ORDER: join-active. Rare, so who sends always fences.
        self.active[owner as usize / 64].fetch_or(1 << (owner % 64), Ordering::SeqCst);
        sender_barrier(Label::JoinActiveSender, true);
        // ORDER: ring-doorbell
        self.doorbell.load(Ordering::Relaxed) != AWAKE && self.ring()
    }

    /// Owner: takes an alert back. What was told before it is visible after this; what is told later alerts again.
    pub fn heed(&self, owner: u32) {
        // ORDER: join-active
        self.active[owner as usize / 64].fetch_and(!(1 << (owner % 64)), Ordering::SeqCst);
    }

    /// Wakes the owner if it sleeps; once per sleep, however many ring.
    #[cold]
    pub fn ring(&self) -> bool {
        let how = self.doorbell.swap(AWAKE, Ordering::SeqCst);
        if how == AWAKE {
            return false;
        }
        #[cfg(not(loom))]
        wake(self.doorbell, how, self.bell.load(Ordering::Relaxed));
        true
    }

    /// Owner: removes everybody from the active set and lies down. What was sent before is visible to polls after
    /// this; what is sent later rings. The senders that were active are handed to `was_active` word by word.
    fn lie_down(&self, mut was_active: impl FnMut(usize, u64)) {
        for (index, word) in self.active.iter().enumerate() {
            // ORDER: join-active
            was_active(index, word.swap(0, Ordering::SeqCst));
        }
        let how = if self.bell.load(Ordering::Relaxed) == 0 { ASLEEP } else { ON_BELL };
        // ORDER: ring-doorbell
        self.doorbell.store(how, Ordering::SeqCst);
        owner_barrier(Label::LieDownOwner, self.fences);
    }

    /// Owner: lies down and looks once more. `has_packet` says whether a packet waits from that sender. True if nothing
    /// does, so that the owner may sleep; otherwise it gets up and polls, and whoever has a packet is in the set.
    pub fn settle(&self, mut has_packet: impl FnMut(u32) -> bool) -> bool {
        let mut quiet = true;
        let mut before = Vec::with_capacity(self.active.len());
        self.lie_down(|_, word| before.push(word));
        for (index, word) in before.into_iter().enumerate() {
            for from in members_of(index, word) {
                if has_packet(from) {
                    // It stays active: nobody announces this packet again.
                    self.active[index].fetch_or(1 << (from % 64), Ordering::SeqCst);
                    quiet = false;
                }
            }
        }
        // Senders that joined between the clearing and the barrier are in the set again.
        quiet && self.active.iter().all(|word| word.load(Ordering::SeqCst) == 0)
    }

    /// Consumer: wakes the owner of this mailbox, who sends to us, if it sleeps for want of credits. To be called after
    /// credits were published.
    #[inline]
    pub fn wake_starved(&self, starved: &AtomicU32) -> bool {
        // ORDER: ring-doorbell, with the credit in the place of the cell.
        sender_barrier(Label::StarvedConsumer, self.needs_fence());
        starved.load(Ordering::Relaxed) != 0 && self.is_asleep() && self.ring()
    }

    /// Owner: gets up again, whether rung or not.
    pub fn get_up(&self) {
        self.doorbell.store(AWAKE, Ordering::SeqCst);
    }

    pub fn is_asleep(&self) -> bool {
        self.doorbell.load(Ordering::SeqCst) != AWAKE
    }
}

/// The senders whose bits are set in word `index` of an active set.
pub fn members_of(index: usize, mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(index as u32 * 64 + bit)
    })
}

/// The owner's handle on its own doorbell, usable without the device (while another thread uses that).
#[derive(Clone, Copy)]
pub struct Doorbell {
    pub(super) word: &'static AtomicU32,
    pub(super) bell: &'static AtomicU64,
}

impl Doorbell {
    /// Sleeps until rung, or `limit` has passed. Returns at once if the bell has rung since lying down. Not for an
    /// owner that sleeps on a bell.
    #[cfg(not(loom))]
    pub fn sleep(&self, limit: Option<std::time::Duration>) {
        kernel::futex_wait(self.word, ASLEEP, limit);
    }

    /// The word that a sleeper sleeps on, and what it holds meanwhile.
    #[cfg(not(loom))]
    pub fn word(&self) -> (&'static AtomicU32, u32) {
        (self.word, ASLEEP)
    }

    /// Rings one's own bell: wakes the other threads of this process.
    #[cfg(not(loom))]
    pub fn ring(&self) {
        let how = self.word.swap(AWAKE, Ordering::SeqCst);
        if how != AWAKE {
            wake(self.word, how, self.bell.load(Ordering::Relaxed));
        }
    }
}
