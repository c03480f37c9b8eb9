//! The process that gives jobs their turns: in its turn a job's processes run before all others (`SCHED_RR`), and
//! otherwise as all others do. It is told by its daemon what to do, a line at a time, and computes the rest from the
//! clock.
//!
//! What holds: no job is left before the others by a death. When its daemon is gone, or says nothing for the time that
//! it has given, it takes every turn back; when it dies itself, its daemon does ([`take_back`]), or the next one.

use super::table::turn;
use super::tree::{self, ProcessMark};
use crate::launcher::{RunPace, SLICER_PRIORITY, run_first};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// A job of this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurningJob {
    pub row: usize,
    /// What the job's processes here come from: its launcher, or doors.
    pub roots: Vec<ProcessMark>,
}

/// What a slicer is told: everything, each time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnOrders {
    pub rows: usize,
    pub slice_ns: u64,
    /// The cluster's time is ours and this.
    pub offset_ns: i64,
    /// By our clock; later nobody has a turn any more.
    pub until_ns: u64,
    pub jobs: Vec<TurningJob>,
}

/// What others see instead of the daemon's name, so that it outlives who ends all of that name.
const NAME: &str = "weft-turns";
const READ_BYTES: usize = 1 << 16;
/// What is wrong with a line is the end of it.
const MOST_LINE_BYTES: usize = 16 << 20;

/// Lives as the slicer, until its daemon is gone.
///
/// # Errors
/// It may not do its work, or is told what it does not understand.
pub fn serve() -> Result<()> {
    let _ = std::fs::write("/proc/self/comm", NAME);
    let _ = rustix::process::setsid();
    // Who ends it ends its daemon as well, and that is the sign to go.
    let _signals = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal);
    run_first(0, SLICER_PRIORITY)?;
    let mut orders = TurnOrders::default();
    let done = follow(&mut orders);
    take_back(&orders.jobs);
    done
}

fn follow(orders: &mut TurnOrders) -> Result<()> {
    let mut input = std::io::stdin().lock();
    let mut place = vec![0; READ_BYTES];
    let mut text = Vec::new();
    loop {
        let now = weft_kernel::now();
        let limit = orders.carry_out(now).map(|until| Duration::from_nanos(until.saturating_sub(now)));
        // A signal ends it early, and nothing is due then.
        if weft_kernel::await_events(input.as_raw_fd(), libc::POLLIN, limit)? == 0 {
            continue;
        }
        match input.read(&mut place) {
            Ok(0) => return Ok(()),
            Ok(bytes) => text.extend_from_slice(&place[..bytes]),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        }
        anyhow::ensure!(text.len() <= MOST_LINE_BYTES, "a line of more than {MOST_LINE_BYTES} bytes");
        let Some(end) = text.iter().rposition(|byte| *byte == b'\n') else { continue };
        // Each line says everything, so the last one is enough.
        let lines = text.drain(..=end).collect::<Vec<_>>();
        let last = lines[..end].rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        let new: TurnOrders = serde_json::from_slice(last).context("it is told what it does not understand")?;
        let old = std::mem::replace(orders, new);
        take_back(&old.jobs.into_iter().filter(|job| !orders.has(job)).collect::<Vec<_>>());
    }
}

impl TurnOrders {
    fn has(&self, job: &TurningJob) -> bool {
        job.roots.iter().all(|root| self.jobs.iter().any(|other| other.roots.contains(root)))
    }

    /// Gives the turn to whom it belongs now. What comes back is until when by our clock; never where nobody has one.
    fn carry_out(&self, now: u64) -> Option<u64> {
        if now >= self.until_ns {
            take_back(&self.jobs);
            return None;
        }
        let here: Vec<usize> = self.jobs.iter().map(|job| job.row).collect();
        let (row, until) = turn(self.rows, self.slice_ns, &here, now.saturating_add_signed(self.offset_ns))?;
        let others = self.jobs.iter().filter(|job| job.row != row);
        others.for_each(|job| tree::set(&job.roots, RunPace::AsOthers));
        self.jobs.iter().filter(|job| job.row == row).for_each(|job| tree::set(&job.roots, RunPace::First));
        Some(until.saturating_add_signed(self.offset_ns.saturating_neg()).min(self.until_ns))
    }
}

/// These jobs run as all others do.
pub fn take_back(jobs: &[TurningJob]) {
    jobs.iter().for_each(|job| tree::set(&job.roots, RunPace::AsOthers));
}
