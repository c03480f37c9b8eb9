//! What is different for a job on several hosts: how it begins, what agents say, and how it is left.

use super::*;
use crate::relay::{RelayPlace, output_stream};
use std::os::fd::OwnedFd;
use weft_cluster::frame::{Channel, Frame, RankStream};
use weft_cluster::usage::NOBODY;

/// Gathers the hosts and makes for every rank the pipes and the socket that it would have had here. The ranks start
/// when the launcher's loop runs.
pub fn begin(job: &Job, hosts: &LaunchHosts, size: usize, limits: (u64, u64)) -> Result<Begun, LaunchError> {
    let signals = LauncherSignals::take().map_err(LaunchError::system("signals"))?;
    let gather::Gathered { guard, hosts: gathered } = gather::gather(job, hosts, size, &signals, limits)?;
    let mut pmi: Vec<Option<UnixStream>> = (0..size).map(|_| None).collect();
    let mut ours = OurHalf::default();
    let mut watches = Vec::new();
    for (host, ranks, mut relay, error) in gathered.into_iter().filter_map(gather::GatheredHost::into_parts) {
        for (member, rank) in ranks.iter().enumerate() {
            let socket = connect(job, *rank, member as u32, &mut relay, &mut ours);
            pmi[*rank] = Some(socket.map_err(LaunchError::system("streams of a rank"))?);
        }
        let way = WatchWay::Far { host, relay: Box::new(relay), error };
        watches.push(HostWatch { ranks, way, over: false });
    }
    ours.pmi = pmi.into_iter().flatten().collect();
    let names = hosts.places.iter().map(|place| hosts.names[*place].clone()).collect();
    Ok(Begun { watches, guard: Some(guard), signals, ours, hosts: names, places: hosts.places.clone(), members: None })
}

/// The relay's half goes to the relay, ours to us; the end of the rank's PMI socket is answered.
fn connect(job: &Job, rank: usize, member: u32, relay: &mut Relay, ours: &mut OurHalf) -> std::io::Result<UnixStream> {
    let channel = |stream| Channel { member, stream };
    for (sink, stream) in job.output.streams.iter().enumerate() {
        if !matches!(stream, Destination::Each(_)) {
            let (reader, writer) = nonblocking_pipe()?;
            relay.add_writer(channel(output_stream(sink)), writer);
            ours.sources.push(RankSource { rank, sink, pipe: reader });
        }
    }
    if descriptors::reads(job.stdin, rank) {
        let (reader, writer) = nonblocking_pipe()?;
        relay.add_reader(channel(RankStream::Input), reader);
        ours.inputs.push((rank, writer));
    }
    let (near, far) = UnixStream::pair()?;
    near.set_nonblocking(true)?;
    far.set_nonblocking(true)?;
    relay.add_socket(channel(RankStream::Pmi), far.into());
    Ok(near)
}

fn nonblocking_pipe() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = std::io::pipe()?;
    sys::set_nonblocking(&reader)?;
    sys::set_nonblocking(&writer)?;
    Ok((reader.into(), writer.into()))
}

impl HostWatch {
    pub fn tell(&mut self, message: KeeperMessage) {
        match &mut self.way {
            _ if self.over => {}
            WatchWay::Near { kept, unsent } => {
                if !kept.link.try_send(&message) {
                    unsent.push(message);
                }
            }
            WatchWay::Far { relay, .. } => match message {
                KeeperMessage::Signal { signal } => relay.send(&Frame::Signal { signal }),
                KeeperMessage::SignalOne { rank, signal } => {
                    relay.send(&Frame::SignalOne { member: rank as u32, signal });
                }
                KeeperMessage::Kill => relay.send(&Frame::Kill),
                _ => {}
            },
        }
    }
}

impl Supervisor {
    pub fn handle_relay(&mut self, watch: usize, place: RelayPlace, found: i16) {
        if let WatchWay::Far { relay, .. } = &mut self.watches[watch].way {
            relay.handle(place, found);
        }
        self.handle_frames(watch);
    }

    /// Takes what an agent has said.
    pub fn handle_frames(&mut self, watch: usize) {
        while !self.watches[watch].over {
            let WatchWay::Far { relay, .. } = &mut self.watches[watch].way else { return };
            match (relay.poll_frame(), relay.gone().map(str::to_owned)) {
                (Some(frame), _) => self.handle_frame(watch, &frame),
                (None, Some(reason)) => self.handle_agent_gone(watch, &reason),
                (None, None) => return,
            }
        }
        // Only what it carries for others counts yet: their agents are reached over it.
        let WatchWay::Far { host, relay, .. } = &mut self.watches[watch].way else { return };
        while relay.poll_frame().is_some() {}
        if let Some(reason) = relay.gone().filter(|_| relay.awaits_carried()) {
            let reason = format!("the agent of host '{host}', which leads to others, is gone: {reason}");
            relay.end_carrying();
            self.break_down(&reason);
        }
    }

