//! A type of objects that a program has described in C.

use crate::fault::{CallFault, Result};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt::Write as _;
use weft_objects::kind::{KnownOperation, ObjectKind, RunFault};

/// What an operation answers that cannot be done now.
const WAIT: c_int = 1;
/// Most operations of a type.
const MOST: usize = 4096;

/// `struct weft_bytes`.
#[repr(transparent)]
pub struct CBytes(pub Vec<u8>);

type GuardFunction = extern "C" fn(*const c_void, *const c_void, usize, *mut c_void) -> c_int;
type RunFunction = extern "C" fn(*mut c_void, *const c_void, usize, *mut CBytes, *mut c_void) -> c_int;
type PackFunction = extern "C" fn(*const c_void, *mut CBytes, *mut c_void) -> c_int;
type UnpackFunction = extern "C" fn(*const c_void, usize, *mut c_void) -> *mut c_void;
type FreeFunction = extern "C" fn(*mut c_void, *mut c_void);

/// `struct weft_operation`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct COperation {
    name: *const c_char,
    writes: c_int,
    guard: Option<GuardFunction>,
    run: Option<RunFunction>,
}

/// `struct weft_object_type`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CType {
    name: *const c_char,
    operations: *const COperation,
    count: c_int,
    size: usize,
    pack: Option<PackFunction>,
    unpack: Option<UnpackFunction>,
    drop: Option<FreeFunction>,
    context: *mut c_void,
}

struct DescribedOperation {
    name: String,
    writes: bool,
    guard: Option<GuardFunction>,
    run: RunFunction,
}

/// How a state goes to other processes.
#[derive(Clone, Copy)]
enum StateForm {
    /// As so many bytes.
    Plain(usize),
    Packed {
        pack: PackFunction,
        unpack: UnpackFunction,
        free: FreeFunction,
    },
}

/// The program's pointer, which goes to its functions and nowhere else.
#[derive(Clone, Copy)]
struct TypeContext(*mut c_void);

// SAFETY: nothing here looks behind it; the program has been told that its functions run in any thread.
unsafe impl Send for TypeContext {}
// SAFETY: the same.
unsafe impl Sync for TypeContext {}

/// A type of objects that a program has described.
pub struct DescribedKind {
    name: String,
    operations: Vec<DescribedOperation>,
    form: StateForm,
    context: TypeContext,
}

/// The state of such an object.
pub enum DescribedState {
    /// In words of the greatest alignment that C types have.
    Plain(Box<[u128]>),
    Made(MadeState),
}

/// A state that the program has made.
pub struct MadeState {
    at: *mut c_void,
    free: FreeFunction,
    context: TypeContext,
}

// SAFETY: one thread at a time has it; the program has been told that it may be any.
unsafe impl Send for MadeState {}

impl Drop for MadeState {
    fn drop(&mut self) {
        (self.free)(self.at, self.context.0);
    }
}

impl DescribedState {
    fn pointer(&mut self) -> *mut c_void {
        match self {
            Self::Plain(words) => words.as_mut_ptr().cast(),
            Self::Made(made) => made.at,
        }
    }
}

/// # Safety
/// `at` is null, or a C string.
unsafe fn text(at: *const c_char, what: &str) -> Result<String> {
    if at.is_null() {
        return Err(CallFault::argument(format!("{what} is a null pointer")));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(at) }.to_str();
    text.map(str::to_owned).map_err(|_| CallFault::argument(format!("{what} is no UTF-8")))
}

impl DescribedKind {
    /// Reads what the program has described.
    ///
    /// # Safety
    /// `described` is null, or leads to a type whose pointers are null or valid.
    ///
    /// # Errors
    /// Something is missing, or does not fit together.
    pub unsafe fn read(described: *const CType) -> Result<Self> {
        if described.is_null() {
            return Err(CallFault::argument("the type of the object is a null pointer"));
        }
        // SAFETY: the caller's promise.
        let described = unsafe { described.read() };
        // SAFETY: the caller's promise.
        let named = unsafe { text(described.name, "the name of the type") }?;
        let count = usize::try_from(described.count).ok().filter(|count| (1..=MOST).contains(count));
        let Some(count) = count.filter(|_| !described.operations.is_null()) else {
            let given = described.count;
            return Err(CallFault::argument(format!("type '{named}': {given} operations, not 1 to {MOST}")));
        };
        // SAFETY: the caller's promise.
        let operations = (0..count).map(|at| unsafe { DescribedOperation::read(&named, described.operations.add(at)) });
        let operations: Vec<_> = operations.collect::<Result<_>>()?;
        let form = match (described.pack, described.unpack, described.drop) {
            (Some(pack), Some(unpack), Some(free)) => StateForm::Packed { pack, unpack, free },
            (None, None, None) if described.size > 0 => StateForm::Plain(described.size),
            _ => {
                let text = format!("type '{named}' has a size, or pack, unpack and drop together");
                return Err(CallFault::argument(text));
            }
        };
        let mut name = format!("{named} with");
        for (at, operation) in operations.iter().enumerate() {
            let between = if at == 0 { " " } else { ", " };
            let _ = write!(name, "{between}{}{}", operation.name, if operation.writes { " (writes)" } else { "" });
        }
        Ok(Self { name, operations, form, context: TypeContext(described.context) })
    }

