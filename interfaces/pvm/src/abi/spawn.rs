//! Starting and signalling tasks.

use super::{items, text, told};
use crate::errors::Error;
use crate::group::ask_long;
use crate::library::{enrolled, library, my_context, my_tid};
use std::ffi::{c_char, c_int};
use std::os::unix::ffi::OsStringExt;
use weft_pvm_machine::frame::{Answer, ByteString, Program, Request};
use weft_pvm_machine::tid;

/// Names of variables that a task gets from who spawns it.
const EXPORTS: &str = "PVM_EXPORT";

/// What a task gets beside what the daemon has: what the program exports, and where this one has found its libraries.
fn environment() -> Vec<ByteString> {
    let exports = std::env::var(EXPORTS).unwrap_or_default();
    let all = exports.split(':').filter(|name| !name.is_empty()).chain([EXPORTS, "LD_LIBRARY_PATH"]);
    let settings = all.filter_map(|name| {
        let value = std::env::var_os(name)?;
        Some(ByteString([name.as_bytes(), b"=", &value.into_vec()].concat()))
    });
    settings.collect()
}

/// Where programs of other tasks are looked for: where this one's is, and in its `PATH`.
fn places() -> Vec<ByteString> {
    let own = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.to_owned()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = own.into_iter().chain(std::env::split_paths(&path));
    all.map(|folder| ByteString(folder.into_os_string().into_vec())).collect()
}

/// How many were started. The first so many of `tids` are theirs, the others are codes.
///
/// # Safety
/// `file` and `place` are null or C strings, `arguments` is null or a list of C strings that ends with null, `tids` is
/// null or has `count` places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_spawn(
    file: *const c_char,
    arguments: *const *const c_char,
    flags: c_int,
    place: *const c_char,
    count: c_int,
    tids: *mut c_int,
) -> c_int {
    let mut words = Vec::new();
    if !arguments.is_null() {
        let mut at = arguments;
        // SAFETY: the caller's promise.
        unsafe {
            while !(*at).is_null() {
                words.push(text(*at));
                at = at.add(1);
            }
        }
    }
    // SAFETY: the caller's promise.
    let (file, place) = unsafe { (text(file), text(place)) };
    let outcome = spawn(file, words, flags, place, count).map(|mut started| {
        // Codes stand last.
        started.sort_by_key(|tid| *tid < 0);
        if !tids.is_null() {
            // SAFETY: the caller's promise; there are as many as were asked for.
            unsafe { std::ptr::copy_nonoverlapping(started.as_ptr(), tids, started.len().min(count as usize)) };
        }
        started.iter().filter(|tid| **tid > 0).count() as c_int
    });
    told(c"pvm_spawn", outcome)
}

