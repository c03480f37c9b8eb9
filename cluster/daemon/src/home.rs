//! Jobs whose launchers are on this host.
//!
//! A job lives as long as its launcher, which the kernel tells of ([`watch`]), not as long as a connection: daemons may
//! end and begin again under running jobs.

use crate::between::Asker;
use crate::launcher::{LauncherProcess, start_of, uids_of};
use crate::records::BegunJob;
use crate::report::{RunningJob, now};
use crate::ring::SeenLog;
use crate::turns::tree::ProcessMark;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::oneshot;
use weft_cluster::state::signal_name;
use weft_records::{JobRecord, ProgramRecord};
use weft_requests::{Grant, JobName, JobView, RegisteredKind};

/// Bytes of the command lines of one user that are told; those of further jobs are cut to so many.
const MOST_TOLD_BYTES: usize = 128 << 10;
const SHORT_BYTES: usize = 64;

/// The jobs of this host.
#[derive(Default)]
pub struct Home {
    jobs: RefCell<BTreeMap<u64, Rc<Launched>>>,
    /// Jobs that want room.
    wanted: RefCell<BTreeMap<u64, WaitingJob>>,
    last: Cell<u64>,
}

/// A job that wants room.
struct WaitingJob {
    user: String,
    /// Hears who has ended it.
    end: Option<oneshot::Sender<String>>,
}

/// A job and its launcher.
pub struct Launched {
    pub begun: BegunJob,
    /// None where its number means nothing here: then the job ends with its connection.
    launcher: Option<LauncherProcess>,
    /// What its ranks write, where its launcher keeps that.
    pub log: Option<SeenLog>,
    /// Who has ended it, if not its launcher.
    pub ended_by: RefCell<Option<String>>,
}

impl Home {
    /// Numbers go on behind this one.
    pub fn count_from(&self, last: u64) {
        self.last.set(last);
    }

    pub fn new_number(&self) -> u64 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    /// A job of this user wants room, until it is said that it does not, or somebody has ended it: then it hears who.
    pub fn want(&self, number: u64, user: &str) -> oneshot::Receiver<String> {
        let (end, ended) = oneshot::channel();
        self.wanted.borrow_mut().insert(number, WaitingJob { user: user.to_owned(), end: Some(end) });
        ended
    }

    /// Gives a job that wants room a signal, of which those that end it do so. `None` where there is no such job.
    pub fn signal_waiting(&self, number: u64, signal: i32, asker: &Asker) -> Option<Result<(), &'static str>> {
        let mut wanted = self.wanted.borrow_mut();
        let job = wanted.get_mut(&number)?;
        if !asker.is_root() && asker.user != job.user {
            return Some(Err("is not yours"));
        }
        if !ENDING.contains(&signal) {
            return Some(Err("waits for room, and takes only signals that end it"));
        }
        let told = job.end.take().map(|end| end.send(asker.user.clone()));
        Some(if told == Some(Ok(())) { Ok(()) } else { Err("is ending already") })
    }

    pub fn want_no_more(&self, number: u64) {
        self.wanted.borrow_mut().remove(&number);
    }

    pub fn is_wanted(&self, number: u64) -> bool {
        self.wanted.borrow().contains_key(&number)
    }

    pub fn job(&self, number: u64) -> Option<Rc<Launched>> {
        self.jobs.borrow().get(&number).cloned()
    }

    /// Jobs of this launcher.
    pub fn jobs_of(&self, pid: i32, began: u64) -> Vec<u64> {
        let jobs = self.jobs.borrow();
        let is_its = |job: &&Rc<Launched>| began != 0 && (job.begun.pid, job.begun.began) == (pid, began);
        jobs.values().filter(is_its).map(|job| job.begun.number).collect()
    }

    /// How many jobs a user has, or other processes.
    pub fn count_of(&self, uid: u32, are_jobs: bool) -> usize {
        let is_its = |begun: &BegunJob| begun.uid == uid && (begun.view.kind == RegisteredKind::Job) == are_jobs;
        self.jobs.borrow().values().filter(|job| is_its(&job.begun)).count()
    }

    /// The launchers of jobs.
    pub fn launchers(&self, is_meant: impl Fn(&JobView) -> bool) -> Vec<ProcessMark> {
        let jobs = self.jobs.borrow();
        let meant = jobs.values().map(|job| &job.begun).filter(|begun| begun.began != 0 && is_meant(&begun.view));
        meant.map(|begun| ProcessMark { pid: begun.pid, began: begun.began }).collect()
    }

    /// What is told of the jobs. All of them must fit into what servers and clients take, whatever one user runs.
    pub fn running(&self) -> Vec<RunningJob> {
        let mut told: HashMap<u32, usize> = HashMap::new();
        let tell = |job: &Rc<Launched>| {
            let mut view = job.begun.view.clone();
            let bytes = told.entry(job.begun.uid).or_default();
            *bytes += view.program.len() + view.arguments.iter().map(|word| word.len() + 1).sum::<usize>();
            if *bytes > MOST_TOLD_BYTES {
                view.arguments.clear();
                view.program.truncate(view.program.floor_char_boundary(SHORT_BYTES));
            }
            RunningJob { view, until: job.begun.until }
        };
        self.jobs.borrow().values().map(tell).collect()
    }

    /// A job that began before this daemon did.
    pub fn find_again(&self, begun: BegunJob) -> Option<Rc<Launched>> {
        let launcher = LauncherProcess::open(begun.pid)?;
        if start_of(begun.pid)? != begun.began {
            return None;
        }
        let log = SeenLog::of(begun.pid, begun.uid);
        Some(self.add(Launched { begun, launcher: Some(launcher), log, ended_by: RefCell::default() }))
    }

    /// Takes a job in.
    pub fn add(&self, job: Launched) -> Rc<Launched> {
        let job = Rc::new(job);
        self.jobs.borrow_mut().insert(job.begun.number, Rc::clone(&job));
        job
    }

    /// Takes a job out; the second time there is none.
    pub fn take(&self, number: u64) -> Option<Rc<Launched>> {
        self.jobs.borrow_mut().remove(&number)
    }
}

