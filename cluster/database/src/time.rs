//! Lengths of time as people write them: `2h`, `1d12h`, `90s`.

use std::time::Duration;

const UNITS: [(char, u64); 4] = [('d', 86400), ('h', 3600), ('m', 60), ('s', 1)];
/// The longest one: ten years.
const MOST: u64 = 10 * 366 * 86400;

/// Numbers with units, from the longest unit to the shortest; more than nothing.
pub fn read_time(text: &str) -> Option<Duration> {
    let mut units = UNITS.iter();
    let mut seconds = 0_u64;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let count: u64 = rest[..end].parse().ok()?;
        let unit = rest[end..].chars().next()?;
        let (_, length) = units.find(|(letter, _)| *letter == unit)?;
        seconds = seconds.checked_add(count.checked_mul(*length)?)?;
        rest = &rest[end + unit.len_utf8()..];
    }
    (1..=MOST).contains(&seconds).then(|| Duration::from_secs(seconds))
}

/// The same as it is read again, to the second.
pub fn show_time(time: Duration) -> String {
    let mut left = time.as_secs();
    let mut text = String::new();
    for (letter, length) in UNITS {
        if left >= length {
            text.push_str(&format!("{}{letter}", left / length));
            left %= length;
        }
    }
    text
}
