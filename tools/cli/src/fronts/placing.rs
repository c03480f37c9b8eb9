//! Binding and mapping in the words of others. Ranks are bound to a core each, or not at all.

use super::Slip;
use super::draft::Draft;
use weft_cluster::hosts::RankMap;
use weft_cluster::placement::Bind;

/// Places within a host, as other launchers have them.
const INSIDE: [&str; 16] = [
    "slot", "hwthread", "pu", "cpu", "core", "l1cache", "l2cache", "l3cache", "l1", "l2", "l3", "numa", "socket",
    "package", "board", "ccd",
];
/// Words for a host.
const HOST: [&str; 4] = ["node", "host", "machine", "nodes"];

/// `core`, `none`, and what stands for one of them. Qualifiers such as `core:overload-allowed` say how to go on when
/// cores are short; auto does go on.
pub fn bind(draft: &mut Draft, option: &str, given: &str) -> Result<(), Slip> {
    let (base, qualifiers) = given.split_once(':').unwrap_or((given, ""));
    draft.bind = match base.to_lowercase().as_str() {
        "core" if qualifiers.parse().is_ok_and(|cores: usize| cores > 1) => several(draft, option, given),
        "core" | "cores" if qualifiers.is_empty() => Bind::Core,
        "core" | "cores" | "hwthread" | "pu" | "cpu" | "thread" | "threads" | "rr" | "l1cache" | "l2cache" | "l1"
        | "l2" => Bind::Auto,
        "none" | "no" | "false" => Bind::None,
        "socket" | "sockets" | "package" | "numa" | "ldoms" | "l3cache" | "l3" | "ccd" | "board" | "user" => {
            several(draft, option, given)
        }
        other if HOST.contains(&other) => Bind::None,
        _ => {
            return Err(format!("{option} '{given}' is not known; accepted are core, hwthread, socket, numa and none"));
        }
    };
    Ok(())
}

/// A place of several cores.
fn several(draft: &mut Draft, option: &str, given: &str) -> Bind {
    draft.ignore(format!("{option} {given}"), "ranks are bound to one core each or not at all, so they are not bound");
    Bind::None
}

/// `node`, `slot`, `ppr:2:node`, with qualifiers such as `:PE=4`.
pub fn map(draft: &mut Draft, option: &str, given: &str) -> Result<(), Slip> {
    let mut parts = given.split([':', ',']);
    let base = parts.next().unwrap_or_default().to_lowercase();
    match base.as_str() {
        "ppr" => {
            let (count, place) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            match HOST.contains(&place) {
                true => draft.set_per_host(option, count)?,
                false => draft.countless = Some(format!("{option} {given}")),
            }
        }
        "" => {}
        host if HOST.contains(&host) => draft.map = RankMap::Host,
        inside if INSIDE.contains(&inside) => draft.map = RankMap::Slot,
        "seq" | "dist" | "rankfile" | "pe-list" | "rr" | "user" => {
            draft.ignore(format!("{option} {given}"), "cores are chosen by the launcher")
        }
        _ => {
            return Err(format!(
                "{option} '{given}' is not known; accepted are slot, node, ppr:N:node, core, socket, numa"
            ));
        }
    }
    for qualifier in parts {
        match qualifier.to_lowercase().split_once('=') {
            Some(("pe", count)) => draft.threads = threads(option, count)?,
            None if qualifier.eq_ignore_ascii_case("oversubscribe") => draft.oversubscribe = true,
            _ => draft.ignore(format!("{option} ...:{qualifier}"), "cores are chosen by the launcher"),
        }
    }
    Ok(())
}

/// How many cores a rank needs.
pub fn threads(option: &str, given: &str) -> Result<usize, Slip> {
    let count = given.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| format!("{option}: '{given}' is not a number of cores"))
}
