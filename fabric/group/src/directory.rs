//! Which group has a name, and who lets others in: pure, without a network.
//!
//! The *registrar* is the lowest process that is not lost. It answers who looks for a name with a member of that group,
//! or by having him create it. The first member of a view tells the registrar of it. One that becomes registrar because
//! others are lost asks all that are left, and answers when they have said which groups they are members of.

use crate::member::{self, MEMBER_BYTES};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use weft_fabric::Peer;
use weft_fabric::ordered::GroupMember;

/// Longest name of a group.
pub const LONGEST_NAME: usize = 255;

/// What processes say of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryWord {
    /// To the registrar: this one wants to be a member.
    Find {
        name: String,
        asker: GroupMember,
    },
    /// Its answer: the asker is the first member.
    Create {
        name: String,
        number: u32,
    },
    /// Its answer: that member lets others in.
    Ask {
        name: String,
        number: u32,
        contact: GroupMember,
    },
    /// To the registrar: the members are these; none: the group is over.
    Members {
        name: String,
        number: u32,
        members: Vec<GroupMember>,
    },
    /// A new registrar's: which groups are you a member of? The answers end with `Told`.
    Which,
    Told,
}

/// What has come of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundName {
    Create { number: u32 },
    Ask { number: u32, contact: GroupMember },
}

struct KnownGroup {
    number: u32,
    members: Vec<GroupMember>,
}

pub struct Directory {
    me: Peer,
    /// Not lost.
    living: BTreeSet<Peer>,
    /// As registrar.
    known: BTreeMap<String, KnownGroup>,
    /// Numbers that were given.
    given: u32,
    /// Whose answers to `Which` are awaited.
    awaited: BTreeSet<Peer>,
    finds: Vec<(Peer, String, GroupMember)>,
    /// What this process looks for, as whom.
    searches: BTreeMap<String, GroupMember>,
    /// The groups that this process is a member of.
    mine: BTreeMap<String, KnownGroup>,
    out: VecDeque<(Peer, DirectoryWord)>,
    found: VecDeque<(String, FoundName)>,
}

impl Directory {
    pub fn new(me: Peer, processes: u32) -> Self {
        Self {
            me,
            living: (0..processes).map(Peer).collect(),
            known: BTreeMap::new(),
            given: 0,
            awaited: BTreeSet::new(),
            finds: Vec::new(),
            searches: BTreeMap::new(),
            mine: BTreeMap::new(),
            out: VecDeque::new(),
            found: VecDeque::new(),
        }
    }

    pub fn registrar(&self) -> Peer {
        self.living.first().copied().unwrap_or(self.me)
    }

    /// Whose loss is to be looked for: somebody waits for their answers, or for that of this process in their place.
    pub fn watched(&self) -> Vec<Peer> {
        let waits = !self.searches.is_empty() || !self.finds.is_empty();
        let awaited = self.awaited.iter().copied().filter(|_| waits);
        waits.then(|| self.registrar()).into_iter().chain(awaited).collect()
    }

    /// Who may let others into a group, as far as this process knows as registrar.
    pub fn members_of(&self, name: &str) -> Vec<Peer> {
        let members = self.known.get(name).map(|group| group.members.as_slice()).unwrap_or_default();
        members.iter().map(|member| member::peer(*member)).collect()
    }

    /// Looks for a group of this name, which this process wants to be in as `asker`.
    pub fn find(&mut self, name: &str, asker: GroupMember) {
        self.searches.insert(name.to_owned(), asker);
        self.say(self.registrar(), DirectoryWord::Find { name: name.to_owned(), asker });
    }

    /// The members have changed. Their first one says so; the others are asked by who becomes registrar, since the
    /// first one may be among the dead.
    pub fn tell_members(&mut self, name: &str, number: u32, members: &[GroupMember]) {
        self.mine.insert(name.to_owned(), KnownGroup { number, members: members.to_vec() });
        if members.first().is_some_and(|first| member::peer(*first) == self.me) {
            self.tell(name, number, members);
        }
    }

    /// This process is no member any more; with `is_last` nobody is.
    pub fn tell_end(&mut self, name: &str, number: u32, is_last: bool) {
        if self.mine.get(name).is_some_and(|group| group.number == number) {
            self.mine.remove(name);
        }
        if is_last {
            self.tell(name, number, &[]);
        }
    }

    fn tell(&mut self, name: &str, number: u32, members: &[GroupMember]) {
        let word = DirectoryWord::Members { name: name.to_owned(), number, members: members.to_vec() };
        self.say(self.registrar(), word);
    }

