use crate::command::cargo;
use crate::machine::Need;
use crate::stage::{Outcome, Stage};

pub static STAGE: Stage = Stage {
    name: "lint",
    meaning: "everything compiles, and neither rustc nor clippy has anything to say",
    needs: &[Need::CCompiler],
    gate: true,
    run: || {
        let features = ["--features", "weft-tests/sockets"];
        cargo(&[&["clippy", "--workspace", "--all-targets"], &features[..], &["--", "-D", "warnings"]].concat())
            .run()?;
        Ok(Outcome::Passed)
    },
};
