//! Who is accelerated with whom: different users, and programs that are to be left alone.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use weft_tests::sockets::{ForAll, Moved, Server, assert_by_ring, free_port, run, sock};
use weft_tests::tree;

/// Debian's number for a user and a group of nobody.
const NOBODY: u32 = 65534;

fn redis(mut command: Command, folder: &Path, port: u16, user: Option<u32>) -> Server {
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir", "/"]);
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    Server::start(&mut command, port, libc::SIGTERM, folder)
}

#[test]
fn programs_of_two_users_meet_at_the_rendezvous_of_root() {
    let user = std::fs::metadata("/proc/self").expect("/proc").uid();
    assert_eq!(user, 0, "only root can start programs of two users");
    weft_tests::sockets::ensure_rendezvous();
    let copy = ForAll::copy();
    for [server_user, client_user] in [[None, Some(NOBODY)], [Some(NOBODY), None]] {
        let folder = TempDir::new().expect("a folder");
        let port = free_port();
        let server = redis(copy.sock("redis-server"), folder.path(), port, server_user);
        let mut client = copy.sock("redis-benchmark");
        client.args(["-p", &port.to_string(), "--csv", "-t", "set,get", "-c", "4", "-n", "60000", "-d", "200"]);
        if let Some(user) = client_user {
            client.uid(user).gid(user).current_dir("/");
        }
        let finished = run(&mut client);
        assert_by_ring(&finished.err);
        let (said, _) = server.end();
        assert!(Moved::of(&said).accelerated > 0, "{said}");
    }
}

/// What a server has moved whose client was started by a shell under `weft sock` with these options.
fn moved_with(options: &[&str]) -> Moved {
    let folder = TempDir::new().expect("a folder");
    let port = free_port();
    let server = redis(sock("redis-server"), folder.path(), port, None);
    let mut client = Command::new(tree().join("bin/weft"));
    client.arg("sock").args(options).args(["--", "sh", "-c"]);
    client.arg(format!("redis-benchmark -p {port} --csv -t get -c 1 -n 5000; true"));
    assert!(run(&mut client).text().contains("GET"));
    Moved::of(&server.end().0)
}

#[test]
fn a_program_that_is_to_be_left_alone_is_so_where_another_starts_it() {
    let (with, without) = (moved_with(&[]), moved_with(&["--not", "redis-benchmark"]));
    assert!(with.accelerated > 0 && with.by_ring > with.by_kernel, "{with:?}");
    assert_eq!((without.accelerated, without.by_ring), (0, 0), "{without:?}");
    assert!(without.by_kernel > 0, "{without:?}");
    let other = moved_with(&["--not", "another"]);
    assert!(other.accelerated > 0, "{other:?}");
}
