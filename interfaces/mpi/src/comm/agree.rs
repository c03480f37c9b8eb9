//! The members of a new communicator agree on its context.
//!
//! Each proposes a context that is free with it; the highest proposal is free with all, as nobody proposes below what
//! it has taken. Where threads make several communicators at a time, two of them may come to the same context; then
//! the members ask each other in a second round whether everybody could claim it, and try again if not. A member that
//! can be in no more communicators says so, and then nobody gets one.

use super::exchange::{Block, Exchange};
use super::{CONSTRUCTION, Comm};
use crate::error::{Class, Error, Result};
use crate::world::{WORLD, World};
use weft_fabric::{Peer, Waiting};

/// Set in a proposal by a process with several threads: the second round is needed.
const THREADS: u64 = 1 << 63;

/// In the place of a proposal, by a process that is in as many communicators as it may be.
const FULL: u64 = 1 << 62;

const FLAGS: u64 = THREADS | FULL;

/// Who agrees, and on which messages.
#[derive(Clone)]
pub struct Circle {
    pub members: Vec<Peer>,
    pub me: usize,
    pub context: u32,
    pub tag: i32,
}

impl Circle {
    /// All processes of a communicator (of both groups), for its next construction.
    pub fn of(comm: &Comm, me: Peer) -> Self {
        let members = comm.union();
        let me = members.iter().position(|&peer| peer == me).expect("a process is in its communicators");
        Self { members, me, context: comm.context + CONSTRUCTION, tag: comm.next_construction() }
    }

    pub fn exchange(&self, mine: Block) -> Exchange {
        Exchange::new(self.members.clone(), self.me, self.context, self.tag, mine)
    }
}

/// What everybody knows afterwards.
pub struct Agreed {
    pub context: u32,
    /// What each member said, in the order of the circle.
    pub said: Vec<[u64; 3]>,
}

enum AgreeStep {
    Proposing(Exchange),
    Confirming { context: u32, claimed: bool, exchange: Exchange },
}

/// An agreement under way. Nothing blocks: [`Self::poll`] moves it on.
pub struct Agreement {
    circle: Circle,
    says: [u64; 3],
    attempt: u32,
    step: AgreeStep,
    said: Vec<[u64; 3]>,
}

impl Agreement {
    /// Begins one in which this process says `says`.
    pub fn new(world: &mut World, circle: Circle, says: [u64; 3]) -> Self {
        let step = propose(world, &circle, says, 0);
        Self { circle, says, attempt: 0, step, said: Vec::new() }
    }

    /// The context of the messages.
    pub fn context(&self) -> u32 {
        self.circle.context
    }

    /// The result, once it is there. The context is claimed then.
    pub fn poll(&mut self, world: &mut World) -> Option<Result<Agreed>> {
        loop {
            let blocks = match &mut self.step {
                AgreeStep::Proposing(exchange) | AgreeStep::Confirming { exchange, .. } => {
                    exchange.poll(&mut world.endpoint)?
                }
            };
            let blocks = match blocks {
                Ok(blocks) => blocks,
                Err(error) => return Some(Err(error)),
            };
            if let Some(end) = self.next_step(world, &blocks) {
                return Some(end.map(|context| Agreed { context, said: std::mem::take(&mut self.said) }));
            }
        }
    }

    fn next_step(&mut self, world: &mut World, blocks: &[Block]) -> Option<Result<u32>> {
        let highest = blocks.iter().map(|block| block[0]).fold(0, higher);
        match self.step {
            AgreeStep::Proposing(_) => {
                self.said = blocks.iter().map(|block| [block[1], block[2], block[3]]).collect();
                let (context, threads) = match open(highest) {
                    Ok(opened) => opened,
                    Err(error) => return Some(Err(error)),
                };
                let claimed = world.contexts.claim(context);
                if !threads {
                    return Some(Ok(context));
                }
                let exchange = self.circle.exchange([!claimed as u64, 0, 0, 0]);
                self.step = AgreeStep::Confirming { context, claimed, exchange };
            }
            AgreeStep::Confirming { context, .. } if highest == 0 => return Some(Ok(context)),
            AgreeStep::Confirming { context, claimed, .. } => {
                if claimed {
                    world.contexts.release(context);
                }
                self.attempt += 1;
                self.step = propose(world, &self.circle, self.says, self.attempt);
            }
        }
        None
    }
}

