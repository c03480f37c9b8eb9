//! Programs that send datagrams, each inside and beside one that is outside. A datagram goes by a ring only while its
//! receiver looks; so whether rings are used is seen where a client looks without sleeping (`datagrams.py client`).
//!
//! Servers that set `SO_REUSEADDR`, as dnsmasq, memcached, iperf3, sockperf and socat do, stay with the kernel: what
//! they answer must be the same.

use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;
use weft_tests::root;
use weft_tests::sockets::{Server, datagrams_by_ring, free_datagram_port, free_port, run, sock};

use super::languages::python;

const JAVA: [&str; 1] = ["-XX:TieredStopAtLevel=1"];

fn script(name: &str) -> PathBuf {
    root().join("tests/programs").join(name)
}

/// A program of ours: the interpreter with its options, and what the program is to do.
fn with(mut command: Command, options: &[&str], file: &str, what: &str, port: u16) -> Command {
    command.args(options).arg(script(file)).args([what, &port.to_string()]);
    command
}

fn says_ok(command: &mut Command, server: &Server) -> String {
    let client = run(command);
    assert_eq!(client.text(), "ok\n", "{}", server.said());
    client.err
}

/// A server that echoes: one client inside sees its answers come by a ring, one outside is answered as well.
fn echoes(program: PathBuf, options: &[&str], file: &str, what: &str) {
    let folder = TempDir::new().expect("a folder");
    let port = free_datagram_port();
    let mut command = with(sock(&program), options, file, what, port);
    let server = Server::start_datagrams(command.current_dir(folder.path()), port, libc::SIGINT, folder.path());
    let mut inside = with(sock(python()), &[], "datagrams.py", "client", port);
    let said = says_ok(inside.env("RINGS", "1"), &server);
    let [came, _] = datagrams_by_ring(&said);
    assert!(came > 0, "{said}\n{}", server.said());
    says_ok(&mut with(Command::new(python()), &[], "datagrams.py", "client", port), &server);
    says_ok(&mut with(sock(python()), &[], "datagrams.py", "asyncio-client", port), &server);
    server.end();
}

#[test]
fn python_echoes_datagrams() {
    echoes(python(), &[], "datagrams.py", "server");
}

#[test]
fn python_asyncio_echoes_datagrams() {
    echoes(python(), &[], "datagrams.py", "asyncio-server");
}

#[test]
fn node_echoes_datagrams() {
    echoes(PathBuf::from("node"), &[], "datagrams.js", "server");
}

#[test]
fn java_echoes_datagrams_by_a_socket() {
    echoes(PathBuf::from("java"), &JAVA, "Datagrams.java", "server");
}

#[test]
fn java_echoes_datagrams_by_a_channel() {
    echoes(PathBuf::from("java"), &JAVA, "Datagrams.java", "channel-server");
}

#[test]
fn node_and_java_are_answered_from_inside_and_from_outside() {
    for server in [sock(python()), Command::new(python())] {
        let folder = TempDir::new().expect("a folder");
        let port = free_datagram_port();
        let mut command = with(server, &[], "datagrams.py", "server", port);
        let server = Server::start_datagrams(&mut command, port, libc::SIGINT, folder.path());
        says_ok(&mut with(sock("node"), &[], "datagrams.js", "client", port), &server);
        says_ok(&mut with(sock("java"), &JAVA, "Datagrams.java", "client", port), &server);
        server.end();
    }
}

#[test]
fn dnsmasq_answers_inside_and_outside() {
    let folder = TempDir::new().expect("a folder");
    let port = free_datagram_port();
    let mut command = sock("/usr/sbin/dnsmasq");
    command.args(["--keep-in-foreground", "--listen-address=127.0.0.1", "--bind-interfaces", "--no-resolv"]);
    command.args(["--no-hosts", "--conf-file=/dev/null", "--pid-file=", "--address=/weft.test/10.1.2.3"]);
    // It gives up being root for somebody who cannot write its log, if it is not told who it is.
    command.arg(format!("--user={}", run(Command::new("id").arg("-un")).text().trim())).arg(format!("--port={port}"));
    let server = Server::start_datagrams(&mut command, port, libc::SIGTERM, folder.path());
    for mut client in [sock("dig"), Command::new("dig")] {
        let asked =
            run(client.args(["@127.0.0.1", "-p", &port.to_string(), "+short", "+tries=1", "+time=60", "a.weft.test"]));
        assert_eq!(asked.text(), "10.1.2.3\n");
    }
    for python in [sock(python()), Command::new(python())] {
        says_ok(&mut with(python, &[], "datagrams.py", "names", port), &server);
    }
    server.end();
}

