//! Starting, meeting and ending a job as programs for AMUDP do.

use super::put;
use crate::ending::end;
use crate::failure::{Answer, answer, bad};
use crate::launch::JobStart;
use crate::life;
use crate::meeting::OnExit;
use crate::spmd;
use crate::tables::AmHandle;
use crate::world::{WORLD, enter};
use std::ffi::{CStr, OsStr, OsString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr::null;

type Spawn = unsafe extern "C" fn(c_int, c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;

/// A way to start workers, of which AMUDP has several: the C type `amudp_spawnfn_desc_t`.
#[repr(C)]
pub struct SpawnWay {
    letter: c_char,
    about: *const c_char,
    function: Option<Spawn>,
}

// SAFETY: texts and functions that do not change.
unsafe impl Sync for SpawnWay {}

const fn way(letter: u8, function: Spawn) -> SpawnWay {
    SpawnWay { letter: letter as c_char, about: c"weft run".as_ptr(), function: Some(function) }
}

#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static AMUDP_Spawnfn_Desc: [SpawnWay; 4] = [
    way(b'S', AMUDP_SPMDSshSpawn),
    way(b'L', AMUDP_SPMDLocalSpawn),
    way(b'C', AMUDP_SPMDCustomSpawn),
    SpawnWay { letter: 0, about: null(), function: None },
];

/// The program's arguments behind its name.
///
/// # Safety
/// `argv` is null or has strings, and null at its end.
unsafe fn words(argv: *const *const c_char) -> Vec<OsString> {
    let mut words = Vec::new();
    // SAFETY: the caller's promise; the loop ends at the null.
    while !argv.is_null() && unsafe { !(*argv.add(words.len())).is_null() } {
        // SAFETY: as above.
        let word = unsafe { CStr::from_ptr(*argv.add(words.len())) };
        words.push(OsStr::from_bytes(word.to_bytes()).to_owned());
    }
    words
}

/// # Safety
/// Those of the header: `argc` and `argv` are the addresses of `main`'s or null, the others are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AMUDP_SPMDStartup(
    _argc: *mut c_int,
    argv: *mut *mut *mut c_char,
    processes: c_int,
    _depth: c_int,
    spawn: Option<Spawn>,
    job: *mut u64,
    bundle: *mut AmHandle,
    endpoint: *mut AmHandle,
) -> c_int {
    let start = || -> Answer<()> {
        if !is_worker() {
            // SAFETY: the caller's promise.
            let words = unsafe { if argv.is_null() { Vec::new() } else { words((*argv).cast()) } };
            let after_name = words.get(1..).unwrap_or_default();
            return JobStart::read(after_name, processes, spawn.is_none())?.execute();
        }
        if bundle.is_null() || endpoint.is_null() {
            return Err(bad("a pointer is null"));
        }
        open()?;
        let (of_all, id, number) = spmd::start()?;
        if !job.is_null() {
            // SAFETY: the caller's promise.
            unsafe { put(job, number)? };
        }
        // SAFETY: the caller's promise.
        unsafe { put(bundle, AmHandle::of_bundle(of_all)).and(put(endpoint, AmHandle::of_endpoint(id))) }
    };
    answer("AMUDP_SPMDStartup", start())
}

fn open() -> Answer<()> {
    life::open().map_err(|error| {
        eprintln!("weft: AMUDP_SPMDStartup: {error}");
        crate::failure::no_resource("the process cannot join its job")
    })
}

fn is_worker() -> bool {
    WORLD.is_open() || weft_fabric::is_launched()
}

#[unsafe(no_mangle)]
pub extern "C" fn AMUDP_SPMDIsWorker(_argv: *mut *mut c_char) -> c_int {
    c_int::from(is_worker())
}

/// What a job of one would do by itself: `AMUDP_SPMDStartup` starts jobs by `weft run`, whichever of these it is given.
macro_rules! never_called {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(_: c_int, _: c_int, _: *mut *mut c_char, _: *mut *mut c_char) -> c_int {
            eprintln!("weft: AMUDP's functions that spawn are called by AMUDP_SPMDStartup only");
            0
        }
    )* };
}

never_called!(AMUDP_SPMDLocalSpawn AMUDP_SPMDSshSpawn AMUDP_SPMDCustomSpawn);

