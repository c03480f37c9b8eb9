//! The agent: what runs on each host of a job on several, and stands there for the launcher.
//!
//! It is started through the launch command and talks to the launcher over its own standard input and output. It finds
//! the programs, makes the segment of its host and the sockets of its ranks, and forks the keeper as a launcher does.
//! From then on it only passes on: records of the keeper, and the streams of the ranks.
//!
//! When the launcher is gone, which shows by the end of its standard input, it lets the keeper end everything. When it
//! is killed itself, the keeper does so by itself.

use crate::branch::Branch;
use crate::descriptors::{self, Here, OurHalf};
use crate::keeper::{self, Keeper, Kept};
use crate::link::{KeeperMessage, ReceivedRecord};
use crate::members::HostMembers;
use crate::network::MakeLanes;
use crate::pmix::{PmixOutlook, PmixServer};
use crate::relay::{Relay, RelayPlace, output_stream};
use crate::stage::Instead;
use crate::{Destination, Job, JobId, LaunchError, RankOutput, checksum, cores, libraries, network, sys};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;
use weft_cluster::frame::{AgentHello, Channel, Frame, Frames, HostStart, RankStream};
use weft_cluster::usage::NOBODY;
use weft_kernel::EventLoop;
use weft_wire::job_map::JobMap;
use weft_wire::settings::{DeviceName, Settings};

/// Lives as the agent of one job; answers the exit code. `segment` makes the shared memory of so many members.
/// `lanes` makes lanes past the kernel, where that is permitted. In a copy, what is beside it stands `in_place_of` the
/// libraries in that directory of the launcher.
pub fn serve(
    segment: impl FnOnce(u32) -> Result<OwnedFd, String>,
    lanes: MakeLanes,
    in_place_of: Option<&Path>,
) -> i32 {
    sys::set_name(c"weft-agent");
    let instead = in_place_of.and_then(Instead::of);
    match greet().map(|relay| run(relay, segment, lanes, instead.as_ref())) {
        Ok(code) => code,
        Err(error) => fail(&error),
    }
}

/// Nobody listens to anything else then.
fn fail(error: &dyn std::fmt::Display) -> i32 {
    eprintln!("weft agent: {error}");
    1
}

/// Takes standard input and output for the link, so that nothing else is read or written there, and says hello.
fn greet() -> std::io::Result<Relay> {
    let incoming = std::io::stdin().as_fd().try_clone_to_owned()?;
    let outgoing = std::io::stdout().as_fd().try_clone_to_owned()?;
    let nothing = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    sys::replace(0, &nothing)?;
    sys::replace(1, &nothing)?;
    // The launch command has made them for us alone.
    sys::set_nonblocking(&incoming)?;
    sys::set_nonblocking(&outgoing)?;
    let mut relay = Relay::new(incoming, outgoing, Frames::default());
    relay.greet();
    relay.send(&Frame::Hello(AgentHello {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        checksum: checksum::of_this_program()?,
        pid: std::process::id(),
        host: sys::host_name(),
        addresses: sys::interface_addresses(),
    }));
    Ok(relay)
}

fn run(
    mut relay: Relay,
    segment: impl FnOnce(u32) -> Result<OwnedFd, String>,
    lanes: MakeLanes,
    instead: Option<&Instead>,
) -> i32 {
    let mut branch = Branch::default();
    let mut interest = match Interest::new() {
        Ok(interest) => interest,
        Err(error) => return fail(&error),
    };
    let mut frame = wait_for_frame(&mut interest, &mut relay, &mut branch);
    if let Some(Frame::Launch { directory, commands }) = &frame {
        (branch, relay) = match Branch::start(relay, directory, commands) {
            Ok(started) => started,
            Err(error) => return fail(&error),
        };
        frame = wait_for_frame(&mut interest, &mut relay, &mut branch);
    }
    let Some(Frame::Start(mut start)) = frame else { return 1 };
    if let Some(instead) = instead {
        lead_to_copies(&mut start, instead);
    }
    let prepared = PreparedJob::new(*start, segment)
        .and_then(|prepared| with_pmix(prepared, &mut interest, &mut relay, &mut branch));
    let mut prepared = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return refuse(&mut interest, &mut relay, &mut branch, &error),
    };
    relay.send(&Frame::Ready(prepared.ports.clone()));
    let Some(Frame::Go(map)) = wait_for_frame(&mut interest, &mut relay, &mut branch) else {
        prepared.here.pmix.into_iter().for_each(|(server, _)| server.end());
        return 1;
    };
    let members = HostMembers::of(&prepared.job.inherit);
    let (ours, keeper) = match prepared.connect(&map, lanes) {
        Ok(halves) => halves,
        Err(error) => return refuse(&mut interest, &mut relay, &mut branch, &error),
    };
    match keeper.start((ours, relay, branch)) {
        // The claims on cores stay, here and in the keeper, until both are gone.
        Ok((kept, (ours, relay, branch))) => Agent::new(relay, kept, ours, branch, members).watch(interest),
        Err(error) => fail(&error),
    }
}

