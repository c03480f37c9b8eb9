//! JobRoom for a job in a cluster that has daemons, and their knowledge of it.

use std::io::{self, Write};
use std::time::{Duration, Instant};
use weft_agent::{Job, JobId, JobLog, LaunchHosts, TimeLimit};
use weft_cluster::hosts::{Launch, RankMap, SlotHost};
use weft_cluster::job::Program;
use weft_database::show_time;
use weft_records::JobRecord;
use weft_requests::client::{ClusterClient, refusal};
use weft_requests::{ClusterReply, Demand, Description, Grant, JobName, Placing};
use weft_wire::settings::Settings;

/// The daemon's executable, beside ours.
const DAEMON: &str = "weftd";

/// How long a host may take that a daemon has found alive, where nobody says it: as long as its ranks would not be
/// given up.
const HOST_PATIENCE: Duration = Duration::from_secs(30);

/// The same, from what holds for hosts that nobody knows.
pub fn patience(of_others: Option<Duration>) -> Option<Duration> {
    let is_said = std::env::var_os("WEFT_LAUNCH_TIMEOUT").is_some();
    if is_said { of_others } else { of_others.map(|time| time.max(HOST_PATIENCE)) }
}

/// How a job asks for room.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// It waits until there is room.
    pub waits: bool,
    pub priority: Option<i32>,
    /// How long it takes at most.
    pub seconds: Option<u64>,
    /// What it is called, by its launcher and by its user.
    pub id: JobId,
    pub program: String,
    pub arguments: Vec<String>,
}

impl Wishes {
    /// What a job of these programs tells the daemon, which ends after this time.
    pub fn of(id: JobId, programs: &[Program], timeout: Option<Duration>) -> Self {
        let first = programs.first();
        let words =
            |program: &Program| program.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        Self {
            id,
            seconds: timeout.map(|time| time.as_secs().max(1)),
            program: first.map_or_else(String::new, |first| first.program.clone()),
            arguments: first.map(words).unwrap_or_default(),
            ..Self::default()
        }
    }
}

/// A job that the daemon of this host knows. It has its room as long as this process lives.
#[derive(Debug)]
pub struct JobRoom {
    client: ClusterClient,
    /// None where the daemon has been told, and its answer not been read.
    job: Option<JobName>,
    /// What its ranks write, for the daemon to find; it must be there before the daemon hears of the job.
    log: Option<JobLog>,
    /// How long it may take where it has not said so itself.
    limit: Option<TimeLimit>,
}

impl JobRoom {
    /// Asks for room on a partition of this cluster. `None` where no daemon of it runs here.
    ///
    /// # Errors
    /// There is no room, or none for this user: one line.
    pub fn ask(
        front: &str,
        cluster: &str,
        partition: &str,
        ranks: usize,
        map: RankMap,
        wishes: Wishes,
    ) -> Result<Option<(Self, Grant, bool)>, String> {
        let Some(mut client) = find(front).filter(|client| client.cluster == cluster) else { return Ok(None) };
        let Wishes { id, program, arguments, .. } = wishes;
        let about = Description { id: id.as_str().to_owned(), program, arguments, ranks, ..Description::default() };
        let demand = Demand::Place(Placing {
            partition: Some(partition.to_owned()),
            ranks: Some(ranks),
            map: map.to_string(),
            about,
            priority: wishes.priority,
            wait: wishes.waits,
            seconds: wishes.seconds,
        });
        let mut log = log();
        loop {
            let lost = match answer(front, &mut client, &demand) {
                Ok(Ok(grant)) => {
                    let is_here = grant.hosts.iter().all(|(name, _)| *name == client.member);
                    let of_partition = |time| TimeLimit {
                        time: Duration::from_secs(time),
                        words: format!("the {} of partition '{partition}'", show_time(Duration::from_secs(time))),
                    };
                    let limit = grant.seconds.map(of_partition);
                    let room = Self { job: Some(grant.job.clone()), client, log: log.take(), limit };
                    return Ok(Some((room, grant, is_here)));
                }
                Ok(Err(reason)) => return Err(reason),
                Err(lost) => format!("the daemon: {lost}"),
            };
            client = find_again(cluster).ok_or(lost)?;
        }
    }

    /// Makes a job known that needs no room; there may be nobody to know it. The job begins while the daemon writes
    /// that.
    pub fn register(job: &Job) -> Option<Self> {
        let mut client = find(&job.front)?;
        let program = job.programs.first()?;
        let about = Description {
            id: job.id.as_str().to_owned(),
            program: program.program.clone(),
            arguments: program.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            ranks: job.programs.iter().map(|program| program.ranks).sum(),
            ..Description::default()
        };
        let log = log();
        client.tell(&Demand::Register(about)).ok().map(|()| Self { client, job: None, log, limit: None })
    }

