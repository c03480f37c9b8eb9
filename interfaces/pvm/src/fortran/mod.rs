//! The functions of Fortran, over those of C.
//!
//! Every argument is an address. What a call answers goes to its last one. A text has a length that stands behind all
//! arguments, as `size_t`, in the order of the texts; blanks at its end do not count.
//!
//! - `text`: texts, either way; `lists`: what C answers as an array, and Fortran one after the other; here is all else,
//!   a line for each function.

mod lists;
mod text;

use std::ffi::{c_char, c_int, c_void};

use libc::timeval;
use text::c_text;

use crate::errors::{Code, report};

/// Types of arguments: an address of a number of which C has the value, one that C has as well, one of data.
macro_rules! of_fortran {
    (int) => { *const c_int };
    (ints) => { *mut c_int };
    (data) => { *mut c_void };
}
macro_rules! of_c {
    (int) => { c_int };
    (ints) => { *mut c_int };
    (data) => { *mut c_void };
}
macro_rules! value {
    (int $name:ident) => {
        *$name
    };
    ($kind:ident $name:ident) => {
        $name
    };
}

/// A function without texts.
macro_rules! calls {
    ($($fortran:ident = $c:ident($($name:ident: $kind:ident),*);)+) => { $(
        /// # Safety
        /// Each argument is the address of what the function of C has.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $fortran($($name: of_fortran!($kind),)* answer: *mut c_int) {
            unsafe extern "C" { fn $c($($name: of_c!($kind)),*) -> c_int; }
            // SAFETY: as the caller says.
            unsafe { *answer = $c($(value!($kind $name)),*) }
        }
    )+ };
}

/// A function with one text, and what stands before and after it.
macro_rules! calls_with_text {
    ($($fortran:ident = $c:ident($($before:ident: $kind:ident,)* [$text:ident] $(, $after:ident: $later:ident)*);)+) => { $(
        /// # Safety
        /// Each argument is the address of what the function of C has.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $fortran(
            $($before: of_fortran!($kind),)*
            $text: *const u8,
            $($after: of_fortran!($later),)*
            answer: *mut c_int,
            length: usize,
        ) {
            unsafe extern "C" {
                fn $c($($before: of_c!($kind),)* $text: *const c_char $(, $after: of_c!($later))*) -> c_int;
            }
            // SAFETY: as the caller says.
            unsafe {
                let text = c_text($text, length);
                *answer = $c($(value!($kind $before),)* text.as_ptr() $(, value!($later $after))*);
            }
        }
    )+ };
}

calls! {
    pvmfmytid_ = pvm_mytid();
    pvmfparent_ = pvm_parent();
    pvmfexit_ = pvm_exit();
    pvmfhalt_ = pvm_halt();
    pvmfkill_ = pvm_kill(task: int);
    pvmfsendsig_ = pvm_sendsig(task: int, signal: int);
    pvmfpstat_ = pvm_pstat(task: int);
    pvmftidtohost_ = pvm_tidtohost(task: int);
    pvmfnotify_ = pvm_notify(about: int, tag: int, count: int, tasks: ints);
    pvmfinitsend_ = pvm_initsend(encoding: int);
    pvmfmkbuf_ = pvm_mkbuf(encoding: int);
    pvmffreebuf_ = pvm_freebuf(buffer: int);
    pvmfgetsbuf_ = pvm_getsbuf();
    pvmfsetsbuf_ = pvm_setsbuf(buffer: int);
    pvmfgetrbuf_ = pvm_getrbuf();
    pvmfsetrbuf_ = pvm_setrbuf(buffer: int);
    pvmfbufinfo_ = pvm_bufinfo(buffer: int, bytes: ints, tag: ints, task: ints);
    pvmfsend_ = pvm_send(task: int, tag: int);
    pvmfpsend_ = pvm_psend(task: int, tag: int, data: data, count: int, kind: int);
    pvmfrecv_ = pvm_recv(task: int, tag: int);
    pvmfnrecv_ = pvm_nrecv(task: int, tag: int);
    pvmfprobe_ = pvm_probe(task: int, tag: int);
    pvmfprecv_ = pvm_precv(task: int, tag: int, data: data, count: int, kind: int, from: ints, came: ints, got: ints);
    pvmfdelmhf_ = pvm_delmhf(handler: int);
    pvmfnewcontext_ = pvm_newcontext();
    pvmfgetcontext_ = pvm_getcontext();
    pvmfsetcontext_ = pvm_setcontext(context: int);
    pvmffreecontext_ = pvm_freecontext(context: int);
    pvmfsetopt_ = pvm_setopt(option: int, value: int);
    pvmfgetopt_ = pvm_getopt(option: int);
}