    fn handle_frame(&mut self, watch: usize, frame: &Frame) {
        let members = self.watches[watch].ranks.len();
        if matches!(frame, Frame::CommandEnded { .. } | Frame::CommandNotStarted { .. }) {
            // What that means for the job shows at the link to the agent that it started.
            return;
        }
        let message = match *frame {
            Frame::Started { member, pid } => Some(KeeperMessage::Started { rank: member as usize, pid }),
            Frame::NotStarted { member, errno } => Some(KeeperMessage::NotStarted { rank: member as usize, errno }),
            Frame::Ended { member, exit } => Some(KeeperMessage::Ended { rank: member as usize, exit }),
            Frame::Over { leftovers } => Some(KeeperMessage::Over { leftovers: leftovers as usize }),
            Frame::Used { member: NOBODY, usage, .. } => return self.recorder.handle_used(None, usage, None),
            Frame::Used { member, usage, sent } => {
                let rank = self.watches[watch].ranks.get(member as usize).copied();
                return self.recorder.handle_used(rank, usage, sent);
            }
            Frame::PmixGone => {
                let host = self.host_of(watch);
                return self.break_down(&format!("the process with the PMIx server of host '{host}' has ended"));
            }
            Frame::Doing(ref members) => return self.handle_doing(watch, members),
            Frame::Pmix(ref piece) => return self.handle_pmix(watch, piece),
            Frame::Failed { member, ref text } => {
                Some(KeeperMessage::Failed { rank: member as usize, text: text.clone() })
            }
            Frame::KeeperGone { pid } => {
                let host = self.host_of(watch);
                return self.break_down(&format!("the keeper process (pid {pid}) on host '{host}' was killed"));
            }
            _ => None,
        };
        let is_of_the_job = |message: &KeeperMessage| match message {
            KeeperMessage::Started { rank, .. }
            | KeeperMessage::NotStarted { rank, .. }
            | KeeperMessage::Ended { rank, .. }
            | KeeperMessage::Failed { rank, .. } => *rank < members,
            _ => true,
        };
        match message.filter(is_of_the_job) {
            Some(message) => self.handle_message(watch, message),
            None => {
                let why = match frame {
                    // What only showed when the others were ready.
                    Frame::Refused { reason, .. } => reason,
                    _ => "it said what means nothing here",
                };
                if let WatchWay::Far { relay, .. } = &mut self.watches[watch].way {
                    relay.break_off(why);
                }
            }
        }
    }

    fn host_of(&self, watch: usize) -> &str {
        if let WatchWay::Far { host, .. } = &self.watches[watch].way { host } else { "" }
    }

    /// An agent that was killed has a keeper, which ends the ranks there; we end all others.
    fn handle_agent_gone(&mut self, watch: usize, reason: &str) {
        let WatchWay::Far { host, error, .. } = &mut self.watches[watch].way else { return };
        error.read();
        let reason = format!("the agent of host '{host}' is gone: {reason}{}", error.last_line());
        self.break_down(&reason);
        self.handle_over(watch);
    }

    /// Agents that have not ended their ranks in all that time are not waited for. Near by there is nobody to give up:
    /// a keeper's end always shows.
    pub fn give_up(&mut self) {
        for watch in 0..self.watches.len() {
            let over = self.watches[watch].over;
            if let (WatchWay::Far { host, relay, .. }, false) = (&mut self.watches[watch].way, over) {
                let line = format_args!("the agent of host '{host}' does not answer; the job may live on there");
                say(&self.front, line);
                relay.break_off("it does not answer");
                self.handle_frames(watch);
            }
        }
    }

    pub fn read_error(&mut self, watch: usize) {
        if let WatchWay::Far { error, .. } = &mut self.watches[watch].way {
            error.read();
        }
    }

    /// Of the keeper of the launch commands, only its death says something that the agents do not.
    pub fn handle_guard(&mut self) {
        while let Some(CommandKeeper { kept }) = &self.guard {
            match kept.link.try_receive() {
                ReceivedRecord::NothingYet => return,
                // All launch commands have ended. What that means for the job shows at their relays.
                ReceivedRecord::Message(KeeperMessage::Over { .. }) => {
                    sys::wait_for(kept.pid);
                    self.guard = None;
                }
                ReceivedRecord::Message(_) => {}
                ReceivedRecord::Gone => {
                    let pid = kept.pid;
                    self.guard = None;
                    self.break_down(&format!("the keeper process of the launch commands (pid {pid}) was killed"));
                    keeper::kill_orphans();
                }
            }
        }
    }

    /// What came for a rank's stream and had no room in the pipe to us.
    pub fn take_rest(&mut self, watch: usize, rank: usize, sink: usize) {
        let HostWatch { ranks, way, .. } = &mut self.watches[watch];
        if let (WatchWay::Far { relay, .. }, Ok(member)) = (way, ranks.binary_search(&rank)) {
            let rest = relay.take_rest(Channel { member: member as u32, stream: output_stream(sink) });
            self.half.take_in(rank, sink, &rest);
        }
        self.half.sinks[sink].merger.handle_end(rank);
    }

    /// The job is over: lets agents and launch commands end, and waits for them.
    pub fn part(&mut self) {
        if let Some(server) = self.managers.pmix_here.take() {
            server.end();
        }
        let watches = std::mem::take(&mut self.watches);
        for watch in watches {
            if let WatchWay::Near { kept, .. } = watch.way {
                sys::wait_for(kept.pid);
            }
        }
        if let Some(guard) = self.guard.take() {
            guard.end(gather::leave_time());
        }
    }
}
