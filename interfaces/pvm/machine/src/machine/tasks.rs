//! Tasks: enrolling, meeting, ending.

use super::hosts::FIRST;
use super::meetings::JobBlock;
use super::{ClientNumber, VirtualMachine};
use crate::code::{self, notify};
use crate::frame::{Answer, ByteString, Destination, Event, Identity, Introduction, Order, TaskInfo};
use crate::tid;
use std::collections::{BTreeMap, HashMap};

/// Flags that `pvm_tasks` tells: it is connected, and the machine has started it.
const CONNECTED: i32 = 0x4;
const STARTED: i32 = 0x80;

/// Most ranks of a job that get numbers together.
pub const MOST_RANKS: u32 = 4096;
/// So many jobs are remembered of which nobody is there: ranks of theirs may still come.
const DESERTED_JOBS: usize = 16;

#[derive(Default)]
pub struct TaskRecord {
    /// 0: none.
    pub parent: i32,
    pub client: Option<ClientNumber>,
    /// 0 until it is known.
    pub pid: i32,
    pub name: ByteString,
    pub card: Vec<u64>,
    /// It shows a card when it is asked.
    pub has_card: bool,
    /// Its card leads there from other hosts, too.
    pub is_wide: bool,
    pub context: i32,
    pub siblings: Vec<i32>,
    pub prints_to: Destination,
    /// What it has printed of a line for the log.
    pub line: Vec<u8>,
    /// More may come that it has printed.
    pub is_open: bool,
    /// The machine has started its process, which has not ended.
    pub is_running: bool,
    /// It is a task no more; what it has printed may still come.
    pub has_ended: bool,
    /// Who has asked for its card before there was one.
    pub awaited_by: Vec<i32>,
}

impl TaskRecord {
    /// Whether there is a card of this task, which has that number, with which another one reaches it.
    fn is_shown_to(&self, number: i32, other: i32) -> bool {
        !self.card.is_empty() && (self.is_wide || tid::host(number) == tid::host(other))
    }
}

#[derive(Default)]
pub struct Tasks {
    all: BTreeMap<i32, TaskRecord>,
    /// By host: the last number that was given.
    last: HashMap<u32, i32>,
    /// In the order in which they came.
    jobs: Vec<MachineJob>,
}

struct MachineJob {
    job: u64,
    /// The numbers of its ranks.
    tids: Vec<i32>,
    /// Memory that they share, for their groups.
    block: Option<u32>,
}

