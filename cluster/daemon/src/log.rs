//! Lines for who looks after the daemon: to standard error, which systemd or `weft cluster start` keeps. Each begins
//! with its time, in universal time.

use crate::report::now;
use std::collections::HashMap;
use std::fmt::Display;
use std::io::Write;
use std::time::{Duration, Instant};
use weft_database::show_moment;

/// What one user is refused is told so often: who asks again and again fills no disk.
const TOLD_AGAIN: Duration = Duration::from_secs(10);
/// Users whose refusals are counted.
const MOST_USERS: usize = 1024;

/// Says a line. Where it cannot be written, on a full disk, the daemon goes on.
pub fn say(line: impl Display) {
    // In one piece: doors write to the same place.
    let _ = std::io::stderr().write_all(stamped(now(), line).as_bytes());
}

fn stamped(moment: u64, line: impl Display) -> String {
    format!("{} weftd: {line}\n", show_moment(moment))
}

/// When each user was told of last, and how often not since.
#[derive(Default)]
pub struct Refusals(HashMap<String, (Instant, u64)>);

impl Refusals {
    /// The line about what a user is refused, if one is to be written now.
    pub fn line(&mut self, user: &str, reason: &str, at: Instant) -> Option<String> {
        let last = self.0.get_mut(user);
        if let Some((_, more)) = last.filter(|(told, _)| at.duration_since(*told) < TOLD_AGAIN) {
            *more += 1;
            return None;
        }
        let more = self.0.insert(user.to_owned(), (at, 0)).map_or(0, |(_, more)| more);
        if self.0.len() > MOST_USERS {
            self.0.retain(|_, (told, _)| at.duration_since(*told) < TOLD_AGAIN);
        }
        let more = if more > 0 { format!("; {more} refusals before were not told") } else { String::new() };
        Some(format!("user '{user}' is refused: {reason}{more}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_begins_with_its_time() {
        assert_eq!(stamped(1_795_770_000, "begins"), "2026-11-27T09:00:00Z weftd: begins\n");
    }

    #[test]
    fn who_is_refused_again_and_again_fills_no_log() {
        let (mut refusals, begun) = (Refusals::default(), Instant::now());
        // What is refused need not be the same.
        let mut line =
            |user, at| refusals.line(user, if at == 1 { "never" } else { "no" }, begun + Duration::from_secs(at));
        assert_eq!(line("ann", 0).as_deref(), Some("user 'ann' is refused: no"));
        assert_eq!((line("ann", 1), line("ann", 9)), (None, None));
        assert_eq!(line("bob", 9).as_deref(), Some("user 'bob' is refused: no"));
        assert_eq!(line("ann", 10).as_deref(), Some("user 'ann' is refused: no; 2 refusals before were not told"));
        assert_eq!(line("ann", 20).as_deref(), Some("user 'ann' is refused: no"));
    }
}
