//! The door: how a job of another host enters this one, or one of this host another.
//!
//! The daemon of a host gives a ticket for each job that it lets in ([`Tickets`]). Who shows it connects to the
//! daemon's port and gets a process of its own, the *door* ([`serve`]), which is the user's from its beginning and
//! starts one command for it, the agent. On the side of the launcher [`enter`] is what a launch command is: its
//! standard input and output are the agent's. Both ends of the way are processes of the job, so daemons may end under
//! it. A host that is silent for [`SILENCE`] is given up by both.

use crate::launcher::run_first;
use crate::log;
use crate::seal::{self, MOST_PART_BYTES, Preamble, SealedReader, SealedWriter, Secret, TicketId};
use anyhow::{Context, Result, anyhow, bail};
use nix::unistd::{User, initgroups, setgid, setuid};
use rustix::process::{getpid, setpriority_process};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::AsFd;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use weft_requests::client::ClusterClient;
use weft_requests::{ClusterReply, Demand, JobName, Pass};

/// What tells the door whom it is for; nobody else has it in the environment.
pub const VARIABLE: &str = "WEFTD_ADMISSION";
/// How long a ticket is good for.
const VALID: Duration = Duration::from_secs(60);
/// Tickets of one user that are out at the same time.
const MOST_TICKETS: usize = 2048;
/// How long the daemon of this host may take to begin again, and between two looks for it.
const PATIENCE: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(50);
/// How long the other side may take to hear how the command has ended: it may be cut off for a while.
const LAST: Duration = SILENCE;
/// A host that says nothing for so long, and answers nothing, is given up.
pub const SILENCE: Duration = Duration::from_secs(30);

/// Whom a door is for.
#[derive(Clone, Serialize, Deserialize)]
pub struct Admission {
    ticket: TicketId,
    secret: Secret,
    pub job: JobName,
    user: String,
    priority: i32,
    /// The real-time priority, where it has one.
    first: Option<i32>,
    /// Whether its partition's jobs take turns.
    pub takes_turns: bool,
}

/// How the kernel runs a job's processes.
#[derive(Clone, Copy, Default)]
pub struct Preference {
    pub priority: i32,
    pub first: Option<i32>,
    pub takes_turns: bool,
}

/// Jobs that may enter, and those that have.
#[derive(Default)]
pub struct Tickets {
    given: HashMap<TicketId, (Admission, Instant)>,
    /// How many doors each has here that are open.
    inside: HashMap<JobName, usize>,
}

impl Tickets {
    /// Lets a job in, once.
    ///
    /// # Errors
    /// Too many are let in, or the system gives no random numbers.
    pub fn admit(&mut self, job: JobName, user: String, how: Preference) -> Result<Pass> {
        self.given.retain(|_, (_, since)| since.elapsed() < VALID);
        if self.given.values().filter(|(given, _)| given.user == user).count() >= MOST_TICKETS {
            bail!("{MOST_TICKETS} jobs of user '{user}' are about to enter already");
        }
        let (ticket, secret): (TicketId, Secret) = (random()?, random()?);
        let pass = Pass { addresses: Vec::new(), ticket: hex(&ticket), secret: hex(&secret) };
        let Preference { priority, first, takes_turns } = how;
        let admission = Admission { ticket, secret, job, user, priority, first, takes_turns };
        self.given.insert(ticket, (admission, Instant::now()));
        Ok(pass)
    }

    /// A door is opened for a job.
    pub fn enter(&mut self, job: &JobName) {
        *self.inside.entry(job.clone()).or_default() += 1;
    }

    /// It is closed.
    pub fn leave(&mut self, job: &JobName) {
        if let Some(count) = self.inside.get_mut(job) {
            *count -= 1;
            self.inside.retain(|_, count| *count > 0);
        }
    }

    pub fn is_inside(&self, job: &JobName) -> bool {
        self.inside.contains_key(job)
    }

    pub fn take(&mut self, ticket: TicketId) -> Option<Admission> {
        let (admission, since) = self.given.remove(&ticket)?;
        (since.elapsed() < VALID).then_some(admission)
    }
}

/// Bytes that nobody can guess.
///
/// # Errors
/// The system has none.
pub fn random<const BYTES: usize>() -> Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    if got == BYTES { Ok(bytes) } else { bail!("the system gives no random numbers") }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads what [`hex`] writes.
pub fn unhex<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    if text.len() != 2 * BYTES || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

