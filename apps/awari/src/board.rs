//! The game, and numbers for its positions.
//!
//! A position is what the player sees who moves: pits 0 to 5 are his own, 6 to 11 the opponent's. Stones that are
//! captured have left the board. The rules are the original's: a move sows the stones of one own pit, one into each
//! following pit but the one that they come from. If the last one makes two or three in a pit of the opponent these are
//! captured, and so are those of the pits before it while they are two or three. A move after which the opponent has no
//! stones is not allowed. Who has no stones loses all that are left to the opponent; who has stones and no move gets
//! them.

/// Pits of one side.
pub const SIDE: usize = 6;
/// Pits.
pub const PITS: usize = 2 * SIDE;
/// Stones of a position of which this program knows numbers.
pub const MOST_STONES: usize = 17;

pub type Board = [u8; PITS];

/// Whether the player who moves has stones.
pub fn has_stones(board: &Board) -> bool {
    board[..SIDE].iter().any(|stones| *stones > 0)
}

fn turned(board: &Board) -> Board {
    std::array::from_fn(|pit| board[(pit + SIDE) % PITS])
}

fn after(pit: usize, from: usize) -> usize {
    let next = if pit + 1 == PITS { 0 } else { pit + 1 };
    match next == from {
        true if next + 1 == PITS => 0,
        true => next + 1,
        false => next,
    }
}

/// What the opponent sees after a move, and how many stones were captured.
fn sow(board: &Board, from: usize) -> (Board, u8) {
    let mut sown = *board;
    sown[from] = 0;
    let mut last = from;
    for _ in 0..board[from] {
        last = after(last, from);
        sown[last] += 1;
    }
    let mut captured = 0;
    while last >= SIDE && (2..=3).contains(&sown[last]) {
        captured += std::mem::take(&mut sown[last]);
        last -= 1;
    }
    (turned(&sown), captured)
}

/// The moves that are allowed: what the opponent sees then, and how many stones were captured.
pub fn moves(board: &Board) -> impl Iterator<Item = (Board, u8)> {
    let played = (0..SIDE).filter(|pit| board[*pit] > 0).map(|pit| sow(board, pit));
    played.filter(|(next, _)| has_stones(next))
}

/// All positions from which a move that captures nothing leads to this one, in which the player has stones.
pub fn for_each_predecessor(board: &Board, mut what: impl FnMut(&Board)) {
    let sown = turned(board);
    for from in (0..SIDE).filter(|pit| sown[*pit] == 0) {
        let (mut before, mut last) = (sown, from);
        loop {
            last = after(last, from);
            if before[last] == 0 {
                break;
            }
            before[last] -= 1;
            before[from] += 1;
            let captures = last >= SIDE && (2..=3).contains(&sown[last]);
            if !captures {
                what(&before);
            }
        }
    }
}

/// The next position with as many stones, by number; the last one has none.
pub fn advance(board: &mut Board) {
    if let Some(pit) = (1..PITS).find(|pit| board[*pit] > 0) {
        let moved = std::mem::take(&mut board[0]) + 1;
        board[pit] -= 1;
        board[pit - 1] = moved;
    }
}

/// Numbers of positions: those with as many stones are numbered from 0.
///
/// The stones before pit `i` are `s`; between pits stand bars, of which bar `i` is the `s + i`th thing of a row of
/// stones and bars. So a position is a set of 11 things, and its number is that of the combinatorial number system.
pub struct Numbering {
    /// For each pit and number of stones before it, what these add to the number.
    adds: [[u32; MOST_STONES + 1]; PITS],
}

impl Numbering {
    pub fn new() -> Self {
        let mut adds = [[0; MOST_STONES + 1]; PITS];
        for (pit, adds) in adds.iter_mut().enumerate().skip(1) {
            for (stones, add) in adds.iter_mut().enumerate().skip(1) {
                *add = binomial(stones + pit - 1, pit);
            }
        }
        Self { adds }
    }

    /// How many positions have so many stones.
    pub fn count(&self, stones: usize) -> usize {
        binomial(stones + PITS - 1, PITS - 1) as usize
    }

    pub fn number(&self, board: &Board) -> u32 {
        let mut before = 0;
        (1..PITS).fold(0, |number, pit| {
            before += usize::from(board[pit - 1]);
            number + self.adds[pit][before]
        })
    }

    pub fn board(&self, stones: usize, mut number: u32) -> Board {
        let (mut board, mut before) = ([0; PITS], stones);
        for pit in (1..PITS).rev() {
            let adds = &self.adds[pit];
            let mut fewer = before;
            while adds[fewer] > number {
                fewer -= 1;
            }
            number -= adds[fewer];
            board[pit] = (before - fewer) as u8;
            before = fewer;
        }
        board[0] = before as u8;
        board
    }
}

fn binomial(of: usize, choose: usize) -> u32 {
    let (of, choose) = (of as u64, choose as u64);
    (0..choose.min(of - choose)).fold(1, |all, step| all * (of - step) / (step + 1)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn boards(stones: usize) -> Vec<Board> {
        let numbering = Numbering::new();
        let mut board = numbering.board(stones, 0);
        (0..numbering.count(stones))
            .map(|_| {
                let this = board;
                advance(&mut board);
                this
            })
            .collect()
    }

    #[test]
    fn numbers_and_positions_are_one_to_one() {
        let numbering = Numbering::new();
        assert_eq!((numbering.count(10), numbering.count(13)), (352_716, 2_496_144));
        for stones in 0..6 {
            for (number, board) in (0..).zip(boards(stones)) {
                assert_eq!(board.iter().map(|pit| usize::from(*pit)).sum::<usize>(), stones);
                assert_eq!((numbering.number(&board), numbering.board(stones, number)), (number, board));
            }
        }
    }

    #[test]
    fn stones_are_sown_past_their_pit_and_captured() {
        // They make 4, 2, 3 and 2.
        let board = [0, 0, 0, 0, 0, 4, 3, 1, 2, 1, 0, 0];
        assert_eq!(sow(&board, 5), ([4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 7));
        // Twelve stones leave their own pit empty, and the one after it gets two.
        let board = [0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(sow(&board, 1).0, [1, 1, 1, 1, 1, 1, 1, 0, 2, 1, 1, 1]);
    }

    #[test]
    fn predecessors_are_those_whose_moves_lead_here() {
        for stones in 1..6 {
            let (mut forward, mut backward) = (BTreeMap::<Board, Vec<Board>>::new(), BTreeMap::new());
            for board in boards(stones) {
                for (next, _) in moves(&board).filter(|(_, captured)| *captured == 0) {
                    forward.entry(next).or_default().push(board);
                }
                let mut before = Vec::new();
                for_each_predecessor(&board, |board| before.push(*board));
                before.sort_unstable();
                if has_stones(&board) && !before.is_empty() {
                    backward.insert(board, before);
                }
            }
            forward.values_mut().for_each(|boards| boards.sort_unstable());
            assert_eq!(forward, backward, "{stones} stones");
        }
    }
}
