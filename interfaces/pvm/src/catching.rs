//! What children print, as `pvm_catchout(3PVM)` writes it to a file of the program.

use crate::stdio::write_to_stream;
use std::collections::BTreeMap;
use std::ffi::c_int;

/// Words in the place of a length.
const END: c_int = 0;
const SPAWNED: c_int = -1;
const NEW: c_int = -2;

#[derive(Default)]
struct CaughtChild {
    line: Vec<u8>,
    has_spawned: bool,
    has_ended: bool,
}

pub struct Catching {
    /// Address of the C library's stream; 0: nothing is caught.
    stream: usize,
    children: BTreeMap<c_int, CaughtChild>,
    /// What is to be written.
    text: Vec<u8>,
}

impl Catching {
    pub const fn new() -> Self {
        Self { stream: 0, children: BTreeMap::new(), text: Vec::new() }
    }

    pub fn set_stream(&mut self, stream: usize) {
        self.stream = stream;
    }

    /// Children of which more may come.
    pub fn awaits(&self) -> bool {
        self.stream != 0 && !self.children.is_empty()
    }

    pub fn clear(&mut self) {
        self.children.clear();
        self.stream = 0;
    }

    /// Takes in a message: the task, the length of what it has printed or one of the words, and the bytes.
    pub fn take_in(&mut self, bytes: &[u8], shows: bool) {
        let Some((head, rest)) = bytes.split_first_chunk::<8>() else { return };
        let number = |at: usize| c_int::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (tid, word) = (number(0), number(4));
        match word {
            END | SPAWNED | NEW => self.on_word(tid, word, shows),
            length => {
                let piece = usize::try_from(length).ok().and_then(|length| rest.get(..length));
                self.on_piece(tid, piece.unwrap_or_default(), shows);
            }
        }
        self.write();
    }

    fn on_word(&mut self, tid: c_int, word: c_int, shows: bool) {
        let is_new = !self.children.contains_key(&tid);
        if is_new && word == END {
            return;
        }
        let child = self.children.entry(tid).or_default();
        if is_new && shows {
            self.text.extend(format!("[t{tid:x}] BEGIN\n").into_bytes());
        }
        match word {
            SPAWNED => child.has_spawned = true,
            END => {
                child.has_ended = true;
                if !child.line.is_empty() {
                    child.line.push(b'\n');
                    Self::print(&mut self.text, tid, &child.line, shows);
                    child.line.clear();
                }
            }
            _ => {}
        }
        if child.has_spawned && child.has_ended {
            self.children.remove(&tid);
            if shows {
                self.text.extend(format!("[t{tid:x}] EOF\n").into_bytes());
            }
        }
    }

    fn on_piece(&mut self, tid: c_int, piece: &[u8], shows: bool) {
        let Some(child) = self.children.get_mut(&tid) else { return };
        child.line.extend(piece);
        while let Some(end) = child.line.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = child.line.drain(..=end).collect();
            Self::print(&mut self.text, tid, &line, shows);
        }
    }

    fn print(text: &mut Vec<u8>, tid: c_int, line: &[u8], shows: bool) {
        if shows {
            text.extend(format!("[t{tid:x}] ").into_bytes());
        }
        text.extend(line);
    }

    fn write(&mut self) {
        if self.stream != 0 {
            write_to_stream(self.stream, &self.text);
        }
        self.text.clear();
    }
}
