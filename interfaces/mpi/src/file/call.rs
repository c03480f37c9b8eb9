//! What a call that reads or writes is told, and the part that each process does by itself.

use super::OpenFile;
use super::memory::FileMemory;
use super::transfer::{self, FileTarget};
use super::view::FileView;
use crate::error::Result;

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BytesWay {
    Read,
    Write,
}

/// Where in the view an access begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessPlace {
    /// At this etype.
    At(i64),
    /// At the individual file pointer.
    Own,
    /// At the shared file pointer.
    Shared,
}

/// A call of one of the families.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The function's name.
    pub name: &'static str,
    pub way: BytesWay,
    pub place: AccessPlace,
    /// All processes take part and may wait for each other.
    pub together: bool,
}

/// This process's part without the others.
pub(super) fn alone(
    file: &OpenFile,
    way: BytesWay,
    view: &FileView,
    at: u64,
    memory: &FileMemory,
    atomic: bool,
) -> Result<u64> {
    let target = FileTarget { disk: &file.disk, path: &file.path, atomic };
    match way {
        BytesWay::Read => transfer::read(target, view, at, memory),
        BytesWay::Write => transfer::write(target, view, at, memory).map(|()| memory.bytes),
    }
}
