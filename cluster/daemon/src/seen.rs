//! What has been seen lately: the cluster, for the page; and what the ranks of this host do.

use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::time::Instant;
use weft_requests::{ClusterView, RankView};

/// The cluster as the server in charge has said last, for the page.
#[derive(Default)]
pub struct Glance {
    pub seen: RefCell<ClusterView>,
    /// When it said that.
    pub at: Cell<Option<Instant>>,
    pub is_asked: Cell<bool>,
    /// When somebody has looked at the page last.
    pub looked: Cell<Option<Instant>>,
    /// Where the page is.
    pub page: RefCell<Option<SocketAddr>>,
    /// Of this host.
    pub ranks: RanksSeen,
}

/// The ranks that a job has on a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobRanks {
    /// The launcher's name of the job.
    pub id: String,
    pub user: String,
    /// They have the daemon's network. Several members on one machine see each other's processes; of these that one is
    /// right which has the same.
    pub is_near: bool,
    pub ranks: Vec<RankView>,
}

/// The ranks of this host as they were seen last.
#[derive(Default)]
pub struct RanksSeen {
    pub seen: RefCell<Vec<JobRanks>>,
    pub at: Cell<Option<Instant>>,
    pub is_reading: Cell<bool>,
}
