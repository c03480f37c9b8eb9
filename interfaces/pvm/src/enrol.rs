//! Becoming a task and being one no more: the daemon is asked, and started where there is none.

use crate::courier::{self, CourierLook};
use crate::errors::{Error, text};
use crate::identity::{pvmmyctx, pvmmytid};
use crate::library::{PvmLibrary, try_library};
use crate::stdio::at_exit;
use crate::task::OwnTask;
use crate::waiting::{FABRIC, Wakes, wait_until};
use std::ffi::c_int;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt;
use std::process::{Command, Stdio};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use weft_fabric::Endpoint;
use weft_fabric::spawn::find_weft;
use weft_ports::{InterfaceName, Peer};
use weft_pvm_machine::client::DaemonClient;
use weft_pvm_machine::code;
use weft_pvm_machine::door::MACHINE_VARIABLE;
use weft_pvm_machine::frame::{Answer, ByteString, Identity, Introduction, Request};

/// Tells a process that it was started as this task.
const TASK_VARIABLE: &str = "PVM_TASK_ID";
/// The machine's answer to the last task that leaves: it ends.
const LAST: c_int = 1;
/// How long that is waited for.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often, and how long after each other, the daemon is called that another task may just be starting.
const CALLS: u32 = 100;
/// The same where the daemon is one that the first host of the job starts.
const CALLS_ELSEWHERE: u32 = 3000;
const PAUSE: Duration = Duration::from_millis(10);
const PATIENCE_AT_LAST: u32 = 100;
/// How long who leaves waits for tasks to come that something was sent to.
const PATIENCE_WITH_OTHERS: Duration = Duration::from_secs(10);

impl PvmLibrary {
    /// Becomes a task, if it is none.
    ///
    /// # Errors
    /// There is no virtual machine, and none can be started.
    pub fn enrol(&mut self) -> Result<(), Error> {
        if self.task.is_some() {
            return Ok(());
        }
        let outcome = open().and_then(|()| introduce());
        match outcome {
            Ok((client, identity)) => {
                FABRIC.with_both(|endpoint, wakes| {
                    wakes.daemon = Some(client.descriptor());
                    endpoint.set_known_as(&format!("task t{:x}{}", identity.tid, of_machine()));
                });
                pvmmytid.store(identity.tid, Ordering::Relaxed);
                if identity.context != 0 {
                    pvmmyctx.store(identity.context, Ordering::Relaxed);
                }
                self.options.set_output(&identity.prints_to);
                let directly = self.directly.take().unwrap_or_default();
                let is_wide = identity.is_wide;
                let task = self.task.insert(OwnTask::new(client, identity, directly));
                if is_wide {
                    FABRIC.with(|endpoint| task.show_card(endpoint, true));
                }
                Ok(())
            }
            Err(error) => {
                eprintln!("libpvm [pid{}]: no virtual machine: {error}", std::process::id());
                Err(Error::SYS_ERR)
            }
        }
    }

    /// Delivers what can leave now; whether something is left.
    fn deliver(&mut self) -> bool {
        if self.task.is_none() || FABRIC.with(|endpoint| self.listen(endpoint)).is_err() {
            return false;
        }
        FABRIC.poll();
        self.task.as_mut().is_some_and(|task| {
            task.flush();
            task.has_leaving() || task.has_waiting()
        })
    }

    /// Waits until tasks have come, or have ended, that something was sent to before they were there.
    fn await_ways(&mut self) -> Result<(), Error> {
        let until = Instant::now() + PATIENCE_WITH_OTHERS;
        while self.task.as_mut().is_some_and(|task| {
            task.flush();
            task.has_waiting()
        }) {
            let done = wait_until("pvm_exit", Some(until), false, |endpoint, _| match self.listen(endpoint) {
                Ok(false) if Instant::now() < until && self.task.as_ref().is_some_and(OwnTask::has_waiting) => None,
                other => Some(other),
            });
            if !done? && Instant::now() >= until {
                break;
            }
        }
        Ok(())
    }

    /// Is a task no more. What it has sent leaves first.
    ///
    /// # Errors
    /// The machine is gone.
    pub fn leave(&mut self) -> Result<(), Error> {
        self.await_ways()?;
        let told = self.ask_code(&Request::Leave);
        self.frozen.clear();
        self.meetings.clear();
        if let Some(mut task) = self.task.take() {
            self.gone = task.settle();
            if told == Ok(LAST) {
                task.client.await_end(PATIENCE);
            }
            self.directly = Some(task.into_directly());
        }
        FABRIC.with_both(|endpoint, wakes| {
            wakes.daemon = None;
            endpoint.set_known_as("");
        });
        pvmmytid.store(-1, Ordering::Relaxed);
        told.map(drop)
    }
}

/// What tells the machine from the user's others, where it has a name.
fn of_machine() -> String {
    let name = std::env::var(MACHINE_VARIABLE).unwrap_or_default();
    if name.is_empty() { name } else { format!(" of machine {name}") }
}

/// Opens the fabric.
fn open() -> io::Result<()> {
    if !FABRIC.is_open() {
        let mut endpoint =
            Endpoint::join_as(InterfaceName::Pvm, &[]).map_err(|error| io::Error::other(error.to_string()))?;
        endpoint.keep_quiet_of_others();
        FABRIC.open_beside(endpoint, Wakes::default(), false);
        FABRIC.lend();
        PROCESS.store(std::process::id(), Ordering::Relaxed);
        at_exit(close);
        courier::begin(look);
    }
    Ok(())
}

