//! The process's own status page: counters, identity, what it is blocked in. Layout: `weft_wire::status`.

use crate::api::Waiting;
use std::cell::UnsafeCell;
use std::ffi::OsString;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use weft_device::shm::Segment;
use weft_wire::status as page;

/// The counters, in the order of [`page::COUNTER_NAMES`].
#[derive(Debug, Default)]
#[repr(C)]
pub struct Counters {
    pub sends: u64,
    pub receives: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub unexpected_messages: u64,
    pub rendezvous: u64,
    pub single_copy_bytes: u64,
    pub single_copy_refused: u64,
    pub ring_full: u64,
    pub self_messages: u64,
    pub yields: u64,
    pub sleeps: u64,
    pub wakeups_sent: u64,
    pub collectives_shared: u64,
    /// Packets that left by a device, and what they took there, headers included. Brought up to date before each sleep
    /// and at the end.
    pub shm_packets: u64,
    pub shm_bytes: u64,
    pub tcp_packets: u64,
    pub tcp_bytes: u64,
    pub udp_packets: u64,
    pub udp_bytes: u64,
    /// Datagrams of links that were sent, and those of them that counted as lost.
    pub udp_datagrams: u64,
    pub udp_lost: u64,
    /// Datagrams of those that went by a lane.
    pub xdp_datagrams: u64,
    /// Connections and datagrams of those who are no ranks of the job.
    pub strangers: u64,
}
const _: () = assert!(size_of::<Counters>() == page::COUNTER_NAMES.len() * 8);

/// Where the status is kept: in the segment for tools to read, or, where they are not to, in memory of our own.
#[derive(Clone)]
pub(crate) struct StatusMemory {
    at: *mut u8,
    _keep: Keep,
}

#[derive(Clone)]
enum Keep {
    Shared { _segment: Segment },
    Own { _page: Arc<OwnPage> },
}

#[repr(C, align(4096))]
struct OwnPage(UnsafeCell<[u8; page::PAGE_BYTES]>);

// SAFETY: nobody goes through the cell but the one `StatusMemory` user described below.
unsafe impl Sync for OwnPage {}

// SAFETY: whichever kind, the page is written by this process alone, and the endpoint that holds it is used by one
// thread at a time.
unsafe impl Send for StatusMemory {}

impl StatusMemory {
    pub fn new(segment: &Segment, member: u32, shown: bool) -> Self {
        if shown {
            return Self { at: segment.status_page(member), _keep: Keep::Shared { _segment: segment.clone() } };
        }
        let own = Arc::new(OwnPage(UnsafeCell::new([0; page::PAGE_BYTES])));
        Self { at: own.0.get().cast(), _keep: Keep::Own { _page: own } }
    }
}

/// Counters in the page. Written by this process alone, read by tools in others.
pub(crate) struct PageCounters {
    at: *mut Counters,
    _page: StatusMemory,
}

// SAFETY: as for `StatusMemory`.
unsafe impl Send for PageCounters {}

impl PageCounters {
    pub fn new(page: StatusMemory) -> Self {
        // SAFETY: the counters lie inside the page (asserted in weft-wire).
        let at = unsafe { page.at.add(page::COUNTERS_AT).cast() };
        Self { at, _page: page }
    }
}

impl Deref for PageCounters {
    type Target = Counters;
    #[inline]
    fn deref(&self) -> &Counters {
        // SAFETY: valid as long as the page that we keep; any bytes are valid counters; nobody else writes.
        unsafe { &*self.at }
    }
}

impl DerefMut for PageCounters {
    #[inline]
    fn deref_mut(&mut self) -> &mut Counters {
        // SAFETY: as above.
        unsafe { &mut *self.at }
    }
}

/// The counters as a tool in this process reads them: what the page says, without the endpoint's help. Some are brought
/// up to date there only now and then (see [`Counters`]).
pub struct CounterReader(StatusMemory);

// SAFETY: it only loads whole words atomically from memory that lives as long as the page it keeps.
unsafe impl Sync for CounterReader {}

impl CounterReader {
    /// The names of the counters.
    pub const NAMES: &'static [&'static str] = &page::COUNTER_NAMES;

    /// What the counter of this place among the names counts, with its unit.
    pub fn meaning(index: usize) -> String {
        page::COUNTERS[index].to_string()
    }

    /// The counter with this place among the names.
    pub fn read(&self, index: usize) -> u64 {
        assert!(index < Self::NAMES.len(), "there is no counter {index}");
        // SAFETY: the counters lie inside the page, aligned (asserted in weft-wire); the owner stores whole words.
        unsafe { (*self.0.at.add(page::COUNTERS_AT + 8 * index).cast::<AtomicU64>()).load(Ordering::Relaxed) }
    }
}

/// The rest of the page.
pub(crate) struct StatusWriter {
    page: StatusMemory,
}

