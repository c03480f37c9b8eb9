//! What the library wants of its host. Its thread calls these functions; each passes on what is wanted, and returns.
//! The answers come by the socket ([`answer`]).

use crate::library::{PmixFound, PmixModule, PmixServerLibrary, texts};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, OnceLock, PoisonError};
use weft_cluster::pmix::{
    BAD_PARAMETER, GIVEN_MAX, NOT_SUPPORTED, PmixDatum, PmixEntry, PmixName, PmixSaid, SUCCESS, TOO_MUCH, Together,
    WILDCARD, bounded, copy_text, framed,
};

type Done = unsafe extern "C" fn(c_int, *mut c_void);
type Release = unsafe extern "C" fn(*mut c_void);
type Gathered = unsafe extern "C" fn(c_int, *const c_char, usize, *mut c_void, Option<Release>, *mut c_void);
type Found = unsafe extern "C" fn(c_int, *const PmixFound, usize, *mut c_void);

/// Whom the answer to a call goes to.
enum UpcallWaiter {
    Done(Option<Done>),
    Gathered(Option<Gathered>),
    Found(Option<Found>, String),
}

/// A call of the library that is not answered. The pointer is the library's, and only handed back.
struct PendingUpcall {
    waiter: UpcallWaiter,
    mark: usize,
}

struct ServedJob {
    namespace: String,
    writer: Mutex<UnixStream>,
    /// The last number, and those that wait.
    calls: Mutex<(u64, HashMap<u64, PendingUpcall>)>,
}

/// One for each process: upcalls get no word of ours.
static SERVED: OnceLock<ServedJob> = OnceLock::new();

/// To be called before the library is.
pub fn start(writer: UnixStream, namespace: &str) {
    let namespace = namespace.to_owned();
    let _ = SERVED.set(ServedJob { namespace, writer: Mutex::new(writer), calls: Mutex::default() });
}

/// Who hears us no more has closed the socket, which ends this process.
pub fn say(said: &PmixSaid) {
    if let Some(served) = SERVED.get() {
        let mut writer = served.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writer.write_all(&framed(&said.encode()));
    }
}

/// Passes a call on, under a number of its own.
fn call(waiter: UpcallWaiter, mark: *mut c_void, said: impl FnOnce(u64) -> PmixSaid) -> c_int {
    let Some(served) = SERVED.get() else { return NOT_SUPPORTED };
    let number = {
        let mut calls = served.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.0 += 1;
        let number = calls.0;
        calls.1.insert(number, PendingUpcall { waiter, mark: mark as usize });
        number
    };
    say(&said(number));
    SUCCESS
}

/// The answer to a call. The library takes it up in its own thread.
pub fn answer(number: u64, status: i32, data: Vec<u8>) {
    let Some(served) = SERVED.get() else { return };
    let Some(PendingUpcall { waiter, mark }) =
        served.calls.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&number)
    else {
        return;
    };
    let mark = mark as *mut c_void;
    match waiter {
        // SAFETY: the library's function, with what it gave for it, called once.
        UpcallWaiter::Done(Some(done)) => unsafe { done(status, mark) },
        UpcallWaiter::Gathered(Some(gathered)) => {
            let data = Box::new(data);
            let (bytes, count) = (data.as_ptr().cast(), data.len());
            // SAFETY: as above; the bytes stay until `release` is called with them.
            unsafe { gathered(status, bytes, count, mark, Some(release), Box::into_raw(data).cast()) };
        }
        UpcallWaiter::Found(Some(found), key) => answer_found(found, mark, (status, &key), &data),
        UpcallWaiter::Done(None) | UpcallWaiter::Gathered(None) | UpcallWaiter::Found(None, _) => {}
    }
}

/// A rank and a string, as [`publish`] has put them together.
fn answer_found(found: Found, mark: *mut c_void, (status, key): (i32, &str), data: &[u8]) {
    let Some((by, text)) = data.split_first_chunk().filter(|_| status == SUCCESS) else {
        // SAFETY: the library's function, with what it gave for it, and nothing found.
        return unsafe { found(if status == SUCCESS { BAD_PARAMETER } else { status }, std::ptr::null(), 0, mark) };
    };
    let text = CString::new(text).unwrap_or_default();
    let mut entry = PmixFound {
        by: own_name(u32::from_le_bytes(*by)),
        key: [0; 512],
        value: PmixDatum::new(PmixDatum::STRING, text.as_ptr() as u64),
    };
    copy_text(&mut entry.key, key);
    // SAFETY: the library's function, with what it gave for it; it copies the one entry during the call.
    unsafe { found(SUCCESS, &raw const entry, 1, mark) };
}

