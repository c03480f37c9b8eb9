//! `weftd`, the daemon of a cluster: one on each member.
//!
//! It lets the jobs of the cluster in ([`door`]), knows which jobs its host has started ([`home`]), which members are
//! alive ([`alive`]) and what has run ([`records`]), says how its host is ([`report`]), and, where the database names
//! it as a server, decides which job gets which slots ([`server`], [`orders`]). Clients of its host talk to it by a
//! local socket ([`local`]), other daemons by sealed connections ([`between`], [`seal`]).
//!
//! What holds:
//! - Nothing of a job goes through a daemon once the job runs. Daemons end and begin under running jobs.
//! - The member that has a job's launcher is the one that knows of the job; what servers know is what members say.
//! - Who asks is what the kernel of his host says of him. A daemon of one user serves that user; only root's acts for
//!   others.
//! - No client can make it wait for another: a task waits, never the daemon.
//!
//! Not here: starting ranks and caring for them (weft-agent), and the file that says what a cluster is (weft-database).
//!
//! Test: `cargo test -p weftd`; whole clusters on several hosts: `cargo test -p weft-tests --test hosts_daemon`.
#![deny(unsafe_code)]

mod alive;
mod asker;
mod beginning;
mod between;
mod calls;
mod clients;
mod daemon;
mod door;
mod file;
mod home;
#[cfg(test)]
mod hostile;
mod jobs;
mod launcher;
mod local;
mod log;
mod logs;
mod manual;
mod orders;
mod page;
mod ranks;
mod reach;
mod records;
mod report;
mod reserved;
mod ring;
mod seal;
mod seen;
mod server;
mod telling;
mod turns;
mod unreached;
mod versions;
mod view;
mod watching;

use anyhow::{Context, Result, bail};
use beginning::Beginning;
use clap::{Parser, Subcommand};
use daemon::{Daemon, Me};
use file::DatabaseFile;
use seal::{NoPreamble, PREAMBLE_BYTES, Preamble};
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::signal::unix::{SignalKind, signal};
use weft_database::Cluster;
use weft_requests::{JobName, client};

/// Looks after one host of a cluster: lets jobs in, counts slots, keeps records. `weft cluster start` starts it
/// everywhere.
#[derive(Parser)]
#[command(name = "weftd", version, max_term_width = 100, args_conflicts_with_subcommands = true)]
struct DaemonArguments {
    #[command(subcommand)]
    command: Option<DaemonCommand>,
    #[command(flatten)]
    serve: Option<ServeArguments>,
}

#[derive(clap::Args)]
struct ServeArguments {
    /// The file of the cluster
    file: PathBuf,
    /// The member that this host is [default: the one with the name of this host, or one of its addresses]
    #[arg(long, value_name = "MEMBER")]
    name: Option<String>,
    /// The key of the cluster: a file that only its owner can read, the same on all members [default: beside the file,
    /// with .key for .toml]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Where records are kept [default: /var/lib/weft, or ~/.local/state/weft for a user]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// The name of the local socket [default: one that tells the user]
    #[arg(long, value_name = "NAME")]
    socket: Option<String>,
    /// Have no terminal, which whoever starts it may have
    #[arg(long, hide = true)]
    detach: bool,
    /// Where the page for browsers is served [default: this host alone, 127.0.0.1, on the port after that of the
    /// cluster, 7338]
    #[arg(long, value_name = "ADDRESS:PORT")]
    page: Option<SocketAddr>,
    /// What others than this host must show to see the page: a file with one word, which only its owner can read
    #[arg(long, value_name = "FILE")]
    page_token: Option<PathBuf>,
}

