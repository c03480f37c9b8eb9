//! What a server does: knows what all members say, decides which job gets which slots while it is in charge, and lets
//! those wait for whom there is no room.

use crate::between::{Asker, Errand, Response, Responses};
use crate::daemon::{Daemon, names};
use crate::orders::{Capacity, HeldSlots, JobWish, OrderVerdict, bound};
use crate::report::{self, HostReport, now};
use anyhow::{Result, anyhow, bail};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use weft_cluster::hosts::RankMap;
use weft_database::{Member, PRIORITIES};
use weft_requests::{ClusterReply, Grant, JobName, LoadView, MemberStanding, Placing};

/// The jobs of a member that has been silent for so many seconds are over: the other hosts have given them up.
const GIVEN_UP: Duration = Duration::from_secs(40);
/// Jobs of one user that wait.
const MOST_WAITING: usize = 256;
/// A server that has just begun decides nothing before it has heard of all who live, for so long at most.
const LISTENS: Duration = Duration::from_secs(3);

impl Daemon {
    pub fn capacity(&self, member: &str) -> Capacity {
        let is_alive = self.alive.standing(member).0 == MemberStanding::Alive;
        match self.heard.borrow().get(member).filter(|_| is_alive) {
            None => Capacity { slots: 0, load: 0.0 },
            Some(report) => Capacity { slots: report.slots, load: report.load.load / report.load.cores.max(1) as f64 },
        }
    }

    /// The server that orders jobs: the first that lives. One that nobody has heard yet may still come, at the
    /// beginning.
    pub fn server_in_charge(&self) -> Option<String> {
        let is_new = self.begun.elapsed() < LISTENS;
        let may_be = |server: &&String| match self.alive.standing(server).0 {
            MemberStanding::Alive => true,
            MemberStanding::Unknown => is_new,
            MemberStanding::Suspect | MemberStanding::Dead => false,
        };
        self.cluster().servers.iter().find(may_be).cloned()
    }

    pub fn is_in_charge(&self) -> bool {
        self.server_in_charge().as_ref() == Some(&self.me.member)
    }

    /// Whether enough is known to decide.
    pub fn knows_all(&self) -> bool {
        let heard = self.heard.borrow();
        let is_known = |name: &String| match self.alive.standing(name).0 {
            MemberStanding::Alive => heard.contains_key(name),
            MemberStanding::Unknown => false,
            MemberStanding::Suspect | MemberStanding::Dead => true,
        };
        self.begun.elapsed() >= LISTENS || names(&self.cluster()).iter().all(is_known)
    }

    /// Another server has taken over, or jobs are over of which nobody has said so.
    pub fn look_after_orders(self: &Rc<Self>) {
        if !self.is_in_charge() {
            // Who waits here asks again, elsewhere.
            self.seekers.borrow_mut().all.clear();
            self.orders.borrow_mut().forget_wishes();
        }
        let mut silent = self.silent.borrow_mut();
        for Member { name, .. } in &self.cluster().members {
            match self.alive.standing(name).0 {
                MemberStanding::Alive | MemberStanding::Unknown => drop(silent.remove(name)),
                // It has said goodbye, and its jobs may go on: those who have let them in know.
                MemberStanding::Dead if self.is_in_charge() => self.look_after_jobs_of(name),
                MemberStanding::Dead => {}
                MemberStanding::Suspect => {
                    if silent.entry(name.clone()).or_insert_with(Instant::now).elapsed() > GIVEN_UP {
                        self.give_up(name);
                    }
                }
            }
        }
        drop(silent);
        let in_doubt = self.orders.borrow_mut().in_doubt(now());
        for job in in_doubt.into_iter().filter(|_| self.is_in_charge()) {
            let home = job.parts().map(|(home, _)| home.to_owned());
            self.release_unless_held(job, home.into_iter().collect());
        }
        self.decide();
    }

    /// The jobs of a member are over. If it comes back it has to tell everything again, not only what has changed.
    pub fn give_up(&self, member: &str) {
        self.orders.borrow_mut().bury(member);
        self.heard.borrow_mut().remove(member);
    }

    /// The daemon of a member has ended in order. Its jobs have their slots as long as they are on other members.
    fn look_after_jobs_of(self: &Rc<Self>, member: &str) {
        let jobs = self.orders.borrow().jobs_of(member);
        for (job, mut hosts) in jobs {
            hosts.retain(|host| self.alive.standing(host).0 != MemberStanding::Dead);
            self.release_unless_held(job, hosts);
        }
    }

