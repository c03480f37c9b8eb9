//! What `weft tune` has found out about this machine: the file that keeps it, and whether it is to be believed.
//!
//! The launcher, or an agent for the ranks of its own host, reads it once for a job and hands what is best to the ranks
//! ([`VARIABLE`]). It says how messages between two processes go, which each side decides for itself. Nothing that all
//! ranks of a collective operation must agree on comes from it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// The variable that tells a rank what is best on its machine.
pub const VARIABLE: &str = "WEFT_MACHINE";

/// Counts how the file, and what ranks are told, was changed: what an earlier build has written may mean something
/// else.
const FORMAT: u32 = 1;

/// Of the measuring ranks' processors, others may have used so much meanwhile.
const BUSY_PERCENT: u32 = 10;

/// What tells machines, and times of one machine, apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    pub version: String,
    pub processor: String,
    pub processors: String,
    pub caches: String,
    pub kernel: String,
}

impl Fingerprint {
    /// Of this machine and this build.
    pub fn here() -> Self {
        let line = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let caches: Vec<String> =
            (0..4).map(|index| line(&format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size"))).collect();
        Self {
            version: format!("{} format {FORMAT}", env!("CARGO_PKG_VERSION")),
            processor: processor(&beginning("/proc/cpuinfo")),
            processors: line("/sys/devices/system/cpu/online"),
            caches: caches.join(" ").trim_end().to_owned(),
            kernel: line("/proc/sys/kernel/osrelease"),
        }
    }

    fn rows(&self) -> [(&'static str, &str); 5] {
        let Self { version, processor, processors, caches, kernel } = self;
        let names = ["version", "processor", "processors", "caches", "kernel"];
        let mut values = [version, processor, processors, caches, kernel].into_iter();
        names.map(|name| (name, values.next().map_or("", String::as_str)))
    }
}

/// The first bytes of a file: with many processors all of this one takes the kernel milliseconds.
fn beginning(path: &str) -> String {
    let mut bytes = [0; 2048];
    let read = std::fs::File::open(path).and_then(|mut file| std::io::Read::read(&mut file, &mut bytes));
    String::from_utf8_lossy(&bytes[..read.unwrap_or(0)]).into_owned()
}

fn processor(cpuinfo: &str) -> String {
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
        line.split_once(':').map(|(_, value)| value.trim())
    };
    let parts = ["model name", "cpu family", "model\t", "stepping"].map(|name| field(name).unwrap_or("?"));
    parts.join("/")
}

/// What the file keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    pub machine: Fingerprint,
    /// Of the measuring ranks' processors, what others used meanwhile.
    pub busy_percent: u32,
    /// What is best, as it is handed to ranks.
    pub best: String,
    /// What was measured: what it is, and nanoseconds.
    pub figures: Vec<(String, u64)>,
}

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in self.machine.rows() {
            writeln!(f, "{name}: {value}")?;
        }
        writeln!(f, "busy-percent: {}\nbest: {}", self.busy_percent, self.best)?;
        self.figures.iter().try_for_each(|(name, ns)| writeln!(f, "ns {name}: {ns}"))
    }
}

impl Tuning {
    /// Reads what [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rows: HashMap<&str, &str> = HashMap::new();
        let mut figures = Vec::new();
        for line in text.lines() {
            let (name, value) = line.split_once(':')?;
            match name.strip_prefix("ns ") {
                Some(figure) => figures.push((figure.to_owned(), value.trim().parse().ok()?)),
                None => drop(rows.insert(name, value.trim())),
            }
        }
        let of = |name: &str| rows.get(name).map(|value| (*value).to_owned());
        let (version, processor, processors) = (of("version")?, of("processor")?, of("processors")?);
        let machine = Fingerprint { version, processor, processors, caches: of("caches")?, kernel: of("kernel")? };
        Some(Self { machine, busy_percent: of("busy-percent")?.parse().ok()?, best: of("best")?, figures })
    }

    /// Why this is not to be believed here, if it is not.
    pub fn doubt(&self, here: &Fingerprint) -> Option<String> {
        let other = self.machine.rows().into_iter().zip(here.rows()).find(|(then, now)| then != now);
        if let Some(((name, then), (_, now))) = other {
            return Some(format!("it was measured with {name} '{then}', and this is '{now}'"));
        }
        let busy = self.busy_percent;
        let text =
            format!("others used {busy} % of the processors while it was measured, {BUSY_PERCENT} % are allowed");
        (busy > BUSY_PERCENT).then_some(text)
    }
}

