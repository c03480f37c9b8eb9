//! One host on its way to being ready.

use super::*;
use crate::stage::{ASK, ASK_BYTES, FileParcel};
use std::net::IpAddr;
use std::os::fd::RawFd;

/// How far an agent has come.
pub enum Progress {
    /// What it has written so far; not a greeting yet.
    Silent(Vec<u8>),
    /// It has greeted.
    Greeted(AgentHello),
    /// It can start; the ports of its ranks.
    Ready(AgentHello, Vec<(u16, u16)>),
    /// It cannot: what the launcher is to exit with, and why.
    Refused(i32, String),
}

impl Progress {
    pub fn has_greeted(&self) -> bool {
        !matches!(self, Self::Silent(_))
    }

    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready(..))
    }

    pub fn refusal(&self) -> Option<(i32, &str)> {
        if let Self::Refused(code, reason) = self { Some((*code, reason)) } else { None }
    }
}

/// A host of the job, with the agent there.
pub struct GatheredHost {
    pub name: String,
    /// The ranks of its members.
    pub ranks: Vec<usize>,
    /// The launch command, for messages, and the host whose agent runs it if it is not this one.
    command: String,
    over: Option<String>,
    /// What its agent has said of commands that it runs: how they have ended, or why they did not begin.
    pub reports: Vec<(u32, Result<Exit, i32>)>,
    pub progress: Progress,
    link: LinkSide,
    copying: Copying,
    error: Tail,
    /// How the launch command has ended.
    pub ended: Option<Exit>,
    /// When its agent said that it starts its PMIx server.
    pmix_since: Option<Instant>,
}

/// Our side of the link to an agent.
enum LinkSide {
    /// Where it will greet, if it has not closed it, and where we will answer.
    Raw {
        output: Option<OwnedFd>,
        input: OwnedFd,
    },
    Framed(Box<Relay>),
    /// On its way from one to the other.
    Between,
}

/// What is copied to a host before its agent greets.
#[derive(Default)]
struct Copying {
    /// Where to, once it has asked.
    place: Option<String>,
    parcel: Option<FileParcel>,
    /// There is more to be written.
    is_open: bool,
}

/// What of a host is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum GatherSource {
    Error,
    Greeting,
    Copy,
    Relay(RelayPlace),
}

impl GatheredHost {
    pub fn new(
        name: &str,
        ranks: Vec<usize>,
        (command, over): (String, Option<String>),
        [input, output, error]: [OwnedFd; 3],
    ) -> Self {
        Self {
            name: name.to_owned(),
            ranks,
            command,
            over,
            reports: Vec::new(),
            progress: Progress::Silent(Vec::new()),
            link: LinkSide::Raw { output: Some(output), input },
            copying: Copying::default(),
            error: Tail { fd: Some(error), said: VecDeque::new() },
            ended: None,
            pmix_since: None,
        }
    }

    /// Until when it is waited for, where that is `usual` for hosts.
    pub fn deadline(&self, usual: Instant) -> Instant {
        self.pmix_since.map_or(usual, |since| usual.max(since + PMIX_PATIENCE))
    }

    /// Whether another host's agent starts its.
    pub fn is_below(&self) -> bool {
        self.over.is_some()
    }

    /// What the command of this number, which its agent runs, reads and writes goes by the link to it.
    pub fn carry(&mut self, number: u32, ends: [OwnedFd; 3]) {
        if let LinkSide::Framed(relay) = &mut self.link {
            branch::carry(relay, number, ends);
        }
    }

    /// The launch command, as messages name it.
    fn command(&self) -> String {
        let over = self.over.as_ref().map_or(String::new(), |over| format!(" of the agent on host '{over}'"));
        format!("'{}'{over}", self.command)
    }

    /// What is needed of it when the job runs: the link, and the standard error of the launch command. `None` for one
    /// that is not ready.
    pub fn into_parts(self) -> Option<(String, Vec<usize>, Relay, Tail)> {
        let LinkSide::Framed(relay) = self.link else { return None };
        Some((self.name, self.ranks, *relay, self.error))
    }

    pub fn addresses(&self) -> &[IpAddr] {
        match &self.progress {
            Progress::Silent(_) | Progress::Refused(..) => &[],
            Progress::Greeted(hello) | Progress::Ready(hello, _) => &hello.addresses,
        }
    }

    pub fn ports(&self) -> &[(u16, u16)] {
        if let Progress::Ready(_, ports) = &self.progress { ports } else { &[] }
    }

