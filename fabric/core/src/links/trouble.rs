//! What is said of a rank that is silent.

use std::io;

/// A rank that our own kernel has no way to for so long, and says so as often, is lost. Shorter faults are ridden out.
pub const LOST_NS: u64 = 10_000_000_000;
const LOST_REPORTS: u32 = 3;
/// The same where it says that nobody has the port. It says so of ports of this host alone, and a rank has its port before
/// anybody hears of it.
const REFUSED_NS: u64 = 300_000_000;

/// What is said of a rank since it was last heard: by our own kernel, or by others, who may be anybody.
pub struct Trouble {
    pub is_own: bool,
    since_ns: u64,
    reports: u32,
    /// What the last report said, and when.
    pub error: io::Error,
    last_ns: u64,
    pub told: bool,
}

impl Trouble {
    pub fn lasts(&self) -> bool {
        let least_ns = if self.is_refusal() { REFUSED_NS } else { LOST_NS };
        self.reports >= LOST_REPORTS && self.last_ns - self.since_ns >= least_ns
    }

    /// Whether the rank's process has ended.
    pub fn is_refusal(&self) -> bool {
        self.is_own && self.error.kind() == io::ErrorKind::ConnectionRefused
    }

    /// One more report of a rank.
    pub fn add(known: &mut Option<Self>, is_own: bool, error: io::Error, now_ns: u64) {
        match known {
            // What comes from elsewhere changes nothing in what we know ourselves.
            Some(trouble) if trouble.is_own && !is_own => {}
            // What was said long ago was another fault, which has passed.
            Some(trouble) if trouble.is_own == is_own && now_ns - trouble.last_ns < LOST_NS => {
                (trouble.error, trouble.last_ns) = (error, now_ns);
                trouble.reports += 1;
            }
            trouble => {
                let told = trouble.as_ref().is_some_and(|trouble| trouble.told);
                *trouble = Some(Self { is_own, since_ns: now_ns, reports: 1, error, last_ns: now_ns, told });
            }
        }
    }
}
