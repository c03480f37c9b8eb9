//! What tasks print: it goes as messages to whoever catches it, else to the log.

use super::VirtualMachine;
use super::notices::packed;
use crate::code;
use crate::frame::{ByteString, Content, Destination, Event, Order};

/// In the place of a length: what else there is to say of a task's output.
pub(super) const END: i32 = 0;
pub(super) const SPAWNED: i32 = -1;
pub(super) const NEW: i32 = -2;

/// Of a line that does not end so much is kept.
const LONGEST_LINE: usize = 1 << 16;

impl VirtualMachine {
    /// Tells who catches the output of a task about the task, or gives it a piece.
    pub(super) fn tell_output(&mut self, to: &Destination, from: i32, word: i32, parent: Option<i32>, piece: &[u8]) {
        let Destination { tid, context, tag } = *to;
        let mut numbers = vec![from, word];
        numbers.extend(parent);
        let mut bytes = packed(&numbers).0;
        bytes.extend(piece);
        // Packed bytes fill whole words.
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let content = Content { encoding: 0, source: from, tag, bytes: ByteString(bytes) };
        self.tell_task(tid, Event::Message { context, content });
    }

    pub(super) fn on_printed(&mut self, host: u32, tid: i32, piece: ByteString) {
        let Some(task) = self.tasks.on_host_mut(host, tid) else { return };
        let to = task.prints_to.clone();
        if piece.0.is_empty() {
            task.is_open = false;
        }
        if to.tid != 0 {
            match piece.0.len() {
                0 => self.tell_output(&to, tid, END, None, &[]),
                length => self.tell_output(&to, tid, length as i32, None, &piece.0),
            }
        } else {
            self.log(tid, &piece.0);
        }
        self.tasks.drop_ended(tid);
    }

    /// Whole lines go to the log.
    fn log(&mut self, tid: i32, piece: &[u8]) {
        let Some(task) = self.tasks.get_mut(tid) else { return };
        task.line.extend(piece);
        let mut lines = Vec::new();
        while let Some(end) = task.line.iter().position(|byte| *byte == b'\n') {
            lines.push(task.line.drain(..=end).collect::<Vec<u8>>());
        }
        let is_over = piece.is_empty() || task.line.len() > LONGEST_LINE;
        if is_over && !task.line.is_empty() {
            task.line.push(b'\n');
            lines.push(std::mem::take(&mut task.line));
        }
        for line in lines {
            let line = ByteString([format!("[t{tid:x}] ").as_bytes(), &line].concat());
            self.order(super::hosts::FIRST, Order::Log { line });
        }
    }

    /// From now on what the task prints goes elsewhere. Who has caught it sees its end, who will its beginning.
    pub(super) fn change_output(&mut self, tid: i32, to: Destination) -> i32 {
        let Some(task) = self.tasks.get_mut(tid) else { return code::NO_TASK };
        let (is_open, parent) = (task.is_open, task.parent);
        let before = std::mem::replace(&mut task.prints_to, to.clone());
        if is_open && before.tid != to.tid {
            if before.tid != 0 {
                self.tell_output(&before, tid, END, None, &[]);
            }
            if to.tid != 0 {
                self.tell_output(&to, tid, SPAWNED, Some(parent), &[]);
                self.tell_output(&to, tid, NEW, Some(parent), &[]);
            }
        }
        code::OK
    }
}
