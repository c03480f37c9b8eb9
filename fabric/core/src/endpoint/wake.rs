//! Event loops that wait for this endpoint among other things: a descriptor in the place of the doorbell.

use super::Endpoint;
use crate::devices::Sleeper;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

impl Endpoint {
    /// A descriptor that can be read when something comes, once it was armed ([`Self::arm_descriptor`]). It stays the
    /// same. From now on others wake this process by a bell, as they do where a job lies on several hosts.
    ///
    /// # Errors
    /// Those of making a socket.
    pub fn wake_descriptor(&mut self) -> io::Result<RawFd> {
        self.card()?;
        match self.sleeper() {
            Sleeper::Sockets(sockets) => Ok(sockets.descriptor()),
            Sleeper::Doorbell(_) | Sleeper::Alone(_) | Sleeper::Bell(_) => {
                Err(io::Error::other("nothing wakes this process by a descriptor"))
            }
        }
    }

    /// Arms the descriptor, after a pass that moved nothing. `None` if something has come meanwhile: make progress, and
    /// try again. Else how long may be waited at most, if that is limited.
    #[allow(clippy::option_option, reason = "whether to wait, and how long")]
    pub fn arm_descriptor(&mut self) -> Option<Option<Duration>> {
        self.disarm();
        if !self.arm() {
            self.disarm();
            return None;
        }
        match self.sleeper() {
            Sleeper::Sockets(sockets) => Some(sockets.due()),
            Sleeper::Doorbell(_) | Sleeper::Alone(_) | Sleeper::Bell(_) => Some(None),
        }
    }
}
