//! The devices of an endpoint, and which of them leads to which rank.
//!
//! A job on one host has one device, whose members are the ranks. On several hosts a member of the segment is one of
//! the ranks of this host, and a table ([`table`]) says for every rank of the job which device leads there, under which
//! number. Above this room everybody is a rank, and how a message goes depends on the road there ([`Devices::road`]),
//! which follows from what the device declares and answers, not from which device it is.
//!
//! For each rank the endpoint chooses at the start: the first device in `WEFT_DEVICE` that leads there, which is shared
//! memory inside a host and datagrams between hosts. The counters `shm_packets`, `udp_packets`, `tcp_packets` and
//! `xdp_datagrams` say which devices were used. Where the job lies on one host there is no table, and the short path
//! has one branch more than it would have without one.

mod above;
mod foreign;
mod held;
mod net;
mod places;
mod sleep;
mod slots;
mod start;
mod strangers;
mod table;
mod tell;
#[cfg(test)]
mod tests;
mod twos;

use above::NamedRanks;
pub(crate) use above::{Above, By};
pub(crate) use foreign::ForeignOpening;
use net::Net;
pub(crate) use sleep::Sleeper;
pub(crate) use slots::RankSlots;
pub use start::Across;
use table::{DeviceKind, with_device};
use weft_device::shm::stream::bell::OwnBell;
use weft_device::shm::{Segment, ShmDevice};
use weft_device::tcp::TcpDevice;
use weft_device::{Capabilities, Device, NoMemory, Posted};
use weft_protocol::selector::Road;
use weft_protocol::selector::machine::Best;
use weft_wire::cell::Head;
use weft_wire::segment::MemberState;

pub(crate) struct Devices {
    shm: ShmDevice,
    me: u32,
    /// More than the segment; `None` where all ranks are its members, under their own numbers.
    net: Option<Box<Net>>,
    /// Without a network: rung in the doorbell's place, by others of the segment, where this process sleeps on
    /// descriptors.
    bell: Option<OwnBell>,
}

impl Devices {
    pub fn segment(&self) -> &Segment {
        self.shm.segment()
    }

    /// The member of the segment that is `rank`, if shared memory leads there.
    #[inline]
    pub fn member_of(&self, rank: u32) -> Option<u32> {
        match &self.net {
            None => Some(rank),
            Some(net) => net.member_of(rank),
        }
    }

    /// Whether the job has other devices than shared memory.
    pub fn is_across(&self) -> bool {
        self.net.is_some()
    }

    pub fn is_local(&self, rank: u32) -> bool {
        self.member_of(rank).is_some()
    }

    /// The number of a rank's host; the same in every process of the job, whatever devices it may use.
    pub fn host_of(&self, rank: u32) -> u32 {
        self.net.as_ref().map_or(0, |net| net.hosts.get(rank as usize).copied().unwrap_or(u32::MAX))
    }

    /// The names of the job's hosts by their numbers, as the user wrote them; none where it is known to lie on one.
    pub fn host_names(&self) -> &[String] {
        self.net.as_ref().map_or(&[], |net| &net.host_names)
    }

    /// The member that this process is.
    pub fn my_member(&self) -> u32 {
        self.member_of(self.me).unwrap_or_default()
    }

    pub fn slots(&self) -> RankSlots {
        let members = |net: &Net| (0..net.ways.len() as u32).map(|rank| net.member_of(rank)).collect();
        RankSlots::new(self.shm.copy_slots(), self.net.as_deref().map(members))
    }

