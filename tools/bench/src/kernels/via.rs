//! By which device ranks reach each other, and how their job is started.

use crate::library::{self, Library, Placement};
use crate::machine::MeasuredMachine;
use crate::net::{BenchHosts, launch_between};
use crate::process;
use anyhow::ensure;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The kernel detaches the filter of a job that has ended when it gets to it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Shared memory of one host, or one of the devices between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Via {
    Shm,
    Xdp,
    Udp,
    Tcp,
}

impl Via {
    pub const ALL: [Self; 4] = [Self::Shm, Self::Xdp, Self::Udp, Self::Tcp];

    pub fn word(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            Self::Xdp => "xdp",
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Shm => "shared memory",
            other => other.word(),
        }
    }
}

/// Where jobs run: this host, and two that it has made if there are any.
pub struct BenchPlaces {
    // Namespaces go before the folder with their launch script.
    hosts: Option<BenchHosts>,
    pub library: Library,
    pub machine: MeasuredMachine,
    /// Those of the devices asked for that can be had.
    pub devices: Vec<Via>,
    /// Why others cannot.
    pub lack: Option<String>,
    pub folder: tempfile::TempDir,
}

impl BenchPlaces {
    /// Makes two hosts where one of these devices needs them; without a word all are wanted.
    ///
    /// # Errors
    /// There is no Weft, no device, no room for a folder, or the user ends the run.
    pub fn make(prefix: Option<&Path>, wanted: &[Via]) -> anyhow::Result<Self> {
        let library = library::find_weft(prefix)?;
        let wanted = if wanted.is_empty() { &Via::ALL[..] } else { wanted };
        let folder = tempfile::Builder::new().prefix("weft-bench-").tempdir()?;
        let machine = MeasuredMachine::look();
        let needs_hosts = wanted.iter().any(|via| *via != Via::Shm);
        let hosts = needs_hosts.then(|| BenchHosts::up(folder.path(), None, &machine.cpus_used)).transpose();
        process::check_interrupt()?;
        let (hosts, lack) = match hosts {
            Ok(hosts) => (hosts, None),
            Err(why) => (None, Some(format!("devices between hosts are left out: {why:#}"))),
        };
        let devices: Vec<Via> = wanted.iter().copied().filter(|via| *via == Via::Shm || hosts.is_some()).collect();
        ensure!(!devices.is_empty(), "nothing can be measured: {}", lack.as_deref().unwrap_or_default());
        Ok(Self { hosts, library, machine, devices, lack, folder })
    }

    /// The launcher of so many ranks up to the program. Between hosts half of them, or one more, are on the first
    /// one; those of one host share memory.
    ///
    /// # Errors
    /// There are no hosts, or a filter is left on their cable.
    pub fn launch(&self, via: Via, ranks: u32) -> anyhow::Result<Command> {
        let mut command = match (via, &self.hosts) {
            (Via::Shm, _) => {
                let cpus = self.cpus(ranks);
                let mut command = self.library.launch(Placement { ranks, bound: ranks as usize <= cpus.len() });
                command.args(["--device", "shm"]);
                process::confine(&mut command, &cpus);
                command
            }
            (_, Some(hosts)) => {
                await_bare_cable(hosts)?;
                between(&self.library, hosts, via, ranks)
            }
            (_, None) => anyhow::bail!("{} needs two hosts", via.word()),
        };
        command.env("TMPDIR", self.folder.path());
        Ok(command)
    }

    /// The processors of so many ranks of one host: the two of all measurements, or all where those do not suffice.
    fn cpus(&self, ranks: u32) -> Vec<usize> {
        let usual = &self.machine.cpus_used;
        if ranks as usize > usual.len() { process::allowed_cpus() } else { usual.clone() }
    }

    pub fn weft(&self) -> impl AsRef<Path> + use<> {
        self.library.prefix.join("bin/weft")
    }
}

fn between(library: &Library, hosts: &BenchHosts, via: Via, ranks: u32) -> Command {
    if ranks == 2 {
        return launch_between(library, hosts, via.word(), &hosts.names());
    }
    let places = format!("{}:{},{}:{}", hosts.name(0), ranks.div_ceil(2), hosts.name(1), ranks / 2);
    let mut command = launch_between(library, hosts, &format!("shm,{}", via.word()), &places);
    command.args(["--bind", "none"]);
    command
}

fn await_bare_cable(hosts: &BenchHosts) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    while hosts.cable()?.has_program {
        ensure!(Instant::now() < end, "an XDP program is still attached to the cable");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
