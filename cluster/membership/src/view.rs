//! The machine: its state, its time, and what it sends.

use crate::board::Board;
use crate::circles::Circles;
use crate::datagram::{Datagram, IS_ANSWER, SAID_MAX};
use crate::repute::Repute;
use crate::roster::Roster;
use crate::{BEAT_NS, Chance, Condition, DroppedDatagrams, MemberChange, MemberId};
use std::collections::{BTreeMap, VecDeque};

/// News go out at once, and then not again for so long, so that many at a time share datagrams.
const NEWS_EVERY_NS: u64 = 20_000_000;
/// Who is called later than it asked for by more than this was not there itself.
const LATE_NS: u64 = 300_000_000;
/// Datagrams that wait to be fetched.
const WAITING_MAX: usize = 4096;

/// One member's view of all.
#[derive(Clone, Debug)]
pub struct MembershipView {
    pub(crate) me: usize,
    pub(crate) roster: Roster,
    pub(crate) circles: Circles,
    pub(crate) board: Board,
    pub(crate) neighbours: Vec<Neighbour>,
    /// How many usable neighbours there shall be in each direction of a circle; more than one while many are silent.
    pub(crate) reach: usize,
    pub(crate) now_ns: u64,
    due_ns: Option<u64>,
    beat_ns: u64,
    /// Members of whom neighbours are to be told.
    news: Vec<usize>,
    news_ns: u64,
    waiting: VecDeque<(MemberId, Vec<u8>)>,
    number: u32,
    /// When this member took another incarnation.
    pub(crate) renewed_ns: Option<u64>,
    pub(crate) has_left: bool,
    chance: Chance,
    pub(crate) dropped: DroppedDatagrams,
    /// Members that speak another version, and which.
    pub(crate) versions: BTreeMap<MemberId, u8>,
}

/// A member whose silence this one notices.
#[derive(Clone, Debug)]
pub(crate) struct Neighbour {
    pub(crate) id: MemberId,
    pub(crate) member: usize,
    /// The last datagram that came from it: incarnation and number.
    pub(crate) latest: (u64, u32),
    /// When that came.
    pub(crate) came_ns: Option<u64>,
    /// The last that is known of its being well: it was heard, by whomever, and had heard others.
    pub(crate) well_ns: u64,
    pub(crate) asked_ns: u64,
    pub(crate) compared_ns: u64,
}

impl Neighbour {
    pub(crate) fn new(id: MemberId, member: usize, well_ns: u64) -> Self {
        Self { id, member, latest: (0, 0), came_ns: None, well_ns, asked_ns: 0, compared_ns: 0 }
    }
}

impl MembershipView {
    /// The member `me` of `members`, which may contain it or not. `incarnation` tells this start of its daemon from
    /// earlier ones and shall be higher (the time of day will do); `seed` is for random numbers.
    pub fn new(me: MemberId, incarnation: u64, members: &[MemberId], seed: u64, now_ns: u64) -> Self {
        let roster = Roster::new(members.iter().copied().chain([me]).collect());
        let place = roster.place(me).expect("it was put there");
        let size = roster.members().len();
        let mut new = Self {
            me: place,
            circles: Circles::new(roster.members()),
            board: Board::new(size),
            roster,
            neighbours: Vec::new(),
            reach: 1,
            now_ns,
            due_ns: None,
            beat_ns: now_ns,
            news: Vec::new(),
            news_ns: now_ns,
            waiting: VecDeque::new(),
            number: 0,
            renewed_ns: None,
            has_left: false,
            chance: Chance::new(seed),
            dropped: DroppedDatagrams::default(),
            versions: BTreeMap::new(),
        };
        new.take(place, Repute::first(incarnation));
        new.board.take_for_told(place);
        new.choose_neighbours(now_ns);
        new.set_due();
        new
    }

