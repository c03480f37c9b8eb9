//! The console: reads commands, and prints what the machine tells meanwhile.

pub mod commands;
mod editor;
mod jobs;

use anyhow::{Context, Result, bail};
use editor::{EditedKey, Editor};
use jobs::Jobs;
use std::collections::BTreeMap;
use std::io::{IsTerminal, Read, Write};
use std::os::fd::AsRawFd;
use weft_kernel::EventLoop;
use weft_pvm_machine::client::DaemonClient;
use weft_pvm_machine::frame::{Answer, Event, Introduction};
use weft_pvm_machine::terminal::Keys;

const PROMPT: &str = "pvm> ";

/// What a console knows.
pub struct Console {
    client: DaemonClient,
    tid: i32,
    aliases: BTreeMap<String, String>,
    jobs: Jobs,
    /// Names of variables that spawned tasks get.
    exports: Vec<String>,
}

/// How it goes on after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    Command,
    Quit,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ConsoleSource {
    Keyboard,
    Daemon,
}

impl Console {
    /// Enrols with the daemon, which runs.
    pub fn open() -> Result<Self> {
        let mut client = DaemonClient::connect().context("the daemon of the virtual machine does not answer")?;
        // Nobody sends to a console, and a signal is not for it.
        let who = Introduction { pid: -1, name: "weft pvm".into(), ..Introduction::default() };
        match client.enrol(who).context("the virtual machine cannot be entered")? {
            Answer::Enrolled { identity } => {
                let aliases = [("?", "help"), ("h", "help"), ("j", "jobs"), ("exit", "quit")];
                let aliases = aliases.map(|(name, means)| (name.to_owned(), means.to_owned())).into();
                let (jobs, exports) = Default::default();
                Ok(Self { client, tid: identity.tid, aliases, jobs, exports })
            }
            _ => bail!("the daemon has no place for a console"),
        }
    }

    /// Runs the commands of `~/.pvmrc`, if there is one.
    pub fn run_start_file(&mut self) {
        let Some(home) = std::env::var_os("HOME") else { return };
        let text = std::fs::read_to_string(std::path::Path::new(&home).join(".pvmrc")).unwrap_or_default();
        for line in text.lines() {
            if self.run_line(line) == NextStep::Quit {
                return;
            }
        }
    }

    /// Reads commands until one ends the console, or there are no more.
    pub fn run(&mut self) -> Result<()> {
        let stdin = std::io::stdin();
        let keys = if stdin.is_terminal() { Keys::of(&stdin).ok() } else { None };
        let mut editor = Editor::new(keys.is_some());
        let mut events = EventLoop::new()?;
        self.prompt(&editor);
        loop {
            events.ask(stdin.as_raw_fd(), libc_pollin(), ConsoleSource::Keyboard);
            events.ask(self.client.descriptor(), libc_pollin(), ConsoleSource::Daemon);
            for (source, _) in events.turn(None)? {
                if source == ConsoleSource::Daemon {
                    self.listen(&editor)?;
                    continue;
                }
                let mut bytes = [0; 4096];
                let length = stdin.lock().read(&mut bytes)?;
                if length == 0 {
                    return Ok(());
                }
                for byte in &bytes[..length] {
                    match editor.key(*byte, &self.names()) {
                        EditedKey::None => {}
                        EditedKey::Line(line) if self.run_line(&line) == NextStep::Quit => return Ok(()),
                        EditedKey::Line(_) => {
                            self.prompt(&editor);
                            // With the answer to a command may have come what nothing will tell of again.
                            self.listen(&editor)?;
                        }
                        EditedKey::End => {
                            println!();
                            return Ok(());
                        }
                    }
                }
            }
        }
    }

    fn prompt(&self, editor: &Editor) {
        print!("{PROMPT}{}", editor.line());
        let _ = std::io::stdout().flush();
    }

    /// All words that a line may begin with.
    fn names(&self) -> Vec<String> {
        let commands = commands::ALL.iter().map(|command| command.name.to_owned());
        commands.chain(self.aliases.keys().cloned()).collect()
    }

    /// Prints what the machine tells.
    fn listen(&mut self, editor: &Editor) -> Result<()> {
        let mut any = false;
        while let Some(event) = self.client.poll_event().context("the virtual machine has ended")? {
            if let Event::Message { content, .. } = event {
                let text = self.jobs.take_in(content.tag, &content.bytes.0);
                if !text.is_empty() {
                    if !any {
                        println!();
                    }
                    any = true;
                    print!("{text}");
                }
            }
        }
        if any {
            self.prompt(editor);
        }
        Ok(())
    }
}

const fn libc_pollin() -> i16 {
    1
}