/// Of whom an agent waits to hear.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaker {
    Keeper,
    Pmix,
    Branch,
    Relay(RelayPlace),
}

type Interest = EventLoop<Speaker>;

/// The next frame of the launcher; nothing when it is gone.
fn wait_for_frame(interest: &mut Interest, relay: &mut Relay, branch: &mut Branch) -> Option<Frame> {
    loop {
        if let Some(frame) = relay.poll_frame() {
            return Some(frame);
        }
        if relay.gone().is_some() {
            return None;
        }
        turn(interest, relay, branch, None);
    }
}

/// Waits for something to do, for so long, and does what is the relay's and the branch's. Answers whether there is
/// something for others.
fn turn(interest: &mut Interest, relay: &mut Relay, branch: &mut Branch, limit: Option<Duration>) -> bool {
    relay.interest().into_iter().for_each(|(fd, events, place)| interest.ask(fd, events, Speaker::Relay(place)));
    if let Some(fd) = branch.fd() {
        interest.ask(fd, libc::POLLIN, Speaker::Branch);
    }
    let found = interest.turn(limit).unwrap_or_else(|error| {
        relay.break_off(&error.to_string());
        Vec::new()
    });
    let mut is_for_others = false;
    for (token, events) in found {
        match token {
            Speaker::Keeper | Speaker::Pmix => is_for_others = true,
            Speaker::Branch => branch.handle(relay),
            Speaker::Relay(place) => relay.handle(place, events),
        }
    }
    is_for_others
}

/// Lets the ranks load the libraries beside us, and be our program.
fn lead_to_copies(start: &mut HostStart, instead: &Instead) {
    for program in &mut start.programs {
        program.program = instead.program(&program.program).unwrap_or_else(|| std::mem::take(&mut program.program));
    }
    for (name, value) in &mut start.environment {
        *value = name.to_str().and_then(|name| instead.value(name, value)).unwrap_or_else(|| std::mem::take(value));
    }
    if instead.has_libraries() && !start.environment.iter().any(|(name, _)| name == libraries::VARIABLE) {
        start.environment.push((libraries::VARIABLE.into(), instead.library_path("".as_ref())));
    }
    for (name, value) in start.programs.iter_mut().flat_map(|program| &mut program.environment) {
        if let Some(led) = instead.value(name, value.as_ref()) {
            *value = led.to_string_lossy().into_owned();
        }
    }
}

/// Starts the PMIx server where one is wanted. What the agent carries for others goes on meanwhile, and the end of the
/// launcher is seen.
fn with_pmix(
    mut prepared: PreparedJob,
    interest: &mut Interest,
    relay: &mut Relay,
    branch: &mut Branch,
) -> Result<PreparedJob, LaunchError> {
    let Some(brought) = prepared.wanted_pmix()? else { return Ok(prepared) };
    relay.send(&Frame::PmixBegins);
    let mut beginning = prepared.here.begin_pmix(&prepared.job, brought)?;
    loop {
        relay.take_frames();
        let left = match beginning.look()? {
            PmixOutlook::Serves(server, environments) => {
                prepared.here.pmix = Some((server, environments));
                return Ok(prepared);
            }
            PmixOutlook::Wait(same, left) => {
                beginning = same;
                left
            }
        };
        if relay.gone().is_some() {
            beginning.give_up();
            return Err(LaunchError::Pmix("nobody waits for it".to_owned()));
        }
        interest.ask(beginning.fd(), libc::POLLIN, Speaker::Pmix);
        turn(interest, relay, branch, Some(left));
    }
}

