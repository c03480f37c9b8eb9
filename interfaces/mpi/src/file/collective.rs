//! Accesses of all processes together: where their pieces are small and lie between each other's, few processes touch
//! the file, each a part of it of its own, and exchange bytes with the others ("two phases").
//!
//! Everybody first says where its bytes lie (one small exchange); all then come to the same decision. An access that
//! does not pay is each process's own. Otherwise the range of the file is cut into one *domain* for each aggregator,
//! and those into windows of a buffer's size; in each round every aggregator serves one window. A window is written run
//! by run of what the processes gave: holes between them are never written, as somebody else's bytes may be there.

mod domains;
mod exchange;
mod trains;
mod window;

use super::call::{BytesWay, Call, alone};
use super::hints::{BUFFER, Buffering, Hints};
use super::memory::FileMemory;
use super::transfer::FileTarget;
use super::view::FileView;
use super::{OpenFile, view};
use crate::error::{Class, Error, Result};
use domains::Domains;
use exchange::{ExchangePart, Parts};
use trains::Train;
use window::FileWindow;

/// Pieces of this length and more are written as fast each by itself, on file systems of this machine.
const SHORT: u64 = 2 << 10;
/// The same where each call is a journey to another machine.
const SHORT_REMOTE: u64 = 256 << 10;
/// A read takes holes with it; that costs less than two phases up to so many times the bytes that are wanted.
const HOLLOW: u128 = 8;
/// Bytes of a view of which the length of pieces is worked out.
const SAMPLE: u64 = 256 << 10;
/// Set beside the length of pieces by a process whose file system is remote.
const REMOTE: u64 = 1 << 63;
/// Set there by a process whose view overlaps itself, so that it cannot be cut in domains.
const UNSORTED: u64 = 1 << 62;

/// What each process says of its access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AccessSurvey {
    /// First byte of the file and the byte after the last; both 0 without bytes.
    first: u64,
    end: u64,
    bytes: u64,
    /// Bytes of a piece, on average.
    piece: u64,
    remote: bool,
    unsorted: bool,
}

impl AccessSurvey {
    const NOTHING: Self = Self { first: 0, end: 0, bytes: 0, piece: 0, remote: false, unsorted: false };

    fn of(file: &OpenFile, view: &FileView, at: u64, bytes: u64) -> Result<Self> {
        let (remote, unsorted) = (file.is_remote(), !view.is_sorted());
        if bytes == 0 {
            return Ok(Self { remote, ..Self::NOTHING });
        }
        let (first, end) = (view.offset(at)?, view.offset(at + bytes - 1)? + 1);
        let mut pieces = Vec::new();
        let sample = SAMPLE.min(bytes);
        view.pieces(at, sample, &mut pieces)?;
        Ok(Self { first, end, bytes, piece: sample / pieces.len() as u64, remote, unsorted })
    }

    fn told(self) -> [u64; 4] {
        let flag = |set: bool, bit: u64| if set { bit } else { 0 };
        let piece = self.piece | flag(self.remote, REMOTE) | flag(self.unsorted, UNSORTED);
        [self.first, self.end, self.bytes, piece]
    }

    fn heard(block: [u64; 4]) -> Self {
        let [first, end, bytes, piece] = block;
        let (remote, unsorted) = (piece & REMOTE != 0, piece & UNSORTED != 0);
        Self { first, end, bytes, piece: piece & !(REMOTE | UNSORTED), remote, unsorted }
    }
}

/// Whether two phases are worth it. All processes answer alike.
fn pays(all: &[AccessSurvey], way: BytesWay, buffering: Buffering) -> bool {
    let mut with_data: Vec<&AccessSurvey> = all.iter().filter(|survey| survey.bytes > 0).collect();
    if with_data.is_empty() || all.iter().any(|survey| survey.unsorted) {
        return false;
    }
    match buffering {
        Buffering::Always => return true,
        Buffering::Never => return false,
        Buffering::WherePaying => {}
    }
    with_data.sort_by_key(|survey| survey.first);
    let mixed = with_data.windows(2).any(|pair| pair[1].first < pair[0].end);
    let bytes: u128 = with_data.iter().map(|survey| u128::from(survey.bytes)).sum();
    let pieces: u128 = with_data.iter().map(|survey| u128::from(survey.bytes / survey.piece.max(1)).max(1)).sum();
    let average = bytes / pieces;
    if all.iter().any(|survey| survey.remote) {
        return mixed && average < u128::from(SHORT_REMOTE);
    }
    // Each round is an exchange among all, however little lies there.
    let range = with_data.iter().map(|survey| survey.end).max().unwrap_or(0) - with_data[0].first;
    if u128::from(range) / u128::from(BUFFER) > pieces {
        return false;
    }
    let spans: u128 = with_data.iter().map(|survey| u128::from(survey.end - survey.first)).sum();
    mixed && average < u128::from(SHORT) && (way == BytesWay::Write || spans / bytes >= HOLLOW)
}

