//! Start and end (MPI 5.0, chapter 11).

pub mod abi;

use crate::abi::{COMM_SELF, COMM_WORLD, GROUP_EMPTY, THREAD_MULTIPLE};
use crate::comm::Draft;
use crate::error::{Class, Error, Result};
use crate::group::Group;
use crate::world::{WORLD, World};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, Ordering};
use std::thread::ThreadId;
use weft_fabric::Endpoint;

const BEFORE: u8 = 0;
const RUNNING: u8 = 1;
const ENDED: u8 = 2;

static PHASE: AtomicU8 = AtomicU8::new(BEFORE);
static THREAD_LEVEL: AtomicI32 = AtomicI32::new(0);
static RANK: AtomicI32 = AtomicI32::new(-1);
/// The process that joined the job; a forked copy of it has another number.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static MAIN: std::sync::OnceLock<ThreadId> = std::sync::OnceLock::new();

/// Between `MPI_Init` and `MPI_Finalize`.
#[inline]
pub fn is_running() -> bool {
    PHASE.load(Ordering::Relaxed) == RUNNING
}

/// Ends the process when `call` is not allowed now.
#[inline]
pub fn expect_running(call: &'static str) {
    if !is_running() {
        not_running(call);
    }
}

#[cold]
fn not_running(call: &'static str) -> ! {
    let when = if PHASE.load(Ordering::Relaxed) == BEFORE { "before MPI_Init" } else { "after MPI_Finalize" };
    abort_with(Class::Other as i32, &format!("{call} was called {when}"))
}

/// Prints one line that says who and why, and ends the job.
#[cold]
pub fn abort_with(code: i32, line: &str) -> ! {
    match RANK.load(Ordering::Relaxed) {
        -1 => eprintln!("weft: {line}"),
        rank => eprintln!("weft: rank {rank}: {line}"),
    }
    abort(code)
}

/// Ends the job with this exit code (its low eight bits, 1 if those are zero). Who started the job ends the other ranks.
pub fn abort(code: i32) -> ! {
    let status = if code & 0xff == 0 { 1 } else { code & 0xff };
    // SAFETY: may be called at any time; output that the program has written so far is not lost.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    weft_fabric::abort(status, "")
}

/// Joins the job and makes the predefined objects.
fn start(level: i32) -> Result<()> {
    match PHASE.load(Ordering::Relaxed) {
        BEFORE => (),
        RUNNING => return Err(Error::new(Class::Other, "the interface has been started already")),
        _ => return Err(Error::new(Class::Other, "the interface cannot be started again after MPI_Finalize")),
    }
    let endpoint = Endpoint::join().map_err(|error| Error::new(Class::Other, error.to_string()))?;
    let mut world = World::new(endpoint, level == THREAD_MULTIPLE);
    RANK.store(world.endpoint.me().0 as i32, Ordering::Relaxed);
    define_objects(&mut world);
    crate::attribute::set_predefined(&world);
    crate::datatype::abi::define_predefined(&mut world.types);
    crate::op::abi::define_predefined(&mut world.ops);
    THREAD_LEVEL.store(level, Ordering::Relaxed);
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    let _ = MAIN.set(std::thread::current().id());
    WORLD.open(world, level == THREAD_MULTIPLE);
    PHASE.store(RUNNING, Ordering::Release);
    Ok(())
}

fn define_objects(world: &mut World) {
    let (me, size) = (world.endpoint.me(), world.endpoint.world_size());
    let everyone = Arc::new(Group::new((0..size).map(weft_fabric::Peer).collect(), me));
    let myself = Arc::new(Group::new(vec![me], me));
    for (handle, group, name) in [(COMM_WORLD, everyone, "MPI_COMM_WORLD"), (COMM_SELF, myself, "MPI_COMM_SELF")] {
        let context = world.contexts.first_free();
        world.contexts.claim(context);
        let comm = Draft { name: name.to_owned(), ..Draft::new(group) }.finish(context, handle);
        world.comms.define(handle, Arc::new(comm));
    }
    world.groups.define(GROUP_EMPTY, Arc::new(Group::new(Vec::new(), me)));
}

/// Runs what the program attached to the end, waits for the others, and leaves the job.
fn finish() -> Result<()> {
    if std::process::id() != PROCESS.load(Ordering::Relaxed) {
        finish_copy();
        return Ok(());
    }
    crate::comm::abi::delete_attributes(COMM_SELF)?;
    let everyone = WORLD.enter().comm(COMM_WORLD)?.clone();
    crate::point::settle();
    crate::comm::agree::meet("MPI_Finalize", &everyone)?;
    PHASE.store(ENDED, Ordering::Release);
    WORLD.close().endpoint.leave();
    Ok(())
}

/// The end in a forked copy of a rank, which often comes from what the program registered for the end of its process.
/// The rings and the launcher are the rank's: here nothing is waited for, left or told to others.
#[cold]
fn finish_copy() {
    PHASE.store(ENDED, Ordering::Release);
    let (rank, process, copy) = (RANK.load(Ordering::Relaxed), PROCESS.load(Ordering::Relaxed), std::process::id());
    let line = format!(
        "weft: rank {rank}: MPI_Finalize was called in process {copy}, a forked copy of rank {rank} (process \
         {process}); it ends nothing there, since only the rank itself can leave the job\n"
    );
    // In one piece, so that lines of several processes do not mix; nobody can be told that it cannot be written.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
