//! The members' areas, the numbering of operations, and waiting for one another.
//!
//! Operations of a team are numbered from 1, alike in all members. Operation `s` uses slot `s % SLOTS` and buffer
//! `s % 2` of the members that contribute. Before a member writes there it knows that everybody has finished the
//! operation that used the place before (`done` words); operations in which everybody contributes tell that by
//! themselves, so the words are looked at only in rows of rooted ones.
//!
//! Beside the number a slot carries the bytes that its member brought, in the same word: who looks for both at once
//! sees without another look whether the members were called alike.
//!
//! Orderings: the slot's word is stored with release after the contribution and loaded with acquire before it is read;
//! `done` likewise after the last read and before the next write. A member that may sleep is woken after each store
//! that it may wait for (`Endpoint::wake` orders the two).

use super::learnt::ShowingCell;
use super::owner::{Forming, TeamOwner};
use super::word::{Alike, Differs, differs, is_long, is_of, told, word};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use weft_fabric::shared::{Block, SharedBlocks};
use weft_fabric::{Collectives, Driven, MonitorGuard, Peer, Waiting};

/// Slots of a member: how far a root may run ahead. Where ranks share cores, this many operations share the cost of a
/// round of switches.
const SLOTS: u64 = 64;
const LINE: usize = 64;
/// Payload that travels in the slot's own line, bytes.
pub const SLOT_BYTES: usize = LINE - 8;
/// Longest contribution that goes through a buffer in one piece, bytes: every buffer is at least as long.
pub const BUFFER_BYTES: usize = 28 * 1024;
const DONE: usize = SLOTS as usize * LINE;
/// Beside it: the last operation in which the member could not read what another one showed.
const BLIND: usize = DONE + 8;
/// Members that wait for room (in the area of member 0).
const WAITING: usize = DONE + LINE;
/// Members that will not touch the block any more (in the area of member 0).
const LEFT: usize = WAITING + LINE;
const BUFFERS: usize = 8192;
const _: () = assert!(LEFT + LINE <= BUFFERS);
const SMALLEST_AREA: usize = 64 * 1024;
const LARGEST_AREA: usize = 256 * 1024;
/// What a small team may take: the longer its buffers, the fewer meetings a long reduction costs.
const TEAM_BYTES: usize = 1 << 20;
const _: () = assert!(BUFFERS + 2 * BUFFER_BYTES <= SMALLEST_AREA);
/// Largest group that uses shared memory.
const MOST_MEMBERS: u32 = 256;
/// Up to here everybody looks at everybody; larger teams meet at member 0.
pub const FLAT_MEMBERS: u32 = 16;
/// Looks at a slot before the fabric's waiting policy takes over, where ranks have cores of their own.
const QUICK_LOOKS: u32 = 50;

/// Looks after which a wait is a long one.
const LONG_LOOKS: u32 = 64;

/// One member's view of the team of a group of the interface `O`.
pub struct Team<O> {
    block: Block,
    /// Where the block comes from, and its place there.
    blocks: SharedBlocks,
    first: usize,
    pub me: u32,
    pub size: u32,
    /// Bytes of a member's area: slots, words, and two buffers.
    area_bytes: usize,
    pub(super) peers: Vec<Peer>,
    context: u32,
    closed_with: u32,
    quick_looks: AtomicU32,
    /// Number of the last operation that we have begun.
    last: AtomicU64,
    /// Everybody is known to have finished this operation.
    all_done: AtomicU64,
    pub(super) showing: ShowingCell,
    owner: PhantomData<fn() -> O>,
}

/// Bytes of each member's area in a team of `size`.
fn area_bytes(size: u32) -> usize {
    (TEAM_BYTES / size.next_power_of_two() as usize).clamp(SMALLEST_AREA, LARGEST_AREA)
}

