//! Where the file of a cluster is, and reading and writing it.

use crate::reach::{LAUNCH_VARIABLE, launch_of_environment};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use weft_cluster::hosts::Launch;
use weft_database::Cluster;
use weft_requests::client::ClusterClient;
use weft_requests::{ClusterReply, Demand};
use weft_zone::{ZoneError, ZonePlace};

pub const VARIABLE: &str = "WEFT_CLUSTER";
const SYSTEM: &str = "/etc/weft";
/// What is longer is no file of a cluster.
pub const MOST_BYTES: u64 = 4 << 20;

/// One line for each slip.
pub type Slips = Vec<String>;

pub struct ClusterFile {
    pub path: PathBuf,
    pub text: String,
    pub cluster: Cluster,
}

impl ClusterFile {
    /// Whether a daemon is to run where this file is: starting them brings the key beside it.
    pub fn has_daemons(&self) -> bool {
        self.path.with_extension("key").exists()
    }
}

/// The user's own folder first, where there is one.
fn folders(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    own.map(|own| own.join("weft")).into_iter().chain([PathBuf::from(SYSTEM)]).collect()
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Where the file of a cluster goes that is new on this host.
pub fn place_of(name: &str, system: bool) -> PathBuf {
    let all = folders(variable);
    let folder = if system { all.last() } else { all.first() };
    folder.map_or_else(PathBuf::new, |folder| folder.join(format!("{name}.toml")))
}

/// Whether a file is one for all users.
pub fn is_system(path: &Path) -> bool {
    path.parent() == Some(Path::new(SYSTEM))
}

/// The cluster that the environment names, or the only one that there is.
///
/// # Errors
/// There is none, or several, or it has mistakes: a line for each.
pub fn find() -> Result<ClusterFile, Slips> {
    match variable(VARIABLE).as_deref().and_then(OsStr::to_str).filter(|given| ZonePlace::is_meant(given)) {
        Some(given) => ask(given),
        None => load(path()?),
    }
}

/// The same where a file with mistakes keeps nobody from his work: what the daemon of this host uses is taken then.
///
/// # Errors
/// As [`find`], where it has mistakes and no daemon uses it.
pub fn find_used() -> Result<ClusterFile, Slips> {
    match variable(VARIABLE).as_deref().and_then(OsStr::to_str).filter(|given| ZonePlace::is_meant(given)) {
        Some(given) => ask(given),
        None => load_used(path()?),
    }
}

/// The same of this file.
///
/// # Errors
/// As [`find_used`].
pub fn load_used(path: PathBuf) -> Result<ClusterFile, Slips> {
    load(path.clone()).or_else(|slips| {
        let used = ClusterClient::find().ok().flatten().and_then(|mut daemon| daemon.ask(&Demand::Database).ok());
        let Some(ClusterReply::Database { file, text }) = used else { return Err(slips) };
        match (std::path::absolute(&path), weft_database::read(&text)) {
            (Ok(ours), Ok(cluster)) if ours == file => {
                let version = cluster.version;
                eprintln!(
                    "weft cluster: {}; the last good one, version {version}, is used, as by the daemon",
                    slips.join("; ")
                );
                Ok(ClusterFile { path, text, cluster })
            }
            _ => Err(slips),
        }
    })
}

/// The cluster of a zone, as its file would be.
///
/// # Errors
/// There is none: a line that says why.
pub fn ask(given: &str) -> Result<ClusterFile, Slips> {
    let failed = |error: ZoneError| vec![format!("'{given}': {error}")];
    let place: ZonePlace = given.parse().map_err(|error| failed(ZoneError::ZonePlace(error)))?;
    let cluster = weft_zone::read(&place).map_err(failed)?;
    Ok(ClusterFile { path: given.into(), text: weft_database::write(&cluster), cluster })
}

/// Its path.
///
/// # Errors
/// There is none, or several.
pub fn path() -> Result<PathBuf, Slips> {
    let given = variable(VARIABLE).filter(|given| !given.is_empty());
    path_in(&folders(variable), given).map_err(|slip| vec![slip])
}

fn path_in(folders: &[PathBuf], given: Option<OsString>) -> Result<PathBuf, String> {
    let places = || folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(" and ");
    let Some(given) = given else {
        let mut all: Vec<PathBuf> = folders.iter().flat_map(|folder| files_of(folder)).collect();
        let name = |path: &PathBuf| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // The same name in both is one cluster, and the user's file goes before.
        let mut seen = std::collections::HashSet::new();
        all.retain(|path| seen.insert(name(path)));
        return match &all[..] {
            [] => Err(format!("there is no cluster in {}; weft cluster init NAME HOST... makes one", places())),
            [one] => Ok(one.clone()),
            several => {
                let names: Vec<String> = several.iter().map(name).collect();
                Err(format!("there are several clusters: {}; {VARIABLE} names the one that is meant", names.join(", ")))
            }
        };
    };
    let path = Path::new(&given);
    if given.to_str().is_some_and(ZonePlace::is_meant) {
        return Err(format!("{VARIABLE}: '{}' is a zone, and no file that can be changed here", path.display()));
    }
    if path.components().count() > 1 || path.extension().is_some_and(|end| end == "toml") {
        return Ok(path.to_owned());
    }
    let named = folders.iter().map(|folder| folder.join(format!("{}.toml", path.display())));
    named
        .into_iter()
        .find(|file| file.exists())
        .ok_or_else(|| format!("{VARIABLE}: there is no cluster '{}' in {}", path.display(), places()))
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    files
}

/// Reads a file.
///
/// # Errors
/// As [`find`].
pub fn load(path: PathBuf) -> Result<ClusterFile, Slips> {
    let text = read_text(&path).map_err(|error| vec![format!("'{}': {error}", path.display())])?;
    let cluster = understand(&path, &text)?;
    Ok(ClusterFile { path, text, cluster })
}

/// How the members of a cluster are reached: as the user says now, else as its file does.
///
/// # Errors
/// The environment says what is no launch command.
pub fn launch_of(cluster: &Cluster) -> Result<Launch, Slips> {
    match (&cluster.launch, std::env::var_os(LAUNCH_VARIABLE)) {
        (Some(launch), None) => Ok(launch.clone()),
        _ => launch_of_environment(),
    }
}

/// What a text says that stands, or is to stand, at this place.
///
/// # Errors
/// A line for each mistake.
pub fn understand(path: &Path, text: &str) -> Result<Cluster, Slips> {
    let told = |mistake| format!("'{}', {mistake}", path.display());
    weft_database::read(text).map_err(|mistakes| mistakes.into_iter().map(told).collect())
}

fn read_text(path: &Path) -> io::Result<String> {
    if fs::metadata(path)?.len() > MOST_BYTES {
        return Err(io::Error::other(format!("it is longer than {} MiB", MOST_BYTES >> 20)));
    }
    fs::read_to_string(path)
}

/// Writes a file, which is there whole or as it was before.
///
/// # Errors
/// It cannot be written.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let new = path.with_extension(format!("toml.{}", std::process::id()));
    let written = fs::File::create_new(&new).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let done = written.and_then(|()| fs::rename(&new, path));
    if done.is_err() {
        let _ = fs::remove_file(&new);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_found_by_name_path_or_because_it_is_the_only_one() {
        let (own, system) = (tempfile::TempDir::new().expect("a folder"), tempfile::TempDir::new().expect("a folder"));
        let folders = [own.path().to_owned(), system.path().to_owned()];
        let find = |given: Option<&str>| path_in(&folders, given.map(OsString::from));
        assert!(find(None).expect_err("none yet").contains("weft cluster init"));
        fs::write(system.path().join("lab.toml"), "x").expect("written");
        assert_eq!(find(None), Ok(system.path().join("lab.toml")));
        fs::write(own.path().join("lab.toml"), "x").expect("written");
        assert_eq!(find(None), Ok(own.path().join("lab.toml")));
        assert_eq!(find(Some("lab")), Ok(own.path().join("lab.toml")));
        fs::write(system.path().join("big.toml"), "x").expect("written");
        assert!(find(None).expect_err("two").contains("lab, big"));
        assert_eq!(find(Some("big")), Ok(system.path().join("big.toml")));
        assert_eq!(find(Some("./other")), Ok("./other".into()));
        assert!(find(Some("none")).is_err());
        assert!(find(Some("dns:lab.example")).expect_err("no file").contains("is a zone"));
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("new/lab.toml");
        write(&path, "one").expect("written");
        write(&path, "two").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "two");
        assert_eq!(fs::read_dir(folder.path().join("new")).expect("a folder").count(), 1);
        assert!(write(Path::new("/proc/none/lab.toml"), "x").is_err());
    }
}
