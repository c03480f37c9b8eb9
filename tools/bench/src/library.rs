//! The libraries: how each compiles and starts a program, in an environment of its own.

use serde::Serialize;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, clap::ValueEnum)]
    #[serde(rename_all = "kebab-case")]
    pub enum LibraryName {
        Weft = "Weft",
        Mpich = "MPICH",
        Openmpi = "Open MPI",
        Intel = "Intel MPI",
    }
}

impl LibraryName {
    pub fn is_peer(self) -> bool {
        self != LibraryName::Weft
    }

    /// Packages to install, the first one named after the library itself.
    pub fn packages(self) -> &'static [&'static str] {
        match self {
            LibraryName::Weft => &[],
            LibraryName::Mpich => &["mpich"],
            LibraryName::Openmpi => &["openmpi"],
            LibraryName::Intel => &["impi-rt", "impi-devel"],
        }
    }
}

/// How many ranks, and whether each has a core of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    pub ranks: u32,
    pub bound: bool,
}

/// An installed library.
#[derive(Clone, Debug)]
pub struct Library {
    pub name: LibraryName,
    /// Holds bin/mpicc and the launcher.
    pub prefix: PathBuf,
    /// Of the package; what the program really loaded is asked at run time.
    pub version: String,
    pub tuned: bool,
}

/// Variables of one library that would change another one, or the loader for all of them. `WEFT_*` stay: they are
/// how a developer compares two settings, and no peer reads them.
const FOREIGN: [&str; 16] = [
    "MPI",
    "OMPI_",
    "OPAL_",
    "ORTE_",
    "PMIX_",
    "PRTE_",
    "PMI_",
    "HYDRA_",
    "I_MPI_",
    "FI_",
    "UCX_",
    "HWLOC_",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "SLURM_",
    "PYTHON",
];

impl Library {
    /// `mpicc -O2 source -o program`
    pub fn compile(&self, source: &Path, program: &Path) -> Command {
        let mut command = self.command("mpicc");
        command.args([OsStr::new("-O2"), source.as_os_str(), OsStr::new("-o"), program.as_os_str()]);
        command
    }

    /// The launcher with everything up to the program.
    pub fn launch(&self, placement: Placement) -> Command {
        let mut command = self.command(if self.name == LibraryName::Weft { "weft" } else { "mpiexec" });
        command.args(self.launch_options(placement));
        for (key, value) in self.settings(placement) {
            command.env(key, value);
        }
        command
    }

    /// As a person would type it, for the report.
    pub fn launch_text(&self, placement: Placement) -> String {
        let settings = self.settings(placement).into_iter().map(|(k, v)| format!("{k}={v} ")).collect::<String>();
        let launcher = if self.name == LibraryName::Weft { "weft" } else { "mpiexec" };
        format!("{settings}{launcher} {}", self.launch_options(placement).join(" "))
    }

    fn launch_options(&self, placement: Placement) -> Vec<String> {
        let Placement { ranks, bound } = placement;
        let words = match (self.name, bound) {
            (LibraryName::Weft, true) => "run --bind core",
            (LibraryName::Weft, false) => "run --bind none",
            (LibraryName::Mpich, true) => "-bind-to core",
            (LibraryName::Openmpi, true) => "--allow-run-as-root --bind-to core",
            // Without slots for so many ranks it refuses to start; it yields when idle of its own accord then.
            (LibraryName::Openmpi, false) => "--allow-run-as-root --oversubscribe",
            // Binds by default, and to nothing useful when ranks outnumber cores either: its own choice.
            (LibraryName::Mpich, false) | (LibraryName::Intel, _) => "",
        };
        let mut options: Vec<String> = words.split_whitespace().map(String::from).collect();
        options.extend(["-n".into(), ranks.to_string()]);
        options
    }

    /// With `--tuned`: what the manuals advise when ranks outnumber cores.
    fn settings(&self, placement: Placement) -> Vec<(&'static str, &'static str)> {
        if !self.tuned || placement.bound {
            return Vec::new();
        }
        match self.name {
            LibraryName::Weft => Vec::new(),
            LibraryName::Mpich => vec![("MPIR_CVAR_CH4_PROGRESS_THROTTLE", "1"), ("MPIR_CVAR_POLLS_BEFORE_YIELD", "1")],
            LibraryName::Openmpi => vec![("OMPI_MCA_mpi_yield_when_idle", "1")],
            LibraryName::Intel => vec![("I_MPI_THREAD_YIELD", "2"), ("I_MPI_SPIN_COUNT", "1")],
        }
    }

