//! The daemon: what it knows, and how it answers.
//!
//! Everything runs in one thread; a task for each connection and each call takes turns with the others where it waits.
//! Nothing is borrowed across such a point.

use crate::alive::Alive;
use crate::between::{Asker, Asking, Errand, Link, Response, Responses};
use crate::door::Tickets;
use crate::home::{Home, Place};
use crate::orders::{Capacity, Held, Orders, Verdict, Wish};
use crate::records::Records;
use crate::report::{self, Report};
use crate::seal::Secret;
use anyhow::{Context, Result, anyhow, bail};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, mpsc};
use weft_cluster::hosts::Map;
use weft_database::{Cluster, Member};
use weft_requests::{ClusterView, Demand, Grant, JobName, Placing, Reply, Standing};

/// The jobs of a member that has been silent for so many seconds are over: the other hosts have given them up.
const GIVEN_UP: u64 = 40;
/// A server that has just begun decides nothing before it has heard of all who live, for so long at most.
const LISTENS: Duration = Duration::from_secs(3);
/// A job that does not want to wait waits so long while servers change.
const CHANGE: Duration = Duration::from_secs(8);
/// Between two attempts to find a server for a job that waits.
const AGAIN: Duration = Duration::from_millis(250);
/// The setting of slots that somebody has made by hand.
const SLOTS: &str = "slots";
/// The last database that was good.
const DATABASE: &str = "database";

/// Who this daemon is.
pub struct Me {
    pub member: String,
    pub uid: u32,
    pub key: Secret,
    pub file: PathBuf,
}

pub struct Daemon {
    pub me: Me,
    cluster: RefCell<(Rc<Cluster>, String)>,
    pub home: Home,
    pub tickets: RefCell<Tickets>,
    pub orders: RefCell<Orders>,
    /// Those who wait for a verdict of ours.
    seekers: RefCell<HashMap<JobName, (u64, mpsc::UnboundedSender<Verdict>)>>,
    /// Of the last one who began to wait.
    seeker: Cell<u64>,
    pub heard: RefCell<HashMap<String, Report>>,
    links: RefCell<HashMap<String, Rc<Link>>>,
    pub alive: Alive,
    begun: Instant,
    records: Records,
    /// Slots that somebody has set by hand.
    slots: Cell<Option<usize>>,
    pub trouble: RefCell<Option<String>>,
    changed: Notify,
    /// Somebody who may has asked it to end.
    pub stop: Notify,
    strangers: Cell<u64>,
    /// The cluster as the server in charge has said last, and whether it is being asked.
    pub seen: RefCell<ClusterView>,
    pub is_looking: Cell<bool>,
    /// Where the page is.
    pub page: RefCell<Option<SocketAddr>>,
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

impl Daemon {
    /// # Errors
    /// What must last cannot be read.
    pub fn new(me: Me, cluster: Cluster, text: String, records: Records) -> Result<Rc<Self>> {
        let slots = records.fact(SLOTS)?.and_then(|slots| slots.parse().ok());
        let alive = Alive::new(&me.member, &names(&cluster), &me.key);
        let home = Home::default();
        home.count_from(records.last_number()?);
        let daemon = Rc::new(Self {
            me,
            cluster: RefCell::new((Rc::new(cluster), text)),
            home,
            tickets: RefCell::default(),
            orders: RefCell::default(),
            seekers: RefCell::default(),
            seeker: Cell::new(0),
            heard: RefCell::default(),
            links: RefCell::default(),
            alive,
            begun: Instant::now(),
            records,
            slots: Cell::new(slots),
            trouble: RefCell::default(),
            changed: Notify::new(),
            stop: Notify::new(),
            strangers: Cell::new(0),
            seen: RefCell::default(),
            is_looking: Cell::new(false),
            page: RefCell::default(),
        });
        daemon.find_jobs_again()?;
        Ok(daemon)
    }

    /// Jobs that began before this daemon did: those whose launchers live go on, and of the others it is known that they
    /// are over.
    fn find_jobs_again(self: &Rc<Self>) -> Result<()> {
        for begun in self.records.running()? {
            let number = begun.number;
            let gone = begun.record(None, "it ended while no daemon ran");
            match self.home.find_again(begun) {
                Some(job) => self.watch(&job),
                None => self.records.end(number, now(), &gone)?,
            }
        }
        Ok(())
    }

    pub fn cluster(&self) -> Rc<Cluster> {
        Rc::clone(&self.cluster.borrow().0)
    }

    pub fn cluster_name(&self) -> String {
        self.cluster.borrow().0.name.clone()
    }