calls_with_text! {
    pvmfperror_ = pvm_perror([what]);
    pvmfarchcode_ = pvm_archcode([architecture]);
    pvmfmstat_ = pvm_mstat([host]);
    pvmfputinfo_ = pvm_putinfo([name], buffer: int, flags: int);
    pvmfrecvinfo_ = pvm_recvinfo([name], index: int, flags: int);
    pvmfdelinfo_ = pvm_delinfo([name], index: int, flags: int);
    pvmfjoingroup_ = pvm_joingroup([group]);
    pvmflvgroup_ = pvm_lvgroup([group]);
    pvmfgsize_ = pvm_gsize([group]);
    pvmfgettid_ = pvm_gettid([group], instance: int);
    pvmfgetinst_ = pvm_getinst([group], task: int);
    pvmffreezegroup_ = pvm_freezegroup([group], count: int);
    pvmfbarrier_ = pvm_barrier([group], count: int);
    pvmfbcast_ = pvm_bcast([group], tag: int);
    pvmfgather_ = pvm_gather(into: data, data: data, count: int, kind: int, tag: int, [group], root: int);
    pvmfscatter_ = pvm_scatter(into: data, data: data, count: int, kind: int, tag: int, [group], root: int);
    pvmfreduce_ = pvm_reduce(function: data, data: data, count: int, kind: int, tag: int, [group], root: int);
}

unsafe extern "C" {
    static stdout: *mut c_void;
    fn pvm_mcast(tasks: *mut c_int, count: c_int, tag: c_int) -> c_int;
    fn pvm_trecv(task: c_int, tag: c_int, time: *mut timeval) -> c_int;
    fn pvm_addmhf(task: c_int, tag: c_int, context: c_int, handler: *mut c_void) -> c_int;
    fn pvm_hostsync(host: c_int, clock: *mut timeval, difference: *mut timeval) -> c_int;
    fn pvm_catchout(to: *mut c_void) -> c_int;
    fn pvm_addhosts(hosts: *mut *const c_char, count: c_int, infos: *mut c_int) -> c_int;
    fn pvm_delhosts(hosts: *mut *const c_char, count: c_int, infos: *mut c_int) -> c_int;
    fn pvm_start_pvmd(count: c_int, arguments: *mut *const c_char, block: c_int) -> c_int;
    fn pvm_spawn(
        program: *const c_char,
        arguments: *mut *mut c_char,
        flags: c_int,
        place: *const c_char,
        count: c_int,
        tasks: *mut c_int,
    ) -> c_int;
}

type Transfer = unsafe extern "C" fn(*mut c_void, c_int, c_int) -> c_int;

/// `STRING`, `BYTE1` and so on to `INTEGER8`: the functions that pack and unpack elements of a type.
fn transfers(kind: c_int) -> Option<(Transfer, Transfer)> {
    macro_rules! of_types {
        ($($number:pat => $pack:ident $unpack:ident)+) => {{
            unsafe extern "C" { $(
                fn $pack(first: *mut c_void, count: c_int, stride: c_int) -> c_int;
                fn $unpack(first: *mut c_void, count: c_int, stride: c_int) -> c_int;
            )+ }
            match kind {
                $($number => Some(($pack as Transfer, $unpack as Transfer)),)+
                _ => None,
            }
        }};
    }
    of_types! {
        0 | 1 => pvm_pkbyte pvm_upkbyte
        2 => pvm_pkshort pvm_upkshort
        3 => pvm_pkint pvm_upkint
        4 => pvm_pkfloat pvm_upkfloat
        5 => pvm_pkcplx pvm_upkcplx
        6 => pvm_pkdouble pvm_upkdouble
        7 => pvm_pkdcplx pvm_upkdcplx
        8 => pvm_pklong pvm_upklong
    }
}

/// The functions that pack or unpack, which have their C string and their place in [`transfers`].
macro_rules! moves {
    ($($name:ident $called:literal $place:tt;)*) => { $(
        /// # Safety
        /// The elements can be read, or written; the numbers are addresses of numbers.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            kind: *const c_int,
            first: *mut c_void,
            count: *const c_int,
            stride: *const c_int,
            info: *mut c_int,
        ) {
            // SAFETY: as the caller says.
            unsafe {
                let moved = transfers(*kind).map(|both| (both.$place)(first, *count, *stride));
                *info = moved.unwrap_or_else(|| report($called, Code::BAD_PARAM.0));
            }
        }
    )* };
}

moves! {
    pvmfpack_ c"pvmfpack" 0;
    pvmfunpack_ c"pvmfunpack" 1;
}

