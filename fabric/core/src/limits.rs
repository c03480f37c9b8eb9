//! From which lengths on messages go other ways, as the settings say.

use weft_protocol::selector::machine::Best;
use weft_wire::settings::{Settings, SingleCopy};

/// Thresholds, bytes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Largest message sent without asking.
    pub eager: usize,
    /// Smallest message copied out of the sender's memory; `None`: what has been faster lately.
    pub single_copy: Option<usize>,
    pub single_copy_allowed: bool,
    /// So much on its way to us is taken to be in the caches still when the user reads it; of more than that, streams
    /// are stored past the caches.
    pub cached: usize,
    /// What is best on this machine.
    pub machine: Best,
}

impl From<&Settings> for Limits {
    fn from(settings: &Settings) -> Self {
        Self {
            eager: settings.eager_bytes as usize,
            single_copy: settings.single_copy_bytes.map(|bytes| bytes as usize),
            single_copy_allowed: settings.single_copy != SingleCopy::Off,
            cached: usize::MAX,
            machine: Best::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::from(&Settings::default())
    }
}
