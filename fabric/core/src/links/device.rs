//! Links as a device: what is posted, when it leaves, and what a poll does.

use super::peer::{DatagramWay, Standing};
use super::{JUMBO_BYTES, Links};
use weft_device::udp::Came;
use weft_device::{Capabilities, Device, Posted, Sink, bytes_of, sys};
use weft_protocol::reliable;
use weft_protocol::selector::LINK_BYTES;
use weft_wire::cell::Head;
use weft_wire::cipher::TAG_BYTES;
use weft_wire::link::{header, hello, record};

/// Bytes that are posted to one rank before they are sent, whoever posts more.
const PUSH_BYTES: usize = 32 << 10;
/// A message that is posted within so many ticks of the processor's clock after one has left may share a datagram with
/// the next ones. A tick is a quarter of a nanosecond to one.
pub(super) const BURST_TICKS: u64 = 1 << 12;
/// A sleep takes longer than this, so that what is due sooner is polled for.
const SHORT_NS: u64 = 60_000;

impl Links {
    /// Accepts a packet: a header, up to 48 bytes inline, and bulk payload, which is not empty if it is there. It
    /// leaves when it is pushed.
    #[inline]
    pub(super) fn post(&mut self, to: u32, head: &Head, inline: &[u8], bulk: Option<&[u8]>) -> Posted {
        let peer = &mut self.peers[to as usize];
        let (DatagramWay::Open, Standing::Open, Some(link)) = (&peer.way, peer.standing, &mut peer.link) else {
            return self.refuse(to);
        };
        match link.try_send(head, inline, bulk) {
            reliable::LinkPosted::Sent(bytes) => {
                let taken = record::bytes(inline.len(), bytes);
                self.counters.packets += 1;
                self.counters.bytes += taken as u64;
                peer.posted_bytes += taken;
                let full = peer.posted_bytes >= PUSH_BYTES;
                self.note_dirty(to);
                if full {
                    self.push(to, false);
                }
                Posted::Sent(bytes)
            }
            reliable::LinkPosted::Full => {
                self.push(to, false);
                Posted::Full
            }
            reliable::LinkPosted::Gone => Posted::Full,
        }
    }

    #[inline]
    pub(super) fn note_dirty(&mut self, rank: u32) {
        if !std::mem::replace(&mut self.peers[rank as usize].is_dirty, true) {
            self.dirty.push(rank);
        }
    }

    #[inline]
    fn push_at(&mut self, to: u32, ticks: u64) {
        let now_ns = self.clock.at(ticks);
        self.transmit(to, now_ns);
        self.port.flush();
        self.note_due(to);
        // When it is over: what the kernel takes for a datagram may be longer than a burst's gaps by far.
        self.peers[to as usize].pushed_ticks = sys::ticks();
    }

    /// True if anything was moved, and what has come.
    fn look_at_port<S: Sink>(&mut self, ticks: u64, look_at_socket: bool, sink: &mut S) -> (bool, Came) {
        let now_ns = self.clock.at(ticks);
        let came = self.receive(now_ns, look_at_socket, sink);
        if now_ns >= self.due_ns {
            self.on_time(now_ns);
        }
        self.transmit_dirty(now_ns);
        self.port.flush();
        self.take_reports(now_ns);
        self.look_at_lane();
        let faults = std::mem::take(&mut self.faults);
        let told = !faults.is_empty();
        faults.into_iter().for_each(|fault| sink.handle_fault(fault));
        (came.any() | told, came)
    }
}

impl Device for Links {
    const CAPABILITIES: Capabilities = Capabilities::plain(JUMBO_BYTES);

    #[inline]
    unsafe fn post_short(&mut self, to: u32, head: Head, data: *const u8, length: usize) -> Posted {
        // SAFETY: the caller's promise; an empty range may come with any pointer.
        let inline = if length == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(data, length) } };
        self.post(to, &head, inline, None)
    }

    #[inline]
    unsafe fn post_bulk(&mut self, to: u32, head: Head, control: &[u64], data: *const u8, length: usize) -> Posted {
        let length = length.min(self.packet_bytes(to, length));
        // SAFETY: the caller's promise.
        let bulk = unsafe { std::slice::from_raw_parts(data, length) };
        self.post(to, &head, &bytes_of(control)[..8 * control.len()], Some(bulk))
    }

    /// Moves everything, too.
    #[inline]
    fn poll<S: Sink>(&mut self, sink: &mut S) -> bool {
        self.push_all();
        let ticks = sys::ticks();
        let due = self.looks.is_due(ticks);
        if !due && !self.port.has_arrived() {
            return false;
        }
        let by_lane = self.port.lane().is_some();
        let look_at_socket = due && (!by_lane || self.looks.is_due_at_socket(ticks));
        let (any, came) = self.look_at_port(ticks, look_at_socket, sink);
        self.looks.learn(due, by_lane, look_at_socket, came);
        any
    }

    #[inline]
    fn takes_whole(&mut self, to: u32, length: usize) -> bool {
        let peer = &self.peers[to as usize];
        let Some(link) = &peer.link else { return false };
        length <= LINK_BYTES && link.kept_bytes() as usize + record::MOST_HEAD_BYTES + length <= peer.window_bytes
    }

    /// What is cut here costs less than packets of their own. Longer ones fill one datagram each.
    #[inline]
    fn packet_bytes(&self, to: u32, length: usize) -> usize {
        let smallest = hello::BYTES - header::BYTES - TAG_BYTES - record::MOST_HEAD_BYTES;
        match &self.peers[to as usize].link {
            _ if length <= LINK_BYTES => length,
            Some(link) => link.bulk_bytes(),
            None => smallest,
        }
    }

    #[inline]
    fn goes_by_lane(&mut self, to: u32) -> bool {
        let now_ns = self.clock.now_ns();
        self.peers[to as usize].route.as_ref().is_some_and(|route| self.port.goes_by_lane(route, now_ns))
    }

    fn has_ended(&self, peer: u32) -> bool {
        self.peers[peer as usize].standing != Standing::Open
    }

    /// With `more`, what was posted to a rank waits for the next poll if something was sent there only just.
    #[inline]
    fn push(&mut self, to: u32, more: bool) {
        let peer = &self.peers[to as usize];
        if !peer.is_dirty {
            return;
        }
        let ticks = sys::ticks();
        if !more || ticks.wrapping_sub(peer.pushed_ticks) >= BURST_TICKS {
            self.push_at(to, ticks);
        }
    }

    #[inline]
    fn push_all(&mut self) {
        if !self.dirty.is_empty() {
            let now_ns = self.clock.now_ns();
            self.transmit_dirty(now_ns);
            self.port.flush();
        }
    }

    fn look_soon(&mut self) {
        self.looks.soon();
    }

    /// For a sleep on [`Self::descriptors`].
    fn arm(&mut self) -> bool {
        self.push_all();
        // What waits there would end every sleep at once.
        self.port.look_for_reports();
        let quiet = self.faults.is_empty() && self.dirty.is_empty() && !self.port.has_arrived();
        quiet && self.due_ns.saturating_sub(self.clock.now_ns()) > SHORT_NS
    }

    fn say_farewell(&mut self) {
        self.leaving = true;
        for rank in self.live.clone() {
            if let Some(link) = &mut self.peers[rank as usize].link {
                link.close();
                self.note_dirty(rank);
            }
        }
        self.push_all();
    }

    /// Whether something may not have arrived at a rank that still takes it.
    fn has_output(&self) -> bool {
        let now_ns = sys::now_ns();
        self.live.iter().any(|rank| !self.peers[*rank as usize].has_all(now_ns))
    }
}
