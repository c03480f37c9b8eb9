use crate::install;
use crate::machine::Need;
use crate::stage::{Stage, StageOutcome};

pub static STAGE: Stage = Stage {
    name: "tree",
    meaning: "the release build, installed under target/weft",
    needs: &[Need::CCompiler],
    gate: true,
    run: || install::tree(false).map(|_| StageOutcome::Passed),
};
