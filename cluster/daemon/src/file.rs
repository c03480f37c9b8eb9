//! The file of the database: whether it has changed, and what is wrong with it.

use crate::log;
use std::cell::{Cell, RefCell};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The last database that was good.
pub const DATABASE: &str = "database";

/// The file of the database.
pub struct DatabaseFile {
    pub path: PathBuf,
    /// Which file this was when it was read last, of what length, and when it was changed last.
    seen: Cell<Option<[u64; 4]>>,
    /// What is wrong with it.
    trouble: RefCell<Option<String>>,
}

impl DatabaseFile {
    pub fn new(path: PathBuf, trouble: Option<String>) -> Self {
        Self { path, seen: Cell::default(), trouble: RefCell::new(trouble) }
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
