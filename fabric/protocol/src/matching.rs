//! Matching of the port protocol: posted receives and unexpected messages.
//!
//! The order is that of MPI 5.0, section 3.5: between one pair of processes messages are matched in the order in which
//! they were sent, and receives in the order in which they were posted. Posted receives stand in a list per sending
//! peer, with a list of their own for the wildcard; the one posted first wins between the two.

use std::collections::VecDeque;

/// What a receive accepts; `None` is the wildcard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    pub context: u32,
    pub peer: Option<u32>,
    pub tag: Option<i32>,
}

/// What a message says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchLabel {
    pub context: u32,
    pub peer: u32,
    pub tag: i32,
}

#[derive(Clone, Copy, Debug)]
struct PostedReceive {
    context: u32,
    tag: Option<i32>,
    /// Order of posting, over all lists.
    turn: u64,
    receive: u32,
}

impl PostedReceive {
    #[inline]
    fn accepts(&self, label: &MatchLabel) -> bool {
        self.context == label.context && self.tag.is_none_or(|tag| tag == label.tag)
    }
}

#[derive(Clone, Copy, Debug)]
struct Unexpected {
    context: u32,
    tag: i32,
    /// Order of arrival, over all peers.
    turn: u64,
    message: u32,
}

impl Unexpected {
    #[inline]
    fn suits(&self, pattern: &Pattern) -> bool {
        self.context == pattern.context && pattern.tag.is_none_or(|tag| tag == self.tag)
    }
}

/// The two queues. Receives and messages are named by numbers of the caller's choice.
#[derive(Debug)]
pub struct Matcher {
    posted: Vec<VecDeque<PostedReceive>>,
    posted_any: VecDeque<PostedReceive>,
    unexpected: Vec<VecDeque<Unexpected>>,
    unexpected_count: usize,
    turn: u64,
}

impl Matcher {
    /// A matcher for messages from `peers` peers.
    pub fn new(peers: u32) -> Self {
        Self {
            posted: (0..peers).map(|_| VecDeque::new()).collect(),
            posted_any: VecDeque::new(),
            unexpected: (0..peers).map(|_| VecDeque::new()).collect(),
            unexpected_count: 0,
            turn: 0,
        }
    }

    /// One more peer, the next one after all that there are.
    pub fn add_peer(&mut self) {
        self.posted.push(VecDeque::new());
        self.unexpected.push(VecDeque::new());
    }

    /// A message has arrived: the receive that gets it, which is no longer posted; `None` if no receive waits for it.
    #[inline]
    pub fn handle_message(&mut self, label: &MatchLabel) -> Option<u32> {
        let own = &mut self.posted[label.peer as usize];
        let from_peer = own.iter().position(|p| p.accepts(label));
        if self.posted_any.is_empty() {
            return match from_peer {
                Some(0) => own.pop_front().map(|p| p.receive),
                Some(at) => own.remove(at).map(|p| p.receive),
                None => None,
            };
        }
        let from_any = self.posted_any.iter().position(|p| p.accepts(label));
        let queue = match (from_peer, from_any) {
            (Some(a), Some(b)) if own[a].turn < self.posted_any[b].turn => (own, a),
            (_, Some(b)) => (&mut self.posted_any, b),
            (Some(a), None) => (own, a),
            (None, None) => return None,
        };
        let found = if queue.1 == 0 { queue.0.pop_front() } else { queue.0.remove(queue.1) };
        found.map(|p| p.receive)
    }

    /// Keeps a message that [`Self::handle_message`] found no receive for.
    pub fn handle_unexpected(&mut self, label: &MatchLabel, message: u32) {
        self.turn += 1;
        let entry = Unexpected { context: label.context, tag: label.tag, turn: self.turn, message };
        self.unexpected[label.peer as usize].push_back(entry);
        self.unexpected_count += 1;
    }

    /// The message that a receive would get first: peer, place in its list.
    #[inline]
    fn find(&self, pattern: &Pattern) -> Option<(usize, usize)> {
        if self.unexpected_count == 0 {
            return None;
        }
        if let Some(peer) = pattern.peer {
            let at = self.unexpected[peer as usize].iter().position(|u| u.suits(pattern))?;
            return Some((peer as usize, at));
        }
        let candidates = self.unexpected.iter().enumerate().filter_map(|(peer, list)| {
            let at = list.iter().position(|u| u.suits(pattern))?;
            Some((list[at].turn, (peer, at)))
        });
        candidates.min_by_key(|(turn, _)| *turn).map(|(_, place)| place)
    }

    /// The unexpected message that `pattern` would receive, left where it is.
    pub fn poll_unexpected(&self, pattern: &Pattern) -> Option<u32> {
        self.find(pattern).map(|(peer, at)| self.unexpected[peer][at].message)
    }

    /// Takes the unexpected message that `pattern` receives.
    #[inline]
    pub fn take_unexpected(&mut self, pattern: &Pattern) -> Option<u32> {
        let (peer, at) = self.find(pattern)?;
        self.unexpected_count -= 1;
        self.unexpected[peer].remove(at).map(|u| u.message)
    }

