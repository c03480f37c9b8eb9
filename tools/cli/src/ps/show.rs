//! Jobs as text for people.

use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weft_ranks::{Cpu, RankStage, SeenJob, SeenRank, duration, list, seconds};
use weft_records::show::bytes;

/// Every job; one with more than `singly` ranks in groups of ranks that do the same.
pub fn text(jobs: &[SeenJob], singly: usize) -> String {
    if jobs.is_empty() {
        return "no jobs of this user are running on this host\n".into();
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    gathered(jobs).iter().map(|job| job_text(job, singly, now)).collect::<Vec<_>>().join("\n")
}

/// The jobs, where those whose ranks are tasks of one virtual machine are together.
fn gathered(jobs: &[SeenJob]) -> Vec<SeenJob> {
    let mut all: Vec<SeenJob> = Vec::new();
    for job in jobs {
        match all.iter_mut().find(|other| job.machine.is_some() && other.machine == job.machine) {
            Some(machine) => {
                machine.ranks.extend(job.ranks.iter().cloned());
                machine.started_ns = machine.started_ns.min(job.started_ns);
            }
            None => all.push(job.clone()),
        }
    }
    all
}

fn job_text(job: &SeenJob, singly: usize, now: Duration) -> String {
    let (mut text, one) = match job.machine.as_deref() {
        None => (format!("job {}", job.name), "rank"),
        Some("") => ("virtual machine of PVM".to_owned(), "task"),
        Some(name) => (format!("virtual machine {name} of PVM"), "task"),
    };
    if let Some(why) = &job.unreadable {
        let _ = writeln!(text, " cannot be shown: {why}");
        return text;
    }
    let count = job.ranks.len();
    let _ = write!(text, ", {}", crate::counted::counted(count, one));
    if job.started_ns > 0 {
        let _ = write!(text, ", since {}", duration(now.saturating_sub(Duration::from_nanos(job.started_ns))));
    }
    let total =
        |name| job.ranks.iter().filter_map(|rank| rank.counters.get(name)).fold(0u64, |a, b| a.saturating_add(*b));
    let _ = writeln!(text, ", {} messages, {}", total("sends"), bytes(total("bytes_sent")));
    for program in programs(job) {
        let _ = writeln!(text, "  {program}");
    }
    text + &table(&if count > singly { groups(job) } else { singles(job) })
}

/// The programs with their ranks, in the order of the first.
fn programs(job: &SeenJob) -> Vec<String> {
    let mut found: Vec<(&str, Vec<&SeenRank>)> = Vec::new();
    for rank in job.ranks.iter().filter(|rank| !rank.program.is_empty()) {
        match found.iter_mut().find(|(program, _)| *program == rank.program) {
            Some((_, ranks)) => ranks.push(rank),
            None => found.push((&rank.program, vec![rank])),
        }
    }
    match found.as_slice() {
        [(program, _)] => vec![(*program).to_owned()],
        several => several.iter().map(|(program, ranks)| format!("{}: {program}", called(ranks))).collect(),
    }
}

/// Who they are: numbers of ranks, or the first of tasks.
fn called(ranks: &[&SeenRank]) -> String {
    match ranks.iter().map(|rank| rank.task().map(|(task, _)| task)).collect::<Option<Vec<&str>>>() {
        None => list(&ranks.iter().map(|rank| rank.rank).collect::<Vec<u32>>()),
        Some(tasks) if tasks.len() > TASKS => tasks[..TASKS].join(",") + ",...",
        Some(tasks) => tasks.join(","),
    }
}

/// So many tasks of a group are named.
const TASKS: usize = 3;

type Row = [String; 7];

fn heading(first: &str, second: &str) -> Row {
    [first, second, "cpu", "sent", "received", "bytes", "doing"].map(str::to_owned)
}

fn singles(job: &SeenJob) -> Vec<Row> {
    let mut rows = vec![heading(if job.machine.is_some() { "task" } else { "rank" }, "pid")];
    for rank in &job.ranks {
        let pid = if rank.pid == 0 { "-".into() } else { rank.pid.to_string() };
        let since = rank.blocked.as_ref().filter(|_| rank.is_alive()).map(|b| format!(" for {}", seconds(b.seconds)));
        let names: Vec<&str> =
            rank.known_as.split("; ").filter(|name| !name.is_empty() && !name.starts_with("task ")).collect();
        let known_as = if names.is_empty() { String::new() } else { format!(" ({})", names.join("; ")) };
        let doing = rank.words(true) + &since.unwrap_or_default() + &known_as;
        rows.push([
            called(&[rank]),
            pid,
            cpu(rank).into(),
            count(rank, "sends"),
            count(rank, "receives"),
            traffic(std::slice::from_ref(&rank)),
            doing,
        ]);
    }
    rows
}

/// A row for all ranks that do the same, the largest group first.
fn groups(job: &SeenJob) -> Vec<Row> {
    let mut groups: Vec<(String, Vec<&SeenRank>)> = Vec::new();
    for rank in &job.ranks {
        let same = rank.words(false);
        match groups.iter_mut().find(|(doing, _)| *doing == same) {
            Some((_, ranks)) => ranks.push(rank),
            None => groups.push((same, vec![rank])),
        }
    }
    groups.sort_by_key(|(_, ranks)| std::cmp::Reverse(ranks.len()));
    let mut rows = vec![heading(if job.machine.is_some() { "tasks" } else { "ranks" }, "which")];
    for (doing, ranks) in groups {
        let waits = ranks.iter().filter(|rank| rank.is_alive()).filter_map(|rank| rank.blocked.as_ref());
        let longest =
            waits.map(|blocked| blocked.seconds).fold(None, |a: Option<f64>, b| Some(a.map_or(b, |a| a.max(b))));
        let longest = longest.map(|longest| format!(" for up to {}", seconds(longest))).unwrap_or_default();
        let running = ranks.iter().filter(|rank| rank.cpu == Cpu::Running).count();
        let sum =
            |name| ranks.iter().filter_map(|rank| rank.counters.get(name)).fold(0u64, |a, b| a.saturating_add(*b));
        rows.push([
            ranks.len().to_string(),
            called(&ranks),
            format!("{running} running"),
            sum("sends").to_string(),
            sum("receives").to_string(),
            traffic(&ranks),
            doing + &longest,
        ]);
    }
    rows
}

fn cpu(rank: &SeenRank) -> &'static str {
    if rank.stage == RankStage::Absent && rank.pid == 0 { "-" } else { rank.cpu.word() }
}

