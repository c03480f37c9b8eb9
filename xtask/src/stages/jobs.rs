use crate::machine::Need;
use crate::stage::{Stage, cargo_test};
use crate::stages::targets::{self, TestNeed};

pub static STAGE: Stage = Stage {
    name: "jobs",
    meaning: "C programs, launchers and whole jobs, on what was installed under target/weft",
    needs: &[
        Need::CCompiler,
        Need::CxxCompiler,
        Need::FortranCompiler,
        Need::PkgConfig,
        Need::LibPng,
        Need::CMake,
        Need::Make,
        Need::PythonVenv,
    ],
    gate: false,
    run: || cargo_test(targets::test(TestNeed::Nothing, &[])?),
};
