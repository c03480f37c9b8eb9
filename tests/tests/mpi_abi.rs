//! The boundary of the MPI library as other compilers see it: exported names, version, sizes and values.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use weft_tests::peers::Peer;
use weft_tests::{root, tree};

fn text(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("cannot start {program}: {error}"));
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("names are ASCII")
}

fn library() -> String {
    tree().join("lib/libmpi_abi.so.1").to_str().expect("paths are UTF-8").to_owned()
}

/// Names of the functions that `mpi.h` declares: those of the ABI, and those that are in the library for Fortran.
fn declared() -> [Vec<String>; 2] {
    let header = fs::read_to_string(root().join("interfaces/mpi/include/mpi.h")).expect("the header is committed");
    let (abi, fortran) = header.split_once("/* Fortran seen from C").expect("the header says where Fortran begins");
    let name = |line: &str| {
        let (head, _) = line.split_once('(').filter(|_| line.ends_with(");") && !line.starts_with("typedef"))?;
        Some(head.rsplit([' ', '*']).next()?.to_owned())
    };
    [abi, fortran].map(|part| {
        let mut names: Vec<String> = part.lines().filter_map(name).collect();
        names.sort();
        names
    })
}

/// The names of MPI for C that a library exports as symbols of these kinds.
fn exported(library: &str, kinds: &str) -> Vec<String> {
    let symbols = text("nm", &["-D", "--defined-only", library]);
    let mut names: Vec<String> = symbols
        .lines()
        .filter_map(|line| line.split_once(' ')?.1.split_once(' '))
        .filter(|(kind, name)| kinds.contains(kind) && (name.starts_with("MPI") || name.starts_with("PMPI")))
        .map(|(_, name)| name.to_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn what_c_needs_of_fortran_beside_the_abi_is_in_the_library_for_fortran() {
    let library = tree().join("lib/libweft_mpifort.so.1");
    let [_, of_fortran] = declared();
    assert_eq!(of_fortran.len(), 12);
    assert_eq!(exported(library.to_str().expect("paths are UTF-8"), "T"), of_fortran);
}

#[test]
fn exactly_the_functions_of_the_abi_are_exported_under_both_names() {
    let (exported, [declared, _]) = (exported(&library(), "TWDBRVA"), declared());
    assert_eq!(exported.iter().filter(|name| name.starts_with("MPI_")).count(), 662);
    assert_eq!(exported.iter().filter(|name| name.starts_with("PMPI_")).count(), 662);
    assert_eq!(exported.iter().filter(|name| name.starts_with("MPIX_")).count(), 10, "failure mitigation");
    assert_eq!(exported.len(), 1344);
    assert_eq!(exported, declared);
}

#[test]
fn the_library_has_the_name_that_the_standard_gives_it() {
    let dynamic = text("readelf", &["-dW", &library()]);
    let name = dynamic.lines().find(|line| line.contains("(SONAME)")).expect("there is a SONAME");
    assert!(name.ends_with("[libmpi_abi.so.1]"), "{name}");
}

fn compile(compiler: &str, flags: &[&str], source: &Path, program: &Path) {
    let mut command = Command::new(tree().join("bin").join(compiler));
    command.args(flags).args(["-Wall", "-Wextra", "-Werror", "-pedantic"]).arg(source).arg("-o").arg(program);
    let output = command.output().expect("the compiler command can be started");
    assert!(output.status.success(), "{compiler} {flags:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn sizes_offsets_and_values_are_those_of_the_abi() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = folder.path().join("constants");
    compile("mpicc", &["-std=c99"], &root().join("tests/c/mpi/abi_constants.c"), &program);
    assert_eq!(text(program.to_str().expect("paths are UTF-8"), &[]), "ok\n");
}

#[test]
fn the_header_is_good_for_old_and_new_c_and_for_cpp() {
    let folder = TempDir::new().expect("there is room for a folder");
    for (compiler, standard, suffix) in
        [("mpicc", "c99", "c"), ("mpicc", "c17", "c"), ("mpicxx", "c++11", "cpp"), ("mpicxx", "c++20", "cpp")]
    {
        let source = folder.path().join("header").with_extension(suffix);
        fs::write(&source, "#include <mpi.h>\nint main(void) { return MPI_VERSION != 5; }\n")
            .expect("the folder is writable");
        let standard = format!("-std={standard}");
        compile(compiler, &[&standard], &source, &folder.path().join("header"));
        fs::write(
            &source,
            "#define WEFT_NO_FINT\n#include <mpi.h>\ntypedef char MPI_Fint;\nint main(void) { return 0; }\n",
        )
        .expect("the folder is writable");
        compile(compiler, &[&standard], &source, &folder.path().join("header"));
    }
}

/// Rank 0 says whose library it found, once all ranks have added up the same.
const EITHER: &str = r#"
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int rank, size, sum, length;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Get_library_version(text, &length);
    if (rank == 0 && sum == size * (size - 1) / 2)
        printf("%d ranks on %.5s\n", size, text);
    return MPI_Finalize();
}
"#;

#[test]
fn a_program_runs_on_the_library_of_mpich_or_on_ours_whichever_it_was_compiled_for() {
    let folder = TempDir::new().expect("there is room for a folder");
    let source = folder.path().join("either.c");
    fs::write(&source, EITHER).expect("the folder is writable");
    let (weft, mpiexec) = (tree().join("bin/weft"), Peer::Mpich.command("mpiexec"));
    for compiler in [Peer::Mpich.command("mpicc_abi"), tree().join("bin/mpicc")] {
        let program = folder.path().join("either");
        let compiled = Command::new(&compiler).arg(&source).arg("-o").arg(&program).status();
        assert!(compiled.expect("the compiler command can be started").success(), "{}", compiler.display());
        let on = |command: &mut Command, ranks: &str| {
            let output = command.args(["-n", ranks]).arg(&program).output().expect("it can be started");
            assert!(output.status.success(), "{compiler:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let ours = on(Command::new(&weft).arg("run").env_remove("LD_LIBRARY_PATH"), "3");
        assert_eq!(ours, "3 ranks on Weft \n", "{}", compiler.display());
        let library = mpiexec.parent().expect("bin").with_file_name("lib");
        let theirs = on(Command::new(&mpiexec).env("LD_LIBRARY_PATH", library), "2");
        assert_eq!(theirs, "2 ranks on MPICH\n", "{}", compiler.display());
    }
}
