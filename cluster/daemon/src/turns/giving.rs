//! Turns as daemons give them: told by the server in charge, timed and passed on to the slicer by each host.

use super::slicer::{self, TurnOrders, TurningJob};
use super::table::{HostTurns, tables};
use super::tree::ProcessMark;
use crate::between::{Errand, Response};
use crate::daemon::Daemon;
use crate::launcher::{run_before_jobs, start_of};
use std::collections::{BTreeSet, HashMap};
use std::process::Stdio;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, Command};
use tokio::sync::watch;
use weft_database::{SLICES_MS, SchedulingPolicy};
use weft_requests::{JobName, MemberStanding};

/// How long a table holds, and how often it is told anew.
const HOLDS: Duration = Duration::from_secs(60);
const RENEWED: Duration = Duration::from_secs(15);
/// How often the time is asked for at once: the shortest way there and back says it best.
const ASKED: usize = 8;
/// Between a slicer that has ended and the next one.
const AGAIN: Duration = Duration::from_secs(1);

impl Daemon {
    /// Whether jobs of a partition take turns.
    pub fn takes_turns(&self, partition: Option<&str>) -> bool {
        let cluster = self.cluster();
        let policy = partition.and_then(|name| cluster.partition(Some(name)).ok()).map(|partition| partition.policy);
        policy == Some(SchedulingPolicy::Gang)
    }

    /// Tells hosts of the turns of their jobs, as the server in charge, where they do not know it.
    pub fn tell_of_turns(self: &Rc<Self>) {
        if !self.is_in_charge() || !self.knows_all() {
            return self.turns.told.borrow_mut().clear();
        }
        let cluster = self.cluster();
        let mut wanted = HashMap::new();
        if cluster.partitions.iter().any(|partition| partition.policy == SchedulingPolicy::Gang) {
            let jobs = self.orders.borrow().held_where(|partition| self.takes_turns(Some(partition)));
            wanted = tables(&jobs, cluster.slice_ms as u64, |host| self.cores_of(host));
        }
        let of_told = self.turns.told.borrow().keys().cloned().collect::<BTreeSet<_>>();
        for member in of_told.into_iter().chain(wanted.keys().cloned()).collect::<BTreeSet<_>>() {
            let turns = wanted.remove(&member).unwrap_or_default();
            let is_there = self.alive.standing(&member).0 == MemberStanding::Alive;
            let is_linked =
                member == self.me.member || self.links.borrow().get(&member).is_some_and(|link| link.is_open());
            let mut told = self.turns.told.borrow_mut();
            let knows =
                told.get(&member).is_some_and(|(last, at)| *last == turns && at.elapsed() < RENEWED && is_linked);
            if !is_there || knows {
                continue;
            }
            told.insert(member.clone(), (turns.clone(), Instant::now()));
            drop(told);
            self.tell_member_of_turns(member, turns);
        }
    }

