//! The last hour in samples, for the charts of the page.

use serde::Serialize;
use std::collections::VecDeque;
use std::time::Duration;
use weft_requests::{ClusterView, MemberStanding};

/// How often a sample is taken.
pub const EVERY: Duration = Duration::from_secs(15);
const HOUR: u64 = 3600;
/// As many as an hour has, at least a second apart.
const SAMPLES_MAX: usize = 240;

#[derive(Default, Serialize)]
pub struct History {
    /// Of the last sample, in seconds since 1970.
    time: u64,
    samples: VecDeque<HourSample>,
    /// What the traffic had been then, if that was known: it is while somebody looks.
    #[serde(skip)]
    bytes: Option<u64>,
}

/// A moment of the whole cluster.
#[derive(Serialize)]
struct HourSample {
    time: u64,
    /// Of all hosts together.
    load: f32,
    used: usize,
    slots: usize,
    jobs: usize,
    queued: usize,
    /// Bytes a second between hosts since the sample before.
    rate: u64,
}

impl History {
    /// A view that is not later than the last one changes nothing.
    pub fn add(&mut self, view: &ClusterView) {
        if view.time <= self.time {
            return;
        }
        let seconds = view.time - self.time;
        let bytes = view.traffic.iter().map(|flow| flow.bytes).reduce(u64::saturating_add);
        // What the jobs that have ended had sent is gone from the sum. The first sample knows no time before it.
        let more = bytes.zip(self.bytes).map_or(0, |(bytes, before)| bytes.saturating_sub(before));
        let alive = view.members.iter().filter(|member| member.standing == MemberStanding::Alive);
        let load: f64 = alive.filter_map(|member| member.load.as_ref()).map(|load| load.load).sum();
        self.samples.push_back(HourSample {
            time: view.time,
            load: load as f32,
            used: view.members.iter().map(|member| member.used).sum(),
            slots: view.members.iter().map(|member| member.slots).sum(),
            jobs: view.jobs.len(),
            queued: view.queue.len(),
            rate: more / seconds,
        });
        (self.time, self.bytes) = (view.time, bytes);
        let is_old = |sample: &HourSample| sample.time + HOUR < view.time;
        while self.samples.len() > SAMPLES_MAX || self.samples.front().is_some_and(is_old) {
            self.samples.pop_front();
        }
    }

    pub fn json(&self) -> Vec<u8> {
        // Numbers only: it cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }
}
