//! `weft env`: lets programs find our MPI libraries that `weft run` does not start: a plain `python`, a notebook.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use clap::ValueEnum;
use weft_cluster::job::Program;

/// What `weft env --help` begins with.
pub const LONG_ABOUT: &str = "\
Lets programs find our MPI libraries that are not started by weft run, such as a plain python with mpi4py, or a notebook.

With a program it runs that. Alone it prints what a shell has to do, for all programs that are started there later:
  weft env python prog.py
  weft env jupyter lab
  eval \"$(weft env)\"
  weft env | source            # fish
  eval `weft env --shell csh`

A program that is started so is a job of one rank.";

/// Options of `weft env`.
#[derive(clap::Args)]
pub struct EnvArguments {
    /// The shell to print for [default: by SHELL]
    #[arg(long, value_name = "SHELL", conflicts_with = "command")]
    shell: Option<Shell>,

    /// A program to run, and its arguments
    #[arg(trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    #[value(alias = "bash", alias = "zsh", alias = "dash", alias = "ksh")]
    Sh,
    #[value(alias = "tcsh")]
    Csh,
    Fish,
}

/// Prints, or becomes the program; answers the exit code.
///
/// # Errors
/// Our libraries are not installed with this command, or the program cannot be started.
pub fn main(given: &EnvArguments) -> Result<i32> {
    let path = weft_agent::library_path().context("no MPI libraries are installed with this command")?;
    let Some((name, arguments)) = given.command.split_first() else {
        let path = path.to_str().context("LD_LIBRARY_PATH has bytes that are no text")?;
        let shell = given.shell.unwrap_or_else(|| Shell::of(std::env::var_os("SHELL").as_deref()));
        println!("{}", shell.line(weft_agent::LIBRARY_VARIABLE, path));
        return Ok(0);
    };
    let wanted = Program { program: name.to_string_lossy().into_owned(), ..Program::default() };
    let program = match weft_agent::find(&wanted) {
        Ok(program) => program,
        Err(error) => {
            eprintln!("weft env: {error}");
            return Ok(error.exit_code());
        }
    };
    let error = Command::new(&program).arg0(name).args(arguments).env(weft_agent::LIBRARY_VARIABLE, path).exec();
    eprintln!("weft env: program '{}' cannot be started: {error}", program.display());
    Ok(126)
}

impl Shell {
    /// By the path of the user's shell; whatever is not known reads what POSIX says.
    fn of(path: Option<&OsStr>) -> Self {
        match path.and_then(|path| Path::new(path).file_name()?.to_str()) {
            Some("fish") => Self::Fish,
            Some("csh" | "tcsh") => Self::Csh,
            _ => Self::Sh,
        }
    }

    /// The line that sets a variable, with nothing in it that the shell would take for more than text.
    fn line(self, name: &str, value: &str) -> String {
        match self {
            Self::Sh => format!("export {name}='{}'", value.replace('\'', r"'\''")),
            // A history substitution happens inside of quotes, too.
            Self::Csh => format!("setenv {name} '{}';", value.replace('\'', r"'\''").replace('!', r"\!")),
            Self::Fish => format!("set -gx {name} '{}'", value.replace('\\', r"\\").replace('\'', r"\'")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_are_known_by_name() {
        let of = |path: &str| Shell::of(Some(OsStr::new(path)));
        assert_eq!([of("/usr/bin/fish"), of("/bin/tcsh"), of("/bin/csh")], [Shell::Fish, Shell::Csh, Shell::Csh]);
        assert_eq!([of("/bin/bash"), of("/bin/zsh"), of("nush"), Shell::of(None)], [Shell::Sh; 4]);
        for name in ["bash", "zsh", "sh"] {
            assert_eq!(Shell::from_str(name, false), Ok(Shell::Sh), "{name}");
        }
    }

    #[test]
    fn a_value_stays_as_it_is_whatever_stands_in_it() {
        let value = "/o'pt/a b:$HOME`id`\"\\!x";
        let script = format!("{}; printf %s \"$V\"", Shell::Sh.line("V", value));
        let output = Command::new("sh").args(["-c", &script]).output().expect("a shell");
        assert_eq!(String::from_utf8_lossy(&output.stdout), value);
        assert_eq!(Shell::Fish.line("V", r"a'b\c"), r"set -gx V 'a\'b\\c'");
        assert_eq!(Shell::Csh.line("V", "a'b!c"), r"setenv V 'a'\''b\!c';");
    }
}
