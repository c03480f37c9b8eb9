//! What a daemon knows of turns.

use super::slicer::TurnOrders;
use super::table::HostTurns;
use super::tree::ProcessMark;
use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Instant;
use tokio::sync::watch;
use weft_requests::JobName;

#[derive(Default)]
pub struct Turns {
    /// As a server: what each member was told, and when.
    pub told: RefCell<HashMap<String, (HostTurns, Instant)>>,
    /// The jobs of this host, who has said so, and when.
    pub here: RefCell<Option<(HostTurns, String, Instant)>>,
    /// The time of that server, from ours.
    pub offset_ns: RefCell<Option<(String, i64)>>,
    /// Doors of jobs that take turns.
    pub doors: RefCell<HashMap<JobName, Vec<ProcessMark>>>,
    pub slicer: RefCell<Option<watch::Sender<TurnOrders>>>,
}

impl Turns {
    /// A member tells everything: it may just have begun, and know nothing.
    pub fn forget(&self, member: &str) {
        self.told.borrow_mut().remove(member);
    }
}
