//! The settings of this library, read once when it is loaded.

use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use weft_fabric::stream::{WANTED_VARIABLE, WantedTally};
use weft_fabric::{Ports, Settings, SocketLog};

/// Spin bound where nothing is said, in nanoseconds.
pub const SPIN_NS: u64 = 50_000;

static ATTACH_CALLS: AtomicU32 = AtomicU32::new(4);
static SPIN_BOUND_NS: AtomicU64 = AtomicU64::new(SPIN_NS);
static SPIN_FIXED: AtomicBool = AtomicBool::new(false);
static ONLY: OnceLock<Ports> = OnceLock::new();
static LOG: AtomicU32 = AtomicU32::new(0);
/// What `WEFT_SOCK_STATS` says.
static REPORT: OnceLock<OsString> = OnceLock::new();
static UDP: AtomicBool = AtomicBool::new(true);

/// The names of programs that are left alone, with commas between them. Not a setting of the user's: `weft sock --not`.
const NOT: &str = "WEFT_SOCK_NOT";

/// Reads the environment. False when a setting is refused, and what is wrong was said, or when this program is to be
/// left alone.
pub fn read() -> bool {
    if std::env::var_os(NOT).is_some_and(|names| program_names().any(|name| is_listed(&names, &name))) {
        return false;
    }
    let _ = REPORT.set(std::env::var_os(WANTED_VARIABLE).unwrap_or_default());
    match Settings::from_env(std::env::vars_os()) {
        Ok(settings) => {
            keep(&settings);
            true
        }
        Err(errors) => {
            for error in errors {
                super::log::line(format_args!("sockets are not accelerated: {error}"));
            }
            false
        }
    }
}

/// What this program is called: the file that was started (a script's own name) and the one that runs (its
/// interpreter).
fn program_names() -> impl Iterator<Item = OsString> {
    // SAFETY: the kernel's word for a process; where it is not null it is a string that lives as long as the process.
    let started = unsafe {
        let path = libc::getauxval(libc::AT_EXECFN) as *const c_char;
        (!path.is_null()).then(|| OsStr::from_bytes(CStr::from_ptr(path).to_bytes()).to_owned())
    };
    let runs = std::env::current_exe().ok().map(PathBuf::into_os_string);
    [started, runs].into_iter().flatten().filter_map(|path| Path::new(&path).file_name().map(OsStr::to_owned))
}

fn is_listed(names: &OsStr, name: &OsStr) -> bool {
    names.as_bytes().split(|byte| *byte == b',').any(|listed| listed.trim_ascii() == name.as_bytes())
}

fn keep(settings: &Settings) {
    let calls = settings.sock_attach_calls.map_or(u32::MAX, |calls| calls as u32);
    ATTACH_CALLS.store(calls, Ordering::Relaxed);
    SPIN_BOUND_NS.store(settings.sock_spin_us.map_or(SPIN_NS, |us| us * 1000), Ordering::Relaxed);
    SPIN_FIXED.store(settings.sock_spin_us.is_some(), Ordering::Relaxed);
    let _ = ONLY.set(settings.sock_only);
    let level = match settings.sock_log {
        SocketLog::Off => 0,
        SocketLog::Fallbacks => 1,
        SocketLog::All => 2,
    };
    LOG.store(level, Ordering::Relaxed);
    UDP.store(settings.sock_udp, Ordering::Relaxed);
}

/// After how many data calls a connection is offered.
pub fn attach_calls() -> u32 {
    ATTACH_CALLS.load(Ordering::Relaxed)
}

/// The longest busy wait, and whether the user has said it.
pub fn spin_bound_ns() -> (u64, bool) {
    (SPIN_BOUND_NS.load(Ordering::Relaxed), SPIN_FIXED.load(Ordering::Relaxed))
}

/// Whether the user's rules allow connections with this port.
pub fn port_allowed(port: u16) -> bool {
    ONLY.get().is_none_or(|ports| ports.contains(port))
}

/// 0: nothing is logged; 1: what fell back; 2: all.
pub fn log_level() -> u32 {
    LOG.load(Ordering::Relaxed)
}

/// Whether datagrams are accelerated, too.
pub fn udp() -> bool {
    UDP.load(Ordering::Relaxed)
}

/// Calls `write` with the descriptor to which this process is to say what it has counted, if it is to say anything.
pub fn to_report(write: impl FnOnce(c_int)) {
    match REPORT.get().map_or(WantedTally::Nothing, |value| WantedTally::of(value)) {
        WantedTally::Nothing => {}
        WantedTally::Said => write(libc::STDERR_FILENO),
        WantedTally::File(path) => {
            if let Ok(file) = std::fs::File::options().append(true).create(true).open(path) {
                write(file.as_raw_fd());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_left_alone_by_its_whole_name_only() {
        let listed = |names: &str, name: &str| is_listed(OsStr::new(names), OsStr::new(name));
        assert!(listed("ssh,git", "ssh") && listed("ssh, git", "git") && listed("git", "git"));
        assert!(
            !listed("ssh,git", "gi") && !listed("sshd", "ssh") && !listed("", "ssh") && !listed("ssh,git", "ssh,git")
        );
    }

    #[test]
    fn a_program_knows_its_names() {
        let own = std::env::current_exe().unwrap();
        assert!(program_names().any(|name| Some(name.as_os_str()) == own.file_name()));
    }
}