    /// Gives the room of a job back that none of these members has any more. One that does not answer may have it.
    fn release_unless_held(self: &Rc<Self>, job: JobName, members: Vec<String>) {
        let daemon = Rc::clone(self);
        tokio::task::spawn_local(async move {
            for member in members {
                let errand = Errand::Holds { job: job.clone() };
                if !matches!(daemon.ask_once(&member, errand).await, Ok(Response::Holds(false))) {
                    return;
                }
            }
            daemon.release(&job).await;
        });
    }

    /// Takes a report in.
    pub fn heed(self: &Rc<Self>, mut report: HostReport) -> Response {
        let views = report.jobs.iter_mut().map(|job| &mut job.view);
        let told = views.flat_map(|view| view.hosts.iter_mut().map(|(_, slots)| slots).chain([&mut view.size]));
        told.chain([&mut report.slots]).for_each(bound);
        let version = self.cluster().version;
        if report.load.version < version && report.member != self.me.member {
            self.give_database(report.member.clone(), self.cluster.borrow().1.clone());
        }
        let held = |job: &report::RunningJob| HeldSlots {
            user: job.view.user.clone(),
            partition: job.view.partition.clone(),
            // Who was not placed takes no slots.
            hosts: if job.view.partition.is_some() { job.view.hosts.clone() } else { Vec::new() },
            until: job.until,
        };
        let jobs = report.jobs.iter().map(|job| (job.view.job.clone(), held(job))).collect();
        self.orders.borrow_mut().heed(&report.member, now(), jobs);
        let member = report.member.clone();
        self.turns.forget(&member);
        self.heard.borrow_mut().insert(member, report);
        self.decide();
        Response::Version(version)
    }

    /// A member has nothing new to tell.
    pub fn heed_still(self: &Rc<Self>, member: &str, load: LoadView) -> Response {
        let mut heard = self.heard.borrow_mut();
        let Some(report) = heard.get_mut(member) else {
            return Response::Failed(format!("nothing was heard of '{member}' before"));
        };
        report.load = load;
        let version = self.cluster().version;
        if report.load.version < version && member != self.me.member {
            self.give_database(member.to_owned(), self.cluster.borrow().1.clone());
        }
        Response::Version(version)
    }

    /// Decides what waits here.
    pub fn decide(self: &Rc<Self>) {
        self.decide_orders();
        self.tell_of_turns();
    }

    fn decide_orders(&self) {
        if self.orders.borrow().waiting().is_empty() || !self.is_in_charge() || !self.knows_all() {
            return;
        }
        let cluster = self.cluster();
        let verdicts = self.orders.borrow_mut().decide(&cluster, now(), |member| self.capacity(member));
        for (job, verdict) in verdicts {
            if let Some((_, seeker)) = self.seekers.borrow().all.get(&job) {
                let _ = seeker.send(verdict);
            }
        }
    }

    /// Finds room for a job, as a server.
    pub async fn order(self: &Rc<Self>, asker: Asker, job: JobName, placing: Placing, out: Responses) {
        if !self.is_in_charge() {
            let other = self.server_in_charge().unwrap_or_else(|| "nobody".to_owned());
            return drop(out.send(Response::Failed(format!("server '{other}' orders jobs"))));
        }
        let grant = match self.wish(&asker, &job, &placing) {
            Err(error) => return drop(out.send(Response::Last(ClusterReply::Refused(error.to_string())))),
            Ok((wish, grant)) => {
                // What it had was never heard of: it asks again.
                self.orders.borrow_mut().release(&job);
                self.orders.borrow_mut().enqueue(wish);
                grant
            }
        };
        let (seeker, mut verdicts) = mpsc::unbounded_channel();
        let number = {
            let mut seekers = self.seekers.borrow_mut();
            seekers.last += 1;
            let number = seekers.last;
            seekers.all.insert(job.clone(), (number, seeker));
            number
        };
        let mut seeking = Seeking { daemon: self, job: &job, number, is_served: false };
        self.decide();
        let mut last = None;
        while let Some(verdict) = verdicts.recv().await {
            let reply = match self.with_silent(&grant.partition, verdict) {
                OrderVerdict::Never(reason) => ClusterReply::Refused(reason),
                OrderVerdict::Waits { reason, .. } if !placing.wait => {
                    ClusterReply::Refused(format!("{reason}; with --wait it waits until there is room"))
                }
                OrderVerdict::Waits { before, reason } => {
                    let told = ClusterReply::Waiting { before, reason };
                    if last.as_ref() != Some(&told) && out.send(Response::Reply(told.clone())).is_err() {
                        return;
                    }
                    last = Some(told);
                    continue;
                }
                OrderVerdict::Granted(hosts) => {
                    seeking.is_served = true;
                    self.tell_others(&job);
                    ClusterReply::Placed(Grant { hosts, ..grant })
                }
            };
            let _ = out.send(Response::Last(reply));
            return;
        }
    }

