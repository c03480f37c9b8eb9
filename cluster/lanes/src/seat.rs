//! A lane with all that goes with it, and the connections of the process that has it.
//!
//! Lane, gateway, arena and slots stay together for as long as the rendezvous runs, and go from one process to the
//! next: what a lane keeps between two uses stands in the gateway.

use super::meetings::{EndOwner, Ends, Met};
use super::slots::LaneSlots;
use super::stage::{Act, ConnectionFacts, ConnectionStage};
use super::sys::Anchor;
use super::{FarConnection, FarTurn, ProcessMail, sys};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use weft_device::shm::stream::{Arena, FarEnd, Gateway, PROGRAM, Ticked};
use weft_device::xdp::{LaneSockets, SharedLane};
use weft_kernel as kernel;
use weft_wire::link::mac::Key;
use weft_wire::stream::meeting::{self, Landing};
use weft_wire::stream::packet::{Answer, SlotSide};
use weft_wire::stream::{arena, datagram::DatagramPeer};

/// The side of the arena that is the other host.
const FAR: usize = 1 - PROGRAM;
/// Of what comes by a lane's socket in one turn.
const DATAGRAMS: usize = 64;
/// More than any parcel that comes by a socket; and the largest that we send by one, for any network.
const DATAGRAM_BYTES: usize = 4096;
const SENT_BYTES: usize = 1200;

/// What a process and we share, once the seat was first taken.
struct SharedSeat {
    name: u64,
    arena: Arena,
    arena_memory: File,
    gateway: Gateway,
    gateway_memory: OwnedFd,
}

struct SeatConnection {
    shown: EndOwner,
    generation: u32,
    there: Landing,
    stage: ConnectionStage,
    /// Keeps the kernel's end of the connection back.
    anchor: Option<Anchor>,
    /// How far the two hosts had come at the last tick.
    progress: u64,
}

pub struct Seat {
    number: u32,
    port: u16,
    sockets: LaneSockets,
    socket: UdpSocket,
    shared: Option<SharedSeat>,
    slots: LaneSlots,
    connections: HashMap<u32, SeatConnection>,
    /// Who has it.
    client: Option<u64>,
    has_ended: bool,
    /// Somebody has kept the lane for long: it is not watched before the next tick.
    is_kept_out: bool,
    /// The slot and generation of the mail that has brought the gateway.
    told_by: Option<(u32, u32)>,
}

impl Seat {
    /// The socket is bound to the lane's port.
    pub fn new(number: u32, socket: UdpSocket, sockets: LaneSockets) -> io::Result<Self> {
        let port = socket.local_addr()?.port();
        Ok(Self {
            number,
            port,
            sockets,
            socket,
            shared: None,
            slots: LaneSlots::default(),
            connections: HashMap::new(),
            client: None,
            has_ended: false,
            is_kept_out: false,
            told_by: None,
        })
    }

    pub fn client(&self) -> Option<u64> {
        self.client
    }

    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Readable when something has come by the lane.
    pub fn receiver(&self) -> &OwnedFd {
        &self.sockets.receiver
    }

    /// Whether what comes is awaited: while a program looks, it takes that by itself; and a lane that has failed is
    /// readable for ever.
    pub fn awaits(&self) -> bool {
        let comes = self.shared.as_ref().is_some_and(|shared| !shared.gateway.lane().is_faulty());
        comes
            && !self.is_kept_out
            && self
                .connections
                .values()
                .any(|connection| connection.stage.is_proving() || connection.stage.is_leaving())
    }

    /// Whether something begins or ends, or a program is called.
    pub fn hurries(&self) -> bool {
        self.connections.values().any(|connection| connection.stage.hurries())
    }

    pub fn is_busy(&self) -> bool {
        !self.connections.is_empty()
    }

    /// Gives the seat to a process. False where it cannot be had now.
    pub fn take(&mut self, client: u64, memory: BorrowedFd<'_>) -> bool {
        if self.shared.is_none() {
            self.shared = self.share(memory).ok();
        }
        let usable = self.shared.as_ref().is_some_and(|shared| !shared.gateway.lane().is_faulty());
        if usable {
            self.drain();
            self.shared.iter().for_each(|shared| shared.arena.forget_processes(PROGRAM));
            (self.client, self.has_ended, self.told_by) = (Some(client), false, None);
        }
        usable
    }