#[derive(Subcommand)]
enum DaemonCommand {
    /// Let one job in.
    #[command(hide = true)]
    Door,
    /// Give jobs their turns.
    #[command(hide = true)]
    Turns,
    /// Write the manual page.
    #[command(hide = true)]
    Man { folder: PathBuf },
    /// Start a command on a host of a job.
    #[command(hide = true)]
    Enter {
        job: JobName,
        host: String,
        #[arg(trailing_var_arg = true, required = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
}

fn main() {
    let given = DaemonArguments::parse();
    // A command of a user's job tells the user, who needs no time.
    let is_for_a_job = matches!(given.command, Some(DaemonCommand::Enter { .. }));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.context("no event loop").and_then(|runtime| {
        let local = tokio::task::LocalSet::new();
        let done = local.block_on(&runtime, async {
            match (given.command, given.serve) {
                (Some(DaemonCommand::Door), _) => door::serve().await.map(|()| 0),
                (Some(DaemonCommand::Enter { job, host, command }), _) => door::enter(job, &host, &command).await,
                (Some(DaemonCommand::Man { folder }), _) => manual::write(&folder).map(|()| 0),
                (Some(DaemonCommand::Turns), _) => turns::slicer::serve().map(|()| 0),
                (None, Some(given)) => serve(given).await.map(|()| 0),
                (None, None) => bail!("it is not said which cluster: weftd FILE"),
            }
        });
        // A thread may wait for standard input, and would be waited for; at the end of the process as well.
        runtime.shutdown_background();
        done
    });
    std::process::exit(done.unwrap_or_else(|error| {
        let told = format!("{error:#}");
        match is_for_a_job {
            true => eprintln!("weftd: {told}"),
            false => told.lines().for_each(log::say),
        }
        1
    }))
}

/// Lives as the daemon, until it is told to end.
async fn serve(given: ServeArguments) -> Result<()> {
    if given.detach {
        // It may lead a group already; then it stays where it is.
        let _ = rustix::process::setsid();
    }
    raise_limit();
    let uid = weft_kernel::user();
    let state = given.state.map_or_else(|| state_folder(uid), Ok)?;
    let file = std::path::absolute(&given.file)?;
    let Beginning { cluster, text, member, records, trouble } = Beginning::find(&file, given.name.as_deref(), &state)?;
    trouble.iter().for_each(log::say);
    let key = key(&given.key.unwrap_or_else(|| given.file.with_extension("key")))?;
    let socket = given.socket.unwrap_or_else(|| client::socket_name(uid));
    let clients = clients::socket(&socket)?;
    let places = places(&cluster, &member);
    let others = listen(&places).await?;
    let sockets = Rc::new(alive::bind(&places).await?);
    let user = nix::unistd::User::from_uid(uid.into())?.map_or_else(String::new, |user| user.name);
    let page = given.page.or_else(|| Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), cluster.port.checked_add(1)?)));
    let daemon =
        Daemon::new(Me { member, uid, user, key, file: DatabaseFile::new(file, trouble) }, cluster, text, records)?;
    tokio::task::spawn_local(Rc::clone(&daemon).tell());
    tokio::task::spawn_local(watching::watch(Rc::clone(&daemon), Rc::clone(&sockets)));
    tokio::task::spawn_local(unreached::look_for_reasons(Rc::clone(&daemon)));
    serve_page(&daemon, page, given.page_token.as_deref()).await?;
    daemon.say_begun();
    let (mut ends, mut hangs) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        () = accept_clients(&daemon, clients) => {}
        () = accept_others(&daemon, others) => {}
        _ = ends.recv() => log::say("was sent SIGTERM"),
        _ = hangs.recv() => log::say("was sent SIGINT"),
        () = daemon.stop.notified() => {
            // The one who has asked hears it.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    daemon.alive.leave(&sockets).await;
    log::say("ends; jobs go on");
    Ok(())
}

/// Each connection and each job needs a descriptor.
fn raise_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With fewer, fewer are served.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// The page is no reason not to serve jobs: where its place is taken, that is told.
async fn serve_page(daemon: &Rc<Daemon>, place: Option<SocketAddr>, token: Option<&Path>) -> Result<()> {
    let Some(place) = place else { return Ok(()) };
    let token = token.map(weft_lanes::key::content).transpose().context("--page-token")?;
    let token = token.map(|token| String::from_utf8_lossy(&token).trim().to_owned());
    match TcpListener::bind(place).await {
        Ok(listener) => {
            *daemon.glance.page.borrow_mut() = listener.local_addr().ok();
            let of = Rc::clone(daemon);
            tokio::task::spawn_local(page::serve(listener, move |is_looked_at| of.page_view(is_looked_at), token));
        }
        Err(error) => log::say(format!("the page cannot be served at {place}: {error}")),
    }
    Ok(())
}

/// The key of the cluster: 64 hexadecimal digits.
fn key(path: &Path) -> Result<seal::Secret> {
    let content = weft_lanes::key::content(path)?;
    let digits = std::str::from_utf8(&content).ok().and_then(|text| door::unhex(text.trim_end()));
    digits.with_context(|| format!("key file {} must have 64 hexadecimal digits", path.display()))
}

fn state_folder(uid: u32) -> Result<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = || if uid == 0 { Some("/var/lib".into()) } else { Some(absolute("HOME")?.join(".local/state")) };
    let state = absolute("XDG_STATE_HOME").or_else(own);
    Ok(state.context("neither XDG_STATE_HOME nor HOME is set: --state says where records go")?.join("weft"))
}

/// Where the member is reached: at its addresses, or all of the host where it has none.
fn places(cluster: &Cluster, member: &str) -> Vec<SocketAddr> {
    let addresses = cluster.member(member).map(|member| member.addresses.clone()).unwrap_or_default();
    let addresses = if addresses.is_empty() { vec![Ipv4Addr::UNSPECIFIED.into()] } else { addresses };
    addresses.into_iter().map(|address| SocketAddr::new(address, cluster.port)).collect()
}

