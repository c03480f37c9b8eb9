//! The boundary of the MPI library as other compilers see it: exported names, version, sizes and values.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
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

/// Names of the functions that `mpi.h` declares.
fn declared() -> Vec<String> {
    let header = fs::read_to_string(root().join("interfaces/mpi/include/mpi.h")).expect("the header is committed");
    let name = |line: &str| {
        let (head, _) = line.split_once('(').filter(|_| line.ends_with(");") && !line.starts_with("typedef"))?;
        Some(head.rsplit([' ', '*']).next()?.to_owned())
    };
    let mut names: Vec<String> = header.lines().filter_map(name).collect();
    names.sort();
    names
}

#[test]
fn exactly_the_functions_of_the_abi_are_exported_under_both_names() {
    let symbols = text("nm", &["-D", "--defined-only", &library()]);
    let mut exported: Vec<String> = symbols
        .lines()
        .filter_map(|line| line.rsplit(' ').next())
        .filter(|name| name.starts_with("MPI") || name.starts_with("PMPI"))
        .map(str::to_owned)
        .collect();
    exported.sort();
    assert_eq!(exported.iter().filter(|name| name.starts_with("MPI_")).count(), 664);
    assert_eq!(exported.iter().filter(|name| name.starts_with("PMPI_")).count(), 664);
    assert_eq!(exported.iter().filter(|name| name.starts_with("MPIX_")).count(), 10, "failure mitigation");
    assert_eq!(exported.len(), 1348);
    assert_eq!(exported, declared());
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
        compile(compiler, &[&format!("-std={standard}")], &source, &folder.path().join("header"));
    }
}
