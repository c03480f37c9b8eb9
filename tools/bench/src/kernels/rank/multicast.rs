//! Ordered messages to a group: two who answer each other, one who sends, all who send.

use super::super::kernel::KernelName;
use super::Ensemble;
use crate::payload::{look, mark, middle};
use anyhow::{Context, bail, ensure};
use std::sync::Arc;
use weft_fabric::{Endpoint, Peer};
use weft_group::{GroupCalls as _, GroupEvent, GroupId, OrderedGroups, USUAL_RULES, process_of};
use weft_ports::{InterfaceName, Messenger, Waiting};

static PORTS: Messenger<OrderedGroups> = Messenger::new();
const CALL: &str = "kernel-rank";
const CONTEXT: u32 = 10;
const WAITING: Waiting = Waiting { call: CALL, peer: None, tag: None, context: CONTEXT };

/// The number in the first of two messages. Those that are multiples of 1024 would be checked byte by byte.
const FIRST: u64 = 1;

/// A member of the group of all ranks.
pub struct Multicast {
    kernel: KernelName,
    group: GroupId,
    me: u32,
    size: u32,
    /// Two messages by turns, so that one in the place of another is noticed.
    messages: [Arc<[u8]>; 2],
}

impl Multicast {
    pub fn join(kernel: KernelName) -> anyhow::Result<Self> {
        let mut endpoint = Endpoint::join_as(InterfaceName::Native, &[]).context("cannot join")?;
        let (me, size) = (endpoint.me().0, endpoint.world_size());
        ensure!(size > 1, "one rank, where two are needed");
        let groups = OrderedGroups::new(&mut endpoint, CONTEXT);
        PORTS.open_beside(endpoint, groups, false);
        let group = PORTS.join_group("kernels", USUAL_RULES)?;
        let mut multicast = Self { kernel, group, me, size, messages: [Arc::from([]), Arc::from([])] };
        while multicast.members()? < size as usize {}
        Ok(multicast)
    }

    /// How many there are after the next view.
    fn members(&mut self) -> anyhow::Result<usize> {
        match PORTS.await_event(CALL, self.group) {
            GroupEvent::View(view) => Ok(view.members.len()),
            event => bail!("{event:?}, where a view is expected"),
        }
    }

    /// The next message of the group, and who has sent it.
    fn next(&self) -> anyhow::Result<(Peer, Arc<[u8]>)> {
        match PORTS.await_event(CALL, self.group) {
            GroupEvent::Message { message, .. } => Ok((process_of(message.origin), message.bytes)),
            event => bail!("{event:?}, where a message is expected"),
        }
    }

    /// `number`: how many this sender has sent before.
    fn check(&self, bytes: &[u8], number: u64) -> anyhow::Result<()> {
        let length = self.messages[0].len();
        ensure!(bytes.len() == length, "a message of {} bytes, not {length}", bytes.len());
        look(bytes, FIRST + number % 2)
    }

    /// A round is a message. Of every two members each has the same number of turns, whatever the number of rounds is.
    fn answer_each_other(&self, rounds: u64) -> anyhow::Result<()> {
        let pairs: Vec<[u32; 2]> = (0..self.size).flat_map(|a| (a + 1..self.size).map(move |b| [a, b])).collect();
        let sender = |number: u64| pairs[(number * pairs.len() as u64 / rounds) as usize][(number % 2) as usize];
        let send = |number: u64| -> anyhow::Result<()> {
            if number < rounds && sender(number) == self.me {
                PORTS.send_to_group(CALL, self.group, self.messages[(number % 2) as usize].clone())?;
            }
            Ok(())
        };
        send(0)?;
        for number in 0..rounds {
            let (from, bytes) = self.next()?;
            ensure!(from.0 == sender(number), "message {number} is of rank {}, not {}", from.0, sender(number));
            self.check(&bytes, number)?;
            send(number + 1)?;
        }
        Ok(())
    }

    /// All of these send so many messages each as fast as they can, and everybody takes all of them.
    fn send_at_once(&self, senders: &[u32], rounds: u64) -> anyhow::Result<()> {
        let own = if senders.contains(&self.me) { rounds } else { 0 };
        let mut taken = vec![0u64; self.size as usize];
        let mut sent = 0;
        let all = rounds * senders.len() as u64;
        loop {
            // What comes behind these is of the next phase.
            let rest = (all - taken.iter().sum::<u64>()) as usize;
            if rest == 0 {
                break;
            }
            let events = PORTS.wait_both(WAITING, |endpoint, groups| {
                while sent < own {
                    let message = self.messages[(sent % 2) as usize].clone();
                    match groups.try_send_among_others(self.group, message) {
                        Ok(true) => sent += 1,
                        Ok(false) => break,
                        Err(error) => return Some(Err(error)),
                    }
                }
                let events: Vec<_> =
                    std::iter::from_fn(|| groups.take_event(endpoint, self.group)).take(rest).collect();
                (!events.is_empty()).then_some(Ok(events))
            })?;
            for event in events {
                let GroupEvent::Message { message, .. } = event else {
                    bail!("{event:?}, where a message is expected");
                };
                let count = &mut taken[process_of(message.origin).0 as usize];
                self.check(&message.bytes, *count)?;
                *count += 1;
            }
        }
        let wrong =
            (0..self.size).find(|rank| taken[*rank as usize] != if senders.contains(rank) { rounds } else { 0 });
        wrong.map_or(Ok(()), |rank| bail!("{} messages of rank {rank}", taken[rank as usize]))
    }
}

impl Ensemble for Multicast {
    fn leads(&self) -> bool {
        self.me == 0
    }

    fn processes(&self) -> u32 {
        self.size
    }

    fn resize(&mut self, bytes: u32) {
        self.messages = [FIRST, FIRST + 1].map(|number| {
            let mut message: Vec<u8> = (0..bytes as usize).map(middle).collect();
            mark(&mut message, number);
            message.into()
        });
    }

    fn agree(&mut self, rounds: u64) -> anyhow::Result<u64> {
        if self.leads() {
            PORTS.send_to_group(CALL, self.group, rounds.to_le_bytes().as_slice().into())?;
        }
        let (from, bytes) = self.next()?;
        ensure!(from == Peer(0), "rank {} leads", from.0);
        Ok(u64::from_le_bytes(bytes[..].try_into().context("no number of rounds")?))
    }

    fn play(&mut self, rounds: u64) -> anyhow::Result<()> {
        let all: Vec<u32> = (0..self.size).collect();
        match self.kernel {
            KernelName::GroupLatency => self.answer_each_other(rounds),
            KernelName::Group => all.iter().try_for_each(|one| self.send_at_once(&[*one], rounds)),
            _ => self.send_at_once(&all, rounds),
        }
    }

    fn close(self) {
        PORTS.leave_group(CALL, self.group);
        PORTS.close_groups(CALL);
        PORTS.close();
    }
}
