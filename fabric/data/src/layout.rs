//! Where the bytes of a datatype lie: a small tree of runs and loops in the order of the type map.
//!
//! Invariants: `size` is the sum of all runs; neighbours that touch are one run; an empty layout is `Empty` and occurs
//! in no other node; `start` fields count the packed bytes before their part.

use std::sync::Arc;

use super::arith::{Result, add, mul};

/// A layout with its displacement from the buffer's address. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub disp: i64,
    /// Bytes of data.
    pub size: i64,
    pub kind: LayoutKind,
}

#[derive(Clone, Debug)]
pub(crate) enum LayoutKind {
    Empty,
    /// `size` bytes side by side.
    Run,
    /// `count` runs of `block` bytes, `stride` bytes apart.
    Strided {
        block: i64,
        stride: i64,
        count: i64,
    },
    /// `count` times the body, `stride` bytes apart.
    Loop {
        count: i64,
        stride: i64,
        body: Arc<Layout>,
    },
    /// Runs anywhere.
    Blocks(Arc<[LayoutBlock]>),
    /// More than [`FEW`] runs of `block` bytes, within 2 GiB of the layout's displacement.
    Listed {
        block: i64,
        displacements: Arc<[i32]>,
    },
    /// Anything anywhere.
    Seq(Arc<[LayoutPart]>),
}

/// Up to so many blocks are few.
pub(crate) const FEW: usize = 16;

/// One run of [`LayoutKind::Blocks`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayoutBlock {
    pub disp: i64,
    pub len: i64,
    pub start: i64,
}

/// One member of [`LayoutKind::Seq`].
#[derive(Clone, Debug)]
pub(crate) struct LayoutPart {
    pub start: i64,
    pub layout: Layout,
}

impl Layout {
    pub const EMPTY: Self = Self { disp: 0, size: 0, kind: LayoutKind::Empty };

    /// `size` bytes at `disp`.
    pub fn run(disp: i64, size: i64) -> Self {
        if size == 0 { Self::EMPTY } else { Self { disp, size, kind: LayoutKind::Run } }
    }

    pub fn shifted(&self, by: i64) -> Result<Self> {
        Ok(Self { disp: add(self.disp, by)?, ..self.clone() })
    }

    /// `count` copies, `stride` bytes apart.
    pub fn repeated(&self, count: i64, stride: i64) -> Result<Self> {
        if count == 0 || self.size == 0 {
            return Ok(Self::EMPTY);
        }
        if count == 1 {
            return Ok(self.clone());
        }
        let size = mul(self.size, count)?;
        let kind = match &self.kind {
            LayoutKind::Run if stride == self.size => LayoutKind::Run,
            LayoutKind::Run => LayoutKind::Strided { block: self.size, stride, count },
            LayoutKind::Strided { block, stride: inner, count: n } if Some(stride) == inner.checked_mul(*n) => {
                LayoutKind::Strided { block: *block, stride: *inner, count: n * count }
            }
            LayoutKind::Loop { count: n, stride: inner, body } if Some(stride) == inner.checked_mul(*n) => {
                LayoutKind::Loop { count: n * count, stride: *inner, body: body.clone() }
            }
            _ => LayoutKind::Loop { count, stride, body: Arc::new(Self { disp: 0, ..self.clone() }) },
        };
        Ok(Self { disp: self.disp, size, kind })
    }

    /// All parts one after the other.
    pub fn sequence(parts: impl Iterator<Item = Self>) -> Result<Self> {
        let mut flat = Flat::default();
        for part in parts {
            flat.push(part)?;
        }
        Ok(flat.finish())
    }

    /// Whether the data is one run.
    pub fn is_run(&self) -> bool {
        matches!(self.kind, LayoutKind::Run)
    }
}

/// Collects the members of a sequence, joining runs that touch.
#[derive(Default)]
struct Flat {
    parts: Vec<LayoutPart>,
    size: i64,
    mixed: bool,
}

impl Flat {
    fn push(&mut self, layout: Layout) -> Result<()> {
        match &layout.kind {
            LayoutKind::Empty => return Ok(()),
            LayoutKind::Run => {}
            LayoutKind::Blocks(blocks) if blocks.len() <= FEW => {
                for block in blocks.iter() {
                    self.push(Layout::run(add(layout.disp, block.disp)?, block.len))?;
                }
                return Ok(());
            }
            _ => self.mixed = true,
        }
        let start = self.size;
        self.size = add(self.size, layout.size)?;
        if let Some(last) = self.parts.last_mut()
            && last.layout.is_run()
            && layout.is_run()
            && last.layout.disp.checked_add(last.layout.size) == Some(layout.disp)
        {
            last.layout.size += layout.size;
        } else {
            self.parts.push(LayoutPart { start, layout });
        }
        Ok(())
    }

    fn finish(self) -> Layout {
        let size = self.size;
        if self.parts.len() <= 1 {
            return self.parts.into_iter().next().map_or(Layout::EMPTY, |part| part.layout);
        }
        if self.mixed {
            return Layout { disp: 0, size, kind: LayoutKind::Seq(self.parts.into()) };
        }
        if let Some(regular) = regular(&self.parts, size) {
            return regular;
        }
        if let Some(listed) = listed(&self.parts, size) {
            return listed;
        }
        let block = |part: LayoutPart| LayoutBlock { disp: part.layout.disp, len: part.layout.size, start: part.start };
        Layout { disp: 0, size, kind: LayoutKind::Blocks(self.parts.into_iter().map(block).collect()) }
    }
}

/// The strided form of runs of one length at one distance, if that is what they are.
fn regular(parts: &[LayoutPart], size: i64) -> Option<Layout> {
    let (first, second) = (&parts[0].layout, &parts[1].layout);
    let stride = second.disp.checked_sub(first.disp)?;
    let same = |pair: &[LayoutPart]| {
        pair[1].layout.size == first.size && pair[1].layout.disp.checked_sub(pair[0].layout.disp) == Some(stride)
    };
    if !parts.windows(2).all(same) {
        return None;
    }
    let count = parts.len() as i64;
    Some(Layout { disp: first.disp, size, kind: LayoutKind::Strided { block: first.size, stride, count } })
}

/// The list of runs of one length, if that is what they are and they lie near enough to each other.
fn listed(parts: &[LayoutPart], size: i64) -> Option<Layout> {
    let (disp, block) = (parts[0].layout.disp, parts[0].layout.size);
    if parts.len() <= FEW || parts.iter().any(|part| part.layout.size != block) {
        return None;
    }
    let near = |part: &LayoutPart| i32::try_from(part.layout.disp.checked_sub(disp)?).ok();
    let displacements = parts.iter().map(near).collect::<Option<_>>()?;
    Some(Layout { disp, size, kind: LayoutKind::Listed { block, displacements } })
}
