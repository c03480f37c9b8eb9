//! The table of settings.

use std::ffi::OsStr;

use super::algorithms::Algorithms;
use super::devices::DeviceOrder;
use super::kind::{Bind, Collectives, Field, Pmix, Ports, Progress, SettingKind, SingleCopy, SocketLog, XdpMode};
use super::parse::{SettingError, SettingValues};
use super::{Definition, Origin, SettingRow};

/// Makes, from one line per setting, its [`Definition`] and its field in [`Settings`].
macro_rules! settings {
    ($($field:ident: $type:ty, $env:literal, $flag:expr, $kind:expr, $default:literal, $meaning:literal;)+) => {
        /// Every setting, in the order in which people are shown them.
        pub static DEFINITIONS: &[Definition; COUNT] = &[$(Definition {
            name: stringify!($field),
            env: $env,
            flag: $flag,
            kind: $kind,
            default: $default,
            meaning: $meaning,
        }),+];

        /// How many settings there are.
        pub const COUNT: usize = [$($env),+].len();

        /// The value of every setting.
        ///
        /// A field that is an `Option` is `None` where the setting says its word (`auto`, `none`) in place of a number.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Settings {
            $(#[doc = $meaning] pub $field: $type,)+
            origins: [Origin; COUNT],
        }

        impl Settings {
            fn from_values(values: SettingValues) -> Result<Self, Vec<SettingError>> {
                if !values.errors.is_empty() {
                    return Err(values.errors);
                }
                let origins = values.given.map(|given| given.map_or(Origin::Default, |(_, origin)| origin));
                let mut given = values.given.iter().zip(DEFINITIONS);
                Ok(Self {
                    $($field: given
                        .next()
                        .and_then(|(given, definition)| {
                            given.map(|(value, _)| value).or_else(|| definition.kind.parse(definition.default))
                        })
                        .and_then(<$type as Field>::from_value)
                        .expect(concat!("the table gives ", stringify!($field), " a kind and a default of its type")),)+
                    origins,
                })
            }

            fn texts(&self) -> [String; COUNT] {
                let mut kinds = DEFINITIONS.iter().map(|definition| &definition.kind);
                [$(self.$field.text(kinds.next().expect("one definition per field"))),+]
            }
        }
    };
}

