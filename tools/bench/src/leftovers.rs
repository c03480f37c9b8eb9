//! Shared-memory files that a library leaves behind when its job is aborted or killed.
//!
//! Only files that appeared while the job ran, are named as the peers name theirs, belong to this user and that no
//! process maps: another job of the same library on this machine keeps its own.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const DIRECTORY: &str = "/dev/shm";
/// MPICH (two files: one stays when its start-up is interrupted), Open MPI (two components), Intel MPI.
const PREFIXES: [&str; 5] = ["mpich_shm_", "mpich_shar_tmp", "sm_segment.", "vader_segment.", "Intel_MPI_"];

/// What stood there before a job.
pub struct Before(HashSet<OsString>);

impl Before {
    pub fn look() -> Self {
        Self(names(Path::new(DIRECTORY)).collect())
    }

    /// Removes what the job left.
    pub fn clean(&self) {
        for path in self.new_files(Path::new(DIRECTORY)) {
            // Best effort: the file may be gone by now, and a peer's leak must not end our run.
            let _ = fs::remove_file(path);
        }
    }

    fn new_files(&self, directory: &Path) -> Vec<PathBuf> {
        let own = fs::metadata("/proc/self").map(|m| m.uid()).ok();
        let new = names(directory).filter(|n| !self.0.contains(n));
        let peers = new.filter(|n| n.to_str().is_some_and(|n| PREFIXES.iter().any(|p| n.starts_with(p))));
        let paths = peers.map(|n| directory.join(n));
        paths.filter(|p| fs::metadata(p).is_ok_and(|m| Some(m.uid()) == own) && !is_mapped(p)).collect()
    }
}

fn names(directory: &Path) -> impl Iterator<Item = OsString> + use<> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|e| e.file_name())
}

fn is_mapped(path: &Path) -> bool {
    let wanted = path.to_string_lossy();
    let maps = fs::read_dir("/proc").into_iter().flatten().flatten().map(|e| e.path().join("maps"));
    maps.filter_map(|m| fs::read_to_string(m).ok()).any(|m| m.contains(&*wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_files_with_a_peers_name_are_taken() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("mpich_shm_1"), "old").unwrap();
        let before = Before(names(dir.path()).collect());
        for name in ["mpich_shm_2", "mpich_shar_tmpQ", "sm_segment.host.0", "someone_elses"] {
            fs::write(dir.path().join(name), "new").unwrap();
        }
        let mut found = before.new_files(dir.path());
        found.sort();
        assert_eq!(found, ["mpich_shar_tmpQ", "mpich_shm_2", "sm_segment.host.0"].map(|name| dir.path().join(name)));
    }
}
