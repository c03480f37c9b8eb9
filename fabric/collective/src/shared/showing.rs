//! Contributions that stay where they are: memory that all members can map ([`weft_fabric::memory`]) is read in place,
//! and no buffer of the team is written.
//!
//! In a first operation everybody says where its bytes stand ([`Team::show`]), then they are read, and in a last one
//! all tell that they have read ([`Team::all_have_read`]), so that nobody changes its bytes too soon. Whether all can
//! see each other's memory is asked once for the same regions. Where somebody has other memory, all go the other way,
//! and try again after more and more operations. Every such choice depends on what all members know alike: the numbers
//! of operations, and what everybody has said.

use super::learnt::{SETS, Showing};
use super::owner::TeamOwner;
use super::piece::SharedPiece;
use super::team::Team;
use super::word::{Alike, Differs};
use weft_fabric::region::Ticket;
use weft_fabric::{Driven, Fault, ShownMemory, ShownPlace};

/// Shorter contributions are copied: two more meetings cost as much.
pub const SHOWN_BYTES: usize = 8 * 1024;
/// The row of an operation in which places are said, where the members agree on nothing else by it.
pub const SHOWN_ROW: usize = 2;
/// Operations until the next try, after one in which somebody had other memory, at most.
const LONGEST_REST: u64 = 256;
/// Where the places stand in the payload of a slot, behind the length.
const SAID: usize = 16;

/// What a member says: its input and, where it counts, its output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub input: Option<ShownPlace>,
    pub output: Option<ShownPlace>,
}

/// Set beside a number, so that there is one.
const HAS: u64 = 1 << 31;

impl Said {
    fn words(self) -> [u64; 5] {
        let number = |place: Option<ShownPlace>| place.map_or(0, |place| HAS | u64::from(place.ticket.number));
        let token = |place: Option<ShownPlace>| place.map_or(0, |place| place.ticket.token);
        let offset = |place: Option<ShownPlace>| place.map_or(0, |place| place.offset);
        let Self { input, output } = self;
        [number(input) | number(output) << 32, token(input), offset(input), token(output), offset(output)]
    }

    fn from_words([numbers, token, offset, out_token, out_offset]: [u64; 5]) -> Self {
        let place = |number: u64, token, offset| {
            let ticket = Ticket { number: (number & (HAS - 1)) as u32, token };
            (number & HAS != 0).then_some(ShownPlace { ticket, offset })
        };
        Self { input: place(numbers, token, offset), output: place(numbers >> 32, out_token, out_offset) }
    }

    /// What stands for the regions, whatever the offsets.
    fn regions(self) -> u64 {
        const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
        let [numbers, token, _, out_token, _] = self.words();
        [numbers, token, out_token].iter().fold(PRIME, |sum, word| (sum ^ word).wrapping_mul(PRIME).rotate_left(29))
    }
}

/// Everybody's contribution, in this process. Nothing of our own is here.
pub(super) struct Seen {
    inputs: Vec<Option<ShownMemory>>,
    outputs: Vec<Option<ShownMemory>>,
    /// Somebody's output is its input.
    pub is_in_place: bool,
}

impl Seen {
    /// Where `bytes` bytes of another member's input stand.
    pub fn input(&self, member: u32, from: usize, bytes: usize) -> *const u8 {
        at(&self.inputs, member, from, bytes)
    }

    pub fn output(&self, member: u32, from: usize, bytes: usize) -> *const u8 {
        at(&self.outputs, member, from, bytes)
    }
}

fn at(places: &[Option<ShownMemory>], member: u32, from: usize, bytes: usize) -> *const u8 {
    places[member as usize].as_ref().expect("everybody was seen").at(from, bytes)
}

