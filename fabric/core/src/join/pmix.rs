//! A process manager that speaks PMIx: Open MPI's `mpirun`, `prterun`, `srun --mpi=pmix`.
//!
//! PMIx is no wire protocol but a library, so it is loaded; only where `PMIX_NAMESPACE` is set, and nothing else tells
//! of a job. Requests of PMI-1 become calls of it, so that who asks the [`Manager`](super::Manager) need not know.
//!
//! Deliberately not there: spawning, being told who is lost, and whatever PMI-1 has no word for.
//!
//! Layouts are those of [`weft_cluster::pmix`]; a launcher's version need not be that of the library.
//!
//! Test: `cargo test -p weft-tests --features programs --test launchers`, with Slurm and libpmix2 installed.

use super::ManagerError;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};
use weft_cluster::pmi::{KEY_MAX, KVSNAME_MAX, PmiRequest, Reply, VALUE_MAX};
use weft_cluster::pmix::{NOT_FOUND, PmixDatum, PmixEntry, PmixName, SUCCESS, WILDCARD};

/// The variable that PMIx launchers set for each process.
pub const NAMESPACE: &str = "PMIX_NAMESPACE";
/// What tells which rank of it a process is.
pub const RANK: &str = "PMIX_RANK";
/// Names another file than [`LIBRARY`].
pub const LIBRARY_VARIABLE: &str = "WEFT_PMIX_LIBRARY";
/// As the loader finds it.
pub const LIBRARY: &str = "libpmix.so.2";

/// Who puts what others read, as the ranks [`meet`](super::meeting): PMIx wants to know whose a value is, and not every
/// version of it finds out (4.2 under Slurm waits for it in vain).
const GIVER: u32 = 0;
/// For all ranks, on whichever host (`PMIX_GLOBAL`).
const TO_ALL: u8 = 3;

/// The functions that are used, of a library that stays loaded.
#[derive(Clone, Copy)]
struct PmixCalls {
    init: unsafe extern "C" fn(*mut PmixName, *const c_void, usize) -> c_int,
    finalize: unsafe extern "C" fn(*const c_void, usize) -> c_int,
    put: unsafe extern "C" fn(u8, *const c_char, *mut PmixDatum) -> c_int,
    commit: unsafe extern "C" fn() -> c_int,
    fence: unsafe extern "C" fn(*const PmixName, usize, *const PmixEntry, usize) -> c_int,
    get: unsafe extern "C" fn(*const PmixName, *const c_char, *const c_void, usize, *mut *mut PmixDatum) -> c_int,
    abort: unsafe extern "C" fn(c_int, *const c_char, *const c_void, usize) -> c_int,
    text: unsafe extern "C" fn(c_int) -> *const c_char,
}

/// The function of this name.
///
/// # Safety
/// `library` is one that stays loaded, and its function has the type `F`.
unsafe fn find<F: Copy>(library: *mut c_void, symbol: &CStr) -> Result<F, String> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the caller vouches for the library, and the string ends.
    let found = unsafe { libc::dlsym(library, symbol.as_ptr()) };
    if found.is_null() {
        return Err(format!("it has no {}", symbol.to_string_lossy()));
    }
    // SAFETY: the address of a function, whose type the caller vouches for.
    Ok(unsafe { std::mem::transmute_copy(&found) })
}

/// Whom an abort asks, which may come at any time from any thread.
static ABORTED_BY: Mutex<Option<PmixCalls>> = Mutex::new(None);

/// Our side of the conversation.
pub struct Pmix {
    calls: PmixCalls,
    me: PmixName,
    size: u32,
}

