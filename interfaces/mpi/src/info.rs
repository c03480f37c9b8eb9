//! Info objects (MPI 5.0, chapter 10).

pub mod abi;

use crate::abi::{INFO_ENV, INFO_NULL};
use crate::error::Result;
use crate::handle::{HandleKind, HandleTable};
use crate::start::phase;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keys and values in the order in which the keys were first set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info {
    entries: Vec<(String, String)>,
}

impl Info {
    pub fn get(&self, key: &str) -> Option<&str> {
        self.entries.iter().find(|entry| entry.0 == key).map(|entry| entry.1.as_str())
    }

    pub fn set(&mut self, key: &str, value: &str) {
        match self.entries.iter_mut().find(|entry| entry.0 == key) {
            Some(entry) => entry.1 = value.to_owned(),
            None => self.entries.push((key.to_owned(), value.to_owned())),
        }
    }

    /// Takes the key out; false if it was not there.
    pub fn remove(&mut self, key: &str) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.0 != key);
        self.entries.len() < before
    }

    pub fn entries(&self) -> &[(String, String)] {
        &self.entries
    }
}

/// The program's info objects; usable before `MPI_Init`.
static INFOS: Mutex<HandleTable<Info>> = Mutex::new(HandleTable::new(HandleKind::Info));

fn infos() -> MutexGuard<'static, HandleTable<Info>> {
    INFOS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a handle that the program owns.
pub fn insert(info: Info) -> usize {
    infos().insert(info)
}

/// What the handle stands for now; nothing for `MPI_INFO_NULL`.
pub fn copy_of(handle: usize) -> Result<Info> {
    match handle {
        INFO_NULL => Ok(Info::default()),
        INFO_ENV => Ok(environment()),
        _ => infos().get(handle).cloned(),
    }
}

/// One value of the info object with this handle.
pub fn value(handle: usize, key: &str) -> Result<Option<String>> {
    Ok(copy_of(handle)?.get(key).map(str::to_owned))
}

pub fn host_name() -> String {
    let mut buffer = [0u8; 256];
    // SAFETY: the buffer is writable for the length given, which leaves a zero at its end.
    unsafe { libc::gethostname(buffer.as_mut_ptr().cast(), buffer.len() - 1) };
    let end = buffer.iter().position(|&byte| byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&buffer[..end]).into_owned()
}

/// How the process was started (MPI 5.0, section 11.2.1).
pub fn environment() -> Info {
    let mut info = surroundings();
    if phase::is_running() {
        info.set("maxprocs", &phase::size().to_string());
    }
    if let Some(level) = phase::thread_level_name() {
        info.set("thread_level", level);
    }
    info
}

/// The part of [`environment`] that is the same before, between and after start and end.
pub fn surroundings() -> Info {
    let mut info = Info::default();
    let mut arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    if let Some(command) = arguments.next() {
        info.set("command", &command);
    }
    info.set("argv", &arguments.collect::<Vec<_>>().join(" "));
    info.set("host", &host_name());
    info.set("arch", std::env::consts::ARCH);
    if let Ok(directory) = std::env::current_dir() {
        info.set("wdir", &directory.to_string_lossy());
    }
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_a_key_again_keeps_its_place() {
        let mut info = Info::default();
        info.set("first", "1");
        info.set("second", "2");
        info.set("first", "3");
        assert_eq!(info.entries(), [("first".to_owned(), "3".to_owned()), ("second".to_owned(), "2".to_owned())]);
        assert!(info.remove("first") && !info.remove("first"));
        assert_eq!((info.get("first"), info.get("second")), (None, Some("2")));
    }
}
