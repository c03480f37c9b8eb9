//! Jobs whose launchers are on this host, from the wish for room to the record; and the doors of jobs of other hosts.

use crate::between::{Asker, Errand, Response};
use crate::daemon::{Daemon, names};
use crate::door::{self, Admission};
use crate::home::{JobHosts, Launched};
use crate::launcher::run_first;
use crate::records::BegunJob;
use crate::report::now;
use crate::ring::SeenLog;
use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, setpriority_process};
use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::sync::mpsc;
use weft_database::SchedulingPolicy;
use weft_records::JobRecord;
use weft_requests::{
    ClusterReply, Demand, Description, JobName, JobView, MemberStanding, Pass, Placing, RegisteredKind,
};

/// A job that does not want to wait waits so long while servers change.
const CHANGE: Duration = Duration::from_secs(8);
/// A job that takes longer than it has said is ended so many seconds later.
const GRACE: u64 = 30;
/// How often a job that waits looks whether the server is still the one in charge.
const LOOK: Duration = Duration::from_secs(1);
/// Jobs of one user whose launchers are on this host, and what else may register.
const MOST_JOBS: usize = 1024;
const MOST_PROCESSES: usize = 256;
/// How long the daemon of a member that a job enters may take to begin again, and how long the member may be cut off.
const BEGINS: Duration = Duration::from_secs(3);
const REACHED: Duration = door::SILENCE;
/// Between two attempts to find a server for a job that waits, or to let one in.
const AGAIN: Duration = Duration::from_millis(250);

impl Daemon {
    /// Jobs that began before this daemon did: those whose launchers live go on, and of the others it is known that
    /// they are over.
    pub fn find_jobs_again(self: &Rc<Self>) -> Result<()> {
        for begun in self.records.running()? {
            let number = begun.number;
            let gone = begun.record(None, "it ended while no daemon ran", None);
            let is_job = begun.view.kind == RegisteredKind::Job;
            match self.home.find_again(begun) {
                Some(job) => self.watch(&job),
                None if !is_job => self.records.forget_job(number)?,
                None => self.records.end(number, now(), &gone)?,
            }
        }
        Ok(())
    }

    /// Takes in what needs no room.
    pub fn register(self: &Rc<Self>, asker: &Asker, about: Description) -> ClusterReply {
        if let Some(refused) = self.too_many(asker, about.kind) {
            return ClusterReply::Refused(refused);
        }
        let about = about.bounded();
        let hosts = vec![(self.me.member.clone(), about.ranks)];
        let place = JobHosts { hosts, ..JobHosts::default() };
        let job = self.begin_job(asker, self.home.new_number(), about, place);
        ClusterReply::Registered { job: job.name().clone() }
    }

    /// Why a user may have no more of a kind here, where it has too many.
    fn too_many(&self, asker: &Asker, kind: RegisteredKind) -> Option<String> {
        let is_job = kind == RegisteredKind::Job;
        let (most, what) = if is_job { (MOST_JOBS, "jobs") } else { (MOST_PROCESSES, "processes that are no jobs") };
        let has_most = self.home.count_of(asker.uid, is_job) >= most;
        has_most.then(|| format!("user '{}' has {most} {what} here already", asker.user))
    }

    /// Takes a job in; what is told of it is bounded.
    fn begin_job(self: &Rc<Self>, asker: &Asker, number: u64, about: Description, place: JobHosts) -> Rc<Launched> {
        let view = JobView {
            job: JobName::new(&self.me.member, number),
            kind: about.kind,
            pid: asker.pid,
            user: asker.user.clone(),
            partition: place.partition,
            program: about.program,
            arguments: about.arguments,
            size: about.ranks,
            hosts: place.hosts,
            since: now(),
            until: None,
            priority: place.priority,
            id: about.id,
            ranks: Vec::new(),
        };
        let until = place.seconds.map(|seconds| now().saturating_add(seconds));
        let begun = BegunJob { number, uid: asker.uid, view, until, pid: asker.pid, began: asker.began };
        self.keep(|records| records.begin(&begun));
        let job = self.home.add(Launched::new(begun));
        self.prefer(&job);
        self.give_turns();
        self.watch(&job);
        job
    }

    /// Gives the launcher, and so the ranks that it starts here, the priority of the job, and the policy of its
    /// partition. Where that is not permitted the job goes on as it is.
    fn prefer(&self, job: &Launched) {
        let JobView { priority, partition, .. } = &job.begun.view;
        let Some(pid) = Some(job.begun.pid).filter(|_| job.has_launcher()) else { return };
        if let Some(first) = self.runs_first(partition.as_deref(), *priority)
            && let Err(error) = run_first(pid, first)
        {
            self.say_once(format!(
                "the policy of partition '{}', fifo, is not applied: {error}",
                partition.as_deref().unwrap_or_default()
            ));
        }
        if let Some(pid) = Pid::from_raw(pid).filter(|_| self.me.uid == 0 && *priority != 0) {
            let _ = setpriority_process(Some(pid), -(*priority).clamp(-19, 20));
        }
    }

