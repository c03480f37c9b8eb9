//! Schedules: what one rank does in one collective operation, as a small program.
//!
//! A schedule is a list of steps. Sends and receives are started when they are reached; [`Step::Wait`] lasts until all
//! that were started are complete; copies and folds happen at once. Buffers are named, not held: the same schedule can
//! be run again, and a builder is a pure function of ranks, counts and shapes.

use super::shape::Shape;
use weft_fabric::settings::Algorithms;
use weft_fabric::settings::algorithms::Algorithm;

/// Where bytes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// The user's send buffer, only read.
    Input,
    /// The user's receive buffer (or its only one).
    Output,
    /// Memory of the operation itself.
    Scratch,
}

/// [`BYTES`], or an index into [`Schedule::shapes`], counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeId(u32);

/// Single bytes: the shape of everything that is packed.
pub const BYTES: ShapeId = ShapeId(0);
static BYTE: Shape = Shape::dense(1);

/// `count` elements that begin `at` bytes after the start of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    pub area: Area,
    pub at: i64,
    pub shape: ShapeId,
    pub count: u64,
}

impl View {
    pub fn new(area: Area, at: i64, shape: ShapeId, count: u64) -> Self {
        Self { area, at, shape, count }
    }

    /// Packed bytes.
    pub fn bytes(area: Area, at: i64, count: u64) -> Self {
        Self { area, at, shape: BYTES, count }
    }

    /// `count` bytes of a view of bytes, from its byte `first` on.
    pub fn slice(self, first: u64, count: u64) -> Self {
        debug_assert!(self.shape == BYTES && first + count <= self.count);
        Self { at: self.at + first as i64, count, ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ranks at and above the local size are those of the remote group, from its rank 0 on.
    Send {
        to: u32,
        view: View,
    },
    Receive {
        from: u32,
        view: View,
    },
    /// Until every send and receive started so far is complete.
    Wait,
    /// The same packed bytes, whatever the shapes.
    Copy {
        from: View,
        to: View,
    },
    /// `into` becomes `left op into`, element by element.
    Fold {
        left: View,
        into: View,
    },
}

/// The program of one rank, with the shapes that its views name and the scratch bytes it needs.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub steps: Vec<Step>,
    shapes: Vec<Shape>,
    pub scratch: u64,
    /// Memory that a run of it has had for scratch, or nothing.
    pub room: Vec<u8>,
    /// Algorithms that are prescribed for what is built into it.
    pub algorithms: Algorithms,
    /// Whether those that are chosen are to be told.
    pub tells_choices: bool,
    pub chosen: Vec<Chosen>,
}

/// An algorithm that was chosen for an operation, or a part of it.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    pub operation: &'static str,
    pub algorithm: &'static str,
    /// How many take part in it, and the bytes that it was chosen by.
    pub ranks: u32,
    pub bytes: u64,
}

/// Scratch buffers begin at multiples of this, so that any element type may lie there.
pub const SCRATCH_ALIGN: u64 = 64;

impl Default for Schedule {
    fn default() -> Self {
        let (steps, shapes, chosen, room) = Default::default();
        Self { steps, shapes, scratch: 0, room, algorithms: Algorithms::AUTO, tells_choices: false, chosen }
    }
}

/// The building of schedules.
impl Schedule {
    /// Empty again; its memory stays.
    pub fn clear(&mut self) {
        self.steps.clear();
        self.shapes.clear();
        self.chosen.clear();
        self.scratch = 0;
    }

    /// Whether there is any that a later one could use.
    pub fn has_memory(&self) -> bool {
        self.steps.capacity() + self.shapes.capacity() > 0
    }

    pub fn add_shape(&mut self, shape: Shape) -> ShapeId {
        self.shapes.push(shape);
        ShapeId(self.shapes.len() as u32)
    }

    pub fn shape(&self, id: ShapeId) -> &Shape {
        match id.0.checked_sub(1) {
            None => &BYTE,
            Some(index) => &self.shapes[index as usize],
        }
    }

    /// The algorithm that follows was chosen for so many bytes.
    pub fn chose<A: Algorithm>(&mut self, algorithm: A, me: Party, bytes: u64) {
        if self.tells_choices {
            let (operation, algorithm) = (A::OPERATION, algorithm.word());
            self.chosen.push(Chosen { operation, algorithm, ranks: me.size, bytes });
        }
    }

    /// Packed bytes of a view.
    pub fn size(&self, view: View) -> u64 {
        view.count * self.shape(view.shape).size
    }

