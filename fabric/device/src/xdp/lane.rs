//! One rank's way to and from the wire.

use super::area::LaneArea;
use super::foresight::Foresight;
use super::header::{Ends, LaneRoute, parse};
use super::sender::LaneSender;
use super::socket::{KernelRing, Pushed, Statistics, WhichRing, XdpSocket};
use crate::sys;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use weft_wire::xdp::{HELD_FRAMES, LaneLayout};

/// Packets that one call of [`Lane::receive`] hands on at most.
pub const BATCH: u32 = 32;
/// Frames that are held before they are given back together: it takes a lock.
pub(super) const GIVE_BACK: u32 = 32;
/// Between two attempts to send while the interface is down.
pub(super) const DOWN_NS: u64 = 1_000_000;
/// Who is kept out of what all lanes share for so long, and can receive nothing more before, leaves his lane: whoever
/// is inside does not run, and may never again.
pub(super) const STALLED_NS: u64 = 1_000_000_000;
/// And has tried so often: a rank that computes in between has found others inside by chance.
pub(super) const STALLED_TRIES: u32 = 1000;
/// Larger than any frame.
pub(crate) const PACKET_BYTES: usize = 4096;

/// A datagram that has arrived, lent while it is handled.
pub struct LaneFrame<'a> {
    pub ends: Ends,
    pub payload: &'a [u8],
}

/// What went through a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCounters {
    pub received: u64,
    pub sent: u64,
    /// System calls that sent them.
    pub kicks: u64,
    /// Packets that were no whole datagram.
    pub malformed: u64,
}

/// What a lane receives and sends by. They are two sockets because the kernel keeps in one place what it needs of a
/// socket to send by it and what it needs to bring it something, which happens on other cores: with one socket for
/// both, each message waits some lines longer for the other side. Where the layout says so, the second is a tap device.
pub struct LaneSockets {
    pub receiver: OwnedFd,
    pub sender: OwnedFd,
}

/// One rank's way to and from the wire. It is a way that may fail at any time: then [`Lane::fault`] says why, nothing
/// more comes and nothing more goes, and the kernel's UDP socket at the same address is what remains.
pub struct Lane {
    area: LaneArea,
    receiver: XdpSocket,
    sender: LaneSender,
    receive: KernelRing,
    fill: KernelRing,
    completion: KernelRing,
    foresight: Foresight,
    /// The word of the first frame that we send from.
    first_sent: u32,
    /// How far we have read what arrives.
    received: u32,
    /// Frames that we have read, to be given back.
    held: Vec<u64>,
    /// How far we have written what is to be sent, and how far the kernel knows.
    written: u32,
    published: u32,
    /// Frames of ours that no packet is in.
    free: Vec<u32>,
    /// By frame: whether it is on its way.
    away: Vec<bool>,
    incoming: Box<[u8; PACKET_BYTES]>,
    outgoing: Box<[u8; PACKET_BYTES]>,
    /// When the kernel last said that the interface is down.
    down_ns: Option<u64>,
    stall: Stall,
    fault: Option<String>,
    counters: LaneCounters,
}

/// There is no room to receive, and another lane is inside the lock.
#[derive(Default)]
struct Stall {
    since_ns: Option<u64>,
    tries: u32,
}

impl Lane {
    /// Takes over what the privileged party has made for the lane of this number.
    ///
    /// # Errors
    /// Memory or sockets are not what they should be.
    pub fn adopt(memory: OwnedFd, sockets: LaneSockets, lane: u32) -> io::Result<Self> {
        let area = LaneArea::adopt(memory)?;
        let layout = *area.layout();
        if lane >= layout.lanes {
            return Err(io::Error::other(format!("there are {} xdp lanes, and none has number {lane}", layout.lanes)));
        }
        let receiver = XdpSocket::adopt(sockets.receiver);
        let sender = LaneSender::adopt(sockets.sender, &layout)?;
        let receive = receiver.map(WhichRing::Receive, layout.receive_entries)?;
        let fill = receiver.map(WhichRing::Fill, layout.fill_entries())?;
        let completion = receiver.map(WhichRing::Completion, layout.completion_entries())?;
        let written = if let LaneSender::Ring(_, ring) = &sender { ring.producer() } else { 0 };
        let received = receive.consumer();
        let frames = layout.send_frames as usize;
        Ok(Self {
            foresight: Foresight::new(&fill),
            first_sent: layout.first_sent(lane).1,
            received,
            held: Vec::with_capacity(HELD_FRAMES as usize),
            written,
            published: written,
            free: (0..layout.send_frames).rev().collect(),
            away: vec![false; frames],
            incoming: Box::new([0; PACKET_BYTES]),
            outgoing: Box::new([0; PACKET_BYTES]),
            down_ns: None,
            stall: Stall::default(),
            fault: None,
            counters: LaneCounters::default(),
            area,
            receiver,
            sender,
            receive,
            fill,
            completion,
        })
    }

