//! Files, by C programs that check every result: see `tests/c/mpi/files_*.c`. All files lie in folders that go with the
//! test.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use weft_tests::{root, tree};

fn compiled(name: &str, folder: &Path) -> PathBuf {
    let program = folder.join(name);
    let mut command = Command::new(tree().join("bin/mpicc"));
    command.args(["-O1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE"]);
    command.arg(root().join("tests/c/mpi").join(name).with_extension("c")).arg("-o").arg(&program);
    let output = command.output().expect("the compiler command can be started");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

fn runs(program: &Path, ranks: u32, arguments: &[&str]) {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--timeout", "120", "-n", &ranks.to_string()]).arg(program).args(arguments);
    let output = command.output().expect("the launcher can be started");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let name = program.display();
    assert!(output.status.success() && out == "ok\n", "{name} on {ranks} ranks: {}\n{out}{err}", output.status);
}

/// Runs it on each number of ranks, with a new folder for its files each time.
fn passes(name: &str, ranks: &[u32]) {
    let built = TempDir::new().expect("there is room for a folder");
    let program = compiled(name, built.path());
    for &ranks in ranks {
        let files = TempDir::new().expect("there is room for a folder");
        runs(&program, ranks, &[files.path().to_str().expect("a plain name")]);
    }
}

/// The byte at an offset of the file that `files_whole` writes.
fn byte_at(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

#[test]
fn a_file_written_by_four_ranks_is_the_same_bytes_to_three() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled("files_whole", folder.path());
    let file = folder.path().join("whole");
    let name = file.to_str().expect("a plain name");
    for bytes in [0u64, 1, 3, 100_000, 5_000_001] {
        let _ = std::fs::remove_file(&file);
        runs(&program, 4, &["write", name, &bytes.to_string()]);
        let found = std::fs::read(&file).expect("the file is there");
        assert!(found == (0..bytes).map(byte_at).collect::<Vec<_>>(), "{bytes} bytes, as the ranks were to write them");
        runs(&program, 3, &["read", name, &bytes.to_string()]);
    }
}

#[test]
fn views_show_what_their_types_name() {
    passes("files_views", &[1, 2, 4]);
}

#[test]
fn collective_accesses_move_what_each_rank_owns_and_nothing_else() {
    passes("files_together", &[1, 2, 3, 5]);
}

#[test]
fn the_shared_pointer_is_one_for_all() {
    passes("files_shared", &[1, 2, 4]);
}

#[test]
fn nonblocking_and_split_accesses() {
    passes("files_forms", &[1, 2, 3]);
}

#[test]
fn numbers_in_files_are_what_the_representation_says() {
    passes("files_datareps", &[1, 2, 3]);
}

#[test]
fn errors_have_their_class_their_handler_and_a_message_with_the_file() {
    passes("files_errors", &[1, 2, 3]);
}
