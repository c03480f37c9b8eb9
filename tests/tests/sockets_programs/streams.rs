//! iperf3, sockperf and socat.

use std::process::Command;
use tempfile::TempDir;
use weft_tests::sockets::{Server, assert_by_ring, free_port, random_bytes, run, sock};

#[test]
fn iperf3_counts_the_same_bytes_on_both_sides() {
    let folder = TempDir::new().expect("a folder");
    for direction in ["", "-R", "--bidir"] {
        let port = free_port();
        let mut command = sock("iperf3");
        command.args(["-s", "-1", "-B", "127.0.0.1", "-p", &port.to_string()]);
        let server = Server::start_for_one(&mut command, port, libc::SIGINT, folder.path());
        let mut command = sock("iperf3");
        command.args(["-J", "-c", "127.0.0.1", "-p", &port.to_string(), "-n", "3G"]);
        let client = run(command.args(direction.split_whitespace()));
        let text = client.text();
        let total = |name: &str| -> u64 {
            let sum = text.split(&format!("\"{name}\":")).nth(1).unwrap_or_else(|| panic!("no {name} in {text}"));
            let bytes = sum.split("\"bytes\":").nth(1).and_then(|rest| rest.split(',').next()).expect("bytes");
            bytes.trim().parse().expect("a number")
        };
        // Both ways at once, it ends when one of them has moved enough.
        let ways: &[&str] = if direction == "--bidir" { &["", "_bidir_reverse"] } else { &[""] };
        let [sent, received] = ["sent", "received"]
            .map(|what| ways.iter().map(|way| total(&format!("sum_{what}{way}"))).collect::<Vec<_>>());
        assert!(sent.iter().any(|bytes| *bytes >= 3 << 30), "{text}");
        assert!(received.iter().zip(&sent).all(|(received, sent)| received <= sent), "{text}");
        assert_by_ring(&client.err);
        let (said, status) = server.ended();
        assert!(status.success(), "{said}");
    }
}

#[test]
fn sockperf_finds_its_data_intact() {
    let folder = TempDir::new().expect("a folder");
    let port = free_port();
    let mut command = sock("sockperf");
    command.args(["sr", "--tcp", "-i", "127.0.0.1", "-p", &port.to_string()]);
    let server = Server::start(&mut command, port, libc::SIGINT, folder.path());
    let mut command = sock("sockperf");
    let target = ["-i", "127.0.0.1", "-p", &port.to_string(), "-t", "2", "-m", "64"];
    command.args(["pp", "--tcp", "--data-integrity"]).args(target);
    // It has room for so many messages, and ends with an error when more come back than it can imagine.
    command.arg("--mps=100000");
    let client = run(&mut command);
    assert!(client.text().contains("Summary: Latency is"), "{client:?}");
    assert!(!client.text().contains("data integrity test failed"), "{client:?}");
    assert_by_ring(&client.err);
    server.end();
}

#[test]
fn socat_passes_a_file_on_and_back() {
    let folder = TempDir::new().expect("a folder");
    let port = free_port();
    // Where the copy of the server that answers is late, the first sends fill the kernel's buffers: some 3 MiB.
    let bytes = random_bytes(9, 256 << 20);
    let file = folder.path().join("file");
    std::fs::write(&file, &bytes).expect("a file");
    let mut command = sock("socat");
    command.args([format!("TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr,fork"), "EXEC:cat".to_owned()]);
    let server = Server::start(&mut command, port, libc::SIGTERM, folder.path());
    for (mut client, preloaded) in [(sock("socat"), true), (Command::new("socat"), false)] {
        let input = std::fs::File::open(&file).expect("the file");
        // Long enough for what is still on its way back when the file has ended.
        let back = run(client.args(["-t", "10", "-", &format!("TCP:127.0.0.1:{port}")]).stdin(input));
        assert!(back.out == bytes, "{} of {} bytes came back", back.out.len(), bytes.len());
        if preloaded {
            assert_by_ring(&back.err);
        }
    }
    server.end();
}
