//! Long messages: grants, copies shared by both sides, and how each learns that it is done.
//!
//! With *grant-copy* the bytes go straight out of the sender's memory into the receiver's, once. Both sides take chunks
//! from a shared counter in a copy slot, so whoever has time copies. A message that finds no slot free waits for one.
//! With *grant-stream* the sender streams the bytes through the bulk area of the pair, or over a connection. Which of
//! them it is, the selector says ([`Rules::answer`](weft_protocol::selector::Rules::answer)).
//!
//! The start tries on the process itself whether copying works. If the kernel refuses it later, for another process,
//! that message is streamed again from its beginning, and this process asks for no more copies (decision 6).
//!
//! While the granted streams that have not begun are larger than this process's share of the last cache, the receiver
//! stores past the caches: what comes would have left them before it is read.

use super::inbound::Body;
use super::outbound::MessageStream;
use super::shown::Asked;
use super::{HelpedCopy, Port, RequestId};
use crate::api::{Outcome, Peer};
use crate::protocol::Breach;
use crate::requests::{RequestEntry, RequestState, Requests};
use weft_device::Packet;
use weft_device::shm::{Copied, CopyJob, Direction};
use weft_device::{copying, sys};
use weft_protocol::selector::{self, Way};
use weft_wire::cell::Kind;

/// Passes with something else to do before an offered message is looked at all the same.
const BUSY_PASSES: u32 = 64;

impl RequestEntry {
    /// Bytes of the message that go into the buffer.
    pub(super) fn wanted(&self) -> u64 {
        (self.capacity as u64).min(self.outcome.length)
    }
}

impl Port {
    /// Gives the message of a sender that asks to a receive.
    pub(super) fn let_in(&mut self, id: RequestId, outcome: Outcome, asked: Asked) {
        self.begin(id, outcome);
        let from = outcome.peer.0;
        let entry = self.requests.at(id);
        entry.remote = asked.request;
        let (bytes, local) = (entry.wanted(), entry.buffer);
        let way = self.answer(from, &asked, local, bytes, Some(id));
        // SAFETY: BUFFER-LIVES, and bytes <= capacity.
        if way == Way::Nothing || unsafe { self.take(way, from, &asked, local, bytes) } {
            self.reply(from, Kind::DoneSend, &[asked.request as u64]);
            return self.requests.complete(id);
        }
        match self.slots.pid(from).filter(|_| way == Way::CopyByBoth) {
            Some(pid) => self.grant_copy(from, pid, id, asked),
            None => self.grant_stream(from, id),
        }
    }

    /// Asks the selector how `bytes` bytes of a message are to come to `local`, and notes where it has learned that for
    /// the receive `id`.
    fn answer(&mut self, from: u32, asked: &Asked, local: *mut u8, bytes: u64, id: Option<RequestId>) -> Way {
        let shown = bytes > 0 && self.shown(from, asked, bytes).is_some();
        let copies = self.attachable(from).is_some();
        let message = selector::Reception { bytes, offered: asked.offered, shown, copies };
        let is_slow = || copying::is_slow_for_the_kernel(asked.address as usize, local as usize);
        let (learner, requests) = (&mut self.learner, &mut self.requests);
        let learned = || {
            id.into_iter().for_each(|id| requests.at(id).timed = true);
            learner.begin_grant(bytes, sys::now_ns())
        };
        self.rules.answer(&message, is_slow, learned).way
    }

    /// Copies a message at once out of the memory of `from`, if that is its way; false if it is not, or cannot be.
    ///
    /// # Safety
    /// `to` is writable for `bytes` bytes.
    unsafe fn take(&mut self, way: Way, from: u32, asked: &Asked, to: *mut u8, bytes: u64) -> bool {
        let taken = match way {
            Way::CopyShown => self.shown(from, asked, bytes).is_some_and(|shown| {
                // SAFETY: the caller's promise; our memory is not that mapping.
                unsafe { shown.copy(0, to, bytes as usize) };
                true
            }),
            Way::CopyByReceiver => self.attachable(from).is_some_and(|pid| {
                // SAFETY: the caller's promise. The address is a claim: the kernel refuses what is not mapped there.
                let good = unsafe { sys::copy_from_process(pid, asked.address, to, bytes as usize) }.is_ok();
                if !good {
                    self.refuse_copies(from);
                }
                good
            }),
            _ => false,
        };
        self.counters.single_copy_bytes += if taken { bytes } else { 0 };
        taken
    }