/// Says why it cannot be, and stays until that has been heard.
fn refuse(interest: &mut Interest, relay: &mut Relay, branch: &mut Branch, error: &LaunchError) -> i32 {
    relay.send(&Frame::Refused { code: error.exit_code(), reason: error.to_string() });
    while wait_for_frame(interest, relay, branch).is_some() {}
    1
}

/// Everything that can fail before the job begins is done.
struct PreparedJob {
    job: Job,
    here: Here,
    limits: (u64, u64),
    cores: Option<Vec<weft_cluster::placement::Core>>,
    _claims: cores::Claims,
    ports: Vec<(u16, u16)>,
    /// What has to stay for lanes to work, here and in the keeper: the filter goes with the last of us.
    lanes: Option<Box<dyn std::any::Any>>,
}

impl PreparedJob {
    fn new(start: HostStart, segment: impl FnOnce(u32) -> Result<OwnedFd, String>) -> Result<Self, LaunchError> {
        let members = start.ranks.len();
        let bad_directory = |error| LaunchError::Directory { directory: start.directory.clone(), error };
        std::env::set_current_dir(&start.directory).map_err(bad_directory)?;
        descriptors::keep_the_outer_jobs();
        let limits = descriptors::make_room(members)?;
        let (cores, claims) = cores::place(start.bind, members)?;
        let segment = segment(members as u32).map_err(LaunchError::Segment)?;
        let mut ports = Vec::new();
        let mut own = Vec::new();
        for _ in 0..members {
            let (sockets, at) = network::sockets()?;
            ports.push(at);
            own.push(sockets);
        }
        let environment: HashMap<_, _> = start.environment.into_iter().collect();
        let mut programs = start.programs;
        if let Some(path) = environment.get("PATH".as_ref() as &std::ffi::OsStr).map(|path| path.to_string_lossy()) {
            // Programs are found by the launcher's path, not by that of this process.
            let path = ("PATH".to_owned(), path.into_owned());
            programs.iter_mut().for_each(|program| program.environment.insert(0, path.clone()));
        }
        let job = Job {
            front: start.front,
            id: JobId::named(start.job, start.secret),
            programs,
            bind: start.bind,
            stdin: start.stdin,
            output: RankOutput {
                tag: false,
                streams: start.output.map(|path| path.map_or(Destination::Merged, Destination::Each)),
                log: None,
            },
            timeout: None,
            inherit: vec![(crate::SEGMENT_VARIABLE.to_owned(), segment)],
            hosts: None,
            keep_going: false,
            starter: None,
            network: false,
            partition: None,
            cores: start.cores,
        };
        let ranks = start.ranks.iter().map(|rank| *rank as usize).collect();
        let hosts = (start.hosts, start.places.iter().map(|host| *host as usize).collect());
        let here = Here { ranks, size: start.size as usize, environment, own, with_the_user: false, hosts, pmix: None };
        Ok(Self { job, here, limits, cores, _claims: claims, ports, lanes: None })
    }

    /// Looks for the programs: what is missing is told before any rank of any host runs. Answers whether they want a
    /// PMIx server, with the library that they bring along.
    fn wanted_pmix(&self) -> Result<Option<Option<PathBuf>>, LaunchError> {
        let setting = self.settings().pmix;
        let (mut wanted, mut brought) = (false, None);
        for program in &self.job.programs {
            let path = crate::program::find(program)?;
            if crate::program::wants_pmix(&path, &libraries::needed(&path), self.here.size, setting)? {
                wanted = true;
                brought = brought.or_else(|| libraries::pmix_of(&path));
            }
        }
        Ok(wanted.then_some(brought))
    }