impl<O: TeamOwner> Team<O> {
    /// Everybody says where its `input` stands, and its `output`, if that is wanted. `bytes` and `row`, which is more
    /// than 1, are as in [`Team::publish_of_row`], `expected` as in [`Team::await_row`], `spans` the bytes that each
    /// shows. `None`: not all can be read in place, or it is no time to try.
    ///
    /// # Errors
    /// The members differ; all of them find it.
    pub(super) fn show(
        &self,
        call: &'static str,
        (bytes, row): (usize, usize),
        expected: impl Fn(u32) -> usize,
        spans: impl Fn(u32) -> usize,
        input: Option<SharedPiece>,
        output: Option<Option<SharedPiece>>,
    ) -> Result<Option<Seen>, Differs> {
        if !self.is_time_to_show() {
            return Ok(None);
        }
        let wants_output = output.is_some();
        let mine = self.say(input, output.flatten());
        let operation = self.begin();
        self.slot_room(call, operation)?;
        self.write_said(operation, mine);
        self.publish_of_row(operation, bytes, row, 0..self.size);
        let met = self.await_row(call, operation, row, expected);
        let said: Vec<Said> = match met {
            Ok(()) => (0..self.size).map(|member| self.said(member, operation)).collect(),
            Err(_) => Vec::new(),
        };
        self.finish(operation);
        met?;
        // Of nothing nothing has to be shown.
        let shows = |said: &Said| said.input.is_some() && (!wants_output || said.output.is_some());
        let all_show = (0..).zip(&said).all(|(member, said)| spans(member) == 0 || shows(said));
        if !all_show {
            self.rest_from_showing();
            return Ok(None);
        }
        self.see_all(call, &said, spans)
    }

    /// Whether the next operation is one in which showing is to be tried.
    pub(super) fn is_time_to_show(&self) -> bool {
        self.next_operation() >= self.showing().due
    }

    fn showing(&self) -> std::sync::MutexGuard<'_, Showing> {
        self.showing.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Somebody has memory that cannot be shown, or that somebody cannot see.
    pub(super) fn rest_from_showing(&self) {
        let next = self.next_operation();
        let mut showing = self.showing();
        showing.rest = (2 * showing.rest).clamp(2, LONGEST_REST);
        showing.due = next + showing.rest;
    }

    /// What we say of our memory; nothing if there is somebody who could not look at it.
    pub(super) fn say(&self, input: Option<SharedPiece>, output: Option<SharedPiece>) -> Said {
        let place = |piece: Option<SharedPiece>| piece.and_then(|piece| ShownPlace::of(piece.at, piece.bytes));
        let said = Said { input: place(input), output: place(output) };
        let mut state = O::monitor().enter();
        let endpoint = state.endpoint();
        let can_be_seen = self.others().all(|member| endpoint.attach(self.peers[member as usize]).is_some());
        if can_be_seen { said } else { Said::default() }
    }

    /// Into the payload of our slot, which is not published yet.
    pub(super) fn write_said(&self, operation: u64, said: Said) {
        // SAFETY: the payload has room for it behind the length, and nobody reads it before the word is published.
        unsafe { self.slot_bytes(self.me, operation).add(SAID).cast::<[u64; 5]>().write_unaligned(said.words()) };
    }

    /// What a member has said; its word was seen.
    pub(super) fn said(&self, member: u32, operation: u64) -> Said {
        // SAFETY: as above; written before the word that we have seen.
        Said::from_words(unsafe { self.slot_bytes(member, operation).add(SAID).cast::<[u64; 5]>().read_unaligned() })
    }

