//! What the launcher's loop waits for, and what it does when it comes.

use super::*;
use crate::relay::RelayPlace;
use libc::{POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT};
use weft_kernel::EventLoop;

/// Read from a rank's stream at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// Whom a descriptor belongs to. None is opened while the loop runs but those of spawned jobs, which have numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// Of a watch near by.
    Keeper(usize),
    /// Of a watch on another host.
    Relay(usize, RelayPlace),
    /// What the launch command of another host says.
    Error(usize),
    Guard,
    Signal,
    Pmi(usize),
    /// The PMIx server of this host.
    Pmix,
    /// By descriptor, since streams come and go.
    Stream(i32),
    Sink(usize),
    Input,
    InputPipe(i32),
    /// The launcher of a spawned job.
    Spawned(usize),
    /// Who has had this job started.
    Starter,
}

/// What one turn waits for: who is not to be read now is not in it.
pub type Interest = EventLoop<Token>;

impl Supervisor {
    pub(super) fn ask(&self, interest: &mut Interest) {
        for (number, watch) in self.watches.iter().enumerate() {
            match &watch.way {
                WatchWay::Far { relay, .. } if watch.over && relay.carries() => {
                    for (fd, events, place) in relay.interest() {
                        interest.ask(fd, events, Token::Relay(number, place));
                    }
                }
                _ if watch.over => {}
                WatchWay::Near { kept, .. } => interest.ask(kept.link.fd(), POLLIN, Token::Keeper(number)),
                WatchWay::Far { relay, error, .. } => {
                    if let Some(fd) = error.fd() {
                        interest.ask(fd, POLLIN, Token::Error(number));
                    }
                    for (fd, events, place) in relay.interest() {
                        interest.ask(fd, events, Token::Relay(number, place));
                    }
                }
            }
        }
        if let Some(guard) = self.guard.as_ref().filter(|_| !self.is_over()) {
            interest.ask(guard.kept.link.fd(), POLLIN, Token::Guard);
        }
        interest.ask(self.signals.fd(), POLLIN, Token::Signal);
        for spawned in &self.spawned.live {
            interest.ask(spawned.fd(), POLLIN, Token::Spawned(spawned.number));
        }
        if let Some(starter) = self.spawned.starter.as_ref().filter(|_| !self.is_over()) {
            interest.ask(starter.descriptor(), POLLIN, Token::Starter);
        }
        for (rank, peer) in self.peers.iter().enumerate() {
            // What a rank says may come before the word of its start, and is read after it.
            if let Some(socket) = peer.socket.as_ref().filter(|_| self.state.pid(rank).is_some()) {
                let read = if peer.queue.len() < PMI_QUEUE_BYTES { POLLIN } else { 0 };
                let write = if peer.queue.is_empty() { 0 } else { POLLOUT };
                interest.ask(socket.as_raw_fd(), read | write, Token::Pmi(rank));
            }
        }
        if let Some((fd, events)) = self.managers.pmix_here.as_ref().and_then(PmixServer::interest) {
            interest.ask(fd, events, Token::Pmix);
        }
        for stream in &self.streams {
            let RankSource { rank, sink, ref pipe } = stream.source;
            if self.half.sinks[sink].merger.has_room(rank) {
                interest.ask(pipe.as_raw_fd(), POLLIN, Token::Stream(pipe.as_raw_fd()));
            }
        }
        for (number, sink) in self.half.sinks.iter().enumerate().filter(|(_, sink)| sink.has_work()) {
            interest.ask(sink.fd(), POLLOUT, Token::Sink(number));
        }
        if let Some(pump) = &self.half.pump {
            Self::ask_for_pump(pump, interest);
        }
    }

    fn ask_for_pump(pump: &crate::stdin::Pump, interest: &mut Interest) {
        if pump.wants_input() {
            interest.ask(pump.source(), POLLIN, Token::Input);
        }
        for (pipe, wants) in pump.targets() {
            // Without events asked for, the end of the reader still shows.
            interest.ask(pipe, if wants { POLLOUT } else { 0 }, Token::InputPipe(pipe));
        }
    }

