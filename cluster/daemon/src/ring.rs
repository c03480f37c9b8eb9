//! The memory in which a launcher keeps what its ranks have written lately ([`weft_cluster::job_log`]).

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use weft_cluster::job_log::{HEAD_BYTES, LogHead, MEMORY_NAME, last_pieces};

/// So much is kept of a job that is over.
const MOST_KEPT_BYTES: usize = 64 << 10;

/// That of a job that runs.
pub struct SeenLog(File);

impl SeenLog {
    /// Among the descriptors of a launcher, if it has one. It is opened only if it is memory of that user's own: a
    /// descriptor may lead to anything, and its name be made up.
    pub fn of(pid: i32, uid: u32) -> Option<Self> {
        let wanted = format!("/memfd:{}", MEMORY_NAME.to_string_lossy());
        let named = |link: &std::path::Path| link.to_str().is_some_and(|link| link.starts_with(&wanted));
        let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
        let mut paths = entries.flatten().map(|entry| entry.path());
        let path = paths.find(|path| std::fs::read_link(path).is_ok_and(|link| named(&link)))?;
        // To open a device can be to start it, so what is behind the name is looked at before that.
        let seen = File::options().read(true).custom_flags(libc::O_PATH | libc::O_CLOEXEC).open(path).ok()?;
        let data = seen.metadata().ok()?;
        if !data.is_file() || data.uid() != uid || data.nlink() != 0 {
            return None;
        }
        File::open(format!("/proc/self/fd/{}", seen.as_raw_fd())).ok().map(Self)
    }

    fn head(&self) -> Option<LogHead> {
        let mut head = [0; HEAD_BYTES];
        self.0.read_exact_at(&mut head, 0).ok()?;
        LogHead::read(&head)
    }

    /// What there is from a position on, at most so much: where it begins, and where all that there is ends.
    pub fn read(&self, from: u64, most: u64) -> Option<(u64, Vec<u8>, u64)> {
        let head = self.head()?;
        let begin = head.begin(from);
        let mut bytes = Vec::new();
        for (at, length) in head.places(begin, head.end.min(begin.saturating_add(most))) {
            let filled = bytes.len();
            bytes.resize(filled + length, 0);
            self.0.read_exact_at(&mut bytes[filled..], at).ok()?;
        }
        let begin = self.head()?.keep(begin, &mut bytes);
        Some((begin, bytes, head.end))
    }

    /// What is kept of it, and where it ends.
    pub fn last(&self) -> Option<(u64, Vec<u8>)> {
        let (_, bytes, end) = self.read(0, u64::MAX)?;
        Some((end, last_pieces(&bytes, MOST_KEPT_BYTES).to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_cluster::job_log::{LogRing, pieces};

    fn memory(name: &std::ffi::CStr, ring: &mut LogRing, words: &[&str]) -> File {
        let memory = weft_kernel::memory_with(name, &[0; 4096], false).map(File::from).expect("memory");
        memory.write_all_at(&ring.head(), 0).expect("written");
        for word in words {
            ring.add(0, false, word.as_bytes())
                .iter()
                .for_each(|(at, bytes)| memory.write_all_at(bytes, *at).expect("written"));
        }
        memory
    }

    #[test]
    fn memory_of_a_process_is_found_by_its_name_if_it_is_its_users() {
        let (pid, uid) = (std::process::id() as i32, weft_kernel::user());
        assert!(SeenLog::of(pid, uid).is_none());
        let other = memory(c"weft-segment", &mut LogRing::new(256), &[]);
        assert!(SeenLog::of(pid, uid).is_none());
        let mut ring = LogRing::new(256);
        let own = memory(MEMORY_NAME, &mut ring, &["one", "two"]);
        assert!(SeenLog::of(pid, uid + 1).is_none(), "of another user");
        let seen = SeenLog::of(pid, uid).expect("it is there");
        drop((own, other));
        let (begin, bytes, end) = seen.read(0, 1000).expect("sound");
        assert_eq!((begin, end, pieces(&bytes).count()), (0, 22, 2));
        assert_eq!(seen.read(11, 3).expect("sound").1.len(), 3);
        assert_eq!(seen.last().expect("sound").0, 22);
    }
}
