//! Who runs upcalls, and when.

use crate::calls::{RequestHandler, call_request};
use crate::labels::PandaArrival;
use crate::message::{Content, PandaMessage, words_of};
use crate::mp::EntryHandler;
use crate::points::{Point, call_point};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

thread_local! {
    /// Why this thread runs no upcalls now: locks that it holds, and sends that it is in.
    static BARS: Cell<u32> = const { Cell::new(0) };
    /// Upcalls that this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The one that this thread has begun, between the world and [`run_begun`].
    static NEXT: Cell<Option<Upcall>> = const { Cell::new(None) };
    /// What waits for the end of the upcall that this thread is in.
    static AFTER: RefCell<Vec<Arc<dyn AfterUpcall>>> = const { RefCell::new(Vec::new()) };
}

/// What an upcall does to other threads. It is done when the upcall has ended, or begins to wait: in the original
/// upcalls have the highest priority, so programs count on it that who is woken in one does not overtake it.
pub trait AfterUpcall {
    fn run(&self);
}

/// Does this now, in an upcall after it.
#[inline]
pub fn after(what: Arc<dyn AfterUpcall>) {
    if is_in_one() {
        AFTER.with_borrow_mut(|all| all.push(what));
    } else {
        what.run();
    }
}

/// Does what an upcall has put off: it has ended, or waits itself.
#[inline]
pub fn catch_up() {
    let all = AFTER.with_borrow_mut(std::mem::take);
    all.into_iter().for_each(|what| what.run());
}

/// A thread is in an upcall.
static RUNS: AtomicBool = AtomicBool::new(false);
/// That is one of a group. Changes in the thread that runs upcalls only.
static RUNS_ORDERED: AtomicBool = AtomicBool::new(false);
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
    Request { handler: RequestHandler, message: PandaArrival },
    Entry { handler: EntryHandler, number: u32, content: Content },
    Point { point: Point, number: u32, message: PandaArrival },
    Ordered(OrderedUpcall),
}

pub type GroupFunction = unsafe extern "C" fn(*mut PandaMessage);

/// A message that this platform's program has sent to a group, and gets back in its turn. Until then nothing touches
/// it.
#[derive(Clone, Copy)]
pub struct SentMessage(pub *mut PandaMessage);

// SAFETY: the pointer is only handed back to the program.
unsafe impl Send for SentMessage {}

/// What the handler of a group is called with.
pub enum OrderedMessage {
    Came(Arc<[u8]>),
    Own(SentMessage),
}

/// The handler of a group, and a message in its turn.
pub struct OrderedUpcall {
    pub handler: GroupFunction,
    pub message: OrderedMessage,
}

/// Upcalls that are to run.
#[derive(Default)]
pub struct Upcalls {
    inbox: VecDeque<Upcall>,
    /// Those of groups, of which one runs at a time.
    ordered: VecDeque<OrderedUpcall>,
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

    pub fn push_ordered(&mut self, upcall: OrderedUpcall) {
        self.ordered.push_back(upcall);
    }

    /// How many of groups are to run.
    #[inline]
    pub fn ordered(&self) -> usize {
        self.ordered.len()
    }

    /// Whether the thread that calls may run one.
    fn may_run(&self) -> bool {
        self.started && !are_barred() && (is_in_one() || !RUNS.load(Ordering::SeqCst))
    }

    fn left(&self) -> usize {
        self.inbox.len() + self.ordered.len()
    }

    fn next(&mut self) -> Option<Upcall> {
        if !self.ordered.is_empty() && !RUNS_ORDERED.load(Ordering::Relaxed) {
            RUNS_ORDERED.store(true, Ordering::Relaxed);
            return self.ordered.pop_front().map(Upcall::Ordered);
        }
        self.inbox.pop_front()
    }

    /// Begins the next one, if there is one and the thread that calls may run it, which it then does by [`run_begun`].
    #[inline]
    pub fn begin(&mut self) -> bool {
        if self.inbox.is_empty() && self.ordered.is_empty() {
            return false;
        }
        if !self.may_run() {
            INBOX.store(self.left(), Ordering::SeqCst);
            // Who has ended one before that has not seen it.
            if !self.may_run() {
                return false;
            }
        }
        let Some(next) = self.next() else {
            INBOX.store(self.left(), Ordering::SeqCst);
            return false;
        };
        NEXT.set(Some(next));
        RUNS.store(true, Ordering::Relaxed);
        DEPTH.set(DEPTH.get() + 1);
        if self.left() > 0 || INBOX.load(Ordering::Relaxed) > 0 {
            INBOX.store(self.left(), Ordering::SeqCst);
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

/// Threads that wait now.
pub static WAITING: AtomicU32 = AtomicU32::new(0);
/// How often a thread has polled, and how often when this was asked last.
pub static POLLS: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];

/// Whether a thread waits in the library, or has polled since this was asked last: it takes what comes.
pub fn is_awaited() -> bool {
    let polls = POLLS[0].load(Ordering::Relaxed);
    POLLS[1].swap(polls, Ordering::Relaxed) != polls || WAITING.load(Ordering::Relaxed) > 0
}

/// Runs the upcall that this thread has begun. True if others were left.
pub fn run_begun() -> bool {
    match NEXT.take() {
        Some(Upcall::Request { handler, message }) => call_request(&handler, message),
        Some(Upcall::Entry { handler, number, content }) => handler.call(number, content),
        Some(Upcall::Point { point, number, message }) => call_point(&point, number, message),
        Some(Upcall::Ordered(upcall)) => {
            call_ordered(upcall);
            RUNS_ORDERED.store(false, Ordering::Relaxed);
        }
        None => {}
    }
    catch_up();
    end();
    INBOX.load(Ordering::SeqCst) > 0
}

fn call_ordered(OrderedUpcall { handler, message }: OrderedUpcall) {
    let message = match message {
        OrderedMessage::Own(SentMessage(message)) => message,
        OrderedMessage::Came(bytes) => {
            let content = Content { words: words_of(&bytes), length: bytes.len() };
            Box::into_raw(Box::new(PandaMessage::of(content)))
        }
    };
    // SAFETY: the program has registered a function of this type. The message is its own from here on.
    unsafe { handler(message) };
}
