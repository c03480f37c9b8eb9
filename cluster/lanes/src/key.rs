//! The key that hosts have in common, in a file that only its owner can read.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use weft_device::kernel;
use weft_wire::link::mac::Key;
use weft_wire::siphash;

/// What a file must have.
pub const LEAST_BYTES: usize = 16;
const MOST_BYTES: u64 = 65536;
/// Under this the content of a file becomes the key.
const MAKES_KEYS: [u8; siphash::KEY_BYTES] = *b"weft hosts' keys";

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("key file {path}: {cause}")]
    File { path: PathBuf, cause: io::Error },
    #[error("key file {path} is no regular file")]
    NoFile { path: PathBuf },
    #[error("key file {path} has mode {mode:03o}, and others must not be able to read or write it: chmod 600 {path}")]
    TooOpen { path: PathBuf, mode: u32 },
    #[error("key file {path} is user {owner}'s, and must be user {me}'s, who runs this, or root's")]
    NotOurs { path: PathBuf, owner: u32, me: u32 },
    #[error("key file {path} has {bytes} bytes, and must have 16 to 65536")]
    Length { path: PathBuf, bytes: u64 },
    #[error("the system gives no random numbers")]
    NoRandom,
}

/// The key that a file stands for: SipHash-2-4 with 128 bits of all that it contains.
///
/// # Errors
/// It cannot be read, others may read it, or it is too short.
pub fn read(path: &Path) -> Result<Key, KeyError> {
    Ok(Key(siphash::tag(&MAKES_KEYS, &content(path)?)))
}

/// What a file of a key contains.
///
/// # Errors
/// As of [`read`].
pub fn content(path: &Path) -> Result<Vec<u8>, KeyError> {
    let failed = |cause| KeyError::File { path: path.to_owned(), cause };
    // Of what is no file, such as a pipe without a writer, nobody waits for the content.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(failed)?;
    let facts = file.metadata().map_err(failed)?;
    if !facts.is_file() {
        return Err(KeyError::NoFile { path: path.to_owned() });
    }
    let (mode, owner, me) = (facts.mode() & 0o777, facts.uid(), kernel::user());
    if mode & 0o077 != 0 {
        return Err(KeyError::TooOpen { path: path.to_owned(), mode });
    }
    if owner != me && owner != 0 {
        return Err(KeyError::NotOurs { path: path.to_owned(), owner, me });
    }
    let mut content = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut content).map_err(failed)?;
    if content.len() < LEAST_BYTES || content.len() as u64 > MOST_BYTES {
        return Err(KeyError::Length { path: path.to_owned(), bytes: facts.len() });
    }
    Ok(content)
}

/// Writes a new random key, which only the owner of the new file can read: 32 bytes as text.
///
/// # Errors
/// The file exists already, or cannot be written.
pub fn make(path: &Path) -> Result<(), KeyError> {
    let mut text = String::new();
    for _ in 0..4 {
        let number = kernel::true_random().ok_or(KeyError::NoRandom)?;
        text.push_str(&format!("{number:016x}"));
    }
    text.push('\n');
    write(path, &text)
}

/// Writes a key to a new file, which only its owner can read.
///
/// # Errors
/// The file exists already, or cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), KeyError> {
    let failed = |cause| KeyError::File { path: path.to_owned(), cause };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    fn file(content: &[u8], mode: u32) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(content).expect("written");
        file.as_file().set_permissions(Permissions::from_mode(mode)).expect("a mode");
        file
    }

    #[test]
    fn a_made_key_is_read_and_no_two_are_the_same() {
        let directory = tempfile::tempdir().expect("a directory");
        let paths = ["one", "other"].map(|name| directory.path().join(name));
        let keys = paths.each_ref().map(|path| {
            make(path).expect("made");
            read(path).expect("read")
        });
        assert!(keys[0] != keys[1] && keys[0] == read(&paths[0]).expect("read again"));
        let mode = std::fs::metadata(&paths[0]).expect("there").mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(matches!(make(&paths[0]), Err(KeyError::File { .. })), "an old key is not written over");
    }

    #[test]
    fn equal_files_are_one_key_and_every_byte_counts() {
        let key = |content: &[u8]| read(file(content, 0o600).path()).expect("a key");
        assert!(key(b"sixteen bytes ab") == key(b"sixteen bytes ab"));
        assert!(key(b"sixteen bytes ab") != key(b"sixteen bytes ab\n"));
        assert!(key(&[1; 300]) != key(&[1; 556]));
    }

    #[test]
    fn files_that_others_may_touch_are_refused() {
        for mode in [0o640, 0o604, 0o620, 0o601, 0o666] {
            let error = read(file(&[7; 32], mode).path()).expect_err("too open");
            assert!(matches!(error, KeyError::TooOpen { mode: found, .. } if found == mode));
            assert!(error.to_string().contains(&format!("{mode:o}")), "{error}");
        }
        assert!(read(file(&[7; 32], 0o400).path()).is_ok());
    }

    #[test]
    fn short_long_and_strange_files_are_refused() {
        assert!(matches!(read(file(&[7; 15], 0o600).path()), Err(KeyError::Length { bytes: 15, .. })));
        assert!(matches!(read(file(&[7; 65537], 0o600).path()), Err(KeyError::Length { bytes: 65537, .. })));
        assert!(matches!(read(Path::new("/dev/null")), Err(KeyError::NoFile { .. })));
        assert!(matches!(read(Path::new("/nowhere/at/all")), Err(KeyError::File { .. })));
    }
}
