//! MPI programs as others built them: mpi4py from the Python package index, Intel's benchmarks, programs of Debian's.

use std::path::{Path, PathBuf};
use std::process::Command;

use weft_tests::peers::Peer;
use weft_tests::{root, tree};

/// What `weft run` with these arguments prints.
fn ranks(arguments: &[&str], program: &Path, rest: &[&str]) -> String {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--timeout", "200"]).args(arguments).arg(program).args(rest);
    let output = command.env_remove("LD_LIBRARY_PATH").output().expect("weft can be started");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    out.into_owned()
}

fn python(arguments: &[&str]) -> String {
    ranks(&["-n", "2"], &Peer::Mpi4py.command("python"), &[&["-m", "mpi4py.bench"], arguments].concat())
}

#[test]
fn mpi4py_greets_passes_a_ring_and_measures() {
    assert!(python(&["helloworld"]).contains("I am process 1 of 2"));
    assert!(python(&["ringtest", "-n", "8", "-l", "100"]).contains("(2 processes, 8 bytes)"));
    let table = python(&["pingpong", "-a", "none", "-n", "65536", "--no-stats"]);
    assert!(table.lines().any(|line| line.trim_start().starts_with("65536")), "{table}");
}

#[test]
fn intel_s_benchmarks_check_what_they_receive() {
    let program = Peer::IntelMpi.command("IMB-MPI1");
    let said = ranks(&["-n", "2"], &program, &["-iter", "5", "-msglog", "12"]);
    assert!(said.contains("All processes entering MPI_Finalize"), "{said}");
    for name in ["PingPong", "Sendrecv", "Exchange", "Allreduce", "Reduce_scatter", "Alltoallv", "Barrier"] {
        assert!(said.contains(&format!("Benchmarking {name}")), "{name}: {said}");
    }
}

#[test]
fn debian_s_linear_equations_are_solved() {
    let folder = PathBuf::from("/usr/lib/x86_64-linux-gnu/scalapack/mpich-tests");
    let wdir = format!("--wdir={}", folder.display());
    let said = ranks(&["-n", "2", &wdir], &folder.join("xdlu"), &[]);
    assert!(said.contains("PASSED") && !said.contains("FAILED"), "{said}");
}

#[test]
fn debian_s_netpipe_runs() {
    let said = ranks(&["-n", "2"], Path::new("/usr/bin/NPmpich2"), &["-u", "4096", "-n", "20", "-o", "/dev/null"]);
    assert!(!said.contains("error"), "{said}");
}

/// Debian's `libmpichfort` calls what stands in no standard: attributes for a language, procedures in place of functions.
#[test]
fn fortran_runs_through_the_library_that_debian_built_for_mpich() {
    let folder = tempfile::TempDir::new().expect("there is room for a folder");
    let program = folder.path().join("old");
    let mut compiler = Command::new("gfortran");
    compiler.args(["-cpp", "-DOF_MPICH", "-w", "-O2", "-fallow-argument-mismatch", "-o"]).arg(&program);
    compiler.arg("-I/usr/include/x86_64-linux-gnu/mpich").arg(root().join("tests/fortran/old.f")).arg("-lmpichfort");
    let output = compiler.output().expect("gfortran can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for count in ["1", "3"] {
        assert_eq!(ranks(&["-n", count], &program, &[]), "ok\n");
    }
}