/// Blocks that a team of `size` needs.
fn blocks_of(size: u32) -> usize {
    (size as usize * area_bytes(size)).div_ceil(weft_fabric::shared::BLOCK_BYTES)
}

/// The last member that goes leaves the block as it was found: with zeros where numbers stand. Until then nobody else
/// gets it, so that a member which is late may still read what the others have left there.
impl<O> Drop for Team<O> {
    fn drop(&mut self) {
        // ORDER: leave-team, among the members: what each did in the block comes before the last one clears it.
        if self.block.word(LEFT).fetch_add(1, Ordering::AcqRel) + 1 < u64::from(self.size) {
            return;
        }
        let numbers = (0..SLOTS).map(|operation| self.slot(0, operation)).chain([DONE, BLIND, WAITING, LEFT]);
        for number in numbers {
            (0..self.size).for_each(|m| self.block.word(self.area(m) + number).store(0, Ordering::Relaxed));
        }
        self.blocks.give(self.first, blocks_of(self.size));
    }
}

impl<O> Team<O> {
    fn area(&self, member: u32) -> usize {
        member as usize * self.area_bytes
    }

    fn slot(&self, member: u32, operation: u64) -> usize {
        self.area(member) + (operation % SLOTS) as usize * LINE
    }
}

impl<O: TeamOwner> Team<O> {
    /// Makes the team, if the group can have one. `hand_round` brings a word of member 0 to all.
    ///
    /// # Errors
    /// Those of `hand_round`.
    pub fn form<E>(group: Forming, hand_round: impl FnOnce(u64) -> Result<u64, E>) -> Result<Option<Self>, E> {
        let Forming { me, peers, context, closed_with } = group;
        let size = peers.len() as u32;
        let is_eligible = {
            let mut state = O::monitor().enter();
            let endpoint = state.endpoint();
            (2..=MOST_MEMBERS).contains(&size) && peers.iter().all(|peer| endpoint.is_local(*peer))
        };
        if !is_eligible {
            return Ok(None);
        }
        let count = blocks_of(size);
        let blocks = O::monitor().enter().endpoint().shared_blocks();
        // Member 0 decides for all, also by its setting.
        let wanted = me == 0 && O::monitor().enter().endpoint().settings().collectives != Collectives::Messages;
        let mine = if wanted { blocks.take(count) } else { None };
        let first = hand_round(mine.map_or(u64::MAX, |first| first as u64))? as usize;
        Ok(blocks.open(first, count).map(|block| Self {
            block,
            blocks,
            first,
            me,
            size,
            area_bytes: area_bytes(size),
            peers,
            context,
            closed_with,
            quick_looks: AtomicU32::new(QUICK_LOOKS),
            last: AtomicU64::new(0),
            all_done: AtomicU64::new(0),
            showing: ShowingCell::default(),
            owner: PhantomData,
        }))
    }

    /// An operation for so many bytes is about to begin here.
    #[inline]
    pub(super) fn tell(&self, operation: &str, bytes: usize) {
        if O::listens() {
            self.tell_now(operation, bytes);
        }
    }

    #[cold]
    fn tell_now(&self, operation: &str, bytes: usize) {
        let _state = O::monitor().enter();
        O::tell(operation, self.context, self.size, bytes as u64);
    }

    /// Begins the next operation.
    #[inline]
    pub fn begin(&self) -> u64 {
        let operation = self.next_operation();
        self.last.store(operation, Ordering::Relaxed);
        operation
    }

    #[inline]
    pub(super) fn next_operation(&self) -> u64 {
        // One thread at a time uses a group's collectives.
        self.last.load(Ordering::Relaxed) + 1
    }

    /// The members without us.
    pub(super) fn others(&self) -> impl Iterator<Item = u32> {
        let me = self.me;
        (0..self.size).filter(move |member| *member != me)
    }

    /// The payload of `member`'s slot for `operation`.
    #[inline]
    pub fn slot_bytes(&self, member: u32, operation: u64) -> *mut u8 {
        self.block.bytes(self.slot(member, operation) + 8, SLOT_BYTES)
    }

