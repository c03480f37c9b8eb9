//! The feature keeps these tests out of a plain `cargo test`, and this stage away from machines that do not let us make
//! network namespaces.

use crate::command::cargo;
use crate::hosts;
use crate::machine::Need;
use crate::stage::{Outcome, Stage, cargo_test};

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
            return Ok(Outcome::NotRun(format!("{lack:#}")));
        }
        let arguments = "test -p weft-tests -p weft-device --no-fail-fast \
                         --features weft-tests/hosts,weft-tests/sockets,weft-device/hosts \
                         --test hosts --test hosts_bench --test hosts_cluster --test hosts_crypt --test hosts_daemon --test hosts_deserted \
                         --test hosts_failures --test hosts_groups --test hosts_interfaces --test hosts_kill --test hosts_lanes \
                         --test hosts_many --test hosts_mpi --test hosts_objects --test hosts_partition --test hosts_pmix \
                         --test hosts_pvm --test hosts_sockets --test hosts_ssh --test hosts_together --test xdp";
        let run = |arguments: &str| cargo_test(cargo(&arguments.split_whitespace().collect::<Vec<_>>()));
        let by_lanes = "test -p weft-fabric --features weft-fabric/hosts --lib links::conformance::lanes";
        Ok(run(arguments)?.and(run(by_lanes)?))
    },
};
