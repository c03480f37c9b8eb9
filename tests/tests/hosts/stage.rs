//! `--stage`: hosts that lack Weft, or have another build, get a copy and run from it.

use super::support::LAUNCH;
use crate::launcher::{Finished, finish, lines_sorted};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use weft_tests::build;
use weft_tests::install_script;
use weft_tests::namespaces::Namespaces;

const SHARED: &[&str] = &["-shared", "-Wl,-soname,libmpi_abi.so.1"];

/// Weft as it is installed here, and two hosts where something else is in its place. Each has its own home.
struct Site {
    folder: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(build::profile_directory()).unwrap();
        let site = Self { folder };
        for directory in ["weft/bin", "weft/lib", "nothing", "homes/shared"] {
            std::fs::create_dir_all(site.path(directory)).unwrap();
        }
        strip(&site.path("weft/bin/weft"));
        for number in [1, 2] {
            std::fs::create_dir(site.path("homes").join(host(number))).unwrap();
        }
        site.compile("lib.c", "int which(void) { return 7; }", &[SHARED, &["-o", "weft/lib/libmpi_abi.so.1"]].concat());
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn compile(&self, name: &str, text: &str, arguments: &[&str]) {
        std::fs::write(self.path(name), text).unwrap();
        let mut compiler = Command::new("cc");
        compiler.arg(name).args(arguments).current_dir(self.folder.path());
        assert!(compiler.status().unwrap().success());
    }

    /// A program that says what its library does; linked as `weft cc` does it.
    fn program(&self) -> PathBuf {
        let text = "#include <stdio.h>\nint which(void);\nint main(void) { printf(\"%d\\n\", which()); return 0; }\n";
        let rpath = format!("-Wl,-rpath,{},--enable-new-dtags", self.path("weft/lib").display());
        self.compile("program.c", text, &["weft/lib/libmpi_abi.so.1", &rpath, "-o", "program"]);
        self.path("program")
    }

    /// A launch command that does this on the host first; `$host` is its name.
    fn launch(&self, first: &str) -> String {
        let script = self.path(&format!("launch{}", std::fs::read_dir(self.folder.path()).unwrap().count()));
        let home = self.path("homes");
        let hidden = self.path("weft");
        let text = format!(
            "host=$1; shift; export HOME={home}/$host; unset XDG_CACHE_HOME\n{first}\n\
             exec {launch} sh -c 'mount --bind \"$0\" {hidden} && exec \"$@\"' \"${{instead:-{nothing}}}\" \"$@\"\n",
            home = home.display(),
            launch = LAUNCH.replace("{host}", "$host"),
            hidden = hidden.display(),
            nothing = self.path("nothing").display(),
        );
        std::fs::write(&script, text).unwrap();
        format!("sh {} {{host}}", script.display())
    }

    fn run(&self, launch: &str, program: &[&str]) -> Finished {
        let mut command = Command::new(self.path("weft/bin/weft"));
        command.args(["run", "--bind", "none", "--stage", "--launch", launch, "--hosts"]);
        command.arg(format!("{},{}", host(1), host(2))).args(program).stdin(Stdio::null());
        finish(command.env("WEFT_LAUNCH_TIMEOUT", "120"))
    }

    /// The one copy in a home.
    fn copy(&self, home: &str) -> PathBuf {
        let cache = self.path("homes").join(home).join(".cache/weft");
        let all: Vec<_> = std::fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path()).collect();
        let [one] = &all[..] else { panic!("{all:?}") };
        assert!(one.file_name().unwrap().to_string_lossy().starts_with(concat!(env!("CARGO_PKG_VERSION"), "-")));
        one.clone()
    }
}

/// The program without what debuggers want, which is most of it: there is less to copy.
fn strip(to: &Path) {
    let mut strip = Command::new("strip");
    assert!(strip.arg("-o").arg(to).arg(build::weft()).status().unwrap().success());
}

fn host(number: usize) -> String {
    Namespaces::pair().name(number)
}

/// Files below a directory, with their modes.
fn files(directory: &Path) -> Vec<(String, u32)> {
    let mut found = vec![(".".to_owned(), std::fs::metadata(directory).unwrap().permissions().mode() & 0o7777)];
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(directory).unwrap().to_string_lossy().into_owned();
            found.push((name, std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777));
            if path.is_dir() {
                left.push(path);
            }
        }
    }
    found.sort();
    found
}

