//! From `p4_initenv` to `p4_wait_for_end`.
//!
//! Alone on a host, the first process makes the memory that the cluster shares in `p4_initenv`, so that the program can
//! use `p4_shmalloc` at once, and a segment for so many processes as the procgroup says in `p4_create_procgroup`. It
//! forks the others there, and each joins the segment as a member. Where a launcher has started the process, all of
//! that is given, and no procgroup is read. A procgroup with several clusters makes the process a launcher (`launch`).

use crate::arguments::{self, GivenArguments};
use crate::failure::{self, fail};
use crate::place::{self, MESSENGER};
use crate::procgroup::{self, ProcgroupEntry};
use crate::{area, family, launch, together};
use std::ffi::{CStr, c_char, c_int};
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use weft_fabric::Segment;
use weft_ports::{Endpoint, InterfaceName};

/// Bytes that `p4_shmalloc` has by default, and the variable that says how many. They are used as they are touched.
const MEMORY: usize = 64 << 20;
const MEMORY_VARIABLE: &str = "P4_GLOBMEMSIZE";

/// What launchers tell a process of its job by.
const LAUNCHED_BY: [&str; 2] = ["WEFT_SEGMENT", "PMI_FD"];

/// What the user has given, and the program's name.
static GIVEN: OnceLock<(GivenArguments, String)> = OnceLock::new();
/// Whether the others were started, or need not be.
static IS_STARTED: AtomicBool = AtomicBool::new(false);

/// Begins, and takes P4's own arguments away.
///
/// # Safety
/// The arguments are as `main` has them: so many C strings.
pub unsafe fn begin(argc: *mut c_int, argv: *mut *mut c_char) {
    place::beginning();
    let count = if argc.is_null() || argv.is_null() {
        0
    } else {
        // SAFETY: the caller's promise.
        unsafe { *argc }.max(0) as usize
    };
    // SAFETY: the caller's promise.
    let pointers: Vec<*mut c_char> = (0..count).map(|at| unsafe { *argv.add(at) }).collect();
    // SAFETY: the caller's promise.
    let words = pointers.iter().map(|word| unsafe { CStr::from_ptr(*word) }.to_string_lossy().into_owned());
    let words: Vec<String> = words.collect();
    let (given, left) = GivenArguments::take(&words).unwrap_or_else(|wrong| fail(&format!("p4_initenv: {wrong}"), -1));
    if count > 0 {
        for (to, from) in left.iter().enumerate() {
            // SAFETY: `left` names some of the places, in their order.
            unsafe { *argv.add(to) = pointers[*from] };
        }
        // SAFETY: as above; after the last argument there is a place for null.
        unsafe {
            *argv.add(left.len()) = std::ptr::null_mut();
            *argc = left.len() as c_int;
        }
    }
    let is_launched = LAUNCHED_BY.iter().any(|variable| std::env::var_os(variable).is_some());
    if !is_launched
        && let Ok(entries) = read_procgroup(&given, words.first().map_or("", String::as_str))
        && entries.len() > 1
    {
        // Of what P4 is told, the launched processes need what stands in the procgroup no more.
        let arguments: Vec<String> = left.iter().skip(1).map(|at| words[*at].clone()).collect();
        fail(&launch::become_launcher(&words[0], &arguments, &entries), -1);
    }
    follow(&given);
    let bytes = given.memory.unwrap_or_else(memory_of_environment);
    let program = words.first().cloned().unwrap_or_default();
    if GIVEN.set((given, program)).is_err() {
        fail("p4_initenv: P4 was begun already", -1);
    }
    let register = area::create(bytes);
    family::begin(register.unwrap_or_else(|error| fail(&format!("no {bytes} bytes of shared memory: {error}"), -1)));
    if is_launched {
        join_launched();
    } else {
        place::settle(0, 1, true);
        family::note(0);
    }
}

fn memory_of_environment() -> usize {
    let Some(value) = std::env::var_os(MEMORY_VARIABLE) else { return MEMORY };
    let bytes = value.to_str().and_then(|value| value.parse().ok());
    bytes.unwrap_or_else(|| {
        fail(&format!("{MEMORY_VARIABLE} is '{}', allowed is a number of bytes", value.to_string_lossy()), -1)
    })
}

fn follow(given: &GivenArguments) {
    if given.wants_help || given.wants_version {
        println!("P4 1.4b over Weft {}", env!("CARGO_PKG_VERSION"));
    }
    if given.wants_help {
        println!("{}", arguments::HELP);
        std::process::exit(0);
    }
    given.debug_level.into_iter().for_each(place::set_debug_level);
    if let Some(Err(error)) = given.directory.as_ref().map(std::env::set_current_dir) {
        fail(&format!("-p4wd: no such directory to work in: {error}"), -1);
    }
    if let Some(output) = &given.output {
        print_to(output);
    }
}

