//! Whether this process was started by a rank.

use std::fs::read_to_string;

/// More generations than this are not looked at.
const GENERATIONS: u32 = 16;

/// Whether one of our ancestors is a member of a job: it has the segment mapped. Asked only when the environment speaks
/// of a descriptor that is not there.
pub fn is_child_of_rank() -> bool {
    any_ancestor(maps_segment)
}

/// The same for one that was told the same by its launcher in these variables.
pub fn is_child_of_same_rank(variables: &[&str]) -> bool {
    let told = |name: &&str| std::env::var(name).ok().map(|value| format!("{name}={value}"));
    let told: Vec<String> = variables.iter().filter_map(told).collect();
    any_ancestor(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let has = |wanted: &String| environment.split(|byte| *byte == 0).any(|word| word == wanted.as_bytes());
        told.iter().all(has) && maps_segment(pid)
    })
}

fn any_ancestor(is_it: impl Fn(u32) -> bool) -> bool {
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..GENERATIONS {
        if pid <= 1 {
            return false;
        }
        if is_it(pid) {
            return true;
        }
        let Some(parent) = parent(pid) else { return false };
        pid = parent;
    }
    false
}

fn maps_segment(pid: u32) -> bool {
    read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.contains("/memfd:weft-segment"))
}

fn parent(pid: u32) -> Option<u32> {
    let stat = read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything; state and parent follow it.
    stat[stat.rfind(')')? + 1..].split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_are_found_and_members_recognised() {
        let me = std::process::id();
        assert_eq!(parent(me), Some(std::os::unix::process::parent_id()));
        let segment = weft_device::shm::Segment::create(1).expect("segment");
        assert!(maps_segment(me));
        drop(segment);
        assert!(!maps_segment(1));
    }
}
