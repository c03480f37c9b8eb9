//! The life of a program: its space, its command line, its last line.

use crate::report::{AppAnswer, AppFailure};
use clap::Parser;
use clap::error::ErrorKind;
use indicatif::{ProgressBar, ProgressStyle};
use std::ops::Range;
use std::process::ExitCode;
use std::time::Instant;
use weft_objects::standard::{BarrierObject, SharedBarrier, SharedTable, TableObject};
use weft_objects::{ObjectFault, ObjectPlacement, Shareable, Space, Strategy};

const WRONG: u8 = 1;
const WRONG_USE: u8 = 2;

/// One process of a run.
pub struct AppRun {
    pub space: Space,
    /// This process, and how many there are.
    pub me: u32,
    pub size: u32,
    barrier: SharedBarrier,
}

impl AppRun {
    /// A process of the space.
    ///
    /// # Errors
    /// As [`ObjectFault`] says.
    pub fn new(space: Space) -> Result<Self, ObjectFault> {
        let (me, size) = space.place();
        let barrier = SharedBarrier::share(&space, "barrier of the run", BarrierObject::new(size))?;
        barrier.place(Strategy::Fixed(ObjectPlacement::Replicated))?;
        Ok(Self { space, me, size, barrier })
    }

    /// Those of `count` things that belong to a process, if each has the same number of them, or one more.
    pub fn share_of(&self, process: u32, count: usize) -> Range<usize> {
        let first = |process: u32| count * process as usize / self.size as usize;
        first(process)..first(process + 1)
    }

    /// Waits for all processes. The time when they were there.
    ///
    /// # Errors
    /// As [`ObjectFault`] says.
    pub fn meet(&self) -> Result<Instant, ObjectFault> {
        self.barrier.pass()?;
        Ok(Instant::now())
    }

    /// The parts of all processes, by process, on process 0. `name` is that of an object, and used once.
    ///
    /// # Errors
    /// As [`ObjectFault`] says.
    pub fn gather<T: Shareable>(&self, name: &str, part: T) -> Result<Option<Vec<T>>, ObjectFault> {
        let parts = SharedTable::share(&self.space, name, TableObject::<u32, T>::default())?;
        if self.me == 0 {
            parts.place(Strategy::Fixed(ObjectPlacement::Single(0)))?;
        }
        parts.insert(self.me, part)?;
        if self.me != 0 {
            return Ok(None);
        }
        (0..self.size).map(|process| parts.await_value(&process)).collect::<Result<_, _>>().map(Some)
    }

    /// How far a long run is, for who looks at a terminal. Without a number of steps it counts them.
    pub fn progress(&self, steps: Option<u64>, what: &'static str) -> ProgressBar {
        if self.me != 0 {
            return ProgressBar::hidden();
        }
        let (bar, template) = match steps {
            Some(steps) => (ProgressBar::new(steps), "{bar:30} {percent:>3} % {prefix} ({elapsed}, about {eta} to go)"),
            None => (ProgressBar::no_length(), "{prefix} {pos} {msg} ({elapsed})"),
        };
        // No steady tick: a thread that wakes up now and then would disturb what is measured.
        bar.with_style(ProgressStyle::with_template(template).expect("the template is constant")).with_prefix(what)
    }
}

/// Runs a program on this process of its job, or alone: reads the command line, does the work, and says how it went.
pub fn run<A: Parser>(work: fn(&AppRun, &A) -> Result<AppAnswer, AppFailure>) -> ExitCode {
    let name = A::command().get_name().to_owned();
    match whole_run(&name, work) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            eprintln!("{name}: {failure}");
            ExitCode::from(WRONG)
        }
    }
}

fn whole_run<A: Parser>(name: &str, work: fn(&AppRun, &A) -> Result<AppAnswer, AppFailure>) -> Result<u8, AppFailure> {
    let run = AppRun::new(Space::open()?)?;
    let status = match A::try_parse() {
        Err(use_of) => told_use(name, &run, &use_of),
        Ok(arguments) => match work(&run, &arguments) {
            Ok(answer) => told(name, &run, &answer),
            Err(AppFailure::Refused(why)) => refused(name, &run, &why),
            Err(failure) => return Err(failure),
        },
    };
    let AppRun { space, barrier, .. } = run;
    drop(barrier);
    space.close()?;
    Ok(status)
}

/// Help is help, and wrong use is one line. Process 0 alone says it and has a status, so that it is told once.
fn told_use(name: &str, run: &AppRun, use_of: &clap::Error) -> u8 {
    if matches!(use_of.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        if run.me == 0 {
            print!("{use_of}");
        }
        return 0;
    }
    refused(name, run, &first_paragraph(&use_of.to_string()))
}

/// The first paragraph as one line, without the word that it is an error.
fn first_paragraph(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

fn refused(name: &str, run: &AppRun, why: &str) -> u8 {
    if run.me != 0 {
        return 0;
    }
    eprintln!("{name}: {why}");
    WRONG_USE
}

fn told(name: &str, run: &AppRun, answer: &AppAnswer) -> u8 {
    if run.me != 0 {
        return 0;
    }
    answer.wrong().iter().for_each(|line| eprintln!("{name}: {line}"));
    let is_right = answer.wrong().is_empty();
    let (processes, verdict) =
        (if run.size == 1 { "process" } else { "processes" }, if is_right { "right" } else { "WRONG" });
    println!("{name}: {}, {} {processes}, {:.4} s: {verdict}", answer.input, run.size, answer.seconds);
    if is_right { 0 } else { WRONG }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_everything_once() {
        let alone = AppRun::new(Space::alone()).expect("a space");
        let run = AppRun { size: 3, ..alone };
        assert_eq!([0, 1, 2].map(|process| run.share_of(process, 8)), [0..2, 2..5, 5..8]);
    }

    #[test]
    fn wrong_use_is_one_line() {
        let text = "error: invalid value 'Z' for '--class'\n  [possible values: S, P]\n\nFor more, try '--help'.\n";
        assert_eq!(first_paragraph(text), "invalid value 'Z' for '--class' [possible values: S, P]");
    }

    #[test]
    fn one_process_gathers_its_own_part() {
        let run = AppRun::new(Space::alone()).expect("a space");
        run.meet().expect("nobody else");
        assert_eq!(run.gather("parts", vec![1_u8, 2]).expect("a part"), Some(vec![vec![1, 2]]));
    }
}