#[unsafe(no_mangle)]
pub extern "C" fn AMUDP_SPMDNumProcs() -> c_int {
    enter().map_or(-1, |world| world.processes() as c_int)
}

#[unsafe(no_mangle)]
pub extern "C" fn AMUDP_SPMDMyProc() -> c_int {
    enter().map_or(-1, |world| world.me() as c_int)
}

/// Ranks are the launcher's.
#[unsafe(no_mangle)]
pub extern "C" fn AMUDP_SPMDSetProc(_rank: c_int) {
    eprintln!("weft: AMUDP_SPMDSetProc: ranks are those that weft run gives");
}

#[unsafe(no_mangle)]
pub extern "C" fn AMUDP_SPMDBarrier() -> c_int {
    answer("AMUDP_SPMDBarrier", spmd::barrier("AMUDP_SPMDBarrier"))
}

/// # Safety
/// `source` is readable for `length` bytes, and `gathered` writable for as many of each process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AMUDP_SPMDAllGather(source: *mut c_void, gathered: *mut c_void, length: usize) -> c_int {
    let gather = || {
        let processes = enter()?.processes() as usize;
        if length == 0 {
            return spmd::gather("AMUDP_SPMDAllGather", &[], &mut []);
        }
        let all = length.checked_mul(processes).ok_or(bad("too many bytes"))?;
        if source.is_null() || gathered.is_null() {
            return Err(bad("a pointer is null"));
        }
        // A copy, since programs give their part of `gathered`.
        // SAFETY: the caller's promise.
        let own = unsafe { std::slice::from_raw_parts(source.cast::<u8>(), length) }.to_vec();
        // SAFETY: as above.
        let all = unsafe { std::slice::from_raw_parts_mut(gathered.cast::<u8>(), all) };
        spmd::gather("AMUDP_SPMDAllGather", &own, all)
    };
    answer("AMUDP_SPMDAllGather", gather())
}

/// # Safety
/// `serviced` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AMUDP_SPMDHandleControlTraffic(serviced: *mut c_int) -> c_int {
    let look = || {
        WORLD.poll();
        let mut world = enter()?;
        world.collect();
        let exit = world.spmd.take_exit();
        drop(world);
        if let Some(code) = exit {
            end(code);
        }
        Ok(())
    };
    if !serviced.is_null() {
        // SAFETY: the caller's promise.
        unsafe { serviced.write(0) };
    }
    answer("AMUDP_SPMDHandleControlTraffic", enter().map(drop).and_then(|()| look()))
}

/// # Safety
/// `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AMUDP_SPMDgetenvMaster(name: *const c_char) -> *const c_char {
    if name.is_null() || !WORLD.is_open() {
        return null();
    }
    // SAFETY: the caller's promise. Ranks have the launcher's environment.
    unsafe { libc::getenv(name) }
}

/// A variable of the environment whose name begins so, as `NAME=VALUE`.
///
/// # Safety
/// `prefix` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AMUDP_check_env_prefix(prefix: *const c_char) -> *const c_char {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    if prefix.is_null() {
        return null();
    }
    // SAFETY: the caller's promise.
    let prefix = unsafe { CStr::from_ptr(prefix) }.to_bytes();
    // SAFETY: the C library's list, which has null at its end.
    let mut at = unsafe { environ };
    // SAFETY: as above.
    while !at.is_null() && unsafe { !(*at).is_null() } {
        // SAFETY: as above.
        let entry = unsafe { *at };
        // SAFETY: as above.
        if unsafe { CStr::from_ptr(entry) }.to_bytes().starts_with(prefix) {
            return entry;
        }
        // SAFETY: as above.
        at = unsafe { at.add(1) };
    }
    null()
}

#[unsafe(no_mangle)]
pub extern "C" fn AMUDP_SPMDExit(code: c_int) -> c_int {
    answer("AMUDP_SPMDExit", spmd::exit(code))
}

#[unsafe(no_mangle)]
pub extern "C" fn AMUDP_SPMDSetExitCallback(callback: Option<OnExit>) -> c_int {
    answer("AMUDP_SPMDSetExitCallback", enter().map(|mut world| world.spmd.on_exit = callback))
}
