//! Joining the job, and leaving it.

use crate::arrived::Inbound;
use crate::failure::Answer;
use crate::kept::Outbound;
use crate::meeting::Spmd;
use crate::tables::Tables;
use crate::world::{AmWorld, WORLD, enter};
use weft_fabric::{Endpoint, InterfaceName, JoinError};

/// Opens the world, or counts that it is opened once more. With `threads` several may call at the same time.
pub fn open() -> Result<(), JoinError> {
    if WORLD.is_open() {
        WORLD.enter().opened += 1;
        return Ok(());
    }
    let mut world = AmWorld {
        endpoint: Endpoint::join_as(InterfaceName::Am, &[])?,
        tables: Tables::new(),
        inbound: Inbound::default(),
        outbound: Outbound::default(),
        spmd: Spmd::default(),
        opened: 1,
        idle_polls: 0,
    };
    world.post_receives();
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
    inbound.withdraw(&mut endpoint);
    endpoint.leave();
    // What is on its way was read until here.
    drop(outbound);
    drop(inbound);
}