fn own_name(rank: u32) -> PmixName {
    PmixName::new(SERVED.get().map_or("", |served| &served.namespace), rank)
}

unsafe extern "C" fn release(data: *mut c_void) {
    // SAFETY: what `answer` has given away, and it comes back once.
    drop(unsafe { Box::from_raw(data.cast::<Vec<u8>>()) });
}

/// Asks the library what a rank of this host has put; it is said when there is something.
pub fn look_up(library: &PmixServerLibrary, ask: u64, rank: u32) {
    if let Err(status) = library.look_up(&own_name(rank), on_looked_up, ask) {
        say(&PmixSaid::Found { ask, status, data: Vec::new() });
    }
}

unsafe extern "C" fn on_looked_up(status: c_int, data: *mut c_char, count: usize, mark: *mut c_void) {
    // SAFETY: so many bytes of the library's, which stay during the call.
    let (status, data) = bounded(status, unsafe { bytes(data, count) }, 0);
    say(&PmixSaid::Found { ask: mark as u64, status, data });
}

/// # Safety
/// `data` points to so many bytes, or is null.
unsafe fn bytes(data: *const c_char, count: usize) -> Vec<u8> {
    // SAFETY: the caller's word.
    if data.is_null() { Vec::new() } else { unsafe { std::slice::from_raw_parts(data.cast(), count) }.to_vec() }
}

/// The rank of this name, where it is one of our job: the library lets in whoever calls itself a tool, by a name of its
/// choice.
///
/// # Safety
/// `name` is one of the library's.
unsafe fn rank(name: *const PmixName) -> Option<u32> {
    // SAFETY: the caller's word.
    let name = unsafe { &*name };
    is_ours(name).then_some(name.rank)
}

fn is_ours(name: &PmixName) -> bool {
    CStr::from_bytes_until_nul(&name.namespace) == CStr::from_bytes_until_nul(&own_name(0).namespace)
}

/// The ranks of our job among these, none for all; nothing where others are among them.
///
/// # Safety
/// `names` points to so many.
unsafe fn ranks(names: *const PmixName, count: usize) -> Option<Vec<u32>> {
    // SAFETY: the caller's word.
    let names = if names.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(names, count) } };
    if !names.iter().all(is_ours) {
        return None;
    }
    let all = names.iter().any(|name| name.rank == WILDCARD);
    Some(if all { Vec::new() } else { names.iter().map(|name| name.rank).collect() })
}

/// Tells the library at once that this is done.
///
/// # Safety
/// The library's function, with what it gave for it.
unsafe fn done(when_done: Option<Done>, mark: *mut c_void) -> c_int {
    if let Some(when_done) = when_done {
        // SAFETY: the caller's word.
        unsafe { when_done(SUCCESS, mark) };
    }
    SUCCESS
}

unsafe extern "C" fn client_connected(
    name: *const PmixName,
    _: *mut c_void,
    when_done: Option<Done>,
    mark: *mut c_void,
) -> c_int {
    // SAFETY: given by the library, for this call.
    if let Some(rank) = unsafe { rank(name) } {
        say(&PmixSaid::Connected { rank });
    }
    // SAFETY: as above.
    unsafe { done(when_done, mark) }
}

unsafe extern "C" fn client_finalized(
    name: *const PmixName,
    _: *mut c_void,
    when_done: Option<Done>,
    mark: *mut c_void,
) -> c_int {
    // SAFETY: given by the library, for this call.
    if let Some(rank) = unsafe { rank(name) } {
        say(&PmixSaid::Finalised { rank });
    }
    // SAFETY: as above.
    unsafe { done(when_done, mark) }
}

