//! The checks, and the views that come out of them.

use crate::abi::{Counts, Described, IN_PLACE, PROC_NULL, ROOT, Various};
use crate::coll::call::{PreparedCall, Scene};
use crate::comm::Comm;
use crate::datatype::Datatype;
use crate::error::{Class, Error, RANKS, Result};
use std::ffi::c_void;
use std::sync::Arc;
use weft_collective::algorithm::inter::Role;
use weft_collective::schedule::{Area, Party, ShapeId, View};
use weft_collective::shape::{Codec, Shape};

impl Codec for Datatype {
    unsafe fn pack(&self, from: *const u8, count: u64, to: *mut u8) {
        let bytes = self.size() as usize * count as usize;
        // SAFETY: the caller's promise.
        unsafe { self.pack_to(from, count as i64, 0, to, bytes) };
    }

    unsafe fn unpack(&self, from: *const u8, to: *mut u8, count: u64) {
        let bytes = self.size() as usize * count as usize;
        // SAFETY: the caller's promise.
        unsafe { self.unpack_from(to, count as i64, 0, from, bytes) };
    }
}

/// The measures of a datatype.
pub fn shape_of(datatype: &Datatype) -> Shape {
    let low = datatype.true_lower_bound();
    let codec = (!datatype.is_contiguous(1)).then(|| Arc::new(datatype.clone()) as Arc<dyn Codec>);
    let high = low.wrapping_add(datatype.true_extent());
    Shape { size: datatype.size() as u64, extent: datatype.extent(), low, high, codec }
}

/// The names of one buffer's arguments in the standard.
#[derive(Clone, Copy)]
pub struct BufferNames {
    pub buffer: &'static str,
    pub count: &'static str,
    pub datatype: &'static str,
}

pub const SEND: BufferNames = BufferNames { buffer: "sendbuf", count: "sendcount", datatype: "sendtype" };
pub const RECEIVE: BufferNames = BufferNames { buffer: "recvbuf", count: "recvcount", datatype: "recvtype" };
pub const ONLY: BufferNames = BufferNames { buffer: "buffer", count: "count", datatype: "datatype" };

/// A buffer of blocks with their own counts, displacements in bytes, and types.
#[derive(Clone, Copy)]
pub struct MixedBuffer {
    pub buffer: *const c_void,
    pub counts: Counts,
    pub displacements: Counts,
    pub datatypes: *const usize,
}

/// A call being prepared.
pub struct CallDraft<'a> {
    pub scene: &'a Scene<'a>,
    pub prepared: PreparedCall,
}

impl<'a> CallDraft<'a> {
    pub fn new(scene: &'a Scene<'a>) -> Self {
        let prepared = PreparedCall { schedule: scene.schedule(), ..PreparedCall::default() };
        Self { scene, prepared }
    }

