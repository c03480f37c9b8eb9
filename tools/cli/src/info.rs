//! `weft info`: what this is, what it can use here, and every setting with its value and where that comes from.

pub mod choices;
mod programs;

use std::fmt::Write;
use std::thread;

pub use programs::programs;
use weft_fabric::ProbeReport;
use weft_wire::settings::{Algorithms, SettingError, Settings};

use crate::cc;
use crate::defaults::tell_of_unknown;
use crate::tune;

/// Prints everything; the exit code is 1 when a setting is refused.
pub fn run(probe: impl FnOnce() -> Vec<ProbeReport>) -> i32 {
    let settings = Settings::from_env(std::env::vars_os());
    let machine = tune::line();
    print!("{}{}{machine}{}{}{}", about(), cores(), devices(&probe()), algorithms(), table(&settings));
    tell_of_unknown("weft info");
    for error in settings.as_ref().err().into_iter().flatten() {
        eprintln!("weft info: {error}");
    }
    i32::from(settings.is_err())
}

fn about() -> String {
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let place = cc::prefix().map_or_else(|error| error.to_string(), |prefix| prefix.display().to_string());
    format!(
        "weft {}, {build} build for {}-{}\ninstalled in {place}\n\
         weft env PROGRAM, or eval \"$(weft env)\", lets programs find these libraries without weft run\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH,
        std::env::consts::OS
    )
}

/// The affinity mask and the cgroup's quota of processor time both count.
fn cores() -> String {
    let usable = thread::available_parallelism().map_or_else(|_| "unknown".into(), |count| count.to_string());
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    match count_list(online.trim()) {
        Some(all) => format!("cores usable {usable} of {all}\n"),
        None => format!("cores usable {usable}\n"),
    }
}

/// How many cores a kernel list such as `0-3,8` names.
fn count_list(list: &str) -> Option<usize> {
    let count = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(last.parse::<usize>().ok()?.checked_sub(first.parse().ok()?)? + 1)
    };
    list.split(',').map(count).sum()
}

fn devices(devices: &[ProbeReport]) -> String {
    let mut text = String::from("\ndevices\n");
    let width = devices.iter().map(|device| device.name.len()).max().unwrap_or(0);
    for device in devices {
        let usable = if device.usable { "usable" } else { "not usable" };
        let mut reasons = device.reasons.iter();
        let _ = writeln!(text, "  {:width$}  {usable:<10}  {}", device.name, reasons.next().map_or("", String::as_str));
        for reason in reasons {
            let _ = writeln!(text, "  {:width$}  {:<10}  {reason}", "", "");
        }
    }
    text
}

/// Every algorithm of every operation, and when it is chosen.
fn algorithms() -> String {
    let mut text = String::from(
        "\ncollective operations by messages (WEFT_ALGORITHMS prescribes); blocking ones of one host share memory\n",
    );
    for (operation, algorithms) in Algorithms::TABLE {
        let chosen: Vec<String> = algorithms.iter().map(|(word, when)| format!("{word} ({when})")).collect();
        let _ = writeln!(text, "  {operation:<14}  {}", chosen.join("; "));
    }
    text
}

fn table(settings: &Result<Settings, Vec<SettingError>>) -> String {
    let Ok(settings) = settings else {
        return "\nsettings are refused, see the errors\n".into();
    };
    let mut text = String::from("\nsettings\n");
    for row in settings.rows() {
        let definition = row.definition;
        let _ = writeln!(text, "  {:<23} {:<9} {:<12} {}", definition.env, row.value, row.origin, definition.meaning);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_lists_are_counted() {
        assert_eq!(count_list("0-3,8,10-11"), Some(7));
        assert_eq!(count_list("0"), Some(1));
        assert_eq!(count_list(""), None);
        assert_eq!(count_list("3-1"), None);
    }

    #[test]
    fn a_device_is_shown_with_every_reason() {
        let device = |name, usable, reasons: &[&str]| {
            let reasons = reasons.iter().map(|reason| (*reason).to_owned()).collect();
            ProbeReport { name, usable, reasons }
        };
        let text = devices(&[device("shm", true, &["first", "second"]), device("loopback", false, &["why"])]);
        assert_eq!(
            text,
            "\ndevices\n  shm       usable      first\n                        second\n  loopback  not usable  why\n"
        );
    }

    #[test]
    fn every_algorithm_is_shown_with_when_it_is_chosen() {
        let text = algorithms();
        let line = text.lines().find(|line| line.trim_start().starts_with("allreduce")).expect("a line");
        assert!(
            line.contains("doubling (up to 16K, and among two or three ranks)") && line.contains("halving"),
            "{line}"
        );
    }

    #[test]
    fn settings_are_shown_with_value_and_origin() {
        let text = table(&Settings::from_env([("WEFT_BIND", "core")]));
        let line = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
        assert!(line("WEFT_BIND").contains("core      environment"), "{text}");
        assert!(line("WEFT_EAGER_BYTES").contains("64K       default"), "{text}");
        assert!(table(&Settings::from_env([("WEFT_BIND", "cores")])).contains("refused"));
    }
}
