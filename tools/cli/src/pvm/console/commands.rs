//! The commands of the console, those of the original's.

use super::{Console, NextStep};
use anyhow::{Context, Result, anyhow, bail};
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use weft_pvm_machine::frame::{Answer, ByteString, Content, Destination, HostInfo, Program, Request};
use weft_pvm_machine::{code, tid};

/// All commands, a line each.
pub fn all() -> String {
    ALL.iter().map(|command| format!("{command}\n")).collect()
}

impl std::fmt::Display for ConsoleCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (what, does) = self.about.split_once(": ").unwrap_or(("", self.about));
        write!(f, "{:<12} {does}", format!("{} {what}", self.name).trim())
    }
}

type Run = fn(&mut Console, &[String]) -> Result<NextStep>;

pub struct ConsoleCommand {
    pub name: &'static str,
    /// What follows the name, and what it does.
    pub about: &'static str,
    run: Run,
}

macro_rules! commands {
    ($($name:literal $about:literal $run:expr;)*) => {
        pub const ALL: &[ConsoleCommand] = &[$(ConsoleCommand { name: $name, about: $about, run: $run },)*];
    };
}

commands! {
    "add" "HOST ...: add hosts to the virtual machine" Console::add;
    "alias" "[NAME WORDS]: call commands otherwise" Console::alias;
    "conf" ": show the hosts" Console::conf;
    "delete" "HOST ...: take hosts out of the virtual machine" Console::delete;
    "echo" "WORDS: say them" Console::echo;
    "export" "[NAME ...]: variables that tasks get which are spawned here" Console::export;
    "get" "NAME [INDEX]: show a message of the mailbox" Console::get;
    "groups" ": show groups and their members" Console::groups;
    "halt" ": end the virtual machine, with all its tasks" Console::halt;
    "help" "[COMMAND]: show commands" Console::help;
    "id" ": show the console's task identifier" Console::id;
    "jobs" ": show what was spawned with ->" Console::jobs;
    "kill" "TASK ...: ask tasks to end" Console::kill;
    "mstat" "HOST ...: say whether hosts are there" Console::mstat;
    "names" "[PATTERN]: show names in the mailbox" Console::names_of_mailbox;
    "ps" "[-l]: show the tasks" Console::ps;
    "pstat" "TASK ...: say whether tasks are there" Console::pstat;
    "put" "NAME TEXT: put a message into the mailbox" Console::put;
    "quit" ": leave the console; the virtual machine goes on" Console::quit;
    "reset" ": end all tasks but those that are to be spared" Console::reset;
    "setenv" "[NAME [VALUE]]: set a variable, or show all" Console::setenv;
    "sig" "NUMBER TASK ...: send a signal" Console::signal;
    "spawn" "[-COUNT] [-HOST] [-ARCH] [->[>]FILE | ->] PROGRAM [ARGUMENTS]: start tasks" Console::spawn;
    "unalias" "NAME ...: forget aliases" Console::unalias;
    "unexport" "NAME ...: tasks do not get these variables" Console::unexport;
    "version" ": show the version" Console::version;
}

/// A task identifier as people write it: `t40002`, `40002`.
fn task(word: &str) -> Result<i32> {
    let digits = word.strip_prefix('t').unwrap_or(word);
    let number = u32::from_str_radix(digits, 16).ok().map(|number| number as i32);
    number.filter(|number| tid::is_task(*number)).with_context(|| format!("'{word}' is no task: write it as t40002"))
}

fn some<'a>(words: &'a [String], what: &str) -> Result<&'a [String]> {
    if words.is_empty() { bail!("of which {what}?") } else { Ok(words) }
}

/// What a code means, in the words of PVM.
fn meaning(code: i32) -> &'static str {
    match code {
        code::BAD_PARAM => "Bad parameter",
        code::NO_HOST => "No such host",
        code::NO_FILE => "No such file",
        code::DENIED => "Permission denied",
        code::HOST_FAIL => "Host failed",
        code::OUT_OF_RES => "Out of resources",
        code::DUP_HOST => "Duplicate host",
        code::CANT_START => "Can't start its daemon: pvml.UID in /tmp or PVM_TMP says why",
        code::NO_TASK => "No such task",
        code::NOT_FOUND => "Not Found",
        _ => "Error",
    }
}

