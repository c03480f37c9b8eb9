//! What a setting accepts, and the Rust types its values have.

use super::algorithms::Algorithms;
use super::devices::DeviceOrder;
use std::fmt::{self, Display};

/// What a setting accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    /// `on` or `off` (also `yes`/`no`, `true`/`false`, `1`/`0`).
    Switch,
    /// A whole number of `unit` within `min..=max`, or the word that stands for "no number" (`auto`, `none`).
    Integer { unit: &'static str, min: u64, max: u64, word: Option<&'static str> },
    /// A number of bytes within `min..=max`, or the word; the suffixes K, M and G count in steps of 1024.
    Size { min: u64, max: u64, word: Option<&'static str> },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Port numbers and ranges of them, separated by commas, or the word `all`.
    Ports,
    /// Names of devices, separated by commas, or the word `auto`.
    Devices,
    /// Algorithms of collective operations, separated by commas, or the word `auto`.
    Algorithms,
}

/// A value that fits its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingValue {
    Switch(bool),
    /// `None` is the kind's word.
    Integer(Option<u64>),
    Size(Option<u64>),
    /// The word itself, out of the kind's list.
    Choice(&'static str),
    Ports(Ports),
    Devices(DeviceOrder),
    Algorithms(Algorithms),
}

impl SettingKind {
    /// The value that `text` means, or `None` when it is not accepted.
    pub fn parse(&self, text: &str) -> Option<SettingValue> {
        match *self {
            SettingKind::Switch => parse_switch(text).map(SettingValue::Switch),
            SettingKind::Integer { word: Some(word), .. } if text.eq_ignore_ascii_case(word) => {
                Some(SettingValue::Integer(None))
            }
            SettingKind::Size { word: Some(word), .. } if text.eq_ignore_ascii_case(word) => {
                Some(SettingValue::Size(None))
            }
            SettingKind::Integer { min, max, .. } => {
                in_range(text.parse().ok()?, min, max).map(|number| SettingValue::Integer(Some(number)))
            }
            SettingKind::Size { min, max, .. } => {
                in_range(parse_size(text)?, min, max).map(|bytes| SettingValue::Size(Some(bytes)))
            }
            SettingKind::Choice(words) => {
                words.iter().find(|word| text.eq_ignore_ascii_case(word)).map(|w| SettingValue::Choice(w))
            }
            SettingKind::Ports => Ports::parse(text).map(SettingValue::Ports),
            SettingKind::Devices => DeviceOrder::parse(text).map(SettingValue::Devices),
            SettingKind::Algorithms => Algorithms::parse(text).map(SettingValue::Algorithms),
        }
    }

    /// The words among what is accepted, for the nearest one to a wrong value.
    pub fn words(&self) -> Vec<&'static str> {
        match *self {
            SettingKind::Switch => vec!["on", "off"],
            SettingKind::Integer { word, .. } | SettingKind::Size { word, .. } => word.into_iter().collect(),
            SettingKind::Choice(words) => words.to_vec(),
            SettingKind::Ports => vec!["all"],
            SettingKind::Algorithms => vec!["auto"],
            SettingKind::Devices => DeviceOrder::WORDS.to_vec(),
        }
    }
}

/// What is accepted, for error messages and the manual.
impl Display for SettingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            SettingKind::Switch => write!(f, "on or off"),
            SettingKind::Integer { unit, min, max, word } => {
                if let Some(word) = word {
                    write!(f, "{word} or ")?;
                }
                write!(f, "a whole number of {unit} from {min} to {max}")
            }
            SettingKind::Size { min, max, word } => {
                if let Some(word) = word {
                    write!(f, "{word} or ")?;
                }
                write!(f, "a number of bytes from {} to {} (suffixes K, M, G)", ByteCount(min), ByteCount(max))
            }
            SettingKind::Choice(words) => write!(f, "{}", words.join(", ")),
            SettingKind::Ports => write!(f, "all, or up to {} ports and ranges such as 80,7000-7010", Ports::RANGES),
            SettingKind::Algorithms => write!(f, "{}", Algorithms::accepted()),
            SettingKind::Devices => {
                write!(
                    f,
                    "auto, or some of {}, with commas, the first to be used first",
                    DeviceOrder::WORDS[1..].join(", ")
                )
            }
        }
    }
}

fn parse_switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "yes" | "true" | "1" => Some(true),
        "off" | "no" | "false" | "0" => Some(false),
        _ => None,
    }
}

/// `64K`, `64KiB`, `1M`, `4096`. A number too large for 64 bits is refused, not wrapped.
fn parse_size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn in_range(number: u64, min: u64, max: u64) -> Option<u64> {
    (min..=max).contains(&number).then_some(number)
}

/// A number of bytes in its shortest exact form.
struct ByteCount(u64);

impl Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = |shift: u32| self.0 != 0 && self.0.trailing_zeros() >= shift;
        match self.0 {
            n if exact(30) => write!(f, "{}G", n >> 30),
            n if exact(20) => write!(f, "{}M", n >> 20),
            n if exact(10) => write!(f, "{}K", n >> 10),
            n => write!(f, "{n}"),
        }
    }
}

/// A Rust type that a setting's field may have.
pub trait Field: Sized {
    /// The field for a value of its kind; `None` when the table gives the field another kind (a mistake in the table
    /// that the tests of this room find).
    fn from_value(value: SettingValue) -> Option<Self>;
    /// The value as one would type it; `word` is what the kind says for "no number".
    fn text(&self, kind: &SettingKind) -> String;
}

