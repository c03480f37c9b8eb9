//! MPI programs as others built them: mpi4py from the Python package index, Intel's benchmarks, programs of Debian's.

use std::path::{Path, PathBuf};
use std::process::Command;

use weft_tests::peers::Peer;
use weft_tests::{root, tree};

/// What `weft run` with these arguments prints: as output and as errors.
fn said(arguments: &[&str], program: &Path, rest: &[&str]) -> [String; 2] {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--timeout", "200"]).args(arguments).arg(program).args(rest);
    let output = command.env_remove("LD_LIBRARY_PATH").output().expect("weft can be started");
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    [out, err]
}

fn ranks(arguments: &[&str], program: &Path, rest: &[&str]) -> String {
    let [out, _] = said(arguments, program, rest);
    out
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

/// As a notebook is started, too.
#[test]
fn mpi4py_finds_the_library_without_weft_run() {
    let (weft, python) = (tree().join("bin/weft"), Peer::Mpi4py.command("python"));
    let program = "from mpi4py import MPI; print(MPI.COMM_WORLD.size, MPI.Get_library_version())";
    let run = |command: &mut Command| {
        let output = command.env_remove("LD_LIBRARY_PATH").output().expect("it can be started");
        let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        (output.status.code(), out, err)
    };
    let (code, _, err) = run(Command::new(&python).args(["-c", program]));
    assert!(code != Some(0) && err.contains("libmpi.so.12"), "it is found by itself: {err}");
    let (code, out, err) = run(Command::new(&weft).arg("env").arg(&python).args(["-c", program]));
    assert!(code == Some(0) && out.starts_with("1 ") && out.contains("Weft"), "{out}{err}");
    let script = format!("eval \"$({} env --shell sh)\" && exec {} -c '{program}'", weft.display(), python.display());
    let (code, out, err) = run(Command::new("sh").args(["-c", &script]));
    assert!(code == Some(0) && out.starts_with("1 ") && out.contains("Weft"), "{out}{err}");
    let (code, _, err) = run(Command::new(&weft).args(["env", "no-such-program-in-path"]));
    assert!(code == Some(127) && err.starts_with("weft env: program 'no-such-program-in-path'"), "{err}");
}

/// Those of mpi4py's own tests that reach each chapter of the standard; docs/guide/suites.md says how all are run.
#[test]
fn mpi4py_s_own_tests_pass() {
    let tests = Peer::Mpi4py.sources().join("test/main.py");
    let modules = "cco_buf|cco_ngh_buf|comm|comm_topo|dynproc|errhandler|file|grequest|info|io|mpiabi|op|\
                   p2p_buf|p2p_buf_part|pack|request|rma|session|status|win";
    let modules = format!(r"test_({modules})\.py$");
    let arguments = [tests.to_str().expect("a plain path"), "-q", "-i", &modules];
    let [_, err] = said(&["-n", "3"], &Peer::Mpi4py.command("python"), &arguments);
    let ran = |line: &str| line.strip_prefix("Ran ")?.split(' ').next()?.parse::<u32>().ok();
    let least = err.lines().filter_map(ran).min();
    assert!(least.is_some_and(|tests| tests > 500), "{err}");
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

/// Debian's `libmpichfort` calls what stands in no standard: attributes for a language, procedures in place of
/// functions.
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

/// No times, and no bars: only what holds on any machine.
#[test]
fn the_smallest_run_of_the_benchmarks_has_a_figure_of_each_library() {
    let folder = tempfile::TempDir::new().expect("there is room for a folder");
    let json = folder.path().join("imb.json");
    let peers = Peer::IntelMpi.command("IMB-MPI1").ancestors().nth(3).expect("a place for peers").to_path_buf();
    let only =
        "mpi1/pingpong,mpi1/allgather,nbc/iallreduce_pure,rma/unidir_put,p2p/sendrecv_replace,crowd/barrier,xdlu";
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["bench", "imb", "--quick", "--offline", "--seconds", "0.005", "--libs", "weft,intel"]);
    command.args(["--only", only, "--peers-dir"]).arg(&peers).arg("--json").arg(&json);
    let output = command.env_remove("LD_LIBRARY_PATH").output().expect("weft can be started");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}{err}", output.status);
    let text = std::fs::read_to_string(json).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let suites = report["suites"].as_array().expect("suites");
    let words: Vec<&str> = suites.iter().filter_map(|suite| suite["suite"].as_str()).collect();
    assert_eq!(words, ["mpi1", "nbc", "rma", "p2p", "crowd", "xdlu"]);
    for suite in suites {
        assert!(suite["geometric_mean"].as_f64().is_some_and(|mean| mean > 0.0), "{}", suite["suite"]);
        let lines = suite["lines"].as_array().expect("lines");
        let both = |line: &&serde_json::Value| {
            ["weft", "intel"].iter().all(|name| line["medians"][name].as_f64().is_some_and(|value| value > 0.0))
        };
        // A length for which the time was too short has no figure.
        assert!(lines.iter().filter(both).count() * 2 > lines.len(), "{}: {lines:?}", suite["suite"]);
    }
    let titles = ["IMB-MPI1", "Allgather", "IMB-NBC", "IMB-RMA", "IMB-P2P", "ScaLAPACK xdlu", "mean <= 1"];
    assert!(titles.iter().all(|title| out.contains(title)), "{out}");
}
