//! Words on their way: those that leave for the same member at the same time go in one missive.
//!
//! A missive is words, each behind its length (u32). One whose length is [`APART`] is the last; its tail may be apart.

use crate::member;
use std::sync::Arc;
use weft_fabric::Endpoint;
use weft_fabric::ordered::{GroupMember, GroupWord};
use weft_ports::missives::{Missive, Missives};

/// Longer words go in a missive of their own, without a copy.
const TOGETHER_BYTES: usize = 2048;
const LENGTH_BYTES: usize = 4;
const APART: u32 = u32::MAX;

/// What leaves for one member.
struct LeavingWords {
    to: GroupMember,
    bytes: Vec<u8>,
}

/// Who sends, and by what.
pub struct WordSender<'a> {
    pub endpoint: &'a mut Endpoint,
    pub missives: &'a mut Missives,
    pub group: u32,
    pub me: GroupMember,
}

impl WordSender<'_> {
    fn send(&mut self, to: impl Iterator<Item = GroupMember>, head: &[u8], word: Option<(&GroupWord, &[u8])>) {
        let group = self.group;
        let addresses = to.map(|member| (member::peer(member), member::tag(group, member)));
        let (tail, shared) = word.map_or((&[][..], None), |(word, tail)| (tail, Some(word)));
        let shared = || shared.map_or_else(|| Arc::from([]), GroupWord::shared_tail);
        self.missives.send(self.endpoint, addresses, self.me.0, (head, tail), shared);
    }
}

#[derive(Default)]
pub struct WordOutbox {
    leaving: Vec<LeavingWords>,
    /// How many of them have something.
    open: usize,
    head: Vec<u8>,
}

impl WordOutbox {
    /// Takes a word for each of these.
    #[inline]
    pub fn take(
        &mut self,
        sender: &mut WordSender<'_>,
        to: impl Iterator<Item = GroupMember> + Clone,
        word: &GroupWord,
    ) {
        let mut head = std::mem::take(&mut self.head);
        let tail = word.write(&mut head);
        if head.len() + tail.len() > TOGETHER_BYTES {
            // What was said before goes before.
            self.leave(sender);
            let apart = [&APART.to_le_bytes()[..], &head].concat();
            sender.send(to, &apart, Some((word, tail)));
        } else {
            to.for_each(|member| self.append(sender, member, &head, tail));
        }
        self.head = head;
    }

    fn append(&mut self, sender: &mut WordSender<'_>, to: GroupMember, head: &[u8], tail: &[u8]) {
        let at = self.leaving[..self.open].iter().position(|leaving| leaving.to == to).unwrap_or_else(|| {
            if self.leaving.len() == self.open {
                self.leaving.push(LeavingWords { to, bytes: Vec::new() });
            }
            self.leaving[self.open].to = to;
            self.open += 1;
            self.open - 1
        });
        let bytes = &mut self.leaving[at].bytes;
        if bytes.len() + LENGTH_BYTES + head.len() + tail.len() > TOGETHER_BYTES {
            sender.send(std::iter::once(to), bytes, None);
            bytes.clear();
        }
        bytes.extend_from_slice(&((head.len() + tail.len()) as u32).to_le_bytes());
        bytes.extend_from_slice(head);
        bytes.extend_from_slice(tail);
    }

    /// Sends what has been taken.
    #[inline]
    pub fn leave(&mut self, sender: &mut WordSender<'_>) {
        for leaving in &mut self.leaving[..self.open] {
            sender.send(std::iter::once(leaving.to), &leaving.bytes, None);
            leaving.bytes.clear();
        }
        self.open = 0;
    }
}

/// The words of a missive, in order; what is none is `None`, and the last.
pub fn words(missive: &Missive) -> impl Iterator<Item = Option<GroupWord>> {
    let whole = missive.tail.as_deref().filter(|_| missive.bytes().is_empty());
    let mut rest = Some(whole.unwrap_or(missive.bytes()));
    let mut tail = missive.tail.clone().filter(|_| whole.is_none());
    std::iter::from_fn(move || {
        let bytes = rest.take().filter(|bytes| !bytes.is_empty())?;
        let Some((length, bytes)) = bytes.split_first_chunk() else { return Some(None) };
        match u32::from_le_bytes(*length) {
            APART => Some(GroupWord::read(bytes, tail.take())),
            length => {
                let Some((word, others)) = bytes.split_at_checked(length as usize) else { return Some(None) };
                let word = GroupWord::read(word, None);
                rest = word.is_some().then_some(others);
                Some(word)
            }
        }
    })
}
