//! The MPICH ABI as other compilers and prebuilt programs see it: exported names, sizes and values, calls, and which
//! library a program loads under `weft run`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use weft_tests::{root, tree};

fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"))
}

fn text(command: &mut Command) -> String {
    let output = output(command);
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn weft(arguments: &[&str]) -> Command {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(arguments).env_remove("LD_LIBRARY_PATH");
    command
}

fn compiled(name: &str, standard: &str, folder: &Path) -> PathBuf {
    let program = folder.join(name);
    let source = root().join("tests/c/mpi").join(name).with_extension("c");
    let mut command = weft(&["cc", "--abi", "mpich", standard, "-Wall", "-Wextra", "-Werror"]);
    text(command.arg(source).arg("-o").arg(&program));
    program
}

const FOREIGN: &str = r#"
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(text, &length);
    printf("%s, %d ranks\n", text, size);
    return MPI_Finalize();
}
"#;

/// A program that names the library `libmpi.so.12` and no directory, as those do that are installed with another MPI;
/// or one with these flags for the linker.
fn foreign(folder: &Path, flags: &[String]) -> PathBuf {
    let (source, program) = (folder.join("foreign.c"), folder.join("foreign"));
    fs::write(&source, FOREIGN).expect("the folder is writable");
    let (include, library) = (tree().join("include/mpich"), tree().join("lib"));
    let mut command = Command::new("cc");
    command.arg("-I").arg(include).arg(&source).arg("-o").arg(&program).arg("-L").arg(library).arg("-lmpi").args(flags);
    text(&mut command);
    program
}

#[test]
fn sizes_offsets_and_values_are_those_of_the_abi() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled("mpich_constants", "-std=c99", folder.path());
    assert_eq!(text(&mut Command::new(program)), "ok\n");
}

#[test]
fn calls_convert_what_they_get_and_give() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled("mpich_calls", "-std=gnu11", folder.path());
    for ranks in ["1", "2", "3", "5"] {
        let mut command = weft(&["run", "--timeout", "120", "-n", ranks]);
        assert_eq!(text(command.arg(&program)), "ok\n", "{ranks} ranks");
    }
}

#[test]
fn events_of_tools_speak_the_abi() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled("tool_events", "-std=gnu11", folder.path());
    assert_eq!(text(weft(&["run", "--timeout", "120", "-n", "2"]).arg(&program)), "ok\n");
}

#[test]
fn every_name_that_the_header_declares_is_exported() {
    let symbols = text(Command::new("nm").args(["-D", "--defined-only"]).arg(tree().join("lib/libmpi.so.12")));
    let exported: Vec<&str> = symbols.lines().filter_map(|line| line.rsplit(' ').next()).collect();
    let header =
        fs::read_to_string(root().join("interfaces/mpi/mpich/include/mpi.h")).expect("the header is committed");
    let name = |line: &str| {
        let (head, _) = line.split_once('(').filter(|_| line.ends_with(");") && !line.starts_with("typedef"))?;
        Some(head.rsplit([' ', '*']).next()?.to_owned())
    };
    let declared: Vec<String> = header.lines().filter_map(name).collect();
    assert!(declared.len() > 1328, "{} names", declared.len());
    for name in
        declared.iter().map(String::as_str).chain(["MPI_UNWEIGHTED", "MPI_WEIGHTS_EMPTY", "MPI_F_STATUS_IGNORE"])
    {
        assert!(exported.contains(&name), "{name} is not exported");
    }
    let others = exported.iter().filter(|name| !name.starts_with("MPI") && !name.starts_with("PMPI"));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn the_library_has_every_name_by_which_programs_ask_for_it() {
    let dynamic = text(Command::new("readelf").arg("-dW").arg(tree().join("lib/libmpi.so.12")));
    assert!(dynamic.lines().any(|line| line.contains("(SONAME)") && line.ends_with("[libmpi.so.12]")), "{dynamic}");
    let file = |name: &str| tree().join("lib").join(name).canonicalize().expect(name);
    assert_eq!([file("libmpich.so.12"), file("libmpi.so")], [file("libmpi.so.12"), file("libmpi.so.12")]);
}

#[test]
fn the_header_is_good_for_old_and_new_c_and_for_cpp() {
    let folder = TempDir::new().expect("there is room for a folder");
    for (compiler, standard, suffix) in
        [("cc", "c99", "c"), ("cc", "c17", "c"), ("c++", "c++11", "cpp"), ("c++", "c++20", "cpp")]
    {
        let source = folder.path().join("header").with_extension(suffix);
        fs::write(&source, "#include <mpi.h>\nint main(void) { return sizeof(MPI_Comm) != 4; }\n").expect("writable");
        let mut command =
            weft(&[compiler, "--abi=mpich", &format!("-std={standard}"), "-Wall", "-Werror", "-pedantic"]);
        text(command.arg(&source).arg("-o").arg(folder.path().join("header")));
    }
}

#[test]
fn a_program_without_a_run_path_loads_ours_under_weft_run() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = foreign(folder.path(), &[]);
    assert!(
        !output(Command::new(&program).env_remove("LD_LIBRARY_PATH")).status.success(),
        "it finds no library alone"
    );
    let said = text(weft(&["run", "-n", "2"]).arg(&program));
    assert!(
        said.lines().count() == 2 && said.lines().all(|line| line.starts_with("Weft ") && line.ends_with(", 2 ranks")),
        "{said}"
    );
    // Ours comes before what the user's own path leads to.
    let (elsewhere, library) = (folder.path().join("elsewhere"), folder.path().join("elsewhere/libmpi.so.12"));
    fs::create_dir(&elsewhere).expect("writable");
    fs::write(&library, "no library").expect("writable");
    let said = text(weft(&["run"]).env("LD_LIBRARY_PATH", &elsewhere).arg(&program));
    assert!(said.starts_with("Weft "), "{said}");
    // Who names the path for the ranks means it.
    let named = format!("LD_LIBRARY_PATH={}", elsewhere.display());
    assert!(!output(weft(&["run", "--env", &named]).arg(&program)).status.success());
}

