//! The launcher's half of PMIx: brings together what the servers of all hosts have gathered, and leads who wants a
//! value of another host there.

use super::said::{PmixSaid, PmixTold, Together};
use super::{BAD_PARAMETER, LOST, NOT_FOUND, SUCCESS, TOO_MUCH, bounded};
use crate::frame::FrameError;
use std::collections::{HashMap, HashSet, VecDeque};

/// What comes out after something that a server has said went in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PmixEvent {
    /// Say this to the server of this host.
    Tell { host: usize, told: PmixTold },
    /// The rank has begun to use PMIx.
    Initialised { rank: usize },
    /// The rank has taken its leave.
    Finalised { rank: usize },
    /// The rank asks to end the whole job.
    Abort { rank: usize, code: i32, message: String },
    /// The rank wanted what is not served; it is told, and so is the user.
    Refused { rank: usize, text: String },
    /// Ranks have given more together than can be brought to all of them; they are told, and so is the user.
    TooMuch,
}

/// What a host has given: under which number, with which status, and its bytes. One that is lost has no number.
type Given = (Option<u64>, i32, Vec<u8>);

/// The turns of one set of ranks.
struct PmixTurns {
    /// Of each host those that not all others have joined yet.
    begun: Vec<VecDeque<Given>>,
    /// Which hosts are to give something: who has ranks left in them.
    awaited: Vec<bool>,
    /// How many of those have not come to the first turn.
    missing: usize,
}

/// What is done together, and by which ranks, in rising order; none named: by all.
type TogetherBy = (Together, Vec<u32>);

/// Serves one job.
pub struct PmixExchange {
    /// The number of each rank's host.
    places: Vec<usize>,
    hosts: usize,
    turns: HashMap<TogetherBy, PmixTurns>,
    /// Who waits for a rank's values: host, and its number for that. `asked` is who has to answer.
    asks: HashMap<u64, PmixAsk>,
    last_ask: u64,
    published: HashMap<String, Vec<u8>>,
    keeps_going: bool,
    lost: HashSet<usize>,
    events: VecDeque<PmixEvent>,
}

struct PmixAsk {
    host: usize,
    call: u64,
    asked: usize,
    rank: usize,
}

impl PmixExchange {
    /// Rank `r` of the job is on host number `places[r]`.
    pub fn new(places: &[usize]) -> Self {
        let hosts = places.iter().max().map_or(0, |last| last + 1);
        let (turns, asks, published) = Default::default();
        let (lost, events) = Default::default();
        Self { places: places.to_vec(), hosts, turns, asks, last_ask: 0, published, keeps_going: false, lost, events }
    }

    /// Those who are left go on when a rank is lost.
    pub fn keep_going(&mut self) {
        self.keeps_going = true;
    }

    /// The next thing to do, in the order in which it came about.
    pub fn poll_event(&mut self) -> Option<PmixEvent> {
        self.events.pop_front()
    }

    /// Takes what the server of this host has said.
    ///
    /// # Errors
    /// It means nothing.
    pub fn handle_piece(&mut self, host: usize, piece: &[u8]) -> Result<(), FrameError> {
        match PmixSaid::decode(piece)? {
            PmixSaid::Connected { rank } => self.say(host, rank, |rank| PmixEvent::Initialised { rank }),
            PmixSaid::Finalised { rank } => self.say(host, rank, |rank| PmixEvent::Finalised { rank }),
            PmixSaid::Aborted { rank, code, text } => {
                self.say(host, rank, |rank| PmixEvent::Abort { rank, code, message: text });
            }
            PmixSaid::Refused { rank, text } => self.say(host, rank, |rank| PmixEvent::Refused { rank, text }),
            // Who waits for one that is lost is ended, and should not be first to say so.
            PmixSaid::Gathered { status, .. } if ![SUCCESS, TOO_MUCH].contains(&status) && !self.keeps_going => {}
            PmixSaid::Gathered { call, status, what, ranks, data } => {
                self.on_gathered(host, call, (what, ranks), (status, data));
            }
            PmixSaid::Wanted { call, rank } => self.on_wanted(host, call, rank),
            PmixSaid::Found { ask, status, data } => self.on_found(host, ask, status, data),
            PmixSaid::Published { call, key, value } => {
                // Who comes second does not take the name from the first.
                let is_new = !self.published.contains_key(&key);
                self.published.entry(key).or_insert(value);
                self.done(host, call, if is_new { SUCCESS } else { BAD_PARAMETER }, Vec::new());
            }
            PmixSaid::Unpublished { call, key } => {
                let was_there = self.published.remove(&key).is_some();
                self.done(host, call, if was_there { SUCCESS } else { NOT_FOUND }, Vec::new());
            }
            PmixSaid::LookedUp { call, key } => match self.published.get(&key).cloned() {
                Some(value) => self.done(host, call, SUCCESS, value),
                None => self.done(host, call, NOT_FOUND, Vec::new()),
            },
            PmixSaid::Ready { .. } | PmixSaid::Failed { .. } => return Err(FrameError::Kind(0)),
        }
        Ok(())
    }

