//! Clusters, partitions, and programs that are started by their own name, on one host.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;
use weft_tests::{ranks, tree};

fn weft(folder: &Path) -> Command {
    let mut command = Command::new(tree().join("bin/weft"));
    command.env("XDG_CONFIG_HOME", folder).env_remove("WEFT_CLUSTER").stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// A cluster of this host alone.
fn lab(folder: &Path) {
    said(&weft(folder).args(["cluster", "init", "lab", "localhost:4"]).output().expect("started"));
}

fn lines(output: &Output) -> Vec<String> {
    let mut lines: Vec<String> = said(output).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn a_program_that_is_started_by_its_name_is_a_job() {
    let folder = TempDir::new().expect("a folder");
    lab(folder.path());
    let program = ranks::compile_from("tests/c/launcher", folder.path(), "named", &[]);
    let start = |settings: &[(&str, &str)], argument: &str| {
        let mut command = Command::new(&program);
        command.arg(argument).env("XDG_CONFIG_HOME", folder.path()).env("LD_LIBRARY_PATH", tree().join("lib"));
        command.envs(settings.iter().copied()).stdin(Stdio::null());
        command
    };
    let run = |settings: &[(&str, &str)], argument| start(settings, argument).output().expect("started");
    assert_eq!(lines(&run(&[], "x y")), ["rank 0 of 1, given 'x y'"]);
    let two = ["rank 0 of 2, given 'x y'", "rank 1 of 2, given 'x y'"];
    assert_eq!(lines(&run(&[("WEFT_RANKS", "2")], "x y")), two);
    assert_eq!(lines(&run(&[("WEFT_PARTITION", "all"), ("WEFT_RANKS", "2")], "x y")), two);
    assert_eq!(lines(&run(&[("WEFT_PARTITION", "all")], "")).len(), 4);
    // What a rank starts is no rank, and no job of its own.
    let again = ["rank 0 of 1, given 'inner'", "rank 0 of 2, given 'again'", "rank 1 of 2, given 'again'"];
    assert_eq!(lines(&run(&[("WEFT_RANKS", "2")], "again")), again);
    assert_eq!(run(&[("WEFT_RANKS", "3")], "fail").status.code(), Some(7));
    let input = format!("echo words | {} read", program.display());
    let mut shell = Command::new("sh");
    shell.args(["-c", &input]).envs([("WEFT_RANKS", "2")]).env("LD_LIBRARY_PATH", tree().join("lib"));
    assert!(said(&shell.output().expect("started")).contains("read words"));
    for (setting, wrong) in [(("WEFT_RANKS", "many"), "WEFT_RANKS"), (("WEFT_PARTITION", "none"), "no partition of")] {
        let refused = run(&[setting], "");
        let why = text(&refused.stderr);
        assert!(!refused.status.success() && why.contains(wrong) && why.lines().count() == 1, "{why}");
        assert_eq!(text(&refused.stdout), "");
    }
}

#[test]
fn time_counts_the_ranks_of_a_program_that_is_started_by_its_name() {
    let folder = TempDir::new().expect("a folder");
    let source = folder.path().join("burn.c");
    let burn = "#include <mpi.h>\n#include <time.h>\nint main(void) { MPI_Init(0, 0); \
                while (clock() < CLOCKS_PER_SEC / 5) {} MPI_Finalize(); }";
    std::fs::write(&source, burn).expect("written");
    let program = folder.path().join("burn");
    let done = Command::new(tree().join("bin/mpicc")).arg(&source).arg("-o").arg(&program).output().expect("started");
    said(&done);
    let mut shell = Command::new("bash");
    shell.args(["-c", "TIMEFORMAT='%U %S'; time \"$0\""]).arg(&program).env("WEFT_RANKS", "3");
    let output = shell.env("LD_LIBRARY_PATH", tree().join("lib")).output().expect("started");
    said(&output);
    let seconds: f64 = text(&output.stderr).split_whitespace().map(|word| word.parse::<f64>().expect("a number")).sum();
    assert!(seconds > 0.5, "three ranks that take 0.2 s each: {seconds}");
}

#[test]
fn a_library_that_is_loaded_later_runs_nothing_again() {
    let folder = TempDir::new().expect("a folder");
    let load = "import ctypes; print('once', flush=True); ctypes.CDLL('libmpi_abi.so.1', ctypes.RTLD_GLOBAL)";
    let mut python = Command::new("python3");
    python.args(["-c", load]).env("LD_LIBRARY_PATH", tree().join("lib")).env("WEFT_RANKS", "2");
    let output = python.env("XDG_CONFIG_HOME", folder.path()).output().expect("started");
    assert_eq!(said(&output), "once\n");
    assert!(text(&output.stderr).contains("weft run starts it on several ranks"), "{}", text(&output.stderr));
}

#[test]
fn a_partition_bounds_its_jobs_and_gives_them_its_devices() {
    let folder = TempDir::new().expect("a folder");
    lab(folder.path());
    let file = folder.path().join("weft/lab.toml");
    let more = "\n[[partition]]\nname = \"net\"\ndevice = \"tcp\"\nranks = 2\n";
    std::fs::write(&file, std::fs::read_to_string(&file).expect("it is there") + more).expect("written");
    let run = |words: &[&str]| weft(folder.path()).args(["run"]).args(words).output().expect("started");
    let order = said(&run(&["--partition", "net", "sh", "-c", "echo $WEFT_DEVICE"]));
    assert_eq!(order, "tcp\ntcp\n");
    assert_eq!(
        said(&run(&["--partition", "net", "--device", "udp,tcp", "-n", "1", "sh", "-c", "echo $WEFT_DEVICE"])),
        "udp,tcp\n"
    );
    let refused = run(&["--partition", "net", "-n", "3", "true"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("a job may have 2 there"), "{}", text(&refused.stderr));
    let checked = weft(folder.path()).args(["cluster", "check"]).env("WEFT_LAUNCH", "false {host}").output();
    assert!(said(&checked.expect("started")).contains("1 member, 2 partitions"), "this host needs no launch command");
    let shown = said(&weft(folder.path()).args(["cluster", "show"]).output().expect("started"));
    assert!(shown.contains("net  up to 2 ranks on localhost, devices tcp"), "{shown}");
}

#[test]
fn an_editor_s_mistakes_change_nothing_and_the_last_version_is_kept() {
    let folder = TempDir::new().expect("a folder");
    lab(folder.path());
    let edit = |editor: &str| {
        weft(folder.path())
            .args(["cluster", "edit"])
            .env("EDITOR", editor)
            .env_remove("VISUAL")
            .output()
            .expect("started")
    };
    let refused = edit("sed -i s/^slots/slotz/");
    let why = text(&refused.stderr);
    assert!(
        !refused.status.success() && why.contains("line 6: a member has no 'slotz', allowed are name, slots"),
        "{why}"
    );
    let file = folder.path().join("weft/lab.toml");
    let version = |file: &Path| std::fs::read_to_string(file).expect("it is there").lines().nth(1).map(str::to_owned);
    assert_eq!(version(&file).as_deref(), Some("version = 1"));
    // The draft is still there.
    said(&edit("sed -i s/^slotz.*/slots=9/"));
    assert_eq!(version(&file).as_deref(), Some("version = 2"));
    assert_eq!(version(&file.with_extension("toml.1")).as_deref(), Some("version = 1"));
    assert!(said(&edit("true")).contains("nothing was changed"));
}

#[test]
fn who_edits_a_file_that_somebody_else_changes_meanwhile_is_told_and_keeps_his_text() {
    let folder = TempDir::new().expect("a folder");
    lab(folder.path());
    let edit = |editor: &str| {
        let mut command = weft(folder.path());
        command.args(["cluster", "edit"]).env("EDITOR", editor).env_remove("VISUAL").output().expect("started")
    };
    let weft = tree().join("bin/weft");
    let weft = weft.display();
    let refused = edit(&format!("{weft} cluster reserve course --for 1h > /dev/null && sed -i s/^slots.*/slots=9/"));
    let why = text(&refused.stderr);
    assert!(!refused.status.success() && why.contains("changed meanwhile") && why.contains("your text is '"), "{why}");
    // The next one begins with what is there now, and says where the old text is.
    let next = edit("sed -i s/^slots.*/slots=5/");
    let told = text(&next.stderr);
    assert!(said(&next).contains("version 3") && told.contains("lab.toml.draft.1' now"), "{told}");
    let file = std::fs::read_to_string(folder.path().join("weft/lab.toml")).expect("it is there");
    assert!(file.contains("course") && file.contains("slots=5") && !file.contains("Draft of version"), "{file}");
    let second = edit(&format!("env EDITOR=true {weft} cluster edit; true"));
    assert!(text(&second.stderr).contains("is being changed already, by process"), "{}", text(&second.stderr));
    let failed = text(&edit("exit 3; true").stderr);
    assert!(failed.contains("exit status: 3") && failed.contains("nothing was changed"), "{failed}");
}

#[test]
fn a_partition_whose_slots_nobody_counts_is_refused_where_a_daemon_should() {
    let folder = TempDir::new().expect("a folder");
    lab(folder.path());
    let run = |words: &[&str], daemon: &str| {
        let mut command = weft(folder.path());
        command.args(["run", "--partition", "all", "-n", "1"]).args(words).arg("true").env("WEFT_DAEMON", daemon);
        command.output().expect("started")
    };
    let waits = text(&run(&["--wait"], "").stderr);
    assert!(waits.contains("no daemon of cluster 'lab' runs on this host") && waits.contains("start"), "{waits}");
    said(&run(&[], ""));
    std::fs::write(folder.path().join("weft/lab.key"), "17".repeat(32)).expect("written");
    let refused = run(&[], "");
    assert_eq!((refused.status.code(), text(&refused.stderr)), (Some(2), waits));
    said(&run(&[], "off"));
}

#[test]
fn a_host_that_does_not_answer_holds_nobody_up() {
    let folder = TempDir::new().expect("a folder");
    lab(folder.path());
    for what in ["apply", "start"] {
        let mut command = weft(folder.path());
        command.args(["cluster", what]).env("WEFT_LAUNCH", "sh -c 'exec sleep 1000' {host}");
        let output = command.env("WEFT_LAUNCH_TIMEOUT", "1").output().expect("started");
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stdout).contains("localhost: nothing was heard in time"), "{}", text(&output.stdout));
    }
}

#[test]
fn commands_end_in_silence_where_nobody_reads_what_they_print() {
    let folder = TempDir::new().expect("a folder");
    lab(folder.path());
    let more: &[&[&str]] = &[&["cluster", "show"], &["cluster", "show", "--json"], &["info"], &["ps", "--json"]];
    for words in more {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = weft(folder.path()).args(*words).stdout(writer).output().expect("started");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(141), String::new()), "{words:?}");
    }
}

