//! What launcher and agent say to each other, over the standard input and output of the command that started the agent.
//!
//! First the agent writes its greeting ([`greeting`]): eight bytes that no login script prints, and its protocol. Then
//! frames go both ways, each with its length before it. Numbers are little-endian. `docs/wire/agent.md` shows them byte
//! by byte.

pub(crate) mod bytes;
mod start;

pub use start::{Hello, Start};

use crate::state::Exit;
use crate::usage::{RankUsage, SentBytes};
use bytes::{Bytes, Put};
use std::path::PathBuf;

/// What an agent begins with.
pub const MAGIC: [u8; 8] = *b"weft-agt";
/// Changes with every change of what follows.
pub const PROTOCOL: u32 = 7;
/// Bytes before the agent's first frame.
pub const GREETING_BYTES: usize = 12;
/// The longest frame: a start with a large environment, or a job map. Beyond it lies no frame, but something else.
pub const FRAME_MAX: usize = 64 << 20;
/// The largest piece of a stream in one frame.
pub const PIECE_BYTES: usize = 32 << 10;
/// What may be on its way in one direction of one channel.
pub const WINDOW_BYTES: usize = 128 << 10;
/// Bytes of the length before each frame.
const LENGTH_BYTES: usize = 4;

/// What an agent writes before its first frame.
pub fn greeting() -> [u8; GREETING_BYTES] {
    let mut bytes = [0; GREETING_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..].copy_from_slice(&PROTOCOL.to_le_bytes());
    bytes
}

/// A stream of a rank, or of a launch command that the agent runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Channel {
    /// The rank, as a member of its host; or the command.
    pub member: u32,
    pub stream: Stream,
}

/// Which of the streams of a rank or a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    Input,
    Output,
    Error,
    /// Goes both ways.
    Pmi,
    CommandInput,
    CommandOutput,
    CommandError,
}

impl Stream {
    pub const ALL: [Self; 7] = [
        Self::Input,
        Self::Output,
        Self::Error,
        Self::Pmi,
        Self::CommandInput,
        Self::CommandOutput,
        Self::CommandError,
    ];

    pub fn is_of_command(self) -> bool {
        matches!(self, Self::CommandInput | Self::CommandOutput | Self::CommandError)
    }
}

/// One thing said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Agent: who it is.
    Hello(Hello),
    /// Launcher: what is to be started.
    Start(Box<Start>),
    /// Agent: it can be started; the ports of TCP listener and UDP socket of each member.
    Ready(Vec<(u16, u16)>),
    /// Agent: it cannot, and what the launcher is to exit with.
    Refused { code: i32, reason: String },
    /// Launcher: start the ranks; the job map.
    Go(Vec<u8>),
    /// Agent: a rank runs.
    Started { member: u32, pid: u32 },
    /// Agent: a rank could not be started; the system's number for the reason.
    NotStarted { member: u32, errno: i32 },
    /// Agent: a rank has ended. What it said over PMI came before.
    Ended { member: u32, exit: Exit },
    /// Agent: the keeper of this host was killed, and what it kept has been ended.
    KeeperGone { pid: u32 },
    /// Agent: nothing of the job lives on this host any more, and no more comes.
    Over { leftovers: u32 },
    /// Launcher: send this signal to every rank.
    Signal { signal: i32 },
    /// Launcher: end everything now.
    Kill,
    /// Bytes of a stream.
    Data { channel: Channel, bytes: Vec<u8> },
    /// No more bytes will come.
    End { channel: Channel },
    /// Nobody reads these bytes any more.
    Stop { channel: Channel },
    /// So many bytes more may be sent.
    Credit { channel: Channel, bytes: u32 },
    /// Launcher: run these launch commands, in this directory if it is there. Their streams are channels from now on.
    Launch { directory: PathBuf, commands: Vec<Vec<String>> },
    /// Agent: a command has ended.
    CommandEnded { command: u32, exit: Exit },
    /// Agent: a command could not be started; the system's number for the reason.
    CommandNotStarted { command: u32, errno: i32 },
    /// Agent: what a member's processes have used, or those of nobody ([`crate::usage::NOBODY`]), and what it has sent. It
    /// comes before the member's end; for what it leaves behind, once more.
    Used { member: u32, usage: RankUsage, sent: Option<SentBytes> },
    /// Agent: where a member has failed, in lines for people. It comes before the end of the job on its host.
    Failed { member: u32, text: String },
    /// What the host's PMIx server says to the launcher, or is told ([`crate::pmix`]).
    Pmix(Vec<u8>),
    /// Agent: the process with the PMIx server has ended.
    PmixGone,
    /// Agent: it starts the host's PMIx server, which may take longer than all else before it is ready.
    PmixBegins,
}

