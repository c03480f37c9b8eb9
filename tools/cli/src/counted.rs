//! So many of something, in words.

/// `1 host`, `2 hosts`.
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "host")), ["0 hosts", "1 host", "2 hosts"]);
    }
}
