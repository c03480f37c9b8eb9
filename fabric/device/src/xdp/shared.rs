//! A lane that a process shares with the rendezvous of its host, and leaves to the next process: all that it keeps
//! between two uses stands in memory that they share, so whoever has the lock uses it as if he had done so all the
//! time.
//!
//! Whoever has the lock may be killed between any two stores, and the next one goes on. So each step is decided by one
//! store, and what stands before it is either done again or undone:
//!
//! - *Receiving.* A frame is listed in `held`, with the position of its packet, and then the ring's consumer word goes
//!   on. Where it has not, the last of the list names that very position, and is not ours yet: [`LaneState::settle`].
//!   Behind the word the packet itself may be lost.
//! - *Giving back.* One frame at a time: off the list, into the fill ring, and then the ring's producer word. Who is
//!   killed in between loses this one frame.
//! - *Sending.* Position and frame are noted in `sending`, the frame's word says that it is on its way, and then the
//!   ring's producer word goes on. Where it has not, the note names the position that is next, and the frame's word is
//!   taken back. Nothing is lost: a packet that stands in the ring goes with the next flush, whoever makes it.
//! - *Taking back* is for all lanes, and may be done twice (`area`).
//!
//! What the kernel sees of a process that is killed is every store up to some point and none behind it. So nothing here
//! needs the processor to be told of an order, but the compiler: stores on which such a step rests release.

use super::area::{InsideArea, LaneArea};
use super::foresight::Foresight;
use super::header::{Ends, LaneRoute, parse};
use super::lane::{BATCH, DOWN_NS, GIVE_BACK, PACKET_BYTES, STALLED_NS, STALLED_TRIES};
use super::sender::{LaneSender, Tap};
use super::socket::{KernelRing, Pushed, WhichRing, XdpSocket};
use crate::kernel::{self, Descriptor};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::AtomicBool;
use weft_wire::xdp::HELD_FRAMES;
#[cfg(test)]
use weft_wire::xdp::LaneLayout;

// Elsewhere an atomic operation may begin again after every single step.
#[cfg(all(test, target_arch = "x86_64"))]
mod kills;

/// What a lane keeps between two uses. Zeros are a new one; then it stays with its lane. `docs/wire/xdp.md` shows it
/// byte by byte.
#[repr(C, align(64))]
pub struct LaneState {
    /// The packet that is being written or was the last to be: its position in the send ring, and which of the lane's
    /// frames it is in.
    sending: AtomicU64,
    /// How many of `held` there are.
    count: AtomicU32,
    _rest: [u32; 13],
    /// Frames that were read and are to be given back: the position in the receive ring that their packet had, and the
    /// number of the frame.
    held: [AtomicU64; HELD_FRAMES as usize],
}
const _: () = assert!(size_of::<LaneState>() == 64 + 8 * HELD_FRAMES as usize);
const _: () = assert!(size_of::<LaneState>() <= weft_wire::stream::gateway::LANE_BYTES);

/// Whether the send ring has room. It has as many entries as there are frames, so as long as nobody breaks the rules it
/// has.
fn has_room(ring: &KernelRing, position: u32) -> bool {
    position.wrapping_sub(ring.consumer()) < ring.entries()
}

/// A position of a ring with the number of a frame.
fn pair(position: u32, frame: u32) -> u64 {
    u64::from(position) << 32 | u64::from(frame)
}

fn halves(pair: u64) -> (u32, u32) {
    ((pair >> 32) as u32, pair as u32)
}

impl LaneState {
    fn held(&self) -> u32 {
        self.count.load(Ordering::Relaxed).min(HELD_FRAMES)
    }

    /// A frame that was listed for the packet that is still next in the receive ring was not taken.
    fn settle(&self, next: u32) {
        let count = self.held();
        let last = count.checked_sub(1).map(|last| halves(self.held[last as usize].load(Ordering::Relaxed)));
        if last.is_some_and(|(position, _)| position == next) {
            self.count.store(count - 1, Ordering::Release);
        }
    }

    /// There is room.
    fn hold(&self, position: u32, frame: u32) {
        let count = self.held();
        self.held[count as usize].store(pair(position, frame), Ordering::Relaxed);
        self.count.store(count + 1, Ordering::Release);
    }

    /// A frame that is on no list from now on.
    fn release(&self) -> Option<u32> {
        let last = self.held().checked_sub(1)?;
        let (_, frame) = halves(self.held[last as usize].load(Ordering::Relaxed));
        self.count.store(last, Ordering::Release);
        Some(frame)
    }
}

