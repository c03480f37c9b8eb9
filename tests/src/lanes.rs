//! Two hosts with a rendezvous each that has lanes, gone when the value is gone, or the process, however it ends.

use crate::lossy::{Done, Lossy};
use crate::namespaces::Namespaces;
use crate::{sockets, tree};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use weft_device::udp::Faults;

/// How long a rendezvous may take to make its lanes.
const PATIENCE: Duration = Duration::from_secs(20);
/// Its descriptor for the socket on which it waits for processes, as the kernel lists it.
const NAME: &str = "@weft-rendezvous";

/// A rendezvous that ends when our end of its guard's standard input does.
struct Rendezvous {
    guard: Child,
    pid: i32,
}

impl Drop for Rendezvous {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// Hosts 1 and 2, on a cable of their own, or with something between them that has faults.
pub struct LaneHosts {
    rendezvous: [Rendezvous; 2],
    lossy: Option<Lossy>,
    hosts: Namespaces,
    folder: TempDir,
}

impl LaneHosts {
    /// With names that begin with `prefix` and the number of this process; `more` arguments for both rendezvous.
    ///
    /// # Panics
    /// When they cannot be made here.
    pub fn up(prefix: &str, more: &[&str]) -> Self {
        Self::on_network(Namespaces::cable(&format!("{prefix}{}x", std::process::id())), None, more)
    }

    /// The same with faults on the way from host 1 to host 2 (with the plan for 1), and on the way back.
    ///
    /// # Panics
    /// When they cannot be made here.
    pub fn with_faults(prefix: &str, plan: impl Fn(u64) -> Faults) -> Self {
        let hosts = Namespaces::up(&format!("{prefix}{}x", std::process::id()), 2);
        let lossy = Lossy::between(&hosts, plan);
        Self::on_network(hosts, Some(lossy), &[])
    }

    fn on_network(hosts: Namespaces, lossy: Option<Lossy>, more: &[&str]) -> Self {
        let folder = TempDir::new().expect("a folder");
        let key = folder.path().join("key");
        let made = Command::new(tree().join("bin/weft")).args(["rendezvous", "--make-key"]).arg(&key).status();
        assert!(made.expect("weft can be started").success());
        let rendezvous = [1, 2].map(|number| start(&hosts.name(number), &key, more));
        Self { rendezvous, lossy, hosts, folder }
    }

    pub fn name(&self, number: usize) -> String {
        self.hosts.name(number)
    }

    pub fn address(&self, number: usize) -> String {
        self.hosts.address(number).to_string()
    }

    /// What was done on purpose to the datagrams of lanes.
    ///
    /// # Panics
    /// Where there is nobody to do so.
    pub fn done(&self) -> Done {
        self.lossy.as_ref().expect("hosts with faults between them").done()
    }

    /// A folder that goes with the hosts.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The process of the rendezvous of host `number`.
    pub fn rendezvous(&self, number: usize) -> i32 {
        self.rendezvous[number - 1].pid
    }

    /// `program` on host `number`, with the library. It says at its end what it has moved.
    pub fn on(&self, number: usize, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(number), "env", "WEFT_SOCK_STATS=1", "WEFT_SOCK_ATTACH_CALLS=1"]);
        command.arg(format!("LD_PRELOAD={}", sockets::library().display())).arg(program);
        command.stdin(Stdio::null());
        command
    }

    /// Takes the interfaces of both hosts away, for good.
    ///
    /// # Panics
    /// When that cannot be done.
    pub fn remove_interfaces(&self) {
        let status = Command::new("ip").args(["-n", &self.name(1), "link", "del", "eth0"]).status();
        assert!(status.expect("ip can be started").success());
    }

    /// Takes the cable of host 1 away, or brings it back.
    ///
    /// # Panics
    /// When that cannot be done.
    pub fn set_cable(&self, state: &str) {
        let status = Command::new("ip").args(["-n", &self.name(1), "link", "set", "eth0", state]).status();
        assert!(status.expect("ip can be started").success());
    }
}

fn start(host: &str, key: &Path, more: &[&str]) -> Rendezvous {
    let weft = tree().join("bin/weft");
    let mut command = Command::new("ip");
    command.args(["netns", "exec", host, "sh", "-c", "\"$@\" & echo $!; cat > /dev/null; kill -9 $!; wait", "sh"]);
    command.arg(weft).args(["rendezvous", "--lanes", "eth0", "--key"]).arg(key).args(more);
    let mut guard = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("ip can be started");
    let mut said = String::new();
    BufReader::new(guard.stdout.take().expect("piped")).read_line(&mut said).expect("text");
    let rendezvous = Rendezvous { guard, pid: said.trim().parse().expect("a number") };
    let begin = Instant::now();
    while !listens(rendezvous.pid) {
        assert!(begin.elapsed() < PATIENCE, "the rendezvous of {host} does not come up");
        std::thread::sleep(Duration::from_millis(10));
    }
    rendezvous
}

fn listens(pid: i32) -> bool {
    let sockets = std::fs::read_to_string(format!("/proc/{pid}/net/unix")).unwrap_or_default();
    sockets.contains(NAME)
}
