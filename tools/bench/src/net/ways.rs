//! The columns: a library with the devices it may use, or the kernel's sockets.

use super::hosts::BenchHosts;
use crate::library::{Library, LibraryName};
use serde::Serialize;
use std::path::Path;
use std::process::Command;

named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum NetWay {
        WeftXdp = "Weft xdp",
        /// All devices between hosts, the best first.
        WeftAll = "Weft xdp,udp,tcp",
        /// What it does unless told.
        WeftDefault = "Weft default",
        WeftUdp = "Weft udp",
        WeftTcp = "Weft tcp",
        /// As `WeftAll` and `WeftDefault`, encrypted.
        WeftAllEncrypted = "xdp,udp,tcp encrypted",
        WeftEncrypted = "default encrypted",
        MpichOfi = "MPICH ofi",
        MpichUcx = "MPICH ucx",
        /// An unmodified program's connection with the library preloaded.
        WeftSock = "Weft sock",
        /// The same, where the rendezvous of both hosts have lanes.
        WeftSockLane = "Weft sock, lanes",
        KernelTcp = "kernel TCP",
        PolledTcp = "TCP polled",
    }
}

impl NetWay {
    /// Whose MPI this is, if it is MPI.
    pub fn library(self) -> Option<LibraryName> {
        match self {
            NetWay::MpichOfi | NetWay::MpichUcx => Some(LibraryName::Mpich),
            NetWay::WeftSock | NetWay::WeftSockLane | NetWay::KernelTcp | NetWay::PolledTcp => None,
            _ => Some(LibraryName::Weft),
        }
    }

    /// Whether its job, or its rendezvous, attaches the filter itself, and fails or falls back where another one is
    /// attached.
    pub fn attaches(self) -> bool {
        matches!(self, NetWay::WeftXdp | NetWay::WeftAll | NetWay::WeftAllEncrypted | NetWay::WeftSockLane)
    }

    fn devices(self) -> &'static str {
        match self {
            NetWay::WeftXdp => "xdp",
            NetWay::WeftAll | NetWay::WeftAllEncrypted => "xdp,udp,tcp",
            NetWay::WeftUdp => "udp",
            NetWay::WeftTcp => "tcp",
            _ => "auto",
        }
    }

    fn encrypts(self) -> bool {
        matches!(self, NetWay::WeftAllEncrypted | NetWay::WeftEncrypted)
    }

    /// What MPICH is told by its environment. UCX would find the shared memory of the two namespaces, which are one
    /// machine, and libfabric might.
    fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            NetWay::MpichOfi => &[("MPIR_CVAR_CH4_NETMOD", "ofi"), ("FI_PROVIDER", "tcp")],
            NetWay::MpichUcx => &[("MPIR_CVAR_CH4_NETMOD", "ucx"), ("UCX_TLS", "tcp,self")],
            _ => &[],
        }
    }

    /// The launcher with everything up to the program, a rank on each host.
    pub fn launch(self, library: &Library, hosts: &BenchHosts) -> Command {
        if library.name == LibraryName::Weft {
            let mut command = launch_between(library, hosts, self.devices(), &hosts.names());
            command.args(self.encrypts().then_some("--encrypt"));
            return command;
        }
        // Its agents dial the launcher, which so has to be on one of the hosts itself.
        let mpiexec = library.command("mpiexec");
        let mut command = hosts.command(0, Path::new(mpiexec.get_program()));
        for (key, value) in mpiexec.get_envs() {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        command.envs(self.settings().iter().copied());
        command.args(["-launcher", "ssh", "-launcher-exec"]).arg(&hosts.launch);
        command.args(["-iface", super::hosts::INTERFACE, "-hosts", &hosts.names(), "-n"]);
        command.arg(hosts.count().to_string());
        command
    }

    /// As a person would type it, for the report.
    pub fn launch_text(self, hosts: usize) -> String {
        let names = if hosts == 2 { "HOST,HOST" } else { "HOST,..." };
        match self.library() {
            Some(LibraryName::Weft) => {
                let encrypt = if self.encrypts() { " --encrypt" } else { "" };
                format!("weft run --device {}{encrypt} --hosts {names}", self.devices())
            }
            Some(_) => {
                let settings = self.settings().iter().map(|(k, v)| format!("{k}={v} ")).collect::<String>();
                format!("{settings}mpiexec -hosts {names} -n {hosts}")
            }
            None if self == NetWay::WeftSock => "the same under weft sock".into(),
            None if self == NetWay::WeftSockLane => "the same with `weft rendezvous --lanes` on both hosts".into(),
            None => "two processes with a connection".into(),
        }
    }
}

/// Our launcher with everything up to the program: ranks on these hosts, and these devices.
pub fn launch_between(library: &Library, hosts: &BenchHosts, devices: &str, places: &str) -> Command {
    let mut command = library.command("weft");
    command.args(["run", "--device", devices, "--hosts", places, "--launch"]);
    command.arg(format!("sh '{}' {{host}}", hosts.launch.display()));
    // A host may take long to answer: the machine may be loaded.
    command.env("WEFT_LAUNCH_TIMEOUT", "60");
    command
}
