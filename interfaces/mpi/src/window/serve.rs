//! What a process does for the other members of its windows: their requests, and answers to its own.
//!
//! What a request names is a claim: lengths are compared, and places checked against the window, before anything is
//! touched. What does not fit is told to the origin with the next answer.

use super::accumulate::gather;
use super::apply::{Action, apply};
use super::elements::Span;
use super::message::{AnswerLanding, AnswerPlace, WindowHead, WindowMessage, WindowMessageKind, decode, encode};
use super::words::{self, WhichLock};
use super::{TargetWay, Window};
use crate::abi::Status;
use crate::datatype::Datatype;
use crate::error::{Class, Error};
use crate::failure::lost_class;
use crate::handle::HandleTable;
use crate::op::PredefinedOperation;
use crate::request::{OperationEnd, Request};
use crate::world::{Task, World};
use std::time::Duration;
use weft_fabric::{Endpoint, Peer};

/// Moves all windows, as long as there are any.
struct WindowService;

/// Progress passes serve the windows from now on.
pub fn begin(world: &mut World) {
    if !std::mem::replace(&mut world.windows.are_served, true) {
        world.add(Box::new(WindowService));
    }
}

impl Task for WindowService {
    fn advance(&mut self, world: &mut World) -> bool {
        let World { windows, endpoint, requests, .. } = world;
        for index in 0..windows.live.len() {
            let Some(window) = windows.table.find_mut(windows.live[index]) else { continue };
            window.retry(endpoint);
            while let Some((from, bytes)) = window.service.next(endpoint) {
                window.receive(endpoint, requests, from, bytes);
            }
        }
        windows.are_served = !windows.live.is_empty() || windows.waiting > 0;
        !windows.are_served
    }

    /// Answers of members that have ended are not waited for.
    fn idle(&mut self, world: &mut World, sleeps: bool) -> bool {
        let World { windows, endpoint, requests, .. } = world;
        windows.sleeps += u64::from(sleeps);
        let mut changed = false;
        for index in 0..windows.live.len() {
            let Some(window) = windows.table.find_mut(windows.live[index]) else { continue };
            let ended = |reply: &AnswerPlace| endpoint.has_ended(window.targets[reply.rank].peer);
            let ids: Vec<u64> =
                window.service.replies.iter().filter(|(_, reply)| ended(reply)).map(|(id, _)| *id).collect();
            for id in ids {
                changed = true;
                let Some(reply) = window.service.replies.get_mut(&id) else { continue };
                if !std::mem::replace(&mut reply.doubted, true) {
                    // It may have answered and ended since the pass that moved nothing: one more takes that.
                    endpoint.look_soon();
                    continue;
                }
                reply.fault = Some(lost_class());
                window.land(requests, id);
            }
        }
        changed
    }

    fn longest_sleep(&self, world: &World) -> Option<Duration> {
        world.windows.longest_sleep()
    }
}

/// What became of a request.
enum Handled {
    Done,
    /// A lock is held by somebody else.
    Later,
}

impl Window {
    fn receive(&mut self, endpoint: &mut Endpoint, requests: &mut HandleTable<Request>, from: u32, bytes: Box<[u8]>) {
        let Some(message) = decode(&bytes) else { return self.refuse(from, Class::Intern) };
        if message.head.kind.is_answer() {
            return self.answered(requests, from, &message);
        }
        // Requests keep their order, also behind one that has to wait.
        if !self.service.backlog.is_empty() {
            self.service.backlog.push_back((from, bytes));
        } else if let Handled::Later = self.perform(endpoint, from, &message) {
            self.service.backlog.push_back((from, bytes));
        }
    }

    /// What had to wait for a lock.
    fn retry(&mut self, endpoint: &mut Endpoint) {
        if !self.service.is_pending() {
            return;
        }
        for _ in 0..self.service.locks.len() {
            if let Some((from, alone)) = self.service.locks.pop_front()
                && !endpoint.has_ended(self.peer(from))
            {
                self.lock_for(endpoint, from, alone);
            }
        }
        while let Some((from, bytes)) = self.service.backlog.pop_front() {
            let handled = decode(&bytes).map_or(Handled::Done, |message| self.perform(endpoint, from, &message));
            if let Handled::Later = handled {
                return self.service.backlog.push_front((from, bytes));
            }
        }
    }