/// Later attempts leave out as many contexts as the numbers of the parent and of the construction say, so that two of
/// them part.
fn propose(world: &mut World, circle: &Circle, says: [u64; 3], attempt: u32) -> AgreeStep {
    let numbers = (circle.context / super::CONTEXTS_EACH).wrapping_add(circle.tag as u32);
    let skip = numbers % (1 << attempt.min(10));
    let proposal = proposal(world, skip);
    AgreeStep::Proposing(circle.exchange([proposal, says[0], says[1], says[2]]))
}

/// A proposal as it travels.
pub fn proposal(world: &mut World, skip: u32) -> u64 {
    if world.contexts.are_full() {
        return FULL;
    }
    let threads = if world.threads { THREADS } else { 0 };
    u64::from(world.contexts.propose(skip)) | threads
}

/// The higher of two proposals; a second round is needed if either needs one.
pub fn higher(a: u64, b: u64) -> u64 {
    (a & !FLAGS).max(b & !FLAGS) | (a | b) & FLAGS
}

/// The context in a proposal, and whether a second round is needed.
///
/// # Errors
/// One of those who propose can be in no more communicators.
pub fn open(proposal: u64) -> Result<(u32, bool)> {
    if proposal & FULL != 0 {
        let most = super::context::MOST;
        let detail = format!("a member is in {most} communicators and may be in no more; MPI_Comm_free gives one back");
        return Err(Error::new(Class::Other, detail));
    }
    Ok((proposal as u32, proposal & THREADS != 0))
}

/// Waits for something that moves with progress.
pub fn wait<T>(call: &'static str, context: u32, poll: impl FnMut(&mut World) -> Option<T>) -> T {
    WORLD.wait(Waiting { call, peer: None, tag: None, context }, poll)
}

/// Agrees with the circle; `call` is the function that the program waits in.
pub fn agree(call: &'static str, circle: Circle, says: [u64; 3]) -> Result<Agreed> {
    let context = circle.context;
    let mut agreement = Agreement::new(&mut WORLD.enter(), circle, says);
    wait(call, context, |world| agreement.poll(world))
}

/// Waits until every member is here.
pub fn meet(call: &'static str, comm: &Comm) -> Result<()> {
    tell(call, comm, [0; 4]).map(drop)
}

/// What every process of the communicator says, in the order of [`Comm::union`].
pub fn tell(call: &'static str, comm: &Comm, says: Block) -> Result<Vec<Block>> {
    let me = WORLD.enter().endpoint.me();
    let circle = Circle::of(comm, me);
    let mut exchange = circle.exchange(says);
    wait(call, circle.context, |world| exchange.poll(&mut world.endpoint))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process with threads proposes a lower context than one without: the lower one may be taken there.
    #[test]
    fn the_highest_context_wins_whoever_has_threads() {
        let (high, low) = (40, 8 | THREADS);
        let opened = |proposal| open(proposal).expect("nobody is full");
        assert_eq!(opened(higher(high, low)), (40, true));
        assert_eq!(opened(higher(low, high)), (40, true));
        assert_eq!(opened([8u64, 40].into_iter().fold(0, higher)), (40, false));
    }

    #[test]
    fn nobody_gets_a_context_where_one_is_full() {
        assert!([8 | THREADS, FULL, 40].into_iter().fold(0, higher) & FULL != 0);
        assert!(open(FULL | 40).is_err() && open(40).is_ok());
    }
}
