//! The virtual machine: hosts and tasks.

use super::task::ShownList;
use super::{items, put, text, told};
use crate::errors::Error;
use crate::group::ask_long;
use crate::library::{enrolled, library, my_tid};
use std::ffi::{CString, c_char, c_int};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weft_pvm_machine::code;
use weft_pvm_machine::frame::{Answer, ByteString, HostInfo, Request};

/// `struct pvmhostinfo`.
#[repr(C)]
pub struct HostOfC {
    tid: c_int,
    name: *mut c_char,
    architecture: *mut c_char,
    speed: c_int,
    signature: c_int,
}

/// `struct pvmtaskinfo`.
#[repr(C)]
pub struct TaskOfC {
    tid: c_int,
    parent: c_int,
    host: c_int,
    flags: c_int,
    name: *mut c_char,
    pid: c_int,
}

/// A text for C, and where it stands as long as it is kept.
pub(super) fn shown(bytes: impl Into<Vec<u8>>, texts: &mut Vec<CString>) -> *mut c_char {
    let bytes: Vec<u8> = bytes.into().into_iter().filter(|byte| *byte != 0).collect();
    let text = CString::new(bytes).unwrap_or_default();
    let at = text.as_ptr().cast_mut();
    texts.push(text);
    at
}

fn hosts() -> Result<Vec<HostInfo>, Error> {
    match enrolled()?.ask(&Request::Hosts)? {
        Answer::Hosts { hosts } => Ok(hosts),
        _ => Err(Error::SYS_ERR),
    }
}

/// # Safety
/// All are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_config(count: *mut c_int, kinds: *mut c_int, list: *mut *mut HostOfC) -> c_int {
    static SHOWN: ShownList<HostOfC> = ShownList::new();
    told(
        c"pvm_config",
        hosts().map(|hosts| {
            let mut texts = Vec::new();
            let mut architectures: Vec<&str> = hosts.iter().map(|host| host.architecture.as_str()).collect();
            architectures.sort_unstable();
            architectures.dedup();
            let all: Vec<HostOfC> = hosts
                .iter()
                .map(|host| HostOfC {
                    tid: host.tid,
                    name: shown(host.name.as_str(), &mut texts),
                    architecture: shown(host.architecture.as_str(), &mut texts),
                    speed: host.speed,
                    signature: host.signature,
                })
                .collect();
            // SAFETY: the caller's promise.
            unsafe {
                put(count, all.len() as c_int);
                put(kinds, architectures.len() as c_int);
                if !list.is_null() {
                    list.write(SHOWN.show(all, texts));
                }
            }
            0
        }),
    )
}

/// # Safety
/// All are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_tasks(of: c_int, count: *mut c_int, list: *mut *mut TaskOfC) -> c_int {
    static SHOWN: ShownList<TaskOfC> = ShownList::new();
    let answer = enrolled().and_then(|mut library| library.ask(&Request::Tasks { of }));
    let tasks = answer.and_then(|answer| match answer {
        Answer::Tasks { code, tasks } if code >= 0 => Ok(tasks),
        Answer::Tasks { code, .. } => Err(Error(code)),
        _ => Err(Error::SYS_ERR),
    });
    told(
        c"pvm_tasks",
        tasks.map(|tasks| {
            let mut texts = Vec::new();
            let all: Vec<TaskOfC> = tasks
                .into_iter()
                .map(|task| TaskOfC {
                    tid: task.tid,
                    parent: task.parent,
                    host: task.daemon,
                    flags: task.flags,
                    name: shown(task.name.0, &mut texts),
                    pid: task.pid,
                })
                .collect();
            // SAFETY: the caller's promise.
            unsafe {
                put(count, all.len() as c_int);
                if !list.is_null() {
                    list.write(SHOWN.show(all, texts));
                }
            }
            0
        }),
    )
}

/// # Safety
/// It is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_mstat(host: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { text(host) };
    let outcome = if name.0.is_empty() {
        Err(Error::BAD_PARAM)
    } else {
        enrolled().and_then(|mut library| library.ask_code(&Request::HostStatus { name }))
    };
    match outcome {
        // These are answers.
        Err(Error(code @ (code::NO_HOST | code::HOST_FAIL))) => code,
        outcome => told(c"pvm_mstat", outcome),
    }
}

/// # Safety
/// It is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_archcode(architecture: *const c_char) -> c_int {
    if architecture.is_null() {
        return told(c"pvm_archcode", Err(Error::BAD_PARAM));
    }
    // SAFETY: the caller's promise.
    let name = unsafe { text(architecture) }.text();
    told(
        c"pvm_archcode",
        hosts().and_then(|hosts| {
            let host = hosts.iter().find(|host| host.architecture == name);
            host.map(|host| host.signature).ok_or(Error::NOT_FOUND)
        }),
    )
}

/// # Safety
/// `names` has `count` C strings, or nulls.
unsafe fn names_of(names: *const *const c_char, count: c_int) -> Result<Vec<ByteString>, Error> {
    // SAFETY: the caller's promise.
    let names: Vec<ByteString> = unsafe { items(names, count).iter().map(|name| text(*name)).collect() };
    if names.is_empty() { Err(Error::BAD_PARAM) } else { Ok(names) }
}