    /// What programs are given counts before what all inherit, and of the first before that of others. What is wrong
    /// with them was said by the launcher.
    fn settings(&self) -> Settings {
        let given = self.job.programs.iter().rev().flat_map(|program| &program.environment);
        let mut all: HashMap<&OsStr, &OsStr> =
            self.here.environment.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())).collect();
        all.extend(given.map(|(name, value)| (OsStr::new(name), OsStr::new(value))));
        Settings::from_env(all).unwrap_or_default()
    }

    /// Lanes for our ranks, if the job asks for them and they can be had. Who asks is told why not.
    fn make_lanes(&mut self, map: &JobMap, make: MakeLanes) {
        let settings = self.settings();
        let others = network::addresses_of_others(map);
        if others.is_empty() || !settings.device.contains(DeviceName::Xdp) {
            return;
        }
        let ports: Vec<u16> = self.ports.iter().map(|(_, udp)| *udp).collect();
        match make(&others, &ports, settings.xdp_mode) {
            Ok(lanes) => {
                if let Some(note) = &lanes.note {
                    eprintln!("weft agent: host {}: {note}", sys::host_name());
                }
                self.job.inherit.push((network::LANES_VARIABLE.to_owned(), lanes.memory));
                for (own, sockets) in self.here.own.iter_mut().zip(lanes.sockets) {
                    own.extend(network::LANE_VARIABLES.into_iter().zip(sockets));
                }
                self.lanes = Some(lanes.attached);
            }
            Err(why) => eprintln!("weft agent: host {}: no xdp, udp is used: {why}", sys::host_name()),
        }
    }

    /// Everything but the fork.
    fn connect(&mut self, map: &[u8], lanes: MakeLanes) -> Result<(OurHalf, Keeper), LaunchError> {
        let decoded = JobMap::decode(map).map_err(|error| LaunchError::Map(error.to_string()))?;
        self.make_lanes(&decoded, lanes);
        self.job.inherit.push(network::map_in_memory(map)?);
        let here = std::mem::take(&mut self.here);
        let (ours, starts, faults) = descriptors::connect(&self.job, here, self.cores.take())?;
        let inherit = std::mem::take(&mut self.job.inherit).into_iter().map(|(_, fd)| fd).collect();
        let mask = sys::SignalSet::of(&[]).block().map_err(LaunchError::system("signals"))?;
        Ok((ours, Keeper { starts, inherit, limits: self.limits, mask, faults, grace: keeper::GRACE }))
    }
}

/// The agent of a job that runs.
struct Agent {
    relay: Relay,
    kept: Kept,
    branch: Branch,
    /// Messages for the keeper that found no room.
    unsent: Vec<KeeperMessage>,
    /// The keeper has said all that it will say.
    over: bool,
    /// What ranks say in their shared memory.
    members: Option<HostMembers>,
    /// The PMIx server of this host.
    pmix: Option<PmixServer>,
}

impl Agent {
    fn new(mut relay: Relay, kept: Kept, ours: OurHalf, branch: Branch, members: Option<HostMembers>) -> Self {
        let channel = |member: usize, stream| Channel { member: member as u32, stream };
        for (member, socket) in ours.pmi.into_iter().enumerate() {
            relay.add_socket(channel(member, RankStream::Pmi), socket.into());
        }
        for source in ours.sources {
            relay.add_reader(channel(source.rank, output_stream(source.sink)), source.pipe);
        }
        for (member, pipe) in ours.inputs {
            // One that waits would hold all others up.
            if sys::set_nonblocking(&pipe).is_ok() {
                relay.add_writer(channel(member, RankStream::Input), pipe);
            }
        }
        Self { relay, kept, branch, unsent: Vec::new(), over: false, members, pmix: ours.pmix }
    }

    fn watch(mut self, mut interest: Interest) -> i32 {
        loop {
            while let Some(frame) = self.relay.poll_frame() {
                self.handle_frame(&frame);
            }
            let over = self.over && self.branch.is_over();
            if self.relay.gone().is_some() || (over && self.relay.has_sent_all()) {
                return self.leave();
            }
            let events = if self.unsent.is_empty() { libc::POLLIN } else { libc::POLLIN | libc::POLLOUT };
            if !self.over {
                interest.ask(self.kept.link.fd(), events, Speaker::Keeper);
            }
            let pmix = self.pmix.as_ref().and_then(PmixServer::interest);
            // What it says waits while much is to be sent already.
            if let Some((fd, events)) = pmix.filter(|_| self.relay.has_room()) {
                interest.ask(fd, events, Speaker::Pmix);
            }
            if turn(&mut interest, &mut self.relay, &mut self.branch, None) {
                self.read_pmix();
                self.handle_link();
            }
        }
    }

