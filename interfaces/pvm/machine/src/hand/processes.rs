//! Processes of tasks.

use crate::code;
use crate::frame::{ByteString, Program};
use std::ffi::{OsStr, OsString};
use std::io::PipeReader;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use weft_kernel::Descriptor;

/// Tells a process that it is this task.
pub const TASK_VARIABLE: &str = "PVM_TASK_ID";

/// Where programs of this host are, before all other places.
pub const PATH_VARIABLE: &str = "PVM_PATH";
/// The folder that tasks of this host begin in; else it is their parent's, where it is there.
pub const DIRECTORY_VARIABLE: &str = "PVM_WD";

/// What the process of a task has that was started.
pub struct TaskProcess {
    /// With a descriptor that tells of its end, until it has ended.
    pub child: Option<(Child, Descriptor)>,
    /// Until nobody can print there any more.
    pub prints: Option<PipeReader>,
}

impl TaskProcess {
    pub fn pid(&self) -> i32 {
        self.child.as_ref().map_or(0, |(child, _)| child.id() as i32)
    }

    /// Whether it has ended, and is forgotten now.
    pub fn reap(&mut self) -> bool {
        let ended = self.child.as_mut().is_none_or(|(child, _)| !matches!(child.try_wait(), Ok(None)));
        if ended {
            self.child = None;
        }
        ended
    }

    /// Waits for the end of one that was killed.
    pub fn await_end(&mut self) {
        if let Some((mut child, _)) = self.child.take() {
            let _ = child.wait();
        }
    }
}

fn text(bytes: &ByteString) -> &OsStr {
    OsStr::from_bytes(&bytes.0)
}

/// The command that starts a program as a task, and where what it prints can be read.
pub fn command(program: &Program, tid: i32) -> Result<(Command, PipeReader), i32> {
    let file = find(program).ok_or(code::NO_FILE)?;
    let mut command = if program.flags & code::spawn::DEBUG != 0 {
        let debugger = variable(program, "PVM_DEBUGGER").ok_or(code::NO_FILE)?;
        let mut command = Command::new(debugger);
        command.arg(&file);
        command
    } else {
        Command::new(&file)
    };
    let (reads, writes) = std::io::pipe().map_err(|_| code::OUT_OF_RES)?;
    let again = writes.try_clone().map_err(|_| code::OUT_OF_RES)?;
    command.args(program.arguments.iter().map(text)).stdin(Stdio::null()).stdout(writes).stderr(again);
    for setting in &program.environment {
        let mut parts = setting.0.splitn(2, |byte| *byte == b'=');
        if let (Some(name), Some(value)) = (parts.next().filter(|name| !name.is_empty()), parts.next()) {
            command.env(OsStr::from_bytes(name), OsStr::from_bytes(value));
        }
    }
    // Its name is not that of a whole job.
    command.env(TASK_VARIABLE, tid.to_string()).env_remove("WEFT_PARTITION").env_remove("WEFT_RANKS");
    let named = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let folders = [named(DIRECTORY_VARIABLE), Some(Path::new(text(&program.directory)).to_owned()), named("HOME")];
    if let Some(folder) = folders.into_iter().flatten().find(|folder| folder.is_absolute() && folder.is_dir()) {
        command.current_dir(folder);
    }
    Ok((command, reads))
}

fn variable(program: &Program, name: &str) -> Option<OsString> {
    let of_program = program.environment.iter().rev().find_map(|setting| {
        let value = setting.0.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(OsString::from_vec(value.to_vec()))
    });
    of_program.or_else(|| std::env::var_os(name)).filter(|value| !value.is_empty())
}

/// The file that a name means. One with a slash is that file. Another is looked for in `PVM_PATH`, in the places that
/// the task has named who asks, then where PVM has programs (`~/pvm3/bin/LINUX64`, `$PVM_ROOT/bin/LINUX64`), then in
/// `PATH`.
fn find(program: &Program) -> Option<PathBuf> {
    let name = Path::new(text(&program.file));
    if program.file.0.contains(&b'/') {
        let file = Path::new(text(&program.directory)).join(name);
        return is_program(&file).then_some(file);
    }
    let split = |paths: OsString| std::env::split_paths(&paths).collect::<Vec<_>>();
    let own = variable(program, PATH_VARIABLE).map(split).unwrap_or_default();
    let given = program.places.iter().map(|place| PathBuf::from(text(place)));
    let below = |variable: &str, folder: &str| Some(Path::new(&std::env::var_os(variable)?).join(folder));
    let customary = [below("HOME", "pvm3/bin"), below("PVM_ROOT", "bin")];
    let customary = customary.into_iter().flatten().map(|folder| folder.join(code::ARCHITECTURE));
    let last = std::env::var_os("PATH").map(split).unwrap_or_default();
    let mut files = own.into_iter().chain(given).chain(customary).chain(last).map(|folder| folder.join(name));
    files.find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_where_the_task_has_said_before_the_path() {
        let named = |file: &str, places: &[&str]| Program {
            file: file.into(),
            places: places.iter().map(|place| ByteString::from(*place)).collect(),
            directory: "/".into(),
            ..Program::default()
        };
        assert_eq!(find(&named("sh", &["/nowhere", "/bin"])), Some(PathBuf::from("/bin/sh")));
        assert_eq!(find(&named("bin/sh", &[])), Some(PathBuf::from("/bin/sh")));
        assert_eq!(find(&named("no such program", &["/bin"])), None);
        assert_eq!(find(&named("/etc/passwd", &[])), None, "it cannot be executed");
    }
}