    /// Takes an unexpected message of anybody, whatever it is labelled.
    pub fn take_any_unexpected(&mut self) -> Option<u32> {
        let message = self.unexpected.iter_mut().find_map(VecDeque::pop_front)?.message;
        self.unexpected_count -= 1;
        Some(message)
    }

    /// Posts a receive that [`Self::take_unexpected`] found nothing for.
    #[inline]
    pub fn post(&mut self, pattern: &Pattern, receive: u32) {
        self.turn += 1;
        let entry = PostedReceive { context: pattern.context, tag: pattern.tag, turn: self.turn, receive };
        match pattern.peer {
            Some(peer) => self.posted[peer as usize].push_back(entry),
            None => self.posted_any.push_back(entry),
        }
    }

    /// Withdraws a receive posted for `peer` (`None`: the wildcard); false if it is not (any longer) posted.
    pub fn cancel(&mut self, peer: Option<u32>, receive: u32) -> bool {
        let queue = match peer {
            Some(peer) => &mut self.posted[peer as usize],
            None => &mut self.posted_any,
        };
        match queue.iter().position(|p| p.receive == receive) {
            Some(at) => queue.remove(at).is_some(),
            None => false,
        }
    }

    /// Forgets an unexpected message of `peer`; false if it is not (any longer) in the queue.
    pub fn forget_unexpected(&mut self, peer: u32, message: u32) -> bool {
        let queue = &mut self.unexpected[peer as usize];
        let Some(at) = queue.iter().position(|u| u.message == message) else { return false };
        self.unexpected_count -= 1;
        queue.remove(at).is_some()
    }

    /// Withdraws every receive that only `peer` could have satisfied, and forgets nothing that has arrived.
    pub fn handle_peer_lost(&mut self, peer: u32) -> Vec<u32> {
        self.posted[peer as usize].drain(..).map(|p| p.receive).collect()
    }

    /// Withdraws every receive of a context.
    pub fn handle_context_closed(&mut self, context: u32) -> Vec<u32> {
        let mut withdrawn = Vec::new();
        for queue in self.posted.iter_mut().chain([&mut self.posted_any]) {
            let (out, rest) = queue.drain(..).partition::<Vec<_>, _>(|posted| posted.context == context);
            withdrawn.extend(out.iter().map(|posted| posted.receive));
            queue.extend(rest);
        }
        withdrawn
    }

    pub fn unexpected_count(&self) -> usize {
        self.unexpected_count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn label(peer: u32, tag: i32) -> MatchLabel {
        MatchLabel { context: 1, peer, tag }
    }

    const fn from(peer: Option<u32>, tag: Option<i32>) -> Pattern {
        Pattern { context: 1, peer, tag }
    }

    #[test]
    fn the_first_posted_wins_between_named_and_wildcard() {
        let mut m = Matcher::new(3);
        m.post(&from(None, Some(7)), 10);
        m.post(&from(Some(2), None), 11);
        assert_eq!(m.handle_message(&label(2, 7)), Some(10));
        assert_eq!(m.handle_message(&label(2, 7)), Some(11));
        assert_eq!(m.handle_message(&label(2, 7)), None);
    }

    #[test]
    fn a_later_wildcard_does_not_overtake() {
        let mut m = Matcher::new(3);
        m.post(&from(Some(2), None), 11);
        m.post(&from(None, None), 10);
        assert_eq!(m.handle_message(&label(2, 7)), Some(11));
        assert_eq!(m.handle_message(&label(1, 7)), Some(10));
    }

    #[test]
    fn unexpected_messages_are_taken_in_the_order_of_arrival() {
        let mut m = Matcher::new(3);
        m.handle_unexpected(&label(2, 5), 20);
        m.handle_unexpected(&label(1, 5), 21);
        m.handle_unexpected(&label(2, 6), 22);
        assert_eq!(m.poll_unexpected(&from(Some(2), Some(6))), Some(22));
        assert_eq!(m.take_unexpected(&from(None, None)), Some(20));
        assert_eq!(m.take_unexpected(&from(Some(2), None)), Some(22));
        assert_eq!(m.take_unexpected(&from(None, Some(6))), None);
        assert_eq!(m.take_unexpected(&from(None, Some(5))), Some(21));
    }

    #[test]
    fn contexts_are_separate() {
        let mut m = Matcher::new(1);
        m.post(&Pattern { context: 2, peer: None, tag: None }, 1);
        assert_eq!(m.handle_message(&label(0, 1)), None);
        m.handle_unexpected(&label(0, 1), 9);
        assert_eq!(m.take_unexpected(&Pattern { context: 2, peer: Some(0), tag: None }), None);
    }

    #[test]
    fn a_cancelled_receive_gets_nothing() {
        let mut m = Matcher::new(1);
        m.post(&from(Some(0), None), 1);
        assert!(m.cancel(Some(0), 1));
        assert!(!m.cancel(Some(0), 1));
        assert_eq!(m.handle_message(&label(0, 1)), None);
    }
}
