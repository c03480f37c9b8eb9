//! Parts of multidimensional arrays: subarray and the block-cyclic distributed array (MPI 5.0, sections 5.1.3 and
//! 5.1.4).

use super::Datatype;
use super::arith::same_length;
use super::contents::{Combiner, ConstructorForm, Contents};
use crate::error::{Class, Error, Result};
use weft_data::{Form, mul};

/// Which index runs fastest in memory, with the numbers of the standard ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum ArrayOrder {
    /// The last.
    C = 12,
    /// The first.
    Fortran = 15,
}

impl ArrayOrder {
    pub fn from_code(code: i64) -> Result<Self> {
        match code {
            12 => Ok(Self::C),
            15 => Ok(Self::Fortran),
            _ => Err(arg(format!("order is {code}; it must be 12 (C) or 15 (Fortran)"))),
        }
    }

    /// The dimensions from the fastest to the slowest.
    fn fastest_first(self, dims: usize) -> Vec<usize> {
        match self {
            Self::C => (0..dims).rev().collect(),
            Self::Fortran => (0..dims).collect(),
        }
    }
}

/// How one dimension is spread over processes, with the numbers of the standard ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Distribution {
    None = 16,
    Block = 17,
    Cyclic = 18,
}

impl Distribution {
    /// The argument that stands for the default block length.
    pub const DEFAULT_ARGUMENT: i64 = 19;

    pub fn from_code(code: i64) -> Result<Self> {
        match code {
            16 => Ok(Self::None),
            17 => Ok(Self::Block),
            18 => Ok(Self::Cyclic),
            _ => Err(arg(format!("distribution is {code}; it must be 16 (none), 17 (block) or 18 (cyclic)"))),
        }
    }
}

fn arg(detail: String) -> Error {
    Error::new(Class::Arg, detail)
}

impl Datatype {
    /// The part `starts[i] .. starts[i] + subsizes[i]` of an array with these sizes; the extent is that of the whole
    /// array.
    pub fn subarray(
        sizes: &[i64],
        subsizes: &[i64],
        starts: &[i64],
        order: ArrayOrder,
        old: &Self,
        width: ConstructorForm,
    ) -> Result<Self> {
        check_subarray(sizes, subsizes, starts)?;
        let mut form = old.form().clone();
        let (mut stride, mut first) = (old.extent(), 0i64);
        for dim in order.fastest_first(sizes.len()) {
            form = form.repeated(subsizes[dim], stride)?;
            first = first.wrapping_add(starts[dim].wrapping_mul(stride));
            stride = mul(stride, sizes[dim])?;
        }
        let form = form.shifted(first)?.resized(0, stride)?;
        let contents = Contents::new(Combiner::Subarray).integers(&[sizes.len() as i64]);
        let contents = contents.numbers(width, sizes).numbers(width, subsizes).numbers(width, starts);
        let contents = contents.integers(&[order as i64]).datatypes(std::slice::from_ref(old));
        Ok(Self::derived(form, contents))
    }

    /// What process `rank` of `processes` (a grid of `grid` in row-major order) owns of an array with these sizes.
    #[expect(clippy::too_many_arguments, reason = "these are the arguments that the standard gives it")]
    pub fn darray(
        processes: i64,
        rank: i64,
        sizes: &[i64],
        distributions: &[Distribution],
        arguments: &[i64],
        grid: &[i64],
        order: ArrayOrder,
        old: &Self,
        width: ConstructorForm,
    ) -> Result<Self> {
        check_grid(processes, rank, sizes, grid)?;
        same_length("distributions", distributions.len(), sizes.len())?;
        same_length("distribution arguments", arguments.len(), sizes.len())?;
        let place = coordinates(rank, grid);
        let mut form = old.form().clone();
        let mut stride = old.extent();
        for dim in order.fastest_first(sizes.len()) {
            let dimension = ArrayDimension { index: dim, size: sizes[dim], places: grid[dim], place: place[dim] };
            form = dimension.owned(&form, stride, distributions[dim], arguments[dim])?;
            stride = mul(stride, sizes[dim])?;
        }
        let form = form.resized(0, stride)?;
        let codes: Vec<i64> = distributions.iter().map(|&distribution| distribution as i64).collect();
        let contents = Contents::new(Combiner::Darray).integers(&[processes, rank, sizes.len() as i64]);
        let contents = contents.numbers(width, sizes).integers(&codes).integers(arguments).integers(grid);
        let contents = contents.integers(&[order as i64]).datatypes(std::slice::from_ref(old));
        Ok(Self::derived(form, contents))
    }
}