    /// Bytes of a buffer.
    #[inline]
    pub fn buffer_bytes(&self) -> usize {
        (self.area_bytes - BUFFERS) / 2
    }

    /// `member`'s buffer for `operation`.
    #[inline]
    pub fn buffer(&self, member: u32, operation: u64) -> *mut u8 {
        let bytes = self.buffer_bytes();
        self.block.bytes(self.area(member) + BUFFERS + (operation % 2) as usize * bytes, bytes)
    }

    /// Waits until our slot for `operation` may be written again.
    #[inline]
    pub fn slot_room(&self, call: &'static str, operation: u64) -> Alike {
        self.room(call, operation.saturating_sub(SLOTS))
    }

    /// Waits until our buffer for `operation` may be written again.
    #[inline]
    pub fn buffer_room(&self, call: &'static str, operation: u64) -> Alike {
        self.room(call, operation.saturating_sub(2))
    }

    #[inline]
    fn room(&self, call: &'static str, done: u64) -> Alike {
        if self.all_done.load(Ordering::Relaxed) < done { self.wait_room(call, done) } else { Ok(()) }
    }

    #[cold]
    fn wait_room(&self, call: &'static str, done: u64) -> Alike {
        if self.look_at_done() >= done {
            return Ok(());
        }
        let waiting = self.block.word(WAITING);
        waiting.fetch_add(1, Ordering::SeqCst);
        let room = self.wait(call, |_| (self.look_at_done() >= done).then_some(Ok(())));
        waiting.fetch_sub(1, Ordering::SeqCst);
        room
    }

    /// Waits until everybody has finished `operation`.
    pub(super) fn await_finished(&self, call: &'static str, operation: u64) -> Alike {
        for _ in 0..self.quick_looks.load(Ordering::Relaxed) {
            if self.look_at_done() >= operation {
                return Ok(());
            }
        }
        self.wait_room(call, operation)
    }

    /// We cannot read what another member shows in `operation`, which we finish next.
    #[cold]
    pub(super) fn is_blind(&self, operation: u64) {
        self.block.word(self.area(self.me) + BLIND).store(operation, Ordering::Relaxed);
    }

    pub(super) fn was_blind(&self, member: u32, operation: u64) -> bool {
        self.block.word(self.area(member) + BLIND).load(Ordering::Relaxed) == operation
    }

    fn look_at_done(&self) -> u64 {
        let least = self.others().map(|member| self.block.observe(self.area(member) + DONE)).min().unwrap_or(u64::MAX);
        self.all_done.store(least, Ordering::Relaxed);
        least
    }

    /// Publishes our contribution to `operation`, `bytes` long, and wakes those of `readers` that sleep.
    #[inline]
    pub fn publish(&self, operation: u64, bytes: usize, readers: Range<u32>) {
        self.publish_of_row(operation, bytes, 1, readers);
    }

    /// The same for one of a row of operations: on `row`, which says how long it is in whatever terms, all have to
    /// agree.
    #[inline]
    pub fn publish_of_row(&self, operation: u64, bytes: usize, row: usize, readers: Range<u32>) {
        if is_long(bytes, row) {
            self.write_length(operation, [bytes as u64, row as u64]);
        }
        self.publish_word(operation, word(operation, bytes, row), readers);
    }

    /// Into the payload of our slot: what is so long lies in the buffer or goes by messages.
    #[cold]
    fn write_length(&self, operation: u64, bytes_and_row: [u64; 2]) {
        let payload = self.slot_bytes(self.me, operation).cast::<[u64; 2]>();
        // SAFETY: the payload has room for it, and nobody reads it before the word is published.
        unsafe { payload.write_unaligned(bytes_and_row) };
    }

