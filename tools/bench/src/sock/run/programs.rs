//! The real programs: a server and its client load, both in the way that is measured.

use super::{SockBench, figure};
use crate::process;
use crate::sock::lines::{SockJob, SockWay};
use anyhow::{Context, bail};
use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs need so long at least: before that a connection's beginning counts more than what follows.
const SHORTEST_S: f64 = 0.4;

/// What is installed, and folders that the servers need.
pub struct Programs {
    folder: PathBuf,
    postgres: Option<PathBuf>,
    /// Who runs the database, which refuses root.
    owner: Option<(u32, u32)>,
}

impl Programs {
    /// Looks for programs, and prepares what can be prepared once.
    pub fn look(folder: &Path) -> anyhow::Result<Self> {
        let files = folder.join("files");
        std::fs::create_dir_all(&files)?;
        std::fs::write(files.join("small.html"), [b'w'; 600])?;
        Ok(Self { folder: folder.to_path_buf(), postgres: newest_postgres(), owner: database_owner() })
    }

    /// The Debian package with the program that a job needs and that is not there.
    pub fn missing(&self, job: SockJob) -> Option<&'static str> {
        let needs: &[(&str, &'static str)] = match job {
            SockJob::Pair { .. } => &[],
            SockJob::Redis { .. } => &[("redis-server", "redis-server"), ("redis-benchmark", "redis-tools")],
            SockJob::Nginx { .. } => &[("nginx", "nginx"), ("wrk", "wrk")],
            SockJob::Memcached { .. } => &[("memcached", "memcached")],
            SockJob::Pgbench { .. } if self.postgres.is_some() => &[],
            SockJob::Pgbench { .. } => return Some("postgresql"),
        };
        needs.iter().find(|(program, _)| found(program).is_none()).map(|(_, package)| *package)
    }
}

/// Where a program lies: where a shell would look, or only root's.
fn found(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).map(|folder| folder.join(name)).find(|path| path.is_file())
}

fn newest_postgres() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path().join("bin"));
    versions.filter(|bin| bin.join("postgres").is_file() && bin.join("pgbench").is_file()).max()
}

fn database_owner() -> Option<(u32, u32)> {
    if std::fs::metadata("/proc/self").ok()?.uid() != 0 {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|line| line.starts_with("postgres:"))?;
    let mut numbers = line.split(':').skip(2).map_while(|word| word.parse().ok());
    numbers.next().zip(numbers.next())
}

/// A command as words.
type Words = Vec<OsString>;

fn words<const N: usize>(words: [&str; N]) -> Words {
    words.map(OsString::from).to_vec()
}

/// A server with its client.
struct ServerAndClient {
    server: Words,
    client: Words,
    busy: u32,
    /// What the client printed becomes requests per second.
    read: fn(&str) -> anyhow::Result<f64>,
}

/// Requests per second, and all that was printed.
pub fn measure(bench: &SockBench, programs: &Programs, job: SockJob, way: SockWay) -> anyhow::Result<(f64, String)> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let pair = match job {
        SockJob::Pair { .. } => bail!("a pair is no program"),
        SockJob::Redis { clients, pipeline, busy } => redis(bench, way, port, clients, pipeline, busy)?,
        SockJob::Nginx { clients, busy } => nginx(bench, programs, way, port, clients, busy)?,
        SockJob::Memcached { clients, busy } => memcached(bench, way, port, clients, busy),
        SockJob::Pgbench { clients, busy } => pgbench(bench, programs, way, port, clients, busy)?,
    };
    let mut command = Command::new(&bench.pairs);
    command.args(["beside", &port.to_string(), &pair.busy.to_string()]).args(bench.cpus());
    command.args(pair.server).arg("then").args(pair.client);
    if let (SockJob::Pgbench { .. }, Some((user, group))) = (job, programs.owner) {
        std::os::unix::process::CommandExt::uid(&mut command, user);
        std::os::unix::process::CommandExt::gid(&mut command, group);
        command.current_dir("/");
    }
    let outcome = process::run(command, bench.limit())?;
    outcome.check()?;
    Ok(((pair.read)(&outcome.stdout)?, outcome.stdout))
}

