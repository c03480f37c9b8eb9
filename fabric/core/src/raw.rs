//! The raw protocol: bytes between one pair of processes, received straight into the user's buffer.
//!
//! No tags, no matching: what one side sends, the other receives in order. A receive completes when its buffer is full.
//! Bytes that come before a buffer is posted are kept until one is.

use crate::api::{Fault, Peer, RequestId};
use crate::devices::Devices;
use crate::protocol::{Breach, Numbered, Protocol};
use crate::requests::{RequestState, Requests};
use std::collections::VecDeque;
use weft_device::{Packet, Posted};
use weft_wire::cell::{Head, INLINE_BYTES, Kind};

#[derive(Default)]
struct RawChannel {
    /// Posted buffers with the bytes that each has got.
    waiting: VecDeque<(RequestId, usize)>,
    early: VecDeque<u8>,
}

pub(crate) struct Raw {
    channels: Vec<RawChannel>,
}

impl Raw {
    /// # Safety
    /// `buffer` stays writable for `capacity` bytes until the request is complete.
    pub unsafe fn post_receive(
        &mut self,
        from: Peer,
        buffer: *mut u8,
        capacity: usize,
        requests: &mut Requests,
    ) -> RequestId {
        let id = requests.insert(Requests::entry(RequestState::Receiving, buffer, capacity, from));
        requests.at(id).outcome.length = capacity as u64;
        let channel = &mut self.channels[from.0 as usize];
        channel.waiting.push_back((id, 0));
        while !channel.early.is_empty() && !channel.waiting.is_empty() {
            let (front, _) = channel.early.as_slices();
            // SAFETY: the slice is ours.
            let taken = unsafe { channel.waiting_copy(front.as_ptr(), front.len(), requests) };
            channel.early.drain(..taken);
        }
        self.channels[from.0 as usize].finish_empty(requests);
        if let Some(fault) = requests.loss(from)
            && !requests.is_complete(id)
        {
            self.lose_peer(from, fault, requests);
        }
        id
    }
}

impl Numbered for Raw {
    /// That of [`Kind::Raw`].
    const NUMBER: u32 = Head::RAW;

    fn new(_: u32, peers: u32) -> Self {
        Self { channels: (0..peers).map(|_| RawChannel::default()).collect() }
    }
}

impl Protocol for Raw {
    fn handle_packet(&mut self, packet: Packet<'_>, requests: &mut Requests) -> Result<(), Breach> {
        let channel = &mut self.channels[packet.from as usize];
        let total = packet.bulk.as_ref().map_or(packet.inline_bytes, |bulk| bulk.len());
        // The common case: everything fits into the posted buffer, one copy.
        if let Some((id, got)) = channel.waiting.front_mut() {
            let entry = requests.at(*id);
            if entry.capacity - *got >= total {
                // SAFETY: got + total <= capacity; BUFFER-LIVES.
                unsafe { copy_payload(&packet, entry.buffer.add(*got), total) };
                *got += total;
                channel.finish_empty(requests);
                return Ok(());
            }
        }
        let mut bytes = vec![0u8; total];
        // SAFETY: there is room for the whole payload.
        unsafe { copy_payload(&packet, bytes.as_mut_ptr(), total) };
        let mut used = 0;
        while used < total && !channel.waiting.is_empty() {
            // SAFETY: used < total.
            used += unsafe { channel.waiting_copy(bytes.as_ptr().add(used), total - used, requests) };
        }
        channel.early.extend(&bytes[used..]);
        channel.finish_empty(requests);
        Ok(())
    }

    fn add_peer(&mut self) {
        self.channels.push(RawChannel::default());
    }

    /// What has come stays; the buffers that wait for more end.
    fn lose_peer(&mut self, peer: Peer, fault: Fault, requests: &mut Requests) {
        for (id, _) in self.channels[peer.0 as usize].waiting.drain(..) {
            requests.at(id).outcome.fault = Some(fault);
            requests.complete(id);
        }
    }
}

/// # Safety
/// `to` is writable for `total` bytes, which the packet has.
#[inline]
unsafe fn copy_payload(packet: &Packet<'_>, to: *mut u8, total: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match &packet.bulk {
            Some(bulk) => bulk.copy_to(to, total),
            None => packet.copy_inline(to, total),
        };
    }
}

/// Sends as many bytes as there is room for; answers how many.
///
/// # Safety
/// `data` is readable for `length` bytes.
pub(crate) unsafe fn try_send(device: &mut Devices, to: Peer, data: *const u8, length: usize) -> usize {
    let head = Head::control(Kind::Raw);
    let mut sent = 0;
    while sent < length {
        let rest = length - sent;
        // SAFETY: sent + rest == length.
        let posted = unsafe {
            match rest <= INLINE_BYTES {
                true => device.post_short(to.0, head, data.add(sent), rest),
                false => device.post_bulk(to.0, head, &[], data.add(sent), rest),
            }
        };
        match posted {
            Posted::Full => break,
            Posted::Sent(0) => sent = length,
            Posted::Sent(piece) => sent += piece,
        }
    }
    sent
}

impl RawChannel {
    /// Copies into the first waiting buffer; answers how many bytes it took.
    ///
    /// # Safety
    /// `data` is readable for `length` bytes.
    unsafe fn waiting_copy(&mut self, data: *const u8, length: usize, requests: &mut Requests) -> usize {
        let Some((id, got)) = self.waiting.front_mut() else { return 0 };
        let entry = requests.at(*id);
        let n = length.min(entry.capacity - *got);
        // SAFETY: got + n <= capacity; the user keeps the buffer alive until completion.
        unsafe { weft_device::copying::copy(data, entry.buffer.add(*got), n) };
        *got += n;
        self.finish_empty(requests);
        n
    }

    /// Completes the buffers at the front that are full.
    fn finish_empty(&mut self, requests: &mut Requests) {
        while let Some((id, got)) = self.waiting.front().copied() {
            if got < requests.at(id).capacity {
                return;
            }
            requests.complete(id);
            self.waiting.pop_front();
        }
    }
}
