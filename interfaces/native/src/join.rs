//! A process joins its job and leaves it, and who else is there.

use crate::desk::Desk;
use crate::error::{ErrorKind, NativeError, Result};
use crate::port;
use crate::state::{self, FABRIC};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering};
use weft_ports::{Endpoint, InterfaceName, Peer};

const BEFORE: u8 = 0;
const JOINED: u8 = 1;
const AFTER: u8 = 2;

static PHASE: AtomicU8 = AtomicU8::new(BEFORE);

/// One thread calls: no lock is taken. The handle cannot go to another one.
pub struct Single(PhantomData<*const ()>);

/// Several threads call at the same time.
pub struct Threaded(());

/// This process's part in its job. When it is dropped, the process leaves.
pub struct Weft<K = Single> {
    kind: PhantomData<K>,
}

/// Joins; a process does so once.
pub(crate) fn join(threads: bool) -> Result<()> {
    if let Err(phase) = PHASE.compare_exchange(BEFORE, JOINED, Ordering::AcqRel, Ordering::Acquire) {
        let text = match phase {
            JOINED => "the process has joined already",
            _ => "the process has left its job, and a process joins once",
        };
        return Err(NativeError::new(ErrorKind::State, text));
    }
    let joined = Endpoint::join_as(InterfaceName::Native, &[]);
    let endpoint = joined.map_err(|error| {
        PHASE.store(BEFORE, Ordering::Release);
        NativeError::new(ErrorKind::Join, error.to_string())
    })?;
    let (me, size) = (endpoint.me(), endpoint.world_size());
    FABRIC.open_beside(endpoint, Desk::default(), threads);
    FABRIC.lend();
    state::begin(me, size);
    Ok(())
}

/// Leaves, once everything has left that was sent.
pub(crate) fn leave() -> Result<()> {
    state::allowed()?;
    if PHASE.compare_exchange(JOINED, AFTER, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return state::allowed();
    }
    port::close_all();
    FABRIC.close();
    state::set_known(0);
    Ok(())
}

pub(crate) fn me() -> Result<Peer> {
    state::allowed()?;
    Ok(state::me())
}

pub(crate) fn size() -> Result<u32> {
    state::allowed()?;
    Ok(state::size())
}

/// The number of the host that a process of the job runs on.
pub(crate) fn host_of(process: Peer) -> Result<u32> {
    state::known(process)?;
    FABRIC.with(|endpoint| match process.0 < endpoint.world_size() {
        true => Ok(endpoint.host_of(process)),
        false => Err(NativeError::new(ErrorKind::Process, "the host of a process of another job is not known here")),
    })
}

pub(crate) fn hosts() -> Result<u32> {
    state::allowed()?;
    Ok(FABRIC.with(|endpoint| {
        let all = (0..endpoint.world_size()).map(|process| endpoint.host_of(Peer(process)));
        all.max().unwrap_or(0) + 1
    }))
}

/// How a process is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It has taken its leave.
    Left,
    /// It has ended without leave, or cannot be reached.
    Lost,
}

pub(crate) fn gone(process: Peer) -> Result<Option<Gone>> {
    state::known(process)?;
    FABRIC.poll();
    Ok(FABRIC.with_both(|endpoint, desk| {
        endpoint.look_for_lost();
        if endpoint.has_left(process) {
            desk.note_left(process);
        }
        match desk.has_left(process) {
            true => Some(Gone::Left),
            false => (endpoint.is_lost(process) || endpoint.has_ended(process)).then_some(Gone::Lost),
        }
    }))
}

impl Weft<Single> {
    /// Joins the job that started this process, or makes one of this process alone.
    ///
    /// # Errors
    /// Why it cannot join; it has joined before.
    pub fn join() -> Result<Self> {
        join(false).map(|()| Self { kind: PhantomData })
    }
}

impl Weft<Threaded> {
    /// The same, where several threads are to call at the same time.
    ///
    /// # Errors
    /// As [`Weft::join`].
    pub fn join_threaded() -> Result<Self> {
        join(true).map(|()| Self { kind: PhantomData })
    }
}

impl<K> Weft<K> {
    /// Leaves the job, once everything has left that was sent. Dropping does the same.
    pub fn leave(self) {}

    /// This process's number in the job.
    pub fn me(&self) -> Peer {
        state::me()
    }

    /// Processes of the job.
    pub fn size(&self) -> u32 {
        state::size()
    }

    /// How many hosts the job lies on.
    ///
    /// # Errors
    /// The thread is inside a handler.
    pub fn hosts(&self) -> Result<u32> {
        hosts()
    }

    /// The number of the host that a process of the job runs on.
    ///
    /// # Errors
    /// There is no such process, or it is of another job.
    pub fn host_of(&self, process: Peer) -> Result<u32> {
        host_of(process)
    }

    /// How a process is gone, if it is.
    ///
    /// # Errors
    /// There is no such process.
    pub fn gone(&self, process: Peer) -> Result<Option<Gone>> {
        gone(process)
    }

    /// Takes what has come, and calls its handlers; waits for nothing.
    ///
    /// # Errors
    /// The thread is inside a handler.
    pub fn poll(&self) -> Result<()> {
        state::allowed()?;
        FABRIC.poll();
        Ok(())
    }
}

impl<K> Drop for Weft<K> {
    fn drop(&mut self) {
        // It has left already where C code of the process did so.
        let _ = leave();
    }
}
