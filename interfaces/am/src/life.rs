//! Joining the job, and leaving it.

use crate::arrived::Inbound;
use crate::failure::Answer;
use crate::kept::{AmContext, AmOutbound};
use crate::meeting::Spmd;
use crate::message::ROOM_BYTES;
use crate::tables::AmTables;
use crate::world::{AmWorld, WORLD, enter};
use weft_fabric::{Endpoint, InterfaceName, JoinError};
use weft_ports::ready::ReadyReceives;

/// Opens the world, or counts that it is opened once more. With `threads` several may call at the same time.
pub fn open() -> Result<(), JoinError> {
    if WORLD.is_open() {
        WORLD.enter().opened += 1;
        return Ok(());
    }
    let mut endpoint = Endpoint::join_as(InterfaceName::Am, &[])?;
    let mut ready = ReadyReceives::new(AmContext::Messages as u32, ROOM_BYTES);
    ready.post(&mut endpoint);
    let world = AmWorld {
        endpoint,
        tables: AmTables::new(),
        inbound: Inbound { ready, coming: Vec::new() },
        outbound: AmOutbound::default(),
        spmd: Spmd::default(),
        opened: 1,
        idle_polls: 0,
        polled: None,
    };
    WORLD.open(world, false);
    WORLD.lend();
    Ok(())
}

/// Leaves the job when this is the last one to close.
pub fn close() -> Answer<()> {
    let mut world = enter()?;
    world.opened -= 1;
    let is_last = world.opened == 0;
    drop(world);
    if is_last {
        leave();
    }
    Ok(())
}

/// Leaves the job once everything has left that was sent.
pub fn leave() {
    let AmWorld { mut endpoint, mut inbound, outbound, .. } = WORLD.close();
    inbound.ready.withdraw(&mut endpoint);
    endpoint.leave();
    // What is on its way was read until here.
    drop(outbound);
    drop(inbound);
}