    pub fn send(&mut self, frame: &Frame) {
        if let LinkSide::Framed(relay) = &mut self.link {
            relay.send(frame);
        }
    }

    pub fn interest(&self, mut add: impl FnMut(RawFd, i16, GatherSource)) {
        if let Some(fd) = self.error.fd() {
            add(fd, libc::POLLIN, GatherSource::Error);
        }
        if let (LinkSide::Raw { input, .. }, true) = (&self.link, self.copying.is_open) {
            add(input.as_raw_fd(), libc::POLLOUT, GatherSource::Copy);
        }
        match &self.link {
            LinkSide::Raw { output: Some(output), .. } => add(output.as_raw_fd(), libc::POLLIN, GatherSource::Greeting),
            LinkSide::Framed(relay) => {
                relay
                    .interest()
                    .into_iter()
                    .for_each(|(fd, events, place)| add(fd, events, GatherSource::Relay(place)));
            }
            _ => {}
        }
    }

    pub fn handle(&mut self, source: GatherSource, found: i16) {
        match (source, &mut self.link) {
            (GatherSource::Error, _) => self.error.read(),
            (GatherSource::Greeting, _) => self.read_greeting(),
            (GatherSource::Copy, _) => self.copy(),
            (GatherSource::Relay(place), LinkSide::Framed(relay)) => relay.handle(place, found),
            (GatherSource::Relay(_), _) => {}
        }
    }

    /// Reads no more than a greeting: what follows it is for the relay. What is no greeting is read to be shown.
    fn read_greeting(&mut self) {
        let (LinkSide::Raw { output, .. }, Progress::Silent(seen)) = (&mut self.link, &mut self.progress) else {
            return;
        };
        let Some(open) = output else { return };
        let most =
            if MAGIC.starts_with(&seen[..seen.len().min(MAGIC.len())]) { GREETING_BYTES - seen.len() } else { 256 };
        let mut bytes = [0; 256];
        match sys::read(open.as_raw_fd(), &mut bytes[..most]) {
            Ok(count @ 1..) => seen.extend_from_slice(&bytes[..count]),
            Err(error) if sys::is_temporary(&error) => {}
            _ => *output = None,
        }
    }

    /// Writes on what it has asked for.
    fn copy(&mut self) {
        if let (LinkSide::Raw { input, .. }, Some(parcel)) = (&self.link, &mut self.copying.parcel) {
            self.copying.is_open = parcel.write(input.as_raw_fd());
        }
    }

    /// Its name, and where it has a new copy of this program.
    pub fn copied(&self) -> Option<(&str, &str)> {
        self.copying.place.as_deref().map(|place| (&*self.name, place))
    }

    pub fn copied_bytes(&self) -> usize {
        self.copying.parcel.as_ref().map_or(0, FileParcel::sent)
    }

    /// Begins to copy where that is asked for, for the first time.
    fn handle_ask(&mut self, stage: &mut StagedFiles) -> Result<(), LaunchError> {
        let Progress::Silent(seen) = &mut self.progress else { return Ok(()) };
        let asked = seen.strip_prefix(&ASK).and_then(|rest| rest.strip_suffix(b"\n"));
        let (Some(place), None) = (asked, &self.copying.place) else { return Ok(()) };
        self.copying.place = Some(shown(&String::from_utf8_lossy(place)));
        self.copying.parcel = Some(stage.parcel().map_err(LaunchError::system("reading this program"))?);
        self.copying.is_open = true;
        seen.clear();
        Ok(())
    }