/// Whichever ranks are meant, it is the job that ends.
unsafe extern "C" fn abort(
    name: *const PmixName,
    _: *mut c_void,
    code: c_int,
    text: *const c_char,
    _: *const PmixName,
    _: usize,
    when_done: Option<Done>,
    mark: *mut c_void,
) -> c_int {
    // SAFETY: given by the library, for this call.
    let Some(rank) = (unsafe { rank(name) }) else { return NOT_SUPPORTED };
    // SAFETY: null, or a string that ends.
    let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned());
    say(&PmixSaid::Aborted { rank, code, text: text.unwrap_or_default() });
    // SAFETY: the library's function, with what it gave for it.
    unsafe { done(when_done, mark) }
}

unsafe extern "C" fn fence(
    names: *const PmixName,
    count: usize,
    entries: *const PmixEntry,
    told: usize,
    data: *mut c_char,
    length: usize,
    gathered: Option<Gathered>,
    mark: *mut c_void,
) -> c_int {
    // SAFETY: so many names, for this call.
    let Some(ranks) = (unsafe { ranks(names, count) }) else { return NOT_SUPPORTED };
    // SAFETY: so many bytes, which are ours now: the library does not free them.
    let given = unsafe { bytes(data, length) };
    // SAFETY: as above; they are of the C library's memory, or null.
    unsafe { libc::free(data.cast()) };
    // SAFETY: so many, for this call.
    let (status, data) = bounded(unsafe { status(entries, told) }, given, ranks.len());
    let what = Together::Fence;
    call(UpcallWaiter::Gathered(gathered), mark, |call| PmixSaid::Gathered { call, status, what, ranks, data })
}

/// Whether all ranks of this host have come: what the library says of it among what it tells besides.
///
/// # Safety
/// So many entries, given by the library.
unsafe fn status(entries: *const PmixEntry, count: usize) -> c_int {
    // SAFETY: the caller's word.
    let entries = if entries.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(entries, count) } };
    let mut own = entries.iter().filter(|entry| text(&entry.key).as_deref() == Some("pmix.loc.col.st"));
    own.next_back().map_or(SUCCESS, |entry| entry.value.data[0] as c_int)
}

/// # Safety
/// So many names and entries, given by the library.
unsafe fn together(
    what: Together,
    (names, count): (*const PmixName, usize),
    (entries, told): (*const PmixEntry, usize),
    when_done: Option<Done>,
    mark: *mut c_void,
) -> c_int {
    // SAFETY: the caller's word.
    let (ranks, status) = unsafe { (ranks(names, count), status(entries, told)) };
    let Some(ranks) = ranks else { return NOT_SUPPORTED };
    call(UpcallWaiter::Done(when_done), mark, |call| PmixSaid::Gathered { call, status, what, ranks, data: Vec::new() })
}

unsafe extern "C" fn connect(
    names: *const PmixName,
    count: usize,
    entries: *const PmixEntry,
    told: usize,
    when_done: Option<Done>,
    mark: *mut c_void,
) -> c_int {
    // SAFETY: given by the library, for this call.
    unsafe { together(Together::Connect, (names, count), (entries, told), when_done, mark) }
}

unsafe extern "C" fn disconnect(
    names: *const PmixName,
    count: usize,
    entries: *const PmixEntry,
    told: usize,
    when_done: Option<Done>,
    mark: *mut c_void,
) -> c_int {
    // SAFETY: given by the library, for this call.
    unsafe { together(Together::Disconnect, (names, count), (entries, told), when_done, mark) }
}

unsafe extern "C" fn direct_modex(
    name: *const PmixName,
    _: *const PmixEntry,
    _: usize,
    gathered: Option<Gathered>,
    mark: *mut c_void,
) -> c_int {
    // SAFETY: given by the library, for this call.
    let Some(ranks) = (unsafe { ranks(name, 1) }) else { return NOT_SUPPORTED };
    let Some(rank) = ranks.first().copied() else { return BAD_PARAMETER };
    call(UpcallWaiter::Gathered(gathered), mark, |call| PmixSaid::Wanted { call, rank })
}