    /// Of a rank that is there; another one is no rank of that server.
    fn say(&mut self, host: usize, rank: u32, event: impl FnOnce(usize) -> PmixEvent) {
        if self.places.get(rank as usize) == Some(&host) {
            self.events.push_back(event(rank as usize));
        }
    }

    fn done(&mut self, host: usize, call: u64, status: i32, data: Vec<u8>) {
        self.events.push_back(PmixEvent::Tell { host, told: PmixTold::Done { call, status, data } });
    }

    /// The rank is gone, and the others go on. A host that has nobody left of those that do something together gives no
    /// more to it: what they are at ends for the others with an error, as the library ends it where that was on one
    /// host, and what they begin later is theirs alone. Nobody finds what the rank has put.
    pub fn handle_lost(&mut self, rank: usize) {
        let Some(host) = self.places.get(rank).copied() else { return };
        self.lost.insert(rank);
        let is_over = |by: &&TogetherBy| belongs(by, rank) && !self.awaits(by, host);
        for by in self.turns.keys().filter(is_over).cloned().collect::<Vec<_>>() {
            if let Some(turns) = self.turns.get_mut(&by) {
                turns.lose(host);
            }
            self.end_turns(&by);
        }
        let over: Vec<u64> = self.asks.iter().filter(|(_, ask)| ask.rank == rank).map(|(ask, _)| *ask).collect();
        for PmixAsk { host, call, .. } in over.iter().filter_map(|ask| self.asks.remove(ask)).collect::<Vec<_>>() {
            self.done(host, call, NOT_FOUND, Vec::new());
        }
    }

    fn on_gathered(&mut self, host: usize, call: u64, (what, ranks): TogetherBy, (status, data): (i32, Vec<u8>)) {
        if !self.is_of(&ranks, host) {
            return self.done(host, call, BAD_PARAMETER, Vec::new());
        }
        let mut ranks = ranks;
        ranks.sort_unstable();
        let by = (what, ranks);
        // All ranks are looked at once for a turn, and not again for each host that joins it.
        if !self.turns.contains_key(&by) {
            self.turns.insert(by.clone(), PmixTurns::of(self.awaited(&by)));
        }
        let Some(turns) = self.turns.get_mut(&by) else { return };
        if turns.awaited[host] {
            turns.join(host, (Some(call), status, data));
            self.end_turns(&by);
        } else {
            if turns.is_empty() {
                self.turns.remove(&by);
            }
            // What its ranks were at when they were lost is over.
            self.done(host, call, LOST, Vec::new());
        }
    }

    /// The ranks that are left of those that belong to this.
    fn left_of<'a>(&'a self, (_, ranks): &'a TogetherBy) -> impl Iterator<Item = usize> + 'a {
        let all = if ranks.is_empty() { 0..self.places.len() } else { 0..0 };
        all.chain(ranks.iter().map(|rank| *rank as usize)).filter(|rank| !self.lost.contains(rank))
    }

    /// Whether a host has some of them.
    fn awaits(&self, by: &TogetherBy, host: usize) -> bool {
        self.left_of(by).any(|rank| self.places[rank] == host)
    }

    /// Which hosts have some of them.
    fn awaited(&self, by: &TogetherBy) -> Vec<bool> {
        let mut awaited = vec![false; self.hosts];
        self.left_of(by).for_each(|rank| awaited[self.places[rank]] = true);
        awaited
    }

    /// Ends the turns that all hosts have joined which have ranks left in them.
    fn end_turns(&mut self, by: &TogetherBy) {
        while let Some(turns) = self.turns.get_mut(by).filter(|turns| turns.missing == 0) {
            let come = turns.take_first();
            if turns.is_empty() {
                self.turns.remove(by);
            }
            self.end_turn(come);
        }
    }

    fn end_turn(&mut self, come: Vec<(usize, Given)>) {
        let all: Vec<u8> = come.iter().flat_map(|(_, (_, _, data))| data).copied().collect();
        let status = come.iter().map(|(_, (_, status, _))| *status).find(|status| *status != SUCCESS);
        let (status, all) = bounded(status.unwrap_or(SUCCESS), all, 0);
        if status == TOO_MUCH {
            self.events.push_back(PmixEvent::TooMuch);
        }
        for (host, (call, ..)) in come {
            if let Some(call) = call {
                self.done(host, call, status, all.clone());
            }
        }
    }

