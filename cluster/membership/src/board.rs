//! What the caller sees: the condition of each member, and what has changed since it last asked.
//!
//! An accusation is shown only when it has stood for [`HOLD_NS`]. A member that is well refutes it long before, so
//! nobody sees the accusations that two halves of a network exchange when they find each other again.

use crate::repute::Repute;
use crate::roster::Roster;
use crate::{Condition, HOLD_NS, MemberChange, SILENCE_NS};
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(crate) struct Board {
    shown: Vec<BoardLine>,
    /// Members of whom there may be something to tell; each is there once.
    queue: VecDeque<usize>,
    held: Vec<Accusation>,
    /// Who is shown as suspect.
    suspects: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct BoardLine {
    condition: Condition,
    incarnation: u64,
    /// What the caller was told last.
    told: Condition,
    told_incarnation: u64,
    is_queued: bool,
}

/// An accusation that nobody sees yet.
#[derive(Clone, Copy, Debug)]
struct Accusation {
    member: usize,
    until_ns: u64,
}

impl Board {
    pub(crate) fn new(size: usize) -> Self {
        let unseen = Condition::Unseen;
        let shown =
            BoardLine { condition: unseen, incarnation: 0, told: unseen, told_incarnation: 0, is_queued: false };
        Self { shown: vec![shown; size], queue: VecDeque::new(), held: Vec::new(), suspects: Vec::new() }
    }

    pub(crate) fn condition(&self, member: usize) -> Condition {
        self.shown[member].condition
    }

    /// Whether others count on this member.
    pub(crate) fn is_usable(&self, member: usize) -> bool {
        matches!(self.shown[member].condition, Condition::Unseen | Condition::Alive)
    }

    /// Those that are suspect, in no order.
    pub(crate) fn suspects(&self) -> &[usize] {
        &self.suspects
    }

    /// A member has another repute. Whether it became usable by it, or ceased to be.
    pub(crate) fn note(&mut self, now_ns: u64, member: usize, repute: Repute) -> bool {
        let was_usable = self.is_usable(member);
        self.shown[member].incarnation = repute.incarnation;
        self.held.retain(|held| held.member != member);
        let condition = self.condition(member);
        if repute.has_ended() {
            self.show(member, Condition::Dead);
        } else if !repute.is_accused() {
            self.show(member, if repute.is_unseen() { Condition::Unseen } else { Condition::Alive });
        } else {
            if !matches!(condition, Condition::Suspect { .. }) {
                self.held.push(Accusation { member, until_ns: now_ns + HOLD_NS });
            }
            self.show(member, condition);
        }
        was_usable != self.is_usable(member)
    }

    /// Shows the accusations that have stood long enough. Whether there were any.
    pub(crate) fn expire(&mut self, now_ns: u64) -> bool {
        let (due, held): (Vec<Accusation>, Vec<Accusation>) =
            self.held.iter().partition(|held| held.until_ns <= now_ns);
        self.held = held;
        for held in &due {
            let since_ns = held.until_ns.saturating_sub(HOLD_NS + SILENCE_NS);
            self.show(held.member, Condition::Suspect { since_ns });
        }
        !due.is_empty()
    }

    /// When [`expire`](Self::expire) has something to do.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.held.iter().map(|held| held.until_ns).min()
    }

    /// For so long nobody was listening: a refutation may be waiting to be read.
    pub(crate) fn prolong(&mut self, by_ns: u64) {
        self.held.iter_mut().for_each(|held| held.until_ns += by_ns);
    }

    /// What the caller knows already.
    pub(crate) fn take_for_told(&mut self, member: usize) {
        let shown = &mut self.shown[member];
        (shown.told, shown.told_incarnation) = (shown.condition, shown.incarnation);
    }

    /// The next change; several of one member come as the last of them.
    pub(crate) fn poll(&mut self, roster: &Roster) -> Option<MemberChange> {
        while let Some(at) = self.queue.pop_front() {
            let shown = &mut self.shown[at];
            shown.is_queued = false;
            let (member, incarnation) = (roster.member(at), shown.incarnation);
            let is_another = incarnation != shown.told_incarnation && shown.told_incarnation != 0;
            if is_another && shown.condition != Condition::Dead {
                (shown.told, shown.told_incarnation) = (Condition::Alive, incarnation);
                self.enqueue(at);
                return Some(MemberChange::Restarted { member, incarnation });
            }
            shown.told_incarnation = incarnation;
            if shown.told == shown.condition {
                continue;
            }
            shown.told = shown.condition;
            match shown.condition {
                Condition::Unseen => {}
                Condition::Alive => return Some(MemberChange::Alive { member, incarnation }),
                Condition::Suspect { since_ns } => {
                    return Some(MemberChange::Suspect { member, incarnation, since_ns });
                }
                Condition::Dead => return Some(MemberChange::Dead { member, incarnation }),
            }
        }
        None
    }

    /// Takes over what another board shows of a member that has another place there.
    pub(crate) fn adopt(&mut self, member: usize, from: &Self, there: usize) {
        self.shown[member] = BoardLine { is_queued: false, condition: Condition::Unseen, ..from.shown[there] };
        self.show(member, from.condition(there));
        let held = from.held.iter().filter(|held| held.member == there);
        self.held.extend(held.map(|held| Accusation { member, ..*held }));
    }

    fn show(&mut self, member: usize, condition: Condition) {
        let is_suspect = |condition| matches!(condition, Condition::Suspect { .. });
        let before = std::mem::replace(&mut self.shown[member].condition, condition);
        match (is_suspect(before), is_suspect(condition)) {
            (false, true) => self.suspects.push(member),
            (true, false) => self.suspects.retain(|suspect| *suspect != member),
            _ => {}
        }
        self.enqueue(member);
    }

    fn enqueue(&mut self, member: usize) {
        if !std::mem::replace(&mut self.shown[member].is_queued, true) {
            self.queue.push_back(member);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemberId;

    const SEEN: Repute = Repute { incarnation: 5, count: 0 };

    fn board() -> (Board, Roster) {
        let roster = Roster::new(vec![MemberId(40), MemberId(41)]);
        let mut board = Board::new(2);
        board.note(0, 1, SEEN);
        assert_eq!(board.poll(&roster), Some(MemberChange::Alive { member: MemberId(41), incarnation: 5 }));
        (board, roster)
    }

    #[test]
    fn an_accusation_that_is_refuted_in_time_is_never_seen() {
        let (mut board, roster) = board();
        assert!(!board.note(100, 1, SEEN.accused()));
        assert!(!board.expire(99 + HOLD_NS));
        assert!(!board.note(100 + HOLD_NS, 1, SEEN.above(SEEN.accused()).0));
        assert!(!board.expire(200 + HOLD_NS));
        assert_eq!((board.poll(&roster), board.condition(1)), (None, Condition::Alive));
    }

    #[test]
    fn an_accusation_that_stands_is_shown_with_the_beginning_of_the_silence() {
        let (mut board, roster) = board();
        board.note(SILENCE_NS + 7, 1, SEEN.accused());
        assert_eq!(board.due_ns(), Some(SILENCE_NS + 7 + HOLD_NS));
        assert!(board.expire(SILENCE_NS + 7 + HOLD_NS) && !board.is_usable(1));
        let suspect = MemberChange::Suspect { member: MemberId(41), incarnation: 5, since_ns: 7 };
        assert_eq!((board.poll(&roster), board.poll(&roster)), (Some(suspect), None));
    }

    #[test]
    fn a_new_incarnation_that_is_silent_at_once_is_told_as_both() {
        let (mut board, roster) = board();
        board.note(0, 1, Repute::first(6).accused());
        board.expire(HOLD_NS);
        let restarted = MemberChange::Restarted { member: MemberId(41), incarnation: 6 };
        let suspect = MemberChange::Suspect { member: MemberId(41), incarnation: 6, since_ns: 0 };
        assert_eq!([board.poll(&roster), board.poll(&roster)], [Some(restarted), Some(suspect)]);
    }

    #[test]
    fn what_came_and_went_between_two_polls_is_not_told() {
        let (mut board, roster) = board();
        board.note(0, 1, SEEN.accused());
        board.expire(HOLD_NS);
        board.note(2 * HOLD_NS, 1, SEEN.above(SEEN.accused()).0);
        assert_eq!(board.poll(&roster), None);
    }
}
