//! Where processes of a host that are connected by TCP find each other, to go on over shared memory.
//!
//! A process shows a connected socket (the descriptor itself, so that nobody can speak for a connection that is not
//! his). When both ends of a connection have been shown, both processes are told, and given an arena: memory that the
//! two share. Which bytes go where is theirs; here nobody reads them.
//!
//! Invariants:
//! - what is shown is looked at and closed at once: an end of a connection inside the host is never kept alive here;
//! - nobody is waited for: a process that does not read its mail loses it;
//! - the death of this process costs future meetings, nothing else. It ends by itself when nobody needs it.
//!
//! Ends of connections to other hosts go to a guardian, if there is one ([`Guardian`]), and to nobody else. It keeps
//! them, and connections that go by its lanes are reset, by the processes here, when it has ended.
//!
//! Test: `cargo test -p weft-agent rendezvous`; `cargo test -p weft-fabric --test streams` with real processes.

mod datagrams;
mod server;
mod survey;
#[allow(unsafe_code)]
mod sys;
mod table;

pub use survey::{Survey, SurveyedConnection, SurveyedFar, SurveyedProcess, survey};

use std::io;
use std::time::Duration;
use weft_lanes::Guardian;
use weft_wire::stream::packet::{COMMON_NAME, user_name};

/// How long the rendezvous lives without anybody.
pub const IDLE: Duration = Duration::from_secs(60);

/// Sees to it that a rendezvous answers this user's processes: root's, this user's own, or a new one that runs by
/// itself until nobody has been there for [`IDLE`]. The process that calls this must have one thread only.
///
/// # Errors
/// When none can be started.
pub fn ensure() -> io::Result<()> {
    ensure_for(IDLE)
}

/// As [`ensure`], for a time of the caller's choice. One that runs already keeps its own.
///
/// # Errors
/// As [`ensure`].
pub fn ensure_for(idle: Duration) -> io::Result<()> {
    if sys::connect().is_ok() {
        return Ok(());
    }
    let sockets = match listen() {
        Ok(sockets) => sockets,
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => return await_other(),
        Err(error) => return Err(error),
    };
    let keep: Vec<_> = sockets.iter().map(sys::RendezvousListener::descriptor).collect();
    sys::detached(&keep, move || drop(server::run(sockets, None, idle)))
}

/// Our name is taken: another process of this user was faster, and listens in a moment, or another user has it.
fn await_other() -> io::Result<()> {
    let (name, length) = user_name(sys::user());
    for _ in 0..LOOKS {
        match sys::connect() {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => break,
            Err(_) => std::thread::sleep(LOOK),
        }
    }
    Err(sys::squatted(&name[..length]))
}

/// For one that has bound its name and is about to listen.
const LOOKS: u32 = 50;
const LOOK: Duration = Duration::from_millis(10);

/// Root only: the second name, under which its rendezvous joins processes of different users, is another user's. An
/// error that says so, if it is.
#[must_use]
pub fn common_name_is_squatted() -> Option<io::Error> {
    let name = COMMON_NAME.as_bytes();
    (sys::user() == 0 && sys::is_squatted(name)).then(|| sys::squatted(name))
}

/// Serves until nobody has been there for `idle`.
///
/// # Errors
/// `AddrInUse` when this user has one already; `PermissionDenied` when another user has the name; what else the kernel
/// refuses.
pub fn run(idle: Duration) -> io::Result<()> {
    server::run(listen_alone()?, None, idle)
}

/// As [`listen`], and says of a name that is taken whether it is another user's.
fn listen_alone() -> io::Result<Vec<sys::RendezvousListener>> {
    let (name, length) = user_name(sys::user());
    listen().map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse if sys::is_squatted(&name[..length]) => sys::squatted(&name[..length]),
        _ => error,
    })
}

/// As [`run`], with connections to other hosts. `guardian` is made once it is known that no other rendezvous serves.
///
/// # Errors
/// As [`run`], or what `guardian` says.
pub fn run_with<E: From<io::Error>>(
    guardian: impl FnOnce() -> Result<Box<dyn Guardian>, E>,
    idle: Duration,
) -> Result<(), E> {
    let sockets = listen_alone()?;
    sys::raise_limit();
    Ok(server::run(sockets, Some(guardian()?), idle)?)
}

/// Root's serves everybody, under a second name.
fn listen() -> io::Result<Vec<sys::RendezvousListener>> {
    let (name, length) = user_name(sys::user());
    let mut sockets = vec![sys::RendezvousListener::bind(&name[..length])?];
    if sys::user() == 0
        && let Ok(common) = sys::RendezvousListener::bind(COMMON_NAME.as_bytes())
    {
        sockets.push(common);
    }
    Ok(sockets)
}
