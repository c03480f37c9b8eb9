//! Grids (MPI 5.0, section 8.5.1).

use super::Neighbors;
use crate::abi::PROC_NULL;

/// A grid; ranks run through it in row-major order. No dimensions make a grid of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cartesian {
    pub dims: Vec<i32>,
    pub periodic: Vec<bool>,
}

impl Cartesian {
    /// Processes in the grid; `None` if they are more than ranks can count.
    pub fn size(dims: &[i32]) -> Option<u32> {
        dims.iter().try_fold(1u32, |size, &dim| size.checked_mul(u32::try_from(dim).ok()?))
    }

    pub fn coordinates(&self, rank: u32) -> Vec<i32> {
        let mut rest = rank as i32;
        let mut coordinates: Vec<i32> = Vec::with_capacity(self.dims.len());
        for &dim in self.dims.iter().rev() {
            coordinates.push(rest % dim);
            rest /= dim;
        }
        coordinates.reverse();
        coordinates
    }

    /// The rank at these coordinates, wrapped in periodic dimensions; otherwise the first dimension that they leave.
    pub fn rank(&self, coordinates: &[i32]) -> Result<u32, usize> {
        let mut rank = 0;
        for (dimension, (&dim, &periodic)) in self.dims.iter().zip(&self.periodic).enumerate() {
            let mut place = coordinates[dimension];
            if periodic {
                place = place.rem_euclid(dim);
            }
            if !(0..dim).contains(&place) {
                return Err(dimension);
            }
            rank = rank * dim as u32 + place as u32;
        }
        Ok(rank)
    }

    /// The rank `by` steps away along a dimension, or `MPI_PROC_NULL` beyond the edge.
    pub fn shifted(&self, rank: u32, dimension: usize, by: i32) -> i32 {
        let mut coordinates = self.coordinates(rank);
        let dim = self.dims[dimension];
        let place = i64::from(coordinates[dimension]) + i64::from(by);
        if !self.periodic[dimension] && !(0..i64::from(dim)).contains(&place) {
            return PROC_NULL;
        }
        coordinates[dimension] = place.rem_euclid(i64::from(dim)) as i32;
        self.rank(&coordinates).map_or(PROC_NULL, |rank| rank as i32)
    }

    /// For each dimension the neighbour below, then the one above.
    pub fn neighbors(&self, rank: u32) -> Neighbors {
        let both = |dimension| [self.shifted(rank, dimension, -1), self.shifted(rank, dimension, 1)];
        let all: Vec<i32> = (0..self.dims.len()).flat_map(both).collect();
        Neighbors { sources: all.clone(), destinations: all }
    }

    /// The grid of the dimensions kept, and which of the grids that are left this process is in.
    pub fn sub(&self, rank: u32, kept: &[bool]) -> (Self, u32) {
        let coordinates = self.coordinates(rank);
        let mut grid = Self { dims: Vec::new(), periodic: Vec::new() };
        let mut color = 0;
        for (dimension, &kept) in kept.iter().enumerate() {
            if kept {
                grid.dims.push(self.dims[dimension]);
                grid.periodic.push(self.periodic[dimension]);
            } else {
                color = color * self.dims[dimension] as u32 + coordinates[dimension] as u32;
            }
        }
        (grid, color)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Cartesian {
        Cartesian { dims: vec![2, 3, 4], periodic: vec![false, true, false] }
    }

    #[test]
    fn ranks_and_coordinates_are_row_major_inverses() {
        let grid = grid();
        assert_eq!(grid.coordinates(17), [1, 1, 1]);
        for rank in 0..24 {
            assert_eq!(grid.rank(&grid.coordinates(rank)), Ok(rank));
        }
    }

    #[test]
    fn only_periodic_dimensions_wrap() {
        let grid = grid();
        assert_eq!(grid.rank(&[0, -1, 0]), grid.rank(&[0, 2, 0]));
        assert_eq!(grid.rank(&[0, 4, 3]), grid.rank(&[0, 1, 3]));
        assert_eq!((grid.rank(&[2, 0, 0]), grid.rank(&[0, 0, -1])), (Err(0), Err(2)));
        assert_eq!(grid.shifted(0, 0, -1), PROC_NULL);
        assert_eq!(grid.shifted(0, 1, -1), 8);
        assert_eq!(grid.shifted(0, 1, i32::MAX), grid.shifted(0, 1, i32::MAX % 3));
        assert_eq!(grid.neighbors(0).sources, [PROC_NULL, 12, 8, 4, PROC_NULL, 1]);
    }

    #[test]
    fn sub_grids_part_the_processes() {
        let (sub, color) = grid().sub(17, &[false, true, false]);
        assert_eq!((sub.dims, sub.periodic, color), (vec![3], vec![true], 5));
        assert_eq!(Cartesian::size(&[]), Some(1));
        assert_eq!(Cartesian::size(&[i32::MAX, 3]), None);
    }
}
