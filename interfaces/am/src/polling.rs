//! Running the handlers of what has come, and waiting meanwhile.

use crate::arrived::AmArrival;
use crate::ending;
use crate::inbound::run;
use crate::tables::BundleId;
use crate::world::{AmWorld, WORLD};
use weft_fabric::{Peer, Waiting};

/// One pass, and the handlers of what has come for a bundle.
#[inline]
pub fn poll(bundle: BundleId) {
    WORLD.poll();
    let mut world = WORLD.enter();
    world.polled = Some(bundle);
    let mut found = false;
    // As many as there are now, and few enough that a flood lets its receiver go on.
    for _ in 0..64 {
        let Some(message) = world.next_of(bundle) else { break };
        drop(world);
        run(message);
        found = true;
        world = WORLD.enter();
    }
    if let Some(code) = world.spmd.take_exit() {
        drop(world);
        ending::end(code);
    }
    world.note_idle(found);
}

enum PolledEvent<R> {
    Done(R),
    Message(AmArrival),
    Exit(i32),
}

/// Waits until `done` answers, and polls a bundle meanwhile.
pub fn wait_polling<R>(
    call: &'static str,
    peer: Option<Peer>,
    bundle: BundleId,
    mut done: impl FnMut(&mut AmWorld) -> Option<R>,
) -> R {
    let what = Waiting { call, peer, tag: None, context: 0 };
    loop {
        let event = WORLD.wait(what, |world| {
            world.collect();
            let done = done(world).map(PolledEvent::Done);
            let message = |world: &mut AmWorld| world.tables.next_of(bundle).map(PolledEvent::Message);
            done.or_else(|| message(world)).or_else(|| world.spmd.take_exit().map(PolledEvent::Exit))
        });
        match event {
            PolledEvent::Done(answer) => return answer,
            PolledEvent::Message(message) => run(message),
            PolledEvent::Exit(code) => ending::end(code),
        }
    }
}