    /// What the device that leads to a rank declares.
    fn capabilities(&self, to: u32) -> &'static Capabilities {
        self.net.as_ref().map_or(&ShmDevice::CAPABILITIES, |net| net.ways[to as usize].which.capabilities())
    }

    /// Whether what is accepted for a rank may leave only later, while somebody calls us. Asked before each message.
    #[inline]
    pub fn may_wait(&self, to: u32) -> bool {
        match &self.net {
            None => const { ShmDevice::CAPABILITIES.may_wait },
            Some(_) => self.capabilities(to).may_wait,
        }
    }

    /// # Safety
    /// As [`Device::post_short`].
    #[inline]
    pub unsafe fn post_short(&mut self, to: u32, head: Head, data: *const u8, length: usize) -> Posted {
        match &mut self.net {
            // SAFETY: the caller's promise.
            None => unsafe { self.shm.post_short(to, head, data, length) },
            // SAFETY: the caller's promise.
            Some(net) => unsafe { net.post_short(&mut self.shm, to, head, data, length) },
        }
    }

    #[inline]
    pub fn post_control(&mut self, to: u32, head: Head, control: &[u64]) -> Posted {
        match &mut self.net {
            None => self.shm.post_control(to, head, control),
            Some(net) => net.post_control(&mut self.shm, to, head, control),
        }
    }

    /// # Safety
    /// As [`Device::post_bulk`].
    #[inline]
    pub unsafe fn post_bulk(&mut self, to: u32, head: Head, control: &[u64], data: *const u8, length: usize) -> Posted {
        match &mut self.net {
            // SAFETY: the caller's promise.
            None => unsafe { self.shm.post_bulk(to, head, control, data, length) },
            // SAFETY: the caller's promise.
            Some(net) => unsafe { net.post_bulk(&mut self.shm, to, head, control, data, length) },
        }
    }

    /// As [`Self::post_short`].
    pub fn post_inline(&mut self, to: u32, head: Head, bytes: &[u8]) -> Posted {
        // SAFETY: the slice is as long.
        unsafe { self.post_short(to, head, bytes.as_ptr(), bytes.len()) }
    }

    /// As [`Self::post_bulk`], in packets that are good for a message of this length.
    pub fn post_bytes(&mut self, to: u32, head: Head, control: &[u64], bytes: &[u8]) -> Posted {
        let most = match &self.net {
            Some(net) if !self.capabilities(to).shares_memory => net.packet_bytes(&self.shm, to, bytes.len()),
            _ => Best::default().packet(bytes.len()),
        };
        // SAFETY: the slice is as long.
        unsafe { self.post_bulk(to, head, control, bytes.as_ptr(), bytes.len().min(most)) }
    }

    /// As [`Device::gather`].
    #[inline]
    pub fn gather(&mut self, may_follow: bool) {
        if let Some(net) = &mut self.net {
            net.tcp.gather(may_follow);
        }
    }

    /// Whether a bulk payload of `length` bytes would leave whole, as one packet, and is best sent so.
    #[inline]
    pub fn takes_whole(&mut self, to: u32, length: usize) -> bool {
        match &mut self.net {
            None => self.shm.takes_whole(to, length),
            Some(net) => net.takes_whole(&mut self.shm, to, length),
        }
    }

    /// What leads to `to`, for a message of `length` bytes. A connection that would be better for it, and does not
    /// reach the rank yet, is asked to.
    #[inline]
    pub fn road(&mut self, to: u32, length: usize) -> Road {
        match &mut self.net {
            None => Road::Ring,
            Some(net) => net.road(&mut self.shm, to, length),
        }
    }

    /// Whether bytes for a rank wait for room in the kernel, or until it is known how they go.
    pub fn has_tail(&self, to: u32) -> bool {
        let Some(net) = &self.net else { return false };
        net.tcp.has_tail(to) || net.unmet.has_tail(to)
    }

    /// Whether the connection carries long messages to `to`, as the way to everything or besides another one. Where it
    /// could and does not reach the rank yet, it is asked to.
    #[inline]
    pub fn has_long_way(&mut self, to: u32) -> bool {
        self.net.as_mut().is_some_and(|net| net.reaches_by_stream(to))
    }

    /// Most bytes of a packet by that device that is not part of a stream.
    pub const LONG_PACKET_BYTES: usize = TcpDevice::CAPABILITIES.largest_packet;

    /// As [`Self::post_bulk`], by that device.
    ///
    /// # Safety
    /// As [`Device::post_bulk`].
    pub unsafe fn post_long(&mut self, to: u32, head: Head, control: &[u64], data: *const u8, length: usize) -> Posted {
        match &mut self.net {
            // SAFETY: the caller's promise.
            Some(net) => unsafe { net.tcp.post_bulk(to, head, control, data, length) },
            None => Posted::Full,
        }
    }

    /// Begins a message of `length` bytes, not 0, by that device without asking, with as many of them as one packet
    /// takes. It is matched where it was posted, among those of both devices. Its receiver may owe a word about it, of
    /// this number.
    ///
    /// # Safety
    /// As [`Device::post_bulk`].
    pub unsafe fn post_long_eager(
        &mut self,
        to: u32,
        head: Head,
        data: *const u8,
        length: usize,
        word: Option<u64>,
    ) -> Posted {
        let Some(net) = &mut self.net else { return Posted::Full };
        let place = net.places.of_next_over_connection(to);
        let control = [length as u64, place, word.unwrap_or_default()];
        let control = if word.is_some() { &control[..] } else { &control[..2] };
        // SAFETY: the caller's promise.
        let posted = unsafe { net.tcp.post_bulk(to, head, control, data, length) };
        net.places.note(to, By::Connection, head.kind, posted)
    }

    /// A message to `to` is complete: what still waits for company leaves; with `more` that may follow at once, perhaps
    /// later.
    #[inline]
    pub fn push(&mut self, to: u32, more: bool) {
        if let Some(net) = &mut self.net {
            net.push(&mut self.shm, to, more);
        }
    }

    /// All that still waits for company leaves.
    #[inline]
    pub fn push_all(&mut self) {
        if let Some(net) = &mut self.net {
            net.tcp.push_all();
            net.links.iter_mut().for_each(Device::push_all);
        }
    }

    #[inline]
    pub fn poll<A: Above>(&mut self, above: &mut A) -> bool {
        match &mut self.net {
            None => self.shm.poll(above),
            Some(net) => net.poll(&mut self.shm, above),
        }
    }

    /// Why nothing can be sent to a rank any more, told once.
    pub fn take_refusal(&mut self) -> Option<NoMemory> {
        let Some(refusal) = self.shm.take_refusal() else {
            return self.net.as_mut().and_then(|net| net.twos.take_refusal());
        };
        let peer = self.net.as_ref().map_or(refusal.peer, |net| net.ranks[refusal.peer as usize]);
        Some(NoMemory { peer, ..refusal })
    }

    /// Whether a rank takes nothing any more.
    pub fn has_ended(&self, rank: u32) -> bool {
        let Some(net) = &self.net else { return self.shm.has_ended(rank) };
        let way = net.ways[rank as usize];
        // Who is not met yet is known by his connection.
        let which = if way.which == DeviceKind::Unmet { DeviceKind::Tcp } else { way.which };
        with_device!((&) net, &self.shm, which, device => device.has_ended(way.number))
    }

    /// Begins to reach a rank of another host, though nothing is to be sent, so that its end will be known.
    pub fn reach(&mut self, rank: u32) {
        let Some(net) = &mut self.net else { return };
        match (net.ways[rank as usize].which, &mut net.links) {
            (DeviceKind::Udp, Some(links)) => links.reach(rank),
            (DeviceKind::Tcp, _) => net.tcp.reach(rank),
            _ => {}
        }
    }

    /// Whether a rank has taken its leave, also if it was given up later; `None` for one that shares memory with us
    /// alone.
    pub fn took_leave(&self, rank: u32) -> Option<bool> {
        if let Some(member) = self.member_of(rank) {
            return Some(self.segment().state(member) == MemberState::Left);
        }
        let net = self.net.as_ref()?;
        let way = net.ways[rank as usize];
        match way.which {
            DeviceKind::Udp => Some(net.links.as_ref()?.took_leave(way.number)),
            DeviceKind::Tcp | DeviceKind::Unmet => Some(net.tcp.took_leave(way.number)),
            _ => None,
        }
    }

    /// Wakes a rank with which we share memory.
    #[inline]
    pub fn wake(&mut self, rank: u32) {
        if let Some(member) = self.member_of(rank) {
            self.shm.wake(member);
        }
    }

    #[inline]
    pub fn order_before_look(&mut self) {
        self.shm.order_before_look();
    }

    /// Whether something was posted that waits until it is known how it goes there.
    pub fn has_held(&self) -> bool {
        self.net.as_ref().is_some_and(|net| net.unmet.has_held(|rank| net.tcp.has_ended(rank)))
    }

    /// Takes leave of everybody; nothing is posted after it.
    pub fn say_farewell(&mut self) {
        if let Some(net) = &mut self.net {
            net.tcp.say_farewell();
            net.links.iter_mut().for_each(Device::say_farewell);
        }
    }

    /// Whether something that was posted has not left this process.
    pub fn has_output(&self) -> bool {
        let has = |net: &Net| net.tcp.has_output() || net.links.as_ref().is_some_and(Device::has_output);
        self.net.as_deref().is_some_and(has)
    }
}
