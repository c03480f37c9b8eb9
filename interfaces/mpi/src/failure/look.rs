//! How the process learns of losses: no message tells of them.

use super::round;
use super::spread::tell_all;
use crate::world::World;

/// Learns who is lost and what is revoked; true if anything changed.
pub(crate) fn look(world: &mut World) -> bool {
    let mut lost = world.endpoint.look_for_lost();
    lost.retain(|peer| !world.failures.lost.contains(peer));
    lost.iter().for_each(|peer| round::handle_lost(world, *peer));
    let changed = !lost.is_empty();
    world.failures.lost.extend(lost);
    tell_all(world);
    let heard = round::advance(world);
    changed | heard
}
