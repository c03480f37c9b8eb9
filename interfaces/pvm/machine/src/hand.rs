//! A daemon's hand on its host: it accepts tasks, starts and signals processes, and reads what they print. It decides
//! nothing.

mod link;
mod processes;

pub(crate) use link::FrameLink;
pub use processes::{DIRECTORY_VARIABLE, PATH_VARIABLE};

use crate::code;
use crate::door;
use crate::frame::{ByteString, Order, Program, Seen};
use crate::launch::{self, send_signal};
use processes::{TaskProcess, command};
use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};
use weft_kernel::EventLoop;

/// What a daemon waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandToken {
    Door,
    Client(u32),
    Printed(i32),
    Ended(i32),
    /// The daemon of another host, or the first one.
    Host(u32),
}

/// How long nobody is let in after that has failed.
const REST: Duration = Duration::from_millis(100);
/// How long processes have to end when they are asked to.
const GRACE: Duration = Duration::from_millis(500);

pub struct Hand {
    door: UnixListener,
    clients: BTreeMap<u32, FrameLink>,
    last_client: u32,
    processes: BTreeMap<i32, TaskProcess>,
    seen: VecDeque<Seen>,
    log: Option<File>,
    has_ended: bool,
    /// Until then nobody is let in, because that fails.
    rests_until: Option<Instant>,
}

impl Hand {
    pub fn new(door: UnixListener) -> Self {
        let (clients, processes, seen) = Default::default();
        Self { door, clients, last_client: 0, processes, seen, log: None, has_ended: false, rests_until: None }
    }

    /// Says what is to be waited for.
    pub fn ask(&self, events: &mut EventLoop<HandToken>) {
        if self.rest().is_none() {
            events.ask(self.door.as_raw_fd(), libc::POLLIN, HandToken::Door);
        }
        for (number, link) in &self.clients {
            link.ask(events, HandToken::Client(*number));
        }
        for (tid, process) in &self.processes {
            if let Some(prints) = &process.prints {
                events.ask(prints.as_raw_fd(), libc::POLLIN, HandToken::Printed(*tid));
            }
            if let Some((_, end)) = &process.child {
                events.ask(end.as_raw_fd(), libc::POLLIN, HandToken::Ended(*tid));
            }
        }
    }

    pub fn on_event(&mut self, token: HandToken) {
        match token {
            HandToken::Door => self.accept(),
            HandToken::Client(number) => self.on_client(number),
            HandToken::Printed(tid) => self.on_printed(tid),
            HandToken::Ended(tid) => self.on_ended(tid),
            HandToken::Host(_) => {}
        }
    }

    /// What has been seen.
    pub fn poll_seen(&mut self) -> Option<Seen> {
        self.seen.pop_front()
    }

    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    pub fn obey(&mut self, order: Order) {
        match order {
            Order::Tell { client, bytes } => {
                let told = self.clients.get_mut(&client).map(|link| link.send(&bytes.0));
                if told.is_some_and(|told| told.is_err()) {
                    self.lose(client);
                }
            }
            // What it has said is handled first, and then its end.
            Order::Close { client } => self.lose(client),
            Order::Start { tid, program } => self.start(tid, &program),
            Order::Signal { pid, signal } if pid > 1 => send_signal(pid, signal),
            Order::Log { line } => self.write_log(&line.0),
            Order::End => self.end(),
            Order::Signal { .. } | Order::AddHost { .. } | Order::DropHost { .. } | Order::Pulse => {}
        }
    }

