//! Jobs, in the order in which they came.

use crate::{Shareable, object};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Jobs, in the order in which they came.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobQueueObject<T> {
    jobs: VecDeque<T>,
    is_closed: bool,
}

impl<T> Default for JobQueueObject<T> {
    fn default() -> Self {
        Self { jobs: VecDeque::new(), is_closed: false }
    }
}

#[object(handle = SharedJobQueue)]
impl<T: Shareable> JobQueueObject<T> {
    /// Adds a job; false if no more are taken.
    #[operation(write)]
    pub fn add(&mut self, job: T) -> bool {
        if !self.is_closed {
            self.jobs.push_back(job);
        }
        !self.is_closed
    }

    /// There will be no more jobs.
    #[operation(write)]
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// The oldest job. Waits for one; `None` when there will be no more.
    #[operation(write, guard = self.is_closed || !self.jobs.is_empty())]
    pub fn take(&mut self) -> Option<T> {
        self.jobs.pop_front()
    }

    #[operation(read)]
    pub fn length(&self) -> u64 {
        self.jobs.len() as u64
    }
}
