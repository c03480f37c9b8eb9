//! Published names: one small file each, in a folder that only the user can look into.
//!
//! A name lives as long as the process that has published it, at most: who finds the file of a process that is gone
//! takes it for none. What a file says is a claim, and leads at worst to a port that nobody answers at.

use crate::error::{Class, Error, Result};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Longest name, as its file is named by two digits for each byte.
const NAME_BYTES: usize = 120;

/// What this process has published.
static MINE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The folder, which is made where it is missing.
fn folder() -> io::Result<PathBuf> {
    let place = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|place| place.is_dir());
    // SAFETY: asks for a number.
    let user = unsafe { libc::geteuid() };
    let folder = place.unwrap_or_else(std::env::temp_dir).join(format!("weft-names-{user}"));
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(&folder)?;
    if !found.is_dir() || found.uid() != user || found.permissions().mode() & 0o077 != 0 {
        let line = format!("'{}' must be a folder that belongs to this user and is closed to others", folder.display());
        return Err(io::Error::other(line));
    }
    Ok(folder)
}

fn failed(error: &io::Error) -> Error {
    Error::new(Class::Service, format!("names cannot be published: {error}"))
}

fn place(service: &str) -> Result<PathBuf> {
    if service.is_empty() || service.len() > NAME_BYTES {
        let detail = format!("service_name has {} bytes, allowed are 1 to {NAME_BYTES}", service.len());
        return Err(Error::new(Class::Service, detail));
    }
    let name: String = service.bytes().map(|byte| format!("{byte:02x}")).collect();
    Ok(folder().map_err(|error| failed(&error))?.join(name))
}

/// A process by its number and when it began: numbers are given again. `None` where it is gone.
fn mark_of(process: u32) -> Option<String> {
    // The name in it may be cut inside a character.
    let stat = fs::read(format!("/proc/{process}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name in parentheses may hold anything. Behind it is field 3; the time is field 22.
    let begun = stat.rsplit_once(')')?.1.split_whitespace().nth(22 - 3)?;
    Some(format!("{process} {begun}"))
}

/// The port in a file, if the process lives that has published it.
fn read(place: &PathBuf) -> Option<String> {
    let text = fs::read_to_string(place).ok()?;
    let (mark, port) = text.split_once('\n')?;
    let process = mark.split(' ').next()?.parse().ok()?;
    (mark_of(process)? == mark).then(|| port.to_owned())
}

pub(super) fn publish(service: &str, port: &str) -> Result<()> {
    let place = place(service)?;
    let mut mine = MINE.lock().unwrap_or_else(PoisonError::into_inner);
    if read(&place).is_some() {
        return Err(Error::new(Class::Service, format!("service_name '{service}' is published already")));
    }
    // Whole or not at all: somebody may be looking.
    let draft = place.with_extension(std::process::id().to_string());
    let written = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft);
    let mark = mark_of(std::process::id()).unwrap_or_default();
    let text = format!("{mark}\n{port}");
    let written =
        written.and_then(|mut file| file.write_all(text.as_bytes())).and_then(|()| fs::rename(&draft, &place));
    if let Err(error) = written {
        let _ = fs::remove_file(&draft);
        return Err(failed(&error));
    }
    mine.push(place);
    Ok(())
}

pub(super) fn unpublish(service: &str, port: &str) -> Result<()> {
    let place = place(service)?;
    let mut mine = MINE.lock().unwrap_or_else(PoisonError::into_inner);
    match read(&place) {
        Some(published) if published == port => {
            mine.retain(|other| *other != place);
            fs::remove_file(&place).map_err(|error| failed(&error))
        }
        Some(_) => Err(Error::new(Class::Service, format!("service_name '{service}' is published for another port"))),
        None => Err(Error::new(Class::Service, format!("service_name '{service}' is not published"))),
    }
}

pub(super) fn look_up(service: &str) -> Result<String> {
    let unknown = || Error::new(Class::Name, format!("service_name '{service}' is not published"));
    let place = place(service).map_err(|_| unknown())?;
    read(&place).ok_or_else(unknown)
}

/// Withdraws what this process has published, at its end.
pub(crate) fn withdraw_all() {
    let mine = std::mem::take(&mut *MINE.lock().unwrap_or_else(PoisonError::into_inner));
    mine.into_iter().for_each(|place| _ = fs::remove_file(place));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_with_its_process_whoever_has_the_number_now() {
        let place = std::env::temp_dir().join(format!("weft-names-test-{}", std::process::id()));
        let mark = mark_of(std::process::id()).expect("we live");
        fs::write(&place, format!("{mark}\na port")).expect("written");
        assert_eq!(read(&place).as_deref(), Some("a port"));
        // One digit less: another time, and the same number.
        fs::write(&place, format!("{}\na port", &mark[..mark.len() - 1])).expect("written");
        assert_eq!(read(&place), None);
        fs::remove_file(&place).expect("removed");
        assert_eq!(mark_of(u32::MAX), None);
    }
}