/// What the process prints goes to a file from now on.
fn print_to(output: &Path) {
    let file = File::create(output).unwrap_or_else(|error| fail(&format!("-p4out {}: {error}", output.display()), -1));
    for stream in [1, 2] {
        // SAFETY: descriptors of this process; what the second one was is closed, as is meant.
        unsafe { libc::dup2(file.as_raw_fd(), stream) };
    }
}

fn join_launched() {
    if let Err(error) = MESSENGER.open(InterfaceName::P4, false) {
        fail(&format!("p4_initenv: {error}"), -1);
    }
    let (me, size) = (MESSENGER.me().0, MESSENGER.size());
    place::settle(me, size, false);
    family::note(me as usize);
    failure::set_launched();
    IS_STARTED.store(true, Ordering::Relaxed);
    leave_at_exit();
}

/// The lines of the user's procgroup; none where there is no file, as with P4: then the process is alone.
fn read_procgroup(given: &GivenArguments, program: &str) -> Result<Vec<ProcgroupEntry>, String> {
    let (name, must_be) = match &given.procgroup {
        Some(name) => (name.clone(), true),
        None => {
            let beside = PathBuf::from(format!("{program}.pg"));
            (if beside.exists() { beside } else { "procgroup".into() }, false)
        }
    };
    match std::fs::read_to_string(&name) {
        Ok(text) => procgroup::parse(&name.display().to_string(), &text),
        Err(error) if error.kind() == ErrorKind::NotFound && !must_be => Ok(Vec::new()),
        Err(error) => Err(format!("the procgroup file {} cannot be read: {error}", name.display())),
    }
}

/// Starts the processes of the procgroup, each of which comes back from here.
pub fn create_procgroup() {
    if IS_STARTED.load(Ordering::Relaxed) || place::me() != 0 {
        return;
    }
    let Some((given, program)) = GIVEN.get() else { fail("p4_create_procgroup: call p4_initenv first", -1) };
    let entries = read_procgroup(given, program).unwrap_or_else(|wrong| fail(&wrong, -1));
    start(&entries);
}

/// Starts the processes of these entries.
pub fn start(entries: &[ProcgroupEntry]) {
    if IS_STARTED.swap(true, Ordering::Relaxed) || place::me() != 0 {
        return;
    }
    if entries.len() > 1 {
        let text = "p4_startup: a procgroup of the program's own has one line; a file may have more, lines:";
        fail(text, entries.len() as i32);
    }
    let size = entries.first().map_or(0, |entry| entry.processes).saturating_add(1);
    if size as usize > family::MOST {
        fail(&format!("a job has at most {} processes, the procgroup has", family::MOST), size as i32);
    }
    let segment = Segment::create(size).and_then(|whole| whole.section(InterfaceName::P4));
    let segment = segment.unwrap_or_else(|error| fail(&format!("p4_create_procgroup: {error}"), -1));
    let me = (1..size).find(|_| match family::fork() {
        Ok(child) => child.is_none(),
        Err(error) => fail(&format!("p4_create_procgroup: no further process: {error}"), -1),
    });
    let me = me.unwrap_or(0);
    place::settle(me, size, true);
    family::note(me as usize);
    let endpoint = Endpoint::join_segment(segment, me);
    MESSENGER.open_with(endpoint.unwrap_or_else(|error| fail(&format!("p4_create_procgroup: {error}"), -1)), false);
    leave_at_exit();
    // All are there, and the first one goes on first: programs say there what the others read then.
    together::meet();
}

/// A process that ends without `p4_wait_for_end` sends what it has to send all the same.
fn leave_at_exit() {
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    // SAFETY: registers a function that stays.
    unsafe { libc::atexit(at_exit) };
}

/// Who takes part: a copy that the program has forked leaves nothing.
static PROCESS: AtomicU32 = AtomicU32::new(0);

extern "C" fn at_exit() {
    if place::me() >= 0 && PROCESS.load(Ordering::Relaxed) == std::process::id() {
        leave();
    }
}

fn leave() {
    if MESSENGER.is_open() {
        MESSENGER.close();
    }
}

/// Ends this process's part, and waits for those that it has forked.
pub fn end() {
    if place::me() >= 0 && PROCESS.load(Ordering::Relaxed) == std::process::id() {
        leave();
        family::wait();
    }
}

/// A process of the program's own, which has no number and takes no part in messages. True in it.
pub fn create() -> bool {
    match family::fork() {
        Ok(None) => {
            place::leave();
            true
        }
        Ok(Some(_)) => false,
        Err(error) => fail(&format!("p4_create: no further process: {error}"), -1),
    }
}
