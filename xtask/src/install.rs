//! `cargo xtask install` and `cargo xtask tree`: commands, library, header and manual under one directory.

mod interfaces;
mod mpi_pages;
mod mpi_text;
mod overview;
mod pages;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::command::{ToolProgram, cargo, root, target};

/// The names under which people call us, beside `weft`. Which one was called decides what is done.
const NAMES: [&str; 9] = ["mpicc", "mpicxx", "mpic++", "mpifort", "mpif90", "mpif77", "mpiexec", "mpirun", "parallel"];

const LIBRARY: &str = "libmpi_abi.so";
const LIBRARY_VERSIONED: &str = "libmpi_abi.so.1";

/// The library of the MPICH ABI, and what it is called by programs: MPICH and Intel MPI use the first name, Debian's
/// MPICH the second one.
const MPICH: &str = "libmpi.so";
const MPICH_NAMES: [&str; 2] = ["libmpi.so.12", "libmpich.so.12"];

/// What Fortran programs call, over the library of the standard ABI.
const FORTRAN: &str = "libweft_mpifort.so";
const FORTRAN_VERSIONED: &str = "libweft_mpifort.so.1";

/// The files of the Python package.
const PYTHON: [&str; 5] = ["__init__.py", "calls.py", "objects.py", "processes.py", "standard.py"];

/// Preloaded by `weft sock`; nobody links with it, so it has no version.
const SOCKETS: &str = "libweft_sockets.so";

/// The profile of the preloaded library: as the release, but a thread can be cancelled in it.
const PRELOAD: &str = "preload";

/// What becomes of the symbols of programs and libraries, which are four fifths of what is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Symbols {
    /// They are not installed.
    Left,
    /// In a file of their own in `.debug` beside what they belong to, where gdb and valgrind look for them.
    Beside,
}

/// Builds for release and installs under `prefix`.
pub fn run(prefix: &Path, symbols: Symbols) -> Result<()> {
    let prefix = std::path::absolute(prefix)?;
    fill(&prefix, "release", symbols)?;
    println!("installed; put {} first in PATH", prefix.join("bin").display());
    Ok(())
}

/// The same under `target/weft`; returns that directory.
pub fn tree(quick: bool) -> Result<PathBuf> {
    let prefix = target().join("weft");
    fill(&prefix, if quick { "dev" } else { "release" }, Symbols::Beside)?;
    Ok(prefix)
}

fn fill(prefix: &Path, profile: &str, symbols: Symbols) -> Result<()> {
    let libraries = ["weft-mpi-standard", "weft-mpi-mpich", "weft-mpi-fortran"];
    let interfaces = interfaces::ALL.iter().map(|interface| interface.package);
    let named = libraries.into_iter().chain(interfaces).flat_map(|name| ["-p", name]);
    cargo(&["build", "--profile", profile, "-p", "weft", "-p", "weftd"]).args(named).run()?;
    let preload = if profile == "dev" { profile } else { PRELOAD };
    cargo(&["build", "--profile", preload, "-p", "weft-sockets"]).run()?;
    let built = folder_of(profile);
    commands(&built, &prefix.join("bin"), symbols)?;
    library(&built, &prefix.join("lib"), symbols)?;
    place_stripped(&folder_of(preload).join(SOCKETS), &prefix.join("lib").join(SOCKETS), symbols)?;
    let headers = root().join("interfaces/mpi");
    place(&headers.join("include/mpi.h"), &prefix.join("include/mpi.h"))?;
    place(&headers.join("mpich/include/mpi.h"), &prefix.join("include/mpich/mpi.h"))?;
    fortran_sources(&headers, &prefix.join("include"))?;
    pkg_config(&prefix.join("lib/pkgconfig"))?;
    interfaces::ALL.iter().try_for_each(|interface| place_interface(interface, &built, prefix, symbols))?;
    python(prefix)?;
    mpi_pages::write(&prefix.join("share/man"))?;
    manual(prefix)
}

/// Where cargo puts what it builds with a profile.
fn folder_of(profile: &str) -> PathBuf {
    target().join(if profile == "dev" { "debug" } else { profile })
}

/// `mpif.h` and the source of the modules, which `weft fc` compiles for the compiler that it finds.
fn fortran_sources(mpi: &Path, include: &Path) -> Result<()> {
    for (name, text) in weft_mpi_table::fortran::write(&mpi.join("abi")) {
        let folder = if name == "mpif.h" { include.to_owned() } else { include.join("fortran") };
        fs::create_dir_all(&folder)?;
        let fresh = folder.join(name).with_extension("new");
        fs::write(&fresh, text).with_context(|| format!("cannot write {}", fresh.display()))?;
        fs::rename(&fresh, folder.join(name))?;
    }
    Ok(())
}

