//! Which file is where in a process's memory.

use crate::bytes::long;
use std::ops::Range;

/// A piece of a file in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMapping {
    pub addresses: Range<u64>,
    /// Where the piece begins in the file.
    pub offset: u64,
    pub path: String,
}

/// More mappings than this are not looked at.
const MAPPINGS_MAX: usize = 65_536;

/// What the note of a core says: a count, the unit of offsets, begin, end and offset of each, then the paths.
pub fn of_note(note: &[u8]) -> Vec<FileMapping> {
    let (Some(count), Some(unit)) = (long(note, 0), long(note, 8)) else { return Vec::new() };
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(MAPPINGS_MAX);
    let Some(names) = note.get(16 + 24 * count..) else { return Vec::new() };
    let names = names.split(|byte| *byte == 0).map(|name| String::from_utf8_lossy(name).into_owned());
    let mapping = |(at, path): (usize, String)| {
        let at = 16 + 24 * at;
        let (begin, end) = (long(note, at)?, long(note, at + 8)?);
        Some(FileMapping { addresses: begin..end, offset: long(note, at + 16)?.wrapping_mul(unit), path })
    };
    (0..count).zip(names).filter_map(mapping).collect()
}

/// What `/proc/PID/maps` says.
pub fn of_process(maps: &str) -> Vec<FileMapping> {
    let mapping = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (begin, end) = fields.next()?.split_once('-')?;
        let offset = fields.nth(1)?;
        let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
        // Device and inode stand before the path, which may have blanks in it.
        let path = &line[line.find('/')?..];
        Some(FileMapping {
            addresses: hexadecimal(begin)?..hexadecimal(end)?,
            offset: hexadecimal(offset)?,
            path: path.to_owned(),
        })
    };
    maps.lines().take(MAPPINGS_MAX).filter_map(mapping).collect()
}
