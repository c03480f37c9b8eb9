//! `weft bench kernels`, `apps` and `figures` on what is installed, within one host: every curve and every bar is
//! there.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;
use weft_tests::{signal, tree};

/// Ranks are bound to cores, which a run has for itself.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs `weft bench`, which must end well; what it printed.
fn bench(words: &[&str]) -> String {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new(tree().join("bin/weft"));
    let output = command.arg("bench").args(words).output().expect("weft can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("a report")).expect("JSON")
}

/// No times: only what holds on any machine. That the data was right is a condition of the command itself.
#[test]
fn every_kernel_has_a_curve_for_each_number_of_processes_and_each_figure_is_drawn() {
    let folder = TempDir::new().expect("a folder");
    let report = folder.path().join("kernels.json");
    let text = |path: &Path| path.to_str().expect("text").to_owned();
    let words = "kernels --quick --device shm --seconds 0.005 -n 2,3 --bytes 1,70000";
    let mut words: Vec<&str> = words.split(' ').collect();
    let (figures, file) = (text(folder.path()), text(&report));
    words.extend(["--figures", &figures, "--json", &file]);
    let table = bench(&words);
    let report = json(&report);
    let curves = report["curves"].as_array().expect("curves");
    let ids: Vec<String> = curves.iter().map(|c| format!("{} {}", c["kernel"], c["processes"])).collect();
    let of =
        |kernel: &str, processes: &[u32]| processes.iter().map(|p| format!("\"{kernel}\" {p}")).collect::<Vec<_>>();
    let mut expected = [of("rpc-latency", &[2]), of("messages", &[2])].concat();
    for kernel in ["group-latency", "group", "ring", "all-to-all", "personalised"] {
        expected.extend(of(kernel, &[2, 3]));
    }
    assert_eq!(ids, expected);
    for point in curves.iter().flat_map(|curve| curve["points"].as_array().expect("points")) {
        assert!(point["samples"][0].as_f64() > Some(0.0), "{point}");
    }
    for number in 2..=6 {
        let picture = std::fs::read_to_string(folder.path().join(format!("figure-{number}.svg"))).expect("a picture");
        assert!(picture.contains("<polyline") && !picture.contains("not measured"), "figure {number}");
    }
    assert!(table.contains("figure 4: ring, all send") && table.contains("shm 3"), "{table}");
}

#[test]
fn an_application_has_its_row_and_what_is_missing_is_said() {
    let folder = TempDir::new().expect("a folder");
    let report = folder.path().join("apps.json");
    let empty = folder.path().join("empty");
    let places = [folder.path(), report.as_path(), empty.as_path()].map(|path| path.to_str().expect("text").to_owned());
    let mut words: Vec<&str> = "apps --quick --device shm --only is,mg,sor --figures".split(' ').collect();
    words.extend([&places[0], "--json", &places[1], "--programs", &places[2]]);
    let table = bench(&words);
    assert!(table.contains("SOR is left out: there is no program `sor` in "), "{table}");
    let report = json(&report);
    let rows = report["applications"].as_array().expect("applications");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, ["is", "mg"]);
    for row in rows {
        let positive = |value: &Value| assert!(value.as_f64() > Some(0.0), "{row:#}");
        positive(&row["sequential_s"][0]);
        positive(&row["volume"]["messages"]);
        positive(&row["devices"][0]["efficiency"]);
        let predicted = &row["devices"][0]["predicted"];
        positive(&predicted["efficiency"]);
        let volume =
            row["volume"]["bytes"].as_f64().expect("bytes") / row["volume"]["messages"].as_f64().expect("messages");
        assert_eq!(predicted["message_bytes"].as_f64(), Some(volume));
    }
    // All keys but each process's own half go to the other one, in each of ten iterations.
    let keys = f64::from(1 << 20) * 4.0;
    assert!(rows[0]["volume"]["bytes"].as_f64() > Some(10.0 * keys / 2.0 * 0.9), "{:#}", rows[0]);
    let picture = std::fs::read_to_string(folder.path().join("figure-7.svg")).expect("a picture");
    assert_eq!((picture.matches("class=\"bar\"").count(), picture.matches("class=\"spike\"").count()), (2, 2));
}

#[test]
fn what_was_measured_before_an_interrupt_is_shown() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new(tree().join("bin/weft"));
    command.args("bench apps --quick --turns 10 --device shm --only is,mg".split(' '));
    let mut bench = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weft can be started");
    let said = BufReader::new(bench.stderr.take().expect("piped"));
    // The kernels have turns as well, and say other names.
    let second = |line: &str| line.starts_with("turn 2: Integer Sort");
    let mut said = said.lines().map_while(Result::ok);
    assert!(said.any(|line| second(&line)), "it has ended before");
    signal::send(bench.id() as i32, libc::SIGINT);
    let rest: Vec<String> = said.collect();
    let mut table = String::new();
    bench.stdout.take().expect("piped").read_to_string(&mut table).expect("text");
    assert_eq!(bench.wait().expect("it ends").code(), Some(1), "{rest:?}");
    assert_eq!(rest.last().map(|line| line.ends_with(": interrupted")), Some(true), "{rest:?}");
    for row in ["Integer Sort  ", "Multi-Grid  ", "interrupted: not all was measured"] {
        assert!(table.contains(row), "{row} in {table}");
    }
}
