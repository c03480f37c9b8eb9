//! Whether memory had run out when a process was killed: the kernel counts such kills in each control group.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// The kernel's counter of processes of our control group that it killed for want of memory.
#[derive(Debug)]
pub struct Kills {
    file: Option<PathBuf>,
    /// How many are accounted for.
    seen: u64,
}

impl Kills {
    /// Those of this process's group, from now on. Where there is no such counter there will be none.
    pub fn here() -> Self {
        let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::of(file_of(&groups, Path::new("/sys/fs/cgroup")))
    }

    fn of(file: Option<PathBuf>) -> Self {
        let seen = file.as_deref().and_then(count).unwrap_or(0);
        Self { file, seen }
    }

    /// Whether there was one that has not been accounted for. It is, with this.
    pub fn take_one(&mut self) -> bool {
        let is_more = self.file.as_deref().and_then(count).is_some_and(|count| count > self.seen);
        self.seen += u64::from(is_more);
        is_more
    }
}

/// The file with the counter of a process with these groups: in both versions of control groups a line of one file.
fn file_of(groups: &str, root: &Path) -> Option<PathBuf> {
    let file = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (mount, name) = match controllers {
            "" => (root.to_path_buf(), "memory.events"),
            list if list.split(',').any(|controller| controller == "memory") => {
                (root.join("memory"), "memory.oom_control")
            }
            _ => return None,
        };
        // In a container the path may be the one outside, and the group's files stand in the mount itself.
        let own = mount.join(path.trim_start_matches('/'));
        [own, mount].map(|directory| directory.join(name)).into_iter().find(|file| count(file).is_some())
    };
    groups.lines().find_map(file)
}

fn count(file: &Path) -> Option<u64> {
    let text = read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    const OLD: &str = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
    const NEW: &str = "low 0\nhigh 0\nmax 8\noom 2\noom_kill 1\noom_group_kill 7\n";

    #[test]
    fn counter_is_found_in_both_versions_of_control_groups() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        create_dir_all(root.join("memory/job")).unwrap();
        create_dir_all(root.join("slice/job")).unwrap();
        write(root.join("memory/job/memory.oom_control"), OLD).unwrap();
        write(root.join("slice/job/memory.events"), NEW).unwrap();
        let old = file_of("5:cpu:/\n4:memory:/job\n0::/elsewhere\n", root).unwrap();
        assert_eq!((old.clone(), count(&old)), (root.join("memory/job/memory.oom_control"), Some(3)));
        let new = file_of("0::/slice/job\n", root).unwrap();
        assert_eq!((new.clone(), count(&new)), (root.join("slice/job/memory.events"), Some(1)));
        write(root.join("memory.events"), NEW).unwrap();
        assert_eq!(file_of("0::/docker/abc\n", root), Some(root.join("memory.events")), "a container's own mount");
        assert_eq!(file_of("5:cpu:/\n", root), None);
    }

    #[test]
    fn each_kill_is_accounted_for_once() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("memory.oom_control");
        write(&file, OLD).unwrap();
        let mut kills = Kills::of(Some(file.clone()));
        assert!(!kills.take_one(), "those before the job are not ours");
        write(&file, OLD.replace('3', "5")).unwrap();
        assert_eq!([kills.take_one(), kills.take_one(), kills.take_one()], [true, true, false]);
        assert!(!Kills::of(None).take_one());
    }
}
