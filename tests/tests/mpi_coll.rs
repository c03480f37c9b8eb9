//! Collective operations, by C programs that check every result and say what is wrong: see `tests/c/mpi/coll_*.c`.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use weft_tests::{root, tree};

fn compiled(name: &str, folder: &Path) -> PathBuf {
    let program = folder.join(name);
    let mut command = Command::new(tree().join("bin/mpicc"));
    command.args(["-O1", "-Wall", "-Wextra", "-Wno-stringop-overread", "-Werror", "-pthread"]);
    command.arg(root().join("tests/c/mpi").join(name).with_extension("c")).arg("-o").arg(&program);
    let output = command.output().expect("the compiler command can be started");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Runs the program with these numbers of ranks; it has to end well and say nothing.
fn passes(name: &str, ranks: &[u32]) {
    passes_with(name, ranks, &[]);
}

fn passes_with(name: &str, ranks: &[u32], arguments: &[&str]) {
    passes_in(name, ranks, arguments, &[]);
}

fn passes_in(name: &str, ranks: &[u32], arguments: &[&str], environment: &[(&str, &str)]) {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled(name, folder.path());
    for n in ranks {
        let mut command = Command::new(tree().join("bin/weft"));
        command.args(["run", "--timeout", "120", "-n", &n.to_string()]).arg(&program).args(arguments);
        command.envs(environment.iter().copied());
        let output = command.output().expect("the launcher can be started");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let how = output.status;
        assert!(how.success() && out.is_empty(), "{name} {arguments:?} with {n} ranks: {how}\n{out}{err}");
    }
}

#[test]
fn data_moves_as_defined_in_every_form() {
    passes("coll_move", &[1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn reductions_keep_the_order_of_ranks_in_every_form() {
    passes("coll_reduce", &[1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn neighbors_exchange_over_every_topology() {
    passes("coll_neighbor", &[1, 2, 3, 4, 6, 8]);
}

#[test]
fn operations_in_flight_do_not_mix() {
    passes("coll_flight", &[1, 2, 3, 5, 8]);
}

#[test]
fn groups_exchange_across_an_intercommunicator() {
    passes("coll_inter", &[1, 2, 3, 5, 8]);
}

#[test]
fn wrong_arguments_are_refused_by_class() {
    passes("coll_errors", &[1, 2, 4]);
}

#[test]
fn lengths_that_differ_are_said_and_keep_nobody() {
    passes("coll_differ", &[2, 3, 5, 17]);
}

#[test]
fn corners_of_single_operations() {
    passes("coll_corners", &[1, 2, 3, 4, 5, 8]);
    for algorithms in ["allgather:doubling", "allgather:bruck", "allgather:ring"] {
        passes_in("coll_corners", &[4], &[], &[("WEFT_ALGORITHMS", algorithms)]);
    }
}

#[test]
fn threads_do_collectives_at_the_same_time() {
    passes("coll_threads", &[1, 2, 4]);
}

#[test]
fn random_rows_agree_where_members_read_in_place() {
    for (seed, memory) in [("5", "shown"), ("6", "mixed"), ("7", "blind"), ("8", "mixed")] {
        passes_with("coll_shared", &[2, 3, 5, 8], &[seed, "300", "1", memory]);
    }
    passes_with("coll_shared", &[4], &["9", "200", "3", "mixed"]);
}

#[test]
fn random_rows_on_shared_memory_agree_with_local_computation() {
    for seed in ["1", "2", "3"] {
        passes_with("coll_shared", &[2, 3, 5, 8, 17], &[seed, "300", "1"]);
    }
}

/// What each algorithm does with every layout and order is tested in the library; here, that each can be prescribed.
#[test]
fn prescribed_algorithms_do_what_the_operations_are_defined_to_do() {
    const ALGORITHMS: [&str; 3] = [
        "bcast:chain,reduce:halving,allreduce:halving,reduce-scatter:pairwise,allgather:ring,alltoall:bruck,gather:tree,\
         scatter:tree",
        "bcast:binomial,reduce:binomial,allreduce:doubling,reduce-scatter:allreduce,allgather:doubling,\
         alltoall:pairwise,gather:direct,scatter:direct",
        "bcast:scatter-allgather,allgather:bruck",
    ];
    for algorithms in ALGORITHMS {
        for name in ["coll_move", "coll_reduce"] {
            passes_in(name, &[2, 5, 9], &[], &[("WEFT_ALGORITHMS", algorithms)]);
        }
    }
}

#[test]
fn an_algorithm_that_nobody_knows_is_refused_with_those_there_are() {
    let mut command = Command::new(tree().join("bin/weft"));
    let output = command.args(["run", "true"]).env("WEFT_ALGORITHMS", "bcast:ring").output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.lines().count() == 1, "{said}");
    assert!(said.contains("\"bcast:ring\"") && said.contains("bcast:binomial|scatter-allgather|chain"), "{said}");
}

#[test]
fn threads_do_random_rows_at_the_same_time() {
    for seed in ["4", "5"] {
        passes_with("coll_shared", &[2, 3, 5], &[seed, "150", "3"]);
    }
}
