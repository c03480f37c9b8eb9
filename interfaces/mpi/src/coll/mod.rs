//! Collective operations.

use crate::world::World;
use weft_fabric::Outside;

/// Schedules under way.
#[derive(Default)]
pub struct Active {}

/// What collectives keep for each communicator.
#[derive(Default)]
pub struct CommState {}

/// Moves the schedules; see [`weft_fabric::Driven::advance`].
pub fn advance(_world: &mut World) -> Option<Outside> {
    None
}
