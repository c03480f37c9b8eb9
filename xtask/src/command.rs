//! Starting programs: said first, then run, and a failure names the program.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use anyhow::{Context, Result, bail};

use crate::silence;

/// The word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+.,/:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// A program with its arguments, run from the root of the repository unless told otherwise.
pub struct Program {
    command: Command,
    text: String,
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
pub fn cargo(arguments: &[&str]) -> Program {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Tests send signals that may be ignored here, as under nohup; what is ignored is ignored by all that is started.
    let mut program = Program::new("env").args(["--default-signal=HUP,INT,QUIT"]);
    program.command.arg(cargo).args(arguments);
    program.text = format!("cargo {}", arguments.join(" "));
    program
}

impl Program {
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

    /// Runs it, hands every line of its standard output to `see` and prints it; `false` is an exit code other than 0. Who
    /// hangs below it is ended.
    pub fn run_seeing(mut self, mut see: impl FnMut(&str)) -> Result<bool> {
        self.say();
        let mut child =
            self.command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start `{}`", self.text))?;
        let output = child.stdout.take().context("standard output is piped")?;
        let (said, heard) = mpsc::channel();
        let reader = thread::spawn(move || BufReader::new(output).split(b'\n').try_for_each(|line| said.send(line)));
        loop {
            let line = match heard.recv_timeout(silence::LIMIT) {
                Ok(line) => line?,
                Err(RecvTimeoutError::Timeout) => {
                    silence::end_who_hangs(child.id());
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            see(&String::from_utf8_lossy(&line));
            let mut out = std::io::stdout().lock();
            out.write_all(&line)?;
            out.write_all(b"\n")?;
        }
        let _ = reader.join();
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
    use super::*;

    #[test]
    fn what_is_said_can_be_typed() {
        let program = Program::new("echo").args(["plain-word", "two words", "it's"]).env("NAME", "a b");
        assert_eq!(program.text, r#"NAME="a b" echo plain-word 'two words' 'it'\''s'"#);
        assert_eq!(Program::new("sh").args(["-c", &program.text]).output().unwrap(), "plain-word two words it's\n");
    }

    #[test]
    fn a_program_that_fails_is_named() {
        assert_eq!(
            Program::new("false").args(["x"]).run().unwrap_err().to_string(),
            "`false x` failed: exit status: 1"
        );
        assert!(Program::new("no-such-program").run().unwrap_err().to_string().contains("no-such-program"));
    }

    #[test]
    fn every_line_of_output_is_seen() {
        let mut lines = Vec::new();
        let program = Program::new("sh").args(["-c", r"printf 'a\nb\n'; exit 3"]);
        assert!(!program.run_seeing(|line| lines.push(line.to_owned())).unwrap());
        assert_eq!(lines, ["a", "b"]);
    }
}
