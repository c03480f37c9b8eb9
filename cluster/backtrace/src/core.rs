//! Reading a core: an ELF file with notes about the process, and pieces of its memory.

use crate::bytes::{half, long, word};
use crate::maps::{self, FileMapping};
use crate::memory::{StackMemory, open_file};
use crate::registers::{Processor, ThreadRegisters};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A file that says nothing of a process.
#[derive(Debug, thiserror::Error)]
pub enum CoreError {
    #[error("{0}")]
    System(#[from] std::io::Error),
    #[error("it is no core")]
    NotACore,
    #[error("it is of another kind of processor")]
    Foreign,
    #[error("it tells of no thread")]
    NoThread,
}

/// Whose a core is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreHead {
    pub pid: i32,
    pub group: i32,
    pub session: i32,
    pub signal: i32,
}

/// A core.
pub struct Core {
    pub head: CoreHead,
    /// The address that could not be used.
    pub address: Option<u64>,
    /// Of the thread that failed.
    pub registers: ThreadRegisters,
    pub mappings: Vec<FileMapping>,
    file: File,
    pieces: Vec<CorePiece>,
}

/// Memory at an address, which stands in the file.
struct CorePiece {
    begin: u64,
    bytes: u64,
    at: u64,
}

const HEADER_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;
/// More segments, or longer notes, are not looked at: a process with ten thousand threads has less.
const SEGMENTS_MAX: usize = 65_535;
const NOTES_MAX: u64 = 64 << 20;
const IS_CORE: u16 = 4;
const NOTES: u32 = 4;
const MEMORY: u32 = 1;

const THREAD_NOTE: u32 = 1;
const PROCESS_NOTE: u32 = 3;
const FILES_NOTE: u32 = u32::from_be_bytes(*b"FILE");
const SIGNAL_NOTE: u32 = u32::from_be_bytes(*b"SIGI");
/// Where the registers begin in the note of a thread.
const REGISTERS_AT: usize = 112;
/// Signals that come with an address: SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV.
const WITH_ADDRESS: [i32; 5] = [4, 5, 7, 8, 11];

/// Whose core this is, without reading more of it than that.
///
/// # Errors
/// As [`Core::open`].
pub fn head(path: &Path) -> Result<CoreHead, CoreError> {
    Core::open(path).map(|core| core.head)
}

impl Core {
    /// Reads all but the memory. Of a core that was cut off, what is left of it counts.
    ///
    /// # Errors
    /// See [`CoreError`].
    pub fn open(path: &Path) -> Result<Self, CoreError> {
        let file = open_file(path)?;
        let mut header = [0; HEADER_BYTES];
        file.read_exact_at(&mut header, 0).map_err(|_| CoreError::NotACore)?;
        let is_elf = header.starts_with(b"\x7fELF\x02\x01");
        if !is_elf || half(&header, 16) != Some(IS_CORE) {
            return Err(CoreError::NotACore);
        }
        let processor = half(&header, 18).and_then(Processor::of_elf).ok_or(CoreError::Foreign)?;
        let (pieces, notes) = segments(&file, &header).ok_or(CoreError::NotACore)?;
        let mut told = Notes::default();
        for note in notes {
            told.read(&note, processor);
        }
        let registers = told.registers.ok_or(CoreError::NoThread)?;
        Ok(Self { head: told.head, address: told.address, registers, mappings: told.mappings, file, pieces })
    }
}

fn segments(file: &File, header: &[u8]) -> Option<(Vec<CorePiece>, Vec<Vec<u8>>)> {
    let (at, count) = (long(header, 32)?, usize::from(half(header, 56)?).min(SEGMENTS_MAX));
    let (mut pieces, mut notes) = (Vec::new(), Vec::new());
    for number in 0..count as u64 {
        let mut segment = [0; SEGMENT_BYTES];
        if file.read_exact_at(&mut segment, at.checked_add(number * SEGMENT_BYTES as u64)?).is_err() {
            break;
        }
        let (kind, at) = (word(&segment, 0)?, long(&segment, 8)?);
        let (begin, bytes) = (long(&segment, 16)?, long(&segment, 32)?);
        match kind {
            NOTES => notes.push(read_some(file, at, bytes.min(NOTES_MAX))),
            MEMORY if bytes > 0 => pieces.push(CorePiece { begin, bytes, at }),
            _ => {}
        }
    }
    Some((pieces, notes))
}

/// What there is of so many bytes.
fn read_some(file: &File, at: u64, bytes: u64) -> Vec<u8> {
    let there = file.metadata().map_or(0, |data| data.len().saturating_sub(at)).min(bytes);
    let mut found = vec![0; there as usize];
    match file.read_exact_at(&mut found, at) {
        Ok(()) => found,
        Err(_) => Vec::new(),
    }
}

/// What notes have said so far.
#[derive(Default)]
struct Notes {
    head: CoreHead,
    address: Option<u64>,
    registers: Option<ThreadRegisters>,
    mappings: Vec<FileMapping>,
}

impl Notes {
    /// Each note has the lengths of its name and its value, its kind, and both, which end at multiples of four.
    fn read(&mut self, mut notes: &[u8], processor: Processor) {
        let rounded = |length: u32| (length as usize).checked_next_multiple_of(4);
        while let (Some(name), Some(length), Some(kind)) = (word(notes, 0), word(notes, 4), word(notes, 8)) {
            let Some(begin) = rounded(name).and_then(|name| name.checked_add(12)) else { return };
            let Some(value) = notes.get(begin..) else { return };
            self.take(kind, &value[..value.len().min(length as usize)], processor);
            let Some(next) = rounded(length).and_then(|length| value.get(length..)) else { return };
            notes = next;
        }
    }

    fn take(&mut self, kind: u32, value: &[u8], processor: Processor) {
        let number = |at| word(value, at).map_or(0, |number| number as i32);
        match kind {
            // The thread that failed is the first one.
            THREAD_NOTE if self.registers.is_none() => {
                self.head.signal = half(value, 12).map_or(0, i32::from);
                let registers = value.get(REGISTERS_AT..);
                self.registers = registers.and_then(|bytes| ThreadRegisters::of_core(processor, bytes));
            }
            PROCESS_NOTE => {
                let signal = self.head.signal;
                self.head = CoreHead { pid: number(24), group: number(32), session: number(36), signal };
            }
            FILES_NOTE => self.mappings = maps::of_note(value),
            SIGNAL_NOTE if WITH_ADDRESS.contains(&number(0)) && number(8) > 0 => self.address = long(value, 16),
            _ => {}
        }
    }
}

impl StackMemory for Core {
    fn long_at(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        let inside = |begin: u64, length: u64| {
            let offset = address.checked_sub(begin)?;
            (offset.checked_add(8)? <= length).then_some(offset)
        };
        let piece = self.pieces.iter().find_map(|piece| Some((inside(piece.begin, piece.bytes)?, piece.at)));
        let (offset, at) = piece?;
        self.file.read_exact_at(&mut bytes, at.checked_add(offset)?).ok()?;
        Some(u64::from_le_bytes(bytes))
    }
}
