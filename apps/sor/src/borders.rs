//! All communication of the iterations: rows at the edge of neighbours, and whether all are content.
//!
//! A row goes into a bin that its receiver has, so that to take it asks nobody. There is one for each colour, so that
//! it is always free when the next row comes. A vote is a write of an object that all have.

use crate::field::{CellColour, CellField};
use weft_app_objects::{AppRun, Reals};
use weft_objects::standard::{BinObject, PollObject, SharedBin, SharedPoll};
use weft_objects::{ObjectFault, ObjectPlacement, Space, Strategy};

/// One neighbour: bins by colour to it and from it, the own row that it needs and the place of its own.
struct StripNeighbour {
    to: [SharedBin<Reals>; 2],
    from: [SharedBin<Reals>; 2],
    edge: usize,
    beyond: usize,
}

/// The neighbours of a process, and the votes of all.
pub struct Borders {
    neighbours: Vec<StripNeighbour>,
    votes: SharedPoll,
}

fn bin(space: &Space, from: u32, to: u32, colour: CellColour) -> Result<SharedBin<Reals>, ObjectFault> {
    SharedBin::share(space, &format!("{colour:?} cells of {from} for {to}"), BinObject::default())
}

impl Borders {
    pub fn open(run: &AppRun, field: &CellField) -> Result<Self, ObjectFault> {
        let votes = SharedPoll::share(&run.space, "votes", PollObject::new(run.size))?;
        votes.place(Strategy::Fixed(ObjectPlacement::Replicated))?;
        let above = (run.me > 0).then(|| (run.me - 1, 1, 0));
        let below = (run.me + 1 < run.size).then(|| (run.me + 1, field.rows(), field.rows() + 1));
        let mut neighbours = Vec::new();
        for (who, edge, beyond) in above.into_iter().chain(below) {
            let [red, black] = CellColour::ALL;
            let to = [bin(&run.space, run.me, who, red)?, bin(&run.space, run.me, who, black)?];
            let from = [bin(&run.space, who, run.me, red)?, bin(&run.space, who, run.me, black)?];
            from.iter().try_for_each(|bin| bin.place(Strategy::Fixed(ObjectPlacement::Single(run.me))))?;
            neighbours.push(StripNeighbour { to, from, edge, beyond });
        }
        Ok(Self { neighbours, votes })
    }

    /// Gives the cells of one colour at both edges to the neighbours.
    pub fn give(&self, field: &CellField, colour: CellColour) -> Result<(), ObjectFault> {
        let give = |to: &StripNeighbour| to.to[colour as usize].put(Reals::from(field.cells(colour, to.edge)));
        self.neighbours.iter().try_for_each(give)
    }

    /// Takes those of the neighbours.
    pub fn take(&self, field: &mut CellField, colour: CellColour) -> Result<(), ObjectFault> {
        for neighbour in &self.neighbours {
            let cells = neighbour.from[colour as usize].take()?;
            field.set_cells(colour, neighbour.beyond, &cells.0);
        }
        Ok(())
    }

    /// Whether all are content with this iteration.
    pub fn agree(&self, iteration: u64, is_content: bool) -> Result<bool, ObjectFault> {
        self.votes.vote(iteration, is_content)?;
        self.votes.await_decision(iteration)
    }
}
