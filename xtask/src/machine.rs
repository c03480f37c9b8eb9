//! What the machine must have beyond git, a Rust toolchain and a C compiler, and how it gets there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::command::Program;

/// Something outside the repository that a command needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Need {
    CCompiler,
    CxxCompiler,
    FortranCompiler,
    PkgConfig,
    LibPng,
    CMake,
    Make,
    PythonVenv,
    Scalapack,
    MpichFortran,
    NetPipe,
    IpRoute,
    Redis,
    Nginx,
    Wrk,
    Curl,
    Memcached,
    Postgres,
    Iperf,
    Sockperf,
    Socat,
    Dnsmasq,
    Nsd,
    Knot,
    Dig,
    Python,
    Node,
    Java,
    Pvm,
    OmniOrb,
    Slurm,
    Munge,
    Pmi2,
    Pmix,
    OpenSsh,
}

impl Need {
    const ALL: [Need; 35] = [
        Need::CCompiler,
        Need::CxxCompiler,
        Need::FortranCompiler,
        Need::PkgConfig,
        Need::LibPng,
        Need::CMake,
        Need::Make,
        Need::PythonVenv,
        Need::Scalapack,
        Need::MpichFortran,
        Need::NetPipe,
        Need::IpRoute,
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
        Need::Nsd,
        Need::Knot,
        Need::Dig,
        Need::Python,
        Need::Node,
        Need::Java,
        Need::Pvm,
        Need::OmniOrb,
        Need::Slurm,
        Need::Munge,
        Need::Pmi2,
        Need::Pmix,
        Need::OpenSsh,
    ];

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

    /// Debian's package and what it is needed for.
    fn package(self) -> (&'static str, &'static str) {
        match self {
            Need::CCompiler => ("gcc", "compiles C programs for `weft cc`"),
            Need::CxxCompiler => ("g++", "compiles C++ programs for `weft c++`"),
            Need::FortranCompiler => ("gfortran", "compiles Fortran programs for `weft fc`"),
            Need::PkgConfig => ("pkg-config", "finds libpng for the heat program"),
            Need::LibPng => ("libpng-dev", "the heat program reads and writes its pictures with it"),
            Need::CMake => ("cmake", "a test builds a CMake project with our compiler commands"),
            Need::Make => ("make", "CMake builds with it"),
            Need::Scalapack => {
                ("scalapack-mpi-test", "MPI programs with an answer to check, built by Debian for MPICH")
            }
            Need::MpichFortran => ("libmpich-dev", "a Fortran program is compiled for MPICH's own library"),
            Need::NetPipe => ("netpipe-mpich2", "an MPI program built by Debian for MPICH"),
            Need::PythonVenv => ("python3-venv", "`weft bench` keeps the other libraries in a Python environment"),
            Need::IpRoute => ("iproute2", "tests between hosts make network namespaces with `ip`"),
            Need::Redis => ("redis-server", "the socket tests load it with redis-benchmark"),
            Need::Nginx => ("nginx", "the socket tests fetch files from it"),
            Need::Wrk => ("wrk", "loads nginx in the socket tests"),
            Need::Curl => ("curl", "fetches files in the socket tests"),
            Need::Memcached => ("memcached", "the socket tests store and fetch with it"),
            Need::Postgres => ("postgresql", "the socket tests load it with pgbench"),
            Need::Iperf => ("iperf3", "streams in the socket tests"),
            Need::Sockperf => ("sockperf", "ping-pongs in the socket tests"),
            Need::Socat => ("socat", "passes streams on in the socket tests"),
            Need::Dnsmasq => ("dnsmasq-base", "answers names in the socket tests"),
            Need::Nsd => ("nsd", "a test publishes a cluster with it"),
            Need::Knot => ("knot", "a test hands the zone of a cluster on to it"),
            Need::Dig => ("bind9-dnsutils", "asks for names in the socket tests"),
            Need::Python => ("python3", "runs servers and clients of the socket tests"),
            Need::Node => ("nodejs", "runs a web server and its client in the socket tests"),
            Need::Pvm => ("pvm-dev", "daemons and tasks of the socket tests"),
            Need::OmniOrb => ("omniorb-doc", "objects and clients of the socket tests, built by Debian"),
            Need::Slurm => ("slurm-wlm", "jobs in an allocation of Slurm, and our programs under srun"),
            Need::Munge => ("munge", "Slurm knows its users by it"),
            Need::Pmi2 => ("libpmi2-0-dev", "a program that speaks PMI-2 is started by `weft run`"),
            Need::Pmix => {
                ("libpmix-dev", "our programs speak by it with launchers that speak PMIx, and `weft run` with others")
            }
            Need::OpenSsh => ("openssh-server", "jobs between hosts are started over it"),
            Need::Java => ("default-jdk-headless", "runs a web server and its client in the socket tests"),
        }
    }

