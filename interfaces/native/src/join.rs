//! A process joins its job and leaves it, and who else is there.

use crate::begun;
use crate::desk::{Desk, FABRIC};
use crate::elsewhere;
use crate::end_desk::{self, GoneHow};
use crate::error::{ErrorKind, NativeError, Result};
use crate::groups;
use crate::known;
use crate::port;
use crate::started;
use std::sync::atomic::{AtomicU8, Ordering};
use weft_ports::{Endpoint, InterfaceName, Peer};

const BEFORE: u8 = 0;
const JOINED: u8 = 1;
const AFTER: u8 = 2;

static PHASE: AtomicU8 = AtomicU8::new(BEFORE);

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
    let mut endpoint = joined.map_err(|error| {
        PHASE.store(BEFORE, Ordering::Release);
        NativeError::new(ErrorKind::Join, error.to_string())
    })?;
    let (me, size) = (endpoint.me(), endpoint.world_size());
    // SAFETY: the function stores two words.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    // Who is gone is what calls answer.
    endpoint.keep_quiet_of_others();
    crate::memory::begin(&mut endpoint);
    elsewhere::begin(&mut endpoint);
    FABRIC.open_beside(endpoint, Desk::default(), threads);
    FABRIC.lend();
    known::begin(me, size);
    started::greet().inspect_err(|_| {
        // Why it is to leave is what is told.
        let _ = leave();
    })
}

/// A forked copy of the process has no part in the job.
unsafe extern "C" fn in_child() {
    known::set_known(0);
}

/// Leaves, once everything has left that was sent.
pub(crate) fn leave() -> Result<()> {
    known::allowed()?;
    if PHASE.load(Ordering::Acquire) == JOINED {
        groups::close();
        begun::close();
    }
    if PHASE.compare_exchange(JOINED, AFTER, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return known::allowed();
    }
    known::set_known(0);
    port::close_all();
    FABRIC.close();
    Ok(())
}

pub(crate) fn me() -> Result<Peer> {
    known::joined()?;
    Ok(known::me())
}

pub(crate) fn size() -> Result<u32> {
    known::joined()?;
    Ok(known::size())
}

/// The number of the host that a process of the job runs on.
pub(crate) fn host_of(process: Peer) -> Result<u32> {
    known::known(process)?;
    FABRIC.with(|endpoint| match process.0 < endpoint.world_size() {
        true => Ok(endpoint.host_of(process)),
        false => Err(NativeError::new(ErrorKind::Process, "the host of a process of another job is not known here")),
    })
}

pub(crate) fn hosts() -> Result<u32> {
    known::allowed()?;
    Ok(FABRIC.with(|endpoint| {
        let all = (0..endpoint.world_size()).map(|process| endpoint.host_of(Peer(process)));
        all.max().unwrap_or(0) + 1
    }))
}

/// The name of a host of the job, as the user wrote it; of a job on one host, as that calls itself.
pub(crate) fn host_name(host: u32) -> Result<String> {
    let hosts = hosts()?;
    if host >= hosts {
        let text = format!("there is no host {}; they are 0 to {}", host as i32, hosts - 1);
        return Err(NativeError::argument(text));
    }
    let named = FABRIC.with(|endpoint| endpoint.host_names().get(host as usize).cloned());
    Ok(named.unwrap_or_else(name_here))
}

/// What this host calls itself.
fn name_here() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim_end().to_owned()
}

pub(crate) fn gone(process: Peer) -> Result<Option<GoneHow>> {
    known::known(process)?;
    FABRIC.poll();
    FABRIC.with(|endpoint| endpoint.look_for_lost());
    Ok(FABRIC.with(|endpoint| end_desk::gone(endpoint, process)))
}