    pub fn comm(&self) -> &'a Comm {
        self.scene.comm
    }

    pub fn party(&self) -> Party {
        Party { rank: self.comm().rank, size: self.comm().size() }
    }

    /// A datatype that may be used in communication.
    pub fn datatype(&self, argument: &'static str, handle: usize) -> Result<&'a Datatype> {
        let datatype = self.scene.world.types.named(argument, handle)?;
        datatype.check_communication()?;
        Ok(datatype)
    }

    pub fn add_type(&mut self, argument: &'static str, handle: usize) -> Result<ShapeId> {
        let datatype = self.datatype(argument, handle)?;
        Ok(self.prepared.schedule.add_shape(shape_of(datatype)))
    }

    fn set_base(&mut self, area: Area, buffer: *const c_void) {
        match area {
            Area::Output => self.prepared.output = buffer.cast_mut().cast(),
            _ => self.prepared.input = buffer.cast(),
        }
    }

    /// A buffer of one block.
    pub fn single(&mut self, area: Area, names: BufferNames, argument: Described) -> Result<View> {
        Ok(self.first(area, names, argument, 1)?.0)
    }

    /// The first of `blocks` equal blocks, and from where to where the next one begins.
    fn first(&mut self, area: Area, names: BufferNames, argument: Described, blocks: u32) -> Result<(View, i64)> {
        let count = count(names.count, argument.count)?;
        let datatype = self.datatype(names.datatype, argument.datatype)?;
        check_buffer(names.buffer, argument.buffer, datatype, count)?;
        check_total(names.count, datatype, count, blocks)?;
        let shape = self.prepared.schedule.add_shape(shape_of(datatype));
        self.set_base(area, argument.buffer);
        Ok((View::new(area, 0, shape, count), count as i64 * datatype.extent()))
    }

    /// A buffer of `blocks` equal blocks, one after the other.
    pub fn uniform(&mut self, area: Area, names: BufferNames, argument: Described, blocks: u32) -> Result<Vec<View>> {
        let (first, stride) = self.first(area, names, argument, blocks)?;
        Ok((0..i64::from(blocks)).map(|i| View { at: i * stride, ..first }).collect())
    }

    /// A buffer of `blocks` blocks, displacements counted in elements.
    pub fn various(&mut self, area: Area, names: BufferNames, argument: Various, blocks: u32) -> Result<Vec<View>> {
        let datatype = self.datatype(names.datatype, argument.datatype)?;
        let shape = self.prepared.schedule.add_shape(shape_of(datatype));
        let counts = counts(names.count, argument.counts, blocks)?;
        check_array("displs", argument.displacements, blocks)?;
        check_buffer(names.buffer, argument.buffer, datatype, counts.iter().sum())?;
        self.set_base(area, argument.buffer);
        let view = |(i, &count): (usize, &u64)| {
            // SAFETY: the array has as many elements as there are blocks, as the standard demands.
            let displacement = unsafe { argument.displacements.get(i) };
            View::new(area, displacement * datatype.extent(), shape, count)
        };
        Ok(counts.iter().enumerate().map(view).collect())
    }

    /// A buffer of `blocks` blocks, displacements counted in bytes, each block of its own type.
    pub fn mixed(&mut self, area: Area, names: BufferNames, argument: MixedBuffer, blocks: u32) -> Result<Vec<View>> {
        let counts = counts(names.count, argument.counts, blocks)?;
        check_array("displs", argument.displacements, blocks)?;
        if argument.datatypes.is_null() && blocks > 0 {
            return Err(Error::new(Class::Arg, format!("{} is a null pointer", names.datatype)));
        }
        reject_in_place(names.buffer, argument.buffer)?;
        self.set_base(area, argument.buffer);
        let mut views = Vec::new();
        for (i, &count) in counts.iter().enumerate() {
            // SAFETY: the arrays have as many elements as there are blocks, as the standard demands.
            let (handle, at) = unsafe { (*argument.datatypes.add(i), argument.displacements.get(i)) };
            let shape = self.add_type(names.datatype, handle)?;
            views.push(View::new(area, at, shape, count));
        }
        Ok(views)
    }

    /// The root of an intracommunicator.
    pub fn root(&self, root: i32) -> Result<u32> {
        let size = self.comm().size();
        match u32::try_from(root) {
            Ok(rank) if rank < size => Ok(rank),
            _ => {
                let whose = self.comm().display_name();
                Err(Error::outside(Class::Root, format!("root {root}"), whose, RANKS, size as usize))
            }
        }
    }

    /// Our part in a rooted operation of an intercommunicator.
    pub fn role(&self, root: i32) -> Result<Role> {
        let size = self.comm().remote_size();
        match (root, u32::try_from(root)) {
            (ROOT, _) => Ok(Role::Root),
            (PROC_NULL, _) => Ok(Role::Idle),
            (_, Ok(rank)) if rank < size => Ok(Role::Across(rank)),
            _ => {
                let given = format!("root {root} is neither MPI_ROOT nor MPI_PROC_NULL nor a rank of the others");
                let whose = format!("the remote group of {}", self.comm().display_name());
                Err(Error::outside(Class::Root, given, whose, RANKS, size as usize))
            }
        }
    }

    /// What is sent to ourselves has to be what we receive. If it is not, the operation is performed all the same, with
    /// as much as fits: the others wait for our part.
    pub fn check_fits(&mut self, sent: View, room: View) -> bool {
        let (sent, room) = (self.prepared.schedule.size(sent), self.prepared.schedule.size(room));
        if sent == room {
            return true;
        }
        let detail = format!("this rank's own block has {sent} bytes to send and room for {room} to receive");
        self.prepared.error = Some(Error::new(Class::Truncate, format!("{detail}; both have to be the same")));
        false
    }

    /// For operations that only one group can do.
    pub fn reject_inter(&self) -> Result<()> {
        if self.comm().is_inter() {
            return Err(Error::new(Class::Comm, "comm is an intercommunicator, on which this is not defined"));
        }
        Ok(())
    }

    /// One buffer must not be both sent from and received into.
    pub fn check_distinct(&self, sent: *const c_void, received: *const c_void, bytes: u64) -> Result<()> {
        if sent == received && bytes > 0 && !sent.is_null() { Err(same_buffer()) } else { Ok(()) }
    }

    /// Nor must a rank's own block be sent from where it is received.
    pub fn check_blocks(&self, sent: View, received: View) -> Result<()> {
        // Of types with gaps both may lie at one address without sharing a byte, and the data of others begins
        // elsewhere, as with MPI_BOTTOM.
        let flat = |view| self.prepared.schedule.flat(view);
        let (Some(sent), Some(received)) = (flat(sent), flat(received)) else { return Ok(()) };
        let place = |base: *const u8, view: View| (base as usize).wrapping_add(view.at as usize);
        let (from, to) = (place(self.prepared.input, sent), place(self.prepared.output.cast_const(), received));
        let sizes = (self.prepared.schedule.size(sent), self.prepared.schedule.size(received));
        if from == to && sizes.0 > 0 && sizes.1 > 0 { Err(same_buffer()) } else { Ok(()) }
    }
}

