//! The shared file pointer: one number for all processes that have opened a file together.
//!
//! The first of them keeps it; the others ask it by a message and get the old value back (decision 19). A question is
//! answered by whatever moves the keeper's progress on, so by any call in which it waits.

use super::OpenFile;
use crate::comm::agree::wait;
use crate::error::Result;
use crate::failure::lost_class;
use crate::world::{Task, WORLD, World};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_fabric::{Endpoint, Envelope, RequestId, Selector, SendMode};

/// Messages on the context of a file's own communicator.
const QUESTION: i32 = 1;
const ANSWER: i32 = 2;

/// The pointer in the process that keeps it. Memory of messages under way does not move.
pub struct PointerKeeper {
    context: u32,
    value: i64,
    /// What a process wants to add.
    question: Box<i64>,
    asked: RequestId,
    answers: Vec<(RequestId, Box<i64>)>,
    /// The file is closed, when all processes have said that they ask no more.
    is_over: bool,
}

impl PointerKeeper {
    fn new(context: u32, endpoint: &mut Endpoint) -> Self {
        let mut question = Box::new(0);
        let asked = ask_next(context, &mut question, endpoint);
        Self { context, value: 0, question, asked, answers: Vec::new(), is_over: false }
    }

    fn add(&mut self, amount: i64) -> i64 {
        let old = self.value;
        self.value = old.saturating_add(amount);
        old
    }

    fn advance(&mut self, endpoint: &mut Endpoint) {
        while let Some(outcome) = endpoint.take_outcome(self.asked) {
            let amount = *self.question;
            self.asked = ask_next(self.context, &mut self.question, endpoint);
            if outcome.fault.is_some() || outcome.length != size_of::<i64>() as u64 {
                continue;
            }
            let answer = Box::new(self.add(amount));
            let envelope = Envelope { context: self.context, tag: ANSWER, source: 0 };
            let at = (&raw const *answer).cast();
            // SAFETY: the answer stays where it is until its request is complete.
            let sent = unsafe { endpoint.post_send(outcome.peer, envelope, at, size_of::<i64>(), SendMode::Standard) };
            self.answers.push((sent, answer));
        }
        self.answers.retain(|(sent, _)| endpoint.take_outcome(*sent).is_none());
    }

    fn end(&mut self, endpoint: &mut Endpoint) {
        self.is_over = true;
        self.answers.retain(|(sent, _)| endpoint.take_outcome(*sent).is_none());
        if endpoint.cancel_receive(self.asked) && self.answers.is_empty() {
            let _ = endpoint.take_outcome(self.asked);
        } else {
            // What is still under way keeps its memory; processes that ask after the end break the rules.
            std::mem::forget((std::mem::take(&mut self.question), std::mem::take(&mut self.answers)));
        }
    }
}

fn ask_next(context: u32, question: &mut Box<i64>, endpoint: &mut Endpoint) -> RequestId {
    let selector = Selector { context, peer: None, tag: Some(QUESTION) };
    // SAFETY: the question stays where it is and is not looked at before the request is complete.
    unsafe { endpoint.post_receive(selector, (&raw mut **question).cast(), size_of::<i64>()) }
}

/// Answers the questions that have come, until the file is closed.
struct Answering(Arc<Mutex<PointerKeeper>>);

impl Task for Answering {
    fn advance(&mut self, world: &mut World) -> bool {
        let mut keeper = lock(&self.0);
        if !keeper.is_over {
            keeper.advance(&mut world.endpoint);
        }
        keeper.is_over
    }
}

fn lock(keeper: &Mutex<PointerKeeper>) -> MutexGuard<'_, PointerKeeper> {
    keeper.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to keep the pointer of a file that is being opened, if that is this process's part.
pub fn open(world: &mut World, context: u32, rank: u32) -> Option<Arc<Mutex<PointerKeeper>>> {
    (rank == 0).then(|| {
        let keeper = Arc::new(Mutex::new(PointerKeeper::new(context, &mut world.endpoint)));
        world.add(Box::new(Answering(keeper.clone())));
        keeper
    })
}

/// Ends with the file.
pub fn close(file: &OpenFile) {
    let Some(keeper) = &file.keeper else { return };
    // The monitor first: a progress pass takes the two in this order.
    let (mut world, mut keeper) = (WORLD.enter(), lock(keeper));
    keeper.end(&mut world.endpoint);
}

impl OpenFile {
    /// Adds to the shared pointer; answers what it was, in etypes.
    pub fn add_to_shared(&self, call: &'static str, amount: i64) -> Result<i64> {
        if let Some(keeper) = &self.keeper {
            return Ok(lock(keeper).add(amount));
        }
        let (context, source, keeper) = (self.comm.context, self.comm.rank, self.comm.local.peer(0));
        let (question, mut answer) = (Box::new(amount), Box::new(0i64));
        let selector = Selector { context, peer: Some(keeper), tag: Some(ANSWER) };
        let envelope = Envelope { context, tag: QUESTION, source };
        let requests = {
            // Questions of several threads are answered in their order, which is that of the receives.
            let endpoint = &mut WORLD.enter().endpoint;
            // SAFETY: both stay where they are until the wait below is over.
            unsafe {
                let receive = endpoint.post_receive(selector, (&raw mut *answer).cast(), size_of::<i64>());
                let at = (&raw const *question).cast();
                [receive, endpoint.post_send(keeper, envelope, at, size_of::<i64>(), SendMode::Standard)]
            }
        };
        let outcomes = wait(call, context, |world| {
            let endpoint = &mut world.endpoint;
            requests
                .iter()
                .all(|&request| endpoint.is_complete(request))
                .then(|| requests.map(|request| endpoint.take_outcome(request).expect("it is complete")))
        });
        if outcomes.iter().any(|outcome| outcome.fault.is_some()) {
            let detail = format!("process {} has ended, which kept the shared file pointer", keeper.0);
            return Err(self.error(lost_class(), detail));
        }
        Ok(*answer)
    }

    /// The shared pointer, in the process that keeps it; 0 in others.
    pub fn kept_pointer(&self) -> i64 {
        self.keeper.as_ref().map_or(0, |keeper| lock(keeper).value)
    }

    /// Sets the shared pointer, in the process that keeps it.
    pub fn set_kept_pointer(&self, value: i64) {
        if let Some(keeper) = &self.keeper {
            lock(keeper).value = value;
        }
    }
}
