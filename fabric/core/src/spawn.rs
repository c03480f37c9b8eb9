//! Starting other jobs out of this one, and finding those who have started this one.
//!
//! Whoever spawns opens a door and has a launcher started, which gets its order there. In a job of our own launcher
//! that one starts the other, waits for it and ends it with itself; a process that nobody has launched starts it alone.

use crate::api::Peer;
use crate::door::Door;
use crate::endpoint::Endpoint;
use crate::join::ManagerAsk;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
pub use weft_cluster::job::Program;
use weft_cluster::spawn::ORDER_VARIABLE;
pub use weft_cluster::spawn::{PARENT_VARIABLE, SIGNALS, SignalWish, SpawnOrder, SpawnWord};
pub use weft_cluster::state::Exit;

/// `ECHILD`.
const NO_CHILD: i32 = 10;

impl Endpoint {
    /// A door where processes of other jobs reach this one.
    ///
    /// # Errors
    /// Those of making a socket.
    pub fn open_door(&mut self) -> io::Result<Door> {
        let card = self.card()?;
        if self.settings().encrypt && !card.addresses().iter().all(IpAddr::is_loopback) {
            let line = "what jobs tell each other when they meet is not encrypted, and this one is (WEFT_ENCRYPT)";
            return Err(io::Error::other(line));
        }
        Door::open(card.addresses())
    }

    /// Has a launcher started, which gets its order at the door of this name.
    ///
    /// # Errors
    /// Why there will be none.
    pub fn start_launcher(&mut self, door: &str) -> Result<(), String> {
        match self.own_launcher() {
            Some(manager) => {
                let asked = manager.ask(ManagerAsk::Spawn, door, "");
                asked.map(drop).map_err(|error| format!("the launcher cannot be asked: {error}"))
            }
            None => start_apart(door),
        }
    }

    /// Has the launcher send a signal to a process of this job.
    ///
    /// # Errors
    /// No launcher of ours has started the job, or it refuses.
    pub fn signal(&self, peer: Peer, signal: i32) -> Result<(), String> {
        let launcher = self.own_launcher().filter(|_| peer.0 < self.world_size());
        let launcher = launcher.ok_or("weft run has not started it")?;
        let asked = launcher.ask(ManagerAsk::Signal, &peer.0.to_string(), &signal.to_string());
        asked.map(drop).map_err(|error| error.to_string())
    }

    /// The door of those who have spawned this process by this interface, once.
    pub fn take_parent(&mut self) -> Option<String> {
        self.parent.take()
    }
}

fn start_apart(door: &str) -> Result<(), String> {
    let weft = find_weft().ok_or("no weft is beside this library, and none is in PATH: it starts processes")?;
    let mut command = Command::new(&weft);
    command.args(["spawned", "--apart"]).env(ORDER_VARIABLE, door).stdin(Stdio::null());
    let failed = |why: String| format!("'{}' cannot be started: {why}", weft.display());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(status.to_string())),
        // A program that ignores the ends of its children has no codes of theirs. It shows by nobody's coming.
        Err(error) if error.raw_os_error() == Some(NO_CHILD) => Ok(()),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// The command that was installed with the library which this code stands in, or else the one in `PATH`.
pub fn find_weft() -> Option<PathBuf> {
    let beside = library().and_then(|library| Some(library.parent()?.parent()?.join("bin/weft")));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|place| place.join("weft"));
    beside.into_iter().chain(in_path).find(|file| file.is_file())
}

/// The file that this code was loaded from.
fn library() -> Option<PathBuf> {
    let here = library as fn() -> Option<PathBuf> as usize;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let number = |text| usize::from_str_radix(text, 16).ok();
        range
            .and_then(|(from, to)| Some((number(from)?, number(to)?)))
            .is_some_and(|(from, to)| (from..to).contains(&here))
    })?;
    let name = &line[line.find('/')?..];
    Path::new(name).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_this_code_is_found() {
        let found = library().expect("it was loaded from a file");
        assert_eq!(found, std::env::current_exe().expect("a test is a program").canonicalize().expect("it exists"));
    }
}