impl PmixCalls {
    /// # Errors
    /// The library cannot be loaded, or is none of PMIx.
    fn load() -> Result<Self, String> {
        let name = std::env::var(LIBRARY_VARIABLE).ok().filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| LIBRARY.to_owned());
        let c_name = CString::new(name.as_str()).map_err(|_| format!("'{name}' is no name of a file"))?;
        // SAFETY: a string that ends; what the library does when it is loaded is what its user has asked for.
        let library = unsafe { libc::dlopen(c_name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return Err(last_error().unwrap_or(name));
        }
        // SAFETY: it is never closed, and its functions have these types in every version of PMIx.
        unsafe {
            Ok(Self {
                init: find(library, c"PMIx_Init")?,
                finalize: find(library, c"PMIx_Finalize")?,
                put: find(library, c"PMIx_Put")?,
                commit: find(library, c"PMIx_Commit")?,
                fence: find(library, c"PMIx_Fence")?,
                get: find(library, c"PMIx_Get")?,
                abort: find(library, c"PMIx_Abort")?,
                text: find(library, c"PMIx_Error_string")?,
            })
        }
    }

    fn checked(&self, call: &'static str, status: c_int) -> Result<(), ManagerError> {
        if status == SUCCESS {
            return Ok(());
        }
        // SAFETY: it answers a string of the library's own, which lives as long as that.
        let text = unsafe { (self.text)(status) };
        let reason = match text.is_null() {
            true => status.to_string(),
            // SAFETY: a string that ends, as above.
            false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
        };
        Err(ManagerError::Pmix { call, reason })
    }
}