    /// A state of the program as bytes.
    ///
    /// # Safety
    /// `state` is null, or a state of this type.
    ///
    /// # Errors
    /// It is null, or has no form.
    pub unsafe fn pack_foreign(&self, state: *const c_void) -> Result<Vec<u8>> {
        if state.is_null() {
            return Err(CallFault::argument("the initial state is a null pointer"));
        }
        // SAFETY: the caller's promise.
        let packed = unsafe { self.pack_at(state) };
        packed.ok_or_else(|| CallFault::argument(format!("the initial state of a {} cannot be packed", self.name)))
    }

    /// # Safety
    /// `state` is a state of this type.
    unsafe fn pack_at(&self, state: *const c_void) -> Option<Vec<u8>> {
        match self.form {
            StateForm::Plain(size) => {
                // SAFETY: the caller's promise: it has so many bytes.
                Some(unsafe { std::slice::from_raw_parts(state.cast::<u8>(), size) }.to_vec())
            }
            StateForm::Packed { pack, .. } => {
                let mut bytes = CBytes(Vec::new());
                (pack(state, &raw mut bytes, self.context.0) == 0).then_some(bytes.0)
            }
        }
    }
}

impl DescribedOperation {
    /// # Safety
    /// `at` leads to an operation whose name is null or a C string.
    unsafe fn read(of: &str, at: *const COperation) -> Result<Self> {
        // SAFETY: the caller's promise.
        let COperation { name, writes, guard, run } = unsafe { at.read() };
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, &format!("the name of an operation of type '{of}'")) }?;
        let Some(run) = run else {
            return Err(CallFault::argument(format!("operation '{name}' of type '{of}' has no function")));
        };
        Ok(Self { name, writes: writes != 0, guard, run })
    }
}

impl ObjectKind for DescribedKind {
    type State = DescribedState;

    fn name(&self) -> String {
        self.name.clone()
    }

    #[inline]
    fn operation(&self, number: u16) -> Option<KnownOperation<'_>> {
        let operation = self.operations.get(usize::from(number))?;
        Some(KnownOperation { name: &operation.name, writes: operation.writes })
    }

    fn run(
        &self,
        number: u16,
        state: &mut DescribedState,
        arguments: &[u8],
        answer: Option<&mut Vec<u8>>,
    ) -> std::result::Result<bool, RunFault> {
        let Some(operation) = self.operations.get(usize::from(number)) else {
            return Err(RunFault::Failed("there is none of this number".to_owned()));
        };
        let (at, context) = (state.pointer(), self.context.0);
        let (given, length) = (arguments.as_ptr().cast(), arguments.len());
        if operation.guard.is_some_and(|guard| guard(at, given, length, context) == 0) {
            return Ok(false);
        }
        let to = answer.map_or(std::ptr::null_mut(), |answer| std::ptr::from_mut(answer).cast());
        match (operation.run)(at, given, length, to, context) {
            0 => Ok(true),
            WAIT => Ok(false),
            other => Err(RunFault::Failed(format!("it answered {other}"))),
        }
    }

    fn pack(&self, state: &DescribedState) -> Option<Vec<u8>> {
        let at: *const c_void = match state {
            DescribedState::Plain(words) => words.as_ptr().cast(),
            DescribedState::Made(made) => made.at,
        };
        // SAFETY: states of this kind are made below.
        unsafe { self.pack_at(at) }
    }

    fn unpack(&self, bytes: &[u8]) -> Option<DescribedState> {
        match self.form {
            StateForm::Plain(size) => {
                if bytes.len() != size {
                    return None;
                }
                let mut words = vec![0_u128; size.div_ceil(size_of::<u128>())].into_boxed_slice();
                // SAFETY: as many bytes are copied as both have at least.
                unsafe { words.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), size) };
                Some(DescribedState::Plain(words))
            }
            StateForm::Packed { unpack, free, .. } => {
                let at = unpack(bytes.as_ptr().cast(), bytes.len(), self.context.0);
                (!at.is_null()).then(|| DescribedState::Made(MadeState { at, free, context: self.context }))
            }
        }
    }
}