async fn listen(places: &[SocketAddr]) -> Result<Vec<TcpListener>> {
    let mut all = Vec::new();
    for place in places {
        let taken = || format!("{place} is not to be had; `port` in the cluster's file names another port");
        all.push(TcpListener::bind(place).await.with_context(taken)?);
    }
    Ok(all)
}

async fn accept_clients(daemon: &Rc<Daemon>, listener: UnixListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::task::spawn_local(local::serve(Rc::clone(daemon), stream))),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// How many may be connected that have not said who they are, and how many of them from one address.
const MOST_STRANGERS: usize = 512;
const MOST_FROM_ONE: usize = 64;
/// How long they may take.
const INTRODUCTION: Duration = Duration::from_secs(4);

async fn accept_others(daemon: &Rc<Daemon>, listeners: Vec<TcpListener>) {
    let strangers = Rc::new(Newcomers::default());
    let each = listeners.into_iter().map(|listener| {
        let (daemon, strangers) = (Rc::clone(daemon), Rc::clone(&strangers));
        tokio::task::spawn_local(async move {
            loop {
                let Ok((stream, from)) = listener.accept().await else {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                // Who has come says who it is before the next one comes, if it has said so already.
                tokio::task::yield_now().await;
                let Some(stranger) = Newcomers::admit(&strangers, from.ip()) else { continue };
                let daemon = Rc::clone(&daemon);
                tokio::task::spawn_local(async move {
                    let introduced = tokio::time::timeout(INTRODUCTION, introduce(&daemon, stream)).await;
                    drop(stranger);
                    if let Ok(Some(visitor)) = introduced {
                        welcome(daemon, visitor).await;
                    }
                });
            }
        })
    });
    for task in each.collect::<Vec<_>>() {
        let _ = task.await;
    }
}

/// Those who are connected and have not said who they are, by their addresses.
#[derive(Default)]
struct Newcomers(RefCell<HashMap<IpAddr, usize>>);

/// One of them, for as long as it is one.
struct Newcomer(Rc<Newcomers>, IpAddr);

impl Newcomers {
    /// One more, if there are not too many: who opens many connections from one address keeps nobody else out.
    fn admit(strangers: &Rc<Self>, from: IpAddr) -> Option<Newcomer> {
        let mut all = strangers.0.borrow_mut();
        let of_it = all.get(&from).copied().unwrap_or(0);
        if of_it >= MOST_FROM_ONE || all.values().sum::<usize>() >= MOST_STRANGERS {
            return None;
        }
        all.insert(from, of_it + 1);
        Some(Newcomer(Rc::clone(strangers), from))
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        let mut all = self.0.0.borrow_mut();
        if let Some(count) = all.get_mut(&self.1) {
            *count -= 1;
            all.retain(|_, count| *count > 0);
        }
    }
}

/// What a connection is for. Who speaks another version is told ours.
async fn introduce(daemon: &Daemon, mut stream: TcpStream) -> Option<Visitor> {
    let mut bytes = [0; PREAMBLE_BYTES];
    stream.read_exact(&mut bytes).await.ok()?;
    match Preamble::read(&bytes) {
        Ok(what @ Preamble::Daemon) => {
            let stream = seal::watched(stream, between::SILENCE).ok()?;
            Some(Visitor::Daemon(seal::respond(stream, what, &daemon.me.key).await.ok()?))
        }
        Ok(Preamble::Ticket(ticket)) => {
            let admission = daemon.tickets.borrow_mut().take(ticket)?;
            Some(Visitor::Job(Box::new(admission), stream))
        }
        Err(NoPreamble::Version(version)) => {
            daemon.tell_of_version(version);
            None
        }
        Err(NoPreamble::Stranger) => None,
    }
}

/// Who has proved to be no stranger.
enum Visitor {
    Daemon((seal::SealedReader, seal::SealedWriter)),
    Job(Box<door::Admission>, TcpStream),
}

async fn welcome(daemon: Rc<Daemon>, visitor: Visitor) {
    match visitor {
        Visitor::Daemon(sealed) => calls::serve(daemon, sealed).await,
        Visitor::Job(admission, stream) => {
            if let Err(error) = daemon.open_door(stream, &admission) {
                log::say(format!("job {} cannot enter: {error:#}", admission.job));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_from_one_address_keep_no_other_out() {
        let strangers = Rc::new(Newcomers::default());
        let admit = |host: u8| Newcomers::admit(&strangers, IpAddr::from([192, 0, 2, host]));
        let mut first: Vec<_> = std::iter::from_fn(|| admit(1)).collect();
        assert_eq!(first.len(), MOST_FROM_ONE);
        let second = admit(2).expect("another address");
        drop((first.pop(), second));
        assert!(admit(1).is_some());
        let all: Vec<_> = (2..=255).flat_map(|host| std::iter::from_fn(move || Some(host)).map_while(admit)).collect();
        assert_eq!(first.len() + all.len(), MOST_STRANGERS);
        drop((first, all));
        assert!(strangers.0.borrow().is_empty());
    }
}
