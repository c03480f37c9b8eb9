//! Access modes (MPI 5.0, section 14.2.1).

use super::disk::WantedFile;
use crate::abi::{
    MODE_APPEND, MODE_CREATE, MODE_DELETE_ON_CLOSE, MODE_EXCL, MODE_RDONLY, MODE_RDWR, MODE_SEQUENTIAL,
    MODE_UNIQUE_OPEN, MODE_WRONLY,
};
use crate::error::{Class, Error, Result};

/// A valid access mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessMode(i32);

impl AccessMode {
    /// # Errors
    /// Unknown bits, and combinations that the standard forbids.
    pub fn new(bits: i32) -> Result<Self> {
        const KNOWN: i32 = MODE_APPEND
            | MODE_CREATE
            | MODE_DELETE_ON_CLOSE
            | MODE_EXCL
            | MODE_RDONLY
            | MODE_RDWR
            | MODE_SEQUENTIAL
            | MODE_UNIQUE_OPEN
            | MODE_WRONLY;
        let refuse = |why: &str| Err(Error::new(Class::Amode, format!("amode {bits} {why}")));
        let ways = [MODE_RDONLY, MODE_RDWR, MODE_WRONLY].iter().filter(|&&way| bits & way != 0).count();
        let mode = Self(bits);
        if bits & !KNOWN != 0 {
            return refuse("has bits that are no MPI_MODE");
        }
        if ways != 1 {
            return refuse("must have one of MPI_MODE_RDONLY, MPI_MODE_RDWR and MPI_MODE_WRONLY");
        }
        if mode.has(MODE_RDONLY) && bits & (MODE_CREATE | MODE_EXCL) != 0 {
            return refuse("has MPI_MODE_RDONLY with MPI_MODE_CREATE or MPI_MODE_EXCL");
        }
        if mode.has(MODE_RDWR) && mode.is_sequential() {
            return refuse("has MPI_MODE_RDWR with MPI_MODE_SEQUENTIAL");
        }
        Ok(mode)
    }

    pub fn bits(self) -> i32 {
        self.0
    }

    fn has(self, bit: i32) -> bool {
        self.0 & bit != 0
    }

    pub fn reads(self) -> bool {
        !self.has(MODE_WRONLY)
    }

    pub fn writes(self) -> bool {
        !self.has(MODE_RDONLY)
    }

    pub fn is_sequential(self) -> bool {
        self.has(MODE_SEQUENTIAL)
    }

    pub fn begins_at_the_end(self) -> bool {
        self.has(MODE_APPEND)
    }

    pub fn creates(self) -> bool {
        self.has(MODE_CREATE)
    }

    pub fn is_deleted_at_the_end(self) -> bool {
        self.has(MODE_DELETE_ON_CLOSE)
    }

    /// How the process opens the file. Only the first one creates it; the others find it then.
    pub fn wanted(self, first: bool, permissions: u32) -> WantedFile {
        let create = first && self.creates();
        let exclusive = create && self.has(MODE_EXCL);
        WantedFile { read: self.reads(), write: self.writes(), create, exclusive, permissions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_that_the_standard_forbids_are_refused_with_the_reason() {
        for (bits, reason) in [
            (0, "must have one of"),
            (MODE_RDONLY | MODE_WRONLY, "must have one of"),
            (MODE_RDONLY | MODE_CREATE, "MPI_MODE_RDONLY with"),
            (MODE_RDWR | MODE_SEQUENTIAL, "MPI_MODE_SEQUENTIAL"),
            (MODE_RDWR | 1 << 20, "no MPI_MODE"),
        ] {
            let error = AccessMode::new(bits).unwrap_err();
            assert_eq!(error.class, Class::Amode);
            assert!(error.detail.contains(reason), "{}", error.detail);
        }
    }

    #[test]
    fn only_the_first_process_creates() {
        let mode = AccessMode::new(MODE_WRONLY | MODE_CREATE | MODE_EXCL).unwrap();
        let (first, other) = (mode.wanted(true, 0o600), mode.wanted(false, 0o600));
        assert!(first.create && first.exclusive && !other.create && !other.exclusive);
        assert!(first.write && !first.read);
    }
}
