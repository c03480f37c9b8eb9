//! The attributes that every communicator has from the start (MPI 5.0, section 9.1.2).

use crate::abi::{
    ANY_SOURCE, APPNUM, ERR_LASTCODE, HOST, IO, LASTUSEDCODE, PROC_NULL, TAG_UB, UNIVERSE_SIZE, WTIME_IS_GLOBAL,
};
use crate::world::World;
use std::sync::atomic::{AtomicI32, Ordering};
use weft_fabric::Peer;

/// `MPI_Comm_get_attr` gives out addresses, so the values have fixed places.
static VALUES: [AtomicI32; 7] = [
    AtomicI32::new(i32::MAX),     // MPI_TAG_UB
    AtomicI32::new(ANY_SOURCE),   // MPI_IO: every process may use files
    AtomicI32::new(PROC_NULL),    // MPI_HOST: there is no host process
    AtomicI32::new(0),            // MPI_WTIME_IS_GLOBAL
    AtomicI32::new(0),            // MPI_APPNUM
    AtomicI32::new(ERR_LASTCODE), // MPI_LASTUSEDCODE
    AtomicI32::new(1),            // MPI_UNIVERSE_SIZE
];

const KEYS: [i32; 7] = [TAG_UB, IO, HOST, WTIME_IS_GLOBAL, APPNUM, LASTUSEDCODE, UNIVERSE_SIZE];

/// Where the value under a predefined key stands.
pub fn place(keyval: i32) -> Option<usize> {
    let index = KEYS.iter().position(|&key| key == keyval)?;
    Some(VALUES[index].as_ptr() as usize)
}

fn set(keyval: i32, value: i32) {
    if let Some(index) = KEYS.iter().position(|&key| key == keyval) {
        VALUES[index].store(value, Ordering::Relaxed);
    }
}

pub fn set_last_used_code(code: i32) {
    set(LASTUSEDCODE, code);
}

/// Sets what depends on the job: the clock is global while all processes share a machine.
pub fn set_predefined(world: &World) {
    let size = world.endpoint.world_size();
    let one_host = (0..size).all(|rank| world.endpoint.is_local(Peer(rank)));
    set(WTIME_IS_GLOBAL, one_host as i32);
    let promised = world.endpoint.settings().universe.map_or(size, |promised| promised as u32);
    set(UNIVERSE_SIZE, promised.max(size) as i32);
    let application = std::env::var("PMI_APPNUM").ok().and_then(|text| text.parse().ok());
    set(APPNUM, application.unwrap_or(0));
}
