//! P4's monitors: a lock, and queues of processes that wait inside. Who continues a waiting process hands the monitor
//! over to it; nobody else comes in between.
//!
//! All structures are as `p4.h` has them, in shared memory.

use crate::area;
use crate::lock::SharedLock;
use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use weft_ports::Call;

/// Processes that wait inside of a monitor. Touched by whoever is inside.
#[repr(C)]
pub struct DelayQueue {
    count: AtomicI32,
    /// Locked, except for the moment in which it lets one process go.
    gate: SharedLock,
}

#[repr(C)]
pub struct SharedMonitor {
    lock: SharedLock,
    queues: AtomicPtr<DelayQueue>,
}

/// Numbers in turn, for whoever asks.
#[repr(C)]
pub struct Subscripts {
    monitor: SharedMonitor,
    next: AtomicI32,
}

/// Problems that processes ask for until there are none.
#[repr(C)]
pub struct ProblemPool {
    monitor: SharedMonitor,
    program_is_over: AtomicI32,
    solved: AtomicI32,
}

impl SharedMonitor {
    /// With so many queues; false where there is no shared memory for them.
    pub fn begin(&self, queues: usize) -> bool {
        self.lock.open();
        self.queues.store(std::ptr::null_mut(), Ordering::Relaxed);
        if queues == 0 {
            return true;
        }
        let bytes = queues.checked_mul(size_of::<DelayQueue>());
        let at: *mut DelayQueue = bytes.map_or(std::ptr::null_mut(), area::allocate).cast();
        if at.is_null() {
            return false;
        }
        for queue in 0..queues {
            // SAFETY: so many queues have room there.
            unsafe { at.add(queue).write(DelayQueue { count: AtomicI32::new(0), gate: SharedLock::default() }) };
        }
        self.queues.store(at, Ordering::Relaxed);
        for queue in 0..queues {
            self.queue(queue).gate.close();
        }
        true
    }

    /// One of the queues that the monitor was begun with; of which number is the program's affair, as in P4.
    fn queue(&self, queue: usize) -> &DelayQueue {
        // SAFETY: `begin` has made the queues, in memory that stays.
        unsafe { &*self.queues.load(Ordering::Relaxed).add(queue) }
    }

    pub fn enter(&self, call: Call) {
        self.lock.lock(call);
    }

    pub fn exit(&self) {
        self.lock.unlock();
    }

    /// Waits inside; comes back inside.
    pub fn delay(&self, call: Call, queue: usize) {
        let queue = self.queue(queue);
        queue.count.fetch_add(1, Ordering::Relaxed);
        self.lock.unlock();
        queue.gate.lock(call);
    }

    /// Leaves, and lets one process of the queue go on inside if there is any.
    pub fn resume(&self, queue: usize) {
        let queue = self.queue(queue);
        if queue.count.load(Ordering::Relaxed) == 0 {
            return self.lock.unlock();
        }
        queue.count.fetch_sub(1, Ordering::Relaxed);
        queue.gate.unlock();
    }

    fn waiting(&self) -> i32 {
        self.queue(0).count.load(Ordering::Relaxed)
    }

    /// Waits for so many processes.
    pub fn meet(&self, call: Call, processes: i32) {
        self.enter(call);
        if self.waiting() < processes - 1 {
            self.delay(call, 0);
        }
        self.resume(0);
    }
}

impl Subscripts {
    pub fn begin(&self) -> bool {
        self.next.store(0, Ordering::Relaxed);
        self.monitor.begin(1)
    }

    /// The next number of at most `last`; -1 for each of so many processes when there are no more, and numbers begin
    /// anew.
    pub fn take(&self, call: Call, last: i32, processes: i32, stride: i32) -> i32 {
        self.monitor.enter(call);
        let next = self.next.load(Ordering::Relaxed);
        if next <= last {
            self.next.store(next.saturating_add(stride), Ordering::Relaxed);
            self.monitor.exit();
            return next;
        }
        if self.monitor.waiting() < processes - 1 {
            self.monitor.delay(call, 0);
        } else {
            self.next.store(0, Ordering::Relaxed);
        }
        self.monitor.resume(0);
        -1
    }
}

/// Functions of the program, which run inside of the monitor.
pub type TakeProblem = unsafe extern "C" fn(*mut c_void) -> i32;
pub type ResetProblems = unsafe extern "C" fn();

impl ProblemPool {
    pub fn begin(&self) -> bool {
        self.program_is_over.store(0, Ordering::Relaxed);
        self.solved.store(0, Ordering::Relaxed);
        self.monitor.begin(1)
    }

    fn is_over(&self) -> bool {
        self.program_is_over.load(Ordering::Relaxed) != 0
    }

    fn solved(&self) -> i32 {
        self.solved.load(Ordering::Relaxed)
    }

    /// 0 with a problem; -1 if the program is over, else the code of the end: 1 if there are no more problems.
    ///
    /// # Safety
    /// `take` may be called with `problem`, and `reset`.
    pub unsafe fn ask(
        &self,
        call: Call,
        processes: i32,
        take: TakeProblem,
        problem: *mut c_void,
        reset: Option<ResetProblems>,
    ) -> i32 {
        self.monitor.enter(call);
        if !self.is_over() && self.solved() != 0 {
            // Some have not heard yet of the end of the last problems.
            if self.monitor.waiting() < processes - 1 {
                self.monitor.delay(call, 0);
            }
        }
        while !self.is_over() && self.solved() == 0 {
            // SAFETY: the caller's promise.
            if unsafe { take(problem) } == 0 {
                self.monitor.resume(0);
                return 0;
            }
            if self.monitor.waiting() == processes - 1 {
                self.solved.store(1, Ordering::Relaxed);
            } else {
                self.monitor.delay(call, 0);
            }
        }
        let mut answer = -1;
        if !self.is_over() {
            answer = self.solved();
            if self.monitor.waiting() == 0 {
                // SAFETY: the caller's promise.
                reset.into_iter().for_each(|reset| unsafe { reset() });
                self.solved.store(0, Ordering::Relaxed);
            }
        }
        self.monitor.resume(0);
        answer
    }

    /// # Safety
    /// `put` may be called with `problem`.
    pub unsafe fn put(&self, call: Call, put: TakeProblem, problem: *mut c_void) {
        self.monitor.enter(call);
        // SAFETY: the caller's promise.
        if unsafe { put(problem) } != 0 { self.monitor.resume(0) } else { self.monitor.exit() }
    }

    /// The problems are solved.
    pub fn end_problems(&self, call: Call, code: i32) {
        self.monitor.enter(call);
        self.solved.store(code, Ordering::Relaxed);
        self.monitor.exit();
    }

    /// There will be no more problems.
    pub fn end_program(&self, call: Call) {
        self.monitor.enter(call);
        self.program_is_over.store(1, Ordering::Relaxed);
        self.monitor.resume(0);
    }
}
