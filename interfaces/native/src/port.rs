//! Ports of this process: numbers under which messages arrive.
//!
//! A message may come before its port is open; it waits there. A port that was closed takes nothing any more, and its
//! number is not used again.

use crate::desk::FABRIC;
use crate::error::{ErrorKind, NativeError, Result};
use crate::known::{self, PortNumber};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use weft_ports::Fault;

/// Programs choose numbers below it; those from it on are given.
pub const FIRST_GIVEN: u32 = 1 << 24;

/// Ports that were opened, and whether they still are.
static PORTS: Mutex<BTreeMap<u32, bool>> = Mutex::new(BTreeMap::new());
/// One of those that are open: the one that was asked for last.
static RECENT: AtomicU32 = AtomicU32::new(u32::MAX);

fn ports() -> MutexGuard<'static, BTreeMap<u32, bool>> {
    PORTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether messages can be received there.
///
/// # Errors
/// The port is not open.
#[inline]
pub(crate) fn open(port: PortNumber) -> Result<()> {
    if port.0 == RECENT.load(Ordering::Relaxed) { Ok(()) } else { look_for(port) }
}

#[cold]
fn look_for(port: PortNumber) -> Result<()> {
    if ports().get(&port.0) == Some(&true) {
        RECENT.store(port.0, Ordering::Relaxed);
        return Ok(());
    }
    Err(NativeError::new(ErrorKind::Port, format!("port {} is not open here", port.0 as i32)))
}

/// Opens the port of a number, or one of a number that nobody else uses.
pub(crate) fn open_numbered(number: Option<u32>) -> Result<PortNumber> {
    known::allowed()?;
    let mut ports = ports();
    let number = match number {
        Some(number) if number >= FIRST_GIVEN => {
            let text = format!("port {}: numbers that can be chosen are 0 to {}", number as i32, FIRST_GIVEN - 1);
            return Err(NativeError::new(ErrorKind::Port, text));
        }
        Some(number) if ports.contains_key(&number) => {
            let text = format!("port {number} was opened before in this process");
            return Err(NativeError::new(ErrorKind::Port, text));
        }
        Some(number) => number,
        None => ports.range(FIRST_GIVEN..).next_back().map_or(FIRST_GIVEN, |(last, _)| last + 1),
    };
    ports.insert(number, true);
    Ok(PortNumber(number))
}

pub(crate) fn close(port: PortNumber) -> Result<()> {
    known::allowed()?;
    open(port)?;
    ports().insert(port.0, false);
    RECENT.store(u32::MAX, Ordering::Relaxed);
    FABRIC.with_both(|endpoint, desk| {
        endpoint.close_context(port.0, Fault::Withdrawn);
        desk.forget_names_of(port);
    });
    Ok(())
}

/// The process leaves.
pub(crate) fn close_all() {
    ports().values_mut().for_each(|open| *open = false);
    RECENT.store(u32::MAX, Ordering::Relaxed);
}