    /// `count` elements of a view, from its element `first` on.
    pub fn part(&self, view: View, first: u64, count: u64) -> View {
        View { at: view.at + first as i64 * self.shape(view.shape).extent, count, ..view }
    }

    /// Sends the view; nothing where it is empty, since the other side then expects nothing.
    pub fn send(&mut self, to: u32, view: View) {
        if self.size(view) > 0 {
            self.steps.push(Step::Send { to, view });
        }
    }

    pub fn receive(&mut self, from: u32, view: View) {
        if self.size(view) > 0 {
            self.steps.push(Step::Receive { from, view });
        }
    }

    /// Sends a message without bytes, for the sake of its arrival.
    pub fn signal(&mut self, to: u32) {
        self.steps.push(Step::Send { to, view: View::bytes(Area::Scratch, 0, 0) });
    }

    pub fn await_signal(&mut self, from: u32) {
        self.steps.push(Step::Receive { from, view: View::bytes(Area::Scratch, 0, 0) });
    }

    pub fn wait(&mut self) {
        if !matches!(self.steps.last(), None | Some(Step::Wait)) {
            self.steps.push(Step::Wait);
        }
    }

    /// Appends what rank `me` does in an operation of `members` only, which `build` makes as if these were all ranks,
    /// in this order. Nothing if it is none of them.
    pub fn among(&mut self, members: &[u32], me: u32, build: impl FnOnce(&mut Self, Party)) {
        let Some(place) = members.iter().position(|member| *member == me) else { return };
        let first = self.steps.len();
        build(self, Party { rank: place as u32, size: members.len() as u32 });
        for step in &mut self.steps[first..] {
            if let Step::Send { to: rank, .. } | Step::Receive { from: rank, .. } = step {
                *rank = members[*rank as usize];
            }
        }
    }

    pub fn copy(&mut self, from: View, to: View) {
        if from != to && self.size(from) > 0 {
            self.steps.push(Step::Copy { from, to });
        }
    }

    pub fn fold(&mut self, left: View, into: View) {
        if self.size(left) > 0 {
            self.steps.push(Step::Fold { left, into });
        }
    }

    /// Scratch for packed bytes.
    pub fn reserve(&mut self, bytes: u64) -> View {
        let at = self.scratch;
        self.scratch = (at + bytes).next_multiple_of(SCRATCH_ALIGN);
        View::bytes(Area::Scratch, at as i64, bytes)
    }

    /// Scratch for elements that keep their shape.
    pub fn reserve_elements(&mut self, shape: ShapeId, count: u64) -> View {
        let (first, end) = self.shape(shape).span(count);
        // The element's address is aligned, not the first byte of its data.
        let align = SCRATCH_ALIGN as i64;
        let room = self.reserve((end - first + align) as u64);
        let at = (room.at - first + align - 1).div_euclid(align) * align;
        View::new(Area::Scratch, at, shape, count)
    }

    /// The view as bytes, if it is one block in packing order.
    pub fn flat(&self, view: View) -> Option<View> {
        let shape = self.shape(view.shape);
        shape.is_flat(view.count).then(|| View::bytes(view.area, view.at + shape.low, self.size(view)))
    }

    /// The view's packed bytes, to be read: in place if they lie so, otherwise packed into scratch here and now.
    pub fn packed(&mut self, view: View) -> View {
        self.flat(view).unwrap_or_else(|| {
            let room = self.reserve(self.size(view));
            self.copy(view, room);
            room
        })
    }

    /// Room for the view's packed bytes: the view itself if it is flat, otherwise scratch. When the bytes are there,
    /// copy them to the view (which does nothing if they are).
    pub fn unpacked(&mut self, view: View) -> View {
        self.flat(view).unwrap_or_else(|| self.reserve(self.size(view)))
    }

    /// Ends what [`Self::unpacked`] began.
    pub fn unpack(&mut self, room: View, view: View) {
        if self.flat(view) != Some(room) {
            self.copy(room, view);
        }
    }
}

/// Who one is among how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    pub rank: u32,
    pub size: u32,
}

impl Party {
    /// The rank `distance` after this one, around the circle.
    pub fn after(self, distance: u32) -> u32 {
        ((u64::from(self.rank) + u64::from(distance)) % u64::from(self.size)) as u32
    }

    /// The rank `distance` before this one, around the circle.
    pub fn before(self, distance: u32) -> u32 {
        self.after(self.size - distance % self.size)
    }
}