    pub(super) fn handle(&mut self, token: Token, found: i16) {
        match token {
            Token::Keeper(watch) => self.handle_keeper(watch),
            Token::Relay(watch, place) => self.handle_relay(watch, place, found),
            Token::Error(watch) => self.read_error(watch),
            Token::Guard => self.handle_guard(),
            Token::Signal => {
                while let Some(signal) = self.signals.poll_signal() {
                    self.handle_signal(signal);
                }
            }
            Token::Pmi(rank) => {
                self.flush_pmi(rank);
                if found & (POLLIN | POLLHUP | POLLERR) != 0 {
                    self.read_pmi(rank);
                }
            }
            Token::Pmix => self.read_pmix(),
            Token::Stream(fd) => self.read_stream(fd, false),
            Token::Sink(number) => self.write_sink(number),
            Token::Spawned(number) => self.handle_spawned(number),
            Token::Starter => self.handle_starter(),
            Token::Input => self.pump(|pump| pump.handle_readable()),
            Token::InputPipe(pipe) if found & (POLLERR | POLLNVAL) != 0 => {
                self.pump(|pump| pump.handle_reader_gone(pipe));
            }
            Token::InputPipe(_) => self.pump(|pump| pump.push()),
        }
    }

    fn handle_keeper(&mut self, watch: usize) {
        while !self.watches[watch].over {
            let WatchWay::Near { kept, .. } = &self.watches[watch].way else { return };
            match kept.link.try_receive() {
                ReceivedRecord::Message(message) => self.handle_message(watch, message),
                ReceivedRecord::NothingYet => return,
                ReceivedRecord::Gone => {
                    let pid = kept.pid;
                    self.handle_keeper_gone(watch, pid);
                }
            }
        }
    }

    /// Messages name members of the watch.
    pub(super) fn handle_message(&mut self, watch: usize, message: KeeperMessage) {
        let rank_of = |member: usize| self.watches[watch].ranks[member];
        match message {
            KeeperMessage::Started { rank, pid } => self.state.handle_started(rank_of(rank), pid),
            KeeperMessage::NotStarted { rank, errno } => {
                let rank = rank_of(rank);
                let reason = std::io::Error::from_raw_os_error(errno).to_string();
                let decision = self.state.handle_not_started(rank, &self.programs[rank], &reason);
                self.obey(decision);
            }
            KeeperMessage::Ended { rank, exit } => {
                let rank = rank_of(rank);
                // What it said before it ended comes first.
                self.read_pmi(rank);
                self.read_pmix();
                if self.members.as_ref().is_some_and(|members| members.has_left(rank)) {
                    self.state.handle_finalised(rank);
                }
                self.spawned.tell_starter(rank, exit);
                let decision = self.state.handle_exit(rank, exit);
                self.peers[rank].socket = None;
                self.obey(decision);
            }
            KeeperMessage::Used { rank, usage } => {
                let sent = rank.and_then(|member| self.members.as_ref()?.sent(member));
                self.recorder.handle_used(rank.map(rank_of), usage, sent);
            }
            KeeperMessage::Failed { rank, text } => self.recorder.handle_failed(rank_of(rank), &text),
            KeeperMessage::Over { leftovers } => {
                self.leftovers += leftovers;
                self.handle_over(watch);
            }
            KeeperMessage::Signal { .. } | KeeperMessage::SignalOne { .. } | KeeperMessage::Kill => {}
        }
    }

    /// The keeper was killed. Its children are ours now, and what it did last is ours to do.
    fn handle_keeper_gone(&mut self, watch: usize, pid: i32) {
        self.break_down(&format!("its keeper process (pid {pid}) was killed"));
        keeper::kill_orphans();
        self.handle_over(watch);
    }

    /// Nobody is left there who could write: what is in the pipes is all.
    pub(super) fn handle_over(&mut self, watch: usize) {
        self.watches[watch].over = true;
        let ranks = self.watches[watch].ranks.clone();
        ranks.iter().for_each(|rank| self.peers[*rank].socket = None);
        let theirs = |stream: &WatchedStream| ranks.binary_search(&stream.source.rank).is_ok();
        while let Some(stream) = self.streams.iter().find(|stream| theirs(stream)) {
            let RankSource { rank, sink, ref pipe } = stream.source;
            self.read_stream(pipe.as_raw_fd(), true);
            self.take_rest(watch, rank, sink);
        }
        if let WatchWay::Far { relay, .. } = &mut self.watches[watch].way {
            relay.close();
        }
        if self.is_over() {
            self.handle_all_over();
        }
    }

    fn handle_all_over(&mut self) {
        if self.state.is_over() && self.leftovers > 0 {
            let processes = if self.leftovers == 1 { "process" } else { "processes" };
            say(&self.front, format_args!("{} {processes} left behind by the ranks ended", self.leftovers));
        }
        self.timers.stop(Deadline::GiveUp);
        self.stop_timers_without_jobs();
        self.half.pump = None;
        self.half.sinks.iter_mut().for_each(|sink| sink.merger.handle_end_of_all());
    }

