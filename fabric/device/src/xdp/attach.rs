//! The privileged half: memory, sockets, and the filter on an interface. What comes of it is descriptors, which ranks
//! without any privilege take over.

use super::area::LaneArea;
use super::bpf::{self, Hook, ProgramKind};
use super::interface::{self, Interface};
use super::lane::LaneSockets;
use super::program::{Filter, assemble};
use super::socket::{WhichRing, XdpSocket};
use super::tap::PrivilegedTap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use weft_wire::settings::XdpMode;
use weft_wire::xdp::{LEAST_ENTRIES, LaneLayout};

/// The kernel clears away behind a job that has ended; who comes next waits for that so long.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why an interface has no lanes.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error("xdp needs root, or the capabilities CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF")]
    NotPermitted,
    #[error("no interface leads to the other hosts")]
    NoWay,
    #[error("interface {0} is not Ethernet")]
    NoEthernet(String),
    #[error("interface {0} has no address that others can reach")]
    NoAddress(String),
    #[error("{count} ranks on one host are too many for xdp")]
    TooMany { count: usize },
    #[error(
        "XDP program '{program}' (id {id}) is attached to interface {interface} already; `ip link set dev {interface} \
             xdp off` detaches one that is not held by another process"
    )]
    Taken { interface: String, program: String, id: u32 },
    #[error("queue 0 of interface {0} is used by AF_XDP sockets of another process")]
    QueueTaken(String),
    #[error("the filter cannot be attached to interface {interface} ({mode} XDP, WEFT_XDP_MODE says which): {cause}")]
    NotAttached { interface: String, mode: &'static str, cause: io::Error },
    #[error("the memory for xdp cannot be registered ({0}); RLIMIT_MEMLOCK (ulimit -l) may be too low")]
    Memory(io::Error),
    #[error("{what}: {cause}")]
    Kernel { what: &'static str, cause: io::Error },
}

/// An error of the kernel, with what was asked of it.
fn kernel(what: &'static str) -> impl FnOnce(io::Error) -> Unusable {
    move |cause| match cause.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Unusable::NotPermitted,
        _ => Unusable::Kernel { what, cause },
    }
}

/// Whether this process may make lanes at all: the kernel takes a map, the filter, and a socket.
///
/// # Errors
/// Why not.
pub fn permitted() -> Result<(), Unusable> {
    let filter = Filter {
        queue: 0,
        hardware: [0; 6],
        v4: vec![Ipv4Addr::LOCALHOST],
        v6: vec![Ipv6Addr::LOCALHOST],
        largest_packet: 1500,
    };
    let map = bpf::socket_map(1).map_err(kernel("making a map of sockets"))?;
    bpf::load(ProgramKind::Filter { pieces: false }, &assemble(&filter, map.as_raw_fd()))
        .map_err(kernel("loading the XDP filter"))?;
    XdpSocket::new().map_err(kernel("making an AF_XDP socket"))?;
    Ok(())
}

/// What is to be known of an interface that may have lanes: its hardware address, and the rest.
///
/// # Errors
/// Why it may not.
pub fn look(interface: &Interface) -> Result<([u8; 6], interface::InterfaceFacts), Unusable> {
    let hardware = interface.hardware.ok_or_else(|| Unusable::NoEthernet(interface.name.clone()))?;
    if interface.addresses.is_empty() {
        return Err(Unusable::NoAddress(interface.name.clone()));
    }
    let facts = interface::facts(interface).map_err(kernel("asking about an interface"))?;
    match facts.program {
        Some(id) => Err(taken(interface, id)),
        None => Ok((hardware, facts)),
    }
}

/// Lanes on an interface. They end, and the filter is detached, when this is dropped, or the process that has it ends
/// in whatever way. Nothing of it is in a file system, nor does it outlive the process.
pub struct Lanes {
    area: LaneArea,
    sockets: Vec<Option<LaneSockets>>,
    note: Option<String>,
    /// The filter is attached as long as this is open.
    _link: OwnedFd,
    _tap: Option<PrivilegedTap>,
}

