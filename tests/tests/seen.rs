//! What a user sees of programs of the smaller interfaces: `weft ps` names the calls they are blocked in and what they
//! are called there, the launcher tells of their ends in their own words, and `weft info` knows what they were built
//! for.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use weft_tests::{interfaces, ranks, tree};

/// A busy machine may take its time.
const PATIENCE: Duration = Duration::from_secs(30);

fn compiled(folder: &TempDir, name: &str, library: &str) -> PathBuf {
    interfaces::compile(folder.path(), &format!("tests/c/seen/{name}.c"), library, &[])
}

/// Programs that wait, until this is dropped.
struct Waiting(Child);

impl Waiting {
    fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Self(command.spawn().expect("it can be started"))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let group = -i32::try_from(self.0.id()).expect("a process");
        // SAFETY: the group is that of a process that we have started and not waited for.
        unsafe { libc::kill(group, libc::SIGKILL) };
        let _ = self.0.wait();
    }
}

/// What `weft ps` says of the jobs of a program.
fn shown(program: &Path) -> String {
    let output = Command::new(tree().join("bin/weft")).args(["ps", "--all"]).output().expect("weft can be started");
    let text = String::from_utf8(output.stdout).expect("text");
    let program = format!("{}\n", program.display());
    text.split("\n\n").filter(|job| job.contains(&program)).collect::<Vec<_>>().join("\n")
}

