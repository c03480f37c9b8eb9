//! Retrograde analysis of one level after the other.
//!
//! Values are found from both ends: `stones` first, and with them what loses so much. A position is known when all its
//! moves are, or when one is worth as much as anything that is left. Then the positions before it learn that. In a
//! round a process does all it can, and tells others what concerns theirs; a value is done when a round has told
//! nothing. What is never known goes round for ever: nobody gets these stones.

use crate::board::{Numbering, for_each_predecessor, has_stones};
use crate::exchange::ValueExchange;
use crate::level::{Database, Deal, StoneLevel};
use weft_app_objects::AppRun;
use weft_objects::{ObjectFault, Space};

/// Positions after which it is looked whether others want something.
const LOOK: u32 = 64;

/// The values of all positions with up to so many stones, on all processes.
pub fn solve(run: &AppRun, numbering: &Numbering, deal: Deal, most: usize) -> Result<Database, ObjectFault> {
    let mut exchange = ValueExchange::open(run, deal)?;
    let mut database: Database = vec![vec![0]];
    let positions = (1..=most).map(|stones| numbering.count(stones) as u64).sum();
    let bar = run.progress(Some(positions), "of all positions");
    for stones in 1..=most {
        let mut level = StoneLevel::new(numbering, deal, stones, &database, || run.space.poll());
        let mut step = LevelStep { space: &run.space, numbering, deal, stones, exchange: &mut exchange };
        for value in (1..=stones as i8).rev() {
            level.find(value);
            while step.round(&mut level, value)? {}
        }
        database.push(exchange.share_level(stones, numbering.count(stones), level.values())?);
        bar.inc(numbering.count(stones) as u64);
    }
    bar.finish_and_clear();
    Ok(database)
}

/// What a round needs.
struct LevelStep<'a> {
    space: &'a Space,
    numbering: &'a Numbering,
    deal: Deal,
    stones: usize,
    exchange: &'a mut ValueExchange,
}

impl LevelStep<'_> {
    /// Does all that can be done here, and hears what the others have found. Whether there may be more.
    fn round(&mut self, level: &mut StoneLevel, enough: i8) -> Result<bool, ObjectFault> {
        let mut count = 0;
        while let Some((place, value)) = level.next_found() {
            self.tell_before(level, place, value, enough)?;
            count += 1;
            if count % LOOK == 0 {
                self.space.poll();
            }
        }
        self.exchange.end_round(|place, value| level.learn(place, value, enough))
    }

    /// Tells the positions before this one what the move to it is worth.
    fn tell_before(&mut self, level: &mut StoneLevel, place: u32, value: i8, enough: i8) -> Result<(), ObjectFault> {
        let Self { numbering, deal, .. } = *self;
        let board = numbering.board(self.stones, deal.number(place));
        if !has_stones(&board) {
            // No move that is allowed leads here.
            return Ok(());
        }
        let mut told = Ok(());
        for_each_predecessor(&board, |before| {
            let (process, place) = deal.place(numbering.number(before));
            if process == deal.me {
                level.learn(place, -value, enough);
            } else if told.is_ok() {
                told = self.exchange.tell(process, place, -value);
            }
        });
        told
    }
}