fn bytes(words: &[String]) -> Vec<ByteString> {
    words.iter().map(|word| ByteString::from(word.as_str())).collect()
}

impl Console {
    pub fn run_line(&mut self, line: &str) -> NextStep {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let Some((name, rest)) = words.split_first().filter(|(name, _)| !name.starts_with('#')) else {
            return NextStep::Command;
        };
        let meant = self.aliases.get(name).cloned().unwrap_or_else(|| name.clone());
        let mut all = meant.split_whitespace().map(str::to_owned);
        let name = all.next().unwrap_or_default();
        let rest: Vec<String> = all.chain(rest.iter().cloned()).collect();
        let outcome = match ALL.iter().find(|command| command.name == name) {
            Some(command) => (command.run)(self, &rest),
            None => Err(anyhow!("'{name}' is no command; help shows all")),
        };
        outcome.unwrap_or_else(|error| {
            println!("{name}: {error:#}");
            NextStep::Command
        })
    }

    fn ask(&mut self, request: &Request) -> Result<Answer> {
        self.client.ask(request).context("the virtual machine has ended")
    }

    fn code(&mut self, request: &Request) -> Result<i32> {
        match self.ask(request)? {
            Answer::Code { code } => Ok(code),
            other => bail!("the daemon answers {other:?}"),
        }
    }

    fn hosts(&mut self) -> Result<Vec<HostInfo>> {
        match self.ask(&Request::Hosts)? {
            Answer::Hosts { hosts } => Ok(hosts),
            other => bail!("the daemon answers {other:?}"),
        }
    }

    fn help(&mut self, words: &[String]) -> Result<NextStep> {
        if let Some(unknown) = words.iter().find(|word| ALL.iter().all(|command| command.name != **word)) {
            bail!("'{unknown}' is no command; help shows all");
        }
        ALL.iter()
            .filter(|command| words.iter().all(|word| command.name == word))
            .for_each(|command| println!("{command}"));
        Ok(NextStep::Command)
    }

    fn id(&mut self, _: &[String]) -> Result<NextStep> {
        println!("t{:x}", self.tid);
        Ok(NextStep::Command)
    }

    fn version(&mut self, _: &[String]) -> Result<NextStep> {
        println!("3.4.6 (Weft {})", env!("CARGO_PKG_VERSION"));
        Ok(NextStep::Command)
    }

    fn quit(&mut self, _: &[String]) -> Result<NextStep> {
        println!("the virtual machine goes on; halt ends it");
        Ok(NextStep::Quit)
    }

    fn halt(&mut self, _: &[String]) -> Result<NextStep> {
        // There is no answer but the end.
        let _ = self.client.ask(&Request::Halt);
        Ok(NextStep::Quit)
    }

    fn conf(&mut self, _: &[String]) -> Result<NextStep> {
        let hosts = self.hosts()?;
        let plural = if hosts.len() == 1 { "" } else { "s" };
        println!("{} host{plural}, 1 data format", hosts.len());
        println!("{:>24} {:>8} {:>8} {:>6} {:>10}", "HOST", "DTID", "ARCH", "SPEED", "DSIG");
        for host in hosts {
            let HostInfo { name, tid, architecture, speed, signature } = host;
            println!("{name:>24} {tid:>8x} {architecture:>8} {speed:>6} {signature:#010x}");
        }
        Ok(NextStep::Command)
    }

    fn ps(&mut self, words: &[String]) -> Result<NextStep> {
        let is_long = words.iter().any(|word| word.contains('l'));
        let hosts = self.hosts()?;
        let Answer::Tasks { tasks, .. } = self.ask(&Request::Tasks { of: 0 })? else { bail!("no tasks") };
        println!("{:>24} {:>8} {:>8} {:>8} {:>6} COMMAND", "HOST", "TID", "PTID", "PID", "FLAG");
        for task in tasks {
            let host = hosts.iter().find(|host| host.tid == task.daemon).map_or("?", |host| host.name.as_str());
            let name = task.name.text();
            let shown = if is_long { name.as_str() } else { name.rsplit('/').next().unwrap_or("-") };
            let parent = if task.parent == 0 { "-".to_owned() } else { format!("{:x}", task.parent) };
            let pid = if task.pid > 0 { task.pid.to_string() } else { "-".to_owned() };
            let started = if task.flags & 0x80 != 0 { "f" } else { "" };
            println!("{host:>24} {:>8x} {parent:>8} {pid:>8} {:>6} {shown}", task.tid, format!("c{started}"));
        }
        Ok(NextStep::Command)
    }