    /// Takes what has come, all of it: nothing wakes us for what stays in the relay, and it may be what the agents say
    /// that this one has started. Who asks gets what `stage` has.
    pub fn advance(&mut self, stage: Option<&mut StagedFiles>) -> Result<(), LaunchError> {
        let may_ask = stage.is_some() && self.copying.place.is_none();
        if let Some(stage) = stage {
            self.handle_ask(stage)?;
        }
        if let Progress::Silent(seen) = &self.progress
            && matches!(self.link, LinkSide::Raw { .. })
        {
            let seen = seen.clone();
            self.look_at_greeting(&seen, may_ask)?;
        }
        let LinkSide::Framed(relay) = &mut self.link else { return Ok(()) };
        while let Some(frame) = relay.poll_frame() {
            match frame {
                Frame::CommandEnded { command, exit } => {
                    self.reports.push((command, Ok(exit)));
                    continue;
                }
                Frame::CommandNotStarted { command, errno } => {
                    self.reports.push((command, Err(errno)));
                    continue;
                }
                Frame::PmixBegins if matches!(self.progress, Progress::Greeted(_)) && self.pmix_since.is_none() => {
                    self.pmix_since = Some(Instant::now());
                    continue;
                }
                _ => {}
            }
            let progress = std::mem::replace(&mut self.progress, Progress::Silent(Vec::new()));
            self.progress = match (progress, frame) {
                (Progress::Silent(_), Frame::Hello(hello)) => Progress::Greeted(hello),
                (Progress::Greeted(hello), Frame::Ready(ports)) if ports.len() == self.ranks.len() => {
                    Progress::Ready(hello, ports)
                }
                (_, Frame::Refused { code, reason }) => Progress::Refused(code, reason),
                _ => return Err(host_error(&self.name, "its agent said what means nothing here".to_owned())),
            };
        }
        match relay.gone().map(str::to_owned) {
            Some(reason) if reason != relay::ENDED => Err(host_error(&self.name, format!("its agent: {reason}"))),
            Some(_) if self.ended.is_none() || self.error.is_open() => Ok(()),
            Some(reason) => Err(self.lost(&reason)),
            None => Ok(()),
        }
    }

    fn look_at_greeting(&mut self, seen: &[u8], may_ask: bool) -> Result<(), LaunchError> {
        let LinkSide::Raw { output, .. } = &self.link else { return Ok(()) };
        let closed = output.is_none();
        let begin = &seen[..seen.len().min(MAGIC.len())];
        let is_noise = !MAGIC.starts_with(begin);
        let asks = may_ask && ASK.starts_with(begin) && seen.len() < ASK_BYTES;
        if is_noise && (closed || !asks && (seen.contains(&b'\n') || seen.len() >= 256)) {
            return Err(self.noise(seen));
        }
        if !is_noise && seen.len() == GREETING_BYTES {
            let protocol = seen[MAGIC.len()..].iter().rev().fold(0u32, |number, byte| number << 8 | u32::from(*byte));
            if protocol != PROTOCOL {
                let reason =
                    format!("its weft speaks protocol {protocol} with launchers, this one {PROTOCOL}; {SAME_VERSION}");
                return Err(host_error(&self.name, reason));
            }
            self.link = match std::mem::replace(&mut self.link, LinkSide::Between) {
                LinkSide::Raw { output: Some(output), input } => {
                    LinkSide::Framed(Box::new(Relay::new(output, input, Frames::default())))
                }
                other => other,
            };
        }
        // How it has ended, and what it has said, comes by other ways: that is waited for.
        if closed && self.ended.is_some() && !self.error.is_open() { Err(self.lost("it has ended")) } else { Ok(()) }
    }

    /// Whether it is the same program as this one. With `staged`, it ought to be.
    pub fn check(&self, checksum: u64, staged: bool) -> Result<(), LaunchError> {
        let Progress::Greeted(hello) = &self.progress else { return Ok(()) };
        let version = env!("CARGO_PKG_VERSION");
        let remedy = if staged { "although it was copied" } else { SAME_VERSION };
        if hello.version != version {
            let reason = format!("its weft is version {}, this one {version}; {remedy}", shown(&hello.version));
            return Err(host_error(&self.name, reason));
        }
        if hello.checksum != checksum {
            let reason = format!(
                "its weft {version} is another build (checksum {:016x}) than this one ({checksum:016x}); {remedy}",
                hello.checksum
            );
            return Err(host_error(&self.name, reason));
        }
        Ok(())
    }

    fn noise(&self, seen: &[u8]) -> LaunchError {
        let first = seen.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = shown(&String::from_utf8_lossy(first));
        let reason = format!(
            "'{line}' came in place of the agent's greeting; on that host, something prints to standard output when a \
             command is started (a login script, a banner), which must be silent"
        );
        host_error(&self.name, reason)
    }

    /// It did not come so far in time.
    pub fn late(&self, patience: Duration) -> LaunchError {
        match &self.progress {
            Progress::Silent(seen) if !seen.is_empty() && !MAGIC.starts_with(seen) => return self.noise(seen),
            _ => {}
        }
        if self.ended.is_some() {
            return self.lost("");
        }
        let within = match &self.progress {
            _ if self.pmix_since.is_some() => {
                format!("nothing was heard of its PMIx server within {} s", PMIX_PATIENCE.as_secs())
            }
            progress => {
                let what = if progress.has_greeted() { "its agent was not ready" } else { "nothing was heard" };
                format!("{what} within {} s (WEFT_LAUNCH_TIMEOUT)", patience.as_secs())
            }
        };
        host_error(&self.name, format!("{within} of {}{}", self.command(), self.error.last_line()))
    }

