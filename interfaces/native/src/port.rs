//! Ports of this process: numbers under which messages arrive.
//!
//! A message may come before its port is open; it waits there. A port that was closed takes nothing any more, and its
//! number is not used again.

use crate::desk::FABRIC;
use crate::error::{ErrorKind, NativeError, Result};
use crate::known::{self, PortNumber};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use weft_ports::Fault;

/// Programs choose numbers below it; those from it on are given.
pub const FIRST_GIVEN: u32 = 1 << 24;

/// So many open ports are shown to tools.
const SHOWN: usize = 8;

/// Ports of this process, by their numbers.
struct PortTable {
    /// All that were ever opened.
    opened: BTreeSet<u32>,
    /// Those that are open, with their names.
    open: BTreeMap<u32, String>,
}

static PORTS: Mutex<PortTable> = Mutex::new(PortTable { opened: BTreeSet::new(), open: BTreeMap::new() });
/// One of those that are open: the one that was asked for last.
static RECENT: AtomicU32 = AtomicU32::new(u32::MAX);

fn ports() -> MutexGuard<'static, PortTable> {
    PORTS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PortTable {
    /// Tells tools which ports are open.
    fn show(&self) {
        let of = |(number, name): (&u32, &String)| match name.is_empty() {
            true => format!(" {number}"),
            false => format!(" {number} '{name}'"),
        };
        let shown: Vec<String> = self.open.iter().take(SHOWN).map(of).collect();
        let more = if self.open.len() > SHOWN { ", ..." } else { "" };
        let ports = if self.open.len() == 1 { "port" } else { "ports" };
        let text = if shown.is_empty() { String::new() } else { format!("{ports}{}{more}", shown.join(",")) };
        FABRIC.with(|endpoint| endpoint.set_known_as(&text));
    }
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
    if ports().open.contains_key(&port.0) {
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
        Some(number) if ports.opened.contains(&number) => {
            let text = format!("port {number} was opened before in this process");
            return Err(NativeError::new(ErrorKind::Port, text));
        }
        Some(number) => number,
        None => ports.opened.range(FIRST_GIVEN..).next_back().map_or(FIRST_GIVEN, |last| last + 1),
    };
    ports.opened.insert(number);
    ports.open.insert(number, String::new());
    ports.show();
    Ok(PortNumber(number))
}

/// The port, which is open, has this name from now on.
pub(crate) fn set_name(port: PortNumber, name: &str) {
    let mut ports = ports();
    ports.open.entry(port.0).and_modify(|known| name.clone_into(known));
    ports.show();
}

pub(crate) fn close(port: PortNumber) -> Result<()> {
    known::allowed()?;
    open(port)?;
    let mut ports = ports();
    ports.open.remove(&port.0);
    ports.show();
    drop(ports);
    RECENT.store(u32::MAX, Ordering::Relaxed);
    FABRIC.with_both(|endpoint, desk| {
        endpoint.close_context(port.0, Fault::Withdrawn);
        desk.forget_names_of(port);
    });
    Ok(())
}

/// The process leaves.
pub(crate) fn close_all() {
    ports().open.clear();
    RECENT.store(u32::MAX, Ordering::Relaxed);
}