    fn share(&self, memory: BorrowedFd<'_>) -> io::Result<SharedSeat> {
        let name = kernel::true_random().filter(|name| *name != 0).ok_or(io::ErrorKind::Other)?;
        let arena_memory = File::from(OwnedFd::from(kernel::sealed_memory(c"weft-streams", arena::BYTES)?));
        arena_memory.write_all_at(&arena::heading(name), 0)?;
        let arena = Arena::vacant();
        if !arena.open(arena_memory.as_raw_fd(), name, FAR as u32) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let copy = |descriptor: BorrowedFd<'_>| descriptor.try_clone_to_owned();
        let (memory, receiver) = (copy(memory)?, copy(self.sockets.receiver.as_fd())?);
        let sender = copy(self.sockets.sender.as_fd())?;
        let gateway_memory = OwnedFd::from(Gateway::create(self.number, name)?);
        let [memory, receiver, sender] = [memory, receiver, sender].map(IntoRawFd::into_raw_fd);
        let lane = SharedLane::adopt(memory, receiver, sender, self.number)?;
        let gateway = Gateway::open(gateway_memory.as_raw_fd(), lane).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(SharedSeat { name, arena, arena_memory, gateway, gateway_memory })
    }

    /// What came for somebody before.
    fn drain(&self) {
        let mut place = [0; 1];
        (0..1024).take_while(|_| self.socket.recv_from(&mut place).is_ok()).for_each(drop);
    }

    /// A place for a connection of the process that has the seat.
    pub fn land(&mut self) -> Option<Landing> {
        let (slot, generation) = self.slots.take()?;
        Some(Landing { port: self.port, slot, generation })
    }