/// Bytes that are no frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("a frame of {0} bytes")]
    Length(usize),
    #[error("a frame of the unknown kind {0}")]
    Kind(u8),
    #[error("a frame of kind {0} that ends in the middle or has too much")]
    Cut(u8),
    #[error("a frame of kind {0} with a value that means nothing")]
    Value(u8),
}

mod kind {
    pub const HELLO: u8 = 1;
    pub const START: u8 = 2;
    pub const READY: u8 = 3;
    pub const REFUSED: u8 = 4;
    pub const GO: u8 = 5;
    pub const STARTED: u8 = 6;
    pub const NOT_STARTED: u8 = 7;
    pub const EXITED: u8 = 8;
    pub const KILLED: u8 = 9;
    pub const KEEPER_GONE: u8 = 10;
    pub const OVER: u8 = 11;
    pub const SIGNAL: u8 = 12;
    pub const KILL: u8 = 13;
    pub const DATA: u8 = 14;
    pub const END: u8 = 15;
    pub const STOP: u8 = 16;
    pub const CREDIT: u8 = 17;
    pub const LAUNCH: u8 = 18;
    pub const COMMAND_EXITED: u8 = 19;
    pub const COMMAND_KILLED: u8 = 20;
    pub const COMMAND_NOT_STARTED: u8 = 21;
    pub const USED: u8 = 22;
    pub const FAILED: u8 = 23;
    pub const PMIX: u8 = 24;
    pub const PMIX_GONE: u8 = 25;
    pub const PMIX_BEGINS: u8 = 26;
}

/// In the place of a signal: it was the kernel, and memory had run out; or it may have been so.
const OUT_OF_MEMORY: u32 = 256;
const PERHAPS_OUT_OF_MEMORY: u32 = 257;

/// The code, or the signal.
fn number(exit: Exit) -> u32 {
    match exit {
        Exit::Code(number) | Exit::Signal(number) => number as u32,
        Exit::OutOfMemory { is_sure: true } => OUT_OF_MEMORY,
        Exit::OutOfMemory { is_sure: false } => PERHAPS_OUT_OF_MEMORY,
    }
}

fn killed(number: u32) -> Exit {
    match number {
        OUT_OF_MEMORY | PERHAPS_OUT_OF_MEMORY => Exit::OutOfMemory { is_sure: number == OUT_OF_MEMORY },
        signal => Exit::Signal(signal as i32),
    }
}

impl Frame {
    fn kind(&self) -> u8 {
        match self {
            Self::Hello(_) => kind::HELLO,
            Self::Start(_) => kind::START,
            Self::Ready(_) => kind::READY,
            Self::Refused { .. } => kind::REFUSED,
            Self::Go(_) => kind::GO,
            Self::Started { .. } => kind::STARTED,
            Self::NotStarted { .. } => kind::NOT_STARTED,
            Self::Ended { exit: Exit::Code(_), .. } => kind::EXITED,
            Self::Ended { exit: Exit::Signal(_) | Exit::OutOfMemory { .. }, .. } => kind::KILLED,
            Self::KeeperGone { .. } => kind::KEEPER_GONE,
            Self::Over { .. } => kind::OVER,
            Self::Signal { .. } => kind::SIGNAL,
            Self::Kill => kind::KILL,
            Self::Data { .. } => kind::DATA,
            Self::End { .. } => kind::END,
            Self::Stop { .. } => kind::STOP,
            Self::Credit { .. } => kind::CREDIT,
            Self::Launch { .. } => kind::LAUNCH,
            Self::CommandEnded { exit: Exit::Code(_), .. } => kind::COMMAND_EXITED,
            Self::CommandEnded { exit: Exit::Signal(_) | Exit::OutOfMemory { .. }, .. } => kind::COMMAND_KILLED,
            Self::CommandNotStarted { .. } => kind::COMMAND_NOT_STARTED,
            Self::Used { .. } => kind::USED,
            Self::Failed { .. } => kind::FAILED,
            Self::Pmix(_) => kind::PMIX,
            Self::PmixGone => kind::PMIX_GONE,
            Self::PmixBegins => kind::PMIX_BEGINS,
        }
    }

