//! What many jobs used together, and on which host.

use crate::{JobRecord, Spent};
use std::collections::BTreeMap;

/// The sum of jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct JobTotal {
    pub jobs: usize,
    pub ranks: usize,
    pub user_us: u64,
    pub system_us: u64,
    /// Of the largest rank.
    pub peak_bytes: u64,
    /// By the name of the host.
    pub hosts: BTreeMap<String, HostTotal>,
    /// What the launchers' own children used: who waits for a launcher has been told this by the system already.
    pub below_launchers_us: [u64; 2],
}

/// The part of one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct HostTotal {
    pub ranks: usize,
    pub user_us: u64,
    pub system_us: u64,
    pub peak_bytes: u64,
}

impl JobTotal {
    pub fn of(records: &[JobRecord]) -> Self {
        let mut total = Self::default();
        records.iter().for_each(|record| total.add(record));
        total
    }

    /// One line of JSON, with its end.
    pub fn line(&self) -> String {
        // Texts and whole numbers: there is nothing that JSON could not say.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    /// The sum of those that stand in lines; what is no such line is left out.
    pub fn of_lines(text: &str) -> Self {
        let mut total = Self::default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).for_each(|other: Self| total.merge(other));
        total
    }

    /// With those of another sum.
    pub fn merge(&mut self, other: Self) {
        self.jobs = self.jobs.saturating_add(other.jobs);
        self.ranks = self.ranks.saturating_add(other.ranks);
        self.user_us = self.user_us.saturating_add(other.user_us);
        self.system_us = self.system_us.saturating_add(other.system_us);
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
        for (sum, more) in self.below_launchers_us.iter_mut().zip(other.below_launchers_us) {
            *sum = sum.saturating_add(more);
        }
        for (name, host) in other.hosts {
            self.hosts.entry(name).or_default().merge(host);
        }
    }

    fn add(&mut self, record: &JobRecord) {
        self.jobs += 1;
        self.ranks += record.ranks.len();
        let Spent { user_us, system_us, peak_bytes, .. } = record.spent();
        self.user_us = self.user_us.saturating_add(user_us);
        self.system_us = self.system_us.saturating_add(system_us);
        self.peak_bytes = self.peak_bytes.max(peak_bytes);
        for (sum, more) in self.below_launchers_us.iter_mut().zip(record.below_launcher_us) {
            *sum = sum.saturating_add(more);
        }
        for rank in &record.ranks {
            let spent = rank.spent.unwrap_or_default();
            let Spent { user_us, system_us, peak_bytes, .. } = spent;
            let host = self.hosts.entry(record.host_of(rank).to_owned()).or_default();
            host.merge(HostTotal { ranks: 1, user_us, system_us, peak_bytes });
        }
    }
}

impl HostTotal {
    fn merge(&mut self, other: Self) {
        self.ranks = self.ranks.saturating_add(other.ranks);
        self.user_us = self.user_us.saturating_add(other.user_us);
        self.system_us = self.system_us.saturating_add(other.system_us);
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
    }
}
