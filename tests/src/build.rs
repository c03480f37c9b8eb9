//! The programs under test, built once for each test program.

use crate::root;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Once, OnceLock};

/// The directory of the profile that this test was built with, such as `target/debug`.
pub fn profile_directory() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own file");
    test.ancestors().nth(2).expect("tests are in a profile's deps directory").to_path_buf()
}

/// The directory above all profiles.
pub fn target_directory() -> PathBuf {
    profile_directory().parent().expect("a profile's directory is in the target directory").to_path_buf()
}

/// The `weft` command, brought up to date.
pub fn weft() -> &'static Path {
    static WEFT: OnceLock<PathBuf> = OnceLock::new();
    WEFT.get_or_init(|| binary("weft"))
}

/// Our native library under the name by which programs load it, in a folder; brought up to date.
///
/// # Panics
/// When it cannot be built.
pub fn native_library() -> PathBuf {
    build_all();
    let folder = profile_directory().join("c-libraries");
    std::fs::create_dir_all(&folder).expect("a place for libraries");
    let (library, link) = (folder.join("libweft.so.1"), folder.join(format!("{}", std::process::id())));
    std::os::unix::fs::symlink(profile_directory().join("libweft_native.so"), &link).expect("a name that is new");
    std::fs::rename(link, &library).expect("same file system");
    library
}

/// An example program, brought up to date.
pub fn example(name: &str) -> PathBuf {
    build_all();
    profile_directory().join("examples").join(name)
}

/// A program, brought up to date.
pub fn binary(name: &str) -> PathBuf {
    build_all();
    profile_directory().join(name)
}

/// An example that is a library for C programs, brought up to date.
pub fn example_library(name: &str) -> PathBuf {
    example(&format!("lib{name}.so"))
}

/// Builds what libraries, programs and examples there are, for the profile that this test was built with. All at once,
/// so that nothing is compiled that `cargo test --workspace` has not compiled: a choice of packages has features of its
/// own.
fn build_all() {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["build", "--quiet", "--workspace", "--lib", "--bins", "--examples"]).current_dir(root());
        if profile_directory().ends_with("release") {
            command.arg("--release");
        }
        let status = command.status().expect("cargo can be started");
        assert!(status.success(), "cargo build failed");
    });
}

/// Compiles `source` (a path below the repository) with `compiler`, and answers the program.
pub fn c_program(compiler: &Path, source: &str) -> PathBuf {
    let source = root().join(source);
    let name = source.file_stem().expect("a source has a name").to_string_lossy().into_owned();
    let directory = tempfile::Builder::new().prefix("c-").tempdir_in(profile_directory()).expect("a place to build in");
    let program = directory.path().join(&name);
    let output = Command::new(compiler).args(["-O1", "-Wall", "-o"]).arg(&program).arg(&source).output();
    let output = output.unwrap_or_else(|error| panic!("{} cannot be started: {error}", compiler.display()));
    assert!(output.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&output.stderr));
    // Renamed into place, so that tests that build the same program at once do not run half of it.
    let place = profile_directory().join("c-programs").join(digest(compiler));
    std::fs::create_dir_all(&place).expect("a place for C programs");
    let program_in_place = place.join(&name);
    std::fs::rename(&program, &program_in_place).expect("same file system");
    program_in_place
}

/// Compiles all C files of `folder` (a path below the repository) into one program with threads, and answers the
/// program, which has the folder's name.
///
/// # Panics
/// When they cannot be compiled.
pub fn c_folder(folder: &str) -> PathBuf {
    c_folders(folder, &[])
}

/// The same for a program that shares the files of the folders `shared` with others.
///
/// # Panics
/// When they cannot be compiled.
pub fn c_folders(folder: &str, shared: &[&str]) -> PathBuf {
    let name = Path::new(folder).file_name().expect("a folder has a name");
    let program = profile_directory().join(name);
    let output = Command::new("cc")
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
        .arg(&program)
        .args(c_files(folder))
        .args(shared.iter().flat_map(|folder| c_files(folder)))
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn c_files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(folder)).expect("sources");
    let files = entries.map(|entry| entry.expect("a file").path());
    files.filter(|path| path.extension().is_some_and(|ending| ending == "c")).collect()
}

/// Keeps the programs of different compilers apart.
fn digest(compiler: &Path) -> String {
    compiler.to_string_lossy().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}
