//! Network programs under test: started with the socket library preloaded, waited for, ended by their process ids.

use crate::{install, tree};
use std::ffi::OsStr;
use std::fs::Permissions;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a program may take to start, or to end when asked to.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks at a program that is about to start or end.
const LOOK: Duration = Duration::from_millis(10);

/// The library that `weft sock` preloads.
///
/// # Panics
/// When it is not installed.
pub fn library() -> PathBuf {
    let library = tree().join("lib/libweft_sockets.so");
    assert!(library.is_file(), "{} is missing; run `cargo xtask tree`", library.display());
    library
}

/// A program under `weft sock --stats`.
pub fn sock(program: impl AsRef<OsStr>) -> Command {
    sock_of(&tree(), program.as_ref())
}

fn sock_of(tree: &Path, program: &OsStr) -> Command {
    let mut command = Command::new(tree.join("bin/weft"));
    command.args(["sock", "--stats", "--"]).arg(program);
    command
}

/// The command and the library in a folder of their own.
pub struct ForAll(TempDir);

impl ForAll {
    /// Where every user can read them: the checkout may lie in a folder that is its owner's only.
    ///
    /// # Panics
    /// When they cannot be copied.
    #[must_use]
    pub fn copy() -> Self {
        Self::copy_with_mode(0o755)
    }

    /// The same, in a folder with this mode.
    ///
    /// # Panics
    /// As above.
    #[must_use]
    pub fn copy_with_mode(mode: u32) -> Self {
        let folder = TempDir::new().expect("a folder");
        let open = |path: &Path| std::fs::set_permissions(path, Permissions::from_mode(0o755)).expect("our folder");
        std::fs::set_permissions(folder.path(), Permissions::from_mode(mode)).expect("our folder");
        for file in ["bin/weft", "lib/libweft_sockets.so"] {
            let to = folder.path().join(file);
            let parent = to.parent().expect("a folder");
            std::fs::create_dir_all(parent).expect("a folder");
            open(parent);
            install(&tree().join(file), &to);
        }
        Self(folder)
    }

    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    /// As [`sock`].
    pub fn sock(&self, program: impl AsRef<OsStr>) -> Command {
        sock_of(self.0.path(), program.as_ref())
    }
}

/// Starts the rendezvous of this user where none runs, for programs that are preloaded by hand.
///
/// # Panics
/// When it cannot be started.
pub fn ensure_rendezvous() {
    let status = Command::new(tree().join("bin/weft")).args(["rendezvous", "--ensure"]).status();
    assert!(status.is_ok_and(|status| status.success()), "the rendezvous cannot be started");
}

/// A port that nobody uses at the moment.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}

/// The same for datagrams.
pub fn free_datagram_port() -> u16 {
    let free = |listener: TcpListener| {
        let port = listener.local_addr().expect("an address").port();
        UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok().then_some(port)
    };
    let listener = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    (0..100).find_map(|_| free(listener())).expect("a port that is free for both")
}

/// A server that runs while the test goes on. What it says goes into a file.
pub struct Server {
    child: Child,
    name: String,
    log: PathBuf,
    stop: libc::c_int,
}

impl Server {
    /// Starts it and waits until its port accepts connections. `stop` is the signal that ends it in good order.
    ///
    /// # Panics
    /// When it ends, or does not listen in time.
    pub fn start(command: &mut Command, port: u16, stop: libc::c_int, folder: &Path) -> Self {
        let listens = || TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).is_ok();
        Self::start_until(command, port, stop, folder, listens)
    }

    /// The same for a server of datagrams: waits until a socket is bound to its port.
    ///
    /// # Panics
    /// As above.
    pub fn start_datagrams(command: &mut Command, port: u16, stop: libc::c_int, folder: &Path) -> Self {
        let word = format!(":{port:04X} ");
        let has = |table: &str| std::fs::read_to_string(table).is_ok_and(|text| text.contains(&word));
        Self::start_until(command, port, stop, folder, || has("/proc/net/udp") || has("/proc/net/udp6"))
    }

    /// The same for a server of connections that takes whoever connects for the client that it waits for: waits until a
    /// socket listens on its port of the loopback.
    ///
    /// # Panics
    /// As above.
    pub fn start_for_one(command: &mut Command, port: u16, stop: libc::c_int, folder: &Path) -> Self {
        let word = format!(" 0100007F:{port:04X} 00000000:0000 0A ");
        let listens = || std::fs::read_to_string("/proc/net/tcp").is_ok_and(|text| text.contains(&word));
        Self::start_until(command, port, stop, folder, listens)
    }

    fn start_until(
        command: &mut Command,
        port: u16,
        stop: libc::c_int,
        folder: &Path,
        is_there: impl Fn() -> bool,
    ) -> Self {
        // Behind `weft sock --stats --`.
        let name = command.get_args().nth(3).unwrap_or(command.get_program()).to_string_lossy().into_owned();
        let log = folder.join(format!("log-{port}"));
        let file = std::fs::File::create(&log).expect("a file for what the server says");
        command.stdin(Stdio::null()).stdout(file.try_clone().expect("a descriptor")).stderr(file);
        let child = command.spawn().unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
        let mut server = Self { child, name, log, stop };
        let until = Instant::now() + PATIENCE;
        while !is_there() {
            if let Some(status) = server.child.try_wait().expect("our child") {
                panic!("{} ended ({status}): {}", server.name, server.said());
            }
            assert!(Instant::now() < until, "{} does not listen on port {port}: {}", server.name, server.said());
            std::thread::sleep(LOOK);
        }
        server
    }

    /// The process of the program: the child of a `weft sock --stats`.
    pub fn pid(&self) -> i32 {
        let own = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        let is_ours = std::fs::read_to_string(format!("/proc/{own}/comm")).is_ok_and(|name| name == "weft\n");
        let program = children.split(' ').next().filter(|_| is_ours).and_then(|pid| pid.parse().ok());
        program.unwrap_or(own as i32)
    }

    /// What it has said so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Sends a signal to it, or to the command that passes it on.
    pub fn signal(&self, signal: libc::c_int) {
        crate::signal::send(self.child.id() as i32, signal);
    }

    /// Ends it in good order; what it has said in all, and how it ended.
    ///
    /// # Panics
    /// When it does not end in time.
    pub fn end(mut self) -> (String, ExitStatus) {
        self.signal(self.stop);
        let status = wait(&mut self.child).unwrap_or_else(|| panic!("{} does not end: {}", self.name, self.said()));
        (self.said(), status)
    }

    /// Waits for a server that ends by itself.
    ///
    /// # Panics
    /// When it does not end in time.
    pub fn ended(mut self) -> (String, ExitStatus) {
        let status = wait(&mut self.child).unwrap_or_else(|| panic!("{} does not end: {}", self.name, self.said()));
        (self.said(), status)
    }
}

