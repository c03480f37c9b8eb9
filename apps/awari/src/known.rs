//! Whether values are right: each must be what the best move is worth, and there must be as many of each as are known.
//!
//! The first alone proves little, since positions that lead to each other can all be wrong. So the numbers of positions
//! that are won and lost were found by another method, which knows no moves backwards ([`plain_level`]).

use crate::board::{Numbering, advance};
use crate::level::{Database, Deal, best_move};
use std::fmt;
use weft_app_objects::{AppAnswer, AppRun};
use weft_objects::ObjectFault;

/// Positions that are won and lost, and a digest of all values, with 1 stone and more: by the plain method.
const KNOWN: [LevelOutcome; 13] = [
    LevelOutcome { won: 5, lost: 7, digest: 0x5302_b295_8a64_1117 },
    LevelOutcome { won: 25, lost: 40, digest: 0x2895_5812_0dac_6597 },
    LevelOutcome { won: 123, lost: 178, digest: 0x8139_da68_59ed_4e70 },
    LevelOutcome { won: 580, lost: 642, digest: 0xd516_8597_fd79_4631 },
    LevelOutcome { won: 2165, lost: 2203, digest: 0x4561_c784_c78e_4362 },
    LevelOutcome { won: 5698, lost: 5130, digest: 0x05b8_308e_203e_4c65 },
    LevelOutcome { won: 14921, lost: 12416, digest: 0x7c28_39e9_49a1_8746 },
    LevelOutcome { won: 37767, lost: 29464, digest: 0x0b77_c067_9751_3882 },
    LevelOutcome { won: 85285, lost: 62367, digest: 0x1c67_ebde_1203_124e },
    LevelOutcome { won: 157721, lost: 101252, digest: 0xb017_fc80_4a8a_6715 },
    LevelOutcome { won: 371960, lost: 240685, digest: 0x9284_13ef_630d_f09e },
    LevelOutcome { won: 714486, lost: 439698, digest: 0x5a3b_ed33_c81c_f5b9 },
    LevelOutcome { won: 1364947, lost: 818946, digest: 0x242c_1d26_2c56_8328 },
];

/// What has come out of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelOutcome {
    won: u32,
    lost: u32,
    digest: u64,
}

impl LevelOutcome {
    pub fn new(values: &[i8]) -> Self {
        let count = |what: fn(&&i8) -> bool| values.iter().filter(what).count() as u32;
        // FNV's step.
        let mix = |all: u64, value: &i8| (all ^ u64::from(*value as u8)).wrapping_mul(0x0100_0000_01b3);
        let digest = values.iter().fold(0xcbf2_9ce4_8422_2325, mix);
        Self { won: count(|value| **value > 0), lost: count(|value| **value < 0), digest }
    }
}

impl fmt::Display for LevelOutcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} won, {} lost, values {:016x}", self.won, self.lost, self.digest)
    }
}

/// Checks the own positions of all levels against their moves. Tells process 0 how many are wrong in all.
pub fn count_wrong(run: &AppRun, numbering: &Numbering, database: &Database) -> Result<Option<u64>, ObjectFault> {
    let deal = Deal { me: run.me, size: run.size };
    let mut wrong = 0_u64;
    for (stones, values) in database.iter().enumerate().skip(1) {
        deal.for_each(numbering, stones, |place, board| {
            let value = values[deal.number(place) as usize];
            wrong += u64::from(value != best_move(numbering, stones, database, board));
        });
    }
    Ok(run.gather("wrong values", wrong)?.map(|parts| parts.iter().sum()))
}

/// Compares the outcomes of levels with what is known of them, and with the plain method where nothing is.
pub fn check(run: &AppRun, numbering: &Numbering, database: &Database, is_plain: bool, answer: &mut AppAnswer) {
    let bar = run.progress(Some(database.len() as u64), "compared");
    for (stones, values) in database.iter().enumerate().skip(1) {
        let known = KNOWN.get(stones - 1).filter(|_| !is_plain).copied();
        let expected = known.unwrap_or_else(|| LevelOutcome::new(&plain_level(numbering, stones, database)));
        let found = LevelOutcome::new(values);
        answer.check(found == expected, || format!("{stones} stones: {found}, which should be {expected}"));
        bar.inc(1);
    }
    bar.finish_and_clear();
}

/// The values of a level by looking one move farther ahead again and again, until nothing changes: after so many moves
/// nobody gets what is on the board.
fn plain_level(numbering: &Numbering, stones: usize, below: &Database) -> Vec<i8> {
    let mut database = below[..stones].to_vec();
    database.push(vec![0; numbering.count(stones)]);
    loop {
        let mut board = numbering.board(stones, 0);
        let value = |_| {
            let value = best_move(numbering, stones, &database, &board);
            advance(&mut board);
            value
        };
        let values: Vec<i8> = (0..numbering.count(stones)).map(value).collect();
        if values == database[stones] {
            return values;
        }
        database[stones] = values;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::solve;
    use weft_objects::Space;

    #[test]
    fn values_are_those_of_the_plain_method_and_others_are_not() {
        let (run, numbering) = (AppRun::new(Space::alone()).expect("a space"), Numbering::new());
        let mut database = solve(&run, &numbering, Deal { me: 0, size: 1 }, 5).expect("nobody else");
        for is_plain in [false, true] {
            let mut answer = AppAnswer::default();
            check(&run, &numbering, &database, is_plain, &mut answer);
            assert_eq!(answer.wrong(), [""; 0]);
        }
        database[5][77] += 1;
        let mut answer = AppAnswer::default();
        check(&run, &numbering, &database, false, &mut answer);
        assert_eq!(answer.wrong().len(), 1);
        assert!(count_wrong(&run, &numbering, &database).expect("nobody else") > Some(0));
    }
}