    /// The real-time priority of a job's processes, where its partition has the policy `fifo`: the lowest, and higher
    /// by the job's own. Kernels run what they need themselves with 50 and more.
    pub fn runs_first(&self, partition: Option<&str>, priority: i32) -> Option<i32> {
        let cluster = self.cluster();
        let partition = cluster.partition(Some(partition?)).ok()?;
        (partition.policy == SchedulingPolicy::Fifo).then(|| 1 + priority.clamp(0, partition.limits.highest.max(0)))
    }

    /// Records of all members that live, the newest first.
    pub async fn ended_everywhere(self: &Rc<Self>, asker: &Asker, most: usize) -> Vec<JobRecord> {
        let mut all = Vec::new();
        for member in names(&self.cluster()) {
            let is_alive = self.alive.standing(&member).0 == MemberStanding::Alive;
            let demand = Demand::Finished { most, everywhere: false };
            let errand = Errand::For { asker: asker.clone(), demand };
            if is_alive && let Ok(Response::Last(ClusterReply::Records(records))) = self.ask_once(&member, errand).await
            {
                all.extend(records);
            }
        }
        all.sort_by_key(|record| std::cmp::Reverse(record.started));
        all.truncate(most);
        all
    }

    /// Ends the job with its launcher.
    pub fn watch(self: &Rc<Self>, job: &Rc<Launched>) {
        if !job.has_launcher() {
            return;
        }
        let (daemon, job) = (Rc::clone(self), Rc::clone(job));
        tokio::task::spawn_local(async move {
            // What a job says of its time is believed when others go before; so it is held to it.
            let late = job.begun.until.map(|until| until.saturating_sub(now()) + GRACE);
            let over = async {
                match late {
                    Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = job.end() => {}
                () = over => job.end_late(job.begun.until.unwrap_or(0).saturating_sub(job.begun.view.since)).await,
            }
            daemon.end_job(job.begun.number, None);
        });
    }

    /// A job is over: its record is kept, and its room given back, once.
    pub fn end_job(self: &Rc<Self>, number: u64, record: Option<Box<JobRecord>>) {
        let Some(job) = self.home.take(number) else { return };
        if job.begun.view.kind != RegisteredKind::Job {
            return self.keep(|records| records.forget_job(number));
        }
        let record = job.begun.record(record, "its launcher was killed", job.ended_by.borrow().as_deref());
        self.keep(|records| records.end(number, now(), &record));
        if let Some((end, bytes)) = job.log.as_ref().and_then(SeenLog::last).filter(|(end, _)| *end > 0) {
            self.keep(|records| records.keep_log(number, end, &bytes));
        }
        if job.begun.view.partition.is_some() {
            let (daemon, job) = (Rc::clone(self), job.name().clone());
            tokio::task::spawn_local(async move { daemon.release(&job).await });
        }
    }

    /// Finds room for a job whose launcher is here, and takes the job in.
    pub async fn place(
        self: &Rc<Self>,
        asker: &Asker,
        mut placing: Placing,
        out: &mpsc::UnboundedSender<ClusterReply>,
    ) -> ClusterReply {
        if let Some(refused) = self.too_many(asker, RegisteredKind::Job) {
            return ClusterReply::Refused(refused);
        }
        // Its launcher asks again: the daemon has ended before it heard the answer.
        self.home.jobs_of(asker.pid, asker.began).into_iter().for_each(|number| self.end_job(number, None));
        placing.about = Description { since: now(), kind: RegisteredKind::Job, ..placing.about }.bounded();
        let number = self.home.new_number();
        let ended = self.home.want(number, &asker.user);
        tokio::select! {
            // Who has ended it goes before a grant that comes in the same moment.
            biased;
            Ok(who) = ended => ClusterReply::Refused(format!("user '{who}' has ended it while it waited (weft kill)")),
            reply = self.find_room(asker, number, placing, out) => reply,
        }
    }

    async fn find_room(
        self: &Rc<Self>,
        asker: &Asker,
        number: u64,
        placing: Placing,
        out: &mpsc::UnboundedSender<ClusterReply>,
    ) -> ClusterReply {
        let job = JobName::new(&self.me.member, number);
        let mut wanted = WantedRoom { daemon: self, job: &job, number, is_settled: false };
        let mut begun = Instant::now();
        loop {
            let mut failed = None;
            for server in self.servers() {
                let errand = Errand::Order { asker: asker.clone(), job: job.clone(), placing: placing.clone() };
                let mut asking = match self.ask(&server, errand).await {
                    Ok(asking) => asking,
                    Err(error) => {
                        failed = Some(error);
                        continue;
                    }
                };
                loop {
                    let response = match tokio::time::timeout(LOOK, asking.response()).await {
                        Ok(Some(response)) => response,
                        Err(_) if self.server_in_charge().as_ref() == Some(&server) => continue,
                        // It has gone, or is no longer the one.
                        Ok(None) | Err(_) => break,
                    };
                    match response {
                        Response::Reply(reply) => drop(out.send(reply)),
                        Response::Last(ClusterReply::Placed(grant)) => {
                            let about = Description {
                                ranks: grant.hosts.iter().map(|(_, slots)| slots).sum(),
                                ..placing.about.clone()
                            };
                            self.begin_job(asker, number, about, JobHosts::of(&grant));
                            wanted.is_settled = true;
                            return ClusterReply::Placed(grant);
                        }
                        Response::Last(other) => {
                            wanted.is_settled = true;
                            return other;
                        }
                        other => failed = Some(anyhow!("server '{server}' answered {other:?}")),
                    }
                }
            }
            let reason = failed.map_or_else(String::new, |error| format!(": {error:#}"));
            let reason = format!("no server of cluster '{}' answers{reason}", self.cluster_name());
            if begun.elapsed() > CHANGE {
                if !placing.wait {
                    return ClusterReply::Refused(reason);
                }
                let _ = out.send(ClusterReply::Waiting { before: 0, reason });
                begun = Instant::now();
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Gives back what jobs may have been granted that nobody wants any more.
    pub fn release_lost(self: &Rc<Self>) {
        for job in self.lost.take() {
            let daemon = Rc::clone(self);
            tokio::task::spawn_local(async move { daemon.release(&job).await });
        }
    }

    /// Whether a job has its launcher here, or wants room for it, or has entered.
    pub fn holds(&self, job: &JobName) -> bool {
        let number = job.parts().filter(|(home, _)| *home == self.me.member).map(|(_, number)| number);
        let is_here = number.is_some_and(|number| self.home.job(number).is_some() || self.home.is_wanted(number));
        is_here || self.tickets.borrow().is_inside(job)
    }

    /// Gives the room of a job back.
    pub async fn release(self: &Rc<Self>, job: &JobName) {
        for server in self.cluster().servers.clone() {
            let _ = self.ask_once(&server, Errand::Over { job: job.clone() }).await;
        }
    }

    /// How a member can be entered by a job of this host.
    ///
    /// # Errors
    /// The job is somebody else's, is over, or has no room there; or the member does not answer.
    pub async fn pass(self: &Rc<Self>, asker: &Asker, job: &JobName, host: &str) -> Result<Pass> {
        let number = job.parts().filter(|(home, _)| *home == self.me.member).map(|(_, number)| number);
        let launched = number.and_then(|number| self.home.job(number)).filter(|launched| launched.is_of(asker));
        let view = launched.with_context(|| format!("no job {job} of yours runs here"))?.begun.view.clone();
        if !view.hosts.iter().any(|(name, _)| name == host) {
            bail!("job {job} has no room on '{host}'");
        }
        let JobView { user, priority, partition, .. } = view;
        let addresses = self.addresses_of(host).await?;
        let errand = Errand::Admit { job: job.clone(), user, priority, partition };
        let begun = Instant::now();
        let response = loop {
            match self.ask_once(host, errand.clone()).await {
                Err(error) if begun.elapsed() < patience(&error) => tokio::time::sleep(AGAIN).await,
                response => break response?,
            }
        };
        match response {
            Response::Admitted(pass) => Ok(Pass { addresses, ..pass }),
            Response::Failed(reason) => bail!("member '{host}': {reason}"),
            other => bail!("member '{host}' answered {other:?}"),
        }
    }

    /// Opens the door for who shows a ticket.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn open_door(self: &Rc<Self>, stream: TcpStream, admission: &Admission) -> Result<()> {
        let connection: OwnedFd = stream.into_std()?.into();
        let mut command = Command::new("/proc/self/exe");
        command.arg("door").env_clear().env(door::VARIABLE, serde_json::to_string(admission)?);
        command.stdin(connection).stdout(Stdio::null()).stderr(Stdio::inherit());
        let mut child = command.spawn()?;
        self.tickets.borrow_mut().enter(&admission.job);
        let (daemon, job) = (Rc::clone(self), admission.job.clone());
        let pid = child.id().filter(|_| admission.takes_turns).and_then(|pid| i32::try_from(pid).ok());
        pid.into_iter().for_each(|pid| self.note_door(&job, pid));
        tokio::task::spawn_local(async move {
            let _ = child.wait().await;
            pid.into_iter().for_each(|pid| daemon.forget_door(&job, pid));
            daemon.tickets.borrow_mut().leave(&job);
        });
        Ok(())
    }
}

/// How long a member is tried that cannot be asked: one that refuses is there, and its daemon is not.
fn patience(error: &anyhow::Error) -> Duration {
    let refuses = |cause: &io::Error| cause.kind() == io::ErrorKind::ConnectionRefused;
    if error.chain().filter_map(|cause| cause.downcast_ref()).any(refuses) { BEGINS } else { REACHED }
}

/// A job that wants room. Where nobody wants it any more, a grant that is on its way is given back.
struct WantedRoom<'a> {
    daemon: &'a Daemon,
    job: &'a JobName,
    number: u64,
    is_settled: bool,
}

impl Drop for WantedRoom<'_> {
    fn drop(&mut self) {
        self.daemon.home.want_no_more(self.number);
        if !self.is_settled {
            self.daemon.lost.borrow_mut().push(self.job.clone());
            self.daemon.tell_of_change();
        }
    }
}
