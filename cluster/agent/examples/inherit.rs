//! A caller that gives every rank a descriptor of its own: three ranks read the same file through it.

use std::io::Write;
use std::time::Duration;
use weft_agent::{Job, JobId, RankOutput};
use weft_cluster::job::{Program, StdinTo};
use weft_cluster::placement::Bind;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut file = tempfile::tempfile()?;
    file.write_all(b"shared\n")?;
    let script = "cat /proc/self/fd/$WEFT_SEGMENT";
    let program =
        Program { program: "sh".into(), arguments: vec!["-c".into(), script.into()], ranks: 3, ..Program::default() };
    let finished = weft_agent::run(Job {
        front: "inherit".into(),
        id: JobId::new(),
        programs: vec![program],
        bind: Bind::None,
        stdin: StdinTo::Nobody,
        output: RankOutput::merged(false),
        timeout: Some(Duration::from_secs(60).into()),
        inherit: vec![("WEFT_SEGMENT".into(), file.into())],
        hosts: None,
        keep_going: false,
        network: false,
        partition: None,
        cores: None,
        starter: None,
    })?;
    std::process::exit(finished.code)
}
