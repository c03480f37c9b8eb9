//! Bringing the file to the members.

use super::file::{self, ClusterFile, MOST_BYTES, Slips, launch_of};
use crate::defaults::Defaults;
use crate::hosts::line;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use weft_database::Cluster;

/// Between two looks at commands that run.
const LOOK: Duration = Duration::from_millis(5);
/// How long a stream is waited for that is still open when its command has ended.
const LEFT_OPEN: Duration = Duration::from_secs(1);

/// Sends the file to all members at the same time.
pub fn apply() -> Result<i32, Slips> {
    let ClusterFile { path, text, cluster } = file::find()?;
    on_all(&cluster, &text, Duration::ZERO, |_| {
        let system = file::is_system(&path).then_some("--system");
        ["take", &cluster.name].into_iter().chain(system).collect()
    })
}

/// Runs `weft cluster` with these words on each member at the same time, and shows in one line for each what has come
/// of it. Who takes longer than hosts may, and this besides, is given up. Answers the exit code.
pub fn on_all<'a>(
    cluster: &'a Cluster,
    input: &str,
    besides: Duration,
    words: impl Fn(&'a str) -> Vec<&'a str>,
) -> Result<i32, Slips> {
    let launch = launch_of(cluster)?;
    let failed = |error: io::Error| vec![error.to_string()];
    let program = std::env::current_exe().map_err(failed)?;
    let program = program.to_string_lossy();
    // As a file it holds nobody up who does not read it.
    let input = weft_kernel::memory_with(c"weft cluster", input.as_bytes(), true).map_err(failed)?;
    let start = |host: &'a str| -> io::Result<Child> {
        let words = launch.command(host, &[&[&*program, "cluster"][..], &words(host)].concat());
        let input = File::open(format!("/proc/self/fd/{}", input.as_raw_fd()))?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    };
    let end = Defaults::of_environment().launch_timeout.map(|patience| Instant::now() + patience + besides);
    let started: Vec<_> = cluster.members.iter().map(|member| (&member.name, start(&member.name))).collect();
    Ok(show_outcomes(started, end))
}

/// Waits for commands that were started on members, and shows a line of each. Answers the exit code.
fn show_outcomes(started: Vec<(&String, io::Result<Child>)>, end: Option<Instant>) -> i32 {
    let mut failed = 0;
    for (name, child) in started {
        let output = child.and_then(|child| outcome(child, end));
        let (good, said) = match &output {
            Ok(output) if output.status.success() => (true, line(&output.stdout, true)),
            Ok(output) => (false, line(&output.stderr, true).or_else(|| Some(output.status.to_string()))),
            Err(error) => (false, Some(error.to_string())),
        };
        failed += i32::from(!good);
        println!("{name}: {}", said.unwrap_or_default());
    }
    i32::from(failed > 0)
}

/// What a command has written when it has ended. One that is late is killed.
fn outcome(mut child: Child, end: Option<Instant>) -> io::Result<Output> {
    // Read meanwhile, so that no command waits for room in a pipe.
    let stdout = reader(child.stdout.take());
    let stderr = reader(child.stderr.take());
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            child.kill().and_then(|()| child.wait())?;
            return Err(io::Error::other("nothing was heard in time (WEFT_LAUNCH_TIMEOUT)"));
        }
        std::thread::sleep(LOOK);
    };
    // What it has left behind may keep its output open.
    let all = |reader: Receiver<Vec<u8>>| reader.recv_timeout(LEFT_OPEN).unwrap_or_default();
    Ok(Output { status, stdout: all(stdout), stderr: all(stderr) })
}

/// Reads a stream to its end, in a thread.
fn reader(stream: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (told, hears) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.map(|mut stream| stream.read_to_end(&mut bytes));
        let _ = told.send(bytes);
    });
    hears
}

#[derive(clap::Args)]
pub struct TakeArguments {
    /// Name of the cluster, whose file comes from standard input
    #[arg(required_unless_present = "from")]
    name: Option<String>,
    /// Ask a name server, as dns:lab.example or dns:lab.example@10.0.0.1:53; the launch command stays this host's
    #[arg(long, value_name = "PLACE")]
    from: Option<String>,
    /// Write it for all users, into /etc/weft
    #[arg(long)]
    system: bool,
}

/// Takes a cluster, unless this host has a newer one. What has mistakes is not taken.
pub fn take(given: TakeArguments) -> Result<i32, Slips> {
    let (name, text) = match given.from {
        Some(place) => of_zone(&place, given.name, given.system)?,
        None => {
            let mut text = String::new();
            let read = std::io::stdin().lock().take(MOST_BYTES + 1).read_to_string(&mut text);
            read.map_err(|error| vec![error.to_string()])?;
            (given.name.unwrap_or_default(), text)
        }
    };
    println!("{}", take_text(&name, &file::place_of(&name, given.system), &text)?);
    Ok(0)
}

/// The name and the file of a cluster that a zone has.
fn of_zone(place: &str, name: Option<String>, system: bool) -> Result<(String, String), Slips> {
    let ClusterFile { mut cluster, .. } = file::ask(place)?;
    let name = name.unwrap_or_else(|| cluster.name.clone());
    let ours = file::load(file::place_of(&name, system));
    cluster.launch = ours.ok().and_then(|ours| ours.cluster.launch);
    Ok((name, weft_database::write(&cluster)))
}

/// Takes this text as the file of a cluster, and answers what has become of it.
///
/// # Errors
/// As of [`take`].
pub fn take_text(name: &str, path: &Path, text: &str) -> Result<String, Slips> {
    let new = file::understand(path, text)?;
    if new.name != name {
        return Err(vec![format!("it is of cluster '{}', not of '{name}'", new.name)]);
    }
    let had = match file::load(path.to_owned()) {
        Ok(ClusterFile { text: ours, .. }) if ours == text => {
            return Ok(format!("has version {}", new.version));
        }
        Ok(ClusterFile { cluster: ours, .. }) if ours.version >= new.version => {
            let (kept, version) = (ours.version, new.version);
            return Err(vec![if kept == version {
                format!(
                    "keeps another text of version {kept}; weft cluster edit makes the next version, which it takes"
                )
            } else {
                format!("keeps version {kept}, which is newer than {version}")
            }]);
        }
        Ok(ClusterFile { cluster: ours, .. }) => format!("had version {}", ours.version),
        Err(_) if path.exists() => "had one with mistakes".to_owned(),
        Err(_) => "had none".to_owned(),
    };
    file::write(path, text).map_err(|error| vec![format!("'{}': {error}", path.display())])?;
    Ok(format!("has version {} now, {had}", new.version))
}
