//! Stages of `cargo xtask test`: run one after the other, each told before and summed up after.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::command::{OutputStream, ToolProgram};
use crate::machine::{self, Need};

/// One step of the tests. A new one is a file in `stages/` and a line in its list.
pub struct Stage {
    pub name: &'static str,
    pub meaning: &'static str,
    /// What the machine must have; provided before the first stage runs.
    pub needs: &'static [Need],
    /// After a failed gate no later stage is run: they would all fail for the same reason.
    pub gate: bool,
    pub run: fn() -> Result<StageOutcome>,
}

/// How a stage ended, errors aside.
pub enum StageOutcome {
    /// A check that is one whole: it passed.
    Passed,
    /// So many single tests passed and failed; `complaints` are the lines that tell which and why.
    Tests { passed: usize, failed: usize, complaints: Vec<String> },
    /// It cannot be run here, and why. This is not a pass.
    NotRun(String),
}

impl StageOutcome {
    /// Tests of two commands as those of one stage; of other outcomes the second.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (
                Self::Tests { passed, failed, mut complaints },
                Self::Tests { passed: more, failed: failed_more, complaints: others },
            ) => {
                complaints.extend(others);
                Self::Tests { passed: passed + more, failed: failed + failed_more, complaints }
            }
            (_, other) => other,
        }
    }
}

/// What a stage that cannot be run means for the whole.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// It is said, and the rest counts.
    IsToldOnly,
    /// The command fails: this stage is what was asked for.
    Fails,
}

struct SummaryLine {
    name: &'static str,
    outcome: StageOutcome,
    time: Duration,
    error: Option<String>,
}

/// Runs the stages and prints the summary; whether everything passed.
pub fn run(stages: &[&Stage], missing: Missing) -> Result<bool> {
    let needs: Vec<Need> = stages.iter().flat_map(|stage| stage.needs).copied().collect();
    machine::provide(&needs)?;
    let mut lines = Vec::new();
    let mut shut = false;
    for stage in stages {
        let line = if shut { not_reached(stage) } else { run_one(stage) };
        shut |= stage.gate && line.failed() > 0;
        lines.push(line);
    }
    Ok(sum_up(&lines, missing))
}

fn run_one(stage: &Stage) -> SummaryLine {
    println!("\n== {}: {}", stage.name, stage.meaning);
    let start = Instant::now();
    let (outcome, error) = match (stage.run)() {
        Ok(outcome) => (outcome, None),
        Err(error) => {
            (StageOutcome::Tests { passed: 0, failed: 1, complaints: Vec::new() }, Some(format!("{error:#}")))
        }
    };
    SummaryLine { name: stage.name, outcome, time: start.elapsed(), error }
}

fn not_reached(stage: &Stage) -> SummaryLine {
    let outcome = StageOutcome::NotRun("an earlier stage failed that this one builds on".into());
    SummaryLine { name: stage.name, outcome, time: Duration::ZERO, error: None }
}

impl SummaryLine {
    fn passed(&self) -> usize {
        match self.outcome {
            StageOutcome::Passed => 1,
            StageOutcome::Tests { passed, .. } => passed,
            StageOutcome::NotRun(_) => 0,
        }
    }

    fn failed(&self) -> usize {
        if let StageOutcome::Tests { failed, .. } = self.outcome { failed } else { 0 }
    }

    fn text(&self) -> String {
        match &self.outcome {
            StageOutcome::NotRun(reason) => format!("not run: {reason}"),
            _ if self.failed() > 0 => self.error.clone().unwrap_or_else(|| format!("{} failed", self.failed())),
            StageOutcome::Tests { passed, .. } => format!("passed ({passed} tests)"),
            StageOutcome::Passed => "passed".into(),
        }
    }
}

/// Prints one line per stage, below it what failed, and, last, the plain count. A stage that is one whole counts as one
/// test.
fn sum_up(lines: &[SummaryLine], missing: Missing) -> bool {
    println!("\n== summary");
    for line in lines {
        println!("{:<10} {:>7.1} s  {}", line.name, line.time.as_secs_f64(), line.text());
        if let StageOutcome::Tests { failed: 1.., complaints, .. } = &line.outcome {
            complaints.iter().for_each(|complaint| println!("           {complaint}"));
        }
    }
    let not_run = lines.iter().filter(|line| matches!(line.outcome, StageOutcome::NotRun(_))).count();
    if not_run > 0 {
        println!("{not_run} stages were not run");
    }
    let (passed, failed) = lines.iter().fold((0, 0), |(p, f), line| (p + line.passed(), f + line.failed()));
    println!("{passed} passed, {failed} failed");
    failed == 0 && passed > 0 && (missing == Missing::IsToldOnly || not_run == 0)
}

