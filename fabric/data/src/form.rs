//! What a type is in memory: type map, layout, bounds, alignment. Every constructor is made of two combinators:
//! copies at a distance ([`Form::repeated`]) and members one after the other ([`Form::sequence`]).

use super::arith::{Result, add, mul, sub};
use super::layout::Layout;
use super::map::TypeMap;
use super::scalar::Scalar;

/// First byte and the byte after the last.
type Span = (i64, i64);

#[derive(Clone, Debug)]
pub struct Form {
    pub(crate) map: TypeMap,
    pub(crate) layout: Layout,
    /// First byte of data and the byte after the last; none without data.
    data: Option<Span>,
    /// From the lowest lower to the highest upper bound of the members, with their padding; none without data. The
    /// standard speaks of the data alone, which is the same unless a member lies where it is not aligned; there its
    /// padding counts, as in other libraries, so that members of one extent do not stand out of the type that holds
    /// them.
    room: Option<Span>,
    /// Bounds set by the program (resized, subarray, darray): then data outside does not move them, and no padding is
    /// added.
    markers: Option<Span>,
    /// The bounds of the type (MPI 5.0, section 5.1.6): markers, or else those of the data with padding.
    bounds: Span,
    pub align: i64,
    /// The name of a predefined type that this platform lacks, when one is among the members.
    pub missing: Option<&'static str>,
}

impl Form {
    pub fn empty() -> Self {
        Self {
            map: TypeMap::EMPTY,
            layout: Layout::EMPTY,
            data: None,
            room: None,
            markers: None,
            bounds: (0, 0),
            align: 1,
            missing: None,
        }
    }

    /// A predefined type that this platform lacks: no data, and refused in communication by name.
    pub fn missing(name: &'static str) -> Self {
        Self { missing: Some(name), ..Self::empty() }
    }

    /// One scalar at displacement 0.
    pub fn scalar(scalar: Scalar) -> Self {
        let size = scalar.size();
        Self {
            map: TypeMap::scalar(0, scalar),
            layout: Layout::run(0, size),
            data: Some((0, size)),
            room: Some((0, size)),
            bounds: (0, size),
            align: scalar.align(),
            ..Self::empty()
        }
    }

    /// Bytes of data in one element, without gaps.
    #[inline]
    pub fn size(&self) -> i64 {
        self.map.size
    }

    /// Lower bound, in bytes from the element's address.
    pub fn lower_bound(&self) -> i64 {
        self.bounds.0
    }

    /// First byte of data, in bytes from the element's address.
    pub fn true_lower_bound(&self) -> i64 {
        self.data.map_or(0, |(first, _)| first)
    }

    /// Bytes from the first byte of data to the end of the last.
    pub fn true_extent(&self) -> i64 {
        self.data.map_or(0, |(first, end)| end.wrapping_sub(first))
    }

    /// Whether the data of one element are one run of bytes.
    #[inline]
    pub fn is_run(&self) -> bool {
        self.layout.is_run()
    }

    /// Where that run begins, in bytes from the element's address.
    #[inline]
    pub fn run_begin(&self) -> i64 {
        self.layout.disp
    }

    /// Upper minus lower bound. Construction has checked that it fits.
    pub fn extent(&self) -> i64 {
        self.bounds.1 - self.bounds.0
    }

    /// The same type `by` bytes further on.
    pub fn shifted(&self, by: i64) -> Result<Self> {
        let (map, layout) = (self.map.shifted(by)?, self.layout.shifted(by)?);
        let [data, room, markers] = self.spans(by, by)?;
        Self { map, layout, data, room, markers, ..*self }.bounded()
    }

    /// `count` copies, `stride` bytes apart.
    pub fn repeated(&self, count: i64, stride: i64) -> Result<Self> {
        if count == 0 {
            return Ok(Self { missing: self.missing, ..Self::empty() });
        }
        let last = mul(stride, count - 1)?;
        let (low, high) = (last.min(0), last.max(0));
        let (map, layout) = (self.map.repeated(count, stride)?, self.layout.repeated(count, stride)?);
        let [data, room, markers] = self.spans(low, high)?;
        Self { map, layout, data, room, markers, ..*self }.bounded()
    }

    /// `count` copies one extent apart.
    pub fn block(&self, count: i64) -> Result<Self> {
        self.repeated(count, self.extent())
    }

    /// All members, each at its own displacement.
    pub fn sequence(members: &[Self]) -> Result<Self> {
        Self {
            map: TypeMap::sequence(members.iter().map(|member| member.map.clone()))?,
            layout: Layout::sequence(members.iter().map(|member| member.layout.clone()))?,
            data: members.iter().filter_map(|member| member.data).reduce(hull),
            room: members.iter().filter_map(|member| member.room).reduce(hull),
            markers: members.iter().filter_map(|member| member.markers).reduce(hull),
            bounds: (0, 0),
            align: members.iter().map(|member| member.align).max().unwrap_or(1),
            missing: members.iter().find_map(|member| member.missing),
        }
        .bounded()
    }

    /// The same data between other bounds.
    pub fn resized(&self, lb: i64, extent: i64) -> Result<Self> {
        let markers = Some((lb, add(lb, extent)?));
        Self { markers, ..self.clone() }.bounded()
    }

    /// Works out the bounds. Without markers the extent is rounded up to the alignment, as a C compiler does at the end
    /// of a struct.
    fn bounded(mut self) -> Result<Self> {
        let (first, end) = self.room.unwrap_or((0, 0));
        let over = sub(end, first)?.rem_euclid(self.align);
        let padded = (first, add(end, if over == 0 { 0 } else { self.align - over })?);
        self.room = self.room.and(Some(padded));
        self.bounds = self.markers.unwrap_or(padded);
        sub(self.bounds.1, self.bounds.0)?;
        Ok(self)
    }

    /// Data, room and markers with other ends.
    fn spans(&self, low: i64, high: i64) -> Result<[Option<Span>; 3]> {
        Ok([moved(self.data, low, high)?, moved(self.room, low, high)?, moved(self.markers, low, high)?])
    }
}

fn hull(a: Span, b: Span) -> Span {
    (a.0.min(b.0), a.1.max(b.1))
}

fn moved(span: Option<Span>, low: i64, high: i64) -> Result<Option<Span>> {
    match span {
        None => Ok(None),
        Some((first, end)) => Ok(Some((add(first, low)?, add(end, high)?))),
    }
}
