//! Sessions: ways to the interface that know nothing of each other (MPI 5.0, section 11.3).
//!
//! A session keeps the interface there (see [`crate::start`]) and has an error handler; communicators come from the
//! groups of its process sets ([`crate::comm::from_groups`]), without a world.
//!
//! The table has a lock of its own, so that `MPI_Session_init` may be called whatever other threads do.

pub mod abi;
mod left;

use crate::errhandler::handler::Handler;
use crate::error::{Class, Error, Result};
use crate::group::Group;
use crate::handle::{HandleKind, HandleTable};
use crate::world::World;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_fabric::Peer;

pub struct Session {
    errhandler: Mutex<Arc<Handler>>,
    /// The thread level that it was given.
    level: i32,
}

static SESSIONS: Mutex<HandleTable<Arc<Session>>> = Mutex::new(HandleTable::new(HandleKind::Session));

fn sessions() -> MutexGuard<'static, HandleTable<Arc<Session>>> {
    SESSIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The live session with this handle.
pub fn of(handle: usize) -> Result<Arc<Session>> {
    sessions().get(handle).cloned()
}

impl Session {
    pub fn errhandler(&self) -> Arc<Handler> {
        self.errhandler.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_errhandler(&self, handler: Arc<Handler>) {
        *self.errhandler.lock().unwrap_or_else(PoisonError::into_inner) = handler;
    }
}

/// A named set of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessSet {
    /// All of the job.
    World,
    /// The calling one.
    Own,
    /// Those that share memory with it.
    Host,
}

/// In the order of `MPI_Session_get_nth_pset`; every process has the same ones.
const PROCESS_SETS: [(&str, ProcessSet); 3] =
    [("mpi://WORLD", ProcessSet::World), ("mpi://SELF", ProcessSet::Own), ("weft://HOST", ProcessSet::Host)];

impl ProcessSet {
    /// The set of this name, which is not case-sensitive (MPI 5.0, section 11.3.2).
    fn named(name: &str) -> Result<Self> {
        let found = PROCESS_SETS.iter().find(|known| known.0.eq_ignore_ascii_case(name));
        found.map(|known| known.1).ok_or_else(|| {
            let known = PROCESS_SETS.map(|known| known.0).join(", ");
            Error::new(Class::Arg, format!("pset_name `{name}` is no process set; there are {known}"))
        })
    }

    fn group(self, world: &World) -> Group {
        let endpoint = &world.endpoint;
        let (me, all) = (endpoint.me(), (0..endpoint.world_size()).map(Peer));
        let members = match self {
            Self::World => all.collect(),
            Self::Own => vec![me],
            Self::Host => all.filter(|&peer| peer == me || endpoint.is_local(peer)).collect(),
        };
        Group::new(members, me)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_process_sets_are_known_in_any_case() {
        assert_eq!(ProcessSet::named("mpi://world"), Ok(ProcessSet::World));
        assert_eq!(ProcessSet::named("MPI://SELF"), Ok(ProcessSet::Own));
        let error = ProcessSet::named("mpi://WORLDS").unwrap_err();
        assert!(error.class == Class::Arg && error.detail.contains("`mpi://WORLDS`"), "{error:?}");
    }
}