impl Field for bool {
    fn from_value(value: SettingValue) -> Option<Self> {
        if let SettingValue::Switch(on) = value { Some(on) } else { None }
    }

    fn text(&self, _: &SettingKind) -> String {
        if *self { "on" } else { "off" }.to_owned()
    }
}

impl Field for Option<u64> {
    fn from_value(value: SettingValue) -> Option<Self> {
        if let SettingValue::Integer(number) | SettingValue::Size(number) = value { Some(number) } else { None }
    }

    fn text(&self, kind: &SettingKind) -> String {
        match (self, kind) {
            (Some(bytes), SettingKind::Size { .. }) => ByteCount(*bytes).to_string(),
            (Some(number), _) => number.to_string(),
            (None, SettingKind::Integer { word: Some(word), .. } | SettingKind::Size { word: Some(word), .. }) => {
                (*word).to_owned()
            }
            (None, _) => "none".to_owned(),
        }
    }
}

impl Field for DeviceOrder {
    fn from_value(value: SettingValue) -> Option<Self> {
        if let SettingValue::Devices(order) = value { Some(order) } else { None }
    }

    fn text(&self, _: &SettingKind) -> String {
        self.to_string()
    }
}

impl Field for Algorithms {
    fn from_value(value: SettingValue) -> Option<Self> {
        if let SettingValue::Algorithms(algorithms) = value { Some(algorithms) } else { None }
    }

    fn text(&self, _: &SettingKind) -> String {
        self.to_string()
    }
}

impl Field for u64 {
    fn from_value(value: SettingValue) -> Option<Self> {
        if let SettingValue::Size(bytes) = value { bytes } else { None }
    }

    fn text(&self, _: &SettingKind) -> String {
        ByteCount(*self).to_string()
    }
}

/// A set of ports, as ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    ranges: [(u16, u16); Ports::RANGES],
    count: usize,
}

impl Ports {
    /// How many ranges a set may have.
    pub const RANGES: usize = 16;

    /// Every port.
    pub const ALL: Ports = Ports { ranges: [(0, u16::MAX); Ports::RANGES], count: 1 };

    /// The set that `text` means: `all`, or `80,7000-7010`.
    fn parse(text: &str) -> Option<Ports> {
        if text.eq_ignore_ascii_case("all") {
            return Some(Ports::ALL);
        }
        let mut ports = Ports { ranges: [(0, 0); Ports::RANGES], count: 0 };
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let range: (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            if range.0 > range.1 {
                return None;
            }
            *ports.ranges.get_mut(ports.count)? = range;
            ports.count += 1;
        }
        Some(ports)
    }

    /// Whether `port` is in the set.
    pub fn contains(&self, port: u16) -> bool {
        self.ranges[..self.count].iter().any(|&(first, last)| (first..=last).contains(&port))
    }
}

impl Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Ports::ALL {
            return f.write_str("all");
        }
        for (index, (first, last)) in self.ranges[..self.count].iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl Field for Ports {
    fn from_value(value: SettingValue) -> Option<Self> {
        if let SettingValue::Ports(ports) = value { Some(ports) } else { None }
    }

    fn text(&self, _: &SettingKind) -> String {
        self.to_string()
    }
}

/// Defines an enum whose variants are the words of a choice, so that neither can be without the other.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }

        impl $name {
            /// The accepted words, in the order of the variants.
            pub const WORDS: &'static [&'static str] = &[$($word),+];
        }

        impl Field for $name {
            fn from_value(value: SettingValue) -> Option<Self> {
                match value { $(SettingValue::Choice($word) => Some($name::$variant),)+ _ => None }
            }

            fn text(&self, _: &SettingKind) -> String {
                match self { $($name::$variant => $word),+ }.to_owned()
            }
        }
    };
}

choice! {
    /// Whether long messages are copied straight out of the sender's memory.
    SingleCopy {
        /// Where the kernel allows it, found out by trying.
        Auto = "auto",
        /// Always; start-up fails where the kernel forbids it.
        On = "on",
        /// Never.
        Off = "off",
    }
}

choice! {
    /// Whether ranks have a PMIx server.
    Pmix {
        /// Where a program was linked with Open MPI or with PMIx itself.
        Auto = "auto",
        /// All ranks of the job.
        On = "on",
        /// Never.
        Off = "off",
    }
}

choice! {
    /// How collective operations inside a host travel.
    Collectives {
        /// Shared memory where the communicator lies on one host, messages otherwise.
        Auto = "auto",
        /// Shared memory wherever it can be used.
        Shared = "shared",
        /// Always point-to-point messages.
        Messages = "messages",
    }
}

choice! {
    /// Who delivers what arrives.
    Progress {
        /// Whichever thread of the process waits or polls.
        Caller = "caller",
        /// A thread of its own as well, while the others compute.
        Thread = "thread",
    }
}

choice! {
    /// How the filter of the device xdp is attached to an interface.
    XdpMode {
        /// Whichever costs other traffic less, as far as that is known.
        Auto = "auto",
        /// In the interface's driver.
        Native = "native",
        /// Behind the driver, which every interface can.
        Generic = "generic",
    }
}

choice! {
    /// Whether ranks are bound to cores.
    Bind {
        /// To a core each when the ranks fit, else not at all.
        Auto = "auto",
        /// To a core each.
        Core = "core",
        /// Not at all.
        None = "none",
    }
}

choice! {
    /// What the socket library says on the standard error output.
    SocketLog {
        /// Nothing.
        Off = "off",
        /// Connections that fell back to the kernel, and why.
        Fallbacks = "fallbacks",
        /// Also those that were accelerated.
        All = "all",
    }
}
