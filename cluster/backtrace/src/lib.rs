//! Where a program has failed: from its core, or from the memory of a process that stands still, to the names of
//! functions.
//!
//! A core says the registers of each thread, the files that were mapped, and the memory that was not in files
//! ([`core`]). [`unwind`] goes from frame to frame by the tables that compilers write for exceptions (`.eh_frame`),
//! which nearly every program has. [`module`] names an address: by the lines of debug information where there is any,
//! by the symbol table else, and by the file otherwise.
//!
//! Everything that is read is a claim: a core may be cut off or nonsense, and the files that it names may be others by
//! now. Then the list is shorter, or names less. Frames are at most [`FRAMES_MAX`], and what is read of a file is
//! bounded. It still works on memory in the order of the program's debug information, so a process that must live does
//! this in a child of its own, with limits.
//!
//! Not here: finding the core of a rank (weft-agent). No program of users loads this.
//!
//! Test: `cargo test -p weft-backtrace`, which compiles small programs with `cc`.
#![forbid(unsafe_code)]

mod bytes;
pub mod core;
mod maps;
mod memory;
mod module;
mod registers;
mod unwind;

pub use crate::core::{CoreError, CoreHead};
pub use maps::FileMapping;
pub use registers::ThreadRegisters;

use module::Modules;
use std::path::Path;

/// The longest list of frames.
pub const FRAMES_MAX: usize = 48;

/// One function on the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackFrame {
    /// Where the instruction is that is executed, or that has called.
    pub address: u64,
    /// The name of the function.
    pub function: Option<String>,
    /// The source file and its line.
    pub line: Option<(String, u32)>,
    /// The file that the code is in.
    pub file: Option<String>,
}

/// The thread that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedThread {
    pub signal: i32,
    /// The address that could not be used, for signals that have one.
    pub address: Option<u64>,
    /// Innermost first.
    pub frames: Vec<StackFrame>,
}

/// Reads a core.
///
/// # Errors
/// It is no core of a program for this kind of machine, or has no thread.
pub fn of_core(path: &Path) -> Result<FailedThread, CoreError> {
    let core = core::Core::open(path)?;
    let mut modules = Modules::new(core.mappings.clone());
    let frames = unwind::walk(&core.registers, &core, &mut modules);
    Ok(FailedThread { signal: core.head.signal, address: core.address, frames })
}

/// The frames of a thread of a process that stands still: its registers and, by `/proc`, its memory and files.
///
/// # Errors
/// The process is gone, or may not be looked at.
pub fn of_process(pid: u32, registers: &ThreadRegisters) -> std::io::Result<Vec<StackFrame>> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let stack = memory::ProcessMemory(std::fs::File::open(format!("/proc/{pid}/mem"))?);
    let mut modules = Modules::new(maps::of_process(&maps));
    Ok(unwind::walk(registers, &stack, &mut modules))
}

impl FailedThread {
    /// The function that failed, as people look for it: the innermost one that is not the C library's own.
    pub fn function(&self) -> Option<&str> {
        let named = || self.frames.iter().filter(|frame| frame.function.is_some());
        let own = named().find(|frame| !frame.is_of_the_system());
        own.or_else(|| named().next())?.function.as_deref()
    }
}

impl StackFrame {
    fn is_of_the_system(&self) -> bool {
        let name = self.file.as_deref().map(file_name).unwrap_or_default();
        ["libc.so", "libc-", "libpthread", "ld-linux", "libm.so", "[vdso]"].iter().any(|begin| name.starts_with(begin))
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `crash at heat.c:12`, `memcpy in libc.so.6`, `0x7f0012 in libc.so.6`.
impl std::fmt::Display for StackFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.function {
            // A name of a file is text of others: it must not move a cursor.
            Some(name) => write!(f, "{}", name.replace(|letter: char| letter.is_control(), "?"))?,
            None => write!(f, "{:#x}", self.address)?,
        }
        match (&self.line, &self.file) {
            (Some((file, line)), _) => write!(f, " at {}:{line}", file_name(file).replace(char::is_control, "?")),
            (None, Some(file)) => write!(f, " in {}", file_name(file).replace(char::is_control, "?")),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
