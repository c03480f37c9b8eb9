//! The command lines of other launchers: `mpiexec` and `mpirun` as of Open MPI, MPICH and Intel MPI, `srun`, and
//! TCGMSG's `parallel`.
//!
//! Each front is a table of options ([`options`]) and a reader that says in a [`draft::Draft`] what they come to. What
//! has no meaning here is accepted and ignored; a line with the reason is a note, which is printed where `-v` is given.

mod draft;
mod hosts;
pub mod mpiexec;
mod options;
pub mod parallel;
mod placing;
pub mod srun;

use crate::{EXIT_USAGE, run};
use clap::Args;
use options::{OptionTable, Words, Wrong};
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use weft_agent::Destination;

/// Whatever stands after the front's name: the options are read by hand, since they have long names behind one dash.
#[derive(Args)]
pub struct FrontArguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// A slip on the command line, in one line.
type Slip = String;

/// What a command line asks for.
enum FrontWish {
    Job(Box<weft_agent::Job>),
    /// A text on standard output.
    Text(String),
}

/// Runs what was read, and answers the exit code.
fn start(front: &str, read: Result<FrontWish, Vec<Slip>>) -> i32 {
    match read {
        Ok(FrontWish::Job(job)) => run::start(*job),
        Ok(FrontWish::Text(text)) => {
            print!("{text}");
            0
        }
        Err(slips) => {
            slips.iter().for_each(|slip| eprintln!("{front}: {slip}"));
            EXIT_USAGE
        }
    }
}

/// What the version option answers.
fn version(front: &str) -> String {
    format!("{front} (Weft) {}\n", env!("CARGO_PKG_VERSION"))
}

/// Reads options up to the program, and answers the slips in them; `apply` says what one option comes to.
fn read_options<B>(
    table: &OptionTable<B>,
    words: &mut Words,
    help: &str,
    mut apply: impl FnMut(&options::GivenOption<B>, &mut Words) -> Result<(), Slip>,
) -> Vec<Slip> {
    let (mut unknown, mut slips) = (Vec::new(), Vec::new());
    loop {
        match table.next(words) {
            Some(Ok(given)) => slips.extend(apply(&given, words).err()),
            Some(Err(Wrong::Unknown { option, nearest })) => unknown.push((option, nearest)),
            Some(Err(Wrong::Other(slip))) => slips.push(slip),
            // Behind an unknown option stands perhaps its value; options behind that are to be named, too.
            None if !unknown.is_empty() && words.front().is_some_and(|word| !is_program(word)) => {
                words.pop_front();
            }
            None => break,
        }
    }
    if !unknown.is_empty() {
        slips.insert(0, options::unknown_ones(&unknown, help));
    }
    slips
}

/// One file for the output of all ranks, which the launcher writes.
fn for_all(option: &str, path: &Path) -> Result<Destination, Slip> {
    let file =
        File::create(path).map_err(|error| format!("{option} '{}' cannot be written: {error}", path.display()))?;
    Ok(Destination::MergedInto(file))
}

fn is_program(word: &OsString) -> bool {
    let name = word.to_string_lossy().into_owned();
    let program = weft_cluster::job::Program { program: name, ..Default::default() };
    weft_agent::find(&program).is_ok()
}

#[cfg(test)]
mod tests;