#[test]
fn an_rpath_that_leads_to_another_library_is_said() {
    let folder = TempDir::new().expect("there is room for a folder");
    let other = folder.path().join("other");
    fs::create_dir(&other).expect("writable");
    fs::copy(tree().join("lib/libmpi.so.12"), other.join("libmpi.so.12")).expect("writable");
    let flag = |kind: &str| vec![format!("-Wl,{kind}"), format!("-Wl,-rpath,{}", other.display())];
    let first = output(weft(&["run"]).arg(foreign(folder.path(), &flag("--disable-new-dtags"))));
    let err = String::from_utf8_lossy(&first.stderr);
    assert!(err.starts_with("weft run: ") && err.contains("RPATH") && err.contains("another libmpi.so.12"), "{err}");
    let second = output(weft(&["run"]).arg(foreign(folder.path(), &flag("--enable-new-dtags"))));
    assert_eq!(String::from_utf8_lossy(&second.stderr), "", "a RUNPATH comes after the library path");
}

#[test]
fn info_says_which_mpi_a_program_was_built_for() {
    let folder = TempDir::new().expect("there is room for a folder");
    let mpich = foreign(folder.path(), &[]);
    let said = |program: &Path| text(weft(&["info"]).arg(program));
    assert!(said(&mpich).contains("built for the MPICH ABI (libmpi.so.12); runs under weft run"));
    assert!(said(Path::new("/bin/sh")).contains("linked with no MPI library itself"));
    assert!(said(Path::new("sh")).contains("/sh: linked with no MPI library itself"), "by its name alone");
    // One that needs the library for Fortran alone.
    let (library, program) = (folder.path().join("libmpichfort.so.12"), folder.path().join("fortran"));
    let (source, one) = (folder.path().join("fortran.c"), folder.path().join("init.c"));
    fs::write(&source, "void mpi_init_(int *);\nint main(void) { mpi_init_(0); return 0; }\n").expect("writable");
    fs::write(&one, "void mpi_init_(int *error) { (void)error; }\n").expect("writable");
    text(Command::new("cc").args(["-shared", "-fPIC", "-Wl,-soname,libmpichfort.so.12", "-o"]).arg(&library).arg(&one));
    text(Command::new("cc").arg(&source).arg(&library).arg("-o").arg(&program));
    assert!(said(&program).contains("built for the MPICH ABI (libmpichfort.so.12); runs under weft run"));
    // One for Open MPI, by the name of what it was linked with.
    let (library, program) = (folder.path().join("libmpi.so.40"), folder.path().join("open"));
    let source = folder.path().join("open.c");
    fs::write(&source, "int MPI_Init(int *, void *);\nint main(void) { return MPI_Init(0, 0); }\n").expect("writable");
    let one = folder.path().join("one.c");
    fs::write(&one, "int MPI_Init(int *argc, void *argv) { return argc != argv; }\n").expect("writable");
    text(Command::new("cc").args(["-shared", "-fPIC", "-Wl,-soname,libmpi.so.40", "-o"]).arg(&library).arg(&one));
    text(Command::new("cc").arg(&source).arg(&library).arg("-o").arg(&program));
    let done = output(weft(&["info"]).arg(&program));
    let line = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        done.status.success() && line.contains("built for Open MPI (libmpi.so.40)") && line.contains("weft cc"),
        "{line}"
    );
    let refused = output(weft(&["run", "-n", "2"]).arg(&program).env("WEFT_PMIX", "off"));
    let line = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && line.contains("WEFT_PMIX=off") && line.contains("PMIx"), "{line}");
}