    fn refuse(&mut self, from: u32, class: Class) {
        self.service.others[from as usize].fault_here.get_or_insert(class);
    }

    fn peer(&self, rank: u32) -> Peer {
        self.targets[rank as usize].peer
    }

    fn answer(&mut self, endpoint: &mut Endpoint, to: u32, head: WindowHead, payload: &[u8]) {
        let peer = self.peer(to);
        self.service.reap(endpoint);
        self.service.send(endpoint, peer, encode(head, &[], payload));
    }

    fn perform(&mut self, endpoint: &mut Endpoint, from: u32, message: &WindowMessage) -> Handled {
        match message.head.kind {
            WindowMessageKind::Put => self.put_for(from, message),
            WindowMessageKind::Get => self.get_for(endpoint, from, message),
            WindowMessageKind::Accumulate | WindowMessageKind::FetchAccumulate | WindowMessageKind::CompareAndSwap => {
                return self.accumulate_for(endpoint, from, message);
            }
            WindowMessageKind::Lock => self.lock_for(endpoint, from, message.head.position != 0),
            WindowMessageKind::Unlock => {
                self.unlock_for(endpoint, from);
                self.say_done(endpoint, from);
            }
            WindowMessageKind::Flush => self.say_done(endpoint, from),
            WindowMessageKind::Complete => self.service.others[from as usize].completes += 1,
            WindowMessageKind::Post
            | WindowMessageKind::Data
            | WindowMessageKind::Granted
            | WindowMessageKind::Done => {}
        }
        Handled::Done
    }

    fn say_done(&mut self, endpoint: &mut Endpoint, from: u32) {
        let fault = self.service.others[from as usize].fault_here.take();
        let head =
            WindowHead { fault: fault.map_or(0, |class| class as u64 + 1), ..WindowHead::new(WindowMessageKind::Done) };
        self.answer(endpoint, from, head, &[]);
    }

    fn lock_for(&mut self, endpoint: &mut Endpoint, from: u32, alone: bool) {
        let mine = self.targets[self.me()].place.unwrap_or(0);
        if self.service.others[from as usize].holds.is_some() {
            return self.refuse(from, Class::RmaSync);
        }
        if words::try_lock(self.words.word(mine, WhichLock::Program), alone, from) {
            self.service.others[from as usize].holds = Some(alone);
            self.answer(endpoint, from, WindowHead::new(WindowMessageKind::Granted), &[]);
        } else if self.is_held_by_ended(endpoint, WhichLock::Program) {
            let fault = lost_class() as u64 + 1;
            self.answer(endpoint, from, WindowHead { fault, ..WindowHead::new(WindowMessageKind::Granted) }, &[]);
        } else {
            self.service.locks.push_back((from, alone));
        }
    }

    /// Whether a lock of ours may be held by somebody who has ended, and so is never given back.
    fn is_held_by_ended(&self, endpoint: &Endpoint, which: WhichLock) -> bool {
        let has_ended = |rank: usize| endpoint.has_ended(self.targets[rank].peer);
        let holds = |rank: &usize| which == WhichLock::Program && self.service.others[*rank].holds.is_some();
        self.ended_holder(endpoint, self.me(), which).is_some() || (0..self.targets.len()).filter(holds).any(has_ended)
    }

    fn unlock_for(&mut self, endpoint: &mut Endpoint, from: u32) {
        let mine = self.targets[self.me()].place.unwrap_or(0);
        if let Some(alone) = self.service.others[from as usize].holds.take() {
            self.release_word(endpoint, mine, WhichLock::Program, alone);
        }
    }

    /// Whether elements of `extent` bytes at these places lie in our memory; with them the address of each.
    fn fits(&self, spans: &[Span], extent: i64) -> bool {
        spans.iter().all(|span| {
            let low = i128::from(span.at);
            self.check_range(self.me(), low, low + span.count as i128 * i128::from(extent)).is_ok()
        })
    }

    fn base(&self) -> *mut u8 {
        match self.targets[self.me()].way {
            TargetWay::Mapped(base) => base,
            TargetWay::Attach(_) | TargetWay::Message => self.base,
        }
    }