    /// Writes what must last. A job goes on where that fails, and the failure is told once.
    pub fn keep(&self, write: impl FnOnce(&Records) -> Result<()>) {
        if let Err(error) = write(&self.records) {
            let told = format!("records cannot be written: {error:#}");
            if self.trouble.borrow().as_ref() != Some(&told) {
                eprintln!("weftd: {told}");
                *self.trouble.borrow_mut() = Some(told);
            }
        }
    }

    pub fn count_stranger(&self) {
        self.strangers.set(self.strangers.get() + 1);
    }

    /// Lets the servers know soon.
    pub fn tell_of_change(&self) {
        self.changed.notify_one();
    }

    /// Slots that this host has now.
    fn own_slots(&self) -> usize {
        let usual = self.cluster().member(&self.me.member).map_or(0, |member| member.slots);
        self.slots.get().unwrap_or(usual)
    }

    fn own_report(&self) -> Report {
        Report {
            member: self.me.member.clone(),
            slots: self.own_slots(),
            load: report::load(self.cluster().version),
            trouble: self.trouble.borrow().clone(),
            jobs: self.home.running(),
        }
    }

    fn capacity(&self, member: &str) -> Capacity {
        let is_alive = self.alive.standing(member).0 == Standing::Alive;
        match self.heard.borrow().get(member).filter(|_| is_alive) {
            None => Capacity { slots: 0, load: 0.0 },
            Some(report) => {
                Capacity { slots: report.slots, load: report.load.load / report.load.cores.max(1) as f64 }
            }
        }
    }

    /// The server that orders jobs: the first that lives. One that nobody has heard yet may still come, at the beginning.
    fn server_in_charge(&self) -> Option<String> {
        let is_new = self.begun.elapsed() < LISTENS;
        let may_be = |server: &&String| match self.alive.standing(server).0 {
            Standing::Alive => true,
            Standing::Unknown => is_new,
            Standing::Suspect | Standing::Dead => false,
        };
        self.cluster().servers.iter().find(may_be).cloned()
    }

    pub fn is_in_charge(&self) -> bool {
        self.server_in_charge().as_ref() == Some(&self.me.member)
    }

    /// Whether enough is known to decide.
    fn knows_all(&self) -> bool {
        let heard = self.heard.borrow();
        let is_known = |name: &String| match self.alive.standing(name).0 {
            Standing::Alive => heard.contains_key(name),
            Standing::Unknown => false,
            Standing::Suspect | Standing::Dead => true,
        };
        self.begun.elapsed() >= LISTENS || names(&self.cluster()).iter().all(is_known)
    }

    /// Another server has taken over, or jobs of members are over that have been silent for long.
    fn look_after_orders(&self) {
        if !self.is_in_charge() {
            // Who waits here asks again, elsewhere.
            self.seekers.borrow_mut().clear();
        }
        for member in names(&self.cluster()) {
            if matches!(self.alive.standing(&member), (Standing::Suspect, GIVEN_UP..)) {
                self.orders.borrow_mut().bury(&member);
            }
        }
        self.decide();
    }

    /// Says again and again how this host is, and decides what waits.
    pub async fn tell(self: Rc<Self>) {
        loop {
            self.reread();
            self.look_after_orders();
            let report = self.own_report();
            let servers = self.cluster().servers.clone();
            for server in servers {
                let (daemon, report) = (Rc::clone(&self), Box::new(report.clone()));
                tokio::task::spawn_local(async move { daemon.tell_server(&server, report).await });
            }
            let _ = tokio::time::timeout(report::EVERY, self.changed.notified()).await;
        }
    }

    async fn tell_server(self: &Rc<Self>, server: &str, report: Box<Report>) {
        let told = self.ask_once(server, Errand::Heed(report)).await;
        if let Ok(Response::Version(version)) = told
            && version < self.cluster().version
        {
            let text = self.cluster.borrow().1.clone();
            let _ = self.ask_once(server, Errand::Adopt { text }).await;
        }
    }

    /// Takes a report in.
    fn heed(self: &Rc<Self>, report: Report) -> Response {
        let version = self.cluster().version;
        if report.load.version < version && report.member != self.me.member {
            let (daemon, member) = (Rc::clone(self), report.member.clone());
            let text = self.cluster.borrow().1.clone();
            tokio::task::spawn_local(async move { daemon.ask_once(&member, Errand::Adopt { text }).await.map(drop) });
        }
        let held = |job: &report::Running| Held {
            user: job.view.user.clone(),
            partition: job.view.partition.clone(),
            // Who was not placed takes no slots.
            hosts: if job.view.partition.is_some() { job.view.hosts.clone() } else { Vec::new() },
            until: job.until,
        };
        let jobs = report.jobs.iter().map(|job| (job.view.job.clone(), held(job))).collect();
        self.orders.borrow_mut().heed(&report.member, now(), jobs);
        let member = report.member.clone();
        self.heard.borrow_mut().insert(member, report);
        self.decide();
        Response::Version(version)
    }

