//! A network namespace of its own for each test, with a loopback and a rendezvous that nobody else uses.

use std::io;
use std::process::{Child, Command, Stdio};

/// Runs `play` in a child process in a network namespace of its own; its panic is the test's.
pub fn alone(play: impl FnOnce()) {
    // SAFETY: the child runs the play and ends; what it needs of other threads is nothing but the allocator, whose
    // locks glibc restores after a fork.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork: {}", io::Error::last_os_error());
    if child == 0 {
        end_with(|| {
            own_network().expect("a network namespace");
            play();
        });
    }
    assert_eq!(collect(child), 0, "the play failed, see above");
}

/// Ends this process with 0, or with 1 after a panic.
pub fn end_with(body: impl FnOnce()) -> ! {
    let good = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_ok();
    // SAFETY: ends at once.
    unsafe { libc::_exit(if good { 0 } else { 1 }) }
}

/// A child that runs `body`.
pub fn child(body: impl FnOnce()) -> i32 {
    // SAFETY: the process that calls this has one thread.
    match unsafe { libc::fork() } {
        0 => end_with(body),
        child => child,
    }
}

/// Exit code, or minus the signal.
pub fn collect(child: i32) -> i32 {
    let mut status = 0;
    // SAFETY: a valid place.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child, "{}", io::Error::last_os_error());
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) }
}

fn own_network() -> io::Result<()> {
    // SAFETY: plain calls; the request holds a name and flags.
    unsafe {
        if libc::unshare(libc::CLONE_NEWNET) != 0 && libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) != 0 {
            return Err(io::Error::last_os_error());
        }
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0);
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
        let up = libc::ioctl(socket, libc::SIOCSIFFLAGS, &request);
        libc::close(socket);
        if up != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// A running rendezvous.
pub struct Rendezvous(Child);

impl Rendezvous {
    pub fn start() -> Self {
        let mut child =
            Command::new(env!("CARGO_BIN_EXE_weft")).arg("rendezvous").stdin(Stdio::null()).spawn().expect("weft");
        while weft_agent::rendezvous::survey().is_err() {
            assert!(child.try_wait().expect("a child").is_none(), "the rendezvous ended at once");
            std::thread::yield_now();
        }
        Self(child)
    }

    pub fn kill(&mut self) {
        self.0.kill().expect("kill");
        self.0.wait().expect("wait");
    }
}

impl Drop for Rendezvous {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
