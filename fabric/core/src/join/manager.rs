//! The conversation with the process manager that started us (PMI-1 on an inherited socket, or PMIx by its library),
//! and the abort.

use super::line::SharedLine;
use super::pmix::{self, Pmix};
use crate::process::{self, SharedText};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weft_cluster::pmi::{Client, ClientError, Lost, PmiRequest, Reply};
use weft_device::sys;
use weft_wire::interface::InterfaceName;

/// The manager does not do its part. Blast radius: the job.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    #[error("the process manager is gone: {0}")]
    Gone(io::Error),
    #[error("the process manager speaks PMI {0}.{1}, needed is 1.1 or a later 1")]
    Version(u32, u32),
    #[error(transparent)]
    Protocol(#[from] ClientError),
    #[error("the process manager speaks PMIx, and {call} of its library failed: {reason}")]
    Pmix { call: &'static str, reason: String },
    /// As the library says that leads the conversation.
    #[error("{0}")]
    Told(String),
}

/// How long an abort waits for the program's output to be read.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// The first rank that this process has lost, plus one, or else [`ELSEWHERE`]. Only our own launcher is told.
static LOST: AtomicU32 = AtomicU32::new(0);
/// A process of another job is lost.
const ELSEWHERE: u32 = u32::MAX;
static LAUNCHED: AtomicBool = AtomicBool::new(false);

/// A rank of our job is lost, or a process of another one: what follows may be its consequence.
#[cold]
pub(crate) fn note_lost(rank: Option<u32>) {
    let free = if rank.is_some() { [0, ELSEWHERE] } else { [0, 0] };
    let lost = rank.map_or(ELSEWHERE, |rank| rank + 1);
    let _ = LOST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |before| free.contains(&before).then_some(lost));
}

/// The socket for an abort, which may come at any time from any thread.
static LINE: Mutex<Option<Arc<SharedLine>>> = Mutex::new(None);