fn whole() -> Vec<(String, u32)> {
    [".", "bin", "bin/weft", "lib", "lib/libmpi_abi.so.1"].map(|name| (name.to_owned(), 0o700)).to_vec()
}

#[test]
fn hosts_without_weft_get_a_copy_once_and_run_from_it() {
    let site = Site::new();
    let launch = site.launch("");
    let script = "umask; readlink /proc/$PPID/exe";
    let done = site.run(&launch, &["sh", "-c", script]);
    assert_eq!(done.code, 0, "{}", done.err);
    let copies = [1, 2].map(|number| site.copy(&host(number)));
    let mask = String::from_utf8(Command::new("sh").args(["-c", "umask"]).output().unwrap().stdout).unwrap();
    let mut expected: Vec<String> = copies.iter().map(|copy| copy.join("bin/weft").display().to_string()).collect();
    expected.extend([mask.trim().to_owned(), mask.trim().to_owned()]);
    expected.sort();
    assert_eq!(lines_sorted(&done.out), expected, "the ranks' agents, and what they leave to the ranks");
    assert!(done.err.starts_with("weft run: copied weft 0.1.0 with libmpi_abi.so.1 ("), "{}", done.err);
    let places = [1, 2].map(|number| format!("{}:{}", host(number), copies[number - 1].display()));
    assert!(done.err.ends_with(&format!(" MB) to {}\n", places.join(", "))), "{}", done.err);
    assert_eq!(done.err.lines().count(), 1, "{}", done.err);
    copies.iter().for_each(|copy| assert_eq!(files(copy), whole()));

    let again = site.run(&launch, &["echo", "up"]);
    assert_eq!((again.code, again.out.as_str(), again.err.as_str()), (0, "up\nup\n", ""), "nothing is copied twice");
}

#[test]
fn a_check_copies_too_and_measures_from_the_copies() {
    let site = Site::new();
    let launch = site.launch("");
    let check = |options: &[&str]| {
        let mut command = Command::new(site.path("weft/bin/weft"));
        command.args(["hosts", "check", "--launch", &launch]).args(options).args([host(1), host(2)]);
        finish(command.env("WEFT_LAUNCH_TIMEOUT", "120").stdin(Stdio::null()))
    };
    let without = check(&[]);
    assert_eq!(without.code, 1, "{}{}", without.out, without.err);
    assert!(!site.path("homes").join(host(1)).join(".cache").exists());
    let done = check(&["--stage", "--json"]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    let found: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert!(found["pairs"][0][2]["good"]["latency_s"].as_f64() > Some(0.0), "{}", done.out);
    [1, 2].iter().for_each(|number| assert_eq!(files(&site.copy(&host(*number))), whole()));
}

#[test]
fn programs_load_the_library_of_the_copy() {
    let site = Site::new();
    let program = site.program();
    let done = site.run(&site.launch(""), &[&program.to_string_lossy()]);
    assert_eq!((done.code, done.out.as_str()), (0, "7\n7\n"), "{}", done.err);
    // Also where a variable leads to the directory of the launcher, or elsewhere.
    let lib = site.path("weft/lib").display().to_string();
    for given in [lib.as_str(), "/none"] {
        let variable = format!("LD_LIBRARY_PATH={given}");
        let done = site.run(&site.launch(""), &["--env", &variable, &program.to_string_lossy()]);
        assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "7\n7\n", ""), "{given}");
    }
}

#[test]
fn another_build_in_the_place_of_ours_is_not_used() {
    let site = Site::new();
    std::fs::create_dir_all(site.path("other/bin")).unwrap();
    install_script("#!/bin/sh\necho 0123456789abcdef\n", &site.path("other/bin/weft"));
    let launch = site.launch(&format!("instead={}", site.path("other").display()));
    let done = site.run(&launch, &["readlink", "/proc/self/exe"]);
    assert_eq!((done.code, done.out.lines().count()), (0, 2), "{}", done.err);
    assert!(done.err.starts_with("weft run: copied weft"), "{}", done.err);
}

