//! What the tests of the fabric share: endpoints in one segment, messages with known bytes.
#![allow(dead_code, reason = "each test program uses a part")]

use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;
use weft_fabric::job_map::{Host, JobMap, MappedRank};
use weft_fabric::{Across, DeviceOrder, Segment, Selector, SendMode, Settings, Waiting};
use weft_fabric::{Bounds, Driven, Endpoint, Envelope, Fault, Limits, Monitor, Outcome, Outside, Peer, RequestId};

/// Sleep at once.
pub const ASLEEP: Bounds = Bounds { spin_ns: 0, yield_ns: 0 };

pub const CONTEXT: u32 = 5;

/// Longer than any scheduling, on any machine.
const LOST_WAKE_UP: Duration = Duration::from_mins(2);

pub fn net_with(members: u32, limits: Limits) -> Vec<Endpoint> {
    let segment = Segment::create(members).expect("segment");
    let join = |me| Endpoint::join_segment_with(segment.clone(), me, limits, Bounds::default()).expect("join");
    (0..members).map(join).collect()
}

pub fn net(members: u32) -> Vec<Endpoint> {
    net_with(members, Limits::default())
}

/// Long messages are copied by both sides.
pub fn copying() -> Limits {
    Limits { eager: 32 << 10, single_copy: Some(64 << 10), single_copy_allowed: true, ..Limits::default() }
}

/// What is faster is tried; the first messages of a length go all ways.
pub fn choosing() -> Limits {
    Limits { single_copy: None, single_copy_allowed: true, ..Limits::default() }
}

pub fn streaming() -> Limits {
    Limits { single_copy_allowed: false, ..Limits::default() }
}

/// What the ranks of a job need to join it: rank `i` is on host `hosts[i]`. The hosts are this one, told apart by name.
pub fn job_across(hosts: &[u32]) -> Vec<(Segment, Across)> {
    let listeners: Vec<_> = hosts.iter().map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
    let sockets: Vec<_> = hosts.iter().map(|_| UdpSocket::bind("127.0.0.1:0").expect("a port")).collect();
    let count = hosts.iter().max().expect("a rank") + 1;
    let address = "127.0.0.1".parse().expect("an address");
    let host = |number| Host { name: format!("host{number}"), addresses: vec![address] };
    let mut members = vec![0; count as usize];
    let rank = |((host, listener), socket): ((&u32, &TcpListener), &UdpSocket)| {
        let member = members[*host as usize];
        members[*host as usize] += 1;
        let tcp_port = listener.local_addr().expect("bound").port();
        MappedRank { host: *host, member, tcp_port, udp_port: socket.local_addr().expect("bound").port() }
    };
    let ranks = hosts.iter().zip(&listeners).zip(&sockets).map(rank).collect();
    let map = JobMap { key: *b"the key of tests", hosts: (0..count).map(host).collect(), ranks };
    let segments: Vec<_> = members.iter().map(|count| Segment::create((*count).max(1)).expect("segment")).collect();
    (hosts.iter().zip(0..).zip(listeners).zip(sockets))
        .map(|(((host, rank), listener), socket)| {
            let (listener, datagrams) = (listener.into(), Some(socket.into()));
            let across =
                Across { map: map.clone(), rank, listener, datagrams, lane: None, faults: None, encrypts: false };
            (segments[*host as usize].clone(), across)
        })
        .collect()
}

pub fn join_across(
    (segment, across): (Segment, Across),
    order: DeviceOrder,
    limits: Limits,
    bounds: Bounds,
) -> Endpoint {
    Endpoint::join_across(segment, across, order, limits, bounds).expect("join")
}

pub fn order(text: &str) -> DeviceOrder {
    Settings::from_env([("WEFT_DEVICE", text)]).expect("a setting").device
}

/// Endpoints of which number `i` is on host `hosts[i]`, and which may use these devices.
pub fn net_across(hosts: &[u32], devices: &str, limits: Limits) -> Vec<Endpoint> {
    let join = |rank| join_across(rank, order(devices), limits, Bounds::default());
    job_across(hosts).into_iter().map(join).collect()
}

pub fn any() -> Selector {
    Selector { context: CONTEXT, peer: None, tag: None }
}

pub fn from(peer: u32, tag: i32) -> Selector {
    Selector { context: CONTEXT, peer: Some(Peer(peer)), tag: Some(tag) }
}

pub fn bytes(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|i| (i.wrapping_mul(31) ^ (i >> 9) ^ seed.wrapping_mul(101)) as u8).collect()
}

/// Starts a send of `data`, which the caller keeps.
pub fn send_as(at: &mut Endpoint, to: u32, tag: i32, data: &[u8], mode: SendMode) -> RequestId {
    let envelope = Envelope { context: CONTEXT, tag, source: at.me().0 + 100 };
    // SAFETY: the tests keep the data until the request is complete.
    unsafe { at.post_send(Peer(to), envelope, data.as_ptr(), data.len(), mode) }
}

