//! Views: which bytes of the file a process sees, and in which order (MPI 5.0, section 14.3).
//!
//! A view is the displacement and, from there on, copies of the filetype one after the other. Its *stream* is what the
//! filetype's data makes in this order; positions in it are in bytes. Everything here is arithmetic: no file is
//! touched.

use crate::datatype::Datatype;
use crate::error::{Class, Error, Result};
use crate::file::datarep::Datarep;
use std::ptr::null;

/// Neighbouring bytes of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePiece {
    pub offset: u64,
    pub bytes: u64,
}

impl FilePiece {
    pub fn end(self) -> u64 {
        self.offset + self.bytes
    }
}

/// A view as it was set, and the forms that its types have in the file.
#[derive(Debug)]
pub struct FileView {
    pub displacement: i64,
    /// As the program gave them.
    pub etype: Datatype,
    pub filetype: Datatype,
    pub datarep: Datarep,
    /// Bytes of one etype in the file.
    unit: u64,
    /// The filetype in the file.
    tile: Datatype,
    /// The stream is one run of the file from this offset on.
    dense: Option<i64>,
    /// Each byte of the stream lies behind the one before it. Only filetypes that the standard forbids for writing are
    /// not so, those that overlap themselves; their accesses are made piece by piece.
    is_sorted: bool,
    /// A filetype or an etype shows some byte twice, which the standard forbids in files that are written.
    overlaps: bool,
}

/// How the pieces of a datatype lie.
struct PieceOrder {
    overlaps: bool,
    /// They, and those of copies one behind the other, go forwards only.
    is_sorted: bool,
}

impl FileView {
    /// # Errors
    /// A filetype that is not made of whole etypes, or goes backwards, or begins before the displacement.
    pub fn new(displacement: i64, etype: Datatype, filetype: Datatype, datarep: Datarep) -> Result<Self> {
        let (in_file, tile) = (datarep.in_file(&etype)?, datarep.in_file(&filetype)?);
        if in_file.size() == 0 {
            return Err(arg(format!("etype {etype:?} has no data")));
        }
        if tile.size() % in_file.size() != 0 {
            let (tile, unit) = (tile.size(), in_file.size());
            return Err(arg(format!("filetype has {tile} bytes of data, which are no whole etypes of {unit}")));
        }
        let PieceOrder { overlaps, is_sorted } = check_order("filetype", &tile)?;
        let overlaps = overlaps || check_order("etype", &in_file)?.overlaps;
        let first = tile.contiguous_span(2).map(|(first, _)| first);
        let dense = first.and_then(|first| displacement.checked_add(first));
        Ok(Self {
            displacement,
            unit: in_file.size() as u64,
            etype,
            filetype,
            datarep,
            tile,
            dense,
            is_sorted,
            overlaps,
        })
    }

    /// Bytes of one etype in the file.
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// Whether the stream is one run of the file.
    pub fn is_dense(&self) -> bool {
        self.dense.is_some()
    }

    /// Whether each byte of the stream lies behind the one before it.
    pub fn is_sorted(&self) -> bool {
        self.is_sorted
    }

    /// Whether the view shows some byte twice.
    pub fn overlaps(&self) -> bool {
        self.overlaps
    }

    /// Whether the view shows nothing at all.
    pub fn is_empty(&self) -> bool {
        self.tile.size() == 0
    }

    /// Where in the file byte `at` of the stream lies.
    pub fn offset(&self, at: u64) -> Result<u64> {
        self.check_end(at, 1)?;
        Ok(self.offset_within(at))
    }

    /// As [`Self::offset`], which has checked that there is such an offset.
    fn offset_within(&self, at: u64) -> u64 {
        if let Some(first) = self.dense {
            return first as u64 + at;
        }
        let mut offset = 0;
        let tiles = at / self.tile.size() as u64 + 1;
        self.tile.visit_runs(null(), tiles as i64, at, 1, |run, _| offset = run as u64);
        offset.wrapping_add(self.displacement as u64)
    }

