//! `--stage`: a host where Weft is missing, or another build, gets a copy of ours over its launch command.
//!
//! What the launch command starts there is a shell with a script ([`host.sh`](../stage/host.sh)). Where the installed
//! program is the same as here, it becomes the agent. Otherwise one in the user's cache does, `$XDG_CACHE_HOME/weft` or
//! `~/.cache/weft`, in a directory whose name has the checksum. Where that is missing or spoilt, the script asks for
//! the files with one line on its standard output, reads them from its standard input, puts them under their names when
//! they are whole, and looks at the checksum again.

use crate::checksum;
use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What the script says when it wants the files; the place where it puts them follows, and a line end.
pub const ASK: [u8; 8] = *b"weft-stg";
/// The longest line that begins so.
pub const ASK_BYTES: usize = 4096 + ASK.len();

/// Beside the program, in `../lib`: what the ranks of our programs load.
const LIBRARIES: [&str; 4] = ["libmpi_abi.so.1", "libweft_mpifort.so.1", "libmpi.so.12", "libweft_sockets.so"];
const SCRIPT: &str = include_str!("host.sh");

/// A program of ours and the libraries that are installed with it.
pub struct Kit {
    program: PathBuf,
    /// Where the libraries are.
    folder: PathBuf,
    /// Those that are there.
    libraries: Vec<&'static str>,
}

impl Kit {
    /// What this process runs from.
    ///
    /// # Errors
    /// The system does not say where that is.
    pub fn here() -> std::io::Result<Self> {
        let program = std::env::current_exe()?;
        let folder = folder_of(&program);
        let libraries = LIBRARIES.into_iter().filter(|name| folder.join(name).is_file()).collect();
        Ok(Self { program, folder, libraries })
    }

    /// The files under the names that they have below a prefix.
    fn files(&self) -> impl Iterator<Item = (String, PathBuf)> {
        let libraries = self.libraries.iter().map(|name| (format!("lib/{name}"), self.folder.join(name)));
        // Whatever became of its path, the kernel has the program that runs.
        std::iter::once(("bin/weft".to_owned(), "/proc/self/exe".into())).chain(libraries)
    }

    /// A checksum of all files and their names, in hexadecimal digits.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn checksum(&self) -> std::io::Result<String> {
        let mut all = String::new();
        for (name, path) in self.files() {
            all += &format!("{name} {:016x}\n", checksum::of(std::fs::File::open(path)?)?);
        }
        Ok(format!("{:016x}", checksum::of(all.as_bytes())?))
    }
}

/// Where the libraries of an installed program are.
pub(crate) fn folder_of(program: &Path) -> PathBuf {
    program.parent().and_then(Path::parent).unwrap_or(Path::new("/")).join("lib")
}

/// What hosts may be sent.
pub struct StagedFiles {
    kit: Kit,
    checksum: String,
    files: Vec<(String, u64)>,
    /// All of them, one behind the other, once a host has asked.
    bytes: Option<Rc<Vec<u8>>>,
}

impl StagedFiles {
    /// # Errors
    /// A file of this installation cannot be read.
    pub fn new() -> std::io::Result<Self> {
        let kit = Kit::here()?;
        let sized = |(name, path): (String, PathBuf)| Ok((name, std::fs::metadata(path)?.len()));
        let files = kit.files().map(sized).collect::<std::io::Result<_>>()?;
        Ok(Self { checksum: kit.checksum()?, files, kit, bytes: None })
    }

    /// The words that a host runs in the place of the agent's.
    pub fn words(&self) -> Vec<String> {
        let total: u64 = self.files.iter().map(|(_, bytes)| bytes).sum();
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let name = format!("{}-{}", env!("CARGO_PKG_VERSION"), self.checksum);
        let mut words = vec!["sh".to_owned(), "-c".to_owned(), one_line(SCRIPT), "weft".to_owned()];
        words.extend([text(&self.kit.program), name, self.checksum.clone(), text(&self.kit.folder)]);
        words.extend([std::env::consts::ARCH.to_owned(), total.to_string()]);
        words.extend(self.files.iter().flat_map(|(name, bytes)| [name.clone(), bytes.to_string()]));
        words
    }

    /// The files, for a host that has asked.
    ///
    /// # Errors
    /// One of them cannot be read, or is no longer what it was.
    pub fn parcel(&mut self) -> std::io::Result<FileParcel> {
        if self.bytes.is_none() {
            let mut all = Vec::new();
            for ((_, path), (name, bytes)) in self.kit.files().zip(&self.files) {
                let file = std::fs::read(path)?;
                if file.len() as u64 != *bytes {
                    return Err(std::io::Error::other(format!("{name} has changed since the start")));
                }
                all.extend(file);
            }
            self.bytes = Some(Rc::new(all));
        }
        Ok(FileParcel { bytes: self.bytes.clone().unwrap_or_default(), sent: 0 })
    }

