//! Delivery by a thread of its own: what arrives is taken while the process's other threads compute.
//!
//! Without it whoever makes progress delivers: a message is matched, and a handler called, when a thread of the process
//! next waits or polls. With it a thread waits in the monitor for everything. It would be in the way of threads that
//! wait themselves, since each message would then wake it as well. So it steps in only where nobody has been in the
//! monitor for a while: while others come there it looks every [`BESIDE_MEMORY_LIMIT`], and if it finds something to
//! do, or nobody has come, it sleeps on the doorbell, and takes what comes from then on at once. An interface that
//! knows whether one of its threads waits says so ([`Driven::is_awaited`]): then this one looks after [`SOON`], less
//! often the longer one does, and steps in when it has seen twice that none does.

use super::{ALONE, BESIDE_MEMORY_LIMIT, Driven, Monitor};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use weft_device::{kernel, sys};

/// When it is looked again whether a thread waits, at first.
const SOON: Duration = Duration::from_micros(20);

/// Until when a thread delivers.
#[derive(Debug, Default)]
pub struct DeliveryEnd(AtomicU32);

impl DeliveryEnd {
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Sleeps until it has come, so long at most.
    fn await_within(&self, limit: Duration) {
        kernel::futex_wait(&self.0, 0, Some(limit));
    }
}

impl<T: Driven> Monitor<T> {
    /// Makes progress for all threads until [`Self::end_delivery`]: to be called in a thread that does nothing else.
    /// What [`Driven::advance`] hands back runs there, too.
    ///
    /// # Panics
    /// If the monitor was opened without threads.
    pub fn deliver(&self, end: &DeliveryEnd) {
        assert!(
            self.mode.load(Ordering::Relaxed) != ALONE,
            "delivery by a thread needs a monitor that threads may share"
        );
        let mut entries = self.entries.load(Ordering::Relaxed);
        let (mut look, mut was_awaited) = (SOON, false);
        while !end.has_come() {
            if let Some(is_awaited) = T::is_awaited()
                && entries != self.entries.load(Ordering::Relaxed)
            {
                entries = self.entries.load(Ordering::Relaxed);
                // Who waits takes what comes, and a pass here would be in its way.
                look = if is_awaited { (look * 2).min(BESIDE_MEMORY_LIMIT) } else { (look / 2).max(SOON) };
                // One that was just between two waits takes it soon itself.
                if !std::mem::replace(&mut was_awaited, is_awaited) && !is_awaited {
                    self.take_all();
                }
                end.await_within(look);
                continue;
            }
            look = SOON;
            let moved = self.take_all();
            let before = std::mem::replace(&mut entries, self.entries.load(Ordering::Relaxed));
            let mut guard = self.enter_uncounted();
            if moved || before == entries {
                if guard.idle(true) {
                    continue;
                }
                let mut done = |_: &mut T| end.has_come().then_some(());
                self.sleep(guard, None, &mut done);
                // It may have been woken for what another thread waits for in shared memory.
                drop(self.enter_uncounted());
            } else {
                guard.leave_quietly();
                end.await_within(BESIDE_MEMORY_LIMIT);
            }
        }
        // Nobody watches the doorbell now: one of those who sleep beside is to.
        drop(self.enter_uncounted());
    }

    /// Takes what there is; true if there was anything.
    fn take_all(&self) -> bool {
        let mut any = false;
        loop {
            let mut guard = self.enter_uncounted();
            let moved = guard.endpoint().progress();
            any |= moved;
            match guard.advance() {
                Some(work) => {
                    drop(guard);
                    work();
                }
                None if moved => drop(guard),
                None => {
                    guard.leave_quietly();
                    return any;
                }
            }
        }
    }

    /// Ends [`Self::deliver`], which may return somewhat later.
    pub fn end_delivery(&self, end: &DeliveryEnd) {
        end.0.store(1, Ordering::Relaxed);
        kernel::futex_wake(&end.0, i32::MAX);
        // Who sleeps in the monitor saw that before it lay down, or is woken.
        let mut guard = self.enter();
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            guard.wake_sleepers();
        }
    }
}

/// A thread that delivers for a monitor, until this is dropped.
pub struct DeliveryThread<T: Driven + Send + 'static> {
    monitor: &'static Monitor<T>,
    end: Arc<DeliveryEnd>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Driven + Send + 'static> DeliveryThread<T> {
    /// # Errors
    /// The system gives no thread.
    pub fn start(monitor: &'static Monitor<T>) -> io::Result<Self> {
        let end = Arc::new(DeliveryEnd::new());
        let until = end.clone();
        let thread = std::thread::Builder::new().name("weft-delivery".to_owned());
        // Signals are for the program's own threads.
        let deliver = move || {
            sys::take_short_turns();
            monitor.deliver(&until);
        };
        let thread = sys::without_signals(|| thread.spawn(deliver))?;
        Ok(Self { monitor, end, thread: Some(thread) })
    }
}

impl<T: Driven + Send + 'static> Drop for DeliveryThread<T> {
    fn drop(&mut self) {
        self.monitor.end_delivery(&self.end);
        // It has said so itself if it has panicked.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
