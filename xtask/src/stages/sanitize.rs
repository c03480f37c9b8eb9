//! The address sanitizer is an unstable switch of rustc, but its run-time comes with every stable toolchain. We let the
//! toolchain in use take the switch rather than ask for a second, nightly one that would compile other code.

use std::path::Path;

use anyhow::{Context, Result};

use crate::command::{ToolProgram, cargo, target};
use crate::stage::{Stage, StageOutcome, cargo_test};

pub static STAGE: Stage = Stage {
    name: "sanitize",
    meaning: "the tests of fabric, data, collectives and MPI, under the address sanitizer",
    needs: &[],
    gate: false,
    run,
};

fn run() -> Result<StageOutcome> {
    let host = host()?;
    if !has_runtime(&host)? {
        return Ok(StageOutcome::NotRun(format!("this Rust toolchain has no address sanitizer for {host}")));
    }
    let rooms = ["weft-wire", "weft-device", "weft-fabric", "weft-collective", "weft-data", "weft-mpi"];
    let arguments: Vec<&str> = ["test", "--lib", "--tests", "--no-fail-fast", "--target", &host]
        .into_iter()
        .chain(rooms.into_iter().flat_map(|room| ["-p", room]))
        .collect();
    let program = cargo(&arguments)
        .env("RUSTC_BOOTSTRAP", "1")
        // Tests that would take too long do less by the second switch, and say so.
        .env("RUSTFLAGS", "-Zsanitizer=address --cfg sanitized")
        .env("CARGO_TARGET_DIR", target().join("sanitize"));
    cargo_test(program)
}

/// The machine's own target triple.
fn host() -> Result<String> {
    let version = ToolProgram::new("rustc").args(["-vV"]).output()?;
    let line = version.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).context("`rustc -vV` names no host")
}

fn has_runtime(host: &str) -> Result<bool> {
    let sysroot = ToolProgram::new("rustc").args(["--print", "sysroot"]).output()?;
    let folder = Path::new(sysroot.trim()).join("lib/rustlib").join(host).join("lib");
    let mut names = std::fs::read_dir(folder)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.any(|name| name.starts_with("librustc-") && name.ends_with("_rt.asan.a")))
}