/// What the courier does.
fn look() -> CourierLook {
    let Some(mut library) = try_library() else { return CourierLook::Busy };
    if library.deliver() { CourierLook::Left } else { CourierLook::Nothing }
}

/// The library, unless a call of the program is in it. The courier has it for moments.
fn library_at_last() -> Option<MutexGuard<'static, PvmLibrary>> {
    (0..PATIENCE_AT_LAST).find_map(|_| {
        try_library().or_else(|| {
            std::thread::sleep(PAUSE / 100);
            None
        })
    })
}

/// Who has enrolled: a copy that the program has forked leaves nothing.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// The process ends.
extern "C" fn close() {
    if FABRIC.is_open() && PROCESS.load(Ordering::Relaxed) == std::process::id() {
        // Where it ends inside of a call, what is left goes with it.
        if let Some(mut library) = library_at_last() {
            if library.task.is_some() {
                let _ = library.leave();
            }
            let gone = std::mem::take(&mut library.gone);
            FABRIC.with(|endpoint| gone.into_iter().for_each(|peer| endpoint.lose(peer)));
            FABRIC.close();
        }
    }
}

/// What is said of this task to the machine.
fn introduction() -> io::Result<Introduction> {
    let started_as = std::env::var(TASK_VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let (job, rank, size) = FABRIC.with(|endpoint| {
        let identity = endpoint.identity(endpoint.me());
        (identity.world, identity.rank, endpoint.world_size())
    });
    let (hosts, places) = FABRIC.with(|endpoint| {
        let names = endpoint.host_names().iter().map(|name| ByteString::from(&name[..])).collect::<Vec<_>>();
        let places =
            if names.len() > 1 { (0..size).map(|rank| endpoint.host_of(Peer(rank))).collect() } else { vec![] };
        (if names.len() > 1 { names } else { vec![] }, places)
    });
    // A job that nobody else talks to needs no way for others.
    let card = if size > 1 { Vec::new() } else { FABRIC.with(Endpoint::card)?.encode().to_vec() };
    let name = std::env::current_exe().map(|path| path.into_os_string().into_vec()).unwrap_or_default();
    Ok(Introduction {
        pid: std::process::id() as i32,
        started_as,
        card,
        name: ByteString(name),
        job: if size > 1 { job } else { 0 },
        rank,
        size,
        hosts,
        places,
    })
}

fn introduce() -> io::Result<(DaemonClient, Identity)> {
    let who = introduction()?;
    // The machine of a job on several hosts is that of its first one, and comes from there.
    let is_first = who.places.get(who.rank as usize).is_none_or(|place| *place == 0);
    let mut last: io::Error = ErrorKind::ConnectionRefused.into();
    for call in 0..if is_first { CALLS } else { CALLS_ELSEWHERE } {
        match DaemonClient::connect() {
            Ok(mut client) => match client.enrol(who.clone()) {
                Ok(Answer::Enrolled { identity }) => return Ok((client, identity)),
                Ok(Answer::Code { code: code::NO_HOST }) if !is_first => {}
                Ok(answer) => return Err(refusal(&who, &answer)),
                Err(error) if error.kind() == ErrorKind::Unsupported => return Err(error),
                // It is about to end: the next one comes.
                Err(error) => last = error,
            },
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(error),
            Err(error) => {
                last = error;
                if is_first && call % 10 == 0 {
                    start_daemon(&[])?;
                    continue;
                }
            }
        }
        std::thread::sleep(PAUSE);
    }
    if is_first {
        return Err(last);
    }
    let first = who.hosts.first().map(ByteString::text).unwrap_or_default();
    Err(io::Error::other(format!(
        "that of '{first}', the job's first host, has not come to this one within {} s",
        (PAUSE * CALLS_ELSEWHERE).as_secs()
    )))
}

fn refusal(who: &Introduction, answer: &Answer) -> io::Error {
    match answer {
        Answer::Code { code } if !who.hosts.is_empty() => {
            let names: Vec<String> = who.hosts.iter().map(ByteString::text).collect();
            let why = text(*code).to_string_lossy();
            io::Error::other(format!("the job's hosts {} cannot all be in it: {why}", names.join(", ")))
        }
        _ => io::Error::other("the daemon has no place for another task"),
    }
}

/// Starts a machine that stays until it is halted, with these words for the daemon; false where there is one.
///
/// # Errors
/// None can be started.
pub fn start_machine(words: &[String]) -> io::Result<bool> {
    match DaemonClient::connect() {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(error),
        Err(_) => start_daemon(&["--stay".to_owned()].iter().chain(words).cloned().collect::<Vec<_>>()).map(|()| true),
    }
}

fn start_daemon(words: &[String]) -> io::Result<()> {
    let weft = find_weft().ok_or_else(|| io::Error::other("no weft is beside this library, and none is in PATH"))?;
    let mut command = Command::new(&weft);
    command.args(["pvm", "--start"]).args(words).env_remove(TASK_VARIABLE).stdin(Stdio::null()).stdout(Stdio::null());
    match command.status() {
        Ok(status) if !status.success() => Err(io::Error::other(format!("'{}': {status}", weft.display()))),
        // A program that ignores the ends of its children has no codes of theirs.
        Err(error) if error.raw_os_error() != Some(libc::ECHILD) => Err(error),
        _ => Ok(()),
    }
}
