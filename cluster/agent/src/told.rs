//! Memory in which the launchers of all jobs that one command starts tell what their jobs have used.
//!
//! The command's process tree inherits an address: whose descriptor of the memory it is, which one, and a number that
//! is in the memory's name. A launcher on this host opens it by `/proc`, whoever has closed descriptors in between, and
//! appends one line, in one write. What stands there is a claim of this user's own programs.

use std::ffi::CString;
use std::fs::{File, OpenOptions, read_link};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use weft_records::JobRecord;
use weft_records::total::JobTotal;

/// By this variable launchers find it.
pub const VARIABLE: &str = "WEFT_TIME";
/// Beyond this no more is believed.
const BYTES_MAX: u64 = 64 << 20;

/// The memory.
pub struct Told {
    memory: File,
    number: u64,
}

fn name(number: u64) -> String {
    format!("weft-time-{number:016x}")
}

impl Told {
    /// # Errors
    /// The kernel gives no memory.
    pub fn new() -> io::Result<Self> {
        let number = weft_kernel::true_random().ok_or(io::ErrorKind::Unsupported)?;
        Ok(Self { memory: crate::sys::growing_memory(&CString::new(name(number))?)?.into(), number })
    }

    /// The variable for the command.
    pub fn variable(&self) -> (&'static str, String) {
        (VARIABLE, format!("{}/{}/{:016x}", std::process::id(), self.memory.as_raw_fd(), self.number))
    }

    /// The descriptor that has to stay open.
    pub fn descriptor(&self) -> i32 {
        self.memory.as_raw_fd()
    }

    /// What has been told so far, together. What is no such line is left out.
    ///
    /// # Errors
    /// Those of reading.
    pub fn total(&self) -> io::Result<JobTotal> {
        let mut memory = &self.memory;
        memory.seek(SeekFrom::Start(0))?;
        let mut text = Vec::new();
        memory.take(BYTES_MAX).read_to_end(&mut text)?;
        Ok(JobTotal::of_lines(&String::from_utf8_lossy(&text)))
    }
}

/// Tells what a job has used, where a command above us wants to know it.
pub fn tell(record: &JobRecord) {
    let Some(memory) = std::env::var(VARIABLE).ok().and_then(|address| open(&address)) else { return };
    // Nobody else could do anything about it.
    let _ = (&memory).write_all(JobTotal::of(std::slice::from_ref(record)).line().as_bytes());
}

/// Processes have numbers of others once they are gone: the memory is known by its name.
fn open(address: &str) -> Option<File> {
    let mut parts = address.split('/');
    let (process, descriptor) = (parts.next()?.parse::<u32>().ok()?, parts.next()?.parse::<u32>().ok()?);
    let number = u64::from_str_radix(parts.next()?, 16).ok()?;
    let path = format!("/proc/{process}/fd/{descriptor}");
    let wanted = format!("/memfd:{}", name(number));
    if !read_link(&path).ok()?.to_str()?.starts_with(&wanted) {
        return None;
    }
    OpenOptions::new().append(true).open(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_under_the_address_is_added_up() {
        let told = Told::new().expect("memory");
        let (_, address) = told.variable();
        let record = JobRecord { ranks: Vec::new(), below_launcher_us: [3, 4], ..JobRecord::default() };
        for _ in 0..2 {
            let line = JobTotal::of(std::slice::from_ref(&record)).line();
            open(&address).expect("it is there").write_all(line.as_bytes()).expect("written");
        }
        open(&address).expect("it is there").write_all(b"nonsense\n").expect("written");
        let total = told.total().expect("read");
        assert_eq!((total.jobs, total.below_launchers_us), (2, [6, 8]));
    }

    #[test]
    fn memory_of_another_name_is_left_alone() {
        let told = Told::new().expect("memory");
        let (_, address) = told.variable();
        let other = address.rsplit_once('/').expect("parts").0.to_owned() + "/1";
        assert!(open(&other).is_none() && open("").is_none() && open("1/x/3").is_none());
    }
}