/// Such a lane, as one process has it. Whoever calls what takes a [`LaneState`] holds the lock that goes with that.
///
/// What it has besides is the process's own impression of how things go, and need not be right.
pub struct SharedLane {
    area: LaneArea,
    receiver: XdpSocket,
    sender: LaneSender,
    receive: KernelRing,
    fill: KernelRing,
    completion: KernelRing,
    foresight: Foresight,
    /// The word of the first frame that is sent from.
    first_sent: u32,
    /// Bytes of the largest packet that is sent.
    largest_sent: usize,
    faulty: AtomicBool,
    /// When the interface, which was down, is asked again. 0: it was not.
    down_until_ns: AtomicU64,
    /// Since when there is no room to receive, with another lane inside the lock (0: there is), and looks since then.
    stalled_ns: AtomicU64,
    stalled_tries: AtomicU32,
}

impl SharedLane {
    /// Takes over memory and sockets of the lane of this number: the descriptors are its own from then on, also where
    /// it fails, and out of the program's way.
    ///
    /// # Errors
    /// Memory or sockets are not what they should be.
    pub fn adopt(memory: RawFd, receiver: RawFd, sender: RawFd, lane: u32) -> io::Result<Self> {
        let [receiver, sender] = [receiver, sender].map(|socket| Descriptor::own(kernel::out_of_the_way(socket)));
        // Moving it closes one of the memory.
        let memory = InsideArea::wait().map_or(memory, |_inside| kernel::out_of_the_way(memory));
        let area = LaneArea::adopt(Descriptor::own(memory))?;
        if lane >= area.layout().lanes {
            return Err(io::Error::other("there is no xdp lane of this number"));
        }
        let receiver = XdpSocket::adopt(receiver);
        let sender = LaneSender::adopt(sender, area.layout())?;
        let layout = area.layout();
        let rings = [
            receiver.map(WhichRing::Receive, layout.receive_entries)?,
            receiver.map(WhichRing::Fill, layout.fill_entries())?,
            receiver.map(WhichRing::Completion, layout.completion_entries())?,
        ];
        Ok(Self::new(area, receiver, sender, rings, lane))
    }

    fn new(
        area: LaneArea,
        receiver: XdpSocket,
        sender: LaneSender,
        [receive, fill, completion]: [KernelRing; 3],
        lane: u32,
    ) -> Self {
        Self {
            foresight: Foresight::new(&fill),
            first_sent: area.layout().first_sent(lane).1,
            largest_sent: area.layout().largest_sent() as usize,
            faulty: AtomicBool::new(false),
            down_until_ns: AtomicU64::new(0),
            stalled_ns: AtomicU64::new(0),
            stalled_tries: AtomicU32::new(0),
            area,
            receiver,
            sender,
            receive,
            fill,
            completion,
        }
    }

    /// Whether something has come. Without the lock: a hint.
    #[inline(always)]
    pub fn has_arrived(&self) -> bool {
        let position = self.receive.consumer();
        let any = self.receive.producer() != position;
        if !any {
            self.foresight.fetch(&self.area, &self.fill, &self.receive, position);
        }
        any && !self.is_faulty()
    }

    /// Whether nothing comes or goes any more.
    pub fn is_faulty(&self) -> bool {
        self.faulty.load(Ordering::Relaxed)
    }

    /// Asks whether the interface is there still: who sends nothing, and is sent nothing, would never know that it is
    /// gone.
    pub fn look_after(&self) {
        if self.receiver.is_up().is_err() {
            self.fail();
        }
    }

    fn fail(&self) {
        self.faulty.store(true, Ordering::Relaxed);
    }

    /// Hands on what has come, at most [`BATCH`] datagrams; answers how many packets there were. `handle` may send, but
    /// not receive.
    pub fn receive(&self, state: &LaneState, mut handle: impl FnMut(&Ends, &[u8])) -> usize {
        if !self.has_arrived() {
            return 0;
        }
        let mut position = self.receive.consumer();
        let waiting = self.receive.producer().wrapping_sub(position);
        if waiting > self.receive.entries() {
            self.fail();
            return 0;
        }
        state.settle(position);
        let mut place = MaybeUninit::<[u8; PACKET_BYTES]>::uninit();
        let end = position.wrapping_add(waiting.min(BATCH));
        let first = position;
        while position != end && state.held() < HELD_FRAMES {
            let (address, length) = self.receive.packet(position);
            if !self.area.is_received(address, length) {
                self.fail();
                break;
            }
            let packet = self.copy_out(address, length as usize, &mut place);
            self.foresight.learn(&self.area, &self.fill, address);
            state.hold(position, self.area.frame(address) as u32);
            position = position.wrapping_add(1);
            self.receive.consume(position);
            if let Some((ends, payload)) = parse(packet) {
                handle(&ends, &packet[payload]);
            }
        }
        if state.held() >= GIVE_BACK {
            self.tend(state);
            self.look_for_stall(state);
        }
        position.wrapping_sub(first) as usize
    }

