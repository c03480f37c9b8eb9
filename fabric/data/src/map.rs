//! The type map: which basic elements a datatype consists of, in order. The byte form for speed is `layout`.

use std::sync::Arc;

use super::arith::{Result, add, mul};
use super::scalar::Scalar;

/// A type map with its displacement from the buffer's address. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct TypeMap {
    pub disp: i64,
    /// Bytes of data in memory.
    pub size: i64,
    /// Bytes of data in external32.
    pub external: i64,
    /// Basic elements.
    pub elements: i64,
    pub kind: MapKind,
}

#[derive(Clone, Debug)]
pub(crate) enum MapKind {
    Empty,
    /// `elements` scalars side by side.
    Leaf(Scalar),
    Loop {
        count: i64,
        stride: i64,
        body: Arc<TypeMap>,
    },
    Seq(Arc<[SequencePart]>),
}

/// One member of a sequence with the packed bytes and elements before it.
#[derive(Clone, Debug)]
pub(crate) struct SequencePart {
    pub bytes_before: i64,
    pub elements_before: i64,
    pub map: TypeMap,
}

impl TypeMap {
    pub const EMPTY: Self = Self { disp: 0, size: 0, external: 0, elements: 0, kind: MapKind::Empty };

    pub fn scalar(disp: i64, scalar: Scalar) -> Self {
        Self { disp, size: scalar.size(), external: scalar.external_size(), elements: 1, kind: MapKind::Leaf(scalar) }
    }

    pub fn shifted(&self, by: i64) -> Result<Self> {
        Ok(Self { disp: add(self.disp, by)?, ..self.clone() })
    }

    pub fn repeated(&self, count: i64, stride: i64) -> Result<Self> {
        if count == 0 || self.elements == 0 {
            return Ok(Self::EMPTY);
        }
        if count == 1 {
            return Ok(self.clone());
        }
        let kind = match self.kind {
            MapKind::Leaf(scalar) if stride == self.size => MapKind::Leaf(scalar),
            _ => MapKind::Loop { count, stride, body: Arc::new(Self { disp: 0, ..self.clone() }) },
        };
        Ok(Self {
            disp: self.disp,
            size: mul(self.size, count)?,
            external: mul(self.external, count)?,
            elements: mul(self.elements, count)?,
            kind,
        })
    }

    pub fn sequence(maps: impl Iterator<Item = Self>) -> Result<Self> {
        let (mut size, mut external, mut elements) = (0, 0, 0);
        let mut parts = Vec::new();
        for map in maps.filter(|map| map.elements > 0) {
            let part = SequencePart { bytes_before: size, elements_before: elements, map };
            size = add(size, part.map.size)?;
            external = add(external, part.map.external)?;
            elements = add(elements, part.map.elements)?;
            parts.push(part);
        }
        Ok(match parts.len() {
            0 => Self::EMPTY,
            1 => parts.remove(0).map,
            _ => Self { disp: 0, size, external, elements, kind: MapKind::Seq(parts.into()) },
        })
    }

    /// How many whole basic elements the first `bytes` of the data make; none when an element is cut.
    pub fn elements_in(&self, bytes: i64) -> Option<i64> {
        match &self.kind {
            MapKind::Empty => (bytes == 0).then_some(0),
            MapKind::Leaf(scalar) => (bytes % scalar.size() == 0).then_some(bytes / scalar.size()),
            MapKind::Loop { body, .. } => {
                let whole = bytes / body.size;
                Some(whole * body.elements + body.elements_in(bytes % body.size)?)
            }
            MapKind::Seq(parts) => {
                let at = parts.partition_point(|part| part.bytes_before <= bytes) - 1;
                let part = &parts[at];
                Some(part.elements_before + part.map.elements_in(bytes - part.bytes_before)?)
            }
        }
    }

    /// How many bytes the first `elements` basic elements take.
    pub fn bytes_of(&self, elements: i64) -> i64 {
        match &self.kind {
            MapKind::Empty => 0,
            MapKind::Leaf(scalar) => elements * scalar.size(),
            MapKind::Loop { body, .. } => {
                elements / body.elements * body.size + body.bytes_of(elements % body.elements)
            }
            MapKind::Seq(parts) => {
                let at = parts.partition_point(|part| part.elements_before <= elements) - 1;
                let part = &parts[at];
                part.bytes_before + part.map.bytes_of(elements - part.elements_before)
            }
        }
    }

    /// Calls `visit(scalar, displacement, count)` for every group of scalars that lie side by side, in order.
    pub fn visit(&self, base: i64, visit: &mut impl FnMut(Scalar, i64, i64)) {
        let at = base.wrapping_add(self.disp);
        match &self.kind {
            MapKind::Empty => {}
            MapKind::Leaf(scalar) => visit(*scalar, at, self.elements),
            MapKind::Loop { count, stride, body } => {
                for i in 0..*count {
                    body.visit(at.wrapping_add(i.wrapping_mul(*stride)), visit);
                }
            }
            MapKind::Seq(parts) => {
                for part in parts.iter() {
                    part.map.visit(at, visit);
                }
            }
        }
    }
}