#[test]
fn memcached_answers_datagrams() {
    let folder = TempDir::new().expect("a folder");
    let port = free_port();
    let mut command = sock("memcached");
    let number = port.to_string();
    command.args(["-u", "root", "-l", "127.0.0.1", "-p", &number, "-U", &number, "-t", "2"]);
    let server = Server::start(&mut command, port, libc::SIGINT, folder.path());
    for python in [sock(python()), Command::new(python())] {
        says_ok(&mut with(python, &[], "datagrams.py", "memcached", port), &server);
    }
    server.end();
}

/// A server for each client: one that comes while the server still ends another's test is turned away or reset, which
/// the server's listening socket is as well then; also without the library.
#[test]
fn iperf3_counts_datagrams_both_ways() {
    let folder = TempDir::new().expect("a folder");
    for direction in ["", "-R"] {
        for mut client in [sock("iperf3"), Command::new("iperf3")] {
            let port = free_port();
            let mut command = sock("iperf3");
            command.args(["-s", "-1", "-B", "127.0.0.1", "-p", &port.to_string()]);
            let server = Server::start_for_one(&mut command, port, libc::SIGINT, folder.path());
            client.args([
                "-J",
                "-u",
                "-b",
                "100M",
                "-l",
                "1400",
                "-n",
                "10M",
                "-c",
                "127.0.0.1",
                "-p",
                &port.to_string(),
            ]);
            let text = run(client.args(direction.split_whitespace())).text();
            let sum = text.split("\"sum\":").last().unwrap_or_default();
            let number = |name: &str| -> u64 {
                let value = sum.split(&format!("\"{name}\":")).nth(1).and_then(|rest| rest.split([',', '}']).next());
                value.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
            };
            assert!(number("packets") >= (10 << 20) / 1400 && number("lost_packets") < number("packets"), "{text}");
            let (said, status) = server.ended();
            assert!(status.success(), "{said}");
        }
    }
}

#[test]
fn sockperf_ping_pongs_by_datagrams() {
    let folder = TempDir::new().expect("a folder");
    let port = free_datagram_port();
    let number = port.to_string();
    let mut command = sock("sockperf");
    command.args(["sr", "-i", "127.0.0.1", "-p", &number]);
    let server = Server::start_datagrams(&mut command, port, libc::SIGINT, folder.path());
    for mut client in [sock("sockperf"), Command::new("sockperf")] {
        client.args([
            "pp",
            "--data-integrity",
            "-i",
            "127.0.0.1",
            "-p",
            &number,
            "-t",
            "1",
            "-m",
            "64",
            "--mps=100000",
        ]);
        let text = run(&mut client).text();
        assert!(text.contains("Summary: Latency is") && !text.contains("data integrity test failed"), "{text}");
    }
    server.end();
}

#[test]
fn socat_echoes_datagrams() {
    let folder = TempDir::new().expect("a folder");
    let port = free_datagram_port();
    let mut command = sock("socat");
    command.args([format!("UDP4-RECVFROM:{port},bind=127.0.0.1,fork"), "PIPE".to_owned()]);
    let server = Server::start_datagrams(&mut command, port, libc::SIGTERM, folder.path());
    for inside in [true, false] {
        for turn in 0..20 {
            let (file, word) = (folder.path().join("word"), format!("datagram {turn}\n"));
            std::fs::write(&file, &word).expect("a file");
            let mut client = if inside { sock("socat") } else { Command::new("socat") };
            // It ends when it has its answer.
            let there = format!("UDP4:127.0.0.1:{port},readbytes={}", word.len());
            let input = std::fs::File::open(&file).expect("the file");
            let back = run(client.args(["-t", "60", "-", &there]).stdin(input));
            assert_eq!(back.text(), word, "{}", server.said());
        }
    }
    server.end();
}