    /// What was copied where, in one line; `places` has host and directory of each.
    pub fn report(&self, places: &[(&str, &str)]) -> String {
        let total: u64 = self.files.iter().map(|(_, bytes)| bytes).sum();
        let with = match &self.kit.libraries[..] {
            [] => String::new(),
            libraries => format!(" with {}", libraries.join(", ")),
        };
        let places = places.iter().map(|(host, place)| format!("{host}:{place}")).collect::<Vec<_>>().join(", ");
        format!(
            "copied weft {}{with} ({}.{} MB) to {places}",
            env!("CARGO_PKG_VERSION"),
            total / 1_000_000,
            total / 100_000 % 10
        )
    }
}

/// The files on their way to one host.
pub struct FileParcel {
    bytes: Rc<Vec<u8>>,
    sent: usize,
}

impl FileParcel {
    /// Writes as much as there is room for; false when there is nothing more to write, or nobody who reads.
    pub fn write(&mut self, fd: RawFd) -> bool {
        match crate::sys::write(fd, &self.bytes[self.sent..]) {
            Ok(count) => self.sent += count,
            Err(error) if crate::sys::is_temporary(&error) => {}
            // Why, the end of the launch command will say.
            Err(_) => return false,
        }
        self.sent < self.bytes.len()
    }

    pub fn sent(&self) -> usize {
        self.sent
    }
}

/// What stands in several lines, for shells that do not take them in quotes.
fn one_line(script: &str) -> String {
    let lines = script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.collect::<Vec<_>>().join(" ")
}

/// For the agent in a copy: where the ranks' environment leads to the launcher's libraries, it is to lead to the
/// copies, and a rank that is to be the launcher's program is to be the copy of it.
pub struct Instead {
    /// The directory of the libraries, as the launcher has it.
    launcher: PathBuf,
    ours: PathBuf,
    /// Any were copied.
    has_libraries: bool,
}

impl Instead {
    /// In the place of that directory of the launcher.
    pub fn of(launcher: &Path) -> Option<Self> {
        let kit = Kit::here().ok()?;
        Some(Self { launcher: launcher.to_owned(), has_libraries: !kit.libraries.is_empty(), ours: kit.folder })
    }

    pub fn has_libraries(&self) -> bool {
        self.has_libraries
    }

    /// `None` for any other program than the launcher's.
    pub fn program(&self, given: &str) -> Option<String> {
        let weft = |folder: &Path| Some(folder.parent()?.join("bin/weft"));
        (Path::new(given) == weft(&self.launcher)?).then(|| weft(&self.ours))?.map(|ours| ours.display().to_string())
    }

    /// `None` for a variable that does not lead to libraries that were copied.
    pub fn value(&self, name: &str, given: &OsStr) -> Option<OsString> {
        match name {
            _ if !self.has_libraries => None,
            "LD_LIBRARY_PATH" => Some(self.library_path(given)),
            "LD_PRELOAD" => {
                // Blanks and colons separate the names, and nothing quotes them.
                let given = given.to_str()?;
                let name = |word: &str| match Path::new(word).strip_prefix(&self.launcher) {
                    Ok(name) => self.ours.join(name).to_string_lossy().into_owned(),
                    Err(_) => word.to_owned(),
                };
                Some(given.split([' ', ':']).map(name).collect::<Vec<_>>().join(":").into())
            }
            _ => None,
        }
    }

