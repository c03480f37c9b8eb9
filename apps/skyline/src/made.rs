//! The system of equations, by the rules and the random numbers of the original's generator: `gen_skyline -a FILL N`.
//! All numbers are whole. Those of the diagonal are greater than all others.

use crate::skyline::{Cross, SkylineShape, Strip};

/// Elements are below this; those of the diagonal are this and more.
const BOUND: u32 = 101;

/// The generator of old C libraries.
struct GeneratorNumbers(u32);

impl GeneratorNumbers {
    /// Below `bound`.
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_103_515_245).wrapping_add(12345);
        (self.0 & 0x7fff_ffff) % bound
    }

    /// So many elements, and one of the diagonal if that `has_diagonal`.
    fn elements(&mut self, count: usize, has_diagonal: bool) -> Vec<f64> {
        let mut elements: Vec<f64> = (0..count).map(|_| f64::from(self.below(BOUND))).collect();
        elements.extend(has_diagonal.then(|| f64::from(self.below(BOUND) + BOUND)));
        elements
    }
}

/// A matrix, or a part of it, and the right-hand side.
pub struct System {
    pub shape: SkylineShape,
    /// By number; `None` where others have it.
    pub crosses: Vec<Option<Cross>>,
    pub right: Vec<f64>,
}

impl System {
    /// That of so many equations. Rows and columns are kept that `is_kept` says.
    pub fn new(count: usize, fill: u32, is_kept: impl Fn(usize) -> bool) -> Self {
        let mut numbers = GeneratorNumbers(1);
        let mut strips = |is_column: bool| -> (Vec<usize>, Vec<Option<Strip>>) {
            let strip = |index: usize| {
                let highest = fill * index as u32 / 100;
                let height = if highest > 0 { numbers.below(highest) as usize } else { 0 };
                let elements = numbers.elements(height, is_column);
                let begin = index - height;
                (begin, is_kept(index).then_some(Strip { begin, elements }))
            };
            (0..count).map(strip).unzip()
        };
        let (column_begins, columns) = strips(true);
        let (row_begins, rows) = strips(false);
        let cross = |(column, row): (Option<Strip>, Option<Strip>)| Some(Cross { column: column?, row: row? });
        let crosses = columns.into_iter().zip(rows).map(cross).collect();
        let right = numbers.elements(count, false);
        Self { shape: SkylineShape::new(column_begins, row_begins), crosses, right }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the original's program writes for `gen_skyline -a 50 7`.
    #[test]
    fn numbers_are_those_of_the_original() {
        let system = System::new(7, 50, |_| true);
        let crosses: Vec<Cross> = system.crosses.into_iter().flatten().collect();
        let diagonal = crosses.iter().map(|cross| *cross.column.elements.last().expect("a diagonal"));
        assert_eq!(diagonal.collect::<Vec<_>>(), [176.0, 127.0, 108.0, 106.0, 169.0, 118.0, 154.0]);
        assert_eq!(crosses[6].column, Strip { begin: 4, elements: vec![61.0, 32.0, 154.0] });
        assert_eq!(crosses[5].row, Strip { begin: 4, elements: vec![83.0] });
        assert_eq!(system.right, [53.0, 99.0, 52.0, 25.0, 13.0, 17.0, 17.0]);
    }
}
