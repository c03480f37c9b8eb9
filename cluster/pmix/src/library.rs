//! The library's calls, and what only servers hand it.

use crate::facts::{Fact, Facts};
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use weft_cluster::pmix::{PmixDatum, PmixEntry, PmixName, SUCCESS};

/// How the library keeps values: in its own memory, or in files that the ranks map.
const STORE_VARIABLE: &str = "PMIX_MCA_gds";
/// `PMIX_OPERATION_SUCCEEDED`: done, and nobody will be called back.
const DONE_AT_ONCE: c_int = -157;

/// `pmix_pdata_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PmixFound {
    pub by: PmixName,
    pub key: [u8; 512],
    pub value: PmixDatum,
}

/// `pmix_data_array_t`.
#[repr(C)]
struct PmixArray {
    kind: u16,
    size: usize,
    array: *const PmixEntry,
}

/// `pmix_server_module_t`: functions of ours, in the order of the standard. The library copies as much of it as it
/// knows, which grows with its version.
pub type PmixModule = [*const c_void; 64];

pub type WhenDone = unsafe extern "C" fn(c_int, *mut c_void);
pub type WhenFound = unsafe extern "C" fn(c_int, *mut c_char, usize, *mut c_void);

/// The functions that are used, of a library that stays loaded.
#[derive(Clone, Copy)]
pub struct PmixServerLibrary {
    init: unsafe extern "C" fn(*const PmixModule, *const PmixEntry, usize) -> c_int,
    register_nspace:
        unsafe extern "C" fn(*const c_char, c_int, *const PmixEntry, usize, Option<WhenDone>, *mut c_void) -> c_int,
    register_client:
        unsafe extern "C" fn(*const PmixName, u32, u32, *mut c_void, Option<WhenDone>, *mut c_void) -> c_int,
    setup_fork: unsafe extern "C" fn(*const PmixName, *mut *mut *mut c_char) -> c_int,
    deregister_client: unsafe extern "C" fn(*const PmixName, Option<WhenDone>, *mut c_void),
    deregister_nspace: unsafe extern "C" fn(*const c_char, Option<WhenDone>, *mut c_void),
    dmodex_request: unsafe extern "C" fn(*const PmixName, WhenFound, *mut c_void) -> c_int,
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

fn last_error() -> Option<String> {
    // SAFETY: it answers null or a string that lives until this thread's next call of the loader.
    let text = unsafe { libc::dlerror() };
    // SAFETY: not null, as above.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Makes this process one that no launcher has started, which the library would take for its own, and one that keeps no
/// values in files. The process has one thread only, and nobody else uses its environment.
pub fn clean_environment() {
    let is_told = |name: &str| name.starts_with("PMIX_") && !name.starts_with("PMIX_MCA_");
    for name in std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(|name| is_told(name)) {
        // SAFETY: no other thread, as above.
        unsafe { std::env::remove_var(name) };
    }
    if std::env::var_os(STORE_VARIABLE).is_none() {
        // SAFETY: as above.
        unsafe { std::env::set_var(STORE_VARIABLE, "hash") };
    }
}

impl PmixServerLibrary {
    /// # Errors
    /// The library cannot be loaded, or is none of PMIx.
    pub fn load(name: &OsStr) -> Result<Self, String> {
        let c_name = CString::new(name.as_bytes()).map_err(|_| "its name is no name of a file".to_owned())?;
        // SAFETY: a string that ends; what the library does when it is loaded is what its user has asked for.
        let library = unsafe { libc::dlopen(c_name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if library.is_null() {
            return Err(last_error().unwrap_or_else(|| name.to_string_lossy().into_owned()));
        }
        // SAFETY: it is never closed, and its functions have these types in every version of PMIx.
        unsafe {
            Ok(Self {
                init: find(library, c"PMIx_server_init")?,
                register_nspace: find(library, c"PMIx_server_register_nspace")?,
                register_client: find(library, c"PMIx_server_register_client")?,
                setup_fork: find(library, c"PMIx_server_setup_fork")?,
                deregister_client: find(library, c"PMIx_server_deregister_client")?,
                deregister_nspace: find(library, c"PMIx_server_deregister_nspace")?,
                dmodex_request: find(library, c"PMIx_server_dmodex_request")?,
                text: find(library, c"PMIx_Error_string")?,
            })
        }
    }

    fn checked(&self, call: &str, status: c_int) -> Result<(), String> {
        if [SUCCESS, DONE_AT_ONCE].contains(&status) {
            return Ok(());
        }
        // SAFETY: it answers a string of the library's own, which lives as long as that.
        let text = unsafe { (self.text)(status) };
        match text.is_null() {
            true => Err(format!("{call} answers {status}")),
            // SAFETY: a string that ends, as above.
            false => Err(format!("{call}: {}", unsafe { CStr::from_ptr(text) }.to_string_lossy())),
        }
    }

    pub fn init(&self, facts: Facts, module: &'static PmixModule) -> Result<(), String> {
        let facts = entries(facts);
        // SAFETY: both live for ever, and the functions of the module have the types that the standard gives them.
        let status = unsafe { (self.init)(module, facts.as_ptr(), facts.len()) };
        self.checked("PMIx_server_init", status)
    }

    /// Of the ranks, so many are here.
    pub fn register_job(&self, namespace: &str, here: usize, facts: Facts) -> Result<(), String> {
        let facts = entries(facts);
        let name = PmixName::new(namespace, 0).namespace;
        // SAFETY: the name ends; without somebody to call back the call waits until all has been copied.
        let status = unsafe {
            let (name, none) = (name.as_ptr().cast(), std::ptr::null_mut());
            (self.register_nspace)(name, here as c_int, facts.as_ptr(), facts.len(), None, none)
        };
        self.checked("PMIx_server_register_nspace", status)
    }

    pub fn register_rank(&self, namespace: &str, rank: u32) -> Result<(), String> {
        let (name, none) = (PmixName::new(namespace, rank), std::ptr::null_mut());
        // SAFETY: they take and touch nothing.
        let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
        // SAFETY: the name outlives the call, which waits as above.
        let status = unsafe { (self.register_client)(&raw const name, user, group, none, None, none) };
        self.checked("PMIx_server_register_client", status)
    }

    /// What the environment of a rank is to have.
    pub fn environment(&self, namespace: &str, rank: u32) -> Result<Vec<(String, String)>, String> {
        let name = PmixName::new(namespace, rank);
        let mut list: *mut *mut c_char = std::ptr::null_mut();
        // SAFETY: the name outlives the call; the list is made by it, and stays ours.
        let status = unsafe { (self.setup_fork)(&raw const name, &raw mut list) };
        self.checked("PMIx_server_setup_fork", status)?;
        let words = texts(list.cast());
        Ok(words.iter().filter_map(|word| word.split_once('=')).map(|(a, b)| (a.to_owned(), b.to_owned())).collect())
    }

    /// The job is over. Removes files that ranks have asked to be removed then.
    pub fn forget_job(&self, namespace: &str, ranks: impl Iterator<Item = usize>) {
        for rank in ranks {
            let name = PmixName::new(namespace, rank as u32);
            // SAFETY: the name outlives the call, which waits, as there is nobody to call back.
            unsafe { (self.deregister_client)(&raw const name, None, std::ptr::null_mut()) };
        }
        let name = PmixName::new(namespace, 0).namespace;
        // SAFETY: as above.
        unsafe { (self.deregister_nspace)(name.as_ptr().cast(), None, std::ptr::null_mut()) };
    }

    /// Has what a rank of this host has put told to `found`, with `mark`; answers otherwise why not.
    pub fn look_up(&self, name: &PmixName, found: WhenFound, mark: u64) -> Result<(), c_int> {
        // SAFETY: the name outlives the call, which copies it; the mark is no pointer to anybody.
        match unsafe { (self.dmodex_request)(name, found, mark as *mut c_void) } {
            SUCCESS => Ok(()),
            status => Err(status),
        }
    }
}

/// The strings of a list that ends with null, or of none.
pub fn texts(list: *const *const c_char) -> Vec<String> {
    let mut texts = Vec::new();
    if list.is_null() {
        return texts;
    }
    for at in 0.. {
        // SAFETY: a list of the library's, which ends with null, and this is not behind that.
        let text = unsafe { *list.add(at) };
        if text.is_null() {
            break;
        }
        // SAFETY: a string of the library's, which ends.
        texts.push(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned());
    }
    texts
}

/// In the library's layout. It is made once for each process, and never freed.
fn entries(facts: Facts) -> &'static [PmixEntry] {
    let entry = |(key, fact): (&str, Fact)| {
        let (kind, word) = match fact {
            Fact::Flag(flag) => (PmixDatum::BOOLEAN, flag.into()),
            Fact::Text(text) => (PmixDatum::STRING, CString::new(text).unwrap_or_default().into_raw() as u64),
            Fact::Half(number) => (PmixDatum::UINT16, number.into()),
            Fact::Number(number) => (PmixDatum::UINT32, number.into()),
            Fact::Rank(rank) => (PmixDatum::RANK, rank.into()),
            Fact::Several(facts) => {
                let within = entries(facts);
                let array = PmixArray { kind: PmixDatum::INFO, size: within.len(), array: within.as_ptr() };
                (PmixDatum::DATA_ARRAY, &raw const *Box::leak(Box::new(array)) as u64)
            }
        };
        PmixEntry::new(key, PmixDatum::new(kind, word))
    };
    Vec::leak(facts.into_iter().map(entry).collect())
}
