//! redis, memcached and PostgreSQL.

use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use weft_tests::root;
use weft_tests::sockets::{ForAll, Server, assert_by_ring, free_port, random_bytes, run, sock};

fn redis(folder: &Path, port: u16) -> Server {
    let mut command = sock("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--enable-debug-command", "yes"]);
    command.arg("--dir").arg(folder);
    Server::start(&mut command, port, libc::SIGTERM, folder)
}

/// An answer of the server, asked by a client outside.
fn ask(port: u16, words: &[&str]) -> String {
    run(Command::new("redis-cli").args(["-p", &port.to_string()]).args(words)).text().trim().to_owned()
}

fn redis_benchmark(port: u16, options: &str) {
    let mut command = sock("redis-benchmark");
    command.args(["-p", &port.to_string(), "--csv"]).args(options.split_whitespace());
    let finished = run(&mut command);
    assert!(finished.text().lines().count() > 1, "{finished:?}");
    assert_by_ring(&finished.err);
}

#[test]
fn redis_serves_one_client_many_and_pipelines() {
    let folder = TempDir::new().expect("a folder");
    let port = free_port();
    let server = redis(folder.path(), port);
    // Enough for each connection that its first calls, which the kernel carries, do not count.
    redis_benchmark(port, "-t get,set -c 1 -n 20000 -d 64");
    redis_benchmark(port, "-t get,set,lpush,mset -c 20 -n 50000 -d 300");
    redis_benchmark(port, "-t get,set -c 50 -n 1000000 -P 16");
    assert_eq!(ask(port, &["llen", "mylist"]), "50000", "every push arrived once");
    server.end();
}

#[test]
fn redis_keeps_large_values_and_saves_them_while_it_is_loaded() {
    let folder = TempDir::new().expect("a folder");
    let port = free_port();
    let server = redis(folder.path(), port);
    let value = random_bytes(3, 3 << 20);
    let file = folder.path().join("value");
    std::fs::write(&file, &value).expect("a file");
    let store = |key: &str| {
        let input = std::fs::File::open(&file).expect("the value");
        run(sock("redis-cli").args(["-p", &port.to_string(), "-x", "set", key]).stdin(input))
    };
    let fetch = |key: &str| {
        let mut out = run(sock("redis-cli").args(["-p", &port.to_string(), "--raw", "get", key])).out;
        assert_eq!(out.pop(), Some(b'\n'));
        out
    };
    for key in ["a", "b"] {
        assert_eq!(store(key).text().trim(), "OK");
        assert!(fetch(key) == value, "what was stored under {key} comes back");
    }
    assert!(ask(port, &["bgsave"]).contains("started"));
    redis_benchmark(port, "-t set -c 20 -n 200000 -d 100");
    // The child holds the same descriptors as the server and ends while they are in use.
    while ask(port, &["info", "persistence"]).contains("rdb_bgsave_in_progress:1") {}
    assert!(ask(port, &["info", "persistence"]).contains("rdb_last_bgsave_status:ok"));
    assert!(fetch("a") == value, "and after the save");
    assert_eq!(ask(port, &["save"]), "OK");
    let digest = ask(port, &["debug", "digest"]);
    server.end();
    let server = redis(folder.path(), port);
    // It answers already while it still reads what was saved.
    while ask(port, &["info", "persistence"]).contains("loading:1") {}
    assert_eq!(ask(port, &["debug", "digest"]), digest);
    server.end();
}

#[test]
fn memcached_gives_back_what_several_connections_store() {
    let folder = TempDir::new().expect("a folder");
    let port = free_port();
    let mut command = sock("memcached");
    command.args(["-l", "127.0.0.1", "-p", &port.to_string(), "-t", "2", "-U", "0", "-u", "nobody"]);
    let server = Server::start(&mut command, port, libc::SIGTERM, folder.path());
    let script = root().join("tests/programs/sockets.py");
    let client = run(sock(super::languages::python()).arg(script).args(["memcached", &port.to_string()]));
    assert_eq!(client.text(), "ok\n");
    assert_by_ring(&client.err);
    server.end();
}

/// Who runs the database: it refuses root, and both ends must be of one user to find each other.
struct Owner(Option<(u32, u32)>);

impl Owner {
    fn choose() -> Self {
        if std::fs::metadata("/proc/self").expect("/proc").uid() != 0 {
            return Self(None);
        }
        let users = std::fs::read_to_string("/etc/passwd").expect("the users");
        let line =
            users.lines().find(|line| line.starts_with("postgres:")).expect("the user of the database's package");
        let mut numbers = line.split(':').skip(2).map(|word| word.parse().expect("a number"));
        Self(numbers.next().zip(numbers.next()))
    }

    fn give(&self, path: &Path) {
        if let Some((user, group)) = self.0 {
            chown(path, Some(user), Some(group)).expect("root may do so");
        }
    }

    fn runs<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        match self.0 {
            Some((user, group)) => command.uid(user).gid(group).current_dir("/"),
            None => command,
        }
    }
}

fn postgres_program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").expect("an installed database");
    let mut versions: Vec<PathBuf> =
        versions.map(|entry| entry.expect("a folder").path().join("bin").join(name)).collect();
    versions.retain(|path| path.is_file());
    versions.sort();
    versions.pop().unwrap_or_else(|| panic!("no PostgreSQL has {name}"))
}

#[test]
fn postgresql_keeps_its_books_in_order_under_pgbench() {
    let folder = TempDir::new().expect("a folder");
    let (owner, copy) = (Owner::choose(), ForAll::copy());
    owner.give(folder.path());
    let (data, port) = (folder.path().join("data"), free_port().to_string());
    let mut initdb = Command::new(postgres_program("initdb"));
    initdb.args(["--no-sync", "-A", "trust", "-U", "bench", "-D"]).arg(&data);
    run(owner.runs(&mut initdb));
    let mut postgres = copy.sock(postgres_program("postgres"));
    postgres.arg("-D").arg(&data).args(["-p", &port, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]);
    postgres.args(["-c", "unix_socket_directories="]);
    let number = port.parse().expect("a number");
    let server = Server::start(owner.runs(&mut postgres), number, libc::SIGINT, folder.path());
    let client = |name: &str, options: &str| {
        let mut command = copy.sock(postgres_program(name));
        command.args(["-h", "127.0.0.1", "-p", &port, "-U", "bench"]).args(options.split('|'));
        let finished = run(owner.runs(&mut command));
        assert!(!finished.err.contains("ERROR") && !finished.err.contains("aborted"), "{}", finished.err);
        finished
    };
    client("pgbench", "-i|-q|-s|2|postgres");
    for options in ["-S|-n|-c|1|-T|1|postgres", "-n|-c|8|-j|2|-T|2|postgres", "-S|-n|-c|16|-M|prepared|-T|1|postgres"] {
        assert_by_ring(&client("pgbench", options).err);
    }
    let sums = "select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history) \
                and (select sum(bbalance) from pgbench_branches) = (select sum(delta) from pgbench_history) \
                and (select count(*) from pgbench_history) > 0";
    assert_eq!(client("psql", &format!("-At|-c|{sums}|postgres")).text(), "t\n");
    let many = "select string_agg(md5(i::text), '') from generate_series(1, 100000) i";
    let text = client("psql", &format!("-At|-c|{many}|postgres")).text();
    let digest = client("psql", &format!("-At|-c|select md5(({many}))|postgres")).text();
    let own = folder.path().join("text");
    std::fs::write(&own, text.trim_end()).expect("a file");
    assert!(run(Command::new("md5sum").arg(own)).text().starts_with(digest.trim()), "{digest}");
    server.end();
}
