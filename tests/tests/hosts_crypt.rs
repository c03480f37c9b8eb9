//! `--encrypt` on two hosts, with somebody at the switch between them who hears everything.

use std::ffi::CString;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use weft_tests::namespaces::Namespaces;
use weft_tests::{build, tree};

const LAUNCH: &str = "ip netns exec {host}";
/// What `hosts_secret` sends, in part: no message begins so late that this is not in it.
const TEXT: &[u8] = b"the two hosts";

/// One job at a time: all are heard at one switch.
static SWITCH: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    SWITCH.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What passes the switch while it listens.
struct Tap {
    stop: UnixStream,
    listener: std::thread::JoinHandle<Heard>,
}

#[derive(Default)]
struct Heard {
    bytes: usize,
    times: usize,
}

impl Tap {
    fn new() -> Self {
        let switch = Namespaces::pair().switch();
        let (stop, stopped) = UnixStream::pair().expect("a pair");
        let (ready, is_ready) = std::sync::mpsc::channel();
        let listener = std::thread::spawn(move || {
            let socket = packet_socket(&switch);
            ready.send(()).expect("somebody waits");
            listen(&socket, &stopped)
        });
        is_ready.recv().expect("it listens");
        Self { stop, listener }
    }

    fn stop(self) -> Heard {
        drop(self.stop);
        self.listener.join().expect("the listener")
    }
}

/// A socket that gets every packet of a namespace. It stays there; the thread is this test's.
fn packet_socket(namespace: &str) -> OwnedFd {
    let path = CString::new(format!("/run/netns/{namespace}")).expect("a path");
    // SAFETY: the path and the value live across the calls; what is opened is owned by nobody else.
    unsafe {
        let there = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        assert!(there >= 0, "{path:?}: {}", std::io::Error::last_os_error());
        let there = OwnedFd::from_raw_fd(there);
        assert_eq!(libc::setns(std::os::fd::AsRawFd::as_raw_fd(&there), libc::CLONE_NEWNET), 0);
        let all = i32::from((libc::ETH_P_ALL as u16).to_be());
        let socket = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, all);
        assert!(socket >= 0, "{}", std::io::Error::last_os_error());
        let room: i32 = 64 << 20;
        let set = libc::setsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            (&raw const room).cast(),
            size_of::<i32>() as u32,
        );
        assert_eq!(set, 0);
        OwnedFd::from_raw_fd(socket)
    }
}

/// Until it is told to stop, and nothing is left.
fn listen(socket: &OwnedFd, stopped: &UnixStream) -> Heard {
    use std::os::fd::AsRawFd;
    let mut heard = Heard::default();
    let mut packet = vec![0u8; 1 << 17];
    loop {
        let ask = |fd: i32| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut fds = [ask(socket.as_raw_fd()), ask(stopped.as_raw_fd())];
        // SAFETY: the places are valid across the call.
        assert!(unsafe { libc::poll(fds.as_mut_ptr(), 2, -1) } > 0);
        if fds[0].revents == 0 {
            return heard;
        }
        // SAFETY: the buffer is valid across the call.
        let count = unsafe { libc::recv(socket.as_raw_fd(), packet.as_mut_ptr().cast(), packet.len(), 0) };
        let bytes = &packet[..usize::try_from(count).unwrap_or(0)];
        heard.bytes += bytes.len();
        heard.times += bytes.windows(TEXT.len()).filter(|window| *window == TEXT).count();
    }
}

fn job(options: &[&str]) -> Output {
    let program = build::c_program(&tree().join("bin/mpicc"), "tests/c/mpi/hosts_secret.c");
    let hosts = Namespaces::pair();
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--bind", "none", "--timeout", "100", "--launch", LAUNCH, "--hosts"]);
    command.arg(format!("{},{}", hosts.name(1), hosts.name(2))).args(options).arg(&program);
    command.env("WEFT_LAUNCH_TIMEOUT", "100").stdin(Stdio::null());
    command.output().expect("the launcher can be started")
}

/// How often the text was heard while a job ran that ends well.
fn heard(options: &[&str]) -> usize {
    let tap = Tap::new();
    let output = job(options);
    let heard = tap.stop();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && ["", "ok"].contains(&said.trim()), "{options:?}: {said}");
    assert!(heard.bytes > 1 << 20, "{} bytes of some 10 MB were heard", heard.bytes);
    heard.times
}

#[test]
fn nobody_on_the_way_reads_what_is_encrypted() {
    let _alone = alone();
    for devices in ["shm,udp", "shm,xdp,udp", "shm,tcp", "auto"] {
        assert!(heard(&["--device", devices]) > 0, "{devices}: what is not encrypted is read");
        assert_eq!(heard(&["--device", devices, "--encrypt"]), 0, "{devices}");
    }
}

#[test]
fn ranks_that_do_not_agree_are_told_in_a_line() {
    let _alone = alone();
    for devices in ["shm,udp", "shm,tcp", "auto"] {
        let program = build::c_program(&tree().join("bin/mpicc"), "tests/c/mpi/hosts_secret.c");
        let program = program.to_string_lossy();
        let output = job(&[
            "--device",
            devices,
            "-n",
            "1",
            "--env",
            "WEFT_ENCRYPT=on",
            &program,
            ":",
            "-n",
            "1",
            "--env",
            "WEFT_ENCRYPT=off",
        ]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{devices}");
        let told = text.lines().filter(|line| line.contains("WEFT_ENCRYPT (--encrypt) must be the same")).count();
        assert!((1..=2).contains(&told), "{devices}: {text}");
    }
}