    /// Whether a host has some of these ranks, or of all where none is named; not where one of them does not exist.
    fn is_of(&self, ranks: &[u32], host: usize) -> bool {
        let mut places = ranks.iter().map(|rank| self.places.get(*rank as usize));
        let all_exist = places.clone().all(|place| place.is_some());
        host < self.hosts && all_exist && (ranks.is_empty() || places.any(|place| place == Some(&host)))
    }

    fn on_wanted(&mut self, host: usize, call: u64, rank: u32) {
        let place = self.places.get(rank as usize).copied();
        let Some(asked) = place.filter(|_| !self.lost.contains(&(rank as usize))) else {
            return self.done(host, call, NOT_FOUND, Vec::new());
        };
        self.last_ask += 1;
        let ask = self.last_ask;
        self.asks.insert(ask, PmixAsk { host, call, asked, rank: rank as usize });
        self.events.push_back(PmixEvent::Tell { host: asked, told: PmixTold::Wanted { ask, rank } });
    }

    fn on_found(&mut self, host: usize, ask: u64, status: i32, data: Vec<u8>) {
        if let Some(waiting) = self.asks.remove_entry(&ask) {
            match waiting {
                (_, PmixAsk { host: asker, call, asked, .. }) if asked == host => self.done(asker, call, status, data),
                (ask, waiting) => _ = self.asks.insert(ask, waiting),
            }
        }
    }
}

impl PmixTurns {
    fn of(awaited: Vec<bool>) -> Self {
        let missing = awaited.iter().filter(|is_awaited| **is_awaited).count();
        Self { begun: vec![VecDeque::new(); awaited.len()], awaited, missing }
    }

    fn is_empty(&self) -> bool {
        self.begun.iter().all(VecDeque::is_empty)
    }

    /// A host that is awaited has come.
    fn join(&mut self, host: usize, given: Given) {
        self.missing -= usize::from(self.begun[host].is_empty());
        self.begun[host].push_back(given);
    }

    /// A host has nobody left. What is begun it gives nothing to any more.
    fn lose(&mut self, host: usize) {
        let begun = self.begun.iter().map(VecDeque::len).max().unwrap_or(0);
        self.missing -= usize::from(self.awaited[host] && self.begun[host].is_empty());
        self.awaited[host] = false;
        self.begun[host].resize(begun, (None, LOST, Vec::new()));
    }

    /// What has been given to the first turn, by host.
    fn take_first(&mut self) -> Vec<(usize, Given)> {
        let begun = self.begun.iter_mut().enumerate();
        let come = begun.filter_map(|(host, begun)| Some((host, begun.pop_front()?))).collect();
        let is_missing = |(begun, awaited): (&VecDeque<Given>, &bool)| *awaited && begun.is_empty();
        self.missing = self.begun.iter().zip(&self.awaited).filter(|pair| is_missing(*pair)).count();
        come
    }
}