    /// Now these are the members, besides this one. Who remains keeps its condition.
    pub fn set_members(&mut self, now_ns: u64, members: &[MemberId]) {
        self.advance(now_ns);
        let me = self.roster.member(self.me);
        let roster = Roster::new(members.iter().copied().chain([me]).collect());
        let old = std::mem::replace(&mut self.roster, roster);
        let old_board = std::mem::replace(&mut self.board, Board::new(self.roster.members().len()));
        for (there, member) in old.members().iter().enumerate() {
            if let Some(place) = self.roster.place(*member) {
                self.roster.merge(place, old.repute(there));
                self.board.adopt(place, &old_board, there);
            }
        }
        self.me = self.roster.place(me).expect("it was put there");
        self.circles = Circles::new(self.roster.members());
        let moved = |there: usize| self.roster.place(old.member(there));
        self.news = self.news.iter().filter_map(|there| moved(*there)).collect();
        let kept = std::mem::take(&mut self.neighbours).into_iter();
        self.neighbours = kept.filter_map(|one| Some(Neighbour { member: moved(one.member)?, ..one })).collect();
        self.versions.retain(|member, _| self.roster.place(*member).is_some());
        self.choose_neighbours(self.now_ns);
        self.set_due();
    }

    /// It is this time. To be called when [`poll_timeout`](Self::poll_timeout) says so.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        self.advance(now_ns);
        if self.has_left {
            return;
        }
        if self.now_ns >= self.beat_ns {
            self.beat();
        }
        if self.board.expire(self.now_ns) {
            self.choose_neighbours(self.takeover_ns());
        }
        self.watch();
        self.tell_news();
        self.set_due();
    }

    /// This daemon ends, and all are told. What is to be sent then is all that this machine still has to say.
    pub fn leave(&mut self, now_ns: u64) {
        self.advance(now_ns);
        self.take(self.me, self.roster.repute(self.me).ended());
        // Twice, because nobody asks for it again.
        for _ in 0..2 {
            self.news.push(self.me);
            self.news_ns = self.now_ns;
            self.tell_news();
        }
        self.has_left = true;
        self.due_ns = None;
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.due_ns
    }

    /// The next datagram to be sent, of [`DATAGRAM_BYTES`](crate::DATAGRAM_BYTES) at most.
    pub fn poll_transmit(&mut self) -> Option<(MemberId, Vec<u8>)> {
        self.waiting.pop_front()
    }

    /// What has become of members since the last call. Of each the latest is told.
    pub fn poll_event(&mut self) -> Option<MemberChange> {
        self.board.poll(&self.roster)
    }

    /// How a member is; `None`, where it is none.
    pub fn state_of(&self, member: MemberId) -> Option<Condition> {
        self.roster.place(member).map(|place| self.board.condition(place))
    }

    /// All members, with their conditions.
    pub fn members(&self) -> impl Iterator<Item = (MemberId, Condition)> {
        self.roster.members().iter().enumerate().map(|(place, member)| (*member, self.board.condition(place)))
    }

    /// The other version of this protocol that a member has last spoken, if it has.
    pub fn speaks(&self, member: MemberId) -> Option<u8> {
        self.versions.get(&member).copied()
    }

    pub fn dropped(&self) -> DroppedDatagrams {
        self.dropped
    }

    /// Takes the time, which does not go back. Time in which nobody called is not the silence of others.
    pub(crate) fn advance(&mut self, now_ns: u64) {
        self.now_ns = now_ns.max(self.now_ns);
        let late_ns = self.due_ns.map_or(0, |due_ns| self.now_ns.saturating_sub(due_ns));
        if late_ns > LATE_NS {
            for neighbour in &mut self.neighbours {
                neighbour.well_ns = self.now_ns.min(neighbour.well_ns + late_ns);
                neighbour.came_ns = neighbour.came_ns.map(|came_ns| self.now_ns.min(came_ns + late_ns));
            }
            self.board.prolong(late_ns);
            self.due_ns = Some(self.now_ns);
        }
    }

    /// Takes what is said of a member, if it is new, and passes it on. Whether it was.
    pub(crate) fn take(&mut self, place: usize, said: Repute) -> bool {
        if !self.roster.merge(place, said) {
            return false;
        }
        if !self.news.contains(&place) {
            self.news.push(place);
        }
        if !said.is_accused() {
            let now_ns = self.now_ns;
            self.neighbours.iter_mut().filter(|one| one.member == place).for_each(|one| one.well_ns = now_ns);
        }
        if self.board.note(self.now_ns, place, said) {
            self.choose_neighbours(self.takeover_ns());
        }
        true
    }

    /// Shows the neighbours that this member lives, and one of the suspects, so that two parts of a cluster find each
    /// other again where nobody of the one stands beside anybody of the other.
    fn beat(&mut self) {
        self.beat_ns = self.now_ns + BEAT_NS * 9 / 10 + self.chance.below(BEAT_NS / 5);
        self.contract();
        let suspects = self.board.suspects();
        let suspect = match suspects.len() {
            0 => None,
            count => Some(suspects[self.chance.below(count as u64) as usize]),
        };
        let mut all: Vec<usize> = self.neighbours.iter().map(|neighbour| neighbour.member).collect();
        if let Some(suspect) = suspect.filter(|suspect| !all.contains(suspect)) {
            all.push(suspect);
        }
        all.into_iter().for_each(|member| self.say(member, Datagram::default()));
    }

    /// Tells the neighbours what is new, unless they were told something just now.
    pub(crate) fn tell_news(&mut self) {
        if self.news.is_empty() || self.now_ns < self.news_ns {
            return;
        }
        self.news_ns = self.now_ns + NEWS_EVERY_NS;
        let news = std::mem::take(&mut self.news);
        let said: Vec<_> = news.iter().map(|place| (self.roster.member(*place), self.roster.repute(*place))).collect();
        // Not all that are looked at for a while.
        let near = self.circles.neighbours(self.me, 1, |other| self.board.is_usable(other));
        near.into_iter().for_each(|member| self.say_all(member, &said));
    }

    /// Says so much in as many datagrams as it takes.
    pub(crate) fn say_all(&mut self, to: usize, said: &[(MemberId, Repute)]) {
        for said in said.chunks(SAID_MAX) {
            self.say(to, Datagram { said: said.to_vec(), ..Datagram::default() });
        }
    }

    /// Sends a datagram with what stands in all of them.
    pub(crate) fn say(&mut self, to: usize, datagram: Datagram) {
        if self.waiting.len() == WAITING_MAX {
            self.dropped.unsent += 1;
            return;
        }
        let neighbour = self.neighbours.iter().find(|neighbour| neighbour.member == to);
        let heard_ms = match neighbour.and_then(|neighbour| neighbour.came_ns) {
            _ if datagram.flags & IS_ANSWER != 0 => 0,
            Some(came_ns) => u16::try_from((self.now_ns - came_ns) / 1_000_000).unwrap_or(u16::MAX),
            None => u16::MAX,
        };
        self.number = self.number.wrapping_add(1);
        let (number, to) = (self.number, self.roster.member(to));
        let (repute, digest) = (self.roster.repute(self.me), self.roster.digest());
        self.waiting.push_back((to, Datagram { heard_ms, number, to, repute, digest, ..datagram }.write()));
    }

    pub(crate) fn set_due(&mut self) {
        let news_ns = if self.news.is_empty() { None } else { Some(self.news_ns) };
        let all = [Some(self.beat_ns), news_ns, self.board.due_ns(), self.watch_ns()];
        if self.has_left {
            return;
        }
        // What is overdue is so from now on: a delay is counted once.
        self.due_ns = all.into_iter().flatten().min().map(|due_ns| due_ns.max(self.now_ns));
    }
}
