//! Start and end (MPI 5.0, chapter 11).
//!
//! The interface is there for its *users*: the world, from `MPI_Init` to `MPI_Finalize`, and each session. The first
//! one joins the job. When the last one is gone the process rests: for the others and the launcher it has left, but a
//! session may bring it back. On several hosts, where leaving is for good, it cannot come back.
//!
//! A process that ends after `MPI_Finalize` with a session open leaves then. The two predefined communicators are made
//! when the process joins, so that their contexts are equal everywhere, whatever sessions do before `MPI_Init`; they
//! are there until `MPI_Finalize`. What is left of a session is freed when it ends (`session/left`).

pub mod abi;
mod delivery;
pub mod phase;

pub(crate) use phase::FATAL;
pub use phase::{abort_with, end_process, is_running};

use crate::abi::{COMM_SELF, COMM_WORLD, GROUP_EMPTY, THREAD_MULTIPLE};
use crate::comm::{CommDraft, PREDEFINED};
use crate::error::{Class, Error, Result};
use crate::group::Group;
use crate::world::{WORLD, World};
use phase::{BEFORE, ENDED, PHASE, PROCESS, RANK, RUNNING, THREAD_LEVEL, USERS, has_world, is_copy};
use std::io::Write;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
pub use weft_fabric::by_name::begin as by_name;
use weft_fabric::{Endpoint, InterfaceName};

static MEMBERSHIP: Mutex<Membership> = Mutex::new(Membership::Never);
static MAIN: std::sync::OnceLock<ThreadId> = std::sync::OnceLock::new();

/// The process's place in the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Membership {
    Never,
    /// There are users. `shared`: threads may call at the same time.
    Joined {
        shared: bool,
    },
    /// There are none, but may be some again.
    Resting,
    Left,
}

fn membership() -> MutexGuard<'static, Membership> {
    MEMBERSHIP.lock().unwrap_or_else(PoisonError::into_inner)
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
    let when = match (PHASE.load(Ordering::Relaxed), *membership()) {
        (BEFORE, Membership::Never) => "before MPI_Init",
        (BEFORE, _) => "after the last MPI_Session_finalize",
        _ => "after MPI_Finalize",
    };
    abort_with(Class::Other as i32, &format!("{call} was called {when}"), FATAL)
}

/// Prints one line that says who and why, and ends the processes of a communicator. Where the job ends with the first
/// one of them, and where they are all processes, that is the job.
#[cold]
pub fn abort_members(comm: usize, code: i32, line: &str, handler: &str) -> ! {
    if is_running() && !is_copy() && crate::failure::end_members(comm, code) {
        eprintln!("weft: rank {}: {line}", RANK.load(Ordering::Relaxed));
        end_process(code);
    }
    abort_with(code, line, handler)
}

/// Starts the world: its communicators are there afterwards.
fn start(level: i32) -> Result<()> {
    let mut membership = membership();
    match PHASE.load(Ordering::Relaxed) {
        BEFORE => (),
        RUNNING => return Err(Error::new(Class::Other, "the interface has been started already")),
        _ => return Err(Error::new(Class::Other, "the interface cannot be started again after MPI_Finalize")),
    }
    begin(&mut membership, level == THREAD_MULTIPLE)?;
    THREAD_LEVEL.store(level, Ordering::Relaxed);
    let _ = MAIN.set(std::thread::current().id());
    PHASE.store(RUNNING, Ordering::Release);
    drop(membership);
    crate::dynamic::greet_parent()
}

/// Begins a session; the thread level that it gets of the one it asks for, or of all if it asks for none.
///
/// Where the world was started for one thread at a time no session gets more than the world.
pub fn begin_session(asked: Option<i32>) -> Result<i32> {
    let mut membership = membership();
    begin(&mut membership, true)?;
    let most = match *membership {
        Membership::Joined { shared: false } => THREAD_LEVEL.load(Ordering::Relaxed),
        _ => THREAD_MULTIPLE,
    };
    Ok(asked.unwrap_or(most).min(most))
}

/// Ends a session, whose objects `clean_up` frees; those of a forked copy are the rank's.
pub fn end_session(clean_up: impl FnOnce() -> Result<()>) -> Result<()> {
    if is_copy() {
        USERS.fetch_sub(1, Ordering::Release);
        return Ok(());
    }
    clean_up()?;
    let mut membership = membership();
    if USERS.load(Ordering::Relaxed) == 1 {
        crate::point::settle("MPI_Session_finalize");
    }
    end(&mut membership);
    Ok(())
}

/// Takes one more user. The first one joins the job, or comes back to it; `shared` says whether threads may call at the
/// same time from then on.
fn begin(membership: &mut Membership, shared: bool) -> Result<()> {
    if *membership != Membership::Never && is_copy() {
        let line = "the process is a forked copy of a rank; only the rank itself can use the interface";
        return Err(Error::new(Class::Other, line));
    }
    match *membership {
        Membership::Never => join(shared)?,
        Membership::Resting => {
            WORLD.share(shared || delivery::is_by_thread());
            let mut world = WORLD.enter();
            world.threads = shared;
            world.endpoint.resume();
            drop(world);
            delivery::start()?;
        }
        Membership::Joined { .. } => {
            USERS.fetch_add(1, Ordering::Release);
            return Ok(());
        }
        Membership::Left => {
            let line = "the process has left the job, which is on several hosts, and cannot come back to it; keep a \
                        session open where there is to be another one later";
            return Err(Error::new(Class::Other, line));
        }
    }
    *membership = Membership::Joined { shared };
    USERS.store(1, Ordering::Release);
    Ok(())
}

