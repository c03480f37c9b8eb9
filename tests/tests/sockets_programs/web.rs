//! nginx, wrk and curl.

use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use weft_tests::sockets::{Server, assert_by_ring, free_port, random_bytes, run, sock};

/// Two workers, sendfile, everything in one folder.
fn nginx(folder: &Path, port: u16) -> Server {
    let configuration = format!(
        "worker_processes 2; daemon off; pid {folder}/pid; error_log stderr warn; {user}\n\
         events {{ worker_connections 256; }}\n\
         http {{ sendfile on; tcp_nopush on; access_log off; keepalive_requests 1000000; types {{ text/html html; }}\n\
         client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;\n\
         uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;\n\
         server {{ listen 127.0.0.1:{port}; root {folder}/files; }} }}\n",
        folder = folder.display(),
        user = if std::env::var_os("USER").is_none_or(|user| user == "root") { "user root;" } else { "" },
    );
    let file = folder.join("nginx.conf");
    std::fs::write(&file, configuration).expect("a file");
    let mut command = sock("nginx");
    command.arg("-c").arg(file).arg("-p").arg(folder).args(["-e", "stderr"]);
    Server::start(&mut command, port, libc::SIGQUIT, folder)
}

/// The workers of a server.
fn children(pid: i32) -> Vec<i32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("a living server");
    list.split_whitespace().map(|pid| pid.parse().expect("a number")).collect()
}

/// Runs wrk: no error of any kind, and some requests.
fn wrk(port: u16, options: &str, file: &str) -> String {
    let finished = run(sock("wrk").args(options.split_whitespace()).arg(format!("http://127.0.0.1:{port}/{file}")));
    let text = finished.text();
    assert!(!text.contains("Socket errors") && !text.contains("Non-2xx"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("Requests/sec:")), "{text}");
    finished.err
}

#[test]
fn nginx_sends_files_right_and_survives_reloads() {
    let folder = TempDir::new().expect("a folder");
    let port = free_port();
    let files = folder.path().join("files");
    std::fs::create_dir(&files).expect("a folder");
    let large = random_bytes(5, 24 << 20);
    std::fs::write(files.join("large.bin"), &large).expect("a file");
    std::fs::write(files.join("small.html"), random_bytes(6, 600)).expect("a file");
    let server = nginx(folder.path(), port);
    let fetch = |mut curl: Command| run(curl.args(["-sSf", &format!("http://127.0.0.1:{port}/large.bin")]));
    let fetched = fetch(sock("curl"));
    assert!(fetched.out == large, "with the library");
    assert_by_ring(&fetched.err);
    assert!(fetch(Command::new("curl")).out == large, "without, from the same server");
    assert_by_ring(&wrk(port, "-t1 -c1 -d1s", "small.html"));
    assert_by_ring(&wrk(port, "-t2 -c16 -d1s", "small.html"));
    assert_by_ring(&wrk(port, "-t1 -c4 -d1s", "large.bin"));
    for _ in 0..3 {
        let old = children(server.pid());
        server.signal(libc::SIGHUP);
        assert!(fetch(sock("curl")).out == large, "right after a reload");
        // A worker that is about to end closes connections that are idle, and a client would count that.
        while children(server.pid()).iter().any(|worker| old.contains(worker)) {
            std::thread::yield_now();
        }
    }
    wrk(port, "-t1 -c4 -d1s", "small.html");
    server.end();
}
