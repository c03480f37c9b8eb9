//! Who runs when, of jobs that take turns. Pure.
//!
//! Time is cut into slices. A job stands in one row, on all its hosts; in slice `n` row `n modulo rows` has its turn. A
//! new job goes to the first row in which its hosts have cores left or nobody, else to a new one. The server in charge
//! makes the table of all jobs; each host knows the rows of its own, and computes turns alone from them and the time.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use weft_requests::JobName;

/// The rows of the jobs of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostTurns {
    /// Rows of the whole table.
    pub rows: usize,
    pub slice_ms: u64,
    pub jobs: BTreeMap<JobName, usize>,
}

/// The row of each job, in the order of the jobs. `cores` says how many ranks of a row run at once on a host.
pub fn rows<'j>(jobs: impl Iterator<Item = &'j [(String, usize)]>, cores: impl Fn(&str) -> usize) -> Vec<usize> {
    let mut used: Vec<HashMap<&str, usize>> = Vec::new();
    let row_of = |hosts: &'j [(String, usize)]| {
        let fits = |row: &HashMap<&str, usize>| {
            hosts.iter().all(|(host, ranks)| row.get(&**host).is_none_or(|used| used + ranks <= cores(host)))
        };
        let row = used.iter().position(fits).unwrap_or(used.len());
        if row == used.len() {
            used.push(HashMap::new());
        }
        hosts.iter().for_each(|(host, ranks)| *used[row].entry(host).or_default() += ranks);
        row
    };
    jobs.map(row_of).collect()
}

/// The jobs of each host with their rows. Jobs are given in the order of their begin, each with its hosts and its ranks
/// there.
pub fn tables(
    jobs: &[(JobName, Vec<(String, usize)>)],
    slice_ms: u64,
    cores: impl Fn(&str) -> usize,
) -> HashMap<String, HostTurns> {
    let rows = rows(jobs.iter().map(|(_, hosts)| &hosts[..]), cores);
    let count = rows.iter().max().map_or(0, |last| last + 1);
    let mut tables: HashMap<String, HostTurns> = HashMap::new();
    for ((job, hosts), row) in jobs.iter().zip(rows) {
        for (host, _) in hosts {
            let table = tables.entry(host.clone()).or_default();
            (table.rows, table.slice_ms) = (count, slice_ms);
            table.jobs.insert(job.clone(), row);
        }
    }
    tables
}

/// The row whose turn it is on a host at a time of the cluster, and when that ends. A host that has nothing in a row
/// runs there whom it has in the next one. `None` where it has nobody.
pub fn turn(rows: usize, slice_ns: u64, here: &[usize], now_ns: u64) -> Option<(usize, u64)> {
    let slice = now_ns / slice_ns.max(1);
    let due = (slice % rows.max(1) as u64) as usize;
    let distance = |row: &usize| if *row < due { rows - due + row } else { row - due };
    let row = here.iter().copied().filter(|row| *row < rows).min_by_key(distance)?;
    Some((row, (slice + 1).saturating_mul(slice_ns.max(1))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Hosts = Vec<(String, usize)>;

    fn on(hosts: &[(&str, usize)]) -> Hosts {
        hosts.iter().map(|(host, ranks)| ((*host).to_owned(), *ranks)).collect()
    }

    fn rows_of(jobs: &[Hosts]) -> Vec<usize> {
        rows(jobs.iter().map(|hosts| &hosts[..]), |_| 4)
    }

    #[test]
    fn jobs_that_have_room_beside_each_other_run_at_the_same_time() {
        let jobs = [on(&[("a", 8), ("b", 8)]), on(&[("b", 2)]), on(&[("c", 2)]), on(&[("c", 2), ("b", 2)])];
        assert_eq!(rows_of(&jobs), [0, 1, 0, 1], "the first leaves no core of b, and c is free then");
        assert_eq!(rows_of(&jobs[1..]), [0, 0, 0], "when it has ended");
        assert_eq!(rows_of(&[]), [0_usize; 0]);
    }

    #[test]
    fn a_host_with_nobody_in_a_row_runs_the_next_one() {
        let at = |here: &[usize], slice: u64| turn(3, 100, here, slice * 100 + 7);
        assert_eq!(at(&[0, 1, 2], 4), Some((1, 500)));
        assert_eq!(at(&[0, 2], 4), Some((2, 500)));
        assert_eq!(at(&[0], 4), Some((0, 500)));
        assert_eq!(at(&[], 4), None);
        assert_eq!(turn(0, 0, &[5], 1), None, "what is told wrong is nobody's turn");
    }

    proptest! {
        #[test]
        fn each_job_has_its_turn_on_all_its_hosts_at_once_and_no_core_has_two(
            jobs in prop::collection::vec(prop::collection::btree_map("[a-f]", 1..9_usize, 1..4), 1..12)
        ) {
            let jobs: Vec<(JobName, Hosts)> = jobs.into_iter().enumerate()
                .map(|(at, hosts)| (JobName::new("a", at as u64), hosts.into_iter().collect())).collect();
            let tables = tables(&jobs, 1, |_| 4);
            let count = tables.values().next().expect("one").rows;
            for slice in 0..count {
                for (host, table) in &tables {
                    prop_assert_eq!(table.rows, count);
                    let here: Vec<usize> = table.jobs.values().copied().collect();
                    let (row, _) = turn(table.rows, 1, &here, slice as u64).expect("somebody");
                    let running = jobs.iter().filter(|(job, _)| table.jobs.get(job) == Some(&row));
                    let ranks = running.map(|(_, hosts)| hosts.iter().find(|(name, _)| name == host).expect("here").1);
                    let ranks: Vec<usize> = ranks.collect();
                    prop_assert!(ranks.len() == 1 || ranks.iter().sum::<usize>() <= 4, "{:?}", ranks);
                }
                for (job, hosts) in &jobs {
                    let row = tables[&hosts[0].0].jobs[job];
                    let has_turn = |host: &str| {
                        let here: Vec<usize> = tables[host].jobs.values().copied().collect();
                        turn(count, 1, &here, slice as u64).expect("somebody").0 == row
                    };
                    prop_assert!(slice != row || hosts.iter().all(|(host, _)| has_turn(host)));
                }
            }
        }
    }
}