    /// A packet that has arrived, where nobody else writes.
    fn copy_out<'a>(&self, address: u64, length: usize, place: &'a mut MaybeUninit<[u8; PACKET_BYTES]>) -> &'a [u8] {
        debug_assert!(length <= PACKET_BYTES, "no frame is longer");
        let (from, to) = (self.area.at(address, length), place.as_mut_ptr().cast());
        // SAFETY: so many bytes of shared memory are there, and in `place`, as no frame has more; they are bytes of the
        // packet afterwards.
        unsafe {
            std::ptr::copy_nonoverlapping(from, to, length);
            std::slice::from_raw_parts(to, length)
        }
    }

    /// As a rank's lane does: who cannot receive for want of what all lanes share, because somebody inside does not
    /// run, gives up after a while.
    fn look_for_stall(&self, state: &LaneState) {
        if state.held() < HELD_FRAMES {
            self.stalled_ns.store(0, Ordering::Relaxed);
            return;
        }
        let now_ns = kernel::now();
        let since_ns = self.stalled_ns.load(Ordering::Relaxed);
        if since_ns == 0 {
            self.stalled_ns.store(now_ns, Ordering::Relaxed);
            self.stalled_tries.store(0, Ordering::Relaxed);
            return;
        }
        let tries = self.stalled_tries.load(Ordering::Relaxed).saturating_add(1);
        self.stalled_tries.store(tries, Ordering::Relaxed);
        if now_ns - since_ns >= STALLED_NS && tries >= STALLED_TRIES {
            self.fail();
        }
    }

    /// Writes a datagram for the peer that the route leads to: `write` gets the place for the payload, of
    /// [`Self::largest_payload`] bytes, and answers how many it has written; 0: nothing is sent. It leaves with
    /// [`Self::flush`] at the latest. False where there is no room: `write` was not asked. What stands in the place
    /// before is of no meaning.
    pub fn send(&self, state: &LaneState, route: &LaneRoute, write: impl FnOnce(&mut [u8]) -> usize) -> bool {
        match &self.sender {
            LaneSender::Ring(_, ring) => self.write_into_ring(ring, state, route, write),
            LaneSender::Tap(tap) => self.write_into_tap(tap, route, write),
        }
    }

    fn write_into_ring(
        &self,
        ring: &KernelRing,
        state: &LaneState,
        route: &LaneRoute,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> bool {
        let Some((position, index)) = self.free_frame(ring, state) else { return false };
        let address = self.area.next_place(self.first_sent + index);
        let packet = self.compose(address, route, write);
        if packet.is_empty() {
            return true;
        }
        state.sending.store(pair(position, index), Ordering::Release);
        self.area.begin(self.first_sent + index, address);
        ring.set_packet(position, address, packet.len() as u32);
        ring.produce(position.wrapping_add(1));
        true
    }

    /// Out of the first frame, which no packet is ever on its way from then.
    fn write_into_tap(&self, tap: &Tap, route: &LaneRoute, write: impl FnOnce(&mut [u8]) -> usize) -> bool {
        if self.is_faulty() {
            return false;
        }
        let Ok(is_up) = tap.is_up(&self.receiver) else {
            self.fail();
            return false;
        };
        if is_up {
            let packet = self.compose(self.area.next_place(self.first_sent), route, write);
            if !packet.is_empty() && tap.write(packet).is_err() {
                // This one is lost.
                self.fail();
            }
        }
        is_up
    }

    /// The packet, in the frame at this place, which is ours with the lock and which no packet is in; none where
    /// nothing is written. A process that writes there nevertheless spoils a packet; we only write bytes, and sum them
    /// up.
    fn compose(&self, address: u64, route: &LaneRoute, write: impl FnOnce(&mut [u8]) -> usize) -> &[u8] {
        let place = self.area.at(address, self.largest_sent);
        // SAFETY: so many bytes of a frame, as above.
        let packet = unsafe { std::slice::from_raw_parts_mut(place, self.largest_sent) };
        let payload = &mut packet[route.header_bytes()..];
        let most = payload.len();
        let length = write(payload);
        assert!(length <= most, "{length} bytes were written into a place of {most}");
        if length == 0 {
            return &[];
        }
        let bytes = route.complete(packet, length);
        &packet[..bytes]
    }

    /// The next position of the send ring, and a frame to send from.
    fn free_frame(&self, ring: &KernelRing, state: &LaneState) -> Option<(u32, u32)> {
        let position = ring.producer();
        let (noted, last) = halves(state.sending.load(Ordering::Relaxed));
        let mask = ring.entries() - 1;
        if noted == position {
            // Who noted that was killed, or nothing was ever sent.
            self.area.withdraw(self.first_sent + (last & mask));
        }
        let next = last.wrapping_add(1) & mask;
        if has_room(ring, position) && self.area.is_free(self.first_sent + next) && !self.is_faulty() {
            return Some((position, next));
        }
        self.make_room(ring, state, position, next)
    }

    /// Frames that were sent from are taken back when one is wanted.
    #[cold]
    fn make_room(&self, ring: &KernelRing, state: &LaneState, position: u32, next: u32) -> Option<(u32, u32)> {
        self.flush(state);
        self.tend(state);
        if self.is_faulty() || !has_room(ring, position) {
            return None;
        }
        let frames = ring.entries();
        let mut all = (0..frames).map(|ahead| next.wrapping_add(ahead) & (frames - 1));
        all.find(|index| self.area.is_free(self.first_sent + index)).map(|index| (position, index))
    }

    /// Has the kernel send what has been written. False where some of it is still there.
    pub fn flush(&self, _: &LaneState) -> bool {
        if self.is_faulty() {
            return false;
        }
        let LaneSender::Ring(socket, ring) = &self.sender else { return true };
        if ring.consumer() == ring.producer() {
            return true;
        }
        let down_until_ns = self.down_until_ns.load(Ordering::Relaxed);
        if down_until_ns != 0 && kernel::now() < down_until_ns {
            return false;
        }
        let pushed = socket.push(ring, || {});
        match pushed {
            Pushed::Down => self.down_until_ns.store(kernel::now() + DOWN_NS, Ordering::Relaxed),
            Pushed::Never(_) => self.fail(),
            Pushed::All | Pushed::Some if down_until_ns != 0 => self.down_until_ns.store(0, Ordering::Relaxed),
            Pushed::All | Pushed::Some => {}
        }
        matches!(pushed, Pushed::All)
    }

    /// What only one lane of the host may do at a time: gives frames back to the kernel, and takes back, for all lanes,
    /// those that have been sent from. Where another is at it, later.
    fn tend(&self, state: &LaneState) {
        let Some(locked) = self.area.try_lock() else { return };
        if !locked.take_back(&self.completion) || !self.give_back(state) {
            self.fail();
        }
    }

    /// Inside the lock of all lanes. False where the ring holds more than it has room for.
    fn give_back(&self, state: &LaneState) -> bool {
        state.settle(self.receive.consumer());
        let mut position = self.fill.producer();
        let waiting = position.wrapping_sub(self.fill.consumer());
        if waiting > self.fill.entries() {
            return false;
        }
        let frame_bytes = u64::from(self.area.layout().frame_bytes);
        for _ in waiting..self.fill.entries() {
            let Some(frame) = state.release() else { break };
            if frame < self.area.layout().receive_frames() {
                self.fill.set_address(position, u64::from(frame) * frame_bytes);
                position = position.wrapping_add(1);
                self.fill.produce(position);
            }
        }
        true
    }

    /// Becomes readable when something has arrived: to sleep on. The kernel looks at the ring itself, so no wake-up is
    /// lost.
    pub fn receiver(&self) -> RawFd {
        self.receiver.as_fd().as_raw_fd()
    }

    /// All of its descriptors, which the program must not close.
    pub fn descriptors(&self) -> [RawFd; 3] {
        [self.area.descriptor().as_raw_fd(), self.receiver(), self.sender.as_fd().as_raw_fd()]
    }

    /// The largest payload that goes by a route.
    pub fn largest_payload(&self, route: &LaneRoute) -> usize {
        self.largest_sent.saturating_sub(route.header_bytes())
    }
}

#[cfg(test)]
impl SharedLane {
    /// The only lane of a layout, with rings that are shared with nobody but children of this process. All frames wait
    /// for what arrives.
    pub fn of_own_memory(layout: LaneLayout) -> Self {
        let area = LaneArea::create(layout).expect("memory");
        let fill = KernelRing::of_own_memory(WhichRing::Fill, layout.fill_entries());
        for frame in 0..layout.receive_frames() {
            fill.set_address(frame, u64::from(frame) * u64::from(layout.frame_bytes));
        }
        fill.produce(layout.receive_frames());
        let rings = [
            KernelRing::of_own_memory(WhichRing::Receive, layout.receive_entries),
            fill,
            KernelRing::of_own_memory(WhichRing::Completion, layout.completion_entries()),
        ];
        let none = || XdpSocket::adopt(Descriptor::own(-1));
        let sender = LaneSender::Ring(none(), KernelRing::of_own_memory(WhichRing::Send, layout.send_frames));
        Self::new(area, none(), sender, rings, 0)
    }

    pub fn ring(&self) -> &KernelRing {
        let LaneSender::Ring(_, ring) = &self.sender else { panic!("it has a ring") };
        ring
    }
}
