//! What a process knows of its positions with as many stones: values, and until then how many moves are open.
//!
//! A value is how many more of the stones on the board the player gets who moves than the opponent. Those that neither
//! can be forced to let go count for nobody.

use crate::board::{Board, Numbering, PITS, advance, has_stones, moves};

/// Positions in a row that one process has.
const BLOCK: u32 = 64;

/// No move is open any more: the value is known.
const KNOWN: u8 = u8::MAX;

/// Which positions a process has: blocks go round.
#[derive(Clone, Copy)]
pub struct Deal {
    pub me: u32,
    pub size: u32,
}

impl Deal {
    /// Who has a position, and its place there.
    #[inline]
    pub fn place(self, number: u32) -> (u32, u32) {
        let block = number / BLOCK;
        (block % self.size, block / self.size * BLOCK + number % BLOCK)
    }

    /// The position in a place of this process.
    #[inline]
    pub fn number(self, place: u32) -> u32 {
        (place / BLOCK * self.size + self.me) * BLOCK + place % BLOCK
    }

    /// How many of `count` positions a process has.
    pub fn share(self, count: usize) -> usize {
        let (count, me, size) = (count as u32, self.me, self.size);
        let (round, rest) = (count / (BLOCK * size), count % (BLOCK * size));
        (round * BLOCK + rest.saturating_sub(me * BLOCK).min(BLOCK)) as usize
    }

    /// Own positions with their boards, in their order.
    pub fn for_each(self, numbering: &Numbering, stones: usize, mut what: impl FnMut(u32, &Board)) {
        let mut board = [0; PITS];
        for place in 0..self.share(numbering.count(stones)) as u32 {
            if place % BLOCK == 0 {
                board = numbering.board(stones, self.number(place));
            }
            what(place, &board);
            advance(&mut board);
        }
    }
}

/// The values of all positions with fewer stones, by stones and number, on all processes.
pub type Database = Vec<Vec<i8>>;

#[derive(Clone, Copy)]
struct PositionEntry {
    /// The value, or the best of the moves whose values are known.
    best: i8,
    /// Moves whose values are not known.
    open: u8,
}

/// The own positions with as many stones.
pub struct StoneLevel {
    entries: Vec<PositionEntry>,
    /// Those whose value has become known, and which nobody has been told of yet.
    found: Vec<u32>,
}

impl StoneLevel {
    /// With what moves that capture are worth.
    pub fn new(numbering: &Numbering, deal: Deal, stones: usize, below: &Database, mut look: impl FnMut()) -> Self {
        let mut level = Self { entries: Vec::with_capacity(deal.share(numbering.count(stones))), found: Vec::new() };
        deal.for_each(numbering, stones, |place, board| {
            let (best, open) = first_look(numbering, stones, below, board);
            level.entries.push(PositionEntry { best, open });
            if open == 0 {
                level.know(place);
            }
            if place % BLOCK == 0 {
                look();
            }
        });
        level
    }

    fn know(&mut self, place: u32) {
        self.entries[place as usize].open = KNOWN;
        self.found.push(place);
    }

    /// Finds those that have a move of this value. No value above it is missing.
    pub fn find(&mut self, value: i8) {
        for place in 0..self.entries.len() {
            let PositionEntry { best, open } = self.entries[place];
            if open != KNOWN && best >= value {
                self.know(place as u32);
            }
        }
    }

    /// A move of the position in this place has a value. Those from `enough` on end the search.
    #[inline]
    pub fn learn(&mut self, place: u32, value: i8, enough: i8) {
        let entry = &mut self.entries[place as usize];
        if entry.open == KNOWN {
            return;
        }
        entry.best = entry.best.max(value);
        entry.open -= 1;
        if entry.open == 0 || entry.best >= enough {
            self.know(place);
        }
    }

    /// A position that is known, and nobody has been told of, with its value.
    pub fn next_found(&mut self) -> Option<(u32, i8)> {
        let place = self.found.pop()?;
        Some((place, self.entries[place as usize].best))
    }

    /// All values. What is not known by now goes on for ever.
    pub fn values(&self) -> Vec<i8> {
        let value = |entry: &PositionEntry| if entry.open == KNOWN { entry.best } else { 0 };
        self.entries.iter().map(value).collect()
    }
}

/// The best of the moves that capture, and how many do not.
fn first_look(numbering: &Numbering, stones: usize, below: &Database, board: &Board) -> (i8, u8) {
    let all = stones as i8;
    if !has_stones(board) {
        return (-all, 0);
    }
    let (mut best, mut open, mut can_move) = (-all, 0, false);
    for (next, captured) in moves(board) {
        can_move = true;
        match captured {
            0 => open += 1,
            _ => {
                let value = below[stones - usize::from(captured)][numbering.number(&next) as usize];
                best = best.max(captured as i8 - value);
            }
        }
    }
    if can_move { (best, open) } else { (all, 0) }
}

/// What the best move of a position is worth, by the values of the positions after it.
pub fn best_move(numbering: &Numbering, stones: usize, database: &Database, board: &Board) -> i8 {
    let all = stones as i8;
    if !has_stones(board) {
        return -all;
    }
    let value = |(next, captured): (Board, u8)| {
        captured as i8 - database[stones - usize::from(captured)][numbering.number(&next) as usize]
    };
    moves(board).map(value).max().unwrap_or(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_position_has_one_place() {
        for size in 1..5 {
            let mut seen = vec![0; 1000];
            for me in 0..size {
                let deal = Deal { me, size };
                for place in 0..deal.share(seen.len()) as u32 {
                    assert_eq!(deal.place(deal.number(place)), (me, place));
                    seen[deal.number(place) as usize] += 1;
                }
            }
            assert!(seen.iter().all(|times| *times == 1), "{size} processes");
        }
    }
}
