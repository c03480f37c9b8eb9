//! Starting programs: said first, then run, and a failure names the program.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::silence;

/// The word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+.,/:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// A program with its arguments, run from the root of the repository unless told otherwise.
pub struct ToolProgram {
    command: Command,
    text: String,
}

/// So long nothing is said before one looks whether the program has ended.
const LOOK: Duration = Duration::from_secs(1);

/// Where a program says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    Output,
    Error,
}

impl OutputStream {
    /// Says the line in our own stream of that kind; by the macros, whose words in a test are that test's.
    fn print(self, line: &str) {
        match self {
            OutputStream::Output => println!("{line}"),
            OutputStream::Error => eprintln!("{line}"),
        }
    }
}

/// A thread that sends the lines of `input` until it ends.
fn read_lines(input: impl Read + Send + 'static, stream: OutputStream, said: Sender<(OutputStream, Vec<u8>)>) {
    let lines = BufReader::new(input).split(b'\n');
    thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| said.send((stream, line))));
}

/// The root of the repository.
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().expect("xtask lies in the root of the repository").to_owned()
}

/// The directory that cargo builds into.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Cargo, the same that started us.
pub fn cargo(arguments: &[&str]) -> ToolProgram {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Tests send signals that may be ignored here, as under nohup; what is ignored is ignored by all that is started.
    let mut program = ToolProgram::new("env").args(["--default-signal=HUP,INT,QUIT"]);
    // Its words are read.
    program.command.arg(cargo).args(arguments).env("CARGO_TERM_COLOR", "never");
    program.text = format!("cargo {}", arguments.join(" "));
    program
}

impl ToolProgram {
    pub fn new(name: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(name.as_ref());
        command.current_dir(root());
        Self { command, text: name.as_ref().to_string_lossy().into_owned() }
    }

    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        for argument in arguments {
            self.text.push(' ');
            self.text.push_str(&quoted(&argument.as_ref().to_string_lossy()));
            self.command.arg(argument);
        }
        self
    }

    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        let value = value.into();
        self.text = format!("{name}={:?} {}", value.to_string_lossy(), self.text);
        self.command.env(name, value);
        self
    }

    /// Runs it; an exit code other than 0 is an error.
    pub fn run(mut self) -> Result<()> {
        self.say();
        let status = self.command.status().with_context(|| format!("cannot start `{}`", self.text))?;
        if !status.success() {
            bail!("`{}` failed: {status}", self.text);
        }
        Ok(())
    }

    /// Runs it, hands every line that it says to `see` and prints it; `false` is an exit code other than 0. Who hangs
    /// below it is ended.
    pub fn run_seeing(mut self, mut see: impl FnMut(OutputStream, &str)) -> Result<bool> {
        self.say();
        let mut child = self
            .command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start `{}`", self.text))?;
        let (said, heard) = mpsc::channel();
        read_lines(child.stdout.take().context("standard output is piped")?, OutputStream::Output, said.clone());
        read_lines(child.stderr.take().context("standard error is piped")?, OutputStream::Error, said);
        let mut silent = Duration::ZERO;
        loop {
            match heard.recv_timeout(LOOK) {
                Ok((stream, line)) => {
                    silent = Duration::ZERO;
                    let line = String::from_utf8_lossy(&line);
                    see(stream, &line);
                    stream.print(&line);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                // Somebody whom it has left behind holds its streams.
                Err(RecvTimeoutError::Timeout) if child.try_wait()?.is_some() => break,
                Err(RecvTimeoutError::Timeout) => {
                    silent += LOOK;
                    if silent >= silence::LIMIT {
                        silence::end_who_hangs(child.id());
                        silent = Duration::ZERO;
                    }
                }
            }
        }
        Ok(child.wait()?.success())
    }

    /// Runs it without a word and returns its standard output.
    pub fn output(mut self) -> Result<String> {
        let output =
            self.command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start `{}`", self.text))?;
        if !output.status.success() {
            bail!("`{}` failed: {}", self.text, output.status);
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs it without a word; whether it could be started and succeeded.
    pub fn succeeds(mut self) -> bool {
        let quiet = self.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    }

    fn say(&self) {
        println!("$ {}", self.text);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn what_is_said_can_be_typed() {
        let program = ToolProgram::new("echo").args(["plain-word", "two words", "it's"]).env("NAME", "a b");
        assert_eq!(program.text, r#"NAME="a b" echo plain-word 'two words' 'it'\''s'"#);
        assert_eq!(ToolProgram::new("sh").args(["-c", &program.text]).output().unwrap(), "plain-word two words it's\n");
    }

    #[test]
    fn a_program_that_fails_is_named() {
        assert_eq!(
            ToolProgram::new("false").args(["x"]).run().unwrap_err().to_string(),
            "`false x` failed: exit status: 1"
        );
        assert!(ToolProgram::new("no-such-program").run().unwrap_err().to_string().contains("no-such-program"));
    }

    #[test]
    fn who_is_left_behind_with_the_streams_is_not_waited_for() {
        let start = Instant::now();
        let program = ToolProgram::new("sh").args(["-c", "sleep 30 & exit 3"]);
        assert!(!program.run_seeing(|_, _| {}).unwrap());
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn every_line_of_output_is_seen() {
        let mut lines = Vec::new();
        let program = ToolProgram::new("sh").args(["-c", r"printf 'a\nb\n'; printf c >&2; exit 3"]);
        assert!(!program.run_seeing(|stream, line| lines.push((stream, line.to_owned()))).unwrap());
        lines.sort_by_key(|(_, line)| line.clone());
        let expected = [(OutputStream::Output, "a"), (OutputStream::Output, "b"), (OutputStream::Error, "c")];
        assert_eq!(lines, expected.map(|(stream, line)| (stream, line.to_owned())));
    }
}
