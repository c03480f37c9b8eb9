//! The endpoint of the fabric, and what of AM stands beside it: one of them in a process, in a monitor.

use crate::failure::{Answer, NOT_INIT};
use crate::inbound::{Arrived, Inbound, run};
use crate::outbound::Outbound;
use crate::spmd::{self, Spmd};
use crate::tables::{BundleId, Tables};
use std::time::Duration;
use weft_fabric::{Driven, Endpoint, Guard, InterfaceName, JoinError, Monitor, Outside, Peer, Waiting};

pub static WORLD: Monitor<AmWorld> = Monitor::new();

/// How long a thread sleeps before it looks whether the one that it waits for has ended.
const LOOK: Duration = Duration::from_millis(20);
/// Polls in a row that found nothing, after which the core is handed over where others want it.
const POLLS_PER_TURN: u32 = 4;

pub struct AmWorld {
    pub endpoint: Endpoint,
    pub tables: Tables,
    pub inbound: Inbound,
    pub outbound: Outbound,
    pub spmd: Spmd,
    /// How often `AM_Init` was called, less the calls of `AM_Terminate`.
    pub opened: u32,
    /// Polls in a row that found nothing.
    idle_polls: u32,
}

impl Driven for AmWorld {
    fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    fn advance(&mut self) -> Option<Outside> {
        None
    }

    fn longest_sleep(&self) -> Option<Duration> {
        self.outbound.waits().then_some(LOOK)
    }
}

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

/// Exclusive access, if the world is open.
#[inline]
pub fn enter() -> Answer<Guard<'static, AmWorld>> {
    if WORLD.is_open() { Ok(WORLD.enter()) } else { Err(NOT_INIT) }
}

/// One pass, and the handlers of what has come for a bundle.
#[inline]
pub fn poll(bundle: BundleId) {
    WORLD.poll();
    let mut found = false;
    // As many as there are now, and few enough that a flood lets its receiver go on.
    for _ in 0..64 {
        let mut world = WORLD.enter();
        world.collect();
        if let Some(code) = world.spmd.take_exit() {
            drop(world);
            spmd::end(code);
        }
        let Some(message) = world.tables.next_of(bundle) else {
            return world.note_idle(found);
        };
        drop(world);
        run(message);
        found = true;
    }
}

enum Event<R> {
    Done(R),
    Message(Arrived),
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
            let done = done(world).map(Event::Done);
            let message = |world: &mut AmWorld| world.tables.next_of(bundle).map(Event::Message);
            done.or_else(|| message(world)).or_else(|| world.spmd.take_exit().map(Event::Exit))
        });
        match event {
            Event::Done(answer) => return answer,
            Event::Message(message) => run(message),
            Event::Exit(code) => spmd::end(code),
        }
    }
}

impl AmWorld {
    pub fn me(&self) -> u32 {
        self.endpoint.me().0
    }

    pub fn processes(&self) -> u32 {
        self.endpoint.world_size()
    }

    /// A program that polls and finds nothing keeps others from what it polls for, if they want the same core.
    #[inline]
    fn note_idle(&mut self, found: bool) {
        self.idle_polls = if found { 0 } else { self.idle_polls + 1 };
        if self.idle_polls >= POLLS_PER_TURN && self.endpoint.shares_core() {
            self.idle_polls = 0;
            std::thread::yield_now();
        }
    }
}
