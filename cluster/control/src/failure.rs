//! Where a rank has failed, as its keeper tells it: a text of lines, each with what it is before it.

/// What was found out on the rank's host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailureReport {
    /// The function that failed.
    pub function: Option<String>,
    /// Where its core lies.
    pub core: Option<String>,
    /// Why there is less than was asked for.
    pub note: Option<String>,
    /// The thread that failed, innermost frame first.
    pub frames: Vec<String>,
}

/// Of a line, in letters.
const LINE_MAX: usize = 400;

impl FailureReport {
    /// Whether nothing was found out.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn encode(&self) -> String {
        let one = |word: &str, value: &Option<String>| value.iter().map(|value| line(word, value)).collect::<String>();
        let frames = self.frames.iter().map(|frame| line("frame", frame)).collect::<String>();
        one("function", &self.function) + &one("core", &self.core) + &one("note", &self.note) + &frames
    }

    /// A claim: lines that are not understood are left out.
    pub fn decode(text: &str) -> Self {
        let mut report = Self::default();
        for (word, value) in text.lines().filter_map(|line| line.split_once(' ')) {
            let value: String = value.chars().filter(|letter| !letter.is_control()).take(LINE_MAX).collect();
            match word {
                "function" => report.function = Some(value),
                "core" => report.core = Some(value),
                "note" => report.note = Some(value),
                "frame" => report.frames.push(value),
                _ => {}
            }
        }
        report
    }

    /// With what was found out in another way: each fills what the other has not.
    pub fn merge(&mut self, other: Self) {
        self.function = self.function.take().or(other.function);
        self.core = self.core.take().or(other.core);
        self.note = self.note.take().or(other.note);
        if self.frames.is_empty() {
            self.frames = other.frames;
        }
    }
}

fn line(word: &str, value: &str) -> String {
    let value: String = value.chars().filter(|letter| !letter.is_control()).take(LINE_MAX).collect();
    format!("{word} {value}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let report = FailureReport {
            function: Some("f(int, int)".into()),
            core: Some("/a b/core".into()),
            note: None,
            frames: vec!["f at a.c:1".into(), "main at a.c:2".into()],
        };
        assert_eq!(FailureReport::decode(&report.encode()), report);
    }

    #[test]
    fn what_would_move_a_cursor_is_left_out() {
        let report = FailureReport { function: Some("f\n\x1b[2J".into()), ..FailureReport::default() };
        assert_eq!(FailureReport::decode(&report.encode()).function.as_deref(), Some("f[2J"));
        assert!(FailureReport::decode("nonsense\nwhat it\n").is_empty());
    }

    #[test]
    fn two_ways_fill_what_the_other_has_not() {
        let mut report = FailureReport { frames: vec!["f".into()], ..FailureReport::default() };
        let frames = vec!["g".into()];
        report.merge(FailureReport { core: Some("c".into()), frames, ..FailureReport::default() });
        assert_eq!((report.core.as_deref(), report.frames), (Some("c"), vec!["f".to_owned()]));
    }
}
