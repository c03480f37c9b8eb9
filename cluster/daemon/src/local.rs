//! Clients on this host: `weft run` and the other commands.

use crate::between::{Asker, Errand, Response};
use crate::daemon::Daemon;
use crate::home::JobHosts;
use anyhow::{Context, Result, anyhow};
use nix::unistd::{Gid, Group, Uid, User, getgrouplist};
use std::ffi::CString;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use weft_requests::{ClusterReply, Demand, JobName, VERSION};

/// A client's line is no longer: nobody needs more to say what he wants.
const MOST_LINE_BYTES: u64 = 1 << 20;

/// The name and groups of a user are looked up so often.
const KNOWN: Duration = Duration::from_secs(10);

/// Serves a client until it goes.
pub async fn serve(daemon: Rc<Daemon>, stream: UnixStream) {
    let Ok(asker) = asker(&daemon, &stream) else { return };
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let mut has_begun = false;
    let mut without_launcher = None;
    while let Some(demand) = next(&mut reader).await {
        let reply = match demand {
            Err(error) => ClusterReply::Refused(format!("this is nothing that weftd is asked: {error}")),
            Ok(Demand::Begin { .. }) if !daemon.serves(&asker) => {
                ClusterReply::Refused(format!("this is the daemon of user {}, for that user alone", daemon.me.uid))
            }
            Ok(Demand::Begin { version: VERSION, .. }) => {
                has_begun = true;
                welcome(&daemon)
            }
            Ok(Demand::Begin { version, weft }) => {
                let ours = env!("CARGO_PKG_VERSION");
                ClusterReply::Refused(format!(
                    "this is weftd {ours}, which speaks version {VERSION}, and weft {weft} {version}"
                ))
            }
            Ok(_) if !has_begun => ClusterReply::Refused("it has not begun".to_owned()),
            Ok(Demand::Place(placing)) => match place(&daemon, &asker, placing, &mut reader, &mut writer).await {
                Some(reply) => reply,
                None => return,
            },
            Ok(demand) => daemon.answer(&asker, demand).await,
        };
        if let ClusterReply::Placed(weft_requests::Grant { job, .. }) | ClusterReply::Registered { job } = &reply {
            without_launcher = job.parts().map(|(_, number)| number);
        }
        if say(&mut writer, &reply).await.is_err() {
            break;
        }
    }
    // Where the kernel cannot tell of the launcher, its connection does.
    if let Some(number) = without_launcher
        && daemon.home.job(number).is_some_and(|job| !job.has_launcher())
    {
        daemon.end_job(number, None);
    }
}

fn welcome(daemon: &Daemon) -> ClusterReply {
    let (cluster, member) = (daemon.cluster_name(), daemon.me.member.clone());
    ClusterReply::Welcome { cluster, member, weft: env!("CARGO_PKG_VERSION").to_owned() }
}

/// Who is at the other end, as the kernel says.
fn asker(daemon: &Daemon, stream: &UnixStream) -> Result<Asker> {
    let peer = stream.peer_cred()?;
    let (uid, gid, pid) = (peer.uid(), peer.gid(), peer.pid().unwrap_or(0));
    let mut known = daemon.users.borrow_mut();
    known.retain(|_, (_, since)| since.elapsed() < KNOWN);
    if let Some((asker, _)) = known.get(&(uid, gid)) {
        return Ok(Asker { pid, ..asker.clone() });
    }
    let name = User::from_uid(Uid::from_raw(uid)).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name);
    let gid_of = Gid::from_raw(gid);
    let ids = getgrouplist(&CString::new(&*name)?, gid_of).unwrap_or_else(|_| vec![gid_of]);
    let groups = ids.into_iter().filter_map(|id| Group::from_gid(id).ok().flatten()).map(|group| group.name).collect();
    let asker = Asker { user: name, uid, groups, pid };
    known.insert((uid, gid), (asker.clone(), Instant::now()));
    Ok(asker)
}

/// The next thing that is asked; `None` when the client has gone.
async fn next(reader: &mut BufReader<OwnedReadHalf>) -> Option<Result<Demand>> {
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
            Demand::Register(about) => {
                let hosts = vec![(self.me.member.clone(), about.ranks)];
                let place = JobHosts { hosts, ..JobHosts::default() };
                let job = self.begin_job(asker, self.home.new_number(), &about, place);
                ClusterReply::Registered { job: job.name().clone() }
            }
            Demand::Finish { job, record } => match self.own_job(asker, &job) {
                Ok(number) => {
                    self.end_job(number, record);
                    ClusterReply::Done
                }
                Err(error) => refused(error),
            },
            Demand::Enter { job, host } => self.pass(asker, &job, &host).await.map_or_else(refused, ClusterReply::Pass),
            Demand::Look { .. } => self.ask_servers(asker, &demand).await,
            Demand::Signal { job: ref name, .. } => match name.parts() {
                Some((home, _)) => self.ask_member(asker, home, demand.clone()).await,
                None => ClusterReply::Refused(format!("'{name}' is no job")),
            },
            Demand::Drain { ref member, .. } => self.ask_member(asker, &member.clone(), demand).await,
            Demand::Finished { most, everywhere: false } => {
                self.ended_jobs(asker, most).map_or_else(refused, ClusterReply::Records)
            }
            Demand::Finished { most, .. } => ClusterReply::Records(self.ended_everywhere(asker, most).await),
            Demand::Page => match *self.page.borrow() {
                Some(place) => ClusterReply::Page(format!("http://{place}/")),
                None => ClusterReply::Refused("it serves no page".to_owned()),
            },
            Demand::Stop if !asker.is_root() && asker.uid != self.me.uid => {
                ClusterReply::Refused(format!("user '{}' may not end it", asker.user))
            }
            Demand::Stop => {
                self.stop.notify_one();
                ClusterReply::Done
            }
            Demand::Begin { .. } | Demand::Place(_) => ClusterReply::Refused("this is not asked here".to_owned()),
        }
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
            Demand::Look { .. } => ClusterReply::View(Box::new(self.view())),
            Demand::Signal { job, signal } => {
                let number = job.parts().map(|(_, number)| number);
                match number.and_then(|number| self.home.job(number)) {
                    Some(job) if job.is_of(asker) => match job.signal(signal) {
                        Ok(()) => ClusterReply::Done,
                        Err(error) => ClusterReply::Refused(format!("job {}: {error}", job.name())),
                    },
                    Some(_) => ClusterReply::Refused(format!("job {job} is not yours")),
                    None => ClusterReply::Refused(format!("no job {job} runs")),
                }
            }
            Demand::Finished { most, .. } => match self.ended_jobs(asker, most) {
                Ok(records) => ClusterReply::Records(records),
                Err(error) => ClusterReply::Refused(format!("{error:#}")),
            },
            Demand::Drain { .. } if !asker.is_root() && asker.uid != self.me.uid => {
                ClusterReply::Refused(format!("user '{}' may not drain '{}'", asker.user, self.me.member))
            }
            Demand::Drain { slots, .. } => {
                self.set_slots(slots);
                ClusterReply::Done
            }
            _ => ClusterReply::Refused("this is not asked of another member".to_owned()),
        }
    }
}
