//! The same reduction again: what was prepared for the last one is used once more.
//!
//! Programs fold a few numbers in the same way in each of their steps, and between hosts as much time goes into a schedule
//! as into the message. Only what cannot mean anything else later is kept: predefined types and operations, on a
//! communicator that still is the same.

use super::call::{Prepared, Scene};
use super::prepare::check::is_in_place;
use super::prepare::reduction::Folded;
use super::run::{Folding, Route, Run};
use super::schedule::Schedule;
use crate::datatype::Datatype;
use crate::op::Op;
use crate::tool::wants_collectives;
use std::sync::{Arc, Weak};

/// The arguments that a schedule depends on. Buffers are none of them, but for whether there are two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Call {
    count: i64,
    datatype: usize,
    op: usize,
    in_place: bool,
}

impl Call {
    /// `None` for what is not kept, or may have to be refused.
    pub fn new(scene: &Scene, folded: &Folded) -> Option<Self> {
        let Folded { sent, received, count, datatype, op } = *folded;
        let doubtful = sent.is_null() || received.is_null() || sent == received || is_in_place(received);
        if doubtful || scene.comm.is_inter() || wants_collectives() {
            return None;
        }
        Datatype::predefined(datatype)?;
        let named = matches!(scene.world.ops.get(op), Ok(Op::Predefined(_)));
        named.then_some(Self { count, datatype, op, in_place: is_in_place(sent) })
    }
}

/// Of a call that went well.
pub struct Used {
    pub call: Call,
    pub comm: Arc<dyn Route>,
    pub schedule: Schedule,
    pub folding: Folding,
}

/// What was prepared for the last such call that went well.
#[derive(Default)]
pub struct Last(Option<Kept>);

struct Kept {
    call: Call,
    /// As long as this is there, no other communicator has its address.
    comm: Weak<dyn Route>,
    ready: Option<(Schedule, Folding)>,
}

impl Kept {
    fn is_for<R: Route + ?Sized>(&self, comm: &Arc<R>, call: &Call) -> bool {
        std::ptr::addr_eq(self.comm.as_ptr(), Arc::as_ptr(comm)) && self.call == *call
    }
}

impl Last {
    /// Prepares a call as the last one was, if it was the same.
    pub fn prepare(&mut self, scene: &Scene, call: Call, folded: &Folded) -> Option<Prepared> {
        let kept = self.0.as_mut().filter(|kept| kept.is_for(scene.comm, &call))?;
        let (schedule, folding) = kept.ready.take()?;
        if schedule.algorithms != scene.world.endpoint.settings().algorithms {
            return None;
        }
        Some(Prepared {
            schedule,
            input: if call.in_place { std::ptr::null() } else { folded.sent.cast() },
            output: folded.received.cast_mut().cast(),
            folding: Some(folding),
            again: Some(call),
            ..Prepared::default()
        })
    }

    /// A call has ended. True if its schedule is kept.
    pub fn keep(&mut self, run: &mut Run) -> bool {
        let Some(Used { call, comm, schedule, folding }) = run.take_for_again() else { return false };
        let ready = Some((schedule, folding));
        match &mut self.0 {
            Some(kept) if kept.is_for(&comm, &call) => kept.ready = ready,
            last => *last = Some(Kept { call, comm: Arc::downgrade(&comm), ready }),
        }
        true
    }
}