    pub fn layout(&self) -> &LaneLayout {
        self.area.layout()
    }

    /// Why nothing comes and goes any more.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    pub fn counters(&self) -> LaneCounters {
        self.counters
    }

    /// What the kernel has counted.
    pub fn statistics(&self) -> io::Result<Statistics> {
        let sent = self.sender.statistics()?;
        let received = self.receiver.statistics()?;
        Ok(Statistics { send_invalid: sent.send_invalid, send_ring_empty: sent.send_ring_empty, ..received })
    }

    /// Becomes readable when something has arrived. For sleeping, after [`Self::arm`].
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }

    /// The largest payload that goes by a route.
    pub fn largest_payload(&self, route: &LaneRoute) -> usize {
        (self.layout().largest_sent() as usize).saturating_sub(route.header_bytes())
    }

    fn fail(&mut self, why: impl Into<String>) {
        self.fault.get_or_insert_with(|| why.into());
    }

    /// Hands on what has arrived, at most [`BATCH`] datagrams; answers how many packets there were.
    pub fn receive(&mut self, mut handle: impl FnMut(LaneFrame<'_>)) -> usize {
        if self.arm() || self.fault.is_some() {
            return 0;
        }
        let waiting = self.receive.producer().wrapping_sub(self.received);
        if waiting > self.receive.entries() {
            self.fail("the ring of what arrives holds more than it has room for");
            return 0;
        }
        let room = HELD_FRAMES - self.held.len() as u32;
        let count = waiting.min(BATCH).min(room);
        for _ in 0..count {
            let (address, length) = self.receive.packet(self.received);
            if !self.area.is_received(address, length) {
                self.fail(format!("a packet of {length} bytes at {address} is in no frame"));
                break;
            }
            self.received = self.received.wrapping_add(1);
            self.foresight.learn(&self.area, &self.fill, address);
            self.held.push(address - address % u64::from(self.layout().frame_bytes));
            let packet = &mut self.incoming[..length as usize];
            self.area.copy_out(address, packet);
            match parse(packet) {
                Some((ends, payload)) => handle(LaneFrame { ends, payload: &packet[payload] }),
                None => self.counters.malformed += 1,
            }
        }
        self.receive.consume(self.received);
        self.counters.received += u64::from(count);
        if self.held.len() >= GIVE_BACK as usize {
            self.tend();
            self.look_for_stall();
        }
        count as usize
    }

    /// Nobody can take the lock from a process that has been stopped: it could go on, inside, at any time. But nobody
    /// need wait for it either: once this lane's socket is closed, the filter finds no lane for the port, and the
    /// kernel's socket gets what comes.
    fn look_for_stall(&mut self) {
        if self.held.len() < HELD_FRAMES as usize {
            self.stall = Stall::default();
            return;
        }
        let now_ns = sys::now_ns();
        self.stall.tries = self.stall.tries.saturating_add(1);
        if now_ns - *self.stall.since_ns.get_or_insert(now_ns) >= STALLED_NS && self.stall.tries >= STALLED_TRIES {
            self.fail("another rank of this host has been inside the lock of the lanes for 1 s: has it been stopped?");
        }
    }

    /// Writes a datagram for the peer that the route leads to: `write` gets the place for the payload, of
    /// [`Self::largest_payload`] bytes, and answers how many it has written. Nothing is sent where that is 0. It leaves
    /// with the next [`Self::flush`] at the latest. None where there is no room, or the interface is down: `write` was
    /// not asked.
    pub fn send(&mut self, route: &LaneRoute, write: impl FnOnce(&mut [u8]) -> usize) -> Option<usize> {
        if self.fault.is_some() {
            return None;
        }
        match &self.sender {
            LaneSender::Tap(tap) => match tap.is_up(&self.receiver) {
                Ok(true) => self.write_into_tap(route, write),
                Ok(false) => None,
                Err(error) => {
                    self.fail_to_send(&error);
                    None
                }
            },
            LaneSender::Ring(..) => self.write_into_ring(route, write),
        }
    }

    fn write_into_tap(&mut self, route: &LaneRoute, write: impl FnOnce(&mut [u8]) -> usize) -> Option<usize> {
        let (length, bytes) = self.compose(route, write);
        if length > 0 {
            let LaneSender::Tap(tap) = &self.sender else { return None };
            if let Err(error) = tap.write(&self.outgoing[..bytes]) {
                // This one is lost.
                self.fail_to_send(&error);
            }
            self.counters.sent += 1;
            self.counters.kicks += 1;
            self.look_ahead();
        }
        Some(length)
    }

    fn write_into_ring(&mut self, route: &LaneRoute, write: impl FnOnce(&mut [u8]) -> usize) -> Option<usize> {
        if self.down_ns.is_some() {
            return None;
        }
        let index = self.free_frame()?;
        let (length, bytes) = self.compose(route, write);
        let LaneSender::Ring(_, ring) = &self.sender else { return None };
        if length == 0 {
            self.free.push(index);
            return Some(0);
        }
        let address = self.area.next_place(self.first_sent + index);
        self.area.copy_in(address, &self.outgoing[..bytes]);
        self.area.begin(self.first_sent + index, address);
        self.away[index as usize] = true;
        ring.set_packet(self.written, address, bytes as u32);
        self.written = self.written.wrapping_add(1);
        self.counters.sent += 1;
        Some(length)
    }

    /// Bytes of the payload, and of the packet that is in `outgoing`; nothing is where the first are none.
    fn compose(&mut self, route: &LaneRoute, write: impl FnOnce(&mut [u8]) -> usize) -> (usize, usize) {
        let most = self.largest_payload(route);
        let start = route.header_bytes();
        let length = write(&mut self.outgoing[start..start + most]);
        assert!(length <= most, "{length} bytes were written into a place of {most}");
        (length, if length == 0 { 0 } else { route.complete(&mut self.outgoing[..], length) })
    }

    #[cold]
    fn fail_to_send(&mut self, error: &io::Error) {
        self.fail(format!("the interface cannot be sent by any more: {error}"));
    }

    /// Behind a call that sent something: meanwhile something may have come.
    #[inline]
    fn look_ahead(&self) {
        self.receive.fetch_producer();
        self.foresight.fetch(&self.area, &self.fill, &self.receive, self.received);
    }

    /// A frame to send from, if one is free and the ring has room.
    fn free_frame(&mut self) -> Option<u32> {
        let LaneSender::Ring(_, ring) = &self.sender else { return None };
        if self.written.wrapping_sub(ring.consumer()) >= ring.entries() {
            return None;
        }
        if self.free.is_empty() {
            self.tend();
            let (first, away) = (self.first_sent, &mut self.away);
            for index in (0..away.len() as u32).rev() {
                if away[index as usize] && self.area.is_free(first + index) {
                    away[index as usize] = false;
                    self.free.push(index);
                }
            }
        }
        self.free.pop()
    }

    /// Has the kernel send what has been written. False where some of it is still there, for which it is asked again
    /// with the next flush.
    pub fn flush(&mut self) -> bool {
        if !self.is_stuck() {
            return self.fault.is_none();
        }
        if self.fault.is_some() || self.down_ns.is_some_and(|since| sys::now_ns() < since + DOWN_NS) {
            return false;
        }
        let LaneSender::Ring(socket, ring) = &self.sender else { return true };
        ring.produce(self.written);
        self.published = self.written;
        let pushed = socket.push(ring, || self.counters.kicks += 1);
        self.look_ahead();
        self.down_ns = if let Pushed::Down = pushed { Some(sys::now_ns()) } else { None };
        if let Pushed::Never(error) = &pushed {
            self.fail_to_send(error);
        }
        matches!(pushed, Pushed::All)
    }

    /// Whether something that was written has not left.
    pub fn is_stuck(&self) -> bool {
        match &self.sender {
            LaneSender::Ring(_, ring) => {
                self.fault.is_none() && (self.published != self.written || ring.consumer() != self.written)
            }
            LaneSender::Tap(_) => false,
        }
    }

    /// Before a sleep on [`Self::descriptor`]. False where something has arrived meanwhile, so that there is nothing to
    /// sleep for. What arrives after this makes the descriptor readable, and ends the sleep: a wake-up cannot be lost,
    /// since the kernel looks at the ring itself. After a fault the descriptor may stay readable, and is left out.
    #[inline]
    pub fn arm(&self) -> bool {
        let nothing = self.receive.producer() == self.received;
        self.foresight.fetch(&self.area, &self.fill, &self.receive, self.received);
        nothing
    }

    /// What only one lane of the host may do at a time: gives frames back to the kernel, and takes back, for all lanes,
    /// those that have been sent from. Where another is at it, later.
    ///
    /// Whoever is killed in here leaves both rings as they were, or as they are afterwards: what is new counts from the
    /// one store on that says so. What he had not given back is lost, and there are frames enough for that.
    fn tend(&mut self) {
        let Some(locked) = self.area.try_lock() else { return };
        let mut position = self.fill.producer();
        let waiting = position.wrapping_sub(self.fill.consumer());
        if waiting > self.fill.entries() || !locked.take_back(&self.completion) {
            drop(locked);
            self.fail("a ring that all lanes of the host share holds more than it has room for");
            return;
        }
        let room = (self.fill.entries() - waiting) as usize;
        for address in self.held.drain(self.held.len().saturating_sub(room)..) {
            self.fill.set_address(position, address);
            position = position.wrapping_add(1);
        }
        self.fill.produce(position);
    }
}

/// The next program of the same rank finds as many frames as this one has.
impl Drop for Lane {
    fn drop(&mut self) {
        if self.fault.is_none() && !self.held.is_empty() {
            self.tend();
        }
    }
}