impl Settings {
    /// The settings as the environment says, defaults elsewhere. Hand in `std::env::vars_os()`.
    ///
    /// # Errors
    /// Every setting whose value is not accepted. Variables that nobody knows are no error: see [`super::unknown`].
    pub fn from_env<K: AsRef<OsStr>, V: AsRef<OsStr>>(
        env: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, Vec<SettingError>> {
        Self::from_env_and_flags(env, std::iter::empty::<(&str, &str)>())
    }

    /// The same, where flags, given as (name without dashes, value), win over the environment.
    ///
    /// # Errors
    /// As [`Settings::from_env`]; also for flags.
    pub fn from_env_and_flags<K: AsRef<OsStr>, V: AsRef<OsStr>, F: AsRef<str>, T: AsRef<str>>(
        env: impl IntoIterator<Item = (K, V)>,
        flags: impl IntoIterator<Item = (F, T)>,
    ) -> Result<Self, Vec<SettingError>> {
        let mut values = SettingValues::new();
        values.read_env(env);
        values.read_flags(flags);
        Self::from_values(values)
    }

    /// Every setting with its value and origin, for display.
    pub fn rows(&self) -> impl Iterator<Item = SettingRow> {
        let texts = self.texts().into_iter().zip(self.origins);
        DEFINITIONS.iter().zip(texts).map(|(definition, (value, origin))| SettingRow { definition, value, origin })
    }
}

/// Every setting at its default.
impl Default for Settings {
    fn default() -> Self {
        Self::from_values(SettingValues::new()).expect("nothing given, nothing refused")
    }
}

const ONE_SECOND_US: u64 = 1_000_000;
const ONE_YEAR_S: u64 = 365 * 24 * 3600;
const ONE_GIB: u64 = 1 << 30;
const AUTO: Option<&str> = Some("auto");

// field: type, environment variable, flag, kind, default, meaning;
settings! {
    spin_us: Option<u64>, "WEFT_SPIN_US", None,
        SettingKind::Integer { unit: "microseconds", min: 0, max: ONE_SECOND_US, word: AUTO }, "auto",
        "Longest busy wait before the core is handed over; auto follows how long waits have lasted.";
    yield_us: Option<u64>, "WEFT_YIELD_US", None,
        SettingKind::Integer { unit: "microseconds", min: 0, max: ONE_SECOND_US, word: AUTO }, "auto",
        "How long the core is handed over again and again before the process sleeps.";
    progress: Progress, "WEFT_PROGRESS", None,
        SettingKind::Choice(Progress::WORDS), "caller",
        "Who delivers messages that arrive: the callers of the interface, or a thread as well (thread), which needs a core and is for programs that compute while messages come.";
    eager_bytes: u64, "WEFT_EAGER_BYTES", None,
        SettingKind::Size { min: 0, max: ONE_GIB, word: None }, "64K",
        "Largest message that is sent without asking the receiver first; up to 16 times that over TCP to who waited for the last ones.";
    single_copy: SingleCopy, "WEFT_SINGLE_COPY", None,
        SettingKind::Choice(SingleCopy::WORDS), "auto",
        "Whether long messages are copied straight out of the sender's memory (cross-memory attach).";
    single_copy_bytes: Option<u64>, "WEFT_SINGLE_COPY_BYTES", None,
        SettingKind::Size { min: 0, max: ONE_GIB, word: AUTO }, "auto",
        "Smallest message that is copied straight out of the sender's memory; auto follows what has been faster lately.";
    collectives: Collectives, "WEFT_COLLECTIVES", None,
        SettingKind::Choice(Collectives::WORDS), "auto",
        "How collective operations inside a host travel: through shared memory or as messages.";
    algorithms: Algorithms, "WEFT_ALGORITHMS", None,
        SettingKind::Algorithms, "auto",
        "Which algorithms collective operations use, the same for all ranks of a job; an operation that is named goes by messages, and by another algorithm where that one cannot serve.";
    device: DeviceOrder, "WEFT_DEVICE", Some("device"),
        SettingKind::Devices, "auto",
        "Which devices may carry messages; to each rank goes the first that leads there. auto: shared memory, then udp, with tcp for long messages and where datagrams do not pass.";
    xdp_mode: XdpMode, "WEFT_XDP_MODE", None,
        SettingKind::Choice(XdpMode::WORDS), "auto",
        "How the filter of xdp is attached: in the driver (native), or behind it (generic). auto: generic on virtual cables (veth), where native would take offloads from other traffic, and native elsewhere.";
    encrypt: bool, "WEFT_ENCRYPT", Some("encrypt"),
        SettingKind::Switch, "off",
        "Whether what ranks of different hosts send each other is encrypted; the same for all ranks of a job.";
    keep_going: bool, "WEFT_KEEP_GOING", Some("keep-going"),
        SettingKind::Switch, "off",
        "Whether the other ranks go on when one is lost; for programs that mitigate failures.";
    connect_timeout: Option<u64>, "WEFT_CONNECT_TIMEOUT", None,
        SettingKind::Integer { unit: "seconds", min: 1, max: ONE_YEAR_S, word: Some("none") }, "180",
        "How long MPI_Comm_connect waits for an MPI_Comm_accept; the info key timeout goes before it.";
    status: bool, "WEFT_STATUS", None,
        SettingKind::Switch, "on",
        "Whether each process keeps a status page that `weft ps` can read.";
    backtrace: bool, "WEFT_BACKTRACE", None,
        SettingKind::Switch, "on",
        "Whether the launcher says in which function the first rank has failed that a signal has ended, and how it came there.";
    bind: Bind, "WEFT_BIND", Some("bind"),
        SettingKind::Choice(Bind::WORDS), "auto",
        "Whether ranks are bound to cores; auto binds when there are enough cores for all ranks.";
    timeout: Option<u64>, "WEFT_TIMEOUT", Some("timeout"),
        SettingKind::Integer { unit: "seconds", min: 1, max: ONE_YEAR_S, word: Some("none") }, "none",
        "How long a job may run before it is ended.";
    launch_timeout: Option<u64>, "WEFT_LAUNCH_TIMEOUT", None,
        SettingKind::Integer { unit: "seconds", min: 1, max: 3600, word: Some("none") }, "4",
        "How long a host of a job may take to answer before the job is given up.";
    launch_tree: Option<u64>, "WEFT_LAUNCH_TREE", None,
        SettingKind::Integer { unit: "hosts", min: 2, max: 65536, word: Some("never") }, "128",
        "From how many hosts on a job is started as a tree: some of its agents start the others.";
    pmix: Pmix, "WEFT_PMIX", None,
        SettingKind::Choice(Pmix::WORDS), "auto",
        "Whether weft run serves its ranks PMIx, in the place of PMI-1 and PMI-2. auto: where a program was linked with Open MPI, or with PMIx itself.";
    allocation: bool, "WEFT_ALLOCATION", None,
        SettingKind::Switch, "on",
        "Whether weft run takes its hosts from the allocation of Slurm, PBS or LSF that it is started in.";
    universe: Option<u64>, "WEFT_UNIVERSE", None,
        SettingKind::Integer { unit: "processes", min: 1, max: 1 << 20, word: AUTO }, "auto",
        "How many processes MPI_UNIVERSE_SIZE promises; auto: one for each core of the launcher's host, and no fewer than the job has.";
    tag_output: bool, "WEFT_TAG_OUTPUT", Some("tag-output"),
        SettingKind::Switch, "off",
        "Whether each line of output begins with the rank that wrote it.";
    log_bytes: u64, "WEFT_LOG_BYTES", None,
        SettingKind::Size { min: 0, max: 64 << 20, word: None }, "256K",
        "How much of what a job's ranks have written last is kept for weft logs, where a daemon runs; 0: nothing.";
    sock_spin_us: Option<u64>, "WEFT_SOCK_SPIN_US", None,
        SettingKind::Integer { unit: "microseconds", min: 0, max: ONE_SECOND_US, word: AUTO }, "auto",
        "Longest busy wait of a socket call before it sleeps; auto follows how often waiting has helped.";
    sock_attach_calls: Option<u64>, "WEFT_SOCK_ATTACH_CALLS", None,
        SettingKind::Integer { unit: "calls", min: 1, max: ONE_SECOND_US, word: Some("never") }, "4",
        "After how many data calls a connection is offered for acceleration.";
    sock_only: Ports, "WEFT_SOCK_ONLY", None,
        SettingKind::Ports, "all",
        "Accelerate only connections of which one end has one of these ports.";
    sock_log: SocketLog, "WEFT_SOCK_LOG", None,
        SettingKind::Choice(SocketLog::WORDS), "off",
        "What the socket library says on the standard error output about its connections.";
    sock_udp: bool, "WEFT_SOCK_UDP", None,
        SettingKind::Switch, "on",
        "Whether UDP datagrams between programs with the socket library go over shared memory, too.";
}
