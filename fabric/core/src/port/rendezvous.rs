//! Long messages: grants, copies shared by both sides, and how each learns that it is done.

use super::outbound::Stream;
use super::requests::{Entry, State};
use super::{Breach, Job, Port, RequestId};
use crate::api::{Outcome, Peer};
use weft_device::Packet;
use weft_device::shm::{Copied, CopyJob, Direction};
use weft_wire::cell::Kind;

impl Entry {
    /// Bytes of the message that go into the buffer.
    pub(super) fn wanted(&self) -> u64 {
        (self.capacity as u64).min(self.outcome.length)
    }
}

impl Port {
    /// Lets the sender of a long message begin: `address` and `remote` are its buffer and its request.
    pub(super) fn grant(&mut self, id: RequestId, outcome: Outcome, address: u64, remote: u32) {
        self.begin(id, outcome);
        let from = outcome.peer.0;
        let entry = self.requests.at(id);
        entry.remote = remote;
        let (bytes, local) = (entry.wanted(), entry.buffer);
        if bytes == 0 {
            self.reply(from, Kind::DoneSend, &[remote as u64]);
            return self.requests.complete(id);
        }
        if !self.limits.single_copy_allowed || bytes < self.limits.single_copy as u64 {
            return self.grant_stream(from, id);
        }
        let (Some(pid), Some(slot)) = (self.slots.pid(from), self.slots.take(from)) else {
            return self.grant_stream(from, id);
        };
        let entry = self.requests.at(id);
        entry.slot = slot.index;
        entry.state = State::Copying;
        let copy = CopyJob { slot, pid, local, remote: address, bytes, direction: Direction::Pull };
        self.jobs.push_back(Job { copy, peer: from, request: id });
        let place = slot.index as u64 | (slot.generation as u64) << 32;
        self.reply(from, Kind::GrantCopy, &[remote as u64, id.0 as u64, place, local as u64, bytes]);
    }

    fn grant_stream(&mut self, from: u32, id: RequestId) {
        let entry = self.requests.at(id);
        entry.state = State::Granted;
        let values = [entry.remote as u64, id.0 as u64, entry.wanted()];
        self.granted = self.granted.wrapping_add(entry.wanted() as usize);
        self.reply(from, Kind::GrantStream, &values);
    }

    /// The send that `packet` answers, if it waits for an answer.
    fn answered(&mut self, packet: &Packet<'_>) -> Result<RequestId, Breach> {
        let (id, entry) = self.requests.claimed(packet.word(0)).ok_or("an answer to no send of ours")?;
        if !matches!(entry.state, State::Asked | State::SharedSend) || entry.outcome.peer != Peer(packet.from) {
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
        entry.state = State::Sending;
        let open_for = Some(packet.word(1) as u32);
        let stream = Stream { request: id, data: entry.buffer, length, sent: 0, open_for, by_long_way: false };
        self.outbound[packet.from as usize].streams.push_back(stream);
        self.note_backlog(packet.from);
        Ok(())
    }

    pub(super) fn on_grant_copy(&mut self, packet: Packet<'_>) -> Result<(), Breach> {
        let id = self.answered(&packet)?;
        let (place, remote, bytes) = (packet.word(2), packet.word(3), packet.word(4));
        let entry = self.requests.at(id);
        if entry.state != State::Asked {
            return Err("a second grant for one message");
        }
        if bytes > entry.capacity as u64 || bytes == 0 {
            return Err("a grant for an impossible number of bytes");
        }
        entry.state = State::SharedSend;
        entry.remote = packet.word(1) as u32;
        let local = entry.buffer;
        let slot = self.slots.granted(packet.from, place as u32, (place >> 32) as u32);
        let (Some(slot), Some(pid)) = (slot, self.slots.pid(packet.from)) else {
            return Err("a grant for a copy slot that does not exist");
        };
        let copy = CopyJob { slot, pid, local, remote, bytes, direction: Direction::Push };
        self.jobs.push_back(Job { copy, peer: packet.from, request: id });
        Ok(())
    }

    /// Copies one chunk of one long message; true if there was one.
    pub fn step_copies(&mut self) -> bool {
        let Some(job) = self.jobs.front() else { return false };
        // SAFETY: BUFFER-LIVES, and the range lies inside the request's buffer (checked with the grant).
        let copied = unsafe { job.copy.step() };
        if let Copied::Chunk(bytes) = copied {
            self.counters.single_copy_bytes += bytes;
            return true;
        }
        let Some(Job { copy, peer, request }) = self.jobs.pop_front() else { return false };
        match (copied, copy.direction) {
            (Copied::Chunk(_) | Copied::NothingLeft, _) => {}
            (Copied::Last, Direction::Pull) => {
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
        self.slots.free(from, self.requests.at(id).slot);
        self.requests.complete(id);
    }

    /// The kernel refused a copy: everything once more through shared memory, and no attempts from now on.
    fn retry_as_stream(&mut self, from: u32, id: RequestId) {
        self.slots.free(from, self.requests.at(id).slot);
        self.limits.single_copy_allowed = false;
        self.counters.single_copy_refused += 1;
        self.grant_stream(from, id);
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
        if entry.state != State::Copying || entry.outcome.peer != Peer(packet.from) {
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
