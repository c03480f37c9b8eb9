//! Messages from port to port: to one, round a ring, and from each to each.

use super::super::kernel::KernelName;
use super::Ensemble;
use crate::payload::{look, mark, middle};
use anyhow::{Context, bail, ensure};
use weft_fabric::{Envelope, Peer, RequestId, Selector, SendMode};
use weft_ports::{InterfaceName, Messenger, Subject};

static PORTS: Messenger = Messenger::new();
const CALL: &str = "kernel-rank";
const CONTEXT: u32 = 1;
/// What rank 0 says of the rounds.
const ROUNDS: Subject = Subject { context: CONTEXT, tag: 0 };
/// To the right and to the left, so that two neighbours who are one process are told apart.
const TAGS: [i32; 2] = [1, 2];
const DONE: Subject = Subject { context: CONTEXT, tag: 3 };

/// A message that goes to a peer, or comes from it, in each round.
struct ExchangeLane {
    peer: Peer,
    tag: i32,
    buffer: Vec<u8>,
}

/// One process, with whom it exchanges.
pub struct KernelExchange {
    kernel: KernelName,
    me: u32,
    size: u32,
    out: Vec<ExchangeLane>,
    into: Vec<ExchangeLane>,
    number: u64,
}

impl KernelExchange {
    pub fn join(kernel: KernelName) -> anyhow::Result<Self> {
        PORTS.open(InterfaceName::Native, false).context("cannot join")?;
        let (me, size) = (PORTS.me().0, PORTS.size());
        ensure!(size > 1, "one rank, where two are needed");
        let lane = |(to, tag): (u32, i32)| ExchangeLane { peer: Peer(to % size), tag, buffer: Vec::new() };
        let (out, into): (Vec<_>, Vec<_>) = match kernel {
            KernelName::Ring => {
                let (right, left) = (me + 1, me + size - 1);
                (vec![(right, TAGS[0]), (left, TAGS[1])], vec![(left, TAGS[0]), (right, TAGS[1])])
            }
            KernelName::Personalised => {
                // Everybody begins with another one.
                let to = (1..size).map(|step| (me + step, TAGS[0])).collect();
                (to, (1..size).map(|step| (me + size - step, TAGS[0])).collect())
            }
            _ if me == 0 => (vec![(1, TAGS[0])], vec![]),
            _ => (vec![], vec![(0, TAGS[0])]),
        };
        let lanes = |all: Vec<(u32, i32)>| all.into_iter().map(lane).collect();
        Ok(Self { kernel, me, size, out: lanes(out), into: lanes(into), number: 0 })
    }

    /// One message on each lane, all of them at the same time.
    fn round(&mut self) -> anyhow::Result<()> {
        let mut pending: Vec<RequestId> = Vec::with_capacity(self.out.len() + self.into.len());
        let me = self.me;
        PORTS.with(|endpoint| {
            for lane in &mut self.into {
                let from = Selector { context: CONTEXT, peer: Some(lane.peer), tag: Some(lane.tag) };
                // SAFETY: the buffer is not touched before the request is complete, which is waited for below.
                pending.push(unsafe { endpoint.post_receive(from, lane.buffer.as_mut_ptr(), lane.buffer.len()) });
            }
        });
        for lane in &mut self.out {
            mark(&mut lane.buffer, self.number);
            let envelope = Envelope { context: CONTEXT, tag: lane.tag, source: me };
            if PORTS.try_send(lane.peer, envelope, &lane.buffer) {
                continue;
            }
            let (data, length) = (lane.buffer.as_ptr(), lane.buffer.len());
            // SAFETY: the buffer is not touched before the request is complete, which is waited for below.
            let post = |endpoint: &mut weft_fabric::Endpoint| unsafe {
                endpoint.post_send(lane.peer, envelope, data, length, SendMode::Standard)
            };
            pending.push(PORTS.with(post));
        }
        let mut fault = None;
        PORTS.wait(CALL, |endpoint| {
            pending.retain(|request| match endpoint.take_outcome(*request) {
                Some(outcome) => {
                    fault = fault.or(outcome.fault);
                    false
                }
                None => true,
            });
            pending.is_empty().then_some(())
        });
        if let Some(fault) = fault {
            bail!("message {} has not arrived: {fault:?}", self.number);
        }
        self.into.iter().try_for_each(|lane| look(&lane.buffer, self.number))?;
        self.number += 1;
        Ok(())
    }

    /// Waits until rank 1 has taken all that came, where only rank 0 sends.
    fn await_taker(&self) -> anyhow::Result<()> {
        match (self.kernel, self.me) {
            (KernelName::Messages, 0) => hear(1, DONE, &mut []).map(drop),
            (KernelName::Messages, _) => say(0, DONE, &[]),
            _ => Ok(()),
        }
    }
}

fn say(to: u32, subject: Subject, bytes: &[u8]) -> anyhow::Result<()> {
    PORTS.send(CALL, Peer(to), subject, bytes).map_err(|fault| anyhow::anyhow!("rank {to}: {fault:?}"))
}

fn hear(from: u32, subject: Subject, room: &mut [u8]) -> anyhow::Result<()> {
    let selector = Selector { context: subject.context, peer: Some(Peer(from)), tag: Some(subject.tag) };
    PORTS.receive(CALL, selector, room).map(drop).map_err(|fault| anyhow::anyhow!("rank {from}: {fault:?}"))
}

impl Ensemble for KernelExchange {
    fn leads(&self) -> bool {
        self.me == 0
    }

    fn processes(&self) -> u32 {
        self.size
    }

    fn resize(&mut self, bytes: u32) {
        let message: Vec<u8> = (0..bytes as usize).map(middle).collect();
        self.out.iter_mut().chain(&mut self.into).for_each(|lane| lane.buffer.clone_from(&message));
    }

    fn agree(&mut self, rounds: u64) -> anyhow::Result<u64> {
        let mut word = rounds.to_le_bytes();
        if self.leads() {
            (1..self.size).try_for_each(|rank| say(rank, ROUNDS, &word))?;
        } else {
            hear(0, ROUNDS, &mut word)?;
        }
        Ok(u64::from_le_bytes(word))
    }

    fn play(&mut self, rounds: u64) -> anyhow::Result<()> {
        (0..rounds).try_for_each(|_| self.round())?;
        self.await_taker()
    }

    fn close(self) {
        PORTS.close();
    }
}
