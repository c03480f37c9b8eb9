//! Collective operations: what MPI asks of them, over `weft-collective`, which has their schedules and algorithms.
//!
//! The arguments of a call are checked and become a [`weft_collective::schedule::Schedule`] (`prepare`), or the call is
//! performed on the group's shared memory (`team`). A blocking call runs its schedule on its own stack; a nonblocking
//! or persistent one gives it to [`Active`], which moves with every progress pass (`call`, `active`).
//!
//! - `plan`: what goes through the shared memory of a group, and what of it by messages.
//! - `abi`: the bodies of the calls.
//!
//! Invariant: a user's operation runs with the monitor left.

pub mod abi;
pub mod active;
pub mod call;
pub mod plan;
pub mod prepare;
pub mod team;

pub use active::{Active, CollectiveId};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use weft_collective::algorithm::levels::Hosts;
use weft_collective::shared::TeamCell;

/// The teams of communicators; `team` says what they have to know of this interface.
pub struct MpiTeams;

/// The part of a communicator in shared memory.
pub type Team = weft_collective::shared::Team<MpiTeams>;

/// What collectives keep for each communicator.
#[derive(Default)]
pub struct CommState {
    sequence: AtomicU32,
    /// The communicator's shared memory.
    pub team: TeamCell<MpiTeams>,
    /// How its ranks lie on hosts, once it has been asked for.
    hosts: OnceLock<Option<Hosts>>,
}

/// Tags of persistent operations have this bit; they keep the number they were made with.
const PERSISTENT_TAG: i32 = 1 << 30;

impl CommState {
    /// How the ranks lie on hosts where that matters; the first call asks for the host of each of the members.
    pub fn hosts(&self, me: u32, hosts_of_members: impl FnOnce() -> Vec<u32>) -> Option<&Hosts> {
        self.hosts.get_or_init(|| Hosts::of(&hosts_of_members(), me)).as_ref()
    }

    /// The tag of the next collective operation. All ranks call collectives in the same order, so they count alike.
    pub fn next_tag(&self) -> i32 {
        // One thread at a time calls a communicator's collectives.
        let next = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(next.wrapping_add(1), Ordering::Relaxed);
        next as i32 & (PERSISTENT_TAG - 1)
    }

    /// The tag of the next persistent operation. Its starts may come in any order among others, so it needs its own.
    pub fn next_persistent_tag(&self) -> i32 {
        self.next_tag() | PERSISTENT_TAG
    }
}
