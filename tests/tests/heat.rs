//! The heat program, compiled and started by us, through its own test: known answers, the same plate for every number
//! of ranks, frames, wrong use.

use std::process::Command;

use weft_tests::{root, tree};

#[test]
fn heat_passes_its_own_test() {
    let output = Command::new(root().join("apps/heat/test.sh"))
        .env("MPICC", tree().join("bin/mpicc"))
        .env("MPIEXEC", tree().join("bin/mpiexec"))
        .output()
        .expect("the test of apps/heat can be started");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
}
