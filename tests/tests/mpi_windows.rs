//! One-sided communication, by C programs that check every value and say what is wrong: see `tests/c/mpi/windows_*.c`.
//! Each runs by memory that is shared and by copies between processes, and without the latter; by messages alone, and
//! with ranks of several hosts, they run in `mpi_network` and `hosts_mpi`.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use weft_tests::{root, tree};

fn compiled(name: &str, folder: &Path) -> PathBuf {
    let program = folder.join(name);
    let mut command = Command::new(tree().join("bin/mpicc"));
    command.args(["-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]);
    command.arg(root().join("tests/c/mpi").join(name).with_extension("c")).arg("-o").arg(&program);
    let output = command.output().expect("the compiler command can be started");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

/// What ranks may use of each other's memory.
#[derive(Clone, Copy, Debug)]
enum By {
    /// Whatever there is.
    Memory,
    /// No copies between processes: windows over the program's own memory go by messages.
    Regions,
}

const BOTH: [By; 2] = [By::Memory, By::Regions];

/// Runs the program with these numbers of ranks; it has to end well and say nothing.
fn passes(name: &str, ways: &[By], ranks: &[u32], arguments: &[&str]) {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled(name, folder.path());
    for (by, n) in ways.iter().flat_map(|by| ranks.iter().map(move |n| (by, n))) {
        let mut command = Command::new(tree().join("bin/weft"));
        match by {
            By::Memory => &mut command,
            By::Regions => command.env("WEFT_SINGLE_COPY", "off"),
        };
        command.args(["run", "--timeout", "120", "-n", &n.to_string()]).arg(&program).args(arguments);
        let output = command.output().expect("the launcher can be started");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let how = output.status;
        assert!(how.success() && out.is_empty(), "{name} {arguments:?} {by:?} with {n} ranks: {how}\n{out}{err}");
    }
}

#[test]
fn data_moves_on_windows_of_every_flavor() {
    passes("windows_move", &BOTH, &[1, 2, 3, 5], &[]);
}

#[test]
fn wrong_calls_are_refused_by_class() {
    passes("windows_errors", &BOTH, &[1, 2], &[]);
}

#[test]
fn windows_show_what_they_are_and_share_memory() {
    passes("windows_objects", &[By::Memory], &[1, 2, 4], &[]);
}

#[test]
fn many_elements_apart_are_changed_and_nothing_else() {
    passes("windows_scattered", &BOTH, &[1, 2, 3], &[]);
}

#[test]
fn random_operations_agree_with_a_model() {
    for seed in ["1", "2", "3"] {
        passes("windows_random", &BOTH, &[2, 4], &[seed, "40"]);
    }
}

#[test]
fn threads_use_a_window_at_the_same_time() {
    passes("windows_threads", &BOTH, &[1, 2, 4], &[]);
}
