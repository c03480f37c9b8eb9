//! What members of a group say to each other, and its bytes.

use super::{GroupMember, Placed};
use std::sync::Arc;

/// An attempt to change a view. Of two the higher one counts; the same round is told apart by who leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ballot {
    pub round: u32,
    pub leader: u32,
}

/// What follows on a view: who is in the next one, and with which messages the old one ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Successor {
    /// In the order of joining. The first one is the sequencer.
    pub members: Vec<GroupMember>,
    /// The sequence number after the last message of the old view.
    pub next: u64,
    /// Messages that not all members of the old view have, the last one at `next - 1`.
    pub rest: Vec<Placed>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Saying {
    /// To the sequencer: a message to be ordered, which it passes on.
    Submit {
        number: u32,
        received: u64,
        bytes: Arc<[u8]>,
    },
    /// To the sequencer: a place for a message that its origin sends to all.
    Reserve {
        number: u32,
        received: u64,
        length: u64,
    },
    /// The sequencer's answer to either.
    Yours {
        number: u32,
        sequence: u64,
        stable: u64,
    },
    /// A message at its place.
    Ordered {
        sequence: u64,
        stable: u64,
        message: Placed,
    },
    /// To the sequencer: all below are here.
    Received {
        received: u64,
    },
    /// The sequencer's: all members have what is below.
    Stable {
        stable: u64,
    },

    /// The leader's: what do you have? Who hears it takes no part in the view any more.
    Collect {
        ballot: Ballot,
    },
    /// Its answer; `accepted` is what was accepted before.
    State {
        ballot: Ballot,
        received: u64,
        early: Vec<u64>,
        accepted: Option<(Ballot, Box<Successor>)>,
    },
    /// The leader's: give me this message.
    Fetch {
        ballot: Ballot,
        sequence: u64,
    },
    Have {
        ballot: Ballot,
        sequence: u64,
        message: Placed,
    },
    Propose {
        ballot: Ballot,
        successor: Box<Successor>,
    },
    Accepted {
        ballot: Ballot,
    },
    /// The answer to a ballot that is lower than this one.
    Refused {
        promised: Ballot,
    },
    /// It is decided what follows on this view.
    Install {
        successor: Box<Successor>,
    },

    /// To whoever would lead: these are dead, these have been silent.
    Urge {
        dead: Vec<GroupMember>,
        silent: Vec<GroupMember>,
    },
    /// Somebody wants to be a member.
    Join {
        member: GroupMember,
    },
    /// A member wants to leave.
    Leave {
        member: GroupMember,
    },
    /// I am in an older view than you.
    Behind,
    /// You are no member any more.
    Excluded,
    Ping,
    Pong,
}

/// Something said in a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupWord {
    pub view: u32,
    pub saying: Saying,
}

/// Bytes of an ordered message before those of the program; of a submitted one there are fewer.
pub const ORDERED_HEAD: usize = 32;

/// Where a message's own bytes are not copied behind the rest: they are the last of the word.
pub type WordTail<'a> = &'a [u8];

