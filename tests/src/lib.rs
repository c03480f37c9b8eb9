//! What the tests across crates share: where the repository and the installed tree lie.
#![deny(unsafe_code)]

pub mod build;
pub mod histories;
pub mod interfaces;
pub mod lanes;
#[allow(unsafe_code)]
pub mod lossy;
pub mod namespaces;
pub mod peers;
pub mod pmix;
mod programs;
pub mod pvm;
pub mod ranks;
#[allow(unsafe_code)]
pub mod signal;
pub mod slurm;
pub mod sockets;
pub mod sshd;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the root").to_owned()
}

/// The tree that `cargo xtask tree` installs: `bin`, `lib`, `include`, `share`.
///
/// # Panics
/// When there is none.
pub fn tree() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir));
    let tree = target.join("weft");
    assert!(tree.join("bin/weft").exists(), "nothing is installed under {}; run `cargo xtask tree`", tree.display());
    tree
}

/// Copies a program to where it will be started.
///
/// By another process: what this one writes may still be open in a child that another test has just forked, and cannot
/// be started as long (`ETXTBSY`).
///
/// # Panics
/// When it cannot be copied.
pub fn install(program: &Path, to: &Path) {
    run_install(Command::new("install").args(["-D", "-m", "755"]).arg(program).arg(to));
}

/// Makes a script that can be started; as [`install`] does.
///
/// # Panics
/// When it cannot be made.
pub fn install_script(text: &str, to: &Path) {
    run_install(Command::new("sh").args(["-c", "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\""]).arg(to).arg(text));
}

fn run_install(command: &mut Command) {
    let done = command.output().expect("it can be started");
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}
