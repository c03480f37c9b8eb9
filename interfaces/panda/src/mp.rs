//! Message passing: entries that messages are sent to. An entry is a map, which has receives or a handler, or one
//! receive. Sends that may not have left have numbers among them, too.

use crate::labels::NUMBERS;
use crate::message::{Content, PandaMessage};
use std::collections::VecDeque;
use std::ffi::c_int;

pub type MapFunction = unsafe extern "C" fn(c_int, *mut PandaMessage);

/// What is called with messages for a map.
#[derive(Clone, Copy)]
pub struct EntryHandler(pub MapFunction);

impl EntryHandler {
    pub fn call(self, number: u32, content: Content) {
        let message = Box::into_raw(Box::new(PandaMessage::of(content)));
        // SAFETY: the program has registered a function of this type. The message is its own from here on.
        unsafe { (self.0)(number as c_int, message) };
    }
}

/// Receives that were begun look for messages in the order in which they were.
#[derive(Default)]
struct MessageMap {
    handler: Option<EntryHandler>,
    queue: VecDeque<Content>,
    receives: VecDeque<u32>,
}

enum PandaEntry {
    Free,
    Map(MessageMap),
    /// For a message, which is the program's, and what has come for it.
    Receive {
        into: *mut PandaMessage,
        content: Option<Content>,
    },
    /// A receive whose message the program has got, and not asked for the end of.
    Received,
    Send {
        kept: Option<u64>,
    },
}

// SAFETY: the message of a receive is touched only by the thread that asks for it.
unsafe impl Send for PandaEntry {}

/// Who gets a message.
pub enum Delivered {
    ToHandler(EntryHandler, Content),
    Taken,
    /// There is no such entry yet.
    TooEarly(Content),
}

/// How it stands with a receive.
pub enum ReceiveState {
    NotYet,
    /// What has come, and the message that it is for.
    Now(*mut PandaMessage, Content),
    /// It was asked before.
    Before,
    /// There is no such receive.
    Never,
}

/// The map that is there from the beginning, for receives that messages are sent to directly.
pub const DIRECT: u32 = 0;

/// Maps have lower numbers than receives and sends, so that what comes before its map does not meet one of those. They
/// are few, since programs of old keep the others' numbers in 16 bits.
const MAPS: usize = 1024;

pub struct PandaEntries(Vec<PandaEntry>);

impl Default for PandaEntries {
    fn default() -> Self {
        let mut all: Vec<PandaEntry> = (0..MAPS).map(|_| PandaEntry::Free).collect();
        all[DIRECT as usize] = PandaEntry::Map(MessageMap::default());
        Self(all)
    }
}

impl PandaEntries {
    /// The lowest number that is free. `None` if there is none.
    fn add(&mut self, entry: PandaEntry) -> Option<u32> {
        let free = self.0[MAPS..].iter().position(|entry| matches!(entry, PandaEntry::Free));
        let at = free.map_or(self.0.len(), |at| MAPS + at);
        let number = u32::try_from(at).ok().filter(|number| *number < NUMBERS)?;
        match self.0.get_mut(at) {
            Some(place) => *place = entry,
            None => self.0.push(entry),
        }
        Some(number)
    }

    /// The lowest number that is free, as on all platforms, which do so in the same order. `None` if there is none.
    pub fn add_map(&mut self) -> Option<u32> {
        let at = self.0[..MAPS].iter().position(|entry| matches!(entry, PandaEntry::Free))?;
        self.0[at] = PandaEntry::Map(MessageMap::default());
        Some(at as u32)
    }

    pub fn add_send(&mut self, kept: Option<u64>) -> Option<u32> {
        self.add(PandaEntry::Send { kept })
    }

    /// Begins a receive for a map; of [`DIRECT`] it is sent to by its own number. `None` if there is no such map, or
    /// one with a handler.
    pub fn add_receive(&mut self, map: u32, into: *mut PandaMessage) -> Option<u32> {
        let of_map = self.map(map).filter(|map| map.handler.is_none())?;
        let content = if map == DIRECT { None } else { of_map.queue.pop_front() };
        let waits = map != DIRECT && content.is_none();
        let number = self.add(PandaEntry::Receive { into, content })?;
        if waits && let Some(map) = self.map(map) {
            map.receives.push_back(number);
        }
        Some(number)
    }

    fn map(&mut self, number: u32) -> Option<&mut MessageMap> {
        match self.0.get_mut(number as usize) {
            Some(PandaEntry::Map(map)) => Some(map),
            _ => None,
        }
    }