/// Performs this process's part; answers the bytes that were moved.
pub fn perform(
    file: &OpenFile,
    call: Call,
    view: &FileView,
    at: u64,
    memory: &FileMemory,
    hints: &Hints,
) -> Result<u64> {
    let (survey, wrong) = match AccessSurvey::of(file, view, at, memory.bytes) {
        Ok(survey) => (survey, None),
        Err(error) => (AccessSurvey::NOTHING, Some(error)),
    };
    let all: Vec<AccessSurvey> = file.tell(call.name, survey.told())?.into_iter().map(AccessSurvey::heard).collect();
    let buffering = if call.way == BytesWay::Read { hints.read } else { hints.write };
    if !pays(&all, call.way, buffering) {
        return wrong.map_or_else(|| alone(file, call.way, view, at, memory, false), Err);
    }
    let empty = FileMemory::empty();
    let memory = if wrong.is_some() { &empty } else { memory };
    let domains = Domains::new(&all, hints, file.comm.size());
    let mut phases =
        Phases { file, call, view, at, memory, domains, scratch: Vec::new(), window: FileWindow::default() };
    let moved = match call.way {
        BytesWay::Write => phases.write(),
        BytesWay::Read => phases.read(),
    };
    wrong.map_or(moved, Err)
}

/// An access in two phases.
struct Phases<'a> {
    file: &'a OpenFile,
    call: Call,
    view: &'a FileView,
    at: u64,
    memory: &'a FileMemory,
    domains: Domains,
    /// Packed bytes of memory that is no run.
    scratch: Vec<u8>,
    /// What this process does for all, if it is an aggregator.
    window: FileWindow,
}

/// One round as this process sees it.
struct FileRound {
    /// Of the stream, by the rank that serves them.
    mine: Parts,
    /// What this process serves, by rank.
    asked: Vec<Vec<Train>>,
    /// How many bytes of each rank that is.
    bytes: Vec<u64>,
    /// The window that this process serves.
    range: (u64, u64),
}

