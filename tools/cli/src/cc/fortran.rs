//! The modules of Fortran, which belong to one version of one compiler.
//!
//! They are made of the installed source when a compiler asks first, beside that source, or in the user's cache where
//! the installation cannot be written to, or else in a folder for temporary files that is the user's alone. Nothing has
//! to be linked for them: the source holds interfaces only.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io, process};

use anyhow::{Context, Result, bail};

/// The source, in the folder of headers.
const SOURCE: &str = "include/fortran/weft_mpi.f90";

struct FortranSource {
    path: PathBuf,
    /// The files that a compiler makes of it.
    files: Vec<String>,
}

impl FortranSource {
    fn new(path: PathBuf, text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let names = text.lines().filter_map(|line| line.strip_prefix("module "));
        Self { path, files: names.map(|name| format!("{}.mod", name.trim())).collect() }
    }

    /// Whether a folder has all of them: who cleans folders for temporary files takes some and leaves others.
    fn is_made_in(&self, folder: &Path) -> bool {
        self.files.iter().all(|file| folder.join(file).exists())
    }
}

/// The folder with the modules for this compiler.
///
/// # Errors
/// There is no such compiler, it is none that we know, or it does not take the source.
pub fn modules(prefix: &Path, compiler: &[OsString]) -> Result<PathBuf> {
    let version = version(compiler)?;
    let path = prefix.join(SOURCE);
    let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let (name, source) = (folder_name(&version, &text), FortranSource::new(path, &text));
    let places = [Some(prefix.join("include/fortran")), cache()];
    let places: Vec<PathBuf> = places.into_iter().flatten().map(|place| place.join(&name)).collect();
    found_or_made(&places, &source, compiler).or_else(|why| {
        let temporary = env::temp_dir();
        let refused = || format!("{why:#}, and no folder for temporary files can stand in");
        let last = private_folder(&temporary, own_user()?).with_context(refused)?.join(&name);
        found_or_made(&[last], &source, compiler)
    })
}

/// The first of the places that has the modules, or else the first where they can be made.
fn found_or_made(places: &[PathBuf], source: &FortranSource, compiler: &[OsString]) -> Result<PathBuf> {
    if let Some(made) = places.iter().find(|place| source.is_made_in(place)) {
        return Ok(made.clone());
    }
    let mut refused = None;
    for place in places {
        match make(place, source, compiler) {
            Ok(()) => return Ok(place.clone()),
            Err(error) => refused = Some(error),
        }
    }
    Err(refused.context("there is no place for the modules of Fortran")?)
}

fn own_user() -> Result<u32> {
    Ok(fs::metadata("/proc/self").context("cannot find out who this user is")?.uid())
}

/// A folder in one for temporary files that is the user's alone: a compiler would believe what others put there. It is
/// made if need be.
fn private_folder(temporary: &Path, user: u32) -> Result<PathBuf> {
    let folder = temporary.join(format!("weft-fortran-{user}"));
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(error).with_context(|| format!("cannot make {}", folder.display()));
        }
        _ => {}
    }
    let (found, above) = (fs::symlink_metadata(&folder)?, fs::metadata(temporary)?);
    let is_private = found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0;
    // Nobody else may put another one in its place.
    let is_kept = [0, user].contains(&above.uid()) && (above.mode() & 0o022 == 0 || above.mode() & 0o1000 != 0);
    if !is_private || !is_kept {
        bail!("{} is not a folder that is this user's alone", folder.display());
    }
    Ok(folder)
}

/// What the compiler says of itself.
fn version(compiler: &[OsString]) -> Result<String> {
    let (program, rest) = compiler.split_first().context("the command line names a compiler")?;
    let output = match Command::new(program).args(rest).arg("--version").output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
            "there is no Fortran compiler {}; install gfortran (Debian: apt-get install gfortran), or set WEFT_FC to one",
            program.display()
        ),
        output => output.with_context(|| format!("cannot start the compiler {program:?}"))?,
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = text.lines().next().unwrap_or_default().trim();
    if !first.starts_with("GNU Fortran") {
        bail!(
            "{} is not gfortran (it says {first:?}); set WEFT_FC to a gfortran of version 10 or later",
            program.display()
        );
    }
    Ok(first.to_owned())
}

