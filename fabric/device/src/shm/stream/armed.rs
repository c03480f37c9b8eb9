//! Who sleeps, and waking them: once per sleep, by whoever publishes what they sleep for.

use super::lines::SideListener;
use crate::sync::{AtomicU64, Label, Ordering, owner_barrier, sender_barrier};
use weft_wire::stream::arena::Armed;

/// Bells to be rung, 0 for none. The caller rings them: nothing here calls the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct BellCalls(pub [u64; 2]);

impl BellCalls {
    pub const NONE: Self = Self([0; 2]);

    /// These, and where there are none `others`.
    pub(super) fn or(self, others: Self) -> Self {
        Self(std::array::from_fn(|n| if self.0[n] == 0 { others.0[n] } else { self.0[n] }))
    }
}

/// Looks, after something was published, who sleeps for it.
#[inline(always)]
pub(super) fn look(words: [&AtomicU64; 2], listeners: &[SideListener], slot: u32, fences: bool) -> BellCalls {
    // ORDER: stream-sleep
    sender_barrier(Label::StreamPublisher, fences);
    if words[0].load(Ordering::Relaxed) | words[1].load(Ordering::Relaxed) == 0 {
        return BellCalls::NONE;
    }
    fire_all(words, listeners, slot, fences)
}

/// Takes both armed words and does what they ask for.
#[cold]
pub fn fire_all(words: [&AtomicU64; 2], listeners: &[SideListener], slot: u32, fences: bool) -> BellCalls {
    BellCalls(words.map(|word| fire(word, listeners, slot, fences)))
}

fn fire(word: &AtomicU64, listeners: &[SideListener], slot: u32, fences: bool) -> u64 {
    if word.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    match Armed::from_word(word.swap(0, Ordering::SeqCst)) {
        Armed::Nobody => 0,
        Armed::Bell(bell) => bell,
        Armed::Set { listener, sleeper } => {
            let listener = &listeners[listener];
            mark(listener, slot);
            // ORDER: stream-mark
            sender_barrier(Label::StreamMarker, fences);
            let sleeping = &listener.sleeping[sleeper];
            if sleeping.load(Ordering::Relaxed) == 0 { 0 } else { sleeping.swap(0, Ordering::SeqCst) }
        }
    }
}

fn mark(listener: &SideListener, slot: u32) {
    let index = slot as usize / 64;
    listener.active[index].fetch_or(1 << (slot % 64), Ordering::SeqCst);
    listener.summary.fetch_or(1 << index, Ordering::SeqCst);
}

/// Calls `each` with the slots that were marked since, and unmarks them.
pub fn scan(listener: &SideListener, mut each: impl FnMut(u32)) {
    if listener.summary.load(Ordering::Relaxed) == 0 {
        return;
    }
    let mut summary = listener.summary.swap(0, Ordering::SeqCst);
    while summary != 0 {
        let index = summary.trailing_zeros() as usize;
        summary &= summary - 1;
        // A claim: the peer may set bits of words that do not exist.
        let Some(word) = listener.active.get(index) else { continue };
        let mut bits = word.swap(0, Ordering::SeqCst);
        while bits != 0 {
            each(index as u32 * 64 + bits.trailing_zeros());
            bits &= bits - 1;
        }
    }
}

/// Arms a word for one who is about to sleep. False when another one's wish stands there. Then: [`sleeper_barrier`], a
/// look at what is waited for, and sleep.
pub fn arm(word: &AtomicU64, wish: Armed) -> bool {
    let wish = wish.word();
    let before = word.load(Ordering::Relaxed);
    if before == wish {
        return true;
    }
    before == 0 && word.compare_exchange(0, wish, Ordering::SeqCst, Ordering::Relaxed).is_ok()
}

/// Takes a wish back, unless it was answered. True: it was not, and never will be.
pub fn disarm(word: &AtomicU64, wish: Armed) -> bool {
    let wish = wish.word();
    word.load(Ordering::Relaxed) == wish && word.compare_exchange(wish, 0, Ordering::SeqCst, Ordering::Relaxed).is_ok()
}

/// The owner of a set is about to sleep: its bell is rung from now on. Then: [`sleeper_barrier`], [`scan`], and sleep.
pub fn lie_down(listener: &SideListener, sleeper: usize, bell: u64) {
    listener.sleeping[sleeper].store(bell, Ordering::SeqCst);
}

/// Orders the arming before the look that follows it, for all publishers.
pub fn sleeper_barrier(fences: bool) {
    // ORDER: stream-sleep, stream-mark
    owner_barrier(Label::StreamSleeper, fences);
}