    fn accept(&mut self) {
        self.rests_until = None;
        loop {
            let stream = match self.door.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // Such as too few descriptors, which lasts: the door can be read all the time meanwhile.
                Err(_) => return self.rests_until = Some(Instant::now() + REST),
            };
            if !door::is_ours(&stream) {
                continue;
            }
            if let Ok(link) = FrameLink::of_socket(stream) {
                self.last_client += 1;
                self.clients.insert(self.last_client, link);
            }
        }
    }

    /// How long nobody is let in.
    pub fn rest(&self) -> Option<Duration> {
        let rest = self.rests_until?.checked_duration_since(Instant::now())?;
        (!rest.is_zero()).then_some(rest)
    }

    fn on_client(&mut self, client: u32) {
        let Some(link) = self.clients.get_mut(&client) else { return };
        let went = link.serve();
        let sane = loop {
            match link.next_frame() {
                Ok(Some(bytes)) => self.seen.push_back(Seen::Asked { client, bytes: ByteString(bytes) }),
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        if went.is_err() || !sane {
            self.lose(client);
        }
    }

    fn lose(&mut self, client: u32) {
        if self.clients.remove(&client).is_some() {
            self.seen.push_back(Seen::ClientGone { client });
        }
    }

    fn start(&mut self, tid: i32, program: &Program) {
        let started = command(program, tid).and_then(|(mut command, prints)| {
            launch::end_with_us(&mut command);
            let mut child = command.spawn().map_err(|error| match error.kind() {
                ErrorKind::NotFound | ErrorKind::PermissionDenied => code::NO_FILE,
                _ => code::OUT_OF_RES,
            })?;
            // The command has the other end of the pipe.
            drop(command);
            let end = launch::end_of(child.id()).map_err(|_| {
                let _ = (child.kill(), child.wait());
                code::OUT_OF_RES
            })?;
            Ok(TaskProcess { child: Some((child, end)), prints: Some(prints) })
        });
        let pid = match started {
            Ok(process) => {
                let pid = process.pid();
                self.processes.insert(tid, process);
                pid
            }
            Err(code) => code,
        };
        self.seen.push_back(Seen::Started { tid, pid });
    }

    fn on_printed(&mut self, tid: i32) {
        let Some(process) = self.processes.get_mut(&tid) else { return };
        let Some(prints) = &mut process.prints else { return };
        let mut piece = vec![0; 1 << 12];
        match prints.read(&mut piece) {
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => return,
            Ok(length) => piece.truncate(length),
            Err(_) => piece.clear(),
        }
        if piece.is_empty() {
            process.prints = None;
        }
        self.seen.push_back(Seen::Printed { tid, bytes: ByteString(piece) });
        self.drop_ended(tid);
    }

    fn on_ended(&mut self, tid: i32) {
        let Some(process) = self.processes.get_mut(&tid) else { return };
        if process.reap() {
            self.seen.push_back(Seen::Ended { tid });
        }
        self.drop_ended(tid);
    }

    fn drop_ended(&mut self, tid: i32) {
        if self.processes.get(&tid).is_some_and(|process| process.child.is_none() && process.prints.is_none()) {
            self.processes.remove(&tid);
        }
    }

    /// The log is made when there is something to be written, and appended to: `pvml.<user>` where others have it.
    pub fn log(&mut self) -> Option<&mut File> {
        if self.log.is_none() {
            let folder = std::env::var("PVM_TMP").unwrap_or_else(|_| "/tmp".to_owned());
            self.log = open_log(&Path::new(&folder).join(format!("pvml.{}", door::suffix())));
        }
        self.log.as_mut()
    }

    pub fn write_log(&mut self, line: &[u8]) {
        let _ = self.log().map(|log| log.write_all(line));
    }

    /// Ends all processes; those that do not end when asked to are killed.
    fn end(&mut self) {
        self.has_ended = true;
        self.clients.values_mut().for_each(FrameLink::flush);
        let mut left: Vec<&mut TaskProcess> = self.processes.values_mut().filter(|of| of.child.is_some()).collect();
        left.iter().for_each(|process| send_signal(process.pid(), libc::SIGTERM));
        let begin = Instant::now();
        while !left.is_empty() && begin.elapsed() < GRACE {
            left.retain_mut(|process| !process.reap());
            std::thread::sleep(Duration::from_millis(5));
        }
        for process in left {
            send_signal(process.pid(), libc::SIGKILL);
            process.await_end();
        }
    }
}

/// What somebody else has put there is left alone: a link, a pipe, or a file of another user.
fn open_log(path: &Path) -> Option<File> {
    let mut options = File::options();
    options.append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let is_ours = |about: Metadata| about.is_file() && about.uid() == weft_kernel::user();
    options.open(path).ok().filter(|file| file.metadata().is_ok_and(is_ours))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_log_is_a_file_of_this_user_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("weft-pvm-log-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let [plain, link, pipe] = ["plain", "link", "pipe"].map(|name| folder.join(name));
        assert!(open_log(&plain).is_some() && open_log(&plain).is_some());
        std::os::unix::fs::symlink(&plain, &link).expect("a link");
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
        assert!(open_log(&link).is_none() && open_log(&pipe).is_none());
        // With a reader it can be opened, and would be written to.
        let reader = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&pipe).expect("a reader");
        assert!(open_log(&pipe).is_none());
        drop(reader);
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
