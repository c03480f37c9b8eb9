//! What ranks wait for, and what they have sent: read from their status pages, as `weft ps` does it, when somebody
//! looks.
//!
//! A daemon of root reads the ranks of all users, another one those of its own. What stands in a page is a claim of its
//! user's program, so it counts for jobs of that user alone.

use crate::between::{Errand, Response};
use crate::daemon::Daemon;
use crate::seen::JobRanks;
use nix::unistd::User;
use std::collections::{BTreeMap, BTreeSet};
use std::os::linux::fs::MetadataExt;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use weft_ranks::{SeenJob, SeenRank, Whose, segments};
use weft_requests::{ClusterView, Flow, JobView, MemberStanding, RankView};

/// However many look, pages are read so often.
const FRESH: Duration = Duration::from_millis(500);
/// How long this may take on a host, and how long all hosts together are waited for.
const READING: Duration = Duration::from_secs(1);
const ASKING: Duration = Duration::from_secs(2);
/// The counters of a rank that tell what it has sent to other hosts.
const SENT: [&str; 2] = ["tcp_bytes", "udp_bytes"];

impl Daemon {
    /// What the ranks of this host do.
    pub async fn own_ranks(self: &Rc<Self>) -> Vec<JobRanks> {
        let is_fresh = self.glance.ranks.at.get().is_some_and(|at| at.elapsed() < FRESH);
        if !is_fresh && !self.glance.ranks.is_reading.replace(true) {
            let (sender, seen) = oneshot::channel();
            let (member, whose) = (self.me.member.clone(), if self.me.uid == 0 { Whose::All } else { Whose::Own });
            // Not one of the runtime's threads: whatever happens to it, the daemon can end.
            let begun = std::thread::Builder::new().spawn(move || sender.send(read(&member, whose)));
            let daemon = Rc::clone(self);
            let reading = tokio::task::spawn_local(async move {
                *daemon.glance.ranks.seen.borrow_mut() = seen.await.unwrap_or_default();
                daemon.glance.ranks.at.set(Some(Instant::now()));
                daemon.glance.ranks.is_reading.set(false);
            });
            if begun.is_ok() {
                let _ = tokio::time::timeout(READING, reading).await;
            }
        }
        self.glance.ranks.seen.borrow().clone()
    }

    /// What there is to see now, with what each rank does.
    pub async fn view_with_ranks(self: &Rc<Self>) -> ClusterView {
        let mut view = self.view();
        let hosts: BTreeSet<String> =
            view.jobs.iter().flat_map(|job| &job.hosts).map(|(name, _)| name.clone()).collect();
        let (sender, mut told) = mpsc::unbounded_channel();
        for host in hosts.into_iter().filter(|host| self.alive.standing(host).0 == MemberStanding::Alive) {
            let (daemon, sender) = (Rc::clone(self), sender.clone());
            tokio::task::spawn_local(async move {
                if let Ok(Response::Ranks(jobs)) = daemon.ask_once(&host, Errand::Ranks).await {
                    let _ = sender.send(jobs);
                }
            });
        }
        drop(sender);
        let mut all = Vec::new();
        let collect = async {
            while let Some(jobs) = told.recv().await {
                all.extend(jobs);
            }
        };
        // What has not come by then is left out.
        let _ = tokio::time::timeout(ASKING, collect).await;
        view.jobs.iter_mut().for_each(|job| add_ranks(job, &all));
        view.traffic = traffic(&view.jobs);
        view
    }
}

/// Reads the pages of this host.
fn read(member: &str, whose: Whose) -> Vec<JobRanks> {
    let network = |pid: u32| std::fs::metadata(format!("/proc/{pid}/ns/net")).map(|data| data.st_ino()).ok();
    let own = network(std::process::id());
    let mut all = Vec::new();
    for found in segments(whose).unwrap_or_default() {
        let job = SeenJob::read(&found);
        let alive = job.ranks.iter().filter(|rank| rank.is_alive());
        let ranks: Vec<RankView> = alive.map(|rank| seen(member, rank)).collect();
        // Jobs go by the names of their users, which are the same on all hosts.
        let user = User::from_uid(found.user.into()).ok().flatten();
        if let Some(User { name: user, .. }) = user.filter(|_| !ranks.is_empty()) {
            let is_near = found.holders.first().and_then(|pid| network(*pid)) == own;
            all.push(JobRanks { id: job.name, user, is_near, ranks });
        }
    }
    all
}