    fn add(&mut self, words: &[String]) -> Result<NextStep> {
        // A word with a sign is an option of the host before it.
        let mut lines: Vec<String> = Vec::new();
        for word in some(words, "host")? {
            match lines.last_mut().filter(|_| word.contains('=')) {
                Some(line) => *line = format!("{line} {word}"),
                None => lines.push(word.clone()),
            }
        }
        self.add_hosts(lines)?;
        Ok(NextStep::Command)
    }

    /// Adds hosts, each with its options, all at the same time, but this one.
    pub fn add_hosts(&mut self, mut lines: Vec<String>) -> Result<()> {
        let first = self.hosts()?.first().map(|host| host.name.clone()).unwrap_or_default();
        lines.retain(|line| line.split_whitespace().next() != Some(first.as_str()));
        let names = bytes(&lines);
        let Answer::Added { hosts } = self.ask(&Request::AddHosts { names })? else { bail!("none was added") };
        for (line, host) in lines.iter().zip(hosts) {
            let name = line.split_whitespace().next().unwrap_or_default();
            match host.tid {
                tid if tid > 0 => println!("{name:>24} {tid:>8x}"),
                code => println!("{name:>24} {}", meaning(code)),
            }
        }
        Ok(())
    }

    fn delete(&mut self, words: &[String]) -> Result<NextStep> {
        let names = bytes(some(words, "host")?);
        let Answer::Tids { tids, .. } = self.ask(&Request::DeleteHosts { names })? else { bail!("none was deleted") };
        for (name, code) in words.iter().zip(tids) {
            println!("{name:>24} {}", if code < 0 { meaning(code) } else { "deleted" });
        }
        Ok(NextStep::Command)
    }

    fn mstat(&mut self, words: &[String]) -> Result<NextStep> {
        for name in some(words, "host")? {
            let name = if name == "." { self.hosts()?[0].name.clone() } else { name.clone() };
            let code = self.code(&Request::HostStatus { name: name.as_str().into() })?;
            println!("{name:>24} {}", if code < 0 { meaning(code) } else { "ok" });
        }
        Ok(NextStep::Command)
    }

    fn pstat(&mut self, words: &[String]) -> Result<NextStep> {
        for word in some(words, "task")? {
            let code = self.code(&Request::TaskStatus { tid: task(word)? })?;
            println!("{word:>8} {}", if code < 0 { meaning(code) } else { "ok" });
        }
        Ok(NextStep::Command)
    }

    fn kill(&mut self, words: &[String]) -> Result<NextStep> {
        self.send_signal(15, some(words, "task")?)
    }

    fn signal(&mut self, words: &[String]) -> Result<NextStep> {
        let (number, tasks) = some(words, "signal, and task")?.split_first().context("of which signal?")?;
        self.send_signal(number.parse().ok().with_context(|| format!("'{number}' is no number of a signal"))?, tasks)
    }

    fn send_signal(&mut self, signal: i32, tasks: &[String]) -> Result<NextStep> {
        for word in tasks {
            // Signals to tasks that are gone are no error of PVM's; who types one wants to know.
            let tid = task(word)?;
            let status = self.code(&Request::TaskStatus { tid })?;
            let code = if status < 0 { status } else { self.code(&Request::Signal { tid, signal })? };
            if code < 0 {
                println!("{word}: {}", meaning(code));
            }
        }
        Ok(NextStep::Command)
    }

    fn reset(&mut self, _: &[String]) -> Result<NextStep> {
        let Answer::Tasks { tasks, .. } = self.ask(&Request::Tasks { of: 0 })? else { return Ok(NextStep::Command) };
        let mut keep = vec![self.tid];
        let mut index = 0;
        let name = || ByteString::from("###_PVM_NO_RESET_###");
        while let Answer::Content { code, content } = self.ask(&Request::Get { name: name(), index, flags: 8 })?
            && code >= 0
        {
            keep.extend(content.bytes.0.first_chunk().map(|bytes| i32::from_be_bytes(*bytes)));
            index = code + 1;
        }
        for task in tasks.iter().filter(|task| !keep.contains(&task.tid)) {
            self.code(&Request::Signal { tid: task.tid, signal: 15 })?;
        }
        self.code(&Request::Reset { class: ByteString::default(), index: 0, kills: true, keep })?;
        Ok(NextStep::Command)
    }

