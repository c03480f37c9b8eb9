//! Clients on this host: `weft run` and the other commands.

use crate::between::{Asker, Errand, Response};
use crate::daemon::Daemon;
use crate::log;
use anyhow::{Context, Result, anyhow};
use blake2::{Blake2s256, Digest};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use weft_requests::{ClusterReply, Demand, JobName, VERSION};

/// A client's line is no longer: nobody needs more to say what he wants.
const MOST_LINE_BYTES: u64 = 1 << 20;

/// Connections of one user.
const MOST_CONNECTIONS: usize = 256;
/// How long a client may take to begin.
const GREETING: Duration = Duration::from_secs(5);

/// Serves a client until it goes.
pub async fn serve(daemon: Rc<Daemon>, stream: UnixStream) {
    let asker = match daemon.askers.asker(&stream).await {
        Ok(asker) => asker,
        Err(error) => {
            let (_, mut writer) = stream.into_split();
            return drop(say(&mut writer, &ClusterReply::Refused(format!("{error:#}"))).await);
        }
    };
    let uid = asker.uid;
    *daemon.askers.connections.borrow_mut().entry(uid).or_default() += 1;
    if asker.is_root() || daemon.askers.connections.borrow()[&uid] <= MOST_CONNECTIONS {
        let begun = converse(&daemon, &asker, stream).await;
        // Where the kernel cannot tell of the launcher, its connection does.
        for number in begun {
            if daemon.home.job(number).is_some_and(|job| !job.has_launcher()) {
                daemon.end_job(number, None);
            }
        }
    }
    let mut connections = daemon.askers.connections.borrow_mut();
    if let Some(count) = connections.get_mut(&uid) {
        *count -= 1;
        connections.retain(|_, count| *count > 0);
    }
}

/// Answers what is asked. What comes back are the jobs that have begun by this connection.
async fn converse(daemon: &Rc<Daemon>, asker: &Asker, stream: UnixStream) -> Vec<u64> {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let mut begun = Vec::new();
    match tokio::time::timeout(GREETING, next(&mut reader)).await {
        Ok(Some(Ok(Demand::Begin { version, weft }))) => {
            let reply = welcome(daemon, asker, version, &weft);
            let is_welcome = matches!(reply, ClusterReply::Welcome { .. });
            // Who waits for no answer may have gone already: what it has said still counts.
            let _ = say(&mut writer, &reply).await;
            if !is_welcome {
                return begun;
            }
        }
        _ => return begun,
    }
    while let Some(demand) = next(&mut reader).await {
        let reply = match demand {
            // What comes behind it may be the rest of it.
            Err(error) => {
                let refused = ClusterReply::Refused(format!("this is nothing that weftd is asked: {error:#}"));
                let _ = say(&mut writer, &refused).await;
                break;
            }
            Ok(Demand::Place(placing)) => match place(daemon, asker, placing, &mut reader, &mut writer).await {
                Some(reply) => reply,
                None => break,
            },
            Ok(demand) => daemon.answer(asker, demand).await,
        };
        if let ClusterReply::Placed(weft_requests::Grant { job, .. }) | ClusterReply::Registered { job } = &reply {
            begun.extend(job.parts().map(|(_, number)| number));
        }
        if say(&mut writer, &reply).await.is_err() {
            break;
        }
    }
    begun
}

fn welcome(daemon: &Daemon, asker: &Asker, version: u32, weft: &str) -> ClusterReply {
    let ours = env!("CARGO_PKG_VERSION");
    if version != VERSION {
        let reason = format!("this is weftd {ours}, which speaks version {VERSION}, and weft {weft} {version}");
        return ClusterReply::Refused(reason);
    }
    if !daemon.serves(asker) {
        return ClusterReply::Refused(format!("this is the daemon of user '{}', for that user alone", daemon.me.user));
    }
    let (cluster, member) = (daemon.cluster_name(), daemon.me.member.clone());
    ClusterReply::Welcome { cluster, member, weft: ours.to_owned() }
}

/// The next thing that is asked; `None` when the client has gone.
async fn next(reader: &mut (impl AsyncBufRead + Unpin)) -> Option<Result<Demand>> {
    let mut line = Vec::new();
    let bytes = reader.take(MOST_LINE_BYTES).read_until(b'\n', &mut line).await.ok()?;
    match line.strip_suffix(b"\n") {
        None if bytes == 0 => None,
        None => Some(Err(anyhow!("a line of more than {MOST_LINE_BYTES} bytes, or cut"))),
        Some(line) => Some(serde_json::from_slice(line).context("it is no demand")),
    }
}

