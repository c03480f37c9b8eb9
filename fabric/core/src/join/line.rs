//! The socket to the process manager, as long as it is that: some programs close all descriptors that they do not know,
//! and the number may be that of a file or socket of theirs since.

use std::io;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd};
use std::os::unix::net::UnixStream;
use weft_device::sys;

pub(super) struct SharedLine {
    /// `None` at the end only.
    stream: Option<UnixStream>,
    identity: Option<sys::FileIdentity>,
}

impl SharedLine {
    pub fn new(stream: UnixStream) -> Self {
        Self { identity: sys::identity(stream.as_fd()), stream: Some(stream) }
    }

    /// # Errors
    /// The program has closed it.
    pub fn open(&self) -> io::Result<&UnixStream> {
        let stream = self.stream.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        if self.identity.is_some() && sys::identity(stream.as_fd()) == self.identity {
            return Ok(stream);
        }
        let number = stream.as_raw_fd();
        Err(io::Error::other(format!("the program has closed descriptor {number}, which led there")))
    }
}

impl Drop for SharedLine {
    /// What is not ours any more stays open.
    fn drop(&mut self) {
        if self.open().is_err() {
            let _ = self.stream.take().map(IntoRawFd::into_raw_fd);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::{FromRawFd, OwnedFd};

    #[test]
    fn a_number_that_is_another_files_by_now_is_neither_used_nor_closed() {
        let (ours, _theirs) = UnixStream::pair().expect("a pair");
        let number = ours.as_raw_fd();
        let line = SharedLine::new(ours);
        assert!(line.open().is_ok());
        let file = File::open("/proc/self/exe").expect("a file");
        // SAFETY: both are open; from here on the number is the file's.
        assert_eq!(unsafe { libc::dup2(file.as_raw_fd(), number) }, number);
        let error = line.open().expect_err("not ours").to_string();
        assert_eq!(error, format!("the program has closed descriptor {number}, which led there"));
        drop(line);
        // SAFETY: open, and nobody's but ours.
        let kept = unsafe { OwnedFd::from_raw_fd(number) };
        assert_eq!(sys::identity(kept.as_fd()), sys::identity(file.as_fd()));
    }
}