    /// No connection has come about in that place.
    pub fn take_off(&mut self, landing: Landing) {
        self.slots.give_back(landing.slot);
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Both ends are known: the two hosts begin to talk.
    pub fn begin(&mut self, met: Met<Anchor>, key: &Key, now_ns: u64) {
        let Some(shared) = &self.shared else { return };
        let (slot, generation) = (met.here.slot, met.here.generation);
        let keys = meeting::keys(key, &met.nonces[0], &met.nonces[1]);
        let end = FarEnd { slot: met.there.slot, generation: met.there.generation, keys };
        // Before the program knows of the gateway.
        shared.gateway.beat(now_ns);
        shared.gateway.begin(&shared.arena, slot, generation, &end);
        let stage = ConnectionStage::new(now_ns);
        let connection = SeatConnection {
            shown: met.shown,
            generation,
            there: met.there,
            stage,
            anchor: Some(met.kept),
            progress: 0,
        };
        self.connections.insert(slot, connection);
    }

    /// The place of a connection, by the name of the arena, if it is here and its use is this one.
    fn connection(&mut self, place: &SlotSide) -> Option<&mut SeatConnection> {
        self.shared.as_ref().filter(|shared| shared.name == place.arena)?;
        let connection = self.connections.get_mut(&place.slot)?;
        (connection.generation == place.generation && place.side as usize == PROGRAM).then_some(connection)
    }

    pub fn is_named(&self, arena: u64) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.name == arena)
    }

    /// The program has closed its end.
    pub fn release(&mut self, place: &SlotSide, now_ns: u64) {
        if self.connection(place).is_some() {
            self.leave(place.slot, now_ns);
        }
    }

    /// The program has not heard of this connection.
    pub fn untold(&mut self, place: &SlotSide, now_ns: u64) {
        if self.told_by == Some((place.slot, place.generation)) {
            self.told_by = None;
        }
        if let Some(connection) = self.connection(place) {
            connection.anchor = None;
            self.leave(place.slot, now_ns);
        }
    }

    /// The program has closed an end that may not have been told of.
    pub fn withdraw(&mut self, ends: &Ends, now_ns: u64) {
        let found = self.connections.iter_mut().find(|(_, connection)| connection.shown.ends == *ends);
        if let Some((slot, _)) = found {
            let slot = *slot;
            self.leave(slot, now_ns);
        }
    }

    /// The process lives on, and hears nothing any more. True if it has the gateway, with which it drives what it knows
    /// of.
    pub fn fall_silent(&mut self, now_ns: u64) -> bool {
        let Some(shared) = &self.shared else { return false };
        let is_unused = |(slot, connection): (&u32, &SeatConnection)| {
            (connection.stage.is_proving() || shared.gateway.refuse(&shared.arena, *slot)).then_some(*slot)
        };
        let unused: Vec<u32> = self.connections.iter().filter_map(is_unused).collect();
        unused.into_iter().for_each(|slot| self.leave(slot, now_ns));
        self.told_by.is_some()
    }

    /// The process is gone.
    pub fn end(&mut self, now_ns: u64) {
        self.has_ended = true;
        self.shared.iter().for_each(|shared| shared.gateway.seize());
        let slots: Vec<u32> = self.connections.keys().copied().collect();
        slots.into_iter().for_each(|slot| self.leave(slot, now_ns));
    }

    fn leave(&mut self, slot: u32, now_ns: u64) {
        let (Some(shared), Some(connection)) = (&self.shared, self.connections.get_mut(&slot)) else { return };
        if connection.stage.is_proving() || !shared.is_attached(slot, connection.generation) {
            // Nothing can have gone by the lane.
            connection.anchor = None;
        }
        if connection.stage.leave(now_ns) {
            shared.gateway.leave(slot);
            shared.gateway.tick(&shared.arena, slot, kernel::thread());
        }
    }

    /// Takes what has come by the socket at the lane's port.
    pub fn take_datagrams(&mut self) {
        let Some(shared) = &self.shared else { return };
        let mut place = [0; DATAGRAM_BYTES];
        for _ in 0..DATAGRAMS {
            let Ok((bytes, _)) = self.socket.recv_from(&mut place) else { return };
            shared.gateway.take_by_socket(&shared.arena, &place[..bytes], kernel::thread());
        }
    }

    /// Takes what has come by the lane.
    pub fn drive(&mut self) {
        if let Some(shared) = &self.shared {
            let came = shared.gateway.drive(&shared.arena, kernel::thread());
            self.is_kept_out = !came && shared.gateway.lane().has_arrived();
        }
    }

    /// Says that we are there, repeats and acknowledges; where the way is not proven, shows it. Answers whether that is
    /// to be done again soon: a program that sees to its lane leaves little to us.
    pub fn tick(&mut self, address: impl Fn(&DatagramPeer, u16) -> Option<std::net::SocketAddr>) -> bool {
        let Some(shared) = &self.shared else { return false };
        shared.gateway.beat(kernel::now());
        // A connection on which all is told and confirmed sends nothing by which it would be noticed.
        shared.gateway.lane().look_after();
        let me = kernel::thread();
        let mut is_soon = false;
        self.is_kept_out = false;
        for (slot, connection) in &mut self.connections {
            let by_socket = |compose: fn(&Gateway, &Arena, u32, &mut [u8], u32) -> usize| {
                if let Some(to) = address(&connection.shown.ends[1], connection.there.port) {
                    let mut place = [0; SENT_BYTES];
                    let bytes = compose(&shared.gateway, &shared.arena, *slot, &mut place, me);
                    let _ = self.socket.send_to(&place[..bytes], to);
                }
            };
            if connection.stage.is_proving() {
                by_socket(Gateway::greet);
            }
            let Some(stood) = shared.gateway.tick(&shared.arena, *slot, me) else { break };
            if stood == Ticked::Lost {
                by_socket(Gateway::repeat);
            }
            let progress = shared.gateway.progress(*slot);
            let moves = std::mem::replace(&mut connection.progress, progress) != progress;
            is_soon |= connection.stage.is_proving() || !(stood == Ticked::Settled || moves);
        }
        is_soon
    }

    /// Looks at all connections, and does what is to be done. `said` gets what the program is to be told, and what is
    /// answered are the ends that are over.
    pub fn step(&mut self, now_ns: u64, said: &mut FarTurn) -> Vec<Ends> {
        let left = self.left_in_silence();
        left.into_iter().for_each(|slot| self.leave(slot, now_ns));
        let Some(shared) = &self.shared else { return Vec::new() };
        let mut finished = Vec::new();
        for (slot, connection) in &mut self.connections {
            // Whoever has the socket by now, as a child that we do not know, may end it himself.
            if !connection.stage.is_proving() && shared.gateway.is_returned(&shared.arena, *slot) {
                connection.anchor = None;
            }
            match connection.stage.step(&shared.facts(*slot, connection), now_ns) {
                Act::Nothing => {}
                Act::Tell => {
                    let first = self.told_by.is_none();
                    self.told_by = self.told_by.or(Some((*slot, connection.generation)));
                    said.mails.push(shared.mail(&self.sockets, self.number, *slot, connection, first));
                }
                Act::Call => said.calls.push(connection.shown.client),
                Act::GiveUp => {
                    connection.anchor = None;
                    shared.gateway.leave(*slot);
                }
                Act::Reset => connection.anchor.iter().for_each(Anchor::reset),
                Act::Release { is_whole } => {
                    if !is_whole {
                        connection.anchor.iter().for_each(Anchor::reset_when_closed);
                    }
                    connection.anchor = None;
                }
                Act::Finish => finished.push(*slot),
            }
        }
        finished.into_iter().filter_map(|slot| self.finish(slot)).collect()
    }

    /// Those that the program has left without a word that has come: a process has many reasons to be dumb.
    fn left_in_silence(&self) -> Vec<u32> {
        let Some(shared) = &self.shared else { return Vec::new() };
        let has_left = |(slot, connection): (&u32, &SeatConnection)| {
            (!connection.stage.is_over() && shared.has_left(*slot, connection.generation)).then_some(*slot)
        };
        self.connections.iter().filter_map(has_left).collect()
    }

    fn finish(&mut self, slot: u32) -> Option<Ends> {
        let connection = self.connections.remove(&slot)?;
        // First the kernel's end, which the other host awaits.
        drop(connection.anchor);
        let shared = self.shared.as_ref()?;
        shared.gateway.end(slot);
        sys::forget_rings(&shared.arena, slot);
        self.slots.give_back(slot);
        Some(connection.shown.ends)
    }

    /// Whether the next process may have it: its own is gone, or has never heard of it, and nothing is left but
    /// questions of other hosts, which are about other slots than the next process gets.
    pub fn vacate(&mut self) -> bool {
        let lingers = self.connections.values().all(|connection| connection.stage.is_lingering());
        let has_landed = self.slots.used() > self.connections.len();
        let is_over = self.client.is_some() && lingers && !has_landed && (self.has_ended || self.told_by.is_none());
        if is_over {
            self.client = None;
        }
        is_over
    }

    /// What the program knows of, for people.
    pub fn crossings(&self) -> Vec<FarConnection> {
        let Some(shared) = &self.shared else { return Vec::new() };
        let told = self.connections.iter().filter(|(_, connection)| !connection.stage.is_proving());
        told.map(|(slot, connection)| FarConnection {
            client: connection.shown.client,
            port: connection.shown.ends[0].port,
            peer: connection.shown.ends[1],
            bytes: [PROGRAM, FAR].map(|side| shared.sent(*slot, side)),
        })
        .collect()
    }
}

