//! Where the segments of jobs are: among the open descriptors of processes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The shared memory of one job, open for reading, with the processes that have it.
pub struct FoundJob {
    pub file: File,
    pub holders: Vec<u32>,
    /// It is known to be there, and its processes are ours.
    pub(crate) is_own: bool,
    /// Whose the first of them is.
    pub user: u32,
    /// Device and inode.
    identity: (u64, u64),
}

impl FoundJob {
    /// The memory of a job of our own: who lives is known, and no process is asked what it has mapped, which one that
    /// is stuck in the kernel might never answer.
    ///
    /// # Errors
    /// The system does not say what file this is.
    pub fn of(file: File) -> io::Result<Self> {
        let data = file.metadata()?;
        Ok(Self { identity: (data.dev(), data.ino()), user: data.uid(), holders: Vec::new(), is_own: true, file })
    }

    /// Whether a process has this memory: as a descriptor, or only mapped, since some programs close what they do not
    /// know.
    pub fn is_held_by(&self, pid: u32) -> bool {
        self.holders.contains(&pid)
            || fs::read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|maps| self.is_in(&maps))
    }

    /// Whether it is among a process's mappings, one a line: addresses, permissions, offset, device, inode, name.
    fn is_in(&self, maps: &str) -> bool {
        let inode = self.identity.1.to_string();
        maps.lines().any(|line| line.contains(LINK) && line.split_ascii_whitespace().nth(4) == Some(&inode))
    }
}

/// What the kernel calls our memory.
const LINK: &str = "/memfd:weft-segment";

/// Whose processes are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Those of this user.
    Own,
    /// All that this process may look into.
    All,
}

/// Every segment that a process holds.
///
/// # Errors
/// `/proc` cannot be read. Processes that end meanwhile are no error.
pub fn segments(whose: Whose) -> io::Result<Vec<FoundJob>> {
    let own = fs::metadata("/proc/self")?.uid();
    let mut found: BTreeMap<(u64, u64), FoundJob> = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let Ok(entry) = entry else { continue };
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(user) = entry.metadata().map(|process| process.uid()) else { continue };
        if whose == Whose::All || user == own {
            look_at(pid, user, &entry.path().join("fd"), &mut found);
        }
    }
    Ok(found.into_values().collect())
}

fn look_at(pid: u32, user: u32, descriptors: &Path, found: &mut BTreeMap<(u64, u64), FoundJob>) {
    let Ok(entries) = fs::read_dir(descriptors) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if !fs::read_link(&path).is_ok_and(|link| link.to_str().is_some_and(|link| link.starts_with(LINK))) {
            continue;
        }
        let Ok(file) = File::open(&path) else { continue };
        let Ok(identity) = file.metadata().map(|data| (data.dev(), data.ino())) else { continue };
        let new = || FoundJob { file, holders: Vec::new(), is_own: false, user, identity };
        let holders = &mut found.entry(identity).or_insert_with(new).holders;
        if !holders.contains(&pid) {
            holders.push(pid);
        }
    }
}
