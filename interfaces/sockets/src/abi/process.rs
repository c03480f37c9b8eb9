//! Calls that make, replace and end processes, and that set what signals do.

use std::ffi::{c_char, c_int, c_void};

use libc::{FILE, pid_t};
use weft_fabric::stream::Reason;

use super::heirs;
use crate::{life, real, signals, udp};

type Words = *const *const c_char;

/// The work is done in the handlers of forks, which run also in the C library's own; they are not told of a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fork() -> pid_t {
    // SAFETY: the program's own call.
    life::forking(|| unsafe { real::fork() })
}

/// This one has no handlers.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn _Fork() -> pid_t {
    life::forking(|| {
        life::before_fork();
        // SAFETY: the program's own call.
        let child = unsafe { real::_Fork() };
        if child == 0 {
            life::after_fork_in_child()
        } else {
            life::after_fork_in_parent()
        }
        child
    })
}

/// A child that shares our memory would change our tables for descriptors that are its own: it gets a copy.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn vfork() -> pid_t {
    // SAFETY: whoever may vfork may fork.
    unsafe { fork() }
}

unsafe extern "C" {
    static environ: Words;
}

/// Runs `call`, which replaces the program or fails.
fn replace(call: impl FnOnce() -> c_int) -> c_int {
    life::before_exec(Reason::Exec);
    life::leave();
    udp::leave();
    let answer = call();
    life::stay();
    answer
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execve(path: *const c_char, arguments: Words, environment: Words) -> c_int {
    // SAFETY: the program's own arguments.
    replace(|| unsafe { heirs::with_environment(environment, |given| real::execve(path, arguments, given)) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execv(path: *const c_char, arguments: Words) -> c_int {
    // SAFETY: the program's own arguments.
    replace(|| unsafe { heirs::with_environment(environ, |given| real::execve(path, arguments, given)) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execvp(path: *const c_char, arguments: Words) -> c_int {
    // SAFETY: the program's own arguments.
    replace(|| unsafe { heirs::with_environment(environ, |given| real::execvpe(path, arguments, given)) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execvpe(path: *const c_char, arguments: Words, environment: Words) -> c_int {
    // SAFETY: the program's own arguments.
    replace(|| unsafe { heirs::with_environment(environment, |given| real::execvpe(path, arguments, given)) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fexecve(fd: c_int, arguments: Words, environment: Words) -> c_int {
    // SAFETY: the program's own arguments.
    replace(|| unsafe { heirs::with_environment(environment, |given| real::fexecve(fd, arguments, given)) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execveat(
    directory: c_int,
    path: *const c_char,
    arguments: Words,
    environment: Words,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's own arguments.
    replace(|| unsafe {
        heirs::with_environment(environment, |given| real::execveat(directory, path, arguments, given, flags))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn _exit(status: c_int) -> ! {
    life::exit(status)
}

before! {
    posix_spawn(
        pid: *mut pid_t, path: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: Words,
        environment: Words
    ) -> c_int: life::before_exec(Reason::Exec);
    posix_spawnp(
        pid: *mut pid_t, file: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: Words,
        environment: Words
    ) -> c_int: life::before_exec(Reason::Exec);
    /// The child will have this descriptor under another number, whatever its flags say.
    posix_spawn_file_actions_adddup2(actions: *mut c_void, fd: c_int, to: c_int) -> c_int: life::note_heir(fd);
    system(command: *const c_char) -> c_int: life::before_exec(Reason::Exec);
    popen(command: *const c_char, kind: *const c_char) -> *mut FILE: life::before_exec(Reason::Exec);
}

/// What a signal does changes, or may have.
macro_rules! changing {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> $answer {
            // SAFETY: the program's own arguments.
            let answer = unsafe { real::$name($($argument),*) };
            signals::changed();
            answer
        }
    )* };
}

changing! {
    sigaction(signal: c_int, new: *const c_void, old: *mut c_void) -> c_int;
    signal(number: c_int, handler: usize) -> usize;
    sysv_signal(number: c_int, handler: usize) -> usize;
    siginterrupt(number: c_int, flag: c_int) -> c_int;
}

aliases! {
    __vfork() -> pid_t = vfork;
    _Exit(status: c_int) -> ! = _exit;
    __sigaction(number: c_int, new: *const c_void, old: *mut c_void) -> c_int = sigaction;
    bsd_signal(number: c_int, handler: usize) -> usize = signal;
    __sysv_signal(number: c_int, handler: usize) -> usize = sysv_signal;
}
