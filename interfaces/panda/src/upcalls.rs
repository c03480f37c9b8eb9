//! Who runs upcalls, and when.

use crate::message::Content;
use crate::mp::EntryHandler;
use crate::points::{Point, call_point};
use crate::rpc::{RequestHandler, call_request};
use crate::world::{Arrived, WORLD};
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// So many in a row, before the thread that runs them looks after what it waits for itself.
const MOST_IN_A_ROW: usize = 16;

thread_local! {
    /// Why this thread runs no upcalls now: locks that it holds, and sends that it is in.
    static BARS: Cell<u32> = const { Cell::new(0) };
    /// Upcalls that this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The one that this thread has begun, between the world and [`run`].
    static NEXT: Cell<Option<Upcall>> = const { Cell::new(None) };
}

/// A thread is in an upcall.
static RUNS: AtomicBool = AtomicBool::new(false);
/// Upcalls that were left because they could not run. Changes while the world is held only.
static INBOX: AtomicUsize = AtomicUsize::new(0);

/// From now on this thread runs no upcalls.
#[inline]
pub fn bar() {
    BARS.with(|bars| bars.set(bars.get() + 1));
}

#[inline]
pub fn unbar() {
    // A lock may be left by another thread than took it.
    BARS.with(|bars| bars.set(bars.get().saturating_sub(1)));
}

/// Whether this thread runs none.
#[inline]
pub fn are_barred() -> bool {
    BARS.get() > 0
}

/// Waits without running upcalls.
pub fn barred(wait: impl FnOnce()) {
    bar();
    wait();
    unbar();
}

/// A handler, and what it is called with.
pub enum Upcall {
    Request { handler: RequestHandler, message: Arrived },
    Entry { handler: EntryHandler, number: u32, content: Content },
    Point { point: Point, number: u32, message: Arrived },
}

/// Upcalls that are to run.
#[derive(Default)]
pub struct Upcalls {
    inbox: VecDeque<Upcall>,
    started: bool,
}

impl Upcalls {
    pub fn start(&mut self) {
        self.started = true;
    }

    #[inline]
    pub fn push(&mut self, upcall: Upcall) {
        self.inbox.push_back(upcall);
    }

    /// Whether the thread that calls may run one.
    fn may_run(&self) -> bool {
        self.started && !are_barred() && (is_in_one() || !RUNS.load(Ordering::SeqCst))
    }

    /// Begins the next one, if there is one and the thread that calls may run it, which it then does by [`run`].
    #[inline]
    pub fn begin(&mut self) -> bool {
        if self.inbox.is_empty() {
            return false;
        }
        if !self.may_run() {
            INBOX.store(self.inbox.len(), Ordering::SeqCst);
            // Who has ended one before that has not seen it.
            if !self.may_run() {
                return false;
            }
        }
        NEXT.set(self.inbox.pop_front());
        RUNS.store(true, Ordering::Relaxed);
        DEPTH.set(DEPTH.get() + 1);
        if !self.inbox.is_empty() || INBOX.load(Ordering::Relaxed) > 0 {
            INBOX.store(self.inbox.len(), Ordering::SeqCst);
        }
        true
    }
}

/// Whether the thread that calls is in an upcall.
pub fn is_in_one() -> bool {
    DEPTH.get() > 0
}

/// The world is not held here. What has come meanwhile no other thread may run: it is looked at afterwards.
fn end() {
    DEPTH.set(DEPTH.get() - 1);
    if !is_in_one() {
        RUNS.store(false, Ordering::SeqCst);
    }
}

/// Runs the one that was begun, and those that are there.
pub fn run() {
    for number in 1..=MOST_IN_A_ROW {
        match NEXT.take() {
            Some(Upcall::Request { handler, message }) => call_request(&handler, message),
            Some(Upcall::Entry { handler, number, content }) => handler.call(number, content),
            Some(Upcall::Point { point, number, message }) => call_point(&point, number, message),
            None => {}
        }
        end();
        if INBOX.load(Ordering::SeqCst) == 0 {
            return;
        }
        // When it is left, others are woken that may run what is there.
        let mut world = WORLD.enter();
        if number == MOST_IN_A_ROW || !world.upcalls.begin() {
            return;
        }
    }
}
