use crate::command::cargo;
use crate::machine::Need;
use crate::stage::{Stage, StageOutcome};
use crate::stages::targets::FEATURES;

pub static STAGE: Stage = Stage {
    name: "lint",
    meaning: "everything compiles, and neither rustc nor clippy has anything to say",
    needs: &[Need::CCompiler],
    gate: true,
    run: || {
        cargo(&[&["clippy", "--workspace", "--all-targets"], &FEATURES[..], &["--", "-D", "warnings"]].concat())
            .run()?;
        Ok(StageOutcome::Passed)
    },
};