/// Runs a `cargo test` and counts its tests. A program of tests that is killed before its result counts as one that
/// failed, and so does whatever else makes it fail. None at all is an error: a filter or a configuration went wrong.
pub fn cargo_test(program: ToolProgram) -> Result<StageOutcome> {
    let (mut passed, mut failed) = (0, 0);
    let mut complaints = Vec::new();
    let succeeded = program.run_seeing(|stream, line| {
        if let Some((p, f)) = read_result(line) {
            passed += p;
            failed += f;
        } else if is_complaint(stream, line) {
            failed += usize::from(is_end(stream, line));
            complaints.push(line.trim().to_owned());
        }
    })?;
    if !succeeded && failed == 0 {
        failed = 1;
        complaints.push("cargo test ended with an error before or outside of the tests".into());
    }
    if passed + failed == 0 {
        anyhow::bail!("not one test ran");
    }
    Ok(StageOutcome::Tests { passed, failed, complaints })
}

/// Whether the line tells which test failed, or how a program of tests or a build ended.
fn is_complaint(stream: OutputStream, line: &str) -> bool {
    let line = line.trim();
    let of_stream = match stream {
        OutputStream::Output => line.starts_with("test ") && line.ends_with(" ... FAILED"),
        OutputStream::Error => ["error", "fatal runtime error"].iter().any(|begin| line.starts_with(begin)),
    };
    of_stream || is_end(stream, line) || line.contains("panicked at ")
}

/// Whether cargo says that a program has ended in another way than by its result.
fn is_end(stream: OutputStream, line: &str) -> bool {
    stream == OutputStream::Error && line.trim().starts_with("process didn't exit successfully")
}

/// The numbers in `test result: ok. 3 passed; 0 failed; ...`.
fn read_result(line: &str) -> Option<(usize, usize)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut counts = counts.split("; ");
    let mut next = |word| counts.next()?.strip_suffix(word)?.trim().parse().ok();
    Some((next("passed")?, next("failed")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_read_and_others_are_not() {
        let line = "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(read_result(line), Some((12, 3)));
        assert_eq!(read_result("test result: ok. 0 passed; 0 failed; 1 ignored"), Some((0, 0)));
        for other in ["", "test a ... ok", "test result: ", "running 3 tests", "test result: ok. many passed; 0 failed"]
        {
            assert_eq!(read_result(other), None, "{other}");
        }
    }

    #[test]
    fn a_stage_that_cannot_run_is_no_pass() {
        let line = |outcome| SummaryLine { name: "x", outcome, time: Duration::ZERO, error: None };
        let absent = || line(StageOutcome::NotRun("no tool".into()));
        assert!(!sum_up(&[absent()], Missing::IsToldOnly));
        assert!(sum_up(&[line(StageOutcome::Passed), absent()], Missing::IsToldOnly));
        assert!(!sum_up(&[line(StageOutcome::Passed), absent()], Missing::Fails));
        assert!(!sum_up(
            &[line(StageOutcome::Tests { passed: 3, failed: 1, complaints: Vec::new() })],
            Missing::IsToldOnly
        ));
    }

    #[test]
    fn what_failed_and_how_is_kept_for_the_summary() {
        let script = "echo 'test result: FAILED. 3 passed; 1 failed'; echo 'test a::b ... FAILED'; \
            echo 'test a::c ... ok'; echo \"  $0\" >&2; exit 1";
        let end = "process didn't exit successfully: `x` (signal: 11, SIGSEGV)";
        let ended = cargo_test(ToolProgram::new("sh").args(["-c", script, end])).unwrap();
        let StageOutcome::Tests { passed: 3, failed: 2, mut complaints } = ended else { panic!("two failed") };
        complaints.sort();
        assert_eq!(complaints, [end, "test a::b ... FAILED"]);
        let ended = cargo_test(ToolProgram::new("sh").args(["-c", "exit 1"])).unwrap();
        let StageOutcome::Tests { passed: 0, failed: 1, complaints } = ended else { panic!("one failed") };
        assert!(complaints[0].contains("outside of the tests"));
    }

    #[test]
    fn after_a_failed_gate_later_stages_are_not_run() {
        fn fails() -> Result<StageOutcome> {
            anyhow::bail!("broken")
        }
        fn unreachable() -> Result<StageOutcome> {
            panic!("must not run")
        }
        let gate = Stage { name: "gate", meaning: "", needs: &[], gate: true, run: fails };
        let later = Stage { name: "later", meaning: "", needs: &[], gate: false, run: unreachable };
        assert!(!run(&[&gate, &later], Missing::IsToldOnly).unwrap());
    }
}