    fn is_there(self) -> bool {
        match self {
            Need::CCompiler => on_path("cc"),
            Need::CxxCompiler => on_path("c++"),
            Need::FortranCompiler => on_path("gfortran"),
            Need::PkgConfig => on_path("pkg-config"),
            Need::LibPng => Program::new("pkg-config").args(["--exists", "libpng"]).succeeds(),
            Need::CMake => on_path("cmake"),
            Need::Make => on_path("make"),
            Need::PythonVenv => Program::new("python3").args(["-c", "import venv, ensurepip"]).succeeds(),
            Need::IpRoute => on_path("ip"),
            Need::Scalapack => Path::new("/usr/lib/x86_64-linux-gnu/scalapack/mpich-tests/xdlu").exists(),
            Need::MpichFortran => Path::new("/usr/include/x86_64-linux-gnu/mpich/mpif.h").is_file(),
            Need::NetPipe => on_path("NPmpich2"),
            Need::Redis => on_path("redis-server"),
            Need::Nginx => on_path("nginx"),
            Need::Wrk => on_path("wrk"),
            Need::Curl => on_path("curl"),
            Need::Memcached => on_path("memcached"),
            Need::Postgres => {
                std::fs::read_dir("/usr/lib/postgresql").is_ok_and(|mut versions| versions.next().is_some())
            }
            Need::Iperf => on_path("iperf3"),
            Need::Sockperf => on_path("sockperf"),
            Need::Socat => on_path("socat"),
            Need::Dnsmasq => Path::new("/usr/sbin/dnsmasq").is_file(),
            Need::Nsd => Path::new("/usr/sbin/nsd").is_file(),
            Need::Knot => Path::new("/usr/sbin/knotd").is_file(),
            Need::Dig => on_path("dig"),
            Need::Python => on_path("python3"),
            Need::Node => on_path("node"),
            Need::Java => on_path("javac"),
            Need::OmniOrb => Path::new("/usr/lib/omniorb/examples/echo/eg2_clt").is_file(),
            Need::Slurm => ["slurmctld", "slurmd", "srun", "salloc"].into_iter().all(on_path),
            Need::Munge => on_path("munged"),
            Need::Pmi2 => Path::new("/usr/include/slurm/pmi2.h").is_file(),
            Need::Pmix => Path::new("/usr/lib/x86_64-linux-gnu/pmix2/include/pmix.h").is_file(),
            Need::OpenSsh => on_path("sshd"),
            Need::Pvm => on_path("pvmd") && Path::new("/usr/include/pvm3.h").is_file(),
        }
    }
}

/// How packages can be installed here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
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
        Way::ByHand => bail!("{}", advice(on_path("apt-get"), &packages)),
        way => install(way, &packages)?,
    }
    still_missing(&missing)
}

/// Prints what is there and what is not; whether nothing is missing (any more).
pub fn doctor(install: bool) -> Result<bool> {
    if install {
        provide(&Need::ALL)?;
    }
    for need in Need::ALL {
        let (package, why) = need.package();
        println!("{:<8} {package:<20} {why}", if need.is_there() { "there" } else { "missing" });
    }
    Ok(missing(&Need::ALL).is_empty())
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

fn way() -> Way {
    if !on_path("apt-get") {
        return Way::ByHand;
    }
    if Program::new("id").args(["-u"]).output().is_ok_and(|id| id.trim() == "0") {
        return Way::Root;
    }
    if Program::new("sudo").args(["-n", "true"]).succeeds() { Way::Sudo } else { Way::ByHand }
}

fn advice(has_apt: bool, packages: &[&str]) -> String {
    let packages = packages.join(" ");
    if has_apt {
        format!("may not install packages here; please type: sudo apt-get install -y {packages}")
    } else {
        format!("please install these with the system's package manager (Debian's names): {packages}")
    }
}

fn install(way: Way, packages: &[&str]) -> Result<()> {
    let apt = |arguments: &[&str]| {
        let prefix: &[&str] = if way == Way::Sudo { &["sudo", "-n"] } else { &[] };
        let line = prefix.iter().chain(&["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]).chain(arguments);
        let line: Vec<&str> = line.copied().collect();
        Program::new(line[0]).args(&line[1..]).run()
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