fn last_error() -> Option<String> {
    // SAFETY: it answers null or a string that lives until this thread's next call of the loader.
    let text = unsafe { libc::dlerror() };
    // SAFETY: not null, as above.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Why a process whose launcher speaks PMIx cannot join.
pub enum PmixRefusal {
    Library(String),
    Manager(ManagerError),
}

impl Pmix {
    /// Loads the library and says that we have begun.
    pub fn join() -> Result<Self, PmixRefusal> {
        let calls = PmixCalls::load().map_err(PmixRefusal::Library)?;
        let mut pmix = Self { calls, me: PmixName::new("", 0), size: 0 };
        pmix.begin().map_err(PmixRefusal::Manager)?;
        Ok(pmix)
    }

    pub fn rank(&self) -> u32 {
        self.me.rank
    }

    pub fn size(&self) -> u32 {
        self.size
    }

    /// Says that we have begun, or begun again.
    pub fn begin(&mut self) -> Result<(), ManagerError> {
        // SAFETY: the structure is the library's, and is written during the call only; there is no further information.
        let status = unsafe { (self.calls.init)(&raw mut self.me, std::ptr::null(), 0) };
        self.calls.checked("PMIx_Init", status)?;
        *ABORTED_BY.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.calls);
        let size = self.value_of(WILDCARD, c"pmix.job.size")?;
        let size = size.filter(|value| value.kind == PmixDatum::UINT32).map(|value| value.data[0] as u32);
        let reason = || "the launcher does not tell how many ranks there are".to_owned();
        self.size = size
            .filter(|size| *size > self.me.rank)
            .ok_or_else(|| ManagerError::Pmix { call: "PMIx_Get", reason: reason() })?;
        Ok(())
    }

    /// Calls what a request of PMI-1 means.
    pub fn answer(&mut self, request: &PmiRequest) -> Result<Reply, ManagerError> {
        let refused = |reason: &str| ManagerError::Pmix { call: request.name(), reason: reason.to_owned() };
        Ok(match request {
            PmiRequest::Init { .. } => Reply::Init(1, 1),
            PmiRequest::Maxes => Reply::Maxes { kvsname: KVSNAME_MAX, key: KEY_MAX, value: VALUE_MAX },
            PmiRequest::KvsName => Reply::KvsName(self.namespace()),
            PmiRequest::UniverseSize => Reply::UniverseSize(Some(self.size as usize)),
            PmiRequest::Appnum => Reply::Appnum(0),
            PmiRequest::Put { key, value, .. } => {
                self.put(key, value)?;
                Reply::Put
            }
            PmiRequest::Get { key, .. } => Reply::Get(self.text_of(key)?),
            PmiRequest::Barrier => {
                self.fence()?;
                Reply::Barrier
            }
            // Nobody is told; the launcher ends the job.
            PmiRequest::Watch => Reply::Watch,
            PmiRequest::Finalise => {
                self.end()?;
                Reply::Finalise
            }
            PmiRequest::Spawn { .. } => return Err(refused("only weft run starts further processes")),
            PmiRequest::Signal { .. } => return Err(refused("only weft run passes signals on")),
            PmiRequest::Abort { .. } => return Err(refused("an abort is not asked for here")),
        })
    }

    fn namespace(&self) -> String {
        let name = CStr::from_bytes_until_nul(&self.me.namespace).unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    fn end(&mut self) -> Result<(), ManagerError> {
        *ABORTED_BY.lock().unwrap_or_else(PoisonError::into_inner) = None;
        // SAFETY: there is no further information.
        let status = unsafe { (self.calls.finalize)(std::ptr::null(), 0) };
        self.calls.checked("PMIx_Finalize", status)
    }

    fn put(&self, key: &str, value: &str) -> Result<(), ManagerError> {
        let (key, value) = (c_text("PMIx_Put", key)?, c_text("PMIx_Put", value)?);
        let mut given = PmixDatum::new(PmixDatum::STRING, value.as_ptr() as u64);
        // SAFETY: both strings end and outlive the call, which copies them.
        let status = unsafe { (self.calls.put)(TO_ALL, key.as_ptr(), &raw mut given) };
        self.calls.checked("PMIx_Put", status)?;
        // SAFETY: it takes nothing.
        let status = unsafe { (self.calls.commit)() };
        self.calls.checked("PMIx_Commit", status)
    }

    /// A barrier after which all have what was put before it.
    fn fence(&self) -> Result<(), ManagerError> {
        let collect = PmixEntry::new(COLLECT, PmixDatum::new(PmixDatum::BOOLEAN, 1));
        // SAFETY: no list of processes means all; the one information outlives the call.
        let status = unsafe { (self.calls.fence)(std::ptr::null(), 0, &raw const collect, 1) };
        self.calls.checked("PMIx_Fence", status)
    }

    fn text_of(&self, key: &str) -> Result<Option<String>, ManagerError> {
        let key = c_text("PMIx_Get", key)?;
        let value = self.value_of(GIVER, &key)?.filter(|value| value.kind == PmixDatum::STRING && value.data[0] != 0);
        // SAFETY: a value of this kind has a string that ends; nobody frees it.
        Ok(value.map(|value| unsafe { CStr::from_ptr(value.data[0] as *const c_char) }.to_string_lossy().into_owned()))
    }

    /// What the library has of this key. The few values that are asked for are not given back.
    fn value_of(&self, rank: u32, key: &CStr) -> Result<Option<&PmixDatum>, ManagerError> {
        let whose = PmixName { rank, ..self.me };
        let mut found = std::ptr::null_mut();
        // SAFETY: what is passed outlives the call, which writes the address of a value of its own making.
        let status = unsafe { (self.calls.get)(&raw const whose, key.as_ptr(), std::ptr::null(), 0, &raw mut found) };
        if status == NOT_FOUND {
            return Ok(None);
        }
        self.calls.checked("PMIx_Get", status)?;
        // SAFETY: null, or a whole value that nobody changes or frees.
        Ok(unsafe { found.as_ref() })
    }
}

/// The information that a fence shall hand round what was put (`PMIX_COLLECT_DATA`).
const COLLECT: &str = "pmix.collect";

fn c_text(call: &'static str, text: &str) -> Result<CString, ManagerError> {
    CString::new(text).map_err(|_| ManagerError::Pmix { call, reason: format!("'{text}' has a zero byte") })
}

/// Whether a launcher that speaks PMIx has started us, and has not heard that we end.
pub fn is_joined() -> bool {
    ABORTED_BY.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Asks for the end of the job, if a launcher that speaks PMIx has started us; it may end us meanwhile.
pub fn abort(code: i32, message: &str) {
    let Some(calls) = *ABORTED_BY.lock().unwrap_or_else(PoisonError::into_inner) else { return };
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    // SAFETY: the string ends and outlives the call; no list of processes means all.
    let _ = unsafe { (calls.abort)(code, message.as_ptr(), std::ptr::null(), 0) };
}
