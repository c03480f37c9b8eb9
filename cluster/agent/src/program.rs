//! Finding the programs of a job before anything is started, so that a slip is one clear line.

use crate::libraries::{self, Abi};
use crate::sys;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use weft_cluster::job::Program;
use weft_wire::settings::Pmix;

/// A program that cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    #[error("program '{}' does not exist", .path.display())]
    Missing { path: PathBuf },
    #[error("program '{name}' is not in PATH; one in the current directory is written './{name}'")]
    NotInPath { name: String },
    #[error("program '{}' is a {what}, not an executable file", .path.display())]
    NotAFile { path: PathBuf, what: &'static str },
    #[error("program '{}' is not executable (chmod +x makes it so)", .path.display())]
    NotExecutable { path: PathBuf },
    #[error("working directory '{}' is not a directory that exists", .path.display())]
    BadDirectory { path: PathBuf },
    #[error(
        "program '{}' is linked with Open MPI ({library}), which wants PMIx of its launcher: with WEFT_PMIX=off it would run \
         as {ranks} jobs of one rank", .path.display()
    )]
    ForeignMpi { path: PathBuf, library: String, ranks: usize },
}

impl ProgramError {
    /// By the custom of shells: 127 not found, 126 not executable.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Missing { .. } | Self::NotInPath { .. } => 127,
            Self::NotAFile { .. } | Self::NotExecutable { .. } => 126,
            Self::BadDirectory { .. } | Self::ForeignMpi { .. } => 1,
        }
    }
}

/// The file to execute. A name with a `/` is looked up from the program's working directory, as if it had been
/// typed there; another one in `PATH` (the program's own, when it is given one).
pub fn find(program: &Program) -> Result<PathBuf, ProgramError> {
    let directory = directory(program)?;
    let name = Path::new(&program.program);
    if !program.program.contains('/') {
        return find_in_path(program, &directory);
    }
    // Components such as `.` say nothing in a message.
    let path: PathBuf = directory.join(name).components().collect();
    check(&path).map(|()| path)
}

/// Whether the ranks of a program that needs these libraries are to have a PMIx server. One of Open MPI's that runs
/// alone needs none.
///
/// # Errors
/// It needs one, and that is switched off.
pub fn wants_pmix(path: &Path, needed: &[String], ranks: usize, setting: Pmix) -> Result<bool, ProgramError> {
    let of_open_mpi = libraries::mpi_among(needed).filter(|(_, abi)| ranks > 1 && *abi == Abi::OpenMpi);
    match (setting, of_open_mpi) {
        (Pmix::On, _) | (Pmix::Auto, Some(_)) => Ok(true),
        (Pmix::Off, Some((library, _))) => Err(ProgramError::ForeignMpi { path: path.to_path_buf(), library, ranks }),
        (Pmix::Off, None) => Ok(false),
        (Pmix::Auto, None) => Ok(needed.iter().any(|library| library == weft_pmix::LIBRARY)),
    }
}

fn directory(program: &Program) -> Result<PathBuf, ProgramError> {
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    match &program.directory {
        None => Ok(here),
        Some(given) => {
            let path = here.join(given);
            if path.is_dir() { Ok(path) } else { Err(ProgramError::BadDirectory { path: given.clone() }) }
        }
    }
}

fn find_in_path(program: &Program, directory: &Path) -> Result<PathBuf, ProgramError> {
    let own = program.environment.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.into());
    let path = own.or_else(|| std::env::var_os("PATH")).unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let mut refused = None;
    for place in std::env::split_paths(&path) {
        let candidate = directory.join(place).join(&program.program);
        match check(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(ProgramError::Missing { .. }) => {}
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.unwrap_or_else(|| ProgramError::NotInPath { name: program.program.clone() }))
}

fn check(path: &Path) -> Result<(), ProgramError> {
    let path_buf = || path.to_path_buf();
    let metadata = std::fs::metadata(path).map_err(|_| ProgramError::Missing { path: path_buf() })?;
    if metadata.is_dir() {
        return Err(ProgramError::NotAFile { path: path_buf(), what: "directory" });
    }
    if !metadata.is_file() {
        return Err(ProgramError::NotAFile { path: path_buf(), what: "special file" });
    }
    if may_execute(path.as_os_str()) { Ok(()) } else { Err(ProgramError::NotExecutable { path: path_buf() }) }
}

fn may_execute(path: &OsStr) -> bool {
    CString::new(path.as_bytes()).is_ok_and(|path| sys::may_execute(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str) -> Program {
        Program { program: name.into(), ranks: 1, ..Program::default() }
    }

    #[test]
    fn each_slip_has_its_own_message() {
        let text = |program: &Program| find(program).unwrap_err().to_string();
        assert!(text(&program("/no/such")).contains("'/no/such' does not exist"));
        assert!(text(&program("no-such-program-anywhere")).contains("not in PATH"));
        assert!(text(&program("/usr")).contains("is a directory"));
        assert!(text(&program("/dev/null")).contains("special file"));
        assert!(text(&program("/etc/passwd")).contains("not executable"));
        let lost = Program { directory: Some("/no/such".into()), ..program("/bin/true") };
        assert!(text(&lost).contains("working directory '/no/such'"));
    }

    #[test]
    fn name_is_found_in_path_and_relative_path_from_the_working_directory() {
        assert!(find(&program("true")).unwrap().ends_with("bin/true"));
        let relative = Program { directory: Some("/".into()), ..program("bin/true") };
        assert_eq!(find(&relative).unwrap(), Path::new("/bin/true"));
        let own = Program { environment: vec![("PATH".into(), "/none".into())], ..program("true") };
        assert!(find(&own).is_err());
    }
}
