//! What this process has opened: its space, and objects by number.

use crate::fault::{CallFault, FaultNumber, Result};
use crate::kind::DescribedKind;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use weft_objects::dynamic::{DynamicHandle, StartedCall, is_inside_operation};
use weft_objects::standard::{SharedBarrier, SharedInteger, SharedJobQueue};
use weft_objects::{ObjectFault, ObjectPlacement, Space, Strategy};

/// What an object is.
pub enum OpenObject {
    Described(DynamicHandle<DescribedKind>),
    Integer(SharedInteger),
    Queue(SharedJobQueue<Vec<u8>>),
    Barrier(SharedBarrier),
}

struct JoinedSpace {
    space: Space,
    me: u32,
    size: u32,
}

static JOINED: Mutex<Option<JoinedSpace>> = Mutex::new(None);
/// By their numbers; those that were released are none.
static OBJECTS: RwLock<Vec<Option<Arc<OpenObject>>>> = RwLock::new(Vec::new());

fn joined() -> MutexGuard<'static, Option<JoinedSpace>> {
    JOINED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cold]
fn outside() -> CallFault {
    let text = "the process is not in a job: weft_objects_init comes first, and nothing after weft_objects_finish";
    CallFault::new(FaultNumber::State, text)
}

pub fn open() -> Result<()> {
    let mut joined = joined();
    if joined.is_some() {
        return Err(CallFault::new(FaultNumber::State, "the process has joined already"));
    }
    let space = Space::open()?;
    let (me, size) = space.place();
    *joined = Some(JoinedSpace { space, me, size });
    Ok(())
}

pub fn close() -> Result<()> {
    let space = joined().as_ref().map(|joined| joined.space.clone()).ok_or_else(outside)?;
    let closed = space.close();
    // What is left leads to the process's part in the job.
    let objects = std::mem::take(&mut *OBJECTS.write().unwrap_or_else(PoisonError::into_inner));
    drop(objects);
    let left = joined().take();
    drop(left);
    Ok(closed?)
}

pub fn deliver(delivers: bool) -> Result<()> {
    let space = joined().as_ref().map(|joined| joined.space.clone()).ok_or_else(outside)?;
    Ok(space.deliver(delivers)?)
}

/// This process, and how many there are.
pub fn place() -> Result<(u32, u32)> {
    joined().as_ref().map(|joined| (joined.me, joined.size)).ok_or_else(outside)
}

/// Opens an object, which gets a number.
pub fn add(open: impl FnOnce(&Space) -> std::result::Result<OpenObject, ObjectFault>) -> Result<c_int> {
    let space = joined().as_ref().map(|joined| joined.space.clone()).ok_or_else(outside)?;
    let object = Arc::new(open(&space)?);
    let mut objects = OBJECTS.write().unwrap_or_else(PoisonError::into_inner);
    objects.push(Some(object));
    Ok((objects.len() - 1) as c_int)
}

/// # Errors
/// The thread is inside an operation.
#[inline]
pub fn outside_operation() -> Result<()> {
    if is_inside_operation() { Err(ObjectFault::Nested.into()) } else { Ok(()) }
}

#[cold]
fn no_object(number: c_int) -> CallFault {
    if joined().is_none() { outside() } else { CallFault::argument(format!("there is no object {number}")) }
}

/// # Errors
/// There is none of this number, or the thread is inside an operation.
#[inline]
pub fn object(number: c_int) -> Result<Arc<OpenObject>> {
    outside_operation()?;
    let objects = OBJECTS.read().unwrap_or_else(PoisonError::into_inner);
    let found = usize::try_from(number).ok().and_then(|at| objects.get(at)?.clone());
    drop(objects);
    found.ok_or_else(|| no_object(number))
}

pub fn release(number: c_int) -> Result<()> {
    outside_operation()?;
    let mut objects = OBJECTS.write().unwrap_or_else(PoisonError::into_inner);
    let released = usize::try_from(number).ok().and_then(|at| objects.get_mut(at)?.take());
    drop(objects);
    released.map(drop).ok_or_else(|| no_object(number))
}

impl OpenObject {
    /// Begins an operation of a described type; `None`: it is done, and its answer in `answer`.
    pub fn start(&self, number: c_int, arguments: &[u8], answer: &mut Vec<u8>) -> Result<Option<StartedCall>> {
        let Self::Described(handle) = self else {
            return Err(self.is_not("one of a type that the program describes"));
        };
        // No type has so many operations, so the handle says what there is.
        Ok(handle.start(u16::try_from(number).unwrap_or(u16::MAX), arguments, answer)?)
    }

    /// The error of a function that is for other objects.
    #[cold]
    pub fn is_not(&self, asked: &str) -> CallFault {
        let (name, is) = match self {
            Self::Described(handle) => (handle.name(), "of a type that the program describes"),
            Self::Integer(handle) => (handle.as_ref().name(), "an integer"),
            Self::Queue(handle) => (handle.as_ref().name(), "a job queue"),
            Self::Barrier(handle) => (handle.as_ref().name(), "a barrier"),
        };
        CallFault::argument(format!("object '{name}' is {is}, not {asked}"))
    }

    pub fn place(&self, strategy: Strategy) -> Result<()> {
        Ok(match self {
            Self::Described(handle) => handle.place(strategy),
            Self::Integer(handle) => handle.place(strategy),
            Self::Queue(handle) => handle.place(strategy),
            Self::Barrier(handle) => handle.place(strategy),
        }?)
    }

    pub fn placement(&self) -> ObjectPlacement {
        match self {
            Self::Described(handle) => handle.placement(),
            Self::Integer(handle) => handle.placement(),
            Self::Queue(handle) => handle.placement(),
            Self::Barrier(handle) => handle.placement(),
        }
    }
}
