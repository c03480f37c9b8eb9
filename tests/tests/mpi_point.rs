//! The point-to-point programs under tests/c/mpi, each at several numbers of ranks.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use weft_tests::{root, tree};

fn compile(name: &str, folder: &Path) -> PathBuf {
    let source = root().join("tests/c/mpi").join(name).with_extension("c");
    let program = folder.join(name);
    let output = Command::new(tree().join("bin/mpicc"))
        .args(["-Wall", "-Wextra", "-Werror", "-O1", "-pthread", "-o"])
        .args([&program, &source])
        .output()
        .expect("the compiler command can be started");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Runs the program at each number of ranks: it says nothing and ends well.
fn passes_at(name: &str, ranks: &[u32]) {
    let folder = TempDir::new().expect("a temporary folder");
    let program = compile(name, folder.path());
    for ranks in ranks {
        let output = Command::new(tree().join("bin/weft"))
            .args(["run", "--timeout", "60", "-n", &ranks.to_string()])
            .arg(&program)
            .output()
            .expect("the launcher can be started");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(output.status.success() && said.is_empty(), "{name} at {ranks} ranks: {}\n{said}", output.status);
    }
}

macro_rules! programs {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                passes_at(stringify!($name), &[1, 2, 3, 4, 8]);
            }
        )*
    };
}

programs! {
    point_ask
    point_buffered
    point_buffers
    point_cancel
    point_complete
    point_errors
    point_exchange
    point_generalized
    point_inter
    point_modes
    point_persistent
    point_probe
    point_threads
    point_types
}

/// Two ranks hold 2 GiB each.
#[test]
fn point_huge() {
    passes_at("point_huge", &[2]);
}

/// With a thread that delivers a rank that computes holds up nobody.
#[test]
fn a_thread_delivers_to_a_rank_that_computes() {
    let folder = TempDir::new().expect("a temporary folder");
    let program = compile("point_delivery", folder.path());
    for ranks in ["2", "3"] {
        let done = TempDir::new().expect("a temporary folder");
        let output = Command::new(tree().join("bin/weft"))
            .args(["run", "--timeout", "60", "-n", ranks])
            .arg(&program)
            .arg(done.path())
            .env("WEFT_PROGRESS", "thread")
            .output()
            .expect("the launcher can be started");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success() && said.is_empty(), "{ranks} ranks: {}\n{said}", output.status);
    }
}
