//! The MPI libraries of others, from the Python package index, each in a virtual environment of its own.

use crate::build::target_directory;
use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

/// A library that ours is tested with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Mpich,
    OpenMpi,
    IntelMpi,
    /// Not a library, but Python's way to one; its command is `python`.
    Mpi4py,
}

impl Peer {
    fn package(self) -> &'static str {
        match self {
            Self::Mpich => "mpich",
            Self::OpenMpi => "openmpi",
            Self::IntelMpi => "impi-rt",
            Self::Mpi4py => "mpi4py",
        }
    }

    /// The file of this name among the library's commands, such as `mpicc` or `mpiexec`. The library is installed
    /// first if need be; where that fails the test fails, for a test that is skipped tests nothing.
    pub fn command(self, name: &str) -> PathBuf {
        let command = self.environment().join("bin").join(name);
        assert!(command.exists(), "{} has no command '{name}'", self.package());
        command
    }

    /// The header of this name that the library brings for its compiler commands.
    pub fn header(self, name: &str) -> PathBuf {
        let header = self.environment().join("include").join(name);
        assert!(header.exists(), "{} has no header '{name}'", self.package());
        header
    }

    /// The sources that the package was built from, with the tests of its authors.
    pub fn sources(self) -> PathBuf {
        let environment = self.environment();
        let installed = std::fs::read_to_string(environment.join("installed")).expect("what is installed");
        let wanted = format!("{}==", self.package());
        let version = installed.lines().find_map(|line| line.strip_prefix(&wanted)).expect("the package is installed");
        let sources = environment.join(format!("{}-{version}", self.package()));
        let lock = self.lock();
        if !sources.exists() {
            let package = format!("{wanted}{version}");
            let mut pip = Command::new(environment.join("bin/pip"));
            pip.args(["download", "--quiet", "--no-deps", "--no-binary", self.package(), &package]);
            run(pip.arg("--dest").arg(&environment));
            let archive = sources.with_file_name(format!("{}-{version}.tar.gz", self.package()));
            run(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(&environment));
        }
        drop(lock);
        sources
    }

    /// Held by the test that installs.
    fn lock(self) -> File {
        let peers = target_directory().join("peers");
        std::fs::create_dir_all(&peers).expect("a place for peers");
        let lock = File::create(peers.join(format!("{}.lock", self.package()))).expect("a lock file");
        lock.lock().expect("one test at a time installs");
        lock
    }

    /// The virtual environment with the library in it.
    fn environment(self) -> PathBuf {
        let environment = target_directory().join("peers").join(self.package());
        let _lock = self.lock();
        // What is installed, as `weft bench` has it there, so that it finds these as its own.
        let ready = environment.join("installed");
        if std::fs::read(&ready).map_or(true, |versions| versions.is_empty()) {
            run(Command::new("python3").args(["-m", "venv"]).arg(&environment));
            let pip = environment.join("bin/pip");
            run(Command::new(&pip).args(["install", "--quiet", self.package()]));
            let versions = run(Command::new(&pip).args(["list", "--format=freeze", "--disable-pip-version-check"]));
            std::fs::write(ready, versions).expect("a mark that it is complete");
        }
        environment
    }
}

/// What the command prints.
fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    assert!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