    /// Takes a database in that is newer, if it is one.
    fn adopt(&self, text: String) -> Response {
        let (name, version) = (self.cluster_name(), self.cluster().version);
        match weft_database::read(&text) {
            Ok(new) if new.name == name && new.version > version => {
                // A file that cannot be written is told; the database is the newer one all the same.
                if let Err(error) = replace(&self.me.file, &text) {
                    *self.trouble.borrow_mut() = Some(format!("'{}': {error}", self.me.file.display()));
                }
                self.set_cluster(new, text);
                Response::Version(self.cluster().version)
            }
            Ok(new) if new.name != name => Response::Failed(format!("cluster '{}', and this is '{name}'", new.name)),
            Ok(_) => Response::Version(version),
            Err(mistakes) => Response::Failed(mistakes.first().map_or_else(String::new, ToString::to_string)),
        }
    }

    fn set_cluster(&self, cluster: Cluster, text: String) {
        self.keep(|records| records.remember(DATABASE, &text));
        self.alive.set_members(&names(&cluster));
        *self.cluster.borrow_mut() = (Rc::new(cluster), text);
    }

    /// Looks whether the file has changed. A broken one is told, and the last good one stays.
    fn reread(&self) {
        let Ok(text) = std::fs::read_to_string(&self.me.file) else { return };
        if text == self.cluster.borrow().1 {
            return;
        }
        let file = self.me.file.display();
        let trouble = match weft_database::read(&text) {
            Err(mistakes) => mistakes.first().map(|mistake| format!("'{file}', {mistake}; the last good one is used")),
            Ok(new) if new.name != self.cluster_name() => Some(format!("'{file}' is of cluster '{}' now", new.name)),
            Ok(new) if new.version <= self.cluster().version => {
                Some(format!("'{file}' has changed, and its version, {}, has not: count it up", new.version))
            }
            Ok(new) => {
                self.set_cluster(new, text);
                None
            }
        };
        *self.trouble.borrow_mut() = trouble;
    }

    /// Decides what waits here.
    pub fn decide(&self) {
        if !self.is_in_charge() || !self.knows_all() {
            return;
        }
        let cluster = self.cluster();
        let verdicts = self.orders.borrow_mut().decide(&cluster, now(), |member| self.capacity(member));
        for (job, verdict) in verdicts {
            if let Some((_, seeker)) = self.seekers.borrow().get(&job) {
                let _ = seeker.send(verdict);
            }
        }
    }

    /// A connection to a member.
    async fn link(self: &Rc<Self>, member: &str) -> Result<Rc<Link>> {
        if let Some(link) = self.links.borrow().get(member).filter(|link| link.is_open()) {
            return Ok(Rc::clone(link));
        }
        let addresses = self.addresses_of(member).await?;
        let link = Link::connect(self, member, &addresses).await?;
        self.links.borrow_mut().insert(member.to_owned(), Rc::clone(&link));
        Ok(link)
    }

    pub async fn addresses_of(&self, member: &str) -> Result<Vec<SocketAddr>> {
        let cluster = self.cluster();
        let Member { addresses, .. } =
            cluster.member(member).ok_or_else(|| anyhow!("'{member}' is no member of cluster '{}'", cluster.name))?;
        let with_port = |address: &IpAddr| SocketAddr::new(*address, cluster.port);
        if !addresses.is_empty() {
            return Ok(addresses.iter().map(with_port).collect());
        }
        let found = tokio::net::lookup_host((member, cluster.port)).await;
        Ok(found.with_context(|| format!("member '{member}' has no address"))?.collect())
    }

    /// Begins a call to a member, which may be this one.
    ///
    /// # Errors
    /// It cannot be reached.
    pub async fn ask(self: &Rc<Self>, member: &str, errand: Errand) -> Result<Asking> {
        if member == self.me.member {
            return Ok(Asking::here(self, errand));
        }
        Ok(self.link(member).await?.ask(errand))
    }

    /// The same for a call that needs no waiting.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn ask_once(self: &Rc<Self>, member: &str, errand: Errand) -> Result<Response> {
        self.ask(member, errand).await?.last().await.with_context(|| format!("member '{member}'"))
    }