impl Tasks {
    /// A new task on a host; `None` when a host has no numbers left.
    pub fn add(&mut self, host: u32, task: TaskRecord) -> Option<i32> {
        let last = self.last.entry(host).or_default();
        for _ in 0..tid::LOCAL_MASK {
            *last = if *last == tid::LOCAL_MASK { 1 } else { *last + 1 };
            let number = tid::task(host, *last);
            if let std::collections::btree_map::Entry::Vacant(place) = self.all.entry(number) {
                place.insert(task);
                return Some(number);
            }
        }
        None
    }

    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.all.len()
    }

    pub fn is_there(&self, tid: i32) -> bool {
        self.all.get(&tid).is_some_and(|task| !task.has_ended)
    }

    pub fn get_mut(&mut self, tid: i32) -> Option<&mut TaskRecord> {
        self.all.get_mut(&tid)
    }

    /// A task that the daemon of this host may speak of.
    pub fn on_host_mut(&mut self, host: u32, tid: i32) -> Option<&mut TaskRecord> {
        (tid::host(tid) == host).then(|| self.all.get_mut(&tid)).flatten()
    }

    pub fn client(&self, tid: i32) -> Option<ClientNumber> {
        self.all.get(&tid)?.client
    }

    /// The host of a task that is there.
    pub fn host(&self, tid: i32) -> Option<u32> {
        self.is_there(tid).then(|| tid::host(tid))
    }

    pub fn status(&self, tid: i32) -> i32 {
        if self.is_there(tid) { code::OK } else { code::NO_TASK }
    }

    pub fn any_process(&self) -> bool {
        self.all.values().any(|task| task.is_running)
    }

    /// Processes of tasks that the machine has not started, with their hosts.
    pub fn others(&self) -> Vec<(u32, i32)> {
        let all = self.all.iter().filter(|(_, task)| task.client.is_some() && !task.is_running && task.pid > 1);
        all.map(|(number, task)| (tid::host(*number), task.pid)).collect()
    }

    /// Forgets one of which nothing more will come.
    pub fn drop_ended(&mut self, tid: i32) {
        if self.all.get(&tid).is_some_and(|task| task.has_ended && !task.is_open && !task.is_running) {
            self.all.remove(&tid);
        }
    }

    pub fn of_host(&self, host: u32) -> Vec<i32> {
        self.all.keys().copied().filter(|number| tid::host(*number) == host).collect()
    }

    fn rank(&mut self, host: u32, who: &Introduction) -> Option<i32> {
        if who.job == 0 || !(2..=MOST_RANKS).contains(&who.size) || who.rank >= who.size {
            return None;
        }
        if !self.is_job(who.job) {
            self.add_job(who.job, &vec![host; who.size as usize])?;
        }
        let number = *self.jobs.iter().find(|of| of.job == who.job)?.tids.get(who.rank as usize)?;
        (self.is_free(number) && tid::host(number) == host).then_some(number)
    }

    /// A job whose ranks are on these hosts; `None` when one of those has no numbers left.
    pub fn add_job(&mut self, job: u64, hosts: &[u32]) -> Option<()> {
        self.forget_jobs();
        let tids: Option<Vec<i32>> = hosts.iter().map(|host| self.add(*host, TaskRecord::default())).collect();
        let tids = tids?;
        for number in &tids {
            self.all.get_mut(number)?.siblings = tids.clone();
        }
        self.jobs.push(MachineJob { job, tids, block: None });
        Some(())
    }

    /// Forgets jobs of which all ranks have ended, and the oldest of those of which nobody is there.
    fn forget_jobs(&mut self) {
        let all = &mut self.all;
        self.jobs.retain(|job| job.tids.iter().any(|tid| all.contains_key(tid)));
        let is_deserted = |tids: &[i32]| tids.iter().all(|tid| all.get(tid).is_none_or(|task| task.client.is_none()));
        let deserted = self.jobs.iter().filter(|job| is_deserted(&job.tids)).map(|job| job.job);
        let mut old: Vec<u64> = deserted.collect();
        old.truncate(old.len().saturating_sub(DESERTED_JOBS));
        let is_old = |job: &mut MachineJob| old.contains(&job.job);
        for number in self.jobs.extract_if(.., is_old).flat_map(|job| job.tids) {
            all.remove(&number);
        }
    }

    pub fn is_job(&self, job: u64) -> bool {
        self.jobs.iter().any(|of| of.job == job)
    }

    /// A rank offers memory of its job: the first block is taken.
    pub fn offer(&mut self, tid: i32, block: u32) {
        if let Some(job) = self.jobs.iter_mut().find(|job| job.tids.contains(&tid)) {
            job.block.get_or_insert(block);
        }
    }

    /// Memory that all of these share. What daemons of other hosts are told comes late there, so those have none.
    pub fn shared_by(&self, tids: &[i32]) -> Option<JobBlock> {
        let job = self.jobs.iter().find(|job| tids.iter().all(|tid| job.tids.contains(tid)))?;
        let are_first = tids.iter().all(|tid| tid::host(*tid) == FIRST);
        job.block.filter(|_| are_first).map(|block| JobBlock { job: job.job, block })
    }

    /// Whether somebody may enrol as this task.
    fn is_free(&self, tid: i32) -> bool {
        self.all.get(&tid).is_some_and(|task| !task.has_ended && task.client.is_none())
    }

    fn info(&self, number: i32) -> Option<TaskInfo> {
        let task = self.all.get(&number).filter(|task| !task.has_ended && task.pid != 0)?;
        let flags = if task.client.is_some() { CONNECTED } else { 0 } | if task.is_running { STARTED } else { 0 };
        let daemon = tid::task(tid::host(number), 0);
        Some(TaskInfo { tid: number, parent: task.parent, daemon, flags, name: task.name.clone(), pid: task.pid })
    }
}

impl VirtualMachine {
    pub(super) fn enrol(&mut self, client: ClientNumber, who: Introduction) {
        if self.spawning.is_pending(who.started_as) {
            return self.spawning.defer(client, who);
        }
        if who.hosts.len() > 1 && !self.tasks.is_job(who.job) {
            return self.gather(client, who);
        }
        let host = client.0;
        let started =
            (tid::host(who.started_as) == host && self.tasks.is_free(who.started_as)).then_some(who.started_as);
        let number =
            started.or_else(|| self.tasks.rank(host, &who)).or_else(|| self.tasks.add(host, TaskRecord::default()));
        let Some(number) = number else { return self.answer_code(client, code::OUT_OF_RES) };
        let Some(task) = self.tasks.get_mut(number) else { return };
        task.client = Some(client);
        if task.pid == 0 || started.is_none() {
            task.pid = who.pid;
        }
        task.has_card = !who.card.is_empty() || who.job != 0;
        task.card = who.card;
        if !who.name.0.is_empty() && task.name.0.is_empty() {
            task.name = who.name;
        }
        if task.siblings.is_empty() {
            task.siblings = vec![number];
        }
        let identity = Identity {
            tid: number,
            parent: task.parent,
            context: task.context,
            siblings: task.siblings.clone(),
            prints_to: task.prints_to.clone(),
            is_wide: task.has_card && self.hosts.are_several(),
            ends_with: self.ends_with.clone(),
        };
        self.clients.insert(client, Some(number));
        self.had_tasks = true;
        self.answer(client, Answer::Enrolled { identity });
        self.introduce_awaited(number);
    }

