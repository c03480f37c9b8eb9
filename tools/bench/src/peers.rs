//! The other libraries: Python wheels, each in a virtual environment of its own, installed once and kept.
//!
//! One environment each, because the wheels bring files of the same name (`mpicc`, `libfabric.so.1`) and do not work
//! together. A peer counts as installed when its marker file is there; what an interrupted installation left is
//! removed.

use crate::library::{Library, LibraryName};
use crate::process;
use anyhow::{Context, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::{self, File};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Holds `package==version` lines once everything is in place.
const MARKER: &str = "installed";
const INSTALL_LIMIT: Duration = Duration::from_secs(900);

/// Whether to install, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallMode {
    /// Install what is missing.
    Missing,
    /// Install what is missing, bring the rest to the newest version.
    Update,
    /// Only use what is there.
    Offline,
}

/// `$XDG_CACHE_HOME/weft/peers`, else `~/.cache/weft/peers`.
pub fn default_directory() -> anyhow::Result<PathBuf> {
    directory_in(std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from), std::env::var_os("HOME").map(PathBuf::from))
}

fn directory_in(cache: Option<PathBuf>, home: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let cache = cache.filter(|c| c.is_absolute()).or(home.map(|h| h.join(".cache")));
    Ok(cache
        .context("neither HOME nor XDG_CACHE_HOME is set; --peers-dir DIR says where the peers go")?
        .join("weft/peers"))
}

/// The peer `name` under `directory`, installed if need be, with its compiler.
pub fn provide(name: LibraryName, directory: &Path, mode: InstallMode, tuned: bool) -> anyhow::Result<Library> {
    let library = provide_runtime(name, directory, mode)?;
    ensure!(library.prefix.join("bin/mpicc").is_file(), "its wheel has no mpicc");
    Ok(Library { tuned, ..library })
}

/// The same, of which nothing is asked but to run programs.
pub fn provide_runtime(name: LibraryName, directory: &Path, mode: InstallMode) -> anyhow::Result<Library> {
    let package = name.packages()[0];
    let prefix = directory.join(package);
    if mode != InstallMode::Offline {
        fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
        // One installation at a time, whoever else runs this program.
        let lock = File::create(directory.join("lock"))?;
        lock.lock().context("cannot lock the peers directory")?;
        if !prefix.join(MARKER).is_file() || mode == InstallMode::Update {
            install(name, &prefix)?;
        }
    }
    let versions = fs::read_to_string(prefix.join(MARKER));
    let versions = versions.with_context(|| format!("{} is not installed in {}", name.title(), directory.display()))?;
    let version = version_of(package, &versions).with_context(|| format!("no version of {package} in {versions:?}"))?;
    Ok(Library { name, prefix, version, tuned: false })
}

fn version_of(package: &str, freeze: &str) -> Option<String> {
    freeze.lines().find_map(|l| l.strip_prefix(package)?.strip_prefix("==")).map(|v| v.trim().to_string())
}

fn install(name: LibraryName, prefix: &Path) -> anyhow::Result<()> {
    let packages = name.packages().join(" ");
    let told = progress(&format!("installing {} ({packages}) into {}", name.title(), prefix.display()));
    let done = install_quietly(name, prefix);
    told.finish_and_clear();
    if done.is_err() && !prefix.join(MARKER).is_file() {
        // Best effort: without its marker the next run removes it anyway.
        let _ = fs::remove_dir_all(prefix);
    }
    done
}

fn install_quietly(name: LibraryName, prefix: &Path) -> anyhow::Result<()> {
    if !prefix.join(MARKER).is_file() {
        if prefix.exists() {
            fs::remove_dir_all(prefix).with_context(|| format!("cannot remove {}", prefix.display()))?;
        }
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(prefix);
        let hint = "python3 with its venv module is needed (Debian: apt install python3-venv)";
        run(venv).context(hint)?;
    }
    let python = prefix.join("bin/python");
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--upgrade"]);
    pip.args(name.packages());
    run(pip).context("pip could not install it")?;
    let mut list = Command::new(&python);
    list.args(["-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"]);
    let versions = run(list)?;
    let partial = prefix.join("installed.partial");
    fs::write(&partial, versions)?;
    Ok(fs::rename(partial, prefix.join(MARKER))?)
}

fn run(mut command: Command) -> anyhow::Result<String> {
    for variable in ["PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV"] {
        command.env_remove(variable);
    }
    let outcome = process::run(command, INSTALL_LIMIT)?;
    match outcome.check() {
        Ok(()) => Ok(outcome.stdout),
        Err(e) => bail!(e),
    }
}

/// A line that shows that something goes on: moving on a terminal, printed once elsewhere.
fn progress(text: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        eprintln!("{text}");
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})").expect("the template is constant");
    let bar = ProgressBar::new_spinner().with_style(style).with_message(text.to_string());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_directory_follows_the_environment() {
        let of = |cache: Option<&str>, home: Option<&str>| directory_in(cache.map(Into::into), home.map(Into::into));
        assert_eq!(of(Some("/c"), Some("/h")).unwrap(), Path::new("/c/weft/peers"));
        assert_eq!(of(None, Some("/h")).unwrap(), Path::new("/h/.cache/weft/peers"));
        // The XDG specification: relative paths there are to be ignored.
        assert_eq!(of(Some("c"), Some("/h")).unwrap(), Path::new("/h/.cache/weft/peers"));
        assert!(of(None, None).unwrap_err().to_string().contains("--peers-dir"));
    }

    #[test]
    fn versions_are_read_from_the_list_of_packages() {
        let freeze = "impi-devel==2021.18.1\nimpi-rt==2021.18.1\npip==23.2.1\n";
        assert_eq!(version_of("impi-rt", freeze).as_deref(), Some("2021.18.1"));
        assert_eq!(version_of("impi", freeze), None);
    }

    #[test]
    fn offline_without_the_peer_says_so_and_creates_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let e = provide(LibraryName::Mpich, dir.path(), InstallMode::Offline, false).unwrap_err().to_string();
        assert!(e.contains("MPICH is not installed"), "{e}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