    fn tell_member_of_turns(self: &Rc<Self>, member: String, turns: HostTurns) {
        let daemon = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let errand = Errand::Turns { server: daemon.me.member.clone(), turns: turns.clone() };
            let is_told = daemon.ask_once(&member, errand).await.is_ok();
            // It is told again where that failed, and need not be where it has nothing more.
            if !is_told || turns.jobs.is_empty() {
                daemon.turns.told.borrow_mut().retain(|other, (last, _)| *other != member || *last != turns);
            }
        });
    }

    fn cores_of(&self, host: &str) -> usize {
        let heard = || self.heard.borrow().get(host).map(|report| report.load.cores);
        let said = self.cluster().member(host).and_then(|member| member.cores);
        said.or_else(heard).unwrap_or(1).max(1)
    }

    /// The jobs of this host and their rows, from now on.
    pub fn heed_turns(self: &Rc<Self>, server: String, turns: HostTurns) {
        *self.turns.here.borrow_mut() = Some((turns, server.clone(), Instant::now()));
        self.give_turns();
        let daemon = Rc::clone(self);
        tokio::task::spawn_local(async move {
            if let Some(offset_ns) = daemon.time_of(&server).await {
                *daemon.turns.offset_ns.borrow_mut() = Some((server, offset_ns));
                daemon.give_turns();
            }
        });
    }

    /// The time of a member, from ours. `None` where it does not say.
    async fn time_of(self: &Rc<Self>, member: &str) -> Option<i64> {
        let mut best: Option<(u64, i64)> = None;
        for _ in 0..ASKED {
            let asked = weft_kernel::now();
            let Ok(Response::Clock(theirs)) = self.ask_once(member, Errand::Clock).await else { break };
            let way = weft_kernel::now().saturating_sub(asked);
            let offset = theirs.wrapping_sub(asked + way / 2) as i64;
            best = best.into_iter().chain([(way, offset)]).min_by_key(|(way, _)| *way);
        }
        if member == self.me.member { Some(0) } else { best.map(|(_, offset)| offset) }
    }

    /// A door of a job is open.
    pub fn note_door(self: &Rc<Self>, job: &JobName, pid: i32) {
        let Some(began) = start_of(pid) else { return };
        self.turns.doors.borrow_mut().entry(job.clone()).or_default().push(ProcessMark { pid, began });
        self.keep(|records| records.note_door(job, pid, began));
        self.give_turns();
    }

    pub fn forget_door(self: &Rc<Self>, job: &JobName, pid: i32) {
        let mut doors = self.turns.doors.borrow_mut();
        if let Some(of_job) = doors.get_mut(job) {
            of_job.retain(|door| door.pid != pid);
            doors.retain(|_, of_job| !of_job.is_empty());
            drop(doors);
            self.keep(|records| records.forget_door(pid));
        }
    }

    /// Takes back what a slicer has left behind that was killed together with the daemon, and finds the doors again.
    pub fn find_turns_again(&self) -> anyhow::Result<()> {
        for (job, pid, began) in self.records.doors()? {
            if start_of(pid) == Some(began) {
                self.turns.doors.borrow_mut().entry(job).or_default().push(ProcessMark { pid, began });
            } else {
                self.records.forget_door(pid)?;
            }
        }
        let mut roots: Vec<ProcessMark> = self.turns.doors.borrow().values().flatten().copied().collect();
        roots.extend(self.home.launchers(|view| self.takes_turns(view.partition.as_deref())));
        slicer::take_back(&[TurningJob { row: 0, roots }]);
        Ok(())
    }

    /// Lets the slicer know what there is to do now.
    pub fn give_turns(self: &Rc<Self>) {
        let Some(orders) = self.turn_orders() else { return };
        if let Some(slicer) = &*self.turns.slicer.borrow() {
            return drop(slicer.send(orders));
        }
        if orders.jobs.is_empty() {
            return;
        }
        // Where jobs come before all others, who ends them must come before jobs.
        if let Err(error) = run_before_jobs() {
            return self.say_once(format!("the policy gang is not applied: {error}"));
        }
        let (sender, told) = watch::channel(orders);
        *self.turns.slicer.borrow_mut() = Some(sender);
        tokio::task::spawn_local(Rc::clone(self).keep_slicer(told));
    }

    /// What the slicer is told; none where nobody has said anything or the time is not known.
    fn turn_orders(&self) -> Option<TurnOrders> {
        let here = self.turns.here.borrow();
        let (turns, server, at) = here.as_ref()?;
        let offset_ns =
            self.turns.offset_ns.borrow().as_ref().filter(|(of, _)| of == server).map(|(_, offset)| *offset)?;
        let doors = self.turns.doors.borrow();
        let jobs = turns.jobs.iter().filter_map(|(job, row)| {
            let of_launcher = self.home.launchers(|view| view.job == *job);
            let roots: Vec<ProcessMark> =
                of_launcher.into_iter().chain(doors.get(job).into_iter().flatten().copied()).collect();
            (!roots.is_empty()).then_some(TurningJob { row: *row, roots })
        });
        let left = HOLDS.saturating_sub(at.elapsed());
        let until_ns = weft_kernel::now() + left.as_nanos() as u64;
        let slice_ns = turns.slice_ms.clamp(*SLICES_MS.start() as u64, *SLICES_MS.end() as u64) * 1_000_000;
        Some(TurnOrders { rows: turns.rows, slice_ns, offset_ns, until_ns, jobs: jobs.collect() })
    }

    /// Has a slicer at work for as long as the daemon lives.
    async fn keep_slicer(self: Rc<Self>, mut told: watch::Receiver<TurnOrders>) {
        loop {
            if let Err(error) = run_slicer(&mut told).await {
                self.say_once(format!("who gives jobs their turns has ended: {error:#}"));
            }
            slicer::take_back(&told.borrow().jobs);
            tokio::time::sleep(AGAIN).await;
            told.mark_changed();
        }
    }
}

async fn run_slicer(told: &mut watch::Receiver<TurnOrders>) -> anyhow::Result<()> {
    let mut command = Command::new("/proc/self/exe");
    command.arg("turns").env_clear().stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::inherit());
    let mut child = command.spawn()?;
    let input = child.stdin.take().ok_or_else(|| anyhow::anyhow!("it has no input"))?;
    tokio::select! {
        status = child.wait() => anyhow::bail!("{}", status?),
        fed = feed(input, told) => fed,
    }
}

/// Tells it what there is to do whenever that changes.
async fn feed(mut input: ChildStdin, told: &mut watch::Receiver<TurnOrders>) -> anyhow::Result<()> {
    loop {
        let mut line = serde_json::to_vec(&*told.borrow_and_update())?;
        line.push(b'\n');
        input.write_all(&line).await?;
        told.changed().await?;
    }
}
