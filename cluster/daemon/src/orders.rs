//! Which job gets which slots, and which waits: what a server decides. Pure.
//!
//! Jobs are served in the order in which they asked. One that does not fit holds back all that want members of its
//! partition, but for those that say how long they take and end before it could begin (backfill): that is known when
//! the jobs that run have said how long they take. What is reserved for others counts as taken ([`KeptSlots`]).
//!
//! A server does not own what it knows. Each member tells again and again which jobs it has started ([`Orders::heed`]),
//! so one that takes over knows soon what is used. A grant is held until its member has told of it and later does not.

use crate::reserved::KeptSlots;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use weft_cluster::hosts::{RankMap, SlotHost, spread};
use weft_database::{Cluster, Partition, show_moment};
use weft_requests::JobName;

/// A grant that its member has never told of ends after so many seconds, and after so many it is asked.
const UNCONFIRMED: u64 = 20;
const DOUBTED: u64 = 2;
/// What nobody has said.
const NEVER: u64 = u64::MAX;

/// Slots that a job or a member has at most: what members say is added up.
const MOST_SLOTS: usize = 1 << 32;

/// Takes the number of slots that somebody has told as what it can be.
pub fn bound(slots: &mut usize) {
    *slots = (*slots).min(MOST_SLOTS);
}

/// What a job has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldSlots {
    pub user: String,
    pub partition: Option<String>,
    pub hosts: Vec<(String, usize)>,
    /// When it ends at the latest, in seconds since 1970.
    pub until: Option<u64>,
}

/// A job that wants room.
#[derive(Clone, Debug, PartialEq)]
pub struct JobWish {
    pub job: JobName,
    pub user: String,
    pub program: String,
    pub partition: String,
    pub ranks: usize,
    pub map: RankMap,
    /// How long it takes at most.
    pub seconds: Option<u64>,
    /// When it asked: who waits with a member that a new server does not know yet keeps its place.
    pub since: u64,
}

/// What a member can take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// What it takes; 0 where nothing is to be placed.
    pub slots: usize,
    /// Processes that run for each of its cores.
    pub load: f64,
}

/// Why a job does not begin.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderVerdict {
    Granted(Vec<(String, usize)>),
    Waits {
        before: usize,
        reason: String,
    },
    /// It can never begin.
    Never(String),
}

struct KnownJob {
    held: HeldSlots,
    /// Whether its member has told of it.
    is_confirmed: bool,
    granted: u64,
}

#[derive(Default)]
pub struct Orders {
    held: BTreeMap<JobName, KnownJob>,
    waiting: Vec<JobWish>,
}

impl Orders {
    /// Adds a job behind those that asked before it. The same job takes the place of what it wished before.
    pub fn enqueue(&mut self, wish: JobWish) {
        self.forget_wish(&wish.job);
        let at = self.waiting.partition_point(|other| (other.since, &other.job) <= (wish.since, &wish.job));
        self.waiting.insert(at, wish);
    }

    /// Nobody waits for this job any more.
    pub fn forget_wish(&mut self, job: &JobName) {
        self.waiting.retain(|wish| wish.job != *job);
    }

    /// Nobody waits here any more.
    pub fn forget_wishes(&mut self) {
        self.waiting.clear();
    }

    /// A job is over.
    pub fn release(&mut self, job: &JobName) {
        self.held.remove(job);
    }

    /// Another server has given a job this, of which its member has not told yet.
    pub fn note(&mut self, job: JobName, mut held: HeldSlots, now: u64) {
        held.hosts.iter_mut().for_each(|(_, slots)| bound(slots));
        self.held.entry(job).or_insert(KnownJob { held, is_confirmed: false, granted: now });
    }

    /// What a job has that was granted something.
    pub fn held_by(&self, job: &JobName) -> Option<&HeldSlots> {
        self.held.get(job).map(|known| &known.held)
    }

    /// What a member says of the jobs that it has started.
    pub fn heed(&mut self, member: &str, now: u64, jobs: Vec<(JobName, HeldSlots)>) {
        let is_of = |job: &JobName| job.parts().is_some_and(|(home, _)| home == member);
        let told: HashMap<JobName, HeldSlots> = jobs.into_iter().filter(|(job, _)| is_of(job)).collect();
        self.held.retain(|job, known| {
            let is_new = !known.is_confirmed && now < known.granted + UNCONFIRMED;
            !is_of(job) || told.contains_key(job) || is_new
        });
        for (job, held) in told {
            let granted = self.held.get(&job).map_or(now, |known| known.granted);
            self.held.insert(job, KnownJob { held, is_confirmed: true, granted });
        }
    }

    /// Grants of which their members should have told by now. Those of which they never did are taken back.
    pub fn in_doubt(&mut self, now: u64) -> Vec<JobName> {
        self.held.retain(|_, known| known.is_confirmed || now < known.granted + UNCONFIRMED);
        let doubted = self.held.iter().filter(|(_, known)| !known.is_confirmed && now >= known.granted + DOUBTED);
        doubted.map(|(job, _)| job.clone()).collect()
    }

