//! What the machine must have beyond git, a Rust toolchain and a C compiler, and how it gets there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::command::ToolProgram;

/// The enum of needs, each with Debian's package, whether it is there, and what it is needed for.
macro_rules! needs {
    ($($need:ident: $package:literal, $is_there:expr, $why:literal;)*) => {
        /// Something outside the repository that a command needs.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Need {
            $($need,)*
        }

        impl Need {
            const ALL: &[Need] = &[$(Need::$need,)*];

            /// Debian's package and what it is needed for.
            fn package(self) -> (&'static str, &'static str) {
                match self {
                    $(Need::$need => ($package, $why),)*
                }
            }

            fn is_there(self) -> bool {
                match self {
                    $(Need::$need => $is_there,)*
                }
            }
        }
    };
}

needs! {
    CCompiler: "gcc", on_path("cc"), "compiles C programs for `weft cc`";
    CxxCompiler: "g++", on_path("c++"), "compiles C++ programs for `weft c++`";
    FortranCompiler: "gfortran", on_path("gfortran"), "compiles Fortran programs for `weft fc`";
    PkgConfig: "pkg-config", on_path("pkg-config"), "finds libpng for the heat program";
    LibPng: "libpng-dev", ToolProgram::new("pkg-config").args(["--exists", "libpng"]).succeeds(),
        "the heat program reads and writes its pictures with it";
    CMake: "cmake", on_path("cmake"), "a test builds a CMake project with our compiler commands";
    Make: "make", on_path("make"), "CMake builds with it";
    PythonVenv: "python3-venv", ToolProgram::new("python3").args(["-c", "import venv, ensurepip"]).succeeds(),
        "`weft bench` keeps the other libraries in a Python environment";
    Scalapack: "scalapack-mpi-test", Path::new("/usr/lib/x86_64-linux-gnu/scalapack/mpich-tests/xdlu").exists(),
        "MPI programs with an answer to check, built by Debian for MPICH";
    MpichFortran: "libmpich-dev", Path::new("/usr/include/x86_64-linux-gnu/mpich/mpif.h").is_file(),
        "a Fortran program is compiled for MPICH's own library";
    NetPipe: "netpipe-mpich2", on_path("NPmpich2"), "an MPI program built by Debian for MPICH";
    IpRoute: "iproute2", on_path("ip"), "tests between hosts make network namespaces with `ip`";
    Redis: "redis-server", on_path("redis-server"), "the socket tests load it with redis-benchmark";
    Nginx: "nginx", on_path("nginx"), "the socket tests fetch files from it";
    Wrk: "wrk", on_path("wrk"), "loads nginx in the socket tests";
    Curl: "curl", on_path("curl"), "fetches files in the socket tests";
    Memcached: "memcached", on_path("memcached"), "the socket tests store and fetch with it";
    Postgres: "postgresql",
        std::fs::read_dir("/usr/lib/postgresql").is_ok_and(|mut versions| versions.next().is_some()),
        "the socket tests load it with pgbench";
    Iperf: "iperf3", on_path("iperf3"), "streams in the socket tests";
    Sockperf: "sockperf", on_path("sockperf"), "ping-pongs in the socket tests";
    Socat: "socat", on_path("socat"), "passes streams on in the socket tests";
    Dnsmasq: "dnsmasq-base", Path::new("/usr/sbin/dnsmasq").is_file(), "answers names in the socket tests";
    Nsd: "nsd", Path::new("/usr/sbin/nsd").is_file(), "a test publishes a cluster with it";
    Knot: "knot", Path::new("/usr/sbin/knotd").is_file(), "a test hands the zone of a cluster on to it";
    Dig: "bind9-dnsutils", on_path("dig"), "asks for names in the socket tests";
    Python: "python3", on_path("python3"), "runs servers and clients of the socket tests";
    Node: "nodejs", on_path("node"), "runs a web server and its client in the socket tests";
    Java: "default-jdk-headless", on_path("javac"), "runs a web server and its client in the socket tests";
    Pvm: "pvm-dev", on_path("pvmd") && Path::new("/usr/include/pvm3.h").is_file(),
        "daemons and tasks of the socket tests";
    OmniOrb: "omniorb-doc", Path::new("/usr/lib/omniorb/examples/echo/eg2_clt").is_file(),
        "objects and clients of the socket tests, built by Debian";
    Slurm: "slurm-wlm", ["slurmctld", "slurmd", "srun", "salloc"].into_iter().all(on_path),
        "jobs in an allocation of Slurm, and our programs under srun";
    Munge: "munge", on_path("munged"), "Slurm knows its users by it";
    Pmi2: "libpmi2-0-dev", Path::new("/usr/include/slurm/pmi2.h").is_file(),
        "a program that speaks PMI-2 is started by `weft run`";
    Pmix: "libpmix-dev", Path::new("/usr/lib/x86_64-linux-gnu/pmix2/include/pmix.h").is_file(),
        "our programs speak by it with launchers that speak PMIx, and `weft run` with others";
    OpenSsh: "openssh-server", on_path("sshd"), "jobs between hosts are started over it";
}

