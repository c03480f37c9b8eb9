//! What a datatype is in memory: type map, layout, bounds, alignment. Every constructor is made of two combinators:
//! copies at a distance ([`Form::repeated`]) and members one after the other ([`Form::sequence`]).

use super::arith::{add, mul, sub};
use super::layout::Layout;
use super::map::Map;
use super::scalar::Scalar;
use crate::error::Result;

/// Lower and upper bound of a type (MPI 5.0, sections 5.1.6 and 5.1.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub lb: i64,
    pub ub: i64,
    /// Set by the program (resized, subarray, darray): then data outside does not move them, and no padding is added.
    pub explicit: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Form {
    pub map: Map,
    pub layout: Layout,
    /// None for a type without data and without explicit bounds: it counts for nothing in a larger type.
    pub bounds: Option<Bounds>,
    /// First byte of data and the byte after the last; none without data.
    pub true_bounds: Option<(i64, i64)>,
    pub align: i64,
    /// The name of a predefined type that this platform lacks, when one is among the members.
    pub missing: Option<&'static str>,
}

impl Form {
    pub fn empty() -> Self {
        Self { map: Map::EMPTY, layout: Layout::EMPTY, bounds: None, true_bounds: None, align: 1, missing: None }
    }

    /// One scalar at displacement 0.
    pub fn scalar(scalar: Scalar) -> Self {
        let size = scalar.size();
        Self {
            map: Map::scalar(0, scalar),
            layout: Layout::run(0, size),
            bounds: Some(Bounds { lb: 0, ub: size, explicit: false }),
            true_bounds: Some((0, size)),
            align: scalar.align(),
            missing: None,
        }
    }

    pub fn lb(&self) -> i64 {
        self.bounds.map_or(0, |bounds| bounds.lb)
    }

    /// Upper minus lower bound. Construction has checked that it fits.
    pub fn extent(&self) -> i64 {
        self.bounds.map_or(0, |bounds| bounds.ub.wrapping_sub(bounds.lb))
    }

    /// The same type `by` bytes further on.
    pub fn shifted(&self, by: i64) -> Result<Self> {
        let bounds = match self.bounds {
            None => None,
            Some(old) => Some(Bounds { lb: add(old.lb, by)?, ub: add(old.ub, by)?, ..old }),
        };
        let true_bounds = match self.true_bounds {
            None => None,
            Some((lb, ub)) => Some((add(lb, by)?, add(ub, by)?)),
        };
        let (map, layout) = (self.map.shifted(by)?, self.layout.shifted(by)?);
        Ok(Self { map, layout, bounds, true_bounds, ..*self })
    }

    /// `count` copies, `stride` bytes apart.
    pub fn repeated(&self, count: i64, stride: i64) -> Result<Self> {
        if count == 0 {
            return Ok(Self { missing: self.missing, ..Self::empty() });
        }
        let last = mul(stride, count - 1)?;
        let (low, high) = (last.min(0), last.max(0));
        let bounds = match self.bounds {
            None => None,
            Some(old) => Some(Bounds { lb: add(old.lb, low)?, ub: add(old.ub, high)?, ..old }),
        };
        let true_bounds = match self.true_bounds {
            None => None,
            Some((lb, ub)) => Some((add(lb, low)?, add(ub, high)?)),
        };
        let (map, layout) = (self.map.repeated(count, stride)?, self.layout.repeated(count, stride)?);
        Self { map, layout, bounds, true_bounds, ..*self }.padded()
    }

    /// `count` copies one extent apart.
    pub fn block(&self, count: i64) -> Result<Self> {
        self.repeated(count, self.extent())
    }

    /// All members, each at its own displacement.
    pub fn sequence(members: &[Self]) -> Result<Self> {
        Self {
            map: Map::sequence(members.iter().map(|member| member.map.clone()))?,
            layout: Layout::sequence(members.iter().map(|member| member.layout.clone()))?,
            bounds: joined_bounds(members),
            true_bounds: members.iter().filter_map(|member| member.true_bounds).reduce(hull),
            align: members.iter().map(|member| member.align).max().unwrap_or(1),
            missing: members.iter().find_map(|member| member.missing),
        }
        .padded()
    }

    /// The same data between other bounds.
    pub fn resized(&self, lb: i64, extent: i64) -> Result<Self> {
        let bounds = Some(Bounds { lb, ub: add(lb, extent)?, explicit: true });
        Ok(Self { bounds, ..self.clone() })
    }

    /// Rounds the extent up to the alignment, as a C compiler does at the end of a struct, unless the bounds are explicit.
    fn padded(mut self) -> Result<Self> {
        if let Some(bounds) = &mut self.bounds {
            let extent = sub(bounds.ub, bounds.lb)?;
            if !bounds.explicit {
                let over = extent.rem_euclid(self.align);
                bounds.ub = if over == 0 { bounds.ub } else { add(bounds.ub, self.align - over)? };
            }
        }
        Ok(self)
    }
}

fn hull(a: (i64, i64), b: (i64, i64)) -> (i64, i64) {
    (a.0.min(b.0), a.1.max(b.1))
}

/// Explicit bounds win over those that come from data.
fn joined_bounds(members: &[Form]) -> Option<Bounds> {
    let bounds = || members.iter().filter_map(|member| member.bounds);
    let explicit = bounds().any(|bounds| bounds.explicit);
    let chosen = bounds().filter(|bounds| bounds.explicit == explicit).map(|bounds| (bounds.lb, bounds.ub));
    chosen.reduce(hull).map(|(lb, ub)| Bounds { lb, ub, explicit })
}
