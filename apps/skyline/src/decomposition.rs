//! The steps: LU decomposition in place, the forward substitution beside it, and the backward one at the end.
//!
//! In a step a block of rows and columns is finished, and all that come after it get their elements in the rows and
//! columns of the block. Who has the next block does this to it first, finishes and announces it, and then does the
//! rest, so that others need not wait for it.

use crate::dot::dot;
use crate::made::System;
use crate::pivots::{Pivots, SharedPivots};
use crate::skyline::{BLOCK, Cross, SkylineShape, Strip, first_of_block, owner};
use std::collections::VecDeque;
use std::ops::Range;
use weft_app_objects::AppRun;
use weft_objects::ObjectFault;

/// Rows and columns after which it is looked whether others want something.
const LOOK: usize = 8;

/// What a process has to do yet.
struct UnfinishedSystem<'a> {
    run: &'a AppRun,
    shape: SkylineShape,
    /// Own rows and columns that are not finished, by number.
    own: VecDeque<(usize, Cross)>,
    /// The right-hand side, of which the part is known that was announced.
    right: Vec<f64>,
    /// All columns, on process 0.
    columns: Vec<Cross>,
}

/// A solution, and for each equation the sum of the sizes that were added up in its factors: how large rounding may be.
#[derive(Debug)]
pub struct SolvedSystem {
    pub solution: Vec<f64>,
    pub sizes: Vec<f64>,
}

/// Solves the system with all processes. The solution, on process 0.
pub fn solve(run: &AppRun, system: System, shared: &SharedPivots) -> Result<Option<SolvedSystem>, ObjectFault> {
    let System { shape, crosses, right } = system;
    let own = crosses.into_iter().enumerate().filter_map(|(index, cross)| Some((index, cross?))).collect();
    let mut work = UnfinishedSystem { run, shape, own, right, columns: Vec::new() };
    let blocks = work.shape.count().div_ceil(BLOCK);
    let bar = run.progress(Some(blocks as u64), "decomposed");
    let is_own = |block: usize| block < blocks && owner(first_of_block(block), run.size) == run.me;
    let mut made = None;
    for block in 0..blocks {
        let pivots = match made.take() {
            Some(pivots) => pivots,
            None if is_own(block) => work.finish(block, shared)?,
            None => shared.block(block, &work.shape)?,
        };
        let known = pivots.first + pivots.right.len();
        work.right[pivots.first..known].copy_from_slice(&pivots.right);
        if is_own(block + 1) && run.size > 1 {
            work.eliminate(&pivots, 0..BLOCK);
            made = Some(work.finish(block + 1, shared)?);
        }
        work.eliminate(&pivots, 0..work.own.len());
        if run.me == 0 {
            work.columns.extend(pivots.crosses);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok((run.me == 0).then(|| work.substitute()))
}

impl UnfinishedSystem<'_> {
    /// Ends the own rows and columns of a block, of which all before it has been done, and announces them.
    fn finish(&mut self, block: usize, shared: &SharedPivots) -> Result<Pivots, ObjectFault> {
        let first = first_of_block(block);
        let mut pivots = Pivots { first, ..Pivots::default() };
        while let Some((index, mut cross)) = self.own.pop_front_if(|(index, _)| *index < first + BLOCK) {
            eliminate(&mut cross, &pivots);
            let Cross { column, row } = &mut cross;
            let begin = column.begin.max(row.begin);
            *column.at(index) -= dot(row.part(begin, index), column.part(begin, index));
            self.right[index] -= dot(&row.elements, &self.right[row.begin..index]);
            pivots.right.push(self.right[index]);
            pivots.crosses.push(cross);
        }
        shared.announce(&pivots)?;
        Ok(pivots)
    }

    /// Gives some of the own rows and columns their elements in the columns and rows of a block.
    fn eliminate(&mut self, pivots: &Pivots, which: Range<usize>) {
        let all = self.own.len();
        for (count, (_, cross)) in self.own.range_mut(which.start..which.end.min(all)).enumerate() {
            eliminate(cross, pivots);
            if count % LOOK == 0 {
                self.run.space.poll();
            }
        }
    }

    /// The backward substitution, column by column.
    fn substitute(self) -> SolvedSystem {
        let mut solution = self.right;
        for (index, cross) in self.columns.iter().enumerate().rev() {
            let column = &cross.column;
            let value = solution[index] / column.elements[index - column.begin];
            solution[index] = value;
            for (other, element) in solution[column.begin..index].iter_mut().zip(&column.elements) {
                *other -= value * element;
            }
        }
        let sizes = sizes(&self.columns, &solution);
        SolvedSystem { solution, sizes }
    }
}

/// The lower factor times the upper one times the solution, all of them without signs.
fn sizes(factors: &[Cross], solution: &[f64]) -> Vec<f64> {
    let mut upper = vec![0.0; solution.len()];
    for (Cross { column, .. }, value) in factors.iter().zip(solution) {
        for (size, element) in upper[column.begin..].iter_mut().zip(&column.elements) {
            *size += (element * value).abs();
        }
    }
    let below = |row: &Strip| -> f64 {
        row.elements.iter().zip(&upper[row.begin..]).map(|(element, size)| element.abs() * size).sum()
    };
    factors.iter().zip(&upper).map(|(factor, size)| size + below(&factor.row)).collect()
}

fn eliminate(cross: &mut Cross, pivots: &Pivots) {
    let Cross { column, row } = cross;
    for (index, pivot) in (pivots.first..).zip(&pivots.crosses) {
        if index >= row.begin {
            let begin = row.begin.max(pivot.column.begin);
            let rest = *row.at(index) - dot(row.part(begin, index), pivot.column.part(begin, index));
            *row.at(index) = rest / pivot.column.elements[index - pivot.column.begin];
        }
        if index >= column.begin {
            let begin = column.begin.max(pivot.row.begin);
            *column.at(index) -= dot(pivot.row.part(begin, index), column.part(begin, index));
        }
    }
}