/// One string, which is what programs publish: the door of a process.
unsafe extern "C" fn publish(
    name: *const PmixName,
    entries: *const PmixEntry,
    count: usize,
    when_done: Option<Done>,
    mark: *mut c_void,
) -> c_int {
    // SAFETY: so many, for this call.
    let entries = if entries.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(entries, count) } };
    let own = entries.iter().filter_map(|entry| Some((text(&entry.key)?, entry.value)));
    let mut own = own.filter(|(key, _)| !key.starts_with("pmix."));
    let (Some((key, value)), None) = (own.next(), own.next()) else { return NOT_SUPPORTED };
    if value.kind != PmixDatum::STRING || value.data[0] == 0 {
        return NOT_SUPPORTED;
    }
    // SAFETY: the name for this call, and a string that ends, as its type says.
    let (Some(rank), string) = (unsafe { (rank(name), CStr::from_ptr(value.data[0] as *const c_char)) }) else {
        return NOT_SUPPORTED;
    };
    let value = [&rank.to_le_bytes(), string.to_bytes()].concat();
    if value.len() > GIVEN_MAX {
        return TOO_MUCH;
    }
    call(UpcallWaiter::Done(when_done), mark, |call| PmixSaid::Published { call, key, value })
}

fn text(key: &[u8]) -> Option<String> {
    Some(CStr::from_bytes_until_nul(key).ok()?.to_string_lossy().into_owned())
}

unsafe extern "C" fn lookup(
    name: *const PmixName,
    keys: *const *const c_char,
    _: *const PmixEntry,
    _: usize,
    found: Option<Found>,
    mark: *mut c_void,
) -> c_int {
    // SAFETY: given by the library, for this call.
    let (Some(_), [key]) = (unsafe { rank(name) }, &texts(keys)[..]) else { return NOT_SUPPORTED };
    call(UpcallWaiter::Found(found, key.clone()), mark, |call| PmixSaid::LookedUp { call, key: key.clone() })
}

unsafe extern "C" fn unpublish(
    name: *const PmixName,
    keys: *const *const c_char,
    _: *const PmixEntry,
    _: usize,
    when_done: Option<Done>,
    mark: *mut c_void,
) -> c_int {
    // SAFETY: given by the library, for this call.
    let (Some(_), [key]) = (unsafe { rank(name) }, &texts(keys)[..]) else { return NOT_SUPPORTED };
    call(UpcallWaiter::Done(when_done), mark, |call| PmixSaid::Unpublished { call, key: key.clone() })
}

unsafe extern "C" fn spawn(
    name: *const PmixName,
    _: *const PmixEntry,
    _: usize,
    _: *const c_void,
    _: usize,
    _: *const c_void,
    _: *mut c_void,
) -> c_int {
    // SAFETY: given by the library, for this call.
    let Some(rank) = (unsafe { rank(name) }) else { return NOT_SUPPORTED };
    say(&PmixSaid::Refused { rank, text: "it asked by PMIx for further processes, which is not served".to_owned() });
    NOT_SUPPORTED
}

/// The library itself takes what ranks ask to be removed at their end, if this is here; all else it may want is not
/// served.
unsafe extern "C" fn job_control(
    _: *const PmixName,
    _: *const PmixName,
    _: usize,
    _: *const PmixEntry,
    _: usize,
    _: *const c_void,
    _: *mut c_void,
) -> c_int {
    NOT_SUPPORTED
}

/// Functions are shared by all threads.
struct UpcallTable(PmixModule);

// SAFETY: addresses of functions, which nobody changes.
unsafe impl Sync for UpcallTable {}

static MODULE: UpcallTable = UpcallTable({
    let mut module: PmixModule = [std::ptr::null(); 64];
    module[0] = client_connected as *const c_void;
    module[1] = client_finalized as *const c_void;
    module[2] = abort as *const c_void;
    module[3] = fence as *const c_void;
    module[4] = direct_modex as *const c_void;
    module[5] = publish as *const c_void;
    module[6] = lookup as *const c_void;
    module[7] = unpublish as *const c_void;
    module[8] = spawn as *const c_void;
    module[9] = connect as *const c_void;
    module[10] = disconnect as *const c_void;
    module[19] = job_control as *const c_void;
    module
});

/// What is served of what the library may want.
pub fn module() -> &'static PmixModule {
    &MODULE.0
}