fn command(bench: &SockBench, way: SockWay, program: &str, arguments: Words) -> Words {
    let program = found(program).unwrap_or_else(|| program.into());
    let mut command = bench.words(way, &program);
    command.extend(arguments);
    command
}

fn redis(
    bench: &SockBench,
    way: SockWay,
    port: u16,
    clients: u32,
    pipeline: u32,
    busy: u32,
) -> anyhow::Result<ServerAndClient> {
    let port = port.to_string();
    let options = ["--port", &port, "--bind", "127.0.0.1", "--save", "", "--loglevel", "warning"];
    // As many requests as fit into the time at the kernel's usual rate, so that faster ways take less of it.
    let rate = if clients == 1 { 20_000.0 } else { 80_000.0 * f64::from(pipeline.min(6)) };
    let requests = (rate * bench.seconds.max(SHORTEST_S)).round().to_string();
    let (clients, pipeline) = (clients.to_string(), pipeline.to_string());
    let load = ["-p", &port, "-t", "get", "-c", &clients, "-P", &pipeline, "-n", &requests, "--csv"];
    Ok(ServerAndClient {
        server: command(bench, way, "redis-server", words(options)),
        client: command(bench, way, "redis-benchmark", words(load)),
        busy,
        read: read_redis,
    })
}

/// `"GET","81234.56","0.3",...`
fn read_redis(out: &str) -> anyhow::Result<f64> {
    let line = out.lines().find_map(|line| line.strip_prefix("\"GET\",\""));
    let rate = line.and_then(|rest| rest.split('"').next()?.parse().ok());
    rate.with_context(|| format!("redis-benchmark says {:?}", out.trim()))
}

fn nginx(
    bench: &SockBench,
    programs: &Programs,
    way: SockWay,
    port: u16,
    clients: u32,
    busy: u32,
) -> anyhow::Result<ServerAndClient> {
    let folder = programs.folder.display();
    let user = if programs.owner.is_some() { "user root;" } else { "" };
    let temporary =
        ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|name| format!("{name}_temp_path {folder}/{name};"));
    let text = format!(
        "worker_processes 2; daemon off; pid {folder}/pid; error_log stderr crit; {user}\n\
         events {{ worker_connections 256; }}\n\
         http {{ sendfile on; tcp_nopush on; access_log off; keepalive_requests 100000000; {}\n\
         server {{ listen 127.0.0.1:{port}; root {folder}/files; }} }}\n",
        temporary.join(" ")
    );
    let file = programs.folder.join("nginx.conf");
    std::fs::write(&file, text)?;
    let file = file.to_string_lossy().into_owned();
    let seconds = bench.seconds.ceil().to_string();
    let (clients, url) = (clients.to_string(), format!("http://127.0.0.1:{port}/small.html"));
    let load = ["-t1", "-c", &clients, "-d", &seconds, &url];
    Ok(ServerAndClient {
        server: command(bench, way, "nginx", words(["-c", &file, "-e", "stderr"])),
        client: command(bench, way, "wrk", words(load)),
        busy,
        read: read_wrk,
    })
}

fn read_wrk(out: &str) -> anyhow::Result<f64> {
    if out.contains("Socket errors") || out.contains("Non-2xx") {
        bail!("wrk saw errors: {}", out.trim());
    }
    let rate = out.lines().find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse().ok());
    rate.with_context(|| format!("wrk says {:?}", out.trim()))
}

fn memcached(bench: &SockBench, way: SockWay, port: u16, clients: u32, busy: u32) -> ServerAndClient {
    let port = port.to_string();
    let options = ["-l", "127.0.0.1", "-p", &port, "-U", "0", "-t", "2", "-u", "nobody"];
    let mut client = bench.words(way, &bench.pairs);
    client.extend(words(["memcached", &port, &clients.to_string(), &bench.seconds.max(SHORTEST_S).to_string()]));
    let server = command(bench, way, "memcached", words(options));
    ServerAndClient { server, client, busy, read: |out| figure(out, "memcached") }
}

