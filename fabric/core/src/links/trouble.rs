//! What is said of a rank that is silent.

use std::io;

/// A rank that our own kernel has no way to for so long, and says so as often, is lost. Shorter faults are ridden out.
pub const LOST_NS: u64 = 10_000_000_000;
const LOST_REPORTS: u32 = 3;
/// The same where it says that nobody has the port. It says so of ports of this host alone, and a rank has its port
/// before anybody hears of it.
const REFUSED_NS: u64 = 300_000_000;

/// What is said of a rank since it was last heard: by our own kernel, or by others, who may be anybody.
pub struct Trouble {
    pub is_own: bool,
    since_ns: u64,
    reports: u32,
    /// What the last report said, and when.
    pub error: io::Error,
    last_ns: u64,
    /// Since when nothing but that nobody has the port is said by our own kernel, and how often.
    refused: Option<(u64, u32)>,
    pub told: bool,
}

impl Trouble {
    pub fn lasts(&self) -> bool {
        self.is_refusal() || (self.reports >= LOST_REPORTS && self.last_ns - self.since_ns >= LOST_NS)
    }

    /// Whether the rank's process has ended.
    pub fn is_refusal(&self) -> bool {
        let lasts = |(since_ns, reports)| reports >= LOST_REPORTS && self.last_ns - since_ns >= REFUSED_NS;
        self.refused.is_some_and(lasts)
    }

    /// One more report of a rank.
    pub fn add(known: &mut Option<Self>, is_own: bool, error: io::Error, now_ns: u64) {
        let is_refusal = is_own && error.kind() == io::ErrorKind::ConnectionRefused;
        match known {
            // What comes from elsewhere changes nothing in what we know ourselves.
            Some(trouble) if trouble.is_own && !is_own => {}
            // What was said long ago was another fault, which has passed.
            Some(trouble) if trouble.is_own == is_own && now_ns - trouble.last_ns < LOST_NS => {
                let (since_ns, refusals) = trouble.refused.unwrap_or((now_ns, 0));
                trouble.refused = is_refusal.then_some((since_ns, refusals + 1));
                (trouble.error, trouble.last_ns) = (error, now_ns);
                trouble.reports += 1;
            }
            trouble => {
                let told = trouble.as_ref().is_some_and(|trouble| trouble.told);
                let refused = is_refusal.then_some((now_ns, 1));
                *trouble = Some(Self { is_own, since_ns: now_ns, reports: 1, error, last_ns: now_ns, refused, told });
            }
        }
    }
}