    /// Takes one offered message that nobody receives yet, so that its sender goes on; true if there was one. A receive
    /// that comes soon saves a copy: this is for passes in which nothing else is to be done (`idle`), and for one of
    /// many others, since a receiver of much from others may never have such a pass.
    pub fn keep_offer(&mut self, idle: bool) -> bool {
        // Received since.
        while self.offered.messages.front().is_some_and(|message| self.arrived.offer(*message).is_none()) {
            self.offered.messages.pop_front();
        }
        if self.offered.messages.is_empty() || (!idle && self.offered.busy_passes < BUSY_PASSES) {
            self.offered.busy_passes += u32::from(!self.offered.messages.is_empty());
            return false;
        }
        self.offered.busy_passes = 0;
        let Some(message) = self.offered.messages.pop_front() else { return false };
        // The entry may be another message's by now; if that one is offered, taking it is right, too.
        let Some((outcome, asked)) = self.arrived.offer(message) else { return true };
        let from = outcome.peer.0;
        if self.is_lost(from) {
            return true;
        }
        let mut data = vec![0; outcome.length as usize];
        let bytes = outcome.length;
        let way = self.answer(from, &asked, data.as_mut_ptr(), bytes, None);
        // SAFETY: the vector is as long.
        if way == Way::Nothing || unsafe { self.take(way, from, &asked, data.as_mut_ptr(), bytes) } {
            self.arrived.at(message).body = Body::Kept { received: data.len(), data };
            self.reply(from, Kind::DoneSend, &[asked.request as u64]);
            return true;
        }
        // It is streamed to us. The request stands for the message until its stream begins.
        let mut entry = Requests::entry(RequestState::Granted, data.as_mut_ptr(), data.len(), Peer(from));
        (entry.outcome, entry.remote, entry.released, entry.keeps) = (outcome, asked.request, true, Some(message));
        let id = self.requests.insert(entry);
        self.arrived.at(message).body = Body::Kept { received: 0, data };
        self.grant_stream(from, id);
        true
    }

    /// The kernel has refused a copy with a peer: no more with a process of another job, which may be special or have
    /// ended; with those of our job no more at all.
    fn refuse_copies(&mut self, from: u32) {
        if !self.slots.refuse(from) {
            self.limits.single_copy_allowed = false;
        }
        self.counters.single_copy_refused += 1;
    }

    /// Both sides copy, once there is a slot for it.
    fn grant_copy(&mut self, from: u32, pid: i32, id: RequestId, asked: Asked) {
        let entry = self.requests.at(id);
        let Some(slot) = self.slots.take(from) else {
            entry.state = RequestState::WithoutSlot;
            return self.without_slot.push_back((id, asked));
        };
        let (bytes, local, remote) = (entry.wanted(), entry.buffer, entry.remote);
        entry.slot = slot.index;
        entry.state = RequestState::Copying;
        let shown = self.shown(from, &asked, bytes);
        let copy = CopyJob { slot, pid, local, remote: asked.address, bytes, direction: Direction::Pull, shown };
        self.jobs.push_back(HelpedCopy { copy, peer: from, request: id });
        let place = slot.index as u64 | (slot.generation as u64) << 32;
        self.reply(from, Kind::GrantCopy, &[remote as u64, id.0 as u64, place, local as u64, bytes]);
    }

    /// Gives a slot back, and to the first that waits for one.
    fn free_slot(&mut self, from: u32, slot: u32) {
        self.slots.free(from, slot);
        let waits = |(id, _): &(RequestId, Asked)| self.requests.at(*id).outcome.peer == Peer(from);
        let Some(place) = self.without_slot.iter().position(waits) else { return };
        let Some((id, asked)) = self.without_slot.remove(place) else { return };
        match self.slots.pid(from) {
            Some(pid) => self.grant_copy(from, pid, id, asked),
            None => self.grant_stream(from, id),
        }
    }

    /// The bytes of a receive that was granted are all here.
    pub(super) fn complete_granted(&mut self, id: RequestId) {
        let entry = self.requests.at(id);
        if std::mem::take(&mut entry.timed) {
            self.learner.end_grant(entry.wanted(), sys::now_ns());
        }
        self.requests.complete(id);
    }

    fn grant_stream(&mut self, from: u32, id: RequestId) {
        let entry = self.requests.at(id);
        entry.state = RequestState::Granted;
        let values = [entry.remote as u64, id.0 as u64, entry.wanted()];
        self.granted = self.granted.wrapping_add(entry.wanted() as usize);
        self.reply(from, Kind::GrantStream, &values);
    }

    /// The send that `packet` answers, if it waits for an answer.
    pub(super) fn answered(&mut self, packet: &Packet<'_>) -> Result<RequestId, Breach> {
        let (id, entry) = self.requests.claimed(packet.word(0)).ok_or("an answer to no send of ours")?;
        if !matches!(entry.state, RequestState::Asked | RequestState::SharedSend)
            || entry.outcome.peer != Peer(packet.from)
        {
            return Err("an answer to a send that did not ask");
        }
        Ok(id)
    }

