//! The known name that a mistyped one most likely meant.

/// The candidate with the fewest single-character changes from `wrong`, letter case ignored; of equals the first. More
/// than a third of the characters are no typing mistake.
pub fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = ((wrong.chars().count() + 1) / 3).max(1);
    let measured = candidates.into_iter().map(|candidate| (distance(wrong, candidate), candidate));
    measured.filter(|(changes, _)| *changes <= most).min_by_key(|(changes, _)| *changes).map(|(_, nearest)| nearest)
}

/// Levenshtein's distance, one row of the table at a time.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let change = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_of_known_pairs() {
        for (a, b, expected) in [("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3), ("SPIN", "spin", 0)] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn nearest_is_the_smallest_distance() {
        assert_eq!(nearest("colectives", ["bind", "collectives", "timeout"]), Some("collectives"));
        assert_eq!(nearest("anything", []), None);
        let far_fetched = nearest("partition", ["action", "bind", "portion"]);
        assert_eq!((far_fetched, nearest("BND", ["tag", "bind"])), (Some("portion"), Some("bind")));
        assert_eq!(nearest("rank-file", ["tag-output", "bind"]), None);
    }
}