    /// The keeper sees the end of its link, ends what still lives, and goes.
    fn leave(self) -> i32 {
        let Self { kept: Kept { link, pid }, relay, mut branch, over, pmix, .. } = self;
        drop(link);
        // Agents that we have started find us gone.
        drop(relay);
        sys::wait_for(pid);
        pmix.into_iter().for_each(PmixServer::end);
        branch.end();
        if over { 0 } else { 1 }
    }

    fn handle_frame(&mut self, frame: &Frame) {
        match frame {
            Frame::Signal { signal } => self.tell(KeeperMessage::Signal { signal: *signal }),
            Frame::SignalOne { member, signal } => {
                self.tell(KeeperMessage::SignalOne { rank: *member as usize, signal: *signal });
            }
            Frame::Kill => self.tell(KeeperMessage::Kill),
            Frame::AskDoing => {
                let doing = self.members.as_ref().map_or_else(Vec::new, HostMembers::doing);
                self.relay.send(&Frame::Doing(doing));
            }
            Frame::Pmix(piece) => self.pmix.iter_mut().for_each(|server| server.tell(piece)),
            _ => self.relay.break_off("the launcher said what means nothing here"),
        }
    }

    fn tell(&mut self, message: KeeperMessage) {
        if !self.unsent.is_empty() || !self.kept.link.try_send(&message) {
            self.unsent.push(message);
        }
    }

    fn handle_link(&mut self) {
        let unsent = std::mem::take(&mut self.unsent);
        unsent.into_iter().for_each(|message| self.tell(message));
        while !self.over {
            match self.kept.link.try_receive() {
                ReceivedRecord::Message(message) => self.handle_message(message),
                ReceivedRecord::NothingYet => return,
                ReceivedRecord::Gone => self.handle_keeper_gone(),
            }
        }
    }

    /// Passes on what the PMIx server has said.
    fn read_pmix(&mut self) {
        let Some(server) = self.pmix.as_mut() else { return };
        server.flush();
        while let Some(piece) = server.poll_piece() {
            self.relay.send(&Frame::Pmix(piece));
        }
        if server.is_gone() && !self.over {
            self.pmix = None;
            self.relay.send(&Frame::PmixGone);
        }
    }

    fn handle_message(&mut self, message: KeeperMessage) {
        match message {
            KeeperMessage::Started { rank, pid } => self.relay.send(&Frame::Started { member: rank as u32, pid }),
            KeeperMessage::NotStarted { rank, errno } => {
                self.relay.send(&Frame::NotStarted { member: rank as u32, errno })
            }
            KeeperMessage::Ended { rank, exit } => {
                let member = rank as u32;
                // What it said before it ended comes first.
                self.relay.drain(|channel| channel == Channel { member, stream: RankStream::Pmi });
                self.read_pmix();
                self.relay.send(&Frame::Ended { member, exit });
            }
            KeeperMessage::Used { rank, usage } => {
                let sent = rank.and_then(|rank| self.members.as_ref()?.sent(rank));
                let member = rank.map_or(NOBODY, |rank| rank as u32);
                self.relay.send(&Frame::Used { member, usage, sent });
            }
            KeeperMessage::Failed { rank, text } => self.relay.send(&Frame::Failed { member: rank as u32, text }),
            KeeperMessage::Over { leftovers } => self.handle_over(leftovers),
            KeeperMessage::Signal { .. } | KeeperMessage::SignalOne { .. } | KeeperMessage::Kill => {}
        }
    }

    /// The keeper was killed. Its children are ours now, and what it did last is ours to do.
    fn handle_keeper_gone(&mut self) {
        keeper::kill_orphans();
        self.relay.send(&Frame::KeeperGone { pid: self.kept.pid as u32 });
        self.handle_over(0);
    }

    /// Nobody is left who could write: what is in the pipes is all.
    fn handle_over(&mut self, leftovers: usize) {
        self.relay.drain(|channel| !channel.stream.is_of_command());
        self.relay.send(&Frame::Over { leftovers: leftovers as u32 });
        self.over = true;
    }
}