impl Launched {
    /// A job whose launcher is surely the process that has asked: its number may be another one's by now.
    pub fn new(begun: BegunJob) -> Self {
        let launcher = LauncherProcess::open(begun.pid);
        let is_same = begun.began != 0 && start_of(begun.pid) == Some(begun.began);
        let launcher = launcher.filter(|_| is_same);
        let log = launcher.as_ref().and_then(|_| SeenLog::of(begun.pid, begun.uid));
        Self { begun, launcher, log, ended_by: RefCell::default() }
    }

    /// Waits for the end of the launcher.
    pub async fn end(&self) {
        if let Some(launcher) = &self.launcher {
            launcher.end().await;
        }
    }

    pub fn name(&self) -> &JobName {
        &self.begun.view.job
    }

    pub fn has_launcher(&self) -> bool {
        self.launcher.is_some()
    }

    /// Whether somebody may end it, or say that it has ended.
    pub fn is_of(&self, asker: &Asker) -> bool {
        asker.is_root() || asker.user == self.begun.view.user
    }

    /// Ends it because it takes too long: in order, and by force where its launcher is not gone soon.
    pub async fn end_late(&self, seconds: u64) {
        let Some(launcher) = &self.launcher else { return };
        *self.ended_by.borrow_mut() = Some(format!("it took longer than its time, {seconds} s"));
        let _ = launcher.signal(libc::SIGTERM);
        if tokio::time::timeout(ENDS, launcher.end()).await.is_err() {
            let _ = launcher.signal(libc::SIGKILL);
            launcher.end().await;
        }
    }

    /// Sends its launcher a signal. Of a launcher that has become somebody else's, as by `sudo`, root alone disposes.
    ///
    /// # Errors
    /// There is no such signal, or the launcher is gone or not the asker's.
    pub fn signal(&self, number: i32, asker: &Asker) -> io::Result<()> {
        let is_its = |uids: Vec<u32>| uids.iter().all(|uid| *uid == self.begun.uid);
        if !asker.is_root() && !uids_of(self.begun.pid).is_some_and(is_its) {
            return Err(io::Error::other("its launcher is not yours"));
        }
        let launcher = self.launcher.as_ref().ok_or_else(|| io::Error::other("its launcher is not seen from here"))?;
        launcher.signal(number)?;
        // The others may be survived, and are no cause of what comes later.
        if [libc::SIGTERM, libc::SIGKILL].contains(&number) {
            let who = format!("user '{}' has sent it {} (weft kill)", asker.user, signal_name(number));
            self.ended_by.borrow_mut().get_or_insert(who);
        }
        Ok(())
    }
}

impl BegunJob {
    /// What is known of a job that is over: what its launcher has told, or else why it has not; and who has ended it.
    pub fn record(&self, told: Option<Box<JobRecord>>, silent: &str, ended_by: Option<&str>) -> JobRecord {
        let view = &self.view;
        let job = view.job.to_string();
        if let Some(told) = told {
            let causes = [told.cause.as_deref(), ended_by.filter(|_| told.exit_code != 0)];
            let causes: Vec<&str> = causes.into_iter().flatten().collect();
            let cause = Some(causes.join("; ")).filter(|cause| !cause.is_empty());
            return JobRecord { job, user: view.user.clone(), partition: view.partition.clone(), cause, ..*told };
        }
        let program = ProgramRecord::new(&view.program, view.arguments.iter().cloned(), view.size);
        JobRecord {
            job,
            user: view.user.clone(),
            programs: vec![program],
            partition: view.partition.clone(),
            started: view.since,
            wall_seconds: now().saturating_sub(view.since) as f64,
            hosts: view.hosts.iter().map(|(name, _)| name.clone()).collect(),
            exit_code: KILLED,
            cause: Some(ended_by.unwrap_or(silent).to_owned()),
            ..JobRecord::default()
        }
    }
}

/// Signals that end a job: SIGHUP, SIGINT, SIGQUIT, SIGKILL and SIGTERM.
const ENDING: [i32; 5] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGKILL, libc::SIGTERM];

/// How long a launcher may take to end its ranks.
const ENDS: Duration = Duration::from_secs(10);

/// What a shell says of a launcher that was killed.
const KILLED: i32 = 137;

/// Where a job runs.
#[derive(Default)]
pub struct JobHosts {
    pub partition: Option<String>,
    pub hosts: Vec<(String, usize)>,
    pub priority: i32,
    pub seconds: Option<u64>,
}

impl JobHosts {
    pub fn of(grant: &Grant) -> Self {
        let (partition, hosts) = (Some(grant.partition.clone()), grant.hosts.clone());
        Self { partition, hosts, priority: grant.priority, seconds: grant.seconds }
    }
}
