//! Shapes, and who has what.
//!
//! Of column `i` the upper part is kept, down to the diagonal; of row `i` the lower part, up to before the diagonal.
//! Both belong to one process. Blocks of neighbours go round the processes, so that all have the same to do until the
//! end.

/// Rows and columns that are announced together.
pub const BLOCK: usize = 16;

/// Who has row and column `index`.
pub fn owner(index: usize, processes: u32) -> u32 {
    (index / BLOCK % processes as usize) as u32
}

pub fn first_of_block(block: usize) -> usize {
    block * BLOCK
}

/// Where rows and columns begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkylineShape {
    columns: Vec<usize>,
    rows: Vec<usize>,
}

impl SkylineShape {
    pub fn new(columns: Vec<usize>, rows: Vec<usize>) -> Self {
        Self { columns, rows }
    }

    /// Equations.
    pub fn count(&self) -> usize {
        self.columns.len()
    }

    /// The first row of a column.
    pub fn column_begin(&self, column: usize) -> usize {
        self.columns[column]
    }

    /// The first column of a row.
    pub fn row_begin(&self, row: usize) -> usize {
        self.rows[row]
    }
}

/// A part of a row or a column: elements from `begin` on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strip {
    pub begin: usize,
    pub elements: Vec<f64>,
}

impl Strip {
    /// The elements of a range that is in it.
    pub fn part(&self, from: usize, to: usize) -> &[f64] {
        &self.elements[from - self.begin..to - self.begin]
    }

    pub fn at(&mut self, index: usize) -> &mut f64 {
        &mut self.elements[index - self.begin]
    }
}

/// The upper part of a column and the lower part of the row of the same number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cross {
    pub column: Strip,
    pub row: Strip,
}
