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

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __vfork() -> pid_t {
    // SAFETY: an alias.
    unsafe { vfork() }
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
pub unsafe extern "C-unwind" fn posix_spawn(
    pid: *mut pid_t,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: Words,
    environment: Words,
) -> c_int {
    life::before_exec(Reason::Exec);
    // SAFETY: the program's own arguments.
    unsafe { real::posix_spawn(pid, path, actions, attributes, arguments, environment) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_spawnp(
    pid: *mut pid_t,
    file: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: Words,
    environment: Words,
) -> c_int {
    life::before_exec(Reason::Exec);
    // SAFETY: the program's own arguments.
    unsafe { real::posix_spawnp(pid, file, actions, attributes, arguments, environment) }
}

/// The child will have this descriptor under another number, whatever its flags say.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_spawn_file_actions_adddup2(actions: *mut c_void, fd: c_int, to: c_int) -> c_int {
    life::note_heir(fd);
    // SAFETY: the program's own arguments.
    unsafe { real::posix_spawn_file_actions_adddup2(actions, fd, to) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn system(command: *const c_char) -> c_int {
    life::before_exec(Reason::Exec);
    // SAFETY: the program's own arguments.
    unsafe { real::system(command) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn popen(command: *const c_char, kind: *const c_char) -> *mut FILE {
    life::before_exec(Reason::Exec);
    // SAFETY: the program's own arguments.
    unsafe { real::popen(command, kind) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn _exit(status: c_int) -> ! {
    life::exit(status)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn _Exit(status: c_int) -> ! {
    life::exit(status)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigaction(signal: c_int, new: *const c_void, old: *mut c_void) -> c_int {
    // SAFETY: the program's own arguments.
    let answer = unsafe { real::sigaction(signal, new, old) };
    signals::changed();
    answer
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __sigaction(number: c_int, new: *const c_void, old: *mut c_void) -> c_int {
    // SAFETY: an alias.
    unsafe { sigaction(number, new, old) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn signal(number: c_int, handler: usize) -> usize {
    // SAFETY: the program's own arguments.
    let before = unsafe { real::signal(number, handler) };
    signals::changed();
    before
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn bsd_signal(number: c_int, handler: usize) -> usize {
    // SAFETY: the same function.
    unsafe { signal(number, handler) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sysv_signal(number: c_int, handler: usize) -> usize {
    // SAFETY: the program's own arguments.
    let before = unsafe { real::sysv_signal(number, handler) };
    signals::changed();
    before
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __sysv_signal(number: c_int, handler: usize) -> usize {
    // SAFETY: an alias.
    unsafe { sysv_signal(number, handler) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn siginterrupt(number: c_int, flag: c_int) -> c_int {
    // SAFETY: the program's own arguments.
    let answer = unsafe { real::siginterrupt(number, flag) };
    signals::changed();
    answer
}