    fn spawn(&mut self, words: &[String]) -> Result<NextStep> {
        let given = SpawnWords::read(words, &self.hosts()?)?;
        let job = match &given.shows {
            None => None,
            Some(file) => Some(self.jobs.begin(file.as_ref().map(File::try_clone).transpose()?)),
        };
        let directory = std::env::current_dir().map(|path| path.into_os_string().into_vec()).unwrap_or_default();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).map(|folder| ByteString(folder.into_os_string().into_vec()));
        let places = folders.chain([ByteString(directory.clone())]).collect();
        let program = Program {
            file: ByteString::from(given.file.as_str()),
            arguments: bytes(&given.arguments),
            environment: self.environment(),
            directory: ByteString(directory),
            places,
            flags: given.flags,
        };
        let prints_to = job.map_or_else(Destination::default, |tag| Destination { tid: self.tid, context: 0, tag });
        let (place, count) = (given.place.as_str().into(), given.count);
        match self.ask(&Request::Spawn { program, place, count, prints_to, context: 0 })? {
            Answer::Tids { code, tids } => {
                if let Some(job) = job {
                    println!("[{job}]");
                    if code <= 0 {
                        self.jobs.forget(job);
                    }
                }
                println!("{} successful", code.max(0));
                for tid in tids {
                    match tid {
                        1.. => println!("t{tid:x}"),
                        code::NO_FILE => println!("No such file: '{}', in PATH or in this folder", given.file),
                        _ => println!("{}", meaning(tid)),
                    }
                }
            }
            other => bail!("the daemon answers {other:?}"),
        }
        Ok(NextStep::Command)
    }

    /// What spawned tasks get: exported variables, and the libraries that stand beside this program.
    fn environment(&self) -> Vec<ByteString> {
        let ours = std::env::current_exe().ok().and_then(|file| Some(file.parent()?.parent()?.join("lib")));
        let given = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let all = ours.into_iter().chain(std::env::split_paths(&given)).filter(|folder| folder.is_dir());
        let libraries = std::env::join_paths(all).unwrap_or_default();
        let exported = self.exports.iter().filter_map(|name| {
            let value = std::env::var_os(name)?;
            Some(ByteString([name.as_bytes(), b"=", &value.into_vec()].concat()))
        });
        let path = ByteString([b"LD_LIBRARY_PATH=".as_slice(), &libraries.into_vec()].concat());
        let names = ByteString::from(format!("PVM_EXPORT={}", self.exports.join(":")).as_str());
        exported.chain([path, names]).collect()
    }

    fn jobs(&mut self, _: &[String]) -> Result<NextStep> {
        for (number, tasks) in self.jobs.list() {
            let tasks: Vec<String> = tasks.iter().map(|task| format!("t{task:x}")).collect();
            println!("[{number}] {}", tasks.join(" "));
        }
        Ok(NextStep::Command)
    }

    fn echo(&mut self, words: &[String]) -> Result<NextStep> {
        println!("{}", words.join(" "));
        Ok(NextStep::Command)
    }

    fn alias(&mut self, words: &[String]) -> Result<NextStep> {
        match words.split_first() {
            None => self.aliases.iter().for_each(|(name, means)| println!("{name:<8} {means}")),
            Some((name, means)) => drop(self.aliases.insert(name.clone(), some(means, "command")?.join(" "))),
        }
        Ok(NextStep::Command)
    }

    fn unalias(&mut self, words: &[String]) -> Result<NextStep> {
        words.iter().for_each(|name| drop(self.aliases.remove(name)));
        Ok(NextStep::Command)
    }

    fn export(&mut self, words: &[String]) -> Result<NextStep> {
        if words.is_empty() {
            println!("{}", self.exports.join(" "));
        }
        self.exports.extend(words.iter().cloned());
        self.exports.sort();
        self.exports.dedup();
        Ok(NextStep::Command)
    }

    fn unexport(&mut self, words: &[String]) -> Result<NextStep> {
        self.exports.retain(|name| !words.contains(name));
        Ok(NextStep::Command)
    }

    fn setenv(&mut self, words: &[String]) -> Result<NextStep> {
        match words {
            [] => std::env::vars_os().for_each(|(name, value)| println!("{}={}", name.display(), value.display())),
            [name] => println!("{name}={}", std::env::var(name).unwrap_or_default()),
            _ => bail!("variables are set where the console is started; 'export NAME' gives them to tasks"),
        }
        Ok(NextStep::Command)
    }

    fn names_of_mailbox(&mut self, words: &[String]) -> Result<NextStep> {
        let pattern = words.first().map_or("*", String::as_str).into();
        let Answer::Names { names } = self.ask(&Request::Names { pattern })? else { return Ok(NextStep::Command) };
        for of in names {
            for ((index, owner), flags) in of.indices.iter().zip(&of.owners).zip(&of.flags) {
                println!("{:<24} {index:>4} t{owner:<8x} {flags:#x}", of.name.text());
            }
        }
        Ok(NextStep::Command)
    }

    fn groups(&mut self, _: &[String]) -> Result<NextStep> {
        let Answer::Names { names } = self.ask(&Request::Groups)? else { return Ok(NextStep::Command) };
        if names.is_empty() {
            println!("no groups");
        }
        for of in names {
            let members: Vec<String> = of.owners.iter().map(|tid| format!("t{tid:x}")).collect();
            println!("{:<24} {}", of.name.text(), members.join(" "));
        }
        Ok(NextStep::Command)
    }

    fn get(&mut self, words: &[String]) -> Result<NextStep> {
        let (name, rest) = some(words, "name")?.split_first().context("of which name?")?;
        let index = rest.first().map_or(Ok(0), |word| word.parse()).context("the index is no number")?;
        match self.ask(&Request::Get { name: name.as_str().into(), index, flags: 0 })? {
            Answer::Content { code, content } if code >= 0 => {
                println!("{} bytes: {}", content.bytes.0.len(), content.bytes.0.escape_ascii());
            }
            Answer::Content { code, .. } => println!("{name}: {}", meaning(code)),
            _ => {}
        }
        Ok(NextStep::Command)
    }

    /// A packed string.
    fn put(&mut self, words: &[String]) -> Result<NextStep> {
        let (name, text) = some(words, "name")?.split_first().context("of which name?")?;
        let mut text = text.join(" ").into_bytes();
        text.push(0);
        let mut packed = (text.len() as i32).to_be_bytes().to_vec();
        packed.extend(text);
        packed.resize(packed.len().next_multiple_of(4), 0);
        let content = Content { encoding: 0, source: self.tid, tag: 0, bytes: ByteString(packed) };
        let code = self.code(&Request::Put { name: name.as_str().into(), index: -1, flags: 0, content })?;
        if code < 0 {
            println!("{name}: {}", meaning(code))
        } else {
            println!("index {code}")
        }
        Ok(NextStep::Command)
    }
}

