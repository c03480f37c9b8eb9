//! Asking to be told that a process is gone.

use crate::desk::FABRIC;
use crate::error::{NativeError, Result};
use crate::known::{self, PortNumber};
use crate::message::destination;
use crate::port;
use weft_ports::Peer;

/// Has a message come to a port of this process once another one is gone.
pub(crate) fn notify(process: Peer, port: PortNumber, tag: i32) -> Result<()> {
    destination(process, port, tag)?;
    port::open(port)?;
    if process == known::me() {
        return Err(NativeError::argument(format!("process {} is this one, which sees no end of its own", process.0)));
    }
    FABRIC.with_both(|endpoint, desk| {
        desk.notices.add(process, port, tag);
        desk.look(endpoint);
    });
    Ok(())
}