fn line_of_abort(change: impl FnOnce(&mut Option<Arc<SharedLine>>)) {
    change(&mut LINE.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Our side of the conversation.
pub(crate) struct Manager {
    talk: ManagerTalk,
    client: Client,
    /// What our own launcher is told that we begin by.
    interface: Option<InterfaceName>,
}

/// How it is reached.
enum ManagerTalk {
    Line(Arc<SharedLine>),
    Pmix(Box<Pmix>),
}

impl Manager {
    /// Takes over the socket; from here on [`abort`] reaches the manager.
    pub fn new(descriptor: OwnedFd) -> Self {
        let line = Arc::new(SharedLine::new(UnixStream::from(descriptor)));
        line_of_abort(|slot| *slot = Some(line.clone()));
        Self { talk: ManagerTalk::Line(line), client: Client::new(), interface: None }
    }

    /// A manager that speaks PMIx, and has been told that we have begun.
    pub fn of_pmix(pmix: Pmix) -> Self {
        Self { talk: ManagerTalk::Pmix(Box::new(pmix)), client: Client::new(), interface: None }
    }

    /// The same, where the manager is our own launcher.
    pub fn of_launcher(descriptor: OwnedFd, interface: InterfaceName) -> Self {
        LAUNCHED.store(true, Ordering::Relaxed);
        Self { interface: Some(interface), ..Self::new(descriptor) }
    }

    /// Says that we have begun. The answer is taken with the next request's, so that nobody waits for it here.
    pub fn announce(&mut self) -> Result<(), ManagerError> {
        if let ManagerTalk::Pmix(_) = self.talk {
            return Ok(());
        }
        self.send(PmiRequest::Init { interface: self.interface })
    }

    /// Asks and waits for the answer.
    pub fn ask(&mut self, request: PmiRequest) -> Result<Reply, ManagerError> {
        if let ManagerTalk::Pmix(pmix) = &mut self.talk {
            return pmix.answer(&request);
        }
        while let Some(late) = self.pending()? {
            check_version(&late)?;
        }
        self.send(request)?;
        self.pending()?.ok_or_else(|| ManagerError::Gone(io::Error::other("no answer is due")))
    }

    /// Takes our leave: a process that ends before this has failed, in the manager's eyes. It may come back
    /// ([`Self::resume`]).
    pub fn rest(&mut self) -> Result<(), ManagerError> {
        let asked = self.ask(PmiRequest::Finalise).map(drop);
        line_of_abort(|slot| *slot = None);
        asked
    }

    /// Says that we have begun again.
    pub fn resume(&mut self) -> Result<(), ManagerError> {
        self.announce()?;
        match &mut self.talk {
            ManagerTalk::Pmix(pmix) => pmix.begin()?,
            ManagerTalk::Line(line) => line_of_abort(|slot| *slot = Some(line.clone())),
        }
        Ok(())
    }

    /// Asks to be told which ranks are lost.
    pub fn watch(&mut self) -> Result<(), ManagerError> {
        self.ask(PmiRequest::Watch).map(drop)
    }

    /// The next rank that the manager has said is lost. Does not wait.
    pub fn poll_lost(&mut self) -> Option<usize> {
        let mut bytes = [0; 2048];
        while let Ok(true) = self.socket().and_then(|socket| sys::wait_readable(socket, Duration::ZERO)) {
            match self.read(&mut bytes) {
                Ok(count) => self.client.handle_bytes(&bytes[..count]),
                Err(_) => break,
            }
        }
        self.client.poll_lost()
    }

    fn socket(&self) -> io::Result<&UnixStream> {
        match &self.talk {
            ManagerTalk::Line(line) => line.open(),
            ManagerTalk::Pmix(_) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn send(&mut self, request: PmiRequest) -> Result<(), ManagerError> {
        let line = self.client.handle_request(request)?;
        self.socket().and_then(|socket| sys::send_all(socket, &line)).map_err(ManagerError::Gone)
    }

    /// Waits for the answer that is due, if one is.
    fn pending(&mut self) -> Result<Option<Reply>, ManagerError> {
        let mut bytes = [0; 2048];
        while self.client.is_waiting() {
            if let Some(reply) = self.client.poll_reply()? {
                return Ok(Some(reply));
            }
            let count = self.read(&mut bytes).map_err(ManagerError::Gone)?;
            self.client.handle_bytes(&bytes[..count]);
        }
        Ok(None)
    }

    fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut socket = self.socket()?;
            match socket.read(bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    sys::wait_readable(socket, Duration::MAX)?;
                }
                result => return result,
            }
        }
    }
}

fn check_version(reply: &Reply) -> Result<(), ManagerError> {
    match reply {
        Reply::Init(1, _) => Ok(()),
        Reply::Init(version, subversion) => Err(ManagerError::Version(*version, *subversion)),
        _ => Ok(()),
    }
}

fn first_lost(lost: u32) -> Option<Lost> {
    let lost = match lost {
        0 => return None,
        ELSEWHERE => Lost::Elsewhere,
        rank => Lost::Rank(rank as usize - 1),
    };
    LAUNCHED.load(Ordering::Relaxed).then_some(lost)
}

/// Ends the whole job with this exit code, 1 to 255, and says why. Where nobody started us the process ends alone.
pub fn abort(code: i32, message: &str) -> ! {
    let lost = LOST.load(Ordering::Relaxed);
    let is_here = LINE.lock().unwrap_or_else(PoisonError::into_inner).is_some();
    // The library that has joined the job speaks for all of the process.
    match process::known().and_then(|table| table.manager().abort) {
        Some(abort) if !is_here => abort(code, SharedText::passing(message.as_bytes()), lost),
        _ => end(code, message, lost),
    }
}

pub(super) extern "C" fn abort_here(code: i32, message: SharedText, lost: u32) -> ! {
    end(code, &message.text(), lost)
}

fn end(code: i32, message: &str, lost: u32) -> ! {
    if pmix::is_joined() {
        await_last_words();
        pmix::abort(code, message);
    }
    let line = LINE.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(Ok(socket)) = line.as_ref().map(|line| line.open())
        && let Ok(request) = (PmiRequest::Abort { code, message: message.to_owned(), lost: first_lost(lost) }).encode()
    {
        await_last_words();
        // A manager that is gone takes the job down without being asked.
        let _ = sys::send_all(socket, request.as_bytes());
    }
    sys::exit_now(code)
}

/// Some managers kill before they have passed on what was written: lets them take it first.
fn await_last_words() {
    [1, 2].into_iter().for_each(|stream| sys::wait_drained(stream, LAST_WORDS));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::thread;

    /// A manager that answers each line it knows, and the lines that it heard.
    fn with_manager(answers: &'static [(&'static str, &'static str)], act: impl FnOnce(Manager)) -> Vec<String> {
        let (ours, theirs) = UnixStream::pair().expect("pair");
        let server = thread::spawn(move || {
            let mut heard = Vec::new();
            for line in BufReader::new(theirs.try_clone().expect("clone")).lines() {
                let line = line.expect("a line");
                let command = line.split(' ').next().expect("a word");
                let answer = answers.iter().find(|(asked, _)| *asked == command).expect("a known request").1;
                // The rank may have gone without waiting.
                let _ = writeln!(&theirs, "{answer}");
                heard.push(line);
            }
            heard
        });
        act(Manager {
            talk: ManagerTalk::Line(Arc::new(SharedLine::new(ours))),
            client: Client::new(),
            interface: None,
        });
        server.join().expect("the manager ends with its socket")
    }

    const INIT: (&str, &str) = ("cmd=init", "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2");
    const END: (&str, &str) = ("cmd=finalize", "cmd=finalize_ack");

    #[test]
    fn the_answer_to_the_start_is_taken_with_the_next_one() {
        let heard = with_manager(&[INIT, END], |mut manager| {
            manager.announce().expect("sent");
            manager.rest().expect("acknowledged");
        });
        assert_eq!(heard, ["cmd=init pmi_version=1 pmi_subversion=1", "cmd=finalize"]);
    }

    #[test]
    fn another_version_is_refused() {
        let answers = &[("cmd=init", "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0")];
        with_manager(answers, |mut manager| {
            manager.announce().expect("sent");
            let error = manager.ask(PmiRequest::KvsName).expect_err("PMI-2").to_string();
            assert_eq!(error, "the process manager speaks PMI 2.0, needed is 1.1 or a later 1");
        });
    }

    #[test]
    fn a_manager_that_goes_away_is_an_error() {
        let (ours, theirs) = UnixStream::pair().expect("pair");
        drop(theirs);
        let mut manager = Manager {
            talk: ManagerTalk::Line(Arc::new(SharedLine::new(ours))),
            client: Client::new(),
            interface: None,
        };
        assert!(matches!(manager.ask(PmiRequest::KvsName), Err(ManagerError::Gone(_))));
    }
}
