use crate::command::cargo;
use crate::stage::{Stage, StageOutcome};

pub static STAGE: Stage = Stage {
    name: "format",
    meaning: "the source is formatted as rustfmt.toml says",
    needs: &[],
    gate: false,
    run: || cargo(&["fmt", "--all", "--check"]).run().map(|()| StageOutcome::Passed),
};