/// The process of the door: becomes the user, then hears what to start.
///
/// # Errors
/// It has not been started by a daemon, or the other side is gone.
pub async fn serve() -> Result<()> {
    let admission = std::env::var(VARIABLE).map_err(|_| anyhow!("only a daemon opens a door"))?;
    let admission: Admission = serde_json::from_str(&admission)?;
    let user =
        User::from_name(&admission.user)?.ok_or_else(|| anyhow!("no user '{}' is known here", admission.user))?;
    if let Some(first) = admission.first
        && let Err(error) = run_first(0, first)
    {
        log::say(format!("job {}: the policy of its partition, fifo, is not applied: {error}", admission.job));
    }
    become_user(&user, admission.priority)?;
    let connection = std::io::stdin().as_fd().try_clone_to_owned()?;
    let stream = std::net::TcpStream::from(connection);
    stream.set_nonblocking(true)?;
    let stream = seal::watched(TcpStream::from_std(stream)?, SILENCE)?;
    let (mut reader, mut writer) = seal::respond(stream, Preamble::Ticket(admission.ticket), &admission.secret).await?;
    let words = seal::message::read(&mut reader).await?.context("nothing to start")?;
    let words: Vec<String> = serde_json::from_slice(&words)?;
    match start(&words, &user) {
        Ok(child) => relay(child, reader, writer).await,
        Err(error) => {
            let reason = format!("weftd: '{}': {error}\n", words.first().map_or("", String::as_str));
            writer.write(&[&[DoorStream::Error as u8], reason.as_bytes()].concat()).await?;
            end(&mut writer, 127).await?;
            let _ = tokio::time::timeout(LAST, reader.drain()).await;
            Ok(())
        }
    }
}

fn become_user(user: &User, priority: i32) -> Result<()> {
    // The daemon's terminal, if it has one, is not the job's.
    let _ = rustix::process::setsid();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    // Nicer means less. It must be done before the rights are gone, and a wish that cannot be met is none of the job's.
    let _ = setpriority_process(Some(getpid()), -priority.clamp(-19, 20));
    if user.uid == nix::unistd::geteuid() {
        return Ok(());
    }
    initgroups(&CString::new(&*user.name)?, user.gid).context("groups")?;
    setgid(user.gid).context("group")?;
    setuid(user.uid).context("user")
}

fn start(words: &[String], user: &User) -> Result<Child> {
    let (program, arguments) = words.split_first().context("nothing to start")?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear();
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin");
    command.env("HOME", &user.dir).env("USER", &user.name).env("LOGNAME", &user.name).env("SHELL", &user.shell);
    command.current_dir(if user.dir.is_dir() { &user.dir } else { std::path::Path::new("/") });
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    Ok(command.spawn()?)
}

/// What the parts of a connection are.
#[derive(Clone, Copy, PartialEq)]
#[repr(u8)]
enum DoorStream {
    /// Standard input one way, standard output the other; nothing is its end.
    Data = 0,
    Error = 1,
    /// How the command has ended, in four bytes.
    Exit = 2,
}

/// Passes on what the command and the other side say, until the command has ended or the other side is gone.
async fn relay(mut child: Child, mut reader: SealedReader, mut writer: SealedWriter) -> Result<()> {
    let (Some(input), Some(mut output), Some(mut error)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        bail!("the command has no pipes")
    };
    let feed = async {
        let mut input = Some(input);
        while let Ok(Some(part)) = reader.read().await {
            match (part.split_first(), &mut input) {
                (Some((0, [])), _) => input = None,
                (Some((0, bytes)), Some(to)) => {
                    // What the command no longer reads is lost, as with a pipe.
                    let _ = to.write_all(bytes).await;
                }
                _ => {}
            }
        }
    };
    let tell = async {
        let mut places = [vec![0; MOST_PART_BYTES], vec![0; 4096]];
        let [data, said] = &mut places;
        let mut open = (true, true);
        while open.0 || open.1 {
            tokio::select! {
                more = part(&mut output, DoorStream::Data, data), if open.0 => match more {
                    Some(bytes) => writer.write(&data[..bytes]).await?,
                    None => open.0 = false,
                },
                more = part(&mut error, DoorStream::Error, said), if open.1 => match more {
                    Some(bytes) => writer.write(&said[..bytes]).await?,
                    None => open.1 = false,
                },
            }
        }
        let status = child.wait().await?;
        use std::os::unix::process::ExitStatusExt;
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        end(&mut writer, code).await
    };
    let told = tokio::select! {
        () = feed => return Ok(()),
        told = tell => told,
    };
    // What is closed with something unread in it takes back what it has sent last.
    let _ = tokio::time::timeout(LAST, reader.drain()).await;
    told
}

/// The next part of a stream: what it is, and its bytes. `None` at its end.
async fn part(from: &mut (impl AsyncRead + Unpin), channel: DoorStream, place: &mut [u8]) -> Option<usize> {
    place[0] = channel as u8;
    match from.read(&mut place[1..]).await {
        Ok(bytes @ 1..) => Some(1 + bytes),
        _ => None,
    }
}

async fn end(writer: &mut SealedWriter, code: i32) -> Result<()> {
    let mut part = vec![DoorStream::Exit as u8];
    part.extend_from_slice(&code.to_be_bytes());
    writer.write(&part).await?;
    writer.close().await;
    Ok(())
}

