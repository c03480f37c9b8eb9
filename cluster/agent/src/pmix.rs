//! The PMIx server of the ranks of this host, as the launcher or agent sees it that has started it.
//!
//! It is a process beside the keeper, and not its child: it is no rank, nobody counts it, and it ends when its socket
//! does. What it says is passed on; only whether it can serve is known here.

use crate::{LaunchError, sys};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use weft_cluster::pmix::{PmixPieces, PmixSaid, framed};
use weft_kernel::{await_events, close_all_but};
use weft_pmix::PmixJob;

/// The library looks at the machine before it serves. This has nothing to do with how long a host may take to answer.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// It ends at once; who does not is stuck in the library.
const LEAVE_TIME: Duration = Duration::from_secs(1);

pub struct PmixServer {
    pid: i32,
    socket: UnixStream,
    pieces: PmixPieces,
    unsent: Vec<u8>,
    /// Nothing more is heard of it.
    gone: bool,
}

/// What the environment of each rank of this host is to have.
pub type Environments = Vec<Vec<(String, String)>>;

impl PmixServer {
    /// Forks it; it is to serve with the first of these libraries that can be loaded.
    pub fn begin(job: &PmixJob, libraries: &[OsString]) -> Result<BeginningPmix, LaunchError> {
        let error = LaunchError::system("PMIx server");
        let (socket, theirs) = UnixStream::pair().map_err(&error)?;
        match sys::fork().map_err(&error)? {
            sys::Fork::Child => {
                drop(socket);
                live(theirs, job, libraries)
            }
            sys::Fork::Parent { child: pid } => {
                drop(theirs);
                socket.set_nonblocking(true).map_err(&error)?;
                let server = Self { pid, socket, pieces: PmixPieces::default(), unsent: Vec::new(), gone: false };
                Ok(BeginningPmix { server, end: Instant::now() + PATIENCE })
            }
        }
    }

    /// What is to be polled, and for what; nothing when it is gone.
    pub fn interest(&self) -> Option<(RawFd, i16)> {
        let write = if self.unsent.is_empty() { 0 } else { libc::POLLOUT };
        (!self.gone).then(|| (self.socket.as_raw_fd(), libc::POLLIN | write))
    }

    /// Whether it has ended before it was told to.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// The next thing that it has said.
    pub fn poll_piece(&mut self) -> Option<Vec<u8>> {
        let mut bytes = [0; 4096];
        loop {
            match self.pieces.poll_piece() {
                Ok(Some(piece)) => return Some(piece),
                Ok(None) if self.gone => return None,
                Ok(None) => {}
                Err(_) => {
                    self.gone = true;
                    return None;
                }
            }
            match self.socket.read(&mut bytes) {
                Ok(0) => self.gone = true,
                Ok(count) => self.pieces.handle_bytes(&bytes[..count]),
                Err(error) if sys::is_temporary(&error) => return None,
                Err(_) => self.gone = true,
            }
        }
    }

    /// Says this, at once if there is room.
    pub fn tell(&mut self, piece: &[u8]) {
        self.unsent.extend(framed(piece));
        self.flush();
    }

    pub fn flush(&mut self) {
        while !self.unsent.is_empty() && !self.gone {
            match self.socket.write(&self.unsent) {
                Ok(count) => _ = self.unsent.drain(..count),
                Err(error) if sys::is_temporary(&error) => return,
                Err(_) => self.gone = true,
            }
        }
    }

    /// Nobody needs it any more. Dropping it elsewhere, as the keeper does, leaves it alone.
    pub fn end(mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
        let end = Instant::now() + LEAVE_TIME;
        while !self.gone {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let _ = sys::kill(self.pid, libc::SIGKILL);
                break;
            }
            let _ = await_events(self.socket.as_raw_fd(), libc::POLLIN, Some(left));
            while self.poll_piece().is_some() {}
        }
        sys::wait_for(self.pid);
    }
}

/// One that does not serve yet.
pub struct BeginningPmix {
    server: PmixServer,
    end: Instant,
}

/// What has become of it so far.
pub enum PmixOutlook {
    /// Nothing yet: look again when its descriptor has something, and after this time at the latest.
    Wait(BeginningPmix, Duration),
    Serves(PmixServer, Environments),
}

impl BeginningPmix {
    /// Waits until it serves.
    pub fn wait(mut self) -> Result<(PmixServer, Environments), LaunchError> {
        loop {
            match self.look()? {
                PmixOutlook::Serves(server, environments) => return Ok((server, environments)),
                PmixOutlook::Wait(this, left) => {
                    let _ = await_events(this.fd(), libc::POLLIN, Some(left));
                    self = this;
                }
            }
        }
    }

    pub fn fd(&self) -> RawFd {
        self.server.socket.as_raw_fd()
    }

    /// # Errors
    /// It does not come to serve.
    pub fn look(mut self) -> Result<PmixOutlook, LaunchError> {
        let left = self.end.saturating_duration_since(Instant::now());
        let said = self.server.poll_piece().map(|piece| PmixSaid::decode(&piece));
        let why = match said {
            Some(Ok(PmixSaid::Ready { environments })) => return Ok(PmixOutlook::Serves(self.server, environments)),
            Some(Ok(PmixSaid::Failed { reason })) => reason,
            Some(_) => "it said what means nothing".to_owned(),
            None if self.server.gone => "it has ended".to_owned(),
            None if left.is_zero() => format!("it did not begin to serve within {} s", PATIENCE.as_secs()),
            None => return Ok(PmixOutlook::Wait(self, left)),
        };
        self.give_up();
        Err(LaunchError::Pmix(why))
    }

    /// It may hang in its library.
    pub fn give_up(self) {
        let _ = sys::kill(self.server.pid, libc::SIGKILL);
        sys::wait_for(self.server.pid);
    }
}

/// Lives as the server. What was inherited is of no use here.
fn live(socket: UnixStream, job: &PmixJob, libraries: &[OsString]) -> ! {
    let _ = sys::own_group();
    let _ = sys::SignalSet::all().block();
    sys::reset_signal(libc::SIGCHLD);
    sys::set_name(c"weft-pmix");
    if let Ok(nothing) = std::fs::File::options().read(true).write(true).open("/dev/null") {
        let _ = sys::replace(0, &nothing).and_then(|()| sys::replace(1, &nothing));
    }
    close_all_but(3, &[socket.as_raw_fd()]);
    sys::exit_now(weft_pmix::serve(socket, job, libraries))
}