    /// The contributions of all, unless there is somebody who does not see them.
    pub(super) fn see_all(
        &self,
        call: &'static str,
        said: &[Said],
        spans: impl Fn(u32) -> usize,
    ) -> Result<Option<Seen>, Differs> {
        let room = || Vec::with_capacity(said.len());
        let is_in_place = said.iter().any(|said| said.input == said.output);
        let mut seen = Seen { inputs: room(), outputs: room(), is_in_place };
        for (member, said) in (0..).zip(said) {
            let see = |place: Option<ShownPlace>| self.see(member, place.filter(|_| member != self.me)?, spans(member));
            seen.inputs.push(see(said.input));
            seen.outputs.push(see(said.output));
        }
        let missing = |shown: &[Option<ShownMemory>], has: fn(&Said) -> bool| {
            self.others().any(|m| has(&said[m as usize]) && shown[m as usize].is_none())
        };
        let sees_all = !missing(&seen.inputs, |said| said.input.is_some())
            && !missing(&seen.outputs, |said| said.output.is_some());
        let regions = said.iter().fold(1u64, |sum, said| sum.rotate_left(7) ^ said.regions());
        let is_known = self.showing().seen.contains(&regions);
        if is_known && !sees_all {
            // What everybody once saw is gone with its member, or was never there.
            return Err(Differs::Closed(Fault::PeerLost));
        }
        if !is_known {
            if !self.do_all_see(call, sees_all)? {
                self.rest_from_showing();
                return Ok(None);
            }
            let mut showing = self.showing();
            let next = showing.next;
            (showing.seen[next % SETS], showing.next, showing.rest) = (regions, next + 1, 0);
        }
        Ok(Some(seen))
    }

    /// What a member says that it has at a place; a claim, which is looked at here.
    pub(super) fn see(&self, member: u32, place: ShownPlace, bytes: usize) -> Option<ShownMemory> {
        O::monitor().enter().endpoint().see(self.peers[member as usize], place, bytes)
    }

    /// Everybody tells whether it sees all.
    fn do_all_see(&self, call: &'static str, sees_all: bool) -> Result<bool, Differs> {
        let operation = self.begin();
        self.slot_room(call, operation)?;
        // SAFETY: the payload of our slot, not published yet.
        unsafe { self.slot_bytes(self.me, operation).write(u8::from(sees_all)) };
        self.publish(operation, 0, 0..self.size);
        let met = self.await_all(call, operation, 0);
        // SAFETY: all have published.
        let all = met.is_ok() && (0..self.size).all(|m| unsafe { self.slot_bytes(m, operation).read() } == 1);
        self.finish(operation);
        met.map(|()| all)
    }

    /// We have read so many bytes of what the others show; waits until everybody has read.
    pub(super) fn all_have_read(&self, call: &'static str, bytes: usize) -> Alike {
        O::monitor().enter().endpoint().count_single_copy(bytes as u64);
        let operation = self.begin();
        self.slot_room(call, operation)?;
        self.publish(operation, 0, 0..self.size);
        let met = self.await_all(call, operation, 0);
        self.finish(operation);
        met
    }

    /// The same at the end of an operation that not everybody takes note of; answers whether somebody has not seen what
    /// it should have read.
    pub(super) fn have_read(&self, call: &'static str, operation: u64) -> Result<bool, Differs> {
        self.finish(operation);
        self.await_finished(call, operation)?;
        let somebody_is_blind = (0..self.size).any(|member| self.was_blind(member, operation));
        if somebody_is_blind {
            self.showing().somebody_is_blind = true;
        }
        Ok(somebody_is_blind)
    }

    /// Whether nobody was found yet that cannot read what is shown.
    pub(super) fn all_may_see(&self) -> bool {
        !self.showing().somebody_is_blind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read_as_it_was_written() {
        let place = |number, token| ShownPlace { ticket: Ticket { number, token }, offset: u64::MAX - 7 };
        let places = [None, Some(place(0, 0)), Some(place((1 << 31) - 1, u64::MAX))];
        for (input, output) in places.iter().flat_map(|a| places.iter().map(move |b| (*a, *b))) {
            assert_eq!(Said::from_words(Said { input, output }.words()), Said { input, output });
        }
        let with = |number| Said { input: Some(place(number, 1)), output: None };
        assert_ne!(with(3).regions(), with(4).regions());
        assert_ne!(with(3).regions(), Said { output: with(3).input, input: None }.regions());
    }
}
