//! What is no job and is seen as long as it lives.

use super::{Lab, said, used};
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

fn has_none(view: &Value) -> bool {
    view["processes"].as_array().is_some_and(Vec::is_empty)
}

#[test]
fn a_program_of_weft_sock_is_seen_until_it_ends_also_by_a_daemon_that_begins_again() {
    let mut lab = Lab::with_daemons("");
    let mut program = lab.weft(2, &["sock", "sleep", "1000"]).spawn().expect("started");
    let (name, pid) = (lab.hosts.name(2), program.id());
    let is_seen = |view: &Value| {
        let one = &view["processes"][0];
        one["kind"] == "sockets" && one["pid"] == pid && one["user"] == "root" && one["member"] == *name
    };
    let view = lab.until("it is seen", is_seen);
    assert_eq!((&view["processes"][0]["program"], used(&view)), (&Value::from("sleep"), 0));
    let shown = said(lab.weft(1, &["ps", "--cluster"]).output().expect("started"));
    assert!(shown.contains(&format!("sockets    {pid} ")) && shown.contains(&name), "{shown}");
    lab.kill(2);
    lab.start(2);
    lab.until("it is seen again", is_seen);
    program.kill().and_then(|()| program.wait()).expect("killed");
    lab.until("it has gone", has_none);
    let records = said(lab.weft(2, &["jobs", "--json"]).output().expect("started"));
    assert_eq!(serde_json::from_str::<Value>(&records).expect("JSON"), Value::Array(Vec::new()));
}

#[test]
fn a_virtual_machine_of_pvm_is_seen_until_it_is_halted() {
    let lab = Lab::with_daemons("");
    said(lab.weft(1, &["pvm", "--start", "--stay"]).output().expect("started"));
    lab.until("it is seen", |view| view["processes"][0]["kind"] == "pvm");
    let mut console = lab.weft(1, &["pvm"]);
    let mut console = console.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("started");
    console.stdin.take().expect("piped").write_all(b"halt\n").expect("written");
    console.wait().expect("ended");
    lab.until("it has gone", has_none);
}
