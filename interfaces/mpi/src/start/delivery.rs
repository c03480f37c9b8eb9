//! The thread that delivers messages while the program computes, if `WEFT_PROGRESS` asks for it.
//!
//! It is there while the process is in its job: it ends before the process takes its leave, also where that may come
//! back.

use crate::error::{Class, Error, Result};
use crate::world::{WORLD, World};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use weft_fabric::{DeliveryThread, Progress, Settings};

static BY_THREAD: AtomicBool = AtomicBool::new(false);
static THREAD: Mutex<Option<DeliveryThread<World>>> = Mutex::new(None);

fn thread() -> MutexGuard<'static, Option<DeliveryThread<World>>> {
    THREAD.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn note_settings(settings: &Settings) {
    BY_THREAD.store(settings.progress == Progress::Thread, Ordering::Relaxed);
}

/// Whether a thread delivers: then the world is shared with that.
pub fn is_by_thread() -> bool {
    BY_THREAD.load(Ordering::Relaxed)
}

/// Starts the thread, where there is to be one. The world is open.
pub fn start() -> Result<()> {
    if is_by_thread() {
        let line = |error| format!("WEFT_PROGRESS is thread, and the system gives none: {error}");
        let started = DeliveryThread::start(&WORLD).map_err(|error| Error::new(Class::Other, line(error)))?;
        *thread() = Some(started);
    }
    Ok(())
}

/// Ends it, if it is there.
pub fn end() {
    drop(thread().take());
}
