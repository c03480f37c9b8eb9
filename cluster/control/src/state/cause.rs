//! Why a job failed: exit codes and words.

use weft_wire::interface::InterfaceName;

/// A cause of failure; of several, the first in time counts, see [`super::JobState`] for which one counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    Killed { signal: i32 },
    OutOfMemory { is_sure: bool },
    Exited { code: i32 },
    ExitedAfterFinalize { code: i32, interface: InterfaceName },
    NotFinalised { interface: InterfaceName },
    NeverInitialised { interface: InterfaceName },
    Aborted { code: i32, message: String, interface: InterfaceName },
    NotStarted { program: String, reason: String },
    Fault { reason: String },
    Timeout { limit: String },
    Interrupted { signal: i32 },
    Breakdown { reason: String },
}

/// What our MPI gives as the message of an abort that the program has not called, but an error handler.
const ERROR_HANDLERS: [&str; 2] = ["MPI_ERRORS_ARE_FATAL", "MPI_ERRORS_ABORT"];

impl Cause {
    /// What the launcher exits with: 1 to 255.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Killed { signal } | Self::Interrupted { signal } => 128 + signal,
            // That of SIGKILL.
            Self::OutOfMemory { .. } => 128 + 9,
            Self::Exited { code } | Self::ExitedAfterFinalize { code, .. } => *code,
            // The system keeps the lowest 8 bits of a code, and an abort must never look like success.
            Self::Aborted { code, .. } => match code & 0xff {
                0 => 1,
                code => code,
            },
            // It was found before, so this is the shells' "cannot be executed".
            Self::NotStarted { .. } => 126,
            Self::Timeout { .. } => super::EXIT_TIMEOUT,
            Self::NotFinalised { .. } | Self::NeverInitialised { .. } | Self::Fault { .. } | Self::Breakdown { .. } => {
                1
            }
        }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Killed { signal } => write!(f, "was killed by signal {signal} ({})", signal_text(*signal)),
            Self::OutOfMemory { is_sure: true } => {
                write!(f, "was killed by the kernel (signal 9), because the memory of its control group ran out")
            }
            Self::OutOfMemory { is_sure: false } => write!(
                f,
                "was killed by signal 9 ({}), which may have been by the kernel: the memory of its control group ran out",
                signal_text(9)
            ),
            Self::Exited { code } => write!(f, "exited with code {code}"),
            Self::ExitedAfterFinalize { code, interface } => {
                write!(f, "exited with code {code} after {}", interface.calls().end)
            }
            Self::NotFinalised { interface } => {
                write!(f, "exited after {} without {}", interface.calls().begin, interface.calls().end)
            }
            Self::NeverInitialised { interface } => {
                write!(f, "exited without {} while other ranks called it", interface.calls().begin)
            }
            Self::Aborted { code, message, .. } if ERROR_HANDLERS.contains(&message.as_str()) => {
                write!(f, "was ended by an MPI error ({message}) with code {code}")
            }
            Self::Aborted { code, message, interface } => {
                let why = if message.is_empty() { String::new() } else { format!(": {message}") };
                write!(f, "called {} with code {code}{why}", interface.calls().abort)
            }
            Self::NotStarted { program, reason } => write!(f, "could not be started from '{program}': {reason}"),
            Self::Fault { reason } => write!(f, "broke the protocol with the launcher: {reason}"),
            Self::Timeout { limit } => write!(f, "the job took longer than {limit}"),
            Self::Interrupted { signal } => write!(f, "ended at the second {}", signal_name(*signal)),
            Self::Breakdown { reason } => write!(f, "the launcher cannot go on: {reason}"),
        }
    }
}

/// Number, name and words of the signals of Linux (x86, arm and riscv share these numbers).
const SIGNALS: [(i32, &str, &str); 23] = [
    (1, "SIGHUP", "hangup"),
    (2, "SIGINT", "interrupt"),
    (3, "SIGQUIT", "quit"),
    (4, "SIGILL", "illegal instruction"),
    (5, "SIGTRAP", "trap"),
    (6, "SIGABRT", "abort"),
    (7, "SIGBUS", "bus error"),
    (8, "SIGFPE", "arithmetic error"),
    (9, "SIGKILL", "killed by force"),
    (10, "SIGUSR1", "user signal 1"),
    (11, "SIGSEGV", "segmentation fault"),
    (12, "SIGUSR2", "user signal 2"),
    (13, "SIGPIPE", "broken pipe"),
    (14, "SIGALRM", "alarm clock"),
    (15, "SIGTERM", "termination"),
    (16, "SIGSTKFLT", "stack fault"),
    (24, "SIGXCPU", "processor time limit"),
    (25, "SIGXFSZ", "file size limit"),
    (26, "SIGVTALRM", "virtual alarm clock"),
    (27, "SIGPROF", "profiling timer"),
    (29, "SIGIO", "input or output possible"),
    (30, "SIGPWR", "power failure"),
    (31, "SIGSYS", "bad system call"),
];

/// What a signal means, in lower-case words.
pub fn signal_text(signal: i32) -> &'static str {
    SIGNALS.iter().find(|(number, ..)| *number == signal).map_or("no common meaning", |(.., text)| text)
}

/// The signal's symbolic name.
pub fn signal_name(signal: i32) -> String {
    match SIGNALS.iter().find(|(number, ..)| *number == signal) {
        Some((_, name, _)) => (*name).to_owned(),
        None => format!("signal {signal}"),
    }
}
