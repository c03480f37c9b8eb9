//! Messages under names, which all tasks find (`pvm_putinfo(3PVM)`).

use super::ClientNumber;
use crate::code::{self, mailbox as flag};
use crate::frame::{ByteString, Content, NameInfo};
use std::collections::BTreeMap;

struct NamedContent {
    /// 0: its owner has left, and it stays.
    owner: i32,
    /// Who that was.
    was: i32,
    flags: i32,
    content: Content,
}

/// Who waits for a message to be put.
struct MailboxReader {
    client: ClientNumber,
    tid: i32,
    name: ByteString,
    index: i32,
    flags: i32,
}

#[derive(Default)]
pub struct MachineMailbox {
    names: BTreeMap<ByteString, BTreeMap<i32, NamedContent>>,
    readers: Vec<MailboxReader>,
}

/// What a look has found.
pub enum MailboxFound {
    Message(i32, Content),
    Code(i32),
    /// It has to wait.
    Nothing,
}

impl MachineMailbox {
    /// Puts a message at an index, or with -1 where `flags` say; where it stands now.
    pub fn put(&mut self, tid: i32, name: ByteString, index: i32, flags: i32, content: Content) -> i32 {
        let entries = self.names.entry(name).or_default();
        let mut place = if index == -1 { flags >> flag::INDEX_SHIFT } else { index };
        if let Some(there) = entries.get(&place) {
            if flags & flag::MULTI_INSTANCE != 0 {
                if index != -1 {
                    return code::DENIED;
                }
                while entries.contains_key(&place) {
                    place += 1;
                }
            } else if there.flags & flag::OVERWRITABLE == 0 && there.owner != tid {
                return code::DENIED;
            }
        }
        entries.insert(place, NamedContent { owner: tid, was: tid, flags, content });
        place
    }

    pub fn get(&mut self, client: ClientNumber, tid: i32, name: ByteString, index: i32, flags: i32) -> MailboxFound {
        match self.look(tid, &name, index, flags) {
            MailboxFound::Nothing if flags & flag::WAIT != 0 => {
                self.readers.push(MailboxReader { client, tid, name, index, flags });
                MailboxFound::Nothing
            }
            MailboxFound::Nothing => MailboxFound::Code(code::NOT_FOUND),
            found => found,
        }
    }

    fn look(&mut self, tid: i32, name: &ByteString, index: i32, flags: i32) -> MailboxFound {
        let Some(entries) = self.names.get_mut(name) else { return MailboxFound::Nothing };
        let first = entries.range(index.max(0)..).next();
        let Some((&place, entry)) = first.filter(|(place, _)| flags & flag::FIRST_AVAILABLE != 0 || **place == index)
        else {
            return MailboxFound::Nothing;
        };
        let content = entry.content.clone();
        if flags & flag::READ_AND_DELETE != 0 {
            if entry.flags & flag::OVERWRITABLE == 0 && entry.owner != tid {
                return MailboxFound::Code(code::DENIED);
            }
            entries.remove(&place);
            self.drop_empty();
        }
        MailboxFound::Message(place, content)
    }

    /// One whose message has come meanwhile, with it.
    pub fn take_served(&mut self) -> Option<(ClientNumber, MailboxFound)> {
        for at in 0..self.readers.len() {
            let MailboxReader { tid, ref name, index, flags, .. } = self.readers[at];
            let name = name.clone();
            match self.look(tid, &name, index, flags) {
                MailboxFound::Nothing => {}
                found => return Some((self.readers.remove(at).client, found)),
            }
        }
        None
    }

    pub fn delete(&mut self, tid: i32, name: &ByteString, index: i32) -> i32 {
        let Some(entries) = self.names.get_mut(name) else { return code::NOT_FOUND };
        let Some(entry) = entries.get(&index) else { return code::NOT_FOUND };
        if entry.flags & flag::OVERWRITABLE == 0 && entry.owner != tid {
            return code::DENIED;
        }
        entries.remove(&index);
        self.drop_empty();
        index
    }

    pub fn names(&self, pattern: &str) -> Vec<NameInfo> {
        let wanted = self.names.iter().filter(|(name, _)| matches(pattern, &name.text()));
        wanted
            .map(|(name, entries)| NameInfo {
                name: name.clone(),
                indices: entries.keys().copied().collect(),
                owners: entries.values().map(|entry| entry.owner).collect(),
                flags: entries.values().map(|entry| entry.flags).collect(),
            })
            .collect()
    }

    /// A task has ended: its messages go, but those that are to stay.
    pub fn leave(&mut self, tid: i32) {
        for entries in self.names.values_mut() {
            entries.retain(|_, entry| entry.owner != tid || entry.flags & flag::PERSISTENT != 0);
            entries.values_mut().filter(|entry| entry.owner == tid).for_each(|entry| entry.owner = 0);
        }
        self.drop_empty();
        self.readers.retain(|reader| reader.tid != tid);
    }

    /// What stays goes, too, of all but those to keep.
    pub fn reset(&mut self, keep: &[i32]) {
        for entries in self.names.values_mut() {
            entries.retain(|_, entry| entry.flags & flag::PERSISTENT == 0 || keep.contains(&entry.was));
        }
        self.drop_empty();
    }

    /// One name, or one message of it, goes whoever has put it.
    pub fn remove(&mut self, name: &ByteString, index: i32) {
        if let Some(entries) = self.names.get_mut(name) {
            entries.retain(|place, _| index >= 0 && *place != index);
        }
        self.drop_empty();
    }

    pub fn forget(&mut self, client: ClientNumber) {
        self.readers.retain(|reader| reader.client != client);
    }

    fn drop_empty(&mut self) {
        self.names.retain(|_, entries| !entries.is_empty());
    }
}

/// Whether a name is meant by a pattern: itself, or with `*` for anything.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => match name.strip_prefix(head) {
            None => false,
            Some(tail) => {
                rest.is_empty()
                    || (0..=tail.len()).filter(|at| tail.is_char_boundary(*at)).any(|at| matches(rest, &tail[at..]))
            }
        },
    }
}

impl super::VirtualMachine {
    pub(super) fn put(&mut self, tid: i32, name: ByteString, index: i32, flags: i32, content: Content) -> i32 {
        let place = self.mailbox.put(tid, name, index, flags, content);
        self.serve_readers();
        place
    }

    pub(super) fn get(&mut self, client: ClientNumber, tid: i32, name: ByteString, index: i32, flags: i32) {
        let found = self.mailbox.get(client, tid, name, index, flags);
        self.answer_found(client, found);
    }

    fn serve_readers(&mut self) {
        while let Some((client, found)) = self.mailbox.take_served() {
            self.answer_found(client, found);
        }
    }

    fn answer_found(&mut self, client: ClientNumber, found: MailboxFound) {
        let (code, content) = match found {
            MailboxFound::Message(place, content) => (place, content),
            MailboxFound::Code(code) => (code, Content::default()),
            MailboxFound::Nothing => return,
        };
        self.answer(client, crate::frame::Answer::Content { code, content });
    }

    pub(super) fn reset(&mut self, tid: i32, class: &ByteString, index: i32, kills: bool, keep: &[i32]) -> i32 {
        if !class.0.is_empty() {
            self.mailbox.remove(class, index);
        } else if kills {
            let kept: Vec<i32> = keep.iter().copied().chain([tid]).collect();
            self.mailbox.reset(&kept);
        }
        code::OK
    }
}
