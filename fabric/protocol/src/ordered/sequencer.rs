//! How messages get their places, in a view that stands.

use super::{GroupBreach, GroupMember, OrderedGroup, Placed, Saying, WordTo};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Messages that are numbered further ahead than so many histories are nonsense.
const HISTORIES_AHEAD: u64 = 4;

/// What the sequencer of a view knows.
#[derive(Debug)]
pub(super) struct Sequencer {
    /// The next place.
    next: u64,
    /// Of each member: all below are there.
    received: Vec<u64>,
    waiting: VecDeque<Unnumbered>,
    /// Bytes of messages that have a place and are not here: their origins send them.
    reserved: BTreeMap<u64, u64>,
    reserved_bytes: u64,
    /// What was told last of what is stable.
    told: u64,
}

/// A message that is to get a place.
#[derive(Debug)]
struct Unnumbered {
    origin: GroupMember,
    number: u32,
    what: ToPlace,
}

#[derive(Debug)]
pub(super) enum ToPlace {
    /// It is sent by the sequencer.
    Here(Arc<[u8]>),
    /// It is so long, and its origin sends it.
    There(u64),
}

impl Sequencer {
    pub fn new(next: u64, members: usize) -> Self {
        let (received, waiting, reserved) = (vec![next; members], VecDeque::new(), BTreeMap::new());
        Self { next, received, waiting, reserved, reserved_bytes: 0, told: next }
    }

    /// Members, by their places, that have not said to have all.
    pub fn laggards(&self) -> impl Iterator<Item = usize> {
        self.received.iter().enumerate().filter(|(_, received)| **received < self.next).map(|(at, _)| at)
    }
}

impl OrderedGroup {
    /// Asks for a place.
    pub(super) fn submit(&mut self, number: u32, bytes: Arc<[u8]>) {
        if self.sequencer.is_some() {
            return self.ask_for_place(self.me, number, ToPlace::Here(bytes));
        }
        let received = self.tell_received();
        let to_all = bytes.len() >= self.rules.reserve_from && self.view.members.len() > 2;
        let length = bytes.len() as u64;
        let saying = if to_all {
            Saying::Reserve { number, received, length }
        } else {
            Saying::Submit { number, received, bytes }
        };
        self.say(WordTo::One(self.view.members[0]), saying);
    }

    pub(super) fn on_submitted(
        &mut self,
        from: usize,
        number: u32,
        received: u64,
        what: ToPlace,
    ) -> Result<(), GroupBreach> {
        self.on_received(from, received)?;
        // Where a change has begun its origin asks again, in the next view.
        if !self.change.is_frozen() {
            self.ask_for_place(self.view.members[from], number, what);
        }
        Ok(())
    }

    fn ask_for_place(&mut self, origin: GroupMember, number: u32, what: ToPlace) {
        let full = self.is_full();
        let Some(sequencer) = &mut self.sequencer else { return };
        if full || !sequencer.waiting.is_empty() {
            sequencer.waiting.push_back(Unnumbered { origin, number, what });
        } else {
            self.place(origin, number, what);
        }
    }

    fn is_full(&self) -> bool {
        let Some(sequencer) = &self.sequencer else { return false };
        let open = sequencer.next - self.stable;
        let bytes = (self.history.bytes() as u64).saturating_add(sequencer.reserved_bytes);
        open >= self.rules.history as u64 || open > 0 && bytes > self.rules.history_bytes as u64
    }

    fn place(&mut self, origin: GroupMember, number: u32, what: ToPlace) {
        let Some(sequencer) = &mut self.sequencer else { return };
        let (sequence, stable) = (sequencer.next, self.stable);
        sequencer.next += 1;
        sequencer.told = stable;
        if let ToPlace::There(length) = what {
            sequencer.reserved.insert(sequence, length);
            sequencer.reserved_bytes = sequencer.reserved_bytes.saturating_add(length);
        }
        if origin != self.me {
            self.say(WordTo::One(origin), Saying::Yours { number, sequence, stable });
        }
        let ToPlace::Here(bytes) = what else { return };
        let message = Placed { origin, number, bytes };
        let is_mine = origin == self.me;
        if self.view.members.len() > 2 - usize::from(is_mine) {
            self.spread(sequence, stable, message.clone());
        }
        if is_mine {
            self.own.pop_front();
        }
        self.history.insert(sequence, message);
    }

    /// A message of ours has its place.
    pub(super) fn on_yours(&mut self, number: u32, sequence: u64, stable: u64) -> Result<(), GroupBreach> {
        if self.change.is_frozen() {
            return Ok(());
        }
        self.check_place(sequence)?;
        let own = self.own.pop_front().filter(|own| own.number == number).ok_or(GroupBreach)?;
        let message = Placed { origin: self.me, number, bytes: own.bytes };
        if message.bytes.len() >= self.rules.reserve_from && self.view.members.len() > 2 {
            self.spread(sequence, stable, message.clone());
        }
        self.keep(sequence, message);
        self.on_stable(stable)
    }

