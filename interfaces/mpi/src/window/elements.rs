//! What the accumulate family works on: elements of one predefined type, wherever datatypes put them.

use crate::datatype::{Datatype, Scalar};
use crate::error::{Class, Error, Result};
use crate::op::{Op, PredefinedOperation};
use std::ops::Deref;

/// The code of the bytes' datatype.
const BYTE: usize = crate::abi::BYTE;

/// Elements side by side in memory, from `at` on. What `at` counts from is the user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub at: i64,
    pub count: usize,
}

/// The predefined type that an operation sees in `datatype`: itself, the only one in its type map, or bytes where the
/// operation looks into none.
pub fn basic(datatype: &Datatype, op: PredefinedOperation) -> Result<&'static Datatype> {
    if matches!(op, PredefinedOperation::Replace | PredefinedOperation::NoOp) {
        return Ok(Datatype::predefined(BYTE).expect("bytes are predefined"));
    }
    match datatype.named().and_then(|named| Datatype::predefined(usize::from(named.code))) {
        Some(named) => Ok(named),
        None => only_type(datatype, op),
    }
}

/// The predefined type that a derived one consists of: a pair for the operations on pairs.
fn only_type(datatype: &Datatype, op: PredefinedOperation) -> Result<&'static Datatype> {
    // The first scalars at even and at odd places, and whether all others are like them.
    let (mut first, mut places, mut alike) = ([None::<Scalar>; 2], 0usize, true);
    let mut apart = PairGap::default();
    datatype.visit_scalars(|scalar, disp, count| {
        apart.add(scalar, disp, count);
        for place in places..places + count.clamp(0, 2) as usize {
            alike &= *first[place % 2].get_or_insert(scalar) == scalar;
        }
        places = places.wrapping_add(count.max(0) as usize);
    });
    let wanted = match first {
        [Some(value), Some(index)] if matches!(op, PredefinedOperation::Minloc | PredefinedOperation::Maxloc) => {
            vec![value, index]
        }
        [Some(value), other] if other.is_none_or(|other| other == value) => vec![value],
        _ => Vec::new(),
    };
    let is_placed = |candidate: &Datatype| {
        let mut named = PairGap::default();
        candidate.visit_scalars(|scalar, disp, count| named.add(scalar, disp, count));
        wanted.len() < 2 || apart == named
    };
    let fits =
        |candidate: &&Datatype| candidate.named().is_some_and(|named| named.scalars == wanted) && is_placed(candidate);
    let found = Datatype::all_predefined().find(fits).filter(|_| alike && !wanted.is_empty());
    found.ok_or_else(|| {
        Error::new(Class::Type, format!("datatype {datatype:?} is not made of one predefined type only"))
    })
}

/// How far the second scalar of each pair lies from the first.
#[derive(Default)]
struct PairGap {
    distance: Option<i64>,
    differs: bool,
    /// Where the first one lies whose second has not come yet.
    open: Option<i64>,
}

impl PairGap {
    /// `count` scalars side by side, the next in the order of the type map.
    fn add(&mut self, scalar: Scalar, mut disp: i64, mut count: i64) {
        if count <= 0 {
            return;
        }
        if let Some(first) = self.open.take() {
            self.note(disp - first);
            (disp, count) = (disp + scalar.size(), count - 1);
        }
        if count >= 2 {
            self.note(scalar.size());
        }
        if count % 2 == 1 {
            self.open = Some(disp + (count - 1) * scalar.size());
        }
    }

    fn note(&mut self, distance: i64) {
        self.differs |= *self.distance.get_or_insert(distance) != distance;
    }
}

impl PartialEq for PairGap {
    fn eq(&self, other: &Self) -> bool {
        let is_whole = |apart: &Self| !apart.differs && apart.open.is_none();
        is_whole(self) && is_whole(other) && self.distance == other.distance
    }
}

/// The predefined operation with this handle.
///
/// # Errors
/// There is none, or it is the program's own: those are not defined for windows.
pub fn operation(ops: &crate::handle::HandleTable<Op>, handle: usize) -> Result<PredefinedOperation> {
    match ops.get(handle)? {
        Op::Predefined(op) => Ok(*op),
        Op::User { .. } => {
            let detail = format!("op ({handle:#x}) is the program's own; windows take predefined operations only");
            Err(Error::new(Class::Op, detail))
        }
    }
}

/// Where elements are; most often in one place, which needs no memory of its own.
pub enum Spans {
    One([Span; 1]),
    Many(Vec<Span>),
}

impl Deref for Spans {
    type Target = [Span];
    fn deref(&self) -> &[Span] {
        match self {
            Self::One(one) => one,
            Self::Many(many) => many,
        }
    }
}