impl GroupWord {
    /// The bytes of the word but for its tail, which follows.
    pub fn write<'a>(&'a self, into: &mut Vec<u8>) -> WordTail<'a> {
        into.clear();
        let mut out = WordWriter(into);
        match &self.saying {
            Saying::Submit { number, received, bytes } => {
                out.head(1, *number, self.view).long(*received);
                return bytes;
            }
            Saying::Reserve { number, received, length } => {
                out.head(2, *number, self.view).long(*received).long(*length)
            }
            Saying::Yours { number, sequence, stable } => out.head(3, *number, self.view).long(*sequence).long(*stable),
            Saying::Ordered { sequence, stable, message } => {
                out.head(4, message.number, self.view).long(*sequence).long(*stable).int(message.origin.0);
                return &message.bytes;
            }
            Saying::Received { received } => out.head(5, 0, self.view).long(*received),
            Saying::Stable { stable } => out.head(6, 0, self.view).long(*stable),
            Saying::Collect { ballot } => out.head(7, 0, self.view).ballot(*ballot),
            Saying::State { ballot, received, early, accepted } => {
                let out = out.head(8, 0, self.view).ballot(*ballot).long(*received);
                let out = early.iter().fold(out.int(early.len() as u32), |out, at| out.long(*at));
                match accepted {
                    Some((ballot, successor)) => out.int(1).ballot(*ballot).successor(successor),
                    None => out.int(0),
                }
            }
            Saying::Fetch { ballot, sequence } => out.head(9, 0, self.view).ballot(*ballot).long(*sequence),
            Saying::Have { ballot, sequence, message } => {
                out.head(10, 0, self.view).ballot(*ballot).long(*sequence).placed(message)
            }
            Saying::Propose { ballot, successor } => out.head(11, 0, self.view).ballot(*ballot).successor(successor),
            Saying::Accepted { ballot } => out.head(12, 0, self.view).ballot(*ballot),
            Saying::Refused { promised } => out.head(13, 0, self.view).ballot(*promised),
            Saying::Install { successor } => out.head(14, 0, self.view).successor(successor),
            Saying::Urge { dead, silent } => out.head(15, 0, self.view).members(dead).members(silent),
            Saying::Join { member } => out.head(16, member.0, self.view),
            Saying::Leave { member } => out.head(17, member.0, self.view),
            Saying::Behind => out.head(18, 0, self.view),
            Saying::Excluded => out.head(19, 0, self.view),
            Saying::Ping => out.head(20, 0, self.view),
            Saying::Pong => out.head(21, 0, self.view),
        };
        &[]
    }

    /// The tail, to be kept until it has left.
    pub fn shared_tail(&self) -> Arc<[u8]> {
        match &self.saying {
            Saying::Submit { bytes, .. } => bytes.clone(),
            Saying::Ordered { message, .. } => message.bytes.clone(),
            _ => [].into(),
        }
    }

    /// What a member has written; `None` if it is no word. The tail is apart where it came so.
    pub fn read(bytes: &[u8], tail: Option<Arc<[u8]>>) -> Option<Self> {
        let mut from = WordReader(bytes, tail);
        let (kind, number, view) = (from.int()?, from.int()?, from.int()?);
        let saying = match kind {
            1 => Saying::Submit { number, received: from.long()?, bytes: from.all() },
            2 => Saying::Reserve { number, received: from.long()?, length: from.long()? },
            3 => Saying::Yours { number, sequence: from.long()?, stable: from.long()? },
            4 => {
                let (sequence, stable, origin) = (from.long()?, from.long()?, from.member()?);
                Saying::Ordered { sequence, stable, message: Placed { origin, number, bytes: from.all() } }
            }
            5 => Saying::Received { received: from.long()? },
            6 => Saying::Stable { stable: from.long()? },
            7 => Saying::Collect { ballot: from.ballot()? },
            8 => {
                let (ballot, received, count) = (from.ballot()?, from.long()?, from.count(8)?);
                let early = (0..count).map(|_| from.long()).collect::<Option<_>>()?;
                let accepted = match from.int()? {
                    0 => None,
                    1 => Some((from.ballot()?, from.successor()?)),
                    _ => return None,
                };
                Saying::State { ballot, received, early, accepted }
            }
            9 => Saying::Fetch { ballot: from.ballot()?, sequence: from.long()? },
            10 => Saying::Have { ballot: from.ballot()?, sequence: from.long()?, message: from.placed()? },
            11 => Saying::Propose { ballot: from.ballot()?, successor: from.successor()? },
            12 => Saying::Accepted { ballot: from.ballot()? },
            13 => Saying::Refused { promised: from.ballot()? },
            14 => Saying::Install { successor: from.successor()? },
            15 => Saying::Urge { dead: from.members()?, silent: from.members()? },
            16 => Saying::Join { member: GroupMember(number) },
            17 => Saying::Leave { member: GroupMember(number) },
            18 => Saying::Behind,
            19 => Saying::Excluded,
            20 => Saying::Ping,
            21 => Saying::Pong,
            _ => return None,
        };
        (from.0.is_empty() && from.1.is_none()).then_some(Self { view, saying })
    }
}

struct WordWriter<'a>(&'a mut Vec<u8>);

impl WordWriter<'_> {
    fn head(&mut self, kind: u32, number: u32, view: u32) -> &mut Self {
        self.int(kind).int(number).int(view)
    }

    fn int(&mut self, value: u32) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn long(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn ballot(&mut self, ballot: Ballot) -> &mut Self {
        self.int(ballot.round).int(ballot.leader)
    }

    fn members(&mut self, members: &[GroupMember]) -> &mut Self {
        members.iter().fold(self.int(members.len() as u32), |out, member| out.int(member.0))
    }

    fn placed(&mut self, message: &Placed) -> &mut Self {
        self.int(message.origin.0).int(message.number).long(message.bytes.len() as u64);
        self.0.extend_from_slice(&message.bytes);
        self
    }

    fn successor(&mut self, successor: &Successor) -> &mut Self {
        let out = self.long(successor.next).members(&successor.members).int(successor.rest.len() as u32);
        successor.rest.iter().fold(out, Self::placed)
    }
}

struct WordReader<'a>(&'a [u8], Option<Arc<[u8]>>);

impl WordReader<'_> {
    fn int(&mut self) -> Option<u32> {
        let (value, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*value))
    }

    fn long(&mut self) -> Option<u64> {
        let (value, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*value))
    }

    /// So many things, which have `bytes` each at least.
    fn count(&mut self, bytes: usize) -> Option<usize> {
        let count = self.int()? as usize;
        (count <= self.0.len() / bytes).then_some(count)
    }

    fn member(&mut self) -> Option<GroupMember> {
        self.int().map(GroupMember)
    }

    fn ballot(&mut self) -> Option<Ballot> {
        Some(Ballot { round: self.int()?, leader: self.int()? })
    }

    fn members(&mut self) -> Option<Vec<GroupMember>> {
        let count = self.count(4)?;
        (0..count).map(|_| self.member()).collect()
    }

    fn placed(&mut self) -> Option<Placed> {
        let (origin, number, length) = (self.member()?, self.int()?, usize::try_from(self.long()?).ok()?);
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(Placed { origin, number, bytes: bytes.into() })
    }

    fn successor(&mut self) -> Option<Box<Successor>> {
        let (next, members, count) = (self.long()?, self.members()?, self.count(16)?);
        let rest = (0..count).map(|_| self.placed()).collect::<Option<Vec<_>>>()?;
        (rest.len() as u64 <= next).then(|| Box::new(Successor { members, next, rest }))
    }

    fn all(&mut self) -> Arc<[u8]> {
        self.1.take().unwrap_or_else(|| std::mem::take(&mut self.0).into())
    }
}
