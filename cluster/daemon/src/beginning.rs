//! What a daemon begins with: its database, the member that it is, and its records.
//!
//! A database that is broken when the daemon begins is no reason to leave its host without one: the last good one
//! stands in the records, and is found there by the file's path.

use crate::file::DATABASE;
use crate::records::Records;
use anyhow::{Context, Result, bail};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use weft_database::Cluster;

/// The file of the database, as the records have it.
const FILE: &str = "file";

pub struct Beginning {
    pub cluster: Cluster,
    pub text: String,
    pub member: String,
    pub records: Records,
    /// Why it is not what the file says.
    pub trouble: Option<String>,
}

impl Beginning {
    /// Reads the database at an absolute path, or else the last good one.
    ///
    /// # Errors
    /// There is neither; or this host, or a member of the given name, is not in it.
    pub fn find(file: &Path, name: Option<&str>, state: &Path) -> Result<Self> {
        let (text, cluster) = match read(file) {
            Ok(read) => read,
            Err(mistakes) => {
                let Some(mut last) = last_good(file, name, state) else { bail!(mistakes.join("\n")) };
                let version = last.cluster.version;
                last.trouble = Some(format!("{}; the last good one, version {version}, is used", mistakes[0]));
                return Ok(last);
            }
        };
        let member = member(&cluster, name)?;
        let records = Records::open(&place(state, &cluster.name, &member))?;
        records.remember(FILE, &file.to_string_lossy())?;
        records.remember(DATABASE, &text)?;
        Ok(Self { cluster, text, member, records, trouble: None })
    }
}

/// What the file says, or what is wrong with it: one line at least.
fn read(file: &Path) -> Result<(String, Cluster), Vec<String>> {
    let told = |what: &dyn std::fmt::Display| format!("'{}', {what}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| vec![told(&error)])?;
    match weft_database::read(&text) {
        Ok(cluster) => Ok((text, cluster)),
        Err(mistakes) => Err(mistakes.iter().map(|mistake| told(mistake)).collect()),
    }
}

fn place(state: &Path, cluster: &str, member: &str) -> PathBuf {
    state.join(format!("{cluster}-{member}.sqlite"))
}

/// What this file said when it was good last, by the records of the daemon that has had it.
fn last_good(file: &Path, name: Option<&str>, state: &Path) -> Option<Beginning> {
    let is_of_name = |path: &PathBuf| {
        let stem = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".sqlite"));
        stem.is_some_and(|stem| name.is_none_or(|name| stem.ends_with(&format!("-{name}"))))
    };
    let places = std::fs::read_dir(state).ok()?.flatten().map(|entry| entry.path());
    places.filter(is_of_name).find_map(|path| {
        let records = Records::open(&path).ok()?;
        let is_its = records.fact(FILE).ok()?.is_some_and(|known| known == file.to_string_lossy());
        let text = records.fact(DATABASE).ok()?.filter(|_| is_its)?;
        let cluster = weft_database::read(&text).ok()?;
        let member = member(&cluster, name).ok()?;
        let is_here = path == place(state, &cluster.name, &member);
        is_here.then_some(Beginning { cluster, text, member, records, trouble: None })
    })
}

/// Which member this host is.
fn member(cluster: &Cluster, given: Option<&str>) -> Result<String> {
    let is_known = |name: &str| cluster.member(name).is_some();
    if let Some(name) = given {
        return if is_known(name) { Ok(name.to_owned()) } else { bail!("'{name}' is no member of '{}'", cluster.name) };
    }
    let host = nix::unistd::gethostname()?.to_string_lossy().into_owned();
    let short = host.split('.').next().unwrap_or_default();
    if let Some(name) = [&*host, short].into_iter().find(|name| is_known(name)) {
        return Ok(name.to_owned());
    }
    let ours: Vec<IpAddr> = nix::ifaddrs::getifaddrs()?
        .filter_map(|interface| Some(interface.address?.as_sockaddr_in()?.ip().into()))
        .collect();
    let by_address =
        cluster.members.iter().find(|member| member.addresses.iter().any(|address| ours.contains(address)));
    let by_address = by_address.with_context(|| format!("this host, '{host}', is no member of '{}'", cluster.name))?;
    Ok(by_address.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const GOOD: &str = "name = \"lab\"\nversion = 3\n[[member]]\nname = \"node1\"\nslots = 2\n";

    #[test]
    fn a_broken_file_is_replaced_by_what_it_said_when_it_was_good() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, state) = (folder.path().join("lab.toml"), folder.path().join("state"));
        let find = |name| Beginning::find(&file, Some(name), &state);
        assert!(find("node1").is_err(), "there is no file, and there was none");
        fs::write(&file, GOOD).expect("written");
        let good = find("node1").expect("the file is good");
        assert_eq!((good.cluster.version, good.trouble), (3, None));
        drop(good.records);
        for broken in ["name = \"lab\"\nversion = 4\n[[member]\n", ""] {
            fs::write(&file, broken).expect("written");
            let last = find("node1").expect("the last good one");
            assert_eq!((last.text.as_str(), &*last.member, last.cluster.version), (GOOD, "node1", 3));
            let told = last.trouble.expect("it is told");
            assert!(told.contains("lab.toml', ") && told.ends_with("the last good one, version 3, is used"), "{told}");
            assert!(!told.contains('\n'));
        }
        fs::remove_file(&file).expect("removed");
        assert_eq!(find("node1").expect("the last good one").cluster.version, 3);
        assert!(find("node2").is_err(), "this was never a member");
        fs::write(&file, GOOD.replace("= 3", "= 4")).expect("written");
        assert_eq!(find("node1").expect("the file is good again").cluster.version, 4);
    }

    #[test]
    fn another_file_is_not_taken_for_a_broken_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, other) = (folder.path().join("lab.toml"), folder.path().join("other.toml"));
        fs::write(&file, GOOD).expect("written");
        drop(Beginning::find(&file, Some("node1"), folder.path()).expect("the file is good"));
        fs::write(&other, "broken").expect("written");
        assert!(Beginning::find(&other, Some("node1"), folder.path()).is_err());
    }
}