    /// What the payload of a slot says of the length.
    #[cold]
    fn length(&self, member: u32, operation: u64) -> [u64; 2] {
        // SAFETY: the payload has these bytes, written before the word that we have seen.
        unsafe { self.slot_bytes(member, operation).cast::<[u64; 2]>().read_unaligned() }
    }

    /// Publishes that the members differ in what they bring.
    #[cold]
    pub fn publish_difference(&self, operation: u64) {
        self.publish_word(operation, differs(operation), 0..self.size);
    }

    #[inline]
    fn publish_word(&self, operation: u64, word: u64, readers: Range<u32>) {
        self.block.publish(self.slot(self.me, operation), word);
        self.wake(readers);
    }

    /// Wakes those of `readers` that sleep.
    #[inline]
    pub fn wake(&self, readers: Range<u32>) {
        let mut state = O::monitor().enter();
        let endpoint = state.endpoint();
        let looks = if endpoint.shares_core() { 1 } else { QUICK_LOOKS };
        self.quick_looks.store(looks, Ordering::Relaxed);
        for reader in readers {
            if reader != self.me {
                endpoint.wake(self.peers[reader as usize]);
            }
        }
    }

    /// Waits for `member`'s contribution to `operation`, which has to be `bytes` long like ours.
    #[inline]
    pub fn await_one(&self, call: &'static str, member: u32, operation: u64, bytes: usize) -> Alike {
        self.await_members(call, member..member + 1, operation, |_| bytes)
    }

    /// Waits for everybody's contribution to `operation`; then everybody has finished all operations before it.
    #[inline]
    pub fn await_all(&self, call: &'static str, operation: u64, bytes: usize) -> Alike {
        self.await_each(call, operation, |_| bytes)
    }

    /// The same where each member brings its own `bytes`.
    #[inline]
    pub fn await_each(&self, call: &'static str, operation: u64, bytes: impl Fn(u32) -> usize) -> Alike {
        self.await_row(call, operation, 1, bytes)
    }

    /// The same in one of a row of operations. Where somebody has another `row`, everybody differs from somebody, so
    /// that none goes on alone.
    #[inline]
    pub fn await_row(&self, call: &'static str, operation: u64, row: usize, bytes: impl Fn(u32) -> usize) -> Alike {
        self.await_members_of_row(call, 0..self.size, operation, row, bytes)?;
        self.all_met(operation);
        Ok(())
    }

    /// Everybody tells everybody the length of what goes by messages, since their way depends on it.
    ///
    /// # Errors
    /// The members bring different lengths; then nobody sends anything.
    pub fn announce(&self, call: &'static str, mine: usize, bytes: impl Fn(u32) -> usize) -> Alike {
        let operation = self.begin();
        self.slot_room(call, operation)?;
        let table = self.table(&bytes);
        self.publish_of_row(operation, mine, table, 0..self.size);
        let alike = self.await_row(call, operation, table, bytes);
        self.finish(operation);
        alike
    }

    /// What stands for the lengths that we expect of all members, where all have to agree on all of them: a member
    /// whose own length is as everybody expects would else go on alone.
    pub(super) fn table(&self, bytes: impl Fn(u32) -> usize) -> usize {
        const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
        let mix = |sum: u64, member| (sum ^ bytes(member) as u64).wrapping_mul(PRIME).rotate_left(29);
        // Never 1, which is what an operation says that is in no row.
        (0..self.size).fold(PRIME, mix) as usize | 1 << 62
    }

    /// Waits for those of `members` that are not ourselves. Who comes first with another length ends the wait.
    #[inline]
    pub(super) fn await_members(
        &self,
        call: &'static str,
        members: Range<u32>,
        operation: u64,
        bytes: impl Fn(u32) -> usize,
    ) -> Alike {
        self.await_members_of_row(call, members, operation, 1, bytes)
    }

