//! Which MPI library a program loads. Ours lie beside this program, in `../lib`: their directory comes first on the
//! library path of the ranks, so that programs built for MPICH, Intel MPI or the standard ABI load them.

use crate::elf::{self, Linked};
use crate::stage::folder_of;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

pub const VARIABLE: &str = "LD_LIBRARY_PATH";

/// The ABI that a program was built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// MPI 5.0, chapter 20.
    Standard,
    /// MPICH's, which Intel MPI and others share.
    Mpich,
    OpenMpi,
}

impl Abi {
    /// By the name of the library.
    pub fn of(library: &str) -> Option<Self> {
        match library {
            "libmpi_abi.so.1" => Some(Self::Standard),
            "libmpi.so.12" | "libmpich.so.12" => Some(Self::Mpich),
            _ => elf::is_open_mpi(library).then_some(Self::OpenMpi),
        }
    }
}

/// MPICH's library for Fortran, as Debian names it: a program that needs no other loads its ABI through that one.
const FORTRAN_OF_MPICH: &str = "libmpichfort.so.12";

/// The names of the libraries that a program was linked with; none where that cannot be read.
pub fn needed(program: &Path) -> Vec<String> {
    elf::linked(program).map(|linked| linked.needed).unwrap_or_default()
}

/// The one of MPI among these libraries.
pub fn mpi_among(needed: &[String]) -> Option<(String, Abi)> {
    let of_fortran = needed.iter().find(|name| *name == FORTRAN_OF_MPICH).map(|name| (name.clone(), Abi::Mpich));
    needed.iter().find_map(|name| Abi::of(name).map(|abi| (name.clone(), abi))).or(of_fortran)
}

/// Whether a library of this name is installed with this program.
pub fn has_library(name: &str) -> bool {
    folder().is_some_and(|folder| folder.join(name).is_file())
}

/// Where our libraries are, if they are installed with this program.
fn folder() -> Option<PathBuf> {
    let folder = folder_of(&std::env::current_exe().ok()?);
    folder.join("libmpi_abi.so.1").is_file().then_some(folder)
}

/// What finds our libraries first, beside what is found already by the library path of this process; nothing where they
/// are not installed with this program.
pub fn library_path() -> Option<OsString> {
    folder().map(|folder| first_in(&folder, &std::env::var_os(VARIABLE).unwrap_or_default()))
}

/// Puts the directory of our libraries first.
pub fn lead(environment: &mut HashMap<OsString, OsString>) {
    let Some(folder) = folder() else { return };
    let given = environment.get(OsStr::new(VARIABLE)).cloned().unwrap_or_default();
    environment.insert(VARIABLE.into(), first_in(&folder, &given));
}

fn first_in(folder: &Path, given: &OsStr) -> OsString {
    let others = std::env::split_paths(given).filter(|part| part != folder && !part.as_os_str().is_empty());
    let paths = std::iter::once(folder.to_owned()).chain(others);
    std::env::join_paths(paths).unwrap_or_else(|_| folder.into())
}

/// One line where a program that is linked so loads another MPI library whatever the library path says.
pub fn warning(program: &Path, linked: &Linked) -> Option<String> {
    if linked.first.is_empty() {
        return None;
    }
    let (library, folder) = other_first(program, linked, &folder()?)?;
    Some(format!(
        "'{}' has the RPATH '{}', which holds another {library} and comes before the library path: that one is loaded in \
         place of ours; `patchelf --remove-rpath` takes it out",
        program.display(),
        folder.display()
    ))
}

/// The PMIx library that a program brings along: where it looks for its own libraries, or below that, as Open MPI's
/// package for Python has it.
pub fn pmix_of(program: &Path) -> Option<PathBuf> {
    let Linked { first, then, .. } = elf::linked(program)?;
    let places = [first, then].concat();
    let mut folders = folders_of(program, &places)?.flat_map(|folder| [folder.join("openmpi"), folder]);
    folders.find_map(|folder| Some(folder.join(weft_pmix::LIBRARY)).filter(|file| file.is_file()))
}

/// Places as a program says them.
fn folders_of(program: &Path, places: &[String]) -> Option<impl Iterator<Item = PathBuf>> {
    let origin = program.canonicalize().ok()?.parent()?.to_string_lossy().into_owned();
    Some(places.iter().map(move |path| path.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin).into()))
}

/// The first library of MPI that is found in a directory of the program's own, not ours.
fn other_first(program: &Path, linked: &Linked, ours: &Path) -> Option<(String, PathBuf)> {
    let mut folders = folders_of(program, &linked.first)?;
    let library = linked.needed.iter().find(|name| matches!(Abi::of(name), Some(Abi::Standard | Abi::Mpich)))?;
    let folder = folders.find(|folder| folder.join(library).is_file())?;
    let same = |file: &Path| file.join(library).canonicalize().ok();
    (same(&folder) != same(ours)).then(|| (library.clone(), folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_folder_comes_first_and_once() {
        let path = |given: &str| first_in(Path::new("/weft/lib"), given.as_ref()).into_string().unwrap();
        assert_eq!(path(""), "/weft/lib");
        assert_eq!(path("/a:/weft/lib::/b"), "/weft/lib:/a:/b");
    }

    #[test]
    fn names_of_libraries_tell_the_abi() {
        assert_eq!(Abi::of("libmpi_abi.so.1"), Some(Abi::Standard));
        assert_eq!([Abi::of("libmpi.so.12"), Abi::of("libmpich.so.12")], [Some(Abi::Mpich); 2]);
        assert_eq!(Abi::of("libmpi.so.40"), Some(Abi::OpenMpi));
        assert_eq!(Abi::of("libmpicxx.so.12"), None);
        let among = |names: &[&str]| mpi_among(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(among(&["libmpichfort.so.12", "libc.so.6"]), Some(("libmpichfort.so.12".into(), Abi::Mpich)));
        assert_eq!(among(&["libmpichfort.so.12", "libmpich.so.12"]), Some(("libmpich.so.12".into(), Abi::Mpich)));
        assert_eq!(among(&["libc.so.6"]), None);
    }

    #[test]
    fn another_library_on_the_rpath_is_seen_and_ours_is_not_another() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, other) = (folder.path().join("lib"), folder.path().join("other"));
        for folder in [&ours, &other] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("libmpi.so.12"), "").unwrap();
        }
        let program = folder.path().join("program");
        std::fs::write(&program, "").unwrap();
        let linked = |first: &[&str]| Linked {
            needed: vec!["libc.so.6".into(), "libmpi.so.12".into()],
            first: first.iter().map(|path| (*path).to_owned()).collect(),
            ..Linked::default()
        };
        let found = other_first(&program, &linked(&["/none", "$ORIGIN/other"]), &ours).expect("it is there");
        assert_eq!(found.0, "libmpi.so.12");
        assert!(found.1.ends_with("other"));
        assert_eq!(other_first(&program, &linked(&["$ORIGIN/lib", "$ORIGIN/other"]), &ours), None);
        assert_eq!(other_first(&program, &linked(&[]), &ours), None);
    }
}
