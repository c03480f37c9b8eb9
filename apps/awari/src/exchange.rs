//! All communication: values for positions of others, many in one operation, and whole levels for all.
//!
//! Each process has an inbox for values, which others write to. What is sent between two rounds is told apart by the
//! number of the round. A level that is finished is a write of an object that all have.

use crate::level::Deal;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use weft_app_objects::AppRun;
use weft_objects::{ObjectFault, ObjectPlacement, Strategy, object};

/// Values that go in one operation, if there are so many.
const BATCH: usize = 1 << 14;

/// Bits of a value in a word; the place stands above.
const VALUE_BITS: u32 = 6;
const ZERO: i8 = 1 << (VALUE_BITS - 1);

/// Values for one process.
#[derive(Serialize, Deserialize)]
struct ValueBatch {
    round: u64,
    words: ByteBuf,
    /// The sender sends no more in this round.
    is_last: bool,
    /// It has sent values in this round, to whomever.
    has_sent: bool,
}

/// What others have sent to a process.
#[derive(Default, Serialize, Deserialize)]
struct InboxObject {
    batches: Vec<ValueBatch>,
}

impl InboxObject {
    fn first(&self, round: u64) -> Option<usize> {
        self.batches.iter().position(|batch| batch.round == round)
    }
}

#[object(handle = SharedInbox)]
impl InboxObject {
    #[operation(write)]
    fn send(&mut self, batch: ValueBatch) {
        self.batches.push(batch);
    }

    /// Waits for values of this round.
    #[operation(write, guard = self.first(*round).is_some())]
    fn take(&mut self, round: u64) -> ValueBatch {
        let at = self.first(round).expect("the guard");
        self.batches.remove(at)
    }
}

/// The last level that each process has finished, with the values of its positions.
#[derive(Serialize, Deserialize)]
struct LevelsObject {
    parts: Vec<(u64, ByteBuf)>,
}

#[object(handle = SharedLevels)]
impl LevelsObject {
    #[operation(write)]
    fn publish(&mut self, process: u32, stones: u64, values: ByteBuf) {
        self.parts[process as usize] = (stones, values);
    }

    /// Waits until a process has finished the level.
    #[operation(read, guard = self.parts[*process as usize].0 >= *stones)]
    fn part(&self, process: u32, stones: u64) -> ByteBuf {
        self.parts[process as usize].1.clone()
    }
}

/// What this process says to others and hears of them.
pub struct ValueExchange {
    deal: Deal,
    inboxes: Vec<SharedInbox>,
    levels: SharedLevels,
    round: u64,
    has_sent: bool,
    /// Values for each process that wait for more.
    waiting: Vec<Vec<u8>>,
}

impl ValueExchange {
    pub fn open(run: &AppRun, deal: Deal) -> Result<Self, ObjectFault> {
        let inbox = |process: u32| SharedInbox::share(&run.space, &format!("inbox of {process}"), Default::default());
        let inboxes = (0..run.size).map(inbox).collect::<Result<Vec<_>, _>>()?;
        inboxes[run.me as usize].place(Strategy::Fixed(ObjectPlacement::Single(run.me)))?;
        let initial = LevelsObject { parts: vec![(0, ByteBuf::new()); run.size as usize] };
        let levels = SharedLevels::share(&run.space, "levels", initial)?;
        levels.place(Strategy::Fixed(ObjectPlacement::Replicated))?;
        let waiting = vec![Vec::new(); run.size as usize];
        Ok(Self { deal, inboxes, levels, round: 0, has_sent: false, waiting })
    }

    /// Tells another process the value of a move of its position.
    #[inline]
    pub fn tell(&mut self, process: u32, place: u32, value: i8) -> Result<(), ObjectFault> {
        let waiting = &mut self.waiting[process as usize];
        waiting.extend((place << VALUE_BITS | (value + ZERO) as u32).to_le_bytes());
        if waiting.len() >= BATCH * size_of::<u32>() { self.send(process, false) } else { Ok(()) }
    }

    fn send(&mut self, process: u32, is_last: bool) -> Result<(), ObjectFault> {
        let words = std::mem::take(&mut self.waiting[process as usize]);
        self.has_sent |= !words.is_empty();
        let (round, words) = (self.round, ByteBuf::from(words));
        self.inboxes[process as usize].send(ValueBatch { round, words, is_last, has_sent: self.has_sent })
    }

    /// Ends the round: hears what others have told. Whether anybody has told anything.
    pub fn end_round(&mut self, mut hear: impl FnMut(u32, i8)) -> Result<bool, ObjectFault> {
        // What waits is sent to all, so all say the same of it.
        self.has_sent |= self.waiting.iter().any(|words| !words.is_empty());
        let Deal { me, size } = self.deal;
        for process in (me + 1..size).chain(0..me) {
            self.send(process, true)?;
        }
        let (mut open, mut has_sent) = (size - 1, self.has_sent);
        while open > 0 {
            let batch = self.inboxes[me as usize].take(self.round)?;
            for word in batch.words.as_chunks().0 {
                let word = u32::from_le_bytes(*word);
                hear(word >> VALUE_BITS, (word & ((1 << VALUE_BITS) - 1)) as i8 - ZERO);
            }
            open -= u32::from(batch.is_last);
            has_sent |= batch.has_sent;
        }
        self.round += 1;
        self.has_sent = false;
        Ok(has_sent)
    }

    /// Gives the own values of a level to all, and takes those of the others: all `count` of them.
    pub fn share_level(&self, stones: usize, count: usize, own: Vec<i8>) -> Result<Vec<i8>, ObjectFault> {
        let Deal { me, size } = self.deal;
        if size == 1 {
            return Ok(own);
        }
        self.levels.publish(me, stones as u64, own.iter().map(|value| *value as u8).collect::<Vec<_>>().into())?;
        let mut all = vec![0; count];
        for process in 0..size {
            let part = self.levels.part(process, stones as u64)?;
            let deal = Deal { me: process, size };
            for (place, value) in (0..).zip(part) {
                all[deal.number(place) as usize] = value as i8;
            }
        }
        Ok(all)
    }
}
