//! Asking hosts what they have, all at the same time.

use super::{FoundHost, HostAbout};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Between two looks at commands that run.
const LOOK: Duration = Duration::from_millis(10);

/// What each host answers to its command, in their order.
pub fn all(commands: &[Vec<String>], patience: Option<Duration>) -> Vec<FoundHost<HostAbout>> {
    let begin = |words: &Vec<String>| {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        (words.join(" "), command.spawn())
    };
    let started: Vec<_> = commands.iter().map(begin).collect();
    let end = patience.map(|patience| Instant::now() + patience);
    let answer = |(command, child): (String, std::io::Result<Child>)| match child {
        Ok(child) => answer_of(child, &command, end),
        Err(error) => FoundHost::Bad(format!("launch command '{command}' could not be started: {error}")),
    };
    started.into_iter().map(answer).collect()
}

fn answer_of(mut child: Child, command: &str, end: Option<Instant>) -> FoundHost<HostAbout> {
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if end.is_none_or(|end| Instant::now() < end) => std::thread::sleep(LOOK),
            Ok(None) => {
                let _ = child.kill().and_then(|()| child.wait());
                return FoundHost::Bad(format!("nothing was heard in time (WEFT_LAUNCH_TIMEOUT) of '{command}'"));
            }
            Err(error) => return FoundHost::Bad(error.to_string()),
        }
    };
    let (mut said, mut error) = (Vec::new(), Vec::new());
    let read = |pipe: Option<&mut dyn Read>, into: &mut Vec<u8>| pipe.map(|pipe| pipe.take(1 << 16).read_to_end(into));
    read(child.stdout.as_mut().map(|pipe| pipe as &mut dyn Read), &mut said);
    read(child.stderr.as_mut().map(|pipe| pipe as &mut dyn Read), &mut error);
    if !status.success() {
        let last = line(&error, true).map(|line| format!(": {line}")).unwrap_or_default();
        return FoundHost::Bad(format!("launch command '{command}' failed ({status}){last}"));
    }
    understand(&said)
}

/// The answer, which is all that may stand there.
fn understand(said: &[u8]) -> FoundHost<HostAbout> {
    match serde_json::from_slice(said) {
        Ok(about) => FoundHost::Good(about),
        Err(_) => FoundHost::Bad(match line(said, false) {
            Some(noise) => format!(
                "'{noise}' came in place of its answer; something prints to standard output there when a command is \
                 started (a login script, a banner), which must be silent"
            ),
            None => "the launch command has ended without an answer".to_owned(),
        }),
    }
}

/// The first or the last line that is not empty, fit to be shown.
pub fn line(text: &[u8], last: bool) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = if last { lines.next_back() } else { lines.next() };
    line.map(shown)
}

pub fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_cluster::hosts::Launch;

    fn ask_within(launch: &str, patience: Duration) -> Vec<FoundHost<HostAbout>> {
        let launch: Launch = launch.parse().expect("a launch command");
        all(&[launch.command("a", &["weft", "about"])], Some(patience))
    }

    fn ask(launch: &str) -> String {
        match &ask_within(launch, Duration::from_secs(60))[..] {
            [FoundHost::Bad(why)] => why.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_way_of_not_answering_is_said_in_a_line() {
        assert!(ask("no-such-command {host}").contains("could not be started"));
        let failed = ask("sh -c 'echo first >&2; echo last >&2; exit 3' {host}");
        assert!(failed.contains("exit status: 3") && failed.ends_with(": last"), "{failed}");
        assert!(ask("echo Welcome to {host}").contains("'Welcome to a weft about' came in place"));
        assert!(ask("true {host}").contains("without an answer"));
        match &ask_within("sh -c 'exec sleep 1000' {host}", Duration::ZERO)[..] {
            [FoundHost::Bad(late)] => assert!(late.contains("WEFT_LAUNCH_TIMEOUT"), "{late}"),
            other => panic!("{other:?}"),
        }
    }
}
