//! Two hosts with one cable between them, which are network namespaces, and lanes and sockets on them.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use weft_device::xdp::{Interface, Lane, Lanes, interfaces};
use weft_wire::settings::XdpMode;

/// Gone with this value, or the process.
pub struct Cable {
    prefix: String,
    /// Deletes them when its standard input ends, also when we are killed.
    guard: Child,
    /// How filters are attached.
    mode: XdpMode,
}

impl Cable {
    pub fn new() -> Self {
        Self::with(XdpMode::Auto)
    }

    pub fn with(mode: XdpMode) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let prefix = format!("wd{}c{}x", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/namespaces.sh");
        let mut command = Command::new("sh");
        command.arg(script).args(["cable", &prefix]);
        let mut guard = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
        let mut said = String::new();
        BufReader::new(guard.stdout.take().expect("piped")).read_line(&mut said).expect("text");
        assert_eq!(said, "up\n", "network namespaces cannot be made here (root may, with iproute2 installed)");
        Self { prefix, guard, mode }
    }

    /// The name of host 1 or 2.
    pub fn name(&self, host: u8) -> String {
        format!("{}{host}", self.prefix)
    }

    /// Runs `ip` on a host.
    pub fn ip(&self, host: u8, arguments: &str) {
        let name = self.name(host);
        let status = Command::new("ip").args(["-n", &name]).args(arguments.split(' ')).status().expect("ip");
        assert!(status.success(), "ip -n {name} {arguments}");
    }

    /// Runs `f` on a host, in a thread of its own. What it opens stays there.
    pub fn on<T: Send>(&self, host: u8, f: impl FnOnce() -> T + Send) -> T {
        let name = self.name(host);
        std::thread::scope(|scope| {
            let there = scope.spawn(|| {
                enter(&name);
                f()
            });
            there.join().expect("no panic there")
        })
    }

    /// A rank's socket on a host.
    pub fn socket(&self, host: u8) -> UdpSocket {
        self.on(host, || {
            let socket = UdpSocket::bind("[::]:0").expect("a UDP socket");
            socket.set_read_timeout(Some(LIMIT)).expect("a limit");
            socket
        })
    }

    pub fn interface(&self, host: u8) -> Interface {
        self.on(host, || interfaces().expect("interfaces").into_iter().find(|i| i.name == "eth0").expect("eth0"))
    }

    /// Lanes at the ports of these sockets.
    pub fn open(&self, host: u8, sockets: &[&UdpSocket]) -> Lanes {
        self.open_in_mode(host, sockets, self.mode)
    }

    pub fn open_in_mode(&self, host: u8, sockets: &[&UdpSocket], mode: XdpMode) -> Lanes {
        let interface = self.interface(host);
        let ports: Vec<u16> = sockets.iter().map(|socket| port(socket)).collect();
        self.on(host, || Lanes::open(&interface, &ports, mode)).expect("lanes")
    }

    /// What `ip` says of a host's interface.
    pub fn about(&self, host: u8) -> String {
        let output = Command::new("ip").args(["-n", &self.name(host), "link", "show", "dev", "eth0"]).output();
        String::from_utf8(output.expect("ip").stdout).expect("text")
    }

    /// The XDP program of a host's interface.
    pub fn program(&self, host: u8) -> Option<u32> {
        let interface = self.interface(host);
        self.on(host, || weft_device::xdp::facts(&interface)).expect("facts").program
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// The calling thread is on that host from now on.
pub fn enter(name: &str) {
    let place = File::open(format!("/run/netns/{name}")).expect("the namespace");
    // SAFETY: a descriptor of a namespace; only this thread moves.
    assert_eq!(unsafe { libc::setns(place.as_raw_fd(), libc::CLONE_NEWNET) }, 0, "{}", std::io::Error::last_os_error());
}

/// Nothing takes so long, unless it never happens.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Waits until it is so. What has been closed may be open for a moment yet, in a process that another test is making.
pub fn wait_until(is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < LIMIT, "it never is");
        std::thread::yield_now();
    }
}

pub fn port(socket: &UdpSocket) -> u16 {
    socket.local_addr().expect("bound").port()
}

pub fn v4(host: u8, port: u16) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(10, 77, 0, host).to_ipv6_mapped().into(), port)
}

pub fn v6(host: u8, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V6(format!("fd77::{host}").parse().expect("an address")), port)
}

/// The lane of this number, which can be taken once.
pub fn lane(lanes: &mut Lanes, number: u32) -> Lane {
    let sockets = lanes.take_sockets(number as usize).expect("not taken yet");
    Lane::adopt(memory(lanes), sockets, number).expect("a lane")
}

pub fn memory(lanes: &Lanes) -> OwnedFd {
    lanes.memory().try_clone_to_owned().expect("a descriptor")
}
