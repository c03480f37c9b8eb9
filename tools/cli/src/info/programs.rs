//! `weft info PROGRAM`: which libraries of ours a program was built for, and whether and how it runs with them.

use std::io::Read;
use std::path::{Path, PathBuf};
use weft_agent::Abi;
use weft_cluster::job::Program;

/// Interfaces beside MPI: what the names of their libraries begin with, what they are called, and how a program starts.
const INTERFACES: [(&str, &str, &str); 11] = [
    ("libweft.so", "the ports of Weft", ALONE_OR_NOT),
    ("libpvm3.so", "PVM 3", PVM),
    ("libgpvm3.so", "PVM 3", PVM),
    ("libfpvm3.so", "PVM 3", PVM),
    ("libp4.so", "P4", "start it as it is, with its procgroup file, or by weft run -n N PROGRAM"),
    ("libtcgmsg.so", "TCGMSG", "start it by weft run -n N PROGRAM, or by parallel"),
    ("libtcgmsg8.so", "TCGMSG", "start it by weft run -n N PROGRAM, or by parallel"),
    ("libam.so", "Active Messages", "start it by weft run -n N PROGRAM"),
    ("libfm.so", "Fast Messages", "start it by weft run -n N PROGRAM"),
    ("libpanda.so", "Panda", "start it by weft run -n N PROGRAM"),
    ("libweft_objects.so", "shared objects", "start it by weft run -n N PROGRAM"),
];
const ALONE_OR_NOT: &str = "start it by weft env PROGRAM, or several as a job by weft run -n N PROGRAM";
const PVM: &str = "start it by weft env PROGRAM, from weft pvm, or several as a job by weft run -n N PROGRAM";

/// Says of each program what it was built for, and whether it runs under `weft run`; the exit code is 1 if one does
/// not.
pub fn programs(paths: &[PathBuf]) -> i32 {
    let answers = paths.iter().map(|path| program(path));
    answers.fold(0, |code, (line, runs)| {
        println!("{line}");
        if runs { code } else { 1 }
    })
}

/// A file, or the name of a program in `PATH`.
fn program(path: &Path) -> (String, bool) {
    let found = match path.to_str() {
        Some(name) if !path.exists() => weft_agent::find(&Program { program: name.into(), ..Program::default() }),
        _ => Ok(path.to_path_buf()),
    };
    let path = match found {
        Ok(path) => path,
        Err(error) => return (error.to_string(), false),
    };
    let shown = path.display();
    match first_bytes(&path) {
        Err(error) => return (format!("{shown}: {error}"), false),
        Ok(bytes) if bytes != *b"\x7fELF" => {
            let what = if bytes.starts_with(b"#!") { "a script: ask about what it runs" } else { "no program" };
            return (format!("{shown}: {what}"), false);
        }
        Ok(_) => {}
    }
    let needed = weft_agent::needed(&path);
    let mut answers: Vec<(String, bool)> = weft_agent::mpi_among(&needed).into_iter().map(mpi).collect();
    answers.extend(others(&needed, weft_agent::has_library));
    if answers.is_empty() {
        return (format!("{shown}: linked with no MPI library itself; what it loads later is not seen"), true);
    }
    let lines: Vec<String> = answers.iter().map(|(text, _)| format!("{shown}: built for {text}")).collect();
    (lines.join("\n"), answers.iter().all(|(_, runs)| *runs))
}

/// By which a program is known; 0 for those that a file does not have.
fn first_bytes(path: &Path) -> std::io::Result<[u8; 4]> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(4).read_to_end(&mut bytes)?;
    Ok(std::array::from_fn(|at| bytes.get(at).copied().unwrap_or_default()))
}

fn mpi((library, abi): (String, Abi)) -> (String, bool) {
    match abi {
        Abi::Standard => (format!("the standard ABI of MPI 5.0 ({library}); runs under weft run"), true),
        Abi::Mpich => (format!("the MPICH ABI ({library}); runs under weft run, with our library"), true),
        Abi::OpenMpi => {
            let how = "runs under weft run with its own library, which PMIx starts; compile it with weft cc for ours";
            (format!("Open MPI ({library}); {how}"), true)
        }
    }
}

/// The other interfaces that it was built for, each once.
fn others(needed: &[String], is_ours: impl Fn(&str) -> bool) -> Vec<(String, bool)> {
    let mut found: Vec<(&str, String, bool)> = Vec::new();
    for library in needed {
        // Behind the name there may be a version.
        let of = |name: &str| library.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let Some((_, interface, start)) = INTERFACES.iter().find(|(name, ..)| of(name)) else { continue };
        let runs = is_ours(library);
        if runs && found.iter().any(|(other, ..)| other == interface) {
            continue;
        }
        let then = if runs { start } else { "Weft has no such library: compile it anew, with pkg-config" };
        found.push((interface, format!("{interface} ({library}); {then}"), runs));
    }
    found.into_iter().map(|(_, text, runs)| (text, runs)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interface_is_named_once_and_foreign_versions_are_refused() {
        let said = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            others(&names, |name| !name.ends_with(".9"))
        };
        assert_eq!(said(&["libc.so.6", "libpvm3.so.3", "libgpvm3.so.3", "libamber.so.1", "libam2.so.1"]).len(), 1);
        assert!(said(&["libfpvm3.so"])[0].0.starts_with("PVM 3 (libfpvm3.so); start it by weft env"));
        let both = said(&["libtcgmsg8.so.1", "libtcgmsg.so.1", "libweft.so.1"]);
        assert!(both.len() == 2 && both[0].0.starts_with("TCGMSG (libtcgmsg8.so.1); ") && both[1].1);
        assert!(said(&["libfm.so.9"])[0].0.contains("Weft has no such library") && !said(&["libfm.so.9"])[0].1);
    }
}