    fn handle_signal(&mut self, signal: i32) {
        match signal {
            libc::SIGTSTP => {
                self.tell(KeeperMessage::Signal { signal });
                self.spawned.signal(signal);
                signals::stop_here();
            }
            libc::SIGINT if self.is_over() => self.leave = Some(128 + signal),
            libc::SIGINT => self.handle_interrupt(),
            libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT if self.is_over() => self.leave = Some(128 + signal),
            _ => {
                self.tell(KeeperMessage::Signal { signal });
                self.spawned.signal(signal);
            }
        }
    }

    /// The first interrupt is for the ranks, the second for us.
    fn handle_interrupt(&mut self) {
        self.interrupts += 1;
        if self.interrupts == 1 {
            self.tell(KeeperMessage::Signal { signal: libc::SIGINT });
            self.spawned.signal(libc::SIGINT);
            return;
        }
        let _ = self.state.handle_insistence(libc::SIGINT);
        self.report();
        self.end_by_force();
    }

    fn read_pmi(&mut self, rank: usize) {
        let mut bytes = [0; 4096];
        while let Some(socket) = self.peers[rank].socket.as_mut() {
            match socket.read(&mut bytes) {
                Ok(0) => self.peers[rank].socket = None,
                Ok(count) => self.managers.pmi.handle_bytes(rank, &bytes[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(_) => self.peers[rank].socket = None,
            }
            self.handle_pmi_events();
            if self.peers[rank].queue.len() >= PMI_QUEUE_BYTES {
                break;
            }
        }
    }

    pub(super) fn handle_pmi_events(&mut self) {
        while let Some(event) = self.managers.pmi.poll_event() {
            match event {
                PmiEvent::Reply { rank, line } => {
                    self.peers[rank].queue.extend_from_slice(line.as_bytes());
                    self.flush_pmi(rank);
                }
                PmiEvent::Initialised { rank, interface } => {
                    self.state.handle_interface(rank, interface);
                    let decision = self.state.handle_initialised(rank);
                    self.obey(decision);
                }
                PmiEvent::Finalised { rank } => self.state.handle_finalised(rank),
                PmiEvent::Abort { rank, code, message, lost } => {
                    let decision = self.state.handle_abort(rank, code, &message, lost);
                    self.obey(decision);
                }
                PmiEvent::Spawn { door, .. } => self.spawn(&door),
                PmiEvent::Signal { rank, signal } => self.signal_one(rank, signal),
                PmiEvent::Fault { rank, reason } => {
                    self.peers[rank].socket = None;
                    let decision = self.state.handle_fault(rank, &reason);
                    self.obey(decision);
                }
            }
        }
    }

    fn flush_pmi(&mut self, rank: usize) {
        let PmiPeer { socket, queue } = &mut self.peers[rank];
        while let (Some(open), false) = (socket.as_mut(), queue.is_empty()) {
            match open.write(queue) {
                Ok(count) => _ = queue.drain(..count),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(_) => *socket = None,
            }
        }
    }

    /// Reads a stream; `to_its_end`: everything that is there, and then it is closed.
    fn read_stream(&mut self, fd: i32, to_its_end: bool) {
        let Some(at) = self.streams.iter().position(|stream| stream.source.pipe.as_raw_fd() == fd) else { return };
        let RankSource { rank, sink, .. } = self.streams[at].source;
        // Not on the stack, of which a user may allow less.
        let mut bytes = vec![0; CHUNK_BYTES];
        let ended = loop {
            match sys::read(fd, &mut bytes) {
                Ok(0) => break true,
                Ok(count) => {
                    self.half.take_in(rank, sink, &bytes[..count]);
                    self.streams[at].heard = Instant::now();
                    self.streams[at].fresh = true;
                    if !to_its_end {
                        break false;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break to_its_end,
                Err(_) => break true,
            }
        };
        if ended {
            if !to_its_end {
                self.half.sinks[sink].merger.handle_end(rank);
            }
            self.streams.swap_remove(at);
        }
    }

    /// When nobody reads our output any more, the ranks shall learn it as if they wrote there themselves.
    fn write_sink(&mut self, number: usize) {
        let sink = &mut self.half.sinks[number];
        sink.handle_writable();
        let Some(error) = &sink.failed else { return };
        let reason = format!("standard {}: {error}", ["output", "error"][number]);
        let nobody_reads = error.kind() == std::io::ErrorKind::BrokenPipe;
        self.streams.retain(|stream| stream.source.sink != number);
        if !nobody_reads {
            self.break_down(&reason);
        }
    }

    fn pump(&mut self, act: impl FnOnce(&mut crate::stdin::Pump)) {
        if let Some(pump) = self.half.pump.as_mut() {
            act(pump);
            if pump.is_done() {
                self.half.pump = None;
            }
        }
    }
}
