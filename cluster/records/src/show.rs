//! Records for people.

use crate::{DeviceBytes, Ending, JobRecord, RankRecord, Spent};
use std::fmt::Write;

/// Longer programs are cut in a table.
const PROGRAM_WIDTH: usize = 40;
/// Jobs with more ranks are shown without a line for each, unless asked for.
pub const RANKS_SINGLY: usize = 16;

/// A table with a row for each job, in the order given. `when` writes seconds since 1970 as people of this place do.
pub fn table(records: &[JobRecord], when: impl Fn(u64) -> String) -> String {
    let heading = ["job", "user", "started", "ranks", "hosts", "wall", "cpu", "peak", "sent", "exit", "program"];
    let mut rows = vec![heading.map(str::to_owned)];
    rows.extend(records.iter().map(|record| row(record, &when)));
    aligned(&rows)
}

fn row(record: &JobRecord, when: &impl Fn(u64) -> String) -> [String; 11] {
    let spent = record.spent();
    [
        record.job.clone(),
        record.user.clone(),
        when(record.started),
        record.ranks.len().to_string(),
        record.hosts.len().to_string(),
        seconds(record.wall_seconds),
        seconds(spent.processor_seconds()),
        bytes(spent.peak_bytes),
        record.sent().map_or_else(|| "-".to_owned(), |sent| bytes(sent.all())),
        record.exit_code.to_string(),
        cut(&record.command()),
    ]
}

/// One job in full: the head, the cause, and its ranks, where there are not too many of them.
pub fn page(record: &JobRecord, when: impl Fn(u64) -> String, singly: usize) -> String {
    let partition = record.partition.as_ref().map(|name| format!(", partition {name}")).unwrap_or_default();
    let mut text = format!("job {} of {}, since {}{partition}\n", record.job, record.user, when(record.started));
    let _ = writeln!(text, "  {}", record.command());
    let spent = record.spent();
    let (ranks, hosts) = (record.ranks.len(), record.hosts.len());
    let _ = writeln!(
        text,
        "  {ranks} rank{} on {hosts} host{}, {} wall, {} user, {} system, largest rank {}",
        plural(ranks),
        plural(hosts),
        seconds(record.wall_seconds),
        seconds(spent.user_us as f64 / 1e6),
        seconds(spent.system_us as f64 / 1e6),
        bytes(spent.peak_bytes),
    );
    if let Some(sent) = record.messages() {
        let _ = writeln!(text, "  {} message{} of {} sent", sent.count, plural(sent.count as usize), bytes(sent.bytes));
    }
    let cause = record.cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
    let _ = writeln!(text, "  exit code {}{cause}", record.exit_code);
    if let Some(fault) = &record.fault {
        fault.backtrace.iter().for_each(|line| _ = writeln!(text, "    {line}"));
        fault.core.iter().for_each(|core| _ = writeln!(text, "    core: {core}"));
    }
    if ranks <= singly {
        text += &ranks_table(record);
    }
    text
}

fn ranks_table(record: &JobRecord) -> String {
    let heading = ["rank", "host", "end", "wall", "user", "system", "peak", "shm", "tcp", "udp", "copied"];
    let mut rows = vec![heading.map(str::to_owned)];
    rows.extend(record.ranks.iter().map(|rank| rank_row(record, rank)));
    aligned(&rows)
}

fn rank_row(record: &JobRecord, rank: &RankRecord) -> [String; 11] {
    let none = || "-".to_owned();
    let time = |of: fn(&Spent) -> u64| rank.spent.as_ref().map_or_else(none, |spent| seconds(of(spent) as f64 / 1e6));
    let sent = |of: fn(&DeviceBytes) -> u64| rank.sent.as_ref().map_or_else(none, |sent| bytes(of(sent)));
    [
        rank.rank.to_string(),
        record.host_of(rank).to_owned(),
        rank.exit.to_string(),
        time(|spent| spent.wall_us),
        time(|spent| spent.user_us),
        time(|spent| spent.system_us),
        rank.spent.map_or_else(none, |spent| bytes(spent.peak_bytes)),
        sent(|sent| sent.shm),
        sent(|sent| sent.tcp),
        sent(|sent| sent.udp),
        sent(|sent| sent.copied),
    ]
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::OutOfMemory => write!(f, "out of memory"),
            Self::NotStarted => write!(f, "not started"),
            Self::Unknown => write!(f, "unknown"),
        }
    }
}

impl Spent {
    pub fn processor_seconds(&self) -> f64 {
        self.user_us.saturating_add(self.system_us) as f64 / 1e6
    }
}

impl DeviceBytes {
    /// By whatever device.
    pub fn all(&self) -> u64 {
        [self.tcp, self.udp, self.copied].into_iter().fold(self.shm, u64::saturating_add)
    }
}

impl JobRecord {
    /// What ran, as one would type it.
    pub fn command(&self) -> String {
        let words = |program: &crate::ProgramRecord| {
            let arguments = program.arguments.iter().map(|word| format!(" {word}")).collect::<String>();
            // Text for people: what a program was given must not move their cursor.
            format!("{}{arguments}", program.program).replace(|letter: char| letter.is_control(), "?")
        };
        self.programs.iter().map(words).collect::<Vec<_>>().join(" : ")
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= PROGRAM_WIDTH {
        return text.to_owned();
    }
    text.chars().take(PROGRAM_WIDTH - 3).collect::<String>() + "..."
}

/// `0.42 s`, `12.3 s`, `3 min 5 s`, `2 h 10 min`.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.2} s"),
        s if s < 60.0 => format!("{s:.1} s"),
        s if s < 3600.0 => format!("{} min {} s", s as u64 / 60, s as u64 % 60),
        s => format!("{} h {} min", s as u64 / 3600, s as u64 / 60 % 60),
    }
}

/// A number of bytes as people read it.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let power = (count.ilog2() / 10) as usize;
    format!("{:.1} {}", count as f64 / (1u64 << (10 * power)) as f64, UNITS[power - 1])
}

/// Columns as wide as their widest cell; the first and the last two begin at their left, numbers end at their right.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            let _ = match column {
                0..=2 => write!(line, "{cell:<width$}  "),
                last if last + 1 == N => write!(line, "{cell}"),
                _ => write!(line, "{cell:>width$}  "),
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}
