//! What launcher and agent say to each other, over the standard input and output of the command that started the agent.
//!
//! First the agent writes its greeting ([`greeting`]): eight bytes that no login script prints, and its protocol. Then
//! frames go both ways, each with its length before it. Numbers are little-endian. `docs/wire/agent.md` shows them byte
//! by byte.

pub mod bytes;
mod start;

pub use start::{AgentHello, HostStart};

use crate::said;
use crate::state::Exit;
use crate::usage::{RankUsage, SentBytes};
use bytes::{Coded, FrameBytes, structures};
use std::path::PathBuf;

/// What an agent begins with.
pub const MAGIC: [u8; 8] = *b"weft-agt";
/// Changes with every change of what follows.
pub const PROTOCOL: u32 = 9;
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
    pub stream: RankStream,
}

/// Which of the streams of a rank or a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RankStream {
    Input,
    Output,
    Error,
    /// Goes both ways.
    Pmi,
    CommandInput,
    CommandOutput,
    CommandError,
}

impl RankStream {
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

said! {
    /// One thing said.
    pub enum Frame {
        /// Agent: who it is.
        1: Hello(AgentHello),
        /// Launcher: what is to be started.
        2: Start(Box<HostStart>),
        /// Agent: it can be started; the ports of TCP listener and UDP socket of each member.
        3: Ready(Vec<(u16, u16)>),
        /// Agent: it cannot, and what the launcher is to exit with.
        4: Refused { code: i32, reason: String },
        /// Launcher: start the ranks; the job map.
        5: Go(Vec<u8>),
        /// Agent: a rank runs.
        6: Started { member: u32, pid: u32 },
        /// Agent: a rank could not be started; the system's number for the reason.
        7: NotStarted { member: u32, errno: i32 },
        /// Agent: a rank has ended. What it said over PMI came before.
        8 | 9: Ended { member: u32, exit: Exit },
        /// Agent: the keeper of this host was killed, and what it kept has been ended.
        10: KeeperGone { pid: u32 },
        /// Agent: nothing of the job lives on this host any more, and no more comes.
        11: Over { leftovers: u32 },
        /// Launcher: send this signal to every rank.
        12: Signal { signal: i32 },
        /// Launcher: end everything now.
        13: Kill,
        /// Bytes of a stream.
        14: Data { channel: Channel, bytes: Vec<u8> },
        /// No more bytes will come.
        15: End { channel: Channel },
        /// Nobody reads these bytes any more.
        16: Stop { channel: Channel },
        /// So many bytes more may be sent.
        17: Credit { channel: Channel, bytes: u32 },
        /// Launcher: run these launch commands, in this directory if it is there. Their streams are channels from now
        /// on.
        18: Launch { directory: PathBuf, commands: Vec<Vec<String>> },
        /// Agent: a command has ended.
        19 | 20: CommandEnded { command: u32, exit: Exit },
        /// Agent: a command could not be started; the system's number for the reason.
        21: CommandNotStarted { command: u32, errno: i32 },
        /// Agent: what a member's processes have used, or those of nobody ([`crate::usage::NOBODY`]), and what it has
        /// sent. It comes before the member's end; for what it leaves behind, once more.
        22: Used { member: u32, usage: RankUsage, sent: Option<SentBytes> },
        /// Agent: where a member has failed, in lines for people. It comes before the end of the job on its host.
        23: Failed { member: u32, text: String },
        /// What the host's PMIx server says to the launcher, or is told ([`crate::pmix`]).
        24: Pmix(Vec<u8>),
        /// Agent: the process with the PMIx server has ended.
        25: PmixGone,
        /// Agent: it starts the host's PMIx server, which may take longer than all else before it is ready.
        26: PmixBegins,
        /// Launcher: send this signal to one rank.
        27: SignalOne { member: u32, signal: i32 },
        /// Launcher: what do your ranks do?
        28: AskDoing,
        /// Agent: this, of each member: words, and the milliseconds that it has been blocked there.
        29: Doing(Vec<(String, Option<u64>)>),
    }
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

/// Kinds with a code behind them.
const EXITED: u8 = 8;
const COMMAND_EXITED: u8 = 19;
/// In the place of a signal: it was the kernel, and memory had run out; or it may have been so.
const OUT_OF_MEMORY: u32 = 256;
const PERHAPS_OUT_OF_MEMORY: u32 = 257;

/// The code, or the signal, which kinds tell apart: that of a process that was killed is one more.
impl Coded for Exit {
    fn put(&self, to: &mut Vec<u8>) {
        let number = match *self {
            Self::Code(number) | Self::Signal(number) => number as u32,
            Self::OutOfMemory { is_sure: true } => OUT_OF_MEMORY,
            Self::OutOfMemory { is_sure: false } => PERHAPS_OUT_OF_MEMORY,
        };
        number.put(to);
    }

    fn take(from: &mut FrameBytes) -> Result<Self, FrameError> {
        Ok(match (from.kind, u32::take(from)?) {
            (EXITED | COMMAND_EXITED, code) => Self::Code(code as i32),
            (_, OUT_OF_MEMORY) => Self::OutOfMemory { is_sure: true },
            (_, PERHAPS_OUT_OF_MEMORY) => Self::OutOfMemory { is_sure: false },
            (_, signal) => Self::Signal(signal as i32),
        })
    }
}

impl Coded for RankStream {
    fn put(&self, to: &mut Vec<u8>) {
        (*self as u32).put(to);
    }

    fn take(from: &mut FrameBytes) -> Result<Self, FrameError> {
        Self::ALL.get(usize::take(from)?).copied().ok_or_else(|| from.wrong())
    }
}

structures! {
    Channel { member, stream }
    RankUsage { wall_us, user_us, system_us, peak_bytes }
    SentBytes { shm, tcp, udp, copied, messages, message_bytes }
}

impl Frame {
    /// Appends the frame, with its length before it.
    pub fn encode(&self, to: &mut Vec<u8>) {
        let begin = to.len();
        to.extend([0; LENGTH_BYTES]);
        let exit = match self {
            Self::Ended { exit, .. } | Self::CommandEnded { exit, .. } => Some(exit),
            _ => None,
        };
        to.push(self.kind() + u8::from(exit.is_some_and(|exit| !matches!(exit, Exit::Code(_)))));
        self.put(to);
        let length = u32::try_from(to.len() - begin - LENGTH_BYTES).unwrap_or(u32::MAX);
        to[begin..begin + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
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