#[test]
fn the_same_build_in_its_place_is_used_and_nothing_copied() {
    let site = Site::new();
    std::fs::create_dir(site.path("same")).unwrap();
    for directory in ["bin", "lib"] {
        std::fs::create_dir(site.path("same").join(directory)).unwrap();
    }
    std::fs::hard_link(site.path("weft/bin/weft"), site.path("same/bin/weft")).unwrap();
    std::fs::copy(site.path("weft/lib/libmpi_abi.so.1"), site.path("same/lib/libmpi_abi.so.1")).unwrap();
    let launch = site.launch(&format!("instead={}", site.path("same").display()));
    let done = site.run(&launch, &["echo", "up"]);
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "up\nup\n", ""));
    assert!(!site.path("homes").join(host(1)).join(".cache").exists());
    // A library alone is another build, too.
    site.compile("lib.c", "int which(void) { return 8; }", &[SHARED, &["-o", "same/lib/libmpi_abi.so.1"]].concat());
    let done = site.run(&launch, &[&site.program().to_string_lossy()]);
    assert_eq!((done.code, done.out.as_str()), (0, "7\n7\n"), "{}", done.err);
}

#[test]
fn a_copy_that_was_spoilt_is_made_again() {
    let site = Site::new();
    let launch = site.launch("");
    assert_eq!(site.run(&launch, &["true"]).code, 0);
    let copy = site.copy(&host(2));
    for name in ["lib/libmpi_abi.so.1", "bin/weft"] {
        let file = copy.join(name);
        let before = std::fs::metadata(&file).unwrap().ino();
        let mut bytes = std::fs::read(&file).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&file, bytes).unwrap();
        let done = site.run(&launch, &["echo", "up"]);
        assert_eq!((done.code, done.out.as_str()), (0, "up\nup\n"), "{}", done.err);
        let place = format!("to {}:{}\n", host(2), copy.display());
        assert!(done.err.ends_with(&place) && done.err.lines().count() == 1, "{name}: {}", done.err);
        assert_eq!(files(&copy), whole());
        assert_ne!(std::fs::metadata(&file).unwrap().ino(), before, "what others may run is not written into");
    }
}

#[test]
fn hosts_that_share_a_home_may_copy_at_the_same_time() {
    let site = Site::new();
    let launch = site.launch(&format!("HOME={}", site.path("homes/shared").display()));
    let done = site.run(&launch, &["echo", "up"]);
    assert_eq!((done.code, done.out.as_str()), (0, "up\nup\n"), "{}", done.err);
    assert_eq!(files(&site.copy("shared")), whole());
}

/// A job on a host that cannot take a copy: nothing runs, and one line names host and cause.
fn refused(site: &Site, first: &str, cause: &str) {
    let done = site.run(&site.launch(&format!("test $host = {} || {{ {first}; }}", host(1))), &["echo", "up"]);
    assert_eq!((done.code, done.out.as_str()), (1, ""), "{}", done.err);
    let begin = format!("weft run: host '{}': launch command 'sh ", host(2));
    assert!(done.err.starts_with(&begin) && done.err.contains(cause), "{cause} in {}", done.err);
    assert_eq!(done.err.lines().count(), 1, "{}", done.err);
}

#[test]
fn a_host_that_cannot_take_a_copy_is_named_with_the_cause() {
    let site = Site::new();
    refused(&site, "unset HOME", "HOME: is not set");
    std::fs::write(site.path("file"), "").unwrap();
    refused(&site, &format!("HOME={}", site.path("file").display()), "Not a directory");
    std::fs::create_dir(site.path("tools")).unwrap();
    install_script("#!/bin/sh\necho sparc64\n", &site.path("tools/uname"));
    refused(&site, &format!("PATH={}:$PATH", site.path("tools").display()), "its processor is sparc64");
}

#[test]
fn a_copy_that_ends_in_the_middle_is_told_and_nothing_of_it_is_left() {
    let site = Site::new();
    let script = site.path("cut");
    let launch = site.launch("");
    let whole_way = launch.replace(" {host}", "");
    std::fs::write(
        &script,
        format!("test $1 = {} && exec {whole_way} \"$@\"\nhead -c 1000000 | {whole_way} \"$@\"\n", host(1)),
    )
    .unwrap();
    let done = site.run(&format!("sh {} {{host}}", script.display()), &["echo", "up"]);
    assert_eq!((done.code, done.out.as_str()), (1, ""), "{}", done.err);
    let begin = format!("weft run: host '{}': launch command 'sh ", host(2));
    assert!(done.err.starts_with(&begin) && done.err.contains("only 1000000 of "), "{}", done.err);
    let empty = [".", "bin", "lib"].map(|name| (name.to_owned(), 0o700)).to_vec();
    assert_eq!(files(&site.copy(&host(2))), empty);
}
