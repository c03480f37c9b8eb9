//! Counting what arrived: whole elements and basic elements (MPI 5.0, sections 3.2.5 and 5.1.11).

use super::form::Form;

impl Form {
    /// How many whole elements `bytes` make, or none when a part is left over (the caller reports "undefined").
    /// A type without data: 0 bytes are 0 elements.
    pub fn whole_count(&self, bytes: u64) -> Option<i64> {
        let bytes = i64::try_from(bytes).ok()?;
        match self.size() {
            0 => (bytes == 0).then_some(0),
            size => (bytes % size == 0).then_some(bytes / size),
        }
    }

    /// How many basic elements `bytes` make, or none when one of them is cut.
    pub fn basic_count(&self, bytes: u64) -> Option<i64> {
        let bytes = i64::try_from(bytes).ok()?;
        let map = &self.map;
        if map.size == 0 {
            return (bytes == 0).then_some(0);
        }
        Some(bytes / map.size * map.elements + map.elements_in(bytes % map.size)?)
    }

    /// How many bytes `elements` basic elements take, or none when that exceeds 2^63-1.
    pub fn bytes_of_basic(&self, elements: i64) -> Option<u64> {
        let map = &self.map;
        if map.elements == 0 || elements < 0 {
            return (elements == 0).then_some(0);
        }
        let whole = (elements / map.elements).checked_mul(map.size)?;
        whole.checked_add(map.bytes_of(elements % map.elements)).and_then(|bytes| u64::try_from(bytes).ok())
    }

    /// Calls `visit(scalar, displacement, count)` for every group of equal scalars side by side, in the order of the
    /// type map.
    pub fn visit_scalars(&self, mut visit: impl FnMut(super::scalar::Scalar, i64, i64)) {
        self.map.visit(0, &mut visit);
    }
}
