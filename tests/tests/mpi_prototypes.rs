//! Every function of MPI that we declare, in both headers and in both Fortran modules, compared with headers that
//! somebody else has written down from the standard: those of MPICH. What differs on purpose stands here, with the
//! reason.

#[path = "mpi_prototypes/c.rs"]
mod c;
#[path = "mpi_prototypes/fortran.rs"]
mod fortran;

use c::{Declared, declared};
use fortran::{Dialect, Procedure};
use std::collections::BTreeMap;
use weft_tests::peers::Peer;
use weft_tests::{root, tree};

/// What one side lacks, and what both have otherwise; nothing, where they are alike.
fn differences(ours: &BTreeMap<String, Declared>, theirs: &BTreeMap<String, Declared>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (name, declared) in ours {
        match theirs.get(name) {
            None => found.push(format!("{name}: ours alone")),
            Some(other) if other.kinds() != declared.kinds() => {
                found.push(format!("{name}: {declared} here, {other} there"));
            }
            Some(_) => {}
        }
    }
    found.extend(theirs.keys().filter(|name| !ours.contains_key(*name)).map(|name| format!("{name}: missing")));
    found
}

fn assert_alike(ours: &str, theirs: &str, deliberate: &[String]) {
    let (ours, theirs) = (declared(&root().join(ours)), declared(&Peer::Mpich.header(theirs)));
    assert!(theirs.len() > 1324, "{} declared", theirs.len());
    assert_eq!(differences(&ours, &theirs), deliberate);
}

#[test]
fn prototypes_of_the_standard_abi_are_those_of_mpich() {
    // What C needs beside the ABI to speak with Fortran (MPI 5.0, section 19.3); the header of the ABI leaves it out.
    let conversions = ["c2f", "c2f08", "f082c", "f082f", "f2c", "f2f08"];
    let deliberate = ["MPI", "PMPI"].map(|start| conversions.map(|name| format!("{start}_Status_{name}: ours alone")));
    assert_alike("interfaces/mpi/include/mpi.h", "mpi_abi.h", &deliberate.concat());
}

#[test]
fn prototypes_of_the_mpich_abi_are_those_of_mpich() {
    assert_alike("interfaces/mpi/mpich/include/mpi.h", "mpi.h", NONE);
}

const NONE: &[String] = &[];

fn fortran_differs(dialect: Dialect) -> Vec<String> {
    let modules = std::fs::read_to_string(tree().join("include/fortran/weft_mpi.f90")).expect("the tree has it");
    let ours: BTreeMap<String, Procedure> = fortran::procedures(&modules, dialect);
    assert!(ours.len() > 700, "{} procedures", ours.len());
    fortran::expected(&declared(&Peer::Mpich.header("mpi_abi.h")), dialect)
        .into_iter()
        .filter_map(|(name, wanted)| wanted.differs(&name, &ours))
        .collect()
}

#[test]
fn interfaces_of_the_module_mpi_are_those_of_c() {
    assert_eq!(fortran_differs(Dialect::Mpi), NONE);
}

#[test]
fn interfaces_of_the_module_mpi_f08_are_those_of_c() {
    assert_eq!(fortran_differs(Dialect::F08), NONE);
}