#[test]
fn a_file_is_taken_if_it_is_newer_and_sound() {
    let folder = TempDir::new().expect("a folder");
    let take = |text: &str| {
        let file = folder.path().join("given");
        std::fs::write(&file, text).expect("written");
        let given = std::fs::File::open(&file).expect("it is there");
        weft(folder.path()).args(["cluster", "take", "lab"]).stdin(given).output().expect("started")
    };
    let file = |version: u32, name: &str| format!("name = \"{name}\"\nversion = {version}\n[[member]]\nname = \"a\"\n");
    assert_eq!(said(&take(&file(3, "lab"))), "has version 3 now, had none\n");
    assert_eq!(said(&take(&file(3, "lab"))), "has version 3\n");
    assert_eq!(said(&take(&file(4, "lab"))), "has version 4 now, had version 3\n");
    for (wrong, why) in
        [(file(3, "lab"), "is newer than 3"), (file(5, "lib"), "not of 'lab'"), (String::new(), "line 1")]
    {
        let refused = take(&wrong);
        assert!(!refused.status.success() && text(&refused.stderr).contains(why), "{}", text(&refused.stderr));
    }
    let kept = std::fs::read_to_string(folder.path().join("weft/lab.toml")).expect("it is there");
    assert_eq!(kept, file(4, "lab"));
}