    /// The jobs that a member has started, with the other members on which they are.
    pub fn jobs_of(&self, member: &str) -> Vec<(JobName, Vec<String>)> {
        let of = self.held.iter().filter(|(job, _)| job.parts().is_some_and(|(home, _)| home == member));
        let others =
            |held: &HeldSlots| held.hosts.iter().map(|(name, _)| name.clone()).filter(|name| name != member).collect();
        of.map(|(job, known)| (job.clone(), others(&known.held))).collect()
    }

    /// A member has been silent for long: the jobs that it has started are over.
    pub fn bury(&mut self, member: &str) {
        self.held.retain(|job, _| job.parts().is_none_or(|(home, _)| home != member));
    }

    /// The jobs in these partitions with what they have, in the order of their numbers.
    pub fn held_where(&self, is_meant: impl Fn(&str) -> bool) -> Vec<(JobName, Vec<(String, usize)>)> {
        let all = self.held.iter().filter(|(_, known)| known.held.partition.as_deref().is_some_and(&is_meant));
        let mut all: Vec<_> = all.map(|(job, known)| (job.clone(), known.held.hosts.clone())).collect();
        all.sort_by_key(|(job, _)| job.parts().map(|(_, number)| number));
        all
    }

    pub fn waiting(&self) -> &[JobWish] {
        &self.waiting
    }

    /// Slots of a member that jobs have.
    pub fn used(&self, member: &str) -> usize {
        self.held.values().map(|known| known.held.slots_on(member)).sum()
    }

    /// Decides for all who wait, in their order. Those who are granted what they want, or never can be, wait no more.
    pub fn decide(
        &mut self,
        cluster: &Cluster,
        now: u64,
        capacity: impl Fn(&str) -> Capacity,
    ) -> Vec<(JobName, OrderVerdict)> {
        let mut verdicts = Vec::new();
        let mut before = 0;
        // For members that are wanted by somebody further in front: what begins there must end before this.
        let mut limits: HashMap<String, u64> = HashMap::new();
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|wish| {
            let verdict = match cluster.partition(Some(&wish.partition)) {
                Err(reason) => OrderVerdict::Never(format!("partition {reason}")),
                Ok(partition) => {
                    let kept = KeptSlots::new(&wish.user, &cluster.reservations, self.all_held());
                    let room = WishRoom { partition, kept, now };
                    self.decide_one(&room, wish, &capacity, &mut limits, before)
                }
            };
            if let OrderVerdict::Granted(hosts) = &verdict {
                let held = HeldSlots {
                    user: wish.user.clone(),
                    partition: Some(wish.partition.clone()),
                    hosts: hosts.clone(),
                    until: wish.seconds.map(|seconds| now.saturating_add(seconds)),
                };
                self.held.insert(wish.job.clone(), KnownJob { held, is_confirmed: false, granted: now });
            }
            let still = matches!(verdict, OrderVerdict::Waits { .. });
            before += usize::from(still);
            verdicts.push((wish.job.clone(), verdict));
            still
        });
        self.waiting = waiting;
        verdicts
    }

    fn decide_one(
        &self,
        room: &WishRoom<'_>,
        wish: &JobWish,
        capacity: &impl Fn(&str) -> Capacity,
        limits: &mut HashMap<String, u64>,
        before: usize,
    ) -> OrderVerdict {
        let WishRoom { partition, kept, now } = room;
        if let Err(error) = spread(&partition.open_hosts(), wish.map, wish.ranks) {
            return OrderVerdict::Never(format!("partition '{}': {error}", partition.name));
        }
        let end = wish.end(*now);
        let may_use = |name: &str| limits.get(name).is_none_or(|limit| end <= *limit);
        let left = |host: &SlotHost| self.free(partition, wish, host, capacity, kept.on(&host.name, *now, end));
        let free = |host: &SlotHost| if may_use(&host.name) { left(host) } else { 0 };
        let free: Vec<SlotHost> =
            partition.hosts.iter().map(|host| SlotHost { name: host.name.clone(), slots: free(host) }).collect();
        let home = wish.job.parts().map_or("", |(home, _)| home);
        let rank = |name: &str| (!kept.are_for_user(name, *now), name != home);
        if let Some(hosts) = place(free.clone(), wish, rank, |name| capacity(name).load) {
            return OrderVerdict::Granted(hosts);
        }
        let can_begin = self.can_begin(room, wish);
        for host in &partition.hosts {
            let limit = limits.entry(host.name.clone()).or_insert(NEVER);
            // Nothing goes before it whose end is not known, where it is not known when it can begin itself.
            *limit = (*limit).min(can_begin.unwrap_or(*now));
        }
        let free: usize = free.iter().map(|host| host.slots).sum();
        let names = partition.hosts.iter().map(|host| host.name.as_str());
        let besides = kept
            .named(names, *now, end)
            .map(|one| format!(" that reservation '{}' leaves until {}", one.name, show_moment(one.until)));
        let reason = match before {
            0 => format!(
                "{} rank{}, and partition '{}' has {free} free slot{}{}",
                wish.ranks,
                plural(wish.ranks),
                partition.name,
                plural(free),
                besides.unwrap_or_default()
            ),
            _ => format!("{before} before it"),
        };
        OrderVerdict::Waits { before, reason }
    }

    /// Slots of a host that a job may have now.
    fn free(
        &self,
        partition: &Partition,
        wish: &JobWish,
        host: &SlotHost,
        capacity: &impl Fn(&str) -> Capacity,
        kept: usize,
    ) -> usize {
        let name = &host.name;
        let others = || self.held.values().map(|known| &known.held).filter(|held| held.slots_on(name) > 0);
        if partition.limits.exclusive && others().any(|held| held.user != wish.user) {
            return 0;
        }
        let free = capacity(name).slots.min(host.slots).saturating_sub(self.used(name) + kept);
        let Some(most) = partition.limits.processes else { return free };
        let here = others().filter(|held| held.partition.as_deref() == Some(&*partition.name));
        free.min(most.saturating_sub(here.map(|held| held.slots_on(name)).sum()))
    }

    /// What jobs have: user, member, slots.
    fn all_held(&self) -> impl Iterator<Item = (&str, &str, usize)> + Clone {
        let all = self.held.values().map(|known| &known.held);
        all.flat_map(|held| held.hosts.iter().map(|(name, slots)| (held.user.as_str(), name.as_str(), *slots)))
    }

    /// When enough of the jobs that run, and of the reservations for others, have ended, if they say when that is.
    fn can_begin(&self, room: &WishRoom<'_>, wish: &JobWish) -> Option<u64> {
        let WishRoom { partition, kept, now } = room;
        let slots = |name: &str| partition.hosts.iter().find(|host| host.name == name).map_or(0, |host| host.slots);
        let mut free: HashMap<&str, usize> = HashMap::new();
        for host in &partition.hosts {
            free.insert(&host.name, slots(&host.name).saturating_sub(self.used(&host.name)));
        }
        let ends = self.held.values().map(|known| (known.held.until.unwrap_or(NEVER), Some(&known.held)));
        let mut ends: Vec<(u64, Option<&HeldSlots>)> = ends.chain(kept.ends(*now).map(|end| (end, None))).collect();
        ends.sort_by_key(|(end, _)| *end);
        for (end, held) in ends {
            for (name, count) in held.iter().flat_map(|held| &held.hosts) {
                if let Some(free) = free.get_mut(&**name) {
                    *free += count;
                }
            }
            let from = end.max(*now);
            let left = |name: &str| free[name].saturating_sub(kept.on(name, from, wish.end(from)));
            let hosts =
                partition.hosts.iter().map(|host| SlotHost { name: host.name.clone(), slots: left(&host.name) });
            let hosts: Vec<SlotHost> = hosts.filter(|host| host.slots >= least_slots(wish.map)).collect();
            if spread(&hosts, wish.map, wish.ranks).is_ok() {
                return (end != NEVER).then_some(from);
            }
        }
        None
    }
}

