//! Whether a library can be preloaded into a program: some programs never meet the dynamic linker, some make it ignore
//! what the environment says, and some do not call libc.

use crate::{elf, program, sys};
use std::ffi::OsString;
use std::fmt;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use weft_cluster::job::Program;

/// Why a preloaded library has no effect in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The program, or the interpreter that its first line names.
    pub program: PathBuf,
    pub why: Why,
}

/// The kinds of obstacles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    Static,
    Go,
    OtherMachine,
    SetUser,
    SetGroup,
    Capabilities,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.why {
            Why::Static => "is linked statically, so no library can be preloaded into it",
            Why::Go => "is a Go program, which makes its system calls without the C library",
            Why::OtherMachine => "is for another kind of processor than the library",
            Why::SetUser => "runs as another user (set-user-id), so the system ignores preloaded libraries",
            Why::SetGroup => "runs as another group (set-group-id), so the system ignores preloaded libraries",
            Why::Capabilities => "has file capabilities, so the system ignores preloaded libraries",
        };
        write!(f, "program '{}' {why}", self.program.display())
    }
}

/// Interpreters of interpreters that are followed, as the kernel does.
const DEEPEST: usize = 4;

/// What keeps a library from being preloaded into the file `program`, or into what interprets it. What cannot be read
/// is taken for a program without obstacles: starting it says more.
pub fn obstacle(program: &Path) -> Option<Obstacle> {
    let mut program = program.to_path_buf();
    for _ in 0..DEEPEST {
        match interpreter(&program) {
            Some(next) => program = next,
            None => break,
        }
    }
    let why = privileged(&program).or_else(|| linkage(&program))?;
    Some(Obstacle { program, why })
}

/// The interpreter that a script names in its first line; behind `env`, the program that `env` will look for.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut start = Vec::new();
    std::fs::File::open(script).ok()?.take(256).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
    let first = PathBuf::from(OsString::from_vec(words.next()?.to_vec()));
    let looked_for = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='));
    match looked_for {
        Some(name) if first.file_name().is_some_and(|name| name == "env") => {
            let name = String::from_utf8(name.to_vec()).ok()?;
            program::find(&Program { program: name, ..Program::default() }).ok()
        }
        _ => Some(first),
    }
}

/// Whether starting it changes who we are: then the dynamic linker trusts no environment.
fn privileged(program: &Path) -> Option<Why> {
    let file = std::fs::metadata(program).ok()?;
    // The owner of this directory is the effective user of the process.
    let own = std::fs::metadata("/proc/self").ok()?;
    if file.mode() & libc::S_ISUID != 0 && file.uid() != own.uid() {
        return Some(Why::SetUser);
    }
    if file.mode() & libc::S_ISGID != 0 && file.gid() != own.gid() {
        return Some(Why::SetGroup);
    }
    // To root they give nothing new.
    (own.uid() != 0 && sys::has_capabilities(program)).then_some(Why::Capabilities)
}

fn linkage(program: &Path) -> Option<Why> {
    let facts = elf::facts(program)?;
    match facts {
        elf::ElfFacts { machine, .. } if machine != elf::own_machine() => Some(Why::OtherMachine),
        elf::ElfFacts { is_go: true, .. } => Some(Why::Go),
        elf::ElfFacts { has_interpreter: false, .. } => Some(Why::Static),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn executable(folder: &Path, name: &str, text: &[u8]) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A program as the compiler makes it, changed at one place.
    fn changed(folder: &Path, change: impl Fn(&mut Vec<u8>)) -> PathBuf {
        let mut bytes = std::fs::read("/bin/true").unwrap();
        change(&mut bytes);
        executable(folder, "program", &bytes)
    }

    #[test]
    fn an_ordinary_program_has_no_obstacle() {
        assert_eq!(obstacle(Path::new("/bin/true")), None);
        assert_eq!(obstacle(&std::env::current_exe().unwrap()), None);
        assert_eq!(obstacle(Path::new("/no/such/program")), None);
    }

    #[test]
    fn a_program_without_interpreter_is_static() {
        let folder = tempfile::tempdir().unwrap();
        let program = changed(folder.path(), |bytes| {
            let table = u64::from_le_bytes(bytes[32..40].try_into().unwrap()) as usize;
            let entries = usize::from(u16::from_le_bytes(bytes[56..58].try_into().unwrap()));
            // The entry that names the dynamic linker becomes one that nobody looks at.
            let entry = (0..entries).map(|n| table + 56 * n).find(|at| bytes[*at] == 3).expect("PT_INTERP");
            bytes[entry] = 0;
        });
        let found = obstacle(&program).expect("an obstacle");
        assert_eq!(found.why, Why::Static);
        assert!(found.to_string().contains("linked statically") && found.to_string().contains("/program'"), "{found}");
    }

    #[test]
    fn a_program_for_another_processor_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let program = changed(folder.path(), |bytes| bytes[18] ^= 1);
        assert_eq!(obstacle(&program).map(|found| found.why), Some(Why::OtherMachine));
    }

    #[test]
    fn scripts_are_as_good_as_their_interpreters() {
        let folder = tempfile::tempdir().unwrap();
        let program = changed(folder.path(), |bytes| bytes[18] ^= 1);
        let inner = executable(folder.path(), "inner", format!("#! {} -x\n", program.display()).as_bytes());
        let outer = executable(folder.path(), "outer", format!("#!{}\nrest", inner.display()).as_bytes());
        assert_eq!(obstacle(&outer).map(|found| found.program), Some(program));
        let by_env = executable(folder.path(), "by-env", b"#!/usr/bin/env true\n");
        assert_eq!(interpreter(&by_env).and_then(|path| obstacle(&path)), None);
        assert!(interpreter(&by_env).unwrap().ends_with("true"));
    }

    #[test]
    fn set_user_id_counts_only_for_other_users() {
        let folder = tempfile::tempdir().unwrap();
        let program = changed(folder.path(), |_| ());
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
        assert_eq!(obstacle(&program), None, "our own file changes nothing");
    }
}