fn commands(built: &Path, bin: &Path, symbols: Symbols) -> Result<()> {
    ["weft", "weftd"].iter().try_for_each(|name| place_stripped(&built.join(name), &bin.join(name), symbols))?;
    NAMES.iter().try_for_each(|name| link("weft", &bin.join(name)))
}

fn library(built: &Path, lib: &Path, symbols: Symbols) -> Result<()> {
    place_stripped(&built.join(LIBRARY), &lib.join(LIBRARY_VERSIONED), symbols)?;
    link(LIBRARY_VERSIONED, &lib.join(LIBRARY))?;
    place_stripped(&built.join(FORTRAN), &lib.join(FORTRAN_VERSIONED), symbols)?;
    link(FORTRAN_VERSIONED, &lib.join(FORTRAN))?;
    let [mpich, debian] = MPICH_NAMES;
    place_stripped(&built.join(MPICH), &lib.join(mpich), symbols)?;
    link(mpich, &lib.join(debian))?;
    link(mpich, &lib.join(MPICH))
}

fn place_interface(
    interface: &interfaces::InterfaceLibrary,
    built: &Path,
    prefix: &Path,
    symbols: Symbols,
) -> Result<()> {
    let lib = prefix.join("lib");
    let [name, links @ ..] = interface.names else { bail!("{} has no name", interface.package) };
    place_stripped(&built.join(interface.built), &lib.join(name), symbols)?;
    links.iter().try_for_each(|at| link(name, &lib.join(at)))?;
    let include = root().join(interface.folder()).join("include");
    for header in interface.headers {
        place(&include.join(header), &prefix.join("include").join(header))?;
    }
    let manual = prefix.join("share/man/man3");
    match pages::OWN.iter().find(|own| interface.headers.contains(&own.header)) {
        Some(own) => pages::write(own, &fs::read_to_string(include.join(own.header))?, &manual)?,
        None if interface.headers.is_empty() => {}
        None => overview::write(interface, &include, &manual)?,
    }
    let text = pkg_config_text(interface.package, interface.about, interface.linked);
    fs::write(lib.join("pkgconfig").join(format!("{}.pc", interface.package)), text)?;
    Ok(())
}

/// The Python package.
fn python(prefix: &Path) -> Result<()> {
    let (from, to) = (root().join("interfaces/native/python/weft"), prefix.join("lib/python/weft"));
    PYTHON.iter().try_for_each(|file| place(&from.join(file), &to.join(file)))
}

/// `weft-mpi.pc`, and `mpi.pc` for those who look for any MPI.
fn pkg_config(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let text = pkg_config_text("weft-mpi", "MPI 5.0 standard ABI over user-level communication", "mpi_abi");
    fs::write(folder.join("weft-mpi.pc"), text)?;
    link("weft-mpi.pc", &folder.join("mpi.pc"))
}

/// The prefix follows from where the file lies, so that the whole directory can be moved.
fn pkg_config_text(name: &str, about: &str, linked: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "prefix=${{pcfiledir}}/../..\n\
         libdir=${{prefix}}/lib\n\
         includedir=${{prefix}}/include\n\
         \n\
         Name: {name}\n\
         Description: {about}\n\
         Version: {version}\n\
         Cflags: -I${{includedir}}\n\
         Libs: -L${{libdir}} -l{linked} -Wl,-rpath,${{libdir}} -Wl,--enable-new-dtags\n"
    )
}

/// Manual pages and completions, which the command writes itself: it knows its options.
fn manual(prefix: &Path) -> Result<()> {
    let weft = prefix.join("bin/weft");
    let man = prefix.join("share/man/man1");
    fs::create_dir_all(&man)?;
    ToolProgram::new(&weft).args([Path::new("man"), &man]).run()?;
    let man = prefix.join("share/man/man8");
    fs::create_dir_all(&man)?;
    ToolProgram::new(prefix.join("bin/weftd")).args([Path::new("man"), &man]).run()?;
    let completions = [
        ("bash", "share/bash-completion/completions/weft"),
        ("zsh", "share/zsh/site-functions/_weft"),
        ("fish", "share/fish/vendor_completions.d/weft.fish"),
    ];
    for (shell, path) in completions {
        let path = prefix.join(path);
        fs::create_dir_all(path.parent().expect("the path has a folder"))?;
        fs::write(path, ToolProgram::new(&weft).args(["completions", shell]).output()?)?;
    }
    Ok(())
}

