//! A program that is started by its own name, with `WEFT_PARTITION` or `WEFT_RANKS` in the environment, becomes
//! `weft run` of itself before its `main` begins. It keeps its process, so shells see it as one program: `time` counts
//! its ranks, `&`, Ctrl-Z and `kill` work on it.
//!
//! Ranks, and what they start, are left alone: they know their job (`WEFT_JOB`). So are programs of other launchers.
//! Where a library is loaded after `main` has begun, by Python's import, what the program has done before would be done
//! again: there a line says what to type.
//!
//! Test: `cargo test -p weft-tests --test cluster`.

use crate::is_launched;
use crate::spawn::find_weft;
use std::ffi::{CStr, OsStr, OsString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

const VARIABLES: [&str; 2] = ["WEFT_PARTITION", "WEFT_RANKS"];
/// What a shell says of a command that cannot be started.
const NOT_STARTED: i32 = 126;

/// To be called by the constructor of a library, which exports a function of this `name` at this address.
pub fn begin(name: &CStr, at: *const ()) {
    crate::distress::watch();
    let is_meant = VARIABLES.iter().any(|variable| is_set(variable)) && !is_set("WEFT_JOB");
    if is_meant && !has_other_rights() && !is_launched() {
        become_launcher(name, at);
    }
}

/// Whether the program has rights that its user has not: the environment would name what it starts.
fn has_other_rights() -> bool {
    // SAFETY: asks for a number.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// Whether the library came with the program, or is in it: what is opened later is not found from the program's own
/// place when its constructors run.
fn came_with_program(name: &CStr, at: *const ()) -> bool {
    // SAFETY: opens what is open for as long as the process lives, and asks for an address.
    let found = unsafe {
        let program = libc::dlopen(std::ptr::null(), libc::RTLD_LAZY);
        if program.is_null() { program } else { libc::dlsym(program, name.as_ptr()) }
    };
    // SAFETY: asks for a number.
    let entry = unsafe { libc::getauxval(libc::AT_ENTRY) } as *const c_void;
    std::ptr::eq(found, at.cast()) || object_of(at.cast()) == object_of(entry)
}

/// Where the object begins in memory that holds this address.
fn object_of(at: *const c_void) -> *mut c_void {
    // SAFETY: zeros are a value of this structure, which the call fills.
    unsafe {
        let mut found: libc::Dl_info = std::mem::zeroed();
        libc::dladdr(at, &mut found);
        found.dli_fbase
    }
}

#[cold]
fn become_launcher(name: &CStr, at: *const ()) {
    if !came_with_program(name, at) {
        eprintln!(
            "weft: WEFT_PARTITION or WEFT_RANKS is set, but this program has loaded Weft after it began, so it runs alone; \
             weft run starts it on several ranks: weft run -- COMMAND"
        );
        return;
    }
    let error = match (find_weft(), std::env::current_exe()) {
        (Some(weft), Ok(program)) => Command::new(weft).args(["run", "--"]).arg(program).args(arguments()).exec(),
        (None, _) => std::io::Error::other("no weft is beside the library, and none is in PATH"),
        (_, Err(error)) => error,
    };
    eprintln!("weft: WEFT_PARTITION or WEFT_RANKS is set, but weft run cannot be started: {error}");
    // The program has not begun, and shall not run alone.
    // SAFETY: ends the process.
    unsafe { libc::_exit(NOT_STARTED) }
}

/// Those behind the program's name. The standard library may not have them yet.
fn arguments() -> Vec<OsString> {
    let all = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let words = all.strip_suffix(&[0]).unwrap_or(&all).split(|byte| *byte == 0);
    words.skip(1).map(|word| OsStr::from_bytes(word).to_owned()).collect()
}