/// One name for each compiler and source.
fn folder_name(version: &str, source: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    (version, source, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
    let number = version.rsplit(' ').next().unwrap_or_default();
    format!("gfortran-{number}-{:016x}", hasher.finish())
}

/// Where a user keeps what can be made again.
fn cache() -> Option<PathBuf> {
    let folder = |name: &str| env::var_os(name).map(PathBuf::from);
    cache_in(folder("XDG_CACHE_HOME"), folder("HOME"))
}

/// A relative path is not looked at, as the XDG base directory specification says: it is another folder for every
/// folder that a compiler is called in.
fn cache_in(cache: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    let cache = cache.filter(absolute).or_else(|| Some(home.filter(absolute)?.join(".cache")))?;
    Some(cache.join("weft/fortran"))
}

/// Beside its place, with a name that no other process uses.
fn fresh_name(place: &Path) -> PathBuf {
    let mut name = place.as_os_str().to_owned();
    name.push(format!(".{}", process::id()));
    name.into()
}

/// Makes the modules beside their place and renames them there, so that whoever finds one finds all of it. A folder
/// that is there and has lost some gets all of them again, one by one: somebody may be reading them.
fn make(place: &Path, source: &FortranSource, compiler: &[OsString]) -> Result<()> {
    let fresh = fresh_name(place);
    fs::create_dir_all(&fresh).with_context(|| format!("cannot make {}", fresh.display()))?;
    let made = compile(&fresh, &source.path, compiler);
    // Another one may have been quicker.
    if made.is_err() || fs::rename(&fresh, place).is_err() {
        let is_wanted = made.is_ok() && !source.is_made_in(place);
        for file in source.files.iter().filter(|_| is_wanted) {
            let _ = fs::rename(fresh.join(file), place.join(file));
        }
        let _ = fs::remove_dir_all(&fresh);
    }
    made?;
    if source.is_made_in(place) { Ok(()) } else { bail!("cannot make {}", place.display()) }
}

fn compile(folder: &Path, source: &Path, compiler: &[OsString]) -> Result<()> {
    let mut command = Command::new(&compiler[0]);
    let output = command.args(&compiler[1..]).arg("-fsyntax-only").arg("-J").arg(folder).arg(source).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().find(|line| line.contains("Error")).unwrap_or("it gave no reason");
        bail!("the compiler makes no modules of {}: {line}", source.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn each_version_and_each_source_has_a_folder_of_its_own() {
        let one = folder_name("GNU Fortran (Debian 12.2.0-14) 12.2.0", b"source");
        assert!(one.starts_with("gfortran-12.2.0-"), "{one}");
        assert_ne!(one, folder_name("GNU Fortran (Debian 12.2.0-15) 12.2.0", b"source"));
        assert_ne!(one, folder_name("GNU Fortran (Debian 12.2.0-14) 12.2.0", b"other"));
    }

    #[test]
    fn what_is_being_made_lies_beside_its_place_under_the_whole_name() {
        let place = Path::new("/cache/gfortran-12.2.0-0123");
        let name = format!("/cache/gfortran-12.2.0-0123.{}", process::id());
        assert_eq!(fresh_name(place), PathBuf::from(name));
    }

    #[test]
    fn a_relative_folder_is_no_cache() {
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(cache_in(path("/c"), path("/h")), path("/c/weft/fortran"));
        for none in [None, path(""), path("c")] {
            assert_eq!(cache_in(none.clone(), path("/h")), path("/h/.cache/weft/fortran"));
            assert_eq!(cache_in(none, path("h")), None);
        }
    }

    fn mode(folder: &Path, mode: u32) {
        fs::set_permissions(folder, fs::Permissions::from_mode(mode)).expect("our folder");
    }

    #[test]
    fn a_temporary_folder_is_the_user_s_alone_or_is_refused() {
        let base = tempfile::TempDir::new().expect("there is room for a folder");
        let us = own_user().expect("a user");
        let of = |user| private_folder(base.path(), user).map_err(|error| error.to_string());
        let folder = of(us).expect("ours");
        assert_eq!(fs::metadata(&folder).expect("made").mode() & 0o777, 0o700);
        assert_eq!(of(us), Ok(folder.clone()), "it is there already");
        assert!(of(us + 1).unwrap_err().contains("this user's alone"), "of another user");
        mode(&folder, 0o770);
        assert!(of(us).is_err(), "others may write");
        mode(&folder, 0o700);
        mode(base.path(), 0o777);
        assert!(of(us).is_err(), "others may replace it");
        mode(base.path(), 0o1777);
        assert_eq!(of(us), Ok(folder.clone()), "as /tmp is");
        let elsewhere = base.path().join("elsewhere");
        fs::rename(&folder, &elsewhere).expect("our folder");
        std::os::unix::fs::symlink(&elsewhere, &folder).expect("a link");
        assert!(of(us).is_err(), "a link");
    }

    /// The compiler is called where the user is, so its name may be relative to that.
    #[test]
    fn modules_are_made_by_a_compiler_with_a_relative_name() {
        let folder = tempfile::TempDir::new().expect("there is room for a folder");
        let (place, compiler) = (folder.path().join("made.1.2"), folder.path().join("compiler"));
        // A shell: a program written here could not be started while another test's child has it open for writing.
        std::os::unix::fs::symlink("/bin/sh", &compiler).expect("a compiler");
        let script = "[ \"$0\" = -fsyntax-only ] && [ \"$1\" = -J ] && touch \"$2/mpi_f08.mod\"";
        let here = env::current_dir().expect("there is one");
        let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
        let relative = up.join(compiler.strip_prefix("/").expect("absolute")).into_os_string();
        let source = FortranSource::new("source.f90".into(), b"module mpi_f08\n");
        make(&place, &source, &[relative, "-c".into(), script.into()]).expect("made");
        assert!(place.join("mpi_f08.mod").exists());
        let left = fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left, 2, "the compiler and the modules");
    }

    #[test]
    fn a_folder_that_has_lost_some_modules_gets_them_again() {
        let folder = tempfile::TempDir::new().expect("there is room for a folder");
        let place = folder.path().join("made");
        let source = FortranSource::new("source.f90".into(), b"! Interfaces\nmodule one\nend module one\nmodule two\n");
        assert_eq!(source.files, ["one.mod", "two.mod"]);
        let script = "touch \"$2/one.mod\" \"$2/two.mod\"";
        let compiler = ["/bin/sh".into(), "-c".into(), script.into()];
        let places = [place.clone()];
        for lost in [&[][..], &["one.mod"], &["two.mod"], &["one.mod", "two.mod"]] {
            lost.iter().for_each(|file| fs::remove_file(place.join(file)).expect("it was made"));
            assert_eq!(found_or_made(&places, &source, &compiler).expect("made"), place);
            assert!(["one.mod", "two.mod"].iter().all(|file| place.join(file).exists()), "{lost:?}");
        }
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing else is left");
    }

    #[test]
    fn a_compiler_that_is_missing_or_another_one_is_named() {
        let refused = |compiler: &str| version(&[compiler.into()]).unwrap_err().to_string();
        let missing = refused("no-such-fortran");
        assert!(missing.contains("no-such-fortran") && missing.contains("apt-get install gfortran"), "{missing}");
        assert!(refused("true").contains("true is not gfortran"), "{}", refused("true"));
    }
}
