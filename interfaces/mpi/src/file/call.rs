//! What a call that reads or writes is told, and the part that each process does by itself.

use super::File;
use super::memory::Memory;
use super::transfer::{self, Target};
use super::view::View;
use crate::error::Result;

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Read,
    Write,
}

/// Where in the view an access begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
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
    pub way: Way,
    pub place: Place,
    /// All processes take part and may wait for each other.
    pub together: bool,
}

/// This process's part without the others.
pub(super) fn alone(file: &File, way: Way, view: &View, at: u64, memory: &Memory, atomic: bool) -> Result<u64> {
    let target = Target { disk: &file.disk, path: &file.path, atomic };
    match way {
        Way::Read => transfer::read(target, view, at, memory),
        Way::Write => transfer::write(target, view, at, memory).map(|()| memory.bytes),
    }
}