/// The elements of `basic` in `count` elements of `datatype` whose first lies at `at`, in the order of the type map.
pub fn spans(datatype: &Datatype, count: i64, at: i64, basic: &Datatype) -> Spans {
    let (size, extent) = (basic.size(), basic.extent());
    if size == extent
        && let Some((disp, bytes)) = datatype.contiguous_span(count)
    {
        let count = bytes as usize / size.max(1) as usize;
        return if count == 0 { Spans::Many(Vec::new()) } else { Spans::One([Span { at: at + disp, count }]) };
    }
    let mut spans: Vec<Span> = Vec::new();
    let bytes = datatype.packed_size(count).unwrap_or(0);
    let mut packed = 0i64;
    datatype.visit_runs(at as *const u8, count, 0, usize::try_from(bytes).unwrap_or(usize::MAX), |run, length| {
        let (run, length) = (run as i64, length as i64);
        // The first element that begins in this run.
        let mut next = (packed + size - 1) / size * size;
        while next < packed + length {
            let begins = run + (next - packed);
            let whole = if size == extent { ((packed + length - next) / size).max(1) } else { 1 };
            match spans.last_mut() {
                Some(last) if last.at + last.count as i64 * extent == begins => last.count += whole as usize,
                _ => spans.push(Span { at: begins, count: whole as usize }),
            }
            next += whole * size;
        }
        packed += length;
    });
    Spans::Many(spans)
}

/// The bytes of `count` elements of `datatype` at `at`, in the order of the type map, as [`Span`]s of bytes.
pub fn runs(datatype: &Datatype, count: i64, at: i64) -> Spans {
    spans(datatype, count, at, Datatype::predefined(BYTE).expect("bytes are predefined"))
}

/// The first byte and the end of what `count` elements of `datatype` at `at` touch; equal if nothing.
pub fn bounds(datatype: &Datatype, count: i64, at: i128) -> (i128, i128) {
    if count <= 0 || datatype.size() == 0 {
        return (at, at);
    }
    let last = i128::from(datatype.extent()) * i128::from(count - 1);
    let low = at + i128::from(datatype.true_lower_bound());
    (low + last.min(0), low + last.max(0) + i128::from(datatype.true_extent()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::ConstructorForm;

    fn predefined(code: usize) -> &'static Datatype {
        Datatype::predefined(code).expect("predefined")
    }

    #[test]
    fn elements_side_by_side_are_one_span() {
        let int = predefined(crate::abi::INT);
        assert_eq!(*spans(int, 5, 100, int), [Span { at: 100, count: 5 }]);
        assert!(spans(int, 0, 100, int).is_empty());
        assert_eq!(*runs(int, 5, 8), [Span { at: 8, count: 20 }]);
    }

    #[test]
    fn pairs_with_gaps_are_found_where_they_begin() {
        for code in [crate::abi::DOUBLE_INT, crate::abi::SHORT_INT, crate::abi::LONG_DOUBLE_INT] {
            let pair = predefined(code);
            assert_eq!(*spans(pair, 3, 64, pair), [Span { at: 64, count: 3 }], "{pair:?}");
        }
    }

    #[test]
    fn strided_elements_are_spans_of_their_own() {
        let double = predefined(crate::abi::DOUBLE);
        let vector = Datatype::vector(3, 2, 5, double, ConstructorForm::Int).expect("small");
        let expected = [Span { at: 0, count: 2 }, Span { at: 40, count: 2 }, Span { at: 80, count: 2 }];
        assert_eq!(*spans(&vector, 1, 0, double), expected);
        assert_eq!(basic(&vector, PredefinedOperation::Sum).expect("doubles only").code(), double.code());
        assert_eq!(bounds(&vector, 1, 16), (16, 16 + 96));
    }

    #[test]
    fn a_mixed_type_has_no_sum_but_can_be_replaced() {
        let (int, double) = (predefined(crate::abi::INT), predefined(crate::abi::DOUBLE));
        let mixed =
            Datatype::structure(&[1, 1], &[0, 8], &[int.clone(), double.clone()], ConstructorForm::Int).expect("small");
        assert_eq!(basic(&mixed, PredefinedOperation::Sum).expect_err("two types").class, Class::Type);
        assert!(basic(&mixed, PredefinedOperation::Replace).is_ok());
        let pairs = Datatype::contiguous(2, predefined(crate::abi::DOUBLE_INT), ConstructorForm::Int).expect("small");
        assert_eq!(
            basic(&pairs, PredefinedOperation::Minloc).expect("pairs").code(),
            predefined(crate::abi::DOUBLE_INT).code()
        );

        // Two numbers are a pair only where the pair has them: in its order, and as far from each other.
        let ints = |disps: &[i64]| {
            Datatype::structure(&vec![1; disps.len()], disps, &vec![int.clone(); disps.len()], ConstructorForm::Int)
                .expect("small")
        };
        let pair = predefined(crate::abi::TWO_INT).code();
        assert_eq!(basic(&ints(&[0, 4, 20, 24]), PredefinedOperation::Minloc).expect("pairs").code(), pair);
        for disps in [&[12, 0][..], &[0, 8], &[0, 4, 8], &[0, 4, 12, 20]] {
            assert_eq!(
                basic(&ints(disps), PredefinedOperation::Minloc).expect_err("no pairs").class,
                Class::Type,
                "{disps:?}"
            );
        }
    }
}
