use crate::command::cargo;
use crate::machine::Need;
use crate::stage::{Stage, cargo_test};

pub static STAGE: Stage = Stage {
    name: "unit",
    meaning: "the tests of each crate, and the rules of the house",
    needs: &[Need::CCompiler, Need::PythonVenv],
    gate: false,
    run: || cargo_test(cargo(&["test", "--workspace", "--exclude", "weft-tests", "--no-fail-fast"])),
};
