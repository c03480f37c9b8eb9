//! Which hosts a job may use, and which rank runs on which of them.

use crate::job::RANKS_MAX;

/// Most hosts of one job.
pub const HOSTS_MAX: usize = 1024;
/// The longest name of a host, in bytes.
const NAME_BYTES: usize = weft_wire::job_map::NAME_BYTES;

/// A host with its slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotHost {
    pub name: String,
    /// How many ranks it takes.
    pub slots: usize,
}

/// How ranks are spread over hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RankMap {
    /// All slots of the first host, then those of the second, and so on.
    #[default]
    Slot,
    /// One rank for each host in turn, as long as it has slots.
    Host,
    /// So many for each host, in their order.
    PerHost(usize),
}

/// A list of hosts, or a spreading, that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostsError {
    #[error("host '{given}': a host is NAME or NAME:SLOTS, with 1 to {RANKS_MAX} slots")]
    Bad { given: String },
    #[error("line {line}: '{given}' is not NAME, NAME:SLOTS or NAME slots=SLOTS, with 1 to {RANKS_MAX} slots")]
    BadLine { line: usize, given: String },
    #[error("host '{name}' is listed twice; list it once, with all its slots")]
    Twice { name: String },
    #[error("line {line}: host '{name}' stands in line {first} already; list it once, with all its slots")]
    TwiceInFile { name: String, line: usize, first: usize },
    #[error("no host is listed")]
    Empty,
    #[error("{count} hosts are listed; a job may use {HOSTS_MAX}")]
    TooMany { count: usize },
    #[error("{ranks} ranks, but the hosts have {slots} slots: {list}")]
    TooFewSlots { ranks: usize, slots: usize, list: String },
    #[error("{per_host} ranks per host, but host '{name}' has {slots} slots")]
    TooManyPerHost { per_host: usize, name: String, slots: usize },
    #[error("{ranks} ranks, but {hosts} hosts with {per_host} ranks each take {taken}")]
    TooFewHosts { ranks: usize, hosts: usize, per_host: usize, taken: usize },
    #[error("'{given}' is not slot, host or N-per-host")]
    UnknownMap { given: String },
    #[error("launch command '{given}' does not say where {{host}} goes, as in 'ssh -p 2222 {{host}}'")]
    NoHostInLaunch { given: String },
    #[error("launch command '{given}' ends within quotes or after a backslash")]
    OpenQuote { given: String },
}

impl std::str::FromStr for RankMap {
    type Err = HostsError;

    fn from_str(given: &str) -> Result<Self, HostsError> {
        let per_host = given.strip_suffix("-per-host").and_then(slots);
        match (given, per_host) {
            ("slot", _) => Ok(Self::Slot),
            ("host", _) => Ok(Self::Host),
            (_, Some(count)) => Ok(Self::PerHost(count)),
            _ => Err(HostsError::UnknownMap { given: given.to_owned() }),
        }
    }
}

impl std::fmt::Display for RankMap {
    /// As it is read again.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Slot => f.write_str("slot"),
            Self::Host => f.write_str("host"),
            Self::PerHost(count) => write!(f, "{count}-per-host"),
        }
    }
}

/// Reads a list such as `a:2,b`.
pub fn parse_list(given: &str) -> Result<Vec<SlotHost>, HostsError> {
    let mut hosts: Vec<SlotHost> = Vec::new();
    for part in given.split(',').map(str::trim) {
        let host = host(part).ok_or_else(|| HostsError::Bad { given: part.to_owned() })?;
        if hosts.iter().any(|other| other.name == host.name) {
            return Err(HostsError::Twice { name: host.name });
        }
        hosts.push(host);
    }
    bounded(hosts)
}

