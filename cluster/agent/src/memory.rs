//! Whether memory had run out when a process was killed: the kernel counts such kills in each control group, and names
//! the process in its log, which not everybody may read.

use std::fs::{File, OpenOptions, read_link, read_to_string};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The kernel's counter of processes of our control group that it killed for want of memory.
#[derive(Debug)]
pub struct Kills {
    file: Option<PathBuf>,
    /// How many are accounted for.
    seen: u64,
    log: Option<Log>,
}

/// What the kernel says from now on.
#[derive(Debug)]
struct Log {
    file: File,
    /// Processes that were killed for want of memory, as far as it was read.
    victims: Vec<i32>,
    /// Something was lost before it was read.
    has_gaps: bool,
}

/// The log is written right behind the kill; so long a look waits for it.
const PATIENCE: Duration = Duration::from_millis(100);
/// More than a record of the log.
const RECORD_BYTES: usize = 16 << 10;
/// The first namespace of processes: the log has its numbers.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

impl Kills {
    /// Those of this process's group, from now on. Where there is no such counter there will be none.
    pub fn here() -> Self {
        let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
        let is_first = read_link("/proc/self/ns/pid").is_ok_and(|name| name.as_os_str() == FIRST_NAMESPACE);
        let log = if is_first { Log::open(Path::new("/dev/kmsg")) } else { None };
        Self::of(file_of(&groups, Path::new("/sys/fs/cgroup")), log)
    }

    /// A file with what it counts now.
    fn of(counter: Option<(PathBuf, u64)>, log: Option<Log>) -> Self {
        let (file, seen) = counter.unzip();
        Self { file, seen: seen.unwrap_or(0), log }
    }

    /// Accounts for one kill, if there is one that has not been accounted for.
    pub fn take_one(&mut self) -> bool {
        let is_more = self.file.as_deref().and_then(count).is_some_and(|count| count > self.seen);
        self.seen += u64::from(is_more);
        is_more
    }

    /// Whether this process of the group, which was killed, was killed for want of memory; and whether that is sure.
    /// Where nobody says whom the kernel has killed, it may have been another one.
    pub fn take_of(&mut self, pid: i32) -> Option<bool> {
        if !self.take_one() {
            return None;
        }
        match &mut self.log {
            Some(log) => match log.names(pid) {
                true => Some(true),
                false => log.has_gaps.then_some(false),
            },
            None => Some(false),
        }
    }
}

impl Log {
    fn open(path: &Path) -> Option<Self> {
        let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
        file.seek(SeekFrom::End(0)).ok()?;
        Some(Self { file, victims: Vec::new(), has_gaps: false })
    }

    fn names(&mut self, pid: i32) -> bool {
        let mut place = vec![0; RECORD_BYTES];
        while !self.victims.contains(&pid) {
            match self.file.read(&mut place) {
                Ok(0) => return false,
                Ok(bytes) => self.victims.extend(String::from_utf8_lossy(&place[..bytes]).lines().filter_map(victim)),
                Err(error) if error.kind() == ErrorKind::BrokenPipe => self.has_gaps = true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    match weft_kernel::await_events(self.file.as_raw_fd(), libc::POLLIN, Some(PATIENCE)) {
                        Ok(0) | Err(_) => return false,
                        Ok(_) => {}
                    }
                }
                Err(_) => {
                    self.has_gaps = true;
                    return false;
                }
            }
        }
        true
    }
}

/// Whom the kernel has killed for want of memory, as it says.
fn victim(line: &str) -> Option<i32> {
    let (_, rest) = line.split_once("ut of memory")?;
    rest.split_once("Killed process ")?.1.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// The file with the counter of a process with these groups, and what it is: in both versions of control groups a line
/// of one file.
fn file_of(groups: &str, root: &Path) -> Option<(PathBuf, u64)> {
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
        let files = [own, mount].map(|directory| directory.join(name));
        files.into_iter().find_map(|file| count(&file).map(|kills| (file, kills)))
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
        assert_eq!(old, (root.join("memory/job/memory.oom_control"), 3));
        let new = file_of("0::/slice/job\n", root).unwrap();
        assert_eq!(new, (root.join("slice/job/memory.events"), 1));
        write(root.join("memory.events"), NEW).unwrap();
        assert_eq!(file_of("0::/docker/abc\n", root), Some((root.join("memory.events"), 1)), "a container's own mount");
        assert_eq!(file_of("5:cpu:/\n", root), None);
    }

    #[test]
    fn each_kill_is_accounted_for_once() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("memory.oom_control");
        write(&file, OLD).unwrap();
        let mut kills = Kills::of(Some((file.clone(), 3)), None);
        assert!(!kills.take_one(), "those before the job are not ours");
        write(&file, OLD.replace('3', "5")).unwrap();
        assert_eq!([kills.take_one(), kills.take_one(), kills.take_one()], [true, true, false]);
        assert!(!Kills::of(None, None).take_one());
    }

    #[test]
    fn who_was_killed_is_sure_only_where_the_log_says_it() {
        let root = tempfile::tempdir().unwrap();
        let [file, log] = ["memory.oom_control", "log"].map(|name| root.path().join(name));
        let record =
            |pid: i32| format!("3,1,2,-;Memory cgroup out of memory: Killed process {pid} (tail) total-vm:1kB\n");
        write(&file, OLD).unwrap();
        write(&log, record(7)).unwrap();
        let mut blind = Kills::of(Some((file.clone(), 3)), None);
        let mut kills = Kills::of(Some((file.clone(), 3)), Log::open(&log));
        assert_eq!((blind.take_of(7), kills.take_of(7)), (None, None), "what was before does not count");
        write(&file, OLD.replace('3', "5")).unwrap();
        write(&log, format!("{}{}6,3,4,-;eth0: link up\n{}", record(7), record(8), record(99))).unwrap();
        assert_eq!((blind.take_of(7), blind.take_of(8), blind.take_of(9)), (Some(false), Some(false), None));
        assert_eq!((kills.take_of(9), kills.take_of(8)), (None, Some(true)), "somebody else has killed 9");
        assert_eq!(victim("3,1,2,-;Out of memory: Killed process 12 (Killed process ) total-vm:1kB"), Some(12));
        assert_eq!(victim("6,1,2,-;Killed process 12"), None);
    }
}