pub fn send(at: &mut Endpoint, to: u32, tag: i32, data: &[u8]) -> RequestId {
    send_as(at, to, tag, data, SendMode::Standard)
}

pub fn receive(at: &mut Endpoint, selector: Selector, buffer: &mut [u8]) -> RequestId {
    // SAFETY: the tests keep the buffer until the request is complete.
    unsafe { at.post_receive(selector, buffer.as_mut_ptr(), buffer.len()) }
}

/// One duty cycle of everybody.
pub fn turn(net: &mut [Endpoint]) -> bool {
    net.iter_mut().fold(false, |moved, at| at.progress() | moved)
}

/// Turns until nothing moves any more.
pub fn settle(net: &mut [Endpoint]) {
    let mut quiet = 0;
    while quiet < 3 {
        quiet = if turn(net) { 0 } else { quiet + 1 };
    }
}

/// Turns until `request` of `member` is complete.
pub fn finish(net: &mut [Endpoint], member: usize, request: RequestId) -> Outcome {
    for _ in 0..20_000_000 {
        if let Some(outcome) = net[member].take_outcome(request) {
            return outcome;
        }
        turn(net);
    }
    panic!("request {request:?} of member {member} does not end");
}

pub fn check(outcome: Outcome, peer: u32, tag: i32, length: usize, fault: Option<Fault>) {
    let expected = Outcome { peer: Peer(peer), source: peer + 100, tag, length: length as u64, fault };
    assert_eq!(outcome, expected);
}

pub struct World(pub Endpoint);

impl Driven for World {
    fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.0
    }
    fn advance(&mut self) -> Option<Outside> {
        None
    }
}

pub const WAIT: Waiting = Waiting { call: "test", peer: None, tag: None, context: CONTEXT };

pub fn wait(world: &Monitor<World>, request: RequestId) -> Outcome {
    world.wait(WAIT, |w| w.0.take_outcome(request))
}

/// Runs `what`, which may sleep for ever if a wake-up is lost, in a thread that nobody has to join. If it does not end,
/// the test fails, and says where in the kernel its program's threads are.
pub fn watch(what: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    let worker = thread::spawn(move || {
        what();
        let _ = done.send(());
    });
    if ended.recv_timeout(LOST_WAKE_UP) == Err(RecvTimeoutError::Timeout) {
        panic!("somebody was not woken; threads: {}", threads());
    }
    worker.join().expect("no panic");
}

/// What each thread of this program and of its children waits in, and how often it has given up its core by itself.
fn threads() -> String {
    let read = |folder: &Path, name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let tasks = |process: &str| -> Vec<PathBuf> {
        let folders = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        folders.map(|folder| folder.path()).collect()
    };
    let own = tasks("self");
    let children: String = own.iter().map(|task| read(task, "children")).collect();
    let all = own.into_iter().chain(children.split_whitespace().flat_map(tasks));
    let of = |task: PathBuf| {
        let (status, call) = (read(&task, "status"), read(&task, "syscall"));
        let switches = status.lines().find(|line| line.starts_with("voluntary")).unwrap_or_default();
        let (name, place) = (read(&task, "comm"), read(&task, "wchan"));
        format!("\n  {} {} in {place}: call {}, {switches}", task.display(), name.trim(), call.trim())
    };
    all.map(of).collect()
}

/// In a forked child: a panic is told and ends the process at once. What the usual hook needs (locks of the standard
/// streams, the harness's captured output) may be held by threads that the child does not have, or is lost with it.
static IN_CHILD: AtomicBool = AtomicBool::new(false);

fn end_children_that_panic() {
    static SET: Once = Once::new();
    SET.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !IN_CHILD.load(Ordering::Relaxed) {
                return usual(info);
            }
            let line = format!("in a forked child: {info}\n");
            // SAFETY: the line is readable; ends this process.
            unsafe {
                libc::write(2, line.as_ptr().cast(), line.len());
                libc::_exit(1)
            }
        }));
    });
}

/// Longest life of a forked child, seconds, longer than [`LOST_WAKE_UP`]: the signal of the alarm (14) ends one that
/// hangs.
const CHILD_LIFE: u32 = 180;

/// Runs `child` in a forked process; its process id. A panic ends it with status 1.
pub fn fork(child: impl FnOnce()) -> i32 {
    end_children_that_panic();
    // SAFETY: the child ends with _exit and runs nothing of the test harness.
    match unsafe { libc::fork() } {
        0 => {
            IN_CHILD.store(true, Ordering::Relaxed);
            // SAFETY: a timer of this process alone.
            unsafe { libc::alarm(CHILD_LIFE) };
            child();
            // SAFETY: ends this process.
            unsafe { libc::_exit(0) }
        }
        pid => {
            assert!(pid > 0, "fork");
            pid
        }
    }
}

/// The status with which a child ended.
pub fn reap(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: a plain system call with a valid place for the answer.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    status
}
