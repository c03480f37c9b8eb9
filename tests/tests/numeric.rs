//! The numerical programs of `apps`, each built with MPI and with PVM, through their own test: known answers, the same
//! result for every number of ranks, wrong use.

use std::process::Command;

use weft_tests::{root, tree};

fn passes_its_own_test(program: &str) {
    let tree = tree();
    let (bin, include, lib) = (tree.join("bin"), tree.join("include"), tree.join("lib"));
    let (include, lib) = (include.display(), lib.display());
    let output = Command::new(root().join("apps/ranks/test.sh"))
        .arg(program)
        .env("MPICC", bin.join("mpicc"))
        .env("PVMCC", format!("cc -I {include} -L {lib} -lpvm3 -Wl,-rpath,{lib}"))
        .env("RUN", format!("{} run", bin.join("weft").display()))
        .output()
        .expect("the test can be started");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn integers_are_sorted() {
    passes_its_own_test("is");
}

#[test]
fn fields_are_transformed() {
    passes_its_own_test("fft");
}

#[test]
fn potentials_are_found() {
    passes_its_own_test("mg");
}

#[test]
fn weather_stays_or_turns() {
    passes_its_own_test("shallow");
}