#[test]
fn users_that_nobody_knows_are_told_and_programs_are_answered_in_json() {
    let folder = TempDir::new().expect("a folder");
    lab(folder.path());
    let run = |words: &[&str]| weft(folder.path()).arg("cluster").args(words).output().expect("started");
    let json = |output: &Output| serde_json::from_str::<serde_json::Value>(&said(output)).expect("JSON");
    assert!(said(&run(&["check"])).ends_with(": version 1, 1 member, 1 partition\n"));
    let warning = "weft cluster: warning: reservation 'course': user 'nosuch' is not known on this host\n";
    let made = run(&["reserve", "course", "--for", "1h", "--users", "root,nosuch"]);
    assert_eq!(text(&made.stderr), warning);
    assert!(said(&made).contains("for root nosuch"));
    let all = json(&run(&["reserve", "--json"]));
    assert_eq!((&all[0]["name"], &all[0]["users"][1]), (&"course".into(), &"nosuch".into()));
    assert_eq!(all[0]["until"].as_u64(), all[0]["from"].as_u64().map(|from| from + 3600));
    let checked = run(&["check", "--json"]);
    assert_eq!(text(&checked.stderr), warning);
    let all = json(&checked);
    assert_eq!((&all["version"], &all["members"], &all["found"]), (&2.into(), &1.into(), &serde_json::Value::Null));
}
