//! The state of the process, behind one lock.

use crate::buffer::{Buffers, Encoding, IncomingMessage};
use crate::catching::Catching;
use crate::direct::Directly;
use crate::errors::Error;
use crate::frozen::Frozen;
use crate::handlers::{MessageHandlers, ProgramMatcher};
pub use crate::identity::{my_context, my_tid, pvmmyctx, pvmmytid};
use crate::meetings::KnownMeetings;
use crate::options::Options;
use crate::task::OwnTask;
pub use crate::wanted::WaitingMessage;
use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard};
use weft_ports::Peer;
use weft_pvm_machine::frame::{Answer, Content, Event, Request};

/// The context of what the machine sends to the library itself, and the tag of what a task prints.
pub const SYSTEM_CONTEXT: c_int = 0x7ffff;
pub const OUTPUT_TAG: c_int = 0x8003_000b_u32 as c_int;

/// All that the library knows.
pub struct PvmLibrary {
    pub buffers: Buffers,
    /// Once it has enrolled.
    pub task: Option<OwnTask>,
    /// What is known of other processes, kept from one enrolling to the next.
    pub directly: Option<Directly>,
    /// Processes that were no tasks any more when this one has left, and had not taken all.
    pub gone: Vec<Peer>,
    pub options: Options,
    pub handlers: MessageHandlers,
    pub matcher: Option<ProgramMatcher>,
    /// Messages that were taken out of the fabric, or come from the machine, in their order.
    pub arrived: VecDeque<WaitingMessage>,
    pub catching: Catching,
    pub frozen: Frozen,
    pub meetings: KnownMeetings,
    /// The index of this task among those that a reset of the machine spares.
    pub spared_as: c_int,
}

static LIBRARY: Mutex<PvmLibrary> = Mutex::new(PvmLibrary {
    buffers: Buffers::new(),
    task: None,
    directly: None,
    gone: Vec::new(),
    options: Options::new(),
    handlers: MessageHandlers::new(),
    matcher: None,
    arrived: VecDeque::new(),
    catching: Catching::new(),
    frozen: Frozen::new(),
    meetings: KnownMeetings::new(),
    spared_as: -1,
});

/// The state, for as long as the answer lives: no code of the program runs meanwhile.
pub fn library() -> MutexGuard<'static, PvmLibrary> {
    LIBRARY.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The state of a task that has enrolled, which happens now where it has not yet.
///
/// # Errors
/// There is no virtual machine, and none can be started.
pub fn enrolled() -> Result<MutexGuard<'static, PvmLibrary>, Error> {
    let mut library = library();
    library.enrol()?;
    Ok(library)
}

impl PvmLibrary {
    /// The task.
    ///
    /// # Errors
    /// It has not enrolled.
    pub fn task(&mut self) -> Result<&mut OwnTask, Error> {
        self.task.as_mut().ok_or(Error::SYS_ERR)
    }

    /// Asks the machine for what it knows at once.
    ///
    /// # Errors
    /// The machine is gone.
    pub fn ask(&mut self, request: &Request) -> Result<Answer, Error> {
        let answer = self.task()?.client.ask(request);
        answer.map_err(|_| self.lose_machine())
    }

    /// As [`Self::ask`], of what is answered by a code.
    ///
    /// # Errors
    /// A code below 0.
    pub fn ask_code(&mut self, request: &Request) -> Result<c_int, Error> {
        let answer = self.ask(request)?;
        code_of(answer)
    }

    /// The machine is gone, and what this task was in it.
    pub fn lose_machine(&mut self) -> Error {
        self.frozen.clear();
        self.meetings.clear();
        if let Some(task) = self.task.take() {
            let of = task.identity.ends_with.clone();
            self.directly = Some(task.into_directly());
            let tid = pvmmytid.swap(-1, Ordering::Relaxed);
            let why = match std::env::var("WEFT_JOB").unwrap_or_default() {
                own if of.is_empty() || of == own => "its daemon is gone".to_owned(),
                _ => format!(
                    "its daemon is gone; job {of} had started it, and ends it when it ends itself; PVM_VMID gives a job one \
                     of its own, and one of 'weft pvm' stays"
                ),
            };
            eprintln!("libpvm [t{tid:x}]: the virtual machine has ended: {why}");
        }
        Error::SYS_ERR
    }

    /// Keeps a message of the machine.
    pub fn keep(&mut self, context: c_int, content: Content) {
        if context == SYSTEM_CONTEXT && content.tag == OUTPUT_TAG {
            return self.catching.take_in(&content.bytes.0, self.options.shows_tids());
        }
        self.push(IncomingMessage {
            encoding: Encoding::from_bits(content.encoding),
            bytes: content.bytes.0,
            source: content.source,
            tag: content.tag,
            context,
        });
    }

    pub fn push(&mut self, message: IncomingMessage) {
        let IncomingMessage { source, tag, context, .. } = message;
        let buffer = self.buffers.accept(message);
        self.arrived.push_back(WaitingMessage { buffer, source, tag, context });
    }

    /// Takes in what the machine has said; true if something is to be sent now ([`OwnTask::flush`]).
    ///
    /// # Errors
    /// The machine is gone.
    pub fn listen(&mut self, endpoint: &mut weft_fabric::Endpoint) -> Result<bool, Error> {
        loop {
            let event = match self.task()?.client.poll_event() {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(self.task()?.has_ready()),
                Err(_) => return Err(self.lose_machine()),
            };
            match event {
                Event::Met { tid, card } => self.task()?.meet(endpoint, tid, &card),
                Event::Gone { tid } => self.task()?.forget(tid),
                Event::WantCard { is_wide } => self.task()?.show_card(endpoint, is_wide),
                Event::MeetAt { name, number, block, place, tids } => {
                    self.meet_at(endpoint, name, (number, block, place), &tids)?;
                }
                Event::MeetNoMore { number } => self.meet_no_more(number),
                Event::Message { context, content } => self.keep(context, content),
            }
        }
    }
}

/// The number that an answer is.
///
/// # Errors
/// It is below 0, or the answer has none.
pub fn code_of(answer: Answer) -> Result<c_int, Error> {
    match answer {
        Answer::Code { code } if code >= 0 => Ok(code),
        Answer::Code { code } => Err(Error(code)),
        _ => Err(Error::SYS_ERR),
    }
}

/// The state, unless it is in use.
pub fn try_library() -> Option<MutexGuard<'static, PvmLibrary>> {
    LIBRARY.try_lock().ok()
}
