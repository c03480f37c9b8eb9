//! Every setting, defined once.
//!
//! The table at the end of `table.rs` is the only place that knows a setting's name, environment variable, flag,
//! accepted values, default and meaning; the typed struct, `weft info`, the manual and the error messages all come
//! from it. Nothing here reads the environment: the caller hands it in, so the whole room can be tested with lists.
//!
//! Invariants: every `WEFT_*` variable is a setting, one of [`OTHER_VARIABLES`], or [`unknown`], which is a warning,
//! since a site may have names of its own with our prefix; a setting that is refused is reported together with all
//! other refused ones, not one per run.

pub mod algorithms;
mod devices;
mod kind;
mod nearest;
mod parse;
mod table;
#[cfg(test)]
mod tests;

pub use algorithms::Algorithms;
pub use devices::{DeviceName, DeviceOrder};
pub use kind::{Bind, Collectives, Field, Pmix, Ports, Progress, SettingKind, SingleCopy, SocketLog, XdpMode};
pub use nearest::nearest;
pub use parse::{SettingError, Unknown, unknown};
pub use table::{COUNT, DEFINITIONS, Settings};

/// What every environment variable of ours begins with.
pub const PREFIX: &str = "WEFT_";

/// What is known about one setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition {
    /// Name in `weft info`, in the manual and in messages.
    pub name: &'static str,
    /// Environment variable.
    pub env: &'static str,
    /// Command-line flag of `weft run` without its dashes, where there is one.
    pub flag: Option<&'static str>,
    /// What is accepted.
    pub kind: SettingKind,
    /// The value when nothing is said, as one would type it.
    pub default: &'static str,
    /// One sentence for people.
    pub meaning: &'static str,
}

/// Where a value comes from. A later one wins over an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    Default,
    Environment,
    Flag,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Origin::Default => "default",
            Origin::Environment => "environment",
            Origin::Flag => "flag",
        })
    }
}

/// One line of `weft info`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingRow {
    pub definition: &'static Definition,
    /// The value as one would type it, in its shortest form.
    pub value: String,
    pub origin: Origin,
}

/// Variables with our prefix that are no settings, with their meaning.
///
/// The first group is how the launcher speaks to the ranks it starts; people do not set those.
pub const OTHER_VARIABLES: &[(&str, &str)] = &[
    ("WEFT_JOB", "set by the launcher: the job this process belongs to"),
    ("WEFT_SEGMENT", "set by the launcher: the descriptor of the job's shared memory"),
    ("WEFT_JOB_MAP", "set by the launcher: the descriptor of the map of a job on several hosts"),
    ("WEFT_TCP_LISTENER", "set by the launcher: the descriptor where a rank of a job on several hosts listens"),
    ("WEFT_UDP_SOCKET", "set by the launcher: the descriptor where a rank of a job on several hosts takes datagrams"),
    ("WEFT_XDP_MEMORY", "set by the launcher: the descriptor of the memory of xdp lanes"),
    ("WEFT_XDP_RECEIVER", "set by the launcher: the descriptor by which the rank's xdp lane receives"),
    ("WEFT_XDP_SENDER", "set by the launcher: the descriptor by which it sends"),
    ("WEFT_PARENT", "set by the launcher: where a spawned process finds those who have spawned it"),
    ("WEFT_DISTRESS", "set by the launcher: the socket where a process says that a signal is about to end it"),
    ("WEFT_ORDER", "set for the launcher of spawned processes: where it gets its order"),
    (
        "WEFT_MACHINE",
        "set by the launcher: how messages go best on this machine (weft tune); usual: as on a machine that nothing is known of",
    ),
    ("WEFT_BOUND", "set by the launcher: whether it has bound this process to a core of its own"),
    ("WEFT_LAUNCH", "the command that starts a program on another host, where --launch does not give it"),
    (
        "WEFT_PMIX_LIBRARY",
        "the library by which ranks speak with a launcher that speaks PMIx, and weft run with ranks that do, where libpmix.so.2 is not found or not to be used",
    ),
    ("WEFT_CORES", "the directory where cores of ranks are gathered, where --cores does not name it"),
    (
        "WEFT_RECORD",
        "the file to which launchers append what is known of a job at its end, where --record does not name it",
    ),
    ("WEFT_TIME", "set by weft time: where launchers tell what their jobs have used"),
    ("WEFT_CLUSTER", "the file of the cluster, by its name or path, where there are several (weft cluster)"),
    ("WEFT_DAEMON", "the local socket of the cluster's daemon where it is not the usual one, or off: it is not asked"),
    ("WEFT_PARTITION", "the partition that jobs run on which name no hosts"),
    ("WEFT_RANKS", "how many ranks a job has whose command line does not say it"),
    ("WEFT_SOCK_NOT", "set by weft sock: names of programs, with commas, that the socket library leaves alone"),
    (
        "WEFT_SOCK_STATS",
        "on, or the name of a file: weft sock says there at its end what was accelerated and what was not",
    ),
    ("WEFT_SOCK_TALLY", "set by weft sock: the memory in which all processes of the command count"),
    ("WEFT_CC", "the C compiler that weft cc calls"),
    ("WEFT_CXX", "the C++ compiler that weft c++ calls"),
    ("WEFT_FC", "the Fortran compiler that weft fc calls"),
    ("WEFT_UPDATE", "for developers: tests rewrite the committed files that are generated"),
    ("WEFT_TEST_SEEDS", "for developers: how many seeds the tests of the simulated network run"),
    ("WEFT_TEST_SEED", "for developers: the one seed that they run"),
];