/// # Safety
/// There are so many tasks; the numbers are addresses of numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvmfmcast_(count: *const c_int, tasks: *mut c_int, tag: *const c_int, info: *mut c_int) {
    // SAFETY: as the caller says.
    unsafe { *info = pvm_mcast(tasks, *count, *tag) }
}

/// With seconds below zero it waits for ever.
///
/// # Safety
/// The arguments are addresses of numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvmftrecv_(
    task: *const c_int,
    tag: *const c_int,
    seconds: *const c_int,
    micros: *const c_int,
    buffer: *mut c_int,
) {
    // SAFETY: as the caller says.
    unsafe {
        let mut time = timeval { tv_sec: (*seconds).into(), tv_usec: (*micros).into() };
        let time = if *seconds < 0 { std::ptr::null_mut() } else { &raw mut time };
        *buffer = pvm_trecv(*task, *tag, time);
    }
}

/// The handler has the number of the message's buffer by value.
///
/// # Safety
/// The handler is one; the numbers are addresses of numbers. The fourth argument is not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvmfaddmhf_(
    task: *const c_int,
    tag: *const c_int,
    context: *const c_int,
    _interest: *const c_int,
    handler: *mut c_void,
    info: *mut c_int,
) {
    // SAFETY: as the caller says.
    unsafe { *info = pvm_addmhf(*task, *tag, *context, handler) }
}

/// # Safety
/// The arguments are addresses of numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvmfhostsync_(
    host: *const c_int,
    clock_seconds: *mut c_int,
    clock_micros: *mut c_int,
    difference_seconds: *mut c_int,
    difference_micros: *mut c_int,
    info: *mut c_int,
) {
    let (mut clock, mut difference) = ([0_i64; 2], [0_i64; 2]);
    // SAFETY: a time is two numbers; as the caller says.
    unsafe {
        *info = pvm_hostsync(*host, clock.as_mut_ptr().cast(), difference.as_mut_ptr().cast());
        (*clock_seconds, *clock_micros) = (clock[0] as c_int, clock[1] as c_int);
        (*difference_seconds, *difference_micros) = (difference[0] as c_int, difference[1] as c_int);
    }
}

/// # Safety
/// The arguments are addresses of numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvmfcatchout_(on: *const c_int, info: *mut c_int) {
    // SAFETY: as the caller says; the C library has its stream.
    unsafe { *info = pvm_catchout(if *on == 0 { std::ptr::null_mut() } else { stdout }) }
}

/// # Safety
/// The argument is the address of a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvmfsleep_(seconds: *const c_int) {
    // SAFETY: as the caller says.
    let seconds = unsafe { *seconds };
    std::thread::sleep(std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
}

/// The functions of C for many hosts, for one.
macro_rules! of_host {
    ($($name:ident = $many:ident;)*) => { $(
        /// # Safety
        /// A text and its length; the number is the address of one.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(host: *const u8, info: *mut c_int, length: usize) {
            // SAFETY: as the caller says.
            unsafe {
                let (text, mut of_host) = (c_text(host, length), 0);
                let done = $many(&mut text.as_ptr(), 1, &mut of_host);
                *info = if done < 0 { done } else { of_host };
            }
        }
    )* };
}

of_host! {
    pvmfaddhost_ = pvm_addhosts;
    pvmfdelhost_ = pvm_delhosts;
}

/// The arguments of the daemon stand in one text, with blanks between them.
///
/// # Safety
/// A text and its length; the numbers are addresses of numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvmfstartpvmd_(arguments: *const u8, block: *const c_int, info: *mut c_int, length: usize) {
    // SAFETY: as the caller says.
    unsafe {
        let texts = text::words(arguments, length);
        let mut list: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
        list.push(std::ptr::null());
        *info = pvm_start_pvmd(texts.len() as c_int, list.as_mut_ptr(), *block);
    }
}

/// A place that begins with `*` is any.
///
/// # Safety
/// Two texts and their lengths; there is room for so many tasks; the numbers are addresses of numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvmfspawn_(
    program: *const u8,
    flags: *const c_int,
    place: *const u8,
    count: *const c_int,
    tasks: *mut c_int,
    started: *mut c_int,
    program_length: usize,
    place_length: usize,
) {
    // SAFETY: as the caller says.
    unsafe {
        let (program, place) = (c_text(program, program_length), c_text(place, place_length));
        let somewhere = if place.as_bytes().starts_with(b"*") { std::ptr::null() } else { place.as_ptr() };
        *started = pvm_spawn(program.as_ptr(), std::ptr::null_mut(), *flags, somewhere, *count, tasks);
    }
}
