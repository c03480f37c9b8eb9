//! Memory of a process, and files that are only read where they are files.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Memory of a process, as far as it is known.
pub trait StackMemory {
    /// The 64 bits there.
    fn long_at(&self, address: u64) -> Option<u64>;
}

/// `/proc/PID/mem`.
pub struct ProcessMemory(pub File);

impl StackMemory for ProcessMemory {
    fn long_at(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, address).ok()?;
        Some(u64::from_le_bytes(bytes))
    }
}

/// Opens what is a file, and waits for nobody.
pub fn open_file(path: &Path) -> std::io::Result<File> {
    const NONBLOCK: i32 = 0o4000;
    let file = File::options().read(true).custom_flags(NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(std::io::ErrorKind::InvalidInput.into()) }
}
