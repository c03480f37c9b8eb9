//! Models live in the crates, in modules or tests with `loom` in their name, and are compiled under `cfg(loom)` only.

use anyhow::Result;

use crate::command::{cargo, root, target};
use crate::stage::{Stage, StageOutcome, cargo_test};

pub static STAGE: Stage = Stage {
    name: "loom",
    meaning: "every interleaving of the lock-free parts, within bounds",
    needs: &[],
    gate: false,
    run,
};

/// The crates that have models, as their manifests say.
const ROOMS: [(&str, &str); 2] = [("weft-device", "fabric/device"), ("weft-fabric", "fabric/core")];

fn run() -> Result<StageOutcome> {
    let mut arguments = vec!["test", "--lib", "--tests"];
    for (package, folder) in ROOMS {
        let manifest = std::fs::read_to_string(root().join(folder).join("Cargo.toml"))?;
        if manifest.contains("cfg(loom)") {
            arguments.extend(["-p", package]);
        }
    }
    if !arguments.contains(&"-p") {
        return Ok(StageOutcome::NotRun("no crate has a dependency under cfg(loom)".into()));
    }
    arguments.push("loom");
    // A directory of its own: another RUSTFLAGS would rebuild everything in the usual one, each way.
    cargo_test(cargo(&arguments).env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", target().join("loom")))
}