impl StatusWriter {
    /// Writes who this process is.
    pub fn new(page: StatusMemory, rank: u32, size: u32, job: &str, ways: &str) -> Self {
        let status = Self { page };
        let program = std::env::current_exe().map(|path| program(&path, std::env::args_os())).unwrap_or_default();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
        status.word(page::RANK).store(rank, Ordering::Relaxed);
        status.word(page::SIZE).store(size, Ordering::Relaxed);
        status.word(page::PID).store(std::process::id(), Ordering::Relaxed);
        status.long(page::STARTED_NS).store(now, Ordering::Relaxed);
        status.text(page::JOB, page::JOB_BYTES, job);
        status.text(page::PROGRAM, page::PROGRAM_BYTES, &program);
        status.text(page::WAYS, page::WAYS_BYTES, ways);
        status.word(page::VERSION_AT).store(page::VERSION, Ordering::Relaxed);
        status.long(page::MAGIC_AT).store(page::MAGIC, Ordering::Release);
        status
    }

    pub fn counter_reader(&self) -> CounterReader {
        CounterReader(self.page.clone())
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        debug_assert!(offset + 4 <= 4096 && offset.is_multiple_of(4));
        // SAFETY: inside the page, aligned, valid as long as the page that we keep.
        unsafe { &*self.page.at.add(offset).cast() }
    }

    fn long(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + 8 <= 4096 && offset.is_multiple_of(8));
        // SAFETY: as above.
        unsafe { &*self.page.at.add(offset).cast() }
    }

    fn text(&self, offset: usize, bytes: usize, text: &str) {
        let mut cut = text.len().min(bytes - 1);
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        // SAFETY: the field lies inside the page, which only we write.
        unsafe {
            std::ptr::write_bytes(self.page.at.add(offset), 0, bytes);
            std::ptr::copy_nonoverlapping(text.as_ptr(), self.page.at.add(offset), cut);
        }
    }

    /// The devices lead otherwise than before.
    pub fn set_ways(&self, ways: &str) {
        self.text(page::WAYS, page::WAYS_BYTES, ways);
    }

    pub fn set_known_as(&self, text: &str) {
        self.text(page::KNOWN_AS, page::KNOWN_AS_BYTES, text);
    }

    /// Says what this process is blocked in. Called once a wait has become long, so that short ones do not pay.
    pub fn set_blocked(&self, what: &Waiting, since_ns: u64) {
        self.change(|| {
            self.word(page::BLOCKED_PEER).store(what.peer.map_or(u32::MAX, |p| p.0), Ordering::Relaxed);
            self.word(page::BLOCKED_TAG).store(what.tag.unwrap_or(i32::MIN) as u32, Ordering::Relaxed);
            self.word(page::BLOCKED_CONTEXT).store(what.context, Ordering::Relaxed);
            self.text(page::BLOCKED_CALL, page::BLOCKED_CALL_BYTES, what.call);
            self.long(page::BLOCKED_SINCE_NS).store(since_ns, Ordering::Relaxed);
        });
    }

    pub fn clear_blocked(&self) {
        self.change(|| self.long(page::BLOCKED_SINCE_NS).store(0, Ordering::Relaxed));
    }

    fn change(&self, write: impl FnOnce()) {
        let sequence = self.word(page::BLOCKED_SEQUENCE);
        sequence.fetch_add(1, Ordering::AcqRel);
        write();
        sequence.fetch_add(1, Ordering::Release);
    }
}

/// Programs that run what their first argument names.
const INTERPRETERS: [&str; 7] = ["python", "pypy", "perl", "ruby", "bash", "dash", "sh"];

/// The program, and the script where it is an interpreter: `words` are the command line.
fn program(path: &Path, words: impl Iterator<Item = OsString>) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let mut program = path.display().to_string();
    if INTERPRETERS.contains(&bare) {
        let mut words = words.skip(1).map(|word| word.to_string_lossy().into_owned());
        // A module is a name behind its option, other options stand alone; a command's text says little.
        while let Some(word) = words.next() {
            match word.as_str() {
                "-m" => program += &format!(" -m {}", words.next().unwrap_or_default()),
                "-c" => program += " -c",
                "-X" | "-W" => {
                    words.next();
                    continue;
                }
                option if option.starts_with('-') => continue,
                script => program += &format!(" {script}"),
            }
            break;
        }
    }
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_named_behind_their_interpreter() {
        let named = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            program(Path::new(&words[0]), words.clone().into_iter())
        };
        assert_eq!(named("/bin/python3.11 -u -X dev heat.py 100"), "/bin/python3.11 heat.py");
        assert_eq!(named("/bin/python3 -m mpi4py.bench ring"), "/bin/python3 -m mpi4py.bench");
        assert_eq!(named("/bin/perl -c"), "/bin/perl -c");
        assert_eq!(named("/bin/bash"), "/bin/bash");
        assert_eq!(named("/opt/heat 100"), "/opt/heat");
    }
}
