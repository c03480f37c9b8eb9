//! The file of the database: whether it has changed, and what is wrong with it.

use crate::between::Asker;
use crate::log;
use blake2::{Blake2s256, Digest};
use std::cell::{Cell, RefCell};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The last database that was good.
pub const DATABASE: &str = "database";

/// The file of the database.
pub struct DatabaseFile {
    pub path: PathBuf,
    /// Which file this was when it was read last, of what length, and when it was changed last.
    seen: Cell<Option<[u64; 4]>>,
    /// What is wrong with it.
    trouble: RefCell<Option<String>>,
    /// Of the database that is used.
    pub tag: Cell<u64>,
}

/// Tells texts apart, the same on all members.
pub fn tag_of(text: &str) -> u64 {
    let digest = Blake2s256::digest(text);
    digest.iter().take(8).fold(0, |tag, byte| (tag << 8) | u64::from(*byte))
}

impl DatabaseFile {
    pub fn new(path: PathBuf, trouble: Option<String>) -> Self {
        Self { path, seen: Cell::default(), trouble: RefCell::new(trouble), tag: Cell::default() }
    }

    /// Whether a client may read it, as one of all users or as who runs this.
    pub fn may_read(&self, asker: &Asker) -> bool {
        // It can be read, and all folders that it is in can be entered.
        let allows = |path: &Path, bit| std::fs::metadata(path).is_ok_and(|data| data.mode() & bit != 0);
        let is_for_all =
            || allows(&self.path, 0o004) && self.path.ancestors().skip(1).all(|folder| allows(folder, 0o001));
        asker.is_root() || asker.uid == weft_kernel::user() || is_for_all()
    }

    pub fn trouble(&self) -> Option<String> {
        self.trouble.borrow().clone()
    }

    /// Tells once what is wrong with it.
    pub fn tell(&self, trouble: Option<String>) {
        if *self.trouble.borrow() != trouble {
            trouble.iter().for_each(log::say);
            *self.trouble.borrow_mut() = trouble;
        }
    }

    /// What it says, where it has changed since the last time.
    pub fn news(&self) -> Option<String> {
        let data = std::fs::metadata(&self.path).ok()?;
        let seen = Some([data.ino(), data.len(), data.ctime() as u64, data.ctime_nsec() as u64]);
        if self.seen.replace(seen) == seen {
            return None;
        }
        std::fs::read_to_string(&self.path).ok()
    }
}
