//! Processes of a job that have an endpoint each: barrier, gathering, and the end of all together.

use crate::ending::end;
use crate::failure::{Answer, no_resource};
use crate::kept::AmContext;
use crate::message::{AmCategory, EndpointId, FRONT_BYTES, MessageHead, Purpose};
use crate::name::EndpointName;
use crate::polling::{poll, wait_polling};
use crate::tables::{BundleId, Translation};
use crate::world::{AmWorld, WORLD, enter};
use std::time::{SystemTime, UNIX_EPOCH};
use weft_fabric::{Outcome, Peer, RequestId, Selector};

/// Tags of processes are further apart than those that mean none and all.
const TAG_STEP: u64 = 1 << 16;

/// Makes the endpoint of this process and maps those of all others. With the number of the job.
pub fn start() -> Answer<(BundleId, EndpointId, u64)> {
    let mut world = enter()?;
    if world.spmd.place.is_some() {
        return Err(no_resource("AMUDP_SPMDStartup was called before"));
    }
    let full = no_resource("there are too many bundles or endpoints");
    let bundle = world.tables.add_bundle().ok_or(full)?;
    let id = world.tables.add_endpoint(bundle).ok_or(full)?;
    world.spmd.place = Some((bundle, id));
    let (me, processes) = (world.me(), world.processes());
    let own = EndpointName::new(me, world.endpoint.host_of(Peer(me)), id);
    drop(world);
    let job = number_of_job();
    let mut told = vec![[0u8; 16]; processes as usize];
    let mine = [u64::from(own.id().slot) | u64::from(own.id().generation) << 16, job];
    let mine: Vec<u8> = mine.iter().flat_map(|word| word.to_le_bytes()).collect();
    gather("AMUDP_SPMDStartup", &mine, told.as_flattened_mut())?;
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    let job = told.first().map_or(job, |first| word(&first[8..]));
    let tag = |rank: u32| job.wrapping_add((u64::from(rank) + 1) * TAG_STEP) | 2;
    let mut world = enter()?;
    let mut translations = Vec::with_capacity(processes as usize);
    for (rank, of) in (0..processes).zip(&told) {
        let place = word(&of[..8]);
        let of = EndpointId { slot: place as u16, generation: (place >> 16) as u16 };
        let name = EndpointName::new(rank, world.endpoint.host_of(Peer(rank)), of);
        translations.push(Some(Translation { name, tag: tag(rank) }));
    }
    let endpoint = world.tables.endpoint(id).ok_or(full)?;
    let size = translations.len().max(endpoint.translations.len());
    translations.resize(size, None);
    (endpoint.translations, endpoint.tag, endpoint.is_sized) = (translations, tag(me), true);
    drop(world);
    barrier("AMUDP_SPMDStartup")?;
    Ok((bundle, id, job))
}

/// Another one for each job, as far as a process can know: rank 0's counts.
fn number_of_job() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::from(std::process::id()) << 40 ^ now.as_nanos() as u64 & 0x00ff_ffff_ffff_0000
}

/// Waits until all processes have come here, and polls meanwhile.
///
/// # Errors
/// There was no start.
pub fn barrier(call: &'static str) -> Answer<()> {
    let mut world = enter()?;
    let bundle = world.spmd.bundle()?;
    let (me, processes) = (world.me(), world.processes());
    world.spmd.barriers += 1;
    let begun = world.spmd.barriers;
    drop(world);
    for round in 0..u32::BITS {
        let distance = 1u64 << round;
        if distance >= u64::from(processes) {
            break;
        }
        let to = (u64::from(me) + distance) % u64::from(processes);
        WORLD.enter().say(Peer(to as u32), Purpose::Barrier, round as i32);
        let from = (u64::from(me) + u64::from(processes) - distance) % u64::from(processes);
        let came = |world: &mut AmWorld| (world.spmd.arrived[round as usize] >= begun).then_some(());
        wait_polling(call, Some(Peer(from as u32)), bundle, came);
    }
    // Whoever waits in barriers only is to get what came for it.
    poll(bundle);
    Ok(())
}

/// All processes give as many bytes, and each gets those of all, by rank.
///
/// # Errors
/// There was no start, or a process is lost.
pub fn gather(call: &'static str, own: &[u8], all: &mut [u8]) -> Answer<()> {
    let mut world = enter()?;
    let bundle = world.spmd.bundle()?;
    let me = world.me();
    world.spmd.gathered = (world.spmd.gathered + 1) & i32::MAX;
    let tag = world.spmd.gathered;
    let mut requests: Vec<(Peer, RequestId)> = Vec::new();
    if own.is_empty() {
        drop(world);
        return barrier(call);
    }
    for (rank, place) in (0..world.processes()).zip(all.chunks_exact_mut(own.len())) {
        if rank == me {
            place.copy_from_slice(own);
            continue;
        }
        let from = Selector { context: AmContext::Gather as u32, peer: Some(Peer(rank)), tag: Some(tag) };
        // SAFETY: `all` is borrowed until this call returns, when the request is complete.
        let request = unsafe { world.endpoint.post_receive(from, place.as_mut_ptr(), place.len()) };
        requests.push((Peer(rank), request));
    }
    for rank in (0..world.processes()).filter(|rank| *rank != me) {
        // SAFETY: `own` is borrowed until this call returns, when the request is complete.
        let request = unsafe { world.post(Peer(rank), AmContext::Gather, tag, own) };
        requests.push((Peer(rank), request));
    }
    drop(world);
    let mut lost = false;
    for (peer, request) in requests {
        let done = |world: &mut AmWorld| world.endpoint.take_outcome(request);
        let outcome: Outcome = wait_polling(call, Some(peer), bundle, done);
        lost |= outcome.fault.is_some();
    }
    if lost { Err(no_resource("a process is lost")) } else { Ok(()) }
}

impl AmWorld {
    /// Tells a process something that is not for a handler.
    fn say(&mut self, to: Peer, purpose: Purpose, value: i32) {
        let arguments = [value];
        let head = MessageHead::new(purpose, AmCategory::Short, 0, &arguments);
        let mut front = [0; FRONT_BYTES];
        let length = head.write(0, &mut front);
        self.send_or_keep(to, head.word(), &front[..length]);
    }
}

/// Ends the job with this code: tells all others, and ends this process.
///
/// # Errors
/// There was no start.
pub fn exit(code: i32) -> Answer<()> {
    let mut world = enter()?;
    world.spmd.bundle()?;
    let me = world.me();
    for rank in (0..world.processes()).filter(|rank| *rank != me) {
        if !world.endpoint.has_ended(Peer(rank)) {
            world.say(Peer(rank), Purpose::Exit, code);
        }
    }
    drop(world);
    end(code)
}
