//! PMI-1, the wire protocol between a rank and the process manager that started it.
//!
//! A rank finds a connected stream socket in `PMI_FD`. It asks one line at a time, `cmd=<name> key=value ...\n`, and
//! waits for the answer. The protocol has no escapes: a value holds neither blank nor newline.
//!
//! A rank whose first line asks for version 2 speaks PMI-2 from there on, which the server understands as well
//! ([`server`]); our own clients have no need of it, since who serves PMI-2 serves PMI-1 too.

mod client;
mod line;
mod server;

pub use client::{Client, ClientError, PmiRequest, Reply};
pub use line::{BadFrame, Fields, LineBuffer, LineTooLong};
pub use server::{PmiEvent, PmiServer};

/// Longest key-value-space name in bytes, as `get_maxes` tells it.
pub const KVSNAME_MAX: usize = 256;
/// Longest key in bytes, as `get_maxes` tells it.
pub const KEY_MAX: usize = 64;
/// Longest value in bytes, as `get_maxes` tells it.
pub const VALUE_MAX: usize = 1024;
/// Longest line in bytes with its newline: room for a `put` of the longest name, key and value.
pub const LINE_MAX: usize = KVSNAME_MAX + KEY_MAX + VALUE_MAX + 64;

/// The key under which the manager tells which ranks share a host.
pub const PROCESS_MAPPING: &str = "PMI_process_mapping";

/// Requests that only our own launcher understands, and their answers.
const SPAWN: &str = "weft_spawn";
const SPAWNED: &str = "weft_spawn_result";
const SIGNAL: &str = "weft_signal";
const SIGNALLED: &str = "weft_signal_result";

/// What a rank had lost before it aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Another rank of its job.
    Rank(usize),
    /// A process of another job only: one that this job has spawned, say.
    Elsewhere,
}

const ELSEWHERE: &str = "other";

impl Lost {
    fn parse(text: &str) -> Option<Self> {
        if text == ELSEWHERE { Some(Self::Elsewhere) } else { text.parse().ok().map(Self::Rank) }
    }
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rank(rank) => write!(f, "{rank}"),
            Self::Elsewhere => f.write_str(ELSEWHERE),
        }
    }
}