fn belongs((_, ranks): &TogetherBy, rank: usize) -> bool {
    ranks.is_empty() || ranks.binary_search(&(rank as u32)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::GIVEN_MAX;
    use super::*;

    /// Four ranks on two hosts, by turns.
    fn exchange() -> PmixExchange {
        PmixExchange::new(&[0, 1, 0, 1])
    }

    fn gathered(call: u64, ranks: &[u32], data: &[u8]) -> Vec<u8> {
        said(call, SUCCESS, ranks, data)
    }

    fn said(call: u64, status: i32, ranks: &[u32], data: &[u8]) -> Vec<u8> {
        PmixSaid::Gathered { call, status, what: Together::Fence, ranks: ranks.to_vec(), data: data.to_vec() }.encode()
    }

    fn events(exchange: &mut PmixExchange) -> Vec<PmixEvent> {
        std::iter::from_fn(|| exchange.poll_event()).collect()
    }

    fn done(host: usize, call: u64, status: i32, data: &[u8]) -> PmixEvent {
        PmixEvent::Tell { host, told: PmixTold::Done { call, status, data: data.to_vec() } }
    }

    #[test]
    fn a_fence_is_over_when_all_its_hosts_have_come_and_all_get_the_same() {
        let mut exchange = exchange();
        exchange.handle_piece(1, &gathered(5, &[], b"b")).unwrap();
        assert_eq!(events(&mut exchange), []);
        exchange.handle_piece(0, &gathered(8, &[], b"a")).unwrap();
        assert_eq!(events(&mut exchange), [done(0, 8, 0, b"ab"), done(1, 5, 0, b"ab")]);
        assert!(exchange.turns.is_empty(), "nothing is kept");
    }

    #[test]
    fn fences_of_other_ranks_and_later_turns_do_not_mix() {
        let mut exchange = exchange();
        exchange.handle_piece(0, &gathered(1, &[2, 1], b"x")).unwrap();
        exchange.handle_piece(0, &gathered(2, &[1, 2], b"y")).unwrap();
        exchange.handle_piece(1, &gathered(3, &[0, 1, 2, 3], b"z")).unwrap();
        assert_eq!(events(&mut exchange), []);
        exchange.handle_piece(1, &gathered(4, &[1, 2], b"1")).unwrap();
        assert_eq!(events(&mut exchange), [done(0, 1, 0, b"x1"), done(1, 4, 0, b"x1")]);
        // Only those of one host.
        exchange.handle_piece(0, &gathered(6, &[0, 2], b"q")).unwrap();
        assert_eq!(events(&mut exchange), [done(0, 6, 0, b"q")]);
    }

    #[test]
    fn where_a_rank_is_lost_the_others_wait_for_their_end_or_go_on() {
        let mut exchange = exchange();
        exchange.handle_piece(0, &said(1, -3, &[], b"a")).unwrap();
        exchange.handle_piece(1, &gathered(2, &[], b"b")).unwrap();
        assert_eq!(events(&mut exchange), []);
        exchange.keep_going();
        exchange.handle_piece(0, &said(3, -3, &[], b"a")).unwrap();
        assert_eq!(events(&mut exchange), [done(0, 3, -3, b"ab"), done(1, 2, -3, b"ab")]);
    }

    #[test]
    fn a_host_that_has_lost_all_its_ranks_is_not_waited_for() {
        let mut exchange = exchange();
        exchange.keep_going();
        exchange.handle_piece(0, &gathered(1, &[], b"a")).unwrap();
        exchange.handle_piece(0, &gathered(2, &[0, 1], b"b")).unwrap();
        exchange.handle_lost(1);
        assert_eq!(events(&mut exchange), [done(0, 2, LOST, b"b")], "rank 3 may still come to the other");
        exchange.handle_lost(3);
        assert_eq!(events(&mut exchange), [done(0, 1, LOST, b"a")]);
        // What its library says of that later is not for the next one.
        exchange.handle_piece(1, &said(8, LOST, &[], b"")).unwrap();
        exchange.handle_piece(0, &gathered(3, &[], b"c")).unwrap();
        assert_eq!(events(&mut exchange), [done(1, 8, LOST, b""), done(0, 3, SUCCESS, b"c")]);
        assert!(exchange.turns.is_empty(), "nothing is kept");
    }

    #[test]
    fn what_a_host_has_given_before_it_was_lost_counts() {
        let mut exchange = PmixExchange::new(&[0, 1, 2]);
        exchange.keep_going();
        exchange.handle_piece(1, &gathered(1, &[], b"b")).unwrap();
        exchange.handle_lost(1);
        exchange.handle_piece(0, &gathered(2, &[], b"a")).unwrap();
        exchange.handle_piece(0, &gathered(3, &[], b"A")).unwrap();
        assert_eq!(events(&mut exchange), []);
        exchange.handle_piece(2, &gathered(4, &[], b"c")).unwrap();
        let all = [done(0, 2, SUCCESS, b"abc"), done(1, 1, SUCCESS, b"abc"), done(2, 4, SUCCESS, b"abc")];
        assert_eq!(events(&mut exchange), all);
        exchange.handle_lost(2);
        assert_eq!(events(&mut exchange), [done(0, 3, LOST, b"A")]);
    }

    #[test]
    fn who_is_lost_ends_nothing_that_it_does_not_belong_to() {
        let mut exchange = PmixExchange::new(&[0, 1, 2]);
        exchange.keep_going();
        exchange.handle_piece(0, &gathered(1, &[0, 2], b"a")).unwrap();
        exchange.handle_lost(1);
        assert_eq!(events(&mut exchange), []);
        exchange.handle_piece(2, &gathered(2, &[0, 2], b"c")).unwrap();
        assert_eq!(events(&mut exchange), [done(0, 1, SUCCESS, b"ac"), done(2, 2, SUCCESS, b"ac")]);
    }

    #[test]
    fn nobody_waits_for_what_a_lost_rank_has_put() {
        let mut exchange = exchange();
        exchange.keep_going();
        exchange.handle_piece(0, &PmixSaid::Wanted { call: 4, rank: 3 }.encode()).unwrap();
        events(&mut exchange);
        exchange.handle_lost(3);
        exchange.handle_piece(0, &PmixSaid::Wanted { call: 5, rank: 3 }.encode()).unwrap();
        assert_eq!(events(&mut exchange), [done(0, 4, NOT_FOUND, b""), done(0, 5, NOT_FOUND, b"")]);
        exchange.handle_piece(1, &PmixSaid::Found { ask: 1, status: 0, data: b"late".to_vec() }.encode()).unwrap();
        assert_eq!(events(&mut exchange), []);
    }

    #[test]
    fn more_than_fits_into_a_piece_is_refused_to_all_and_told_once() {
        let mut exchange = exchange();
        let half = vec![1; GIVEN_MAX / 2];
        exchange.handle_piece(0, &gathered(1, &[], &half)).unwrap();
        exchange.handle_piece(1, &gathered(2, &[], &half)).unwrap();
        let whole = events(&mut exchange);
        assert!(matches!(&whole[0], PmixEvent::Tell { told: PmixTold::Done { status: SUCCESS, data, .. }, .. }
            if data.len() == half.len() * 2));
        exchange.handle_piece(0, &gathered(3, &[], &half)).unwrap();
        exchange.handle_piece(1, &gathered(4, &[], &[&half[..], &[1, 1]].concat())).unwrap();
        let told = [PmixEvent::TooMuch, done(0, 3, TOO_MUCH, b""), done(1, 4, TOO_MUCH, b"")];
        assert_eq!(events(&mut exchange), told);
        // A host alone has too much.
        exchange.handle_piece(0, &said(5, TOO_MUCH, &[0, 2], b"")).unwrap();
        assert_eq!(events(&mut exchange), [PmixEvent::TooMuch, done(0, 5, TOO_MUCH, b"")]);
    }

    #[test]
    fn ranks_that_are_not_there_and_hosts_that_have_none_of_them_are_refused() {
        let mut exchange = exchange();
        exchange.handle_piece(0, &gathered(1, &[9], b"")).unwrap();
        exchange.handle_piece(0, &gathered(2, &[1, 3], b"")).unwrap();
        assert_eq!(events(&mut exchange), [done(0, 1, BAD_PARAMETER, b""), done(0, 2, BAD_PARAMETER, b"")]);
        exchange.handle_piece(1, &PmixSaid::Finalised { rank: 0 }.encode()).unwrap();
        assert_eq!(events(&mut exchange), [], "rank 0 is not on host 1");
        assert!(exchange.handle_piece(0, &[]).is_err());
    }

    #[test]
    fn who_wants_values_of_a_rank_gets_them_from_its_host_and_no_other() {
        let mut exchange = exchange();
        exchange.handle_piece(0, &PmixSaid::Wanted { call: 4, rank: 3 }.encode()).unwrap();
        let asked = events(&mut exchange);
        assert_eq!(asked, [PmixEvent::Tell { host: 1, told: PmixTold::Wanted { ask: 1, rank: 3 } }]);
        let found = PmixSaid::Found { ask: 1, status: 0, data: b"v".to_vec() }.encode();
        exchange.handle_piece(0, &found).unwrap();
        assert_eq!(events(&mut exchange), [], "not asked");
        exchange.handle_piece(1, &found).unwrap();
        assert_eq!(events(&mut exchange), [done(0, 4, 0, b"v")]);
        exchange.handle_piece(1, &found).unwrap();
        exchange.handle_piece(0, &PmixSaid::Wanted { call: 5, rank: 4 }.encode()).unwrap();
        assert_eq!(events(&mut exchange), [done(0, 5, NOT_FOUND, b"")]);
    }

    #[test]
    fn names_are_published_once_and_found_by_all_until_they_are_taken_back() {
        let mut exchange = exchange();
        let publish = |call, value: &[u8]| PmixSaid::Published { call, key: "k".into(), value: value.to_vec() };
        let lookup = |call| PmixSaid::LookedUp { call, key: "k".into() };
        let steps = [
            (0, lookup(1), NOT_FOUND, &b""[..]),
            (0, publish(2, b"v"), SUCCESS, b""),
            (1, publish(3, b"w"), BAD_PARAMETER, b""),
            (1, lookup(4), SUCCESS, b"v"),
            (1, PmixSaid::Unpublished { call: 5, key: "k".into() }, SUCCESS, b""),
            (0, lookup(6), NOT_FOUND, b""),
        ];
        for ((host, said, status, data), call) in steps.into_iter().zip(1..) {
            exchange.handle_piece(host, &said.encode()).unwrap();
            assert_eq!(events(&mut exchange), [done(host, call, status, data)]);
        }
    }
}