    pub fn handle_loss(&mut self, of: Peer) {
        let before = self.registrar();
        if of == self.me || !self.living.remove(&of) {
            return;
        }
        self.awaited.remove(&of);
        self.finds.retain(|(peer, ..)| *peer != of);
        let registrar = self.registrar();
        if registrar != before {
            if registrar == self.me {
                self.awaited = self.living.iter().copied().filter(|peer| *peer != self.me).collect();
                let all = self.awaited.clone();
                all.into_iter().for_each(|peer| self.say(peer, DirectoryWord::Which));
                self.tell_mine(self.me);
            }
            let again: Vec<_> = self.searches.clone().into_iter().collect();
            again.into_iter().for_each(|(name, asker)| self.say(registrar, DirectoryWord::Find { name, asker }));
        }
        self.answer_finds();
    }

    fn tell_mine(&mut self, to: Peer) {
        let word = |(name, group): (&String, &KnownGroup)| DirectoryWord::Members {
            name: name.clone(),
            number: group.number,
            members: group.members.clone(),
        };
        let words: Vec<_> = self.mine.iter().map(word).collect();
        words.into_iter().for_each(|word| self.say(to, word));
    }

    pub fn handle_word(&mut self, from: Peer, word: DirectoryWord) {
        match word {
            DirectoryWord::Find { name, asker } => {
                self.finds.push((from, name, asker));
                self.answer_finds();
            }
            DirectoryWord::Create { name, number } => self.end_search(name, FoundName::Create { number }),
            DirectoryWord::Ask { name, number, contact } => self.end_search(name, FoundName::Ask { number, contact }),
            DirectoryWord::Members { name, number, members } => {
                self.given = self.given.max(number);
                if !members.is_empty() {
                    self.known.insert(name, KnownGroup { number, members });
                } else if self.known.get(&name).is_some_and(|group| group.number == number) {
                    self.known.remove(&name);
                }
                self.answer_finds();
            }
            DirectoryWord::Which => {
                self.tell_mine(from);
                self.say(from, DirectoryWord::Told);
            }
            DirectoryWord::Told => {
                self.awaited.remove(&from);
                self.answer_finds();
            }
        }
    }

    fn end_search(&mut self, name: String, found: FoundName) {
        // An answer to a search that is over says nothing.
        if self.searches.remove(&name).is_some() {
            self.found.push_back((name, found));
        }
    }

    /// Answers whom it can, if this process is the registrar and knows all.
    fn answer_finds(&mut self) {
        if self.registrar() != self.me || !self.awaited.is_empty() {
            return;
        }
        for (from, name, asker) in std::mem::take(&mut self.finds) {
            let other = |peer: Peer| self.living.contains(&peer) && peer != member::peer(asker);
            let lives = |member: &&GroupMember| other(member::peer(**member));
            let contact =
                self.known.get(&name).and_then(|group| Some((group.number, *group.members.iter().find(lives)?)));
            let answer = match contact {
                Some((number, contact)) => DirectoryWord::Ask { name, number, contact },
                None => {
                    self.given += 1;
                    let group = KnownGroup { number: self.given, members: vec![asker] };
                    self.known.insert(name.clone(), group);
                    DirectoryWord::Create { name, number: self.given }
                }
            };
            self.say(from, answer);
        }
    }

    fn say(&mut self, to: Peer, word: DirectoryWord) {
        if to == self.me { self.handle_word(to, word) } else { self.out.push_back((to, word)) }
    }

    pub fn poll_word(&mut self) -> Option<(Peer, DirectoryWord)> {
        self.out.pop_front()
    }

    pub fn poll_found(&mut self) -> Option<(String, FoundName)> {
        self.found.pop_front()
    }
}

impl DirectoryWord {
    /// Kind, number, length of the name, name, members.
    pub fn write(&self) -> Vec<u8> {
        let none: &[GroupMember] = &[];
        let (kind, number, name, members) = match self {
            Self::Find { name, asker } => (1, 0, name.as_str(), std::slice::from_ref(asker)),
            Self::Create { name, number } => (2, *number, name.as_str(), none),
            Self::Ask { name, number, contact } => (3, *number, name.as_str(), std::slice::from_ref(contact)),
            Self::Members { name, number, members } => (4, *number, name.as_str(), members.as_slice()),
            Self::Which => (5, 0, "", none),
            Self::Told => (6, 0, "", none),
        };
        let head = [kind, number, name.len() as u32];
        let numbers = |numbers: &mut dyn Iterator<Item = u32>| numbers.flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
        let members = numbers(&mut members.iter().map(|member| member.0));
        [numbers(&mut head.into_iter()), name.as_bytes().to_vec(), members].concat()
    }