async fn say(writer: &mut OwnedWriteHalf, reply: &ClusterReply) -> Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    Ok(writer.write_all(&line).await?)
}

/// Waits for room, and tells of the waiting. `None` when the client has gone meanwhile: then nobody waits any more.
async fn place(
    daemon: &Rc<Daemon>,
    asker: &Asker,
    placing: weft_requests::Placing,
    reader: &mut BufReader<OwnedReadHalf>,
    writer: &mut OwnedWriteHalf,
) -> Option<ClusterReply> {
    let (sender, mut news) = mpsc::unbounded_channel();
    let placed = daemon.place(asker, placing, &sender);
    tokio::pin!(placed);
    loop {
        tokio::select! {
            reply = &mut placed => return Some(reply),
            Some(reply) = news.recv() => say(writer, &reply).await.ok()?,
            // A client that waits says nothing: it has gone, or does not keep to the rules.
            _ = reader.fill_buf() => return None,
        }
    }
}

impl Daemon {
    /// Answers what a client of this host asks.
    async fn answer(self: &Rc<Self>, asker: &Asker, demand: Demand) -> ClusterReply {
        let refused = |error: anyhow::Error| ClusterReply::Refused(format!("{error:#}"));
        match demand {
            Demand::Register(about) => self.register(asker, about),
            Demand::Finish { job, record } => match self.own_job(asker, &job) {
                Ok(number) if !self.is_launcher(asker, number) => refused(anyhow!("this is not the launcher of {job}")),
                Ok(number) => {
                    let has_failed = record.as_ref().is_some_and(|record| record.exit_code != 0);
                    let job = self.home.job(number).filter(|_| has_failed);
                    let ended_by = job.and_then(|job| job.ended_by.borrow().clone());
                    self.end_job(number, record);
                    ended_by.map_or(ClusterReply::Done, ClusterReply::Ended)
                }
                Err(error) => refused(error),
            },
            Demand::Enter { job, host } => self.pass(asker, &job, &host).await.map_or_else(refused, ClusterReply::Pass),
            Demand::Look { .. } => self.ask_servers(asker, &demand).await,
            Demand::Signal { job: ref name, .. } | Demand::Log { job: ref name, .. } => match name.parts() {
                Some((home, _)) => self.ask_member(asker, home, demand.clone()).await,
                None => ClusterReply::Refused(format!("'{name}' is no job")),
            },
            Demand::Drain { ref member, .. } => self.ask_member(asker, &member.clone(), demand).await,
            Demand::Finished { most, everywhere: false } => {
                self.ended_jobs(asker, most).map_or_else(refused, ClusterReply::Records)
            }
            Demand::Finished { most, .. } => ClusterReply::Records(self.ended_everywhere(asker, most).await),
            Demand::Page => self.page_address(),
            Demand::Database if !self.me.file.may_read(asker) => {
                self.forbid(asker, format!("'{}' is not for user '{}'", self.me.file.path.display(), asker.user))
            }
            Demand::Database => {
                let (file, text) = (self.me.file.path.clone(), self.cluster.borrow().1.clone());
                ClusterReply::Database { file, text }
            }
            Demand::HasKey { key } if self.has_key(&key) => ClusterReply::Done,
            Demand::HasKey { .. } => {
                ClusterReply::Refused(format!("its cluster '{}' has another key", self.cluster_name()))
            }
            Demand::Stop if !asker.is_root() && asker.uid != self.me.uid => {
                self.forbid(asker, format!("user '{}' may not end it", asker.user))
            }
            Demand::Stop => {
                log::say(format!("user '{}' ends it (weft cluster stop)", asker.user));
                self.stop.notify_one();
                ClusterReply::Done
            }
            Demand::Begin { .. } | Demand::Place(_) => ClusterReply::Refused("this is not asked here".to_owned()),
        }
    }

    /// Refuses what a user has no right to.
    fn forbid(&self, asker: &Asker, reason: String) -> ClusterReply {
        ClusterReply::Refused(self.askers.refuse(&asker.user, reason))
    }