/// What is known of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// There is no file.
    Nothing,
    Good(Tuning),
    /// It is not believed, and why.
    Doubtful(String),
}

/// The file for this host and version below the user's cache directory, as an environment names that.
pub fn path(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")))?;
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: String = host.trim().chars().map(|letter| if letter == '/' { '-' } else { letter }).collect();
    Some(cache.join(format!("weft/machine-{host}-{}", env!("CARGO_PKG_VERSION"))))
}

/// Reads a file, and looks whether it is of this machine.
pub fn look(path: &Path) -> Finding {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Finding::Nothing,
        Err(error) => return Finding::Doubtful(error.to_string()),
    };
    match Tuning::parse(&text) {
        None => Finding::Doubtful("it is not one that weft tune has written".into()),
        Some(tuning) => match tuning.doubt(&Fingerprint::here()) {
            None => Finding::Good(tuning),
            Some(why) => Finding::Doubtful(why),
        },
    }
}

/// What ranks with this environment are told, unless they are told already.
pub(crate) fn best(environment: &HashMap<OsString, OsString>) -> Option<String> {
    if environment.contains_key(std::ffi::OsStr::new(VARIABLE)) {
        return None;
    }
    match look(&path(|name| environment.get(std::ffi::OsStr::new(name)).cloned())?) {
        Finding::Good(tuning) => Some(tuning.best),
        Finding::Nothing | Finding::Doubtful(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuning() -> Tuning {
        let figures = vec![("line".to_owned(), 60), ("ring/4096/8192".to_owned(), 350)];
        Tuning { machine: Fingerprint::here(), busy_percent: 3, best: "8192,1,2".into(), figures }
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        assert_eq!(Tuning::parse(&tuning().to_string()), Some(tuning()));
        for wrong in ["", "version: 1\n", "no colon", &tuning().to_string().replace("60", "sixty")] {
            assert_eq!(Tuning::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_file_of_another_machine_or_version_or_of_a_busy_time_is_not_believed() {
        let here = Fingerprint::here();
        assert_eq!(tuning().doubt(&here), None);
        let doubt = |machine| Tuning { machine, ..tuning() }.doubt(&here).expect("another one");
        assert!(doubt(Fingerprint { processor: "486".into(), ..here.clone() }).contains("processor '486'"));
        assert!(doubt(Fingerprint { processors: "0-9999".into(), ..here.clone() }).contains("processors '0-9999'"));
        assert!(doubt(Fingerprint { kernel: "2.4".into(), ..here.clone() }).contains("kernel '2.4'"));
        assert!(doubt(Fingerprint { caches: "1K".into(), ..here.clone() }).contains("caches '1K'"));
        assert!(doubt(Fingerprint { version: "0.0".into(), ..here.clone() }).contains("version '0.0'"));
        let busy = Tuning { busy_percent: 40, ..tuning() }.doubt(&here).expect("it was busy");
        assert!(busy.contains("others used 40 %"), "{busy}");
    }

    #[test]
    fn the_file_lies_below_the_cache_directory() {
        let with = |name: &'static str, value: &'static str| path(move |asked| (asked == name).then(|| value.into()));
        assert!(with("XDG_CACHE_HOME", "/c").expect("a path").starts_with("/c/weft"));
        assert!(with("HOME", "/h").expect("a path").starts_with("/h/.cache/weft"));
        assert_eq!(with("XDG_CACHE_HOME", "c"), None, "the XDG specification: relative paths are to be ignored");
    }

    #[test]
    fn ranks_are_told_what_a_good_file_says_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut environment = HashMap::from([("XDG_CACHE_HOME".into(), folder.path().into())]);
        let file = path(|name| environment.get(std::ffi::OsStr::new(name)).cloned()).expect("a path");
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        assert_eq!((best(&environment), look(&file)), (None, Finding::Nothing));
        std::fs::write(&file, tuning().to_string()).expect("written");
        assert_eq!(best(&environment).as_deref(), Some("8192,1,2"));
        std::fs::write(&file, Tuning { busy_percent: 90, ..tuning() }.to_string()).expect("written");
        assert_eq!(best(&environment), None);
        std::fs::write(&file, "something else").expect("written");
        assert!(matches!(look(&file), Finding::Doubtful(_)) && best(&environment).is_none());
        std::fs::write(&file, tuning().to_string()).expect("written");
        environment.insert(VARIABLE.into(), "usual".into());
        assert_eq!(best(&environment), None, "the user has said so");
    }
}