fn pgbench(
    bench: &SockBench,
    programs: &Programs,
    way: SockWay,
    port: u16,
    clients: u32,
    busy: u32,
) -> anyhow::Result<ServerAndClient> {
    let bin = programs.postgres.as_ref().context("no PostgreSQL")?;
    let data = database(programs, bin)?;
    let (port, clients, seconds) = (port.to_string(), clients.to_string(), bench.seconds.ceil().to_string());
    let data = data.to_string_lossy().into_owned();
    let mut server = bench.words(way, &bin.join("postgres"));
    server.extend(words([
        "-D",
        &data,
        "-p",
        &port,
        "-c",
        "listen_addresses=127.0.0.1",
        "-c",
        "unix_socket_directories=",
    ]));
    server.extend(words(["-c", "fsync=off", "-c", "log_min_messages=fatal"]));
    // Its port is open before it lets anybody in.
    let mut client = words(["sh", "-c", WHEN_READY, "sh"]);
    client.extend([bin.join("pg_isready").into(), port.clone().into()]);
    client.extend(bench.words(way, &bin.join("pgbench")));
    client.extend(words([
        "-h",
        "127.0.0.1",
        "-p",
        &port,
        "-U",
        "bench",
        "-n",
        "-S",
        "-c",
        &clients,
        "-T",
        &seconds,
        "postgres",
    ]));
    Ok(ServerAndClient { server, client, busy, read: read_pgbench })
}

/// Runs a command when PostgreSQL says that it is ready; words: `pg_isready`, the port, the command.
const WHEN_READY: &str =
    "ready=$1 port=$2; shift 2; until $ready -q -h 127.0.0.1 -p $port; do sleep 0.01; done; exec \"$@\"";

/// `tps = 12345.6 (without initial connection time)`
fn read_pgbench(out: &str) -> anyhow::Result<f64> {
    let rate = out.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    rate.with_context(|| format!("pgbench says {:?}", out.trim()))
}

/// A database with pgbench's tables, made at the first use.
fn database(programs: &Programs, bin: &Path) -> anyhow::Result<PathBuf> {
    let folder = programs.folder.join("database");
    let (data, sql) = (folder.join("data"), folder.join("fill.sql"));
    if data.exists() {
        return Ok(data);
    }
    std::fs::create_dir(&folder)?;
    std::fs::write(&sql, FILL)?;
    if let Some((user, group)) = programs.owner {
        // The owner must pass through the folder above, which is ours alone otherwise.
        std::fs::set_permissions(&programs.folder, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        chown(&folder, Some(user), Some(group))?;
    }
    let quote = |path: &Path| format!("'{}'", path.display());
    let script = format!(
        "{initdb} --no-sync -A trust -U bench -D {data} > /dev/null && \
         {postgres} --single -D {data} -F postgres < {sql} > /dev/null",
        initdb = quote(&bin.join("initdb")),
        postgres = quote(&bin.join("postgres")),
        data = quote(&data),
        sql = quote(&sql),
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir("/");
    if let Some((user, group)) = programs.owner {
        std::os::unix::process::CommandExt::uid(&mut command, user);
        std::os::unix::process::CommandExt::gid(&mut command, group);
    }
    process::compile(command).context("cannot make a database")?;
    Ok(data)
}

/// What `pgbench -i -s 1` makes, as far as `-S` reads it; each statement stands on one line.
const FILL: &str = "\
create table pgbench_branches(bid int not null primary key, bbalance int, filler char(88))
create table pgbench_accounts(aid int not null, bid int, abalance int, filler char(84))
insert into pgbench_branches select 1, 0, ''
insert into pgbench_accounts select aid, 1, 0, '' from generate_series(1, 100000) aid
alter table pgbench_accounts add primary key (aid)
vacuum analyze pgbench_accounts
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_from_what_the_clients_print() {
        let csv = "\"test\",\"rps\"\n\"GET\",\"81234.56\",\"0.3\"\n";
        assert_eq!(read_redis(csv).unwrap(), 81234.56);
        assert_eq!(read_wrk("  1 threads\nRequests/sec:  54321.10\nTransfer/sec: 1MB\n").unwrap(), 54321.1);
        assert_eq!(read_pgbench("x\ntps = 9876.5 (without initial connection time)\n").unwrap(), 9876.5);
        assert!(read_redis("").is_err() && read_pgbench("tps").is_err());
        let e = read_wrk("Requests/sec: 1.0\n  Socket errors: connect 0, read 3\n").unwrap_err().to_string();
        assert!(e.contains("errors"), "{e}");
    }
}