/// The words of `spawn`.
struct SpawnWords {
    count: u32,
    flags: i32,
    place: String,
    /// What tasks print is shown, or written to a file.
    shows: Option<Option<File>>,
    file: String,
    arguments: Vec<String>,
}

impl SpawnWords {
    fn read(words: &[String], hosts: &[HostInfo]) -> Result<Self> {
        let mut given =
            Self { count: 1, flags: 0, place: String::new(), shows: None, file: String::new(), arguments: vec![] };
        for (at, word) in words.iter().enumerate() {
            let Some(option) = word.strip_prefix('-') else {
                (given.file, given.arguments) = (word.clone(), words[at + 1..].to_vec());
                return Ok(given);
            };
            match option {
                "?" => given.flags |= code::spawn::DEBUG,
                ">" => given.shows = Some(None),
                _ if option.starts_with(">>") => {
                    given.shows = Some(Some(File::options().append(true).create(true).open(&option[2..])?));
                }
                _ if option.starts_with('>') => given.shows = Some(Some(File::create(&option[1..])?)),
                _ => match option.parse() {
                    Ok(count) => given.count = count,
                    Err(_) => {
                        let is_kind = hosts.iter().any(|host| host.architecture == option);
                        given.flags |= if is_kind { code::spawn::ARCH } else { code::spawn::HOST };
                        given.place = option.to_owned();
                    }
                },
            }
        }
        bail!("of which program?")
    }
}
