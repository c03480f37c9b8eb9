//! What `weft tune` finds out, and what jobs make of it.

use super::support::{Finished, finish, lines_sorted, on_ranks};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;
use weft_tests::build;

fn weft(cache: &Path, arguments: &str) -> Finished {
    let mut command = Command::new(build::weft());
    finish(command.args(arguments.split_whitespace()).env("XDG_CACHE_HOME", cache))
}

/// What two ranks are told, where their launcher finds something in its environment.
fn told(cache: &Path, given: Option<&str>) -> String {
    let mut command = on_ranks("-n 2", "echo \"<$WEFT_MACHINE>\"");
    command.env("XDG_CACHE_HOME", cache).env_remove("WEFT_MACHINE");
    let done = finish(command.envs(given.map(|given| ("WEFT_MACHINE", given))));
    let lines = lines_sorted(&done.out);
    assert!(lines.len() == 2 && lines[0] == lines[1], "{done:?}");
    lines[0].trim_matches(['<', '>']).to_owned()
}

/// Measures, once no test beside this one has bound its ranks to the cores.
fn tuned(cache: &Path) -> Finished {
    let mut done = weft(cache, "tune --json");
    for _ in 0..50 {
        if !done.err.contains("are free") {
            break;
        }
        sleep(Duration::from_millis(200));
        done = weft(cache, "tune --json");
    }
    done
}

fn only_file(cache: &Path) -> PathBuf {
    let files: Vec<PathBuf> =
        fs::read_dir(cache.join("weft")).expect("a folder").map(|e| e.expect("e").path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

#[test]
fn ranks_are_told_what_was_measured_on_this_machine_and_nothing_else() {
    let cache = TempDir::new().expect("a folder");
    let cache = cache.path();
    let nothing = weft(cache, "tune --show");
    assert!(nothing.code == 1 && nothing.err.contains("nothing was measured"), "{nothing:?}");
    assert!(weft(cache, "info").out.contains("weft tune measures this one"));
    assert_eq!(told(cache, None), "");

    let done = tuned(cache);
    assert_eq!(done.code, 0, "{done:?}");
    let number = |name: &str| {
        let value = done.out.split_once(&format!("\"{name}\": ")).map(|(_, rest)| rest.split([',', '\n']).next());
        value.flatten().and_then(|value| value.parse::<u64>().ok()).unwrap_or_else(|| panic!("{name}: {done:?}"))
    };
    for name in ["near/8", "ring/4096/65536", "ring/32768/1048576", "system call", "wake-up", "copy/16384"] {
        assert!(number(name) > 0, "{name}");
    }
    let best = done.out.split_once("\"best\": \"").and_then(|(_, rest)| rest.split('"').next()).expect("numbers");

    let file = only_file(cache);
    let text = fs::read_to_string(&file).expect("written");
    let busy = format!("busy-percent: {}\n", number("busy_percent"));
    let (quiet, busy) = (text.replace(&busy, "busy-percent: 0\n"), text.replace(&busy, "busy-percent: 50\n"));
    fs::write(&file, &quiet).expect("written");
    assert_eq!(told(cache, None), best);
    assert_eq!(told(cache, Some("usual")), "usual", "who has said something means it");
    assert!(weft(cache, "info").out.contains("as weft tune has measured"));
    assert!(weft(cache, "tune --show").out.contains("packets of 32 KiB"));

    let kernel = quiet.lines().find(|line| line.starts_with("kernel: ")).expect("a kernel");
    for (changed, why) in [(busy, "others used 50 %"), (quiet.replace(kernel, "kernel: 2.4"), "kernel '2.4'")] {
        fs::write(&file, changed).expect("written");
        assert_eq!(told(cache, None), "");
        let info = weft(cache, "info").out;
        assert!(info.contains("is not believed") && info.contains(why), "{info}");
    }
}

#[test]
fn choices_are_shown_with_their_reasons_and_their_origin() {
    let cache = TempDir::new().expect("a folder");
    let done = weft(cache.path(), "info --choices");
    assert!(done.code == 0 && done.out.starts_with("messages go as on other machines"), "{done:?}");
    for part in ["inside a host, ordinary memory", "memory of MPI_Alloc_mem", "between hosts"] {
        assert!(done.out.contains(part), "{done:?}");
    }
    assert!(done.out.contains("    8 B  in a cell: it fits into a cell"), "{done:?}");
}