    /// The servers, the one in charge before the others.
    fn servers(&self) -> Vec<String> {
        let mut servers = self.cluster().servers.clone();
        let in_charge = self.server_in_charge();
        servers.sort_by_key(|server| Some(server) != in_charge.as_ref());
        servers
    }

    /// Carries out what another daemon asks.
    pub async fn carry_out(self: &Rc<Self>, errand: Errand, out: Responses) {
        let response = match errand {
            Errand::Greet { cluster, member } if cluster != self.cluster_name() || member != self.me.member => {
                Response::Failed(format!("this is '{}' of cluster '{}'", self.me.member, self.cluster_name()))
            }
            Errand::Greet { .. } => Response::Version(self.cluster().version),
            Errand::Heed(report) => self.heed(*report),
            Errand::Adopt { text } => self.adopt(text),
            Errand::Over { job } => {
                self.orders.borrow_mut().release(&job);
                self.decide();
                Response::Last(Reply::Done)
            }
            Errand::Admit { job, user, priority } => match self.tickets.borrow_mut().admit(job, user, priority) {
                Ok(pass) => Response::Admitted(pass),
                Err(error) => Response::Failed(error.to_string()),
            },
            Errand::Order { asker, job, placing } => return self.order(asker, job, placing, out).await,
            Errand::For { asker, demand } => Response::Last(self.answer_for(&asker, demand).await),
        };
        let _ = out.send(response);
    }

    /// Finds room for a job, as a server.
    async fn order(self: &Rc<Self>, asker: Asker, job: JobName, placing: Placing, out: Responses) {
        if !self.is_in_charge() {
            let other = self.server_in_charge().unwrap_or_else(|| "nobody".to_owned());
            return drop(out.send(Response::Failed(format!("server '{other}' orders jobs"))));
        }
        let grant = match self.wish(&asker, &job, &placing) {
            Err(error) => return drop(out.send(Response::Last(Reply::Refused(error.to_string())))),
            Ok((wish, grant)) => {
                self.orders.borrow_mut().enqueue(wish);
                grant
            }
        };
        let (seeker, mut verdicts) = mpsc::unbounded_channel();
        let number = self.seeker.get() + 1;
        self.seeker.set(number);
        self.seekers.borrow_mut().insert(job.clone(), (number, seeker));
        let mut seeking = Seeking { daemon: self, job: &job, number, is_served: false };
        self.decide();
        let mut last = None;
        while let Some(verdict) = verdicts.recv().await {
            let reply = match verdict {
                Verdict::Never(reason) => Reply::Refused(reason),
                Verdict::Waits { reason, .. } if !placing.wait => {
                    Reply::Refused(format!("{reason}; with --wait it waits until there is room"))
                }
                Verdict::Waits { before, reason } => {
                    let told = Reply::Waiting { before, reason };
                    if last.as_ref() != Some(&told) && out.send(Response::Reply(told.clone())).is_err() {
                        return;
                    }
                    last = Some(told);
                    continue;
                }
                Verdict::Granted(hosts) => {
                    seeking.is_served = true;
                    Reply::Placed(Grant { hosts, ..grant })
                }
            };
            let _ = out.send(Response::Last(reply));
            return;
        }
    }

