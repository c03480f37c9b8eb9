//! The guardian: lanes on an interface, and the connections of this host's processes that go by them.

use crate::meetings::{EndOwner, GivenUp, Meetings, Withdrawn};
use crate::seat::Seat;
use crate::sys::{self, Anchor};
use crate::{Client, FarConnection, FarTurn, Guardian};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;
use weft_device::xdp::{self, Lanes, Unusable};
use weft_kernel::{self as kernel, DescriptorSet};
use weft_wire::link::mac::Key;
use weft_wire::settings::XdpMode;
use weft_wire::stream::datagram::DatagramPeer;
use weft_wire::stream::meeting::{self, Landing, ShownCall};
use weft_wire::stream::packet::SlotSide;

/// What there is to be served with.
#[derive(Clone, Debug)]
pub struct GuardianPlan {
    pub interface: String,
    pub key: Key,
    /// UDP port of meetings. Those of the lanes follow it.
    pub port: u16,
    pub lanes: u16,
    pub mode: XdpMode,
}

/// Why there is no guardian.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("there is no interface '{name}'; this host has {all}")]
    NoInterface { name: String, all: String },
    #[error("UDP port {port}, for {what}, cannot be had: {cause}")]
    Port { port: u16, what: &'static str, cause: io::Error },
    #[error("{lanes} lanes from UDP port {port} on need ports above 65535")]
    TooFar { port: u16, lanes: u16 },
    #[error(transparent)]
    Lanes(#[from] Unusable),
    #[error("{what}: {cause}")]
    Kernel { what: &'static str, cause: io::Error },
}

fn kernel_refused(what: &'static str) -> impl FnOnce(io::Error) -> Refused {
    move |cause| Refused::Kernel { what, cause }
}

/// Between two ticks, where something is awaited.
const TICK_NS: u64 = 5_000_000;
/// And otherwise: a tick takes the core away from a program that polls, and keeps others from sleeping.
const SELDOM_NS: u64 = 25_000_000;
/// Calls that are looked at before others have their turn.
const CALLS: usize = 64;
/// Ends that are kept at the same time, each with a descriptor, if this process may have four times as many.
const MOST_ENDS: usize = 4096;
/// Key of the port of meetings in the set; those of seats follow it.
const MEETINGS: u64 = 0;

/// The guardian by lanes on an interface.
pub struct LaneGuardian {
    key: Key,
    port: u16,
    /// The lanes' interface has these.
    addresses: Vec<IpAddr>,
    socket: UdpSocket,
    has_v6: bool,
    lanes: Lanes,
    seats: Vec<Seat>,
    meetings: Meetings<Anchor>,
    set: DescriptorSet,
    /// By seat: whether its socket is watched, and its receiver.
    watched: Vec<[bool; 2]>,
    tick_ns: u64,
    said: FarTurn,
}

impl LaneGuardian {
    /// Makes the lanes.
    ///
    /// # Errors
    /// Why it cannot be had. Nothing is left then.
    pub fn open(plan: &GuardianPlan) -> Result<Self, Refused> {
        let interface = interface(&plan.interface)?;
        let last = plan.port.checked_add(plan.lanes);
        last.ok_or(Refused::TooFar { port: plan.port, lanes: plan.lanes })?;
        let (socket, has_v6) = bind(plan.port, "meetings")?;
        let ports: Vec<u16> = (1..=plan.lanes).map(|number| plan.port + number).collect();
        let sockets = ports.iter().map(|port| bind(*port, "a lane").map(|(socket, _)| socket));
        let sockets = sockets.collect::<Result<Vec<_>, _>>()?;
        let mut lanes = Lanes::open(&interface, &ports, plan.mode)?;
        let mut seats = Vec::new();
        for (number, socket) in sockets.into_iter().enumerate() {
            let Some(ends) = lanes.take_sockets(number) else { break };
            seats.push(Seat::new(number as u32, socket, ends).map_err(kernel_refused("asking for a port"))?);
        }
        let set = DescriptorSet::new().map_err(kernel_refused("making an epoll set"))?;
        set.add(&socket, MEETINGS).map_err(kernel_refused("watching a socket"))?;
        Ok(Self {
            key: plan.key,
            port: plan.port,
            addresses: interface.addresses,
            socket,
            has_v6,
            lanes,
            watched: vec![[false; 2]; seats.len()],
            seats,
            meetings: Meetings::new(MOST_ENDS.min(sys::descriptor_limit() / 4)),
            set,
            tick_ns: 0,
            said: FarTurn::default(),
        })
    }

    /// What the user should know beside that it works.
    pub fn note(&self) -> Option<&str> {
        self.lanes.note()
    }
}

impl AsRawFd for LaneGuardian {
    fn as_raw_fd(&self) -> RawFd {
        self.set.as_raw_fd()
    }
}

impl Guardian for LaneGuardian {
    fn until_turn(&self) -> Option<Duration> {
        let works = self.meetings.is_calling() || self.seats.iter().any(Seat::is_busy);
        works.then(|| Duration::from_nanos(self.tick_ns.saturating_sub(kernel::now())))
    }

    fn leads(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        let (local, remote) = (local.ip().to_canonical(), remote.ip().to_canonical());
        self.addresses.contains(&local) && !remote.is_loopback() && UdpSocket::bind((remote, 0)).is_err()
    }

    fn offer(&mut self, client: Client, cookie: u64, anchor: OwnedFd, ends: [SocketAddr; 2]) {
        let now_ns = kernel::now();
        let shown = EndOwner { client, cookie, ends: ends.map(DatagramPeer::of) };
        let anchor = Anchor::new(anchor);
        let kept = sys::nonce().is_some_and(|nonce| self.meetings.show(shown, nonce, anchor, now_ns));
        if kept {
            self.hurry(now_ns);
            self.poll_calls(now_ns);
        }
    }

    fn withdraw(&mut self, client: Client, cookie: u64) {
        let now_ns = kernel::now();
        match self.meetings.withdraw(client, cookie) {
            Some(Withdrawn::Forgotten(given)) => self.drop_given(given),
            Some(Withdrawn::HasMet(ends)) => {
                self.seats_of(client).for_each(|seat| seat.withdraw(&ends, now_ns));
                self.settle(now_ns);
            }
            None => {}
        }
    }

    fn release(&mut self, client: Client, place: &SlotSide) -> bool {
        let now_ns = kernel::now();
        let Some(seat) = self.seats.iter_mut().find(|seat| seat.is_named(place.arena)) else { return false };
        if seat.client() == Some(client) {
            seat.release(place, now_ns);
            self.settle(now_ns);
        }
        true
    }

    fn fall_silent(&mut self, client: Client) -> bool {
        let now_ns = kernel::now();
        self.meetings.leave(client).into_iter().for_each(|given| self.drop_given(given));
        // It has one seat at most.
        let goes_on = self.seats_of(client).any(|seat| seat.fall_silent(now_ns));
        self.settle(now_ns);
        goes_on
    }

    fn leave(&mut self, client: Client) {
        let now_ns = kernel::now();
        self.meetings.leave(client).into_iter().for_each(|given| self.drop_given(given));
        self.seats_of(client).for_each(|seat| seat.end(now_ns));
        self.settle(now_ns);
    }

    fn untold(&mut self, client: Client, place: &SlotSide) {
        let now_ns = kernel::now();
        self.seats_of(client).for_each(|seat| seat.untold(place, now_ns));
    }

    fn connections(&self) -> Vec<FarConnection> {
        self.seats.iter().flat_map(Seat::crossings).collect()
    }

    fn turn(&mut self) -> FarTurn {
        let now_ns = kernel::now();
        for (key, _) in self.set.wait(Some(Duration::ZERO)).into_iter().flatten() {
            match key {
                MEETINGS => self.take_calls(now_ns),
                key => self.take_from(key - 1),
            }
        }
        if now_ns >= self.tick_ns {
            self.tick_ns = now_ns + self.tick(now_ns);
        }
        self.settle(now_ns);
        std::mem::take(&mut self.said)
    }
}

impl LaneGuardian {
    fn seats_of(&mut self, client: u64) -> impl Iterator<Item = &mut Seat> {
        self.seats.iter_mut().filter(move |seat| seat.client() == Some(client))
    }

    fn take_from(&mut self, key: u64) {
        let Some(seat) = self.seats.get_mut((key / 2) as usize) else { return };
        if key.is_multiple_of(2) { seat.take_datagrams() } else { seat.drive() }
    }

    /// Answers when the next one is due.
    fn tick(&mut self, now_ns: u64) -> u64 {
        self.poll_calls(now_ns);
        self.meetings.poll_expired(now_ns).into_iter().for_each(|given| self.drop_given(given));
        let has_v6 = self.has_v6;
        let mut is_soon = self.meetings.is_calling();
        for seat in self.seats.iter_mut().filter(|seat| seat.is_busy()) {
            seat.drive();
            is_soon |= seat.tick(|peer, port| address(has_v6, peer, port));
        }
        if is_soon { TICK_NS } else { SELDOM_NS }
    }

    /// Something begins, or ends: no more waiting for a far tick.
    fn hurry(&mut self, now_ns: u64) {
        self.tick_ns = self.tick_ns.min(now_ns + TICK_NS);
    }

    /// Looks at what has changed, and watches what is awaited.
    fn settle(&mut self, now_ns: u64) {
        if self.seats.iter().any(Seat::hurries) {
            self.hurry(now_ns);
        }
        for number in 0..self.seats.len() {
            let seat = &mut self.seats[number];
            if seat.client().is_none() && !seat.is_busy() {
                continue;
            }
            for ends in seat.step(now_ns, &mut self.said) {
                self.meetings.forget(&ends);
            }
            let wanted = [!seat.vacate(), seat.awaits()];
            self.watch(number, wanted);
        }
    }

    fn watch(&mut self, number: usize, wanted: [bool; 2]) {
        let (seat, watched) = (&self.seats[number], &mut self.watched[number]);
        let key = 1 + 2 * number as u64;
        let (socket, receiver) = (seat.socket(), seat.receiver());
        match (watched[0], wanted[0]) {
            (false, true) => watched[0] = self.set.add(socket, key).is_ok(),
            (true, false) => {
                self.set.remove(socket);
                watched[0] = false;
            }
            _ => {}
        }
        match (watched[1], wanted[1]) {
            (false, true) => watched[1] = self.set.add(receiver, key + 1).is_ok(),
            (true, false) => {
                self.set.remove(receiver);
                watched[1] = false;
            }
            _ => {}
        }
    }

    fn poll_calls(&mut self, now_ns: u64) {
        let Self { meetings, socket, key, port, has_v6, .. } = self;
        meetings.poll_calls(now_ns, |call| send(socket, key, *port, *has_v6, call));
    }

    fn take_calls(&mut self, now_ns: u64) {
        let mut place = [0; meeting::BYTES + 1];
        for _ in 0..CALLS {
            match self.socket.recv_from(&mut place) {
                Ok((bytes, _)) => {
                    if let Some(call) = ShownCall::parse(&self.key, &place[..bytes]) {
                        self.take_call(&call, now_ns);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // What the network says of a call that was sent before.
                Err(_) => {}
            }
        }
    }

    fn take_call(&mut self, call: &ShownCall, now_ns: u64) {
        let Self { meetings, seats, lanes, key, .. } = self;
        let heard = meetings.handle_call(call, now_ns, |shown| land(seats, lanes, shown.client));
        if let Some(met) = heard.met
            && let Some(seat) = seats.iter_mut().find(|seat| seat.port() == met.here.port)
        {
            seat.begin(met, key, now_ns);
        }
        if let Some(answer) = heard.answer {
            send(&self.socket, &self.key, self.port, self.has_v6, &answer);
        }
    }

    /// An end that has not met: its anchor is closed with it.
    fn drop_given(&mut self, GivenUp { landing, kept }: GivenUp<Anchor>) {
        drop(kept);
        if let Some(landing) = landing
            && let Some(seat) = self.seats.iter_mut().find(|seat| seat.port() == landing.port)
        {
            seat.take_off(landing);
        }
    }
}

/// A place on the seat that the process has, or on one that nobody has.
fn land(seats: &mut [Seat], lanes: &Lanes, client: u64) -> Option<Landing> {
    if let Some(seat) = seats.iter_mut().find(|seat| seat.client() == Some(client)) {
        return seat.land();
    }
    let memory = lanes.memory();
    let mut free = seats.iter_mut().filter(|seat| seat.client().is_none());
    free.find_map(|seat| if seat.take(client, memory) { seat.land() } else { None })
}

fn interface(name: &str) -> Result<xdp::Interface, Refused> {
    let all = xdp::interfaces().map_err(kernel_refused("asking for interfaces"))?;
    let names: Vec<String> = all.iter().map(|interface| interface.name.clone()).collect();
    let found = all.into_iter().find(|interface| interface.name == name);
    found.ok_or_else(|| Refused::NoInterface { name: name.to_owned(), all: names.join(", ") })
}

/// For addresses of both kinds, where this host has IPv6.
fn bind(port: u16, what: &'static str) -> Result<(UdpSocket, bool), Refused> {
    let refused = |cause| Refused::Port { port, what, cause };
    let (socket, has_v6) = match UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port)) {
        Ok(socket) => (socket, true),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(refused(error)),
        Err(_) => (UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).map_err(refused)?, false),
    };
    socket.set_nonblocking(true).map_err(refused)?;
    Ok((socket, has_v6))
}

/// As a socket for both kinds wants it, or one for IPv4.
fn address(has_v6: bool, peer: &DatagramPeer, port: u16) -> Option<SocketAddr> {
    let ip = peer.socket_address().ip();
    match ip.to_canonical() {
        _ if has_v6 => Some(SocketAddr::new(ip, port)),
        v4 @ IpAddr::V4(_) => Some(SocketAddr::new(v4, port)),
        IpAddr::V6(_) => None,
    }
}

/// Whether the call has left. One that has not is said again like one that is lost.
fn send(socket: &UdpSocket, key: &Key, port: u16, has_v6: bool, call: &ShownCall) -> bool {
    address(has_v6, &call.ends[1], port).is_some_and(|to| socket.send_to(&call.pack(key), to).is_ok())
}