/// Copies a file beside its place and renames it there, so that a program that runs from the old one is not disturbed.
fn place(from: &Path, to: &Path) -> Result<()> {
    place_by(from, to, |fresh| {
        fs::copy(from, fresh).map(drop).with_context(|| format!("cannot write {}", fresh.display()))
    })
}

/// The same for a program or a library, without its symbols.
fn place_stripped(from: &Path, to: &Path, symbols: Symbols) -> Result<()> {
    let mut options: Vec<OsString> = vec!["--strip-all".into()];
    if symbols == Symbols::Beside {
        let apart = symbols_of(to);
        place_by(from, &apart, |fresh| objcopy(&["--only-keep-debug".into()], from, fresh))?;
        let mut link = OsString::from("--add-gnu-debuglink=");
        link.push(&apart);
        options.push(link);
    }
    place_by(from, to, |fresh| objcopy(&options, from, fresh))
}

/// Where the symbols of an installed file are.
fn symbols_of(installed: &Path) -> PathBuf {
    let mut name = installed.file_name().expect("a file has a name").to_owned();
    name.push(".debug");
    installed.with_file_name(".debug").join(name)
}

/// It comes with every linker that a C compiler uses here.
fn objcopy(options: &[OsString], from: &Path, to: &Path) -> Result<()> {
    ToolProgram::new("objcopy").args(options).args([from, to]).run()
}

/// Has `write` make a file beside its place, and renames it there.
fn place_by(from: &Path, to: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if !from.is_file() {
        bail!("{} is missing; the build should have made it", from.display());
    }
    fs::create_dir_all(to.parent().expect("the path has a folder"))?;
    let fresh = to.with_extension("new");
    write(&fresh)?;
    fs::rename(&fresh, to).with_context(|| format!("cannot write {}", to.display()))
}

/// A symbolic link, in place of whatever had that name.
fn link(points_to: &str, at: &Path) -> Result<()> {
    if at.symlink_metadata().is_ok() {
        fs::remove_file(at).with_context(|| format!("cannot replace {}", at.display()))?;
    }
    symlink(points_to, at).with_context(|| format!("cannot make the link {}", at.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placing_and_linking_twice_leaves_the_newest() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("deep/to"));
        for text in ["one", "two"] {
            fs::write(&from, text).unwrap();
            place(&from, &to).unwrap();
            link("to", &folder.path().join("deep/link")).unwrap();
        }
        assert_eq!(fs::read_to_string(folder.path().join("deep/link")).unwrap(), "two");
        assert_eq!(fs::read_dir(folder.path().join("deep")).unwrap().count(), 2);
        assert!(place(&folder.path().join("absent"), &to).is_err());
    }

    #[test]
    fn installed_programs_run_without_symbols_which_lie_beside_them_where_they_are_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let [source, built] = ["main.c", "built"].map(|name| folder.path().join(name));
        fs::write(&source, "int a_symbol(void) { return 0; } int main(void) { return a_symbol(); }").unwrap();
        ToolProgram::new("cc").args([Path::new("-g"), &source, Path::new("-o"), &built]).run().unwrap();
        let named =
            |file: &Path| ToolProgram::new("nm").args([file]).output().is_ok_and(|text| text.contains("a_symbol"));
        assert!(named(&built));
        for (symbols, apart) in [(Symbols::Left, false), (Symbols::Beside, true)] {
            let installed = folder.path().join(format!("{symbols:?}/bin/program"));
            place_stripped(&built, &installed, symbols).unwrap();
            ToolProgram::new(&installed).run().unwrap();
            assert_eq!((named(&installed), named(&symbols_of(&installed))), (false, apart));
            let link =
                ToolProgram::new("readelf").args(["--string-dump=.gnu_debuglink".as_ref(), &*installed]).output();
            assert_eq!(link.unwrap().contains("program.debug"), apart);
        }
    }

    #[test]
    fn the_prefix_of_the_pkg_config_file_follows_its_place() {
        let folder = tempfile::tempdir().unwrap();
        pkg_config(folder.path()).unwrap();
        let text = fs::read_to_string(folder.path().join("mpi.pc")).unwrap();
        assert!(text.contains("prefix=${pcfiledir}/../..\n") && text.contains("-L${libdir} -lmpi_abi"), "{text}");
    }
}
