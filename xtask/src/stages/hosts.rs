//! The feature keeps these tests out of a plain `cargo test`, and this stage away from machines that do not let us make
//! network namespaces.

use crate::command::cargo;
use crate::hosts;
use crate::machine::Need;
use crate::stage::{Stage, StageOutcome, cargo_test};
use crate::stages::targets::{self, TestNeed};

pub static STAGE: Stage = Stage {
    name: "hosts",
    meaning: "jobs on several hosts, which are network namespaces",
    needs: &[
        Need::CCompiler,
        Need::IpRoute,
        Need::PkgConfig,
        Need::LibPng,
        Need::PythonVenv,
        Need::OpenSsh,
        Need::Pmix,
    ],
    gate: false,
    run: || {
        if let Err(lack) = hosts::try_out() {
            return Ok(StageOutcome::NotRun(format!("{lack:#}")));
        }
        let of_jobs = cargo_test(targets::test(TestNeed::Hosts, &[])?)?;
        let of_lanes = "test --workspace --features weft-device/hosts --test xdp";
        let by_lanes = "test -p weft-fabric --features weft-fabric/hosts --lib links::conformance::lanes";
        let run = |arguments: &str| cargo_test(cargo(&arguments.split(' ').collect::<Vec<_>>()));
        Ok(of_jobs.and(run(of_lanes)?).and(run(by_lanes)?))
    },
};