    /// The pieces of the file that bytes `at .. at + bytes` of the stream lie in, in their order; neighbours are
    /// joined.
    pub fn pieces(&self, at: u64, bytes: u64, pieces: &mut Vec<FilePiece>) -> Result<()> {
        pieces.clear();
        if bytes == 0 {
            return Ok(());
        }
        self.check_end(at, bytes)?;
        if let Some(first) = self.dense {
            pieces.push(FilePiece { offset: first as u64 + at, bytes });
            return Ok(());
        }
        let tiles = (at + bytes).div_ceil(self.tile.size() as u64);
        let displacement = self.displacement as u64;
        self.tile.visit_runs(null(), tiles as i64, at, bytes as usize, |run, length| {
            let piece = FilePiece { offset: (run as u64).wrapping_add(displacement), bytes: length as u64 };
            match pieces.last_mut() {
                Some(last) if last.end() == piece.offset => last.bytes += piece.bytes,
                _ => pieces.push(piece),
            }
        });
        Ok(())
    }

    /// How many bytes of `at .. at + bytes` of the stream lie before `offset` of the file.
    pub fn before(&self, offset: u64, at: u64, bytes: u64) -> u64 {
        let (mut low, mut high) = (0, bytes);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.offset_within(at + middle) < offset { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// How many etypes of the stream begin before the end of a file of this size.
    pub fn etypes_in(&self, size: u64) -> u64 {
        let start = self.displacement as u64;
        if self.is_empty() || size <= start {
            return 0;
        }
        let tile = self.tile.size() as u64;
        let extent = self.tile.extent().max(1) as u64;
        let most = ((size - start) / extent + 1).saturating_mul(tile);
        let most = most.min(self.last_position());
        self.before(size, 0, most).div_ceil(self.unit)
    }

    /// A position of the stream that surely has an offset which can be counted.
    fn last_position(&self) -> u64 {
        let extent = self.tile.extent().max(self.tile.size()).max(1) as u64;
        let room = (i64::MAX as u64 / 2).saturating_sub(self.displacement as u64);
        (room / extent).saturating_sub(1).saturating_mul(self.tile.size() as u64)
    }

    /// Refuses positions whose offsets exceed what a file may have.
    fn check_end(&self, at: u64, bytes: u64) -> Result<()> {
        if self.is_empty() {
            return Err(Error::new(Class::Io, "the filetype of the view has no data, so there is nothing to access"));
        }
        let last = i128::from(at) + i128::from(bytes) - 1;
        let tiles = last / i128::from(self.tile.size());
        let reach = i128::from(self.tile.true_lower_bound()) + i128::from(self.tile.true_extent());
        let end = i128::from(self.displacement) + tiles * i128::from(self.tile.extent()) + reach;
        if end > i128::from(i64::MAX) {
            return Err(arg(format!("byte {last} of the view lies beyond the largest offset, 2^63-1")));
        }
        Ok(())
    }
}

fn arg(detail: String) -> Error {
    Error::new(Class::Arg, detail)
}

/// Data of a filetype begins at or behind the displacement, and its pieces never go backwards (MPI 5.0, section
/// 14.1.1).
fn check_order(argument: &str, tile: &Datatype) -> Result<PieceOrder> {
    if tile.contiguous_span(2).is_some_and(|(first, _)| first >= 0) {
        return Ok(PieceOrder { overlaps: false, is_sorted: true });
    }
    let (mut first, mut start, mut end) = (None, 0i64, 0i64);
    let (mut wrong, mut overlaps) = (None, false);
    tile.visit_runs(null(), 1, 0, tile.size() as usize, |run, length| {
        let run = run as i64;
        if run < start {
            wrong.get_or_insert(run);
        }
        overlaps |= run < end;
        first.get_or_insert(run);
        (start, end) = (run, run.wrapping_add(length as i64));
    });
    let refuse = |why: String| Err(Error::new(Class::Io, format!("{argument} {why}")));
    let next = first.unwrap_or(0).saturating_add(tile.extent());
    match wrong {
        Some(run) if run < 0 => refuse(format!("has data at the negative displacement {run}")),
        Some(run) => refuse(format!("goes backwards to the displacement {run}; displacements must not decrease")),
        None if tile.extent() < 0 => refuse(format!("has the extent {}, which is negative", tile.extent())),
        None => Ok(PieceOrder { overlaps, is_sorted: !overlaps && next >= end }),
    }
}

#[cfg(test)]
mod tests;
