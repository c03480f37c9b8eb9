//! Older environments that speak TCP: the MPI libraries of others, kept from their own shared memory, and PVM.

use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use weft_tests::peers::Peer;
use weft_tests::sockets::{assert_by_ring, run, sock};
use weft_tests::{build, root};

/// Two ranks under the library's own launcher; every byte is checked by the program itself.
fn two_ranks(peer: Peer, options: &[&str], settings: &[(&str, &str)]) {
    let program = build::c_program(&peer.command("mpicc"), "tests/c/sockets/ranks.c");
    let mut command = sock(peer.command("mpiexec"));
    command.args(["-n", "2"]).args(options).arg(program).envs(settings.iter().copied());
    let finished = run(&mut command);
    assert_eq!(finished.text(), "ok\n", "{finished:?}");
    assert_by_ring(&finished.err);
}

#[test]
fn mpich_over_tcp_exchanges_messages() {
    let settings =
        [("MPIR_CVAR_CH4_NETMOD", "ofi"), ("FI_PROVIDER", "tcp"), ("FI_TCP_IFACE", "lo"), ("MPIR_CVAR_NOLOCAL", "1")];
    two_ranks(Peer::Mpich, &[], &settings);
}

#[test]
fn open_mpi_over_tcp_exchanges_messages() {
    let options = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"];
    let settings = [("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];
    two_ranks(Peer::OpenMpi, &options, &settings);
}

/// Compiles a program against Debian's PVM.
fn pvm_program(folder: &Path) -> std::path::PathBuf {
    let program = folder.join("pvm");
    let source = root().join("tests/c/sockets/pvm.c");
    run(Command::new("cc").args(["-O1", "-o"]).arg(&program).arg(source).arg("-lpvm3"));
    program
}

/// Debian's PVM uses Unix sockets within a host, also for direct routes: they are the kernel's, and nothing is disturbed.
#[test]
fn pvm_tasks_find_their_data_intact() {
    let folder = TempDir::new().expect("a folder");
    let program = pvm_program(folder.path());
    // The daemon starts the second task; it and all that it starts have the library. The first task ends the daemon.
    let mut command = sock("sh");
    command.args(["-c", "pvmd >/dev/null & exec \"$0\""]).arg(&program);
    command.env("PVM_ROOT", "/usr/lib/pvm3").env("PVM_TMP", folder.path()).env("PVM_ALLOW_ROOT", "1");
    let finished = run(&mut command);
    assert_eq!(finished.text(), "ok\n", "{finished:?}");
    let was_there = finished.err.contains(": sockets: ") && !finished.err.contains("no process has had the library");
    assert!(was_there, "{finished:?}");
}
