//! Tasks that were spawned with `->`: what they print is shown, or written to a file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;

/// Words in the place of a length, as the machine sends them.
const END: i32 = 0;

struct ConsoleJob {
    /// Tasks of which more may come, with what they have printed of a line.
    tasks: BTreeMap<i32, Vec<u8>>,
    file: Option<File>,
}

/// By number, which is the tag of what they print.
#[derive(Default)]
pub struct Jobs {
    all: BTreeMap<i32, ConsoleJob>,
    last: i32,
}

impl Jobs {
    pub fn begin(&mut self, file: Option<File>) -> i32 {
        self.last += 1;
        self.all.insert(self.last, ConsoleJob { tasks: BTreeMap::new(), file });
        self.last
    }

    /// None of its tasks could be started.
    pub fn forget(&mut self, number: i32) {
        self.all.remove(&number);
    }

    pub fn list(&self) -> Vec<(i32, Vec<i32>)> {
        self.all.iter().map(|(number, job)| (*number, job.tasks.keys().copied().collect())).collect()
    }

    /// What is to be shown of a message: task, length or a word, bytes.
    pub fn take_in(&mut self, number: i32, bytes: &[u8]) -> String {
        let (Some(job), Some((head, rest))) = (self.all.get_mut(&number), bytes.split_first_chunk::<8>()) else {
            return String::new();
        };
        let word = |at: usize| i32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (tid, length) = (word(0), word(4));
        let mut text = String::new();
        match usize::try_from(length) {
            Ok(0) => {
                if let Some(line) = job.tasks.remove(&tid).filter(|line| !line.is_empty()) {
                    job.print(number, tid, &line, &mut text);
                }
            }
            Ok(length) => {
                let mut line = job.tasks.remove(&tid).unwrap_or_default();
                line.extend(rest.get(..length).unwrap_or_default());
                while let Some(end) = line.iter().position(|byte| *byte == b'\n') {
                    let whole: Vec<u8> = line.drain(..=end).collect();
                    job.print(number, tid, &whole[..end], &mut text);
                }
                job.tasks.insert(tid, line);
            }
            Err(_) => drop(job.tasks.entry(tid).or_default()),
        }
        if length == END && job.tasks.is_empty() {
            self.all.remove(&number);
            text.push_str(&format!("[{number}] finished\n"));
        }
        text
    }
}

impl ConsoleJob {
    fn print(&mut self, number: i32, tid: i32, line: &[u8], text: &mut String) {
        let shown = format!("[{number}:t{tid:x}] {}\n", String::from_utf8_lossy(line));
        match &mut self.file {
            Some(file) => drop(file.write_all(shown.as_bytes())),
            None => text.push_str(&shown),
        }
    }
}