/// What a launch command is in a cluster with daemons: starts `words` on a host of a job, and is that command. Answers
/// its exit code.
///
/// # Errors
/// The daemons do not let it in, or the host is lost.
pub async fn enter(job: JobName, host: &str, words: &[String]) -> Result<i32> {
    let begun = Instant::now();
    let (reader, mut writer) = loop {
        let pass = ask_for_pass(&job, host).await?;
        match connect(&pass).await {
            Ok(connected) => break connected,
            Err(error) if begun.elapsed() > SILENCE => return Err(error.context(format!("host '{host}'"))),
            // Its daemon has ended since it gave the ticket, or the host is cut off: then another one may be good.
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    };
    seal::message::write(&mut writer, &serde_json::to_vec(words)?).await?;
    let feed = tokio::task::spawn_local(feed(writer));
    let code = show(reader).await;
    feed.abort();
    code.with_context(|| format!("host '{host}'"))
}

/// Shows a ticket.
async fn connect(pass: &Pass) -> Result<(SealedReader, SealedWriter)> {
    let (ticket, secret) = (unhex(&pass.ticket), unhex(&pass.secret));
    let (Some(ticket), Some(secret)) = (ticket, secret) else { bail!("the daemon's ticket is none") };
    let stream = TcpStream::connect(&*pass.addresses).await?;
    seal::initiate(seal::watched(stream, SILENCE)?, Preamble::Ticket(ticket), &secret).await
}

/// Asks the daemon of this host, which may just be beginning again.
async fn ask_for_pass(job: &JobName, host: &str) -> Result<Pass> {
    let demand = Demand::Enter { job: job.clone(), host: host.to_owned() };
    let begun = Instant::now();
    loop {
        let asked = ClusterClient::find().and_then(|daemon| match daemon {
            // The host may have to be waited for.
            Some(mut daemon) => daemon.begin_asking(&demand).and_then(|()| daemon.reply()),
            None => Err(std::io::Error::other("no daemon runs on this host")),
        });
        match asked {
            Ok(ClusterReply::Pass(pass)) => return Ok(pass),
            Ok(other) => return Err(weft_requests::client::refusal(other).into()),
            Err(error) if begun.elapsed() > PATIENCE => return Err(error.into()),
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    }
}

/// Our standard input, to its end.
async fn feed(mut writer: SealedWriter) {
    let mut input = tokio::io::stdin();
    let mut place = vec![0; MOST_PART_BYTES];
    while let Some(bytes) = part(&mut input, DoorStream::Data, &mut place).await {
        if writer.write(&place[..bytes]).await.is_err() {
            return;
        }
    }
    let _ = writer.write(&[DoorStream::Data as u8]).await;
    // The connection stays: its other half still speaks.
    std::future::pending::<()>().await;
}

async fn show(mut reader: SealedReader) -> Result<i32> {
    let (mut output, mut error) = (tokio::io::stdout(), tokio::io::stderr());
    loop {
        let part = reader.read().await?.context("the connection has ended")?;
        match part.split_first() {
            Some((0, bytes)) => {
                output.write_all(bytes).await?;
                output.flush().await?;
            }
            Some((1, bytes)) => {
                error.write_all(bytes).await?;
                error.flush().await?;
            }
            Some((2, code)) => return Ok(i32::from_be_bytes(code.try_into().context("no exit code")?)),
            _ => bail!("a part of no kind"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_good_once() {
        let mut tickets = Tickets::default();
        let pass = tickets.admit(JobName::new("node1", 1), "ann".to_owned(), Preference::default()).expect("admitted");
        let ticket = unhex(&pass.ticket).expect("digits");
        let admission = tickets.take(ticket).expect("known");
        assert_eq!(hex(&admission.secret), pass.secret);
        assert!(tickets.take(ticket).is_none());
        assert!(tickets.take([0; 16]).is_none());
    }

    #[test]
    fn a_job_is_inside_until_its_last_door_is_closed() {
        let (mut tickets, job) = (Tickets::default(), JobName::new("node1", 1));
        let mut seen = vec![tickets.is_inside(&job)];
        for step in [Tickets::enter, Tickets::enter, Tickets::leave, Tickets::leave, Tickets::leave] {
            step(&mut tickets, &job);
            seen.push(tickets.is_inside(&job));
        }
        assert_eq!(seen, [false, true, true, true, false, false]);
    }

    #[test]
    fn digits_are_read_as_they_were_written() {
        assert_eq!(unhex(&hex(&[0, 17, 255])), Some([0, 17, 255]));
        for wrong in ["", "0", "zz", "0011", "é"] {
            assert_eq!(unhex::<1>(wrong), None, "{wrong}");
        }
    }
}