/// Also a test that fails leaves no process behind.
impl Drop for Server {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        self.signal(self.stop);
        if wait(&mut self.child).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn wait(child: &mut Child) -> Option<ExitStatus> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Some(status) = child.try_wait().expect("our child") {
            return Some(status);
        }
        std::thread::sleep(LOOK);
    }
    None
}

/// A client that ran to its end.
#[derive(Debug)]
pub struct Finished {
    pub out: Vec<u8>,
    pub err: String,
}

impl Finished {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }
}

/// Runs a client to its end.
///
/// # Panics
/// When it fails.
pub fn run(command: &mut Command) -> Finished {
    let what = format!("{command:?}");
    let Output { status, stdout, stderr } = command.output().unwrap_or_else(|error| panic!("{what}: {error}"));
    let err = String::from_utf8_lossy(&stderr).into_owned();
    assert!(status.success(), "{what}: {status}\n{}\n{err}", String::from_utf8_lossy(&stdout));
    Finished { out: stdout, err }
}

/// Payload that processes with the library have moved, as they say at their ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    pub accelerated: u64,
    pub by_ring: u64,
    pub by_kernel: u64,
}

impl Moved {
    /// The sums over all lines of sums, of a command (`weft sock: sockets: accelerated N ...`) or of one process.
    pub fn of(said: &str) -> Self {
        let mut moved = Self::default();
        for line in said.lines().filter(|line| line.starts_with("weft")) {
            let Some((_, sums)) = line.split_once(": sockets: accelerated ") else { continue };
            let numbers: Vec<u64> = sums.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
            if let [accelerated, ring_in, ring_out, kernel_in, kernel_out, ..] = numbers[..] {
                moved.accelerated += accelerated;
                moved.by_ring += ring_in + ring_out;
                moved.by_kernel += kernel_in + kernel_out;
            }
        }
        moved
    }
}

/// Datagrams that came and went by rings, as processes with the library say at their ends.
pub fn datagrams_by_ring(said: &str) -> [u64; 2] {
    let mut all = [0; 2];
    for line in said.lines().filter(|line| line.starts_with("weft")) {
        let Some((_, sums)) = line.split_once(": sockets: datagrams by ring ") else { continue };
        let numbers = sums.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse::<u64>().ok());
        all.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
    }
    all
}

/// Holds that at least 99 % of what a client moved went through rings; both ends have the library.
///
/// # Panics
/// When less did.
pub fn assert_by_ring(said: &str) {
    let moved = Moved::of(said);
    let all = moved.by_ring + moved.by_kernel;
    assert!(moved.accelerated > 0 && moved.by_ring * 100 >= all * 99, "not by ring: {moved:?}\n{said}");
}

/// Bytes that no compression and no repetition can be mistaken for: a file, its contents known by a seed.
pub fn random_bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as u32).rotate_left((state >> 59) as u32)
    };
    let mut bytes: Vec<u8> = (0..count.div_ceil(4)).flat_map(|_| word().to_le_bytes()).collect();
    bytes.truncate(count);
    bytes
}

/// What a run of the oracle says, which must be good; `None` where not even the kernel's own connections do what it
/// expects.
pub fn oracle_says(oracle: &mut Command) -> Option<String> {
    let output = oracle.output().expect("the oracle can be started");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    println!("{said}");
    if said.contains("failed on kernel TCP") {
        return None;
    }
    assert!(output.status.success(), "{said} (again with ORACLE_SEED= and the seed)");
    Some(said)
}