    #[inline]
    fn await_members_of_row(
        &self,
        call: &'static str,
        members: Range<u32>,
        operation: u64,
        row: usize,
        bytes: impl Fn(u32) -> usize,
    ) -> Alike {
        let mut next = members.start;
        let mut have_come = |is_patient: bool| {
            while next < members.end {
                if next != self.me {
                    let found = self.block.word(self.slot(next, operation)).load(Ordering::Acquire);
                    let expected = bytes(next);
                    let is_alike = found == word(operation, expected, row)
                        && (!is_long(expected, row) || self.length(next, operation) == [expected as u64, row as u64]);
                    if !is_alike {
                        if is_of(operation, found) {
                            return Some(Err(self.difference(next, operation, found, expected)));
                        }
                        let nothing = is_patient && self.brings_nothing(next, operation);
                        return nothing.then_some(Err(Differs::Length { member: next, bytes: Some(0) }));
                    }
                }
                next += 1;
            }
            Some(Ok(()))
        };
        for _ in 0..self.quick_looks.load(Ordering::Relaxed) {
            if let Some(alike) = have_come(false) {
                return alike;
            }
        }
        self.wait(call, have_come)
    }

    /// Whether `member` has finished `operation` and published nothing: it will not come any more.
    fn brings_nothing(&self, member: u32, operation: u64) -> bool {
        // In this order: what a member publishes it has published when it says that it has finished.
        let has_finished = self.block.observe(self.area(member) + DONE) >= operation;
        has_finished && !is_of(operation, self.block.word(self.slot(member, operation)).load(Ordering::Acquire))
    }

    #[cold]
    fn difference(&self, member: u32, operation: u64, found: u64, expected: usize) -> Differs {
        let bytes = told(found, || self.length(member, operation)[0]);
        // Who brings what we expect differs in what it expects of others.
        Differs::Length { member, bytes: bytes.filter(|bytes| *bytes != expected as u64) }
    }

    /// Everybody has contributed to `operation`.
    #[inline]
    pub fn all_met(&self, operation: u64) {
        self.all_done.store(operation - 1, Ordering::Relaxed);
    }

    /// Waits until `arrived`, which is told whether we have waited for long: then it may look at what others often
    /// write.
    #[inline]
    fn wait(&self, call: &'static str, mut arrived: impl FnMut(bool) -> Option<Alike>) -> Alike {
        let waiting = Waiting { call, peer: None, tag: None, context: self.context };
        let (mut looks, mut sleeps) = (0, None);
        O::monitor().wait_for_memory(waiting, |state| {
            let endpoint = state.endpoint();
            looks += 1;
            // Whoever is woken may be so only once.
            let is_patient = looks > LONG_LOOKS || *sleeps.get_or_insert(endpoint.sleeps()) != endpoint.sleeps();
            let closing = || endpoint.closing(self.closed_with).map(|fault| Err(Differs::Closed(fault)));
            arrived(is_patient).or_else(closing)
        })
    }

    /// We have read everything that we need of `operation`.
    #[inline]
    pub fn finish(&self, operation: u64) {
        let mut state = self.say_finished(operation);
        if self.block.word(WAITING).load(Ordering::Relaxed) != 0 {
            self.wake_others(&mut state);
        }
    }

    /// The same, and whoever sleeps for us looks again.
    #[inline]
    pub(super) fn finish_and_wake(&self, operation: u64) {
        self.wake_others(&mut self.say_finished(operation));
    }

    #[inline]
    fn say_finished(&self, operation: u64) -> MonitorGuard<'static, O::State> {
        self.block.publish(self.area(self.me) + DONE, operation);
        let mut state = O::monitor().enter();
        let endpoint = state.endpoint();
        endpoint.count_shared_collective();
        endpoint.order_before_look();
        state
    }

    #[inline]
    fn wake_others(&self, state: &mut O::State) {
        let me = self.peers[self.me as usize];
        self.peers.iter().filter(|peer| **peer != me).for_each(|peer| state.endpoint().wake(*peer));
    }
}
