//! `weft bench layers` on what is installed: every layer has a figure in every column.

use serde_json::Value;
use std::process::Command;
use tempfile::TempDir;
use weft_tests::tree;

const ROWS: [&str; 16] = [
    "raw",
    "port",
    "socket",
    "socket-self",
    "mpi",
    "native",
    "pvm",
    "p4",
    "tcgmsg",
    "active-messages",
    "fast-messages",
    "panda",
    "tcp",
    "tcp-self",
    "unix",
    "unix-self",
];
const COLUMNS: [&str; 4] = ["pingpong", "exchange", "pingpong-rate", "exchange-rate"];

/// No times: only what holds on any machine. That sockets went through rings is a condition of the command itself.
#[test]
fn the_smallest_run_has_every_row_with_positive_figures() {
    let folder = TempDir::new().expect("a folder");
    let json = folder.path().join("layers.json");
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["bench", "layers", "--quick", "--turns", "1", "--seconds", "0.02", "--json"]).arg(&json);
    let output = command.output().expect("weft can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = std::fs::read_to_string(json).expect("a report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    let ids: Vec<&str> = rows.iter().filter_map(|row| row["id"].as_str()).collect();
    assert_eq!(ids, ROWS);
    for row in rows {
        for column in COLUMNS {
            let value = row["samples"][column][0]["value"].as_f64();
            assert!(value.is_some_and(|value| value > 0.0), "{column} of {row}");
        }
    }
    let limits = report["limits"].as_array().expect("limits");
    for id in ["system-call", "memcpy-1MiB"] {
        let limit = limits.iter().find(|limit| limit["id"] == id).expect(id);
        assert!(limit["samples"][0].as_f64().is_some_and(|value| value > 0.0), "{limit}");
    }
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("socket to self") && table.contains("one way 8 B"), "{table}");
}