impl Lanes {
    /// Makes one lane for each of `ports`, UDP ports of sockets on this host, which get what the lanes do not.
    ///
    /// # Errors
    /// Why it cannot be had; nothing is left then.
    pub fn open(interface: &Interface, ports: &[u16], mode: XdpMode) -> Result<Self, Unusable> {
        let (hardware, facts) = look(interface)?;
        let layout = LaneLayout::new(ports.len() as u32, facts.mtu, interface.number);
        let layout = layout.ok_or(Unusable::TooMany { count: ports.len() })?;
        let place = FilterPlace::new(mode, facts);
        // A filter in the driver would not see what a tap sends.
        let may_tap = place == FilterPlace::BehindDriver && facts.is_virtual_cable && facts.leads_elsewhere;
        let tap = may_tap.then(|| PrivilegedTap::make(interface.number)).transpose();
        let (tap, no_tap) = tap.map_or_else(|error| (None, Some(error)), |tap| (tap, None));
        // What a tap sends needs no frames.
        let send_frames = if tap.is_some() { LEAST_ENTRIES } else { layout.send_frames };
        let layout = LaneLayout { sends_by_tap: tap.is_some(), send_frames, ..layout };
        let filter = Filter {
            queue: layout.queue,
            hardware,
            v4: interface
                .addresses
                .iter()
                .filter_map(|a| if let IpAddr::V4(a) = a { Some(*a) } else { None })
                .collect(),
            v6: interface
                .addresses
                .iter()
                .filter_map(|a| if let IpAddr::V6(a) = a { Some(*a) } else { None })
                .collect(),
            largest_packet: layout.largest_packet(),
        };
        // What is asked first is what is most often not permitted.
        let most = ports.iter().max().map_or(0, |port| u32::from(*port));
        let map = bpf::socket_map(most + 1).map_err(kernel("making a map of sockets"))?;
        let code = assemble(&filter, map.as_raw_fd());
        let kind = ProgramKind::Filter { pieces: place == FilterPlace::InDriver };
        let program = bpf::load(kind, &code).map_err(kernel("loading the XDP filter"))?;
        let area = LaneArea::create(layout).map_err(Unusable::Memory)?;
        let sockets = sockets(interface, &area, tap.as_ref())?;
        for (socket, port) in sockets.iter().zip(ports) {
            bpf::put_socket(map.as_fd(), u32::from(*port), socket.receiver.as_fd())
                .map_err(kernel("naming a socket"))?;
        }
        let link = attach(program.as_fd(), interface, place)?;
        let one_queue = (facts.queues > 1).then(|| {
            format!(
                "interface {} has {} queues and xdp uses the first: `ethtool -L {} combined 1` brings it all packets",
                interface.name, facts.queues, interface.name
            )
        });
        let no_tap = no_tap.map(|cause| {
            format!(
                "xdp sends without a tap device, which takes longer on the virtual cable {}: {cause}",
                interface.name
            )
        });
        let notes: Vec<String> = one_queue.into_iter().chain(no_tap).collect();
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        Ok(Self { area, sockets: sockets.into_iter().map(Some).collect(), note, _link: link, _tap: tap })
    }

    /// The same on the interface by which the kernel would send to the first of these addresses that it can send to.
    ///
    /// # Errors
    /// As [`Self::open`], or no interface leads there.
    pub fn facing(addresses: &[IpAddr], ports: &[u16], mode: XdpMode) -> Result<Self, Unusable> {
        let all = interface::all().map_err(kernel("asking for interfaces"))?;
        let own = addresses.iter().find_map(|address| own_address_towards(*address));
        let interface = own.and_then(|own| all.iter().find(|interface| interface.addresses.contains(&own)));
        Self::open(interface.ok_or(Unusable::NoWay)?, ports, mode)
    }

    /// What the user should know beside that it works.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The memory of all lanes.
    pub fn memory(&self) -> BorrowedFd<'_> {
        self.area.descriptor()
    }

    /// The sockets of a lane, which go over to its rank: while anybody else has them, too, the end of the rank does not
    /// end the lane. None the second time.
    pub fn take_sockets(&mut self, lane: usize) -> Option<LaneSockets> {
        self.sockets.get_mut(lane)?.take()
    }
}

/// Our address in what the kernel would send there. Nothing is sent.
fn own_address_towards(address: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    // A port that means nothing.
    socket.connect((address, 9)).ok()?;
    let own = socket.local_addr().ok()?.ip();
    (!own.is_loopback() && own != address).then_some(own)
}

fn taken(interface: &Interface, id: u32) -> Unusable {
    let program = bpf::program_name(id).unwrap_or_else(|_| "?".into());
    Unusable::Taken { interface: interface.name.clone(), program, id }
}

/// Where the filter sees packets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FilterPlace {
    /// Native XDP. A packet may come in several pieces, of which the filter needs the first.
    InDriver,
    /// Generic XDP. The kernel gives the filter room in front of each packet that has none: of one that may come in
    /// pieces it makes a copy in other pages, of one that may not it moves the head, and makes a long one whole. The
    /// second takes an eighth less time for the packets of lanes, so the filter does not say that it takes pieces. The
    /// price: a long packet of TCP takes memory in one piece, and is dropped where there is none (decision 25).
    BehindDriver,
}