    pub fn deliver(&mut self, number: u32, content: Content) -> Delivered {
        let to = match self.0.get_mut(number as usize) {
            Some(PandaEntry::Map(MessageMap { handler: Some(handler), .. })) => {
                return Delivered::ToHandler(*handler, content);
            }
            Some(PandaEntry::Map(map)) => match map.receives.pop_front() {
                Some(receive) => receive,
                None => {
                    map.queue.push_back(content);
                    return Delivered::Taken;
                }
            },
            Some(PandaEntry::Receive { content: None, .. }) => number,
            _ => return Delivered::TooEarly(content),
        };
        if let Some(PandaEntry::Receive { content: place, .. }) = self.0.get_mut(to as usize) {
            *place = Some(content);
        }
        Delivered::Taken
    }

    /// Gives a map its handler, and what has come for it. `None` if there is no such map, or it has one.
    pub fn set_handler(&mut self, map: u32, handler: EntryHandler) -> Option<VecDeque<Content>> {
        let map = self.map(map).filter(|map| map.handler.is_none() && map.receives.is_empty())?;
        map.handler = Some(handler);
        Some(std::mem::take(&mut map.queue))
    }

    /// What a map has that nobody has asked for. `None` if there is no such map.
    pub fn take_queue(&mut self, map: u32) -> Option<VecDeque<Content>> {
        self.map(map).map(|map| std::mem::take(&mut map.queue))
    }

    /// False if there is no such map.
    pub fn remove_map(&mut self, map: u32) -> bool {
        let there = map != DIRECT && self.map(map).is_some();
        if there {
            self.0[map as usize] = PandaEntry::Free;
        }
        there
    }

    /// Takes what a receive has got.
    pub fn take_received(&mut self, number: u32) -> ReceiveState {
        let Some(entry) = self.0.get_mut(number as usize) else { return ReceiveState::Never };
        match entry {
            PandaEntry::Receive { into, content } => match content.take() {
                Some(content) => {
                    let into = *into;
                    *entry = PandaEntry::Received;
                    ReceiveState::Now(into, content)
                }
                None => ReceiveState::NotYet,
            },
            PandaEntry::Received => ReceiveState::Before,
            _ => ReceiveState::Never,
        }
    }

    /// The number that a send's bytes are kept under: outer `None` if there is no such send.
    pub fn sent(&self, number: u32) -> Option<Option<u64>> {
        match self.0.get(number as usize)? {
            PandaEntry::Send { kept } => Some(*kept),
            _ => None,
        }
    }

    pub fn free(&mut self, number: u32) {
        self.0[number as usize] = PandaEntry::Free;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    fn content(byte: u8) -> Content {
        Content { words: vec![u64::from(byte)], length: 1 }
    }

    fn got(entries: &mut PandaEntries, number: u32) -> Option<u64> {
        match entries.take_received(number) {
            ReceiveState::Now(_, content) => Some(content.words[0]),
            _ => None,
        }
    }

    #[test]
    fn messages_meet_receives_in_order_whoever_comes_first() {
        let mut entries = PandaEntries::default();
        let map = entries.add_map().expect("room");
        assert!(matches!(entries.deliver(map, content(1)), Delivered::Taken));
        let receives: Vec<u32> = (0..3).map(|_| entries.add_receive(map, null_mut()).expect("room")).collect();
        assert_eq!(got(&mut entries, receives[0]), Some(1));
        assert!(matches!(entries.deliver(map, content(2)), Delivered::Taken));
        assert!(matches!(entries.deliver(map, content(3)), Delivered::Taken));
        assert_eq!((got(&mut entries, receives[1]), got(&mut entries, receives[2])), (Some(2), Some(3)));
    }

    #[test]
    fn a_direct_receive_gets_one_message() {
        let mut entries = PandaEntries::default();
        let receive = entries.add_receive(DIRECT, null_mut()).expect("room");
        assert!(matches!(entries.deliver(receive, content(1)), Delivered::Taken));
        assert!(matches!(entries.deliver(receive, content(2)), Delivered::TooEarly(_)));
        assert_eq!(got(&mut entries, receive), Some(1));
        assert!(matches!(entries.take_received(receive), ReceiveState::Before));
        entries.free(receive);
        assert_eq!(entries.add_receive(DIRECT, null_mut()), Some(receive));
        entries.free(receive);
        assert!(matches!(entries.take_received(receive), ReceiveState::Never) && entries.sent(receive).is_none());
    }

    #[test]
    fn what_came_before_the_handler_is_handed_over() {
        unsafe extern "C" fn nothing(_: c_int, _: *mut PandaMessage) {}
        let mut entries = PandaEntries::default();
        let map = entries.add_map().expect("room");
        assert!(matches!(entries.deliver(map, content(1)), Delivered::Taken));
        let early = entries.set_handler(map, EntryHandler(nothing)).expect("a map");
        assert_eq!(early, [content(1)]);
        assert!(entries.set_handler(map, EntryHandler(nothing)).is_none());
        assert!(matches!(entries.deliver(map, content(2)), Delivered::ToHandler(..)));
        assert!(entries.add_receive(map, null_mut()).is_none() && entries.remove_map(map));
        assert!(matches!(entries.deliver(map, content(2)), Delivered::TooEarly(_)));
    }
}
