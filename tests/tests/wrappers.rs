//! The compiler commands as people and build systems use them: by name, through pkg-config, through CMake.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use weft_tests::{root, tree};

fn source(name: &str) -> PathBuf {
    root().join("tests/cmake/find_mpi").join(name)
}

fn run<A: AsRef<OsStr>>(program: impl AsRef<OsStr>, arguments: impl IntoIterator<Item = A>) -> Output {
    let program = program.as_ref();
    let output = Command::new(program).args(arguments).env_remove("LD_LIBRARY_PATH").output();
    output.unwrap_or_else(|error| panic!("cannot start {program:?}: {error}"))
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The dynamic section's values with this tag, such as `NEEDED`.
fn dynamic(program: &Path, tag: &str) -> Vec<String> {
    let text = out(&run("readelf", [OsStr::new("-dW"), program.as_os_str()]));
    let lines = text.lines().filter(|line| line.contains(&format!("({tag})")));
    let value = |line: &str| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned());
    lines.filter_map(value).collect()
}

/// The program needs our library, finds it by RUNPATH, and runs alone as a job of one.
fn assert_is_ours(program: &Path, library_folder: &Path) {
    assert!(dynamic(program, "NEEDED").contains(&"libmpi_abi.so.1".to_owned()), "{:?}", dynamic(program, "NEEDED"));
    assert_eq!(dynamic(program, "RUNPATH"), [library_folder.to_str().unwrap()]);
    assert_eq!(dynamic(program, "RPATH"), Vec::<String>::new());
    assert_eq!(out(&run(program, [] as [&str; 0])), "0 of 1");
}

#[test]
fn every_name_builds_a_program_that_finds_its_library() {
    let folder = TempDir::new().unwrap();
    for (name, file) in [("mpicc", "main.c"), ("mpicxx", "main.cpp"), ("mpic++", "main.cpp")] {
        let program = folder.path().join(name);
        let arguments = [source(file).as_os_str(), OsStr::new("-o"), program.as_os_str()].map(OsStr::to_owned);
        out(&run(tree().join("bin").join(name), arguments));
        assert_is_ours(&program, &tree().join("lib"));
    }
}

#[test]
fn a_link_to_a_compiler_by_another_name_is_that_compiler() {
    let folder = TempDir::new().unwrap();
    let bin = tree().join("bin");
    std::os::unix::fs::symlink(bin.join("mpicxx"), folder.path().join("mympicxx")).unwrap();
    std::os::unix::fs::symlink("mympicxx", folder.path().join("twice")).unwrap();
    std::os::unix::fs::symlink(bin.join("mpiexec"), folder.path().join("mympiexec")).unwrap();
    let program = folder.path().join("program");
    let arguments = [source("main.cpp").as_os_str(), OsStr::new("-o"), program.as_os_str()].map(OsStr::to_owned);
    out(&run(folder.path().join("mympicxx"), arguments.clone()));
    assert_is_ours(&program, &tree().join("lib"));
    // Found in PATH, as a shell does, over a link to a link.
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let output = Command::new("twice").args(&arguments).env("PATH", &path).env_remove("LD_LIBRARY_PATH").output();
    out(&output.unwrap());
    let ranks = out(&run(folder.path().join("mympiexec"), ["-n", "2", program.to_str().unwrap()]));
    assert!(ranks.contains("1 of 2"), "{ranks}");
}

/// What `mpi.h` declares beside the ABI, used by a program of C.
const CONVERTS: &str = "
#include <mpi.h>
int main(int argc, char **argv)
{
    MPI_Status status = {1, 2, 0, {0}}, back;
    MPI_Fint raw[MPI_F_STATUS_SIZE];
    MPI_Init(&argc, &argv);
    if (MPI_Status_c2f(&status, raw) || MPI_Status_f2c(raw, &back) || back.MPI_SOURCE != 1) return 1;
    if (MPI_Status_f2c(MPI_F_STATUS_IGNORE, &back) == MPI_SUCCESS) return 2;
    return MPI_Finalize();
}
";

#[test]
fn mpicc_links_all_that_the_header_declares_and_nothing_that_is_not_used() {
    let folder = TempDir::new().unwrap();
    let (file, program) = (folder.path().join("converts.c"), folder.path().join("converts"));
    fs::write(&file, CONVERTS).unwrap();
    let compile = |source: &Path| {
        out(&run(tree().join("bin/mpicc"), [source.as_os_str(), OsStr::new("-o"), program.as_os_str()]));
        dynamic(&program, "NEEDED")
    };
    assert!(compile(&file).contains(&"libweft_mpifort.so.1".to_owned()));
    out(&run(&program, [] as [&str; 0]));
    assert!(!compile(&source("main.c")).contains(&"libweft_mpifort.so.1".to_owned()));
}

