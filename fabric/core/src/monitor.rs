//! Exclusive access to the endpoint and the interface's state, and the one place to wait.

use crate::{Endpoint, Waiting};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// Work that must run with the monitor left, such as a user's reduction function (it may call the interface again).
pub type Outside = Box<dyn FnOnce()>;

/// State that lives beside an endpoint and moves with its progress.
pub trait Driven {
    fn endpoint(&mut self) -> &mut Endpoint;

    /// Moves what stands on top of the endpoint (nonblocking collectives); called after each progress pass.
    /// Work that calls user code is handed back, to be run outside.
    fn advance(&mut self) -> Option<Outside>;
}

/// One per process and interface: `static WORLD: Monitor<World>`.
pub struct Monitor<T> {
    _held: PhantomData<T>,
}

// SAFETY: the value is reached only through `Guard`, which the lock makes exclusive.
unsafe impl<T> Sync for Monitor<T> {}

#[allow(unused_variables)]
impl<T: Driven> Monitor<T> {
    pub const fn new() -> Self {
        Self { _held: PhantomData }
    }

    /// Puts the value in. With `threads`, several threads may use the monitor at the same time; without, one at a time
    /// and no lock is taken.
    pub fn open(&self, value: T, threads: bool) {
        unreachable!("being built")
    }

    /// Takes the value out again; later `enter` panics.
    pub fn close(&self) -> T {
        unreachable!("being built")
    }

    #[inline]
    pub fn is_open(&self) -> bool {
        unreachable!("being built")
    }

    /// Exclusive access; not re-entrant: no call out to user code while the guard lives.
    #[inline]
    pub fn enter(&self) -> Guard<'_, T> {
        unreachable!("being built")
    }

    /// One progress pass without waiting.
    pub fn poll(&self) {
        unreachable!("being built")
    }

    /// Makes progress until `done` answers. `done` is asked first, then after each pass that moved something.
    #[inline]
    pub fn wait<R>(&self, what: Waiting, done: impl FnMut(&mut T) -> Option<R>) -> R {
        unreachable!("being built")
    }
}

impl<T: Driven> Default for Monitor<T> {
    fn default() -> Self {
        Self::new()
    }
}

pub struct Guard<'a, T> {
    _held: PhantomData<&'a mut T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        unreachable!("being built")
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        unreachable!("being built")
    }
}
