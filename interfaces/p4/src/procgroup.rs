//! Procgroup files: who takes part in a job.
//!
//! A line is `HOST PROCESSES [PROGRAM [USER]]`, `#` begins a comment. The first line tells how many processes share
//! memory with the first one, besides it. Each further line is a cluster of its own.

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcgroupEntry {
    pub host: String,
    pub processes: u32,
    pub program: String,
    pub user: String,
}

/// As `p4.h` has room for.
pub const MOST_ENTRIES: usize = 1024;
pub const HOST_BYTES: usize = 64;
pub const PROGRAM_BYTES: usize = 256;
pub const USER_BYTES: usize = 10;

const ALLOWED: &str = "a line is: HOST PROCESSES [PROGRAM [USER]]";

/// Reads the text of the file `name`.
///
/// # Errors
/// A line that names file, line and what is allowed there.
pub fn parse(name: &str, text: &str) -> Result<Vec<ProcgroupEntry>, String> {
    let mut entries = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        let wrong = |what: String| format!("{name}:{}: {what}; {ALLOWED}", at + 1);
        entries.push(entry(&words, entries.is_empty()).map_err(wrong)?);
        if entries.len() > MOST_ENTRIES {
            return Err(format!("{name}:{}: there are more than {MOST_ENTRIES} lines", at + 1));
        }
    }
    if entries.is_empty() {
        return Err(format!("{name}: no line says who takes part; {ALLOWED}"));
    }
    Ok(entries)
}

fn entry(words: &[&str], is_first: bool) -> Result<ProcgroupEntry, String> {
    let (&[host, count, ref more @ ..], true) = (words, words.len() <= 4) else {
        return Err(format!("{} words", words.len()));
    };
    let least = u32::from(!is_first);
    let processes = count.parse().ok().filter(|count| *count >= least);
    let processes = processes.ok_or_else(|| format!("'{count}' is no number of processes, {least} or more"))?;
    let [program, user] = [0, 1].map(|at| more.get(at).copied().unwrap_or_default().to_owned());
    for (what, bytes, word) in
        [("host", HOST_BYTES, host), ("program", PROGRAM_BYTES, &program), ("user", USER_BYTES, &user)]
    {
        if word.len() >= bytes {
            return Err(format!("the name of the {what} has {} bytes, at most {} are allowed", word.len(), bytes - 1));
        }
    }
    Ok(ProcgroupEntry { host: host.to_owned(), processes, program, user })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let text = "# two here\n\nlocal 2 # with the master\n  sun2 1 /usr/prog me\n";
        let entries = parse("a.pg", text).expect("a good file");
        let first = ProcgroupEntry { host: "local".into(), processes: 2, program: String::new(), user: String::new() };
        let second =
            ProcgroupEntry { host: "sun2".into(), processes: 1, program: "/usr/prog".into(), user: "me".into() };
        assert_eq!(entries, [first, second]);
    }

    #[test]
    fn bad_lines_are_told_with_their_number_and_what_is_allowed() {
        let cases = [
            ("local 1\nsun2\n", "p:2: 1 words; a line is: HOST PROCESSES [PROGRAM [USER]]"),
            ("local -1", "p:1: '-1' is no number of processes, 0 or more; a line is: HOST PROCESSES [PROGRAM [USER]]"),
            ("l 0\nh 0", "p:2: '0' is no number of processes, 1 or more; a line is: HOST PROCESSES [PROGRAM [USER]]"),
            ("a 1 b c d", "p:1: 5 words; a line is: HOST PROCESSES [PROGRAM [USER]]"),
            ("#\n", "p: no line says who takes part; a line is: HOST PROCESSES [PROGRAM [USER]]"),
        ];
        for (text, expected) in cases {
            assert_eq!(parse("p", text).err().as_deref(), Some(expected));
        }
        let long = parse("p", &format!("{} 1", "h".repeat(64))).expect_err("too long");
        assert!(long.contains("has 64 bytes, at most 63"), "{long}");
    }
}