#[test]
fn compiling_and_linking_may_be_two_steps() {
    let folder = TempDir::new().unwrap();
    let (object, program) = (folder.path().join("main.o"), folder.path().join("main"));
    let weft = tree().join("bin/weft");
    let step = |language: &str, arguments: [&OsStr; 4]| {
        out(&run(&weft, [OsStr::new(language)].iter().chain(&arguments)));
    };
    step("cc", [OsStr::new("-c"), source("main.c").as_os_str(), OsStr::new("-o"), object.as_os_str()]);
    step("cc", [object.as_os_str(), OsStr::new("-O2"), OsStr::new("-o"), program.as_os_str()]);
    assert_is_ours(&program, &tree().join("lib"));
}

#[test]
fn the_compiler_answers_for_itself_and_its_exit_code_is_ours() {
    let mpicc = tree().join("bin/mpicc");
    assert_eq!(out(&run(&mpicc, ["--version"])), out(&run("cc", ["--version"])));
    assert_eq!(out(&run(tree().join("bin/weft"), ["cc", "--version"])), out(&run("cc", ["--version"])));
    let failed = run(&mpicc, ["-c", "no-such-file.c"]);
    assert_eq!(failed.status.code(), run("cc", ["-c", "no-such-file.c"]).status.code());
    assert!(!failed.status.success());
}

#[test]
fn a_compiler_that_cannot_be_started_is_named() {
    let mut mpicc = Command::new(tree().join("bin/mpicc"));
    let output = mpicc.env("WEFT_CC", "no-such-compiler").arg("a.c").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = err(&output);
    assert!(text.contains("no-such-compiler") && text.contains("WEFT_CC") && text.lines().count() == 1, "{text}");
}

#[test]
fn a_second_mpi_library_is_warned_of_in_one_line() {
    let folder = TempDir::new().unwrap();
    let output = Command::new(tree().join("bin/mpicc"))
        .arg(source("main.c"))
        .args(["-lmpich", "-o", "a.out"])
        .current_dir(&folder)
        .output()
        .unwrap();
    let text = err(&output);
    assert!(text.starts_with("weft cc: warning: -lmpich brings a second MPI library"), "{text}");
}

#[test]
fn the_installation_can_be_moved() {
    let folder = TempDir::new().unwrap();
    let moved = folder.path().canonicalize().unwrap().join("moved");
    out(&run("cp", [OsStr::new("-a"), tree().as_os_str(), moved.as_os_str()]));
    let program = folder.path().join("main");
    let mut arguments = vec![source("main.c").into_os_string()];
    arguments.extend(["-o".into(), program.clone().into_os_string()]);
    out(&run(moved.join("bin/mpicc"), arguments));
    assert_is_ours(&program, &moved.join("lib"));
}

#[test]
fn pkg_config_says_all_that_a_plain_compiler_needs() {
    let folder = TempDir::new().unwrap();
    for name in ["mpi", "weft-mpi"] {
        let mut pkg_config = Command::new("pkg-config");
        pkg_config.args(["--cflags", "--libs", name]).env("PKG_CONFIG_PATH", tree().join("lib/pkgconfig"));
        let flags = out(&pkg_config.output().expect("pkg-config can be started"));
        let program = folder.path().join(name);
        let mut arguments = vec![source("main.c").into_os_string(), "-o".into(), program.clone().into_os_string()];
        arguments.extend(flags.split_whitespace().map(Into::into));
        out(&run("cc", arguments));
        assert_eq!(out(&run(&program, [] as [&str; 0])), "0 of 1");
    }
}

#[test]
fn cmake_finds_us_when_our_commands_come_first() {
    let folder = TempDir::new().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let bin = tree().join("bin");
    let path = std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path))).unwrap();
    let cmake = |arguments: &[&OsStr]| {
        let output = Command::new("cmake").args(arguments).env("PATH", &path).current_dir(&folder).output();
        out(&output.expect("cmake can be started"))
    };
    let build = folder.path().join("build");
    let project = source("");
    let text = cmake(&[OsStr::new("-S"), project.as_os_str(), OsStr::new("-B"), build.as_os_str()]);
    assert!(text.contains("Found MPI_C:") && text.contains(tree().join("lib").to_str().unwrap()), "{text}");
    cmake(&[OsStr::new("--build"), build.as_os_str()]);
    for program in ["in_c", "in_cxx"] {
        let program = build.join(program);
        assert!(dynamic(&program, "NEEDED").contains(&"libmpi_abi.so.1".to_owned()));
        assert_eq!(out(&run(&program, [] as [&str; 0])), "0 of 1");
    }
}

#[test]
fn manual_pages_and_completions_are_installed() {
    let share = tree().join("share");
    let page = fs::read_to_string(share.join("man/man1/weft.1")).unwrap();
    assert!(page.contains("WEFT_EAGER_BYTES"), "{page}");
    for file in ["man/man1/mpicc.1", "man/man1/weft-cc.1", "man/man8/weftd.8", "zsh/site-functions/_weft"] {
        assert!(share.join(file).metadata().is_ok_and(|file| file.len() > 0), "{file}");
    }
}
