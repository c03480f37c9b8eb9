//! What an aggregator does in one round: it puts what came from all processes in its place and writes it, or reads what
//! they want and takes it apart.

use super::exchange::Parts;
use super::trains::Train;
use crate::error::{Class, Error, Result};
use crate::file::fault;
use crate::file::transfer::FileTarget;
use crate::file::view::FilePiece;

/// Reads take holes with them that are smaller than this.
const HOLE: u64 = 16 << 10;

/// Memory for one window, used again in each round.
#[derive(Default)]
pub struct FileWindow {
    buffer: Vec<u8>,
}

/// All pieces by rank, checked against the window and against the bytes that each rank announced.
fn claimed(range: (u64, u64), asked: &[Vec<Train>], bytes: impl Fn(usize) -> u64) -> Result<Vec<Vec<FilePiece>>> {
    let refuse = |rank| Error::new(Class::Intern, format!("rank {rank} named pieces that its message does not hold"));
    let list = |(rank, trains): (usize, &Vec<Train>)| {
        let mut pieces = Vec::new();
        for train in trains {
            pieces.extend(train.pieces(range.0, range.1).ok_or_else(|| refuse(rank))?);
        }
        let total: u64 = pieces.iter().map(|piece: &FilePiece| piece.bytes).sum();
        if total == bytes(rank) { Ok(pieces) } else { Err(refuse(rank)) }
    };
    asked.iter().enumerate().map(list).collect()
}

/// The runs that the pieces make, with holes smaller than `hole` between them or none for 0.
fn runs(pieces: &[Vec<FilePiece>], hole: u64) -> Vec<FilePiece> {
    let mut all: Vec<FilePiece> = pieces.concat();
    all.sort_by_key(|piece| piece.offset);
    let mut runs: Vec<FilePiece> = Vec::new();
    for piece in all {
        match runs.last_mut() {
            Some(last) if piece.offset <= last.end() || piece.offset - last.end() < hole => {
                last.bytes = last.bytes.max(piece.end() - last.offset);
            }
            _ => runs.push(piece),
        }
    }
    runs
}

impl FileWindow {
    /// Writes the bytes of all ranks, which lie in `data` as `arrived` says.
    pub fn write(
        &mut self,
        target: FileTarget,
        range: (u64, u64),
        asked: &[Vec<Train>],
        arrived: &Parts,
        data: &[u8],
    ) -> Result<()> {
        let pieces = claimed(range, asked, |rank| arrived.at(rank as u32).bytes)?;
        self.buffer.resize((range.1 - range.0) as usize, 0);
        for (rank, pieces) in pieces.iter().enumerate() {
            let mut from = arrived.at(rank as u32).from as usize;
            for piece in pieces {
                let (to, bytes) = ((piece.offset - range.0) as usize, piece.bytes as usize);
                self.buffer[to..to + bytes].copy_from_slice(&data[from..from + bytes]);
                from += bytes;
            }
        }
        for run in runs(&pieces, 0) {
            let from = (run.offset - range.0) as usize;
            let written = target.disk.write(&self.buffer[from..from + run.bytes as usize], run.offset);
            written.map_err(|error| fault::of("writing", target.path, &error))?;
        }
        Ok(())
    }

    /// Reads what the ranks want; answers it one rank behind the other, and how many bytes of each there are before the
    /// file's end.
    pub fn read(
        &mut self,
        target: FileTarget,
        range: (u64, u64),
        asked: &[Vec<Train>],
        bytes: &[u64],
    ) -> Result<(Vec<u8>, Vec<u64>)> {
        let pieces = claimed(range, asked, |rank| bytes[rank])?;
        self.buffer.resize((range.1 - range.0) as usize, 0);
        let mut end = range.1;
        for run in runs(&pieces, HOLE) {
            let from = (run.offset - range.0) as usize;
            let room = &mut self.buffer[from..from + run.bytes as usize];
            let found = target.disk.read(room, run.offset);
            let found = found.map_err(|error| fault::of("reading", target.path, &error))? as u64;
            if found < run.bytes {
                end = run.offset + found;
                break;
            }
        }
        let mut data = Vec::with_capacity(bytes.iter().sum::<u64>() as usize);
        let mut lengths = Vec::with_capacity(pieces.len());
        for pieces in &pieces {
            let before = data.len();
            for piece in pieces {
                let last = piece.end().min(end).max(piece.offset);
                let (from, to) = ((piece.offset - range.0) as usize, (last - range.0) as usize);
                data.extend_from_slice(&self.buffer[from..to]);
                if last < piece.end() {
                    break;
                }
            }
            lengths.push((data.len() - before) as u64);
        }
        Ok((data, lengths))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_join_what_touches_and_leave_holes_out() {
        let piece = |offset, bytes| FilePiece { offset, bytes };
        let pieces = [vec![piece(0, 4), piece(8, 4)], vec![piece(4, 4), piece(20, 2), piece(21, 5)]];
        assert_eq!(runs(&pieces, 0), [piece(0, 12), piece(20, 6)]);
        assert_eq!(runs(&pieces, 9), [piece(0, 26)]);
    }

    #[test]
    fn pieces_beyond_the_message_or_the_window_are_refused() {
        let train = Train { offset: 10, bytes: 4, stride: 8, count: 2 };
        assert_eq!(claimed((10, 22), &[vec![train]], |_| 8).unwrap()[0].len(), 2);
        assert!(claimed((10, 22), &[vec![train]], |_| 7).is_err());
        assert!(claimed((10, 21), &[vec![train]], |_| 8).is_err());
    }
}