    fn put_for(&mut self, from: u32, message: &WindowMessage) {
        let bytes: usize = message.spans.iter().fold(0, |sum, span| sum.saturating_add(span.count));
        if bytes != message.payload.len() {
            return self.refuse(from, Class::Intern);
        }
        if !self.fits(&message.spans, 1) {
            return self.refuse(from, Class::RmaRange);
        }
        let mut rest = message.payload;
        for span in &message.spans {
            let (part, after) = rest.split_at(span.count);
            let to = self.base().wrapping_offset(span.at as isize);
            // SAFETY: the span lies in our memory, as just checked, and the part has its length.
            unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len()) };
            rest = after;
        }
    }

    fn get_for(&mut self, endpoint: &mut Endpoint, from: u32, message: &WindowMessage) {
        let bytes: usize = message.spans.iter().fold(0, |sum, span| sum.saturating_add(span.count));
        let head = WindowHead {
            id: message.head.id,
            position: message.head.position,
            ..WindowHead::new(WindowMessageKind::Data)
        };
        if bytes > super::message::MOST_PAYLOAD || !self.fits(&message.spans, 1) {
            let head = WindowHead { fault: Class::RmaRange as u64 + 1, ..head };
            // As long as what was asked for, so that the origin's count comes out.
            return self.answer(endpoint, from, head, &vec![0; bytes.min(super::message::MOST_PAYLOAD)]);
        }
        let mut data = vec![0u8; bytes];
        let mut at = 0;
        for span in &message.spans {
            let source = self.base().wrapping_offset(span.at as isize);
            // SAFETY: the span lies in our memory, as just checked, and `data` has room for all.
            unsafe { std::ptr::copy_nonoverlapping(source, data[at..].as_mut_ptr(), span.count) };
            at += span.count;
        }
        self.answer(endpoint, from, head, &data);
    }

    fn accumulate_for(&mut self, endpoint: &mut Endpoint, from: u32, message: &WindowMessage) -> Handled {
        let head = message.head;
        let fetches = head.kind != WindowMessageKind::Accumulate;
        let checked = self.check_accumulate(message);
        let (basic, action, bytes) = match checked {
            Ok(checked) => checked,
            Err((class, bytes)) => {
                self.refuse(from, class);
                if fetches {
                    let head = WindowHead { kind: WindowMessageKind::Data, fault: class as u64 + 1, ..head };
                    self.answer(endpoint, from, head, &vec![0; bytes]);
                }
                return Handled::Done;
            }
        };
        let me = self.me();
        let place = self.targets[me].place.unwrap_or(0);
        if !words::try_lock(self.words.word(place, WhichLock::Accumulate), true, self.comm.rank) {
            if !self.is_held_by_ended(endpoint, WhichLock::Accumulate) {
                return Handled::Later;
            }
            let class = lost_class();
            self.refuse(from, class);
            if fetches {
                let head = WindowHead { kind: WindowMessageKind::Data, fault: class as u64 + 1, ..head };
                self.answer(endpoint, from, head, &vec![0; bytes]);
            }
            return Handled::Done;
        }
        let mut before = vec![0u8; if fetches { bytes } else { 0 }];
        let result = if fetches { before.as_mut_ptr() } else { std::ptr::null_mut() };
        // SAFETY: the spans lie in our memory, the payload has the elements, and `before` room for them.
        let done =
            unsafe { apply(&self.targets[me], action, &message.spans, basic, (message.payload.as_ptr(), result)) };
        self.release_word(endpoint, place, WhichLock::Accumulate, true);
        debug_assert!(done.is_ok(), "our own memory is mapped");
        if fetches {
            let head = WindowHead { id: head.id, position: head.position, ..WindowHead::new(WindowMessageKind::Data) };
            self.answer(endpoint, from, head, &before);
        }
        Handled::Done
    }

    /// The element's type, what to do, and the bytes of all elements; or why not, and the bytes of the answer.
    fn check_accumulate(&self, message: &WindowMessage) -> Result<(&'static Datatype, Action, usize), (Class, usize)> {
        let head = message.head;
        let nonsense = (Class::Intern, 0);
        let basic = Datatype::predefined(head.element as usize).ok_or(nonsense)?;
        let op = PredefinedOperation::from_code(head.op as usize).ok_or(nonsense)?;
        let elements = message.spans.iter().fold(0usize, |sum, span| sum.saturating_add(span.count));
        let bytes = elements.saturating_mul(basic.extent().max(1) as usize);
        if bytes > super::message::MOST_PAYLOAD {
            return Err(nonsense);
        }
        let (action, brought) = match head.kind {
            WindowMessageKind::CompareAndSwap => (Action::Swap, 2 * bytes),
            _ => {
                let action = Action::of(op, basic).map_err(|_| (Class::Op, bytes))?;
                (action, if op == PredefinedOperation::NoOp { 0 } else { bytes })
            }
        };
        if message.payload.len() != brought
            || (head.kind == WindowMessageKind::CompareAndSwap && (elements != 1 || message.spans.len() != 1))
        {
            return Err((Class::Intern, bytes));
        }
        if !self.fits(&message.spans, basic.extent()) {
            return Err((Class::RmaRange, bytes));
        }
        Ok((basic, action, bytes))
    }

    fn answered(&mut self, requests: &mut HandleTable<Request>, from: u32, message: &WindowMessage) {
        let head = message.head;
        let other = &mut self.service.others[from as usize];
        let fault = head.fault.checked_sub(1).and_then(|class| Class::from_number(class as i32));
        match head.kind {
            WindowMessageKind::Granted => {
                other.granted += 1;
                other.refused = fault;
            }
            WindowMessageKind::Post => other.posts += 1,
            WindowMessageKind::Done => {
                other.answered += 1;
                other.fault = other.fault.or(fault);
            }
            _ => self.arrived(requests, from, message, fault),
        }
    }

    /// A part of an answer.
    fn arrived(
        &mut self,
        requests: &mut HandleTable<Request>,
        from: u32,
        message: &WindowMessage,
        fault: Option<Class>,
    ) {
        let Some(reply) = self.service.replies.get_mut(&message.head.id) else { return };
        if reply.rank != from as usize || reply.parts == 0 {
            return;
        }
        reply.parts -= 1;
        self.service.parts -= 1;
        let position = message.head.position as usize;
        let length = message.payload.len();
        let fits = position.checked_add(length).is_some_and(|end| end <= reply.bytes) && length <= reply.left;
        if !fits {
            return;
        }
        reply.fault = reply.fault.or(fault);
        if fault.is_none() {
            // SAFETY: the place has `bytes` bytes, and the part lies within.
            unsafe { std::ptr::copy_nonoverlapping(message.payload.as_ptr(), reply.at.add(position), length) };
        }
        reply.left -= length;
        // A part that was refused as nonsense has nothing: no more is to be waited for.
        if reply.left == 0 || (fault.is_some() && length == 0) {
            self.land(requests, message.head.id);
        }
    }

    fn land(&mut self, requests: &mut HandleTable<Request>, id: u64) {
        let Some(reply) = self.service.forget(id) else { return };
        let other = &mut self.service.others[reply.rank];
        if reply.fault.is_none() {
            // SAFETY: the program keeps its buffer until the operation is complete, which it was not before.
            unsafe {
                match &reply.landing {
                    AnswerLanding::There => {}
                    AnswerLanding::Packed(memory, crate::point::Buffer::Scattered(buffer)) => {
                        buffer.unpack_from(memory.as_ptr(), memory.len());
                    }
                    AnswerLanding::Packed(..) => {}
                    AnswerLanding::Elements(memory, buffer, basic) => {
                        let _ = gather(memory, buffer, basic);
                    }
                }
            }
        }
        let name = if self.name.is_empty() { format!("{:#x}", self.handle) } else { self.name.clone() };
        let error = reply.fault.map(|class| {
            let detail = match class.is_loss() {
                true => format!("rank {} of window {name} has ended", reply.rank),
                false => format!("rank {} of window {name} refused an access: {}", reply.rank, class.text()),
            };
            Box::new(Error::new(class, detail).on(self.handle))
        });
        match reply.request.and_then(|request| requests.find_mut(request)) {
            Some(request) => request.fulfil(OperationEnd { status: Status::EMPTY, error }),
            None => other.fault = other.fault.or(reply.fault),
        }
    }
}
