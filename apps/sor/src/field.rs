//! The cells of some rows, apart by colour: cells that are not changed in a phase lie side by side, and so do those
//! that are. A row of either has each second column.

use std::ops::Range;

/// What stands on the borders, which never change: the original's values.
const TOP: f64 = 4.56;
const BOTTOM: f64 = 9.85;
const LEFT: f64 = 7.32;
const RIGHT: f64 = 6.88;

/// Cells that a step computes together, so that the processor can.
const LANES: usize = 8;

/// Cells in all, borders included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    pub rows: usize,
    pub columns: usize,
}

impl Grid {
    /// What a cell is at first.
    pub fn initial(self, row: usize, column: usize) -> f64 {
        match (row, column) {
            (0, _) => TOP,
            (row, _) if row == self.rows - 1 => BOTTOM,
            (_, 0) => LEFT,
            (_, column) if column == self.columns - 1 => RIGHT,
            _ => 0.0,
        }
    }

    /// How far a cell goes beyond the mean of its neighbours, and the change at which all is over.
    pub fn pace(self) -> SorPace {
        let cosine = |count: usize| (std::f64::consts::PI / count as f64).cos();
        let radius = 0.5 * (cosine(self.columns) + cosine(self.rows));
        let omega = 2.0 / (1.0 + (1.0 - radius * radius).sqrt());
        SorPace { omega, enough: 1e-3 / (2.0 - omega) }
    }
}

/// How an iteration goes, and when the last one was.
#[derive(Clone, Copy)]
pub struct SorPace {
    pub omega: f64,
    pub enough: f64,
}

/// The first phase changes red cells, of which the sum of row and column is odd, the second one black ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellColour {
    Red,
    Black,
}

impl CellColour {
    pub const ALL: [Self; 2] = [Self::Red, Self::Black];

    fn other(self) -> Self {
        if self == Self::Red { Self::Black } else { Self::Red }
    }
}

/// The rows of one process, from 1, between one above and one below that others have or that are borders.
pub struct CellField {
    pub grid: Grid,
    first: usize,
    count: usize,
    /// Numbers between two rows of a colour.
    stride: usize,
    colours: [Vec<f64>; 2],
}

impl CellField {
    /// Those rows of the grid, of which none is a border.
    pub fn new(grid: Grid, rows: Range<usize>) -> Self {
        let (first, count, stride) = (rows.start, rows.len(), grid.columns.div_ceil(2));
        let colours = CellColour::ALL.map(|colour| {
            let mut cells = vec![0.0; (count + 2) * stride];
            for (at, cell) in cells.iter_mut().enumerate() {
                let (row, column) = (first - 1 + at / stride, at % stride * 2 + odd(first - 1 + at / stride, colour));
                *cell = if column < grid.columns { grid.initial(row, column) } else { 0.0 };
            }
            cells
        });
        Self { grid, first, count, stride, colours }
    }

    /// How many are this process's own.
    pub fn rows(&self) -> usize {
        self.count
    }

    /// The cells of one colour in a row.
    pub fn cells(&self, colour: CellColour, row: usize) -> &[f64] {
        &self.colours[colour as usize][row * self.stride..(row + 1) * self.stride]
    }

    pub fn set_cells(&mut self, colour: CellColour, row: usize, cells: &[f64]) {
        self.colours[colour as usize][row * self.stride..(row + 1) * self.stride].copy_from_slice(cells);
    }

    /// A whole row, by columns.
    pub fn row(&self, row: usize) -> impl Iterator<Item = f64> {
        let of_even = CellColour::ALL[usize::from(odd(self.first - 1 + row, CellColour::Red) == 1)];
        let (even, uneven) = (self.cells(of_even, row), self.cells(of_even.other(), row));
        even.iter().zip(uneven).flat_map(|(even, uneven)| [*even, *uneven]).take(self.grid.columns)
    }

    /// Moves the cells of one colour in a row beyond the mean of their neighbours; the greatest change to that mean.
    pub fn relax(&mut self, colour: CellColour, row: usize, omega: f64) -> f64 {
        let begins_odd = odd(self.first - 1 + row, colour);
        // The first column is a border, and so is the last one.
        let (begin, end) = (1 - begins_odd, (self.grid.columns - begins_odd) / 2);
        let [red, black] = &mut self.colours;
        let (own, other) = if colour == CellColour::Red { (red, &*black) } else { (black, &*red) };
        let at = |row: usize, index: usize| row * self.stride + index;
        let part = |row: usize, index: usize| &other[at(row, index)..at(row, index) + end - begin];
        let left = part(row, begin + begins_odd - 1);
        let right = part(row, begin + begins_odd);
        let own = &mut own[at(row, begin)..at(row, end)];
        relax_cells(own, [part(row - 1, begin), part(row + 1, begin), left, right], omega)
    }
}

/// Whether the cells of a colour in a row of the grid are those of odd columns: 1 or 0.
fn odd(row: usize, colour: CellColour) -> usize {
    (row + 1 + colour as usize) & 1
}

fn relax_cells(own: &mut [f64], around: [&[f64]; 4], omega: f64) -> f64 {
    let mut worst = [0.0; LANES];
    let (whole, rest) = own.as_chunks_mut::<LANES>();
    let chunks = around.map(|cells| cells.as_chunks::<LANES>());
    let [up, down, left, right] = chunks.map(|(whole, _)| whole);
    for ((((own, up), down), left), right) in whole.iter_mut().zip(up).zip(down).zip(left).zip(right) {
        for lane in 0..LANES {
            relax_cell(&mut own[lane], [up[lane], down[lane], left[lane], right[lane]], omega, &mut worst[lane]);
        }
    }
    let rests = chunks.map(|(_, rest)| rest);
    for (index, own) in rest.iter_mut().enumerate() {
        relax_cell(own, rests.map(|cells| cells[index]), omega, &mut worst[0]);
    }
    worst.into_iter().fold(0.0, f64::max)
}

#[inline(always)]
fn relax_cell(own: &mut f64, [up, down, left, right]: [f64; 4], omega: f64, worst: &mut f64) {
    let change = (up + down + left + right) / 4.0 - *own;
    let size = change.abs();
    *worst = if size > *worst { size } else { *worst };
    *own += omega * change;
}