    pub fn not_started(&self, reason: &str) -> LaunchError {
        host_error(&self.name, format!("launch command {} could not be started: {reason}", self.command()))
    }

    fn lost(&self, reason: &str) -> LaunchError {
        let how = match self.ended {
            Some(Exit::Code(code)) => format!("ended with code {code}"),
            Some(Exit::Signal(signal)) => {
                format!("was killed by signal {signal} ({})", weft_cluster::state::signal_text(signal))
            }
            Some(Exit::OutOfMemory { .. }) => "was killed, perhaps because memory ran out".to_owned(),
            None => format!("is not heard any more ({reason})"),
        };
        let said = self.error.last_line();
        let remedy =
            if self.is_below() { "; WEFT_LAUNCH_TREE=never starts all agents from here" } else { remedy(&said) };
        host_error(&self.name, format!("launch command {} {how}{said}{remedy}", self.command()))
    }
}

const SAME_VERSION: &str = "install the same on both, or let --stage copy it";

fn host_error(host: &str, reason: String) -> LaunchError {
    LaunchError::Host { host: host.to_owned(), reason }
}

/// The standard error of a launch command, of which the end is kept.
pub struct Tail {
    /// Until it ends.
    fd: Option<OwnedFd>,
    said: VecDeque<u8>,
}

impl Tail {
    pub fn fd(&self) -> Option<RawFd> {
        self.fd.as_ref().map(AsRawFd::as_raw_fd)
    }

    pub fn is_open(&self) -> bool {
        self.fd.is_some()
    }

    pub fn read(&mut self) {
        let mut bytes = [0; SAID_BYTES];
        let Some(fd) = &self.fd else { return };
        match sys::read(fd.as_raw_fd(), &mut bytes) {
            Ok(count @ 1..) => {
                self.said.extend(&bytes[..count]);
                let surplus = self.said.len().saturating_sub(SAID_BYTES);
                self.said.drain(..surplus);
            }
            Err(error) if sys::is_temporary(&error) => {}
            _ => self.fd = None,
        }
    }

    /// To be appended to a message: what was said last, if anything was.
    pub fn last_line(&self) -> String {
        let bytes: Vec<u8> = self.said.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
        last.map(|line| format!(": {}", shown(line))).unwrap_or_default()
    }
}

/// Fit to stand in one line of a message.
fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write, pipe};
    use weft_cluster::frame::{Channel, RankStream, greeting};

    /// Reads what has come, and takes it.
    fn look(host: &mut GatheredHost) {
        match &host.link {
            LinkSide::Raw { .. } => host.read_greeting(),
            _ => host.handle(GatherSource::Relay(RelayPlace::Incoming), libc::POLLIN),
        }
        host.advance(None).unwrap();
    }

    /// Who reads late finds in one piece what the agent says last and what another one says over it. Nothing comes
    /// after that, so nothing is left for a later look.
    #[test]
    fn what_comes_with_the_last_word_of_an_agent_is_passed_on() {
        let ((output, mut agent), (_heard, input), (error, _said)) =
            (pipe().unwrap(), pipe().unwrap(), pipe().unwrap());
        let command = ("launch".to_owned(), None);
        let mut host = GatheredHost::new("middle", vec![3], command, [input.into(), output.into(), error.into()]);
        let hello =
            AgentHello { version: String::new(), checksum: 0, pid: 1, host: String::new(), addresses: Vec::new() };
        agent.write_all(&greeting()).unwrap();
        look(&mut host);
        let mut bytes = Vec::new();
        Frame::Hello(hello).encode(&mut bytes);
        agent.write_all(&bytes).unwrap();
        look(&mut host);

        let ([below_input, below_output, below_error], [_to, from, _about]) = crate::branch::pipes().unwrap();
        host.carry(0, [below_input, below_output, below_error]);
        bytes.clear();
        Frame::Ready(vec![(7, 8)]).encode(&mut bytes);
        let channel = Channel { member: 0, stream: RankStream::CommandOutput };
        Frame::Data { channel, bytes: b"ready, too".to_vec() }.encode(&mut bytes);
        agent.write_all(&bytes).unwrap();
        look(&mut host);
        assert!(host.progress.is_ready());
        let mut seen = [0; 20];
        let count = std::fs::File::from(from).read(&mut seen).expect("it has been passed on");
        assert_eq!(&seen[..count], b"ready, too");
    }
}
