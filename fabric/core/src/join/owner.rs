//! The conversation with the manager is the process's, whichever of its interfaces asks: the library that has joined
//! the job leads it, and the others reach it through the process table.

use super::manager::{self, Manager, ManagerError};
use crate::process::{Enrolment, ManagerAnswer, ManagerCalls, NO_ANSWER, REFUSED, SharedText};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use weft_cluster::pmi::{ClientError, PmiRequest, Reply};
use weft_cluster::spawn::SpawnOrder;

/// What may be asked, as the table numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum ManagerAsk {
    /// Takes the process's leave; it may come back.
    Leave = 0,
    Resume = 1,
    /// To be told which ranks are lost.
    Watch = 2,
    /// The first text is the door.
    Spawn = 3,
    /// The texts are key and value.
    Put = 4,
    /// The first text is the key.
    Get = 5,
    Barrier = 6,
    /// The texts are rank and signal.
    Signal = 7,
}

struct ManagerLead {
    manager: Manager,
    watching: bool,
    /// In the order in which they were told.
    lost: Vec<u32>,
}

static OWNER: Mutex<Option<ManagerLead>> = Mutex::new(None);

fn owner() -> MutexGuard<'static, Option<ManagerLead>> {
    OWNER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Leads the conversation from here on; how others reach it.
pub(super) fn lead(manager: Option<Manager>) -> ManagerCalls {
    let Some(manager) = manager else { return ManagerCalls::default() };
    *owner() = Some(ManagerLead { manager, watching: false, lost: Vec::new() });
    ManagerCalls { ask: Some(ask_here), lost: Some(lost_here), abort: Some(manager::abort_here) }
}

extern "C" fn ask_here(what: u32, first: SharedText, second: SharedText, answer: *mut ManagerAnswer) {
    let answered = answer_to(what, &first.text(), &second.text());
    let (outcome, text) = match &answered {
        Ok(Some(text)) => (0, text.as_str()),
        Ok(None) => (NO_ANSWER, ""),
        Err(error) => (REFUSED, error.as_str()),
    };
    ManagerAnswer::fill(answer, outcome, text);
}

fn answer_to(what: u32, first: &str, second: &str) -> Result<Option<String>, String> {
    let mut owner = owner();
    // The manager is gone, or took its leave for good: nobody is to be told.
    let Some(ManagerLead { manager, watching, .. }) = owner.as_mut() else { return Ok(Some(String::new())) };
    let (first, second) = (first.to_owned(), second.to_owned());
    let done = match what {
        what if what == ManagerAsk::Leave as u32 => manager.rest(),
        what if what == ManagerAsk::Resume as u32 => {
            let resumed = manager.resume();
            if resumed.is_err() {
                // A manager of somebody else may not speak any more with who has taken its leave. Our end is told to
                // nobody.
                *owner = None;
            }
            Ok(())
        }
        what if what == ManagerAsk::Watch as u32 => match std::mem::replace(watching, true) {
            true => Ok(()),
            false => manager.watch(),
        },
        what if what == ManagerAsk::Spawn as u32 => manager.ask(PmiRequest::Spawn { door: first }).map(drop),
        what if what == ManagerAsk::Signal as u32 => {
            let (Ok(rank), Ok(signal)) = (first.parse(), second.parse()) else { return Err("no numbers".to_owned()) };
            manager.ask(PmiRequest::Signal { rank, signal }).map(drop)
        }
        what if what == ManagerAsk::Put as u32 => {
            let put = |kvsname| PmiRequest::Put { kvsname, key: first, value: second };
            store(manager).and_then(|kvsname| manager.ask(put(kvsname)).map(drop))
        }
        what if what == ManagerAsk::Get as u32 => {
            return get(manager, first).map_err(|error| error.to_string());
        }
        _ => manager.ask(PmiRequest::Barrier).map(drop),
    };
    done.map(|()| Some(String::new())).map_err(|error| error.to_string())
}

fn get(manager: &mut Manager, key: String) -> Result<Option<String>, ManagerError> {
    let kvsname = store(manager)?;
    match manager.ask(PmiRequest::Get { kvsname, key })? {
        Reply::Get(value) => Ok(value),
        other => Err(unexpected("get", &other)),
    }
}