fn count(rank: &SeenRank, name: &str) -> String {
    rank.counters.get(name).map_or_else(|| "-".into(), u64::to_string)
}

fn traffic(ranks: &[&SeenRank]) -> String {
    let names = ["bytes_sent", "bytes_received"];
    let counters = ranks.iter().flat_map(|rank| names.map(|name| rank.counters.get(name)));
    let known: Vec<u64> = counters.flatten().copied().collect();
    if known.is_empty() { "-".into() } else { bytes(known.iter().fold(0, |a: u64, b| a.saturating_add(*b))) }
}

/// Columns as wide as their widest cell; the last one is left as it is.
fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let width = rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
            let _ = match column {
                6 => write!(text, "  {cell}"),
                1 | 2 => write!(text, "  {cell:<width$}"),
                _ => write!(text, "  {cell:>width$}"),
            };
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_ranks::BlockedRank;

    fn rank(number: u32, call: Option<&str>) -> SeenRank {
        let blocked = call.map(|call| BlockedRank {
            call: call.into(),
            peer: (call == "MPI_Recv").then_some(0),
            tag: (call == "MPI_Recv").then_some(7),
            communicator: Some("MPI_COMM_WORLD".into()),
            seconds: 2.0,
        });
        SeenRank {
            rank: number,
            stage: RankStage::Joined,
            pid: 100 + number,
            program: "/bin/prog".into(),
            devices: String::new(),
            cpu: Cpu::Sleeping,
            known_as: String::new(),
            left_by: "pvm_exit",
            blocked,
            counters: [("sends", 3), ("receives", 1), ("bytes_sent", 2048), ("bytes_received", 0)].into(),
            started_ns: 1,
        }
    }

    fn job(ranks: Vec<SeenRank>) -> SeenJob {
        SeenJob { name: "9-f".into(), started_ns: 0, unreadable: None, machine: None, ranks }
    }

    #[test]
    fn nothing_running_is_said() {
        assert_eq!(text(&[], 16), "no jobs of this user are running on this host\n");
    }

    #[test]
    fn a_blocked_rank_says_in_what_with_whom_and_how_long() {
        let shown = text(&[job(vec![rank(0, None), rank(1, Some("MPI_Recv"))])], 16);
        assert!(shown.contains("job 9-f, 2 ranks, 6 messages, 4.0 KiB\n  /bin/prog\n"), "{shown}");
        let expected = "blocked in MPI_Recv from rank 0, tag 7, MPI_COMM_WORLD for 2.0 s";
        assert!(
            shown.lines().any(|line| line.trim_start().starts_with("1  101") && line.ends_with(expected)),
            "{shown}"
        );
    }

    #[test]
    fn many_ranks_are_shown_in_groups() {
        let ranks =
            (0..64).map(|r| rank(r, Some(if r == 31 || r == 5 { "MPI_Recv" } else { "MPI_Barrier" }))).collect();
        let shown = text(&[job(ranks)], 16);
        let line = |start: &str| shown.lines().find(|line| line.trim_start().starts_with(start)).unwrap_or_default();
        assert!(
            line("62  0-4,6-30,32-63").ends_with("blocked in MPI_Barrier, MPI_COMM_WORLD for up to 2.0 s"),
            "{shown}"
        );
        assert!(line("2  5,31").contains("MPI_Recv, tag 7"), "{shown}");
    }

    #[test]
    fn tasks_of_one_virtual_machine_are_shown_together() {
        let task = |number: u32, machine: &str| {
            let known_as = format!("task t4000{number}{machine}");
            let ranks = vec![SeenRank { known_as, pid: number, ..rank(0, None) }];
            SeenJob { machine: ranks[0].task().map(|(_, machine)| machine.to_owned()), ..job(ranks) }
        };
        let shown = text(&[task(1, ""), job(vec![rank(0, None)]), task(2, ""), task(1, " of machine x")], 16);
        let [first, second, third] = shown.split("\n\n").collect::<Vec<_>>()[..] else { panic!("{shown}") };
        assert!(first.starts_with("virtual machine of PVM, 2 tasks, 6 messages"), "{shown}");
        let line = |start: &str| first.lines().any(|line| line.starts_with(start));
        assert!(line("  t40001  1 ") && line("  t40002  2 "), "{shown}");
        assert!(second.starts_with("job 9-f, 1 rank,"), "{shown}");
        assert!(third.starts_with("virtual machine x of PVM, 1 task,"), "{shown}");
    }

    #[test]
    fn what_happened_to_a_rank_goes_before_what_it_last_said() {
        let mut dead = rank(0, Some("MPI_Recv"));
        dead.cpu = Cpu::Gone;
        assert_eq!(dead.words(true), "died");
        dead.stage = RankStage::Left;
        assert!(dead.words(true) == "left (pvm_exit)");
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!([bytes(0), bytes(1023), bytes(1536), bytes(u64::MAX)], ["0 B", "1023 B", "1.5 KiB", "16.0 EiB"]);
    }
}