/// The end of the word for so many.
fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Where a job may run, and what is kept there for others.
struct WishRoom<'a> {
    partition: &'a Partition,
    kept: KeptSlots<'a>,
    now: u64,
}

impl JobWish {
    /// When it ends at the latest that begins then.
    fn end(&self, begin: u64) -> u64 {
        self.seconds.map_or(NEVER, |seconds| begin.saturating_add(seconds))
    }
}

impl HeldSlots {
    fn slots_on(&self, member: &str) -> usize {
        self.hosts.iter().filter(|(name, _)| name == member).map(|(_, slots)| slots).sum()
    }
}

/// What a host must have free to be of use.
fn least_slots(map: RankMap) -> usize {
    if let RankMap::PerHost(count) = map { count.max(1) } else { 1 }
}

/// The members of a job with its slots there, if there are enough. A single member that has room for all goes before
/// several, then what is reserved for the user and the launcher's before others (`rank`), and the one with less to do
/// before one with more.
fn place(
    mut free: Vec<SlotHost>,
    wish: &JobWish,
    rank: impl Fn(&str) -> (bool, bool),
    load: impl Fn(&str) -> f64,
) -> Option<Vec<(String, usize)>> {
    free.retain(|host| host.slots >= least_slots(wish.map));
    if wish.map == RankMap::Slot {
        free.sort_by(|one, other| {
            let key = |host: &SlotHost| (host.slots < wish.ranks, rank(&host.name));
            key(one).cmp(&key(other)).then(load(&one.name).total_cmp(&load(&other.name)))
        });
    }
    let places = spread(&free, wish.map, wish.ranks).ok()?;
    let mut slots = vec![0; free.len()];
    places.into_iter().for_each(|host| slots[host] += 1);
    Some(free.into_iter().map(|host| host.name).zip(slots).filter(|(_, slots)| *slots > 0).collect())
}

#[cfg(test)]
#[path = "orders/tests.rs"]
mod tests;
