//! Older environments that speak TCP: the MPI libraries of others, kept from their own shared memory, PVM, and CORBA.

use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use weft_tests::peers::Peer;
use weft_tests::sockets::{Finished, Moved, Server, assert_by_ring, free_port, run, sock};
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

/// Debian's PVM uses Unix sockets within a host, also for direct routes: they are the kernel's, and nothing is
/// disturbed.
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

/// What a client of omniORB's examples says, as Debian has built them; its server says by what its object is found.
fn omniorb(example: &str, server: &str, client: &str) -> Finished {
    let (folder, port) = (TempDir::new().expect("a folder"), free_port());
    let examples = Path::new("/usr/lib/omniorb/examples").join(example);
    let mut command = sock(examples.join(server));
    command.args(["-ORBendPoint", &format!("giop:tcp:127.0.0.1:{port}")]);
    let server = Server::start(&mut command, port, libc::SIGTERM, folder.path());
    let said = server.said();
    let object = said.split(['\'', '"', '\n']).find(|word| word.starts_with("IOR:")).expect("the server says it");
    let finished = run(sock(examples.join(client)).arg(object));
    server.end();
    finished
}

#[test]
fn objects_of_omniorb_answer_calls_and_call_back() {
    // The first calls of a connection are the kernel's; this one has ten, and may be over before its rings are there.
    let moved: Vec<Moved> = (0..8)
        .map(|_| {
            let echo = omniorb("echo", "eg2_impl", "eg2_clt");
            assert_eq!(echo.text().matches("The Echo object replied, \"Hello!\".").count(), 10, "{echo:?}");
            Moved::of(&echo.err)
        })
        .collect();
    assert!(moved.iter().any(|moved| moved.accelerated > 0 && moved.by_ring > moved.by_kernel), "{moved:?}");
    let call = omniorb("call_back", "cb_server", "cb_client");
    assert!(call.text().contains("cb_client: call_back(\"Hello!\")"), "{call:?}");
}
