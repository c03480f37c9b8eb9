//! A Slurm for a test, gone when it is gone, however it ends.

use crate::root;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// Nodes of it, `n1` and so on, with four processors each.
pub const NODES: u16 = 3;

/// It lives as long as the process.
pub struct Slurm {
    directory: PathBuf,
    /// Ends it when its standard input ends, also when we are killed.
    _guard: Child,
}

impl Slurm {
    /// The one that all tests of this process use.
    ///
    /// # Panics
    /// Where it cannot be started.
    pub fn up() -> &'static Self {
        static SLURM: OnceLock<Slurm> = OnceLock::new();
        SLURM.get_or_init(Self::started)
    }

    fn started() -> Self {
        // Short: sockets have names in it.
        let directory = tempfile::Builder::new().prefix("slurm").tempdir_in("/tmp").expect("a directory").keep();
        let mut command = Command::new("sh");
        command.arg(root().join("tests/slurm.sh")).arg(&directory);
        command.args([NODES.to_string(), free_ports().to_string()]);
        let mut guard = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
        let mut said = String::new();
        BufReader::new(guard.stdout.take().expect("piped")).read_line(&mut said).expect("text");
        assert_eq!(said, "up\n", "Slurm cannot be started here (Debian: slurm-wlm, munge)");
        Self { directory, _guard: guard }
    }

    /// A command of Slurm's, such as `srun`, which finds it.
    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.env("SLURM_CONF", self.configuration()).stdin(Stdio::null());
        command
    }

    fn configuration(&self) -> PathBuf {
        self.directory.join("slurm.conf")
    }
}

/// The first of so many ports in a row that nobody uses, below those that the kernel gives out.
fn free_ports() -> u16 {
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let first = 15000 + (std::process::id() % 1000) as u16 * 10;
    let mut rows = (first..32000).step_by(10).chain((15000..first).step_by(10));
    rows.find(|port| (*port..=port + NODES).all(is_free)).expect("free ports")
}