    /// What a process has written; `None` if it is no word.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let int = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let (kind, number, length) = (int(0)?, int(4)?, int(8)? as usize);
        if length > LONGEST_NAME || number > member::HIGHEST_GROUP {
            return None;
        }
        let (name, rest) = bytes[12..].split_at_checked(length)?;
        let name = String::from_utf8(name.to_vec()).ok()?;
        let all = rest.chunks_exact(MEMBER_BYTES);
        if !all.remainder().is_empty() {
            return None;
        }
        let members: Vec<_> =
            all.filter_map(|one| Some(GroupMember(u32::from_le_bytes(*one.first_chunk()?)))).collect();
        Some(match (kind, members.as_slice()) {
            (1, [asker]) => Self::Find { name, asker: *asker },
            (2, []) => Self::Create { name, number },
            (3, [contact]) => Self::Ask { name, number, contact: *contact },
            (4, _) => Self::Members { name, number, members },
            (5, []) => Self::Which,
            (6, []) => Self::Told,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: GroupMember = GroupMember(0);
    const B: GroupMember = GroupMember(1);
    const C: GroupMember = GroupMember(2);

    fn exchange(all: &mut [Directory], dead: &[u32]) {
        while let Some((from, (to, word))) =
            all.iter_mut().find_map(|one| one.out.pop_front().map(|word| (one.me, word)))
        {
            if !dead.contains(&to.0) && !dead.contains(&from.0) {
                let word = DirectoryWord::read(&word.write()).expect("a word");
                all[to.0 as usize].handle_word(from, word);
            }
        }
    }

    fn three() -> Vec<Directory> {
        (0..3).map(|me| Directory::new(Peer(me), 3)).collect()
    }

    #[test]
    fn the_first_one_creates_and_the_others_ask_it() {
        let mut all = three();
        all[2].find("board", C);
        all[1].find("board", B);
        all[1].find("other", B);
        exchange(&mut all, &[]);
        let found: Vec<_> = std::iter::from_fn(|| all[1].poll_found()).collect();
        assert_eq!(found[0].1, FoundName::Create { number: 1 });
        assert_eq!(found[1], ("other".to_owned(), FoundName::Create { number: 2 }));
        assert_eq!(all[2].poll_found(), Some(("board".to_owned(), FoundName::Ask { number: 1, contact: B })));
        all[1].tell_end("board", 1, true);
        exchange(&mut all, &[]);
        all[0].find("board", A);
        exchange(&mut all, &[]);
        assert_eq!(all[0].poll_found(), Some(("board".to_owned(), FoundName::Create { number: 3 })));
    }

    #[test]
    fn who_takes_over_asks_all_before_it_answers() {
        let mut all = three();
        all[0].find("board", A);
        exchange(&mut all, &[]);
        // The first member is the registrar, and dies as both.
        all[0].tell_members("board", 1, &[A, C]);
        all[2].tell_members("board", 1, &[A, C]);
        all[1].handle_loss(Peer(0));
        all[1].find("board", B);
        assert_eq!(all[1].poll_found(), None);
        all[2].handle_loss(Peer(0));
        exchange(&mut all, &[0]);
        assert_eq!(all[1].poll_found(), Some(("board".to_owned(), FoundName::Ask { number: 1, contact: C })));
    }

    #[test]
    fn a_group_whose_members_are_all_lost_is_made_anew() {
        let mut all = three();
        all[2].find("board", C);
        exchange(&mut all, &[]);
        all[0].handle_loss(Peer(2));
        all[1].find("board", B);
        exchange(&mut all, &[2]);
        assert_eq!(all[1].poll_found(), Some(("board".to_owned(), FoundName::Create { number: 2 })));
    }

    #[test]
    fn who_takes_over_looks_whether_those_it_asks_live() {
        let mut all = three();
        all[1].handle_loss(Peer(0));
        assert_eq!(all[1].watched(), [], "nobody waits for an answer");
        all[1].find("board", B);
        assert_eq!(all[1].watched(), [Peer(1), Peer(2)]);
        all[1].handle_loss(Peer(2));
        assert_eq!(all[1].poll_found(), Some(("board".to_owned(), FoundName::Create { number: 1 })));
    }

    #[test]
    fn nonsense_is_no_word() {
        assert_eq!(DirectoryWord::read(&[]), None);
        assert_eq!(DirectoryWord::read(&[9; 12]), None);
        let word = DirectoryWord::Ask { name: "x".to_owned(), number: 3, contact: A }.write();
        (0..word.len()).for_each(|end| assert_eq!(DirectoryWord::read(&word[..end]), None, "{end}"));
    }
}