fn seen(member: &str, rank: &SeenRank) -> RankView {
    RankView {
        rank: rank.rank,
        host: member.to_owned(),
        pid: rank.pid,
        blocked: rank.blocked.as_ref().map(|blocked| blocked.text(true)),
        seconds: rank.blocked.as_ref().map_or(0.0, |blocked| blocked.seconds),
        sent: SENT.iter().filter_map(|name| rank.counters.get(name)).fold(0, |sum, more| sum.saturating_add(*more)),
    }
}

/// Adds to a job what hosts have told of its ranks.
fn add_ranks(job: &mut JobView, told: &[JobRanks]) {
    let mut ranks: BTreeMap<u32, (bool, RankView)> = BTreeMap::new();
    for told in told.iter().filter(|told| told.id == job.id && told.user == job.user) {
        for rank in told.ranks.iter().filter(|rank| (rank.rank as usize) < job.size) {
            let known = ranks.get(&rank.rank);
            if known.is_none_or(|(is_near, _)| !is_near && told.is_near) {
                ranks.insert(rank.rank, (told.is_near, rank.clone()));
            }
        }
    }
    job.ranks = ranks.into_values().map(|(_, rank)| rank).collect();
}

/// What hosts have sent to each other for these jobs.
fn traffic(jobs: &[JobView]) -> Vec<Flow> {
    let mut flows: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for job in jobs {
        for rank in &job.ranks {
            let others: Vec<&str> =
                job.hosts.iter().map(|(name, _)| &**name).filter(|name| *name != rank.host).collect();
            for (at, other) in others.iter().enumerate() {
                let (count, at) = (others.len() as u64, at as u64);
                let share = rank.sent / count + u64::from(at < rank.sent % count);
                let sum = flows.entry((&rank.host, other)).or_default();
                *sum = sum.saturating_add(share);
            }
        }
    }
    let flow = |((from, to), bytes): ((&str, &str), u64)| Flow { from: from.to_owned(), to: to.to_owned(), bytes };
    flows.into_iter().filter(|(_, bytes)| *bytes > 0).map(flow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_requests::made;

    fn told(id: &str, user: &str, is_near: bool, host: &str, ranks: &[(u32, u64)]) -> JobRanks {
        let rank = |(rank, sent): &(u32, u64)| RankView {
            rank: *rank,
            host: host.to_owned(),
            sent: *sent,
            ..RankView::default()
        };
        JobRanks { id: id.to_owned(), user: user.to_owned(), is_near, ranks: ranks.iter().map(rank).collect() }
    }

    fn job(hosts: &[&str]) -> JobView {
        let mut job = made::view(4, 0).jobs.remove(0);
        (job.id, job.user, job.size) = ("7-a".to_owned(), "ann".to_owned(), 4);
        job.hosts = hosts.iter().map(|host| ((*host).to_owned(), 2)).collect();
        job
    }

    #[test]
    fn ranks_are_those_of_the_jobs_user_and_of_the_host_that_has_them() {
        let mut job = job(&["one", "two"]);
        let all = [
            told("7-a", "bob", true, "one", &[(3, 0)]),
            told("8-a", "ann", true, "one", &[(2, 0)]),
            told("7-a", "ann", false, "two", &[(0, 0), (1, 0)]),
            told("7-a", "ann", true, "one", &[(0, 0), (900, 0)]),
        ];
        add_ranks(&mut job, &all);
        let seen: Vec<(u32, &str)> = job.ranks.iter().map(|rank| (rank.rank, &*rank.host)).collect();
        assert_eq!(seen, [(0, "one"), (1, "two")]);
    }

    #[test]
    fn what_ranks_have_sent_went_to_the_other_hosts_of_their_job() {
        let mut pair = job(&["one", "two"]);
        add_ranks(&mut pair, &[told("7-a", "ann", true, "one", &[(0, 5), (1, 6)])]);
        let mut three = job(&["one", "two", "six"]);
        add_ranks(&mut three, &[told("7-a", "ann", true, "two", &[(2, 101)])]);
        let alone = job(&["one"]);
        let flow = |from: &str, to: &str, bytes| Flow { from: from.to_owned(), to: to.to_owned(), bytes };
        assert_eq!(traffic(&[alone, pair]), [flow("one", "two", 11)]);
        assert_eq!(traffic(&[three]), [flow("two", "one", 51), flow("two", "six", 50)]);
    }
}
