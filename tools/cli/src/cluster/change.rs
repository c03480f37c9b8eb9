//! A new file, and changes by an editor.

use super::draft::{EditLock, EditedDraft};
use super::file::{self, Slips};
use super::known::warn_of_unknown;
use super::{FRONT, InitArguments};
use crate::counted::counted;
use crate::hosts;
use crate::reach::launch_of_environment;
use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;
use std::process::Command;
use weft_cluster::hosts::{SlotHost, parse_list};
use weft_database::Cluster;

fn slip(what: String) -> Slips {
    vec![what]
}

pub fn init(given: InitArguments) -> Result<i32, Slips> {
    let path = given.file.unwrap_or_else(|| file::place_of(&given.name, given.system));
    if path.exists() {
        return Err(slip(format!("'{}' is there already; weft cluster edit changes it", path.display())));
    }
    let mut members = parse_list(&given.hosts.join(",")).map_err(|error| slip(error.to_string()))?;
    let launch = given.launch.clone().map_or_else(launch_of_environment, Ok)?;
    let says_slots = |host: &SlotHost| {
        given.hosts.iter().any(|word| word.split(',').any(|word| word == format!("{}:{}", host.name, host.slots)))
    };
    let unknown: Vec<String> = members.iter().filter(|host| !says_slots(host)).map(|host| host.name.clone()).collect();
    let mut slips = Slips::new();
    for (name, cores) in hosts::cores(&unknown, &launch).map_err(|error| slip(format!("{error:#}")))? {
        match cores {
            Ok(cores) => members.iter_mut().filter(|host| host.name == name).for_each(|host| host.slots = cores),
            Err(why) => slips.push(format!("host '{name}': {why}; {name}:SLOTS is taken without asking")),
        }
    }
    if !slips.is_empty() {
        return Err(slips);
    }
    let text = weft_database::write_new(&given.name, &members, given.launch.as_ref());
    file::understand(&path, &text)?;
    file::write(&path, &text).map_err(|error| slip(format!("'{}': {error}", path.display())))?;
    let slots: usize = members.iter().map(|member| member.slots).sum();
    let (count, slots) = (counted(members.len(), "member"), counted(slots, "slot"));
    println!("{}: cluster {}, {count} with {slots}", path.display(), given.name);
    Ok(0)
}

/// The editor works on a draft beside the file. The version that was is kept as `NAME.toml.VERSION`.
pub fn edit() -> Result<i32, Slips> {
    let path = file::path()?;
    let lock = EditLock::take(&path)?;
    let before = fs::read_to_string(&path).map_err(|error| slip(format!("'{}': {error}", path.display())))?;
    let draft = EditedDraft::open(lock, &path, &before)?;
    let unchanged = || format!("nothing was changed; your text is '{}'", draft.path.display());
    loop {
        run_editor(&draft.path).map_err(|why| slip(format!("{why}; {}", unchanged())))?;
        let text = draft.text()?;
        if text.trim_end() == before.trim_end() {
            draft.remove();
            println!("nothing was changed");
            return Ok(0);
        }
        let Err(mut slips) = file::understand(&draft.path, &text) else {
            let cluster = replace(&path, &before, &text).map_err(|why| [why, slip(unchanged())].concat())?;
            draft.remove();
            warn_of_unknown(&cluster.partitions, &cluster.reservations);
            println!("{}: version {}; weft cluster apply brings it to the members", path.display(), cluster.version);
            return Ok(0);
        };
        if io::stdin().is_terminal() {
            slips.iter().for_each(|slip| eprintln!("{FRONT}: {slip}"));
            eprint!("Edit again? [Y/n] ");
            let _ = io::stderr().flush();
            let mut answer = String::new();
            let read = io::stdin().lock().read_line(&mut answer);
            if matches!(read, Ok(1..)) && !answer.trim().eq_ignore_ascii_case("n") {
                continue;
            }
            slips.clear();
        }
        slips.push(unchanged());
        return Err(slips);
    }
}

/// Writes a text that has no mistakes as the next version, and keeps the last one.
///
/// # Errors
/// It cannot be written, or the file is not what it was before.
pub fn replace(path: &Path, before: &str, text: &str) -> Result<Cluster, Slips> {
    let failed = |error: io::Error| slip(format!("'{}': {error}", path.display()));
    // Nobody else compares and writes meanwhile, where the file system can lock folders. An editor that is open for
    // hours keeps nobody out.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = fs::File::open(folder).map_err(failed)?;
    let _ = folder.lock();
    if fs::read_to_string(path).map_err(failed)? != before {
        return Err(slip(format!("'{}' has been changed meanwhile, by somebody else", path.display())));
    }
    // A file with mistakes has no version; what comes after it is the next one of the new text.
    let version = |text| weft_database::read(text).map(|cluster| cluster.version).ok();
    let kept = version(before).unwrap_or(0);
    file::write(&path.with_extension(format!("toml.{kept}")), before).map_err(failed)?;
    let next = version(before).or_else(|| version(text)).unwrap_or(0).saturating_add(1);
    file::write(path, &weft_database::with_version(text, next)).map_err(failed)?;
    file::load(path.to_owned()).map(|file| file.cluster)
}

fn run_editor(draft: &Path) -> Result<(), String> {
    let named = ["VISUAL", "EDITOR"].into_iter().filter_map(std::env::var_os).find(|name| !name.is_empty());
    let editor = named.unwrap_or_else(|| "vi".into());
    // A shell, since people put options there.
    let status = Command::new("sh").arg("-c").arg(r#"eval "$1 \"\$2\"""#).arg("sh").arg(&editor).arg(draft).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the editor '{}' has failed ({status})", editor.display())),
        Err(error) => Err(format!("the editor '{}' cannot be started: {error}", editor.display())),
    }
}
