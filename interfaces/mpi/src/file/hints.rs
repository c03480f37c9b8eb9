//! Hints: what a program may say about its use of a file (MPI 5.0, section 14.2.8).
//!
//! Known are the reserved keys that change something here, under their names in the standard and those that ROMIO made
//! common. Unknown keys and values that make no sense are ignored, as the standard wants it.

use crate::info::Info;

/// Whether collective accesses are done by few processes for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffering {
    Always,
    Never,
    /// Where the processes' pieces are small and lie between each other's.
    WherePaying,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hints {
    pub read: Buffering,
    pub write: Buffering,
    /// How many processes touch the file in a buffered collective access; none: chosen.
    pub nodes: Option<u32>,
    /// Bytes that each of these handles at a time; none: chosen.
    pub buffer: Option<u64>,
    /// Permissions of a file that is created.
    pub permissions: u32,
    /// What else was given and means nothing here, but is told when asked for.
    told: Info,
}

impl Default for Hints {
    fn default() -> Self {
        let way = Buffering::WherePaying;
        Self { read: way, write: way, nodes: None, buffer: None, permissions: 0o666, told: Info::default() }
    }
}

/// Bytes that an aggregator handles at a time unless a hint says otherwise: what stays in a core's cache on its way.
pub const BUFFER: u64 = 1 << 20;
/// The same where each call is a journey to another machine.
pub const BUFFER_REMOTE: u64 = 16 << 20;

/// Reserved keys that are accepted and kept although they change nothing on an ordinary file system.
const KEPT: [&str; 9] = [
    "access_style",
    "cb_block_size",
    "chunked",
    "chunked_item",
    "chunked_size",
    "filename",
    "io_node_list",
    "nb_proc",
    "num_io_nodes",
];

impl Hints {
    /// Takes over what is understood; the rest stays as it is.
    pub fn take(&mut self, info: &Info) {
        for (key, value) in info.entries() {
            self.take_one(key, value);
        }
    }

    fn take_one(&mut self, key: &str, value: &str) {
        let positive = || value.trim().parse::<u64>().ok().filter(|&number| number > 0);
        let way = match value.trim() {
            "true" | "enable" => Some(Buffering::Always),
            "false" | "disable" => Some(Buffering::Never),
            "automatic" => Some(Buffering::WherePaying),
            _ => None,
        };
        match key {
            "collective_buffering" => {
                (self.read, self.write) = (way.unwrap_or(self.read), way.unwrap_or(self.write));
            }
            "romio_cb_read" => self.read = way.unwrap_or(self.read),
            "romio_cb_write" => self.write = way.unwrap_or(self.write),
            "cb_nodes" => self.nodes = positive().and_then(|n| u32::try_from(n).ok()).or(self.nodes),
            "cb_buffer_size" => self.buffer = positive().map(|bytes| bytes.clamp(1 << 12, 1 << 30)).or(self.buffer),
            "file_perm" => {
                let bits = u32::from_str_radix(value.trim(), 8).ok();
                self.permissions = bits.filter(|&bits| bits <= 0o777).unwrap_or(self.permissions);
            }
            _ if KEPT.contains(&key) => self.told.set(key, value),
            _ => {}
        }
    }

    /// What all processes of a file have to have alike, since they decide by it how they exchange bytes.
    pub fn shape(&self) -> [u64; 2] {
        let way = |way| match way {
            Buffering::Always => 0u64,
            Buffering::Never => 1,
            Buffering::WherePaying => 2,
        };
        let nodes = u64::from(self.nodes.unwrap_or(0));
        [way(self.read) | way(self.write) << 2 | nodes << 32, self.buffer.unwrap_or(0)]
    }

    /// Takes it over from another process.
    pub fn follow(&mut self, [ways, buffer]: [u64; 2]) {
        let way = |bits| match bits & 3 {
            0 => Buffering::Always,
            1 => Buffering::Never,
            _ => Buffering::WherePaying,
        };
        (self.read, self.write) = (way(ways), way(ways >> 2));
        self.nodes = Some((ways >> 32) as u32).filter(|nodes| *nodes > 0);
        self.buffer = Some(buffer).filter(|bytes| *bytes > 0);
    }

    /// The hints in use, for the program.
    pub fn told(&self) -> Info {
        let mut info = self.told.clone();
        let name = |way| match way {
            Buffering::Always => "enable",
            Buffering::Never => "disable",
            Buffering::WherePaying => "automatic",
        };
        if self.read == self.write && self.read != Buffering::WherePaying {
            info.set("collective_buffering", if self.read == Buffering::Always { "true" } else { "false" });
        }
        info.set("romio_cb_read", name(self.read));
        info.set("romio_cb_write", name(self.write));
        info.set("cb_buffer_size", &self.buffer.unwrap_or(BUFFER).to_string());
        if let Some(nodes) = self.nodes {
            info.set("cb_nodes", &nodes.to_string());
        }
        info
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_make_no_sense_change_nothing() {
        let (mut hints, mut info) = (Hints::default(), Info::default());
        for (key, value) in [("cb_nodes", "-3"), ("cb_buffer_size", "much"), ("file_perm", "9"), ("own_key", "1")] {
            info.set(key, value);
        }
        hints.take(&info);
        assert_eq!(hints, Hints::default());
    }

    #[test]
    fn who_follows_exchanges_alike() {
        let (mut hints, mut info, mut other) = (Hints::default(), Info::default(), Hints::default());
        other.follow(hints.shape());
        assert_eq!(other, hints);
        for (key, value) in [("cb_nodes", "3"), ("romio_cb_read", "enable"), ("cb_buffer_size", "8192")] {
            info.set(key, value);
        }
        hints.take(&info);
        info.set("romio_cb_write", "disable");
        other.take(&info);
        other.follow(hints.shape());
        assert_eq!(other, hints);
    }

    #[test]
    fn hints_in_use_are_told() {
        let (mut hints, mut info) = (Hints::default(), Info::default());
        for (key, value) in [("cb_nodes", "2"), ("collective_buffering", "true"), ("access_style", "read_once")] {
            info.set(key, value);
        }
        hints.take(&info);
        assert_eq!((hints.nodes, hints.read), (Some(2), Buffering::Always));
        let told = hints.told();
        for (key, value) in info.entries() {
            assert_eq!(told.get(key), Some(value.as_str()));
        }
    }
}