    pub(super) fn on_ordered(
        &mut self,
        from: GroupMember,
        sequence: u64,
        stable: u64,
        message: Placed,
    ) -> Result<(), GroupBreach> {
        if self.change.is_frozen() {
            return Ok(());
        }
        self.check_place(sequence)?;
        self.pass_on(from, sequence, stable, &message);
        self.keep(sequence, message);
        self.on_stable(stable)
    }

    fn check_place(&self, sequence: u64) -> Result<(), GroupBreach> {
        let end = self.history.next() + HISTORIES_AHEAD * self.rules.history as u64;
        if sequence < end { Ok(()) } else { Err(GroupBreach) }
    }

    fn keep(&mut self, sequence: u64, message: Placed) {
        self.history.insert(sequence, message);
        if let Some(sequencer) = &mut self.sequencer
            && let Some(length) = sequencer.reserved.remove(&sequence)
        {
            sequencer.reserved_bytes = sequencer.reserved_bytes.saturating_sub(length);
        }
    }

    pub(super) fn on_stable(&mut self, stable: u64) -> Result<(), GroupBreach> {
        if self.sequencer.is_none() && stable > self.stable && !self.change.is_frozen() {
            if stable > self.history.next() {
                return Err(GroupBreach);
            }
            self.stable = stable;
            self.history.forget_below(stable.min(self.delivered));
        }
        Ok(())
    }

    /// What the sequencer may take for received: what the user has, so that one who takes nothing is waited for. Where
    /// delivery is safe the user gets it only after this was told.
    fn received(&self) -> u64 {
        if self.rules.safe {
            self.history.next().min(self.delivered + self.rules.history as u64)
        } else {
            self.delivered
        }
    }

    fn tell_received(&mut self) -> u64 {
        (self.told, self.untold_bytes) = (self.received(), 0);
        self.told
    }

    /// After deliveries: says what this process has, at every quarter of what may be open.
    #[inline]
    pub(super) fn settle(&mut self) {
        let quarter = (self.rules.history / 4).max(1) as u64;
        if self.sequencer.is_some() {
            if self.delivered.is_multiple_of(quarter) || self.is_full() {
                self.note_own();
            }
        } else if self.delivered >= self.told + quarter || self.untold_bytes >= self.rules.history_bytes / 4 {
            self.acknowledge();
        }
    }

    fn acknowledge(&mut self) {
        if self.received() > self.told && !self.change.is_frozen() && !self.is_over() {
            let received = self.tell_received();
            self.say(WordTo::One(self.view.members[0]), Saying::Received { received });
        }
    }

    /// Says what waits to be said, where nothing else is to do: with safe delivery others wait for it.
    pub fn handle_pause(&mut self) {
        if !self.rules.safe || self.change.is_frozen() || self.is_over() {
            return;
        }
        self.note_own();
        let Some(sequencer) = &mut self.sequencer else { return self.acknowledge() };
        if self.stable > sequencer.told && self.view.members.len() > 1 {
            sequencer.told = self.stable;
            self.say(WordTo::Others { but: None }, Saying::Stable { stable: self.stable });
        }
    }

    fn note_own(&mut self) {
        let received = self.received();
        self.note_received(0, received);
    }

    pub(super) fn on_received(&mut self, from: usize, received: u64) -> Result<(), GroupBreach> {
        let Some(sequencer) = &self.sequencer else { return Ok(()) };
        if received > sequencer.next {
            return Err(GroupBreach);
        }
        self.note_received(from, received);
        Ok(())
    }

    fn note_received(&mut self, from: usize, received: u64) {
        let own = self.received();
        let Some(sequencer) = &mut self.sequencer else { return };
        if received <= sequencer.received[from] {
            return;
        }
        sequencer.received[from] = received;
        sequencer.received[0] = sequencer.received[0].max(own);
        let stable = sequencer.received.iter().copied().min().unwrap_or(0);
        if stable > self.stable {
            self.stable = stable;
            self.history.forget_below(stable.min(self.delivered));
            self.place_waiting();
        }
    }

    fn place_waiting(&mut self) {
        while !self.is_full() && !self.change.is_frozen() {
            let next = self.sequencer.as_mut().and_then(|sequencer| sequencer.waiting.pop_front());
            let Some(Unnumbered { origin, number, what }) = next else { return };
            self.place(origin, number, what);
        }
    }

    /// Answers, and says what is here: who asks may wait for that.
    pub(super) fn answer_ping(&mut self, from: GroupMember) {
        self.say(WordTo::One(from), Saying::Pong);
        if self.sequencer.is_none() && self.view.members.first() == Some(&from) {
            self.acknowledge();
        }
    }
}
