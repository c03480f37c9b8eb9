//! What is said between those who are in different views, or in none: who comes, who goes, who is behind.

use super::history::ViewHistory;
use super::{GroupBreach, GroupMember, GroupStanding, GroupWord, OrderedGroup, Saying, Successor, WordTo};

impl OrderedGroup {
    /// A word of a view that comes after that of this process.
    pub(super) fn on_ahead(&mut self, from: GroupMember, word: GroupWord) -> Result<(), GroupBreach> {
        match word {
            GroupWord { view, saying: Saying::Install { successor } }
                if matches!(self.standing, GroupStanding::Joining(_)) =>
            {
                if successor.members.contains(&self.me) {
                    self.history = ViewHistory::new(successor.next);
                    self.delivered = successor.next;
                    self.standing = GroupStanding::In;
                    let none = Successor { rest: Vec::new(), ..*successor };
                    self.install(view, none);
                }
            }
            word => {
                if self.ahead.iter().all(|(other, _)| *other != from) {
                    let is_in = self.standing == GroupStanding::In;
                    self.say(WordTo::One(from), if is_in { Saying::Behind } else { Saying::Join { member: self.me } });
                }
                self.ahead.push_back((from, word));
            }
        }
        Ok(())
    }

    /// What was said ahead of this view is heard now, or again later.
    pub(super) fn hear_ahead(&mut self) {
        for (from, word) in std::mem::take(&mut self.ahead) {
            // A breach has no caller here: what it says is not believed, which is enough.
            if word.view >= self.view.number {
                let _ = self.handle_word(from, word);
            }
        }
    }

    /// Somebody is in an older view.
    pub(super) fn tell_decided(&mut self, member: GroupMember, view: u32) {
        let later = self.change.decided.iter().filter(|(number, _)| *number >= view);
        let later: Vec<_> = later.cloned().collect();
        if later.first().is_none_or(|(number, _)| *number != view) {
            return self.say(WordTo::One(member), Saying::Excluded);
        }
        for (view, successor) in later {
            let word = GroupWord { view, saying: Saying::Install { successor: Box::new(successor) } };
            self.out.push_back((WordTo::One(member), word));
        }
    }

    /// Something said to one who is no member any more: it may know what the sender does not. Else it is as good as
    /// dead.
    pub(super) fn on_over(&mut self, from: GroupMember, view: u32, saying: &Saying) {
        let (view, asks) = match saying {
            Saying::Install { successor } => (view + 1, successor.members.contains(&self.me)),
            Saying::Collect { .. } | Saying::Ping => (view, true),
            _ => (view, false),
        };
        if asks && self.change.decided.iter().any(|(number, _)| *number == view) {
            self.tell_decided(from, view);
        } else if asks {
            let saying = Saying::Urge { dead: vec![self.me], silent: Vec::new() };
            self.out.push_back((WordTo::One(from), GroupWord { view, saying }));
        }
    }

    /// Something said in a view that is over. Who wants to change it is told what has followed.
    pub(super) fn on_late(&mut self, from: GroupMember, view: u32, saying: &Saying) {
        match saying {
            Saying::Collect { .. } | Saying::Urge { .. } | Saying::Ping => self.tell_decided(from, view),
            Saying::Install { .. } | Saying::Excluded => {}
            _ if self.view.place(from).is_none() => self.say(WordTo::One(from), Saying::Excluded),
            _ => {}
        }
    }

    pub(super) fn on_join(&mut self, member: GroupMember) {
        if self.view.place(member).is_some() {
            // It is one already, and was not told by whoever has decided that.
            let decided = self.change.decided.iter().rev();
            let since = decided.take_while(|(_, successor)| successor.members.contains(&member)).last();
            since.map(|(view, _)| *view).into_iter().for_each(|view| self.tell_decided(member, view));
        } else if !self.change.joining.contains(&member) && !self.change.dead.contains(&member) {
            self.change.joining.push(member);
            self.reconsider();
        }
    }

    pub(super) fn on_leave(&mut self, member: GroupMember) {
        if self.view.place(member).is_some() {
            self.change.note_leaver(member);
            self.reconsider();
        }
    }
}