    /// A program of this library, with nothing in its environment that belongs to another one.
    pub fn command(&self, program: &str) -> Command {
        let bin = self.prefix.join("bin");
        let mut command = Command::new(bin.join(program));
        for (key, _) in std::env::vars_os() {
            let foreign = |name: &str| FOREIGN.iter().any(|f| name.starts_with(f));
            if key.to_str().is_some_and(foreign) {
                command.env_remove(&key);
            }
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(bin).chain(std::env::split_paths(&path));
        // A directory with a colon in its name cannot stand in PATH; the full path above is used then.
        if let Ok(path) = std::env::join_paths(paths) {
            command.env("PATH", path);
        }
        if self.name == LibraryName::Intel {
            command.env("I_MPI_ROOT", &self.prefix);
        }
        command
    }

    /// An error when `text`, the loaded library's own version text, is another library's.
    pub fn check_loaded(&self, text: &str) -> anyhow::Result<()> {
        let (all, own) = (["weft", "mpich", "open mpi", "intel"], self.name as usize);
        let text_lower = text.to_lowercase();
        anyhow::ensure!(text_lower.contains(all[own]), "the program loaded another library: {text:?}");
        Ok(())
    }
}

/// Finds Weft: `--weft-prefix`, else the prefix that this program is installed in.
pub fn find_weft(prefix: Option<&Path>) -> anyhow::Result<Library> {
    let prefix = match prefix {
        Some(p) => std::path::absolute(p)?,
        None => {
            let exe = std::env::current_exe()?;
            exe.parent().and_then(Path::parent).unwrap_or(Path::new("/")).to_path_buf()
        }
    };
    for program in ["weft", "mpicc"] {
        let path = prefix.join("bin").join(program);
        anyhow::ensure!(path.is_file(), "{} does not exist; --weft-prefix DIR says where Weft is", path.display());
    }
    Ok(Library { name: LibraryName::Weft, prefix, version: env!("CARGO_PKG_VERSION").into(), tuned: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(name: LibraryName, tuned: bool) -> Library {
        Library { name, prefix: "/opt/x".into(), version: "1".into(), tuned }
    }

    const PAIR: Placement = Placement { ranks: 2, bound: true };
    const CROWD: Placement = Placement { ranks: 8, bound: false };

    #[test]
    fn launch_lines_bind_when_ranks_fit_and_only_then() {
        let text = |name, placement| library(name, false).launch_text(placement);
        assert_eq!(text(LibraryName::Weft, PAIR), "weft run --bind core -n 2");
        assert_eq!(text(LibraryName::Weft, CROWD), "weft run --bind none -n 8");
        assert_eq!(text(LibraryName::Mpich, PAIR), "mpiexec -bind-to core -n 2");
        assert_eq!(text(LibraryName::Mpich, CROWD), "mpiexec -n 8");
        assert_eq!(text(LibraryName::Openmpi, CROWD), "mpiexec --allow-run-as-root --oversubscribe -n 8");
        assert_eq!(text(LibraryName::Intel, CROWD), "mpiexec -n 8");
    }

    #[test]
    fn tuning_touches_crowded_jobs_only_and_shows_in_the_text() {
        assert_eq!(library(LibraryName::Intel, true).launch_text(PAIR), "mpiexec -n 2");
        assert_eq!(
            library(LibraryName::Intel, true).launch_text(CROWD),
            "I_MPI_THREAD_YIELD=2 I_MPI_SPIN_COUNT=1 mpiexec -n 8"
        );
    }

    #[test]
    fn each_library_finds_its_own_programs_first() {
        let command = library(LibraryName::Mpich, false).launch(PAIR);
        assert_eq!(command.get_program(), "/opt/x/bin/mpiexec");
        let path = command.get_envs().find(|(k, _)| *k == "PATH").and_then(|(_, v)| v).unwrap();
        assert!(path.to_str().unwrap().starts_with("/opt/x/bin:"));
    }

    #[test]
    fn a_program_that_loaded_another_library_is_found_out() {
        let mpich = library(LibraryName::Mpich, false);
        mpich.check_loaded("MPICH Version: 5.0.2").unwrap();
        assert!(mpich.check_loaded("Open MPI v5.0.11").is_err());
    }

    #[test]
    fn a_missing_weft_names_the_file_and_the_option() {
        let e = find_weft(Some(Path::new("/nonexistent"))).unwrap_err().to_string();
        assert!(e.contains("/nonexistent/bin/weft") && e.contains("--weft-prefix"), "{e}");
    }
}
