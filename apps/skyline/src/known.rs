//! Whether a solution is one: the matrix is made once more, and multiplied with it.
//!
//! Nothing is exchanged for the sake of accuracy. The two sides of an equation may differ by what rounding can make of
//! the factors that were found: by Higham, *Accuracy and Stability of Numerical Algorithms* (2002), theorem 9.4, three
//! times the number of equations times the unit of rounding of the sizes in them; one more for the check itself.

use crate::decomposition::SolvedSystem;
use crate::made::System;
use crate::skyline::Cross;
use std::fmt;
use weft_app_objects::AppAnswer;

/// What has come out.
pub struct SkylineOutcome {
    greatest: f64,
    digest: u64,
}

impl SkylineOutcome {
    pub fn new(solution: &[f64]) -> Self {
        let greatest = solution.iter().fold(0.0, |most: f64, number| most.max(number.abs()));
        // FNV's step, by words.
        let mix = |all: u64, number: &f64| (all ^ number.to_bits()).wrapping_mul(0x0100_0000_01b3);
        Self { greatest, digest: solution.iter().fold(0xcbf2_9ce4_8422_2325, mix) }
    }
}

impl fmt::Display for SkylineOutcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "greatest of the solution {:.12e}, bits {:016x}", self.greatest, self.digest)
    }
}

/// Multiplies the matrix with the solution and compares with the right-hand side.
pub fn check(original: &System, solved: &SolvedSystem, answer: &mut AppAnswer) {
    let mut rests: Vec<f64> = original.right.iter().map(|right| -right).collect();
    for (index, cross) in original.crosses.iter().enumerate() {
        let Cross { column, row } = cross.as_ref().expect("all are there");
        for (rest, element) in rests[column.begin..].iter_mut().zip(&column.elements) {
            *rest += element * solved.solution[index];
        }
        let products = row.elements.iter().zip(&solved.solution[row.begin..]).map(|(element, value)| element * value);
        rests[index] += products.sum::<f64>();
    }
    let allowed = 4.0 * rests.len() as f64 * f64::EPSILON / 2.0;
    // What is no number is not within it, either.
    let is_right = rests.iter().zip(&solved.sizes).all(|(rest, size)| rest.abs() <= allowed * size);
    answer.check(is_right, || {
        let worst = rests.iter().zip(&solved.sizes).fold(0.0, |worst: f64, (rest, size)| worst.max(rest.abs() / size));
        format!("an equation is off by {worst:.3e} of the sizes in it, allowed {allowed:.3e}")
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decomposition::solve;
    use crate::pivots::SharedPivots;
    use weft_app_objects::AppRun;
    use weft_objects::Space;

    fn wrong(count: usize, spoil: impl Fn(&mut [f64])) -> usize {
        let run = AppRun::new(Space::alone()).expect("a space");
        let pivots = SharedPivots::open(&run).expect("nobody else");
        let solved = solve(&run, System::new(count, 30, |_| true), &pivots).expect("nobody else");
        let mut solved = solved.expect("of process 0");
        spoil(&mut solved.solution);
        let mut answer = AppAnswer::default();
        check(&System::new(count, 30, |_| true), &solved, &mut answer);
        answer.wrong().len()
    }

    #[test]
    fn a_solution_is_right_and_what_is_near_one_is_not() {
        for count in [1, 2, 15, 16, 17, 100] {
            assert_eq!(wrong(count, |_| ()), 0, "{count} equations");
            assert_eq!(wrong(count, |solution| solution[count / 2] *= 1.0 + 1e-9), 1, "{count} equations");
            assert_eq!(wrong(count, |solution| solution[0] = f64::NAN), 1, "{count} equations");
        }
    }
}