    pub(super) fn on_grant_stream(&mut self, packet: Packet<'_>) -> Result<(), Breach> {
        let id = self.answered(&packet)?;
        self.jobs.retain(|job| job.request != id);
        let entry = self.requests.at(id);
        let length = packet.word(2) as usize;
        if length > entry.capacity || length == 0 {
            return Err("a grant for an impossible number of bytes");
        }
        entry.state = RequestState::Sending;
        self.learner.waits(packet.from).note_granted();
        let entry = self.requests.at(id);
        let open_for = Some(packet.word(1) as u32);
        let stream = MessageStream { request: id, data: entry.buffer, length, sent: 0, open_for, by_long_way: false };
        self.outbound[packet.from as usize].streams.push_back(stream);
        self.note_backlog(packet.from);
        Ok(())
    }

    pub(super) fn on_grant_copy(&mut self, packet: Packet<'_>) -> Result<(), Breach> {
        let id = self.answered(&packet)?;
        let (place, remote, bytes) = (packet.word(2), packet.word(3), packet.word(4));
        let entry = self.requests.at(id);
        if entry.state != RequestState::Asked {
            return Err("a second grant for one message");
        }
        if bytes > entry.capacity as u64 || bytes == 0 {
            return Err("a grant for an impossible number of bytes");
        }
        entry.state = RequestState::SharedSend;
        entry.remote = packet.word(1) as u32;
        let local = entry.buffer;
        let slot = self.slots.granted(packet.from, place as u32, (place >> 32) as u32);
        let (Some(slot), Some(pid)) = (slot, self.slots.pid(packet.from)) else {
            return Err("a grant for a copy slot that does not exist");
        };
        let copy = CopyJob { slot, pid, local, remote, bytes, direction: Direction::Push, shown: None };
        self.jobs.push_back(HelpedCopy { copy, peer: packet.from, request: id });
        Ok(())
    }

    /// Copies one chunk of one long message; true if there was one.
    pub fn step_copies(&mut self) -> bool {
        let Some(job) = self.jobs.front() else { return false };
        // SAFETY: BUFFER-LIVES, and the range lies inside the request's buffer (checked with the grant).
        let copied = unsafe { job.copy.step() };
        if let Copied::Chunk(bytes) | Copied::Last(bytes) = copied {
            self.counters.single_copy_bytes += bytes;
        }
        if let Copied::Chunk(_) = copied {
            return true;
        }
        let Some(HelpedCopy { copy, peer, request }) = self.jobs.pop_front() else { return false };
        match (copied, copy.direction) {
            (Copied::Chunk(_) | Copied::NothingLeft, _) => {}
            (Copied::Last(_), Direction::Pull) => {
                let remote = self.requests.at(request).remote;
                self.reply(peer, Kind::DoneSend, &[remote as u64]);
                self.finish_receive(peer, request);
            }
            (Copied::LastFailed, Direction::Pull) => self.retry_as_stream(peer, request),
            (end, Direction::Push) => {
                let failed = end == Copied::LastFailed;
                let remote = self.requests.at(request).remote;
                self.reply(peer, Kind::DoneReceive, &[remote as u64, failed as u64]);
                if !failed {
                    self.requests.complete(request);
                }
            }
        }
        true
    }

    fn finish_receive(&mut self, from: u32, id: RequestId) {
        let slot = self.requests.at(id).slot;
        self.complete_granted(id);
        self.free_slot(from, slot);
    }

    /// The kernel refused a copy: everything once more through shared memory, and no attempts from now on.
    fn retry_as_stream(&mut self, from: u32, id: RequestId) {
        self.slots.free(from, self.requests.at(id).slot);
        self.refuse_copies(from);
        self.grant_stream(from, id);
        for (id, asked) in std::mem::take(&mut self.without_slot) {
            let from = self.requests.at(id).outcome.peer.0;
            match self.slots.pid(from).is_some() && self.limits.single_copy_allowed {
                true => self.without_slot.push_back((id, asked)),
                false => self.grant_stream(from, id),
            }
        }
    }

    /// The receiver has copied the last chunk.
    pub(super) fn on_done_send(&mut self, packet: Packet<'_>) -> Result<(), Breach> {
        let id = self.answered(&packet)?;
        self.jobs.retain(|job| job.request != id);
        self.requests.complete(id);
        Ok(())
    }

    /// The sender has copied the last chunk.
    pub(super) fn on_done_receive(&mut self, packet: Packet<'_>) -> Result<(), Breach> {
        let (id, entry) = self.requests.claimed(packet.word(0)).ok_or("news of no receive of ours")?;
        if entry.state != RequestState::Copying || entry.outcome.peer != Peer(packet.from) {
            return Err("news of a receive that is not under way");
        }
        self.jobs.retain(|job| job.request != id);
        if packet.word(1) != 0 {
            self.retry_as_stream(packet.from, id);
        } else {
            self.finish_receive(packet.from, id);
        }
        Ok(())
    }
}
