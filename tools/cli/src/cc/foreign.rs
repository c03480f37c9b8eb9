//! Signs that the user's flags bring in another MPI library. Two of them in one process do not work: the first one
//! found gets all calls.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::arguments::CompilerCall;

/// Names under which other MPI libraries are linked.
const LIBRARIES: &[&str] = &[
    "mpi",
    "mpich",
    "mpicxx",
    "mpichcxx",
    "mpi_cxx",
    "mpi++",
    "pmpi",
    "pmpich",
    "mpichfort",
    "mpifort",
    "mpi_mpifh",
    "mpi_usempif08",
];

/// Files by which a folder is known to hold one.
const FILES: &[&str] = &["libmpi_abi.so", "libmpi_abi.so.0", "libmpi_abi.so.1", "libmpi.so", "libmpich.so"];

/// One line per sign, without the name of the command.
pub fn warnings(arguments: &CompilerCall, prefix: &Path) -> Vec<String> {
    if !arguments.links() {
        return Vec::new();
    }
    let words = linker_words(arguments);
    let ours = prefix.join("lib");
    let previous = std::iter::once(OsStr::new("")).chain(words.iter().copied());
    previous.zip(&words).filter_map(|(previous, word)| warning(previous, word, &ours)).collect()
}

/// The arguments with those for the linker (`-Wl,a,b` and `-Xlinker a`) taken apart into words.
fn linker_words(arguments: &CompilerCall) -> Vec<&OsStr> {
    let mut words = Vec::new();
    for argument in &arguments.passed {
        match argument.as_bytes().strip_prefix(b"-Wl,") {
            Some(list) => words.extend(list.split(|byte| *byte == b',').map(OsStr::from_bytes)),
            None if argument == "-Xlinker" => {}
            None => words.push(argument.as_os_str()),
        }
    }
    words
}

fn warning(previous: &OsStr, word: &OsStr, ours: &Path) -> Option<String> {
    let text = word.to_string_lossy();
    if let Some(library) = value(previous, word, "-l").filter(|name| LIBRARIES.iter().any(|other| name == other)) {
        let library = library.to_string_lossy();
        return Some(format!("-l{library} brings a second MPI library into the program; leave it out"));
    }
    if let Some(folder) = value(previous, word, "-L").filter(|folder| holds_other(folder.as_ref(), ours)) {
        let folder = folder.to_string_lossy();
        return Some(format!("-L{folder} holds another MPI library, which may be linked in place of ours"));
    }
    if let Some(folder) = run_path(previous, word).and_then(|list| first_other(list, ours)) {
        return Some(format!("the run path {folder} holds another MPI library, which may be loaded in place of ours"));
    }
    match &*text {
        "--disable-new-dtags" => Some("--disable-new-dtags is overridden: our library is found by RUNPATH".into()),
        "-static" => Some("-static cannot work: libmpi_abi is a shared library".into()),
        _ => None,
    }
}

/// The value of a one-letter option, joined to it or in the next word.
fn value<'a>(previous: &OsStr, word: &'a OsStr, option: &str) -> Option<&'a OsStr> {
    if previous == option {
        return Some(word);
    }
    let rest = word.as_bytes().strip_prefix(option.as_bytes())?;
    (!rest.is_empty()).then(|| OsStr::from_bytes(rest))
}

/// The list of folders in `-rpath=LIST`, `-rpath LIST`, `-R LIST`, with one dash or two.
fn run_path<'a>(previous: &OsStr, word: &'a OsStr) -> Option<&'a OsStr> {
    if ["-rpath", "--rpath", "-R"].iter().any(|option| previous == *option) {
        return Some(word);
    }
    let bytes = word.as_bytes();
    let list = bytes.strip_prefix(b"-rpath=").or_else(|| bytes.strip_prefix(b"--rpath="))?;
    Some(OsStr::from_bytes(list))
}

fn first_other(list: &OsStr, ours: &Path) -> Option<String> {
    let found = std::env::split_paths(list).find(|folder| holds_other(folder, ours))?;
    Some(found.to_string_lossy().into_owned())
}

fn holds_other(folder: &Path, ours: &Path) -> bool {
    let same = folder.canonicalize().ok().zip(ours.canonicalize().ok()).is_some_and(|(a, b)| a == b);
    !same && FILES.iter().any(|file| folder.join(file).exists())
}
