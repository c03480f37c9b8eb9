//! A line that is being typed, with the lines before it and completion.

use std::io::Write;

/// What a key has done.
#[derive(Debug, PartialEq, Eq)]
pub enum EditedKey {
    None,
    Line(String),
    /// There will be no more.
    End,
}

/// Where in a key of several bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    Begun,
    Bracket,
}

pub struct Editor {
    /// Keys are shown by us, not by the terminal.
    shows: bool,
    line: Vec<u8>,
    at: usize,
    before: Vec<String>,
    /// Which of those is shown.
    recalled: usize,
    escape: Escape,
}

impl Editor {
    pub fn new(shows: bool) -> Self {
        let (line, before) = Default::default();
        Self { shows, line, at: 0, before, recalled: 0, escape: Escape::None }
    }

    pub fn line(&self) -> String {
        if self.shows { String::from_utf8_lossy(&self.line).into_owned() } else { String::new() }
    }

    /// A key; `names` are what a first word can be.
    pub fn key(&mut self, byte: u8, names: &[String]) -> EditedKey {
        if self.escape != Escape::None {
            self.on_escape(byte);
            return EditedKey::None;
        }
        match byte {
            b'\n' | b'\r' => return self.enter(),
            _ if !self.shows => self.line.push(byte),
            // Ctrl-D.
            4 if self.line.is_empty() => return EditedKey::End,
            // Ctrl-C gives the line up, where the terminal lets it through.
            3 => self.replace(Vec::new()),
            // Ctrl-A, Ctrl-E, Ctrl-U, Ctrl-K.
            1 => self.go(0),
            5 => self.go(self.line.len()),
            21 => self.replace(self.line[self.at..].to_vec()),
            11 => self.replace(self.line[..self.at].to_vec()),
            8 | 127 if self.at > 0 => {
                self.at -= 1;
                self.line.remove(self.at);
                self.draw();
            }
            b'\t' => self.complete(names),
            27 => self.escape = Escape::Begun,
            0..32 | 127 => {}
            _ => {
                self.line.insert(self.at, byte);
                self.at += 1;
                self.draw();
            }
        }
        EditedKey::None
    }

    fn enter(&mut self) -> EditedKey {
        if self.shows {
            println!();
        }
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
        self.at = 0;
        if self.shows && !line.trim().is_empty() && self.before.last() != Some(&line) {
            self.before.push(line.clone());
        }
        self.recalled = self.before.len();
        EditedKey::Line(line)
    }

    fn on_escape(&mut self, byte: u8) {
        self.escape = match (self.escape, byte) {
            (Escape::Begun, b'[' | b'O') => Escape::Bracket,
            // Numbers before the letter.
            (Escape::Bracket, b'0'..=b'9' | b';') => Escape::Bracket,
            _ => Escape::None,
        };
        match byte {
            b'A' if self.recalled > 0 => self.recall(self.recalled - 1),
            b'B' if self.recalled < self.before.len() => self.recall(self.recalled + 1),
            b'C' => self.go((self.at + 1).min(self.line.len())),
            b'D' => self.go(self.at.saturating_sub(1)),
            _ => {}
        }
    }

    fn recall(&mut self, which: usize) {
        self.recalled = which;
        self.replace(self.before.get(which).cloned().unwrap_or_default().into_bytes());
    }

    fn replace(&mut self, line: Vec<u8>) {
        (self.at, self.line) = (line.len(), line);
        self.draw();
    }

    fn go(&mut self, at: usize) {
        self.at = at;
        self.draw();
    }

    /// Completes the first word with what all names that begin so have in common.
    fn complete(&mut self, names: &[String]) {
        let begun = self.line();
        if begun.contains(' ') {
            return;
        }
        let mut fit: Vec<&String> = names.iter().filter(|name| name.starts_with(&begun)).collect();
        fit.sort();
        let Some(first) = fit.first() else { return };
        let common = fit.iter().fold(first.len(), |common, name| {
            first.bytes().zip(name.bytes()).take(common).take_while(|(one, other)| one == other).count()
        });
        let mut line = first[..common].to_owned();
        if fit.len() == 1 {
            line.push(' ');
        } else if common == begun.len() {
            let all: Vec<&str> = fit.iter().map(|name| name.as_str()).collect();
            println!("\n{}", all.join("  "));
        }
        self.replace(line.into_bytes());
    }

    fn draw(&self) {
        let back = self.line.len() - self.at;
        print!("\r{}{}\x1b[K", super::PROMPT, self.line());
        if back > 0 {
            print!("\x1b[{back}D");
        }
        let _ = std::io::stdout().flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(editor: &mut Editor, keys: &str) -> Vec<String> {
        let names = ["spawn", "setenv", "setopt", "quit"].map(str::to_owned);
        let lines = keys.bytes().filter_map(|byte| match editor.key(byte, &names) {
            EditedKey::Line(line) => Some(line),
            _ => None,
        });
        lines.collect()
    }

    #[test]
    fn lines_are_edited_recalled_and_completed() {
        let mut editor = Editor::new(true);
        assert_eq!(typed(&mut editor, "conx\u{7f}f\n"), ["conf"]);
        assert_eq!(typed(&mut editor, "a\x1b[Db\n"), ["ba"]);
        assert_eq!(typed(&mut editor, "\x1b[A\x1b[A\n"), ["conf"]);
        assert_eq!(typed(&mut editor, "q\t\n"), ["quit "]);
        assert_eq!(typed(&mut editor, "se\t\te\t\n"), ["setenv "]);
        assert_eq!(editor.key(4, &[]), EditedKey::End);
    }
}