    /// Introduces those that wait for a card which this one is good for, and asks for another one for the others.
    fn introduce_awaited(&mut self, number: i32) {
        let Some(task) = self.tasks.get_mut(number) else { return };
        let (served, left): (Vec<i32>, Vec<i32>) =
            std::mem::take(&mut task.awaited_by).into_iter().partition(|other| task.is_shown_to(number, *other));
        let is_wide = left.iter().any(|other| tid::host(*other) != tid::host(number));
        let is_wanted = !left.is_empty();
        task.awaited_by = left;
        served.into_iter().for_each(|other| self.introduce(number, other));
        if is_wanted {
            self.tell_task(number, Event::WantCard { is_wide });
        }
    }

    /// Tells each of two tasks the card of the other.
    fn introduce(&mut self, one: i32, other: i32) {
        for (to, of) in [(one, other), (other, one)] {
            let Some(card) = self.tasks.get_mut(of).map(|task| task.card.clone()) else { continue };
            if !card.is_empty() {
                self.tell_task(to, Event::Met { tid: of, card });
            }
        }
    }

    /// Tells a task the card of another one, and that one the card of the first.
    pub(super) fn meet(&mut self, client: ClientNumber, tid: i32, other: i32) {
        let mine = self.tasks.get_mut(tid).map(|task| task.card.clone()).unwrap_or_default();
        let them = self.tasks.get_mut(other).filter(|task| !task.has_ended);
        let (code, card) = match them {
            None => (code::NO_TASK, Vec::new()),
            Some(task) if task.client.is_none() => {
                task.awaited_by.push(tid);
                (code::OK, Vec::new())
            }
            // Nobody sends to a console.
            Some(task) if !task.has_card => (code::NO_TASK, Vec::new()),
            Some(task) if !task.is_shown_to(other, tid) => {
                task.awaited_by.push(tid);
                self.tell_task(other, Event::WantCard { is_wide: tid::host(tid) != tid::host(other) });
                (code::OK, Vec::new())
            }
            Some(task) => (code::OK, task.card.clone()),
        };
        if !card.is_empty() && !mine.is_empty() {
            self.tell_task(other, Event::Met { tid, card: mine });
        }
        self.answer(client, Answer::Card { code, card });
    }

    /// It has been asked for its card, or is about to ask for that of another one.
    pub(super) fn show_card(&mut self, number: i32, card: Vec<u64>, is_wide: bool) {
        let Some(task) = self.tasks.get_mut(number) else { return };
        (task.card, task.is_wide) = (card, is_wide);
        // Whoever it is good for. One that it is not good for waits on, and has asked already.
        let awaited_by = std::mem::take(&mut task.awaited_by);
        let (served, left) = awaited_by.into_iter().partition::<Vec<i32>, _>(|other| task.is_shown_to(number, *other));
        task.awaited_by = left;
        served.into_iter().for_each(|other| self.introduce(number, other));
    }

    /// It is a task no more.
    pub(super) fn end_task(&mut self, number: i32) {
        let Some(task) = self.tasks.get_mut(number).filter(|task| !task.has_ended) else { return };
        task.has_ended = true;
        let (client, awaited_by) = (task.client.take(), std::mem::take(&mut task.awaited_by));
        for other in awaited_by {
            self.tell_task(other, Event::Gone { tid: number });
        }
        if let Some(client) = client {
            self.meetings.forget(client);
            self.groups.forget(client);
            self.mailbox.forget(client);
        }
        self.notices.forget(number);
        self.mailbox.leave(number);
        self.contexts.forget(number);
        let released = self.groups.leave_all(number);
        self.end_meetings();
        self.release(released, code::NO_GROUP);
        self.tell_end_of(notify::TASK_EXIT, number);
        self.tasks.drop_ended(number);
    }

    /// Its process has ended.
    pub(super) fn on_ended(&mut self, host: u32, number: i32) {
        let Some(task) = self.tasks.on_host_mut(host, number) else { return };
        task.is_running = false;
        self.end_task(number);
        self.tasks.drop_ended(number);
    }

    pub(super) fn signal(&mut self, number: i32, signal: i32) -> i32 {
        if !tid::is_task(number) || !(0..=64).contains(&signal) {
            return code::BAD_PARAM;
        }
        // Of one that is not there nothing is said, as ever.
        let pid = self.tasks.get_mut(number).filter(|task| !task.has_ended).map_or(0, |task| task.pid);
        if pid > 1 {
            self.order(tid::host(number), Order::Signal { pid, signal });
        }
        code::OK
    }

    pub(super) fn answer_tasks(&mut self, client: ClientNumber, of: i32) {
        let all = self.tasks.all.keys().copied();
        let host = tid::host(of);
        let (code, wanted): (i32, Vec<i32>) = match of {
            0 => (code::OK, all.collect()),
            of if tid::is_task(of) => (self.tasks.status(of), vec![of]),
            _ if self.hosts.is_there(host) => (code::OK, all.filter(|number| tid::host(*number) == host).collect()),
            _ => (code::NO_HOST, Vec::new()),
        };
        let tasks = wanted.into_iter().filter_map(|number| self.tasks.info(number)).collect();
        self.answer(client, Answer::Tasks { code, tasks });
    }
}
