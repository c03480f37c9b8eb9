//! How it stands with what the processes of a job do together.

use crate::failure::{Answer, NOT_INIT};
use crate::message::{EndpointId, Purpose};
use crate::tables::BundleId;

/// Rounds of a barrier at most.
const ROUNDS: usize = 32;
pub type OnExit = unsafe extern "C" fn(i32);

#[derive(Default)]
pub struct Spmd {
    /// The bundle and endpoint that the processes have.
    pub place: Option<(BundleId, EndpointId)>,
    /// Barriers that this process has begun, and messages of each round that have come.
    pub barriers: u64,
    pub arrived: [u64; ROUNDS],
    pub gathered: i32,
    /// Somebody has ended the job, with this code.
    pub exit: Option<i32>,
    pub on_exit: Option<OnExit>,
}

impl Spmd {
    /// What another process has said.
    pub fn note(&mut self, purpose: Purpose, value: i32) {
        match purpose {
            Purpose::Barrier => {
                if let Some(arrived) = usize::try_from(value).ok().and_then(|round| self.arrived.get_mut(round)) {
                    *arrived += 1;
                }
            }
            Purpose::Exit => self.exit = Some(value),
            _ => {}
        }
    }

    #[inline]
    pub fn take_exit(&mut self) -> Option<i32> {
        self.exit.take()
    }

    pub fn bundle(&self) -> Answer<BundleId> {
        self.place.map(|(bundle, _)| bundle).ok_or(NOT_INIT)
    }
}