impl Need {
    /// The programs that the stage `sockets` runs as they are.
    pub const NETWORK_PROGRAMS: &[Need] = &[
        Need::CCompiler,
        Need::Redis,
        Need::Nginx,
        Need::Wrk,
        Need::Curl,
        Need::Memcached,
        Need::Postgres,
        Need::Iperf,
        Need::Sockperf,
        Need::Socat,
        Need::Dnsmasq,
        Need::Dig,
        Need::Python,
        Need::Node,
        Need::Java,
        Need::Pvm,
        Need::OmniOrb,
    ];

    /// The MPI programs that the stage `programs` runs as they are.
    pub const MPI_PROGRAMS: &[Need] =
        &[Need::PythonVenv, Need::Scalapack, Need::FortranCompiler, Need::MpichFortran, Need::NetPipe];

    /// The launchers of others, and their libraries.
    pub const LAUNCHERS: &[Need] = &[Need::PythonVenv, Need::Slurm, Need::Munge, Need::Pmi2, Need::Pmix];
    /// The name servers that the stage `programs` gives our zones to.
    pub const NAME_SERVERS: &[Need] = &[Need::Nsd, Need::Knot];
}

/// How packages can be installed here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum InstallWay {
    /// We are root.
    Root,
    /// `sudo` works without a password.
    Sudo,
    /// A person has to type it.
    ByHand,
}

/// Makes sure that everything in `needs` is there: installs it when we may, stops with the command to type otherwise.
pub fn provide(needs: &[Need]) -> Result<()> {
    let missing = missing(needs);
    if missing.is_empty() {
        return Ok(());
    }
    println!("this machine lacks:");
    for need in &missing {
        let (package, why) = need.package();
        println!("  {package:<20} {why}");
    }
    let packages: BTreeSet<&str> = missing.iter().map(|need| need.package().0).collect();
    let packages: Vec<&str> = packages.into_iter().collect();
    match way() {
        InstallWay::ByHand => bail!("{}", advice(on_path("apt-get"), &packages)),
        way => install(way, &packages)?,
    }
    still_missing(&missing)
}

/// Prints what is there and what is not; whether nothing is missing (any more).
pub fn doctor(install: bool) -> Result<bool> {
    if install {
        provide(Need::ALL)?;
    }
    for need in Need::ALL {
        let (package, why) = need.package();
        println!("{:<8} {package:<20} {why}", if need.is_there() { "there" } else { "missing" });
    }
    Ok(missing(Need::ALL).is_empty())
}

fn missing(needs: &[Need]) -> BTreeSet<Need> {
    needs.iter().copied().filter(|need| !need.is_there()).collect()
}

fn still_missing(needs: &BTreeSet<Need>) -> Result<()> {
    match needs.iter().find(|need| !need.is_there()) {
        Some(need) => bail!("package {} was installed, but what it should bring is not found", need.package().0),
        None => Ok(()),
    }
}

fn way() -> InstallWay {
    if !on_path("apt-get") {
        return InstallWay::ByHand;
    }
    if ToolProgram::new("id").args(["-u"]).output().is_ok_and(|id| id.trim() == "0") {
        return InstallWay::Root;
    }
    if ToolProgram::new("sudo").args(["-n", "true"]).succeeds() { InstallWay::Sudo } else { InstallWay::ByHand }
}

fn advice(has_apt: bool, packages: &[&str]) -> String {
    let packages = packages.join(" ");
    if has_apt {
        format!("may not install packages here; please type: sudo apt-get install -y {packages}")
    } else {
        format!("please install these with the system's package manager (Debian's names): {packages}")
    }
}

fn install(way: InstallWay, packages: &[&str]) -> Result<()> {
    let apt = |arguments: &[&str]| {
        let prefix: &[&str] = if way == InstallWay::Sudo { &["sudo", "-n"] } else { &[] };
        let line = prefix.iter().chain(&["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]).chain(arguments);
        let line: Vec<&str> = line.copied().collect();
        ToolProgram::new(line[0]).args(&line[1..]).run()
    };
    apt(&["update"])?;
    let mut arguments = vec!["install", "-y", "--no-install-recommends"];
    arguments.extend(packages);
    apt(&arguments)
}

/// Whether a program is found where a shell would look, or where only root's shell would.
fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).any(|dir| dir.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_a_command_one_can_type() {
        let text = advice(true, &["cmake", "libpng-dev"]);
        assert!(text.ends_with("sudo apt-get install -y cmake libpng-dev"), "{text}");
        assert!(advice(false, &["cmake"]).contains("cmake"));
    }

    #[test]
    fn programs_are_found_on_the_path_only_when_they_are_there() {
        assert!(on_path("sh"));
        assert!(!on_path("no-such-program-anywhere"));
    }
}