impl SharedSeat {
    fn facts(&self, slot: u32, connection: &SeatConnection) -> ConnectionFacts {
        let (gateway, arena) = (&self.gateway, &self.arena);
        ConnectionFacts {
            is_proven: connection.stage.is_proving() && gateway.is_proven(slot),
            is_settled: gateway.is_left(slot) || gateway.is_confirmed(arena, slot),
            calls_program: gateway.calls_program(arena, slot),
            progress: gateway.progress(slot),
            has_failed: gateway.lane().is_faulty(),
        }
    }

    /// Whether the program has given its side back.
    fn has_left(&self, slot: u32, generation: u32) -> bool {
        let gone = &self.arena.direction(slot, PROGRAM).sender.gone;
        gone.load(std::sync::atomic::Ordering::Acquire) == generation
    }

    /// Whether both sides have ever attached.
    fn is_attached(&self, slot: u32, generation: u32) -> bool {
        let attached =
            |side| self.arena.direction(slot, side).sender.attached.load(std::sync::atomic::Ordering::Acquire);
        [PROGRAM, FAR].iter().all(|side| attached(*side) == generation)
    }

    fn sent(&self, slot: u32, side: usize) -> u64 {
        self.arena.direction(slot, side).sender.head.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn mail(
        &self,
        sockets: &LaneSockets,
        lane: u32,
        slot: u32,
        connection: &SeatConnection,
        first: bool,
    ) -> ProcessMail {
        let place = SlotSide { arena: self.name, slot, side: PROGRAM as u32, generation: connection.generation };
        let mut packets = Vec::new();
        if first {
            let memory = self.gateway.lane().descriptors()[0];
            let parts =
                [self.gateway_memory.as_raw_fd(), memory, sockets.receiver.as_raw_fd(), sockets.sender.as_raw_fd()];
            let part = |(part, descriptor)| (Answer::Gateway { arena: self.name, lane, part }, Some(descriptor));
            packets.extend((0..).zip(parts).map(part));
        }
        let memory = first.then(|| self.arena_memory.as_raw_fd());
        packets.push((Answer::Mail { cookie: connection.shown.cookie, place }, memory));
        ProcessMail { client: connection.shown.client, place, packets }
    }
}
