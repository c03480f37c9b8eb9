//! The processes that this one has forked, and what all of them know of the job: a page of numbers in shared memory.
//!
//! Who is killed takes the job along: the parent of a killed process ends the others, and whose parent is killed is
//! ended by the system.
//!
//! Invariants:
//! - The handler of the signal touches atomics only, and calls only what a handler may.
//! - It reaps no process but those that were forked here, so that those of the program stay the program's.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering};

/// Processes of a job, at most.
pub const MOST: usize = 4096;

/// What all processes of a job know.
#[repr(C)]
pub struct Register {
    /// Whether one of them has ended the job.
    is_over: AtomicBool,
    pids: [AtomicI32; MOST],
}

/// How long the end of a child may go unseen where the program has a handler of its own.
const LOOK: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The register, once there is one.
static REGISTER: AtomicPtr<Register> = AtomicPtr::new(std::ptr::null_mut());
/// The processes that this one has forked and that have not ended; 0 is an empty place.
static CHILDREN: [AtomicI32; MOST] = [const { AtomicI32::new(0) }; MOST];
static USED: AtomicUsize = AtomicUsize::new(0);

fn register() -> Option<&'static Register> {
    // SAFETY: null, or what `begin` was given.
    unsafe { REGISTER.load(Ordering::Acquire).as_ref() }
}

/// Begins the register of a job, in memory that forks share.
pub fn begin(register: &'static Register) {
    REGISTER.store(std::ptr::from_ref(register).cast_mut(), Ordering::Release);
}

/// The system's number of a process of the job.
pub fn pid(process: usize) -> i32 {
    register().and_then(|register| register.pids.get(process)).map_or(0, |pid| pid.load(Ordering::Relaxed))
}

/// Notes which process of the job this is.
pub fn note(process: usize) {
    if let Some(place) = register().and_then(|register| register.pids.get(process)) {
        place.store(std::process::id() as i32, Ordering::Relaxed);
    }
}

/// Ends all other processes of the job.
pub fn end_job() {
    let Some(register) = register() else { return };
    register.is_over.store(true, Ordering::Relaxed);
    let me = std::process::id() as i32;
    let forked = CHILDREN.iter().take(USED.load(Ordering::Relaxed).min(MOST));
    for pid in register.pids.iter().chain(forked).map(|pid| pid.load(Ordering::Relaxed)) {
        if pid > 1 && pid != me {
            // SAFETY: sends a signal to a process of the job.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
}

/// Forks. `None` in the new process, which has no children, and ends with its parent.
///
/// # Errors
/// The system gives no process.
pub fn fork() -> std::io::Result<Option<i32>> {
    let parent = std::process::id() as i32;
    watch();
    // SAFETY: may be called at any time; what waits to be printed is printed once.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    // SAFETY: the library has no threads here, and the child goes on with all of this process's memory.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()),
        0 => {
            USED.store(0, Ordering::Relaxed);
            // SAFETY: takes numbers; the parent may have ended before.
            let has_ended = unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::getppid() != parent
            };
            if has_ended {
                // SAFETY: ends the process.
                unsafe { libc::_exit(1) };
            }
            Ok(None)
        }
        pid => {
            let place = USED.load(Ordering::Relaxed);
            if let Some(child) = CHILDREN.get(place) {
                child.store(pid, Ordering::Relaxed);
                USED.store(place + 1, Ordering::Release);
            }
            // It may have ended before it stood there.
            reap();
            Ok(Some(pid))
        }
    }
}

/// Lets the end of a child be seen at once, whatever the program does then.
fn watch() {
    static IS_WATCHED: AtomicBool = AtomicBool::new(false);
    if IS_WATCHED.swap(true, Ordering::Relaxed) {
        return;
    }
    // SAFETY: zero is a value of this structure; the handler is one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_child as *const () as usize;
        action.sa_flags = libc::SA_RESTART | libc::SA_NOCLDSTOP;
        libc::sigaction(libc::SIGCHLD, &action, std::ptr::null_mut());
    }
}

extern "C" fn on_child(_signal: i32) {
    // SAFETY: the place of the thread's error number, which the program may be about to read.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    reap();
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// Takes note of children that have ended; a killed one ends the job. Called by the handler of a signal.
fn reap() {
    for child in CHILDREN.iter().take(USED.load(Ordering::Acquire).min(MOST)) {
        let pid = child.load(Ordering::Relaxed);
        let mut status = 0;
        // SAFETY: asks for a child of ours, and may be called in a handler.
        if pid == 0 || unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } == 0 {
            continue;
        }
        child.store(0, Ordering::Relaxed);
        // Its number may be another process's from now on.
        for known in register().iter().flat_map(|register| &register.pids) {
            let _ = known.compare_exchange(pid, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
        let is_over = register().is_some_and(|register| register.is_over.load(Ordering::Relaxed));
        if libc::WIFSIGNALED(status) && !is_over {
            say_killed(pid, libc::WTERMSIG(status));
        }
        if libc::WIFSIGNALED(status) || is_over {
            end_job();
            // SAFETY: ends the process, and may be called in a handler.
            unsafe { libc::_exit(1) };
        }
    }
}

/// Says so without allocating anything.
fn say_killed(pid: i32, signal: i32) {
    let mut line = [0; 100];
    let mut at = 0;
    let mut add = |bytes: &[u8]| {
        let end = (at + bytes.len()).min(line.len());
        line[at..end].copy_from_slice(&bytes[..end - at]);
        at = end;
    };
    let mut digits = [0; 12];
    add(b"p4_error: process ");
    add(decimal(pid, &mut digits));
    add(b" of the job was ended by signal ");
    add(decimal(signal, &mut digits));
    add(b"\n");
    // SAFETY: so many bytes of ours; may be called in a handler.
    unsafe { libc::write(2, line.as_ptr().cast(), at) };
}

fn decimal(mut number: i32, room: &mut [u8; 12]) -> &[u8] {
    let mut at = room.len();
    loop {
        at -= 1;
        room[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number <= 0 || at == 0 {
            return &room[at..];
        }
    }
}

/// Waits until all processes have ended that this one has forked.
pub fn wait() {
    // SAFETY: sets of signals of ours; the mask of this thread is what it was afterwards.
    unsafe {
        let (mut blocked, mut before) = (std::mem::zeroed::<libc::sigset_t>(), std::mem::zeroed::<libc::sigset_t>());
        libc::sigemptyset(&mut blocked);
        libc::sigaddset(&mut blocked, libc::SIGCHLD);
        libc::pthread_sigmask(libc::SIG_BLOCK, &blocked, &mut before);
        let mut open = before;
        libc::sigdelset(&mut open, libc::SIGCHLD);
        loop {
            reap();
            let used = USED.load(Ordering::Relaxed).min(MOST);
            if CHILDREN.iter().take(used).all(|child| child.load(Ordering::Relaxed) == 0) {
                break;
            }
            libc::ppoll(std::ptr::null_mut(), 0, &LOOK, &open);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_decimal() {
        let mut room = [0; 12];
        assert_eq!(
            [0, 7, 4_194_304].map(|number| decimal(number, &mut room).to_vec()),
            [b"0".to_vec(), b"7".to_vec(), b"4194304".to_vec()]
        );
    }
}