    /// Says which members of its partition are missing, where a job has no room.
    fn with_silent(&self, partition: &str, verdict: OrderVerdict) -> OrderVerdict {
        let OrderVerdict::Waits { before: 0, reason } = verdict else { return verdict };
        let cluster = self.cluster();
        let hosts = cluster.partition(Some(partition)).map(|partition| partition.hosts.iter()).into_iter().flatten();
        let is_missing = |name: &&str| self.alive.standing(name).0 != MemberStanding::Alive;
        let missing: Vec<&str> = hosts.map(|host| host.name.as_str()).filter(is_missing).collect();
        let missing = match &missing[..] {
            [] => String::new(),
            [one] => format!("; '{one}' is silent"),
            [one, others @ ..] => format!("; '{one}' and {} others are silent", others.len()),
        };
        OrderVerdict::Waits { before: 0, reason: reason + &missing }
    }

    /// Lets the other servers know what a job was given.
    fn tell_others(self: &Rc<Self>, job: &JobName) {
        let Some(held) = self.orders.borrow().held_by(job).cloned() else { return };
        for server in self.cluster().servers.iter().filter(|server| **server != self.me.member) {
            let (daemon, server, errand) =
                (Rc::clone(self), server.clone(), Errand::Granted { job: job.clone(), held: held.clone() });
            tokio::task::spawn_local(async move { daemon.ask_once(&server, errand).await.map(drop) });
        }
    }

    /// What a job wants, if it may; and what it will get, but for the hosts.
    pub fn wish(&self, asker: &Asker, job: &JobName, placing: &Placing) -> Result<(JobWish, Grant)> {
        let cluster = self.cluster();
        let partition =
            cluster.partition(placing.partition.as_deref()).map_err(|error| anyhow!("partition {error}"))?;
        let (name, limits) = (&partition.name, &partition.limits);
        if !asker.is_root() && !partition.admits(&asker.user, &asker.groups) {
            let reason = format!("partition '{name}' is not for user '{}'", asker.user);
            bail!("{}", self.askers.refuse(&asker.user, reason));
        }
        let map: RankMap = placing.map.parse()?;
        let ranks = placing.ranks.unwrap_or_else(|| partition.most_ranks());
        if ranks > partition.most_ranks() {
            bail!("partition '{name}': {ranks} ranks, but a job may have {} there", partition.most_ranks());
        }
        let priority = placing.priority.unwrap_or(partition.priority);
        if !PRIORITIES.contains(&priority) {
            bail!("priority {priority}: accepted are {} to {}", PRIORITIES.start(), PRIORITIES.end());
        }
        if self.orders.borrow().waiting().iter().filter(|wish| wish.user == asker.user).count() >= MOST_WAITING {
            bail!("{MOST_WAITING} jobs of user '{}' wait already", asker.user);
        }
        if priority > limits.highest {
            bail!("partition '{name}': priority {priority}, and the highest is {}", limits.highest);
        }
        let seconds = placing.seconds.or(limits.time.map(|time| time.as_secs()));
        if let (Some(seconds), Some(most)) = (seconds, limits.time.map(|time| time.as_secs()))
            && seconds > most
        {
            bail!("partition '{name}': {seconds} s, and a job may take {most} s there");
        }
        let grant = Grant {
            job: job.clone(),
            partition: name.clone(),
            hosts: Vec::new(),
            device: partition.device.clone(),
            priority,
            seconds,
        };
        let (job, user, partition) = (job.clone(), asker.user.clone(), name.clone());
        let program = placing.about.program.clone();
        Ok((JobWish { job, user, program, partition, ranks, map, seconds, since: placing.about.since }, grant))
    }
}

/// Takes a job from the queue again when nobody waits for it any more.
struct Seeking<'a> {
    daemon: &'a Daemon,
    job: &'a JobName,
    number: u64,
    is_served: bool,
}

impl Drop for Seeking<'_> {
    fn drop(&mut self) {
        let mut seekers = self.daemon.seekers.borrow_mut();
        // The member may ask again for the same job, by another connection, before this one is known to be broken.
        if seekers.all.get(self.job).is_none_or(|(number, _)| *number != self.number) {
            return;
        }
        seekers.all.remove(self.job);
        if !self.is_served {
            let mut orders = self.daemon.orders.borrow_mut();
            orders.forget_wish(self.job);
            orders.release(self.job);
        }
    }
}
