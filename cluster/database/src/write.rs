//! Writing a file.

use std::fmt::Write as _;
use weft_cluster::hosts::{Host, Launch};

/// The file of a new cluster: these members, and one partition of them all.
pub fn write_new(name: &str, members: &[Host], launch: Option<&Launch>) -> String {
    let mut text = format!("name = {}\nversion = 1\n", quoted(name));
    if let Some(launch) = launch {
        let _ = writeln!(text, "launch = {}", quoted(&launch.to_string()));
    }
    for Host { name, slots } in members {
        let _ = write!(text, "\n[[member]]\nname = {}\nslots = {slots}\n", quoted(name));
    }
    let names: Vec<String> = members.iter().map(|member| quoted(&member.name)).collect();
    let _ = write!(text, "\n[[partition]]\nname = \"all\"\nmembers = [{}]\n", names.join(", "));
    text
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// The same text with another version.
pub fn with_version(text: &str, version: u64) -> String {
    let is_version = |line: &str| line.split('=').next().is_some_and(|key| key.trim() == "version");
    let top = text.lines().take_while(|line| !line.trim_start().starts_with('['));
    match top.clone().position(is_version) {
        Some(at) => {
            let lines = text.lines().enumerate();
            lines
                .map(|(n, line)| if n == at { format!("version = {version}\n") } else { format!("{line}\n") })
                .collect()
        }
        None => format!("version = {version}\n{text}"),
    }
}