impl Phases<'_> {
    fn target(&self) -> FileTarget<'_> {
        FileTarget { disk: &self.file.disk, path: &self.file.path, atomic: false }
    }

    /// Everybody tells the aggregators which pieces it has in their windows.
    fn announce(&self, round: u64) -> Result<FileRound> {
        let (size, me) = (self.file.comm.size(), self.file.comm.rank);
        let mut mine = Parts::new(size);
        let mut told = vec![Vec::new(); size as usize];
        let mut pieces: Vec<view::FilePiece> = Vec::new();
        for (rank, (start, end)) in self.domains.windows(round) {
            if self.memory.bytes == 0 || start >= end {
                continue;
            }
            let from = self.view.before(start, self.at, self.memory.bytes);
            let to = self.view.before(end, self.at, self.memory.bytes);
            mine.set(rank, ExchangePart { from, bytes: to - from });
            self.view.pieces(self.at + from, to - from, &mut pieces)?;
            // A piece may go on in the next window; the stream is cut where the window ends, so no piece crosses it.
            told[rank as usize] = trains::of(&pieces);
        }
        let heads: Vec<[u64; 2]> =
            (0..size).map(|rank| [told[rank as usize].len() as u64, mine.at(rank).bytes]).collect();
        let heads = exchange::words(self.call.name, &self.file.comm, &heads)?;
        let range = self.domains.window_of(me, round);
        // Pieces of one rank lie beside each other, so more than the window holds is a claim that cannot be.
        if let Some(rank) = heads.iter().position(|head| head[0].max(head[1]) > range.1 - range.0) {
            let detail = format!("rank {rank} names more than fits into the bytes {} to {}", range.0, range.1);
            return Err(self.file.error(Class::Intern, detail));
        }
        let counts: Vec<u64> = heads.iter().map(|head| head[0]).collect();
        let asked = exchange::trains(self.call.name, &self.file.comm, &told, &counts)?;
        let bytes = heads.iter().map(|head| head[1]).collect();
        Ok(FileRound { mine, asked, bytes, range })
    }

    fn write(&mut self) -> Result<u64> {
        let mut fate = Ok(());
        for round in 0..self.domains.rounds {
            let round = self.announce(round)?;
            let arrived = Parts::side_by_side(&round.bytes);
            let mut data = vec![0; arrived.total() as usize];
            let (file, memory) = (self.file, self.memory);
            exchange::send_memory(
                self.call.name,
                &file.comm,
                memory,
                &round.mine,
                &mut self.scratch,
                &arrived,
                &mut data,
            )?;
            if fate.is_ok() {
                let mut window = std::mem::take(&mut self.window);
                fate = window.write(self.target(), round.range, &round.asked, &arrived, &data);
                self.window = window;
            }
        }
        self.file.agree(self.call.name, fate)?;
        Ok(self.memory.bytes)
    }

    fn read(&mut self) -> Result<u64> {
        let (mut moved, mut failed) = (0, None);
        for round in 0..self.domains.rounds {
            let round = self.announce(round)?;
            let mut window = std::mem::take(&mut self.window);
            let found = window.read(self.target(), round.range, &round.asked, &round.bytes);
            self.window = window;
            let code = found.as_ref().err().map_or(0, |error: &Error| error.code as u64);
            let (data, lengths) = found.unwrap_or_else(|error| {
                failed.get_or_insert(error);
                (Vec::new(), vec![0; round.asked.len()])
            });
            let heads: Vec<[u64; 2]> = lengths.iter().map(|&bytes| [bytes, code]).collect();
            let heads = exchange::words(self.call.name, &self.file.comm, &heads)?;
            if let Some(rank) = heads.iter().position(|head| head[1] != 0) {
                failed.get_or_insert_with(|| self.file.elsewhere(rank, heads[rank][1]));
            }
            let mut here = round.mine;
            for (rank, head) in heads.iter().enumerate() {
                if !here.shorten(rank as u32, head[0]) {
                    return Err(self.unexpected(rank));
                }
            }
            let sent = Parts::side_by_side(&lengths);
            let (file, memory) = (self.file, self.memory);
            exchange::receive_memory(self.call.name, &file.comm, &data, &sent, memory, &here, &mut self.scratch)?;
            moved += here.total();
        }
        failed.map_or(Ok(moved), Err)
    }

    #[cold]
    fn unexpected(&self, rank: usize) -> Error {
        self.file.error(Class::Intern, format!("rank {rank} answered with more bytes than it was asked for"))
    }
}

impl OpenFile {
    fn is_remote(&self) -> bool {
        *self.remote.get_or_init(|| self.disk.is_remote())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(first: u64, end: u64, bytes: u64, piece: u64) -> AccessSurvey {
        AccessSurvey { first, end, bytes, piece, ..AccessSurvey::NOTHING }
    }

    #[test]
    fn small_pieces_between_each_other_s_are_done_in_two_phases_and_others_are_not() {
        let writes = |all: &[AccessSurvey], buffering| pays(all, BytesWay::Write, buffering);
        let way = Buffering::WherePaying;
        let mixed = [survey(0, 1000, 500, 8), survey(8, 1008, 500, 8)];
        assert!(writes(&mixed, way));
        assert!(!writes(&mixed, Buffering::Never));
        let apart = [survey(0, 1000, 500, 8), survey(1000, 2000, 500, 8)];
        assert!(!writes(&apart, way) && writes(&apart, Buffering::Always));
        let long = [survey(0, 1 << 20, 1 << 19, 1 << 14), survey(1 << 14, 1 << 20, 1 << 19, 1 << 14)];
        assert!(!writes(&long, way));
        let far = long.map(|survey| AccessSurvey { remote: true, ..survey });
        assert!(writes(&far, way));
        assert!(!writes(&[survey(0, 0, 0, 0); 3], Buffering::Always));
        let over = mixed.map(|survey| AccessSurvey { unsorted: true, ..survey });
        assert!(!writes(&over, Buffering::Always), "nothing makes what overlaps itself fit into domains");
        assert!(!pays(&mixed, BytesWay::Read, way), "a read takes as many bytes with it wants");
        let hollow = [survey(0, 9000, 500, 8), survey(8, 9008, 500, 8)];
        assert!(pays(&hollow, BytesWay::Read, way));
    }

    #[test]
    fn what_is_said_is_what_is_heard() {
        for (remote, unsorted) in [(true, false), (false, true)] {
            let said = AccessSurvey { first: 3, end: 9, bytes: 4, piece: 2, remote, unsorted };
            assert_eq!(AccessSurvey::heard(said.told()), said);
        }
    }
}
