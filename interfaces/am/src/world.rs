//! The endpoint of the fabric, and what of AM stands beside it: one of them in a process, in a monitor.

use crate::arrived::Inbound;
use crate::failure::{Answer, NOT_INIT};
use crate::kept::AmOutbound;
use crate::meeting::Spmd;
use crate::tables::{AmTables, BundleId};
use std::time::Duration;
use weft_fabric::{Driven, Endpoint, Monitor, MonitorGuard, Outside};

pub static WORLD: Monitor<AmWorld> = Monitor::new();

/// How long a thread sleeps before it looks whether the one that it waits for has ended.
const LOOK: Duration = Duration::from_millis(20);
/// Polls in a row that found nothing, after which the core is handed over in each where others want it.
const POLLS_BEFORE_TURNS: u32 = 64;

pub struct AmWorld {
    pub endpoint: Endpoint,
    pub tables: AmTables,
    pub inbound: Inbound,
    pub outbound: AmOutbound,
    pub spmd: Spmd,
    /// How often `AM_Init` was called, less the calls of `AM_Terminate`.
    pub opened: u32,
    /// Polls in a row that found nothing.
    pub idle_polls: u32,
    /// The bundle that was polled last, if nothing was asked since: the next request from it does not poll once more.
    pub polled: Option<BundleId>,
}

impl Driven for AmWorld {
    fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    fn advance(&mut self) -> Option<Outside> {
        None
    }

    fn idle(&mut self, sleeps: bool) -> bool {
        sleeps && self.look_for_ended()
    }

    fn longest_sleep(&self) -> Option<Duration> {
        (!self.outbound.waiting.is_empty() || !self.inbound.coming.is_empty()).then_some(LOOK)
    }
}

/// Exclusive access, if the world is open.
#[inline]
pub fn enter() -> Answer<MonitorGuard<'static, AmWorld>> {
    if WORLD.is_open() { Ok(WORLD.enter()) } else { Err(NOT_INIT) }
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
    pub fn note_idle(&mut self, found: bool) {
        if found {
            self.idle_polls = 0;
            return;
        }
        self.inbound.ready.post(&mut self.endpoint);
        self.idle_polls = self.idle_polls.saturating_add(1);
        if self.idle_polls >= POLLS_BEFORE_TURNS && self.endpoint.shares_core() {
            std::thread::yield_now();
        }
    }
}