    /// Whether this is the cluster's key. Of how much of it is right the time that this takes says nothing.
    fn has_key(&self, key: &str) -> bool {
        let key = crate::door::unhex::<32>(key.trim_end());
        key.is_some_and(|key| Blake2s256::digest(key) == Blake2s256::digest(self.me.key))
    }

    /// Where its page is; one that is served at all addresses of this host has the name of the host.
    fn page_address(&self) -> ClusterReply {
        let Some(place) = *self.glance.page.borrow() else {
            return ClusterReply::Refused("it serves no page".to_owned());
        };
        ClusterReply::Page(match place.ip().is_unspecified() {
            true => format!("http://{}:{}/", self.me.member, place.port()),
            false => format!("http://{place}/"),
        })
    }

    /// Gives a job of this host a signal, or one that waits.
    fn signal_job(&self, asker: &Asker, job: &JobName, signal: i32) -> Result<(), String> {
        let number = job.parts().map_or(0, |(_, number)| number);
        if let Some(waiting) = self.home.signal_waiting(number, signal, asker) {
            return waiting.map_err(|why| format!("job {job} {why}"));
        }
        let running = self.home.job(number).ok_or_else(|| format!("no job {job} runs"))?;
        if !running.is_of(asker) {
            return Err(self.askers.refuse(&asker.user, format!("job {job} is not yours")));
        }
        running.signal(signal, asker).map_err(|error| format!("job {job}: {error}"))
    }

    /// Whether the asker is the launcher of a job itself, as far as that can be known.
    fn is_launcher(&self, asker: &Asker, number: u64) -> bool {
        let job = self.home.job(number);
        job.is_some_and(|job| !job.has_launcher() || (job.begun.pid, job.begun.began) == (asker.pid, asker.began))
    }

    fn own_job(&self, asker: &Asker, job: &JobName) -> Result<u64> {
        let number = job.parts().filter(|(home, _)| *home == self.me.member).map(|(_, number)| number);
        let launched = number.and_then(|number| self.home.job(number)).filter(|launched| launched.is_of(asker));
        Ok(launched.with_context(|| format!("no job {job} of yours runs here"))?.begun.number)
    }

    async fn ask_member(self: &Rc<Self>, asker: &Asker, member: &str, demand: Demand) -> ClusterReply {
        match self.ask_once(member, Errand::For { asker: asker.clone(), demand }).await {
            Ok(Response::Last(reply)) => reply,
            Ok(Response::Failed(reason)) => ClusterReply::Refused(format!("member '{member}': {reason}")),
            Ok(other) => ClusterReply::Refused(format!("member '{member}' answered {other:?}")),
            Err(error) => ClusterReply::Refused(format!("{error:#}")),
        }
    }

    /// Answers what the client of another member asks, or one of ours through this daemon's own door.
    pub async fn answer_for(self: &Rc<Self>, asker: &Asker, demand: Demand) -> ClusterReply {
        match demand {
            Demand::Look { ranks: true } => ClusterReply::View(Box::new(self.view_with_ranks().await)),
            Demand::Look { .. } => ClusterReply::View(Box::new(self.view())),
            Demand::Signal { job, signal } => match self.signal_job(asker, &job, signal) {
                Ok(()) => ClusterReply::Done,
                Err(why) => ClusterReply::Refused(why),
            },
            Demand::Log { job, from } => self.log_of(asker, &job, from),
            Demand::Finished { most, .. } => match self.ended_jobs(asker, most) {
                Ok(records) => ClusterReply::Records(records),
                Err(error) => ClusterReply::Refused(format!("{error:#}")),
            },
            Demand::Drain { .. } if !asker.is_root() && asker.user != self.me.user => {
                self.forbid(asker, format!("user '{}' may not drain '{}'", asker.user, self.me.member))
            }
            Demand::Drain { slots: Some(slots), .. } if slots > self.usual_slots() => ClusterReply::Refused(format!(
                "{slots} slots for '{}', which has {} in the file of cluster '{}'",
                self.me.member,
                self.usual_slots(),
                self.cluster_name()
            )),
            Demand::Drain { slots, .. } => {
                let has = slots.map_or("those of the file".to_owned(), |slots| slots.to_string());
                log::say(format!("slots from now on: {has}, by user '{}' (weft drain)", asker.user));
                self.set_slots(slots);
                ClusterReply::Done
            }
            _ => ClusterReply::Refused("this is not asked of another member".to_owned()),
        }
    }
}
