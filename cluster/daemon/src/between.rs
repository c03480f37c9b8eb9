//! What daemons say to each other, and the connections over which they do.
//!
//! A daemon that asks another one connects to it, and keeps the connection: each direction has its own. On it are calls
//! and their answers, as JSON; a call that is no longer wanted is cancelled, and all calls of a connection that breaks
//! are. Whoever is connected knows the cluster's key ([`crate::seal`]), so what it says of its user is believed.

use crate::orders::HeldSlots;
use crate::report::HostReport;
use crate::seal::{self, Preamble, SealedReader, SealedWriter, Secret, message};
use crate::seen::JobRanks;
use crate::turns::table::HostTurns;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use weft_requests::{ClusterReply, Demand, JobName, LoadView, Pass, Placing};

/// How long a host may take to be reached.
const CONNECT: Duration = Duration::from_secs(4);
/// A member that is silent for so long is no longer connected.
pub const SILENCE: Duration = Duration::from_secs(10);
/// How long an answer may take that needs no waiting.
const PATIENCE: Duration = Duration::from_secs(8);

/// Who asks: what the kernel of its host has said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asker {
    pub user: String,
    pub uid: u32,
    pub groups: Vec<String>,
    /// Its process, on the host where it runs, and when that began; 0 where that is not known.
    pub pid: i32,
    pub began: u64,
}

impl Asker {
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }
}

/// What one daemon asks another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Errand {
    /// Comes first, and makes sure that both are of one cluster.
    Greet { cluster: String, member: String },
    /// What a client of the daemon asks.
    For { asker: Asker, demand: Demand },
    /// Room for a job, from the member that has its launcher.
    Order { asker: Asker, job: JobName, placing: Placing },
    /// The server in charge has given a job this: the others know it before the job's member tells.
    Granted { job: JobName, held: HeldSlots },
    /// A job is over.
    Over { job: JobName },
    /// Whether the launcher of a job is here, or is about to be, or a door of it.
    Holds { job: JobName },
    /// A job will enter: its user, and what it has.
    Admit { job: JobName, user: String, priority: i32, partition: Option<String> },
    /// How a host is, when something has changed there. Answered with the version of the database.
    Heed(Box<HostReport>),
    /// Nothing has changed there since. Answered like that, or not where nothing was heard before.
    Still { member: String, load: LoadView },
    /// A database.
    Adopt { text: String },
    /// What the ranks on a host do.
    Ranks,
    /// The jobs of a host that take turns, from the server in charge.
    Turns { server: String, turns: HostTurns },
    /// What time it is there, in nanoseconds of a clock that nobody sets.
    Clock,
}

/// What comes back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Response {
    Reply(ClusterReply),
    /// The last one of a call.
    Last(ClusterReply),
    Admitted(Pass),
    Ranks(Vec<JobRanks>),
    Holds(bool),
    Version(u64),
    Clock(u64),
    Failed(String),
}

impl Response {
    pub fn is_last(&self) -> bool {
        !matches!(self, Self::Reply(_))
    }
}

#[derive(Serialize, Deserialize)]
pub enum DaemonLetter {
    // Boxed: a connection that is idle keeps room for some letters.
    Call(u64, Box<Errand>),
    Cancel(u64),
    Response(u64, Box<Response>),
}

/// Where what comes back goes to.
pub type Responses = mpsc::UnboundedSender<Response>;

/// A connection to another daemon.
pub struct DaemonLink {
    out: mpsc::UnboundedSender<DaemonLetter>,
    waiting: RefCell<HashMap<u64, Responses>>,
    next: Cell<u64>,
}

/// A call that is under way; it is cancelled when this is dropped.
pub struct PendingCall {
    how: CallWay,
    responses: mpsc::UnboundedReceiver<Response>,
}

enum CallWay {
    Far {
        link: Rc<DaemonLink>,
        number: u64,
    },
    /// It is carried out here.
    Near(AbortHandle),
}