    /// Appends the frame, with its length before it.
    pub fn encode(&self, to: &mut Vec<u8>) {
        let begin = to.len();
        to.extend([0; LENGTH_BYTES]);
        to.push(self.kind());
        match self {
            Self::Hello(hello) => hello.encode(to),
            Self::Start(start) => start.encode(to),
            Self::Ready(ports) => to.list(ports, |to, (tcp, udp)| {
                to.half(*tcp);
                to.half(*udp);
            }),
            Self::Refused { code, reason } => {
                to.word(*code as u32);
                to.text(reason);
            }
            Self::Go(bytes) | Self::Pmix(bytes) => to.extend(bytes),
            Self::Started { member, pid } => to.words([*member, *pid]),
            Self::NotStarted { member: which, errno } | Self::CommandNotStarted { command: which, errno } => {
                to.words([*which, *errno as u32]);
            }
            Self::Ended { member: which, exit } | Self::CommandEnded { command: which, exit } => {
                to.words([*which, number(*exit)]);
            }
            Self::Launch { directory, commands } => {
                to.os(directory.as_os_str());
                to.list(commands, |to, words| to.list(words, |to, word| to.text(word)));
            }
            Self::KeeperGone { pid: number } | Self::Over { leftovers: number } => to.word(*number),
            Self::Signal { signal } => to.word(*signal as u32),
            Self::Kill | Self::PmixGone | Self::PmixBegins => {}
            Self::Data { channel, bytes } => {
                to.channel(*channel);
                to.extend(bytes);
            }
            Self::End { channel } | Self::Stop { channel } => to.channel(*channel),
            Self::Credit { channel, bytes } => {
                to.channel(*channel);
                to.word(*bytes);
            }
            Self::Used { member, usage, sent } => {
                to.word(*member);
                to.longs(usage.words());
                to.push(sent.is_some().into());
                sent.iter().for_each(|sent| to.longs(sent.words()));
            }
            Self::Failed { member, text } => {
                to.word(*member);
                to.text(text);
            }
        }
        let length = u32::try_from(to.len() - begin - LENGTH_BYTES).unwrap_or(u32::MAX);
        to[begin..begin + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    }

    /// Reads what stands behind the length.
    fn decode(frame: &[u8]) -> Result<Self, FrameError> {
        let (kind, rest) = frame.split_first().ok_or(FrameError::Length(0))?;
        let mut from = Bytes { rest, kind: *kind };
        let frame = match *kind {
            kind::HELLO => Self::Hello(Hello::decode(&mut from)?),
            kind::START => Self::Start(Box::new(Start::decode(&mut from)?)),
            kind::READY => Self::Ready(from.list(|from| Ok((from.half()?, from.half()?)))?),
            kind::REFUSED => Self::Refused { code: from.word()? as i32, reason: from.text()? },
            kind::GO => Self::Go(from.all()),
            kind::STARTED => Self::Started { member: from.word()?, pid: from.word()? },
            kind::NOT_STARTED => Self::NotStarted { member: from.word()?, errno: from.word()? as i32 },
            kind::EXITED => Self::Ended { member: from.word()?, exit: Exit::Code(from.word()? as i32) },
            kind::KILLED => Self::Ended { member: from.word()?, exit: killed(from.word()?) },
            kind::KEEPER_GONE => Self::KeeperGone { pid: from.word()? },
            kind::OVER => Self::Over { leftovers: from.word()? },
            kind::SIGNAL => Self::Signal { signal: from.word()? as i32 },
            kind::KILL => Self::Kill,
            kind::DATA => Self::Data { channel: from.channel()?, bytes: from.all() },
            kind::END => Self::End { channel: from.channel()? },
            kind::STOP => Self::Stop { channel: from.channel()? },
            kind::CREDIT => Self::Credit { channel: from.channel()?, bytes: from.word()? },
            kind::LAUNCH => Self::Launch {
                directory: from.os()?.into(),
                commands: from.list(|from| from.list(|from| from.text()))?,
            },
            kind::COMMAND_EXITED => Self::CommandEnded { command: from.word()?, exit: Exit::Code(from.word()? as i32) },
            kind::COMMAND_KILLED => Self::CommandEnded { command: from.word()?, exit: killed(from.word()?) },
            kind::COMMAND_NOT_STARTED => Self::CommandNotStarted { command: from.word()?, errno: from.word()? as i32 },
            kind::USED => Self::Used {
                member: from.word()?,
                usage: RankUsage::of_words(from.longs()?),
                sent: from.option(|from| from.longs().map(SentBytes::of_words))?,
            },
            kind::FAILED => Self::Failed { member: from.word()?, text: from.text()? },
            kind::PMIX => Self::Pmix(from.all()),
            kind::PMIX_GONE => Self::PmixGone,
            kind::PMIX_BEGINS => Self::PmixBegins,
            other => return Err(FrameError::Kind(other)),
        };
        from.ended().map(|()| frame)
    }
}

/// Cuts what was read into frames.
#[derive(Debug, Default)]
pub struct Frames {
    buffer: Vec<u8>,
    /// The begin of the buffer that has become frames.
    taken: usize,
}

impl Frames {
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame. After an error nothing more of these bytes means anything.
    pub fn poll_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let waiting = &self.buffer[self.taken..];
        let Some((length, rest)) = waiting.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length == 0 || length > FRAME_MAX {
            return Err(FrameError::Length(length));
        }
        let Some(frame) = rest.get(..length) else { return Ok(None) };
        let frame = Frame::decode(frame)?;
        self.taken += LENGTH_BYTES + length;
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests;
