//! A program that was started by hand, as those of AMUDP are, becomes a job of `weft run`.

use crate::failure::{Answer, bad, no_resource};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What a program's arguments say of the job.
#[derive(Debug, PartialEq, Eq)]
pub struct JobStart {
    pub processes: u32,
    /// Those of the workers.
    pub arguments: Vec<OsString>,
}

impl JobStart {
    /// `arguments` without the program's name. `processes` 0: their number comes first; where `names_spawn`, the letter
    /// of a way to start them is next.
    ///
    /// # Errors
    /// There is no number.
    pub fn read(arguments: &[OsString], processes: i32, names_spawn: bool) -> Answer<Self> {
        let no_number = bad("the number of processes is to be the first argument: program N spawnfn arguments");
        let (processes, rest) = match processes {
            0 => {
                let (first, rest) = arguments.split_first().ok_or(no_number)?;
                (first.to_str().and_then(|text| text.parse().ok()).filter(|n| *n > 0).ok_or(no_number)?, rest)
            }
            given => (u32::try_from(given).map_err(|_| no_number)?, arguments),
        };
        let rest = if names_spawn { rest.get(1..).unwrap_or_default() } else { rest };
        Ok(Self { processes, arguments: rest.to_vec() })
    }

    /// Does not return when it goes well.
    pub fn execute(self) -> Answer<()> {
        let Some(weft) = weft_fabric::spawn::find_weft() else {
            eprintln!("weft: no weft is beside libam, and none is in PATH: it starts the processes");
            return Err(no_resource("there is no weft"));
        };
        let program = std::env::current_exe().map_err(|_| no_resource("the program cannot be found"))?;
        let mut command = Command::new(&weft);
        command.args(["run", "-n", &self.processes.to_string(), "--"]).arg(program).args(self.arguments);
        let error = command.exec();
        eprintln!("weft: '{}' cannot be started: {error}", weft.display());
        Err(no_resource("weft run cannot be started"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str], processes: i32, names_spawn: bool) -> Option<(u32, Vec<String>)> {
        let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
        let start = JobStart::read(&arguments, processes, names_spawn).ok()?;
        let rest = start.arguments.into_iter().map(|argument| argument.into_string().expect("text"));
        Some((start.processes, rest.collect()))
    }

    #[test]
    fn the_number_and_the_way_to_start_come_first() {
        assert_eq!(read(&["4", "L", "100", "P"], 0, true), Some((4, vec!["100".into(), "P".into()])));
        assert_eq!(read(&["4"], 0, true), Some((4, vec![])));
        assert_eq!(read(&["100"], 3, false), Some((3, vec!["100".into()])));
        for wrong in [&[][..], &["x"], &["0"], &["-1"]] {
            assert_eq!(read(wrong, 0, true), None, "{wrong:?}");
        }
        assert_eq!(read(&[], -1, false), None);
    }
}
