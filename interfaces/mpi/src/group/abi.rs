//! Bodies of the group functions.

use super::{Group, Likeness, subset};
use crate::abi::{GROUP_EMPTY, GROUP_NULL, PROC_NULL, UNDEFINED, gives, slice_of};
use crate::error::{Class, Error, RANKS, Result, null_place};
use crate::world::{WORLD, World};
use std::sync::Arc;
use weft_fabric::Peer;

/// A handle for the group; an empty one is always `MPI_GROUP_EMPTY`.
pub(crate) fn insert(world: &mut World, group: Arc<Group>) -> usize {
    if group.size() == 0 { GROUP_EMPTY } else { world.groups.insert(group) }
}

pub(crate) fn of(handle: usize, argument: &'static str) -> Result<Arc<Group>> {
    WORLD.enter().groups.named(argument, handle).cloned()
}

/// The handle of a group that was made out of `origin`.
fn made(members: Vec<Peer>, origin: &Group) -> usize {
    let mut world = WORLD.enter();
    let me = world.endpoint.me();
    insert(&mut world, Arc::new(Group::new(members, me).of_session(origin.session())))
}

gives! {
    size(group) -> i32 = of(group, "group")?.size() as i32;
    rank(group) -> i32 = of(group, "group")?.mine().map_or(UNDEFINED, |rank| rank as i32);
}

pub unsafe fn translate_ranks(first: usize, n: i32, ranks: *const i32, second: usize, out: *mut i32) -> Result<()> {
    let (first, second) = (of(first, "group1")?, of(second, "group2")?);
    // SAFETY: the program's array of n ranks.
    let ranks = unsafe { slice_of(ranks, n, "n")? };
    if n > 0 && out.is_null() {
        return Err(null_place("ranks2"));
    }
    for (place, &rank) in ranks.iter().enumerate() {
        let translated = translate(&first, rank, &second)?;
        // SAFETY: the program's array of n places.
        unsafe { *out.add(place) = translated };
    }
    Ok(())
}

fn translate(first: &Group, rank: i32, second: &Group) -> Result<i32> {
    if rank == PROC_NULL {
        return Ok(PROC_NULL);
    }
    if rank < 0 || rank as u32 >= first.size() {
        let given = format!("ranks1 holds {rank}");
        return Err(Error::outside(Class::Rank, given, "group1", RANKS, first.size() as usize));
    }
    Ok(second.rank_of(first.peer(rank as u32)).map_or(UNDEFINED, |rank| rank as i32))
}

pub fn compare(first: usize, second: usize) -> Result<i32> {
    let likeness = match of(first, "group1")?.likeness(&*of(second, "group2")?) {
        Likeness::Congruent => Likeness::Identical,
        likeness => likeness,
    };
    Ok(likeness as i32)
}

/// Groups of the members of two.
macro_rules! of_two {
    ($($name:ident = |$first:ident, $second:ident| $members:expr;)*) => {$(
        pub fn $name(first: usize, second: usize) -> Result<usize> {
            let ($first, $second) = (&of(first, "group1")?, &of(second, "group2")?);
            Ok(made($members, $first))
        }
    )*};
}

of_two! {
    union = |first, second| subset::union(first, second);
    intersection = |first, second| subset::filter(first, second, true);
    difference = |first, second| subset::filter(first, second, false);
}

/// Groups of some members of one, by ranks or by triplets of ranks.
macro_rules! of_some {
    ($($name:ident, $by_triplets:ident = $members:path;)*) => {$(
        pub unsafe fn $name(group: usize, n: i32, ranks: *const i32) -> Result<usize> {
            let group = of(group, "group")?;
            // SAFETY: the program's array of n ranks.
            let ranks = unsafe { slice_of(ranks, n, "n")? };
            Ok(made($members(&group, ranks)?, &group))
        }

        pub unsafe fn $by_triplets(group: usize, n: i32, ranges: *mut [i32; 3]) -> Result<usize> {
            let group = of(group, "group")?;
            // SAFETY: the program's array of n triplets.
            let ranks = subset::expand(&group, unsafe { slice_of(ranges, n, "n")? })?;
            Ok(made($members(&group, &ranks)?, &group))
        }
    )*};
}

of_some! {
    incl, range_incl = subset::included;
    excl, range_excl = subset::excluded;
}

pub unsafe fn free(group: *mut usize) -> Result<()> {
    // SAFETY: the program's handle.
    let handle = unsafe { *group };
    if handle != GROUP_EMPTY {
        WORLD.enter().groups.remove(handle)?;
    }
    // SAFETY: as above.
    unsafe { *group = GROUP_NULL };
    Ok(())
}