/// Joins the job and makes the objects that are there for all users.
fn join(shared: bool) -> Result<()> {
    let changes = crate::tool::changed_settings();
    let endpoint = Endpoint::join_as(InterfaceName::Mpi, &changes);
    let endpoint = endpoint.map_err(|error| Error::new(Class::Other, error.to_string()))?;
    crate::tool::note_joined(&endpoint);
    crate::failure::note_joined(&endpoint);
    let mut world = World::new(endpoint, shared, crate::failure::look);
    phase::note_joined(world.endpoint.me().0, world.endpoint.world_size());
    // Equal everywhere, whatever sessions do before `MPI_Init`.
    PREDEFINED.into_iter().for_each(|context| assert!(world.contexts.claim(context), "nothing has a context yet"));
    let me = world.endpoint.me();
    world.groups.define(GROUP_EMPTY, Arc::new(Group::new(Vec::new(), me)));
    crate::attribute::set_predefined(&world);
    crate::datatype::abi::define_predefined(&mut world.types);
    crate::op::abi::define_predefined(&mut world.ops);
    define_communicators(&mut world);
    delivery::note_settings(world.endpoint.settings());
    WORLD.open(world, shared || delivery::is_by_thread());
    WORLD.lend();
    delivery::start()
}

/// Until `MPI_Finalize` they are there for programs that have sessions only, too: many use them, and others let them.
fn define_communicators(world: &mut World) {
    let (me, size) = (world.endpoint.me(), world.endpoint.world_size());
    let everyone = Arc::new(Group::new((0..size).map(weft_fabric::Peer).collect(), me));
    let myself = Arc::new(Group::new(vec![me], me));
    let both = [(COMM_WORLD, everyone, "MPI_COMM_WORLD"), (COMM_SELF, myself, "MPI_COMM_SELF")];
    for (context, (handle, group, name)) in PREDEFINED.into_iter().zip(both) {
        let comm = CommDraft { name: name.to_owned(), ..CommDraft::new(group) }.finish(context, handle);
        world.comms.define(handle, Arc::new(comm));
    }
}

/// One user less. The last one leaves the job, so that it can come back where that is possible.
fn end(membership: &mut Membership) {
    if USERS.fetch_sub(1, Ordering::Release) > 1 {
        return;
    }
    delivery::end();
    *membership = if WORLD.enter().endpoint.can_rest() {
        WORLD.enter().endpoint.rest();
        Membership::Resting
    } else {
        WORLD.close().endpoint.leave();
        Membership::Left
    };
}

/// The process ends. One that has called `MPI_Finalize` may have left a session open: it has told the world that it
/// leaves, and tells the job here, so that nobody takes it for lost.
pub extern "C" fn at_exit() {
    if PHASE.load(Ordering::Relaxed) != ENDED || !is_running() || is_copy() {
        return;
    }
    // Who holds it begins or ends something in another thread, and will not come to an end.
    if let Ok(mut membership) = MEMBERSHIP.try_lock() {
        USERS.store(1, Ordering::Release);
        end(&mut membership);
    }
}

/// Runs what the program attached to the end, waits for the others, and leaves the job unless there are sessions.
fn finish() -> Result<()> {
    if is_copy() {
        finish_copy();
        return Ok(());
    }
    if !has_world() {
        let line = "the world is not there: it is between MPI_Init and MPI_Finalize, whatever sessions there are";
        return Err(Error::new(Class::Other, line));
    }
    crate::comm::abi::delete_attributes(COMM_SELF)?;
    let everyone = WORLD.enter().comm(COMM_WORLD)?.clone();
    crate::point::settle("MPI_Finalize");
    let keeps_going = WORLD.enter().endpoint.keeps_going();
    match keeps_going {
        true => crate::failure::finish("MPI_Finalize", &everyone),
        false => crate::comm::agree::meet("MPI_Finalize", &everyone)?,
    }
    crate::dynamic::withdraw_names();
    drop(everyone);
    let mut membership = membership();
    PHASE.store(ENDED, Ordering::Release);
    [COMM_WORLD, COMM_SELF].into_iter().for_each(|handle| WORLD.enter().comms.undefine(handle));
    end(&mut membership);
    Ok(())
}

/// The end in a forked copy of a rank, which often comes from what the program registered for the end of its process.
/// The rings and the launcher are the rank's: here nothing is waited for, left or told to others.
#[cold]
fn finish_copy() {
    PHASE.store(ENDED, Ordering::Release);
    USERS.store(0, Ordering::Release);
    let (rank, process, copy) = (RANK.load(Ordering::Relaxed), PROCESS.load(Ordering::Relaxed), std::process::id());
    let line = format!(
        "weft: rank {rank}: MPI_Finalize was called in process {copy}, a forked copy of rank {rank} (process \
         {process}); it ends nothing there, since only the rank itself can leave the job\n"
    );
    // In one piece, so that lines of several processes do not mix; nobody can be told that it cannot be written.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
