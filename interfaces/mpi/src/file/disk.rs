//! The file system: the only place of this crate that calls it.
//!
//! Reads and writes name their offset, so that no call depends on another one's. Each of them goes on after a signal
//! and after a short transfer. Locks belong to the open file (not to the process), so two openings in one process
//! exclude each other like two processes.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedFile {
    pub read: bool,
    pub write: bool,
    /// Make the file if there is none.
    pub create: bool,
    /// With `create`: the file must not be there.
    pub exclusive: bool,
    pub permissions: u32,
}

/// An open file.
#[derive(Debug)]
pub struct Disk {
    file: File,
}

/// A byte range that nobody else has locked meanwhile; given back at its end.
#[derive(Debug)]
pub struct LockedRange<'a> {
    disk: &'a Disk,
    start: i64,
    length: i64,
}

/// Bytes reserved at a time: a signal may undo what one call has done.
const RESERVED: i64 = 64 << 20;

impl Disk {
    pub fn open(path: &Path, wanted: WantedFile) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(wanted.read).mode(wanted.permissions);
        let mut flags = libc::O_CLOEXEC;
        if wanted.create {
            flags |= libc::O_CREAT;
        }
        if wanted.exclusive {
            flags |= libc::O_EXCL;
        }
        // The library refuses to create a file that is only read, which the interface has refused already.
        let file = options.write(wanted.write).custom_flags(flags).open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::from_raw_os_error(libc::EISDIR));
        }
        Ok(Self { file })
    }

    pub fn remove(path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    pub fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    pub fn set_size(&self, size: u64) -> io::Result<()> {
        self.file.set_len(size)
    }

    /// Makes sure that the first `size` bytes have room; a smaller file grows to it.
    pub fn reserve(&self, size: i64) -> io::Result<()> {
        let mut at = 0;
        while at < size {
            let step = (size - at).min(RESERVED);
            // SAFETY: a call without memory on a descriptor that is open.
            match unsafe { libc::posix_fallocate(self.file.as_raw_fd(), at, step) } {
                0 => at += step,
                libc::EINTR => {}
                error => return Err(io::Error::from_raw_os_error(error)),
            }
        }
        Ok(())
    }

    pub fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }

    /// Reads until `data` is full or the file ends; answers how many bytes there were.
    pub fn read(&self, data: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < data.len() {
            match self.file.read_at(&mut data[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Hands everything to the device.
    pub fn sync(&self) -> io::Result<()> {
        match self.file.sync_all() {
            // What is no plain file has nothing to hand on.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
            other => other,
        }
    }

    /// Waits until nobody else holds a lock on the range that conflicts. Readers do not exclude each other.
    pub fn lock(&self, start: i64, length: i64, exclusive: bool) -> io::Result<LockedRange<'_>> {
        let kind = if exclusive { libc::F_WRLCK } else { libc::F_RDLCK };
        self.control(kind, start, length)?;
        Ok(LockedRange { disk: self, start, length })
    }

    fn control(&self, kind: i32, start: i64, length: i64) -> io::Result<()> {
        // SAFETY: a structure of plain numbers.
        let mut range: libc::flock = unsafe { std::mem::zeroed() };
        range.l_type = kind as i16;
        range.l_whence = libc::SEEK_SET as i16;
        (range.l_start, range.l_len) = (start, length);
        loop {
            // SAFETY: the structure is what this command takes, and the descriptor is open.
            if unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_SETLKW, &range) } == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    /// Whether the file lies on another machine, where every call is a journey.
    pub fn is_remote(&self) -> bool {
        /// NFS, Lustre, SMB and CIFS, 9P, FUSE, GPFS, Ceph, AFS, BeeGFS, PVFS.
        const REMOTE: [i64; 12] = [
            0x6969,
            0x0bd0_0bd0,
            0x517b,
            0xff53_4d42,
            0xfe53_4d42,
            0x0102_1997,
            0x6573_5546,
            0x4750_4653,
            0x00c3_6400,
            0x5346_414f,
            0x1983_0326,
            0x2003_0528,
        ];
        // SAFETY: a structure of plain numbers.
        let mut about: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: the structure is what the call fills, and the descriptor is open.
        let answered = unsafe { libc::fstatfs(self.file.as_raw_fd(), &mut about) } == 0;
        answered && REMOTE.contains(&(about.f_type as i64))
    }
}

impl Drop for LockedRange<'_> {
    fn drop(&mut self) {
        // Nothing can be done about a lock that does not go; it ends with the descriptor at the latest.
        let _ = self.disk.control(libc::F_UNLCK, self.start, self.length);
    }
}