/// Waits until all of these are shown of the program that the command runs.
fn assert_shown(program: &Path, mut command: Command, expected: &[&str]) {
    let _waiting = Waiting::start(&mut command);
    let given_up = Instant::now() + PATIENCE;
    loop {
        let shown = shown(program);
        let missing: Vec<_> = expected.iter().filter(|phrase| !shown.contains(**phrase)).collect();
        if missing.is_empty() {
            return;
        }
        assert!(Instant::now() < given_up, "{missing:?} are not shown:\n{shown}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn each_call_that_blocks_is_shown_by_its_own_name() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = |name: &str, library: &str| compiled(&folder, name, library);
    let native = program("native", "weft");
    let expected = [
        "blocked in weft_receive, tag 3 for ",
        "s (port 7)",
        "blocked in weft_select for ",
        "(ports 7, 16777216 'weft-test-seen')",
    ];
    assert_shown(&native, ranks::command(&native, 2, &[]), &expected);

    let tcgmsg = program("tcgmsg", "tcgmsg");
    let expected = ["blocked in RCV for", "blocked in SYNCH from rank 0 for", "blocked in NXTVAL for"];
    assert_shown(&tcgmsg, ranks::command(&tcgmsg, 3, &[]), &expected);

    let am = program("am", "am");
    let expected = ["computing", "blocked in AM_WaitSema for", "blocked in AMUDP_SPMDBarrier from rank "];
    assert_shown(&am, ranks::command(&am, 3, &[]), &expected);

    let fm = program("fm", "fm");
    assert_shown(&fm, ranks::command(&fm, 3, &[]), &["computing", "blocked in FM_end_message to rank 2 for"]);

    let panda = program("panda", "panda");
    let expected = ["computing", "blocked in pan_rpc_trans from rank 2 for", "blocked in pan_cond_wait for"];
    assert_shown(&panda, ranks::command(&panda, 3, &[]), &expected);

    let objects = program("objects", "weft_objects");
    assert_shown(&objects, ranks::command(&objects, 2, &[]), &["computing", "blocked in number.await_at_least for"]);
}

#[test]
fn tasks_and_forked_processes_are_shown() {
    let folder = TempDir::new().expect("there is room for a folder");
    let pvm = compiled(&folder, "pvm", "pvm3");
    let machine = format!("test-{}-seen", std::process::id());
    let mut command = Command::new(&pvm);
    command.env("PVM_VMID", &machine);
    let expected =
        ["blocked in pvm_recv for ", "blocked in pvm_recvinfo for ", "blocked in pvm_barrier for ", "t40001  "];
    let heading = format!("virtual machine {machine} of PVM, 3 tasks");
    assert_shown(&pvm, command, &[&expected[..], &[&heading]].concat());
    let mut halt = Command::new("sh");
    halt.args(["-c", "echo halt | \"$0\" pvm"]).arg(tree().join("bin/weft"));
    let halt = halt.env("PVM_VMID", &machine).output().expect("a shell");
    assert!(halt.status.success());

    let p4 = compiled(&folder, "p4", "p4");
    std::fs::write(folder.path().join("p4.pg"), "local 4\n").expect("there is room for a file");
    let expected = ["p4_recv", "p4_barrier", "p4_mdelay", "p4_lock", "p4_global_barrier"];
    let expected = expected.map(|call| format!("blocked in {call}"));
    let mut command = Command::new(&p4);
    command.args(["-p4pg", "p4.pg"]).current_dir(folder.path());
    assert_shown(&p4, command, &expected.each_ref().map(String::as_str));
}

#[test]
fn who_ends_without_leave_is_told_of_in_the_words_of_its_interface() {
    let folder = TempDir::new().expect("there is room for a folder");
    let programs = [
        ("native", "weft", "exited after weft_init without weft_finish"),
        ("pvm", "pvm3", "exited after pvm_mytid without pvm_exit"),
        ("p4", "p4", "exited after p4_initenv without p4_wait_for_end"),
        ("tcgmsg", "tcgmsg", "exited after PBEGIN without PEND"),
        ("am", "am", "exited after AM_Init without AM_Terminate"),
        ("fm", "fm", "exited after FM_initialize without FM_finalize"),
        ("panda", "panda", "exited after pan_init without pan_end"),
        ("objects", "weft_objects", "exited after weft_objects_init without weft_objects_finish"),
    ];
    for (name, library, expected) in programs {
        let program = compiled(&folder, name, library);
        let output = ranks::command(&program, 2, &["gone"]).env("PVM_VMID", "test-seen-gone").output();
        let output = output.expect("weft can be started");
        let err = String::from_utf8_lossy(&output.stderr);
        let line = err.lines().find(|line| line.starts_with("weft run: rank 1 (pid")).unwrap_or_default();
        let consequence = "; the others, which may wait for it, are ended";
        assert!(line.ends_with(&format!("{expected}{consequence}")), "{name}: {err}");
        assert_eq!(output.status.code(), Some(1), "{name}: {err}");
    }
}

#[test]
fn info_says_which_interface_a_program_was_built_for() {
    let folder = TempDir::new().expect("there is room for a folder");
    let info = |program: &Path| {
        let output = Command::new(tree().join("bin/weft")).arg("info").arg(program).output();
        let output = output.expect("weft can be started");
        (String::from_utf8(output.stdout).expect("text"), output.status.success())
    };
    let programs = [
        ("native", "weft", "built for the ports of Weft (libweft.so.1)", "weft run"),
        ("pvm", "pvm3", "built for PVM 3 (libpvm3.so.3)", "weft env PROGRAM"),
        ("p4", "p4", "built for P4 (libp4.so.1)", "procgroup"),
        ("tcgmsg", "tcgmsg", "built for TCGMSG (libtcgmsg.so.1)", "weft run -n N"),
        ("am", "am", "built for Active Messages (libam.so.1)", "weft run -n N"),
        ("fm", "fm", "built for Fast Messages (libfm.so.1)", "weft run -n N"),
        ("panda", "panda", "built for Panda (libpanda.so.2)", "weft run -n N"),
        ("objects", "weft_objects", "built for shared objects (libweft_objects.so.1)", "weft run -n N"),
    ];
    for (name, library, expected, start) in programs {
        let (line, runs) = info(&compiled(&folder, name, library));
        assert!(runs && line.contains(&format!("{expected}; ")) && line.contains(start), "{line}");
    }
    // One that wants a library that Weft has not.
    let (library, program) = (folder.path().join("libp4.so.7"), folder.path().join("other"));
    let source = folder.path().join("other.c");
    std::fs::write(&source, "int other(void);\n#ifdef HERE\nint other(void) { return 0; }\n#else\nint main(void) { return other(); }\n#endif\n")
        .expect("there is room for a file");
    let cc = |flags: &[&str], from: &[&Path], to: &Path| {
        let status = Command::new("cc").args(flags).args(from).arg("-o").arg(to).status();
        assert!(status.expect("a compiler").success());
    };
    cc(&["-shared", "-fPIC", "-DHERE", "-Wl,-soname,libp4.so.7"], &[&source], &library);
    cc(&[], &[&source, &library], &program);
    let (line, runs) = info(&program);
    assert!(!runs && line.contains("built for P4 (libp4.so.7); Weft has no such library"), "{line}");
}