impl FilterPlace {
    /// On a virtual cable the driver's way takes segmentation offload from everybody's TCP, which the kernel's own way
    /// behind the driver leaves there: 3.0 GB/s in the place of 0.6, and a lane takes less time that way, too
    /// (`lane_speed`, decision 25). Elsewhere the driver's way saves making a packet of the kernel's of each, and
    /// leaves the kernel to put together what arrives.
    fn new(mode: XdpMode, facts: interface::InterfaceFacts) -> Self {
        match mode {
            XdpMode::Generic => Self::BehindDriver,
            XdpMode::Auto if facts.is_virtual_cable => Self::BehindDriver,
            XdpMode::Auto | XdpMode::Native => Self::InDriver,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::InDriver => "native",
            Self::BehindDriver => "generic",
        }
    }
}

/// Attaches the filter until the answer is closed.
fn attach(program: BorrowedFd<'_>, interface: &Interface, place: FilterPlace) -> Result<OwnedFd, Unusable> {
    let hook = if place == FilterPlace::BehindDriver { Hook::BehindDriver } else { Hook::Driver };
    bpf::attach(program, interface.number, hook).map_err(|cause| not_attached(interface, place.name(), cause))
}

fn not_attached(interface: &Interface, mode: &'static str, cause: io::Error) -> Unusable {
    match (cause.raw_os_error(), interface::facts(interface).ok().and_then(|facts| facts.program)) {
        (Some(libc::EBUSY | libc::EEXIST), Some(id)) => taken(interface, id),
        (Some(libc::EPERM | libc::EACCES), _) => Unusable::NotPermitted,
        _ => Unusable::NotAttached { interface: interface.name.clone(), mode, cause },
    }
}

/// The lanes' sockets. The first has the frames, which are all with the kernel then, and the others share them.
fn sockets(interface: &Interface, area: &LaneArea, tap: Option<&PrivilegedTap>) -> Result<Vec<LaneSockets>, Unusable> {
    let layout = area.layout();
    let mut lanes: Vec<LaneSockets> = Vec::with_capacity(layout.lanes as usize);
    for _ in 0..layout.lanes {
        let receiver = with_ring(WhichRing::Receive, layout.receive_entries)?;
        if lanes.is_empty() {
            let (at, bytes) = area.frames();
            // SAFETY: shared memory, into whose frames there are no references; the kernel keeps its pages.
            unsafe { receiver.register(at, bytes, layout.frame_bytes) }.map_err(Unusable::Memory)?;
            for (which, entries) in
                [(WhichRing::Fill, layout.fill_entries()), (WhichRing::Completion, layout.completion_entries())]
            {
                receiver.make_ring(which, entries).map_err(kernel("making a ring"))?;
            }
        }
        bind(&receiver, interface, layout, lanes.first().map(|first| first.receiver.as_fd()))?;
        let first = lanes.first().map_or(receiver.as_fd(), |first| first.receiver.as_fd());
        let sender = match tap {
            Some(tap) => tap.descriptor().map_err(kernel("copying a descriptor"))?,
            None => {
                let sender = with_ring(WhichRing::Send, layout.send_frames)?;
                bind(&sender, interface, layout, Some(first))?;
                sender.widen(layout.send_frames as usize * 4096);
                sender.into_descriptor()
            }
        };
        lanes.push(LaneSockets { receiver: receiver.into_descriptor(), sender });
    }
    let first = XdpSocket::adopt(lanes[0].receiver.try_clone().map_err(kernel("copying a descriptor"))?);
    let fill = first.map(WhichRing::Fill, layout.fill_entries()).map_err(kernel("mapping a ring"))?;
    for frame in 0..layout.receive_frames() {
        fill.set_address(frame, u64::from(frame) * u64::from(layout.frame_bytes));
    }
    fill.produce(layout.receive_frames());
    Ok(lanes)
}

fn with_ring(which: WhichRing, entries: u32) -> Result<XdpSocket, Unusable> {
    let socket = XdpSocket::new().map_err(kernel("making an AF_XDP socket"))?;
    socket.make_ring(which, entries).map_err(kernel("making a ring"))?;
    Ok(socket)
}

/// A queue is busy for a moment after its last user has ended.
fn bind(
    socket: &XdpSocket,
    interface: &Interface,
    layout: &LaneLayout,
    first: Option<BorrowedFd<'_>>,
) -> Result<(), Unusable> {
    let end = Instant::now() + PATIENCE;
    loop {
        match socket.bind(layout.interface, layout.queue, first) {
            Ok(()) => return Ok(()),
            Err(error) if error.raw_os_error() != Some(libc::EBUSY) => {
                return Err(kernel("binding an AF_XDP socket")(error));
            }
            Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
            Err(_) => return Err(Unusable::QueueTaken(interface.name.clone())),
        }
    }
}