/// The name of the job's store.
fn store(manager: &mut Manager) -> Result<String, ManagerError> {
    match manager.ask(PmiRequest::KvsName)? {
        Reply::KvsName(name) => Ok(name),
        other => Err(unexpected("get_my_kvsname", &other)),
    }
}

pub(super) fn unexpected(asked: &'static str, reply: &Reply) -> ManagerError {
    ManagerError::Protocol(ClientError::Unexpected { asked, line: format!("{reply:?}") })
}

extern "C" fn lost_here(index: u32) -> u32 {
    // Another thread may wait for all ranks with it, and who asks here holds its interface.
    let mut owner = match OWNER.try_lock() {
        Ok(owner) => owner,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return u32::MAX,
    };
    let Some(ManagerLead { manager, lost, .. }) = owner.as_mut() else { return u32::MAX };
    while let Some(rank) = manager.poll_lost() {
        lost.push(rank as u32);
    }
    lost.get(index as usize).copied().unwrap_or(u32::MAX)
}

/// An interface's part in the process's membership of the job: what it has to say to the manager, and to hear.
pub(crate) struct JobMembership {
    enrolment: Enrolment,
    /// So many lost ranks it has been told.
    told: u32,
    /// It opens beside others: if that comes to nothing, it is as if it had not begun.
    opening: bool,
}

impl JobMembership {
    pub fn new(enrolment: Enrolment) -> Self {
        Self { enrolment, told: 0, opening: false }
    }

    /// Comes beside other interfaces. Until [`Self::settle`] it is taken back by being dropped.
    pub fn beside(enrolment: Enrolment) -> Result<Self, ManagerError> {
        let membership = Self { enrolment, told: 0, opening: true };
        membership.resume()?;
        Ok(membership)
    }

    /// The interface is open.
    pub fn settle(&mut self) {
        self.opening = false;
    }

    pub fn enrolment(&self) -> Enrolment {
        self.enrolment
    }

    /// Whether anybody has started the process.
    pub fn has_manager(&self) -> bool {
        self.enrolment.manager().ask.is_some()
    }

    /// Whether that is a launcher of our own.
    pub fn is_launched(&self) -> bool {
        self.enrolment.place().launched != 0
    }

    /// The door of those who have spawned the process by this interface.
    pub fn parent(&self) -> Option<String> {
        let parent = self.enrolment.place().parent.text();
        SpawnOrder::door_for(self.enrolment.interface(), &parent).map(str::to_owned)
    }

    /// Asks to be told which ranks are lost.
    pub fn watch(&self) -> Result<(), ManagerError> {
        self.ask(ManagerAsk::Watch, "", "").map(drop)
    }

    pub fn ask(&self, what: ManagerAsk, first: &str, second: &str) -> Result<Option<String>, ManagerError> {
        let Some(ask) = self.enrolment.manager().ask else { return Ok(Some(String::new())) };
        let mut answer = ManagerAnswer::EMPTY;
        ask(
            what as u32,
            SharedText::passing(first.as_bytes()),
            SharedText::passing(second.as_bytes()),
            &raw mut answer,
        );
        match answer.outcome {
            NO_ANSWER => Ok(None),
            REFUSED => Err(ManagerError::Told(answer.text())),
            _ => Ok(Some(answer.text())),
        }
    }

    /// The next rank that the manager has said is lost. Does not wait.
    pub fn poll_lost(&mut self) -> Option<u32> {
        let lost = self.enrolment.manager().lost?;
        let rank = Some(lost(self.told)).filter(|rank| *rank != u32::MAX)?;
        self.told += 1;
        Some(rank)
    }

    /// The interface leaves; with the last one of the process that is the process's leave.
    pub fn rest(&self) -> Result<(), ManagerError> {
        if self.enrolment.go() { self.ask(ManagerAsk::Leave, "", "").map(drop) } else { Ok(()) }
    }

    /// It comes back, or comes beside others.
    pub fn resume(&self) -> Result<(), ManagerError> {
        if self.enrolment.come() { self.ask(ManagerAsk::Resume, "", "").map(drop) } else { Ok(()) }
    }
}

impl Drop for JobMembership {
    fn drop(&mut self) {
        if self.opening {
            // Why it was not opened is what is told.
            let _ = self.rest();
            self.enrolment.withdraw();
        }
    }
}
