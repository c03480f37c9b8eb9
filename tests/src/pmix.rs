//! A client of the PMIx library, compiled with Debian's header.

use crate::build::profile_directory;
use crate::root;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The client; `tests/c/pmix/client.c` says what it can be asked to do.
///
/// # Panics
/// When it cannot be compiled.
pub fn client() -> &'static Path {
    static CLIENT: OnceLock<PathBuf> = OnceLock::new();
    CLIENT.get_or_init(|| {
        let program = profile_directory().join(format!("pmix-client-{}", std::process::id()));
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-Wall", "-Wextra", "-Werror", "-I/usr/lib/x86_64-linux-gnu/pmix2/include", "-o"]);
        let output = cc.arg(&program).arg(root().join("tests/c/pmix/client.c")).arg("-l:libpmix.so.2").output();
        let output = output.expect("a C compiler");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let place = profile_directory().join("pmix-client");
        std::fs::rename(program, &place).expect("same file system");
        place
    })
}