/// Answers one code for each, and how many are none below 0.
///
/// # Safety
/// `codes` is null or has `count` places.
unsafe fn put_codes(all: &[c_int], codes: *mut c_int, count: c_int) -> c_int {
    if !codes.is_null() {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(all.as_ptr(), codes, all.len().min(count as usize)) };
    }
    all.iter().filter(|code| **code >= 0).count() as c_int
}

/// How many were added; `codes` has the daemons' identifiers, or why there are none.
///
/// # Safety
/// `names` has `count` C strings, `codes` is null or has as many places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_addhosts(names: *const *const c_char, count: c_int, codes: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    let names = unsafe { names_of(names, count) };
    let added = names.and_then(|names| match ask_long("pvm_addhosts", &Request::AddHosts { names })? {
        Answer::Added { hosts } => Ok(hosts.iter().map(|host| host.tid).collect::<Vec<_>>()),
        _ => Err(Error::SYS_ERR),
    });
    // SAFETY: the caller's promise.
    told(c"pvm_addhosts", added.map(|all| unsafe { put_codes(&all, codes, count) }))
}

/// How many were deleted.
///
/// # Safety
/// As [`pvm_addhosts`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_delhosts(names: *const *const c_char, count: c_int, codes: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    let names = unsafe { names_of(names, count) };
    let deleted = names.and_then(|names| match enrolled()?.ask(&Request::DeleteHosts { names })? {
        Answer::Tids { tids, .. } => Ok(tids),
        _ => Err(Error::SYS_ERR),
    });
    // SAFETY: the caller's promise.
    told(c"pvm_delhosts", deleted.map(|all| unsafe { put_codes(&all, codes, count) }))
}

/// Starts the daemon of a virtual machine that stays until it is halted, and becomes a task of it. Arguments are hosts'
/// files and options of the original's daemon, which needs none here.
///
/// # Safety
/// `arguments` has `count` C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_start_pvmd(count: c_int, arguments: *const *const c_char, _waits: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let words: Vec<String> =
        unsafe { items(arguments, count) }.iter().map(|word| unsafe { text(*word) }.text()).collect();
    match crate::enrol::start_machine(&words) {
        Ok(true) => told(c"pvm_start_pvmd", enrolled().map(|_| code::OK)),
        // It is there already.
        Ok(false) => code::DUP_HOST,
        Err(error) => {
            eprintln!("libpvm [pid{}]: no virtual machine: {error}", std::process::id());
            told(c"pvm_start_pvmd", Err(Error::SYS_ERR))
        }
    }
}

/// Ends the virtual machine, with all its tasks.
#[unsafe(no_mangle)]
pub extern "C" fn pvm_halt() -> c_int {
    let outcome = enrolled().map(|mut library| {
        if let Some(mut task) = library.task.take() {
            // There is no answer but the end.
            let _ = task.client.ask(&Request::Halt);
        }
        code::OK
    });
    let _ = library().leave();
    told(c"pvm_halt", outcome)
}

/// The clock of a host, and how far it is ahead of this one's.
///
/// # Safety
/// Both are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_hostsync(host: c_int, clock: *mut libc::timeval, ahead: *mut libc::timeval) -> c_int {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let outcome = enrolled().and_then(|mut library| {
        let before = now();
        let Answer::Time { seconds, microseconds } = library.ask(&Request::Time { host })? else {
            return Err(Error::NO_HOST);
        };
        let here = (before + now()) / 2;
        let there = Duration::new(seconds, microseconds.min(999_999) * 1000);
        let time = |seconds: i64, micros: i64| libc::timeval { tv_sec: seconds, tv_usec: micros };
        // Here minus there, with both parts of the same sign.
        let micros = here.as_micros() as i64 - there.as_micros() as i64;
        // SAFETY: the caller's promise.
        unsafe {
            put(clock, time(seconds as i64, i64::from(microseconds)));
            put(ahead, time(micros / 1_000_000, micros % 1_000_000));
        }
        Ok(0)
    });
    told(c"pvm_hostsync", outcome)
}

/// For faults in the original's daemon; there is nothing to be told here.
///
/// # Safety
/// `answers` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_tickle(
    count: c_int,
    _arguments: *const c_int,
    answers: *mut c_int,
    _list: *mut c_int,
) -> c_int {
    if !(1..=10).contains(&count) {
        return told(c"pvm_tickle", Err(Error::BAD_PARAM));
    }
    // SAFETY: the caller's promise.
    unsafe { put(answers, 0) };
    told(c"pvm_tickle", enrolled().map(|_| i32::from(my_tid() < 0)))
}

macro_rules! not_here {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) $text:literal;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: $type),*) -> c_int {
            told($text, Err(Error::NOT_IMPL))
        }
    )* };
}

not_here! {
    /// Hosts are added by the launch command.
    pvm_reg_hoster() c"pvm_reg_hoster";
    /// The daemon chooses hosts in turn.
    pvm_reg_rm(_list: *mut *mut HostOfC) c"pvm_reg_rm";
    /// The daemon starts tasks itself.
    pvm_reg_tasker() c"pvm_reg_tasker";
    /// Nothing is traced.
    pvm_reg_tracer(_a: c_int, _b: c_int, _c: c_int, _d: c_int, _e: *mut c_char, _f: c_int, _g: c_int) c"pvm_reg_tracer";
}
