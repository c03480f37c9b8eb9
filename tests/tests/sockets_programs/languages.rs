//! Python, Node.js and Java: servers and clients of their own libraries.

use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;
use weft_tests::root;
use weft_tests::sockets::{Server, assert_by_ring, free_port, run, sock};

/// The interpreter itself, behind whatever chooses one.
pub fn python() -> PathBuf {
    let asked = run(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]));
    PathBuf::from(asked.text().trim())
}

fn script(name: &str) -> PathBuf {
    root().join("tests/programs").join(name)
}

/// Starts the server of a pair, runs its client, and ends the server.
fn pair(program: PathBuf, options: &[&str], file: &str, what: &str) {
    let folder = TempDir::new().expect("a folder");
    let port = free_port();
    let with = |role: &str| {
        let mut command = sock(&program);
        command.args(options).arg(script(file)).args([&format!("{what}-{role}"), &port.to_string()]);
        command.current_dir(folder.path());
        command
    };
    let server = Server::start(&mut with("server"), port, libc::SIGINT, folder.path());
    let client = run(&mut with("client"));
    assert_eq!(client.text(), "ok\n", "{}", server.said());
    assert_by_ring(&client.err);
    server.end();
}

#[test]
fn python_http_server_serves_its_client() {
    pair(python(), &[], "sockets.py", "http");
}

#[test]
fn python_asyncio_streams_echo() {
    pair(python(), &[], "sockets.py", "asyncio");
}

#[test]
fn python_managers_share_objects() {
    pair(python(), &[], "sockets.py", "manager");
}

#[test]
fn node_http_serves_its_client() {
    pair(PathBuf::from("node"), &[], "http.js", "http");
}

/// The process that accepts passes each connection to a worker, which has to be the one that is accelerated.
#[test]
fn node_clusters_serve_their_clients() {
    pair(PathBuf::from("node"), &[], "cluster.js", "cluster");
}

#[test]
fn java_http_serves_its_client() {
    pair(PathBuf::from("java"), &["-XX:TieredStopAtLevel=1"], "Http.java", "http");
}
