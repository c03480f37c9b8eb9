//! Bytes between two processes, without messages: they go straight into the receiver's buffer.
//!
//! What one process sends another receives in order, in pieces of whatever lengths. Beside ports, and in no order with
//! messages.

use crate::desk::FABRIC;
use crate::error::{NativeError, Result};
use crate::known;
use weft_ports::Peer;

fn to_oneself(process: Peer) -> Result<()> {
    known::known(process)?;
    match process == known::me() {
        true => Err(NativeError::argument("a process has no raw bytes for itself")),
        false => Ok(()),
    }
}

#[inline]
pub(crate) fn send(to: Peer, bytes: &[u8]) -> Result<()> {
    to_oneself(to)?;
    Ok(FABRIC.send_raw("weft_raw_send", to, bytes)?)
}

#[inline]
pub(crate) fn receive(from: Peer, room: &mut [u8]) -> Result<()> {
    to_oneself(from)?;
    Ok(FABRIC.receive_raw("weft_raw_receive", from, room)?)
}
