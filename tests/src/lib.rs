//! What the tests across crates share: where the repository and the installed tree lie.
#![deny(unsafe_code)]

pub mod build;
pub mod lanes;
#[allow(unsafe_code)]
pub mod lossy;
pub mod namespaces;
pub mod peers;
mod programs;
pub mod ranks;
#[allow(unsafe_code)]
pub mod signal;
pub mod sockets;

use std::path::{Path, PathBuf};

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