#[cold]
fn same_buffer() -> Error {
    Error::new(Class::Buffer, "sendbuf and recvbuf are the same; pass MPI_IN_PLACE where it is allowed")
}

pub fn is_in_place(buffer: *const c_void) -> bool {
    buffer as usize == IN_PLACE
}

pub fn count(argument: &str, value: i64) -> Result<u64> {
    u64::try_from(value)
        .map_err(|_| Error::new(Class::Count, format!("{argument} is {value}; allowed are 0 and above")))
}

/// All counts of an array.
pub fn counts(argument: &str, array: Counts, blocks: u32) -> Result<Vec<u64>> {
    check_array(argument, array, blocks)?;
    // SAFETY: the array has as many elements as there are blocks, as the standard demands.
    let value = |i: u32| unsafe { array.get(i as usize) };
    let checked = |i: u32| u64::try_from(value(i)).or_else(|_| count(&format!("{argument}s[{i}]"), value(i)));
    (0..blocks).map(checked).collect()
}

fn check_array(argument: &str, array: Counts, blocks: u32) -> Result<()> {
    if array.is_null() && blocks > 0 {
        return Err(Error::new(Class::Arg, format!("the array of {argument} is a null pointer")));
    }
    Ok(())
}

/// The bytes of all blocks have to fit 63 bits.
fn check_total(argument: &str, datatype: &Datatype, count: u64, blocks: u32) -> Result<()> {
    let span = datatype.size().max(datatype.extent().saturating_abs()) as u64;
    let total = span.checked_mul(count).and_then(|bytes| bytes.checked_mul(u64::from(blocks)));
    match total {
        Some(bytes) if i64::try_from(bytes).is_ok() => Ok(()),
        _ => Err(Error::new(Class::Count, format!("{argument} {count} makes more bytes than memory can have"))),
    }
}

pub fn reject_in_place(argument: &str, buffer: *const c_void) -> Result<()> {
    if is_in_place(buffer) {
        return Err(Error::new(Class::Buffer, format!("{argument} is MPI_IN_PLACE, which is not allowed here")));
    }
    Ok(())
}

/// A null pointer is an address only for derived types (`MPI_BOTTOM`).
fn check_buffer(argument: &str, buffer: *const c_void, datatype: &Datatype, count: u64) -> Result<()> {
    reject_in_place(argument, buffer)?;
    if buffer.is_null() && count > 0 && datatype.size() > 0 && datatype.named().is_some() {
        let detail = format!("{argument} is a null pointer, but {count} elements of {datatype:?} are to lie there");
        return Err(Error::new(Class::Buffer, detail));
    }
    Ok(())
}