fn spawn(
    file: ByteString,
    arguments: Vec<ByteString>,
    flags: c_int,
    place: ByteString,
    count: c_int,
) -> Result<Vec<c_int>, Error> {
    let count = u32::try_from(count).ok().filter(|count| *count > 0).ok_or(Error::BAD_PARAM)?;
    if file.0.is_empty() {
        return Err(Error::BAD_PARAM);
    }
    let inherited = std::env::var("PVMTASK").ok().and_then(|text| text.parse::<c_int>().ok()).unwrap_or(0);
    let directory =
        std::env::current_dir().map(|path| ByteString(path.into_os_string().into_vec())).unwrap_or_default();
    let (environment, places) = (environment(), places());
    let program = Program { file, arguments, environment, directory, places, flags: flags | inherited };
    let prints_to = enrolled()?.options.output();
    let request = Request::Spawn { program, place, count, prints_to, context: my_context() };
    match ask_long("pvm_spawn", &request)? {
        Answer::Tids { code, tids } if code >= 0 => Ok(tids),
        Answer::Tids { code, .. } => Err(Error(code)),
        _ => Err(Error::SYS_ERR),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_sendsig(task: c_int, signal: c_int) -> c_int {
    told(c"pvm_sendsig", send_signal(task, signal))
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_kill(task: c_int) -> c_int {
    told(c"pvm_kill", send_signal(task, libc::SIGTERM))
}

fn send_signal(task: c_int, signal: c_int) -> Result<c_int, Error> {
    let mut library = enrolled()?;
    if !tid::is_task(task) {
        return Err(Error::BAD_PARAM);
    }
    library.ask_code(&Request::Signal { tid: task, signal })
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_pstat(task: c_int) -> c_int {
    let outcome = enrolled().and_then(|mut library| {
        if !tid::is_task(task) {
            return Err(Error::BAD_PARAM);
        }
        library.ask_code(&Request::TaskStatus { tid: task })
    });
    match outcome {
        // It is an answer.
        Err(Error::NO_TASK) => Error::NO_TASK.0,
        outcome => told(c"pvm_pstat", outcome),
    }
}

/// # Safety
/// `of` has `count` items where they are tasks or hosts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_notify(what: c_int, tag: c_int, count: c_int, of: *const c_int) -> c_int {
    const HOST_ADD: c_int = 3;
    const ROUTE_ADD: c_int = 4;
    const ROUTE_DELETE: c_int = 5;
    let kind = what & !256;
    // SAFETY: the caller's promise.
    let of = if matches!(kind, HOST_ADD | ROUTE_ADD) { &[][..] } else { unsafe { items(of, count) } };
    let outcome = (|| {
        let mut library = enrolled()?;
        let is_wrong = tag < 0 && !library.options.allows_reserved()
            || !(1..=ROUTE_DELETE).contains(&kind)
            || !matches!(kind, HOST_ADD | ROUTE_ADD) && of.is_empty()
            || matches!(kind, 1 | ROUTE_DELETE) && !of.iter().all(|task| tid::is_task(*task));
        if is_wrong {
            return Err(Error::BAD_PARAM);
        }
        // A way ends with its task, and every task has one.
        let what = match kind {
            ROUTE_ADD => return Ok(0),
            ROUTE_DELETE => what - ROUTE_DELETE + 1,
            _ => what,
        };
        library.ask_code(&Request::Notify { what, context: my_context(), tag, count, of: of.to_vec() })
    })();
    told(c"pvm_notify", outcome)
}

/// Tasks that this one spawns get this variable.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_export(name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    change_exports(&unsafe { text(name) }.text(), true);
    0
}

/// # Safety
/// As [`pvm_export`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_unexport(name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    change_exports(&unsafe { text(name) }.text(), false);
    0
}

fn change_exports(name: &str, adds: bool) {
    if name.is_empty() || name.contains(['=', ':', '\0']) {
        return;
    }
    let before = std::env::var(EXPORTS).unwrap_or_default();
    let mut all: Vec<&str> = before.split(':').filter(|there| !there.is_empty() && *there != name).collect();
    if adds {
        all.push(name);
    }
    // SAFETY: PVM says that one thread calls it, and this one does.
    unsafe { std::env::set_var(EXPORTS, all.join(":")) };
}

/// Ends the other tasks of the machine, but those that have asked to be spared, and clears the mailbox.
///
/// # Safety
/// `class` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvmreset(_me: c_int, kills: c_int, class: *const c_char, index: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let class = unsafe { text(class) };
    let outcome = (|| {
        let keep = spared()?;
        let mut library = enrolled()?;
        if kills != 0 {
            let Answer::Tasks { tasks, .. } = library.ask(&Request::Tasks { of: 0 })? else { return Ok(0) };
            let doomed = tasks.iter().map(|task| task.tid).filter(|task| *task != my_tid() && !keep.contains(task));
            for task in doomed.collect::<Vec<_>>() {
                library.ask_code(&Request::Signal { tid: task, signal: libc::SIGTERM })?;
            }
        }
        library.ask_code(&Request::Reset { class, index, kills: kills != 0, keep })
    })();
    told(c"pvmreset", outcome)
}

/// The tasks that a reset spares.
pub(super) fn spared() -> Result<Vec<c_int>, Error> {
    let mut library = enrolled()?;
    let mut all = Vec::new();
    let mut index = 0;
    loop {
        let name = ByteString::from("###_PVM_NO_RESET_###");
        match library.ask(&Request::Get { name, index, flags: 8 })? {
            Answer::Content { code, content } if code >= 0 => {
                all.extend(content.bytes.0.first_chunk().map(|bytes| c_int::from_be_bytes(*bytes)));
                index = code + 1;
            }
            _ => return Ok(all),
        }
    }
}

/// # Safety
/// Both are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_getnoresets(tids: *mut *mut c_int, count: *mut c_int) -> c_int {
    static SHOWN: super::task::ShownList<c_int> = super::task::ShownList::new();
    told(
        c"pvm_getnoresets",
        spared().map(|all| {
            // SAFETY: the caller's promise.
            unsafe {
                super::put(count, all.len() as c_int);
                super::put(tids, SHOWN.show(all, Vec::new()));
            }
            drop(library());
            0
        }),
    )
}