fn check_subarray(sizes: &[i64], subsizes: &[i64], starts: &[i64]) -> Result<()> {
    if sizes.is_empty() {
        return Err(arg("the number of dimensions is 0; it must be 1 or more".into()));
    }
    same_length("subsizes", subsizes.len(), sizes.len())?;
    same_length("starts", starts.len(), sizes.len())?;
    for (dim, &size) in sizes.iter().enumerate() {
        let (subsize, start) = (subsizes[dim], starts[dim]);
        if size < 1 {
            return Err(arg(format!("sizes[{dim}] is {size}; it must be 1 or more")));
        }
        if !(1..=size).contains(&subsize) {
            return Err(arg(format!("subsizes[{dim}] is {subsize}; it must be 1 to sizes[{dim}] = {size}")));
        }
        if !(0..=size - subsize).contains(&start) {
            let last = size - subsize;
            return Err(arg(format!(
                "starts[{dim}] is {start}; it must be 0 to {last} (size {size}, subsize {subsize})"
            )));
        }
    }
    Ok(())
}

fn check_grid(processes: i64, rank: i64, sizes: &[i64], grid: &[i64]) -> Result<()> {
    if sizes.is_empty() {
        return Err(arg("the number of dimensions is 0; it must be 1 or more".into()));
    }
    same_length("process grid", grid.len(), sizes.len())?;
    if processes < 1 {
        return Err(arg(format!("size is {processes}; it must be 1 or more")));
    }
    if !(0..processes).contains(&rank) {
        return Err(arg(format!("rank is {rank}; it must be 0 to {}", processes - 1)));
    }
    for (dim, (&size, &places)) in sizes.iter().zip(grid).enumerate() {
        if size < 1 {
            return Err(arg(format!("global sizes[{dim}] is {size}; it must be 1 or more")));
        }
        if places < 1 {
            return Err(arg(format!("process grid[{dim}] is {places}; it must be 1 or more")));
        }
    }
    let product = grid.iter().try_fold(1i64, |product, &places| mul(product, places))?;
    if product != processes {
        return Err(arg(format!("the process grid holds {product} processes; it must hold size = {processes}")));
    }
    Ok(())
}

/// The place of a rank in the grid: the last dimension runs fastest, whatever the order of the array.
fn coordinates(rank: i64, grid: &[i64]) -> Vec<i64> {
    let mut rest = rank;
    let mut place: Vec<i64> = grid
        .iter()
        .rev()
        .map(|&places| {
            let at = rest % places;
            rest /= places;
            at
        })
        .collect();
    place.reverse();
    place
}

/// One dimension of a distributed array, seen from one process.
struct ArrayDimension {
    index: usize,
    size: i64,
    places: i64,
    place: i64,
}

impl ArrayDimension {
    /// The slices of this dimension that the process owns; `slice` is one of them, `stride` the distance between two.
    fn owned(&self, slice: &Form, stride: i64, distribution: Distribution, argument: i64) -> Result<Form> {
        let block = self.block_length(distribution, argument)?;
        let first = block.saturating_mul(self.place);
        if first >= self.size {
            return Ok(slice.repeated(0, stride)?);
        }
        let cycle = block.saturating_mul(self.places);
        let left = self.size - first;
        let (whole, rest) = ((left / cycle) + i64::from(left % cycle >= block), (left % cycle).min(block));
        let rest = if rest == block { 0 } else { rest };
        let mut form = slice.repeated(block, stride)?.repeated(whole, stride.saturating_mul(cycle))?;
        if rest > 0 {
            let tail = slice.repeated(rest, stride)?.shifted(stride.wrapping_mul(whole).wrapping_mul(cycle))?;
            form = Form::sequence(&[form, tail])?;
        }
        Ok(form.shifted(mul(first, stride)?)?)
    }

    /// The length of one block (MPI 5.0, section 5.1.4); "none" is one block with everything.
    fn block_length(&self, distribution: Distribution, argument: i64) -> Result<i64> {
        let Self { index, size, places, .. } = *self;
        let default = argument == Distribution::DEFAULT_ARGUMENT;
        let refuse = |why: String| Err(arg(format!("distribution argument[{index}] is {argument}; {why}")));
        match distribution {
            Distribution::None if places != 1 => Err(arg(format!(
                "process grid[{index}] is {places}; it must be 1 for a dimension that is not distributed"
            ))),
            Distribution::None => Ok(size),
            Distribution::Block if default => Ok(size.div_euclid(places) + i64::from(size % places != 0)),
            Distribution::Cyclic if default => Ok(1),
            _ if argument < 1 => refuse("it must be 1 or more, or 19 for the default".into()),
            Distribution::Block if argument.saturating_mul(places) < size => {
                refuse(format!("{places} blocks of that length do not hold the {size} of global sizes[{index}]"))
            }
            Distribution::Block | Distribution::Cyclic => Ok(argument),
        }
    }
}