    /// Our directory stands where the launcher's does, or comes first: what the user put before it may hold another
    /// build.
    pub fn library_path(&self, given: &OsStr) -> OsString {
        let mut found = false;
        let mut parts = Vec::new();
        for part in std::env::split_paths(given).filter(|part| !part.as_os_str().is_empty()) {
            found |= part == self.launcher;
            parts.push(if part == self.launcher { self.ours.clone() } else { part });
        }
        if !found {
            parts.insert(0, self.ours.clone());
        }
        std::env::join_paths(parts).unwrap_or_else(|_| self.ours.clone().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_login_shell_passes_the_script_on_as_it_is() {
        let line = one_line(SCRIPT);
        assert!(!line.contains(['\'', '\\', '!', '\n']), "{line}");
        // What is cut off in the middle is no program.
        let check = std::process::Command::new("sh").args(["-n", "-c", &line]).status();
        assert!(check.expect("a shell").success());
    }

    /// A copy that is spoilt in part, perhaps while ranks run what is whole of it: that stays where it is.
    #[test]
    fn files_of_a_spoilt_copy_that_are_whole_are_not_replaced() {
        use std::io::{BufRead, Write};
        use std::os::unix::fs::MetadataExt;
        let cache = tempfile::tempdir().expect("a folder");
        let place = cache.path().join("weft/copy");
        // Its checksum is what the library beside it says.
        let weft =
            "#!/bin/sh\nif test $1 = checksum; then cat \"$(dirname \"$0\")/../lib/l.so\"; else echo \"$@\"; fi\n";
        for (name, text) in [("bin/weft", weft), ("lib/l.so", "spoilt")] {
            let path = place.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            // Written by another process: while a child of another test holds a file open for writing, it cannot run.
            let mut write = std::process::Command::new("sh");
            write.args(["-c", "printf %s \"$1\" > \"$0\" && chmod 700 \"$0\""]).arg(&path).arg(text);
            assert!(write.status().expect("a shell").success());
        }
        let number = |name: &str| std::fs::metadata(place.join(name)).expect("it is there").ino();
        let before = ["bin/weft", "lib/l.so"].map(number);

        let files = [("bin/weft", weft), ("lib/l.so", "whole")];
        let total: usize = files.iter().map(|(_, text)| text.len()).sum();
        let machine = std::process::Command::new("uname").arg("-m").output().expect("uname").stdout;
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &one_line(SCRIPT), "weft", "/nowhere/weft", "copy", "whole", "/nowhere/lib"]);
        command
            .arg(String::from_utf8_lossy(&machine).trim())
            .arg(total.to_string())
            .env("XDG_CACHE_HOME", cache.path());
        command.args(files.iter().flat_map(|(name, text)| [(*name).to_owned(), text.len().to_string()]));
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().expect("a shell");
        let mut said =
            std::io::BufReader::new(child.stdout.take().expect("piped")).lines().map(|line| line.expect("text"));
        assert_eq!(said.next(), Some(format!("weft-stg{}", place.display())));
        let mut input = child.stdin.take().expect("piped");
        files.iter().for_each(|(_, text)| input.write_all(text.as_bytes()).expect("written"));
        assert_eq!(said.next().as_deref(), Some("agent --in-place-of /nowhere/lib"));
        assert!(child.wait().expect("it ends").success());
        assert_eq!(std::fs::read_to_string(place.join("lib/l.so")).expect("it is there"), "whole");
        let after = ["bin/weft", "lib/l.so"].map(number);
        assert!(after[0] == before[0] && after[1] != before[1], "{before:?}, {after:?}");
    }

    #[test]
    fn checksum_is_of_all_files_and_the_same_each_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let kit = |libraries: &[&'static str]| Kit {
            program: "weft".into(),
            folder: folder.path().into(),
            libraries: libraries.to_vec(),
        };
        let sum = |libraries: &[&'static str]| kit(libraries).checksum().expect("readable");
        for library in LIBRARIES {
            std::fs::write(folder.path().join(library), "one").expect("written");
        }
        let sums = [sum(&[]), sum(&LIBRARIES[..1]), sum(&LIBRARIES[1..]), sum(&LIBRARIES)];
        assert_eq!(sums[3], sum(&LIBRARIES));
        assert!((0..4).all(|at| !sums[..at].contains(&sums[at])), "{sums:?}");
        std::fs::write(folder.path().join(LIBRARIES[1]), "two").expect("written");
        assert_ne!(sum(&LIBRARIES), sums[3]);
    }

    #[test]
    fn the_environment_leads_to_the_copies_where_it_led_to_the_launcher_s() {
        let instead = Instead { launcher: "/opt/weft/lib".into(), ours: "/c/lib".into(), has_libraries: true };
        assert_eq!(instead.program("/opt/weft/bin/weft").as_deref(), Some("/c/bin/weft"));
        assert_eq!(instead.program("weft"), None);
        let value = |name: &str, given: &str| {
            instead.value(name, given.as_ref()).map(|value| value.into_string().expect("text"))
        };
        let paths = |given: &str| value("LD_LIBRARY_PATH", given).expect("a value");
        assert_eq!(paths("/a:/opt/weft/lib:/b"), "/a:/c/lib:/b");
        assert_eq!([paths("/a"), paths("")], ["/c/lib:/a", "/c/lib"]);
        let preload = value("LD_PRELOAD", "/opt/weft/lib/libweft_sockets.so /x/y.so:z.so");
        assert_eq!(preload.as_deref(), Some("/c/lib/libweft_sockets.so:/x/y.so:z.so"));
        assert_eq!(value("PATH", "/opt/weft/lib"), None);
    }
}