impl DaemonLink {
    /// Connects to a member.
    ///
    /// # Errors
    /// It cannot be reached at any of the addresses, or is not of this cluster.
    pub async fn connect(key: &Secret, cluster: &str, member: &str, addresses: &[SocketAddr]) -> Result<Rc<Self>> {
        let mut failed = anyhow::anyhow!("member '{member}' has no address");
        for address in addresses {
            match tokio::time::timeout(CONNECT, Self::open(key, cluster, member, *address)).await {
                Ok(Ok(link)) => return Ok(link),
                Ok(Err(error)) => failed = error.context(format!("member '{member}' at {address}")),
                Err(_) => failed = anyhow::anyhow!("member '{member}' at {address}: no answer"),
            }
        }
        Err(failed)
    }

    async fn open(key: &Secret, cluster: &str, member: &str, address: SocketAddr) -> Result<Rc<Self>> {
        let stream = seal::watched(TcpStream::connect(address).await?, SILENCE)?;
        let (reader, writer) = seal::initiate(stream, Preamble::Daemon, key).await?;
        let (out, letters) = mpsc::unbounded_channel();
        let link = Rc::new(Self { out, waiting: RefCell::default(), next: Cell::new(0) });
        tokio::task::spawn_local(write_all(letters, writer));
        tokio::task::spawn_local(Rc::clone(&link).read_responses(reader));
        let greeting = Errand::Greet { cluster: cluster.to_owned(), member: member.to_owned() };
        match link.ask(greeting).last().await? {
            Response::Version(_) => Ok(link),
            Response::Failed(reason) => bail!("{reason}"),
            other => bail!("it greets with what means nothing here: {other:?}"),
        }
    }

    pub fn is_open(&self) -> bool {
        !self.out.is_closed()
    }

    /// Begins a call.
    pub fn ask(self: &Rc<Self>, errand: Errand) -> PendingCall {
        let number = self.next.replace(self.next.get() + 1);
        let (sender, responses) = mpsc::unbounded_channel();
        self.waiting.borrow_mut().insert(number, sender);
        if self.out.send(DaemonLetter::Call(number, Box::new(errand))).is_err() {
            self.waiting.borrow_mut().remove(&number);
        }
        PendingCall { how: CallWay::Far { link: Rc::clone(self), number }, responses }
    }

    async fn read_responses(self: Rc<Self>, mut reader: SealedReader) {
        while let Ok(Some(bytes)) = message::read(&mut reader).await {
            let Ok(DaemonLetter::Response(number, response)) = serde_json::from_slice(&bytes) else { break };
            let mut waiting = self.waiting.borrow_mut();
            if response.is_last() {
                if let Some(to) = waiting.remove(&number) {
                    let _ = to.send(*response);
                }
            } else if let Some(to) = waiting.get(&number) {
                let _ = to.send(*response);
            }
        }
        // All who wait hear that nothing comes.
        self.waiting.borrow_mut().clear();
        let _ = self.out.send(DaemonLetter::Cancel(u64::MAX));
    }
}

impl PendingCall {
    /// A call that this task carries out here.
    pub fn near(task: AbortHandle, responses: mpsc::UnboundedReceiver<Response>) -> Self {
        Self { how: CallWay::Near(task), responses }
    }

    /// The next thing that comes back.
    pub async fn response(&mut self) -> Option<Response> {
        self.responses.recv().await
    }

    /// The one answer of a call that needs no waiting.
    ///
    /// # Errors
    /// None comes.
    pub async fn last(mut self) -> Result<Response> {
        let response = tokio::time::timeout(PATIENCE, self.response()).await.context("no answer")?;
        response.context("the connection has broken")
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        match &self.how {
            CallWay::Near(task) => task.abort(),
            CallWay::Far { link, number } => {
                if link.waiting.borrow_mut().remove(number).is_some() {
                    let _ = link.out.send(DaemonLetter::Cancel(*number));
                }
            }
        }
    }
}

/// Writes what is to be sent, until the connection breaks or is told to end.
pub async fn write_all(mut letters: mpsc::UnboundedReceiver<DaemonLetter>, mut writer: SealedWriter) {
    while let Some(letter) = letters.recv().await {
        if matches!(letter, DaemonLetter::Cancel(u64::MAX)) {
            break;
        }
        let Ok(bytes) = serde_json::to_vec(&letter) else { break };
        if message::write(&mut writer, &bytes).await.is_err() {
            break;
        }
    }
    writer.close().await;
}
