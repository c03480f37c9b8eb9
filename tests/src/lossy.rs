//! What is between two hosts, with faults: frames go from one cable to the other by this process, and the datagrams
//! among them through a plan that loses, doubles, spoils and holds them back by seed. All else, the kernel's
//! connections among it, goes through untouched.

use crate::namespaces::Namespaces;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use weft_device::udp::Faults;

/// More than the largest that the kernel hands over in one piece, with what it says before it.
const MOST_BYTES: usize = 70_000;
/// What the kernel says before a frame whose checksum it has not written: such a one goes on as it came.
const PROMISE_BYTES: usize = 10;
/// With a plan of faults, a frame that is held comes behind others, and not later than this.
const TURN_MS: i32 = 2;
const ETHERNET: usize = 14;
const V4_BYTES: usize = 20;
const UDP: u8 = 17;

/// What was done to datagrams of the lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    pub passed: u64,
    pub dropped: u64,
    pub doubled: u64,
    pub spoilt: u64,
    pub held: u64,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    passed: AtomicU64,
    done: [[AtomicU64; 4]; 2],
}

/// Goes on until it is dropped.
pub struct Lossy {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Lossy {
    /// Takes the place of the bridge between two hosts. `plan` is for each of the two ways.
    ///
    /// # Panics
    /// When that cannot be done.
    pub fn between(hosts: &Namespaces, plan: impl Fn(u64) -> Faults) -> Self {
        let switch = hosts.switch();
        let status = Command::new("ip").args(["-n", &switch, "link", "del", "bridge"]).status();
        assert!(status.expect("ip can be started").success());
        let shared = Arc::new(Shared::default());
        let (faults, theirs) = ([plan(1), plan(2)], Arc::clone(&shared));
        let (told, is_up) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let ports = enter(&switch).and_then(|()| Ok([port(c"port1")?, port(c"port2")?]));
            let _ = told.send(ports.as_ref().map(drop).map_err(ToString::to_string));
            if let Ok(ports) = ports {
                carry(&ports, faults, &theirs);
            }
        });
        is_up.recv().expect("the thread says so").expect("packets of another network can be had");
        Self { shared, thread: Some(thread) }
    }

    /// Both ways together.
    pub fn done(&self) -> Done {
        let sum = |which: usize| self.shared.done.iter().map(|way| way[which].load(Ordering::Relaxed)).sum();
        let passed = self.shared.passed.load(Ordering::Relaxed);
        Done { passed, dropped: sum(0), doubled: sum(1), spoilt: sum(2), held: sum(3) }
    }
}

impl Drop for Lossy {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The calling thread is in that network from now on.
fn enter(namespace: &str) -> io::Result<()> {
    let network = File::open(format!("/run/netns/{namespace}"))?;
    // SAFETY: numbers only.
    check(unsafe { libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// A socket for all frames that come by an interface, with what the kernel has promised of them.
fn port(name: &std::ffi::CStr) -> io::Result<OwnedFd> {
    let kind = (libc::ETH_P_ALL as u16).to_be();
    let one: i32 = 1;
    // SAFETY: a name; options with their sizes; an address with its size; the descriptor is new and ours.
    unsafe {
        let number = libc::if_nametoindex(name.as_ptr());
        let made = check(libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0))?;
        let socket = OwnedFd::from_raw_fd(made);
        for option in [libc::PACKET_VNET_HDR, libc::PACKET_IGNORE_OUTGOING] {
            let length = size_of::<i32>() as libc::socklen_t;
            check(libc::setsockopt(made, libc::SOL_PACKET, option, (&raw const one).cast(), length))?;
        }
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        (address.sll_family, address.sll_protocol) = (libc::AF_PACKET as u16, kind);
        address.sll_ifindex = number as i32;
        check(libc::bind(made, (&raw const address).cast(), size_of_val(&address) as libc::socklen_t))?;
        Ok(socket)
    }
}

/// Whether it is a datagram of a lane, whole as a wire has it: nothing in it is left for the kernel to write.
fn is_parcel(frame: &[u8]) -> bool {
    let (promise, packet) = frame.split_at(PROMISE_BYTES);
    promise.iter().all(|byte| *byte == 0)
        && packet.len() > ETHERNET + V4_BYTES
        && packet[12..14] == [8, 0]
        && packet[ETHERNET + 9] == UDP
}

/// The length of the next one.
fn receive(from: &OwnedFd, place: &mut [u8]) -> Option<usize> {
    // SAFETY: a place of this length.
    let bytes = unsafe { libc::recv(from.as_raw_fd(), place.as_mut_ptr().cast(), place.len(), 0) };
    usize::try_from(bytes).ok()
}

fn send(to: &OwnedFd, frame: &[u8]) {
    // What finds no room is lost, as on any wire.
    // SAFETY: so many bytes are there.
    unsafe { libc::send(to.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
}

fn carry(ports: &[OwnedFd; 2], mut faults: [Faults; 2], shared: &Shared) {
    let mut place = vec![0; MOST_BYTES];
    // The plan is for datagrams of anybody.
    let nobody = SocketAddr::from(([0, 0, 0, 0], 0));
    while !shared.stop.load(Ordering::Relaxed) {
        let mut looks =
            ports.each_ref().map(|port| libc::pollfd { fd: port.as_raw_fd(), events: libc::POLLIN, revents: 0 });
        // SAFETY: two of them.
        unsafe { libc::poll(looks.as_mut_ptr(), 2, TURN_MS) };
        for (way, faults) in faults.iter_mut().enumerate() {
            let (from, to) = (&ports[way], &ports[1 - way]);
            let mut hand_on = |_, packet: &[u8]| send(to, &[&[0; PROMISE_BYTES], packet].concat());
            while let Some(bytes) = receive(from, &mut place).filter(|bytes| *bytes >= PROMISE_BYTES) {
                let frame = &place[..bytes];
                if is_parcel(frame) {
                    shared.passed.fetch_add(1, Ordering::Relaxed);
                    faults.pass(nobody, &frame[PROMISE_BYTES..], &mut hand_on);
                } else {
                    send(to, frame);
                }
            }
            faults.release(&mut hand_on);
            shared.done[way].iter().zip(faults.done).for_each(|(word, count)| word.store(count, Ordering::Relaxed));
        }
    }
}