    /// How long it may take by its partition.
    pub fn time_limit(&self) -> Option<TimeLimit> {
        self.limit.clone()
    }

    /// Where the launcher is to write what its ranks do.
    pub fn take_log(&mut self) -> Option<JobLog> {
        self.log.take()
    }

    /// What starts an agent on a host of the job: the daemons let it in.
    pub fn launch(&self) -> Result<Launch, String> {
        let weft = std::env::current_exe().map_err(|error| error.to_string())?;
        let daemon = weft.with_file_name(DAEMON).to_string_lossy().replace('\'', r"'\''");
        let job = self.job.as_ref().ok_or("the daemon has not named the job")?;
        format!("'{daemon}' enter {job} {{host}} --").parse().map_err(|error| format!("{error}"))
    }

    /// The job is over. A daemon that was started again meanwhile hears it as well.
    pub fn finish(mut self, front: &str, record: Option<&JobRecord>) {
        let job = self.job.take().or_else(|| match self.client.reply() {
            Ok(ClusterReply::Registered { job }) => Some(job),
            _ => None,
        });
        let Some(job) = job else { return };
        let demand = Demand::Finish { job, record: record.cloned().map(Box::new) };
        let again = |_| ClusterClient::find()?.ok_or(io::ErrorKind::NotFound)?.ask(&demand);
        if let Ok(ClusterReply::Ended(why)) = self.client.ask(&demand).or_else(again) {
            eprintln!("{front}: {why}");
        }
    }
}

/// As long as the user wishes. Without memory for it there is none.
fn log() -> Option<JobLog> {
    let bytes = Settings::from_env(std::env::vars_os()).unwrap_or_default().log_bytes;
    (bytes > 0).then(|| JobLog::new(bytes).ok()).flatten()
}

/// What becomes of a demand for room: it is there, or why not. An error is the daemon's end.
fn answer(front: &str, client: &mut ClusterClient, demand: &Demand) -> io::Result<Result<Grant, String>> {
    client.begin_asking(demand)?;
    loop {
        match client.reply()? {
            ClusterReply::Waiting { before: 0, reason } => say(&format!("{front}: waits: {reason}\n")),
            ClusterReply::Waiting { reason, .. } => say(&format!("{front}: waits, {reason}\n")),
            ClusterReply::Placed(grant) => return Ok(Ok(grant)),
            ClusterReply::Refused(reason) => return Ok(Err(reason)),
            other => return Ok(Err(format!("the daemon: {}", refusal(other)))),
        }
    }
}

/// A line in one piece, since other jobs may wait on the same terminal.
fn say(line: &str) {
    let _ = io::stderr().write_all(line.as_bytes());
}

/// A daemon that has ended may begin again; it is looked for again and again for a while.
fn find_again(cluster: &str) -> Option<ClusterClient> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        std::thread::sleep(AGAIN);
        if let Ok(Some(client)) = ClusterClient::find()
            && client.cluster == cluster
        {
            return Some(client);
        }
    }
    None
}

/// How long a daemon may take to begin again, and between two looks for it.
const PATIENCE: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(50);

/// The daemon of this host. One that does not answer as it must is told, and done without.
fn find(front: &str) -> Option<ClusterClient> {
    ClusterClient::find().unwrap_or_else(|error| {
        eprintln!("{front}: the daemon of this host is not used: {error}");
        None
    })
}

/// The hosts of a job that was granted room, with the way to them.
pub fn hosts_of(
    grant: &Grant,
    map: RankMap,
    launch: Launch,
    patience: Option<Duration>,
) -> Result<LaunchHosts, String> {
    let host = |(name, slots): &(String, usize)| SlotHost { name: name.clone(), slots: *slots };
    let hosts: Vec<SlotHost> = grant.hosts.iter().map(host).collect();
    let ranks = hosts.iter().map(|host| host.slots).sum();
    let places = weft_cluster::hosts::spread(&hosts, map, ranks).map_err(|error| error.to_string())?;
    Ok(LaunchHosts::new(&hosts, &places, launch, patience, false, None))
}

/// Who hears what becomes of a job, beside its user.
#[derive(Default)]
pub struct Listeners {
    /// The daemon that has given it room. Another one that runs here hears it as well.
    pub room: Option<JobRoom>,
    /// The file to which its record is appended.
    pub record: Option<std::path::PathBuf>,
}

impl Listeners {
    pub fn of_environment() -> Self {
        Self { room: None, record: crate::jobs::file_of_environment() }
    }
}
