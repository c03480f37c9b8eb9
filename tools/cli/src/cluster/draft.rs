//! The text that an editor works on: a draft beside the file, of one editor at a time. A line in it says of which text
//! it is a draft, so that one that is older than the file is not taken for a change of it.

use super::FRONT;
use super::file::Slips;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use weft_wire::siphash;

/// How the line begins.
const MARK: &str = "# Draft of version ";
/// Texts of one version are told apart by a tag under this.
const TELLS_APART: [u8; siphash::KEY_BYTES] = *b"weft edits files";

pub struct EditedDraft {
    pub path: PathBuf,
    _lock: EditLock,
}

impl EditedDraft {
    /// The draft of a file that says this now: the one that was left, where the file has not changed since.
    ///
    /// # Errors
    /// Nothing can be written beside it.
    pub fn open(lock: EditLock, file: &Path, text: &str) -> Result<Self, Slips> {
        let path = file.with_extension("toml.draft");
        let failed = |error: io::Error| vec![format!("'{}': {error}", path.display())];
        let mark = mark_of(text);
        match fs::read_to_string(&path) {
            Ok(left) if left.lines().any(|line| line == mark) && !without_mark(&left).trim().is_empty() => {
                eprintln!(
                    "{FRONT}: this is your draft '{}', which was not taken; remove it to begin anew",
                    path.display()
                );
                return Ok(Self { path, _lock: lock });
            }
            Ok(left) if !without_mark(&left).trim().is_empty() => {
                let kept = free_name(file);
                fs::rename(&path, &kept).map_err(failed)?;
                eprintln!(
                    "{FRONT}: '{}' has changed since your draft was begun; the draft is '{}' now, and this is the file",
                    file.display(),
                    kept.display()
                );
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let whole = format!("{}{mark}\n", if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") });
        fs::write(&path, whole).inspect_err(|_| drop(fs::remove_file(&path))).map_err(failed)?;
        Ok(Self { path, _lock: lock })
    }

    /// What it says now.
    ///
    /// # Errors
    /// The editor has left nothing.
    pub fn text(&self) -> Result<String, Slips> {
        let gone = "nothing was changed";
        match fs::read_to_string(&self.path) {
            Ok(text) if without_mark(&text).trim().is_empty() => {
                self.remove();
                Err(vec![format!("the editor has left an empty text; {gone}")])
            }
            Ok(text) => Ok(without_mark(&text)),
            Err(error) => Err(vec![format!("the editor has left no '{}': {error}; {gone}", self.path.display())]),
        }
    }

    pub fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn mark_of(text: &str) -> String {
    let version = weft_database::read(text).map_or(0, |cluster| cluster.version);
    let tag = u128::from_le_bytes(siphash::tag(&TELLS_APART, text.as_bytes()));
    format!("{MARK}{version}, {tag:032x}; this line is taken out again.")
}

fn without_mark(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !line.starts_with(MARK)).collect()
}

/// A name for a draft that is out of date.
fn free_name(file: &Path) -> PathBuf {
    let mut names = (1..).map(|number| file.with_extension(format!("toml.draft.{number}")));
    names.find(|name| !name.exists()).unwrap_or_else(|| file.with_extension("toml.draft.0"))
}

/// Only one process has it for a file. It says in it who that is.
pub struct EditLock {
    path: PathBuf,
    _file: File,
}

impl EditLock {
    /// # Errors
    /// Another process changes the file, or nothing can be written beside it.
    pub fn take(file: &Path) -> Result<Self, Slips> {
        let path = file.with_extension("toml.lock");
        let failed =
            |error: io::Error| vec![format!("'{}' cannot be changed: '{}': {error}", file.display(), path.display())];
        loop {
            let mut options = File::options();
            options.create(true).truncate(false).read(true).write(true);
            let mut lock = options.open(&path).map_err(failed)?;
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let mut who = String::new();
                    let _ = lock.read_to_string(&mut who);
                    return Err(vec![format!("'{}' is being changed already, by {}", file.display(), who.trim())]);
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            // Who had it before may have removed it after we had opened it.
            let is_there = fs::metadata(&path).is_ok_and(|there| {
                lock.metadata().is_ok_and(|ours| (ours.dev(), ours.ino()) == (there.dev(), there.ino()))
            });
            if is_there {
                let who = format!("process {} on {}\n", std::process::id(), weft_agent::host_name());
                lock.set_len(0).and_then(|()| lock.write_all(who.as_bytes())).map_err(failed)?;
                return Ok(Self { path, _file: lock });
            }
        }
    }
}

impl Drop for EditLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = \"lab\"\nversion = 4\n[[member]]\nname = \"a\"\n";

    fn open(file: &Path, text: &str) -> Result<EditedDraft, Slips> {
        EditedDraft::open(EditLock::take(file)?, file, text)
    }

    fn lab() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("lab.toml");
        (folder, file)
    }

    #[test]
    fn a_draft_is_opened_again_only_while_the_file_is_what_it_was() {
        let (_folder, file) = lab();
        let again = |text: &str| open(&file, text).expect("opened");
        let path = again(TEXT).path.clone();
        let left = fs::read_to_string(&path).expect("written");
        assert!(left.contains("# Draft of version 4, "), "{left}");
        fs::write(&path, left.replace("\"a\"", "\"b\"")).expect("written");
        assert_eq!(again(TEXT).text().expect("left"), TEXT.replace("\"a\"", "\"b\""));
        // The same version with another text is another one.
        for newer in [TEXT.replace("\"a\"", "\"c\""), TEXT.replace("= 4", "= 5")] {
            assert_eq!(again(&newer).text().expect("begun anew"), newer);
        }
        assert!(fs::read_to_string(file.with_extension("toml.draft.1")).expect("kept").contains("\"b\""));
    }

    #[test]
    fn an_empty_draft_is_begun_anew_and_none_is_taken() {
        let (_folder, file) = lab();
        for nothing in ["".to_owned(), " \n".to_owned(), format!("{}\n", mark_of(TEXT))] {
            fs::write(file.with_extension("toml.draft"), &nothing).expect("written");
            let draft = open(&file, TEXT).expect("opened");
            assert_eq!(draft.text().expect("begun anew"), TEXT);
            fs::write(&draft.path, nothing).expect("written");
            assert!(draft.text().expect_err("empty")[0].contains("empty text; nothing was changed"));
            assert!(draft.text().expect_err("gone")[0].contains("has left no '"));
        }
    }

    #[test]
    fn a_second_editor_is_told_of_the_first() {
        let (_folder, file) = lab();
        let first = open(&file, TEXT).expect("opened");
        let told = open(&file, TEXT).err().expect("it is taken")[0].clone();
        assert!(told.contains(&format!("already, by process {} on ", std::process::id())), "{told}");
        drop(first);
        open(&file, TEXT).expect("it is free").remove();
        assert_eq!(fs::read_dir(file.parent().expect("a folder")).expect("read").count(), 0);
    }
}