/// Reads a host file: one host a line, `NAME`, `NAME:SLOTS` or `NAME slots=SLOTS`; `#` begins a comment.
///
/// # Errors
/// One for every bad line; they name its number.
pub fn parse_file(text: &str) -> Result<Vec<SlotHost>, Vec<HostsError>> {
    let mut hosts: Vec<SlotHost> = Vec::new();
    let mut seen = Vec::new();
    let mut errors = Vec::new();
    for (number, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        let content = line.split('#').next().unwrap_or_default().trim();
        if content.is_empty() {
            continue;
        }
        let Some(host) = line_of_file(content) else {
            errors.push(HostsError::BadLine { line: number, given: shown(content) });
            continue;
        };
        match hosts.iter().position(|other| other.name == host.name) {
            Some(at) => errors.push(HostsError::TwiceInFile { name: host.name, line: number, first: seen[at] }),
            None => {
                hosts.push(host);
                seen.push(number);
            }
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    bounded(hosts).map_err(|error| vec![error])
}

fn bounded(hosts: Vec<SlotHost>) -> Result<Vec<SlotHost>, HostsError> {
    match hosts.len() {
        0 => Err(HostsError::Empty),
        1..=HOSTS_MAX => Ok(hosts),
        count => Err(HostsError::TooMany { count }),
    }
}

fn line_of_file(content: &str) -> Option<SlotHost> {
    let mut words = content.split_whitespace();
    let first = words.next()?;
    match (words.next(), words.next()) {
        (None, _) => host(first),
        (Some(word), None) if is_name(first) => {
            let slots = slots(word.strip_prefix("slots=")?)?;
            Some(SlotHost { name: first.to_owned(), slots })
        }
        _ => None,
    }
}

/// `NAME` or `NAME:SLOTS`.
fn host(given: &str) -> Option<SlotHost> {
    let (name, slots) = match given.split_once(':') {
        None => (given, 1),
        Some((name, count)) => (name, slots(count)?),
    };
    is_name(name).then(|| SlotHost { name: name.to_owned(), slots })
}

/// What the launch command gets as a word of its own: an option it must not be.
fn is_name(name: &str) -> bool {
    let plain = |letter: char| letter.is_alphanumeric() || "-._@%".contains(letter);
    !name.is_empty() && name.len() <= NAME_BYTES && !name.starts_with('-') && name.chars().all(plain)
}

fn slots(given: &str) -> Option<usize> {
    let digits = !given.is_empty() && given.bytes().all(|byte| byte.is_ascii_digit());
    let count: usize = digits.then(|| given.parse().ok())??;
    (1..=RANKS_MAX).contains(&count).then_some(count)
}

fn shown(line: &str) -> String {
    line.chars().map(|c| if c.is_control() { '?' } else { c }).take(60).collect()
}

/// How many ranks a job has that does not say it: one for each slot.
pub fn ranks_wanted(hosts: &[SlotHost], map: RankMap) -> usize {
    match map {
        RankMap::Slot | RankMap::Host => hosts.iter().map(|host| host.slots).sum(),
        RankMap::PerHost(count) => hosts.len() * count,
    }
}

/// The host of each rank.
pub fn spread(hosts: &[SlotHost], map: RankMap, ranks: usize) -> Result<Vec<usize>, HostsError> {
    let slots = hosts.iter().map(|host| host.slots).sum();
    if ranks > slots {
        let list = hosts.iter().map(|host| format!("{}:{}", host.name, host.slots)).collect::<Vec<_>>().join(", ");
        return Err(HostsError::TooFewSlots { ranks, slots, list });
    }
    let all = 0..hosts.len();
    let places: Vec<usize> = match map {
        RankMap::Slot => all.flat_map(|host| std::iter::repeat_n(host, hosts[host].slots)).collect(),
        RankMap::Host => {
            let most = hosts.iter().map(|host| host.slots).max().unwrap_or(0);
            (0..most).flat_map(|turn| all.clone().filter(move |host| turn < hosts[*host].slots)).collect()
        }
        RankMap::PerHost(per_host) => {
            if let Some(SlotHost { name, slots }) = hosts.iter().find(|host| host.slots < per_host) {
                return Err(HostsError::TooManyPerHost { per_host, name: name.clone(), slots: *slots });
            }
            let taken = hosts.len() * per_host;
            if ranks > taken {
                return Err(HostsError::TooFewHosts { ranks, hosts: hosts.len(), per_host, taken });
            }
            all.flat_map(|host| std::iter::repeat_n(host, per_host)).collect()
        }
    };
    Ok(places[..ranks].to_vec())
}

/// What stands for the host in a launch command.
const PLACE: &str = "{host}";
/// Commands that hand their arguments to a shell, which cuts them into words again.
const SHELLS: [&str; 2] = ["ssh", "rsh"];

/// The command through which the agent of a host is started, in words; `{host}` stands for the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch(Vec<String>);

impl Default for Launch {
    /// `ssh` that asks nothing, gives up soon, and notices a host that has gone silent.
    fn default() -> Self {
        let words = "ssh -o BatchMode=yes -o ConnectTimeout=4 -o ServerAliveInterval=5 -o ServerAliveCountMax=3 {host}";
        Self(words.split(' ').map(str::to_owned).collect())
    }
}

impl std::fmt::Display for Launch {
    /// As it is read again.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Vec<String> = self.0.iter().map(|word| quoted(word)).collect();
        f.write_str(&words.join(" "))
    }
}

impl std::str::FromStr for Launch {
    type Err = HostsError;

    /// Cuts at blanks; quotes and backslashes keep words together as in a shell.
    fn from_str(given: &str) -> Result<Self, HostsError> {
        let words = words(given).ok_or_else(|| HostsError::OpenQuote { given: given.to_owned() })?;
        let has_place = words.iter().skip(1).any(|word| word.contains(PLACE));
        has_place.then_some(Self(words)).ok_or_else(|| HostsError::NoHostInLaunch { given: given.to_owned() })
    }
}

/// For so many hosts that are started as a tree, whose agent starts that of each: nobody's, the launcher does. The
/// launcher and each of those that it starts have about as many to start.
pub fn parents(hosts: usize) -> Vec<Option<usize>> {
    let groups = (1..).find(|side| side * side >= hosts).unwrap_or(1);
    let first = |group: usize| group * hosts / groups;
    (0..groups)
        .flat_map(|group| (first(group)..first(group + 1)).map(move |host| (host > first(group)).then(|| first(group))))
        .collect()
}

impl Launch {
    /// The words that start `program`, which has its arguments with it, on `host`.
    pub fn command(&self, host: &str, program: &[impl AsRef<str>]) -> Vec<String> {
        let mut words: Vec<String> = self.0.iter().map(|word| word.replace(PLACE, host)).collect();
        // Also behind a word that starts it: `timeout 60 ssh {host}`.
        let is_shell = |word: &String| SHELLS.contains(&word.rsplit('/').next().unwrap_or_default());
        let by_shell = self.0.iter().any(is_shell);
        let word = |word: &str| if by_shell { quoted(word) } else { word.to_owned() };
        words.extend(program.iter().map(|given| word(given.as_ref())));
        words
    }
}

fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=+.,/:@%".contains(letter);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// The words of a command line; `None` when a quote is not closed.
pub fn words(given: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = given.chars();
    while let Some(letter) = letters.next() {
        match letter {
            _ if letter.is_whitespace() => words.extend(word.take()),
            '\\' => word.get_or_insert_default().push(letters.next()?),
            '\'' | '"' => {
                let into = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        end if end == letter => break,
                        '\\' if letter == '"' => into.push(letters.next()?),
                        other => into.push(other),
                    }
                }
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests;
