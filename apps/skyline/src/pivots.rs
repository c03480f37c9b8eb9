//! All communication: finished rows and columns, a block at a time, which their owner announces to all.
//!
//! An object that all have keeps the last blocks, one for each process: nobody announces a block before it has read all
//! before it, so nobody can be farther behind.

use crate::skyline::{BLOCK, Cross, SkylineShape, Strip, first_of_block};
use serde::{Deserialize, Serialize};
use weft_app_objects::{AppRun, Reals};
use weft_objects::{ObjectFault, ObjectPlacement, Strategy, object};

/// The last blocks that were announced.
#[derive(Serialize, Deserialize)]
struct PivotObject {
    window: Vec<Reals>,
    announced: u64,
}

#[object(handle = SharedPivotWindow)]
impl PivotObject {
    #[operation(write)]
    fn announce(&mut self, pivots: Reals) {
        let place = self.announced as usize % self.window.len();
        self.window[place] = pivots;
        self.announced += 1;
    }

    /// Waits until the block is announced.
    #[operation(read, guard = self.announced > *block)]
    fn block(&self, block: u64) -> Reals {
        self.window[block as usize % self.window.len()].clone()
    }
}

/// A block of finished rows and columns, with what is known of the right-hand side by then.
#[derive(Clone, Default)]
pub struct Pivots {
    pub first: usize,
    pub crosses: Vec<Cross>,
    pub right: Vec<f64>,
}

impl Pivots {
    fn to_reals(&self) -> Reals {
        let strips = self.crosses.iter().flat_map(|cross| [&cross.column.elements, &cross.row.elements]);
        Reals(strips.chain([&self.right]).flatten().copied().collect())
    }

    fn from_reals(block: usize, numbers: &Reals, shape: &SkylineShape) -> Self {
        let first = first_of_block(block);
        let mut rest = &numbers.0[..];
        let mut take = |begin: usize, end: usize| {
            let (elements, after) = rest.split_at(end - begin);
            rest = after;
            Strip { begin, elements: elements.to_vec() }
        };
        let cross = |index: usize| Cross {
            column: take(shape.column_begin(index), index + 1),
            row: take(shape.row_begin(index), index),
        };
        let crosses: Vec<Cross> = (first..shape.count().min(first + BLOCK)).map(cross).collect();
        Self { first, crosses, right: rest.to_vec() }
    }
}

/// What processes tell each other of pivots. One that is alone tells nobody.
pub struct SharedPivots {
    window: SharedPivotWindow,
    is_alone: bool,
}

impl SharedPivots {
    pub fn open(run: &AppRun) -> Result<Self, ObjectFault> {
        let initial = PivotObject { window: vec![Reals::default(); run.size as usize], announced: 0 };
        let window = SharedPivotWindow::share(&run.space, "pivots", initial)?;
        window.place(Strategy::Fixed(ObjectPlacement::Replicated))?;
        Ok(Self { window, is_alone: run.size == 1 })
    }

    pub fn announce(&self, pivots: &Pivots) -> Result<(), ObjectFault> {
        if self.is_alone {
            return Ok(());
        }
        self.window.announce(pivots.to_reals())
    }

    /// Waits for a block of another process.
    pub fn block(&self, block: usize, shape: &SkylineShape) -> Result<Pivots, ObjectFault> {
        Ok(Pivots::from_reals(block, &self.window.block(block as u64)?, shape))
    }
}