    /// What a job wants, if it may; and what it will get, but for the hosts.
    fn wish(&self, asker: &Asker, job: &JobName, placing: &Placing) -> Result<(Wish, Grant)> {
        let cluster = self.cluster();
        let partition =
            cluster.partition(placing.partition.as_deref()).map_err(|error| anyhow!("partition {error}"))?;
        let (name, limits) = (&partition.name, &partition.limits);
        if !asker.is_root() && !partition.admits(&asker.user, &asker.groups) {
            bail!("partition '{name}' is not for user '{}'", asker.user);
        }
        let map: Map = placing.map.parse()?;
        let ranks = placing.ranks.unwrap_or_else(|| partition.most_ranks());
        if ranks > partition.most_ranks() {
            bail!("partition '{name}': {ranks} ranks, but a job may have {} there", partition.most_ranks());
        }
        let priority = placing.priority.unwrap_or(partition.priority);
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
        };
        let (job, user, partition) = (job.clone(), asker.user.clone(), name.clone());
        let program = placing.about.program.clone();
        Ok((Wish { job, user, program, partition, ranks, map, seconds, since: placing.about.since }, grant))
    }

    /// Finds room for a job whose launcher is here, and takes the job in.
    pub async fn place(
        self: &Rc<Self>,
        asker: &Asker,
        mut placing: Placing,
        out: &mpsc::UnboundedSender<Reply>,
    ) -> Reply {
        placing.about.since = now();
        let number = self.home.new_number();
        let job = JobName::new(&self.me.member, number);
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
                while let Some(response) = asking.response().await {
                    match response {
                        Response::Reply(reply) => drop(out.send(reply)),
                        Response::Last(Reply::Placed(grant)) => {
                            let about = weft_requests::Description {
                                ranks: grant.hosts.iter().map(|(_, slots)| slots).sum(),
                                ..placing.about.clone()
                            };
                            self.begin_job(asker, number, &about, Place::of(&grant, placing.seconds));
                            return Reply::Placed(grant);
                        }
                        Response::Last(other) => return other,
                        other => failed = Some(anyhow!("server '{server}' answered {other:?}")),
                    }
                }
            }
            let reason = failed.map_or_else(String::new, |error| format!(": {error:#}"));
            let reason = format!("no server of cluster '{}' answers{reason}", self.cluster_name());
            if begun.elapsed() > CHANGE {
                if !placing.wait {
                    return Reply::Refused(reason);
                }
                let _ = out.send(Reply::Waiting { before: 0, reason });
                begun = Instant::now();
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Gives the room of a job back.
    pub async fn release(self: &Rc<Self>, job: &JobName) {
        for server in self.cluster().servers.clone() {
            let _ = self.ask_once(&server, Errand::Over { job: job.clone() }).await;
        }
    }

    /// Sets the slots of this host.
    pub fn set_slots(&self, slots: Option<usize>) {
        self.slots.set(slots);
        self.keep(|records| match slots {
            Some(slots) => records.remember(SLOTS, &slots.to_string()),
            None => records.forget(SLOTS),
        });
        self.tell_of_change();
    }

    /// Records of jobs, as an asker may see them.
    pub fn ended_jobs(&self, asker: &Asker, most: usize) -> Result<Vec<weft_records::JobRecord>> {
        self.records.ended(Some(asker.uid).filter(|uid| *uid != 0), most)
    }

    /// How a member can be entered by a job of this host.
    ///
    /// # Errors
    /// The job is somebody else's, is over, or has no room there; or the member does not answer.
    pub async fn pass(self: &Rc<Self>, asker: &Asker, job: &JobName, host: &str) -> Result<weft_requests::Pass> {
        let number = job.parts().filter(|(home, _)| *home == self.me.member).map(|(_, number)| number);
        let launched = number.and_then(|number| self.home.job(number)).filter(|launched| launched.is_of(asker));
        let view = launched.with_context(|| format!("no job {job} of yours runs here"))?.begun.view.clone();
        if !view.hosts.iter().any(|(name, _)| name == host) {
            bail!("job {job} has no room on '{host}'");
        }
        let errand = Errand::Admit { job: job.clone(), user: view.user, priority: view.priority };
        match self.ask_once(host, errand).await? {
            Response::Admitted(pass) => Ok(weft_requests::Pass { addresses: self.addresses_of(host).await?, ..pass }),
            Response::Failed(reason) => bail!("member '{host}': {reason}"),
            other => bail!("member '{host}' answered {other:?}"),
        }
    }

    /// Asks for the client of a member, at any of the servers.
    pub async fn ask_servers(self: &Rc<Self>, asker: &Asker, demand: &Demand) -> Reply {
        let mut failed = String::new();
        for server in self.servers() {
            let errand = Errand::For { asker: asker.clone(), demand: demand.clone() };
            match self.ask_once(&server, errand).await {
                Ok(Response::Last(reply)) => return reply,
                Ok(other) => failed = format!("server '{server}' answered {other:?}"),
                Err(error) => failed = format!("{error:#}"),
            }
        }
        Reply::Refused(failed)
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
        if seekers.get(self.job).is_none_or(|(number, _)| *number != self.number) {
            return;
        }
        seekers.remove(self.job);
        if !self.is_served {
            let mut orders = self.daemon.orders.borrow_mut();
            orders.forget_wish(self.job);
            orders.release(self.job);
        }
    }
}

fn names(cluster: &Cluster) -> Vec<String> {
    cluster.members.iter().map(|member| member.name.clone()).collect()
}

/// Writes a file, which is there whole or as it was before.
fn replace(file: &std::path::Path, text: &str) -> std::io::Result<()> {
    let new = file.with_extension(format!("toml.{}", std::process::id()));
    std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, file)).inspect_err(|_| {
        let _ = std::fs::remove_file(&new);
    })
}
